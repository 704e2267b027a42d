//! What a history is made of: transactions, their statements, and what each wrote and read.

use std::collections::BTreeMap;
use std::fmt;

use crate::anomaly::Level;

/// A value that is written once in a history. Never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Element(pub u64);

/// A time in nanoseconds of the client's one clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub u64);

/// What is read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// A write appends an element; a read sees all of them, in order.
    List(u64),
    /// A write replaces the element and counts; a read sees the count and the last two elements.
    Register(u64),
    /// A write adds an element; a read sees all of them, in no order.
    Set(u64),
}

/// What was read of a key. Nothing at all is an empty list, the number 0, or an empty set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    List(Vec<Element>),
    Register {
        /// How many writes there were.
        number: u64,
        /// The element of the last one, and that of the one before; none if there was none.
        last: Option<Element>,
        before: Option<Element>,
    },
    Set(Vec<Element>),
}

/// How a read was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It sees what is not committed (READ UNCOMMITTED).
    Dirty,
    /// It sees a snapshot, made in the transaction's statement of this index.
    View(usize),
    /// It sees what is committed, and keeps the rows that it found locked until the end.
    LockedRows,
    /// As `LockedRows`, and nothing comes into the range that was read.
    LockedRanges,
}

/// One write or read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    Write(Key, Element),
    Read(Key, Seen, Mode),
}

/// When a statement was sent and answered. What the server did for it was between these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub sent_at: Moment,
    /// None if there was no answer.
    pub answered_at: Option<Moment>,
}

/// A statement of a transaction. One that was rolled back alone has no acts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statement {
    pub span: Span,
    pub acts: Vec<Act>,
}

/// How a transaction ended, as far as its client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Acknowledged.
    Committed,
    /// Rolled back, or cut off before COMMIT was sent.
    Aborted,
    /// Cut off after COMMIT was sent.
    Unknown,
}

/// A transaction of one session.
#[derive(Clone, Debug)]
pub struct Transaction {
    pub session: u32,
    pub level: Level,
    pub ending: Ending,
    pub statements: Vec<Statement>,
    /// What was written and rolled back inside of the transaction.
    pub undone: Vec<(Key, Element)>,
    /// Of COMMIT; of the only statement if that commits by itself.
    pub commit: Span,
}

/// Transactions that shared keys, and what is left.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub transactions: Vec<Transaction>,
    /// All keys that were written, read when all transactions had ended. A key that is not here
    /// had nothing.
    pub last: BTreeMap<Key, Seen>,
    /// When the server was started again after it was killed, in order. No answer from before the
    /// kill came later.
    pub restarts: Vec<Moment>,
}

impl History {
    /// How many kills were before a transaction's end.
    pub(crate) fn life(&self, transaction: &Transaction) -> usize {
        let at = transaction.commit.sent_at;
        self.restarts.partition_point(|restart| *restart < at)
    }
}

impl Transaction {
    /// Whether it changed nothing, so that its commit waits for no log.
    pub(crate) fn is_read_only(&self) -> bool {
        self.writes().next().is_none()
    }

    /// What it wrote and did not undo, in order, each with the index of its statement.
    pub(crate) fn writes(&self) -> impl Iterator<Item = (usize, Key, Element)> + '_ {
        let statements = self.statements.iter().enumerate();
        statements.flat_map(|(index, statement)| {
            statement.acts.iter().filter_map(move |act| match act {
                Act::Write(key, element) => Some((index, *key, *element)),
                Act::Read(..) => None,
            })
        })
    }
}

impl Seen {
    /// How many writes to the key were before.
    pub(crate) fn number(&self) -> u64 {
        match self {
            Seen::List(elements) | Seen::Set(elements) => stdx::to_u64(elements.len()),
            Seen::Register { number, .. } => *number,
        }
    }

    /// The known versions: number and element. Of a set, where no element has a number, none.
    pub(crate) fn versions(&self) -> Vec<(u64, Element)> {
        match self {
            Seen::List(elements) => (1..).zip(elements.iter().copied()).collect(),
            Seen::Register {
                number,
                last,
                before,
            } => {
                let before = before.map(|it| (number.saturating_sub(1), it));
                let last = last.map(|it| (*number, it));
                before.into_iter().chain(last).collect()
            }
            Seen::Set(_) => Vec::new(),
        }
    }

    /// The elements that were seen.
    pub(crate) fn elements(&self) -> Vec<Element> {
        match self {
            Seen::List(elements) | Seen::Set(elements) => elements.clone(),
            Seen::Register { last, before, .. } => before.iter().chain(last).copied().collect(),
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::List(number) => write!(formatter, "list {number}"),
            Key::Register(number) => write!(formatter, "register {number}"),
            Key::Set(number) => write!(formatter, "set {number}"),
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |elements: &[Element]| {
            let texts: Vec<String> = elements.iter().map(Element::to_string).collect();
            texts.join(" ")
        };
        match self {
            Seen::List(elements) => write!(formatter, "[{}]", text(elements)),
            Seen::Set(elements) => write!(formatter, "{{{}}}", text(elements)),
            Seen::Register { number, .. } => {
                write!(
                    formatter,
                    "{number} writes, last {}",
                    text(&self.elements())
                )
            }
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.answered_at {
            Some(answered_at) => write!(formatter, "[{}..{}]", self.sent_at.0, answered_at.0),
            None => write!(formatter, "[{}..]", self.sent_at.0),
        }
    }
}

impl fmt::Display for Act {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Act::Write(key, element) => write!(formatter, "{key} += {element}"),
            Act::Read(key, seen, mode) => {
                let mode = match mode {
                    Mode::Dirty => String::from("dirty"),
                    Mode::View(statement) => format!("view of {statement}"),
                    Mode::LockedRows => String::from("rows locked"),
                    Mode::LockedRanges => String::from("ranges locked"),
                };
                write!(formatter, "{key} is {seen} ({mode})")
            }
        }
    }
}

impl fmt::Display for Transaction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Transaction {
            session,
            level,
            ending,
            ..
        } = self;
        write!(formatter, "session {session}, {level}, {ending:?}:")?;
        for (index, statement) in self.statements.iter().enumerate() {
            let span = statement.span;
            let acts: Vec<String> = statement.acts.iter().map(Act::to_string).collect();
            write!(formatter, "\n      {index} {span} {}", acts.join("; "))?;
        }
        write!(formatter, "\n      commit {}", self.commit)
    }
}
