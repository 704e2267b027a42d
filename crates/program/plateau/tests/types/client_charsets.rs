//! Clients whose character set no column can have. `REFERENCE=mariadb` asks MariaDB instead.

use testkit::ServerKind;

use crate::wire::{BLOB, Reply, UTF8MB4, VARCHAR, Wire, start};

/// A character set, the collation that a login names, and a text in both encodings.
const SETS: &[(&str, u8, &[u8], &str)] = &[
    ("cp1250", 26, b"\x8a\xe8\x80", "\u{160}\u{10d}\u{20ac}"),
    ("cp1251", 51, b"\xc6\xf3\xea", "\u{416}\u{443}\u{43a}"),
    ("cp1251", 14, b"\xc6\xf3\xea", "\u{416}\u{443}\u{43a}"),
    ("cp1256", 57, b"\xc7\xe1\x81", "\u{627}\u{644}\u{67e}"),
    ("cp1257", 59, b"\xe0\xe8\xfe", "\u{105}\u{10d}\u{17e}"),
    ("cp866", 36, b"\x86\xe3\xaa", "\u{416}\u{443}\u{43a}"),
    ("cp932", 95, b"\x93\x5c\xb1", "\u{8cbc}\u{ff71}"),
    ("euckr", 19, b"\xc7\xd1\xb1\xdb", "\u{d55c}\u{ae00}"),
    ("gb2312", 24, b"\xd6\xd0\xb9\xfa", "\u{4e2d}\u{56fd}"),
    ("gbk", 28, b"\xd5\x5c\xb9\xfa", "\u{8aa0}\u{56fd}"),
    ("greek", 25, b"\xe1\xe2\xe3", "\u{3b1}\u{3b2}\u{3b3}"),
    ("hebrew", 16, b"\xe0\xe1\xe2", "\u{5d0}\u{5d1}\u{5d2}"),
    ("koi8r", 7, b"\xf6\xd5\xcb", "\u{416}\u{443}\u{43a}"),
    ("koi8u", 22, b"\xf6\xa4\xa6", "\u{416}\u{454}\u{456}"),
    ("latin2", 9, b"\xa9\xe8\xf8", "\u{160}\u{10d}\u{159}"),
    ("latin5", 30, b"\xfd\xf0\xfe", "\u{131}\u{11f}\u{15f}"),
    ("latin7", 41, b"\xe0\xe8\xfe", "\u{105}\u{10d}\u{17e}"),
    ("macroman", 39, b"\x8e\x8f\xdb", "\u{e9}\u{e8}\u{20ac}"),
    ("sjis", 13, b"\x95\x5c\xb1", "\u{8868}\u{ff71}"),
    ("tis620", 18, b"\xa1\xd2", "\u{e01}\u{e32}"),
];

fn hex(bytes: &[u8]) -> Vec<u8> {
    let digits = bytes.iter().map(|byte| format!("{byte:02X}"));
    digits.collect::<String>().into_bytes()
}

/// The parts of a statement, of which `?` stands for the text.
fn with_text(statement: &[u8], text: &[u8]) -> Vec<u8> {
    let parts: Vec<&[u8]> = statement.split(|byte| *byte == b'#').collect();
    parts.join(text)
}

#[test]
fn texts_are_read_and_answered_in_the_set_of_the_login() {
    let server = start();
    let mut utf8 = Wire::with_database(&server, UTF8MB4);
    for (index, (name, collation, bytes, text)) in SETS.iter().enumerate() {
        let mut wire = Wire::with_database(&server, *collation);
        let shown = wire.row(b"SELECT @@character_set_client, @@character_set_results");
        assert_eq!(shown, format!("{name}|{name}").into_bytes());
        let table = format!("t{index}").into_bytes();
        let column = with_text(
            b" (`#` VARCHAR(9) DEFAULT '#', b BLOB, v VARCHAR(9))",
            bytes,
        );
        wire.run(&[b"CREATE TABLE ", table.as_slice(), &column].concat());
        let into = [b"INSERT INTO ", table.as_slice()].concat();
        wire.run(
            &[
                into.as_slice(),
                &with_text(b" VALUES ('#', '#', '#')", bytes),
            ]
            .concat(),
        );
        wire.run(&[into.as_slice(), b" (b, v) VALUES ('', '')"].concat());
        let insert = wire.prepare(&[into.as_slice(), b" VALUES (?, ?, ?)"].concat());
        let reply = wire.execute(insert, &[*bytes; 3], VARCHAR);
        assert_eq!(reply.error, None, "{name}");
        let select = with_text(b"SELECT HEX(`#`), `#`, b, v FROM ", bytes);
        let select = [select.as_slice(), &table].concat();
        let utf8_hex = hex(text.as_bytes());
        let whole = [&utf8_hex, *bytes, bytes, bytes].join(&b'|');
        let expected = [
            whole.clone(),
            [&utf8_hex, *bytes, b"", b""].join(&b'|'),
            whole,
        ];
        for reply in [wire.query(&select), wire.prepared(&select, &[])] {
            assert_eq!(reply.rows, expected, "{name}");
            assert_eq!(&reply.names[1], bytes, "{name}");
        }
        let find = with_text(b" WHERE `#` = '#' AND v LIKE '#%'", bytes);
        let find = [b"SELECT v FROM ", table.as_slice(), &find].concat();
        assert_eq!(wire.query(&find).rows, vec![bytes.to_vec(); 2], "{name}");
        let find = with_text(b" WHERE `#` = ? AND v <> ''", bytes);
        let find = [b"SELECT v FROM ", table.as_slice(), &find].concat();
        let found = wire.prepared(&find, &[bytes]);
        assert_eq!(found.rows, vec![bytes.to_vec(); 2], "{name}");
        let stored = [b"SELECT v FROM ", table.as_slice(), b" LIMIT 1"].concat();
        assert_eq!(utf8.row(&stored), text.as_bytes(), "{name}");
        let missing = wire.query(&with_text(b"SELECT * FROM `n#`", bytes)).error;
        let message = with_text(b"Table 'd.n#' doesn't exist", bytes);
        assert_eq!(missing, Some(message), "{name}");
    }
}

/// The client's character set, a statement in which `#` stands for the bytes, the bytes, and the
/// row that comes back.
type Case = (&'static str, &'static [u8], &'static [u8], &'static [u8]);

const STATEMENTS: &[Case] = &[
    (
        "cp1251",
        b"SELECT HEX('#'), CHARSET('#'), '#' = '\xe6', LENGTH('#')",
        b"\xc6",
        b"C6|cp1251|1|1",
    ),
    (
        "cp1251",
        b"SELECT LOWER('#'), UPPER(_utf8mb4 X'D0B6'), CONCAT('#', _utf8mb4 X'D0B6')",
        b"\xc6",
        b"\xe6|\xc6|\xc6\xe6",
    ),
    (
        "cp1251",
        b"SELECT HEX(_binary'#'), HEX(_latin1'#'), HEX(N'#')",
        b"\x98\xc6",
        b"98C6|98C6|98C6",
    ),
    (
        "cp1251",
        b"SELECT HEX('#'), HEX(CONVERT('#' USING utf8mb4))",
        b"\x98",
        b"98|3F",
    ),
    (
        "cp1251",
        b"SELECT _utf8mb4 X'C3A9D096F09F9880'",
        b"",
        b"?\xc6?",
    ),
    (
        "cp1251",
        b"SELECT GROUP_CONCAT(a ORDER BY a SEPARATOR '#') FROM (SELECT '\xe0' a UNION \
          SELECT '#') x",
        b"\xc6",
        b"\xe0\xc6\xc6",
    ),
    (
        "cp1251",
        b"SELECT '#' LIKE '\xe6', '#' RLIKE '[\xe6]', LOCATE('\xe6', 'a#'), FIELD('#', \
          'a', '#')",
        b"\xc6",
        b"1|1|2|2",
    ),
    (
        "koi8r",
        b"SELECT HEX(CONVERT('#' USING cp1251)), HEX(_cp1251 X'C6'), \
          CHARSET(_cp1251 X'C6')",
        b"\xf6",
        b"C6|C6|cp1251",
    ),
    (
        "gbk",
        b"SELECT HEX('#'), CHAR_LENGTH('#'), LEFT('#x', 1), REVERSE('#x')",
        b"\xd5\x5c",
        b"D55C|1|\xd5\x5c|x\xd5\x5c",
    ),
    (
        "gbk",
        b"SELECT HEX('#'), HEX(CONVERT('#' USING utf8mb4))",
        b"\xa1\x5c",
        b"A15C|3F",
    ),
    (
        "sjis",
        b"SELECT HEX('#'), HEX(SUBSTRING('x#y', 2, 1))",
        b"\x95\x5c",
        b"955C|955C",
    ),
    (
        "gbk",
        b"SELECT HEX(CAST('#' AS BINARY)), CAST('12#' AS UNSIGNED)",
        b"\xd5\x5c",
        b"D55C|12",
    ),
];

#[test]
fn strings_are_texts_of_the_clients_set() {
    let server = start();
    let mut wire = Wire::with_database(&server, UTF8MB4);
    for &(charset, statement, bytes, expected) in STATEMENTS {
        wire.run(format!("SET NAMES {charset}").as_bytes());
        let text = with_text(statement, bytes);
        let shown = text.escape_ascii();
        for reply in [wire.query(&text), wire.query(&text)] {
            assert_eq!(reply.error, None, "{shown}");
            assert_eq!(reply.rows, [expected], "{charset} {shown}");
        }
    }
}

/// A set with characters of two bytes, and whether a byte can be the first and the second of two.
type Wide = (&'static str, fn(u8) -> bool, fn(u8) -> bool);

const WIDE: &[Wide] = &[
    (
        "gbk",
        |byte| matches!(byte, 0x81..=0xFE),
        |byte| matches!(byte, 0x40..=0x7E | 0x80..=0xFE),
    ),
    (
        "sjis",
        |byte| matches!(byte, 0x81..=0x9F | 0xE0..=0xFC),
        |byte| matches!(byte, 0x40..=0x7E | 0x80..=0xFC),
    ),
    (
        "euckr",
        |byte| matches!(byte, 0x81..=0xFE),
        |byte| matches!(byte, 0x41..=0x5A | 0x61..=0x7A | 0x81..=0xFE),
    ),
];

/// As `mysql_real_escape_string` escapes a text.
fn escaped(text: &[u8], (_, is_first, is_second): Wide) -> Vec<u8> {
    let (mut rest, mut out) = (text, Vec::new());
    while let [byte, behind @ ..] = rest {
        let second = behind.first().filter(|second| is_second(**second));
        let length = match (is_first(*byte), second) {
            (true, Some(_)) => 2,
            (true, None) => {
                out.push(b'\\');
                1
            }
            (false, _) => {
                out.extend(matches!(byte, b'\\' | b'\'' | b'"').then_some(b'\\'));
                1
            }
        };
        out.extend_from_slice(&rest[..length]);
        rest = &rest[length..];
    }
    out
}

/// No text that a client has escaped ends its string, whatever bytes it has.
#[test]
fn escaped_texts_come_back() {
    let server = start();
    let mut wire = Wire::with_database(&server, UTF8MB4);
    const BYTES: &[u8] = b"\\'a\x81\xbf\xe0";
    for wide in WIDE {
        wire.run(format!("SET NAMES {}", wide.0).as_bytes());
        // All texts of four of these bytes.
        for number in 0..BYTES.len().pow(4) {
            let place = |digit: u32| BYTES[number / BYTES.len().pow(digit) % BYTES.len()];
            let text: Vec<u8> = (0..4).map(place).collect();
            let literal = escaped(&text, *wide);
            let select = [b"SELECT HEX('", literal.as_slice(), b"'), 'end'"].concat();
            let expected = [hex(&text).as_slice(), b"|end"].concat();
            let reply = wire.query(&select);
            assert_eq!(
                reply.rows,
                [expected],
                "{} {}",
                wide.0,
                select.escape_ascii()
            );
        }
    }
}

#[test]
fn variables_name_the_sets() {
    let server = start();
    let mut wire = Wire::with_database(&server, UTF8MB4);
    let shown = b"SELECT @@character_set_client, @@character_set_connection, \
        @@collation_connection, @@character_set_results";
    for (statement, expected) in [
        (
            &b"SET NAMES cp1251"[..],
            &b"cp1251|cp1251|cp1251_general_ci|cp1251"[..],
        ),
        (
            b"SET NAMES koi8r COLLATE koi8r_bin",
            b"koi8r|koi8r|koi8r_bin|koi8r",
        ),
        (
            b"SET character_set_client = gbk",
            b"gbk|koi8r|koi8r_bin|koi8r",
        ),
        (
            b"SET character_set_connection = 'GBK'",
            b"gbk|gbk|gbk_chinese_ci|koi8r",
        ),
        (
            b"SET collation_connection = cp1250_czech_cs",
            b"gbk|cp1250|cp1250_czech_cs|koi8r",
        ),
        (
            b"SET character_set_results = latin2",
            b"gbk|cp1250|cp1250_czech_cs|latin2",
        ),
        (
            b"SET CHARACTER SET cp1257",
            b"cp1257|utf8mb4|utf8mb4_general_ci|cp1257",
        ),
    ] {
        wire.run(statement);
        assert_eq!(wire.row(shown), expected, "{}", statement.escape_ascii());
    }
    let mismatch = wire.query(b"SET NAMES cp1251 COLLATE koi8r_bin").error;
    let message = b"COLLATION 'koi8r_bin' is not valid for CHARACTER SET 'cp1251'";
    assert_eq!(mismatch, Some(message.to_vec()));
}

#[test]
fn client_connection_and_results_can_differ() {
    let server = start();
    let mut wire = Wire::with_database(&server, UTF8MB4);
    wire.run(b"SET NAMES cp1251");
    wire.run(b"SET character_set_connection = utf8mb4");
    assert_eq!(wire.row(b"SELECT HEX('\xc6'), '\xc6'"), b"D096|\xc6");
    wire.run(b"SET character_set_results = koi8r");
    assert_eq!(wire.row(b"SELECT HEX('\xc6'), '\xc6'"), b"D096|\xf6");
    let id = wire.prepare(b"SELECT HEX(?), ?, CHARSET(?)");
    let reply = wire.execute(id, &[&b"\xc6"[..]; 3], VARCHAR);
    assert_eq!(reply.rows, [b"D096|\xf6|utf8mb4"]);
    let reply = wire.execute(id, &[&b"\xc6"[..]; 3], BLOB);
    assert_eq!(reply.rows, [b"C6|\xc6|binary"]);
    wire.run(b"SET character_set_results = NULL");
    assert_eq!(wire.row(b"SELECT '\xc6'"), "\u{416}".as_bytes());
    wire.run(b"SET @v = '\xc6'");
    assert_eq!(wire.row(b"SELECT HEX(@v), CHARSET(@v)"), b"D096|utf8mb4");
    wire.run(b"SET NAMES cp1251");
    wire.run(b"SET @v = '\xc6'");
    assert_eq!(wire.row(b"SELECT HEX(@v), CHARSET(@v)"), b"C6|cp1251");
    wire.run(b"SET NAMES utf8mb4");
    assert_eq!(wire.row(b"SELECT @v"), "\u{416}".as_bytes());
    assert_eq!(
        wire.row(b"EXECUTE IMMEDIATE 'SELECT HEX(?)' USING @v"),
        b"D096"
    );
    // The rest of a text is read again.
    assert_eq!(
        wire.query(b"SET NAMES gbk; SELECT HEX('\xd5\x5c')"),
        Reply::default()
    );
    assert_eq!(wire.reply(false, b"").rows, [b"D55C"]);
}

#[test]
fn programs_remember_the_set_of_their_author() {
    let server = start();
    let mut wire = Wire::with_database(&server, 51);
    wire.run(b"CREATE PROCEDURE p() SELECT HEX('\xc6'), '\xc6', @@character_set_client");
    wire.run(b"CREATE FUNCTION f() RETURNS VARCHAR(9) CHARACTER SET utf8mb4 RETURN '\xc6'");
    let mut utf8 = Wire::with_database(&server, UTF8MB4);
    assert_eq!(
        utf8.query(b"CALL p()").rows,
        ["C6|\u{416}|cp1251".as_bytes()]
    );
    assert_eq!(utf8.row(b"SELECT HEX(f())"), b"D096");
}

/// What columns cannot have; MariaDB's can.
#[test]
fn columns_cannot_have_them() {
    let server = start();
    if server.kind() == ServerKind::MariaDb {
        return;
    }
    let mut wire = Wire::with_database(&server, 51);
    let refusal = |what: &str| {
        let text = format!("This version of MariaDB doesn't yet support '{what}'");
        Some(text.into_bytes())
    };
    let columns = refusal("columns of the character set cp1251");
    for statement in [
        &b"CREATE TABLE n (a CHAR(9) CHARACTER SET cp1251)"[..],
        b"CREATE TABLE n (a CHAR(9) COLLATE cp1251_bin)",
        b"CREATE TABLE n (a CHAR(9)) CHARACTER SET cp1251",
        b"CREATE DATABASE n CHARACTER SET cp1251",
    ] {
        assert_eq!(
            wire.query(statement).error,
            columns,
            "{}",
            statement.escape_ascii()
        );
    }
    wire.run(b"CREATE TABLE l (a CHAR(9))");
    let load = b"LOAD DATA LOCAL INFILE 'x' INTO TABLE l CHARACTER SET gbk";
    let loaded = wire.query(load).error;
    assert_eq!(loaded, refusal("LOAD DATA with the character set gbk"));
    // A column made of a literal is utf8mb4.
    wire.run(b"CREATE TABLE c AS SELECT '\xc6' AS a");
    assert_eq!(
        wire.row(b"SELECT HEX(a), CHARSET(a), a FROM c"),
        b"D096|utf8mb4|\xc6"
    );
    for (number, message) in [
        (1_u8, &b"Unknown character set: 'big5'"[..]),
        (
            35,
            b"Variable 'character_set_client' can't be set to the value of 'ucs2'",
        ),
    ] {
        let refused = Wire::login(&server, number, b"").map(drop);
        assert_eq!(
            refused.expect_err("it is refused").error,
            Some(message.to_vec())
        );
    }
}
