//! Events made by hand, after the documentation of both servers.

use super::*;

/// Kinds of events.
const QUERY: u8 = 2;
const ROTATE: u8 = 4;
const FORMAT: u8 = 15;
const XID: u8 = 16;
const LOAD: u8 = 18;
const TABLE_MAP: u8 = 19;
const INCIDENT: u8 = 26;
const HEARTBEAT: u8 = 27;
const WRITE_ROWS: u8 = 30;
const MYSQL_GTID: u8 = 33;
const ANONYMOUS: u8 = 34;
const PAYLOAD: u8 = 40;
const TAGGED: u8 = 42;
const MARIADB_GTID: u8 = 162;
const COMPRESSED_QUERY: u8 = 165;
const COMPRESSED_ROWS: u8 = 169;

fn event(kind: u8, flags: u16, end: u32, body: &[u8], checksum: Checksum) -> Vec<u8> {
    let tail = if checksum == Checksum::Crc32 { 4 } else { 0 };
    let mut event = vec![1, 2, 3, 4, kind, 7, 0, 0, 0];
    event.extend(u32::try_from(19 + body.len() + tail).unwrap().to_le_bytes());
    event.extend(end.to_le_bytes());
    event.extend(flags.to_le_bytes());
    event.extend(body);
    if checksum == Checksum::Crc32 {
        event.extend(crc32fast::hash(&event).to_le_bytes());
    }
    event.insert(0, 0);
    event
}

fn plain(kind: u8, end: u32, body: &[u8]) -> Vec<u8> {
    event(kind, 0, end, body, Checksum::Off)
}

fn format(checksum: u8) -> Vec<u8> {
    let mut body = vec![4, 0];
    body.extend([b'v'; 50]);
    body.extend([0, 0, 0, 0, 19]);
    body.extend([9; 40]);
    body.push(checksum);
    body.extend([0xee; 4]);
    plain(FORMAT, 0, &body)
}

fn statement(settings: &[u8], text: &[u8]) -> Vec<u8> {
    let mut body = vec![1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0];
    body.extend(u16::try_from(settings.len()).unwrap().to_le_bytes());
    body.extend(settings);
    body.extend(b"d\0");
    body.extend(text);
    body
}

fn table(id: u8, name: &[u8]) -> Vec<u8> {
    let mut body = vec![id, 0, 0, 0, 0, 0, 1, 0, 1, b'd', 0];
    body.push(u8::try_from(name.len()).unwrap());
    body.extend(name);
    body.extend([0, 1, 3, 0]);
    plain(TABLE_MAP, 0, &body)
}

fn rows(kind: u8, id: u8) -> Vec<u8> {
    plain(kind, 0, &[id, 0, 0, 0, 0, 0, 1, 0, 2, 0, 9])
}

fn reader() -> LogReader {
    LogReader::new(Place::new(b"log.000001", 4), Checksum::Off)
}

#[track_caller]
fn expect(reader: &mut LogReader, packet: &[u8], expected: Told<'_>) {
    assert_eq!(reader.take(packet), Ok(expected));
}

#[test]
fn rows_are_those_of_the_table_that_was_mapped_last() {
    let mut reader = reader();
    let gtid = Gtid::MariaDb {
        domain: 3,
        server: 7,
        sequence: 5,
    };
    let body = [5, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0];
    let begin = plain(MARIADB_GTID, 100, &body);
    expect(&mut reader, &begin, Told::Transaction(gtid));
    assert_eq!(gtid.to_string(), "3-7-5");
    expect(&mut reader, &table(8, b"orders"), Told::Nothing);
    expect(&mut reader, &rows(WRITE_ROWS, 8), Told::Rows(b"orders"));
    expect(
        &mut reader,
        &rows(COMPRESSED_ROWS, 8),
        Told::Rows(b"orders"),
    );
    expect(&mut reader, &rows(24, 9), Told::UnknownRows);
    expect(&mut reader, &table(8, b"items"), Told::Nothing);
    expect(&mut reader, &rows(39, 8), Told::Rows(b"items"));
    let end = plain(WRITE_ROWS, 0, &[0xff, 0xff, 0xff, 0, 0, 0, 1, 0]);
    expect(&mut reader, &end, Told::Nothing);
    expect(&mut reader, &plain(XID, 180, &[1; 8]), Told::Nothing);
    assert_eq!(reader.place().to_string(), "log.000001:180");
    expect(&mut reader, &begin, Told::Transaction(gtid));
    expect(&mut reader, &rows(WRITE_ROWS, 8), Told::UnknownRows);
}

#[test]
fn transactions_of_mysql_have_names_of_their_own() {
    let mut reader = reader();
    let mut body = vec![1];
    body.extend(0x3e11_fa47_71ca_11e1_9e33_c80a_a942_9562_u128.to_be_bytes());
    body.extend(23_u64.to_le_bytes());
    body.extend([2; 16]);
    let gtid = match reader.take(&plain(MYSQL_GTID, 90, &body)).unwrap() {
        Told::Transaction(gtid) => gtid.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(gtid, "3e11fa4771ca11e19e33c80aa9429562:23");
    for kind in [ANONYMOUS, TAGGED] {
        let begin = plain(kind, 0, &body);
        expect(&mut reader, &begin, Told::Transaction(Gtid::Unread));
    }
    assert_eq!(Gtid::Unread.to_string(), "");
    expect(&mut reader, &plain(PAYLOAD, 0, &body), Told::UnknownRows);
}

#[test]
fn a_statement_has_its_mode_and_its_character_set() {
    let mode: &[u8] = &[4, 0, 0x10, 0, 0, 0, 0, 0];
    let first = [&[0, 1, 0, 0, 0, 1][..], mode, &[6, 3, b's', b't', b'd']].concat();
    let whole = [&first[..], &[3, 1, 0, 1, 0, 4, 33, 0, 8, 0, 8, 0, 5, 0xff]].concat();
    let text = b"INSERT INTO t VALUES (1)";
    for (settings, sql_mode, collation) in [
        (&b""[..], None, None),
        (&first, Some(0x10_0004), None),
        (&whole, Some(0x10_0004), Some(33)),
        (&[200, 1], None, None),
    ] {
        let told = Told::Statement(Statement {
            text,
            sql_mode,
            collation,
        });
        expect(
            &mut reader(),
            &plain(QUERY, 0, &statement(settings, text)),
            told,
        );
        let mut load = statement(settings, text);
        load.splice(13..13, [5; 13]);
        expect(&mut reader(), &plain(LOAD, 0, &load), told);
    }
    let cut = plain(QUERY, 0, &statement(&first[..10], text));
    assert!(matches!(reader().take(&cut), Err(LogError::Malformed(_))));
}

#[test]
fn what_is_not_known_may_change_anything() {
    for (kind, flags, expected) in [
        (INCIDENT, 0, Told::Unknown),
        (COMPRESSED_QUERY, 0, Told::Unknown),
        (99, 0, Told::Unknown),
        (99, 0x80, Told::Nothing),
        (HEARTBEAT, 0, Told::Nothing),
    ] {
        let packet = event(kind, flags, 0, b"log.000001", Checksum::Off);
        expect(&mut reader(), &packet, expected);
    }
}

#[test]
fn checksums_are_those_that_the_format_says() {
    let mut reader = reader();
    let right = event(XID, 0, 99, &[1; 8], Checksum::Crc32);
    let mut wrong = right.clone();
    wrong[25] ^= 1;
    expect(&mut reader, &wrong, Told::Nothing);
    expect(&mut reader, &format(1), Told::Begun);
    expect(&mut reader, &right, Told::Nothing);
    assert_eq!(reader.take(&wrong), Err(LogError::Checksum));
    assert_eq!(reader.take(&format(2)), Err(LogError::UnknownChecksum(2)));
    expect(&mut reader, &format(0), Told::Begun);
    expect(&mut reader, &wrong, Told::Nothing);
    // A rotation before the format has the checksum that was asked for.
    let rotate = event(
        ROTATE,
        0x20,
        7,
        b"\x04\0\0\0\0\0\0\0log.000002",
        Checksum::Crc32,
    );
    let mut asked = LogReader::new(Place::default(), Checksum::Crc32);
    expect(&mut asked, &rotate, Told::Nothing);
    assert_eq!(asked.place().to_string(), "log.000002:4");
}

#[test]
fn places_rise_past_what_an_event_has_room_for() {
    let mut reader = reader();
    let mut advance = |end: u32, flags: u16| {
        let packet = event(XID, flags, end, &[1; 8], Checksum::Off);
        expect(&mut reader, &packet, Told::Nothing);
        reader.place().offset
    };
    assert_eq!(advance(500, 0), 500);
    assert_eq!(advance(0, 0), 500);
    assert_eq!(advance(900, 0x20), 500, "it is in no file");
    assert_eq!(advance(400, 0), 500, "places do not go back");
    assert_eq!(advance(0xc000_0000, 0), 0xc000_0000);
    assert_eq!(advance(16, 0), 0x1_0000_0010);
}

#[test]
fn packets_that_are_no_events_are_refused() {
    let good = plain(XID, 9, &[1; 8]);
    for length in 0..good.len() {
        let cut = reader().take(&good[..length]).is_err();
        assert!(cut, "{length}");
    }
    let mut other = good.clone();
    other[0] = 0xef;
    assert!(reader().take(&other).is_err());
    other = [&good[..], &[0]].concat();
    assert!(reader().take(&other).is_err());
}

#[test]
fn as_many_tables_are_known_as_there_is_room_for() {
    let mut reader = reader();
    let map = |id: usize| {
        let mut packet = table(0, b"t");
        packet[20..22].copy_from_slice(&u16::try_from(id).unwrap().to_le_bytes());
        packet
    };
    let change = |id: usize| {
        let mut packet = rows(WRITE_ROWS, 0);
        packet[20..22].copy_from_slice(&u16::try_from(id).unwrap().to_le_bytes());
        packet
    };
    for id in 0..=TABLES_MAX {
        expect(&mut reader, &map(id), Told::Nothing);
    }
    expect(&mut reader, &map(0), Told::Nothing);
    for (id, expected) in [
        (0, Told::Rows(b"t")),
        (TABLES_MAX - 1, Told::Rows(b"t")),
        (TABLES_MAX, Told::UnknownRows),
    ] {
        expect(&mut reader, &change(id), expected);
    }
}
