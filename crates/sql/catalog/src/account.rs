//! Accounts: who may log in, from which host and how, and what they may do.
//!
//! An account is a user name and a host pattern. A client gets the most specific account that
//! matches, in MariaDB's order: hosts without wildcards before patterns, longer fixed prefixes
//! before shorter, named users before the anonymous one.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::IpAddr;
use std::sync::Arc;

use syntax::ast::RoutineKind;
use syntax::print::{quoted_name, quoted_string};

use crate::privilege::PrivilegeSet;
use crate::routine_key::RoutineKey;

/// The longest user name, in characters (MariaDB's limit).
pub const USER_NAME_CHARS_MAX: usize = 128;

/// The longest host pattern, in bytes (MariaDB's limit).
pub const HOST_BYTES_MAX: usize = 255;

/// `'user'@'host'`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountName {
    /// Compared byte by byte; empty is the anonymous user.
    pub user: String,
    /// A name, an address, an address with netmask, or a pattern with `%` and `_`; in lower case.
    pub host: String,
}

impl AccountName {
    /// The order in which hosts are tried: most specific first. An empty host is any host.
    pub(crate) fn host_order(&self) -> Reverse<usize> {
        let host = match self.host.as_str() {
            "" => "%",
            host => host,
        };
        Reverse(fixed_length(host))
    }
}

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

/// The origin of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The unix socket; matches the host `localhost`.
    Socket,
    /// A network address. Names are never looked up, so host names other than `localhost` match no
    /// client (as with MariaDB's `skip_name_resolve`). Loopback counts as `localhost` too.
    Address(IpAddr),
}

impl Origin {
    /// As `CURRENT_USER()` and the error texts show it.
    pub fn text(self) -> String {
        match self {
            Self::Socket => "localhost".to_owned(),
            Self::Address(address) if address.to_canonical().is_loopback() => {
                "localhost".to_owned()
            }
            Self::Address(address) => address.to_canonical().to_string(),
        }
    }

    /// True if an account with this host pattern admits clients from here.
    pub fn matches(self, host: &str) -> bool {
        if host.is_empty() || host == "%" {
            return true;
        }
        let Self::Address(address) = self else {
            return is_like(host, "localhost");
        };
        let address = address.to_canonical();
        if address.is_loopback() && is_like(host, "localhost") {
            return true;
        }
        is_in_network(host, address) || is_like(host, &address.to_string())
    }
}

/// True if `host` is `address/netmask`, both IPv4, and contains the address.
fn is_in_network(host: &str, address: IpAddr) -> bool {
    let Some((network, mask)) = host.split_once('/') else {
        return false;
    };
    let (Ok(IpAddr::V4(network)), Ok(IpAddr::V4(mask)), IpAddr::V4(address)) =
        (network.parse(), mask.parse(), address)
    else {
        return false;
    };
    address.to_bits() & mask.to_bits() == network.to_bits()
}

/// How specific a pattern for databases or hosts is: the bytes before its first wildcard. A pattern
/// without one is the most specific, whatever its length.
pub(crate) fn fixed_length(pattern: &str) -> usize {
    let mut bytes = pattern.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'%' | b'_' => return at,
            b'\\' => drop(bytes.next()),
            _ => (),
        }
    }
    usize::MAX
}

/// SQL's LIKE on bytes, with `\` as escape. It backtracks only to the last `%`, which suffices.
pub(crate) fn is_like(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    let mut resume: Option<(usize, usize)> = None;
    while t < text.len() {
        let matched = match pattern.get(p) {
            Some(b'%') => {
                resume = Some((p + 1, t));
                p += 1;
                continue;
            }
            Some(b'_') => Some(p + 1),
            Some(b'\\') if pattern.get(p + 1) == text.get(t) => Some(p + 2),
            Some(byte) if byte == &text[t] => Some(p + 1),
            _ => None,
        };
        match (matched, resume) {
            (Some(next), _) => (p, t) = (next, t + 1),
            (None, Some((after_percent, from))) => {
                resume = Some((after_percent, from + 1));
                (p, t) = (after_percent, from + 1);
            }
            (None, None) => return false,
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'%')
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
        accounts.sort_by_cached_key(|account| {
            (
                account.name.host_order(),
                account.name.user.is_empty(),
                account.name.clone(),
            )
        });
        Self { ordered: accounts }
    }

    /// The account for a client with this user name and origin, if any.
    pub fn find(&self, user: &str, origin: Origin) -> Option<&Arc<Account>> {
        self.ordered.iter().find(|account| {
            let name = &account.name;
            (name.user.is_empty() || name.user == user) && origin.matches(&name.host)
        })
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

    fn from(address: &str) -> Origin {
        Origin::Address(address.parse().unwrap())
    }

    #[test]
    fn patterns_match_as_like_does() {
        for (pattern, text, expected) in [
            ("%", "", true),
            ("a%c", "abbbc", true),
            ("a%c", "abbbd", false),
            ("a_c", "abc", true),
            ("a_c", "ac", false),
            (r"a\_c", "abc", false),
            (r"a\_c", "a_c", true),
            ("10.%.1", "10.2.3.1", true),
            ("%a%b%", "xxaxxbxx", true),
            ("", "a", false),
        ] {
            assert_eq!(is_like(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn the_most_specific_account_is_found() {
        let accounts = Accounts::new(vec![
            account("", "%"),
            account("app", "%"),
            account("app", "10.1.%"),
            account("app", "10.1.2.3"),
            account("", "localhost"),
            account("root", "localhost"),
        ]);
        let host = |user, origin| accounts.find(user, origin).map(|found| &*found.name.host);
        assert_eq!(host("app", from("10.1.2.3")), Some("10.1.2.3"));
        assert_eq!(host("app", from("10.1.9.9")), Some("10.1.%"));
        assert_eq!(host("app", from("10.2.0.1")), Some("%"));
        assert_eq!(host("root", from("127.0.0.1")), Some("localhost"));
        assert_eq!(host("root", from("::ffff:127.0.0.1")), Some("localhost"));
        let other = accounts.find("app", Origin::Socket).unwrap();
        assert_eq!((&*other.name.user, &*other.name.host), ("", "localhost"));
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
    fn hosts_without_wildcards_come_first_whatever_their_length() {
        let accounts = [
            ("", "localhost"),
            ("a", "::1"),
            ("a", "10.%"),
            ("a", r"10.0\_%"),
        ];
        let accounts = accounts.map(|(user, host)| account(user, host));
        let accounts = Accounts::new(accounts.to_vec());
        let found = |address| accounts.find("a", from(address)).map(|it| it.name.clone());
        assert_eq!(found("::1").unwrap().user, "a");
        assert_eq!(found("127.0.0.1").unwrap().user, "");
        assert_eq!(found("10.1.2.3").unwrap().host, "10.%");
        // An escaped wildcard is no wildcard.
        let escaped = accounts.iter().nth(2).unwrap();
        assert_eq!(escaped.name.host, r"10.0\_%");
    }

    #[test]
    fn a_network_is_matched_by_its_mask() {
        let accounts = Accounts::new(vec![account("a", "192.168.4.0/255.255.252.0")]);
        assert!(accounts.find("a", from("192.168.7.9")).is_some());
        assert!(accounts.find("a", from("192.168.8.1")).is_none());
        assert!(accounts.find("a", from("::1")).is_none());
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
