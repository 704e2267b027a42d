//! Long lists of constants stay in the text and mean the same as trees.

#![forbid(unsafe_code)]

use syntax::ast::{Constants, Expr, ExprKind, ExprList, InsertSource, StatementKind, ValueRows};
use syntax::parse::{CONSTANTS_MIN, parse, parse_one_while, read_constants};
use syntax::{SqlMode, ast};

fn parsed(text: &str) -> StatementKind {
    let parsed = parse_one_while(text.as_bytes(), SqlMode::default(), &|| true);
    parsed.expect("it is a statement").0.kind
}

fn trees(text: &str) -> StatementKind {
    let parsed = parse(text.as_bytes(), SqlMode::default());
    parsed.expect("it is a statement").kind
}

/// The list of `DO 1 IN (..)`.
fn members(kind: &StatementKind) -> &ExprList {
    let StatementKind::Do(expressions) = kind else {
        panic!("a DO");
    };
    let ExprKind::InList { list, .. } = &expressions[0].kind else {
        panic!("an IN");
    };
    list
}

fn rows(kind: &StatementKind) -> &ValueRows {
    let StatementKind::Insert(insert) = kind else {
        panic!("an INSERT");
    };
    let InsertSource::Values(rows) = &insert.source else {
        panic!("VALUES");
    };
    rows
}

fn read(constants: &Constants, text: &str) -> Vec<Expr> {
    read_constants(constants, text.as_bytes()).collect()
}

const MEMBERS: [&str; 14] = [
    "1",
    "-2",
    "+3",
    "'a'",
    "'it''s' ' two'",
    "x'4d'",
    "0x4d",
    "b'1'",
    "NULL",
    "TRUE",
    "1.50",
    "-1e3",
    "(7)",
    "_latin1'z' /* a comment, */",
];

fn list(count: usize) -> Vec<&'static str> {
    MEMBERS.iter().copied().cycle().take(count).collect()
}

#[test]
fn a_list_is_left_in_the_text_from_its_limit_on() {
    for count in [CONSTANTS_MIN - 1, CONSTANTS_MIN, CONSTANTS_MIN + 1, 5000] {
        let text = format!("DO 1 IN ({})", list(count).join(" , "));
        let (left, whole) = (parsed(&text), trees(&text));
        let ExprList::Trees(expected) = members(&whole) else {
            panic!("trees are asked for");
        };
        assert_eq!(expected.len(), count);
        match members(&left) {
            ExprList::Trees(trees) => assert!(trees == expected && count <= CONSTANTS_MIN),
            ExprList::Constants(constants) => {
                assert!(CONSTANTS_MIN < count);
                assert_eq!(constants.count as usize, count);
                assert_eq!(&read(constants, &text), expected);
            }
        }
    }
}

#[test]
fn rows_are_left_in_the_text() {
    for row in ["(1)", "(1, 'a', DEFAULT)", "((2), -1, NULL, 'x' 'y')"] {
        for count in [1, 5000] {
            let text = format!("INSERT INTO t VALUES {}", vec![row; count].join(","));
            let (left, whole) = (parsed(&text), trees(&text));
            let ValueRows::Trees(expected) = rows(&whole) else {
                panic!("trees are asked for");
            };
            match rows(&left) {
                ValueRows::Trees(trees) => assert!(trees == expected && count == 1),
                ValueRows::Constants { values, width } => {
                    assert_eq!(*width as usize, expected[0].len());
                    let flat: Vec<Expr> = expected.iter().flatten().cloned().collect();
                    assert_eq!(read(values, &text), flat);
                }
            }
        }
    }
}

#[test]
fn what_is_no_constant_makes_trees_of_all() {
    for odd in ["a", "1 + 1", "(SELECT 1)", "-'a'", "ABS(1)", "/*! 1 */ + 1"] {
        for at in [0, 1023, 1024, 1025, 2000] {
            let mut list = list(2001);
            list[at] = odd;
            let text = format!("DO 1 IN ({})", list.join(","));
            assert_eq!(parsed(&text), trees(&text), "{odd} at {at}");
            let rows: Vec<String> = list.iter().map(|value| format!("({value}, 1)")).collect();
            let text = format!("INSERT INTO t VALUES {}", rows.join(","));
            assert_eq!(parsed(&text), trees(&text), "{odd} at {at}");
        }
    }
    for odd in ["()", "(1)", "(1, 2, 3)"] {
        let mut rows = vec!["(1, 2)"; 3000];
        rows[2500] = odd;
        let text = format!("INSERT INTO t VALUES {}", rows.join(","));
        assert_eq!(parsed(&text), trees(&text), "{odd}");
    }
}

#[test]
fn lists_compare_by_what_they_say() {
    let text = |last: &str| format!("DO 1 IN ({},{last})", list(3000).join(","));
    assert_eq!(parsed(&text("5")), parsed(&text("5")));
    assert_ne!(parsed(&text("5")), parsed(&text("6")));
}

#[test]
fn an_executable_comment_around_a_list_does_no_harm() {
    let inner = list(3000).join(",");
    for text in [
        format!("DO 1 IN /*! ({inner}) */"),
        format!("DO 1 IN (/*! {inner} */)"),
        format!("DO 1 IN ({inner} /*! , 5 */)"),
    ] {
        let left = parsed(&text);
        let ExprList::Trees(expected) = members(&trees(&text)).clone() else {
            panic!("trees are asked for");
        };
        let found = match members(&left) {
            ExprList::Trees(trees) => trees.clone(),
            ExprList::Constants(constants) => read(constants, &text),
        };
        assert_eq!(found, expected);
    }
}

#[test]
fn errors_are_those_of_short_lists() {
    let inner = list(3000).join(",");
    for text in [
        format!("DO 1 IN ({inner},)"),
        format!("DO 1 IN ({inner}"),
        format!("DO 1 IN ({inner} 5)"),
        format!("INSERT INTO t VALUES ({inner}),"),
    ] {
        let left = parse_one_while(text.as_bytes(), SqlMode::default(), &|| true);
        let whole = parse(text.as_bytes(), SqlMode::default());
        assert_eq!(left.map(|it| it.0), whole);
    }
}

/// Parts of a definition are kept without their statement's text.
#[test]
fn definitions_and_programs_keep_trees() {
    let list = list(3000).join(",");
    let in_table = format!("CREATE TABLE t (a INT DEFAULT (1 IN ({list})))");
    assert_eq!(parsed(&in_table), trees(&in_table));
    let program = format!("BEGIN NOT ATOMIC SELECT 1 IN ({list}); END");
    assert_eq!(parsed(&program), trees(&program));
}

#[test]
fn long_chains_are_flat() {
    let chain = |count: usize, word: &str| format!("DO {}", vec!["a"; count].join(word));
    for (word, operator) in [
        (" AND ", ast::BinaryOperator::And),
        (" OR ", ast::BinaryOperator::Or),
    ] {
        for count in [32, 33, 4097, 10_000] {
            let StatementKind::Do(expressions) = trees(&chain(count, word)) else {
                panic!("a DO");
            };
            match &expressions[0].kind {
                ExprKind::Chain {
                    operator: found,
                    operands,
                } => assert!(*found == operator && operands.len() == count && 32 < count),
                _ => assert!(count <= 32),
            }
        }
    }
}
