//! Precedence, compared with MariaDB. `EXPLAIN EXTENDED` of a text without parentheses, and of our
//! tree of it printed with all parentheses, must be equal.
//!
//! Needs Debian's `mariadbd`; `cargo xtask setup` installs it.

#![forbid(unsafe_code)]

use syntax::print::print_expr;
use syntax::{SqlMode, parse_expr};
use testkit::client::{Client, Outcome};
use testkit::server::Server;

const BINARY: &[&str] = &[
    "OR",
    "||",
    "XOR",
    "AND",
    "&&",
    "=",
    "<=>",
    "<>",
    "<",
    ">=",
    "LIKE",
    "NOT LIKE",
    "REGEXP",
    "NOT REGEXP",
    "|",
    "&",
    "<<",
    ">>",
    "+",
    "-",
    "*",
    "/",
    "DIV",
    "MOD",
    "%",
    "^",
];

/// What the server makes of an expression; `None` if it does not parse.
fn normalised(client: &mut Client, expression: &str) -> Option<String> {
    let explain = format!("EXPLAIN EXTENDED SELECT {expression} AS x FROM t");
    match client.query(&explain).expect("a live server") {
        Outcome::Error(error) if error.number == 1064 => None,
        Outcome::Error(error) => Some(error.message),
        _ => {
            let rows = client.rows("SHOW WARNINGS").expect("warnings");
            let last = rows.last().and_then(|row| row.get(2)).expect("a note");
            Some(String::from_utf8_lossy(last.as_deref().unwrap_or_default()).into_owned())
        }
    }
}

/// Every pair of operators, every operator with each other one, and triples that were wrong once.
fn expressions() -> Vec<String> {
    let mut all = Vec::new();
    for first in BINARY {
        for second in BINARY {
            all.push(format!("a {first} b {second} c"));
        }
        for prefix in ["NOT", "!", "-", "~", "BINARY"] {
            all.push(format!("{prefix} a {first} b"));
            all.push(format!("a {first} {prefix} b {first} c"));
        }
        all.push(format!("a {first} b IS NULL"));
        all.push(format!("a IS NOT TRUE {first} b"));
        all.push(format!("a {first} b IN (c, 1)"));
        all.push(format!("a {first} b NOT IN (c, 1)"));
        all.push(format!("a {first} b NOT BETWEEN c AND d"));
        all.push(format!("a {first} b NOT LIKE c {first} d"));
        all.push(format!("a NOT LIKE b {first} c NOT LIKE d"));
        all.push(format!("a LIKE b ESCAPE 'x' {first} d"));
        all.push(format!("a NOT IN (b, 1) {first} c"));
        all.push(format!("a {first} b BETWEEN c AND d"));
        all.push(format!("a BETWEEN b AND c {first} d"));
        all.push(format!("a BETWEEN b {first} c AND d"));
        all.push(format!("a {first} b COLLATE latin1_bin"));
        all.push(format!("a {first} d + INTERVAL b DAY"));
        all.push(format!("d + INTERVAL a {first} b DAY"));
        all.push(format!("INTERVAL a DAY + b {first} c"));
        all.push(format!("@v := a {first} b"));
        all.push(format!("a {first} CASE b WHEN c THEN d END {first} a"));
    }
    let rare = [
        "NOT a BETWEEN b AND c",
        "a LIKE b ESCAPE 'x' = c",
        "a BETWEEN b AND c BETWEEN d AND a",
        "a BETWEEN b BETWEEN c AND d AND a",
        "a LIKE b BETWEEN c AND d",
        "a SOUNDS LIKE b = c",
        "NOT NOT a = b",
        "a IS NULL IS NULL",
        "a = b IS NULL = c",
        "- - a ^ b",
        "a = b = c",
        "- a COLLATE latin1_bin",
        "a AND b BETWEEN c AND d AND a OR b",
        "a + INTERVAL 1 DAY - INTERVAL 2 HOUR * 3",
        "a > ALL (SELECT b FROM t) = c",
        "EXISTS (SELECT 1 FROM t) AND a",
        "! a = b",
        "a XOR b AND c XOR d",
        "a - b - c / d / a",
        "a = b + c AND NOT d",
    ];
    all.extend(rare.map(str::to_owned));
    all
}

fn compare(client: &mut Client, mode: SqlMode) -> Vec<String> {
    let mut report = Vec::new();
    let mut compared = 0;
    for text in expressions() {
        let theirs = normalised(client, &text);
        let ours = parse_expr(text.as_bytes(), mode)
            .ok()
            .map(|tree| print_expr(&tree));
        match (theirs, ours) {
            (None, None) => {}
            (Some(_), None) => report.push(format!("{text}: refused here")),
            (None, Some(ours)) => report.push(format!("{text}: refused by MariaDB, here {ours}")),
            (Some(theirs), Some(ours)) => {
                compared += 1;
                let through = normalised(client, &ours);
                if through.as_ref() != Some(&theirs) {
                    let through = through.unwrap_or_default();
                    report.push(format!("{text}\n  here {ours}\n  {theirs}\n  {through}"));
                }
            }
        }
    }
    assert!(800 < compared, "only {compared} expressions were compared");
    report
}

#[test]
fn expressions_group_as_mariadb_groups_them() {
    let (_server, mut client) = Server::reference(&[
        "SET NAMES latin1",
        "CREATE DATABASE p",
        "USE p",
        "CREATE TABLE t (a VARCHAR(20), b VARCHAR(20), c VARCHAR(20), d DATETIME)",
        "INSERT INTO t VALUES ('1', '2', '3', NOW()), ('4', '5', '6', NOW())",
    ]);
    let mut report = compare(&mut client, SqlMode::default());
    client
        .run("SET sql_mode = 'PIPES_AS_CONCAT,HIGH_NOT_PRECEDENCE'")
        .expect("a mode");
    let mode = SqlMode::PIPES_AS_CONCAT.with(SqlMode::HIGH_NOT_PRECEDENCE);
    let others = compare(&mut client, mode);
    report.extend(others.iter().map(|line| format!("other mode: {line}")));
    assert!(
        report.is_empty(),
        "{} differ:\n{}",
        report.len(),
        report.join("\n")
    );
}
