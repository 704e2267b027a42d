//! [`Pin`]: why a session must stay on one connection to one server.

use std::fmt;

/// A reason. Each is state of a connection that no other one can be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pin {
    /// `SET TRANSACTION`: the next transaction has characteristics of its own.
    NextTransaction,
    /// `SAVEPOINT` without autocommit, before a transaction is open.
    Savepoint,
    /// A temporary table.
    TemporaryTable,
    /// `GET_LOCK`.
    UserLock,
    /// `LOCK TABLES`, `FLUSH TABLES WITH READ LOCK`.
    TableLock,
    /// `HANDLER .. OPEN`.
    Handler,
    /// A user variable got a value that another server may not compute alike.
    UserVariable,
    /// So did a system variable.
    SystemVariable,
    /// Several statements in one text changed the session.
    SeveralStatements,
    /// The session has given more commands than are kept for other connections.
    LongHistory,
    /// A hint has asked for it.
    Hint,
    /// A rule says so.
    Rule,
    /// A statement that is prepared reads of the statement before it.
    LastStatement,
    /// A value was taken from a sequence, which LASTVAL tells on the same connection.
    Sequence,
    /// A command that is not known here.
    Command,
    /// The server says that the session has changed, and the text does not show how.
    Unknown,
}

impl Pin {
    /// Each of them.
    pub const ALL: [Pin; 16] = [
        Pin::NextTransaction,
        Pin::Savepoint,
        Pin::TemporaryTable,
        Pin::UserLock,
        Pin::TableLock,
        Pin::Handler,
        Pin::UserVariable,
        Pin::SystemVariable,
        Pin::SeveralStatements,
        Pin::LongHistory,
        Pin::Hint,
        Pin::Rule,
        Pin::LastStatement,
        Pin::Sequence,
        Pin::Command,
        Pin::Unknown,
    ];

    /// Its place in [`Pin::ALL`].
    pub fn index(self) -> usize {
        Pin::ALL.iter().take_while(|pin| **pin != self).count()
    }

    /// As operators see it.
    pub fn name(self) -> &'static str {
        match self {
            Pin::NextTransaction => "set transaction",
            Pin::Savepoint => "savepoint",
            Pin::TemporaryTable => "temporary table",
            Pin::UserLock => "user lock",
            Pin::TableLock => "table lock",
            Pin::Handler => "handler",
            Pin::UserVariable => "user variable",
            Pin::SystemVariable => "system variable",
            Pin::SeveralStatements => "several statements",
            Pin::LongHistory => "long history",
            Pin::Hint => "hint",
            Pin::Rule => "rule",
            Pin::LastStatement => "prepared reader of the last statement",
            Pin::Sequence => "sequence",
            Pin::Command => "unknown command",
            Pin::Unknown => "unknown state",
        }
    }
}

impl Pin {
    /// What has pinned the session, in a clause for people.
    pub fn reason(self) -> &'static str {
        match self {
            Pin::NextTransaction => "SET TRANSACTION is about the next transaction there",
            Pin::Savepoint => "SAVEPOINT without autocommit, before a table is used",
            Pin::TemporaryTable => "a temporary table is on that connection alone",
            Pin::UserLock => "GET_LOCK: the lock is that connection's",
            Pin::TableLock => "tables are locked on that connection",
            Pin::Handler => "HANDLER has opened a table on that connection",
            Pin::UserVariable => "a user variable has a value that only that server has computed",
            Pin::SystemVariable => "a variable has a value that only that connection has",
            Pin::SeveralStatements => "several statements in a text have changed the session",
            Pin::LongHistory => "more commands have changed the session than are kept",
            Pin::Hint => "a hint has asked for it",
            Pin::Rule => "a rule has multiplex = false",
            Pin::LastStatement => "a prepared statement reads of the statement before it",
            Pin::Sequence => "LASTVAL is that connection's",
            Pin::Command => "a command that the gateway does not know",
            Pin::Unknown => "the connection may have state that the text does not show",
        }
    }

    /// Until when it does, in a clause for people.
    pub fn end(self) -> &'static str {
        match self {
            Pin::NextTransaction => "until the next transaction has begun",
            Pin::Savepoint => "until the transaction ends",
            Pin::TableLock => "until UNLOCK TABLES",
            Pin::UserLock => "until the session has no lock any more",
            Pin::TemporaryTable
            | Pin::Handler
            | Pin::UserVariable
            | Pin::SystemVariable
            | Pin::SeveralStatements
            | Pin::LongHistory
            | Pin::Hint
            | Pin::Rule
            | Pin::LastStatement
            | Pin::Sequence
            | Pin::Command
            | Pin::Unknown => "until COM_RESET_CONNECTION or COM_CHANGE_USER",
        }
    }
}

/// A set of reasons.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Pins(u16);

impl Pins {
    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether a reason is among them.
    pub fn has(self, pin: Pin) -> bool {
        self.0 & bit(pin) != 0
    }

    /// Whether it is the only one.
    pub fn is_only(self, pin: Pin) -> bool {
        self.0 == bit(pin)
    }

    /// Adds a reason.
    pub fn add(&mut self, pin: Pin) {
        self.0 |= bit(pin);
    }

    /// Adds those of another set.
    pub fn add_all(&mut self, others: Pins) {
        self.0 |= others.0;
    }

    /// Those that are not in another set.
    #[must_use]
    pub fn without(self, others: Pins) -> Pins {
        Pins(self.0 & !others.0)
    }

    /// As a number, for [`Pins::of_bits`].
    pub fn bits(self) -> u16 {
        self.0
    }

    /// The set that a number stands for.
    pub fn of_bits(bits: u16) -> Pins {
        Pins(bits)
    }

    /// Takes a reason away.
    pub fn lift(&mut self, pin: Pin) {
        self.0 &= !bit(pin);
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = Pin> {
        Pin::ALL.into_iter().filter(move |pin| self.has(*pin))
    }
}

fn bit(pin: Pin) -> u16 {
    1 << pin.index()
}

impl fmt::Debug for Pins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_added_and_not_lifted() {
        let mut pins = Pins::default();
        for pin in Pin::ALL {
            assert!(!pins.has(pin));
            pins.add(pin);
            assert!(pins.has(pin));
        }
        pins.lift(Pin::Handler);
        assert!(!pins.has(Pin::Handler) && pins.has(Pin::TableLock));
        assert_eq!(pins.iter().count(), Pin::ALL.len() - 1);
        assert_eq!(Pins::of_bits(pins.bits()), pins);
        let mut one = Pins::default();
        one.add(Pin::TableLock);
        assert!(!pins.without(one).has(Pin::TableLock) && one.without(pins).is_empty());
        let mut names: Vec<_> = Pin::ALL.map(Pin::name).into();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Pin::ALL.len());
    }
}
