//! What a statement leaves on its connection, and no server reports: it must not reach the next
//! session.

use super::*;

const STMT_PREPARE: u8 = 22;

/// A gateway whose sessions share one connection, and wait for it a second.
fn sharing(backend: &Server) -> Gateway {
    let server = sections_with(&[backend], "max_connections = 1\n");
    let service = "[[service]]\nname = \"shared\"\nrouter = \"read-write-split\"\nwait = 1\n";
    Gateway::start(&(server + service), "auto")
}

/// A statement after which a session keeps its connection, or none that another one could find
/// something on.
fn is_kept_apart(gateway: &Gateway, texts: &[&str]) -> bool {
    let [mut one, mut other] = [gateway.connect(), gateway.connect()];
    for text in texts {
        one.query_all(text.as_bytes()).expect(text);
    }
    match other.query("SELECT 1").expect("an answer") {
        Outcome::Error(error) => {
            assert_eq!(error.number, 1040, "{texts:?}: {error:?}");
            true
        }
        _ => is_fresh(&mut other),
    }
}

/// Whether a session is as after its login.
fn is_fresh(client: &mut Client) -> bool {
    let nothing = client.value("SELECT CONCAT_WS(',', RELEASE_LOCK('a'), @x, @y)");
    let writes = client.query("UPDATE shop.t SET b = b").expect("an answer");
    let handler = client.query("HANDLER h READ FIRST").expect("an answer");
    let lock = nothing.expect("a row");
    ["0", ""].contains(&lock.unwrap_or_default().as_str())
        && !matches!(writes, Outcome::Error(_))
        && error_of(handler).number == 1109
}

fn prepare(backend: &Server) {
    let mut root = backend.connect().expect("root gets in");
    for text in [
        "SET GLOBAL log_bin_trust_function_creators = 1",
        "CREATE TABLE shop.t (a INT PRIMARY KEY, b INT)",
        "INSERT INTO shop.t VALUES (1, 1), (2, 2)",
        "CREATE PROCEDURE shop.fails() BEGIN SET @x = 7; SIGNAL SQLSTATE '45000'; END",
        "CREATE FUNCTION shop.sets() RETURNS INT BEGIN SET @x = 7; RETURN 1; END",
        "CREATE VIEW shop.v AS SELECT shop.sets() AS a",
        "CREATE FUNCTION shop.sets_and_fails() RETURNS INT \
         BEGIN SET @x = 7; SIGNAL SQLSTATE '45000'; RETURN 1; END",
        "CREATE FUNCTION shop.sets_and_misses() RETURNS INT \
         BEGIN SET @x = 7; RETURN (SELECT MAX(a) FROM shop.missing); END",
        "CREATE VIEW shop.failing AS SELECT shop.sets_and_fails() AS a",
        "CREATE VIEW shop.missing_view AS SELECT shop.sets_and_misses() AS a",
        "CREATE TABLE shop.checked (a INT)",
        "CREATE TRIGGER shop.checks BEFORE INSERT ON shop.checked FOR EACH ROW \
         BEGIN SET @y = 8; SIGNAL SQLSTATE '45000'; END",
    ] {
        root.run(text).expect(text);
    }
}

#[test]
fn what_statements_leave_unseen_stays_with_their_session() {
    let backend = backend();
    prepare(&backend);
    let gateway = sharing(&backend);
    let lock = "DO GET_LOCK(''a'', 0)";
    for texts in [
        &[&*format!("EXECUTE IMMEDIATE '{lock}'")][..],
        &[&*format!("PREPARE p FROM '{lock}'"), "EXECUTE p"],
        &[&*format!("EXECUTE IMMEDIATE '{lock}'; DO 1")],
        &["EXECUTE IMMEDIATE 'HANDLER shop.t OPEN AS h'"],
        &["EXECUTE IMMEDIATE 'LOCK TABLES shop.t READ'"],
        &["EXECUTE IMMEDIATE 'FLUSH TABLES WITH READ LOCK'"],
        &["BEGIN NOT ATOMIC DO GET_LOCK('a', 0); END"],
        &["IF 1 THEN DO GET_LOCK('a', 0); END IF"],
        &["BACKUP STAGE START"],
        &["BACKUP LOCK shop.t"],
    ] {
        assert!(is_kept_apart(&gateway, texts), "{texts:?}");
    }
}

#[test]
fn what_a_failed_statement_has_done_stays_with_its_session() {
    let backend = backend();
    prepare(&backend);
    let gateway = sharing(&backend);
    for texts in [
        &["SELECT GET_LOCK('a', 0), (SELECT 1 UNION SELECT 2)"][..],
        &["CALL shop.fails()", "SELECT 1"],
        &["CALL shop.fails()", "DO 1"],
        &[
            "BEGIN NOT ATOMIC SET @x = 7; SIGNAL SQLSTATE '45000'; END",
            "DO 1",
        ],
        &["INSERT INTO shop.checked VALUES (1)"],
        &["SELECT * FROM shop.failing"],
        &["SELECT a FROM shop.t WHERE a = (SELECT a FROM shop.failing)"],
        // The function's own error 1146 is another one outside of it.
        &["SELECT * FROM shop.missing_view"],
    ] {
        assert!(is_kept_apart(&gateway, texts), "{texts:?}");
    }
    // One whose text cannot be read is not kept to a connection.
    let [mut typist, mut other] = [gateway.connect(), gateway.connect()];
    for text in ["SELEC 1", "CALL shop.nothing()"] {
        error_of(typist.query(text).unwrap());
        typist.run("DO 1").unwrap();
        assert_eq!(other.value("SELECT 1").unwrap().as_deref(), Some("1"));
    }
}

#[test]
fn a_mistake_in_a_query_costs_no_reset() {
    let backend = backend();
    prepare(&backend);
    let mut root = backend.connect().unwrap();
    let gateway = sharing(&backend);
    let [mut one, mut other] = [gateway.connect(), gateway.connect()];
    one.send_command(STMT_PREPARE, b"SELECT a FROM shop.t")
        .unwrap();
    let ok = one.next_packet().unwrap();
    assert_eq!(ok[0], 0, "{ok:?}");
    // The definition of a column, and the end.
    for _ in 0..2 {
        one.next_packet().unwrap();
    }
    let count = "SELECT variable_value FROM information_schema.global_status \
                 WHERE variable_name = 'prepared_stmt_count'";
    // A reset closes the statements of its connection.
    for (text, error) in [
        ("SELECT nothing FROM shop.t", 1054),
        ("SELECT nothing FROM shop.failing", 1054),
        ("SELECT a FROM shop.missing", 1146),
        ("SELECT a FROM shop.t WHERE", 1064),
    ] {
        assert_eq!(one.error_number(text).unwrap(), error, "{text}");
        other.run("DO 1").unwrap();
        assert_eq!(root.value(count).unwrap().as_deref(), Some("1"), "{text}");
    }
    let text = "SELECT a FROM shop.t WHERE a = (SELECT 1 UNION SELECT 2)";
    assert_eq!(one.error_number(text).unwrap(), 1242);
    other.run("DO 1").unwrap();
    assert_eq!(root.value(count).unwrap().as_deref(), Some("0"));
}

#[test]
fn a_role_that_a_failed_routine_has_set_stays_with_its_session() {
    let backend = backend();
    let mut root = backend.connect().unwrap();
    for text in [
        "SET GLOBAL log_bin_trust_function_creators = 1",
        "CREATE ROLE boss",
        "GRANT boss TO app@'%'",
        "CREATE PROCEDURE shop.fails() SQL SECURITY INVOKER \
         BEGIN SET ROLE boss; SIGNAL SQLSTATE '45000'; END",
    ] {
        root.run(text).expect(text);
    }
    let gateway = sharing(&backend);
    // Without a database they would log in anew for each other.
    let login = Login {
        database: "shop".to_owned(),
        ..gateway.login("app", "secret")
    };
    let [mut one, mut other] = [0; 2].map(|_| Client::connect(&login).unwrap());
    assert_eq!(one.error_number("CALL shop.fails()").unwrap(), 1644);
    one.run("DO 1").unwrap();
    assert_eq!(other.value("SELECT CURRENT_ROLE()").unwrap(), None);
}

/// A gateway whose sessions have one connection, which they keep to their end.
fn keeping(backend: &Server) -> Gateway {
    let server = sections_with(&[backend], "max_connections = 1\n");
    let service = "[[service]]\nname = \"kept\"\nrouter = \"read-write-split\"\n\
                   multiplex = false\n";
    Gateway::start(&(server + service), "auto")
}

#[test]
fn a_session_that_kept_its_connection_leaves_nothing_on_it() {
    let backend = backend();
    prepare(&backend);
    let mut root = backend.connect().unwrap();
    for text in [
        "CREATE TABLE shop.ids (id INT PRIMARY KEY AUTO_INCREMENT) AUTO_INCREMENT = 50",
        "CREATE SEQUENCE shop.s",
    ] {
        root.run(text).expect(text);
    }
    let gateway = keeping(&backend);
    let mut numbers = Vec::new();
    for text in [
        "SELECT * FROM shop.failing",
        "INSERT INTO shop.checked VALUES (1)",
        "INSERT INTO shop.ids VALUES (NULL)",
        "UPDATE shop.t SET b = b + 1",
        "SELECT a FROM shop.t",
        "SELECT CAST('secret' AS INT)",
        "SELECT NEXTVAL(shop.s)",
        "SELECT NEXTVAL(nothing)",
        "CALL shop.fails()",
    ] {
        let mut one = gateway.connect();
        numbers.push(one.value("SELECT CONNECTION_ID()").unwrap());
        one.query(text).unwrap();
        one.quit().unwrap();
        let mut other = gateway.connect();
        let mut value = |asked: &str| other.value(asked).unwrap().unwrap_or_default();
        // MariaDB keeps FOUND_ROWS() behind COM_RESET_CONNECTION.
        let all = value("SELECT CONCAT_WS(',', ROW_COUNT(), LAST_INSERT_ID(), @x, @y)");
        assert_eq!(all, "0,0", "{text}");
        assert_eq!(other.rows("SHOW WARNINGS").unwrap().len(), 0, "{text}");
        assert_eq!(other.value("SELECT LASTVAL(shop.s)").unwrap(), None);
        other.quit().unwrap();
    }
    // It is the same connection all the time: no session had to log in.
    numbers.dedup();
    assert_eq!(numbers.len(), 1, "{numbers:?}");
}

#[test]
fn variables_that_views_set_stay_with_their_session() {
    let backend = backend();
    prepare(&backend);
    let gateway = sharing(&backend);
    assert!(is_kept_apart(&gateway, &["SELECT * FROM shop.v"]));
}

#[test]
fn locks_are_gone_only_if_they_were_surely_released() {
    let backend = backend();
    prepare(&backend);
    let gateway = sharing(&backend);
    let lock = "DO GET_LOCK('a', 0)";
    for text in [
        "SELECT IF(0, RELEASE_ALL_LOCKS(), 0)",
        "DO 0 AND RELEASE_ALL_LOCKS()",
        "SELECT RELEASE_ALL_LOCKS() FROM shop.t WHERE a = 5",
    ] {
        assert!(is_kept_apart(&gateway, &[lock, text]), "{text}");
    }
    let [mut one, mut other] = [gateway.connect(), gateway.connect()];
    for text in ["SELECT RELEASE_ALL_LOCKS()", "do release_all_locks ( ) ;"] {
        one.run(lock).unwrap();
        one.query(text).unwrap();
        assert_eq!(other.value("SELECT 1").unwrap().as_deref(), Some("1"));
    }
}

#[test]
fn a_connection_that_was_released_is_nobodys() {
    let backend = backend();
    let gateway = sharing(&backend);
    for texts in [
        &["BEGIN", "COMMIT RELEASE"][..],
        &["SET completion_type = 2", "BEGIN", "ROLLBACK"],
    ] {
        let [mut one, mut other] = [gateway.connect(), gateway.connect()];
        for text in texts {
            one.run(text).expect(text);
        }
        assert_eq!(other.value("SELECT 1").unwrap().as_deref(), Some("1"));
        one.query("SELECT 1").expect_err("its session is over");
    }
}

#[test]
fn a_read_whose_connection_was_killed_is_sent_again() {
    let backend = backend();
    let gateway = sharing(&backend);
    let mut client = gateway.connect();
    let mut root = backend.connect().unwrap();
    for number in 0..5 {
        client.run("DO 1").unwrap();
        root.run("KILL USER app").unwrap();
        let value = client.value(&format!("SELECT {number}"));
        assert_eq!(value.unwrap(), Some(number.to_string()));
    }
}

#[test]
fn long_texts_read_of_their_own_session_too() {
    let backend = backend();
    prepare(&backend);
    let gateway = sharing(&backend);
    let [mut one, mut other] = [gateway.connect(), gateway.connect()];
    let padding = format!("/*{}*/", "x".repeat(300_000));
    one.run("UPDATE shop.t SET b = b + 1").unwrap();
    other.run("DO 1").unwrap();
    let text = format!("SELECT ROW_COUNT() {padding}");
    assert_eq!(one.value(&text).unwrap().as_deref(), Some("2"));
    one.rows("SELECT a FROM shop.t").unwrap();
    other.rows("SELECT a FROM shop.t WHERE a = 1").unwrap();
    let text = format!("SELECT FOUND_ROWS() {padding}");
    assert_eq!(one.value(&text).unwrap().as_deref(), Some("2"));
    let number = one.connection_id.to_string();
    let text = format!("SELECT CONNECTION_ID() {padding}");
    assert_eq!(one.value(&text).unwrap(), Some(number));
}

#[test]
fn texts_that_a_character_set_reads_otherwise_are_not_trusted() {
    let backend = backend();
    prepare(&backend);
    let gateway = sharing(&backend);
    // Byte by byte, the second is a backslash before a quote; in these sets, both are a character.
    let with_tail = |first: u8| {
        let parts = [
            b"SELECT '",
            &[first, b'\\'][..],
            b"', GET_LOCK('a', 0) -- '",
        ];
        parts.concat()
    };
    // White space before the parenthesis, and no part of the name.
    let with_blank = |blank: u8| [b"DO GET_LOCK", &[blank][..], b"('a', 0)"].concat();
    for (charset, text) in [
        ("gbk", with_tail(0xbf)),
        ("sjis", with_tail(0x95)),
        ("cp932", with_tail(0x95)),
        ("big5", with_tail(0xa5)),
        ("latin1", with_blank(0xa0)),
        ("cp866", with_blank(0xff)),
    ] {
        let [mut one, mut other] = [gateway.connect(), gateway.connect()];
        one.run(&format!("SET NAMES {charset}")).unwrap();
        one.query("SELECT 1").unwrap();
        assert_eq!(other.value("SELECT 1").unwrap().as_deref(), Some("1"));
        one.query_all(&text).unwrap();
        let held = error_of(other.query("SELECT 1").unwrap());
        assert_eq!(held.number, 1040, "{charset}");
        one.run("SET NAMES utf8mb4").unwrap();
        one.send_command(31, b"").unwrap();
        assert_eq!(one.next_packet().unwrap()[0], 0);
        one.query("SELECT '\u{e4}'").unwrap();
        assert_eq!(other.value("SELECT RELEASE_LOCK('a')").unwrap(), None);
    }
}
