//! Writes `src/collation/tables/uca900.rs` from Unicode's collation elements, version 9.0.0.
//!
//! Usage: `cargo run -p value --example ducet_tables -- ALLKEYS OUT_DIR`. ALLKEYS is the file
//! `allkeys.txt` of <https://www.unicode.org/Public/UCA/9.0.0/> (the Python package `pyuca` has it
//! as `allkeys-9.0.0.txt`).
//!
//! Contractions of the file are left out, and a character has at most eight elements, as in MySQL's
//! `utf8mb4_0900_*` collations.

#![forbid(unsafe_code)]
#![allow(clippy::print_stderr, reason = "a tool that people run")]

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// In a page: the code point has no entry.
const IMPLICIT: u32 = u32::MAX;
/// In a page: the lowest number of an expansion; its low half is the index.
const EXPANSION: u32 = 0xFFFF_0000;
/// The most elements of a character.
const ELEMENTS_MAX: usize = 8;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(allkeys), Some(out)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: ducet_tables ALLKEYS OUT_DIR");
        std::process::exit(2);
    };
    let text = std::fs::read_to_string(allkeys).expect("the table is readable");
    assert!(text.contains("@version 9.0.0"), "version 9.0.0 is wanted");
    let elements: BTreeMap<u32, Vec<u32>> = text.lines().filter_map(entry).collect();
    let mut expansions: Vec<&[u32]> = Vec::new();
    let mut known: BTreeMap<&[u32], usize> = BTreeMap::new();
    let mut pages: BTreeMap<u32, [u32; 256]> = BTreeMap::new();
    for (code, found) in &elements {
        let page = pages.entry(code >> 8).or_insert([IMPLICIT; 256]);
        page[(code & 0xFF) as usize] = match found.as_slice() {
            [single] => *single,
            several => {
                let index = *known.entry(several).or_insert_with(|| {
                    expansions.push(several);
                    expansions.len() - 1
                });
                EXPANSION + u32::try_from(index).expect("few expansions")
            }
        };
    }
    let text = shown(&pages, &expansions);
    std::fs::write(format!("{out}/uca900.rs"), text).expect("the output folder is writable");
}

/// A line's code point and its elements, each packed: 16 bits of primary weight, 11 of secondary
/// weight, 5 of tertiary weight. `None` for other lines.
fn entry(line: &str) -> Option<(u32, Vec<u32>)> {
    let line = line.split('#').next()?.trim();
    let (code, elements) = line.split_once(';')?;
    let code = u32::from_str_radix(code.trim(), 16).ok()?;
    let packed = elements
        .split('[')
        .skip(1)
        .take(ELEMENTS_MAX)
        .map(|element| {
            let weights: Vec<u32> = element
                .trim_matches(['*', '.', ']', ' '])
                .split('.')
                .map(|weight| u32::from_str_radix(weight, 16).expect("hexadecimal digits"))
                .collect();
            let [primary, secondary, tertiary] = weights[..] else {
                panic!("three weights in {element}");
            };
            assert!(
                secondary < 1 << 11 && tertiary < 1 << 5,
                "they fit: {element}"
            );
            let packed = primary << 16 | secondary << 5 | tertiary;
            assert!(packed < EXPANSION, "expansions start there");
            packed
        });
    Some((code, packed.collect()))
}

fn shown(pages: &BTreeMap<u32, [u32; 256]>, expansions: &[&[u32]]) -> String {
    let mut text = String::from(
        "//! Collation elements of the Unicode collation algorithm, version 9.0.0: pages of\n\
         //! packed elements (16 bits primary, 11 secondary, 5 tertiary), and expansions.\n//!\n\
         //! Written by `examples/ducet_tables.rs` from allkeys.txt, Copyright 2016 Unicode,\n\
         //! Inc., under the Unicode License (LICENSE-UNICODE); not edited by hand.\n",
    );
    let numbers: Vec<u32> = (0..0x1100)
        .map(|page| pages.keys().position(|known| *known == page))
        .map(|index| index.map_or(255, |index| u32::try_from(index).expect("at most 255")))
        .collect();
    assert!(pages.len() < 255, "255 is no page");
    text.push_str("\n#[rustfmt::skip]\npub(crate) static INDEX: [u8; 4352] = [\n");
    append_lines(&mut text, &numbers);
    text.push_str("];\n");
    let count = pages.len();
    let head = format!("\n#[rustfmt::skip]\npub(crate) static PAGES: [[u32; 256]; {count}] = [\n");
    text.push_str(&head);
    for (page, words) in pages {
        writeln!(text, "    // U+{page:02X}00\n    [").expect("to a string");
        append_lines(&mut text, words);
        text.push_str("    ],\n");
    }
    text.push_str("];\n");
    text.push_str("\n#[rustfmt::skip]\npub(crate) static EXPANSIONS: &[&[u32]] = &[\n");
    for words in expansions {
        text.push_str("    &[");
        append_words(&mut text, words);
        text.push_str("],\n");
    }
    text.push_str("];\n");
    text
}

fn append_lines(text: &mut String, words: &[u32]) {
    for line in words.chunks(12) {
        text.push_str("    ");
        append_words(text, line);
        text.push_str(",\n");
    }
}

fn append_words(text: &mut String, words: &[u32]) {
    let shown: Vec<String> = words
        .iter()
        .map(|word| match *word {
            IMPLICIT => "!0".to_owned(),
            word => word.to_string(),
        })
        .collect();
    text.push_str(&shown.join(", "));
}
