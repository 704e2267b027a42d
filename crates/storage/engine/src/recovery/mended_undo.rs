//! Undo segments that are damaged while the log is whole, if the operator has accepted the loss.
//!
//! All records of a transaction are in one segment (S3 of `stages`), so each segment is mended by
//! itself, and recovery follows:
//!
//! * A whole segment stays as it is, and so do the prepared transactions in it.
//! * If only its header or a map cannot be read, both are made again from the chain. Nothing is
//!   lost.
//! * Any other is made again, empty. Its transactions count as ended: the lost part may say that
//!   they have committed. A node's place in its group is forgotten then, since the lost segment may
//!   have had the newest one.
//!
//! After a crash in between, what is not mended yet is as damaged as before.

use std::collections::BTreeSet;

use btree::{Pages, space};
use format::{PageNo, SpaceId};
use store::{StoreError, until_done};
use tracing::error;

use crate::recovery::left_undo::{FoundRecords, read_segment};
use crate::recovery::make_space_file;
use crate::undo_log::{DIRECTORY, UndoLog, space_of};
use crate::worker::place::forget_note;
use crate::worker::read_segment_count;

/// What can be read of a segment.
enum Segment {
    Whole,
    /// Its chain, but not its header or a map. The pages in use.
    Chain(BTreeSet<PageNo>),
    Lost(StoreError),
}

/// Makes the segments again that recovery cannot read. It has failed at `named`, if that is known.
pub(super) async fn mend_undo(pages: &Pages, named: Option<SpaceId>) -> Result<(), StoreError> {
    let count = until_done(|| read_segment_count(pages)).await?;
    let mut segments = Vec::new();
    for number in (0..count).filter_map(|number| u8::try_from(number).ok()) {
        segments.push((number, look(pages, number, named).await?));
    }
    assert_eq!(
        u32::try_from(segments.len()),
        Ok(count),
        "there are at most 255 workers, and each has its segment"
    );
    let is_lost = |(_, segment): &(u8, Segment)| matches!(segment, Segment::Lost(_));
    if segments.iter().any(is_lost) {
        for (number, _) in segments.iter().filter(|segment| !is_lost(segment)) {
            until_done(|| forget_note(pages, *number)).await?;
        }
    }
    for (number, segment) in segments {
        let file = format!("space_{}.pdb", space_of(number));
        match segment {
            Segment::Whole => continue,
            Segment::Chain(used) => {
                error!(%file, "the map of an undo segment was damaged and is made again");
                until_done(|| space::make_again(pages, space_of(number), &used)).await?;
            }
            Segment::Lost(failure) => {
                error!(
                    %file,
                    %failure,
                    "an undo segment is lost: its changes that had not committed stay, and its \
                     prepared XA transactions count as committed"
                );
                make_space_file(pages, space_of(number)).await?;
                until_done(|| space::create(pages, space_of(number))).await?;
                until_done(|| UndoLog::create(pages, number)).await?;
            }
        }
    }
    Ok(())
}

async fn look(pages: &Pages, number: u8, named: Option<SpaceId>) -> Result<Segment, StoreError> {
    let mut found = FoundRecords::default();
    let chain = match read_segment(pages, u32::from(number), &mut found).await {
        // What the disk fails to read may be there at the next start.
        Err(failure @ StoreError::Damaged { .. }) => return Ok(Segment::Lost(failure)),
        chain => chain?,
    };
    let space = space_of(number);
    match until_done(|| space::check_maps(pages, space)).await {
        Err(StoreError::Damaged { .. }) => {
            let used = chain.into_iter().chain([DIRECTORY]).collect();
            Ok(Segment::Chain(used))
        }
        Err(failure) => Err(failure),
        Ok(()) if named == Some(space) => Ok(Segment::Lost(StoreError::damaged(
            "a record of it cannot be read",
        ))),
        Ok(()) => Ok(Segment::Whole),
    }
}
