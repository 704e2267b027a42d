//! Packets from servers, which a gateway and the tests read.

use wire::{
    AuthMoreData, AuthSwitch, BinaryRowReader, Capabilities, ColumnDefinition, ColumnType,
    EofPacket, ErrorPacket, Handshake, LocalInfile, OkPacket, ParameterType, PrepareOk, ResultHead,
    SessionChanges, TextRowReader,
};

use crate::choices::Choices;

pub(crate) fn run(input: &[u8]) {
    let mut choices = Choices::new(input);
    let kind = choices.u8();
    let capabilities = Capabilities(choices.u64());
    match kind % 8 {
        0 => {
            let _ = Handshake::decode(choices.rest());
        }
        1 => {
            if let Ok(ok) = OkPacket::decode(choices.rest(), capabilities) {
                changes(ok.session_changes);
            }
        }
        2 => small_packets(choices.rest(), capabilities),
        3 => {
            let _ = ColumnDefinition::decode(choices.rest(), capabilities);
        }
        4 => text_row(choices.rest()),
        5 => {
            let types: Vec<_> = choices.short().iter().filter_map(bound).collect();
            binary_row(choices.rest(), &types);
        }
        6 => changes(choices.rest()),
        _ => {
            if let Ok(error) = ErrorPacket::decode(choices.rest()) {
                let _ = error.to_client_error();
            }
        }
    }
}

fn bound(byte: &u8) -> Option<ParameterType> {
    let column_type = ColumnType::from_byte(*byte)?;
    Some(ParameterType {
        column_type,
        is_unsigned: byte & 1 != 0,
    })
}

fn changes(encoded: &[u8]) {
    let count = SessionChanges::decode(encoded).count();
    assert!(count <= encoded.len());
}

fn small_packets(payload: &[u8], capabilities: Capabilities) {
    let _ = EofPacket::decode(payload);
    let _ = PrepareOk::decode(payload);
    let _ = ResultHead::decode(payload, capabilities);
    let _ = LocalInfile::decode(payload);
    let _ = AuthSwitch::decode(payload);
    let _ = AuthMoreData::decode(payload);
}

fn text_row(payload: &[u8]) {
    let mut row = TextRowReader::new(payload);
    let mut count = 0;
    while !row.is_done() && row.next_value().is_ok() {
        count += 1;
        assert!(count <= payload.len());
    }
}

fn binary_row(payload: &[u8], types: &[ParameterType]) {
    let Ok(mut row) = BinaryRowReader::new(payload, types) else {
        return;
    };
    let mut count = 0;
    while let Ok(Some(_)) = row.next_value() {
        count += 1;
    }
    assert!(count <= types.len());
}
