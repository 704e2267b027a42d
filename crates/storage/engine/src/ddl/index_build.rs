//! Filling new indexes of a table whose rows do not change meanwhile.
//!
//! Entries are collected, sorted and inserted in portions, so most go to the end of a leaf and
//! memory stays bounded. Sorting a whole portion takes half a second, so it is sorted in parts,
//! which are merged as they are inserted. A unique index finds a duplicate next to the entry's
//! place.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

use btree::change::Edit;
use btree::{From, Place, Run, Tree};
use format::row_header::{EntryHeader, RowHeader};
use store::{Interrupt, StoreError};

use crate::lob_memo::LobMemo;
use crate::row::entries::own_length;
use crate::schema::table_shape::{EntryKey, IndexShape, TableShape};
use crate::worker::Worker;

/// Bytes of keys that are sorted at a time.
const PORTION_BYTES: usize = 32 << 20;
/// Entries sorted before other tasks run: some 100 to 200 us.
const PART_ENTRIES: usize = 1024;
/// Rows read at a time.
const RUN_LIMIT: usize = 64;
/// Rows after which the build gives way to other tasks.
const ROWS_PER_TURN: usize = 256;

impl Worker {
    /// Fills the trees at these positions in the table's list of trees.
    pub(crate) async fn fill_indexes(
        self: &Rc<Self>,
        table: &TableShape,
        trees: &[usize],
    ) -> Result<(), StoreError> {
        assert!(
            trees.iter().all(|&position| 0 < position),
            "the tree of the rows is filled by statements alone"
        );
        let indexes: Vec<&IndexShape> = trees
            .iter()
            .map(|&position| &table.secondary[position - 1])
            .collect();
        if indexes.is_empty() {
            return Ok(());
        }
        let mut portions: Vec<Vec<EntryKey>> = indexes.iter().map(|_| Vec::new()).collect();
        let (mut place, mut run) = (Place::first(), Run::new());
        let (mut bytes, mut rows) = (0, 0);
        while place.from != From::Nothing {
            let tree = table.clustered;
            self.until_done(|| tree.read_run(&self.pages, &place, RUN_LIMIT, &mut run))
                .await?;
            for number in 0..run.len() {
                let (key, version) = run.entry(number);
                let Some(row) = self.live_row(table, version).await? else {
                    continue;
                };
                for (index, portion) in indexes.iter().zip(&mut portions) {
                    let entry = table.entry_of(index, &row, key)?;
                    bytes += entry.bytes.len() + size_of::<EntryKey>();
                    portion.push(entry);
                }
            }
            rows += run.len();
            if ROWS_PER_TURN <= rows {
                rows = 0;
                store::Suspend::turn().await;
            }
            if PORTION_BYTES < bytes {
                bytes = 0;
                self.insert_portions(&indexes, &mut portions).await?;
            }
            std::mem::swap(&mut place, &mut run.next);
        }
        self.insert_portions(&indexes, &mut portions).await
    }

    /// The row of a version, or `None` if it is deleted.
    async fn live_row(
        &self,
        table: &TableShape,
        version: &[u8],
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let what = || StoreError::damaged("a row without a header");
        let (header, body) = RowHeader::split(version).ok_or_else(what)?;
        if header.is_deleted {
            return Ok(None);
        }
        if !header.is_spilled {
            return Ok(Some(body.to_vec()));
        }
        let mut memo = LobMemo::default();
        let read = || {
            let mut row = Vec::new();
            memo.read(&self.pages, table.space(), body, &mut row)?;
            Ok(Some(row))
        };
        self.until_done(read).await
    }

    async fn insert_portions(
        &self,
        indexes: &[&IndexShape],
        portions: &mut [Vec<EntryKey>],
    ) -> Result<(), StoreError> {
        for (index, portion) in indexes.iter().zip(portions) {
            let mut parts = Vec::new();
            while let Some(part) = take_sorted(portion) {
                parts.push(part);
                store::Suspend::turn().await;
            }
            for (number, entry) in merged(parts).enumerate() {
                self.insert_built(index, &entry).await?;
                if number % ROWS_PER_TURN == 0 {
                    store::Suspend::turn().await;
                }
            }
        }
        Ok(())
    }

    async fn insert_built(&self, index: &IndexShape, entry: &EntryKey) -> Result<(), StoreError> {
        let limit = btree::key_bytes_max(self.pages.page_bytes());
        if limit < entry.bytes.len() {
            return Err(StoreError::KeyTooLarge {
                bytes: entry.bytes.len(),
                limit,
            });
        }
        if index.is_unique && !entry.has_null && self.has_own(index.tree, entry).await? {
            return Err(StoreError::DuplicateKey {
                index: index.position,
            });
        }
        let header = EntryHeader {
            own_length: own_length(entry),
            ..EntryHeader::default()
        }
        .encode();
        let insert = || -> Result<bool, Interrupt> {
            index.tree.modify(&self.pages, &entry.bytes, |before| {
                if before.is_some() {
                    return Err(StoreError::damaged("a scan has met a row twice").into());
                }
                Ok(Edit::Put(header.to_vec()))
            })
        };
        self.until_done(insert).await?;
        Ok(())
    }

    /// Whether the tree has an entry with the same own part.
    async fn has_own(&self, tree: Tree, entry: &EntryKey) -> Result<bool, StoreError> {
        let mut place = Place::new(From::AtLeast, entry.own());
        let mut run = Run::new();
        while place.from != From::Nothing {
            self.until_done(|| tree.read_run(&self.pages, &place, 1, &mut run))
                .await?;
            if !run.is_empty() {
                return Ok(run.entry(0).0.starts_with(entry.own()));
            }
            place = run.next.clone();
        }
        Ok(false)
    }
}

/// Takes the last entries of a portion, sorted in descending order; `None` if it is empty.
fn take_sorted(portion: &mut Vec<EntryKey>) -> Option<Vec<EntryKey>> {
    if portion.is_empty() {
        return None;
    }
    let mut part = portion.split_off(portion.len().saturating_sub(PART_ENTRIES));
    part.sort_unstable_by(|left, right| right.cmp(left));
    Some(part)
}

/// The entries of all parts, in order.
fn merged(mut parts: Vec<Vec<EntryKey>>) -> impl Iterator<Item = EntryKey> {
    let heads = parts.iter_mut().enumerate();
    let mut firsts: BinaryHeap<_> = heads
        .filter_map(|(number, part)| Some(Reverse((part.pop()?, number))))
        .collect();
    std::iter::from_fn(move || {
        let Reverse((entry, number)) = firsts.pop()?;
        let next = parts.get_mut(number).and_then(Vec::pop);
        firsts.extend(next.map(|next| Reverse((next, number))));
        Some(entry)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_portion_is_sorted_in_parts() {
        let entry = |number: usize| EntryKey {
            bytes: (number * 7919 % 10_007).to_be_bytes().to_vec(),
            ..EntryKey::default()
        };
        for count in [0, 1, PART_ENTRIES, 10_000] {
            let all: Vec<_> = (0..count).map(entry).collect();
            let (mut portion, mut parts) = (all.clone(), Vec::new());
            while let Some(part) = take_sorted(&mut portion) {
                assert!(part.len() <= PART_ENTRIES);
                parts.push(part);
            }
            assert_eq!(parts.len(), count.div_ceil(PART_ENTRIES));
            let mut sorted = all;
            sorted.sort();
            assert!(merged(parts).eq(sorted));
        }
    }
}
