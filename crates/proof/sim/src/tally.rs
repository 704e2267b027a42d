//! What has happened in the seeds of a simulation of crashes.

use env::sim::FaultCounts;

/// The events of a seed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Transactions acknowledged.
    pub committed: u64,
    /// Transactions rolled back, on purpose or as victims.
    pub rolled_back: u64,
    /// Snapshots compared with the model.
    pub snapshots: u64,
    /// Snapshots that were kept open and compared again.
    pub held_snapshots: u64,
    /// Locking reads of ranges.
    pub range_reads: u64,
    /// Claimed rows that another has changed before their transaction.
    pub lost_claims: u64,
    /// Schema changes acknowledged.
    pub schema_changes: u64,
    /// Transactions prepared.
    pub prepared: u64,
    /// Prepared transactions that a start has found.
    pub left_prepared: u64,
    /// Rounds whose sessions all came to their ends.
    pub closings: u64,
    /// Victims of deadlocks.
    pub deadlocks: u64,
    /// Lock waits that took too long, or had no time.
    pub timeouts: u64,
    /// Sessions that were killed in the middle of a call.
    pub killed: u64,
    /// Times at which the process stood still.
    pub stalls: u64,
    /// Deaths of the process alone.
    pub process_deaths: u64,
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
    /// Bits of the log that turned.
    pub bits_turned: u64,
    /// How often the disk has misbehaved.
    pub disk: FaultCounts,
}

impl Tally {
    /// All counts with their names. A disk that loses flushes is no fault that must occur.
    fn named(&mut self) -> [(&'static str, &mut u64); 33] {
        let disk = &mut self.disk;
        [
            ("commits", &mut self.committed),
            ("rollbacks", &mut self.rolled_back),
            ("snapshots", &mut self.snapshots),
            ("snapshots kept open", &mut self.held_snapshots),
            ("range reads", &mut self.range_reads),
            ("claims lost", &mut self.lost_claims),
            ("schema changes", &mut self.schema_changes),
            ("prepared", &mut self.prepared),
            ("left prepared", &mut self.left_prepared),
            ("orderly ends of a round", &mut self.closings),
            ("deadlocks", &mut self.deadlocks),
            ("lock waits timed out", &mut self.timeouts),
            ("sessions killed", &mut self.killed),
            ("stalls", &mut self.stalls),
            ("process deaths", &mut self.process_deaths),
            ("statements on a full disk", &mut self.full),
            ("statements on an unreadable file", &mut self.unread),
            ("statements without lock memory", &mut self.unlocked),
            ("failures of the log", &mut self.log_failures),
            ("log damage refused", &mut self.harms_refused),
            ("log damage without loss", &mut self.harms_survived),
            ("log loss accepted", &mut self.losses_accepted),
            ("bits turned", &mut self.bits_turned),
            ("reads failed", &mut disk.reads_failed),
            ("writes failed", &mut disk.writes_failed),
            ("syncs failed", &mut disk.syncs_failed),
            ("operations without room", &mut disk.full),
            ("writes interrupted", &mut disk.writes_interrupted),
            ("writes lost", &mut disk.writes_lost),
            ("writes torn", &mut disk.writes_torn),
            ("writes reordered", &mut disk.writes_reordered),
            ("file lengths lost", &mut disk.lengths_lost),
            ("file names lost", &mut disk.names_lost),
        ]
    }

    /// Adds the events of another seed.
    pub fn add(&mut self, mut other: Self) {
        let others = other.named().map(|(_, count)| *count);
        for ((_, count), other) in self.named().into_iter().zip(others) {
            *count += other;
        }
    }

    /// How often each kind of event has occurred.
    pub fn counts(mut self) -> Vec<(&'static str, u64)> {
        let counts = self.named().map(|(name, count)| (name, *count));
        counts.to_vec()
    }
}
