//! A reply as a server sends it: one row with one value.

use wire::{
    Capabilities, ColumnDefinition, ColumnType, OkPacket, PacketWriter, ResultHead, TextRow,
    end_columns, end_rows,
};

pub(crate) const CAPABILITIES: Capabilities = Capabilities::PROTOCOL_41;

/// The packets of the reply.
pub(crate) fn packets(value: &[u8]) -> Vec<u8> {
    let mut out = PacketWriter::new();
    out.set_sequence(1);
    ResultHead::encode(&mut out, CAPABILITIES, 1);
    ColumnDefinition::new(b"c", ColumnType::String).encode(&mut out, CAPABILITIES);
    let ok = OkPacket::default();
    end_columns(&mut out, CAPABILITIES, ok.status, 0);
    let mut row = TextRow::begin(&mut out);
    row.bytes(value);
    row.finish();
    end_rows(&mut out, CAPABILITIES, &ok);
    out.take()
}
