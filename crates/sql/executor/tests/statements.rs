//! Statements from text to rows, over the naive store.
//!
//! A statement that only reads runs twice: straight through, and with a suspension at every third
//! operation of the store. Both must return the same rows.

#![forbid(unsafe_code)]

mod assignments;
mod bench;
mod joins;
mod memory;
mod pushed;
mod remote;
mod sets;
mod wide;

use value::Value;

use bench::{Bench, shown};

#[test]
fn tables_are_read_by_every_access_path() {
    let mut bench = Bench::new();
    bench.check("SELECT name FROM people WHERE id = 3", &["Cecil"]);
    bench.check("SELECT id FROM people WHERE name = 'ANNA'", &["1"]);
    bench.check(
        "SELECT id FROM people WHERE id BETWEEN 2 AND 4",
        &["2", "3", "4"],
    );
    bench.check(
        "SELECT id FROM people WHERE id IN (4, 1, 1, 9)",
        &["1", "4"],
    );
    bench.check("SELECT id FROM people WHERE id = 1 OR id > 4", &["1", "5"]);
    bench.check("SELECT id FROM people WHERE city = 1 AND age > 40", &["3"]);
    bench.check("SELECT id FROM people WHERE city IS NULL", &["4"]);
    bench.check("SELECT id FROM people WHERE name LIKE 'b%'", &["2"]);
    bench.check(
        "SELECT id FROM people WHERE age < 45 ORDER BY id",
        &["1", "2", "4"],
    );
    bench.check(
        "SELECT id FROM people ORDER BY id DESC LIMIT 2",
        &["5", "4"],
    );
    bench.check(
        "SELECT id FROM people ORDER BY age DESC, id LIMIT 1, 2",
        &["2", "1"],
    );
    bench.check("SELECT id FROM people WHERE id = '3'", &["3"]);
    bench.check("SELECT id FROM people WHERE id = 2.5", &[]);
    bench.check("SELECT id FROM people WHERE id > 3.5", &["4", "5"]);
    bench.check("SELECT 1 FROM people WHERE 1 = 0", &[]);
    bench.check("SELECT id FROM people WHERE 1 = 0 AND id > 1", &[]);
    bench.check("SELECT id FROM people WHERE 1 = 1 AND id > 4", &["5"]);
    bench.check("SELECT 1, 'a', NULL", &["1 a NULL"]);
    bench.end();
}

#[test]
fn joins_pair_rows() {
    let mut bench = Bench::new();
    let join = "SELECT p.id, c.title FROM people p JOIN cities c ON c.id = p.city ORDER BY p.id";
    bench.check(join, &["1 Turku", "2 Oulu", "3 Turku", "5 Oulu"]);
    let left = "SELECT p.id, c.title FROM people p LEFT JOIN cities c ON c.id = p.city \
                ORDER BY p.id";
    bench.check(left, &["1 Turku", "2 Oulu", "3 Turku", "4 NULL", "5 Oulu"]);
    let right = "SELECT c.id, p.name FROM people p RIGHT JOIN cities c ON c.id = p.city \
                 AND p.age > 30 ORDER BY c.id";
    bench.check(right, &["1 Cecil", "2 bert", "3 NULL"]);
    let hashed = "SELECT a.id, b.id FROM people a JOIN people b ON a.age = b.age + 10 \
                  ORDER BY a.id, b.id";
    bench.check(hashed, &["1 4", "2 1", "3 2"]);
    bench.check("SELECT COUNT(*) FROM people, cities", &["15"]);
    let using = "SELECT * FROM cities JOIN people USING (id) ORDER BY id";
    bench.check(
        using,
        &["1 Turku Anna 1 30", "2 Oulu bert 2 40", "3 Pori Cecil 1 50"],
    );
    let derived = "SELECT d.n, c.title FROM (SELECT city, COUNT(*) n FROM people GROUP BY city) d \
                   JOIN cities c ON c.id = d.city ORDER BY c.title";
    bench.check(derived, &["2 Oulu", "2 Turku"]);
    // The condition with `o` is not part of the group's hash table, which is kept for all rows.
    let group = "SELECT o.id, q.id FROM people o LEFT JOIN (cities c JOIN people q \
                 ON q.age = c.id * 10 + 10) ON q.age > o.age ORDER BY o.id, q.id";
    let pairs = ["1 2", "2 NULL", "3 NULL", "4 1", "4 2", "5 NULL"];
    bench.check(group, &pairs);
    let inside = "SELECT o.id, q.id FROM people o LEFT JOIN (cities c LEFT JOIN people q \
                  ON q.age = c.id * 10 + 10) ON q.age > o.age ORDER BY o.id, q.id";
    bench.check(inside, &pairs);
    let judged = "SELECT a.id, b.id FROM people a JOIN people b ON a.age = b.age + 10 AND b.id < \
                  (SELECT MAX(q.id) FROM people q WHERE q.city = a.city) ORDER BY a.id";
    bench.check(judged, &["2 1", "3 2"]);
    let around = "SELECT o.id, (SELECT COUNT(*) FROM cities c JOIN people q \
                  ON q.age = c.id * 10 + 10 WHERE q.age > o.age) FROM people o ORDER BY o.id";
    bench.check(around, &["1 1", "2 0", "3 0", "4 2", "5 0"]);
    bench.end();
}

#[test]
fn groups_and_aggregates() {
    let mut bench = Bench::new();
    let grouped = "SELECT city, COUNT(*), SUM(age), MIN(name), MAX(age) FROM people GROUP BY city";
    bench.check(
        grouped,
        &["NULL 1 20 dora 20", "1 2 80 Anna 50", "2 2 40 bert 40"],
    );
    bench.check(
        "SELECT COUNT(*), SUM(age), AVG(age) FROM people",
        &["5 140 35.0000"],
    );
    bench.check(
        "SELECT COUNT(*), SUM(age) FROM people WHERE id > 9",
        &["0 NULL"],
    );
    bench.check(
        "SELECT COUNT(DISTINCT city), COUNT(city) FROM people",
        &["2 4"],
    );
    let having = "SELECT city, COUNT(*) n FROM people GROUP BY city HAVING n > 1 ORDER BY 1 DESC";
    bench.check(having, &["2 2", "1 2"]);
    let rollup = "SELECT city, COUNT(*) FROM people WHERE city > 0 GROUP BY city WITH ROLLUP";
    bench.check(rollup, &["1 2", "2 2", "NULL 4"]);
    let concat = "SELECT GROUP_CONCAT(name ORDER BY name DESC SEPARATOR '+') FROM people";
    bench.check(concat, &["dora+Cecil+bert+Anna"]);
    bench.check(
        "SELECT DISTINCT city FROM people ORDER BY city",
        &["NULL", "1", "2"],
    );
    bench.check("SELECT BIT_OR(id), BIT_AND(id) FROM people", &["7 0"]);
    bench.end();
}

#[test]
fn subqueries_and_unions() {
    let mut bench = Bench::new();
    bench.check(
        "SELECT id FROM people WHERE age = (SELECT MAX(age) FROM people)",
        &["3"],
    );
    let inside = "SELECT id FROM people WHERE city IN (SELECT id FROM cities WHERE title > 'P') \
                  ORDER BY id";
    bench.check(inside, &["1", "3"]);
    let outside = "SELECT id FROM cities WHERE id NOT IN (SELECT city FROM people)";
    bench.check(outside, &[]);
    let outside = "SELECT id FROM cities WHERE id NOT IN (SELECT city FROM people WHERE city > 0)";
    bench.check(outside, &["3"]);
    let correlated = "SELECT id FROM people p WHERE age = (SELECT MAX(age) FROM people q \
                      WHERE q.city = p.city) ORDER BY id";
    bench.check(correlated, &["2", "3"]);
    let exists = "SELECT title FROM cities c WHERE NOT EXISTS \
                  (SELECT 1 FROM people p WHERE p.city = c.id)";
    bench.check(exists, &["Pori"]);
    bench.check("SELECT 1 UNION SELECT 2 UNION SELECT 1", &["1", "2"]);
    bench.check(
        "SELECT 1 AS a UNION ALL SELECT 1 ORDER BY a LIMIT 1",
        &["1"],
    );
    bench.check(
        "SELECT id FROM people WHERE id > ALL (SELECT id FROM cities)",
        &["4", "5"],
    );
    bench.check(
        "WITH old AS (SELECT id FROM people WHERE age > 35) SELECT * FROM old",
        &["2", "3"],
    );
    bench.check(
        "SELECT (SELECT id FROM people)",
        &["ERROR 1242 (21000): Subquery returns more than 1 row"],
    );
    bench.end();
}

#[test]
fn rows_are_inserted_changed_and_deleted() {
    let bench = Bench::new();
    change_rows(bench);
}

#[test]
fn writes_go_on_where_a_wait_stopped_them() {
    let mut bench = Bench::new();
    bench.is_interrupted = true;
    bench.store.suspend_every(2);
    change_rows(bench);
}

fn change_rows(mut bench: Bench) {
    let summary = bench.ok("INSERT INTO sbtest1 (k, c, pad) VALUES (5, 'a', 'x'), (6, 'b', 'y')");
    assert_eq!((summary.affected_rows, summary.last_insert_id), (2, 1));
    let summary = bench.ok("UPDATE sbtest1 SET k = k + 1 WHERE id = 2");
    assert_eq!((summary.affected_rows, summary.matched_rows), (1, 1));
    let summary = bench.ok("UPDATE sbtest1 SET k = 7 WHERE id = 2");
    assert_eq!((summary.affected_rows, summary.matched_rows), (0, 1));
    bench.check("SELECT id, k, c FROM sbtest1", &["1 5 a", "2 7 b"]);
    bench.check(
        "INSERT INTO sbtest1 (id, k) VALUES (1, 9)",
        &["ERROR 1062 (23000): Duplicate entry '1' for key 'PRIMARY'"],
    );
    let summary =
        bench.ok("INSERT INTO sbtest1 (id, k) VALUES (1, 9) ON DUPLICATE KEY UPDATE k = VALUES(k)");
    assert_eq!(summary.affected_rows, 2);
    let summary = bench.ok("REPLACE INTO sbtest1 (id, k) VALUES (1, 10), (8, 80)");
    assert_eq!(summary.affected_rows, 3);
    bench.ok("INSERT IGNORE INTO sbtest1 (id, k) VALUES (8, 1), (9, 90)");
    bench.check(
        "SELECT id, k FROM sbtest1",
        &["1 10", "2 7", "8 80", "9 90"],
    );
    bench.ok("UPDATE sbtest1 SET id = id + 100, k = id WHERE id > 2 ORDER BY id DESC LIMIT 2");
    bench.check(
        "SELECT id, k FROM sbtest1",
        &["1 10", "2 7", "108 108", "109 109"],
    );
    let summary = bench.ok("DELETE FROM sbtest1 WHERE k > 9 ORDER BY k DESC LIMIT 2");
    assert_eq!(summary.affected_rows, 2);
    bench.check("SELECT id FROM sbtest1", &["1", "2"]);
    bench.ok("INSERT INTO sbtest1 (k) SELECT k FROM sbtest1");
    bench.check("SELECT COUNT(*) FROM sbtest1", &["4"]);
    bench.ok("UPDATE people p JOIN cities c ON p.city = c.id SET p.name = c.title WHERE p.id = 5");
    bench.check("SELECT name FROM people WHERE id = 5", &["Oulu"]);
    bench.ok("DELETE p FROM people p JOIN cities c ON p.city = c.id WHERE c.id = 1");
    bench.check("SELECT id FROM people", &["2", "4", "5"]);
    bench.end();
}

#[test]
fn functions_and_operators_are_the_librarys() {
    let mut bench = Bench::new();
    let cases = [
        (
            "SELECT 1 + 1, 7 / 2, 7 DIV 2, 7 % 4, -3, 2 * 1.5",
            "2 3.5000 3 3 -3 3.0",
        ),
        (
            "SELECT CONCAT('a', 1, NULL), CONCAT('a', 1), UPPER('abc')",
            "NULL a1 ABC",
        ),
        (
            "SELECT IF(1 > 2, 'x', 'y'), IFNULL(NULL, 5), COALESCE(NULL, NULL, 'z')",
            "y 5 z",
        ),
        (
            "SELECT CASE 3 WHEN 1 THEN 'a' WHEN 3 THEN 'c' END, NULLIF(2, 2)",
            "c NULL",
        ),
        (
            "SELECT CAST('12' AS SIGNED) + 1, CAST(2.567 AS DECIMAL(5,2))",
            "13 2.57",
        ),
        (
            "SELECT DATE_ADD('2024-01-31', INTERVAL 1 MONTH)",
            "2024-02-29",
        ),
        (
            "SELECT 'abc' REGEXP '^a', 'abc' LIKE '_b%', 'a' = 'A', 'a' COLLATE utf8mb4_bin = 'A'",
            "1 1 1 0",
        ),
        (
            "SELECT TRIM(LEADING 'x' FROM 'xxa'), SUBSTRING('abcd', 2, 2), \
             EXTRACT(YEAR FROM '2024-02-03')",
            "a bc 2024",
        ),
        (
            "SELECT 5 & 6, 5 | 6, 5 ^ 6, ~0, 1 << 3",
            "4 7 3 18446744073709551615 8",
        ),
        (
            "SELECT NULL AND 0, NULL OR 1, NOT NULL, 1 XOR 1, NULL <=> NULL",
            "0 1 NULL 0 1",
        ),
    ];
    for (sql, expected) in cases {
        assert_eq!(bench.rows(sql), expected, "{sql}");
    }
    bench.check(
        "SELECT id, age * 2 + 1 FROM people WHERE LENGTH(name) = 5",
        &["3 101"],
    );
    bench.end();
}

#[test]
fn errors_name_what_is_wrong() {
    let mut bench = Bench::new();
    let cases = [
        (
            "SELECT x FROM people",
            "ERROR 1054 (42S22): Unknown column 'x' in 'SELECT'",
        ),
        (
            "SELECT 1 FROM people WHERE x = 1",
            "ERROR 1054 (42S22): Unknown column 'x' in 'WHERE'",
        ),
        (
            "SELECT id FROM people, cities",
            "ERROR 1052 (23000): Column 'id' in SELECT is ambiguous",
        ),
        (
            "SELECT * FROM nope",
            "ERROR 1146 (42S02): Table 'test.nope' doesn't exist",
        ),
        (
            "SELECT * FROM a.b",
            "ERROR 1146 (42S02): Table 'a.b' doesn't exist",
        ),
        ("SELECT *", "ERROR 1096 (HY000): No tables used"),
        (
            "SELECT id FROM people p, cities p",
            "ERROR 1066 (42000): Not unique table/alias: 'p'",
        ),
        (
            "SELECT 1 FROM people WHERE COUNT(*) > 1",
            "ERROR 1111 (HY000): Invalid use of group function",
        ),
        (
            "SELECT COUNT(*) AS n FROM people GROUP BY n",
            "ERROR 1056 (42000): Can't group on 'n'",
        ),
        (
            "INSERT INTO people (id) VALUES (NULL)",
            "ERROR 1048 (23000): Column 'id' cannot be null",
        ),
        (
            "INSERT INTO people (name) VALUES ('x')",
            "ERROR 1364 (HY000): Field 'id' doesn't have a default value",
        ),
        (
            "INSERT INTO people (id, id) VALUES (1, 1)",
            "ERROR 1110 (42000): Column 'id' specified twice",
        ),
        (
            "INSERT INTO people VALUES (1)",
            "ERROR 1136 (21S01): Column count doesn't match value count at row 1",
        ),
    ];
    for (sql, expected) in cases {
        assert_eq!(bench.rows(sql), expected, "{sql}");
    }
    bench.end();
}

#[test]
fn a_plan_runs_again_with_other_parameters() {
    let mut bench = Bench::new();
    let sql = "SELECT name FROM people WHERE id = ?";
    for (id, name) in [(1, "Anna"), (3, "Cecil"), (9, "")] {
        let (rows, _) = bench.run_with(sql, &[Value::Int(id)]).expect("it runs");
        assert_eq!(shown(&rows), name);
    }
    let sql = "SELECT id FROM people WHERE id > ? ORDER BY id LIMIT ?";
    let (rows, _) = bench
        .run_with(sql, &[Value::Int(2), Value::Int(2)])
        .unwrap();
    assert_eq!(shown(&rows), "3\n4");
    bench.end();
}

#[test]
fn explain_shows_the_access_path() {
    let mut bench = Bench::new();
    let by_key = "EXPLAIN SELECT name FROM people WHERE id = 3";
    bench.check(
        by_key,
        &["1 SIMPLE people const PRIMARY PRIMARY 4 const 1 "],
    );
    let by_range = "EXPLAIN SELECT name FROM people WHERE city = 1 AND age > 3";
    bench.check(
        by_range,
        &["1 SIMPLE people range city_age city_age 10 NULL 1 "],
    );
    bench.end();
}
