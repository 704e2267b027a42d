//! The table `statements`: what each text has cost.

use std::process::Command;

use super::{Watched, table};
use crate::prepared::{Types, execute, prepare};
use crate::*;

/// The statements that name a table, without their times.
fn counted(operator: &mut Client, name: &str) -> Vec<String> {
    let text = format!(
        "SELECT text, service, user, db, count, errors, rows_sent, rows_affected, servers \
         FROM plateau.statements WHERE text LIKE '%{name}%' ORDER BY text, db"
    );
    let rows = table(operator, &text);
    rows.into_iter().map(|row| row.join("|")).collect()
}

#[test]
fn each_text_has_a_row_for_each_user_and_database() {
    let backend = backend();
    for kind in &KINDS[..2] {
        let service = format!("[[service]]\nname = \"shop\"\n{kind}");
        let watched = Watched::start(&[&backend], &service);
        let mut operator = watched.operator();
        let mut client = watched.connect();
        client.run("DROP TABLE IF EXISTS shop.bag").unwrap();
        client
            .run("CREATE TABLE shop.bag (id INT PRIMARY KEY)")
            .unwrap();
        for rows in ["(1),(2)", "(3),(4)"] {
            client
                .run(&format!("INSERT INTO shop.bag VALUES {rows}"))
                .unwrap();
        }
        assert_eq!(
            client
                .error_number("INSERT INTO shop.bag VALUES (4),(5)")
                .unwrap(),
            1062
        );
        for id in 1..4 {
            client
                .value(&format!("SELECT id  FROM shop.bag WHERE id={id}"))
                .unwrap();
        }
        let of_text = prepare(&mut client, "SELECT id FROM shop.bag WHERE id=?");
        for id in 1..3 {
            execute(&mut client, &of_text, id, Types::Told);
        }
        client.run("USE shop").unwrap();
        client.rows("SELECT id FROM bag").unwrap();
        let expected = [
            "CREATE TABLE shop.bag (id INT PRIMARY KEY)|shop|app|NULL|1|0|0|0|db0",
            "DROP TABLE IF EXISTS shop.bag|shop|app|NULL|1|0|0|0|db0",
            "INSERT INTO shop.bag VALUES (?),(?)|shop|app|NULL|3|1|0|4|db0",
            "SELECT id FROM bag|shop|app|shop|1|0|4|0|db0",
            "SELECT id FROM shop.bag WHERE id=?|shop|app|NULL|5|0|5|0|db0",
        ];
        assert_eq!(counted(&mut operator, "bag"), expected, "{kind}");
        let times = "SELECT COUNT(*) FROM plateau.statements WHERE count > 0 \
                     AND min_us <= max_us AND max_us <= sum_us AND first_seen <= last_seen \
                     AND last_seen BETWEEN NOW() - INTERVAL 1 MINUTE AND NOW(6) \
                     AND count = time_100us + time_500us + time_1ms + time_5ms + time_10ms \
                     + time_50ms + time_100ms + time_500ms + time_1s + time_5s + time_10s \
                     + time_longer";
        let all = value(&mut operator, "SELECT COUNT(*) FROM plateau.statements");
        assert_eq!(value(&mut operator, times), all);
    }
}

#[test]
fn what_all_workers_have_counted_is_one_row() {
    let backend = backend();
    let watched = Watched::start(&[&backend], "");
    let mut operator = watched.operator();
    let mut clients: Vec<_> = (0..16).map(|_| watched.connect()).collect();
    for client in &mut clients {
        client.value("SELECT COUNT(*) FROM mysql.user").unwrap();
    }
    // They are spread over the workers, unless there is only one.
    let used = "SELECT COUNT(*) > 1 OR (SELECT COUNT(*) FROM plateau.workers) = 1 \
                FROM plateau.workers WHERE statements > 0";
    assert_eq!(value(&mut operator, used), "1");
    let expected = ["SELECT COUNT(*) FROM mysql.user|default|app|NULL|16|0|16|0|db0"];
    assert_eq!(counted(&mut operator, "mysql.user"), expected);
}

#[test]
fn the_digest_is_the_one_of_rules_and_literals_are_not_shown() {
    let backend = backend();
    let watched = Watched::start(&[&backend], "");
    let mut operator = watched.operator();
    let mut client = watched.connect();
    client.run("SET @secret = 'hidden', @other = 5").unwrap();
    let text = "SELECT  COUNT(*) FROM mysql.user WHERE user = 'hidden' /* hidden */";
    client.value(text).unwrap();
    let shown = Command::new(env!("CARGO_BIN_EXE_plateau"))
        .args(["digest", text])
        .output()
        .expect("it runs");
    let told = String::from_utf8(shown.stdout).expect("a text");
    let rows = table(
        &mut operator,
        "SELECT CONCAT(digest, '  ', text) FROM plateau.statements WHERE text LIKE '%user%'",
    );
    assert_eq!(rows.concat(), [told.trim_end()]);
    let hidden = "SELECT COUNT(*) FROM plateau.statements WHERE text LIKE '%hidden%'";
    assert_eq!(value(&mut operator, hidden), "0");
    assert_eq!(
        counted(&mut operator, "SET"),
        ["SET @secret = ?, @other = ?|default|app|NULL|1|0|0|0|db0"]
    );
}

#[test]
fn what_the_gateway_answers_itself_and_what_is_lost_counts() {
    let mut backend = backend();
    let rules = "[[rule]]\nname = \"no\"\npattern = 'forbidden'\nrefuse = \"no\"\n";
    let service = "[[service]]\nname = \"shop\"\nwait = 0.5\n";
    let watched = Watched::start(&[&backend], &format!("{service}{rules}"));
    let mut operator = watched.operator();
    let mut client = watched.connect();
    assert_eq!(
        client.error_number("SELECT forbidden FROM t").unwrap(),
        1148
    );
    let long = format!("SELECT '{}'", "x".repeat(1 << 20));
    client.value(&long).unwrap();
    client.run("BEGIN").unwrap();
    backend.kill().unwrap();
    assert!(client.query("SELECT a FROM lost").is_err() || client.query("DO 1").is_err());
    let expected = [
        "SELECT a FROM lost|shop|app|NULL|1|1|0|0|",
        "SELECT forbidden FROM t|shop|app|NULL|1|1|0|0|",
    ];
    wait_until("it is counted", || {
        counted(&mut operator, "SELECT") == expected
    });
    let others = "SELECT count, rows_sent, user FROM plateau.statements WHERE digest IS NULL";
    assert_eq!(table(&mut operator, others), [["1", "1", "NULL"]]);
}

#[test]
fn operators_have_statements_counted_from_nothing_again() {
    let backend = backend();
    let private = "[[service]]\nname = \"shop\"\n\
                   [[service]]\nname = \"own\"\nmultiplex = false\n\
                   [[listener]]\nsocket = \"own.sock\"\nservice = \"own\"\n";
    let watched = Watched::start(&[&backend], private);
    wait_until("both services are ready", || {
        watched.log().matches("a service is ready").count() == 2
    });
    let mut operator = watched.operator();
    let mut client = watched.connect();
    let again = prepare(&mut client, "SELECT COUNT(*) FROM mysql.user");
    for _ in 0..3 {
        execute(&mut client, &again, 0, Types::Untold);
    }
    let count = "SELECT SUM(count) FROM plateau.statements";
    assert_eq!(value(&mut operator, count), "3");
    // Sessions with a connection of their own read no texts.
    let own = watched.mariadb("own.sock", "SELECT 5");
    assert_eq!(own, "5\n");
    assert_eq!(value(&mut operator, count), "3");
    let mut eye = watched.login("eye", "look").expect("eye gets in");
    let order = "TRUNCATE TABLE plateau.statements";
    assert_eq!(eye.error_number(order).unwrap(), 1227);
    assert_eq!(
        operator.error_number("TRUNCATE plateau.servers").unwrap(),
        1235
    );
    assert_eq!(value(&mut operator, count), "3");
    operator.run(order).unwrap();
    assert_eq!(value(&mut operator, count), "NULL");
    execute(&mut client, &again, 0, Types::Untold);
    assert_eq!(value(&mut operator, count), "1");
}
