//! Replies of every shape between sides that agreed on different things: what comes out is what the
//! server would have sent to the client itself.

use std::sync::Arc;

use errcode::ER_NO_TABLES_USED;
use wire::{
    ColumnDefinition, ColumnType, CommandByte, OkKind, OkPacket, PacketWriter, PrepareOk,
    ResultHead, TextRow, end_columns, end_rows,
};

use super::translate::REENCODED_BYTES_MAX;
use super::*;
use crate::packet_memory::PacketMemory;
use crate::resources::Resources;

const OLD: Capabilities = Capabilities::PROTOCOL_41;
const NEW: Capabilities = Capabilities(OLD.0 | Capabilities::DEPRECATE_EOF.0);
const TRACKING: Capabilities = Capabilities(NEW.0 | Capabilities::SESSION_TRACK.0);

/// A change of the session: its kind and its data behind a length.
const CHANGES: &[u8] = b"\x01\x02\x01s";

fn channel() -> Channel {
    let resources = Resources::new(PacketMemory::new(1 << 30), Arc::default());
    Channel::new(resources, 1 << 30)
}

/// What the client receives of a server's `stream`, received in pieces of `piece_bytes`.
fn forwarded(command: u8, agreed: Agreed, stream: &[u8], piece_bytes: usize) -> Vec<u8> {
    let (mut from, mut to) = (channel(), channel());
    let mut exchange = Exchange::new(command, agreed, 1);
    let mut sent = Vec::new();
    for piece in stream.chunks(piece_bytes) {
        assert!(!exchange.is_over(), "the reply ends with its last byte");
        from.receive(piece).unwrap();
        while exchange.pass(&mut from, &mut to).unwrap() == Passed::Full {
            sent.extend(to.seal().unwrap());
        }
    }
    assert!(exchange.is_over());
    sent.extend(to.seal().unwrap());
    sent
}

fn reply() -> PacketWriter {
    let mut out = PacketWriter::new();
    out.set_sequence(1);
    out
}

fn ok(status: StatusFlags) -> OkPacket<'static> {
    OkPacket {
        status,
        warnings: 3,
        session_changes: CHANGES,
        ..OkPacket::default()
    }
}

fn result_set(out: &mut PacketWriter, capabilities: Capabilities, status: StatusFlags) {
    ResultHead::encode(out, capabilities, 2);
    for name in [b"a", b"b"] {
        ColumnDefinition::new(name, ColumnType::String).encode(out, capabilities);
    }
    end_columns(out, capabilities, StatusFlags::AUTOCOMMIT, 0);
    for length in [0, 1, 300] {
        let mut row = TextRow::begin(out);
        row.null();
        row.bytes(&vec![b'x'; length]);
        row.finish();
    }
    end_rows(out, capabilities, &ok(status));
}

/// Two result sets and an OK.
fn many_results(capabilities: Capabilities) -> Vec<u8> {
    let more = StatusFlags(StatusFlags::MORE_RESULTS.0 | StatusFlags::AUTOCOMMIT.0);
    let mut out = reply();
    result_set(&mut out, capabilities, more);
    result_set(&mut out, capabilities, more);
    ok(StatusFlags::AUTOCOMMIT).encode(&mut out, capabilities, OkKind::Ok);
    out.take()
}

fn prepared(capabilities: Capabilities) -> Vec<u8> {
    let mut out = reply();
    let answer = PrepareOk {
        statement_id: 7,
        column_count: 2,
        parameter_count: 1,
        warnings: 0,
    };
    answer.encode(&mut out);
    for count in [1, 2] {
        for _ in 0..count {
            ColumnDefinition::new(b"?", ColumnType::String).encode(&mut out, capabilities);
        }
        end_columns(&mut out, capabilities, StatusFlags::AUTOCOMMIT, 0);
    }
    out.take()
}

fn cursor(capabilities: Capabilities) -> Vec<u8> {
    let mut out = reply();
    ResultHead::encode(&mut out, capabilities, 1);
    ColumnDefinition::new(b"a", ColumnType::String).encode(&mut out, capabilities);
    let status = StatusFlags(StatusFlags::CURSOR_EXISTS.0 | StatusFlags::AUTOCOMMIT.0);
    end_rows(&mut out, capabilities, &ok(status));
    out.take()
}

fn failure_among_rows(capabilities: Capabilities) -> Vec<u8> {
    let mut out = reply();
    ResultHead::encode(&mut out, capabilities, 1);
    ColumnDefinition::new(b"a", ColumnType::String).encode(&mut out, capabilities);
    end_columns(&mut out, capabilities, StatusFlags::AUTOCOMMIT, 0);
    out.packet(b"\xFF\x25\x05#70100killed");
    out.take()
}

#[test]
fn each_client_gets_what_it_can_read() {
    type Make = fn(Capabilities) -> Vec<u8>;
    let replies: [(u8, Make); 4] = [
        (CommandByte::QUERY, many_results),
        (CommandByte::STMT_PREPARE, prepared),
        (CommandByte::STMT_EXECUTE, cursor),
        (CommandByte::QUERY, failure_among_rows),
    ];
    for (command, make) in replies {
        for (server, client) in [
            (OLD, OLD),
            (NEW, NEW),
            (OLD, NEW),
            (NEW, OLD),
            (TRACKING, NEW),
            (TRACKING, OLD),
            (TRACKING, TRACKING),
        ] {
            let agreed = Agreed { client, server };
            let stream = make(server);
            // A server that does not end rows by OK tells nothing of changes there.
            let expected = make(client);
            for piece_bytes in [1, 3, 10, 64, stream.len()] {
                let found = forwarded(command, agreed, &stream, piece_bytes);
                assert_eq!(found, expected, "{command} {agreed:?} {piece_bytes}");
            }
        }
    }
}

#[test]
fn changes_of_the_session_are_kept() {
    for (server, client, times) in [
        (TRACKING, TRACKING, 3),
        (TRACKING, NEW, 3),
        (TRACKING, OLD, 3),
        (NEW, NEW, 0),
        (OLD, TRACKING, 0),
    ] {
        let agreed = Agreed { client, server };
        for piece_bytes in [1, 7, 1000] {
            let (mut from, mut to) = (channel(), channel());
            let mut exchange = Exchange::new(CommandByte::QUERY, agreed, 1);
            for piece in many_results(server).chunks(piece_bytes) {
                from.receive(piece).unwrap();
                exchange.pass(&mut from, &mut to).unwrap();
            }
            assert!(exchange.is_over());
            assert_eq!(exchange.session_changes(), Some(&CHANGES.repeat(times)[..]));
        }
    }
}

#[test]
fn changes_that_are_too_long_are_not_kept() {
    let agreed = Agreed {
        client: TRACKING,
        server: TRACKING,
    };
    // An OK packet with an empty text and two lengths around.
    let others_bytes = 7 + 1 + 3;
    let max = REENCODED_BYTES_MAX - others_bytes;
    for (count, is_kept) in [(max - 1, true), (max, true), (max + 1, false)] {
        let changes = vec![2; count];
        let long = OkPacket {
            session_changes: &changes,
            ..ok(StatusFlags::AUTOCOMMIT)
        };
        let mut out = reply();
        long.encode(&mut out, TRACKING, OkKind::Ok);
        let bytes = out.as_bytes();
        assert_eq!(bytes.len(), 4 + others_bytes + count);
        let (mut from, mut to) = (channel(), channel());
        let mut exchange = Exchange::new(CommandByte::QUERY, agreed, 1);
        for piece in bytes.chunks(1000) {
            from.receive(piece).unwrap();
            exchange.pass(&mut from, &mut to).unwrap();
        }
        assert!(to.seal().unwrap() == bytes, "all is passed on");
        let kept = exchange.session_changes();
        assert_eq!(kept.is_some(), is_kept, "{count} bytes");
        assert!(!is_kept || kept == Some(&changes));
    }
}

#[test]
fn a_packet_of_many_frames_goes_through_in_pieces() {
    let mut out = reply();
    ResultHead::encode(&mut out, NEW, 1);
    ColumnDefinition::new(b"a", ColumnType::String).encode(&mut out, NEW);
    let mut row = TextRow::begin(&mut out);
    row.bytes(&vec![b'x'; 40 << 20]);
    row.finish();
    end_rows(&mut out, NEW, &ok(StatusFlags::AUTOCOMMIT));
    let stream = out.take();
    for client in [NEW, OLD] {
        let server = NEW;
        let agreed = Agreed { client, server };
        let found = forwarded(CommandByte::QUERY, agreed, &stream, 100_000);
        // For the older client there is an EOF packet more, and a shorter end.
        let ok_bytes = 7 + usize::from(client == OLD) * 5 + 5;
        assert!(found.len().abs_diff(stream.len()) <= ok_bytes);
        if client == NEW {
            assert!(found == stream);
        }
    }
}

#[test]
fn a_login_waits_for_the_client_where_the_server_does() {
    let agreed = Agreed {
        client: OLD,
        server: NEW,
    };
    let fast = b"\x02\0\0\x01\x01\x03";
    let asks: [&[u8]; 3] = [
        b"\x0c\0\0\x02\xFEplugin\0data",
        b"\x02\0\0\x02\x01\x04",
        b"\x05\0\0\x02\x02Pin?",
    ];
    for ask in asks {
        let (mut from, mut to) = (channel(), channel());
        let mut exchange = Exchange::new(CommandByte::CHANGE_USER, agreed, 1);
        from.receive(fast).unwrap();
        exchange.pass(&mut from, &mut to).unwrap();
        assert_eq!(exchange.turn(), None, "the server goes on");
        from.receive(ask).unwrap();
        exchange.pass(&mut from, &mut to).unwrap();
        assert_eq!(exchange.turn(), Some(Turn::Authentication));
        assert_eq!(to.seal().unwrap(), [&fast[..], ask].concat());
    }
}

#[test]
fn a_login_has_a_limited_number_of_packets() {
    let agreed = Agreed {
        client: NEW,
        server: NEW,
    };
    let max = reply::LOGIN_PACKETS_MAX;
    for (count, is_taken) in [(max - 2, true), (max - 1, true), (max, false)] {
        let (mut from, mut to) = (channel(), channel());
        let mut exchange = Exchange::new(CommandByte::CHANGE_USER, agreed, 1);
        let mut out = reply();
        for _ in 0..count {
            out.packet(&[1, 3]);
        }
        from.receive(out.as_bytes()).unwrap();
        let outcome = exchange.pass(&mut from, &mut to);
        assert_eq!(outcome.is_ok(), is_taken, "{count} packets");
        assert!(is_taken || matches!(outcome, Err(ForwardError::Reply(_))));
    }
}

#[test]
fn what_a_server_did_not_answer_is_sent_again_if_it_reads() {
    let agreed = Agreed {
        client: NEW,
        server: NEW,
    };
    let mut exchange = Exchange::new(CommandByte::QUERY, agreed, 1);
    let (mut from, mut to) = (channel(), channel());
    let unanswered = exchange.of_reply(Disconnect::PeerClosed, &from);
    assert_eq!(unanswered.origin(), Origin::Server);
    assert_eq!(unanswered.retry(), Retry::IfRead);
    let late = exchange.of_reply(Disconnect::Idle, &from);
    assert_eq!(late.retry(), Retry::Never);
    for piece in [&b"\x01"[..], b"\0\0\x01", b"\x01"] {
        from.receive(piece).unwrap();
        exchange.pass(&mut from, &mut to).unwrap();
        let begun = exchange.of_reply(Disconnect::PeerClosed, &from);
        assert_eq!(begun.retry(), Retry::Never, "{piece:?}");
    }
    let of_client = ForwardError::Client(Disconnect::PeerClosed);
    assert_eq!(of_client.origin(), Origin::Client);
    assert_eq!(ForwardError::Unusable.origin(), Origin::Ourselves);
}

#[test]
fn what_is_no_reply_is_told() {
    let agreed = Agreed {
        client: NEW,
        server: NEW,
    };
    for (stream, is_reply_fault) in [
        (&b"\x01\0\0\x01\0"[..], true),
        (b"\x07\0\0\x02\0\0\0\x02\0\0\0", false),
    ] {
        let (mut from, mut to) = (channel(), channel());
        let mut exchange = Exchange::new(CommandByte::QUERY, agreed, 1);
        from.receive(stream).unwrap();
        let error = exchange.pass(&mut from, &mut to).unwrap_err();
        assert_eq!(matches!(error, ForwardError::Reply(_)), is_reply_fault);
        assert_eq!(matches!(error, ForwardError::Server(_)), !is_reply_fault);
    }
}

#[test]
fn the_length_of_what_is_encoded_again_is_bounded() {
    for (info_bytes, is_taken) in [
        (REENCODED_BYTES_MAX - 100, true),
        (REENCODED_BYTES_MAX + 1, false),
    ] {
        let info = vec![b'i'; info_bytes];
        let long = OkPacket {
            info: &info,
            ..ok(StatusFlags::AUTOCOMMIT)
        };
        let mut out = reply();
        long.encode(&mut out, TRACKING, OkKind::Ok);
        let (mut from, mut to) = (channel(), channel());
        let agreed = Agreed {
            client: NEW,
            server: TRACKING,
        };
        let mut exchange = Exchange::new(CommandByte::QUERY, agreed, 1);
        from.receive(out.as_bytes()).unwrap();
        let outcome = exchange.pass(&mut from, &mut to);
        assert_eq!(outcome.is_ok(), is_taken);
        assert!(is_taken || matches!(outcome, Err(ForwardError::TooLong { .. })));
    }
}

#[test]
fn two_sides_agree_on_the_layout_of_packets() {
    for bit in [
        Capabilities::MARIADB_EXTENDED_METADATA,
        Capabilities::MARIADB_CACHE_METADATA,
        Capabilities::MARIADB_PROGRESS,
        Capabilities::OPTIONAL_METADATA,
        Capabilities::QUERY_ATTRIBUTES,
    ] {
        let unlike = Agreed::new(NEW | bit, OLD).unwrap_err();
        assert_eq!(unlike, UnlikeCapabilities(bit));
        assert_eq!(Agreed::new(NEW, OLD | bit).unwrap_err(), unlike);
        assert!(Agreed::new(NEW | bit, TRACKING | bit).is_ok());
    }
}

#[test]
fn how_a_reply_ended_is_told() {
    let agreed = Agreed::new(NEW, NEW).unwrap();
    for (command, packet, ending) in [
        (
            CommandByte::QUERY,
            &b"\x0a\0\0\x01\xFF\x48\x04#HY000.."[..],
            Ending::Error(ER_NO_TABLES_USED),
        ),
        (
            CommandByte::QUERY,
            b"\x07\0\0\x01\0\0\0\x02\0\0\0",
            Ending::Status(StatusFlags::AUTOCOMMIT),
        ),
        (CommandByte::STATISTICS, b"\x01\0\0\x01U", Ending::Silent),
        (CommandByte::STMT_CLOSE, b"", Ending::Silent),
    ] {
        let (mut from, mut to) = (channel(), channel());
        let mut exchange = Exchange::new(command, agreed, 1);
        // The text of an error comes later.
        let (head, rest) = packet.split_at(packet.len().min(8));
        for piece in [head, rest] {
            from.receive(piece).unwrap();
            exchange.pass(&mut from, &mut to).unwrap();
        }
        assert_eq!(exchange.turn(), Some(Turn::Over(ending)));
    }
}

#[test]
fn the_last_result_is_told() {
    let tally_of = |capabilities: Capabilities, stream: &[u8]| {
        let agreed = Agreed::new(capabilities, capabilities).unwrap();
        let (mut from, mut to) = (channel(), channel());
        let mut exchange = Exchange::new(CommandByte::QUERY, agreed, 1);
        for piece in stream.chunks(7) {
            from.receive(piece).unwrap();
            while exchange.pass(&mut from, &mut to).unwrap() == Passed::Full {}
        }
        exchange.tally()
    };
    for capabilities in [OLD, NEW, TRACKING] {
        let mut out = reply();
        result_set(&mut out, capabilities, StatusFlags::AUTOCOMMIT);
        let of_rows = Tally {
            has_rows: true,
            row_count: 3,
            warnings: 3,
            ..Tally::default()
        };
        assert_eq!(tally_of(capabilities, out.as_bytes()), of_rows);
        let mut out = reply();
        let changed = OkPacket {
            affected_rows: 70_000,
            last_insert_id: u64::MAX,
            warnings: 2,
            ..ok(StatusFlags::AUTOCOMMIT)
        };
        changed.encode(&mut out, capabilities, OkKind::Ok);
        let of_change = Tally {
            affected_rows: 70_000,
            last_insert_id: u64::MAX,
            warnings: 2,
            ..Tally::default()
        };
        assert_eq!(tally_of(capabilities, out.as_bytes()), of_change);
        let last = tally_of(capabilities, &many_results(capabilities));
        assert!(!last.has_rows, "it ends with an OK");
    }
}
