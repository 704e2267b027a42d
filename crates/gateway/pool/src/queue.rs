//! The sessions that wait for a connection to one server, first come, first served.
//!
//! (Q1) A waiter gets its number when it comes, and leaves by that number from any place. So one
//! that gives up leaves no hole.
//! (Q2) A session that holds another connection has a place among all, and one among its like.

use std::collections::{BTreeMap, BTreeSet};

use crate::keys::Login;

/// The number of a waiter in its server's queue; it rises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sequence(u64);

/// Whether a session that asks holds a connection already, to any server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It holds none, so no other session waits for it.
    HoldsNone,
    /// It holds one.
    HoldsOne,
}

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Queue<W> {
    next: u64,
    waiters: BTreeMap<Sequence, Place<W>>,
    /// Those that hold a connection.
    holding: BTreeSet<Sequence>,
}

#[derive(Debug)]
struct Place<W> {
    login: Login,
    waiter: W,
}

/// A waiter that left the queue, and what it waits for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Left<W> {
    pub(crate) login: Login,
    pub(crate) waiter: W,
}

impl<W> Default for Queue<W> {
    fn default() -> Self {
        Self {
            next: 0,
            waiters: BTreeMap::new(),
            holding: BTreeSet::new(),
        }
    }
}

impl<W> Queue<W> {
    pub(crate) fn len(&self) -> usize {
        self.waiters.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    /// Whether a session waits that holds another connection.
    pub(crate) fn has_holding(&self) -> bool {
        !self.holding.is_empty()
    }

    /// Adds a waiter behind all others.
    pub(crate) fn join(&mut self, login: Login, standing: Standing, waiter: W) -> Sequence {
        let sequence = Sequence(self.next);
        self.next += 1;
        self.waiters.insert(sequence, Place { login, waiter });
        if standing == Standing::HoldsOne {
            self.holding.insert(sequence);
        }
        sequence
    }

    /// What the first waiter wants.
    pub(crate) fn first_login(&self) -> Option<Login> {
        self.waiters.first_key_value().map(|it| it.1.login)
    }

    /// Takes the first waiter of all.
    pub(crate) fn leave_first(&mut self) -> Option<Left<W>> {
        let sequence = *self.waiters.first_key_value()?.0;
        self.leave(sequence)
    }

    /// Takes the first of those that hold a connection.
    pub(crate) fn leave_first_holding(&mut self) -> Option<Left<W>> {
        let sequence = *self.holding.first()?;
        self.leave(sequence)
    }

    /// Takes out a waiter; `None` if it has left before.
    pub(crate) fn leave(&mut self, sequence: Sequence) -> Option<Left<W>> {
        let Place { login, waiter } = self.waiters.remove(&sequence)?;
        self.holding.remove(&sequence);
        Some(Left { login, waiter })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{AccountId, ClassId};

    #[test]
    fn who_gives_up_leaves_no_hole_in_either_line() {
        let login = Login {
            account: AccountId(0),
            class: ClassId(0),
        };
        let mut queue = Queue::default();
        let standings = [
            Standing::HoldsNone,
            Standing::HoldsOne,
            Standing::HoldsNone,
            Standing::HoldsOne,
        ];
        let places: Vec<_> = (0..)
            .zip(standings)
            .map(|(name, standing)| queue.join(login, standing, name))
            .collect();
        assert_eq!(queue.leave(places[0]).map(|it| it.waiter), Some(0));
        assert_eq!(queue.leave(places[0]), None);
        assert_eq!(queue.leave(places[1]).map(|it| it.waiter), Some(1));
        assert!(queue.has_holding());
        assert_eq!(queue.leave_first_holding().map(|it| it.waiter), Some(3));
        assert!(!queue.has_holding());
        assert_eq!(queue.leave_first_holding(), None);
        assert_eq!(queue.first_login(), Some(login));
        assert_eq!(queue.leave_first().map(|it| it.waiter), Some(2));
        assert_eq!(queue.leave_first(), None);
        assert_eq!((queue.len(), queue.is_empty()), (0, true));
    }
}
