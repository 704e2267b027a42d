//! `plateau check`: verifies every page, every row, every index entry and every undo record.
//!
//! [`Engine::prepare_check`] first runs purge to its end; the caller does so for other workers.
//! Then each page of a tablespace belongs to a tree, to the large value of a row, or to nothing. No
//! other work may run meanwhile. It makes a [`CheckPlan`] of jobs, which any number of workers do;
//! a worker needs only its pages, and no undo segment. The jobs write nothing.
//!
//! (K1) Damage ends nothing: what cannot be read is reported and passed over, with all that it
//! leads to. What follows only from that (rows without entries, pages that belong to nothing) is
//! not reported. In the end every file is read page by page, which also finds damage that nothing
//! leads to.
//! (K2) A check takes the memory of one leaf and one row a worker, a bit for each page of the
//! tablespaces, and a bounded number of faults of each ([`report`]).
//! (K3) A job keeps its findings to itself, and the plan joins them in the order of its jobs. So
//! the report does not depend on the number of workers.
//! (K4) An index has the entries that the rows require if the sums of their hashes are equal
//! ([`trees`]). Rows are looked up one by one only if the sums differ, to name those at fault.

mod checker;
mod files;
mod page_set;
mod plan;
mod report;
mod spaces;
mod trees;
mod undo;

use std::sync::Arc;

use store::{StoreError, Suspend};

use crate::engine::Engine;
use crate::schema::dictionary;
use crate::undo_log::space_of;
use crate::worker::COUNTERS_PAGE;

use checker::Checker;
pub use files::check_files;
use plan::Plan;
pub use plan::{CheckPlan, CheckProgress};
use report::Audit;
pub use report::CheckReport;

/// Records that purge handles in one call.
const PURGE_BUDGET: usize = 4096;
/// Pages after which other tasks of the worker run.
const PAGES_PER_TURN: u64 = 16;

impl Engine {
    /// Rolls back what this worker's sessions have left, and purges its segments to their end. A
    /// check needs this of all workers first. Otherwise it would take for damage what another
    /// worker has half removed.
    pub async fn purge_all(&self) -> Result<(), StoreError> {
        let worker = &self.worker;
        worker.roll_back_orphans().await?;
        worker.remove_left_spaces().await?;
        loop {
            worker.txns.maintain(|| worker.pages.reserved());
            if worker.purge(PURGE_BUDGET).await? == 0 {
                return Ok(());
            }
        }
    }

    /// Prepares a check of everything, and checks dictionary and undo. `worker_count` is the number
    /// of workers that will do the rest. Errors are not damage: the log has failed, or the disk is
    /// full.
    pub async fn prepare_check(&self, worker_count: usize) -> Result<Arc<CheckPlan>, StoreError> {
        let worker = &self.worker;
        let mut report = CheckReport::default();
        // Without purge there may be pages that only undo refers to, and also if a transaction is
        // prepared: its rollback would need them.
        let is_purged = match on_the_whole(self.purge_all().await)? {
            Ok(()) => worker.shared.txns.settled() == worker.shared.txns.next(),
            Err(error) => {
                report.fault(format!("old versions of rows cannot be removed: {error}"));
                false
            }
        };
        worker.pages.clean_all().await?;
        let segments = worker.shared.segment_count;
        let tables = worker.dictionary().tables.values().cloned().collect();
        let plan = Plan {
            tables,
            is_purged,
            segment_count: segments,
            worker_count,
        };
        let mut plan = CheckPlan::new(&worker.pages, plan)?;
        let checker = Checker::new(&worker.pages, plan.progress());
        let mut audit = Audit::new(dictionary::tree().space, "the dictionary".to_owned());
        audit.is_partial = !is_purged;
        checker.run(checker.check_system(&mut audit)).await?;
        report.take(audit);
        for segment in 0..u8::try_from(segments).expect("there are at most 255 workers") {
            let owner = format!("undo segment {segment}");
            let mut audit = Audit::new(space_of(segment), owner);
            checker
                .run(checker.check_segment(segment, &mut audit))
                .await?;
            report.take(audit);
            report.segment_count += 1;
        }
        plan.begin_with(report);
        Ok(Arc::new(plan))
    }

    /// Checks everything on this worker.
    pub async fn check(&self) -> Result<CheckReport, StoreError> {
        let plan = self.prepare_check(1).await?;
        plan.work(&self.worker.pages).await?;
        Ok(plan.report())
    }
}

impl Checker<'_> {
    async fn check_system(&self, audit: &mut Audit) -> Result<(), StoreError> {
        audit.own(COUNTERS_PAGE);
        self.check_rows(dictionary::tree(), None, plan::Part::WHOLE, audit)
            .await?;
        self.check_space(audit).await
    }
}

/// Separates errors after which a check goes on: pages that cannot be read are the inner error.
fn on_the_whole<T>(outcome: Result<T, StoreError>) -> Result<Result<T, StoreError>, StoreError> {
    match outcome {
        Err(error) if error.is_unreadable() => Ok(Err(error)),
        Err(error) => Err(error),
        Ok(value) => Ok(Ok(value)),
    }
}

/// Lets other tasks run now and then.
async fn give_way(audit: &Audit) {
    if audit.page_count.is_multiple_of(PAGES_PER_TURN) {
        Suspend::turn().await;
    }
}
