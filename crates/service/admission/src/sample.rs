//! What the controller is fed with: the counts of one period.

/// The counts of a period, over all workers.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sample {
    /// How long the period was, in microseconds.
    pub span_us: u64,
    /// Transactions that were committed.
    pub commits: u64,
    /// Statements that ended inside of transactions, without those of transactions that were lost.
    pub statements: u64,
    /// Transactions that are inside now and count.
    pub admitted: u32,
    /// Those of them that wait for locks; `None` if that is unknown.
    pub blocked: Option<u32>,
    /// Transactions that wait for entry now.
    pub waiting: u32,
    /// Transactions that began to wait for entry during the period.
    pub queued: u64,
    /// Work that was put off, and has to be done.
    pub debt: Debt,
}

/// Work that was put off. Each share is 0 if there is none, and 1 if there is no room for more.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Debt {
    /// The log that no checkpoint has freed, of the room for log.
    pub log: f64,
    /// Changed pages in memory, of all.
    pub dirty: f64,
    /// Old versions that wait for purge, of what the engine wants at most.
    pub purge: f64,
}

impl Sample {
    /// What was done, in units that only compare with each other. Statements tell it better than
    /// commits: transactions of one load may have four of them or seventy. So commits alone differ
    /// by some per cent from second to second, as much as limits that are to be told apart.
    pub(crate) fn work(&self) -> u64 {
        self.commits.saturating_add(self.statements)
    }

    /// What happened, as a number of events: it says how much chance is in the work.
    pub(crate) fn events(&self) -> u64 {
        self.commits.max(self.statements)
    }

    /// The share of blocked transactions among the admitted ones; 0 if that is unknown.
    pub(crate) fn blocked_share(&self) -> f64 {
        if self.admitted == 0 {
            return 0.0;
        }
        (f64::from(self.blocked.unwrap_or(0)) / f64::from(self.admitted)).min(1.0)
    }

    /// True if the limit has kept transactions out.
    pub(crate) fn is_binding(&self) -> bool {
        self.waiting != 0 || self.queued != 0
    }
}

impl Debt {
    /// The largest share.
    pub(crate) fn worst(&self) -> f64 {
        self.log.max(self.dirty).max(self.purge)
    }
}
