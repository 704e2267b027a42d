//! Accounts as the login sees them, and as rows of their table.

use std::sync::Arc;

use auth::{Method, StoredSecret};
use catalog::account_record::{ACCOUNT_TABLE, SYSTEM_DATABASE, decode_account, encode_account};
use catalog::{Account, AccountName, Accounts, Origin};
use errcode::ClientError;
use front::{AccountSource, Peer};
use store::{RowBatch, Store, StoreError};
use value::{Value, ValueRef};

use crate::system_rows::{self, RowChange};

/// The login's view of the accounts at one moment.
#[derive(Debug)]
pub struct Door {
    /// All accounts.
    pub accounts: Arc<Accounts>,
}

/// Where a client comes from, in the catalogue's terms.
pub fn origin(peer: Peer) -> Origin {
    match peer {
        Peer::Unix => Origin::Socket,
        Peer::Tcp(address) => Origin::Address(address),
    }
}

impl AccountSource for Door {
    fn find(&self, user: &str, peer: Peer) -> Option<front::Account> {
        let account = self.accounts.find(user, origin(peer))?;
        // A hash that cannot be read lets nobody in: the login plays through as for an unknown
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
}

/// What to change in the table of accounts.
#[derive(Debug, Clone)]
pub enum AccountChange {
    /// A new account, or an account's new contents.
    Put(Account),
    /// Gone.
    Remove(AccountName),
}

/// Makes the system database, the table of accounts and the first accounts where they are missing.
pub async fn bootstrap(store: &dyn Store) -> Result<(), StoreError> {
    let has_database = store
        .databases()
        .iter()
        .any(|(name, _)| name == SYSTEM_DATABASE);
    if !has_database {
        store
            .create_database(SYSTEM_DATABASE, value::CollationId::UTF8MB4_GENERAL_CI)
            .await?;
    }
    if system_rows::find(store, ACCOUNT_TABLE).await?.is_none() {
        store
            .create_table(catalog::account_record::account_table())
            .await?;
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

/// Reads all accounts. One that is damaged is left out and told of.
pub async fn load(store: &dyn Store) -> Result<Accounts, StoreError> {
    let Some(table) = system_rows::find(store, ACCOUNT_TABLE).await? else {
        return Ok(Accounts::default());
    };
    let accounts = system_rows::read_all(store, &*table, |batch, row| {
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

/// True while who comes from where root may log in is root without a password.
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
    let table = system_rows::find(store, ACCOUNT_TABLE).await?;
    let table = table.ok_or(StoreError::NoSuchTable)?;
    let bytes = |text: &str| Value::bytes(text.as_bytes());
    let changes = changes.iter().map(|change| {
        let (name, account) = match change {
            AccountChange::Put(account) => (&account.name, Some(account)),
            AccountChange::Remove(name) => (name, None),
        };
        let key = vec![bytes(&name.host), bytes(&name.user)];
        let row = account.map(|account| {
            let mut row = key.clone();
            row.push(bytes(&encode_account(account)));
            row
        });
        RowChange { key, row }
    });
    system_rows::apply(store, &*table, changes).await
}

/// The stored form of a password under a plugin.
pub fn hash_password(
    plugin: &str,
    password: &[u8],
    random: &front::RandomSource,
) -> Result<String, ClientError> {
    let method = Method::from_account_plugin(plugin)
        .ok_or_else(|| ClientError::new(errcode::ER_PLUGIN_IS_NOT_LOADED, &[&plugin]))?;
    let mut fill = |bytes: &mut [u8]| random(bytes);
    let secret = StoredSecret::from_password(method, password, &mut auth::Random(&mut fill));
    let too_long = |_| ClientError::new(errcode::ER_NOT_VALID_PASSWORD, &[&"it is too long"]);
    Ok(String::from_utf8_lossy(&secret.map_err(too_long)?.to_text()).into_owned())
}
