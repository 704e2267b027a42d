//! Privileges that a session has from accounts and levels other than its own account's grants on
//! `*.*`: what they allow, and what is refused.
//!
//! `REFERENCE=mariadb` asks MariaDB the same questions.

use testkit::{Client, Launch, Login, Outcome, Server};

const SETUP: &[&str] = &[
    "CREATE DATABASE shop",
    "CREATE DATABASE shop1",
    "CREATE DATABASE other",
    "CREATE TABLE shop.s (a INT)",
    "CREATE TABLE shop.k (a INT, b INT, INDEX (b))",
    "CREATE TABLE shop1.t (a INT)",
    "CREATE TABLE other.own (a INT)",
    "INSERT INTO shop.s VALUES (1)",
    "CREATE PROCEDURE other.p() SELECT 7",
    "CREATE USER target@'%' IDENTIFIED BY 'pw'",
    // One user, admitted by three accounts.
    "CREATE USER w@localhost IDENTIFIED BY 'pw'",
    "CREATE USER w@'%' IDENTIFIED BY 'no'",
    "CREATE USER w@'l%' IDENTIFIED BY 'no'",
    "CREATE USER w@'10.%' IDENTIFIED BY 'no'",
    "GRANT SELECT ON shop.* TO w@'%'",
    "GRANT INSERT ON shop.* TO w@localhost",
    "GRANT SELECT ON other.own TO w@'%'",
    "GRANT DELETE ON shop1.t TO w@'%'",
    "GRANT UPDATE ON shop1.t TO w@'l%'",
    "GRANT EXECUTE ON PROCEDURE other.p TO w@'%'",
    "GRANT INSERT ON other.* TO w@'10.%'",
    // Global privileges are those of its own account only.
    "CREATE USER v@localhost IDENTIFIED BY 'pw'",
    "CREATE USER v@'%' IDENTIFIED BY 'no'",
    "GRANT SELECT ON shop.* TO v@'%' WITH GRANT OPTION",
    "GRANT SELECT ON other.* TO v@'%' WITH GRANT OPTION",
    "GRANT PROCESS, CREATE USER, DROP ON *.* TO v@'%'",
    "GRANT INSERT ON `sh%`.* TO v@localhost WITH GRANT OPTION",
    // Administration of a server.
    "CREATE USER su@localhost IDENTIFIED BY 'pw'",
    "GRANT SUPER ON *.* TO su@localhost",
    "CREATE USER dumper@localhost IDENTIFIED BY 'pw'",
    "GRANT SELECT ON *.* TO dumper@localhost",
    "CREATE USER reader@localhost IDENTIFIED BY 'pw'",
    "GRANT SELECT ON mysql.proc TO reader@localhost",
    "CREATE USER viewer@localhost IDENTIFIED BY 'pw'",
    "GRANT SHOW VIEW ON *.* TO viewer@localhost",
    "CREATE USER auditor@localhost IDENTIFIED BY 'pw'",
    "GRANT SELECT ON mysql.user TO auditor@localhost",
    "CREATE USER creator@localhost IDENTIFIED BY 'pw'",
    "GRANT CREATE USER, INSERT, SUPER ON *.* TO creator@localhost",
];

/// Account, statement, and result: rows, `ok`, or the number of an error.
const CASES: &[(&str, &str, &str)] = &[
    ("w", "SELECT CURRENT_USER()", "w@localhost"),
    // A grant at the same place hides that of the less specific host.
    ("w", "SELECT * FROM shop.s", "1142"),
    ("w", "INSERT INTO shop.s VALUES (2)", "ok"),
    ("w", "SELECT * FROM other.own", ""),
    ("w", "INSERT INTO other.own VALUES (2)", "1142"),
    ("w", "UPDATE shop1.t SET a = 1", "ok"),
    ("w", "DELETE FROM shop1.t", "1142"),
    ("w", "SELECT a FROM shop1.t", "1142"),
    ("w", "CALL other.p()", "7"),
    ("w", "USE other", "ok"),
    ("w", "SHOW TABLES IN other", "own"),
    (
        "w",
        "SELECT GROUP_CONCAT(SCHEMA_NAME ORDER BY 1) FROM information_schema.SCHEMATA \
         WHERE SCHEMA_NAME IN ('shop', 'shop1', 'other', 'mysql')",
        "other,shop,shop1",
    ),
    // Grants of other accounts are not shown as its own.
    (
        "w",
        "SELECT COUNT(*) FROM information_schema.TABLE_PRIVILEGES",
        "0",
    ),
    ("v", "SELECT * FROM shop.s", "1142"),
    ("v", "SELECT * FROM other.own", ""),
    ("v", "INSERT INTO shop.s VALUES (2)", "ok"),
    ("v", "DROP TABLE other.own", "1142"),
    ("v", "CREATE USER another", "1227"),
    (
        "v",
        "SELECT COUNT(DISTINCT USER) FROM information_schema.PROCESSLIST",
        "1",
    ),
    // The privilege to grant comes from the grant that counts.
    ("v", "GRANT SELECT ON shop.s TO target", "1142"),
    ("dumper", "GRANT SELECT ON shop.s TO target", "1142"),
    ("v", "GRANT SELECT ON shop.* TO target", "1044"),
    ("v", "GRANT SELECT ON other.own TO target", "ok"),
    ("v", "GRANT SELECT ON other.* TO target", "ok"),
    ("v", "GRANT INSERT ON other.* TO target", "1044"),
    ("v", "GRANT INSERT ON shop.s TO target", "ok"),
    ("v", "GRANT INSERT ON shop.* TO target", "ok"),
    ("v", "GRANT INSERT ON `sh%`.* TO target", "ok"),
    ("v", "GRANT INSERT ON `s%`.* TO target", "1044"),
    ("v", "GRANT INSERT ON `%`.* TO target", "1044"),
    ("v", "GRANT INSERT ON *.* TO target", "1045"),
    // A session that may read the table of programs sees all of them.
    ("dumper", "SHOW CREATE PROCEDURE other.p", "p"),
    ("reader", "SHOW CREATE PROCEDURE other.p", "p"),
    ("viewer", "SHOW CREATE PROCEDURE other.p", "1305"),
    ("dumper", "CALL other.p()", "1370"),
    // Accounts as tables are read with SELECT on them, and with nothing else.
    (
        "auditor",
        "SELECT LENGTH(Password) FROM mysql.user WHERE User = 'target'",
        "41",
    ),
    (
        "dumper",
        "SELECT Db FROM mysql.db WHERE User = 'w' AND Host = 'localhost'",
        "shop",
    ),
    ("auditor", "SELECT * FROM mysql.db", "1142"),
    ("auditor", "SELECT * FROM mysql.global_priv", "1142"),
    ("auditor", "DELETE FROM mysql.user WHERE User = 'w'", "1142"),
    ("creator", "SELECT User FROM mysql.user", "1142"),
    ("creator", "SELECT User FROM mysql.global_priv", "1142"),
    ("viewer", "SELECT User FROM mysql.tables_priv", "1142"),
    ("w", "SELECT User FROM mysql.procs_priv", "1142"),
    ("w", "SHOW COLUMNS FROM mysql.user", "1142"),
];

#[test]
fn the_most_specific_account_of_a_user_counts_at_each_place() {
    let (server, _root) = set_up();
    for (user, statement, expected) in CASES.iter().copied() {
        let mut client = connect(&server, user);
        let answered = answer(&mut client, statement);
        assert_eq!(answered, expected, "{user}: {statement}");
    }
}

/// A plan that was allowed once is refused after the other account's grant was revoked.
#[test]
fn a_revoke_from_another_account_holds_at_once() {
    let (server, mut root) = set_up();
    let mut user = connect(&server, "w");
    let run = |client: &mut Client, statement| answer(client, statement);
    for _ in 0..3 {
        assert_eq!(run(&mut user, "SELECT * FROM other.own"), "");
    }
    let revoke = "REVOKE SELECT ON other.own FROM w@'%'";
    assert_eq!(run(&mut root, revoke), "ok");
    assert_eq!(run(&mut user, "SELECT * FROM other.own"), "1142");
    let grant = "GRANT SELECT ON other.own TO w@'%'";
    assert_eq!(run(&mut root, grant), "ok");
    assert_eq!(run(&mut user, "SELECT * FROM other.own"), "");
    // A new grant at the same place hides it.
    let hide = "GRANT INSERT ON other.own TO w@localhost";
    assert_eq!(run(&mut root, hide), "ok");
    assert_eq!(run(&mut user, "SELECT * FROM other.own"), "1142");
    assert_eq!(run(&mut root, "DROP USER w@localhost"), "ok");
    let again = "CREATE USER w@localhost IDENTIFIED BY 'pw'";
    assert_eq!(run(&mut root, again), "ok");
    assert_eq!(run(&mut user, "SELECT * FROM other.own"), "");
    assert_eq!(run(&mut root, "DROP USER w@'%'"), "ok");
    assert_eq!(run(&mut user, "SELECT * FROM other.own"), "1142");
}

/// A program has the privileges of its definer, found by the host of the definer's account.
#[test]
fn a_definer_is_served_by_accounts_that_match_his_host() {
    let (server, mut root) = set_up();
    for statement in [
        "CREATE DEFINER = w@localhost PROCEDURE shop.reads() SELECT COUNT(*) FROM other.own",
        "CREATE DEFINER = w@localhost PROCEDURE shop.deletes() DELETE FROM shop1.t",
        "GRANT EXECUTE ON shop.* TO w@localhost",
        "GRANT EXECUTE ON shop.* TO target@'%'",
    ] {
        assert_eq!(answer(&mut root, statement), "ok", "{statement}");
    }
    let mut target = connect(&server, "target");
    assert_eq!(answer(&mut target, "CALL shop.reads()"), "0");
    assert_eq!(answer(&mut target, "CALL shop.deletes()"), "1142");
    assert_eq!(
        answer(&mut target, "SELECT COUNT(*) FROM other.own"),
        "1142"
    );
}

#[test]
fn super_alone_ends_sessions() {
    let (server, mut root) = set_up();
    let mut victim = connect(&server, "target");
    let id = answer(&mut victim, "SELECT CONNECTION_ID()");
    let kill = format!("KILL {id}");
    for user in ["v", "dumper"] {
        let mut client = connect(&server, user);
        assert_eq!(answer(&mut client, &kill), "1095", "{user}");
    }
    assert_eq!(answer(&mut victim, "SELECT 1"), "1");
    let mut client = connect(&server, "su");
    assert_eq!(answer(&mut client, &kill), "ok");
    assert_eq!(answer(&mut client, "KILL 4000000000"), "1094");
    victim.send_query(b"SELECT 1").ok();
    assert!(victim.read_outcomes().is_err());
    let grant = "GRANT CONNECTION ADMIN ON *.* TO v@localhost";
    assert_eq!(answer(&mut root, grant), "ok");
    let id = answer(&mut client, "SELECT CONNECTION_ID()");
    let mut administrator = connect(&server, "v");
    assert_eq!(answer(&mut administrator, &format!("KILL {id}")), "ok");
}

#[test]
fn what_is_missing_for_giving_on_is_named_in_mariadbs_order() {
    let (server, mut root) = set_up();
    let grant = "GRANT SELECT, INSERT ON shop.k TO su@localhost WITH GRANT OPTION";
    assert_eq!(answer(&mut root, grant), "ok");
    for (user, what, missing) in [
        ("dumper", "SELECT", "GRANT"),
        ("dumper", "SELECT, INSERT", "INSERT, GRANT"),
        ("dumper", "INDEX, UPDATE", "UPDATE, GRANT, INDEX"),
        ("su", "SELECT, DROP, REFERENCES", "DROP, REFERENCES"),
    ] {
        let mut client = connect(&server, user);
        let grant = format!("GRANT {what} ON shop.k TO target");
        client.send_query(grant.as_bytes()).unwrap();
        let outcomes = client.read_outcomes().unwrap();
        let Some(Outcome::Error(error)) = outcomes.first() else {
            panic!("{grant}: {outcomes:?}");
        };
        let text =
            format!("{missing} command denied to user '{user}'@'localhost' for table `shop`.`k`");
        assert_eq!(error.message, text, "{grant}");
    }
}

/// What a single privilege on the database, or on the table, reveals of a table: CHECK TABLE, SHOW
/// COLUMNS, SHOW INDEX and SHOW CREATE TABLE. `-` is error 1142, `0` no row.
const SHOWN: &[(&str, &str, &str)] = &[
    (
        "SELECT",
        "check columns index create",
        "check columns index create",
    ),
    ("INSERT", "check - - create", "check columns index create"),
    ("UPDATE", "check - - create", "check columns index create"),
    (
        "REFERENCES",
        "check - - create",
        "check columns index create",
    ),
    ("DELETE", "check - - create", "check 0 index create"),
    ("CREATE", "check - - create", "check 0 index create"),
    ("DROP", "check - - create", "check 0 index create"),
    ("INDEX", "check - - create", "check 0 index create"),
    ("ALTER", "check - - create", "check 0 index create"),
    ("CREATE VIEW", "check - - create", "check 0 index create"),
    ("SHOW VIEW", "check - - create", "check 0 index create"),
    ("TRIGGER", "check - - create", "check 0 index create"),
    ("DELETE HISTORY", "check - - -", "check 0 index -"),
    ("LOCK TABLES", "- - - -", ""),
    ("EXECUTE", "- - - -", ""),
    ("EVENT", "- - - -", ""),
    ("CREATE ROUTINE", "- - - -", ""),
    ("CREATE TEMPORARY TABLES", "- - - -", ""),
];

#[test]
fn a_privilege_shows_as_much_of_a_table_as_in_mariadb() {
    let (server, mut root) = set_up();
    let looks = [
        ("check", "CHECK TABLE shop.k", "shop.k"),
        ("columns", "SHOW COLUMNS FROM shop.k", "a; b"),
        ("index", "SHOW INDEX FROM shop.k", "k"),
        ("create", "SHOW CREATE TABLE shop.k", "k"),
    ];
    for (privilege, on_database, on_table) in SHOWN.iter().copied() {
        for (place, expected) in [
            ("shop.*", on_database),
            ("*.*", on_database),
            ("shop.k", on_table),
        ] {
            if expected.is_empty() {
                continue;
            }
            for statement in [
                "CREATE OR REPLACE USER p@localhost IDENTIFIED BY 'pw'".to_owned(),
                format!("GRANT {privilege} ON {place} TO p@localhost"),
            ] {
                assert_eq!(answer(&mut root, &statement), "ok", "{statement}");
            }
            let mut client = connect(&server, "p");
            let shown =
                looks.map(
                    |(word, statement, full)| match &*answer(&mut client, statement) {
                        "1142" => "-",
                        "" => "0",
                        shown if shown == full => word,
                        other => panic!("{privilege} on {place}: {statement}: {other}"),
                    },
                );
            assert_eq!(shown.join(" "), expected, "{privilege} on {place}");
        }
    }
}

fn set_up() -> (Server, Client) {
    let launch = Launch::asked_for(env!("CARGO_BIN_EXE_plateau"));
    let server = launch.start().expect("the server starts");
    let mut root = server.connect().expect("root may log in");
    for statement in SETUP {
        assert_eq!(answer(&mut root, statement), "ok", "{statement}");
    }
    (server, root)
}

fn connect(server: &Server, user: &str) -> Client {
    let login = Login {
        user: user.to_owned(),
        password: "pw".to_owned(),
        ..Login::root(server.port())
    };
    Client::connect(&login).expect("the account may log in")
}

/// `ok`, the rows' first columns, or the number of the error.
fn answer(client: &mut Client, statement: &str) -> String {
    client
        .send_query(statement.as_bytes())
        .expect("the connection lives");
    let outcomes = client.read_outcomes().expect("the server answers");
    match outcomes.first().expect("a statement has an outcome") {
        Outcome::Done(_) => "ok".to_owned(),
        Outcome::Error(error) => error.number.to_string(),
        Outcome::Rows(set) => {
            let first = |row: &Vec<Option<Vec<u8>>>| {
                let value = row.first().cloned().flatten().unwrap_or_default();
                String::from_utf8_lossy(&value).into_owned()
            };
            set.rows.iter().map(first).collect::<Vec<_>>().join("; ")
        }
    }
}
