//! Which session waits for whose metadata lock, so that a cycle has a victim.
//!
//! Shared holds are anonymous counters, so their owners are unknown until they wait themselves. A
//! session that begins to wait reports what it holds, and a cycle consists only of waiting
//! sessions. Only changes of definitions hold databases, and they report it when they take one. A
//! cycle is looked for when a session begins to wait, under one mutex. A session that holds nothing
//! closes no cycle and is only registered. Waits and changes of definitions are rare, so the mutex
//! is on no hot path.
//!
//! A wait for a row lock is not an edge here: such cycles end by `lock_wait_timeout` or
//! `innodb_lock_wait_timeout`, as MariaDB's do.

use store::TableId;
use sync::Mutex;

use super::Mode;

/// Waiting sessions, in the order in which they began, and the exclusive owners of tables.
#[derive(Debug, Default)]
pub(super) struct Waits {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    waiters: Vec<Waiter>,
    /// Tables held exclusively, and by which session.
    owners: Vec<(TableId, u64)>,
    /// Databases held shared, and by which session.
    users: Vec<(TableId, u64)>,
}

#[derive(Debug)]
struct Waiter {
    session: u64,
    table: TableId,
    mode: Mode,
    /// Tables that it holds shared meanwhile.
    shared: Vec<TableId>,
}

/// The wait would be part of a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Deadlock;

/// A registered wait; dropped when it is over.
#[derive(Debug)]
pub(crate) struct Noted<'w> {
    waits: &'w Waits,
    session: u64,
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        let mut inner = self.waits.inner.lock();
        let at = inner.waiters.iter().position(|w| w.session == self.session);
        inner.waiters.remove(at.expect("a wait is noted once"));
    }
}

impl Waits {
    /// Registers that a session is about to wait for a table while it holds `shared` shared.
    pub(super) fn note(
        &self,
        session: u64,
        table: TableId,
        mode: Mode,
        shared: Vec<TableId>,
    ) -> Result<Noted<'_>, Deadlock> {
        let mut inner = self.inner.lock();
        assert!(
            inner.waiters.iter().all(|waiter| waiter.session != session),
            "a session waits for one thing at a time"
        );
        let mut known = inner.owners.iter().chain(&inner.users);
        let holds_any = !shared.is_empty() || known.any(|(_, by)| *by == session);
        inner.waiters.push(Waiter {
            session,
            table,
            mode,
            shared,
        });
        if holds_any && inner.is_in_cycle(inner.waiters.len() - 1) {
            inner.waiters.pop();
            return Err(Deadlock);
        }
        drop(inner);
        Ok(Noted {
            waits: self,
            session,
        })
    }

    /// A session holds a table exclusively from now on.
    pub(super) fn own(&self, table: TableId, session: u64) {
        self.inner.lock().owners.push((table, session));
    }

    /// It no longer holds it.
    pub(super) fn disown(&self, table: TableId, session: u64) {
        let owners = &mut self.inner.lock().owners;
        let at = owners.iter().position(|owner| *owner == (table, session));
        owners.swap_remove(at.expect("an exclusive hold is noted once"));
    }

    /// A session holds a database shared from now on.
    pub(super) fn begin_use(&self, database: TableId, session: u64) {
        self.inner.lock().users.push((database, session));
    }

    /// It no longer holds it.
    pub(super) fn end_use(&self, database: TableId, session: u64) {
        let users = &mut self.inner.lock().users;
        let at = users.iter().position(|user| *user == (database, session));
        users.swap_remove(at.expect("a hold of a database is noted once"));
    }
}

impl Inner {
    /// True if a waiter waits for itself through others.
    fn is_in_cycle(&self, start: usize) -> bool {
        let mut is_seen = vec![false; self.waiters.len()];
        let mut open = vec![start];
        while let Some(at) = open.pop() {
            for blocker in self.blockers(at) {
                if blocker == start {
                    return true;
                }
                if !std::mem::replace(&mut is_seen[blocker], true) {
                    open.push(blocker);
                }
            }
        }
        false
    }

    /// The waiters that the given one waits for.
    fn blockers(&self, at: usize) -> impl Iterator<Item = usize> + '_ {
        let waiter = &self.waiters[at];
        let owner = self.owners.iter().find(|(table, _)| *table == waiter.table);
        // The first waiter for a change has announced it; all later ones wait behind it.
        let first_change = self
            .waiters
            .iter()
            .position(|other| other.table == waiter.table && other.mode == Mode::Exclusive);
        let is_blocker = move |(index, other): (usize, &Waiter)| {
            let owns = owner.is_some_and(|(_, by)| *by == other.session);
            let is_user = || self.users.contains(&(waiter.table, other.session));
            let uses = waiter.mode == Mode::Exclusive
                && (other.shared.contains(&waiter.table) || is_user());
            let is_before = first_change == Some(index);
            (index != at && (owns || uses || is_before)).then_some(index)
        };
        self.waiters.iter().enumerate().filter_map(is_blocker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TableId = TableId(1);
    const B: TableId = TableId(2);

    #[test]
    fn two_users_behind_two_changes_are_a_cycle() {
        let waits = Waits::default();
        let _alter_a = waits.note(1, A, Mode::Exclusive, vec![]).unwrap();
        let _alter_b = waits.note(2, B, Mode::Exclusive, vec![]).unwrap();
        let first = waits.note(3, B, Mode::Shared, vec![A]).unwrap();
        let second = |shared| waits.note(4, A, Mode::Shared, shared).map(drop);
        assert_eq!(second(vec![B]), Err(Deadlock));
        assert_eq!(
            second(vec![TableId(9)]),
            Ok(()),
            "it holds what nobody wants"
        );
        drop(first);
        assert_eq!(second(vec![B]), Ok(()), "the other does not wait any more");
    }

    #[test]
    fn owners_that_want_each_others_tables_are_a_cycle() {
        let waits = Waits::default();
        waits.own(A, 1);
        waits.own(B, 2);
        let _first = waits.note(1, B, Mode::Exclusive, vec![]).unwrap();
        let second = || waits.note(2, A, Mode::Shared, vec![]).map(drop);
        assert_eq!(second(), Err(Deadlock));
        waits.disown(A, 1);
        assert_eq!(second(), Ok(()));
    }

    #[test]
    fn who_holds_a_database_is_in_the_way_of_its_end() {
        let waits = Waits::default();
        let database = TableId(7);
        // One creates a table in the database out of A, another drops it, a third moves A there.
        waits.begin_use(database, 1);
        waits.own(A, 3);
        let _make = waits.note(1, A, Mode::Shared, vec![]).unwrap();
        let _drop = waits.note(2, database, Mode::Exclusive, vec![]).unwrap();
        let rename = || waits.note(3, database, Mode::Shared, vec![]).map(drop);
        assert_eq!(rename(), Err(Deadlock));
        waits.end_use(database, 1);
        assert_eq!(rename(), Ok(()));
    }

    #[test]
    fn users_of_one_table_that_both_wait_are_none() {
        let waits = Waits::default();
        let _alter = waits.note(1, A, Mode::Exclusive, vec![]).unwrap();
        let _first = waits.note(2, A, Mode::Shared, vec![B]).unwrap();
        assert!(waits.note(3, A, Mode::Shared, vec![B]).is_ok());
        assert!(waits.note(4, A, Mode::Exclusive, vec![]).is_ok());
    }

    /// Cycles of every length are found; an open chain is no cycle.
    #[test]
    fn a_ring_of_any_length_is_a_cycle() {
        for length in 2..20 {
            let waits = Waits::default();
            let table = |number: u64| TableId(number % length);
            let mut noted = Vec::new();
            for number in 0..length {
                waits.own(table(number), number);
            }
            for number in 0..length - 1 {
                let wait = waits.note(number, table(number + 1), Mode::Exclusive, vec![]);
                noted.push(wait.unwrap());
            }
            let last = waits.note(length - 1, table(length), Mode::Exclusive, vec![]);
            assert_eq!(last.map(drop), Err(Deadlock));
        }
    }
}
