//! Accounts as rows of `mysql.global_priv`.
//!
//! The table is MariaDB's: `Host`, `User` and a JSON text. MariaDB keeps the global privileges in
//! that text and the rest in further tables. Here the text holds all levels, so an account is
//! changed in one row and read in one scan:
//!
//! ```text
//! {"access": 1, "grant_option": true, "plugin": "mysql_native_password",
//!  "authentication_string": "*..", "account_locked": true, "require_tls": true,
//!  "databases": {"shop": {"access": 1}},
//!  "tables": [{"database": "shop", "table": "orders", "access": 3}],
//!  "routines": [{"kind": "PROCEDURE", "database": "shop", "name": "add", "access": 8388608}]}
//! ```
//!
//! Absent members mean: nothing granted, not locked, not required. The bits of `access` are those
//! of [`PrivilegeSet::bits`] and part of the format.

use std::collections::BTreeMap;

use auth::{AccountName, HOST_BYTES_MAX, USER_NAME_CHARS_MAX};
use serde::{Deserialize, Serialize};
use store::{ColumnDefinition, TableDefinition};
use syntax::ast::RoutineKind;
use thiserror::Error;
use value::{CollationId, ColumnType, TypeKind};

use crate::account::{Account, Credential, Grant, Grants};
use crate::privilege::PrivilegeSet;
use crate::routine_key::RoutineKey;
use crate::stored_table::StoredTable;

/// The table of accounts.
pub const ACCOUNT_TABLE: &str = "global_priv";

/// A row of the table cannot be decoded.
#[derive(Debug, Error)]
#[error("the account '{user}'@'{host}' has a damaged privilege text")]
pub struct DamagedAccount {
    /// The row's `User`.
    pub user: String,
    /// The row's `Host`.
    pub host: String,
    /// The error of the JSON parser.
    #[source]
    pub source: serde_json::Error,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Record {
    access: u64,
    #[serde(skip_serializing_if = "is_false")]
    grant_option: bool,
    plugin: String,
    authentication_string: String,
    #[serde(skip_serializing_if = "is_false")]
    account_locked: bool,
    #[serde(skip_serializing_if = "is_false")]
    require_tls: bool,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    databases: BTreeMap<String, GrantRecord>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tables: Vec<TableRecord>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    routines: Vec<RoutineRecord>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct GrantRecord {
    access: u64,
    #[serde(skip_serializing_if = "is_false")]
    grant_option: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableRecord {
    database: String,
    table: String,
    access: u64,
    #[serde(default, skip_serializing_if = "is_false")]
    grant_option: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RoutineRecord {
    kind: KindRecord,
    database: String,
    name: String,
    access: u64,
    #[serde(default, skip_serializing_if = "is_false")]
    grant_option: bool,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum KindRecord {
    Procedure,
    Function,
}

impl RoutineRecord {
    fn new(key: &RoutineKey, grant: Grant) -> Self {
        Self {
            kind: match key.kind() {
                RoutineKind::Procedure => KindRecord::Procedure,
                RoutineKind::Function => KindRecord::Function,
            },
            database: key.database().to_owned(),
            name: key.name().to_owned(),
            access: grant.privileges.bits(),
            grant_option: grant.grantable,
        }
    }

    fn key(&self) -> RoutineKey {
        let kind = match self.kind {
            KindRecord::Procedure => RoutineKind::Procedure,
            KindRecord::Function => RoutineKind::Function,
        };
        RoutineKey::new(kind, &self.database, &self.name)
    }
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl From<Grant> for GrantRecord {
    fn from(grant: Grant) -> Self {
        Self {
            access: grant.privileges.bits(),
            grant_option: grant.grantable,
        }
    }
}

fn grant(access: u64, grant_option: bool) -> Grant {
    Grant {
        privileges: PrivilegeSet::from_bits(access),
        grantable: grant_option,
    }
}

/// The `Priv` text of an account.
pub fn encode_account(account: &Account) -> String {
    let Grants {
        global,
        databases,
        tables,
        routines,
    } = &account.grants;
    let record = Record {
        access: global.privileges.bits(),
        grant_option: global.grantable,
        plugin: account.credential.plugin.clone(),
        authentication_string: account.credential.hash.clone(),
        account_locked: account.locked,
        require_tls: account.requires_tls,
        databases: databases
            .iter()
            .map(|(name, grant)| (name.clone(), (*grant).into()))
            .collect(),
        tables: tables
            .iter()
            .map(|((database, table), grant)| TableRecord {
                database: database.clone(),
                table: table.clone(),
                access: grant.privileges.bits(),
                grant_option: grant.grantable,
            })
            .collect(),
        routines: routines
            .iter()
            .map(|(key, grant)| RoutineRecord::new(key, *grant))
            .collect(),
    };
    serde_json::to_string(&record).expect("a record of texts and numbers has a JSON text")
}

/// The account of a row.
pub fn decode_account(name: AccountName, text: &[u8]) -> Result<Account, DamagedAccount> {
    let record: Record = serde_json::from_slice(text).map_err(|source| DamagedAccount {
        user: name.user.clone(),
        host: name.host.clone(),
        source,
    })?;
    let databases = record
        .databases
        .into_iter()
        .map(|(database, of)| (database, grant(of.access, of.grant_option)))
        .collect();
    let tables = record
        .tables
        .into_iter()
        .map(|of| ((of.database, of.table), grant(of.access, of.grant_option)))
        .collect();
    let routines = record
        .routines
        .into_iter()
        .map(|of| (of.key(), grant(of.access, of.grant_option)))
        .collect();
    Ok(Account {
        name,
        credential: Credential {
            plugin: record.plugin,
            hash: record.authentication_string,
        },
        locked: record.account_locked,
        requires_tls: record.require_tls,
        grants: Grants {
            global: grant(record.access, record.grant_option),
            databases,
            tables,
            routines,
        },
    })
}

/// The definition of the table of accounts.
pub fn account_table() -> TableDefinition {
    let column = |name: &str, column_type| ColumnDefinition::new(name, column_type, false);
    let bin = CollationId::UTF8MB4_BIN;
    let length = |bytes: usize| u32::try_from(bytes).expect("names are short");
    StoredTable {
        name: ACCOUNT_TABLE,
        comment: "Users and global privileges",
        columns: vec![
            column(
                "Host",
                ColumnType::text(TypeKind::VarChar, length(HOST_BYTES_MAX), bin),
            ),
            column(
                "User",
                ColumnType::text(TypeKind::VarChar, length(USER_NAME_CHARS_MAX), bin),
            ),
            column("Priv", ColumnType::text(TypeKind::LongText, u32::MAX, bin)),
        ],
        key_column_count: 2,
        collation: bin,
    }
    .definition()
}

/// The accounts of a new server: `root` from the socket and loopback, with all privileges and no
/// password.
pub fn first_accounts() -> Vec<Account> {
    let name = AccountName {
        user: "root".to_owned(),
        host: "localhost".to_owned(),
    };
    let global = Grant {
        privileges: PrivilegeSet::ALL_GLOBAL,
        grantable: true,
    };
    vec![Account {
        name,
        credential: Credential {
            plugin: "mysql_native_password".to_owned(),
            hash: String::new(),
        },
        locked: false,
        requires_tls: false,
        grants: Grants {
            global,
            ..Grants::default()
        },
    }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_read_as_it_was_written() {
        let mut account = first_accounts().remove(0);
        account.locked = true;
        let some = Grant {
            privileges: PrivilegeSet::ALL_TABLE,
            grantable: true,
        };
        account.grants.databases.insert("a`b".to_owned(), some);
        account
            .grants
            .tables
            .insert(("d\"".to_owned(), "t".to_owned()), some);
        for kind in [RoutineKind::Procedure, RoutineKind::Function] {
            let key = RoutineKey::new(kind, "d", "Add");
            account.grants.routines.insert(key, some);
        }
        let text = encode_account(&account);
        assert_eq!(
            decode_account(account.name.clone(), text.as_bytes()).unwrap(),
            account
        );
    }

    #[test]
    fn the_text_is_pinned() {
        let account = first_accounts().remove(0);
        assert_eq!(
            encode_account(&account),
            "{\"access\":274877906943,\"grant_option\":true,\
             \"plugin\":\"mysql_native_password\",\"authentication_string\":\"\"}"
        );
    }

    #[test]
    fn a_damaged_text_names_its_account() {
        let name = AccountName {
            user: "u".to_owned(),
            host: "h".to_owned(),
        };
        for text in [&b"{"[..], b"{\"acces\":1}", b"5", b"\xff"] {
            let error = decode_account(name.clone(), text).unwrap_err();
            assert_eq!(
                error.to_string(),
                "the account 'u'@'h' has a damaged privilege text"
            );
        }
    }
}
