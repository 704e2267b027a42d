//! Stored values and weights of collations, compared with MariaDB.
//!
//! Needs Debian's `mariadbd`; `cargo xtask setup` installs it.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;

use testkit::client::{Client, Outcome};
use testkit::server::Server;
use value::temporal::{DateRules, Time, parse_datetime};
use value::{
    CollationId, ColumnType, Date, Decimal, Level, Place, StoreRules, TypeKind, Value, Warnings,
    Zone, store_value,
};

/// Columns: in DDL, and their types here.
fn columns() -> Vec<(&'static str, ColumnType)> {
    let unsigned = ColumnType::unsigned;
    let new = ColumnType::new;
    let general = CollationId::UTF8MB4_GENERAL_CI;
    let text = |kind, length| ColumnType::text(kind, length, general);
    let binary = |kind, length| ColumnType::text(kind, length, CollationId::BINARY);
    let names = || vec![Box::from(&b"a"[..]), Box::from(&b"b"[..])];
    let mut fixed = new(TypeKind::Float);
    (fixed.length, fixed.decimals) = (5, 2);
    let mut double = new(TypeKind::Double);
    double.unsigned = true;
    let mut decimal = ColumnType::decimal(5, 2);
    decimal.unsigned = true;
    let mut bit = new(TypeKind::Bit);
    bit.length = 4;
    vec![
        ("tinyint", new(TypeKind::TinyInt)),
        ("mediumint", new(TypeKind::MediumInt)),
        ("int unsigned", unsigned(TypeKind::Int)),
        ("bigint", new(TypeKind::BigInt)),
        ("bigint unsigned", unsigned(TypeKind::BigInt)),
        ("float", new(TypeKind::Float)),
        ("float(5,2)", fixed),
        ("double", new(TypeKind::Double)),
        ("double unsigned", double),
        ("decimal(5,2)", ColumnType::decimal(5, 2)),
        ("decimal(5,2) unsigned", decimal),
        ("decimal(30,0)", ColumnType::decimal(30, 0)),
        ("bit(4)", bit),
        ("year", new(TypeKind::Year)),
        ("date", new(TypeKind::Date)),
        ("time", new(TypeKind::Time)),
        ("time(1)", ColumnType::temporal(TypeKind::Time, 1)),
        ("datetime", new(TypeKind::DateTime)),
        ("datetime(6)", ColumnType::temporal(TypeKind::DateTime, 6)),
        ("timestamp null", new(TypeKind::Timestamp)),
        (
            "timestamp(3) null",
            ColumnType::temporal(TypeKind::Timestamp, 3),
        ),
        ("char(3)", text(TypeKind::Char, 3)),
        ("varchar(3)", text(TypeKind::VarChar, 3)),
        (
            "varchar(3) character set latin1",
            ColumnType::varchar(3, CollationId::LATIN1_SWEDISH_CI),
        ),
        ("binary(3)", binary(TypeKind::Binary, 3)),
        ("varbinary(3)", binary(TypeKind::VarBinary, 3)),
        ("tinytext", text(TypeKind::TinyText, 255)),
        ("blob", binary(TypeKind::Blob, 65_535)),
        (
            "enum('a','b')",
            ColumnType::named(TypeKind::Enum, names(), general),
        ),
        (
            "set('a','b')",
            ColumnType::named(TypeKind::Set, names(), general),
        ),
    ]
}

/// Texts that are stored into the columns.
#[rustfmt::skip]
const TEXTS: &[&str] = &[
    "abc", "12abc", "", " 12 ", "1.5", "2.5x", "1e3", "-1e3x", "99.999", "300", "-129",
    "1e400", "99999999999999999999", "2024-02-30", "2024-02-29", "2024-00-10",
    "0000-00-00", "2024-02-29 12:34:56.78", "2024-02-29 25:00:00", "2024-02-29x",
    "24:02:29", "12:34:56.789", "900:00:00", "-900:00:00", "1 10:00:00", "10:70:00",
    "1960-01-01", "2039-01-01", "abcd", "ab  ", "abc   ", "\u{e9}",
    "\u{e9}\u{e9}\u{e9}\u{e9}", "\u{65e5}", "\u{1F600}", "b", "c", "B", "2", "a,b", "a,c",
    "b,a", "3", "0", "00", "69", "70", "1900", "2155", "2156", "20240229",
    "20240229123456", "240229", "2024",
];

/// Integers that are stored into the columns.
#[rustfmt::skip]
const INTEGERS: &[i64] = &[
    0, 1, 2, 3, 4, 5, 16, 69, 70, 99, 100, 127, 128, -1, -128, -129, 255, 300, 1900, 1901,
    2155, 2156, 1000, 8_388_608, 20_240_229, 20_240_230, 20_240_229_123_456, 101_112,
    106_112, 8_385_959, 8_390_000, i64::MAX, i64::MIN,
];

/// Values: in SQL, their values here, and their types.
fn values() -> Vec<(String, Value, ColumnType)> {
    let mut all = Vec::new();
    let general =
        |text: &str| ColumnType::varchar(stdx::to_u32(text.len()), CollationId::UTF8MB4_GENERAL_CI);
    for text in TEXTS {
        all.push((format!("'{text}'"), Value::bytes(*text), general(text)));
    }
    for number in INTEGERS {
        all.push((
            number.to_string(),
            Value::Int(*number),
            ColumnType::new(TypeKind::BigInt),
        ));
    }
    let large = Value::UInt(u64::MAX);
    all.push((
        u64::MAX.to_string(),
        large,
        ColumnType::unsigned(TypeKind::BigInt),
    ));
    for text in [
        "1.567",
        "2.5",
        "-2.5",
        "999.994",
        "999.995",
        "-1.5",
        "0.4",
        "12345678901234567890.5",
    ] {
        let number: Decimal = text.parse().expect("a decimal");
        let column = ColumnType::decimal(30, number.scale());
        all.push((text.to_owned(), Value::Decimal(number), column));
    }
    for number in [1.5e0, 2.5, -1.5, 1e20, 1.25, 0.5, 20_240_229.0] {
        let column = ColumnType::new(TypeKind::Double);
        all.push((format!("{number:e}"), Value::Double(number), column));
    }
    let date = Date::new(2024, 2, 29);
    all.push((
        "DATE'2024-02-29'".into(),
        Value::Date(date),
        ColumnType::new(TypeKind::Date),
    ));
    let time = Value::Time(Time::from_parts(false, 10, 11, 12, 560_000));
    all.push((
        "TIME'10:11:12.56'".into(),
        time,
        ColumnType::temporal(TypeKind::Time, 2),
    ));
    let moment = parse_datetime(b"2024-02-29 10:11:12.56")
        .expect("a moment")
        .value;
    let column = ColumnType::temporal(TypeKind::DateTime, 2);
    all.push((
        "TIMESTAMP'2024-02-29 10:11:12.56'".into(),
        Value::DateTime(moment),
        column,
    ));
    let bytes = ColumnType::text(TypeKind::VarBinary, 3, CollationId::BINARY);
    all.push(("x'ff'".into(), Value::Bytes(vec![0xFF]), bytes.clone()));
    all.push((
        "x'61ff62'".into(),
        Value::Bytes(vec![0x61, 0xFF, 0x62]),
        bytes,
    ));
    all.push(("NULL".into(), Value::Null, ColumnType::new(TypeKind::Null)));
    all
}

fn start() -> (Server, Client) {
    Server::reference(&[
        "CREATE DATABASE d",
        "USE d",
        "SET NAMES utf8mb4",
        "SET time_zone = '+00:00', timestamp = 1709296496",
    ])
}

#[test]
fn columns_store_what_mariadb_stores() {
    let (_server, mut client) = start();
    let known: BTreeSet<&str> = include_str!("known_stores.txt")
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .collect();
    let (mut report, mut differing, mut count) = (Vec::new(), BTreeSet::new(), 0);
    for (index, (ddl, column)) in columns().iter().enumerate() {
        let ddl_column = if ddl.contains("char") || ddl.contains("text") || ddl.contains('(') {
            (*ddl).to_owned()
        } else {
            format!("{ddl} NULL").replace("null NULL", "null")
        };
        client
            .run(&format!(
                "CREATE TABLE t{index} (a {ddl_column}) ENGINE=MyISAM CHARSET=utf8mb4"
            ))
            .expect("a table");
        for strict in [false, true] {
            let mode = if strict {
                "STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE"
            } else {
                ""
            };
            client
                .run(&format!("SET sql_mode = '{mode}'"))
                .expect("a mode");
            for (sql, value, from) in &values() {
                count += 1;
                let ours = ours(value, from, column, index, strict);
                let theirs = theirs(&mut client, index, sql);
                if ours != theirs {
                    let case = format!("{ddl} <- {sql}{}", if strict { " strict" } else { "" });
                    if !known.contains(case.as_str()) {
                        report.push(format!("{case}\n    here    {ours}\n    MariaDB {theirs}"));
                    }
                    differing.insert(case);
                }
            }
        }
    }
    if let Ok(path) = std::env::var("UPDATE_KNOWN") {
        let lines: Vec<&str> = differing.iter().map(String::as_str).collect();
        std::fs::write(path, lines.join("\n") + "\n").expect("the file is writable");
    }
    let healed: Vec<_> = known
        .iter()
        .filter(|line| !differing.contains(**line))
        .collect();
    let unknown = report.len();
    assert!(
        report.is_empty() && healed.is_empty(),
        "{unknown} of {count} differ:\n{}\nno longer differing: {healed:#?}",
        report.join("\n")
    );
}

/// The stored text and the conditions, or the error.
fn ours(value: &Value, from: &ColumnType, to: &ColumnType, table: usize, strict: bool) -> String {
    let rules = StoreRules {
        strict,
        dates: DateRules {
            no_zero_date: strict,
            no_zero_in_date: strict,
            allow_invalid: false,
        },
        today: Date::new(2024, 3, 1),
        zone: &Zone::Utc,
    };
    let table = format!("t{table}");
    let place = Place {
        database: "d",
        table: &table,
        column: "a",
        row: 1,
    };
    let mut warnings = Warnings::default();
    match store_value(value.as_ref(), from, to, place, &rules, &mut warnings) {
        Err(condition) => format!("error {} {}", condition.code, condition.message),
        Ok(stored) => {
            let text = stored
                .as_ref()
                .to_text(to)
                .map(std::borrow::Cow::into_owned);
            let text = if to.collation == CollationId::LATIN1_SWEDISH_CI {
                text.map(|text| to.charset().to_utf8_lossy(&text).into_owned().into_bytes())
            } else {
                text
            };
            let conditions = warnings.entries().iter().map(|(level, condition)| {
                let level = if *level == Level::Note {
                    "Note"
                } else {
                    "Warning"
                };
                format!("{level} {} {}", condition.code, condition.message)
            });
            shown(text.as_deref(), conditions.collect())
        }
    }
}

fn theirs(client: &mut Client, table: usize, sql: &str) -> String {
    client
        .run(&format!("DELETE FROM t{table}"))
        .expect("an empty table");
    let insert = format!("INSERT INTO t{table} VALUES ({sql})");
    if let Outcome::Error(error) = client.query(&insert).expect("the connection holds") {
        return format!("error {} {}", error.number, error.message);
    }
    let text = |cell: &Option<Vec<u8>>| {
        String::from_utf8_lossy(cell.as_deref().unwrap_or(b"")).into_owned()
    };
    let conditions = client.rows("SHOW WARNINGS").expect("warnings");
    let conditions = conditions
        .iter()
        .map(|row| format!("{} {} {}", text(&row[0]), text(&row[1]), text(&row[2])))
        .collect();
    let rows = client
        .rows(&format!("SELECT a FROM t{table}"))
        .expect("a row");
    shown(rows[0][0].as_deref(), conditions)
}

fn shown(text: Option<&[u8]>, conditions: Vec<String>) -> String {
    let text = match text {
        None => "NULL".to_owned(),
        Some(text) => match std::str::from_utf8(text) {
            Ok(text) => format!("{text:?}"),
            Err(_) => format!("{text:02x?}"),
        },
    };
    format!("{text} {}", conditions.join("; "))
}

/// Every code point of the basic plane, and samples beyond it, in every collation of UTF-8.
#[test]
fn weights_are_mariadbs() {
    let (_server, mut client) = start();
    for collation in [
        CollationId::UTF8MB4_GENERAL_CI,
        CollationId::UTF8MB4_UNICODE_CI,
        CollationId::UTF8MB4_UNICODE_520_CI,
        CollationId::UTF8MB4_BIN,
    ] {
        let name = collation.name();
        let rows = client
            .rows(&format!(
                "SELECT seq, HEX(WEIGHT_STRING(c COLLATE {name})), UPPER(c), LOWER(c) FROM \
                 (SELECT seq, CONVERT(CHAR(seq USING utf32) USING utf8mb4) AS c \
                 FROM seq_1_to_131071 WHERE seq NOT BETWEEN 55296 AND 57343) AS t"
            ))
            .expect("weights");
        for row in rows {
            let cell = |index: usize| row[index].as_deref().unwrap_or(b"");
            let text = |index: usize| String::from_utf8_lossy(cell(index)).into_owned();
            let code: u32 = text(0).parse().expect("a number");
            let bytes = char::from_u32(code)
                .expect("no surrogate")
                .to_string()
                .into_bytes();
            let mut weights = Vec::new();
            collation.append_weights(&bytes, &mut weights);
            let hex: String = weights.iter().map(|byte| format!("{byte:02X}")).collect();
            assert_eq!(hex, text(1), "U+{code:04X} in {name}");
            let (mut upper, mut lower) = (Vec::new(), Vec::new());
            collation.charset().append_upper(&bytes, &mut upper);
            collation.charset().append_lower(&bytes, &mut lower);
            assert_eq!(upper, cell(2), "U+{code:04X} in capital letters");
            assert_eq!(lower, cell(3), "U+{code:04X} in small letters");
        }
    }
}

/// The collations of languages, without the root ones.
fn languages() -> impl Iterator<Item = CollationId> {
    CollationId::all().filter(|it| {
        let id = it.id();
        (225..=247).contains(&id) && id != 246 || id == 608
    })
}

fn weights_of(collation: CollationId, text: &str) -> String {
    let mut weights = Vec::new();
    collation.append_weights(text.as_bytes(), &mut weights);
    weights.iter().map(|byte| format!("{byte:02X}")).collect()
}

fn texts(row: Vec<Option<Vec<u8>>>) -> Vec<String> {
    let text = |cell: Option<Vec<u8>>| String::from_utf8(cell.unwrap_or_default()).expect("UTF-8");
    row.into_iter().map(text).collect()
}

/// Every code point of the basic plane, and pairs of letters, in every collation of a language: the
/// differences from `unicode_ci`, and the contractions, are the same.
#[test]
fn weights_of_languages_are_mariadbs() {
    let (_server, mut client) = start();
    let root = CollationId::UTF8MB4_UNICODE_CI;
    let plane: Vec<String> = (1..=0xFFFF)
        .filter_map(char::from_u32)
        .map(String::from)
        .collect();
    for collation in languages() {
        let name = collation.name();
        let theirs: Vec<Vec<String>> = client
            .rows(&format!(
                "SELECT c, HEX(WEIGHT_STRING(c COLLATE {name})) FROM \
                 (SELECT CONVERT(CHAR(seq USING utf32) USING utf8mb4) AS c FROM seq_1_to_65535 \
                 WHERE seq NOT BETWEEN 55296 AND 57343) AS t WHERE \
                 WEIGHT_STRING(c COLLATE {name}) <> WEIGHT_STRING(c COLLATE utf8mb4_unicode_ci)"
            ))
            .expect("weights")
            .into_iter()
            .map(texts)
            .collect();
        let ours: Vec<Vec<String>> = plane
            .iter()
            .map(|letter| (letter, weights_of(collation, letter)))
            .filter(|(letter, weights)| *weights != weights_of(root, letter))
            .map(|(letter, weights)| vec![letter.clone(), weights])
            .collect();
        assert!(!ours.is_empty());
        assert_eq!(ours, theirs, "{name}");
        let letters: Vec<String> = ours.into_iter().map(|row| row[0].clone()).collect();
        pairs_weigh_the_same(&mut client, collation, &letters);
    }
}

/// All pairs of ASCII letters, those of the blocks Latin-1 and Extended-A, and the language's own.
fn pairs_weigh_the_same(client: &mut Client, collation: CollationId, own: &[String]) {
    let name = collation.name();
    let latin = ('A'..='Z')
        .chain('a'..='z')
        .chain('\u{c0}'..='\u{17f}')
        .map(String::from);
    let mut letters: Vec<String> = latin.chain(own.iter().cloned()).collect();
    letters.sort();
    letters.dedup();
    client
        .run("DROP TABLE IF EXISTS letters")
        .expect("no table");
    client
        .run(&format!(
            "CREATE TABLE letters (c VARCHAR(1) CHARSET utf8mb4 COLLATE {name}, w VARBINARY(16)) \
             ENGINE=MyISAM"
        ))
        .expect("a table");
    let values: Vec<String> = letters
        .iter()
        .map(|letter| format!("('{letter}', '')"))
        .collect();
    client
        .run(&format!("INSERT INTO letters VALUES {}", values.join(",")))
        .expect("letters");
    client
        .run("UPDATE letters SET w = WEIGHT_STRING(c)")
        .expect("weights");
    let theirs: BTreeSet<Vec<String>> = client
        .rows(
            "SELECT CONCAT(a.c, b.c), HEX(WEIGHT_STRING(CONCAT(a.c, b.c))) FROM letters AS a, \
             letters AS b WHERE WEIGHT_STRING(CONCAT(a.c, b.c)) <> CONCAT(a.w, b.w)",
        )
        .expect("pairs")
        .into_iter()
        .map(texts)
        .collect();
    let weights: Vec<String> = letters.iter().map(|it| weights_of(collation, it)).collect();
    let mut ours = BTreeSet::new();
    for (first, first_weights) in letters.iter().zip(&weights) {
        for (second, second_weights) in letters.iter().zip(&weights) {
            let pair = format!("{first}{second}");
            let found = weights_of(collation, &pair);
            if found != format!("{first_weights}{second_weights}") {
                ours.insert(vec![pair, found]);
            }
        }
    }
    assert_eq!(ours, theirs, "{name}");
}

/// Words of few letters, sorted in every collation of a language.
#[test]
fn words_are_sorted_as_mariadb_sorts_them() {
    let (_server, mut client) = start();
    let alphabet = [
        "a", "A", "c", "C", "d", "h", "H", "j", "J", "l", "L", "n", "z", "\u{17e}", "\u{c5}", " ",
        "\t", "\u{f6}",
    ];
    let word = |number: usize| {
        let digits = [number, number / 18, number / 324, number / 5832];
        let length = 1 + number % 4;
        let digits = digits[..length]
            .iter()
            .map(|digit| alphabet[digit * 7 % 18]);
        digits.collect::<String>()
    };
    let words: Vec<String> = (0..3000).map(|number| word(number * 31)).collect();
    client
        .run("CREATE TABLE words (id INT PRIMARY KEY, c VARCHAR(9) CHARSET utf8mb4) ENGINE=MyISAM")
        .expect("a table");
    let values: Vec<String> = words
        .iter()
        .enumerate()
        .map(|(id, word)| format!("({id}, '{word}')"))
        .collect();
    client
        .run(&format!("INSERT INTO words VALUES {}", values.join(",")))
        .expect("words");
    for collation in languages().chain([CollationId::UTF8MB4_UNICODE_520_CI]) {
        let name = collation.name();
        let theirs: Vec<String> = client
            .rows(&format!(
                "SELECT id FROM words ORDER BY c COLLATE {name}, id"
            ))
            .expect("words")
            .into_iter()
            .flat_map(texts)
            .collect();
        let mut ours: Vec<usize> = (0..words.len()).collect();
        ours.sort_by(|left, right| {
            let (left, right) = (words[*left].as_bytes(), words[*right].as_bytes());
            collation.compare(left, right)
        });
        let ours: Vec<String> = ours.iter().map(usize::to_string).collect();
        assert!(ours == theirs, "{name}");
    }
}

/// Every byte of latin1 and ascii.
#[test]
fn single_byte_weights_are_mariadbs() {
    let (_server, mut client) = start();
    for collation in [
        CollationId::LATIN1_SWEDISH_CI,
        CollationId::LATIN1_BIN,
        CollationId::ASCII_GENERAL_CI,
        CollationId::ASCII_BIN,
    ] {
        let (name, charset) = (collation.name(), collation.charset().name());
        let last = if charset == "ascii" { 127 } else { 255 };
        let rows = client
            .rows(&format!(
                "SELECT seq, HEX(WEIGHT_STRING(CHAR(seq USING {charset}) COLLATE {name})), \
                 HEX(UPPER(CHAR(seq USING {charset}))) FROM seq_0_to_{last}"
            ))
            .expect("weights");
        for row in rows {
            let text = |index: usize| {
                String::from_utf8_lossy(row[index].as_deref().unwrap_or(b"")).into_owned()
            };
            let byte: u8 = text(0).parse().expect("a byte");
            let (mut weights, mut upper) = (Vec::new(), Vec::new());
            collation.append_weights(&[byte], &mut weights);
            collation.charset().append_upper(&[byte], &mut upper);
            let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02X}")).collect::<String>();
            assert_eq!(
                (hex(&weights), hex(&upper)),
                (text(1), text(2)),
                "{byte:02x} in {name}"
            );
        }
    }
}
