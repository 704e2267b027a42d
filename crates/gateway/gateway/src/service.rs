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
use monitor::gtid::GtidPosition;
use router::Written;
use sync::atomic::{AtomicU64, Ordering};
use sync::{Mutex, Notify};

use crate::account_list::AccountList;
use crate::options::ServiceOptions;

/// See the module's head. Any worker reads it. Of one configuration; a service of the next one with
/// the same name shares what is not constant.
#[derive(Debug)]
pub(crate) struct Service {
    /// Constant.
    pub(crate) options: ServiceOptions,
    /// Who may log in.
    pub(crate) readings: Arc<Readings>,
    /// What its sessions have written, if all of them are to see it.
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

/// What the sessions of a service have written together. Who reads looks whether there is anything
/// new, which is a load.
#[derive(Debug, Default)]
pub(crate) struct SharedWritten {
    /// Rises with each change. Release and Acquire: a write that was answered is seen by each read
    /// that begins later. The value itself is behind the lock.
    version: AtomicU64,
    value: Mutex<Written>,
}

impl SharedWritten {
    /// A session has written.
    pub(crate) fn advance(&self, written: &Written) {
        let mut value = self.value.lock();
        value.merge(written);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// The primary has told its position after what was read as version `seen`.
    pub(crate) fn locate(&self, seen: u64, position: &GtidPosition) {
        let mut value = self.value.lock();
        if self.version.load(Ordering::Acquire) == seen && *value == Written::Somewhere {
            *value = Written::UpTo(position.clone());
            self.version.fetch_add(1, Ordering::Release);
        }
    }

    /// The version of what was written at a place that no one knows. `None` if there is nothing.
    pub(crate) fn unlocated(&self) -> Option<u64> {
        let value = self.value.lock();
        let seen = self.version.load(Ordering::Acquire);
        (*value == Written::Somewhere).then_some(seen)
    }

    /// The primary was at this position at some time since the gateway began: what was written
    /// before that is known from now on.
    pub(crate) fn begin(&self, position: &GtidPosition) {
        let mut value = self.value.lock();
        if *value == Written::Nothing {
            *value = Written::UpTo(position.clone());
            self.version.fetch_add(1, Ordering::Release);
        }
    }

    /// What is written from now on comes behind this position, as far as it is known.
    pub(crate) fn restart(&self, position: Option<GtidPosition>) {
        let mut value = self.value.lock();
        *value = position.map_or(Written::Somewhere, Written::UpTo);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// One transaction more was written: this one, as far as it is known.
    pub(crate) fn follow(&self, gtid: Option<GtidPosition>) {
        self.value.lock().advance(gtid);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Whether a server that has what `has_applied` says has all that they have written.
    pub(crate) fn is_applied(&self, has_applied: impl FnOnce(&GtidPosition) -> bool) -> bool {
        match &*self.value.lock() {
            Written::UpTo(position) => has_applied(position),
            // Where the primary was is not known, or not yet.
            Written::Nothing | Written::Somewhere => false,
        }
    }

    /// Adds to a session what is newer than the version that it has seen.
    pub(crate) fn show(&self, seen: &mut u64, session: &mut router::Session) {
        if self.version.load(Ordering::Acquire) == *seen {
            return;
        }
        let value = self.value.lock();
        session.see(&value);
        *seen = self.version.load(Ordering::Acquire);
    }
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
