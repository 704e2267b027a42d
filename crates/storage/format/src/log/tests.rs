//! Tests of the log's shapes.

use super::*;
use crate::ids::{PageNo, SpaceId};
use proptest::prelude::*;

fn header() -> LogBlockHeader {
    LogBlockHeader {
        block_no: 0x0807_0605_0403_0201,
        start: Lsn(0x100F_0E0D_0C0B_0A09),
        epoch: 0x1413_1211,
        used: 0x0003,
        first_mtr: 0x0201,
        durable_lag: 0x0403_0201,
    }
}

#[test]
fn block_layout_is_pinned() {
    let mut block = vec![0xEE; LOG_BLOCK_BYTES];
    block[32..35].copy_from_slice(b"abc");
    seal_log_block(&mut block, &header());
    let expected: Vec<u8> = (1..=0x14).chain([3, 0, 1, 2, 1, 2, 3, 4]).collect();
    assert_eq!(&block[..28], expected);
    assert_eq!(&block[32..36], b"abc\0");
    assert_eq!(open_log_block(&block), Ok((header(), &b"abc"[..])));
    block[4000] = 1;
    assert_eq!(open_log_block(&block), Err(LogBlockError::Checksum));
    assert_eq!(open_log_block(&block[..4000]), Err(LogBlockError::Length));
    assert!(
        open_log_block(&[0; 4096]).is_err(),
        "a zeroed block is no block"
    );
}

#[test]
fn a_block_with_counts_that_no_log_reaches_is_damaged() {
    let with = |count, epoch| {
        let mut block = vec![0; LOG_BLOCK_BYTES];
        let (block_no, start) = (count, Lsn(count));
        let header = LogBlockHeader {
            block_no,
            start,
            epoch,
            durable_lag: 1,
            ..header()
        };
        seal_log_block(&mut block, &header);
        open_log_block(&block).map(|(found, _)| assert_eq!(found, header))
    };
    for count in [LOG_COUNT_MAX - 1, LOG_COUNT_MAX] {
        assert_eq!(with(count, EPOCH_MAX), Ok(()));
    }
    assert_eq!(with(LOG_COUNT_MAX + 1, 1), Err(LogBlockError::Count));
    assert_eq!(with(1, EPOCH_MAX - 1), Ok(()));
    assert_eq!(with(1, EPOCH_MAX + 1), Err(LogBlockError::Count));
}

/// Block 7 with a lag below, at and above its number.
#[test]
fn a_block_lags_behind_no_more_blocks_than_there_are() {
    let with = |durable_lag| {
        let mut block = vec![0; LOG_BLOCK_BYTES];
        let header = LogBlockHeader {
            block_no: 7,
            durable_lag,
            ..header()
        };
        seal_log_block(&mut block, &header);
        open_log_block(&block).map(|(found, _)| found.durable_block())
    };
    assert_eq!(with(0), Ok(7));
    assert_eq!(with(6), Ok(1));
    assert_eq!(with(7), Ok(0));
    assert_eq!(with(8), Err(LogBlockError::Count));
    assert_eq!(with(u32::MAX), Err(LogBlockError::Count));
}

#[test]
fn mtr_layout_is_pinned() {
    let pages = [
        PageId::new(SpaceId(1), PageNo(2)),
        PageId::new(SpaceId(3), PageNo(4)),
    ];
    let op = LogOp::new(OpKind(16), &pages, b"xy");
    let mut mtr = vec![0; MTR_HEADER_BYTES];
    op.encode(&mut mtr);
    LogOp::new(OpKind(17), &[], b"").encode(&mut mtr);
    seal_mtr(&mut mtr, Lsn(0x99));
    assert_eq!(mtr.len(), 16 + op.encoded_bytes() + 4);
    let body = [
        16, 2, 2, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, b'x', b'y', 17, 0, 0, 0,
    ];
    assert_eq!(&mtr[16..], body);
    assert_eq!(&mtr[..4], [42, 0, 0, 0]);
    assert_eq!(&mtr[8..16], [0x99, 0, 0, 0, 0, 0, 0, 0]);
    let MtrParse::Whole(parsed, 42) = parse_mtr(&mtr, Lsn(0x99)) else {
        panic!("a whole one")
    };
    assert_eq!(parsed.end, Lsn(0x99 + 42));
    let ops: Vec<_> = parsed.ops().collect();
    assert_eq!(ops, [Ok(op), Ok(LogOp::new(OpKind(17), &[], b""))]);
    assert_eq!(parse_mtr(&mtr, Lsn(0x98)), MtrParse::Broken);
    assert_eq!(parse_mtr(&mtr[..41], Lsn(0x99)), MtrParse::Partial);
    assert_eq!(parse_mtr(&[], Lsn(0x99)), MtrParse::Partial);
    mtr[20] ^= 1;
    assert_eq!(parse_mtr(&mtr, Lsn(0x99)), MtrParse::Broken);
}

proptest! {
    #[test]
    fn any_bytes_are_parsed_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let MtrParse::Whole(mtr, _) = parse_mtr(&bytes, Lsn(1)) {
            let _ = mtr.ops().count();
        }
        let _ = open_log_block(&bytes);
        let mut reader = Reader::new(&bytes);
        while let Ok(op) = LogOp::decode(&mut reader) {
            prop_assert!(op.pages().len() <= OP_PAGES_MAX);
        }
    }

    #[test]
    fn a_flipped_bit_is_seen(payload in proptest::collection::vec(any::<u8>(), 0..300), bit: u16) {
        let mut mtr = vec![0; MTR_HEADER_BYTES];
        LogOp::new(OpKind(20), &[PageId::default()], &payload).encode(&mut mtr);
        seal_mtr(&mut mtr, Lsn(77));
        let at = usize::from(bit / 8) % mtr.len();
        mtr[at] ^= 1 << (bit % 8);
        prop_assert!(!matches!(parse_mtr(&mtr, Lsn(77)), MtrParse::Whole(..)));
    }
}
