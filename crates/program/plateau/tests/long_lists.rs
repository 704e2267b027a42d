//! A long list of constants is stored differently from a short one: both must return the same.

#![forbid(unsafe_code)]

use testkit::client::Client;
use testkit::{Launch, Server};

fn start() -> (Server, Client) {
    let server = Launch::plateau(env!("CARGO_BIN_EXE_plateau"))
        .start()
        .expect("the server starts");
    let mut client = server.connect().expect("it serves");
    client.run("create database d").expect("a database");
    client.run("use d").expect("it is there");
    (server, client)
}

/// Above the length from which lists stay in the text.
const COUNT: usize = 1100;

fn repeated(members: &[&str]) -> String {
    let list: Vec<&str> = members.iter().copied().cycle().take(COUNT).collect();
    list.join(",")
}

const COLUMNS: [(&str, &str); 10] = [
    ("i", "int"),
    ("b", "bigint unsigned"),
    ("n", "decimal(10,2)"),
    ("f", "double"),
    ("s", "varchar(20)"),
    ("l", "varchar(20) character set latin1"),
    ("y", "year"),
    ("t", "date"),
    ("m", "datetime"),
    ("e", "enum('1','a','b')"),
];

const ROWS: [&str; 5] = [
    "1, 1, 1.00, 1, '1', '1', 2001, '2001-01-01', '2001-01-01 00:00:00', '1'",
    "2, 18446744073709551615, 2.50, 2.5, 'a', 'a', 2002, '2002-02-02', '2002-02-02 02:02:02', 'a'",
    "-3, 3, -3.00, -3, 'A ', 'A ', 1999, '1999-12-31', '1999-12-31 23:59:59', 'b'",
    "20010101, 20010101, 0.00, 20010101, '2001-01-01', 'b', 2010, '2010-10-10', '2010-10-10', 'a'",
    "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL",
];

const LISTS: [&[&str]; 16] = [
    &["1", "2"],
    &["-3", "+2"],
    &["1", "NULL"],
    &["NULL"],
    &["2.50", "1.0"],
    &["1e0", "2.5"],
    &["18446744073709551615", "-1"],
    &["'1'", "'a'"],
    &["'A'", "'b'", "NULL"],
    &["1", "'a'"],
    &["2.5", "'2001-01-01'", "1"],
    &["'2002-02-02'", "'2010-10-10'"],
    &["DATE'2001-01-01'", "TIMESTAMP'1999-12-31 23:59:59'"],
    &["0x61", "x'31'", "b'1'"],
    &["TRUE", "FALSE"],
    &["1", "2002", "99"],
];

/// SELECTs of 1 to `count`, united.
fn united(count: usize, operator: &str) -> String {
    let selects: Vec<String> = (1..=count).map(|it| format!("SELECT {it} AS a")).collect();
    selects.join(&format!(" {operator} "))
}

#[test]
fn a_union_may_have_thousands_of_members() {
    let (_server, mut client) = start();
    client
        .run("create table k (a int primary key)")
        .expect("a table");
    for count in [602_u64, 5000] {
        let members = usize::try_from(count).expect("a small number");
        for operator in ["UNION", "UNION ALL", "UNION DISTINCT"] {
            let all = united(members, operator);
            let sum = format!("SELECT CONCAT(COUNT(*), ' ', SUM(a)) FROM ({all}) x");
            let expected = format!("{count} {}", count * (count + 1) / 2);
            assert_eq!(
                client.value(&sum).expect("rows"),
                Some(expected),
                "{operator}"
            );
            let rows = client
                .rows(&format!("{all} ORDER BY a DESC LIMIT 2"))
                .expect("rows");
            let texts = [count, count - 1].map(|it| vec![Some(it.to_string().into_bytes())]);
            assert_eq!(rows, texts);
        }
        // As MariaDB shows it.
        let lines = client.rows(&format!("EXPLAIN {}", united(members, "UNION")));
        let lines = lines.expect("a plan");
        assert_eq!(lines.len(), members + 1);
        let last = lines[members][2].clone().expect("a name");
        assert_eq!(last.len(), 190);
        assert!(last.ends_with(b",62,63,...>"), "{}", last.escape_ascii());
        client
            .run(&format!("INSERT INTO k {}", united(members, "UNION ALL")))
            .expect("rows");
        client
            .run("PREPARE s FROM 'DELETE FROM k'")
            .expect("a statement");
        client.run("EXECUTE s").expect("no rows");
    }
    // All before the last UNION without ALL lose their duplicates.
    let mixed = format!(
        "SELECT 1{} UNION SELECT 1 UNION ALL SELECT 1",
        " UNION ALL SELECT 1".repeat(900)
    );
    let count = client.value(&format!("SELECT COUNT(*) FROM ({mixed}) x"));
    assert_eq!(count.expect("a count"), Some("2".to_owned()));
}

#[test]
fn long_lists_find_what_short_ones_find() {
    let (_server, mut client) = start();
    for (table, key) in [("t", ", key"), ("u", "")] {
        let column = |(name, of): &(&str, &str)| match key {
            "" => format!("{name} {of}"),
            key => format!("{name} {of}{key} ({name})"),
        };
        let columns: Vec<String> = COLUMNS.iter().map(column).collect();
        let id = "id int primary key auto_increment";
        let create = format!("create table {table} ({id}, {})", columns.join(","));
        client.run(&create).expect("a table");
    }
    for row in ROWS {
        for table in ["t", "u"] {
            client
                .run(&format!("insert into {table} values (null, {row})"))
                .expect("a row");
        }
    }
    let asked = [
        "select id, COLUMN in (LIST) from u",
        "select id from u where COLUMN not in (LIST)",
        "select id from t where COLUMN in (LIST)",
    ];
    for (column, _) in COLUMNS {
        for list in LISTS {
            for query in asked {
                let query = query.replace("COLUMN", column);
                let mut of = |list: &str| {
                    let answer = client.query(&query.replace("LIST", list));
                    rows_of(answer.expect("an answer"))
                };
                let (short, long) = (of(&list.join(",")), of(&repeated(list)));
                assert_eq!(short, long, "{query} {list:?}");
            }
        }
    }
}

/// The rows, in order, or the number of the error.
fn rows_of(outcome: testkit::Outcome) -> Result<Vec<Vec<Option<Vec<u8>>>>, u16> {
    match outcome {
        testkit::Outcome::Rows(mut result) => {
            result.rows.sort();
            Ok(result.rows)
        }
        testkit::Outcome::Error(error) => Err(error.number),
        testkit::Outcome::Done(_) => Ok(Vec::new()),
    }
}

#[test]
fn long_values_write_what_short_ones_write() {
    let (_server, mut client) = start();
    let columns: Vec<String> = COLUMNS
        .iter()
        .map(|(name, of)| format!("{name} {of}"))
        .collect();
    for table in ["short", "long_", "trees"] {
        let id = "id int primary key auto_increment";
        let create = format!(
            "create table {table} ({id}, {}, d int default 7)",
            columns.join(",")
        );
        client.run(&create).expect("a table");
    }
    let rows: Vec<String> = ROWS
        .iter()
        .cycle()
        .take(COUNT)
        .map(|row| format!("(NULL, {row}, DEFAULT)"))
        .collect();
    for part in rows.chunks(10) {
        let insert = format!("insert into short values {}", part.join(","));
        client.run(&insert).expect("rows");
    }
    let done = client
        .run(&format!("insert into long_ values {}", rows.join(",")))
        .expect("rows");
    assert_eq!(done.affected_rows, 1100);
    assert_eq!(done.last_insert_id, 1);
    let mut trees = rows;
    trees[1050] = trees[1050].replacen("(NULL", "(NULL + 0", 1);
    client
        .run(&format!("insert into trees values {}", trees.join(",")))
        .expect("rows");
    let mut of = |table: &str| {
        client
            .rows(&format!("select * from {table} order by id"))
            .expect("rows")
    };
    assert_eq!(of("short"), of("long_"));
    assert_eq!(of("short"), of("trees"));
}

#[test]
fn errors_of_long_values_name_the_row() {
    let (_server, mut client) = start();
    client
        .run("create table t (a tinyint, b int not null)")
        .expect("a table");
    let mut error = |rows: &[&str]| {
        let insert = format!("insert into t values {}", rows.join(","));
        match client.query(&insert).expect("an answer") {
            testkit::Outcome::Error(error) => (error.number, error.message),
            other => panic!("an error, not {other:?}"),
        }
    };
    let mut rows = vec!["(1, 2)"; COUNT];
    rows[1049] = "(1000, 2)";
    let (number, message) = error(&rows);
    assert_eq!(number, 1264);
    assert!(message.ends_with("at row 1050"), "{message}");
    rows[1049] = "(1, NULL)";
    assert_eq!(error(&rows).0, 1048);
    assert_eq!(error(&vec!["(1)"; COUNT]).0, 1136);
}
