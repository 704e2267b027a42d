//! Writes the tables of `src/collation/tables`, from a running MariaDB and from Unicode's collation
//! elements.
//!
//! ```text
//! cargo run -p value --example collation_tables -- mariadb SOCKET OUT_DIR
//! cargo run -p value --example collation_tables -- unicode ALLKEYS OUT_DIR
//! ```
//!
//! SOCKET is the unix socket of a MariaDB 10.11 with user `root` without password; the client
//! `mariadb` is installed. ALLKEYS is the file `allkeys.txt` of
//! <https://www.unicode.org/Public/UCA/9.0.0/> (the Python package `pyuca` has it as
//! `allkeys-9.0.0.txt`). What was written is what stands there already, as `git diff` shows.
//! `tests/mariadb.rs` also compares the tables with a server.

#![forbid(unsafe_code)]
#![allow(clippy::print_stderr, reason = "a tool that people run")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;

mod ducet;
mod languages;
mod weight_file;

use weight_file::WeightFile;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["mariadb", socket, out] => write_mariadb(socket, out),
        ["unicode", allkeys, out] => {
            let text = std::fs::read_to_string(allkeys).expect("the table is readable");
            let bytes = ducet::weights(&text).bytes(u32::to_le_bytes);
            write(out, "uca900.weights", bytes);
        }
        _ => {
            eprintln!("usage: collation_tables mariadb SOCKET OUT_DIR | unicode ALLKEYS OUT_DIR");
            std::process::exit(2);
        }
    }
}

fn write_mariadb(socket: &str, out: &str) {
    let socket = socket.to_owned();
    let server = Server { socket };
    let unicode = |collation, last| unicode(&server, collation, last).bytes(u16::to_le_bytes);
    let general = general(&server).bytes(u16::to_le_bytes);
    write(out, "general.weights", general);
    write(out, "unicode.weights", unicode("unicode_ci", 0xFFFF));
    let version_520 = unicode("unicode_520_ci", 0x10_FFFF);
    write(out, "unicode520.weights", version_520);
    write(out, "languages.rs", languages::tables(&server));
    write(out, "latin1.rs", latin1(&server));
    write(out, "case.rs", cases(&server));
}

fn write(out: &str, name: &str, contents: impl AsRef<[u8]>) {
    std::fs::write(format!("{out}/{name}"), contents).expect("the output folder is writable");
}

struct Server {
    socket: String,
}

impl Server {
    /// The rows of a query, split at tabs.
    fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        let output = Command::new("mariadb")
            .args([
                "--no-defaults",
                "-N",
                "-B",
                "-uroot",
                "--default-character-set=utf8mb4",
            ])
            .args(["-S", &self.socket, "-e", sql, "test"])
            .output()
            .expect("the client is installed");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let text = String::from_utf8(output.stdout).expect("the client writes UTF-8");
        text.lines()
            .map(|line| line.split('\t').map(str::to_owned).collect())
            .collect()
    }

    /// The weights of each code point up to the last.
    fn weights(&self, collation: &str, last: u32) -> BTreeMap<u32, Vec<u16>> {
        let sql = format!(
            "SELECT seq, HEX(WEIGHT_STRING({CHAR} COLLATE {collation})) \
             FROM seq_0_to_{last} WHERE seq NOT BETWEEN 55296 AND 57343"
        );
        let parse = |row: Vec<String>| (row[0].parse().expect("a number"), words(&row[1]));
        self.rows(&sql).into_iter().map(parse).collect()
    }
}

/// The 16-bit words of a text of hexadecimal digits.
fn words(hex: &str) -> Vec<u16> {
    let word = |chunk| {
        let word = std::str::from_utf8(chunk).expect("hexadecimal digits");
        u16::from_str_radix(word, 16).expect("hexadecimal digits")
    };
    hex.as_bytes().chunks(4).map(word).collect()
}

/// The character of a sequence's number.
const CHAR: &str = "CONVERT(CHAR(seq USING utf32) USING utf8mb4)";

/// The pages that differ from the code points.
fn general(server: &Server) -> WeightFile<u16> {
    let weights = server.weights("utf8mb4_general_ci", 0xFFFF);
    let mut pages = BTreeMap::new();
    for (code, weight) in &weights {
        if *code != u32::from(weight[0]) {
            let page = code >> 8;
            pages.entry(page).or_insert_with(|| {
                let of = |low| {
                    weights
                        .get(&(page << 8 | low))
                        .map_or(0, |weight| weight[0])
                };
                (0..256).map(of).collect::<Vec<u16>>()
            });
        }
    }
    WeightFile {
        pages,
        expansions: Vec::new(),
        last: 0xFFFF,
    }
}

/// The pages of explicit weights, and expansions.
fn unicode(server: &Server, collation: &str, last: u32) -> WeightFile<u16> {
    let weights = server.weights(&format!("utf8mb4_{collation}"), last);
    let explicit = |code: u32| weights.get(&code).filter(|found| **found != implicit(code));
    let mut expansions: Vec<Vec<u16>> = Vec::new();
    let mut pages = BTreeMap::new();
    for page in 0..=last >> 8 {
        if (0..256).all(|low| explicit(page << 8 | low).is_none()) {
            continue;
        }
        let mut words = Vec::new();
        for code in page << 8..(page + 1) << 8 {
            let found = weights.get(&code).cloned().unwrap_or_default();
            match found.as_slice() {
                [] => words.push(0),
                _ if found == implicit(code) => words.push(0xFFFF),
                [single] => {
                    assert!(*single < 0xE000, "expansions start there");
                    words.push(*single);
                }
                several => {
                    let known = expansions.iter().position(|known| known == several);
                    let index = known.unwrap_or_else(|| {
                        expansions.push(several.to_vec());
                        expansions.len() - 1
                    });
                    words.push(0xE000 + u16::try_from(index).expect("few expansions"));
                }
            }
        }
        pages.insert(page, words);
    }
    WeightFile {
        pages,
        expansions,
        last,
    }
}

/// The two weights of a code point without an entry, also of version 5.2.0.
fn implicit(code: u32) -> Vec<u16> {
    let base = match code {
        0x4E00..=0x9FA5 => 0xFB40,
        0x3400..=0x4DB5 => 0xFB80,
        _ => 0xFBC0,
    };
    let word = |number: u32| u16::try_from(number).expect("17 planes have pages below FFFF");
    vec![word(base + (code >> 15)), word(code & 0x7FFF | 0x8000)]
}

fn latin1(server: &Server) -> String {
    let rows = server.rows(
        "SELECT HEX(WEIGHT_STRING(CHAR(seq USING latin1) COLLATE latin1_swedish_ci)), \
         HEX(UPPER(CHAR(seq USING latin1))), HEX(LOWER(CHAR(seq USING latin1))) \
         FROM seq_0_to_255",
    );
    let mut text = head("Weights and letter cases of latin1, by byte.");
    for (index, name) in ["WEIGHTS", "UPPER", "LOWER"].into_iter().enumerate() {
        let bytes: Vec<u16> = rows
            .iter()
            .map(|row| u16::from_str_radix(&row[index], 16).expect("hex"))
            .collect();
        writeln!(
            text,
            "\n#[rustfmt::skip]\npub(crate) static {name}: [u8; 256] = ["
        )
        .expect("to a string");
        append_lines(&mut text, &bytes);
        text.push_str("];\n");
    }
    text
}

fn cases(server: &Server) -> String {
    let mut text = head("Letter cases of Unicode as MariaDB maps them, in runs.");
    text.push_str("\n/// First and last code point, step between them, what is added.\n");
    text.push_str("pub(crate) type CaseRun = (u32, u32, u32, i32);\n");
    for (name, function) in [("TO_UPPER", "UPPER"), ("TO_LOWER", "LOWER")] {
        let rows = server.rows(&format!(
            "SELECT seq, CONV(HEX(CONVERT({function}({CHAR}) USING utf32)), 16, 10) \
             FROM seq_0_to_65535 WHERE seq NOT BETWEEN 55296 AND 57343 \
             AND ({CHAR} COLLATE utf8mb4_bin) <> {function}({CHAR})"
        ));
        let mut runs: Vec<[i64; 4]> = Vec::new();
        for row in rows {
            let code: i64 = row[0].parse().expect("a number");
            let delta = row[1].parse::<i64>().expect("a number") - code;
            match runs.last_mut() {
                Some([first, last, step, same])
                    if *same == delta
                        && ((*first == *last && code - *last <= 2) || code - *last == *step) =>
                {
                    *step = code - *last;
                    *last = code;
                }
                _ => runs.push([code, code, 1, delta]),
            }
        }
        let line = format!("\n#[rustfmt::skip]\npub(crate) static {name}: &[CaseRun] = &[\n");
        text.push_str(&line);
        for [first, last, step, delta] in runs {
            writeln!(text, "    ({first:#06x}, {last:#06x}, {step}, {delta}),")
                .expect("to a string");
        }
        text.push_str("];\n");
    }
    text
}

fn head(purpose: &str) -> String {
    format!(
        "//! {purpose}\n//!\n//! Written by `examples/collation_tables.rs` from MariaDB 10.11; \
         not edited by hand.\n"
    )
}

fn append_lines(text: &mut String, words: &[u16]) {
    for line in words.chunks(12) {
        text.push_str("    ");
        append_words(text, line);
        text.push_str(",\n");
    }
}

fn append_words(text: &mut String, words: &[u16]) {
    let shown: Vec<String> = words.iter().map(u16::to_string).collect();
    text.push_str(&shown.join(", "));
}
