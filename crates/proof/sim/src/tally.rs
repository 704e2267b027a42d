//! What has happened in the seeds of a simulation of crashes.

/// The events of a seed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Transactions acknowledged.
    pub committed: u64,
    /// Transactions rolled back, on purpose or as victims.
    pub rolled_back: u64,
    /// Snapshots compared with the model.
    pub snapshots: u64,
    /// Schema changes acknowledged.
    pub schema_changes: u64,
    /// Statements that found the disk full.
    pub full: u64,
    /// Statements that could not read a file.
    pub unread: u64,
    /// Statements that got no memory for a lock.
    pub unlocked: u64,
    /// Rounds that ended because the log failed.
    pub log_failures: u64,
    /// Damages of the log that a start has refused.
    pub harms_refused: u64,
    /// Damages of the log without any loss.
    pub harms_survived: u64,
    /// Losses of log that a start was made to accept, and that opened.
    pub losses_accepted: u64,
    /// Transactions prepared.
    pub prepared: u64,
    /// Prepared transactions that a start has found.
    pub left_prepared: u64,
}

impl Tally {
    /// Adds the events of another seed.
    pub fn add(&mut self, other: Self) {
        self.committed += other.committed;
        self.rolled_back += other.rolled_back;
        self.snapshots += other.snapshots;
        self.schema_changes += other.schema_changes;
        self.full += other.full;
        self.unread += other.unread;
        self.unlocked += other.unlocked;
        self.log_failures += other.log_failures;
        self.harms_refused += other.harms_refused;
        self.harms_survived += other.harms_survived;
        self.losses_accepted += other.losses_accepted;
        self.prepared += other.prepared;
        self.left_prepared += other.left_prepared;
    }
}
