//! Starting in spite of lost log, if the operator has asked for it.
//!
//! Two things show that log is lost: damage of the log itself ([`wal::LogDamage`]), and pages in
//! the files that are newer than the log of their time. A change is in the log before it is in a
//! file, so such a page has changes of the lost part.
//!
//! The readable log is redone up to the damage. Then the log continues in new segments, after every
//! known LSN. If no page is newer, the data is as it was at the damage: later commits are lost, and
//! nothing else is wrong. If there are newer pages, they stay as they are, so rows, indexes and
//! undo may contradict each other. Refused: to treat newer pages as damaged. Undo and the
//! dictionary are written often and are nearly always among them, so nothing could be opened then.

use std::collections::BTreeSet;
use std::path::Path;

use env::Disk;
use format::control::CheckpointRecord;
use format::log::LOG_COUNT_MAX;
use format::{Lsn, PageHeader, PageSize, SpaceId};
use wal::{LogDamage, LogScan, Restart};

use crate::space::list_spaces;
use crate::space::verify::{Seen, verify_space};
use crate::start::redo::RecoveryError;

/// Unused bytes between the last known LSN and the first one of the log that continues.
const GAP_BYTES: u64 = 4096;

/// What was lost, and accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLoss {
    /// The damage of the log; `None` if only pages show the loss.
    pub damage: Option<LogDamage>,
    /// Everything logged before this is there.
    pub position: Lsn,
    /// Pages that are newer.
    pub newer_page_count: u64,
    /// The tablespaces that have them.
    pub newer_spaces: Vec<SpaceId>,
}

/// The highest LSN of a page that the life `epoch` may have written, if the log ends at `log_end`.
pub(crate) fn newest_lsn(record: &CheckpointRecord, log_end: Lsn, epoch: u32) -> Lsn {
    match record.lives.newest_lsn(epoch) {
        Some(end) => end,
        // The latest life; redo also writes pages under its number.
        None if epoch == record.epoch => log_end,
        None => Lsn::ZERO,
    }
}

/// Checks after redo whether anything is lost, and lets the log continue if so.
pub(crate) async fn accept(
    disk: &dyn Disk,
    (directory, size): (&Path, PageSize),
    record: &CheckpointRecord,
    scan: &mut LogScan,
) -> Result<Option<LogLoss>, RecoveryError> {
    let position = scan.position();
    let (mut newest, mut newer_page_count) = (scan.newest(), 0);
    let mut newer_spaces = BTreeSet::new();
    for space in list_spaces(disk, directory)? {
        let mut see = |page: PageHeader| {
            // No log gets that far: the page stays as it is, and is refused when it is read.
            if LOG_COUNT_MAX < page.lsn.0 {
                return;
            }
            newest = newest.max(page.lsn);
            if newest_lsn(record, position, page.epoch) < page.lsn {
                newer_page_count += 1;
                newer_spaces.insert(space);
            }
        };
        verify_space(disk, directory, space, size, &mut |_, seen| {
            if let Seen::Whole(header, _) = seen {
                see(header);
            }
        })
        .await?;
    }
    let damage = scan.damage().cloned();
    if damage.is_none() && newer_page_count == 0 {
        return Ok(None);
    }
    scan.restart(Restart {
        lsn: newest.advance(GAP_BYTES),
        has_newer_pages: newer_page_count != 0,
    });
    Ok(Some(LogLoss {
        damage,
        position,
        newer_page_count,
        newer_spaces: newer_spaces.into_iter().collect(),
    }))
}
