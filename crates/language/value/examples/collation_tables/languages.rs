//! The collations of languages: how each differs from its base, `unicode_ci`.
//!
//! A collation differs in the weights of some letters and in contractions: sequences of letters
//! with other weights than their letters have. Letters are queried one by one over the basic plane.
//! Contractions are queried among all pairs, and longer ones among all triples, of the Latin
//! letters up to U+024F and the letters with other weights.

use std::fmt::Write as _;

use super::{CHAR, Server, append_words, head, words};

/// Names without character set, and the name of each constant.
const LANGUAGES: &[(&str, &str)] = &[
    ("icelandic_ci", "ICELANDIC"),
    ("latvian_ci", "LATVIAN"),
    ("romanian_ci", "ROMANIAN"),
    ("slovenian_ci", "SLOVENIAN"),
    ("polish_ci", "POLISH"),
    ("estonian_ci", "ESTONIAN"),
    ("spanish_ci", "SPANISH"),
    ("swedish_ci", "SWEDISH"),
    ("turkish_ci", "TURKISH"),
    ("czech_ci", "CZECH"),
    ("danish_ci", "DANISH"),
    ("lithuanian_ci", "LITHUANIAN"),
    ("slovak_ci", "SLOVAK"),
    ("spanish2_ci", "SPANISH2"),
    ("roman_ci", "ROMAN"),
    ("persian_ci", "PERSIAN"),
    ("esperanto_ci", "ESPERANTO"),
    ("hungarian_ci", "HUNGARIAN"),
    ("sinhala_ci", "SINHALA"),
    ("german2_ci", "GERMAN2"),
    ("croatian_mysql561_ci", "CROATIAN_MYSQL561"),
    ("croatian_ci", "CROATIAN"),
    ("vietnamese_ci", "VIETNAMESE"),
];

/// Letters whose sequence has other weights than the letters alone.
struct Contraction {
    letters: Vec<u32>,
    weights: Vec<u16>,
}

pub(super) fn tables(server: &Server) -> String {
    let mut text = head("Collations of languages: what each weighs otherwise than `unicode_ci`.");
    text.push_str("\nuse crate::collation::unicode::{Language, V400};\n");
    for (name, constant) in LANGUAGES {
        let collation = format!("utf8mb4_{name}");
        let letters = letters(server, &collation);
        let contractions = contractions(server, &collation, &letters);
        writeln!(
            text,
            "\n/// `{name}`\n#[rustfmt::skip]\n\
             pub(crate) static {constant}: Language = Language {{\n    \
             base: &V400,\n    letters: &["
        )
        .expect("to a string");
        for (code, weights) in letters {
            write!(text, "        ({code:#06x}, &[").expect("to a string");
            append_words(&mut text, &weights);
            text.push_str("]),\n");
        }
        text.push_str("    ],\n    contractions: &[\n");
        for found in contractions {
            let letters: Vec<String> = found.letters.iter().map(u32::to_string).collect();
            write!(text, "        (&[{}], &[", letters.join(", ")).expect("to a string");
            append_words(&mut text, &found.weights);
            text.push_str("]),\n");
        }
        text.push_str("    ],\n};\n");
    }
    text
}

/// Letters of the basic plane with other weights than in `unicode_ci`.
fn letters(server: &Server, collation: &str) -> Vec<(u32, Vec<u16>)> {
    let rows = server.rows(&format!(
        "SELECT seq, HEX(WEIGHT_STRING({CHAR} COLLATE {collation})) FROM seq_0_to_65535 \
         WHERE seq NOT BETWEEN 55296 AND 57343 AND WEIGHT_STRING({CHAR} COLLATE {collation}) \
         <> WEIGHT_STRING({CHAR} COLLATE utf8mb4_unicode_ci)"
    ));
    let parse = |row: Vec<String>| (row[0].parse().expect("a number"), words(&row[1]));
    rows.into_iter().map(parse).collect()
}

fn contractions(server: &Server, collation: &str, letters: &[(u32, Vec<u16>)]) -> Vec<Contraction> {
    let also: String = letters
        .iter()
        .map(|(code, _)| format!(" UNION SELECT {code}"))
        .collect();
    let alphabet = format!(
        "(SELECT c, WEIGHT_STRING(c COLLATE {collation}) AS w FROM (SELECT {CHAR} AS c FROM \
         (SELECT seq FROM seq_65_to_591 WHERE seq < 91 OR seq BETWEEN 97 AND 122 OR seq > 191\
         {also}) AS s) AS t)"
    );
    let pairs = format!(
        "SELECT HEX(CONVERT(CONCAT(a.c, b.c) USING utf32)), \
         HEX(WEIGHT_STRING(CONCAT(a.c, b.c) COLLATE {collation})) \
         FROM {alphabet} AS a, {alphabet} AS b WHERE \
         WEIGHT_STRING(CONCAT(a.c, b.c) COLLATE {collation}) <> CONCAT(a.w, b.w)"
    );
    let parse = |row: Vec<String>| {
        let letters = row[0].as_bytes().chunks(8).map(|digits| {
            let digits = std::str::from_utf8(digits).expect("hexadecimal digits");
            u32::from_str_radix(digits, 16).expect("hexadecimal digits")
        });
        Contraction {
            letters: letters.collect(),
            weights: words(&row[1]),
        }
    };
    let mut found: Vec<Contraction> = server.rows(&pairs).into_iter().map(parse).collect();
    found.sort_by(|left, right| left.letters.cmp(&right.letters));
    for pair in &found {
        let code = |index: usize| pair.letters[index];
        let longer = server.rows(&format!(
            "SELECT c FROM (SELECT c, w, CONVERT(CHAR({}, {} USING utf32) USING utf8mb4) AS p \
             FROM {alphabet} AS b) AS t WHERE WEIGHT_STRING(CONCAT(p, c) COLLATE {collation}) \
             <> CONCAT(WEIGHT_STRING(p COLLATE {collation}), w)",
            code(0),
            code(1)
        ));
        let overlaps = |row: &Vec<String>| {
            let third = row[0].chars().next().map(u32::from);
            found
                .iter()
                .any(|other| other.letters[0] == code(1) && Some(other.letters[1]) == third)
        };
        assert!(
            longer.iter().all(overlaps),
            "no contraction of three letters"
        );
    }
    found
}
