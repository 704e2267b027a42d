//! The character sets of clients, character by character, compared with MariaDB.
//!
//! Needs Debian's `mariadbd`; `cargo xtask setup` installs it.

#![forbid(unsafe_code)]

use testkit::client::Client;
use testkit::server::Server;
use value::Charset;
use value::collation::ClientCharset;

/// Characters that a set has here and not in MariaDB. The browsers' tables of GBK and Shift JIS
/// have later rows.
const EXTRA_COUNTS: [(&str, usize); 3] = [("gbk", 101), ("gb2312", 46), ("sjis", 845)];

/// Code points that a set writes otherwise than MariaDB. The backslash of sjis is the full-width
/// one there, tis620 has a byte for what is no character, and cp932 one for a code point that none
/// of its bytes mean.
const WRITTEN_OTHERWISE: [(&str, u16); 3] = [("sjis", 0x5C), ("tis620", 0xFFFD), ("cp932", 0x6661)];

/// Rows of two numbers in hexadecimal.
fn numbers(client: &mut Client, statement: &str) -> Vec<(u16, String)> {
    let rows = client.rows(statement).expect("rows");
    let text = |bytes: &Option<Vec<u8>>| {
        let bytes = bytes.clone().expect("no NULL");
        String::from_utf8(bytes).expect("hexadecimal")
    };
    let number = |text: &str| u16::from_str_radix(text, 16).expect("16 bits");
    rows.iter()
        .map(|row| (number(&text(&row[0])), text(&row[1])))
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// The code points of bytes, in hexadecimal.
fn decoded(charset: Charset, bytes: &[u8]) -> String {
    let text = charset.to_utf8_lossy(bytes);
    let units = text.encode_utf16().map(|unit| format!("{unit:04X}"));
    units.collect()
}

#[test]
fn each_character_is_mariadbs() {
    let (_server, mut client) = Server::reference(&["CREATE DATABASE test", "USE test"]);
    let mut differences = Vec::new();
    for charset in ClientCharset::ALL.map(Charset::Client) {
        let name = charset.name();
        let of_bytes = |width: usize, from: u32, to: u32| {
            format!(
                "SELECT HEX(seq), HEX(CONVERT(CONVERT(UNHEX(LPAD(HEX(seq), {width}, '0')) \
                 USING {name}) USING ucs2)) FROM test.seq_{from}_to_{to}"
            )
        };
        for (number, expected) in numbers(&mut client, &of_bytes(2, 0, 255)) {
            let bytes = [number.to_be_bytes()[1]];
            // tis620 has a character for what is none.
            let expected = expected.replace("FFFD", "003F");
            let found = decoded(charset, &bytes);
            if found != expected {
                differences.push(format!("{name} {number:02X}: {found}, not {expected}"));
            }
        }
        let mut extra_count = 0;
        if !charset.is_single_byte() {
            for (number, expected) in numbers(&mut client, &of_bytes(4, 0x8000, 0xFFFF)) {
                let found = decoded(charset, &number.to_be_bytes());
                if expected == "003F" && found.len() == 4 {
                    extra_count += usize::from(found != expected);
                } else if found != expected && (name, number) != ("sjis", 0x815F) {
                    differences.push(format!("{name} {number:04X}: {found}, not {expected}"));
                }
            }
        }
        let extra = EXTRA_COUNTS.iter().find(|(it, _)| *it == name);
        if extra_count != extra.map_or(0, |(_, count)| *count) {
            differences.push(format!("{name} has {extra_count} characters more"));
        }
        let of_codes = format!(
            "SELECT HEX(seq), HEX(CONVERT(CONVERT(UNHEX(LPAD(HEX(seq), 4, '0')) USING ucs2) \
             USING {name})) FROM test.seq_0_to_65535 WHERE seq < 0xD800 OR seq > 0xDFFF"
        );
        for (code, expected) in numbers(&mut client, &of_codes) {
            let mut found = Vec::new();
            if !charset.encode(u32::from(code), &mut found) {
                found.push(b'?');
            }
            // What is extra here is `?` there.
            let is_extra = expected == "3F" && extra.is_some();
            let found = hex(&found);
            if found != expected && !is_extra && !WRITTEN_OTHERWISE.contains(&(name, code)) {
                differences.push(format!("{name} U+{code:04X}: {found}, not {expected}"));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
