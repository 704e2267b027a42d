//! Work that is left to the store of a remote table: the same results, and fewer rows.

use store::{Suspend, WaitReason};
use testkit::naive_store::RoundTrip;
use value::Value;

use super::bench::{Bench, shown};

/// A bench with 1,000 rows in `sbtest1`. A fifth of them has each of the texts a to e in `c`, a
/// tenth has a text in `pad`.
fn filled() -> Bench {
    let mut bench = Bench::new();
    let text = |id: u32| ["a", "b", "c", "d", "e"][id as usize % 5];
    let pad = |id: u32| if id.is_multiple_of(10) { "full" } else { "" };
    let rows: Vec<String> = (1..=1000)
        .map(|id| format!("({id}, {}, '{}', '{}')", id % 100, text(id), pad(id)))
        .collect();
    let rows = rows.join(", ");
    bench.ok(&format!(
        "INSERT INTO sbtest1 (id, k, c, pad) VALUES {rows}"
    ));
    bench.end();
    bench
}

fn be_remote(bench: &Bench) {
    let round_trip = || Suspend::new(WaitReason::Remote, std::future::ready(()));
    bench.store.be_remote(RoundTrip(Box::new(round_trip)));
}

/// Runs a statement once. Returns its rows, and how many rows the store has returned.
fn once(bench: &mut Bench, sql: &str, parameters: &[Value]) -> (String, u64) {
    let mut execution = bench.execution(sql).expect("a plan");
    let before = bench.store.rows_read();
    let (rows, _) = bench.execute(&mut execution, parameters).expect("rows");
    (shown(&rows), bench.store.rows_read() - before)
}

/// The statements return the same rows from both kinds of tables, and so many cross from the remote
/// ones.
fn check(statements: &[(&str, u64)]) {
    let (mut near, mut far) = (filled(), filled());
    be_remote(&far);
    for (sql, crossing) in statements {
        let (expected, _) = once(&mut near, sql, &[]);
        let (rows, crossed) = once(&mut far, sql, &[]);
        assert_eq!(rows, expected, "{sql}");
        assert_eq!(crossed, *crossing, "{sql}");
    }
    near.end();
    far.end();
}

#[test]
fn rows_for_which_a_pushed_condition_is_not_true_stay_away() {
    check(&[
        ("SELECT id FROM sbtest1 WHERE c = 'B'", 200),
        (
            "SELECT id FROM sbtest1 WHERE c IN ('a', 'e') AND pad > ''",
            100,
        ),
        (
            "SELECT id FROM sbtest1 WHERE c > 'a' AND c <= 'c' AND id < 500",
            200,
        ),
        (
            "SELECT id FROM sbtest1 WHERE NOT (c = 'a' OR c >= 'c')",
            200,
        ),
        (
            "SELECT id FROM sbtest1 WHERE c NOT IN ('a', 'b') AND c <> 'e'",
            400,
        ),
        // The ranges say less than the condition, which is tested again.
        ("SELECT id FROM sbtest1 WHERE pad LIKE 'f_ll'", 100),
        (
            "SELECT id FROM sbtest1 WHERE c = 'a' AND LENGTH(pad) = 4",
            200,
        ),
        // The store does not take alternatives of two columns, and functions are not offered.
        ("SELECT id FROM sbtest1 WHERE c = 'a' OR pad = 'full'", 1000),
        ("SELECT id FROM sbtest1 WHERE LENGTH(pad) = 4", 1000),
        ("SELECT id FROM sbtest1 WHERE c = (SELECT 'a')", 1000),
        ("SELECT id FROM sbtest1 WHERE c = 'a' FOR UPDATE", 200),
    ]);
}

#[test]
fn null_and_other_types_compare_as_they_do_above() {
    check(&[
        ("SELECT id FROM people WHERE age <> 30", 3),
        ("SELECT id FROM people WHERE NOT (age = 30)", 3),
        ("SELECT id FROM people WHERE age + 0 <> 30", 5),
        ("SELECT id FROM people WHERE age IS NULL", 1),
        ("SELECT id FROM people WHERE age <=> NULL", 1),
        ("SELECT id FROM people WHERE age = NULL", 0),
        ("SELECT id FROM people WHERE age NOT IN (30, 40)", 2),
        ("SELECT id FROM people WHERE age BETWEEN 20 AND 40", 3),
        ("SELECT id FROM people WHERE age > 29.5 AND age < '41'", 2),
        ("SELECT id FROM cities WHERE title >= 'p'", 2),
    ]);
}

#[test]
fn a_pushed_limit_ends_the_scan() {
    check(&[
        ("SELECT id FROM sbtest1 LIMIT 100", 100),
        ("SELECT id FROM sbtest1 WHERE c = 'a' LIMIT 3", 3),
        ("SELECT id FROM sbtest1 WHERE c = 'a' LIMIT 2, 100", 102),
        (
            "SELECT id FROM sbtest1 WHERE c = 'a' ORDER BY id DESC LIMIT 150",
            150,
        ),
        // All rows are sorted, or counted.
        (
            "SELECT id FROM sbtest1 WHERE c = 'a' ORDER BY pad, id LIMIT 3",
            200,
        ),
        (
            "SELECT SQL_CALC_FOUND_ROWS id FROM sbtest1 WHERE c = 'a' LIMIT 3",
            200,
        ),
        ("SELECT id FROM sbtest1 LIMIT 0", 0),
    ]);
}

#[test]
fn groups_come_in_place_of_rows() {
    check(&[
        (
            "SELECT COUNT(*), COUNT(c), SUM(k), MIN(c), MAX(k) FROM sbtest1 WHERE c > 'b'",
            1,
        ),
        (
            "SELECT COUNT(*) + 1, SUM(k) * 2 FROM sbtest1 WHERE id BETWEEN 10 AND 400",
            1,
        ),
        ("SELECT c, COUNT(*), SUM(k) FROM sbtest1 GROUP BY c", 5),
        (
            "SELECT c, pad, COUNT(*) n FROM sbtest1 GROUP BY c, pad HAVING n > 100",
            6,
        ),
        (
            "SELECT COUNT(*) FROM sbtest1 WHERE id IN (3, 5, 8) OR id > 900",
            1,
        ),
        (
            "SELECT COUNT(*), SUM(k), MIN(c) FROM sbtest1 WHERE c = 'zz'",
            1,
        ),
        (
            "SELECT COUNT(*), SUM(k) FROM sbtest1 WHERE id > 5 AND id < 3",
            1,
        ),
        (
            "SELECT c, COUNT(*) FROM sbtest1 WHERE c = 'zz' GROUP BY c",
            0,
        ),
        (
            "SELECT COUNT(age), SUM(age), MIN(name), MAX(age) FROM people",
            1,
        ),
        ("SELECT city, MIN(age) FROM people GROUP BY city", 3),
        (
            "SELECT p.id, (SELECT MAX(k) FROM sbtest1 WHERE c = 'b') FROM people p",
            6,
        ),
        (
            "SELECT COUNT(*) FROM (SELECT c, COUNT(*) FROM sbtest1 GROUP BY c) d",
            5,
        ),
        // The store is not asked for these, or has not taken the condition.
        ("SELECT AVG(k) FROM sbtest1", 1000),
        ("SELECT COUNT(DISTINCT c) FROM sbtest1", 1000),
        ("SELECT SUM(k + 1) FROM sbtest1", 1000),
        ("SELECT COUNT(*) FROM sbtest1 WHERE LENGTH(pad) = 4", 1000),
        (
            "SELECT COUNT(*) FROM sbtest1 WHERE c = 'a' OR pad = 'full'",
            1000,
        ),
        (
            "SELECT c, COUNT(*) FROM sbtest1 GROUP BY c WITH ROLLUP",
            1000,
        ),
        ("SELECT COUNT(*) FROM sbtest1 WHERE c = 'a' FOR UPDATE", 200),
    ]);
}

#[test]
fn a_joined_table_is_filtered_where_it_is() {
    check(&[
        (
            "SELECT a.id, p.id FROM people p JOIN sbtest1 a ON a.id = p.id AND a.c = 'b'",
            6,
        ),
        (
            "SELECT a.id, p.id FROM people p LEFT JOIN sbtest1 a ON a.id = p.id AND a.c = 'b'",
            6,
        ),
        (
            "SELECT p.id, c.id FROM people p JOIN cities c ON c.id = p.city WHERE p.age > 30",
            5,
        ),
    ]);
}

#[test]
fn an_execution_pushes_the_values_of_its_parameters() {
    let mut bench = filled();
    be_remote(&bench);
    let sql = "SELECT COUNT(*), MIN(id) FROM sbtest1 WHERE c = ? AND id > ?";
    let mut execution = bench.execution(sql).expect("a plan");
    let cases = [
        ("a", 500, "100 505"),
        ("e", 990, "2 994"),
        ("x", 0, "0 NULL"),
    ];
    for (text, id, expected) in cases {
        let values = [Value::bytes(text), Value::Int(id)];
        let before = bench.store.rows_read();
        let (rows, _) = bench.execute(&mut execution, &values).expect("rows");
        assert_eq!(shown(&rows), expected);
        assert_eq!(bench.store.rows_read() - before, 1);
    }
    let sql = "SELECT id FROM sbtest1 WHERE c = ? LIMIT ?";
    let mut execution = bench.execution(sql).expect("a plan");
    for (text, count, expected) in [("a", 2, "5\n10"), ("b", 1, "1")] {
        let values = [Value::bytes(text), Value::Int(count)];
        let (rows, _) = bench.execute(&mut execution, &values).expect("rows");
        assert_eq!(shown(&rows), expected);
    }
    bench.end();
}

#[test]
fn rows_to_change_are_found_by_pushed_conditions() {
    let mut bench = filled();
    be_remote(&bench);
    let before = bench.store.rows_read();
    let update = "UPDATE sbtest1 SET pad = 'new' WHERE c = 'a'";
    assert_eq!(bench.ok(update).affected_rows, 200);
    let delete = "DELETE FROM sbtest1 WHERE pad = 'new' AND c <> 'b'";
    assert_eq!(bench.ok(delete).affected_rows, 200);
    assert_eq!(bench.store.rows_read() - before, 400);
    bench.end();
}

#[test]
fn explain_shows_what_the_store_does() {
    let mut bench = filled();
    let shown = |bench: &mut Bench, sql: &str| {
        let (rows, _) = once(bench, &format!("EXPLAIN {sql}"), &[]);
        let extra = rows.rsplit("NULL ").next().unwrap_or_default().to_owned();
        extra
            .split_once(' ')
            .map_or(String::new(), |(_, extra)| extra.to_owned())
    };
    let condition = "SELECT id FROM sbtest1 WHERE c = 'a'";
    assert_eq!(shown(&mut bench, condition), "Using where");
    be_remote(&bench);
    let pushed = "Using where with pushed condition";
    assert_eq!(shown(&mut bench, condition), pushed);
    let partly = "SELECT id FROM sbtest1 WHERE c = 'a' AND LENGTH(pad) = 4";
    assert_eq!(shown(&mut bench, partly), pushed);
    let refused = "SELECT id FROM sbtest1 WHERE c = 'a' OR pad = 'full'";
    assert_eq!(shown(&mut bench, refused), "Using where");
    let groups = "SELECT COUNT(*) FROM sbtest1 WHERE c = 'a'";
    let both = format!("{pushed}; Storage engine handles GROUP BY");
    assert_eq!(shown(&mut bench, groups), both);
    bench.end();
}
