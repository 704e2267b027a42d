//! [`Service`]: what the clients of a listener get, as it is now.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use errcode::{ClientError, WORDS_FOREIGN_PLUGIN};
use front::{Account, AccountSource, Credential, Greeting, Peer};
use sync::{Mutex, Notify};

use crate::account_list::AccountList;
use crate::options::ServiceOptions;

pub(crate) mod written;

use written::SharedWritten;

/// See the module's head. Any worker reads it. Of one configuration; a service of the next one with
/// the same name shares what is not constant.
#[derive(Debug)]
pub(crate) struct Service {
    /// Constant.
    pub(crate) options: ServiceOptions,
    /// Who may log in.
    pub(crate) readings: Arc<Readings>,
    /// What its sessions have written, if all of them are to see it (`causal_reads = "service"`).
    pub(crate) written: Arc<SharedWritten>,
}

/// What is read of a service's servers. [`crate::tasks`] publishes.
#[derive(Debug, Default)]
pub(crate) struct Readings {
    /// What a server has told; `None` until one has answered.
    known: ArcSwapOption<Known>,
    /// The accounts are to be read again: a login has failed that might succeed by newer ones, or
    /// the configuration has changed.
    pub(crate) wants_accounts: Notify,
    /// Logins that wait for newer accounts.
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    /// How often accounts were published.
    generation: u64,
    /// The last id of a login that waits.
    last_id: u64,
    wakers: HashMap<u64, Waker>,
}

/// A login that waits for newer accounts. Dropped, it leaves the list.
struct WaitingPlace<'a> {
    readings: &'a Readings,
    id: u64,
}

impl Drop for WaitingPlace<'_> {
    fn drop(&mut self) {
        self.readings.waiting.lock().wakers.remove(&self.id);
    }
}

/// A login waits so long for newer accounts: longer than servers take to send them, and than the
/// pause between two readings.
const RENEWAL_TIME_MAX: Duration = Duration::from_secs(3);

/// What a server has told.
#[derive(Debug)]
pub(crate) struct Known {
    /// Who may log in.
    pub(crate) accounts: AccountList,
    /// What clients are greeted with.
    pub(crate) greeting: Greeting,
}

impl Service {
    pub(crate) fn new(options: ServiceOptions) -> Service {
        Service {
            options,
            readings: Arc::default(),
            written: Arc::default(),
        }
    }

    /// The same service in the next configuration, whose sessions see what was written there.
    pub(crate) fn continued(
        &self,
        options: ServiceOptions,
        written: Arc<SharedWritten>,
    ) -> Service {
        Service {
            options,
            readings: Arc::clone(&self.readings),
            written,
        }
    }
}

impl Readings {
    /// What a server has told last.
    pub(crate) fn known(&self) -> Option<Arc<Known>> {
        self.known.load_full()
    }

    /// Publishes what a server has told.
    pub(crate) fn publish(&self, known: Known) {
        self.known.store(Some(Arc::new(known)));
        let wakers = {
            let mut waiting = self.waiting.lock();
            waiting.generation += 1;
            std::mem::take(&mut waiting.wakers)
        };
        wakers.into_values().for_each(Waker::wake);
    }

    /// Waits until the accounts have been read again, or for too long.
    async fn renewed(&self) {
        let (before, place) = {
            let mut waiting = self.waiting.lock();
            waiting.last_id += 1;
            let place = WaitingPlace {
                readings: self,
                id: waiting.last_id,
            };
            (waiting.generation, place)
        };
        self.wants_accounts.notify();
        let published = poll_fn(|context| {
            let mut waiting = self.waiting.lock();
            if waiting.generation != before {
                return Poll::Ready(());
            }
            waiting.wakers.insert(place.id, context.waker().clone());
            Poll::Pending
        });
        // Without newer ones the login goes by those that there are.
        let _ = runtime::timeout(RENEWAL_TIME_MAX, published).await;
    }
}

/// A login's view of the accounts: those when it began, or newer ones.
#[derive(Debug)]
pub(crate) struct AccountLookup<'s> {
    readings: &'s Readings,
    known: RefCell<Arc<Known>>,
}

impl<'s> AccountLookup<'s> {
    pub(crate) fn new(readings: &'s Readings, known: Arc<Known>) -> AccountLookup<'s> {
        AccountLookup {
            readings,
            known: RefCell::new(known),
        }
    }

    async fn look_again(&self) {
        self.readings.renewed().await;
        if let Some(known) = self.readings.known() {
            *self.known.borrow_mut() = known;
        }
    }
}

impl AccountSource for AccountLookup<'_> {
    fn can_renew(&self) -> bool {
        true
    }

    fn renew(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(self.look_again())
    }

    fn find(&self, user: &str, peer: Peer) -> Option<Account> {
        let known = self.known.borrow();
        let accounts = &known.accounts;
        let Some(plugins) = accounts.foreign_plugins(user, peer) else {
            return accounts.find(user, peer);
        };
        let refusal = ClientError::worded(WORDS_FOREIGN_PLUGIN, &[&user, &plugins]);
        Some(Account {
            user: user.to_owned(),
            host: peer.host(),
            credential: Credential::Refused(Box::new(refusal)),
            is_locked: false,
            requires_tls: false,
        })
    }
}
