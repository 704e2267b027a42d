//! Statements of thousands of columns: their cost grows linearly.

use super::bench::Bench;

/// Too many to compare each with each other while a client waits.
const COLUMNS: usize = 8_000;

fn list(item: impl Fn(usize) -> String) -> String {
    (0..COLUMNS).map(item).collect::<Vec<_>>().join(", ")
}

/// The number of columns of the first row, and its last value.
fn row(bench: &mut Bench, sql: &str) -> (usize, String) {
    let mut execution = bench.execution(sql).expect("a plan");
    let (rows, _) = bench.execute(&mut execution, &[]).expect("rows");
    let last = rows[0].last().cloned().expect("a column");
    (rows[0].len(), super::bench::shown(&[vec![last]]))
}

#[test]
fn selects_may_have_thousands_of_columns() {
    let mut bench = Bench::new();
    let sums = list(|place| format!("id + {place}"));
    let last = |value: usize| (COLUMNS, value.to_string());
    for tail in ["", " ORDER BY age + 1", " GROUP BY id, age + 1"] {
        let sql = format!("SELECT {sums} FROM people WHERE id = 1{tail}");
        assert_eq!(row(&mut bench, &sql), last(COLUMNS), "{tail}");
    }
    let distinct = format!("SELECT DISTINCT {sums} FROM people WHERE id < 2");
    assert_eq!(row(&mut bench, &distinct), last(COLUMNS));
    let calls = list(|place| format!("MAX(id + {place})"));
    let calls = format!("SELECT {calls} FROM people");
    assert_eq!(row(&mut bench, &calls), last(COLUMNS + 4));
    let ordered = format!(
        "SELECT {} FROM people ORDER BY {}",
        list(|place| format!("id + {place} AS n{place}")),
        list(|place| format!("N{place}"))
    );
    assert_eq!(row(&mut bench, &ordered), last(COLUMNS));
}

#[test]
fn derived_tables_may_have_thousands_of_columns() {
    let mut bench = Bench::new();
    let named = list(|place| format!("id + {place} AS n{place}"));
    let names = list(|place| format!("N{place}"));
    let derived = format!("(SELECT {named} FROM people WHERE id = 1) a");
    let sql = format!("SELECT {names} FROM {derived}");
    assert_eq!(row(&mut bench, &sql), (COLUMNS, COLUMNS.to_string()));
    let natural = format!(
        "SELECT * FROM {derived} NATURAL JOIN {} b",
        &derived[..derived.len() - 2]
    );
    assert_eq!(row(&mut bench, &natural), (COLUMNS, COLUMNS.to_string()));
    let union = format!("SELECT {names} FROM {derived} UNION SELECT {names} FROM {derived}");
    assert_eq!(row(&mut bench, &union), (COLUMNS, COLUMNS.to_string()));
}

#[test]
fn columns_have_a_limit() {
    let bench = Bench::new();
    let many = |count: usize| format!("SELECT {}", vec!["1"; count].join(","));
    assert!(bench.execution(&many(65_535)).is_ok());
    let error = bench.execution(&many(65_536)).map(|_| ());
    assert!(error.is_err_and(|error| error.contains("TooManyColumns")));
    // A star counts with its columns.
    let derived = format!("(SELECT {})", list(|n| format!("1 AS c{n}")));
    let stars = |count: usize| {
        let stars = vec!["a.*"; count].join(", ");
        format!("SELECT {stars} FROM {derived} a")
    };
    assert!(bench.execution(&stars(8)).is_ok());
    let error = bench.execution(&stars(9)).map(|_| ());
    assert!(error.is_err_and(|error| error.contains("Too many columns")));
}
