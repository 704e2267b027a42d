//! Collations: order, hash, sort key, LIKE, letter case and the mix of several.

use proptest::prelude::*;
use std::cmp::Ordering;
use std::hash::DefaultHasher;
use std::hash::Hasher as _;

use super::*;

#[test]
fn names_and_numbers_lead_back() {
    for collation in CollationId::all() {
        assert_eq!(CollationId::from_id(collation.id()), Some(collation));
        assert_eq!(CollationId::from_name(collation.name()), Some(collation));
        assert!(collation.name().starts_with(collation.charset().name()));
    }
    assert_eq!(
        CollationId::from_name("UTF8_bin"),
        Some(CollationId::UTF8MB3_BIN)
    );
    assert_eq!(CollationId::from_id(9999), None);
}

fn key(collation: CollationId, text: &[u8]) -> Vec<u8> {
    let mut key = Vec::new();
    collation.append_key(text, &mut key);
    key
}

#[test]
fn blanks_at_the_end_do_not_count() {
    let (padded, unpadded): (Vec<_>, Vec<_>) = CollationId::all().partition(|it| it.pads());
    for collation in padded {
        assert!(collation.equal(b"a", b"a  "), "{collation:?}");
        assert_eq!(
            collation.compare(b"a", b"a\t"),
            Ordering::Greater,
            "{collation:?}"
        );
        assert_eq!(
            collation.compare(b"a", b"a b"),
            Ordering::Less,
            "{collation:?}"
        );
        assert_eq!(key(collation, b"a "), key(collation, b"a"));
    }
    for collation in unpadded {
        assert_eq!(collation.compare(b"a", b"a "), Ordering::Less);
        assert_eq!(collation.compare(b"a ", b"a  "), Ordering::Less);
        assert!(key(collation, b"a") < key(collation, b"a "));
        assert!(key(collation, b"a ") < key(collation, b"a b"));
    }
}

#[test]
fn letters_are_folded_as_the_collation_says() {
    let general = CollationId::UTF8MB4_GENERAL_CI;
    let unicode = CollationId::UTF8MB4_UNICODE_CI;
    assert!(general.equal("Stra\u{df}e".as_bytes(), "STRASE".as_bytes()));
    assert!(unicode.equal("Stra\u{df}e".as_bytes(), "STRASSE".as_bytes()));
    assert!(general.equal("\u{e9}".as_bytes(), b"E"));
    assert!(!CollationId::UTF8MB4_BIN.equal(b"a", b"A"));
    assert!(CollationId::LATIN1_SWEDISH_CI.equal(b"\xe9", b"E"));
    assert!(CollationId::ASCII_GENERAL_CI.equal(b"a", b"A"));
}

#[test]
fn nothing_is_below_the_lowest_tail() {
    for collation in CollationId::all() {
        let mut lowest = b"a".to_vec();
        if let Some(tail) = collation.lowest_tail() {
            assert!(collation.charset().encode(tail, &mut lowest));
        }
        let text = |code| char::from_u32(code).filter(|_| collation.char_bytes_max() > 1);
        for tail in (1..0x3000).filter_map(text) {
            let other = format!("a{tail}");
            let order = collation.compare(&lowest, other.as_bytes());
            assert!(order.is_le(), "{tail:?} in {}", collation.name());
        }
    }
}

#[test]
fn languages_have_letters_and_contractions_of_their_own() {
    let (czech, danish) = (
        CollationId::UTF8MB4_CZECH_CI,
        CollationId::UTF8MB4_DANISH_CI,
    );
    let sorted = |collation: CollationId, words: &[&str]| {
        let pairs = words.iter().zip(&words[1..]);
        for (left, right) in pairs {
            let (left, right) = (left.as_bytes(), right.as_bytes());
            assert!(collation.compare(left, right).is_lt(), "{left:?} {right:?}");
            assert!(key(collation, left) < key(collation, right));
        }
    };
    sorted(czech, &["cz", "\u{10d}a", "hz", "cha", "chz", "ia"]);
    sorted(danish, &["az", "z", "\u{e6}", "\u{f8}", "aab"]);
    assert!(danish.equal("Aa".as_bytes(), "\u{c5}".as_bytes()));
    let german = CollationId::UTF8MB4_GERMAN2_CI;
    assert!(german.equal("M\u{fc}ller".as_bytes(), b"mueller"));
    assert!(
        czech.like(b"chata", b"c%", None),
        "LIKE goes character by character"
    );
}

#[test]
fn levels_tell_letters_accents_and_cases() {
    let weights = |collation: CollationId, text: &str| {
        let mut out = Vec::new();
        collation.append_weights(text.as_bytes(), &mut out);
        out.iter()
            .map(|byte| format!("{byte:02X}"))
            .collect::<String>()
    };
    let (letters, accents, cases) = (
        CollationId::UTF8MB4_0900_AI_CI,
        CollationId::UTF8MB4_0900_AS_CI,
        CollationId::UTF8MB4_0900_AS_CS,
    );
    for (collation, text, wanted) in [
        (letters, "a\u{308}", "1C47"),
        (accents, "\u{c4}", "1C4700000020002B"),
        (cases, "\u{c4}", "1C4700000020002B000000080002"),
        // Ideographs, Tangut, unassigned, and Hangul as its parts.
        (letters, "\u{4e00}", "FB40CE00"),
        (letters, "\u{20000}", "FB848000"),
        (letters, "\u{17000}", "FB008000"),
        (letters, "\u{10ffff}", "FBE1FFFF"),
        (letters, "\u{d55c}", "3C073C733CD4"),
        // Of eighteen elements, the first eight.
        (letters, "\u{fdfa}", "2364239C23C50209230B239C239C23B1"),
        (letters, "", ""),
        (cases, "", "00000000"),
    ] {
        assert_eq!(
            weights(collation, text),
            wanted,
            "{text} in {}",
            collation.name()
        );
    }
    let equal = |left: &str, right: &str| {
        [letters, accents, cases].map(|it| {
            assert_eq!(
                it.like(left.as_bytes(), right.as_bytes(), None),
                it.equal(left.as_bytes(), right.as_bytes())
            );
            it.equal(left.as_bytes(), right.as_bytes())
        })
    };
    assert_eq!(equal("a", "A"), [true, true, false]);
    assert_eq!(equal("a", "\u{e1}"), [true, false, false]);
    assert_eq!(equal("a", "b"), [false, false, false]);
    assert!(cases.compare(b"a", b"A").is_lt(), "small letters first");
    assert!(
        cases.compare("\u{e1}".as_bytes(), b"b").is_lt(),
        "letters before accents"
    );
    assert!(CollationId::UTF8MB4_0900_BIN.compare(b"a", b"A").is_gt());
}

#[test]
fn like_knows_wildcards_and_escape() {
    let general = CollationId::UTF8MB4_GENERAL_CI;
    let like = |text: &str, pattern: &str| {
        general.like(text.as_bytes(), pattern.as_bytes(), Some(u32::from(b'\\')))
    };
    for (text, pattern) in [
        ("David!", "david_"),
        ("abcabcabd", "%abd"),
        ("", "%"),
        ("\u{e9}t\u{e9}", "_T_"),
        ("a%b", "a\\%b"),
        ("aXbXc", "a%b%c"),
        ("a\\", "a\\"),
    ] {
        assert!(like(text, pattern), "{text} {pattern}");
    }
    for (text, pattern) in [
        ("a", "a "),
        ("axb", "a\\%b"),
        ("", "_"),
        ("abc", "%b"),
        ("ab", "a"),
    ] {
        assert!(!like(text, pattern), "{text} {pattern}");
    }
}

#[test]
fn cases() {
    let upper = |charset: Charset, text: &[u8]| {
        let mut out = Vec::new();
        charset.append_upper(text, &mut out);
        out
    };
    assert_eq!(
        upper(Charset::Utf8mb4, "a\u{e9}\u{ff}\u{3b1}".as_bytes()),
        "A\u{c9}\u{178}\u{391}".as_bytes()
    );
    assert_eq!(upper(Charset::Latin1, b"\xe9"), b"\xc9");
    assert_eq!(upper(Charset::Binary, b"a"), b"a");
    let mut out = Vec::new();
    Charset::Utf8mb4.append_lower("A\u{c9}\u{130}".as_bytes(), &mut out);
    assert_eq!(out, "a\u{e9}i".as_bytes());
}

#[test]
fn the_stronger_collation_wins() {
    let column = TextRule::column;
    let latin1 = column(CollationId::LATIN1_SWEDISH_CI);
    let general = column(CollationId::UTF8MB4_GENERAL_CI);
    let literal = TextRule::literal(CollationId::UTF8MB4_GENERAL_CI, b"abc");
    assert_eq!(
        mix(&[latin1, general], "=").unwrap().collation,
        general.collation
    );
    assert_eq!(
        mix(&[latin1, literal], "=").unwrap().collation,
        latin1.collation
    );
    let explicit = TextRule {
        coercibility: Coercibility::Explicit,
        ..latin1
    };
    let other = TextRule {
        collation: CollationId::LATIN1_BIN,
        ..explicit
    };
    assert_eq!(
        mix(&[explicit, other], "=").unwrap_err().message,
        "Illegal mix of collations (latin1_swedish_ci,EXPLICIT) and (latin1_bin,EXPLICIT) \
         for operation '='"
    );
    let unicode = column(CollationId::UTF8MB4_UNICODE_CI);
    assert_eq!(
        mix_to_compare(&[general, unicode], "=").unwrap_err().code,
        errcode::ER_CANT_AGGREGATE_2COLLATIONS
    );
}

fn texts() -> impl Strategy<Value = String> {
    prop::string::string_regex("[ aAbB\u{1}\t\u{e9}\u{df}\u{200d}\u{4e00}\u{1F600}]{0,6}").unwrap()
}

fn collations() -> impl Strategy<Value = CollationId> {
    prop::sample::select(CollationId::all().collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn keys_and_hashes_follow_the_order(
        collation in collations(), left in texts(), right in texts(), tail in any::<u8>()
    ) {
        let (left, right) = (left.as_bytes(), right.as_bytes());
        let order = collation.compare(left, right);
        prop_assert_eq!(order, collation.compare(right, left).reverse());
        let with_tail = |text| { let mut key = key(collation, text); key.push(tail); key };
        prop_assert_eq!(with_tail(left).cmp(&with_tail(right)), order);
        prop_assert_eq!(collation.equal(left, right), order.is_eq());
        let hash = |text| {
            let mut state = DefaultHasher::new();
            collation.hash(text, &mut state);
            state.finish()
        };
        prop_assert_eq!(hash(left) == hash(right), order.is_eq());
    }

    #[test]
    fn a_pattern_of_the_text_itself_matches(collation in collations(), text in texts()) {
        prop_assert!(collation.like(text.as_bytes(), text.as_bytes(), None));
        prop_assert!(collation.like(text.as_bytes(), b"%", None));
        let padded = format!("%{text}%");
        prop_assert!(collation.like(text.as_bytes(), padded.as_bytes(), None));
    }
}
