//! [`AccountName`], and the order in which accounts are tried.
//!
//! An account is a user name and a host pattern. A client gets the most specific account that
//! matches, in MariaDB's order: hosts without wildcards before patterns, longer fixed prefixes
//! before shorter, named users before the anonymous one.

use std::cmp::Reverse;

use crate::pattern::fixed_length;
use crate::peer::Peer;

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
    pub fn host_order(&self) -> Reverse<usize> {
        let host = match self.host.as_str() {
            "" => "%",
            host => host,
        };
        Reverse(fixed_length(host))
    }

    /// The order in which accounts are tried.
    pub fn match_order(&self) -> impl Ord + use<> {
        (self.host_order(), self.user.is_empty(), self.clone())
    }

    /// Whether it lets in a client of this user name from there.
    pub fn admits(&self, user: &str, peer: Peer) -> bool {
        (self.user.is_empty() || self.user == user) && peer.matches(&self.host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(user: &str, host: &str) -> AccountName {
        AccountName {
            user: user.to_owned(),
            host: host.to_owned(),
        }
    }

    /// The host of the account that a client gets.
    fn found(accounts: &[(&str, &str)], user: &str, peer: Peer) -> Option<(String, String)> {
        let mut names: Vec<_> = accounts
            .iter()
            .map(|(user, host)| name(user, host))
            .collect();
        names.sort_by_cached_key(AccountName::match_order);
        let found = names.into_iter().find(|it| it.admits(user, peer));
        found.map(|it| (it.user, it.host))
    }

    fn from(address: &str) -> Peer {
        Peer::Tcp(address.parse().unwrap())
    }

    #[test]
    fn the_most_specific_account_is_found() {
        let accounts = [
            ("", "%"),
            ("app", "%"),
            ("app", "10.1.%"),
            ("app", "10.1.2.3"),
            ("", "localhost"),
            ("root", "localhost"),
        ];
        for (user, peer, host) in [
            ("app", from("10.1.2.3"), "10.1.2.3"),
            ("app", from("10.1.9.9"), "10.1.%"),
            ("app", from("10.2.0.1"), "%"),
            ("root", from("127.0.0.1"), "localhost"),
            ("root", from("::ffff:127.0.0.1"), "localhost"),
        ] {
            let expected = Some((user.to_owned(), host.to_owned()));
            assert_eq!(found(&accounts, user, peer), expected, "{user} {host}");
        }
        let anonymous = Some((String::new(), "localhost".to_owned()));
        assert_eq!(found(&accounts, "app", Peer::Unix), anonymous);
        assert_eq!(found(&accounts[3..4], "app", Peer::Unix), None);
    }

    #[test]
    fn hosts_without_wildcards_come_first_whatever_their_length() {
        let accounts = [("", "localhost"), ("a", "::1"), ("a", "10.%"), ("a", "")];
        let host = |address| found(&accounts, "a", from(address)).unwrap().1;
        assert_eq!(host("::1"), "::1");
        assert_eq!(host("127.0.0.1"), "localhost");
        assert_eq!(host("10.1.2.3"), "10.%");
        assert_eq!(host("11.1.2.3"), "");
    }
}
