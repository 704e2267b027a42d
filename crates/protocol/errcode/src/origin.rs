//! [`Origin`] and [`Retry`]: who caused an error, and whether to try the statement again.

/// Who caused an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The clients. This one: its statement, its rights, its limits or its packets; another
    /// statement is needed, or another account. Or others: their locks, or their KILL.
    Client,
    /// A server that we are a client of.
    Server,
    /// This program, its disk or its memory. The statement is right.
    Ourselves,
}

impl Origin {
    /// Number of origins.
    pub const COUNT: usize = 3;
}

/// Whether the same statement may be tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// It would fail again, or may have been carried out in part.
    Never,
    /// At once. Nothing of it was carried out. If it stood in a transaction that the error has
    /// rolled back, the whole transaction is tried again.
    Now,
    /// Once more, on another connection, and only if it changes nothing. The server may have
    /// carried it out, or may have closed the connection before the statement came.
    IfRead,
}
