//! LIKE against a naive twin, which compares the weights of all characters.

use proptest::prelude::*;

use super::*;

/// The characters of a text.
fn characters(collation: CollationId, mut text: &[u8]) -> Vec<Result<u32, u8>> {
    let mut list = Vec::new();
    while !text.is_empty() {
        list.push(next_char(collation.charset(), &mut text));
    }
    list
}

/// Whether the text matches, by a table of which beginnings of it each beginning of the pattern
/// matches.
fn naive(collation: CollationId, text: &[u8], mut pattern: &[u8], escape: Option<u32>) -> bool {
    let text = characters(collation, text);
    let same = |left, right| match (left, right) {
        (Ok(left), Ok(right)) => left == right || collation.same_weights(left, right),
        _ => left == right,
    };
    let mut matched = vec![false; text.len() + 1];
    matched[0] = true;
    loop {
        let step = collation.pattern_step(&mut pattern, escape);
        let after = |length: usize| match &step {
            Step::Any => matched[..=length].contains(&true),
            Step::End => matched[length],
            _ if length == 0 => false,
            Step::One => matched[length - 1],
            Step::Literal(wanted) => matched[length - 1] && same(text[length - 1], *wanted),
        };
        if let Step::End = step {
            return after(text.len());
        }
        matched = (0..=text.len()).map(after).collect();
    }
}

#[test]
fn ascii_stands_for_itself_and_equals_what_is_said() {
    let mut known = 0;
    for collation in CollationId::all() {
        for byte in 0..0x80u8 {
            let code = u32::from(byte);
            for tail in [0x40, 0xa1] {
                let decoded = collation.charset().decode(&[byte, tail]);
                assert_eq!(decoded, Some((code, 1)), "{}", collation.name());
            }
            let Some(equals) = collation.ascii_equals(byte) else {
                continue;
            };
            known += 1;
            for other in 0..0x80u8 {
                let is_equal = byte == other || collation.same_weights(code, u32::from(other));
                let name = collation.name();
                assert_eq!(
                    equals.contains(&other),
                    is_equal,
                    "{byte} {other} in {name}"
                );
            }
        }
    }
    // Most collations have the scan, so that the comparison below is one of two ways.
    let count = CollationId::all().count();
    assert!(count * 3 / 4 * 95 < known, "{known} of {count} collations");
}

#[test]
fn a_scan_stops_at_either_case_and_beyond_ascii_at_each_place() {
    for length in 0..70 {
        let blank = vec![b'.'; length];
        assert_eq!(others(&blank, *b"xX"), length);
        for place in 0..length {
            for stop in [b'x', b'X', 0x80, 0xff] {
                let mut text = blank.clone();
                text[place] = stop;
                text[place + 1..].fill(b'x');
                assert_eq!(others(&text, *b"xX"), place);
            }
        }
    }
}

#[test]
fn long_texts_are_metered_and_matched_beyond_a_scan() {
    let general = CollationId::UTF8MB4_GENERAL_CI;
    let mut text = vec![b'.'; 3 * BYTES_PER_SPEND + 7];
    let mut spent = 0;
    let mut meter = |bytes| {
        spent += bytes;
        Ok::<_, ()>(())
    };
    text.extend_from_slice(b"Needle");
    let found = general.like_metered(&text, b"%nEEdle%", None, &mut meter);
    assert_eq!(found, Ok(true));
    let missed = general.like_metered(&text, b"%nEEdles%", None, &mut meter);
    assert_eq!(missed, Ok(false));
    assert!(6 * BYTES_PER_SPEND <= spent, "{spent}");
    let ended = general.like_metered(&text, b"%nEEdle%", None, &mut |_| Err(()));
    assert_eq!(ended, Err(()), "the meter ends it");
}

/// Pieces of texts and patterns. Those of a line are alike in some collations: letters with their
/// cases and accents, characters without weight, wildcards and escapes. Some are ill-formed.
const PIECES: &[&[&[u8]]] = &[
    &[b"a", b"A", b"\xc3\xa4", b"\xef\xbd\x81", b"\xe4", b"\xc4"],
    &[b"e", b"E", b"\xc3\xa9", b"\xe9", b"\xc9"],
    &[b"i", b"I", b"\xc4\xb1", b"\xc4\xb0", b"j", b"y", b"Y"],
    &[b"k", b"K", b"\xe2\x84\xaa"],
    &[b"s", b"S", b"\xc3\x9f", b"ss", b"\xdf"],
    &[b"v", b"U", b"u", b"W", b"[", b"{", b"ch", b"C"],
    &[b"", b"\x00", b"\x01", b"\x7f", b"\xe2\x80\x8d", b"\xcc\x88"],
    &[b" ", b"\t", b"", b"\xc2\xa0"],
    &[b"%", b"_", b"\\%", b"\\_", b"\\", b"|", b"|%"],
    &[
        b"\xe4\xb8\x80",
        b"\xf0\x9f\x98\x80",
        b"\xff",
        b"\x80",
        b"\x81A",
        b"\x81a",
    ],
    &[b"................", b"..."],
];

/// What stands before and after the literal part of a pattern.
const ENDS: &[[&[u8]; 2]] = &[[b"%", b"%"], [b"%", b""], [b"", b"%"], [b"%", b"%_"]];

/// A text, and a pattern of which parts are like parts of the text.
fn pairs() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let index = any::<prop::sample::Index>;
    let piece = (prop::sample::select(PIECES), index(), index());
    let pieces = prop::collection::vec(piece, 0..10);
    let ends = prop::sample::select(ENDS);
    (pieces, index(), index(), ends).prop_map(|(pieces, from, to, [before, after])| {
        let text = pieces.iter().map(|(alike, at, _)| *at.get(alike));
        let like = pieces.iter().map(|(alike, _, at)| *at.get(alike));
        let (from, to) = (from.index(pieces.len() + 1), to.index(pieces.len() + 1));
        let part: Vec<_> = like.take(from.max(to)).skip(from.min(to)).collect();
        let pattern = [before, &part.concat(), after].concat();
        (text.collect::<Vec<_>>().concat(), pattern)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn every_collation_matches_as_its_naive_twin(
        (text, pattern) in pairs(),
        escape in prop::sample::select(vec![None, Some(92), Some(124), Some(37), Some(0x4e00)]),
    ) {
        for collation in CollationId::all() {
            prop_assert_eq!(
                collation.like(&text, &pattern, escape),
                naive(collation, &text, &pattern, escape),
                "{}", collation.name()
            );
        }
    }
}
