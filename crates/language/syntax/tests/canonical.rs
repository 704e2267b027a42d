//! Canonical forms: which literals are replaced, and which are not.

#![forbid(unsafe_code)]

use syntax::SqlMode;
use syntax::canonical::Canonical;

fn check(sql: &str, expected: &str) {
    let mut form = Canonical::new();
    let got = if form.fill(sql.as_bytes(), SqlMode::default()) {
        String::from_utf8_lossy(form.key()).replace('\0', " -- ")
    } else {
        "none".to_owned()
    };
    assert_eq!(got, expected, "{sql}");
}

#[test]
fn sysbench_lifts_all_its_literals() {
    check(
        "SELECT c FROM sbtest1 WHERE id=42",
        "SELECT c FROM sbtest1 WHERE id=? -- i",
    );
    check(
        "SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN 10 AND 109 ORDER BY c",
        "SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c -- ii",
    );
    check(
        "UPDATE sbtest2 SET c='a-b' WHERE id=5",
        "UPDATE sbtest2 SET c=? WHERE id=? -- si",
    );
    check(
        "INSERT INTO sbtest1 (id, k, c, pad) VALUES (1, -2, 'x', 'y')",
        "INSERT INTO sbtest1 (id, k, c, pad) VALUES (?, -?, ?, ?) -- iiss",
    );
    check(
        "DELETE FROM sbtest1 WHERE id=7",
        "DELETE FROM sbtest1 WHERE id=? -- i",
    );
}

#[test]
fn names_positions_and_types_stay() {
    let kept = [
        "SELECT 1",
        "SELECT 'a', 1+2, (SELECT x FROM u WHERE y=5) FROM t",
        "SELECT a FROM t GROUP BY 1, (SELECT 2 FROM u WHERE c=3) ORDER BY 1, a+2",
        "SELECT a FROM t HAVING a > 5",
        "SELECT * FROM t WHERE CAST(a AS DECIMAL(10,2)) = b",
        "SELECT * FROM t WHERE CONVERT(a, CHAR(3)) = b",
        "SELECT * FROM t WHERE a < NOW(6)",
        "SELECT * FROM t WHERE ROUND(a, 2) = b",
        "SELECT * FROM t WHERE d = DATE '2020-01-01' AND e = _latin1'x'",
        "SELECT * FROM t WHERE a = b COLLATE 'utf8mb4_bin'",
        "SELECT * FROM t WHERE a LIKE b ESCAPE '|'",
        "SELECT * FROM t WHERE a = x'41' OR a = 0x41 OR a = b'1' OR a = N'x'",
        "SELECT * FROM t WHERE a = N'x' 'y' AND b = _latin1'x' 'y'",
        "SELECT * FROM t WHERE a = NULL OR b = TRUE",
        "SELECT * FROM (SELECT 1) AS x",
        "SELECT a FROM t FOR UPDATE WAIT 5",
        "SELECT a INTO OUTFILE 'x' FROM t",
        "INSERT INTO t SELECT 1, 'x' FROM u",
        "INSERT INTO t (a) SELECT b FROM u RETURNING 1, 'x'",
    ];
    for sql in kept {
        check(sql, &format!("{sql} -- "));
    }
}

#[test]
fn values_and_conditions_are_lifted() {
    check(
        "SELECT a FROM t JOIN u ON t.x=u.y AND u.z=3 WHERE a IN (1,'b',2.5,1e3) LIMIT 5, 10",
        "SELECT a FROM t JOIN u ON t.x=u.y AND u.z=? WHERE a IN (?,?,?,?) LIMIT ?, ? -- iisdfii",
    );
    check(
        "SELECT * FROM (SELECT 1 AS o FROM t WHERE a=2) x WHERE b=3 UNION SELECT 4 FROM t \
         LIMIT 5",
        "SELECT * FROM (SELECT 1 AS o FROM t WHERE a=?) x WHERE b=? UNION SELECT 4 FROM t \
         LIMIT ? -- iii",
    );
    check(
        "INSERT INTO t VALUES (1,DEFAULT,'it''s') ON DUPLICATE KEY UPDATE b=VALUES(b)+1",
        "INSERT INTO t VALUES (?,DEFAULT,?) ON DUPLICATE KEY UPDATE b=VALUES(b)+? -- isi",
    );
    check(
        "INSERT INTO t SET a=1, b='x'",
        "INSERT INTO t SET a=?, b=? -- is",
    );
    check(
        "SELECT * FROM t WHERE a = 'x' 'y' AND d > NOW() - INTERVAL 1 DAY AND s LIKE 'a%'",
        "SELECT * FROM t WHERE a = ? AND d > NOW() - INTERVAL ? DAY AND s LIKE ? -- sis",
    );
    check(
        "SELECT * FROM t WHERE a = ? AND b = 9223372036854775808 AND c = 99999999999999999999",
        "SELECT * FROM t WHERE a = ? AND b = ? AND c = ? -- ?ud",
    );
    check(
        "WITH x AS (SELECT 1 FROM t WHERE a=1) SELECT * FROM x WHERE b=2",
        "WITH x AS (SELECT 1 FROM t WHERE a=?) SELECT * FROM x WHERE b=? -- ii",
    );
    check(
        "(SELECT a FROM t WHERE b=1) UNION (SELECT a FROM t WHERE b=2) ORDER BY 1 LIMIT 3",
        "(SELECT a FROM t WHERE b=?) UNION (SELECT a FROM t WHERE b=?) ORDER BY 1 LIMIT ? -- iii",
    );
}

#[test]
fn comments_and_blanks_at_the_ends_go() {
    check(
        "  /* id 1 */ SELECT a FROM t WHERE b=1 -- x\n",
        "SELECT a FROM t WHERE b=? -- i",
    );
    check(
        "SELECT a FROM t WHERE b=1 ;  ",
        "SELECT a FROM t WHERE b=? -- i",
    );
    check(
        "SELECT a FROM t /* x */ WHERE b=1",
        "SELECT a FROM t WHERE b=? -- i",
    );
    check(
        "SELECT 1 /* x */ + 2 FROM t",
        "SELECT 1 /* x */ + 2 FROM t -- ",
    );
}

#[test]
fn others_have_no_form() {
    let others = [
        "",
        "SET a=1",
        "SHOW TABLES",
        "CREATE TABLE t (a INT)",
        "EXPLAIN SELECT 1",
        "SELECT 1; SELECT 2",
        "SELECT 1 /*! + 1 */",
        "/*!40101 SELECT */ 1",
        "SELECT 'abc",
        "SELECT (1",
        "SELECT 1)",
        "SELECT * FROM t WHERE a = {d '2020-01-01'}",
        "VALUES (1,2)",
    ];
    for sql in others {
        check(sql, "none");
    }
}
