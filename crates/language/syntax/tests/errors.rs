//! Errors: number, place and text as in MariaDB 10.11.

#![forbid(unsafe_code)]

use syntax::ast::StatementKind;
use syntax::parse::{LIST_LEN_MAX, TOKENS_PER_LOOK, parse_one_while};
use syntax::{SqlMode, parse, parse_one};

fn near(sql: &str) -> (u16, String, u32) {
    let error = parse(sql.as_bytes(), SqlMode::default()).expect_err(sql);
    (error.code().number(), error.near.clone(), error.line)
}

#[test]
fn errors_name_the_token_and_line() {
    let cases = [
        ("SELEC 1", "SELEC 1", 1),
        ("SELECT 1 FROM", "", 1),
        ("SELECT 1\nFROM t WHERE\n", "", 3),
        ("SELECT * FROM t WHERE a ==", "=", 1),
        ("SELECT 1;;", ";", 1),
        ("SELECT 1; SELECT 2", "SELECT 2", 1),
        ("CREATE TABLE t (select INT)", "INT)", 1),
        ("SELECT 'abc", "'abc", 1),
        ("SELECT\n1 +\n* 2", "* 2", 3),
        ("SELECT a FROM t LIMIT -1", "-1", 1),
        ("INSERT INTO t VALUES (1,2", "", 1),
        ("UPDATE t SET", "", 1),
        ("SELECT DISTINCT ALL 1", "ALL 1", 1),
        ("DELETE FROM t LIMIT 1,2", "2", 1),
        ("SELECT (SELECT 1 INTO @a)", "INTO @a)", 1),
        ("COMMIT AND CHAIN RELEASE", "RELEASE", 1),
        ("UPDATE t SET a=1 LIMIT 1,2", "2", 1),
    ];
    for (sql, text, line) in cases {
        assert_eq!(near(sql), (1064, text.to_owned(), line), "{sql}");
    }
}

#[test]
fn a_reader_asks_every_so_many_tokens_and_stops_when_told() {
    let asked = std::cell::Cell::new(0);
    let text = |tokens: usize| "select 1".to_owned() + &",1".repeat((tokens - 2) / 2);
    let read = |text: &str, last: usize| {
        asked.set(0);
        let may_go_on = || {
            asked.set(asked.get() + 1);
            asked.get() <= last
        };
        let read = parse_one_while(text.as_bytes(), SqlMode::default(), &may_go_on);
        (
            read.map_err(|error| error.code().number()).err(),
            asked.get(),
        )
    };
    // The end is a token, too.
    assert_eq!(read(&text(TOKENS_PER_LOOK - 2), 0), (None, 0));
    assert_eq!(read(&text(TOKENS_PER_LOOK), 0), (Some(1317), 1));
    assert_eq!(read(&text(TOKENS_PER_LOOK * 3), 9), (None, 3));
    assert_eq!(read(&text(TOKENS_PER_LOOK * 3), 2), (Some(1317), 3));
}

#[test]
fn lists_are_bounded() {
    let number = |text: &str| {
        let read = parse_one_while(text.as_bytes(), SqlMode::default(), &|| true);
        read.map_err(|error| error.code().number()).err()
    };
    let of = |head: &str, item: &str, tail: &str, count: usize| {
        head.to_owned() + &vec![item; count].join(",") + tail
    };
    for (head, item, tail) in [
        ("SELECT CONCAT(", "a", ")"),
        ("SELECT a IN (", "b", ")"),
        ("SET ", "@a = 1", ""),
        ("DROP TABLE ", "t", ""),
        ("INSERT INTO t (", "a", ") VALUES (1)"),
    ] {
        assert_eq!(number(&of(head, item, tail, LIST_LEN_MAX - 1)), None);
        assert_eq!(number(&of(head, item, tail, LIST_LEN_MAX)), None, "{head}");
        let beyond = of(head, item, tail, LIST_LEN_MAX + 1);
        assert_eq!(number(&beyond), Some(1235), "{head}");
    }
    let case = |count: usize| format!("SELECT CASE {} END", "WHEN a THEN b ".repeat(count));
    assert_eq!(number(&case(LIST_LEN_MAX)), None);
    assert_eq!(number(&case(LIST_LEN_MAX + 1)), Some(1235));
    let columns = |count: usize| of("SELECT ", "1", "", count);
    assert_eq!(number(&columns(LIST_LEN_MAX)), None);
    assert_eq!(number(&columns(LIST_LEN_MAX + 1)), Some(1117));
    // A member that is no constant makes trees of those before it.
    let mixed = |count: usize| of("SELECT a IN (", "1", ",b)", count);
    assert_eq!(number(&mixed(LIST_LEN_MAX - 1)), None);
    assert_eq!(number(&mixed(LIST_LEN_MAX)), Some(1235));
    // These have no such limit.
    for (head, item, tail) in [
        ("SELECT a IN (", "1", ")"),
        ("INSERT INTO t VALUES ", "(1)", ""),
        ("INSERT INTO t VALUES ", "(1)", ",(1 + 1)"),
        ("INSERT INTO t VALUES ", "(1 + 1)", ""),
    ] {
        let beyond = of(head, item, tail, LIST_LEN_MAX + 1);
        assert_eq!(number(&beyond), None, "{head}");
    }
    let chain = format!("SELECT {}", vec!["a"; LIST_LEN_MAX + 1].join(" OR "));
    assert_eq!(number(&chain), None);
}

#[test]
fn the_quoted_text_is_cut_at_80_bytes() {
    let quoted = |rest: &str| near(&format!("SELECT * FROM t WHERE ){rest}")).1;
    assert_eq!(quoted(&"x".repeat(79)), format!("){}", "x".repeat(79)));
    assert_eq!(quoted(&"x".repeat(80)), format!("){}...", "x".repeat(76)));
    let wide = "\u{65e5}";
    assert_eq!(quoted(&wide.repeat(26)), format!("){}", wide.repeat(26)));
    assert_eq!(quoted(&wide.repeat(27)), format!("){}...", wide.repeat(25)));
    // Messages are in utf8mb3.
    let wider = "\u{1f600}";
    assert_eq!(quoted(&wider.repeat(79)), format!("){}", "?".repeat(79)));
    assert_eq!(quoted(&wider.repeat(80)), format!("){}...", "?".repeat(76)));
}

#[test]
fn an_empty_text_is_an_error_but_a_comment_is_not() {
    for sql in ["", "  ", ";", " ; "] {
        assert_eq!(near(sql).0, 1065, "{sql}");
    }
    for sql in [
        "-- nothing",
        "/* nothing */",
        "/*!99999 SELECT 1 */",
        "/* x */;",
    ] {
        let statement = parse(sql.as_bytes(), SqlMode::default()).expect(sql);
        assert_eq!(statement.kind, StatementKind::Empty, "{sql}");
    }
}

#[test]
fn nesting_is_bounded() {
    let cases = [
        ("(", ")"),
        ("-", ""),
        ("NOT ", ""),
        ("(SELECT ", ")"),
        ("f(", ")"),
        ("CASE WHEN ", " THEN 1 END"),
        ("1 BETWEEN ", " AND 2"),
    ];
    for (open, close) in cases {
        let sql = format!("SELECT {}1{}", open.repeat(50_000), close.repeat(50_000));
        assert_eq!(near(&sql).0, 1436, "{open}");
    }
    let joins = format!("SELECT 1 FROM t{}", " JOIN t".repeat(10_000));
    assert_eq!(near(&joins).0, 1436);
    let sums = format!("SELECT 1{}", "+1".repeat(10_000));
    assert_eq!(near(&sums).0, 1436);
    for operator in ["EXCEPT", "INTERSECT", "UNION SELECT 2 EXCEPT"] {
        let operands = format!(" {operator} SELECT 1").repeat(10_000);
        assert_eq!(near(&format!("SELECT 1{operands}")).0, 1436, "{operator}");
    }
}

#[test]
fn long_lists_and_conditions_are_fine() {
    let unions = format!("SELECT 1{}", " UNION SELECT 1".repeat(50_000));
    assert!(parse(unions.as_bytes(), SqlMode::default()).is_ok());
    let ors = format!("SELECT 1 WHERE a=0{}", " OR a=1".repeat(50_000));
    assert!(parse(ors.as_bytes(), SqlMode::default()).is_ok());
    let list = format!("SELECT 1 WHERE a IN (0{})", ",1".repeat(100_000));
    assert!(parse(list.as_bytes(), SqlMode::default()).is_ok());
}

#[test]
fn a_text_is_split_at_semicolons() {
    let mut text: &[u8] = b"SELECT 1; /* a;b */ SELECT ';' ;\n INSERT INTO t VALUES (1)";
    let mut count = 0;
    while !text.is_empty() {
        let (_, end) = parse_one(text, SqlMode::default()).expect("a statement");
        text = &text[end..];
        count += 1;
    }
    assert_eq!(count, 3);
}
