//! Where the log of each earlier life of the server ended, to recognise pages of a lost future.
//!
//! Layout: `docs/formats/control.md`. A life writes a page to its file only when the log of all its
//! changes is durable, and puts its epoch into the page. So a page of epoch `e` has at most the LSN
//! at which the log of `e` ended, as the next life found it. If a page has a higher LSN, the next
//! life did not find all of the log: a durable part is lost.
//!
//! (E1) Epochs ascend along the list.
//! (E2) An entry counts for its own epoch and for those between the entry before and itself. Ends
//! never fall from life to life, so the list may drop its oldest entry. Pages of that life are then
//! compared with a later end. That refuses no sound page, but finds less.

use crate::codec::{Reader, Truncated};
use crate::ids::Lsn;
use crate::log::{EPOCH_MAX, LOG_COUNT_MAX};

/// Lives whose end is kept: half a year of a server that starts daily. They take less than half of
/// a control block.
pub const LIVES_MAX: usize = 128;

/// Bytes of one entry in the control file.
pub const LIFE_BYTES: usize = 12;

/// The ends of earlier lives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LifeEnds {
    /// Epoch, and where its log ended (E1).
    entries: Vec<(u32, Lsn)>,
}

impl LifeEnds {
    /// Notes where the log of the latest life ended. A full list drops its oldest entry (E2).
    ///
    /// # Panics
    /// If an epoch in the list is not earlier.
    pub fn push(&mut self, epoch: u32, end: Lsn) {
        let last = self.entries.last();
        assert!(
            last.is_none_or(|&(before, _)| before < epoch),
            "epochs ascend"
        );
        if self.entries.len() == LIVES_MAX {
            self.entries.remove(0);
        }
        self.entries.push((epoch, end));
    }

    /// The highest LSN that a page written by a life may have. `None` if that life's end is
    /// unknown.
    pub fn newest_lsn(&self, epoch: u32) -> Option<Lsn> {
        let at = self.entries.partition_point(|&(known, _)| known < epoch);
        self.entries.get(at).map(|&(_, end)| end)
    }

    /// Number of ends that are kept.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no life has ended yet.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether a server can have written the list.
    pub fn is_possible(&self) -> bool {
        let ascends = self.entries.is_sorted_by(|(a, _), (b, _)| a < b);
        let fits = |&(epoch, end): &(u32, Lsn)| epoch <= EPOCH_MAX && end.0 <= LOG_COUNT_MAX;
        ascends && self.entries.len() <= LIVES_MAX && self.entries.iter().all(fits)
    }

    /// Appends the entries to a control block.
    pub(crate) fn encode(&self, bytes: &mut Vec<u8>) {
        for (epoch, end) in &self.entries {
            bytes.extend_from_slice(&epoch.to_le_bytes());
            bytes.extend_from_slice(&end.0.to_le_bytes());
        }
    }

    /// Reads `count` entries.
    pub(crate) fn decode(reader: &mut Reader<'_>, count: u32) -> Result<Self, Truncated> {
        let count = usize::try_from(count).map_err(|_| Truncated)?;
        if LIVES_MAX < count {
            return Err(Truncated);
        }
        let entry = |_| Ok((reader.u32()?, reader.lsn()?));
        let entries = (0..count).map(entry).collect::<Result<_, Truncated>>()?;
        Ok(Self { entries })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_held_against_the_end_of_their_life() {
        let mut lives = LifeEnds::default();
        assert_eq!(lives.newest_lsn(0), None);
        lives.push(1, Lsn(100));
        lives.push(4, Lsn(400));
        let newest: Vec<_> = (0..6).map(|epoch| lives.newest_lsn(epoch)).collect();
        let (first, second) = (Some(Lsn(100)), Some(Lsn(400)));
        assert_eq!(newest, [first, first, second, second, second, None]);
        assert!(lives.is_possible());
    }

    /// Below, at and above the limit: the oldest entry is merged into the next.
    #[test]
    fn the_list_is_bounded() {
        let mut lives = LifeEnds::default();
        let limit = u32::try_from(LIVES_MAX).unwrap();
        for epoch in 1..=limit {
            assert_eq!(lives.newest_lsn(1), (epoch != 1).then_some(Lsn(10)));
            lives.push(epoch, Lsn(u64::from(epoch) * 10));
        }
        assert_eq!(
            (lives.len(), lives.newest_lsn(1)),
            (LIVES_MAX, Some(Lsn(10)))
        );
        lives.push(limit + 1, Lsn(5000));
        assert_eq!(
            (lives.len(), lives.newest_lsn(1)),
            (LIVES_MAX, Some(Lsn(20)))
        );
        assert!(lives.is_possible());
        let mut bytes = Vec::new();
        lives.encode(&mut bytes);
        assert_eq!(bytes.len(), LIVES_MAX * LIFE_BYTES);
        let again = LifeEnds::decode(&mut Reader::new(&bytes), limit);
        assert_eq!(again, Ok(lives));
        bytes.extend_from_slice(&[0; LIFE_BYTES]);
        let longer = LifeEnds::decode(&mut Reader::new(&bytes), limit + 1);
        assert_eq!(longer, Err(Truncated));
    }

    #[test]
    fn lists_that_no_server_writes_are_refused() {
        let with = |entries: &[(u32, u64)]| {
            let entries = entries.iter().map(|&(epoch, end)| (epoch, Lsn(end)));
            let entries = entries.collect();
            LifeEnds { entries }.is_possible()
        };
        assert!(with(&[(1, 5), (2, 5), (EPOCH_MAX, LOG_COUNT_MAX)]));
        assert!(!with(&[(2, 5), (2, 5)]));
        assert!(!with(&[(2, 5), (1, 5)]));
        assert!(!with(&[(EPOCH_MAX + 1, 5)]));
        assert!(!with(&[(1, LOG_COUNT_MAX + 1)]));
    }
}
