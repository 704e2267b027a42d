//! What a session may do, by the grants of all accounts.
//!
//! A session has the global privileges of its own account only. At each lower place (a database, a
//! table, a stored program) one grant counts, as in MariaDB. It is that of the most specific
//! account with the session's user name that matches the session's host and has a grant there. So a
//! grant to `a@'%'` serves a session of `a@localhost`, unless `a@localhost` has a grant at the same
//! place; the two never add up. Grants on databases to the anonymous user serve all users.
//!
//! Accounts are compared by address: a change of an account publishes a new one. So two equal
//! [`SessionPrivileges`] allow the same, and a plan that was checked for one need not be checked
//! for the other.

use std::cmp::Reverse;
use std::sync::Arc;

use auth::Peer;
use auth::pattern::{fixed_length, is_like};

use crate::account::{Account, Accounts, Grant, Grants};
use crate::privilege::{Privilege, PrivilegeSet};
use crate::routine_key::RoutineKey;

/// The host of a session that is matched with the host patterns of accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComesFrom {
    /// The client's address.
    Client(Peer),
    /// The host in its account's name: while a stored program runs as its definer.
    Account,
}

/// The privileges of a session.
#[derive(Debug, Clone)]
pub struct SessionPrivileges {
    /// The account that the session acts as.
    account: Arc<Account>,
    /// The accounts whose grants count below the global level, most specific host first. `None`:
    /// only that account, as in most sessions.
    serving: Option<Arc<[Arc<Account>]>>,
}

impl SessionPrivileges {
    /// The privileges of one account alone.
    pub fn of_account(account: Arc<Account>) -> Self {
        Self {
            account,
            serving: None,
        }
    }

    /// The privileges of a session of this account. An account that is no longer among `accounts`
    /// stands alone.
    pub fn new(account: &Arc<Account>, accounts: &Accounts, from: ComesFrom) -> Self {
        let own = &account.name;
        let matches = |pattern: &str| match from {
            ComesFrom::Client(peer) => peer.matches(pattern),
            ComesFrom::Account => pattern.is_empty() || is_like(pattern, &own.host),
        };
        let serves = |other: &&Arc<Account>| {
            let name = &other.name;
            let is_like_named = name.user == own.user || name.user.is_empty();
            *name == *own || is_like_named && other.grants.has_places() && matches(&name.host)
        };
        let serving: Vec<_> = accounts.iter().filter(serves).cloned().collect();
        let is_known = serving.iter().any(|it| Arc::ptr_eq(it, account));
        let has_others = is_known && 1 < serving.len();
        Self {
            account: Arc::clone(account),
            serving: has_others.then(|| serving.into()),
        }
    }

    /// The account that the session acts as.
    pub fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// True if both are derived from the same accounts.
    pub fn are_same(&self, other: &Self) -> bool {
        let (own, others) = (self.serving(), other.serving());
        let mut pairs = own.iter().zip(others);
        Arc::ptr_eq(&self.account, &other.account)
            && own.len() == others.len()
            && pairs.all(|(one, other)| Arc::ptr_eq(one, other))
    }

    /// The privileges on everything.
    pub fn global(&self) -> PrivilegeSet {
        self.account.grants.global.privileges
    }

    /// The privileges on a whole database: the global ones, and those of the most specific pattern
    /// that matches its name. Other matching patterns do not count, as in MariaDB. So an account
    /// can have fewer privileges in one database than in others with similar names.
    pub fn in_database(&self, database: &str) -> PrivilegeSet {
        let granted = self.database_grant(database).unwrap_or_default();
        self.global() & PrivilegeSet::ALL_DATABASE | granted.privileges
    }

    /// The privileges on a table. Other privileges of the database level (LOCK TABLES, EXECUTE) do
    /// not reveal a table.
    pub fn on_table(&self, database: &str, table: &str) -> PrivilegeSet {
        let granted = self.table_grant(database, table).unwrap_or_default();
        self.in_database(database) & PrivilegeSet::ALL_TABLE | granted.privileges
    }

    /// The privileges on a stored program.
    pub fn on_routine(&self, key: &RoutineKey) -> PrivilegeSet {
        let granted = self.routine_grant(key).unwrap_or_default();
        self.in_database(key.database()) | granted.privileges
    }

    /// True if the session may see a table's columns and indexes, whether it exists or not: by
    /// SELECT in its database, or by any privilege on the table itself.
    pub fn describes_table(&self, database: &str, table: &str) -> bool {
        self.in_database(database).has(Privilege::Select)
            || self.table_grant(database, table).is_some()
    }

    /// True if the session may know that the database exists.
    pub fn can_see_database(&self, database: &str) -> bool {
        self.global().has(Privilege::ShowDatabases) || self.can_use_database(database)
    }

    /// True if the session has a privilege in the database.
    pub fn can_use_database(&self, database: &str) -> bool {
        let has_within = |account: &Account| {
            let grants = &account.grants;
            grants.tables.keys().any(|(of, _)| of == database)
                || grants.routines.keys().any(|of| of.database() == database)
        };
        !self.in_database(database).is_empty() || self.of_this_user().any(has_within)
    }

    /// The grant that counts in a database.
    pub fn database_grant(&self, database: &str) -> Option<Grant> {
        let matching = self.serving().iter().flat_map(|account| {
            let databases = account.grants.databases.iter();
            let matching = databases.filter(|(pattern, _)| is_like(pattern, database));
            matching.map(|(pattern, grant)| (&account.name, pattern, *grant))
        });
        let first = matching.min_by_key(|(name, pattern, _)| {
            let pattern_order = Reverse(fixed_length(pattern));
            (name.host_order(), pattern_order, name.user.is_empty())
        });
        first.map(|(.., grant)| grant)
    }

    /// The grant that decides whether grants on `pattern` may be passed on. If it has wildcards,
    /// only a grant of exactly that pattern counts.
    pub fn database_pattern_grant(&self, pattern: &str) -> Option<Grant> {
        if fixed_length(pattern) == usize::MAX && !pattern.contains('\\') {
            return self.database_grant(pattern);
        }
        let mut accounts = self.serving().iter();
        accounts.find_map(|account| account.grants.databases.get(pattern).copied())
    }

    /// The grant that counts on a table.
    pub fn table_grant(&self, database: &str, table: &str) -> Option<Grant> {
        let key = (database.to_owned(), table.to_owned());
        let mut accounts = self.of_this_user();
        accounts.find_map(|account| account.grants.tables.get(&key).copied())
    }

    /// The grant that counts for a stored program.
    pub fn routine_grant(&self, key: &RoutineKey) -> Option<Grant> {
        let mut accounts = self.of_this_user();
        accounts.find_map(|account| account.grants.routines.get(key).copied())
    }

    fn serving(&self) -> &[Arc<Account>] {
        match &self.serving {
            Some(serving) => serving,
            None => std::slice::from_ref(&self.account),
        }
    }

    /// Grants on tables and stored programs serve only their own user.
    fn of_this_user(&self) -> impl Iterator<Item = &Account> {
        let own = &self.account.name.user;
        let accounts = self.serving().iter().map(|account| &**account);
        accounts.filter(move |account| account.name.user == *own)
    }
}

impl Grants {
    /// True if something is granted below the global level.
    fn has_places(&self) -> bool {
        !self.databases.is_empty() || !self.tables.is_empty() || !self.routines.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use syntax::ast::RoutineKind;

    use super::*;
    use auth::AccountName;

    use crate::account::Credential;

    fn grant(privilege: Privilege) -> Grant {
        Grant {
            privileges: PrivilegeSet::of(&[privilege]),
            grantable: false,
        }
    }

    fn account(user: &str, host: &str, databases: &[(&str, Privilege)]) -> Account {
        let mut grants = Grants::default();
        for (pattern, privilege) in databases {
            let grant = grant(*privilege);
            grants.databases.insert((*pattern).to_owned(), grant);
        }
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
            grants,
        }
    }

    fn privileges_of(
        accounts: &Accounts,
        user: &str,
        host: &str,
        from: ComesFrom,
    ) -> SessionPrivileges {
        let name = AccountName {
            user: user.to_owned(),
            host: host.to_owned(),
        };
        SessionPrivileges::new(accounts.by_name(&name).unwrap(), accounts, from)
    }

    const SOCKET: ComesFrom = ComesFrom::Client(Peer::Unix);

    #[test]
    fn of_patterns_of_databases_the_most_specific_counts() {
        let databases = [
            ("%", Privilege::Select),
            ("app%", Privilege::Insert),
            ("app_1", Privilege::Update),
            ("app_log", Privilege::Delete),
            (r"app\_log", Privilege::Drop),
        ];
        let mut own = account("a", "%", &databases);
        own.grants.global.privileges =
            PrivilegeSet::of(&[Privilege::Create, Privilege::CreateUser]);
        let privileges = SessionPrivileges::of_account(Arc::new(own));
        for (database, privilege) in [
            ("other", Privilege::Select),
            ("apple", Privilege::Insert),
            ("app_log", Privilege::Drop),
        ] {
            let expected = PrivilegeSet::of(&[Privilege::Create, privilege]);
            assert_eq!(privileges.in_database(database), expected, "{database}");
        }
    }

    #[test]
    fn grants_add_up_from_level_to_level() {
        let mut own = account("a", "%", &[("shop%", Privilege::Select)]);
        let orders = ("shop1".to_owned(), "orders".to_owned());
        own.grants.tables.insert(orders, grant(Privilege::Insert));
        let key = |name| RoutineKey::new(RoutineKind::Procedure, "third", name);
        let routines = &mut own.grants.routines;
        routines.insert(key("add"), grant(Privilege::Execute));
        let privileges = SessionPrivileges::of_account(Arc::new(own));
        assert!(privileges.in_database("shop1").has(Privilege::Select));
        assert!(!privileges.in_database("other").has(Privilege::Select));
        let on_orders = privileges.on_table("shop1", "orders");
        assert!(on_orders.has(Privilege::Insert) && on_orders.has(Privilege::Select));
        assert!(!privileges.on_table("shop1", "items").has(Privilege::Insert));
        assert!(privileges.can_see_database("shop9") && !privileges.can_see_database("other"));
        let on_routine = |name| privileges.on_routine(&key(name)).has(Privilege::Execute);
        assert!(on_routine("ADD") && !on_routine("sub"));
        assert!(privileges.can_see_database("third"));
    }

    #[test]
    fn of_accounts_of_one_user_the_most_specific_host_counts() {
        let own = account("a", "localhost", &[("%", Privilege::Insert)]);
        let mut any = account("a", "%", &[("shop", Privilege::Select)]);
        let orders = ("third".to_owned(), "orders".to_owned());
        any.grants.tables.insert(orders, grant(Privilege::Delete));
        any.grants.global = grant(Privilege::Process);
        let elsewhere = account("a", "10.%", &[("second", Privilege::Update)]);
        let other = account("b", "%", &[("second", Privilege::Update)]);
        let accounts = Accounts::new(vec![own, any, elsewhere, other]);
        let privileges = privileges_of(&accounts, "a", "localhost", SOCKET);
        let insert = PrivilegeSet::of(&[Privilege::Insert]);
        assert_eq!(privileges.in_database("shop"), insert);
        assert_eq!(privileges.in_database("second"), insert);
        let on_orders = privileges.on_table("third", "orders");
        assert_eq!(
            on_orders,
            PrivilegeSet::of(&[Privilege::Insert, Privilege::Delete])
        );
        assert!(privileges.global().is_empty());
        // In the other direction nothing is served.
        let from = ComesFrom::Client(Peer::Tcp("192.168.1.1".parse().unwrap()));
        let privileges = privileges_of(&accounts, "a", "%", from);
        let select = PrivilegeSet::of(&[Privilege::Select]);
        assert_eq!(privileges.in_database("shop"), select);
        assert!(privileges.in_database("second").is_empty());
    }

    #[test]
    fn the_anonymous_user_serves_all_in_databases_alone() {
        let own = account("a", "localhost", &[]);
        let mut anyone = account("", "%", &[("shop", Privilege::Select)]);
        let orders = ("third".to_owned(), "orders".to_owned());
        anyone
            .grants
            .tables
            .insert(orders, grant(Privilege::Delete));
        let accounts = Accounts::new(vec![own, anyone]);
        let privileges = privileges_of(&accounts, "a", "localhost", SOCKET);
        assert!(privileges.in_database("shop").has(Privilege::Select));
        assert!(privileges.on_table("third", "orders").is_empty());
        assert!(!privileges.can_use_database("third"));
    }

    #[test]
    fn a_definer_is_compared_by_the_host_that_is_written() {
        let own = account("a", "10.1.%", &[]);
        let wider = account("a", "10.%", &[("shop", Privilege::Select)]);
        let accounts = Accounts::new(vec![own, wider]);
        let privileges = privileges_of(&accounts, "a", "10.1.%", ComesFrom::Account);
        assert!(privileges.in_database("shop").has(Privilege::Select));
        let privileges = privileges_of(&accounts, "a", "10.1.%", SOCKET);
        assert!(privileges.in_database("shop").is_empty());
    }

    #[test]
    fn a_change_of_an_account_that_serves_changes_the_privileges() {
        let own = account("a", "localhost", &[]);
        let any = account("a", "%", &[("shop", Privilege::Select)]);
        let before = Accounts::new(vec![own, any.clone(), account("b", "%", &[])]);
        let privileges = |accounts| privileges_of(accounts, "a", "localhost", SOCKET);
        let unrelated = account("b", "%", &[("shop", Privilege::Select)]);
        let after = before.after([(unrelated.name.clone(), Some(unrelated))]);
        assert!(privileges(&before).are_same(&privileges(&after)));
        let mut less = any;
        less.grants.databases.clear();
        let after = before.after([(less.name.clone(), Some(less))]);
        assert!(!privileges(&before).are_same(&privileges(&after)));
        assert!(privileges(&after).in_database("shop").is_empty());
    }

    #[test]
    fn a_right_is_given_on_by_its_pattern() {
        let own = account("a", "%", &[("sh%", Privilege::Select)]);
        let privileges = SessionPrivileges::of_account(Arc::new(own));
        assert_eq!(
            privileges.database_pattern_grant("shop"),
            Some(grant(Privilege::Select))
        );
        assert!(privileges.database_pattern_grant("sh%").is_some());
        for wider in ["s%", "sh_", "%", r"sh\%"] {
            assert_eq!(privileges.database_pattern_grant(wider), None, "{wider}");
        }
    }

    #[test]
    fn a_table_is_described_by_select_or_a_grant_of_its_own() {
        let mut own = account("a", "%", &[("shop", Privilege::Insert)]);
        let orders = ("shop".to_owned(), "orders".to_owned());
        own.grants.tables.insert(orders, grant(Privilege::Delete));
        let privileges = SessionPrivileges::of_account(Arc::new(own));
        assert!(privileges.describes_table("shop", "orders"));
        assert!(!privileges.describes_table("shop", "items"));
        let reader = account("a", "%", &[("shop", Privilege::Select)]);
        let privileges = SessionPrivileges::of_account(Arc::new(reader));
        assert!(privileges.describes_table("shop", "items"));
    }
}
