//! The state of a simulated disk, and how time and crashes change it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use sync::Mutex;

use super::content::{Content, units};
use super::late::LateWork;
use super::names::{Inode, Names};
use crate::clock::Instant;
use crate::disk::{DiskError, DiskErrorKind, IoResult, WriteDurability};
use crate::{IoBuffer, Random};

/// How a simulated disk behaves. The default is endless, fast, and faultless until a crash.
#[derive(Debug, Clone)]
pub struct DiskOptions {
    /// Decides everything random.
    pub seed: u64,
    /// Largest sum of the lengths of all files (F4).
    pub capacity_bytes: u64,
    /// How long an operation takes (F5). If both are 0, it is done when its future is first polled,
    /// and no clock has to move.
    pub delay: Range<Duration>,
    /// EIO (F3).
    pub faults: Faults,
    /// Flushes that are confirmed and not done, in a thousand (F7).
    pub lost_flush_permille: u32,
}

impl Default for DiskOptions {
    fn default() -> Self {
        Self {
            seed: 0,
            capacity_bytes: u64::MAX,
            delay: Duration::ZERO..Duration::ZERO,
            faults: Faults::default(),
            lost_flush_permille: 0,
        }
    }
}

/// Chances of EIO, in a thousand operations of the kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Faults {
    /// Reads that fail.
    pub read_permille: u32,
    /// Writes that fail, having written any of their units.
    pub write_permille: u32,
    /// Syncs that fail, after which some un-synced writes are lost for good.
    pub sync_permille: u32,
}

/// How often a disk has misbehaved, in this incarnation and those before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// Reads that failed (F3).
    pub reads_failed: u64,
    /// Writes that failed (F3).
    pub writes_failed: u64,
    /// Syncs that failed (F3).
    pub syncs_failed: u64,
    /// Operations that found no room (F4).
    pub full: u64,
    /// Writes under way at a crash (F1).
    pub writes_interrupted: u64,
    /// Un-synced writes that a crash has lost whole (F1).
    pub writes_lost: u64,
    /// Un-synced writes of which a crash has left a part (F1).
    pub writes_torn: u64,
    /// Un-synced writes that survived a crash that has lost an earlier one of the file (F1).
    pub writes_reordered: u64,
    /// Lengths that a crash has lost (F1).
    pub lengths_lost: u64,
    /// Steps of names that a crash has lost (F2).
    pub names_lost: u64,
    /// Bits that turned (F6).
    pub bits_turned: u64,
    /// Flushes that were confirmed and not done (F7).
    pub flushes_lost: u64,
}

/// Where an operation leaves its result for its future.
pub(super) type Outbox<T> = Arc<Mutex<Option<T>>>;

/// What an operation under way will do.
pub(super) enum Action {
    Read {
        offset: u64,
        buffer: IoBuffer,
        outbox: Outbox<IoResult>,
    },
    Write {
        offset: u64,
        buffer: IoBuffer,
        durability: WriteDurability,
        outbox: Outbox<IoResult>,
    },
    Sync {
        before: u64,
        outbox: Outbox<Result<(), DiskError>>,
    },
}

/// The whole disk.
pub(super) struct World {
    /// `false` after a crash: this incarnation is over.
    pub(super) is_alive: bool,
    pub(super) options: DiskOptions,
    pub(super) random: Random,
    pub(super) names: Names,
    /// Every file of this incarnation, with a name or without.
    pub(super) files: BTreeMap<Inode, Inodal>,
    /// Operations under way by completion time and start order.
    under_way: BTreeMap<(Instant, u64), (Inode, Action)>,
    /// Counts operations, completed writes and files: one order for all.
    number: u64,
    /// Work for helper threads, while it is held back.
    pub(super) held: Option<Vec<LateWork>>,
    /// How often it has misbehaved.
    pub(super) counts: FaultCounts,
    /// Whether the process has no descriptor for one more file.
    pub(super) lacks_descriptors: bool,
}

/// One file.
#[derive(Default)]
pub(super) struct Inodal {
    /// What programs read.
    pub(super) seen: Content,
    /// What the medium surely has.
    durable: Content,
    /// Completed changes that are not durable, oldest first; see `Change`.
    changes: Vec<Change>,
    /// Held by the open file that has locked it.
    pub(super) lock: Weak<()>,
}

/// A completed change of a file that a crash may undo. A durable one is in this list only if an
/// older one overlaps it, because the two must be applied in order.
#[derive(Clone)]
struct Change {
    number: u64,
    is_durable: bool,
    what: What,
}

#[derive(Clone)]
enum What {
    Write { offset: u64, bytes: Box<[u8]> },
    Length(u64),
}

impl World {
    pub(super) fn new(options: DiskOptions) -> Self {
        Self {
            is_alive: true,
            random: Random::new(options.seed),
            options,
            names: Names::default(),
            files: BTreeMap::new(),
            under_way: BTreeMap::new(),
            number: 0,
            held: None,
            counts: FaultCounts::default(),
            lacks_descriptors: false,
        }
    }

    /// Takes a descriptor for a call on `path`.
    pub(super) fn take_descriptor(
        &self,
        operation: &'static str,
        path: &Path,
    ) -> Result<(), DiskError> {
        if !self.lacks_descriptors {
            return Ok(());
        }
        Err(DiskError {
            kind: DiskErrorKind::NoDescriptor,
            operation,
            path: Some(path.to_path_buf()),
            os_error: EMFILE,
        })
    }

    /// The next number of the common order.
    pub(super) fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    /// Starts an operation. Returns the time at which it completes.
    pub(super) fn start(&mut self, now: Instant, inode: Inode, action: Action) -> Instant {
        let Range { start, end } = self.options.delay.clone();
        let spread = u64::try_from(end.saturating_sub(start).as_nanos()).unwrap_or(u64::MAX);
        let extra = if spread == 0 {
            0
        } else {
            self.random.below(spread)
        };
        let due = now + start + Duration::from_nanos(extra);
        let number = self.next_number();
        self.under_way.insert((due, number), (inode, action));
        due
    }

    /// Completes every operation whose time has come.
    pub(super) fn settle(&mut self, now: Instant) {
        while let Some(entry) = self.under_way.first_entry() {
            if now < entry.key().0 {
                break;
            }
            let (inode, action) = entry.remove();
            self.complete(inode, action);
        }
    }

    fn complete(&mut self, inode: Inode, action: Action) {
        match action {
            Action::Read {
                offset,
                mut buffer,
                outbox,
            } => {
                let result = if self.random.chance(self.options.faults.read_permille) {
                    self.counts.reads_failed += 1;
                    Err(failed("read"))
                } else {
                    Ok(self.file(inode).seen.read(offset, &mut buffer))
                };
                *outbox.lock() = Some((buffer, result));
            }
            Action::Write {
                offset,
                buffer,
                durability,
                outbox,
            } => {
                let result = self.complete_write(inode, offset, &buffer, durability);
                *outbox.lock() = Some((buffer, result));
            }
            Action::Sync { before, outbox } => {
                let result = self.complete_sync(inode, before);
                *outbox.lock() = Some(result);
            }
        }
    }

    pub(super) fn complete_write(
        &mut self,
        inode: Inode,
        offset: u64,
        bytes: &[u8],
        durability: WriteDurability,
    ) -> Result<usize, DiskError> {
        let end = offset + stdx::to_u64(bytes.len());
        let growth = end.saturating_sub(self.file(inode).seen.length());
        self.make_room("write", growth)?;
        let number = self.next_number();
        if self.random.chance(self.options.faults.write_permille) {
            self.counts.writes_failed += 1;
            for (at, range) in units(offset, bytes.len(), 512) {
                if self.random.coin() {
                    let what = What::Write {
                        offset: at,
                        bytes: bytes[range].into(),
                    };
                    self.file(inode).change(Change {
                        number,
                        is_durable: false,
                        what,
                    });
                }
            }
            return Err(failed("write"));
        }
        let is_durable = durability == WriteDurability::Sync && !self.loses_flush();
        let what = What::Write {
            offset,
            bytes: bytes.into(),
        };
        self.file(inode).change(Change {
            number,
            is_durable,
            what,
        });
        Ok(bytes.len())
    }

    fn complete_sync(&mut self, inode: Inode, before: u64) -> Result<(), DiskError> {
        if self.random.chance(self.options.faults.sync_permille) {
            let random = &mut self.random;
            let file = self
                .files
                .get_mut(&inode)
                .expect("an operation's file exists");
            file.changes
                .retain(|change| change.is_durable || random.coin());
            self.counts.syncs_failed += 1;
            return Err(failed("sync"));
        }
        if self.loses_flush() {
            return Ok(());
        }
        self.file(inode).make_durable(before);
        Ok(())
    }

    /// Whether a flush is only confirmed (F7). Draws nothing from disks that never do that.
    fn loses_flush(&mut self) -> bool {
        let permille = self.options.lost_flush_permille;
        let is_lost = permille != 0 && self.random.chance(permille);
        self.counts.flushes_lost += u64::from(is_lost);
        is_lost
    }

    /// Cuts or extends a file at once.
    pub(super) fn set_length(&mut self, inode: Inode, length: u64) -> Result<(), DiskError> {
        let growth = length.saturating_sub(self.file(inode).seen.length());
        self.make_room("set the length of", growth)?;
        let number = self.next_number();
        let what = What::Length(length);
        self.file(inode).change(Change {
            number,
            is_durable: false,
            what,
        });
        Ok(())
    }

    pub(super) fn used_bytes(&self) -> u64 {
        self.files.values().map(|file| file.seen.length()).sum()
    }

    fn make_room(&mut self, operation: &'static str, growth: u64) -> Result<(), DiskError> {
        let used = self.used_bytes();
        if growth != 0 && self.options.capacity_bytes < used.saturating_add(growth) {
            let kind = DiskErrorKind::Full;
            self.counts.full += 1;
            return Err(DiskError {
                kind,
                operation,
                path: None,
                os_error: ENOSPC,
            });
        }
        Ok(())
    }

    pub(super) fn file(&mut self, inode: Inode) -> &mut Inodal {
        self.files
            .get_mut(&inode)
            .expect("an operation's file exists")
    }

    /// Ends this incarnation by a loss of power. Returns what the next one finds (F1, F2).
    pub(super) fn crash(&mut self, now: Instant) -> Self {
        self.settle(now);
        let unit_bytes = if self.random.coin() { 512 } else { 4096 };
        // Some crashes lose nearly all, some nearly nothing, most something in between.
        let survival_permille = [0, 100, 500, 900, 1000][self.random.index(5)];
        for (_, (inode, action)) in std::mem::take(&mut self.under_way) {
            if let Action::Write { offset, buffer, .. } = action {
                self.counts.writes_interrupted += 1;
                let number = self.next_number();
                let what = What::Write {
                    offset,
                    bytes: buffer[..].into(),
                };
                let file = self.file(inode);
                file.changes.push(Change {
                    number,
                    is_durable: false,
                    what,
                });
            }
        }
        let (names, names_lost) = self.names.crash(&mut self.random);
        self.counts.names_lost += names_lost;
        let mut survivor = self.successor(names);
        for (inode, file) in &mut survivor.files {
            let old = self
                .files
                .get(inode)
                .expect("a surviving file was there before");
            let odds = (unit_bytes, survival_permille);
            let content = old.crash(&mut self.random, odds, &mut survivor.counts);
            *file = Inodal {
                seen: content.clone(),
                durable: content,
                ..Inodal::default()
            };
        }
        survivor
    }

    /// Ends this incarnation by the death of the process alone: what it wrote stays.
    pub(super) fn kill(&mut self, now: Instant) -> Self {
        self.settle(now);
        for (_, (inode, action)) in std::mem::take(&mut self.under_way) {
            if let Action::Write { offset, buffer, .. } = action
                && self.random.coin()
            {
                let number = self.next_number();
                let what = What::Write {
                    offset,
                    bytes: buffer[..].into(),
                };
                self.file(inode).change(Change {
                    number,
                    is_durable: false,
                    what,
                });
            }
        }
        let mut survivor = self.successor(self.names.clone());
        // A crash may bring back what has lost its name.
        for inode in self.names.possible_inodes() {
            survivor.files.entry(inode).or_default();
        }
        for (inode, file) in &mut survivor.files {
            let old = self
                .files
                .get(inode)
                .expect("a surviving file was there before");
            file.seen = old.seen.clone();
            file.durable = old.durable.clone();
            file.changes.clone_from(&old.changes);
        }
        survivor
    }

    /// The same files in another world.
    pub(super) fn copy(&self, seed: u64) -> Self {
        assert!(self.under_way.is_empty(), "a disk is copied at rest");
        let files = self.files.iter().map(|(inode, file)| {
            let copy = Inodal {
                seen: file.seen.clone(),
                durable: file.durable.clone(),
                changes: file.changes.clone(),
                lock: Weak::new(),
            };
            (*inode, copy)
        });
        Self {
            is_alive: true,
            options: self.options.clone(),
            random: Random::new(seed),
            names: self.names.clone(),
            files: files.collect(),
            under_way: BTreeMap::new(),
            number: self.number,
            held: None,
            counts: self.counts,
            lacks_descriptors: false,
        }
    }

    /// A world with these names and their files, still empty.
    fn successor(&mut self, names: Names) -> Self {
        self.is_alive = false;
        let files = names
            .inodes()
            .map(|inode| (inode, Inodal::default()))
            .collect();
        Self {
            is_alive: true,
            options: self.options.clone(),
            random: Random::new(self.random.next_u64()),
            names,
            files,
            under_way: BTreeMap::new(),
            number: self.number,
            held: None,
            counts: self.counts,
            lacks_descriptors: false,
        }
    }

    /// Flips one bit of a file, on the medium and for readers (F6).
    pub(super) fn damage(&mut self, path: &Path, offset: u64, bit: u32) {
        let inode = self
            .names
            .find(path)
            .expect("the test names a file that is there");
        self.counts.bits_turned += 1;
        let file = self.file(inode);
        for content in [&mut file.seen, &mut file.durable] {
            let mut byte = [0];
            if content.read(offset, &mut byte) == 1 {
                byte[0] ^= 1 << (bit % 8);
                content.write(offset, &byte);
            }
        }
    }
}

impl Inodal {
    fn change(&mut self, change: Change) {
        change.what.apply(&mut self.seen);
        if change.is_durable {
            // Nothing that it covers can come back.
            self.changes
                .retain(|older| !change.what.covers(&older.what));
        }
        let overlaps = self
            .changes
            .iter()
            .any(|older| older.what.overlaps(&change.what));
        if change.is_durable && !overlaps {
            change.what.apply(&mut self.durable);
        } else {
            self.changes.push(change);
        }
    }

    /// Makes the changes that completed before `before` durable.
    fn make_durable(&mut self, before: u64) {
        let count = self
            .changes
            .partition_point(|change| change.number < before);
        for change in self.changes.drain(..count) {
            change.what.apply(&mut self.durable);
        }
    }

    /// What a crash leaves. Each unit survives with the given chance.
    fn crash(
        &self,
        random: &mut Random,
        (unit_bytes, survival_permille): (u64, u32),
        counts: &mut FaultCounts,
    ) -> Content {
        let mut content = self.durable.clone();
        let mut has_lost = false;
        for change in &self.changes {
            if change.is_durable {
                change.what.apply(&mut content);
                continue;
            }
            match &change.what {
                What::Write { offset, bytes } => {
                    let (mut kept, mut lost) = (0, 0);
                    for (at, range) in units(*offset, bytes.len(), unit_bytes) {
                        if random.chance(survival_permille) {
                            content.write(at, &bytes[range]);
                            kept += 1;
                        } else {
                            lost += 1;
                        }
                    }
                    counts.writes_lost += u64::from(kept == 0);
                    counts.writes_torn += u64::from(kept != 0 && lost != 0);
                    counts.writes_reordered += u64::from(kept != 0 && has_lost);
                    has_lost |= kept == 0;
                }
                What::Length(length) if random.chance(survival_permille) => {
                    content.set_length(*length);
                }
                What::Length(_) => counts.lengths_lost += 1,
            }
        }
        content
    }
}

impl What {
    fn apply(&self, content: &mut Content) {
        match self {
            Self::Write { offset, bytes } => content.write(*offset, bytes),
            Self::Length(length) => content.set_length(*length),
        }
    }

    fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Write { offset, bytes },
                Self::Write {
                    offset: start,
                    bytes: others,
                },
            ) => {
                *offset < start + stdx::to_u64(others.len())
                    && *start < offset + stdx::to_u64(bytes.len())
            }
            _ => true,
        }
    }

    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Write { offset, bytes },
                Self::Write {
                    offset: start,
                    bytes: others,
                },
            ) => {
                let (end, others_end) = (
                    offset + stdx::to_u64(bytes.len()),
                    start + stdx::to_u64(others.len()),
                );
                offset <= start && others_end <= end
            }
            _ => false,
        }
    }
}

const EIO: i32 = 5;
const ENOSPC: i32 = 28;
const EMFILE: i32 = 24;

pub(super) fn failed(operation: &'static str) -> DiskError {
    DiskError {
        kind: DiskErrorKind::Failed,
        operation,
        path: None,
        os_error: EIO,
    }
}
