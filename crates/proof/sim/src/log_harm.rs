//! Damage to the log on a disk at rest, and its required consequences.
//!
//! The blocks of the log are read here as `docs/formats/log.md` describes them, independently of
//! `wal`, to know which damage must be reported. That is damage to a block that a later block, or
//! the control file, claims to be durable. It is also a segment, from the checkpoint's to that of
//! the log's end, that is missing, empty or cut. Damage after the end of the log has no effect.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use env::{Disk, FileAccess, IoBuffer, OpenOptions, Random, WriteDurability};
use format::control::CheckpointRecord;
use format::log::{LOG_BLOCK_BYTES, LogBlockHeader, open_log_block};
use wal::OnLogLoss;

use crate::world::{DIRECTORY, World, WorldOptions};

/// The most steps of an accepting start before it crashes.
const STEPS_TO_CRASH_MAX: u64 = 600;

/// A damage to the log.
#[derive(Debug, Clone)]
pub(crate) struct Harm {
    kind: Kind,
    must_be_told: bool,
}

#[derive(Debug, Clone)]
enum Kind {
    /// A bit of a block flips.
    Rot {
        path: PathBuf,
        offset: u64,
        bit: u32,
    },
    /// Blocks become zeroes.
    Zeroes {
        path: PathBuf,
        offset: u64,
        count: u64,
    },
    /// Segments are removed.
    Missing(Vec<PathBuf>),
    /// A segment is truncated.
    Cut { path: PathBuf, length: u64 },
    /// A segment is replaced by another.
    Stale { from: PathBuf, to: PathBuf },
}

/// The log on the disk.
struct Found {
    record: CheckpointRecord,
    /// Blocks by position, of the checkpoint's life or a later one, from its block on.
    blocks: BTreeMap<u64, LogBlockHeader>,
    segments: Vec<u64>,
}

impl Found {
    fn read(world: &World) -> Option<Self> {
        let disk = world.disk.clone();
        world.run(async move {
            let control = read(&disk, &Path::new(DIRECTORY).join("control.pdc")).await?;
            let record = CheckpointRecord::newest(&control).ok()?;
            let directory = Path::new(DIRECTORY).join("log");
            let (mut blocks, mut segments) = (BTreeMap::new(), Vec::new());
            let length = u64::from(record.segment_blocks);
            for name in disk.list(&directory).ok()? {
                let digits = name.to_str()?.get(4..20)?.to_owned();
                let segment = u64::from_str_radix(&digits, 16).ok()?;
                segments.push(segment);
                let bytes = read(&disk, &directory.join(&name)).await?;
                let numbers = segment * length..;
                for (number, block) in numbers.zip(bytes.chunks_exact(LOG_BLOCK_BYTES)) {
                    let Ok((header, _)) = open_log_block(block) else {
                        continue;
                    };
                    let is_live = record.block_no <= number && record.block_epoch <= header.epoch;
                    if header.block_no == number && is_live {
                        blocks.insert(number, header);
                    }
                }
            }
            Some(Self {
                record,
                blocks,
                segments,
            })
        })
    }

    /// The blocks before this one are known to be durable.
    fn known_durable(&self) -> u64 {
        let claims = self.blocks.values().map(LogBlockHeader::durable_block);
        claims.fold(self.record.durable_block, u64::max)
    }

    /// The same without the claims of some blocks.
    fn known_without(&self, first: u64, count: u64) -> u64 {
        let others = self.blocks.range(..first);
        let others = others.chain(self.blocks.range(first + count..));
        let claims = others.map(|(_, header)| header.durable_block());
        claims.fold(self.record.durable_block, u64::max)
    }

    fn path(&self, block: u64) -> PathBuf {
        path_of(block / u64::from(self.record.segment_blocks))
    }

    fn offset(&self, block: u64) -> u64 {
        block % u64::from(self.record.segment_blocks) * stdx::to_u64(LOG_BLOCK_BYTES)
    }
}

fn path_of(segment: u64) -> PathBuf {
    Path::new(DIRECTORY).join(format!("log/log_{segment:016x}.pdl"))
}

impl Harm {
    /// Draws a damage; `None` if there is no log to damage.
    pub(crate) fn draw(world: &World, random: &mut Random) -> Option<Self> {
        let found = Found::read(world)?;
        if found.record.is_closed {
            return None;
        }
        let (first, end) = (found.record.block_no, found.known_durable());
        let choice = random.below(8);
        if choice < 4 {
            // In the middle of the log.
            let block = first + random.below(end.checked_sub(first).filter(|&n| n != 0)?);
            let (path, offset) = (found.path(block), found.offset(block));
            let kind = if choice < 2 {
                let offset = offset + random.below(stdx::to_u64(LOG_BLOCK_BYTES));
                let bit = stdx::low_u32(random.below(8));
                Kind::Rot { path, offset, bit }
            } else {
                let length = u64::from(found.record.segment_blocks);
                let mut count = 1 + random.below(length - block % length);
                // In the middle: another block remains that claims the first one. The first is
                // known in any case.
                while found.known_without(block, count) <= block {
                    count -= 1;
                }
                Kind::Zeroes {
                    path,
                    offset,
                    count,
                }
            };
            return Some(Self {
                kind,
                must_be_told: true,
            });
        }
        Some(found.draw_segment(choice, random))
    }

    /// Whether a start must report it.
    pub(crate) fn must_be_told(&self) -> bool {
        self.must_be_told
    }

    /// Applies it.
    pub(crate) fn strike(&self, world: &World) {
        let disk = &world.disk;
        match &self.kind {
            Kind::Rot { path, offset, bit } => disk.damage(path, *offset, *bit),
            Kind::Zeroes {
                path,
                offset,
                count,
            } => {
                let bytes = stdx::to_usize(*count) * LOG_BLOCK_BYTES;
                let file = open(disk, path).expect("the segment was read");
                let zeroes = IoBuffer::zeroed(bytes);
                let write = disk.write(&file, *offset, zeroes, WriteDurability::Sync);
                world.run(write).1.expect("the disk has no faults now");
            }
            Kind::Missing(paths) => {
                for path in paths {
                    disk.remove(path).expect("the segment was listed");
                }
            }
            Kind::Cut { path, length } => {
                let file = open(disk, path).expect("the segment was read");
                disk.set_length(&file, *length).expect("a file can be cut");
            }
            Kind::Stale { from, to } => {
                disk.rename(from, to).expect("both were listed");
            }
        }
    }
}

impl Found {
    /// Damage to a whole segment, live or not.
    fn draw_segment(&self, choice: u64, random: &mut Random) -> Harm {
        let length = u64::from(self.record.segment_blocks);
        let first = self.record.block_no / length;
        // The next block follows the known ones, or is in the same segment.
        let last = self.known_durable() / length;
        let live = |segment: u64| (first..=last).contains(&segment);
        let draw = |random: &mut Random| {
            let at = random.index(self.segments.len());
            self.segments.get(at).copied().unwrap_or(first)
        };
        let segment = draw(random);
        let mut must_be_told = live(segment);
        let kind = match choice {
            4 => {
                must_be_told = true;
                Kind::Missing(self.segments.iter().copied().map(path_of).collect())
            }
            5 => Kind::Missing(vec![path_of(segment)]),
            6 => {
                let whole = length * stdx::to_u64(LOG_BLOCK_BYTES);
                let length = if random.coin() {
                    0
                } else {
                    random.below(whole)
                };
                Kind::Cut {
                    path: path_of(segment),
                    length,
                }
            }
            _ => {
                let from = draw(random);
                // If another segment replaces the last blocks, which no other block claims, it
                // looks like the end of the log.
                let own = segment * length..(segment + 1) * length;
                let start = own.start.max(self.record.block_no);
                let is_known = start < self.known_without(own.start, length);
                let has_log = self.blocks.range(own).next().is_some();
                if has_log && !is_known {
                    Kind::Missing(vec![path_of(segment)])
                } else {
                    must_be_told = from != segment && (live(from) || has_log);
                    Kind::Stale {
                        from: path_of(from),
                        to: path_of(segment),
                    }
                }
            }
        };
        Harm { kind, must_be_told }
    }
}

/// Whether a refused start has named the log.
pub(crate) fn is_told(error: &str) -> bool {
    error.contains("log segment") || error.contains("log is lost")
}

/// Opens a machine that has refused to open, with the operator's acceptance of the loss, and looks
/// at everything. Then it closes it in order, and opens it normally. Rows and indexes may
/// contradict each other, but the machine must open, and an accepted loss must not be reported
/// again. In half of the cases the machine crashes once in the accepting start. Its successor
/// needs no word of the operator any more, if the log goes on already.
pub(crate) fn accept_loss(world: World, random: &mut Random) -> Result<(), String> {
    let accepts = WorldOptions {
        on_loss: OnLogLoss::Accept,
        ..world.options()
    };
    let mut world = world.with_options(accepts);
    if random.coin() {
        world = world.crash_in_start(random.below(STEPS_TO_CRASH_MAX));
    }
    let opening = world.clone();
    let closed = world.run(async move {
        let database = opening.open().await?;
        // What it finds is damage that was accepted.
        database.check().await?;
        database.close().await
    });
    world.executor.clear();
    closed.map_err(|error| format!("the accepting start: {error}"))?;
    let refuses = WorldOptions {
        on_loss: OnLogLoss::Refuse,
        ..world.options()
    };
    let world = world.with_options(refuses);
    let opening = world.clone();
    let opened = world.run(async move { opening.open().await.map(drop) });
    world.executor.clear();
    opened.map_err(|error| format!("the start after it: {error}"))
}

async fn read(disk: &dyn Disk, path: &Path) -> Option<Vec<u8>> {
    let file = open(disk, path)?;
    let length = disk.length(&file).ok()?;
    let buffer = IoBuffer::zeroed(stdx::to_usize(length).max(1));
    let (bytes, outcome) = disk.read(&file, 0, buffer).await;
    Some(bytes.get(..outcome.ok()?)?.to_vec())
}

fn open(disk: &dyn Disk, path: &Path) -> Option<env::File> {
    let options = OpenOptions {
        write: true,
        create: false,
        exclusive: false,
        access: FileAccess::Buffered,
    };
    disk.open(path, options).ok()
}
