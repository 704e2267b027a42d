//! Tokens: numbers, names, strings, variables, comments, and what modes change.

#![forbid(unsafe_code)]

use syntax::SqlMode;
use syntax::token::{Kind, Lexer, string_value};

fn kinds(text: &str, mode: SqlMode) -> Vec<(Kind, &str)> {
    let mut lexer = Lexer::new(text.as_bytes(), mode);
    let mut kinds = Vec::new();
    loop {
        let token = lexer.next_token();
        if token.kind == Kind::End {
            return kinds;
        }
        let span = token.span.start as usize..token.span.end as usize;
        kinds.push((token.kind, &text[span]));
    }
}

fn check(text: &str, expected: &[(Kind, &str)]) {
    assert_eq!(kinds(text, SqlMode::default()), expected, "{text}");
}

#[test]
fn numbers_and_names_are_told_apart() {
    let expected = [
        (Kind::Integer, "1"),
        (Kind::Decimal, "1.5"),
        (Kind::Decimal, ".5"),
        (Kind::Decimal, "1."),
        (Kind::Float, "1e3"),
        (Kind::Float, "1.5e-3"),
    ];
    check("1 1.5 .5 1. 1e3 1.5e-3", &expected);
    let expected = [
        (Kind::Word, "1a"),
        (Kind::Word, "1e"),
        (Kind::Word, "0x"),
        (Kind::HexNumber, "0x1F"),
        (Kind::BitNumber, "0b01"),
        (Kind::Word, "0X1F"),
    ];
    check("1a 1e 0x 0x1F 0b01 0X1F", &expected);
    let expected = [
        (Kind::Name, "t"),
        (Kind::Dot, "."),
        (Kind::Name, "1a"),
        (Kind::Dot, "."),
        (Kind::Name, "select"),
    ];
    check("t.1a.select", &expected);
}

#[test]
fn strings_and_variables_hold_together() {
    let expected = [
        (Kind::String, "'it''s'"),
        (Kind::String, "'a\\'b'"),
        (Kind::HexString, "x'41'"),
        (Kind::BitString, "b'01'"),
        (Kind::NationalString, "N'n'"),
        (Kind::Invalid, "x'4'"),
    ];
    check("'it''s' 'a\\'b' x'41' b'01' N'n' x'4'", &expected);
    let expected = [
        (Kind::UserVariable, "@a.b"),
        (Kind::UserVariable, "@'x y'"),
        (Kind::UserVariable, "@`q`"),
        (Kind::AtAt, "@@"),
        (Kind::Word, "global"),
        (Kind::Dot, "."),
        (Kind::Name, "c"),
        (Kind::String, "'u'"),
        (Kind::UserVariable, "@'h'"),
    ];
    check("@a.b @'x y' @`q` @@global.c 'u'@'h'", &expected);
    check("'abc", &[(Kind::Invalid, "'abc")]);
    check(
        "`a``b` `a",
        &[(Kind::Quoted, "`a``b`"), (Kind::Invalid, "`a")],
    );
}

#[test]
fn modes_change_quotes_and_backslashes() {
    let ansi = SqlMode::ANSI_QUOTES;
    assert_eq!(kinds("\"a\"", ansi), [(Kind::Quoted, "\"a\"")]);
    let raw = SqlMode::NO_BACKSLASH_ESCAPES;
    assert_eq!(
        kinds("'a\\' b", raw),
        [(Kind::String, "'a\\'"), (Kind::Word, "b")]
    );
    assert_eq!(&*string_value(br"'a\n'", raw), br"a\n");
    assert_eq!(
        &*string_value(br"'a\n\%\q'''", SqlMode::default()),
        b"a\n\\%q'"
    );
}

#[test]
fn comments_vanish_and_claimed_ones_are_read() {
    let one = [(Kind::Integer, "1")];
    let vanishing = [
        "1 -- x",
        "1 # x",
        "/* x */ 1",
        "1 /*!99999 x */",
        "1 /*!50700 x */",
        "1 --",
        "1 /*M!110000 x */",
        "1 /*!999999 /* y */ x */",
    ];
    let claimed = [
        "/*! 1 */",
        "/*!50699 1 */",
        "/*M!100100 1*/",
        "/*!100100 1 */",
    ];
    for text in vanishing.iter().chain(&claimed) {
        check(text, &one);
    }
    let expected = [
        (Kind::Integer, "1"),
        (Kind::Minus, "-"),
        (Kind::Minus, "-"),
        (Kind::Integer, "1"),
    ];
    check("1--1", &expected);
    check("1 /* x", &[(Kind::Integer, "1"), (Kind::Invalid, "/* x")]);
}
