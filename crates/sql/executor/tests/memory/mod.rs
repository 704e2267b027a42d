//! The memory that statements keep is counted and released; long work yields.

use value::Value;

use crate::bench::Bench;

const LIMIT: usize = 4 << 20;

/// This many rows of `sbtest1`: `k` from 1, a short text.
fn filled(row_count: usize) -> Bench {
    let mut bench = Bench::new();
    let rows: Vec<String> = (1..=row_count)
        .map(|number| format!("({number}, 'ab')"))
        .collect();
    bench.ok(&format!(
        "INSERT INTO sbtest1 (k, c) VALUES {}",
        rows.join(", ")
    ));
    bench
}

/// The same, with the limit [`LIMIT`] for statements.
fn limited(row_count: usize) -> Bench {
    let mut bench = filled(row_count);
    bench.options.kept_bytes_max = LIMIT;
    bench
}

fn check_refused(bench: &mut Bench, sql: &str) {
    let error = bench.run(sql).expect_err(sql);
    let expected = format!("--max-session-mem-used={LIMIT}");
    assert!(error.contains(&expected), "{sql}: {error}");
}

/// Idle executions are cached for their next run; they must not keep large buffers.
#[test]
fn an_idle_execution_keeps_no_large_buffers() {
    let mut bench = Bench::new();
    let kept = |bench: &mut Bench, sql: &str, parameters: &[Value]| {
        let mut execution = bench.execution(sql).expect(sql);
        let (first, _) = bench.execute(&mut execution, parameters).expect(sql);
        let kept_bytes = execution.memory_bytes();
        let (again, _) = bench.execute(&mut execution, parameters).expect(sql);
        assert_eq!(again, first, "{sql} again");
        kept_bytes
    };
    assert!(0 < kept(&mut bench, "SELECT name FROM people ORDER BY age", &[]));
    let large = Value::bytes("x".repeat(1 << 20));
    let cases = [
        "SELECT REPEAT(name, 50000) FROM people ORDER BY 1",
        "SELECT REPEAT(name, 50000) FROM people",
        "SELECT id FROM people WHERE name = ?",
        "SELECT id FROM people WHERE name = (SELECT REPEAT(MIN(name), 50000) FROM people)",
        "REPLACE INTO cities SELECT 9, LEFT(?, 3)",
        "SELECT LENGTH(?)",
    ];
    for sql in cases {
        let parameters = &[large.clone()][..sql.matches('?').count()];
        assert_eq!(kept(&mut bench, sql, parameters), 0, "{sql}");
    }
    let many = vec![Value::Int(1); 10_000];
    let marks = vec!["?"; many.len()].join(", ");
    let sql = format!("SELECT id FROM people WHERE age + 1 IN ({marks})");
    assert_eq!(kept(&mut bench, &sql, &many), 0);
}

/// Each pause comes before the row's computed strings are dropped.
#[test]
fn rows_that_pause_the_result_do_not_pile_up() {
    let mut bench = limited(200);
    bench.pauses = true;
    let (rows, _) = bench
        .run("SELECT REPEAT(c, 50000) FROM sbtest1")
        .expect("a row at a time is small");
    assert_eq!(rows.len(), 200);
}

#[test]
fn kept_rows_count_with_their_texts() {
    let mut bench = limited(100);
    // Not `k` itself: an index would find the rows for each person.
    let derived = "(SELECT k + 0 AS k, REPEAT(c, 50000) body FROM sbtest1) d";
    check_refused(
        &mut bench,
        &format!("SELECT MAX(LENGTH(d.body)) FROM people p LEFT JOIN {derived} ON p.age = d.k"),
    );
    check_refused(
        &mut bench,
        &format!("SELECT LENGTH(d.body) FROM {derived} ORDER BY d.k, d.body"),
    );
}

#[test]
fn the_values_that_groups_keep_are_counted() {
    let mut bench = limited(100);
    for function in ["MAX", "MIN"] {
        check_refused(
            &mut bench,
            &format!("SELECT k, LENGTH({function}(REPEAT(c, 50000))) FROM sbtest1 GROUP BY k"),
        );
    }
    let growing = "CONCAT(LPAD(id, 9, '0'), REPEAT(c, 50000))";
    bench.check(
        &format!("SELECT LENGTH(MAX({growing})) FROM sbtest1"),
        &["100009"],
    );
    // A rollup sorts its input; after the sort one group is kept at a time.
    let ordered = format!(
        "SELECT id, LENGTH(MAX({growing})) FROM sbtest1 WHERE id <= 25 GROUP BY id WITH ROLLUP"
    );
    let (rows, _) = bench.run(&ordered).expect("one group at a time");
    assert_eq!(rows.len(), 26);
}

#[test]
fn the_keys_of_changed_rows_are_counted() {
    let mut bench = filled(300);
    // The keys of found rows take less; with those of changed ones it is more.
    bench.options.kept_bytes_max = 20_000;
    let error = bench.run("UPDATE sbtest1 SET id = id + 10000");
    assert!(error.is_err_and(|error| error.contains("20000")));
}

/// No operator works on kept rows for longer than a turn.
#[test]
fn kept_rows_are_given_turn_by_turn() {
    let mut bench = filled(640);
    let turns = |bench: &mut Bench, sql: &str| {
        let mut execution = bench.execution(sql).expect(sql);
        bench.execute(&mut execution, &[]).expect(sql);
        bench.turn_count
    };
    let scan = turns(&mut bench, "SELECT id FROM sbtest1");
    assert!((10..=11).contains(&scan), "{scan}");
    let recursive = "WITH RECURSIVE n AS (SELECT 1 a UNION ALL SELECT a + 1 FROM n WHERE a < 900) \
                     SELECT COUNT(*) FROM n";
    assert!(14 <= turns(&mut bench, recursive));
    let wide = "WITH RECURSIVE n AS (SELECT k, 1 a FROM sbtest1 UNION ALL \
                SELECT k, a + 1 FROM n WHERE a < 3) SELECT COUNT(*) FROM n";
    assert!(40 <= turns(&mut bench, wide));
    let more = [
        "SELECT id FROM sbtest1 ORDER BY k + 1",
        "SELECT k + 1, COUNT(*) FROM sbtest1 GROUP BY k + 1",
        "SELECT p.id FROM people p JOIN (SELECT k + 1 n FROM sbtest1) d ON p.age < d.n",
    ];
    for sql in more {
        let count = turns(&mut bench, sql);
        assert!(scan + 10 <= count, "{sql}: {count} turns");
    }
}

/// Turns are by time: a range of a hundred rows ends before its turn does.
#[test]
fn rows_that_took_no_time_are_given_without_a_turn() {
    let mut bench = filled(640);
    bench.make_fast();
    let mut execution = bench
        .execution("SELECT id FROM sbtest1 ORDER BY c")
        .unwrap();
    let (rows, _) = bench.execute(&mut execution, &[]).unwrap();
    assert_eq!((rows.len(), bench.turn_count), (640, 0));
}
