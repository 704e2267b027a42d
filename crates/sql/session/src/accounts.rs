//! Accounts as the login sees them, and as rows of their table.

use std::sync::Arc;

use auth::{Method, StoredSecret};
use catalog::account_record::{ACCOUNT_TABLE, SYSTEM_DATABASE, decode_account, encode_account};
use catalog::{Account, AccountName, Accounts, Origin};
use errcode::ClientError;
use front::{AccountSource, Peer};
use store::{
    Durability, Fetched, Inserted, KeyRange, Mutation, RowBatch, RowKey, RowLock, ScanOptions,
    Store, StoreError, Table, Transaction, TransactionOptions, until_done,
};
use value::{Value, ValueRef};

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

/// The table of accounts, if it has been made.
async fn account_table(store: &dyn Store) -> Result<Option<std::rc::Rc<dyn Table>>, StoreError> {
    let definitions = store.definitions();
    let definition = definitions.iter().find(|definition| {
        definition.name.database == SYSTEM_DATABASE && definition.name.table == ACCOUNT_TABLE
    });
    let Some(definition) = definition else {
        return Ok(None);
    };
    until_done(|| store.table(definition.id)).await.map(Some)
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
    if account_table(store).await?.is_none() {
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
    let Some(table) = account_table(store).await? else {
        return Ok(Accounts::default());
    };
    let mut txn = store.begin(options());
    let mut cursor = table.scan(scan(KeyRange::all()));
    let mut batch = RowBatch::new(Arc::clone(table.layout()));
    while until_done(|| cursor.fetch(&mut *txn, 64, &mut batch)).await? == Fetched::More {}
    until_done(|| txn.commit(Durability::Lazy)).await?;
    let accounts = (0..batch.len()).filter_map(|row| {
        let account = read_row(&batch, row);
        if account.is_none() {
            tracing::error!(row, "an account cannot be read and lets nobody in");
        }
        account
    });
    Ok(Accounts::new(accounts.collect()))
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
    let table = account_table(store).await?.ok_or(StoreError::NoSuchTable)?;
    let mut txn = store.begin(options());
    for change in changes {
        let applied = apply_one(&*table, &mut *txn, change).await;
        if let Err(error) = applied {
            until_done(|| txn.rollback()).await?;
            return Err(error);
        }
    }
    until_done(|| txn.commit(Durability::Durable)).await
}

async fn apply_one(
    table: &dyn Table,
    txn: &mut dyn Transaction,
    change: &AccountChange,
) -> Result<(), StoreError> {
    txn.begin_statement();
    let name = match change {
        AccountChange::Put(account) => &account.name,
        AccountChange::Remove(name) => name,
    };
    let key = [&name.host, &name.user].map(|text| Value::bytes(text.as_bytes()));
    let mut options = scan(KeyRange::equal(key.to_vec()));
    options.lock = RowLock::Exclusive;
    let mut cursor = table.scan(options);
    let mut found = RowBatch::new(Arc::clone(table.layout()));
    while until_done(|| cursor.fetch(txn, 1, &mut found)).await? == Fetched::More
        && found.is_empty()
    {}
    let existing = (!found.is_empty()).then(|| found.key(0));
    match change {
        AccountChange::Put(account) => put(table, txn, existing, account).await,
        AccountChange::Remove(_) => match existing {
            Some(key) => until_done(|| table.delete(txn, key)).await.map(|_| ()),
            None => Ok(()),
        },
    }
}

async fn put(
    table: &dyn Table,
    txn: &mut dyn Transaction,
    existing: Option<RowKey<'_>>,
    account: &Account,
) -> Result<(), StoreError> {
    let text = encode_account(account);
    let row = [&account.name.host, &account.name.user, &text]
        .map(|text| ValueRef::Bytes(text.as_bytes()));
    match existing {
        Some(key) => match until_done(|| table.update(txn, key, &row)).await? {
            Mutation::Done => Ok(()),
            Mutation::Duplicate { index, .. } => Err(StoreError::DuplicateKey { index }),
            Mutation::Gone => Err(StoreError::NoSuchTable),
        },
        None => match until_done(|| table.insert(txn, &row)).await? {
            Inserted::Done => Ok(()),
            Inserted::Duplicate { index, .. } => Err(StoreError::DuplicateKey { index }),
        },
    }
}

fn options() -> TransactionOptions {
    TransactionOptions {
        isolation: store::Isolation::ReadCommitted,
        read_only: false,
        lock_wait_timeout_s: 50,
    }
}

fn scan(range: KeyRange) -> ScanOptions {
    ScanOptions {
        index: Some(0),
        range,
        direction: store::Direction::Forward,
        lock: RowLock::None,
        columns: None,
        wait: store::LockWait::Wait,
    }
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
