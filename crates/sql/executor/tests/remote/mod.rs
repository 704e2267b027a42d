//! A store on another server: how many calls statements take, and that each may fail.

use errcode::{ER_NET_READ_ERROR, ErrorCode};
use store::{StoreError, Suspend, WaitReason};
use testkit::naive_store::RoundTrip;

use super::bench::{Bench, shown};

/// A bench whose store is remote, with rows in `sbtest1`; `k` is ten times the id.
fn remote(row_count: u32) -> Bench {
    let mut bench = Bench::new();
    let rows: Vec<String> = (1..=row_count)
        .map(|id| format!("({id}, {})", id * 10))
        .collect();
    let rows = rows.join(", ");
    bench.ok(&format!("INSERT INTO sbtest1 (id, k) VALUES {rows}"));
    bench.end();
    let round_trip = || Suspend::new(WaitReason::Remote, std::future::ready(()));
    bench.store.be_remote(RoundTrip(Box::new(round_trip)));
    bench
}

/// What a server reports.
fn refusal(code: ErrorCode, text: &str) -> StoreError {
    StoreError::Remote {
        server: "s1".into(),
        code,
        state: code.sqlstate(),
        text: text.into(),
    }
}

/// Runs the statement once. Returns its affected rows, and the number of calls.
fn calls(bench: &mut Bench, sql: &str) -> (u64, u64) {
    let before = bench.store.calls();
    let affected_rows = bench.ok(sql).affected_rows;
    (affected_rows, bench.store.calls() - before)
}

#[test]
fn rows_that_are_changed_are_looked_up_many_at_a_call() {
    let statements = [
        (
            "UPDATE sbtest1 a JOIN sbtest1 b ON b.id = a.id SET a.k = b.k + 1",
            1000,
        ),
        (
            "UPDATE sbtest1 SET id = id + 5000 ORDER BY id DESC LIMIT 3",
            3,
        ),
        (
            "UPDATE sbtest1 a JOIN sbtest1 b ON b.id = a.id SET a.c = 'x', b.pad = 'y'",
            2000,
        ),
        (
            "DELETE a FROM sbtest1 a JOIN sbtest1 b ON b.id = a.id",
            1000,
        ),
        ("UPDATE sbtest1 SET k = k + 1 WHERE k + 0 < 20000", 1000),
        ("DELETE FROM sbtest1 WHERE k + 0 < 20000", 1000),
    ];
    for (sql, rows) in statements {
        let mut bench = remote(1000);
        let (affected, calls) = calls(&mut bench, sql);
        assert_eq!(affected, rows, "{sql}");
        assert!(calls <= 20, "{calls} calls: {sql}");
        bench.end();
    }
}

#[test]
fn the_row_in_the_way_comes_with_the_refusal() {
    let list: Vec<String> = (1..=50).map(|id| format!("({id}, 7)")).collect();
    let list = list.join(", ");
    let update = "ON DUPLICATE KEY UPDATE k = VALUES(k)";
    // Each INSERT is a call, and so is the end of the statement, with which the changes are sent.
    let statements = [
        format!("INSERT INTO sbtest1 (id, k) VALUES {list} {update}"),
        format!("REPLACE INTO sbtest1 (id, k) VALUES {list}"),
    ];
    for sql in statements {
        let mut bench = remote(50);
        let (affected, calls) = calls(&mut bench, &sql);
        assert_eq!(affected, 100, "{sql}");
        assert_eq!(calls, 50 + 1, "{sql}");
        bench.check("SELECT COUNT(*), SUM(k) FROM sbtest1", &["50 350"]);
        bench.end();
    }
}

#[test]
fn a_statement_fails_by_the_error_of_any_of_its_calls() {
    let statements = [
        "SELECT a.id, b.k FROM sbtest1 a JOIN sbtest1 b ON b.id = a.id",
        "SELECT COUNT(*) FROM sbtest1 WHERE k > 20 FOR UPDATE",
        "INSERT INTO sbtest1 (k) VALUES (1), (2)",
        "INSERT INTO sbtest1 (id, k) VALUES (1, 1), (90, 2) ON DUPLICATE KEY UPDATE k = 3",
        "INSERT INTO sbtest1 (k) SELECT k FROM sbtest1",
        "REPLACE INTO sbtest1 (id, k) VALUES (1, 1), (91, 2)",
        "UPDATE sbtest1 SET id = id + 100 WHERE id < 4",
        "UPDATE sbtest1 a JOIN sbtest1 b ON b.id = a.id SET a.k = b.k + 1, b.c = 'x'",
        "DELETE a FROM sbtest1 a JOIN sbtest1 b ON b.id = a.id",
        "DELETE FROM sbtest1",
    ];
    let all = "SELECT id, k, c FROM sbtest1";
    for sql in statements {
        let mut bench = remote(30);
        let before = bench.rows(all);
        for call in 0.. {
            let mut execution = bench.execution(sql).expect("a plan");
            bench
                .store
                .fail_after(call, refusal(ER_NET_READ_ERROR, "gone"));
            let outcome = bench.execute(&mut execution, &[]);
            if bench.store.withdraw_failure() {
                assert!(outcome.is_ok() && 0 < call, "{outcome:?} at {call}: {sql}");
                break;
            }
            let error = outcome.expect_err("a call has failed");
            assert_eq!(error, "ERROR 1158 (08S01): gone", "{sql}");
            assert_eq!(bench.rows(all), before, "{sql} leaves no trace");
        }
        bench.end();
    }
}

#[test]
fn a_locking_join_that_stops_early_locks_few_rows() {
    let mut bench = remote(500);
    let sql = "SELECT a.id, b.id FROM sbtest1 a JOIN sbtest1 b ON b.id = a.id LIMIT 3 FOR UPDATE";
    let mut execution = bench.execution(sql).expect("a plan");
    let before = bench.store.rows_read();
    let (rows, _) = bench.execute(&mut execution, &[]).expect("rows");
    assert_eq!(shown(&rows), "1 1\n2 2\n3 3");
    // Three of each side, and none ahead.
    assert_eq!(bench.store.rows_read() - before, 6);
    bench.end();
}

/// Each target of a pair is deleted, although an earlier pair has deleted the other one.
#[test]
fn a_delete_from_two_tables_removes_all_pairs() {
    for is_remote in [false, true] {
        let mut bench = match is_remote {
            true => remote(1),
            false => Bench::new(),
        };
        let sql = "DELETE p, c FROM people p JOIN cities c ON c.id = p.city";
        assert_eq!(bench.ok(sql).affected_rows, 6);
        bench.check("SELECT id FROM people", &["4"]);
        bench.check("SELECT id FROM cities", &["3"]);
        bench.end();
    }
}
