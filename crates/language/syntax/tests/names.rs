//! Names of result columns, as in MariaDB 10.11.

#![forbid(unsafe_code)]

use syntax::ast::{QueryBody, StatementKind};
use syntax::{SqlMode, parse};

fn check(item: &str, expected: &str) {
    let sql = format!("SELECT {item} FROM t1");
    let statement = parse(sql.as_bytes(), SqlMode::default()).expect("a query");
    let StatementKind::Query(query) = statement.kind else {
        panic!("{item} is no query");
    };
    let QueryBody::Select(select) = query.body else {
        panic!("{item} is no SELECT");
    };
    let name = select
        .items
        .first()
        .and_then(|item| item.name(sql.as_bytes()));
    assert_eq!(name.as_deref(), Some(expected), "{item}");
}

#[test]
fn unnamed_items_are_called_as_mariadb_calls_them() {
    let same = [
        "-1",
        "- 1",
        "( 1 + 2 )",
        "(-1)",
        "(@a)",
        "(count(*))",
        "x'41'",
        "0x41",
        "b'1'",
        "1.50",
        "DATE'2020-01-01'",
        "{d '2020-01-01'}",
        "NOT 1",
        ".5",
        "1e3",
        "now()",
        "@@global.x",
        "@a:=1",
        "A",
        "CAST(1 AS CHAR)",
        "1 /* c */ + 1",
        "1 IN (1,2)",
        "(1,2) = (1,2)",
        "'a' COLLATE latin1_bin",
        "-(1)",
        "IF (1,2,3)",
        "+(1+2)",
        "((select 1))",
    ];
    for item in same {
        check(item, item);
    }
    check("'a' 'b'", "ab");
    check("('a')", "a");
    check("'  lead'", "lead");
    check("_utf8'x'", "x");
    check("N'y'", "y");
    check("\"dq\"", "dq");
    check("''", "");
    check("(null)", "NULL");
    check("true", "TRUE");
    check("+1", "1");
    check("(1)", "1");
    check("t1.a", "a");
    check("(t1.`a b`)", "a b");
    check("DISTINCT a", "a");
    check("a AS `x y`", "x y");
    check("a 'z'", "z");
}
