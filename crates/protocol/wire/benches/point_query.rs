//! What a point query costs in this crate: its packet is found and decoded, and its reply of one
//! row is written, as text and as prepared statement. Also rows alone, by the thousand.
//!
//! `cargo bench -p wire` prints nanoseconds of CPU for each, the best of several rounds.

#![forbid(unsafe_code)]

use std::hint::black_box;
use std::time::Instant;

use wire::{
    BinaryRow, Capabilities, ColumnDefinition, ColumnType, Command, CursorKind, Deframer, Execute,
    Framed, OkPacket, PacketWriter, ParameterType, ResultHead, StatusFlags, TextRow, end_columns,
    end_rows,
};

const ROUNDS: usize = 15;
const LOOPS: u32 = 100_000;

/// A row of sysbench's table: id, k, c, pad.
const C: &[u8] = &[b'c'; 119];

#[allow(clippy::print_stdout, reason = "a bench tells its figures")]
fn main() {
    // When run as a test, it only needs to build.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    println!("text point query    {:7.1} ns", measure(text_point_query()));
    println!(
        "binary point query  {:7.1} ns",
        measure(binary_point_query())
    );
    println!("text row            {:7.1} ns", measure(text_row()));
    println!("binary row          {:7.1} ns", measure(binary_row()));
    println!("ok reply            {:7.1} ns", measure(ok_reply()));
}

/// Nanoseconds a call, in the best round.
fn measure(mut work: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        #[allow(clippy::disallowed_methods, reason = "a bench reads the clock")]
        let start = Instant::now();
        for _ in 0..LOOPS {
            work();
        }
        best = best.min(start.elapsed().as_secs_f64());
    }
    best * 1e9 / f64::from(LOOPS)
}

fn column() -> ColumnDefinition<'static> {
    ColumnDefinition {
        schema: b"sbtest",
        table: b"sbtest1",
        original_table: b"sbtest1",
        original_name: b"c",
        collation: 45,
        display_bytes: 480,
        ..ColumnDefinition::new(b"c", ColumnType::String)
    }
}

fn reply_around(out: &mut PacketWriter, row: impl FnOnce(&mut PacketWriter)) {
    let capabilities = Capabilities::SERVER;
    ResultHead::encode(out, capabilities, 1);
    column().encode(out, capabilities);
    end_columns(out, capabilities, StatusFlags::AUTOCOMMIT, 0);
    row(out);
    let ok = OkPacket {
        status: StatusFlags::AUTOCOMMIT,
        ..OkPacket::default()
    };
    end_rows(out, capabilities, &ok);
    black_box(out.as_bytes());
    out.clear();
}

fn text_point_query() -> impl FnMut() {
    let mut request = PacketWriter::new();
    request.packet(b"\x03SELECT c FROM sbtest1 WHERE id=12345");
    let mut deframer = Deframer::new(1 << 24);
    let mut out = PacketWriter::new();
    move || {
        deframer.set_sequence(0);
        let found = deframer.next(black_box(request.as_bytes()));
        let Ok(Framed::Packet { payload, .. }) = found else {
            return;
        };
        black_box(Command::decode(payload, Capabilities::SERVER).is_ok());
        reply_around(&mut out, |out| {
            let mut row = TextRow::begin(out);
            row.bytes(black_box(C));
            row.finish();
        });
    }
}

fn binary_point_query() -> impl FnMut() {
    let mut request = PacketWriter::new();
    let id = (
        ParameterType::new(ColumnType::Long),
        wire::BinaryValue::Int(12_345),
    );
    Execute::encode(&mut request, 1, CursorKind::None, &[id]);
    let mut deframer = Deframer::new(1 << 24);
    let mut out = PacketWriter::new();
    let mut types = Vec::new();
    move || {
        deframer.set_sequence(0);
        let found = deframer.next(black_box(request.as_bytes()));
        let Ok(Framed::Packet { payload, .. }) = found else {
            return;
        };
        let command = Command::decode(payload, Capabilities::SERVER);
        let Ok(Command::Execute(execute)) = command else {
            return;
        };
        let Ok(mut parameters) = execute.parameters(1, &mut types) else {
            return;
        };
        black_box(parameters.next_value(false).is_ok());
        reply_around(&mut out, |out| {
            let mut row = BinaryRow::begin(out, 1);
            row.bytes(black_box(C));
            row.finish();
        });
    }
}

fn text_row() -> impl FnMut() {
    let mut out = PacketWriter::new();
    move || {
        let mut row = TextRow::begin(&mut out);
        row.i64(black_box(12_345));
        row.i64(black_box(498_765));
        row.bytes(black_box(C));
        row.bytes(black_box(&C[..59]));
        row.finish();
        if out.pending_bytes() > 32 << 10 {
            out.clear();
        }
    }
}

fn binary_row() -> impl FnMut() {
    let mut out = PacketWriter::new();
    move || {
        let mut row = BinaryRow::begin(&mut out, 4);
        row.i32(black_box(12_345));
        row.i32(black_box(498_765));
        row.bytes(black_box(C));
        row.bytes(black_box(&C[..59]));
        row.finish();
        if out.pending_bytes() > 32 << 10 {
            out.clear();
        }
    }
}

fn ok_reply() -> impl FnMut() {
    let mut out = PacketWriter::new();
    let ok = OkPacket {
        affected_rows: 1,
        ..OkPacket::default()
    };
    move || {
        black_box(&ok).encode(&mut out, Capabilities::SERVER, wire::OkKind::Ok);
        black_box(out.as_bytes());
        out.clear();
    }
}
