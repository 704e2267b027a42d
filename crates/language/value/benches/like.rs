//! What LIKE costs a row: words of a dictionary's size and sentences, by the collation.
//!
//! `cargo bench -p value --bench like` prints nanoseconds of a row, the best of several rounds.

#![forbid(unsafe_code)]

use std::hint::black_box;
use std::time::Instant;

use value::CollationId;

const ROUNDS: usize = 200;
const LOOPS: u32 = 2;

/// Words of which the texts are made.
const WORDS: [&str; 12] = [
    "plateau", "river", "the", "Order", "shipping", "of", "window", "quartz", "and", "Elephant",
    "letters", "a",
];

#[allow(clippy::print_stdout, reason = "a bench tells its figures")]
fn main() {
    // When run as a test, it only needs to build.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let accented = |word_count| {
        let mut texts = texts(word_count);
        texts
            .iter_mut()
            .for_each(|text| text.insert_str(0, "caf\u{e9} "));
        texts
    };
    for collation in [
        CollationId::UTF8MB4_GENERAL_CI,
        CollationId::UTF8MB4_UNICODE_CI,
        CollationId::UTF8MB4_0900_AI_CI,
        CollationId::UTF8MB4_BIN,
        CollationId::LATIN1_SWEDISH_CI,
    ] {
        println!("{}", collation.name());
        for pattern in ["%zebra%", "%quartz%", "%the%of%", "%elephant", "river%"] {
            let of = |texts: &[String]| measure(collation, texts, pattern.as_bytes());
            let (short, long) = (of(&texts(4)), of(&texts(20)));
            let mixed = of(&accented(20));
            println!(
                "  {pattern:10} 4 words {short:6.1} ns, 20 words {long:7.1} ns, \
                 21 with an accent {mixed:7.1} ns"
            );
        }
    }
}

fn texts(word_count: usize) -> Vec<String> {
    let text = |row: usize| {
        let words = (0..word_count).map(|place| WORDS[(row * 7 + place * (row % 5 + 1)) % 12]);
        words.collect::<Vec<_>>().join(" ")
    };
    (0..100).map(text).collect()
}

/// Nanoseconds a text, in the best round.
fn measure(collation: CollationId, texts: &[String], pattern: &[u8]) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        #[allow(clippy::disallowed_methods, reason = "a bench reads the clock")]
        let start = Instant::now();
        for _ in 0..LOOPS {
            for text in texts {
                black_box(collation.like(black_box(text.as_bytes()), pattern, None));
            }
        }
        best = best.min(start.elapsed().as_secs_f64());
    }
    best * 1e9 / f64::from(LOOPS) / 100.0
}
