//! [`Service`]: what the clients of a listener get, as it is now.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use errcode::{ClientError, WORDS_FOREIGN_PLUGIN};
use front::{Account, AccountSource, Credential, Greeting, Peer};
use sync::Notify;

use crate::account_list::AccountList;
use crate::options::ServiceOptions;

/// See the module's head. Any worker reads it; [`crate::account_task`] publishes.
#[derive(Debug)]
pub(crate) struct Service {
    /// Constant.
    pub(crate) options: ServiceOptions,
    /// What a server has told; `None` until one has answered.
    known: ArcSwapOption<Known>,
    /// The accounts are to be read again: a login has failed that might succeed by newer ones.
    pub(crate) wants_accounts: Notify,
}

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
            known: ArcSwapOption::empty(),
            wants_accounts: Notify::default(),
        }
    }

    /// What a server has told last.
    pub(crate) fn known(&self) -> Option<Arc<Known>> {
        self.known.load_full()
    }

    /// Publishes what a server has told.
    pub(crate) fn publish(&self, known: Known) {
        self.known.store(Some(Arc::new(known)));
    }
}

/// A login's view of the accounts: those when it began.
#[derive(Debug)]
pub(crate) struct AccountLookup {
    pub(crate) known: Arc<Known>,
}

impl AccountSource for AccountLookup {
    fn find(&self, user: &str, peer: Peer) -> Option<Account> {
        let accounts = &self.known.accounts;
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
