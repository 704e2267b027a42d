//! A damaged data directory whose checksums do not show the damage, opened and checked.
//!
//! The image is a small engine that died while working. An input puts bytes into its pages and
//! blocks, with correct checksums or not, and may append mini-transactions to its log. Opening and
//! checking it may fail or find faults; it must not panic, hang or take unbounded memory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use env::sim::{DiskOptions, SimDisk};
use env::{Disk, FileAccess, IoBuffer, OpenOptions};
use format::codec;
use format::log::{
    LOG_BLOCK_BYTES, LOG_BLOCK_HEADER_BYTES, LOG_BLOCK_PAYLOAD_BYTES, LogBlockHeader, LogOp,
    MTR_HEADER_BYTES, OpKind, open_log_block, seal_log_block, seal_mtr,
};
use format::{Lsn, PageId, PageNo, PageSize, SpaceId, page};
use sim::rows::{big, blob, index, table};
use sim::{World, WorldOptions};
use store::{Isolation, SchemaStore, Uniqueness};
use value::Value;

use crate::choices::Choices;
use crate::log::{to_u64, write};

/// The unit of one checksum, in every file.
const UNIT_BYTES: usize = PageSize::KiB4.bytes();
/// Offset of a log block's checksum.
const LOG_CHECKSUM_AT: usize = 28;

/// Files of the image by path.
type Image = BTreeMap<PathBuf, Vec<u8>>;

pub(crate) fn run(input: &[u8]) {
    let mut choices = Choices::new(input);
    let mut image = image().clone();
    let damages = choices.u8() % 5;
    for _ in 0..damages {
        damage(&mut image, &mut choices);
    }
    if !choices.is_empty() {
        append(&mut image, choices);
    }
    let world = World::with_disk(1, DiskOptions::default(), options());
    let inner = world.clone();
    world.run(async move {
        place(&inner.disk, &image).await;
        let Ok(database) = inner.open().await else {
            return;
        };
        // The result depends on the damage.
        let _ = database.engine.check().await;
    });
    world.executor.clear();
}

fn options() -> WorldOptions {
    WorldOptions {
        page_size: PageSize::KiB4,
        frame_count: 64,
        ..WorldOptions::default()
    }
}

/// Puts bytes into one unit of one file.
fn damage(image: &mut Image, choices: &mut Choices<'_>) {
    let which = choices.below(image.len());
    let (unit, at, kind) = (choices.u16(), choices.u16(), choices.u8());
    let bytes = choices.short();
    let Some((path, file)) = image.iter_mut().nth(which) else {
        return;
    };
    let count = (file.len() / UNIT_BYTES).max(1);
    let start = usize::from(unit) % count * UNIT_BYTES;
    let Some(unit) = file.get_mut(start..) else {
        return;
    };
    let length = unit.len().min(UNIT_BYTES);
    let Some(unit) = unit.get_mut(..length) else {
        return;
    };
    let at = usize::from(at) % length.max(1);
    for (to, from) in unit.iter_mut().skip(at).zip(bytes) {
        *to = *from;
    }
    if kind & 3 != 0 && length == UNIT_BYTES {
        seal(path, unit);
    }
}

/// Corrects the checksum.
fn seal(path: &Path, unit: &mut [u8]) {
    let kind = path.extension().and_then(|extension| extension.to_str());
    match kind {
        Some("pdl") => {
            codec::put_at(unit, LOG_CHECKSUM_AT, &[0; 4]).expect("in the unit");
            let sum = codec::checksum_short(unit).to_le_bytes();
            codec::put_at(unit, LOG_CHECKSUM_AT, &sum).expect("in the unit");
        }
        // Pages, the control file and the doublewrite file begin with the sum of what follows.
        _ => page::seal(unit),
    }
}

/// Appends a mini-transaction to the end of the log.
fn append(image: &mut Image, mut choices: Choices<'_>) {
    let Some((path, at, last)) = log_end(image) else {
        return;
    };
    let start = last.start.0.saturating_add(u64::from(last.used));
    let mut mtr = vec![0; MTR_HEADER_BYTES];
    while !choices.is_empty() {
        let kind = OpKind(choices.u8() % 48);
        let pages: Vec<PageId> = (0..=choices.u8() & 1)
            .map(|_| {
                let space = SpaceId(u32::from(choices.u8()));
                PageId::new(space, PageNo(u32::from(choices.u8())))
            })
            .collect();
        LogOp::new(kind, &pages, choices.short()).encode(&mut mtr);
    }
    mtr.truncate(LOG_BLOCK_PAYLOAD_BYTES);
    seal_mtr(&mut mtr, Lsn(start));
    let mut block = vec![0; LOG_BLOCK_BYTES];
    codec::put_at(&mut block, LOG_BLOCK_HEADER_BYTES, &mtr).expect("truncated above");
    let header = LogBlockHeader {
        block_no: last.block_no.saturating_add(1),
        start: Lsn(start),
        epoch: last.epoch,
        used: u16::try_from(mtr.len()).expect("truncated above"),
        first_mtr: 0,
        durable_lag: 0,
    };
    seal_log_block(&mut block, &header);
    if let Some(file) = image.get_mut(&path) {
        codec::put_at(file, at, &block);
    }
}

/// The last written block, and where the next one goes.
fn log_end(image: &Image) -> Option<(PathBuf, usize, LogBlockHeader)> {
    let logs = image
        .iter()
        .filter(|(path, _)| path.extension().is_some_and(|extension| extension == "pdl"));
    let blocks = logs.flat_map(|(path, file)| {
        let numbered = file.chunks(LOG_BLOCK_BYTES).enumerate();
        numbered.filter_map(move |(number, block)| {
            let (header, _) = open_log_block(block).ok()?;
            Some((path.clone(), (number + 1) * LOG_BLOCK_BYTES, header))
        })
    });
    blocks.max_by_key(|(_, _, header)| header.block_no)
}

fn image() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(make_image)
}

/// An engine with a table and an index, with one committed and one open transaction.
fn make_image() -> Image {
    let world = World::with_disk(1, DiskOptions::default(), options());
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.expect("a new directory");
        let columns = vec![big("id"), big("balance"), blob("note")];
        let indexes = vec![
            index("PRIMARY", Uniqueness::Primary, &[0]),
            index("balance", Uniqueness::None, &[1]),
        ];
        let definition = table("accounts", columns, indexes);
        let made = database.engine.create_table(definition).await;
        made.expect("a new table");
        let accounts = database.table("accounts");
        let mut txn = database.begin(Isolation::RepeatableRead);
        for id in 0..60 {
            let length = if id == 7 { 9000 } else { 20 };
            let note = Value::bytes("n".repeat(length));
            let row = [Value::Int(id), Value::Int(id % 9), note];
            txn.insert(&accounts, &row).await.expect("a new row");
        }
        txn.commit().await.expect("a commit");
        let mut loser = database.begin(Isolation::RepeatableRead);
        for id in 100..105 {
            let row = [Value::Int(id), Value::Int(id), Value::Null];
            loser.insert(&accounts, &row).await.expect("a new row");
        }
        let mut last = database.begin(Isolation::RepeatableRead);
        let row = [Value::Int(200), Value::Int(1), Value::Null];
        last.insert(&accounts, &row).await.expect("a new row");
        last.commit().await.expect("a commit");
        // It is open when the machine stops.
        Box::leak(Box::new(loser));
    });
    world.executor.clear();
    let (disk, executor) = (world.disk.kill(), world.executor);
    executor
        .block_on(async move { read_tree(&disk, Path::new("data")).await })
        .expect("no operation waits for ever")
}

/// All files of the data directory and of the log in it.
async fn read_tree(disk: &SimDisk, directory: &Path) -> Image {
    let mut image = Image::new();
    let log = directory.join("log");
    for parent in [directory, log.as_path()] {
        for name in disk.list(parent).expect("a directory") {
            let path = parent.join(name);
            let options = OpenOptions {
                write: false,
                create: false,
                exclusive: false,
                access: FileAccess::Buffered,
            };
            let Ok(file) = disk.open(&path, options) else {
                continue;
            };
            let length = disk.length(&file).expect("an open file");
            let buffer = IoBuffer::zeroed(usize::try_from(length).expect("a small file"));
            let (buffer, outcome) = disk.read(&file, 0, buffer).await;
            outcome.expect("a disk without faults");
            image.insert(path, buffer.to_vec());
        }
    }
    assert!(image.len() > 3, "control, log, spaces");
    image
}

async fn place(disk: &SimDisk, image: &Image) {
    for (path, bytes) in image {
        if let Some(parent) = path.parent() {
            // It may exist already, for an earlier file.
            let _ = disk.create_directory(parent);
        }
        write(disk, path, bytes).await;
    }
    assert!(!image.is_empty() && to_u64(image.len()) < 100);
}
