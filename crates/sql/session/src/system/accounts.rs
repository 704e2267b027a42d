//! Accounts as the login sees them, and as rows of their table.

use std::sync::Arc;

use auth::{Method, StoredSecret};
use catalog::SYSTEM_DATABASE;
use catalog::account_record::{ACCOUNT_TABLE, decode_account, encode_account};
use catalog::routine::ROUTINE_TABLE;
use catalog::{Account, AccountName, Accounts};
use errcode::ClientError;
use front::{AccountSource, Peer};
use store::{RowBatch, SchemaStore, Store, StoreError};
use value::{Charset, CollationId, Value, ValueRef};

use crate::server::Server;
use crate::system::rows::{self, RowChange};

/// One login's view of the accounts.
#[derive(Debug)]
pub struct AccountLookup {
    server: Arc<Server>,
    /// The accounts when the login began. The client may take as long as it likes.
    accounts: Arc<Accounts>,
}

impl AccountLookup {
    /// The view of a login that begins now.
    pub fn new(server: &Arc<Server>) -> Self {
        Self {
            server: Arc::clone(server),
            accounts: server.accounts(),
        }
    }

    /// Returns the account by which a client has proved its identity. Returns `None` if that
    /// account was removed, or its credentials changed, during the login.
    pub fn lets_in(&self, name: &AccountName) -> Option<Arc<Account>> {
        let proved = self.accounts.by_name(name)?;
        let accounts = self.server.accounts();
        let account = accounts.by_name(name)?;
        let is_same = account.credential == proved.credential
            && account.locked == proved.locked
            && account.requires_tls == proved.requires_tls;
        is_same.then(|| Arc::clone(account))
    }
}

impl AccountSource for AccountLookup {
    fn find(&self, user: &str, peer: Peer) -> Option<front::Account> {
        let account = self.accounts.find(user, peer)?;
        // An account whose hash cannot be read cannot log in: the login proceeds as for an unknown
        // user.
        let method = Method::from_account_plugin(&account.credential.plugin)?;
        let secret = StoredSecret::parse(method, account.credential.hash.as_bytes()).ok()?;
        Some(front::Account {
            user: account.name.user.clone(),
            host: account.name.host.clone(),
            credential: front::Credential::Secret(secret),
            is_locked: account.locked,
            requires_tls: account.requires_tls,
        })
    }

    fn name_text(&self, collation: u16, name: &[u8]) -> String {
        let charset = CollationId::from_id(collation).map(CollationId::charset);
        let charset = charset.unwrap_or(Charset::Utf8mb4);
        charset.to_utf8_lossy(name).into_owned()
    }
}

/// What to change in the table of accounts.
#[derive(Debug, Clone)]
pub enum AccountChange {
    /// A new account, or an account's new contents.
    Put(Account),
    /// Removes the account.
    Remove(AccountName),
}

impl AccountChange {
    /// The account's name, and its new contents or `None`.
    fn parts(&self) -> (&AccountName, Option<&Account>) {
        match self {
            Self::Put(account) => (&account.name, Some(account)),
            Self::Remove(name) => (name, None),
        }
    }
}

/// The accounts after changes.
pub fn after(accounts: &Accounts, changes: &[AccountChange]) -> Accounts {
    let parts = changes.iter().map(AccountChange::parts);
    accounts.after(parts.map(|(name, account)| (name.clone(), account.cloned())))
}

/// Creates the system database, the table of accounts and the first accounts if they are missing.
/// The table of routines is created last. While it is missing, the first start is not complete, and
/// an empty table of accounts still has to be filled. Later an empty table is the administrator's
/// decision.
pub async fn bootstrap(store: &(impl Store + SchemaStore)) -> Result<(), StoreError> {
    let has_database = store
        .databases()
        .iter()
        .any(|(name, _)| name == SYSTEM_DATABASE);
    if !has_database {
        store
            .create_database(SYSTEM_DATABASE, CollationId::UTF8MB4_GENERAL_CI)
            .await?;
    }
    if rows::find(store, ACCOUNT_TABLE).await?.is_none() {
        store
            .create_table(catalog::account_record::account_table())
            .await?;
    }
    let is_first_start = rows::find(store, ROUTINE_TABLE).await?.is_none();
    if is_first_start && load(store).await?.iter().next().is_none() {
        let first = catalog::account_record::first_accounts();
        apply(
            store,
            &first
                .into_iter()
                .map(AccountChange::Put)
                .collect::<Vec<_>>(),
        )
        .await?;
    }
    Ok(())
}

/// Reads all accounts. A damaged one is left out and logged.
pub async fn load(store: &dyn Store) -> Result<Accounts, StoreError> {
    let Some(table) = rows::find(store, ACCOUNT_TABLE).await? else {
        return Ok(Accounts::default());
    };
    let accounts = rows::read_all(store, &*table, |batch, row| {
        let account = read_row(batch, row);
        if account.is_none() {
            tracing::error!("an account cannot be read and lets nobody in");
        }
        account
    });
    Ok(Accounts::new(
        accounts.await?.into_iter().flatten().collect(),
    ))
}

/// True if root can log in without a password, from any host.
pub fn has_open_root(accounts: &Accounts) -> bool {
    let mut roots = accounts
        .iter()
        .filter(|account| account.name.user == "root");
    roots.any(|root| root.credential.hash.is_empty() && !root.locked)
}

fn read_row(batch: &RowBatch, row: usize) -> Option<Account> {
    let text = |column| match batch.column(row, column) {
        Ok(ValueRef::Bytes(bytes)) => Some(bytes),
        _ => None,
    };
    let name = |column| String::from_utf8(text(column)?.to_vec()).ok();
    let name = AccountName {
        host: name(0)?,
        user: name(1)?,
    };
    decode_account(name, text(2)?).ok()
}

/// Makes the changes, all or none, durably.
pub async fn apply(store: &dyn Store, changes: &[AccountChange]) -> Result<(), StoreError> {
    let table = rows::find(store, ACCOUNT_TABLE).await?;
    let table = table.ok_or(StoreError::NoSuchTable)?;
    rows::apply(store, &*table, row_changes(changes)).await
}

/// The changes as changes of rows.
pub(crate) fn row_changes(changes: &[AccountChange]) -> Vec<RowChange> {
    let bytes = |text: &str| Value::bytes(text.as_bytes());
    let row_change = |change: &AccountChange| {
        let (name, account) = change.parts();
        let key = vec![bytes(&name.host), bytes(&name.user)];
        let row = account.map(|account| {
            let mut row = key.clone();
            row.push(bytes(&encode_account(account)));
            row
        });
        RowChange { key, row }
    };
    changes.iter().map(row_change).collect()
}

/// The stored form of a password under a plugin.
pub async fn hash_password(
    plugin: &str,
    password: &[u8],
    random: &front::RandomSource,
) -> Result<String, ClientError> {
    let method = Method::from_account_plugin(plugin)
        .ok_or_else(|| ClientError::new(errcode::ER_PLUGIN_IS_NOT_LOADED, &[&plugin]))?;
    let (password, random) = (password.to_vec(), Arc::clone(random));
    let hash = move || {
        let mut fill = |bytes: &mut [u8]| random(bytes);
        StoredSecret::from_password(method, &password, &mut auth::Random(&mut fill))
    };
    let secret = match method {
        Method::CachingSha2 => runtime::blocking(hash).await,
        Method::NativePassword | Method::Ed25519 => hash(),
    };
    let too_long = |_| ClientError::new(errcode::ER_NOT_VALID_PASSWORD, &[&"it is too long"]);
    Ok(String::from_utf8_lossy(&secret.map_err(too_long)?.to_text()).into_owned())
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use catalog::account_record::{account_table, first_accounts};
    use settings::Settings;
    use testkit::naive_store::NaiveStore;

    use super::*;

    fn done<T>(future: impl Future<Output = Result<T, StoreError>>) -> T {
        let mut future = pin!(future);
        let mut context = Context::from_waker(Waker::noop());
        loop {
            if let Poll::Ready(outcome) = future.as_mut().poll(&mut context) {
                return outcome.unwrap();
            }
        }
    }

    fn names(store: &NaiveStore) -> Vec<String> {
        let accounts = done(load(store));
        accounts.iter().map(|it| it.name.user.clone()).collect()
    }

    /// The first start may be cut off anywhere; the next start creates root.
    #[test]
    fn a_first_start_that_was_cut_short_is_completed() {
        let store = NaiveStore::new();
        store.suspend_every(3);
        store.add_table(account_table());
        assert!(names(&store).is_empty());
        done(bootstrap(&store));
        assert_eq!(names(&store), ["root"]);
        done(bootstrap(&store));
        assert_eq!(names(&store), ["root"]);
    }

    /// A restart does not let a removed account in.
    #[test]
    fn a_server_whose_accounts_are_gone_makes_none() {
        let store = NaiveStore::new();
        done(bootstrap(&store));
        done(crate::system::routines::bootstrap(&store));
        let root = first_accounts().remove(0);
        done(apply(&store, &[AccountChange::Remove(root.name)]));
        done(bootstrap(&store));
        assert!(names(&store).is_empty());
    }

    /// A login takes as long as the client likes; the accounts change meanwhile.
    #[test]
    fn who_was_shut_out_during_the_login_is_not_let_in() {
        let server = Server::new(Settings::default(), 1, 0);
        let account = |hash: &str, locked| {
            let mut account = first_accounts().remove(0);
            account.credential.hash = hash.to_owned();
            account.locked = locked;
            account
        };
        let name = account("", false).name;
        let publish = |accounts| server.set_accounts(Accounts::new(accounts));
        publish(vec![account("", false)]);
        let lookup = AccountLookup::new(&server);
        assert!(lookup.lets_in(&name).is_some());
        for changed in [vec![], vec![account("x", false)], vec![account("", true)]] {
            publish(changed);
            assert!(lookup.lets_in(&name).is_none());
        }
        let mut granted = account("", false);
        granted.grants = catalog::Grants::default();
        publish(vec![granted.clone()]);
        assert_eq!(lookup.lets_in(&name).as_deref(), Some(&granted));
    }
}
