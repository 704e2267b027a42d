//! Names of servers and of what a connection is logged in as, cheap to compare and to hash.

use std::hash::Hash;
use std::net::IpAddr;

use foldhash::fast::FixedState;
use sync::Mutex;

/// Maps hashed by small keys of our own making.
pub(crate) type HashMap<K, V> = std::collections::HashMap<K, V, FixedState>;

/// A server of a pool. Given out by [`crate::Pool::add_server`] and never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerId(pub(crate) u32);

impl ServerId {
    /// Its number, for those who keep it in less than a word.
    pub fn number(self) -> u32 {
        self.0
    }

    /// The server of this number, which another one has told.
    pub fn of_number(number: u32) -> ServerId {
        ServerId(number)
    }
}

/// Counts how often a server's connections were declared void. Rises with
/// [`crate::Pool::raise_version`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Version(pub(crate) u32);

/// An account as the servers know it, interned by the caller ([`Interner`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountId(pub u32);

/// A set of capabilities that cannot be changed after login, interned by the caller
/// ([`Interner`]). COM_CHANGE_USER turns a connection to another account of the same class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(pub u32);

/// What a connection is logged in as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Login {
    /// Whose privileges it has.
    pub account: AccountId,
    /// What its packets look like and what its server does for it.
    pub class: ClassId,
    /// The client that the server was told, if it was told one. No command changes it.
    pub client: Option<IpAddr>,
}

/// Connections of one key are interchangeable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Where it goes to.
    pub server: ServerId,
    /// The server's version when the right to connect was given.
    pub version: Version,
    /// What it is logged in as.
    pub login: Login,
}

/// What has to be done to a connection before a session may use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// Nothing.
    Same,
    /// COM_CHANGE_USER.
    Turn,
    /// It cannot be used: another has to be opened in its place.
    Replace,
}

impl Login {
    /// How a connection with this login suits a session that wants `wanted`.
    pub(crate) fn fit(self, wanted: Login) -> Fit {
        if self == wanted {
            Fit::Same
        } else if self.class == wanted.class && self.client == wanted.client {
            Fit::Turn
        } else {
            Fit::Replace
        }
    }
}

/// Gives each distinct value a small number, the first of equal values decides. For accounts and
/// classes: a session asks once, when it logs in.
#[derive(Debug)]
pub struct Interner<T> {
    /// The most values. Constant.
    capacity: u32,
    /// The numbers given so far: 0, 1, 2, ...
    numbers: Mutex<HashMap<T, u32>>,
}

impl<T: Eq + Hash> Interner<T> {
    /// For at most `capacity` values.
    pub fn new(capacity: u32) -> Self {
        Self {
            capacity,
            numbers: Mutex::new(HashMap::default()),
        }
    }

    /// The number of `value`, or `None` if it is new and there is no room.
    pub fn intern(&self, value: T) -> Option<u32> {
        let mut numbers = self.numbers.lock();
        if let Some(known) = numbers.get(&value) {
            return Some(*known);
        }
        let next = u32::try_from(numbers.len()).ok()?;
        if self.capacity <= next {
            return None;
        }
        numbers.insert(value, next);
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interner_knows_equal_values_and_has_a_limit() {
        let interner = Interner::new(2);
        assert_eq!(interner.intern("a"), Some(0));
        assert_eq!(interner.intern("b"), Some(1));
        assert_eq!(interner.intern("c"), None);
        assert_eq!(interner.intern("a"), Some(0));
    }

    #[test]
    fn a_class_decides_whether_a_connection_can_be_turned() {
        let login = |account, class| Login {
            account: AccountId(account),
            class: ClassId(class),
            client: None,
        };
        assert_eq!(login(1, 1).fit(login(1, 1)), Fit::Same);
        assert_eq!(login(1, 1).fit(login(2, 1)), Fit::Turn);
        assert_eq!(login(1, 1).fit(login(1, 2)), Fit::Replace);
        let of_client = |account, address: &str| Login {
            client: Some(address.parse().unwrap()),
            ..login(account, 1)
        };
        let (one, other) = ("10.0.0.1", "10.0.0.2");
        assert_eq!(of_client(1, one).fit(of_client(1, one)), Fit::Same);
        assert_eq!(of_client(1, one).fit(of_client(2, one)), Fit::Turn);
        assert_eq!(of_client(1, one).fit(of_client(1, other)), Fit::Replace);
        assert_eq!(of_client(1, one).fit(login(1, 1)), Fit::Replace);
        assert_eq!(login(1, 1).fit(of_client(1, one)), Fit::Replace);
    }
}
