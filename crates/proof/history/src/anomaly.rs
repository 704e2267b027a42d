//! Names of what can be wrong, and the table of what InnoDB's levels allow.

use std::fmt;

/// What can be wrong with a history. The names are those of Adya and of Elle where these have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Anomaly {
    /// A cycle of writes over writes.
    DirtyWrite,
    /// What a transaction read or wrote over was rolled back.
    AbortedRead,
    /// A read saw a version that its transaction wrote over before it ended.
    IntermediateRead,
    /// A cycle of writes, and of reads of what was written.
    CircularInformation,
    /// A cycle with one read of what the next writes over.
    Single,
    /// As `Single`, on one key that the reader itself then writes.
    LostUpdate,
    /// A cycle with several such reads, no two of which follow each other.
    Nonadjacent,
    /// A cycle with several such reads that follow each other (write skew).
    ItemCycle,
    /// A committed version stands on one that was rolled back.
    DirtyUpdate,
    /// Two reads of a key do not agree on the order of its versions.
    IncompatibleOrder,
    /// A transaction does not see its own writes.
    Internal,
    /// An element is there twice.
    Duplicate,
    /// An element is there that nobody wrote.
    Garbage,
    /// What was acknowledged is not there.
    Lost,
    /// One part of an unanswered transaction is there and another is not.
    Torn,
    /// A register counts other writes than those that were committed.
    WrongCount,
}

/// A level of isolation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// An anomaly that was found, and where.
#[derive(Clone, Debug)]
pub struct Finding {
    pub anomaly: Anomaly,
    pub text: String,
}

impl Level {
    /// From the weakest to the strongest.
    pub const ALL: [Level; 4] = [
        Level::ReadUncommitted,
        Level::ReadCommitted,
        Level::RepeatableRead,
        Level::Serializable,
    ];

    /// Whether transactions of this level alone may show an anomaly: InnoDB's levels with
    /// `innodb_snapshot_isolation=OFF`. Where a cell depends on how reads are made, as under
    /// REPEATABLE READ, the cycles of moments are stricter.
    pub fn allows(self, anomaly: Anomaly) -> bool {
        use Anomaly::{
            AbortedRead, CircularInformation, IntermediateRead, ItemCycle, LostUpdate, Nonadjacent,
            Single,
        };
        match self {
            Level::ReadUncommitted => matches!(
                anomaly,
                AbortedRead
                    | IntermediateRead
                    | CircularInformation
                    | Single
                    | LostUpdate
                    | Nonadjacent
                    | ItemCycle
            ),
            Level::ReadCommitted | Level::RepeatableRead => {
                matches!(anomaly, Single | LostUpdate | Nonadjacent | ItemCycle)
            }
            Level::Serializable => false,
        }
    }

    /// As in SET TRANSACTION ISOLATION LEVEL.
    pub fn sql(self) -> &'static str {
        match self {
            Level::ReadUncommitted => "READ UNCOMMITTED",
            Level::ReadCommitted => "READ COMMITTED",
            Level::RepeatableRead => "REPEATABLE READ",
            Level::Serializable => "SERIALIZABLE",
        }
    }
}

impl Anomaly {
    pub fn name(self) -> &'static str {
        match self {
            Anomaly::DirtyWrite => "G0",
            Anomaly::AbortedRead => "G1a",
            Anomaly::IntermediateRead => "G1b",
            Anomaly::CircularInformation => "G1c",
            Anomaly::Single => "G-single",
            Anomaly::LostUpdate => "lost update",
            Anomaly::Nonadjacent => "G-nonadjacent",
            Anomaly::ItemCycle => "G2-item",
            Anomaly::DirtyUpdate => "dirty update",
            Anomaly::IncompatibleOrder => "incompatible order",
            Anomaly::Internal => "internal",
            Anomaly::Duplicate => "duplicate element",
            Anomaly::Garbage => "garbage read",
            Anomaly::Lost => "lost commit",
            Anomaly::Torn => "torn transaction",
            Anomaly::WrongCount => "wrong count",
        }
    }
}

impl fmt::Display for Anomaly {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl fmt::Display for Level {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.sql())
    }
}
