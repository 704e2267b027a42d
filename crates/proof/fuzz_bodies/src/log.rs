//! The log: blocks, mini-transactions, checkpoints, and the scan that recovery begins with.

use std::path::Path;

use env::sim::{SimClock, SimDisk, SimExecutor};
use env::{Disk, FileAccess, IoBuffer, OpenOptions, WriteDurability};
use format::control::CheckpointRecord;
use format::lives::LifeEnds;
use format::log::{
    LOG_BLOCK_BYTES, LOG_BLOCK_HEADER_BYTES, LOG_BLOCK_PAYLOAD_BYTES, LogBlockHeader,
    MTR_HEADER_BYTES, MtrParse, open_log_block, parse_mtr, seal_log_block, seal_mtr,
};
use format::{Lsn, version_file};
use wal::{Log, OnLogLoss, WalError};

use crate::choices::Choices;

/// Blocks of a segment; short inputs reach several segments.
const SEGMENT_BLOCKS: u32 = 4;
const SEGMENTS_MAX: usize = 4;

pub(crate) fn run(input: &[u8]) {
    let mut choices = Choices::new(input);
    match choices.u8() % 3 {
        0 => pieces(choices),
        1 => control(choices),
        _ => scan(choices),
    }
}

fn pieces(mut choices: Choices<'_>) {
    let start = Lsn(choices.u64());
    let bytes = choices.rest();
    let _ = version_file::check(bytes);
    let mut block = bytes.to_vec();
    let _ = open_log_block(&block);
    block.resize(LOG_BLOCK_BYTES, 0);
    let _ = open_log_block(&block);
    let _ = parse_mtr(bytes, start);
    if MTR_HEADER_BYTES <= bytes.len() {
        let mut mtr = bytes.to_vec();
        seal_mtr(&mut mtr, start);
        match parse_mtr(&mtr, start) {
            MtrParse::Whole(whole, length) => {
                assert_eq!((whole.start, length), (start, mtr.len()));
                assert!(whole.ops().count() <= mtr.len());
            }
            // Its end would be past the last LSN.
            MtrParse::Broken => assert!(start.0.checked_add(to_u64(mtr.len())).is_none()),
            MtrParse::Partial => panic!("it is whole"),
        }
    }
}

fn control(mut choices: Choices<'_>) {
    let record = checkpoint(&mut choices);
    let block = record.encode();
    let expected = record.is_possible().then_some(record);
    assert_eq!(CheckpointRecord::decode(&block), expected);
    let mut file = block.to_vec();
    file.extend_from_slice(&checkpoint(&mut choices).encode());
    while !choices.is_empty() {
        let at = usize::from(choices.u16());
        if let Some(byte) = file.get_mut(at) {
            *byte ^= choices.u8();
        }
    }
    let _ = CheckpointRecord::newest(&file);
    let _ = CheckpointRecord::newest(choices.rest());
}

fn checkpoint(choices: &mut Choices<'_>) -> CheckpointRecord {
    CheckpointRecord {
        sequence: choices.u64(),
        lsn: Lsn(choices.u64()),
        block_no: choices.u64(),
        block_epoch: choices.u32(),
        epoch: choices.u32(),
        segment_blocks: choices.u32(),
        durable_block: choices.u64(),
        is_closed: choices.u8() & 1 != 0,
        has_newer_pages: choices.u8() & 1 != 0,
        lives: lives(choices),
        payload: choices.short().to_vec(),
    }
}

fn lives(choices: &mut Choices<'_>) -> LifeEnds {
    let (mut lives, mut epoch) = (LifeEnds::default(), 0_u32);
    for _ in 0..choices.u8() % 8 {
        epoch = epoch.saturating_add(u32::from(choices.u8()));
        lives.push(epoch, Lsn(choices.u64()));
        epoch += 1;
    }
    lives
}

/// Builds a log of sealed blocks, most of them continuing each other, and scans it.
fn scan(mut choices: Choices<'_>) {
    let kind = choices.u8();
    let first = Lsn(1 + u64::from(choices.u16()));
    let mut record = CheckpointRecord {
        sequence: 0,
        lsn: first,
        block_no: 0,
        block_epoch: 0,
        epoch: 0,
        segment_blocks: SEGMENT_BLOCKS,
        durable_block: 0,
        is_closed: kind & 16 != 0,
        has_newer_pages: false,
        lives: LifeEnds::default(),
        payload: Vec::new(),
    };
    match kind % 4 {
        0 => record.lsn = Lsn(choices.u64()),
        1 => record.block_no = choices.u64(),
        2 => record.durable_block = choices.u64(),
        _ => {}
    }
    if kind & 8 != 0 {
        record.segment_blocks = 1 + choices.u32() % 7;
    }
    let blocks = blocks(&mut choices, first);
    let clock = SimClock::new();
    let disk = SimDisk::with_seed(1);
    let executor = SimExecutor::new(1, clock);
    let outcome = executor.block_on(async move {
        write_log(&disk, &record, &blocks).await;
        let bytes = to_u64(blocks.len() * LOG_BLOCK_PAYLOAD_BYTES);
        let on_loss = if kind & 32 == 0 {
            OnLogLoss::Refuse
        } else {
            OnLogLoss::Accept
        };
        read_log(&disk, bytes, on_loss).await
    });
    // The input decides whether there is a log, but the scan must end.
    let _ = outcome.expect("no operation waits for ever");
}

async fn read_log(disk: &SimDisk, bytes: u64, on_loss: OnLogLoss) -> Result<(), WalError> {
    let log = Log::open(disk, Path::new("data")).await?;
    let mut scan = log.scan(on_loss);
    let (mut count, mut position) = (0, scan.position());
    while let Some(mtr) = scan.next(disk).await? {
        assert!(position <= mtr.start && mtr.start < mtr.end);
        position = mtr.end;
        count += 1;
        assert!(count <= bytes, "each takes bytes of the log");
        let _ = mtr.ops().count();
    }
    Ok(())
}

/// Blocks as a server would write them, except for the input's changes.
fn blocks(choices: &mut Choices<'_>, first: Lsn) -> Vec<Vec<u8>> {
    let mut blocks = Vec::new();
    let (mut start, mut epoch) = (first.0, 0);
    let most = SEGMENTS_MAX * usize::try_from(SEGMENT_BLOCKS).expect("a small number");
    while !choices.is_empty() && blocks.len() < most {
        let change = choices.u8();
        if change & 1 != 0 {
            epoch += u32::from(choices.u8());
        }
        let mut block = vec![0; LOG_BLOCK_BYTES];
        let payload = payload(choices, start);
        let space = block.get_mut(LOG_BLOCK_HEADER_BYTES..);
        let space = space.expect("a block is longer than its header");
        for (to, from) in space.iter_mut().zip(&payload) {
            *to = *from;
        }
        let used = u16::try_from(payload.len()).expect("a payload fits into a block");
        let mut header = LogBlockHeader {
            block_no: to_u64(blocks.len()),
            start: Lsn(start),
            epoch,
            used,
            first_mtr: 0,
            durable_lag: 0,
        };
        match change >> 1 {
            1 => header.block_no = choices.u64(),
            2 => header.start = Lsn(choices.u64()),
            3 => header.first_mtr = choices.u16(),
            4 => header.first_mtr = u16::MAX,
            5 => header.epoch = choices.u32(),
            6 => header.durable_lag = choices.u32(),
            _ => {}
        }
        seal_log_block(&mut block, &header);
        start = header.start.0.wrapping_add(u64::from(used));
        blocks.push(block);
    }
    blocks
}

/// Mini-transactions, sealed for their positions.
fn payload(choices: &mut Choices<'_>, start: u64) -> Vec<u8> {
    let mut payload = Vec::new();
    let count = choices.u8() % 4;
    for _ in 0..count {
        let mut mtr = vec![0; MTR_HEADER_BYTES];
        mtr.extend_from_slice(choices.short());
        seal_mtr(&mut mtr, Lsn(start.wrapping_add(to_u64(payload.len()))));
        payload.extend_from_slice(&mtr);
    }
    // A piece without a seal: the beginning of a longer one, or garbage.
    payload.extend_from_slice(choices.long());
    payload.truncate(LOG_BLOCK_PAYLOAD_BYTES);
    payload
}

async fn write_log(disk: &SimDisk, record: &CheckpointRecord, blocks: &[Vec<u8>]) {
    let data = Path::new("data");
    disk.create_directory(data).expect("a new directory");
    disk.create_directory(&data.join("log"))
        .expect("a new directory");
    let mut control = record.encode().to_vec();
    control.resize(format::control::CONTROL_FILE_BYTES, 0);
    write(disk, &data.join("control.pdc"), &control).await;
    let segment_blocks = usize::try_from(record.segment_blocks).expect("a small number");
    for (number, segment) in blocks.chunks(segment_blocks).enumerate() {
        let path = data.join("log").join(format!("log_{number:016x}.pdl"));
        write(disk, &path, &segment.concat()).await;
    }
}

/// Makes a file of these bytes.
pub(crate) async fn write(disk: &SimDisk, path: &Path, bytes: &[u8]) {
    let options = OpenOptions {
        write: true,
        create: true,
        exclusive: false,
        access: FileAccess::Buffered,
    };
    let file = disk.open(path, options).expect("a new file");
    if bytes.is_empty() {
        return;
    }
    let mut buffer = IoBuffer::zeroed(bytes.len());
    buffer.copy_from_slice(bytes);
    let written = disk.write(&file, 0, buffer, WriteDurability::Volatile);
    written.await.1.expect("a disk without faults");
}

pub(crate) fn to_u64(number: usize) -> u64 {
    u64::try_from(number).expect("a machine of 64 bits")
}
