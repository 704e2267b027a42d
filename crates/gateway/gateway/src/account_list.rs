//! [`AccountList`]: who may log in, as the servers know it, and how their rows are read.
//!
//! MariaDB keeps an account as a JSON text in `mysql.global_priv`, MySQL in columns of
//! `mysql.user`. Both leave host patterns as they were created. A row that cannot be read is no
//! account; [`AccountList::damaged`] counts those.

use std::str;

use auth::{AccountName, Method, StoredSecret};
use front::{Account, AccountSource, Credential, Peer};
use serde::Deserialize;

/// A table of accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccountTable {
    /// MariaDB's, since 10.4.
    GlobalPriv,
    /// MySQL's.
    User,
}

/// All accounts of a service, most specific first.
#[derive(Debug, Default)]
pub(crate) struct AccountList {
    ordered: Vec<KnownAccount>,
    damaged: usize,
}

/// An account of a server.
#[derive(Debug, PartialEq, Eq)]
struct KnownAccount {
    name: AccountName,
    /// The ways to log in, in the server's order. Of plugins that are not spoken here there is
    /// only the name.
    ways: Vec<Way>,
    is_locked: bool,
    requires_tls: bool,
}

/// A way to log in to an account.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
struct Way {
    plugin: String,
    authentication_string: String,
}

/// MariaDB's `Priv`, as far as it concerns logins.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GlobalPriv {
    plugin: String,
    authentication_string: String,
    /// Further ways. An empty one stands for the two members above.
    auth_or: Vec<Way>,
    account_locked: bool,
    is_role: bool,
    /// 0 is none; the others ask for TLS.
    ssl_type: u8,
    /// Plateau's.
    require_tls: bool,
}

impl AccountTable {
    /// What reads it.
    pub(crate) fn statement(self) -> &'static [u8] {
        match self {
            AccountTable::GlobalPriv => b"SELECT Host, User, Priv FROM mysql.global_priv",
            AccountTable::User => {
                b"SELECT Host, User, plugin, authentication_string, account_locked, ssl_type \
                  FROM mysql.user"
            }
        }
    }

    /// The account of a row; `None` for a role.
    fn decode(self, row: &[Option<Vec<u8>>]) -> Result<Option<KnownAccount>, DamagedRow> {
        let text = |at: usize| -> Result<&str, DamagedRow> {
            let value = row.get(at).ok_or(DamagedRow)?;
            str::from_utf8(value.as_deref().unwrap_or_default()).map_err(|_| DamagedRow)
        };
        let name = AccountName {
            host: text(0)?.to_ascii_lowercase(),
            user: text(1)?.to_owned(),
        };
        match self {
            AccountTable::GlobalPriv => {
                let told = serde_json::from_str(text(2)?).map_err(|_| DamagedRow)?;
                Ok(of_global_priv(name, told))
            }
            AccountTable::User => Ok(Some(KnownAccount {
                name,
                ways: vec![Way {
                    plugin: text(2)?.to_owned(),
                    authentication_string: text(3)?.to_owned(),
                }],
                is_locked: text(4)? == "Y",
                requires_tls: !text(5)?.is_empty(),
            })),
        }
    }
}

/// A row is no account.
struct DamagedRow;

fn of_global_priv(name: AccountName, told: GlobalPriv) -> Option<KnownAccount> {
    if told.is_role {
        return None;
    }
    let first = Way {
        plugin: told.plugin,
        authentication_string: told.authentication_string,
    };
    let ways = match told.auth_or.is_empty() {
        true => vec![first],
        false => {
            let of = |way: Way| match way.plugin.is_empty() {
                true => first.clone(),
                false => way,
            };
            told.auth_or.into_iter().map(of).collect()
        }
    };
    Some(KnownAccount {
        name,
        ways,
        is_locked: told.account_locked,
        requires_tls: told.ssl_type != 0 || told.require_tls,
    })
}

impl Way {
    /// What a client has to prove; `None` if the plugin is not spoken here.
    fn secret(&self) -> Option<StoredSecret> {
        // An account without a plugin is one of MariaDB's oldest kind.
        let method = match self.plugin.as_str() {
            "" => Method::NativePassword,
            plugin => Method::from_account_plugin(plugin)?,
        };
        StoredSecret::parse(method, self.authentication_string.as_bytes()).ok()
    }
}

impl AccountList {
    /// The accounts of the rows of a table.
    pub(crate) fn decode(table: AccountTable, rows: &[Vec<Option<Vec<u8>>>]) -> AccountList {
        let mut list = AccountList::default();
        for row in rows {
            match table.decode(row) {
                Ok(account) => list.ordered.extend(account),
                Err(DamagedRow) => list.damaged += 1,
            }
        }
        list.ordered
            .sort_by_cached_key(|account| account.name.match_order());
        list
    }

    /// How many accounts there are.
    pub(crate) fn len(&self) -> usize {
        self.ordered.len()
    }

    /// How many rows could not be read.
    pub(crate) fn damaged(&self) -> usize {
        self.damaged
    }

    /// The plugins of the account that a client would get, if none of them is spoken here.
    pub(crate) fn foreign_plugins(&self, user: &str, peer: Peer) -> Option<String> {
        let account = self.matching(user, peer)?;
        if account.ways.iter().any(|way| way.secret().is_some()) {
            return None;
        }
        let names: Vec<_> = account.ways.iter().map(|way| way.plugin.as_str()).collect();
        Some(names.join(", "))
    }

    fn matching(&self, user: &str, peer: Peer) -> Option<&KnownAccount> {
        let mut accounts = self.ordered.iter();
        accounts.find(|account| account.name.admits(user, peer))
    }
}

impl AccountSource for AccountList {
    fn find(&self, user: &str, peer: Peer) -> Option<Account> {
        let account = self.matching(user, peer)?;
        let secret = account.ways.iter().find_map(Way::secret)?;
        Some(Account {
            user: account.name.user.clone(),
            host: account.name.host.clone(),
            credential: Credential::Secret(secret),
            is_locked: account.is_locked,
            requires_tls: account.requires_tls,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "*94BDCEBE19083CE2A1F959FD02F964C7AF4CFC29";

    fn row(values: &[&str]) -> Vec<Option<Vec<u8>>> {
        let value = |text: &&str| Some(text.as_bytes().to_vec());
        values.iter().map(value).collect()
    }

    fn from(address: &str) -> Peer {
        Peer::Tcp(address.parse().unwrap())
    }

    fn found(list: &AccountList, user: &str, peer: Peer) -> Option<(String, String)> {
        list.find(user, peer).map(|it| (it.user, it.host))
    }

    #[test]
    fn rows_of_mariadb_are_accounts() {
        let native = format!(
            r#"{{"access":1,"plugin":"mysql_native_password","authentication_string":"{HASH}"}}"#
        );
        let either = format!(
            r#"{{"plugin":"mysql_native_password","authentication_string":"{HASH}",
                 "auth_or":[{{"plugin":"unix_socket","authentication_string":""}},{{}}]}}"#
        );
        let rows = [
            row(&["%", "app", &native]),
            row(&["LocalHost", "root", &either]),
            row(&["", "writers", r#"{"is_role":true}"#]),
            row(&["%", "locked", r#"{"account_locked":true,"ssl_type":1}"#]),
            row(&["%", "socket", r#"{"plugin":"unix_socket"}"#]),
            row(&["%", "damaged", "{"]),
            row(&["%"]),
        ];
        let list = AccountList::decode(AccountTable::GlobalPriv, &rows);
        assert_eq!((list.len(), list.damaged()), (4, 2));
        let far = from("10.0.0.1");
        let app = list.find("app", far).unwrap();
        let secret = StoredSecret::parse(Method::NativePassword, HASH.as_bytes()).unwrap();
        assert!(matches!(app.credential, Credential::Secret(it) if it == secret));
        assert_eq!(found(&list, "root", far), None);
        let root = Some(("root".to_owned(), "localhost".to_owned()));
        assert_eq!(found(&list, "root", from("127.0.0.1")), root);
        let locked = list.find("locked", far).unwrap();
        assert!(locked.is_locked && locked.requires_tls);
        assert_eq!(found(&list, "writers", far), None);
        assert_eq!(found(&list, "socket", far), None);
        let plugins = list.foreign_plugins("socket", far);
        assert_eq!(plugins.as_deref(), Some("unix_socket"));
        assert_eq!(list.foreign_plugins("app", far), None);
        assert_eq!(list.foreign_plugins("nobody", far), None);
    }

    #[test]
    fn rows_of_mysql_are_accounts() {
        let sha2 = "caching_sha2_password";
        let rows = [
            row(&["%", "app", sha2, "", "N", ""]),
            row(&["%", "off", sha2, "", "Y", "ANY"]),
            row(&["%", "app2", "mysql_native_password", HASH, "N", ""]),
            row(&["%", "app3", "mysql_native_password", "*no hash", "N", ""]),
        ];
        let list = AccountList::decode(AccountTable::User, &rows);
        assert_eq!((list.len(), list.damaged()), (4, 0));
        let peer = from("10.0.0.1");
        let app = list.find("app", peer).unwrap();
        assert!(!app.is_locked && !app.requires_tls);
        let off = list.find("off", peer).unwrap();
        assert!(off.is_locked && off.requires_tls);
        assert!(list.find("app2", peer).is_some());
        // What is stored cannot be read, so nothing can prove it.
        assert!(list.find("app3", peer).is_none());
    }
}
