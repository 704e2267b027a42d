//! The errors for accounts without a privilege, statement by statement: MariaDB's numbers and
//! texts.

use testkit::{Client, Launch, Login, Outcome, Server};

/// Created by root before the accounts are tested.
const SETUP: [&str; 34] = [
    "CREATE DATABASE shop",
    "CREATE DATABASE other",
    "CREATE TABLE shop.items (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20))",
    "INSERT INTO shop.items (name) VALUES ('a'), ('b')",
    "CREATE TABLE shop.secret (id INT PRIMARY KEY, v TEXT)",
    "CREATE TABLE other.own (a INT)",
    "CREATE USER reader@localhost IDENTIFIED BY 'pw'",
    "CREATE USER writer@localhost IDENTIFIED BY 'pw'",
    "CREATE USER eraser@localhost IDENTIFIED BY 'pw'",
    "CREATE USER builder@localhost IDENTIFIED BY 'pw'",
    "GRANT SELECT ON shop.items TO reader@localhost",
    "GRANT PROCESS, RELOAD ON *.* TO reader@localhost",
    "GRANT INSERT ON shop.* TO writer@localhost",
    "GRANT UPDATE, DELETE ON shop.items TO eraser@localhost",
    "GRANT CREATE, INSERT, SELECT ON other.* TO builder@localhost",
    "GRANT ALTER ON shop.items TO builder@localhost",
    "CREATE USER locker@localhost IDENTIFIED BY 'pw'",
    "GRANT LOCK TABLES, EXECUTE ON shop.* TO locker@localhost",
    "CREATE USER dropper@localhost IDENTIFIED BY 'pw'",
    "GRANT DROP, DELETE ON shop.secret TO dropper@localhost",
    "CREATE USER caller@localhost IDENTIFIED BY 'pw'",
    "CREATE PROCEDURE other.add_up() SET @sum = 1",
    "CREATE PROCEDURE other.secret() SET @sum = 2",
    "GRANT EXECUTE ON PROCEDURE other.Add_Up TO caller@localhost",
    "GRANT ALTER ROUTINE ON PROCEDURE other.secret TO builder@localhost WITH GRANT OPTION",
    "GRANT CREATE ROUTINE ON shop.* TO builder@localhost",
    "CREATE USER boss@localhost IDENTIFIED BY 'pw'",
    "CREATE USER granter@localhost IDENTIFIED BY 'pw'",
    "GRANT SELECT ON other.* TO granter@localhost WITH GRANT OPTION",
    "CREATE USER one, two",
    "CREATE USER looker@localhost IDENTIFIED BY 'pw'",
    "GRANT SHOW DATABASES ON *.* TO looker@localhost",
    "CREATE USER maker@localhost IDENTIFIED BY 'pw'",
    "GRANT CREATE, DROP ON other.* TO maker@localhost",
];

/// Account, statement, and result: rows as text, `ok`, or an error.
const CASES: &[(&str, &str, &str)] = &[
    ("reader", "SELECT name FROM shop.items", "a; b"),
    (
        "reader",
        "SELECT * FROM shop.secret",
        "1142 SELECT command denied to user 'reader'@'localhost' for table `shop`.`secret`",
    ),
    (
        "reader",
        "SELECT * FROM shop.nothing",
        "1142 SELECT command denied to user 'reader'@'localhost' for table `shop`.`nothing`",
    ),
    // Other errors of a statement reveal nothing of a hidden table.
    (
        "reader",
        "SELECT nothing FROM shop.secret",
        "1142 SELECT command denied to user 'reader'@'localhost' for table `shop`.`secret`",
    ),
    (
        "reader",
        "INSERT INTO shop.secret (nothing) VALUES (1)",
        "1142 INSERT command denied to user 'reader'@'localhost' for table `shop`.`secret`",
    ),
    (
        "reader",
        "INSERT INTO shop.nothing VALUES (1)",
        "1142 INSERT command denied to user 'reader'@'localhost' for table `shop`.`nothing`",
    ),
    (
        "reader",
        "UPDATE shop.secret SET nothing = 1",
        "1142 UPDATE command denied to user 'reader'@'localhost' for table `shop`.`secret`",
    ),
    (
        "reader",
        "DELETE FROM shop.secret WHERE nothing = 1",
        "1142 DELETE command denied to user 'reader'@'localhost' for table `shop`.`secret`",
    ),
    (
        "reader",
        "SELECT nothing FROM shop.items, shop.secret",
        "1142 SELECT command denied to user 'reader'@'localhost' for table `shop`.`secret`",
    ),
    (
        "reader",
        "SET @a = (SELECT nothing FROM shop.secret)",
        "1142",
    ),
    ("reader", "SELECT nothing FROM shop.items", "1054"),
    ("reader", "EXPLAIN SELECT * FROM shop.secret", "1142"),
    ("reader", "EXPLAIN DELETE FROM shop.items", "1142"),
    ("reader", "SELECT (SELECT v FROM shop.secret)", "1142"),
    ("reader", "SHOW DATABASES", "information_schema; shop"),
    (
        "reader",
        "USE other",
        "1044 Access denied for user 'reader'@'localhost' to database 'other'",
    ),
    ("reader", "SHOW CREATE DATABASE other", "1044"),
    (
        "maker",
        "CREATE TABLE other.copy LIKE other.own",
        "1142 SELECT command denied to user 'maker'@'localhost' for table `other`.`own`",
    ),
    // Privileges that do not apply to routines show none.
    (
        "maker",
        "SHOW CREATE PROCEDURE other.add_up",
        "1305 PROCEDURE add_up does not exist",
    ),
    (
        "looker",
        "SHOW DATABASES",
        "information_schema; mysql; other; shop",
    ),
    ("looker", "USE shop", "1044"),
    ("looker", "SHOW CREATE DATABASE shop", "1044"),
    ("reader", "SHOW CREATE TABLE shop.secret", "1142"),
    ("reader", "SHOW COLUMNS FROM shop.secret", "1142"),
    ("reader", "CHECKSUM TABLE shop.secret", "1142"),
    ("reader", "ANALYZE TABLE shop.items", "1142"),
    ("reader", "LOCK TABLES shop.items READ", "1044"),
    ("reader", "SHOW GRANTS FOR root@localhost", "1044"),
    ("reader", "SHOW EVENTS FROM shop", "1044"),
    ("reader", "SHOW EVENTS FROM information_schema", ""),
    ("reader", "SHOW TRIGGERS", "1046"),
    ("root", "SHOW EVENTS FROM shop", ""),
    (
        "reader",
        "SELECT table_name FROM information_schema.columns WHERE table_schema IN ('shop', 'other')",
        "items; items",
    ),
    (
        "reader",
        "SELECT privilege_type FROM information_schema.user_privileges",
        "RELOAD; PROCESS",
    ),
    ("reader", "FLUSH TABLES", "ok"),
    ("reader", "SET GLOBAL max_connections = 5", "1227"),
    ("writer", "INSERT INTO shop.items (name) VALUES ('c')", "ok"),
    (
        "writer",
        "REPLACE INTO shop.items VALUES (1, 'x')",
        "1142 DELETE command denied to user 'writer'@'localhost' for table `shop`.`items`",
    ),
    (
        "writer",
        "INSERT INTO shop.items VALUES (1, 'x') ON DUPLICATE KEY UPDATE name = 'x'",
        "1142 UPDATE command denied to user 'writer'@'localhost' for table `shop`.`items`",
    ),
    (
        "writer",
        "INSERT INTO shop.items (name) SELECT name FROM shop.items",
        "1142",
    ),
    ("writer", "UPDATE shop.items SET name = 'x'", "1142"),
    ("writer", "SELECT COUNT(*) FROM shop.items", "1142"),
    ("writer", "DROP TABLE shop.items", "1142"),
    ("writer", "TRUNCATE TABLE shop.items", "1142"),
    ("writer", "DROP VIEW IF EXISTS shop.items", "1142"),
    ("writer", "DROP SEQUENCE IF EXISTS shop.items", "1142"),
    ("writer", "DROP EVENT IF EXISTS shop.event", "1044"),
    ("writer", "CREATE TABLE shop.more (a INT)", "1142"),
    ("writer", "DROP DATABASE shop", "1044"),
    ("eraser", "UPDATE shop.items SET name = 'z'", "ok"),
    (
        "eraser",
        "UPDATE shop.items SET name = 'z' WHERE id = 1",
        "1143 SELECT command denied to user 'eraser'@'localhost' for column 'id' in table 'items'",
    ),
    (
        "eraser",
        "UPDATE shop.items SET name = CONCAT(name, 'z')",
        "1143 SELECT command denied to user 'eraser'@'localhost' for column 'name' \
         in table 'items'",
    ),
    (
        "eraser",
        "DELETE FROM shop.items WHERE name LIKE 'q%'",
        "1143",
    ),
    (
        "eraser",
        "UPDATE shop.items SET name = 'z' ORDER BY id LIMIT 1",
        "1143 SELECT command denied to user 'eraser'@'localhost' for column 'id' in table 'items'",
    ),
    (
        "eraser",
        "DELETE FROM shop.items ORDER BY id LIMIT 0",
        "1143 SELECT command denied to user 'eraser'@'localhost' for column 'id' in table 'items'",
    ),
    ("eraser", "DELETE FROM shop.items", "ok"),
    (
        "builder",
        "CREATE TABLE other.copied SELECT * FROM shop.secret",
        "1142",
    ),
    (
        "builder",
        "CREATE TABLE other.made SELECT a FROM other.own",
        "ok",
    ),
    (
        "builder",
        "CREATE OR REPLACE TABLE other.own (a INT)",
        "1142",
    ),
    (
        "builder",
        "CREATE INDEX i ON shop.items (name)",
        "1142 INDEX command denied to user 'builder'@'localhost' for table `shop`.`items`",
    ),
    (
        "builder",
        "ALTER TABLE shop.items ADD COLUMN more INT",
        "ok",
    ),
    ("builder", "RENAME TABLE shop.items TO other.items", "1142"),
    (
        "builder",
        "ALTER TABLE shop.items RENAME TO other.items",
        "1142 DROP command denied to user 'builder'@'localhost' for table `shop`.`items`",
    ),
    (
        "builder",
        "ALTER TABLE shop.items ADD COLUMN last INT, RENAME other.items",
        "1142",
    ),
    ("builder", "CREATE USER mallory", "1227"),
    ("builder", "GRANT RELOAD ON shop.items TO builder", "1144"),
    ("builder", "GRANT RELOAD ON shop.* TO builder", "1221"),
    ("locker", "SHOW TABLES FROM shop", ""),
    ("locker", "DESCRIBE shop.secret", "1142"),
    ("locker", "SHOW INDEX FROM shop.secret", "1142"),
    ("locker", "SHOW CREATE TABLE shop.secret", "1142"),
    ("locker", "SELECT 1 FROM shop.nothing", "1142"),
    (
        "locker",
        "SELECT table_name FROM information_schema.statistics WHERE table_schema = 'shop'",
        "",
    ),
    ("dropper", "SHOW TABLES FROM shop", "secret"),
    ("dropper", "DESCRIBE shop.secret", ""),
    (
        "dropper",
        "SELECT column_name FROM information_schema.columns WHERE table_schema = 'shop'",
        "",
    ),
    // Of several tables all are dropped or none.
    (
        "dropper",
        "DROP TABLE shop.secret, shop.items",
        "1142 DROP command denied to user 'dropper'@'localhost' for table `shop`.`items`",
    ),
    ("root", "SELECT COUNT(*) FROM shop.secret", "0"),
    (
        "maker",
        "CREATE OR REPLACE TABLE other.own SELECT 1 AS a",
        "1142 INSERT command denied to user 'maker'@'localhost' for table `other`.`own`",
    ),
    ("root", "SELECT COUNT(*) FROM other.own", "0"),
    // The names of ALTER TABLE's copies are reserved.
    ("root", "CREATE TABLE shop.`#sql-alter-1` (a INT)", "1103"),
    (
        "root",
        "ALTER TABLE shop.items RENAME TO shop.`#sql-alter-1`",
        "1103",
    ),
    (
        "root",
        "CREATE TABLE shop.t (a INT, b INT DEFAULT (a + 1))",
        "1235",
    ),
    ("caller", "USE other", "ok"),
    ("caller", "CALL other.ADD_UP()", "ok"),
    (
        "caller",
        "CALL other.secret()",
        "1370 execute command denied to user 'caller'@'localhost' for routine 'other.secret'",
    ),
    ("caller", "DROP PROCEDURE other.add_up", "1370"),
    (
        "caller",
        "SELECT routine_name FROM information_schema.routines",
        "add_up",
    ),
    (
        "caller",
        "GRANT EXECUTE ON PROCEDURE other.add_up TO builder@localhost",
        "1370 execute command denied to user 'caller'@'localhost' for routine 'other.add_up'",
    ),
    ("builder", "CALL other.secret()", "1370"),
    ("builder", "ALTER PROCEDURE other.secret COMMENT 'x'", "ok"),
    (
        "builder",
        "GRANT EXECUTE ON PROCEDURE other.secret TO caller@localhost",
        "1370",
    ),
    (
        "builder",
        "GRANT ALTER ROUTINE ON PROCEDURE other.secret TO caller@localhost",
        "ok",
    ),
    ("caller", "DROP PROCEDURE other.secret", "ok"),
    ("builder", "CREATE PROCEDURE shop.own() SET @own = 1", "ok"),
    ("builder", "CALL shop.own()", "ok"),
    ("builder", "DROP PROCEDURE shop.own", "ok"),
    // The privilege to grant privileges to others does not include changing how they log in.
    (
        "granter",
        "GRANT SELECT ON other.* TO boss@localhost IDENTIFIED BY 'stolen'",
        "1044 Access denied for user 'granter'@'localhost' to database 'mysql'",
    ),
    (
        "granter",
        "GRANT SELECT ON other.* TO boss@localhost IDENTIFIED VIA mysql_native_password",
        "1044",
    ),
    (
        "granter",
        "GRANT SELECT ON other.* TO boss@localhost REQUIRE SSL",
        "1044",
    ),
    (
        "granter",
        "SET PASSWORD FOR boss@localhost = PASSWORD('stolen')",
        "1044",
    ),
    ("granter", "SHOW CREATE USER boss@localhost", "1044"),
    (
        "granter",
        "ALTER USER boss@localhost IDENTIFIED BY 'stolen'",
        "1227",
    ),
    (
        "granter",
        "ALTER USER granter@localhost REQUIRE NONE",
        "1227",
    ),
    ("granter", "GRANT SELECT ON other.* TO boss@localhost", "ok"),
    (
        "granter",
        "GRANT SELECT ON other.* TO granter@localhost IDENTIFIED BY 'pw'",
        "ok",
    ),
    ("granter", "SET PASSWORD = PASSWORD('pw')", "ok"),
    // Privileges on a dropped table can be revoked.
    ("root", "CREATE TABLE other.gone (a INT)", "ok"),
    ("root", "GRANT SELECT ON other.gone TO boss@localhost", "ok"),
    ("root", "DROP TABLE other.gone", "ok"),
    (
        "root",
        "GRANT INSERT ON other.gone TO boss@localhost",
        "1146",
    ),
    ("root", "GRANT CREATE ON other.gone TO boss@localhost", "ok"),
    (
        "root",
        "REVOKE SELECT, CREATE ON other.gone FROM boss@localhost",
        "ok",
    ),
    (
        "root",
        "REVOKE SELECT ON other.gone FROM boss@localhost",
        "1147",
    ),
    ("boss", "SELECT CURRENT_USER()", "boss@localhost"),
    // A statement that names an account twice has the effect of two.
    (
        "root",
        "RENAME USER one TO three, two TO three",
        "1396 Operation RENAME USER failed for 'two'@'%'",
    ),
    (
        "root",
        "SHOW GRANTS FOR one",
        "GRANT USAGE ON *.* TO `one`@`%`",
    ),
    ("root", "RENAME USER one TO three, three TO four", "ok"),
    (
        "root",
        "SHOW GRANTS FOR four",
        "GRANT USAGE ON *.* TO `four`@`%`",
    ),
    ("root", "SHOW GRANTS FOR three", "1141"),
    ("root", "CREATE USER five, five", "1396"),
    ("root", "CREATE OR REPLACE USER five, five", "ok"),
    ("root", "DROP USER five, five", "1396"),
    ("root", "DROP USER IF EXISTS five, five", "ok"),
    (
        "root",
        "DROP TABLE mysql.global_priv",
        "1142 DROP command denied to user 'root'@'localhost' for table `mysql`.`global_priv`",
    ),
    ("root", "TRUNCATE mysql.global_priv", "1142"),
    (
        "root",
        "ALTER TABLE mysql.global_priv ADD COLUMN more INT",
        "1142",
    ),
    (
        "root",
        "RENAME TABLE mysql.global_priv TO mysql.away",
        "1142",
    ),
    ("root", "DROP DATABASE mysql", "1044"),
    (
        "root",
        "CREATE TABLE information_schema.made (a INT)",
        "1044",
    ),
    (
        "root",
        "/*!50003 DROP FUNCTION IF EXISTS `shop`.`f` */",
        "ok",
    ),
    (
        "root",
        "SELECT User FROM mysql.global_priv WHERE User = 'root'",
        "root",
    ),
    ("root", "SELECT 1\0", "1"),
];

#[test]
fn rights_are_enforced_and_told_as_mariadb_does() {
    let launch = Launch::plateau(env!("CARGO_BIN_EXE_plateau"));
    let server = launch.start().unwrap();
    let mut root = server.connect().unwrap();
    for statement in SETUP {
        assert_eq!(answer(&mut root, statement), "ok", "{statement}");
    }
    for (user, statement, expected) in CASES.iter().copied() {
        let mut client = connect(&server, user);
        let answered = answer(&mut client, statement);
        let is_number_alone = expected.len() == 4 && expected.bytes().all(|it| it.is_ascii_digit());
        let shown = if is_number_alone {
            answered.get(..4).unwrap_or_default()
        } else {
            answered.as_str()
        };
        assert_eq!(shown, expected, "{user}: {statement}: {answered}");
    }
}

#[test]
fn rights_to_a_program_outlive_the_server() {
    let launch = Launch::plateau(env!("CARGO_BIN_EXE_plateau"));
    let mut server = launch.start().unwrap();
    let mut root = server.connect().unwrap();
    for statement in SETUP {
        assert_eq!(answer(&mut root, statement), "ok", "{statement}");
    }
    drop(root);
    server.kill().unwrap();
    server.start_again().unwrap();
    let mut caller = connect(&server, "caller");
    assert_eq!(answer(&mut caller, "CALL other.add_up()"), "ok");
    assert_eq!(
        answer(&mut caller, "SHOW GRANTS").split("; ").last(),
        Some("GRANT EXECUTE ON PROCEDURE `other`.`add_up` TO `caller`@`localhost`")
    );
}

/// SHOW CREATE USER of another account needs the privilege to read all of `mysql`, since it shows
/// the hash of the password. The privilege to change accounts does not suffice.
#[test]
fn another_account_is_shown_to_readers_of_the_accounts_alone() {
    let launch = Launch::plateau(env!("CARGO_BIN_EXE_plateau"));
    let server = launch.start().unwrap();
    let mut root = server.connect().unwrap();
    let privileges = [
        ("maker", "CREATE USER ON *.*"),
        ("inserter", "INSERT ON mysql.*"),
        ("updater", "UPDATE ON mysql.*"),
        ("super", "SUPER ON *.*"),
        ("reader", "SELECT ON mysql.*"),
        ("all_reader", "SELECT ON *.*"),
        ("victim", "USAGE ON *.*"),
    ];
    for (user, privilege) in privileges {
        let make = format!("CREATE USER {user}@localhost IDENTIFIED BY 'pw'");
        assert_eq!(answer(&mut root, &make), "ok");
        let grant = format!("GRANT {privilege} TO {user}@localhost");
        assert_eq!(answer(&mut root, &grant), "ok");
    }
    for (user, _) in privileges {
        let mut client = connect(&server, user);
        for show in ["SHOW CREATE USER", "SHOW GRANTS FOR"] {
            let own = answer(&mut client, &format!("{show} {user}@localhost"));
            assert!(own.contains("BY PASSWORD '*"), "{user}: {own}");
            let other = answer(&mut client, &format!("{show} victim@localhost"));
            if ["reader", "all_reader", "victim"].contains(&user) {
                assert!(other.contains("BY PASSWORD '*"), "{user}: {other}");
            } else {
                let denied =
                    format!("1044 Access denied for user '{user}'@'localhost' to database 'mysql'");
                assert_eq!(other, denied);
            }
        }
    }
}

/// If one client could set a password for the shared account, all others would be locked out.
#[test]
fn an_anonymous_account_sets_no_password() {
    let launch = Launch::plateau(env!("CARGO_BIN_EXE_plateau"));
    let server = launch.start().unwrap();
    let mut root = server.connect().unwrap();
    assert_eq!(answer(&mut root, "CREATE USER ''@localhost"), "ok");
    assert_eq!(answer(&mut root, "CREATE USER victim@localhost"), "ok");
    let guest = || {
        Client::connect(&Login {
            user: "guest".to_owned(),
            ..Login::root(server.port())
        })
    };
    let refused = "1131 You are using MariaDB as an anonymous user and anonymous users are not \
                   allowed to modify user settings";
    let statements = [
        "SET PASSWORD = PASSWORD('x')",
        "SET PASSWORD = ''",
        "SET PASSWORD FOR ''@localhost = PASSWORD('x')",
        "SET PASSWORD FOR CURRENT_USER() = PASSWORD('x')",
        "SET PASSWORD FOR victim@localhost = PASSWORD('x')",
    ];
    for statement in statements {
        let mut guest = guest().expect("everybody may log in");
        assert_eq!(answer(&mut guest, statement), refused, "{statement}");
        let change = answer(&mut guest, "ALTER USER CURRENT_USER() IDENTIFIED BY 'x'");
        assert!(change.starts_with("1227 "), "{change}");
    }
    // Not even with the privilege to change accounts, nor by GRANT.
    let grant = "GRANT CREATE USER, SELECT ON *.* TO ''@localhost WITH GRANT OPTION";
    assert_eq!(answer(&mut root, grant), "ok");
    let mut guest = guest().expect("everybody may log in");
    let grant = "GRANT SELECT ON *.* TO ''@localhost IDENTIFIED BY 'x'";
    for statement in statements.iter().chain([&grant]) {
        assert_eq!(answer(&mut guest, statement), refused, "{statement}");
    }
}

/// The last connection is for an administrator; no other client gets it, nor a second
/// administrator.
#[test]
fn an_administrator_finds_a_seat_where_others_are_refused() {
    let launch =
        Launch::plateau(env!("CARGO_BIN_EXE_plateau")).with_settings(["max_connections=10"]);
    let server = launch.start().unwrap();
    let mut root = server.connect().unwrap();
    let made = answer(&mut root, "CREATE USER reader@localhost IDENTIFIED BY 'pw'");
    assert_eq!(made, "ok");
    let mut others: Vec<_> = (1..10).map(|_| connect(&server, "reader")).collect();
    let refused = |user| try_connect(&server, user).unwrap_err().to_string();
    assert!(refused("reader").contains("1040"), "{}", refused("reader"));
    let second = connect(&server, "root");
    assert!(refused("reader").contains("1040"));
    let errors = root.status("Connection_errors_max_connections").unwrap();
    assert!(refused("root").contains("1040"), "{}", refused("root"));
    let more = root.status("Connection_errors_max_connections").unwrap();
    assert!(errors != 0 && errors < more, "{errors}, {more}");
    drop(second);
    assert_eq!(root.status("Max_used_connections").unwrap(), 11);
    others.iter_mut().for_each(|other| other.ping().unwrap());
}

fn connect(server: &Server, user: &str) -> Client {
    try_connect(server, user).expect("the account may log in")
}

fn try_connect(server: &Server, user: &str) -> anyhow::Result<Client> {
    Client::connect(&Login {
        user: user.to_owned(),
        password: if user == "root" { "" } else { "pw" }.to_owned(),
        ..Login::root(server.port())
    })
}

/// `ok`, the rows' first columns, or number and text of the error.
fn answer(client: &mut Client, statement: &str) -> String {
    client
        .send_query(statement.as_bytes())
        .expect("the connection lives");
    let outcomes = client.read_outcomes().expect("the server answers");
    match outcomes.first().expect("a statement has an outcome") {
        Outcome::Done(_) => "ok".to_owned(),
        Outcome::Error(error) => format!("{} {}", error.number, error.message),
        Outcome::Rows(set) => {
            let first = |row: &Vec<Option<Vec<u8>>>| {
                let value = row.first().cloned().flatten().unwrap_or_default();
                String::from_utf8_lossy(&value).into_owned()
            };
            set.rows.iter().map(first).collect::<Vec<_>>().join("; ")
        }
    }
}
