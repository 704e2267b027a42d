//! The dictionary behind a loss of log: what of it can be read, as a whole tree.
//!
//! A page of the dictionary may never have been written, or may contradict its parent. Whatever
//! named tables there is lost. It is taken out, so that this start and each later one can read the
//! rest. The files of such tables are set aside afterwards, as those that no table names.
//!
//! A crash in between leaves less to do. Only leaves are made again ([`Mend`]). If the root or
//! another inner page is lost, the start fails.

use btree::change::Edit;
use btree::mend::Mend;
use btree::{From, Pages, Place, Run};
use format::row_header::RowHeader;
use store::{StoreError, until_done};
use tracing::error;

use crate::recovery::{check_entry, damaged_dictionary, dictionary_row};
use crate::schema::dictionary::{self, Entry};

/// Entries that are read at a time.
const ENTRIES_PER_RUN: usize = 16;

/// Makes lost leaves of the dictionary again, and takes out the rows that cannot be read.
pub(super) async fn mend_dictionary(pages: &Pages) -> Result<(), StoreError> {
    let tree = dictionary::tree();
    let mut mend = Mend::new(tree);
    while let Some(looked) = until_done(|| mend.step(pages)).await? {
        if !looked.is_whole() {
            let page = looked.page.0;
            let why = looked.unreadable.map(|error| error.to_string());
            let why = why.or_else(|| looked.faults.into_iter().next());
            error!(
                page,
                why, "a page of the dictionary is made again: what it named may be lost"
            );
        }
    }
    for (key, failure) in unreadable_rows(pages).await? {
        let row = key.escape_ascii().to_string();
        error!(row, %failure, "the dictionary loses a row, with the table or database it named");
        let is_removed = until_done(|| tree.modify(pages, &key, |_| Ok(Edit::Remove))).await?;
        assert!(is_removed, "the row was read a moment ago");
    }
    Ok(())
}

/// The keys of the rows that cannot be read, and why.
async fn unreadable_rows(pages: &Pages) -> Result<Vec<(Vec<u8>, StoreError)>, StoreError> {
    let mut unreadable = Vec::new();
    let (mut place, mut run) = (Place::first(), Run::new());
    while place.from != From::Nothing {
        let read = || dictionary::tree().read_run(pages, &place, ENTRIES_PER_RUN, &mut run);
        until_done(read).await?;
        for number in 0..run.len() {
            let (key, payload) = run.entry(number);
            match read_row(pages, payload).await {
                // What the disk fails to read may be there at the next start.
                Err(failure @ StoreError::Damaged { .. }) => {
                    unreadable.push((key.to_vec(), failure));
                }
                read => read?,
            }
        }
        std::mem::swap(&mut place, &mut run.next);
    }
    Ok(unreadable)
}

async fn read_row(pages: &Pages, payload: &[u8]) -> Result<(), StoreError> {
    let (header, body) = RowHeader::split(payload).ok_or_else(damaged_dictionary)?;
    if header.is_deleted {
        return Ok(());
    }
    let row = dictionary_row(pages, header, body).await?;
    match dictionary::decode(&row).map_err(|_| damaged_dictionary())? {
        Entry::Table(entry) => check_entry(entry).map(drop),
        Entry::Statistics(_) | Entry::Database { .. } => Ok(()),
    }
}
