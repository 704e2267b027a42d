//! Accounts: who may log in, from which host and how, and what they may do. [`AccountName`] says
//! which of them a client gets.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use auth::{AccountName, Peer};
use syntax::ast::RoutineKind;
use syntax::print::{quoted_name, quoted_string};

use crate::privilege::PrivilegeSet;
use crate::routine_key::RoutineKey;

/// How a client proves that it may use an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// The authentication plugin's name.
    pub plugin: String,
    /// The stored hash in that plugin's form; empty: an empty password.
    pub hash: String,
}

/// Everything about an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// User and host.
    pub name: AccountName,
    /// How it logs in.
    pub credential: Credential,
    /// `ACCOUNT LOCK`.
    pub locked: bool,
    /// `REQUIRE SSL`.
    pub requires_tls: bool,
    /// What it may do.
    pub grants: Grants,
}

/// What an account may do, by level.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grants {
    /// On `*.*`.
    pub global: Grant,
    /// On `database.*`, by the pattern as granted (`%` and `_` are wildcards, `\` escapes them).
    pub databases: BTreeMap<String, Grant>,
    /// On `database.table`.
    pub tables: BTreeMap<(String, String), Grant>,
    /// On `PROCEDURE database.name` and `FUNCTION database.name`.
    pub routines: BTreeMap<RoutineKey, Grant>,
}

/// Privileges at one level, and whether they may be granted to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Grant {
    /// The privileges.
    pub privileges: PrivilegeSet,
    /// `WITH GRANT OPTION`.
    pub grantable: bool,
}

impl Grants {
    /// Removes levels that allow nothing.
    pub fn prune(&mut self) {
        let means_something = |grant: &Grant| !grant.privileges.is_empty() || grant.grantable;
        self.databases.retain(|_, grant| means_something(grant));
        self.tables.retain(|_, grant| means_something(grant));
        self.routines.retain(|_, grant| means_something(grant));
    }
}

impl Account {
    /// The statements that `SHOW GRANTS` returns.
    pub fn show_grants(&self) -> Vec<String> {
        let to = format!(
            "{}@{}",
            quoted_name(&self.name.user),
            quoted_name(&self.name.host)
        );
        let mut first = format!(
            "GRANT {} ON *.* TO {to}",
            self.grants.global.privileges.text(PrivilegeSet::ALL_GLOBAL)
        );
        let Credential { plugin, hash } = &self.credential;
        if plugin == "mysql_native_password" {
            if !hash.is_empty() {
                let _ = write!(first, " IDENTIFIED BY PASSWORD '{hash}'");
            }
        } else {
            let _ = write!(first, " IDENTIFIED VIA {plugin}");
            if !hash.is_empty() {
                let _ = write!(first, " USING {}", quoted_string(hash));
            }
        }
        if self.requires_tls {
            first.push_str(" REQUIRE SSL");
        }
        push_grant_option(&mut first, self.grants.global);
        let mut statements = vec![first];
        for (database, grant) in &self.grants.databases {
            let what = grant.privileges.text(PrivilegeSet::ALL_DATABASE);
            let mut statement = format!("GRANT {what} ON {}.* TO {to}", quoted_name(database));
            push_grant_option(&mut statement, *grant);
            statements.push(statement);
        }
        for ((database, table), grant) in &self.grants.tables {
            let what = grant.privileges.text(PrivilegeSet::ALL_TABLE);
            let mut statement = format!(
                "GRANT {what} ON {}.{} TO {to}",
                quoted_name(database),
                quoted_name(table)
            );
            push_grant_option(&mut statement, *grant);
            statements.push(statement);
        }
        for kind in [RoutineKind::Procedure, RoutineKind::Function] {
            let of_kind = self.grants.routines.iter();
            for (key, grant) in of_kind.filter(|(key, _)| key.kind() == kind) {
                let mut statement = format!(
                    "GRANT {} ON {} {}.{} TO {to}",
                    grant.privileges.names(),
                    kind.text(),
                    quoted_name(key.database()),
                    quoted_name(key.name())
                );
                push_grant_option(&mut statement, *grant);
                statements.push(statement);
            }
        }
        statements
    }
}

fn push_grant_option(statement: &mut String, grant: Grant) {
    if grant.grantable {
        statement.push_str(" WITH GRANT OPTION");
    }
}

/// All accounts, most specific first. Immutable: a change publishes a new value, which shares the
/// unchanged accounts. So an account can be recognized by its address.
#[derive(Debug, Clone, Default)]
pub struct Accounts {
    /// In the order of matching.
    ordered: Vec<Arc<Account>>,
}

impl Accounts {
    /// Puts accounts in the order of matching.
    pub fn new(accounts: Vec<Account>) -> Self {
        Self::ordered(accounts.into_iter().map(Arc::new).collect())
    }

    /// The accounts after changes: the new account of each name, or `None` if it is removed.
    pub fn after(&self, changes: impl IntoIterator<Item = (AccountName, Option<Account>)>) -> Self {
        let changed: BTreeMap<_, _> = changes.into_iter().collect();
        let mut accounts = self.ordered.clone();
        accounts.retain(|known| !changed.contains_key(&known.name));
        accounts.extend(changed.into_values().flatten().map(Arc::new));
        Self::ordered(accounts)
    }

    /// These accounts, which were read again; unchanged ones are shared with `before`.
    pub fn sharing(mut self, before: &Self) -> Self {
        let known: BTreeMap<_, _> = before.iter().map(|it| (&it.name, it)).collect();
        for account in &mut self.ordered {
            if let Some(&known) = known.get(&account.name)
                && **known == **account
            {
                *account = Arc::clone(known);
            }
        }
        self
    }

    fn ordered(mut accounts: Vec<Arc<Account>>) -> Self {
        accounts.sort_by_cached_key(|account| account.name.match_order());
        Self { ordered: accounts }
    }

    /// The account for a client with this user name from there, if any.
    pub fn find(&self, user: &str, peer: Peer) -> Option<&Arc<Account>> {
        self.ordered
            .iter()
            .find(|account| account.name.admits(user, peer))
    }

    /// The account of exactly this name.
    pub fn by_name(&self, name: &AccountName) -> Option<&Arc<Account>> {
        self.ordered.iter().find(|account| account.name == *name)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Account>> {
        self.ordered.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privilege::Privilege;

    fn account(user: &str, host: &str) -> Account {
        Account {
            name: AccountName {
                user: user.to_owned(),
                host: host.to_owned(),
            },
            credential: Credential {
                plugin: "mysql_native_password".to_owned(),
                hash: String::new(),
            },
            locked: false,
            requires_tls: false,
            grants: Grants::default(),
        }
    }

    #[test]
    fn what_a_change_leaves_is_shared_with_what_was() {
        let before = Accounts::new(vec![account("a", "%"), account("b", "%")]);
        let name = |user| account(user, "%").name;
        let of = |accounts: &Accounts, user| accounts.by_name(&name(user)).cloned();
        let locked = Account {
            locked: true,
            ..account("b", "%")
        };
        let added = account("c", "h");
        let after = before.after([
            (name("b"), Some(locked.clone())),
            (added.name.clone(), Some(added)),
        ]);
        let same = |left: &Accounts, right: &Accounts, user| {
            Arc::ptr_eq(&of(left, user).unwrap(), &of(right, user).unwrap())
        };
        assert!(same(&before, &after, "a") && !same(&before, &after, "b"));
        assert_eq!(of(&after, "b").as_deref(), Some(&locked));
        assert_eq!(after.iter().next().unwrap().name.user, "c", "in order");
        let gone = after.after([(name("a"), None)]);
        assert_eq!((of(&gone, "a"), gone.iter().count()), (None, 2));
        let read = Accounts::new(vec![account("b", "%"), account("a", "%")]);
        let read = read.sharing(&after);
        assert!(same(&read, &after, "a") && !same(&read, &after, "b"));
    }

    #[test]
    fn levels_that_allow_nothing_are_forgotten() {
        let mut grants = Grants::default();
        let select = Grant {
            privileges: PrivilegeSet::of(&[Privilege::Select]),
            grantable: false,
        };
        grants.databases.insert("shop".to_owned(), select);
        grants.databases.insert("none".to_owned(), Grant::default());
        grants.prune();
        assert_eq!(grants.databases.len(), 1);
    }

    #[test]
    fn show_grants_writes_statements_that_could_be_run() {
        let mut root = account("root", "localhost");
        root.grants.global = Grant {
            privileges: PrivilegeSet::ALL_GLOBAL,
            grantable: true,
        };
        assert_eq!(
            root.show_grants(),
            ["GRANT ALL PRIVILEGES ON *.* TO `root`@`localhost` WITH GRANT OPTION"]
        );
        let mut app = account("app", "%");
        app.credential.hash = "*94BDCEBE19083CE2A1F959FD02F964C7AF4CFC29".to_owned();
        let select = PrivilegeSet::of(&[Privilege::Select]);
        app.grants.databases.insert(
            "shop".to_owned(),
            Grant {
                privileges: select,
                grantable: false,
            },
        );
        assert_eq!(
            app.show_grants(),
            [
                "GRANT USAGE ON *.* TO `app`@`%` IDENTIFIED BY PASSWORD \
                 '*94BDCEBE19083CE2A1F959FD02F964C7AF4CFC29'",
                "GRANT SELECT ON `shop`.* TO `app`@`%`",
            ]
        );
        // The salt of this method is any ASCII text.
        let mut salted = account("o`app", "%");
        salted.credential.plugin = "caching_sha2_password".to_owned();
        salted.credential.hash = "$A$005$'\\\n".to_owned();
        let shown = r"GRANT USAGE ON *.* TO `o``app`@`%` IDENTIFIED VIA caching_sha2_password";
        assert_eq!(
            salted.show_grants(),
            [format!(r"{shown} USING '$A$005$''\\\n'")]
        );
    }
}
