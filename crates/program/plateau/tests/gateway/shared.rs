//! Sessions that share connections: each gets what a connection of its own would give it.

use super::*;

mod late;
pub(crate) mod texts;

/// A gateway whose sessions share this many connections to one server.
pub(crate) fn sharing(backend: &Server, count: usize) -> Gateway {
    let server = sections(&[backend]).replacen(
        "[[monitor]]",
        &format!("max_connections = {count}\n[[monitor]]"),
        1,
    );
    let service = "[[service]]\nname = \"shared\"\nrouter = \"read-write-split\"\nwait = 2\n";
    Gateway::start(&(server + service), "auto")
}

/// COM_RESET_CONNECTION.
fn reset(client: &mut Client) {
    client.send_command(31, b"").expect("sent");
    assert_eq!(client.next_packet().expect("an answer")[0], 0);
}

/// Connections of the clients' account.
fn open_count(root: &mut Client) -> usize {
    let text = "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'app'";
    value(root, text).parse().expect("a number")
}

#[test]
fn many_clients_use_few_connections() {
    let backend = backend();
    let mut root = backend.connect().unwrap();
    let gateway = sharing(&backend, 2);
    let mut clients: Vec<_> = (0..20).map(|_| gateway.connect()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.run(&format!("SET @number = {number}")).unwrap();
    }
    for _ in 0..3 {
        for (number, client) in clients.iter_mut().enumerate() {
            assert_eq!(value(client, "SELECT @number"), number.to_string());
        }
    }
    assert!(open_count(&mut root) <= 2);
}

#[test]
fn who_waits_too_long_is_told_the_limit() {
    let backend = backend();
    for count in [1, 2] {
        let gateway = sharing(&backend, count);
        let mut holders: Vec<_> = (0..count).map(|_| gateway.connect()).collect();
        let mut late = gateway.connect();
        for holder in &mut holders {
            holder.run("BEGIN").unwrap();
        }
        let error = error_of(late.query("SELECT 1").unwrap());
        assert_eq!((error.number, error.state.as_str()), (1040, "08004"));
        let told = format!("its limit is {count}");
        assert!(error.message.contains(&told), "{}", error.message);
        holders[0].run("COMMIT").unwrap();
        assert_eq!(value(&mut late, "SELECT 1"), "1");
    }
}

#[test]
fn kill_ends_the_statement_that_waits_for_a_connection() {
    let backend = backend();
    let gateway = sharing(&backend, 1);
    let [mut holder, mut waiter, mut killer] = [0; 3].map(|_| gateway.connect());
    let number = waiter.connection_id;
    // An order against no statement is none against the next.
    killer.run(&format!("KILL QUERY {number}")).unwrap();
    assert_eq!(value(&mut waiter, "SELECT 1"), "1");
    holder.run("BEGIN").unwrap();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| error_of(waiter.query("SELECT 1").unwrap()));
        // It may not have begun to wait the first time.
        while !waits.is_finished() {
            killer.run(&format!("KILL QUERY {number}")).unwrap();
        }
        // Without a KILL the waiter gets error 1040 after two seconds.
        assert_eq!(waits.join().unwrap().number, 1317);
    });
    holder.run("COMMIT").unwrap();
    assert_eq!(value(&mut waiter, "SELECT 1"), "1");
}

#[test]
fn a_session_reads_of_its_own_statements_alone() {
    let backend = backend();
    let gateway = sharing(&backend, 1);
    let [mut one, mut other] = [gateway.connect(), gateway.connect()];
    one.run("CREATE TABLE shop.t (id INT PRIMARY KEY AUTO_INCREMENT, a INT)")
        .unwrap();
    one.run("INSERT INTO shop.t (a) VALUES (1), (2), (3)")
        .unwrap();
    other.run("UPDATE shop.t SET a = 5 WHERE id < 3").unwrap();
    assert_eq!(value(&mut one, "SELECT ROW_COUNT()"), "3");
    assert_eq!(value(&mut other, "SELECT ROW_COUNT() + 10"), "12");
    assert_eq!(value(&mut one, "SELECT LAST_INSERT_ID()"), "1");
    assert_eq!(value(&mut other, "SELECT LAST_INSERT_ID()"), "0");

    other.run("INSERT INTO shop.t (a) VALUES (4)").unwrap();
    assert_eq!(value(&mut one, "SELECT @@last_insert_id"), "1");
    assert_eq!(value(&mut other, "SELECT @@identity"), "4");

    one.rows("SELECT SQL_CALC_FOUND_ROWS id FROM shop.t LIMIT 1")
        .unwrap();
    other.rows("SELECT id FROM shop.t WHERE id < 3").unwrap();
    assert_eq!(value(&mut one, "SELECT FOUND_ROWS()"), "4");
    assert_eq!(value(&mut other, "SELECT FOUND_ROWS()"), "2");

    let own = one.connection_id.to_string();
    assert_eq!(value(&mut one, "SELECT CONNECTION_ID()"), own);
    assert_ne!(value(&mut other, "SELECT CONNECTION_ID()"), own);
}

#[test]
fn a_generated_value_that_a_session_knows_is_not_left_to_others() {
    let backend = backend();
    let mut root = backend.connect().unwrap();
    for (name, first) in [("one", 7), ("two", 7), ("far", 50)] {
        root.run(&format!(
            "CREATE TABLE shop.{name} (id INT PRIMARY KEY AUTO_INCREMENT, a INT) \
             AUTO_INCREMENT = {first}"
        ))
        .unwrap();
    }
    let gateway = sharing(&backend, 1);
    let [mut one, mut other] = [gateway.connect(), gateway.connect()];
    let insert = |name: &str| format!("INSERT INTO shop.{name} (a) VALUES (1)");
    one.run(&insert("one")).unwrap();
    assert_eq!(value(&mut one, "SELECT LAST_INSERT_ID()"), "7");
    other.run(&insert("far")).unwrap();
    assert_eq!(value(&mut other, "SELECT LAST_INSERT_ID()"), "50");
    // The same number again, of another table.
    one.run(&insert("two")).unwrap();
    assert_eq!(value(&mut other, "SELECT LAST_INSERT_ID()"), "50");
    assert_eq!(value(&mut one, "SELECT LAST_INSERT_ID()"), "7");
    // A number that was not generated is told, and is not the last one that was.
    other.run("INSERT INTO shop.far VALUES (8, 1)").unwrap();
    one.run("UPDATE shop.one SET a = 2").unwrap();
    assert_eq!(value(&mut one, "SELECT LAST_INSERT_ID()"), "7");
    assert_eq!(value(&mut other, "SELECT LAST_INSERT_ID()"), "50");
    one.run("INSERT INTO shop.one VALUES (90, 1)").unwrap();
    assert_eq!(value(&mut one, "SELECT LAST_INSERT_ID()"), "7");
    one.run("INSERT INTO shop.two (id, a) VALUES (91, 1)")
        .unwrap();
    other.run("DO 1").unwrap();
    assert_eq!(value(&mut one, "SELECT LAST_INSERT_ID()"), "7");
}

#[test]
fn a_given_id_is_not_mistaken_for_a_generated_one() {
    let backend = backend();
    let mut root = backend.connect().unwrap();
    root.run("CREATE TABLE shop.t (id INT PRIMARY KEY AUTO_INCREMENT, a INT) AUTO_INCREMENT = 7")
        .unwrap();
    let gateway = sharing(&backend, 1);
    let [mut one, mut other] = [gateway.connect(), gateway.connect()];
    one.run("INSERT INTO shop.t (a) VALUES (1)").unwrap();
    assert_eq!(value(&mut one, "SELECT LAST_INSERT_ID()"), "7");
    assert_eq!(value(&mut other, "SELECT LAST_INSERT_ID()"), "0");
    // A statement that tells no value comes before the connection is asked.
    one.run("INSERT INTO shop.t VALUES (30, 1)").unwrap();
    one.run("DO 1").unwrap();
    other.run("DO 1").unwrap();
    assert_eq!(value(&mut one, "SELECT LAST_INSERT_ID()"), "7");
    // One that tells what its session knows leaves a connection whose value is known.
    one.run("INSERT INTO shop.t VALUES (8, 1)").unwrap();
    assert_eq!(value(&mut other, "SELECT LAST_INSERT_ID()"), "0");
    one.run("INSERT INTO shop.t VALUES (7, 2) ON DUPLICATE KEY UPDATE a = 2")
        .unwrap();
    other.run("INSERT INTO shop.t VALUES (40, 1)").unwrap();
    one.run("DO 1").unwrap();
    assert_eq!(value(&mut other, "SELECT LAST_INSERT_ID()"), "0");
    assert_eq!(value(&mut one, "SELECT LAST_INSERT_ID()"), "7");
}

#[test]
fn warnings_are_their_sessions() {
    let backend = backend();
    let gateway = sharing(&backend, 1);
    let [mut one, mut other] = [gateway.connect(), gateway.connect()];
    let first_word = |rows: Vec<Vec<Option<Vec<u8>>>>| {
        let text = rows.first().and_then(|row| row.get(2)).cloned().flatten();
        String::from_utf8(text.unwrap_or_default()).unwrap()
    };
    one.run("SELECT CAST('secret' AS INT)").unwrap();
    other.run("SET @a = 1").unwrap();
    assert_eq!(first_word(other.rows("SHOW WARNINGS").unwrap()), "");
    assert_eq!(value(&mut other, "SELECT @@warning_count"), "0");
    let told = first_word(one.rows("SHOW WARNINGS").unwrap());
    assert!(told.contains("'secret'"), "{told}");

    assert_eq!(one.error_number("SELECT nothing").unwrap(), 1054);
    assert_eq!(value(&mut other, "SELECT 7"), "7");
    let told = first_word(one.rows("SHOW WARNINGS").unwrap());
    assert!(told.contains("'nothing'"), "{told}");
    assert_eq!(
        one.error_number("GET DIAGNOSTICS @n = NUMBER").unwrap(),
        1235
    );
}

#[test]
fn warnings_of_repeated_commands_are_no_sessions() {
    let backend = backend();
    let mut root = backend.connect().unwrap();
    root.run("CREATE TABLE shop.t (a INT)").unwrap();
    let gateway = sharing(&backend, 1);
    let [mut one, mut other] = [gateway.connect(), gateway.connect()];
    // It warns, and so it does on each connection that gets it.
    one.run("SET big_tables = 1").unwrap();
    assert_eq!(one.rows("SHOW WARNINGS").unwrap().len(), 1);
    one.run("SELECT COUNT(*) FROM shop.t").unwrap();
    other.run("SET @a = 1").unwrap();
    assert_eq!(one.rows("SHOW WARNINGS").unwrap().len(), 0);
    other.run("SET @a = 2").unwrap();
    one.run("BEGIN").unwrap();
    assert_eq!(one.rows("SHOW WARNINGS").unwrap().len(), 0);
    one.run("COMMIT").unwrap();
}

#[test]
fn warnings_stay_behind_where_a_statement_leaves_them() {
    let backend = backend();
    let mut root = backend.connect().unwrap();
    root.run("CREATE TABLE shop.t (a INT)").unwrap();
    let gateway = sharing(&backend, 1);
    let [mut one, mut other] = [gateway.connect(), gateway.connect()];
    let warns = "SELECT CAST('secret' AS INT)";
    one.run(warns).unwrap();
    other.run("BEGIN").unwrap();
    assert_eq!(other.rows("SHOW WARNINGS").unwrap().len(), 0);
    other.run(warns).unwrap();
    assert_eq!(other.rows("SHOW WARNINGS").unwrap().len(), 1);
    other.run("COMMIT").unwrap();
    assert_eq!(other.rows("SHOW WARNINGS").unwrap().len(), 1);
    one.run(warns).unwrap();
    other.run("SELECT COUNT(*) FROM shop.t").unwrap();
    one.run(warns).unwrap();
    other.query_all(b"DO 1; DO 2").unwrap();
    assert_eq!(other.rows("SHOW WARNINGS").unwrap().len(), 0);
    assert_eq!(one.rows("SHOW WARNINGS").unwrap().len(), 1);
}

#[test]
fn what_holds_a_connection_is_nobody_elses() {
    let backend = backend();
    let mut root = backend.connect().unwrap();
    let gateway = sharing(&backend, 3);
    let [mut one, mut other] = [gateway.connect(), gateway.connect()];
    one.run("CREATE TEMPORARY TABLE shop.mine (id INT)")
        .unwrap();
    assert_eq!(other.error_number("SELECT * FROM shop.mine").unwrap(), 1146);
    assert_eq!(value(&mut one, "SELECT COUNT(*) FROM shop.mine"), "0");
    assert_eq!(value(&mut other, "SELECT GET_LOCK('a', 0)"), "1");
    assert_eq!(value(&mut one, "SELECT GET_LOCK('a', 0)"), "0");

    // What a session holds ends with it.
    drop((one, other));
    wait_until("the lock is free", || {
        value(&mut root, "SELECT IS_FREE_LOCK('a')") == "1"
    });
    let mut third = gateway.connect();
    assert_eq!(third.error_number("SELECT * FROM shop.mine").unwrap(), 1146);
}

#[test]
fn a_reset_session_is_as_after_its_login() {
    let backend = backend();
    let gateway = sharing(&backend, 1);
    let mut client = gateway.connect();
    client.run("USE shop").unwrap();
    client.run("SET @a = 1, autocommit = 0").unwrap();
    client.run("CREATE TEMPORARY TABLE mine (id INT)").unwrap();
    reset(&mut client);
    let row = "SELECT CONCAT(@a IS NULL, @@autocommit, DATABASE())";
    assert_eq!(value(&mut client, row), "1ONshop");
    assert_eq!(client.error_number("SELECT * FROM mine").unwrap(), 1146);
    let mut other = gateway.connect();
    assert_eq!(value(&mut other, "SELECT DATABASE()"), "NULL");
}

#[test]
fn accounts_take_turns_on_a_connection() {
    let backend = backend();
    let mut root = backend.connect().unwrap();
    root.run("CREATE USER weak@'%' IDENTIFIED BY 'w'").unwrap();
    let gateway = sharing(&backend, 1);
    let mut strong = gateway.connect();
    let mut weak = Client::connect(&gateway.login("weak", "w")).unwrap();
    for _ in 0..3 {
        assert_eq!(value(&mut strong, "SELECT CURRENT_USER()"), "app@%");
        assert_eq!(value(&mut weak, "SELECT CURRENT_USER()"), "weak@%");
        assert_eq!(
            weak.error_number("CREATE TABLE shop.no (id INT)").unwrap(),
            1142
        );
    }
}

#[test]
fn statements_of_one_text_read_of_each_other() {
    let backend = backend();
    let gateway = sharing(&backend, 1);
    let [mut one, mut other] = [gateway.connect(), gateway.connect()];
    one.run("CREATE TABLE shop.t (a INT)").unwrap();
    one.run("INSERT INTO shop.t VALUES (1), (2), (3)").unwrap();
    assert_eq!(value(&mut other, "SELECT 1"), "1");
    let several = b"DELETE FROM shop.t WHERE a = 1; SELECT ROW_COUNT()";
    let Some(Outcome::Rows(last)) = one.query_all(several).unwrap().pop() else {
        panic!("the last statement has rows")
    };
    assert_eq!(last.rows, [[Some(b"1".to_vec())]]);
    assert_eq!(last.columns[0].name, "ROW_COUNT()");

    // What is defined asks when it is called.
    one.run("CREATE PROCEDURE shop.counts() SELECT ROW_COUNT()")
        .unwrap();
    let text = value(
        &mut one,
        "SELECT routine_definition FROM information_schema.routines \
         WHERE routine_name = 'counts'",
    );
    assert_eq!(text, "SELECT ROW_COUNT()");

    let warned = b"SELECT CAST('secret' AS INT); SHOW WARNINGS";
    one.query_all(warned).unwrap();
    assert!(other.rows("SHOW WARNINGS").unwrap().is_empty());
    one.query_all(warned).unwrap();
    assert_eq!(one.rows("SHOW WARNINGS").unwrap().len(), 1);
}

#[test]
fn a_generated_value_is_its_sessions_whatever_else_is_asked() {
    let backend = backend();
    let gateway = sharing(&backend, 1);
    let [mut one, mut other] = [gateway.connect(), gateway.connect()];
    one.run("CREATE TABLE shop.t (id INT PRIMARY KEY AUTO_INCREMENT)")
        .unwrap();
    one.run("INSERT INTO shop.t VALUES (NULL)").unwrap();
    other.run("INSERT INTO shop.t VALUES (NULL)").unwrap();
    // FOUND_ROWS() of this is asked for on the other's connection.
    one.rows("SHOW TABLES FROM shop").unwrap();
    assert_eq!(value(&mut other, "SELECT LAST_INSERT_ID()"), "2");
    assert_eq!(value(&mut one, "SELECT LAST_INSERT_ID()"), "1");

    let returning = "INSERT INTO shop.t VALUES (NULL) RETURNING 'made'";
    assert_eq!(value(&mut one, returning), "made");
    assert_eq!(value(&mut other, "SELECT LAST_INSERT_ID()"), "2");
    assert_eq!(value(&mut one, "SELECT LAST_INSERT_ID()"), "3");
}

#[test]
fn a_command_without_a_count_has_none() {
    const SET_OPTION: u8 = 27;
    let backend = backend();
    let gateway = sharing(&backend, 1);
    let [mut one, mut other] = [gateway.connect(), gateway.connect()];
    one.run("SET @a = 1").unwrap();
    one.send_command(SET_OPTION, &[0, 0]).unwrap();
    assert_eq!(one.next_packet().unwrap()[0], 0xfe);
    other.run("SET @a = 1").unwrap();
    assert_eq!(value(&mut one, "SELECT ROW_COUNT()"), "-1");
    assert_eq!(value(&mut other, "SELECT ROW_COUNT()"), "0");
}

#[test]
fn a_recalled_number_has_the_type_of_its_call() {
    let backend = backend();
    let gateway = sharing(&backend, 1);
    let [mut one, mut other] = [gateway.connect(), gateway.connect()];
    let mut root = backend.connect().unwrap();
    let text = "SELECT ROW_COUNT(), FOUND_ROWS()";
    let Outcome::Rows(expected) = root.query(text).unwrap() else {
        panic!("it has rows")
    };
    for _ in 0..2 {
        one.run("SET @a = 1").unwrap();
        assert_eq!(value(&mut other, "SELECT 1"), "1");
        let Outcome::Rows(told) = one.query(text).unwrap() else {
            panic!("it has rows")
        };
        assert_eq!(told.columns, expected.columns);
    }
}

#[test]
fn what_the_gateway_asks_is_read_whatever_the_session_has_set() {
    let backend = backend();
    let gateway = sharing(&backend, 1);
    let [mut one, mut other] = [gateway.connect(), gateway.connect()];
    for set in ["character_set_results = ucs2", "sql_select_limit = 0"] {
        one.run(&format!("SET {set}")).unwrap();
        one.query("SELECT SQL_CALC_FOUND_ROWS 1 UNION SELECT 2 UNION SELECT 3 LIMIT 1")
            .unwrap();
        assert_eq!(value(&mut other, "SELECT 1"), "1");
        let found = one.value("SELECT FOUND_ROWS() LIMIT 1").unwrap().unwrap();
        assert_eq!(found.replace('\0', ""), "3", "{set}");
    }
    assert!(!gateway.log().contains("cannot be learned"));
}

#[test]
fn an_option_is_its_sessions() {
    const SET_OPTION: u8 = 27;
    let backend = backend();
    let gateway = sharing(&backend, 1);
    let [mut one, mut other] = [gateway.connect(), gateway.connect()];
    one.send_command(SET_OPTION, &[1, 0]).unwrap();
    assert_eq!(one.next_packet().unwrap()[0], 0xfe);
    let several = b"SELECT 1; SELECT 2";
    for _ in 0..2 {
        assert_eq!(other.query_all(several).unwrap().len(), 2);
        let refused = error_of(one.query_all(several).unwrap().remove(0));
        assert_eq!(refused.number, 1064);
        // A server keeps the option, too.
        reset(&mut one);
    }
}

#[test]
fn a_reset_keeps_the_database_however_it_was_chosen() {
    let backend = backend();
    let gateway = sharing(&backend, 1);
    let mut client = gateway.connect();
    client.query_all(b"USE shop; SELECT 1").unwrap();
    client.run("PREPARE p FROM 'SELECT 1'").unwrap();
    reset(&mut client);
    assert_eq!(value(&mut client, "SELECT DATABASE()"), "shop");
}

#[test]
fn a_reset_leaves_a_session_without_a_database_in_none() {
    let backend = backend();
    let mut root = backend.connect().unwrap();
    root.run("CREATE PROCEDURE shop.p() SELECT 1").unwrap();
    let gateway = sharing(&backend, 1);
    for texts in [
        &["CREATE DATABASE gone", "USE gone", "DROP DATABASE gone"][..],
        &["CALL shop.p()"],
    ] {
        let [mut client, mut other] = [gateway.connect(), gateway.connect()];
        for text in texts {
            client.query_all(text.as_bytes()).expect(text);
        }
        reset(&mut client);
        // Each takes the connection from the other.
        for _ in 0..2 {
            other.run("DO 1").unwrap();
            assert_eq!(value(&mut client, "SELECT DATABASE()"), "NULL", "{texts:?}");
        }
    }
    let log = gateway.log();
    assert!(!log.contains("cannot be given the state"), "{log}");
}

#[test]
fn a_function_that_sets_a_variable_keeps_the_connection() {
    let backend = backend();
    let gateway = sharing(&backend, 2);
    let [mut one, mut other] = [gateway.connect(), gateway.connect()];
    one.run("CREATE FUNCTION shop.sets(x INT) RETURNS INT BEGIN SET @b = x; RETURN x; END")
        .unwrap();
    assert_eq!(value(&mut one, "SELECT shop.sets(7)"), "7");
    assert_eq!(value(&mut other, "SELECT @b"), "NULL");
    assert_eq!(value(&mut one, "SELECT @b"), "7");
}

#[test]
fn an_unknown_statement_is_told_as_servers_do() {
    let backend = backend();
    let gateway = sharing(&backend, 1);
    let [mut through, mut alone] = [gateway.connect(), backend.connect().unwrap()];
    for byte in [23, 26, 28] {
        let body = [77, 0, 0, 0, 0, 1, 0, 0, 0];
        let mut answers = [&mut through, &mut alone].map(|client| {
            client.send_command(byte, &body).unwrap();
            client.next_packet().unwrap()
        });
        let [told, expected] = &mut answers;
        assert_eq!(told, expected, "{}", String::from_utf8_lossy(expected));
    }
}

#[test]
fn a_role_is_its_sessions() {
    let backend = backend();
    let mut root = backend.connect().unwrap();
    root.run("CREATE ROLE boss").unwrap();
    root.run("GRANT boss TO app@'%'").unwrap();
    let gateway = sharing(&backend, 1);
    let [mut one, mut other] = [gateway.connect(), gateway.connect()];
    one.run("SET ROLE boss").unwrap();
    for _ in 0..2 {
        assert_eq!(value(&mut one, "SELECT CURRENT_ROLE()"), "boss");
        assert_eq!(value(&mut other, "SELECT CURRENT_ROLE()"), "NULL");
    }
    // As on MariaDB, the role outlives a reset.
    reset(&mut one);
    assert_eq!(value(&mut other, "SELECT CURRENT_ROLE()"), "NULL");
    assert_eq!(value(&mut one, "SELECT CURRENT_ROLE()"), "boss");
    // Set by what the gateway does not look into.
    other.run("BEGIN NOT ATOMIC SET ROLE boss; END").unwrap();
    assert_eq!(value(&mut other, "SELECT CURRENT_ROLE()"), "boss");
    reset(&mut other);
    let mut third = gateway.connect();
    assert_eq!(value(&mut third, "SELECT CURRENT_ROLE()"), "NULL");
}

#[test]
fn a_role_is_its_accounts() {
    let backend = backend();
    let mut root = backend.connect().unwrap();
    for statement in [
        "CREATE ROLE boss",
        "GRANT boss TO app@'%'",
        "SET DEFAULT ROLE boss FOR app@'%'",
        "CREATE USER other@'%' IDENTIFIED BY 'secret'",
    ] {
        root.run(statement).expect(statement);
    }
    let gateway = sharing(&backend, 1);
    let mut app = gateway.connect();
    let mut other = Client::connect(&gateway.login("other", "secret")).unwrap();
    let role = "SELECT CURRENT_ROLE()";
    for _ in 0..2 {
        assert_eq!(value(&mut app, role), "boss");
        assert_eq!(value(&mut other, role), "NULL");
    }
    app.run("SET ROLE NONE").unwrap();
    assert_eq!(value(&mut other, role), "NULL");
    assert_eq!(value(&mut app, role), "NULL");
    let mut second = gateway.connect();
    assert_eq!(value(&mut second, role), "boss");
}

#[test]
fn a_session_without_locks_leaves_its_connection() {
    let backend = backend();
    let mut root = backend.connect().unwrap();
    value(&mut root, "SELECT GET_LOCK('taken', 0)");
    let gateway = sharing(&backend, 1);
    let [mut one, mut other] = [gateway.connect(), gateway.connect()];
    let mut is_free = || match other.query("SELECT 1").unwrap() {
        Outcome::Error(error) => {
            assert_eq!(error.number, 1040);
            false
        }
        _ => true,
    };
    // It has none: another session has it.
    assert_eq!(value(&mut one, "SELECT GET_LOCK('taken', 0)"), "0");
    assert!(is_free());
    assert_eq!(value(&mut one, "SELECT GET_LOCK('a', 0), ROW_COUNT()"), "1");
    assert_eq!(value(&mut one, "SELECT GET_LOCK('b', 0)"), "1");
    assert!(!is_free());
    assert_eq!(value(&mut one, "SELECT RELEASE_LOCK('a')"), "1");
    assert!(!is_free());
    one.run("INSERT INTO shop.t VALUES (1)").unwrap_err();
    assert_eq!(value(&mut one, "SELECT RELEASE_LOCK('b')"), "1");
    assert!(is_free());
    // A lock is taken as often as it was asked for.
    for _ in 0..2 {
        one.run("DO GET_LOCK('a', 0)").unwrap();
    }
    one.run("DO RELEASE_LOCK('a')").unwrap();
    assert!(!is_free());
    one.run("DO RELEASE_LOCK('a')").unwrap();
    assert!(is_free());
    // A name that the gateway cannot know.
    one.run("SET @name = 'c'").unwrap();
    assert_eq!(value(&mut one, "SELECT GET_LOCK(@name, 0)"), "1");
    assert_eq!(value(&mut one, "SELECT RELEASE_LOCK(@name)"), "1");
    assert!(!is_free());
    assert_eq!(value(&mut one, "SELECT RELEASE_ALL_LOCKS()"), "0");
    assert!(is_free());
}

/// Clients that are in the database `shop`: without that, a routine changes the database, and the
/// server reports a change.
fn in_shop<const COUNT: usize>(gateway: &Gateway) -> [Client; COUNT] {
    let login = Login {
        database: "shop".to_owned(),
        ..gateway.login("app", "secret")
    };
    [0; COUNT].map(|_| Client::connect(&login).expect("app gets in"))
}

#[test]
fn a_temporary_table_is_its_sessions_however_it_was_made() {
    let backend = backend();
    let gateway = sharing(&backend, 2);
    let [mut root] = in_shop(&gateway);
    root.run("CREATE PROCEDURE makes() CREATE TEMPORARY TABLE mine SELECT 'secret' a")
        .unwrap();
    root.run(
        "CREATE FUNCTION made() RETURNS INT BEGIN CREATE TEMPORARY TABLE mine SELECT 'secret' a; \
         RETURN 1; END",
    )
    .unwrap();
    for text in [
        "CALL makes()",
        "SELECT made()",
        "EXECUTE IMMEDIATE 'CREATE TEMPORARY TABLE mine SELECT ''secret'' a'",
        "DO 1; CALL makes()",
    ] {
        let [mut one, mut other] = in_shop(&gateway);
        one.query_all(text.as_bytes()).unwrap();
        for _ in 0..2 {
            let seen = other.error_number("SELECT a FROM mine").unwrap();
            assert_eq!(seen, 1146, "{text}");
            assert_eq!(value(&mut one, "SELECT a FROM mine"), "secret", "{text}");
        }
    }
}

#[test]
fn what_a_routine_has_set_before_it_failed_is_nobody_elses() {
    let backend = backend();
    let gateway = sharing(&backend, 1);
    let [mut root] = in_shop(&gateway);
    let body = "BEGIN SET @a = 'secret'; SIGNAL SQLSTATE '45000'; END";
    root.run("CREATE TABLE t (a INT)").unwrap();
    root.run(&format!("CREATE PROCEDURE fails() {body}"))
        .unwrap();
    root.run(&format!(
        "CREATE TRIGGER fails BEFORE INSERT ON t FOR EACH ROW {body}"
    ))
    .unwrap();
    for text in ["CALL fails()", "INSERT INTO t VALUES (1)"] {
        let [mut one, mut other] = in_shop(&gateway);
        let failed = one.query_all(text.as_bytes()).unwrap().pop();
        assert_eq!(error_of(failed.unwrap()).number, 1644, "{text}");
        // Whether a transaction is open is known again.
        one.run("DO 1").unwrap();
        assert_eq!(value(&mut other, "SELECT @a"), "NULL", "{text}");
    }
}

#[test]
fn what_a_statement_leaves_is_not_read_of_another_session() {
    let backend = backend();
    let gateway = sharing(&backend, 1);
    let [mut one, mut other] = in_shop(&gateway);
    one.run("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT)")
        .unwrap();
    one.run("INSERT INTO t VALUES (NULL)").unwrap();
    // The reply tells 50, which was not generated.
    for lets_go in [false, true] {
        other.run("REPLACE INTO t VALUES (50)").unwrap();
        if lets_go {
            one.run("DO 1").unwrap();
        }
        assert_eq!(value(&mut other, "SELECT LAST_INSERT_ID()"), "0");
    }
    assert_eq!(value(&mut one, "SELECT LAST_INSERT_ID()"), "1");
    other.run("INSERT INTO t VALUES (NULL)").unwrap();
    assert_eq!(value(&mut other, "SELECT LAST_INSERT_ID()"), "51");
    assert_eq!(value(&mut one, "SELECT LAST_INSERT_ID()"), "1");

    one.rows("SELECT 1 UNION SELECT 2 UNION SELECT 3").unwrap();
    other.rows("SELECT 1 UNION SELECT 2").unwrap();
    one.run("SET @a = 1").unwrap();
    assert_eq!(value(&mut one, "SELECT FOUND_ROWS()"), "3");

    // The generated value is asked for before both are written into the text.
    one.run("INSERT INTO t VALUES (NULL)").unwrap();
    one.rows("SELECT SQL_CALC_FOUND_ROWS 1 UNION SELECT 2 LIMIT 1")
        .unwrap();
    let both = "SELECT CONCAT(FOUND_ROWS(), ' ', LAST_INSERT_ID())";
    assert_eq!(value(&mut one, both), "2 52");
    // The connection has to be put right before it is read.
    assert_eq!(value(&mut other, "SELECT LAST_INSERT_ID()"), "51");
    one.rows("SELECT SQL_CALC_FOUND_ROWS 1 UNION SELECT 2 LIMIT 1")
        .unwrap();
    assert_eq!(value(&mut one, both), "2 52");

    one.run("INSERT IGNORE INTO t VALUES ('a')").unwrap();
    other.run("DO 1").unwrap();
    assert_eq!(one.rows("SHOW WARNINGS").unwrap().len(), 1);
    assert_eq!(value(&mut one, "SELECT ROW_COUNT()"), "-1");
}

#[test]
fn what_has_rows_and_generates_nothing_leaves_the_generated_value() {
    let backend = backend();
    let gateway = sharing(&backend, 1);
    let [mut one, mut other] = [gateway.connect(), gateway.connect()];
    for (table, first) in [("t", 10), ("u", 50)] {
        one.run(&format!(
            "CREATE TABLE shop.{table} (id INT PRIMARY KEY AUTO_INCREMENT, a INT) \
             AUTO_INCREMENT = {first}"
        ))
        .unwrap();
    }
    one.run("INSERT INTO shop.t (a) VALUES (1), (1)").unwrap();
    for (text, expected) in [
        ("SELECT RELEASE_LOCK('a')", "10"),
        ("DELETE FROM shop.t WHERE id = 10 RETURNING id", "10"),
        ("INSERT INTO shop.t VALUES (77, 1) RETURNING id", "10"),
        ("INSERT INTO shop.t (a) VALUES (1) RETURNING id", "78"),
    ] {
        other.run("INSERT INTO shop.u (a) VALUES (1)").unwrap();
        one.rows(text).unwrap();
        other.run("INSERT INTO shop.u (a) VALUES (1)").unwrap();
        assert_eq!(
            value(&mut one, "SELECT LAST_INSERT_ID()"),
            expected,
            "{text}"
        );
    }
}

#[test]
fn a_pool_that_says_the_same_again_and_again_shares_its_connection() {
    let backend = backend();
    let mut root = backend.connect().unwrap();
    root.run("CREATE ROLE boss").unwrap();
    root.run("GRANT boss TO app@'%'").unwrap();
    let gateway = sharing(&backend, 1);
    let [mut one, mut other] = [gateway.connect(), gateway.connect()];
    for _ in 0..40 {
        for text in [
            "SET SESSION TRANSACTION READ ONLY",
            "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            "SET sql_safe_updates = DEFAULT",
            "SET ROLE boss",
            "SET SESSION TRANSACTION READ WRITE",
            "set session transaction isolation level read committed",
            "SET sql_safe_updates = 1",
            "SET ROLE NONE",
        ] {
            one.run(text).unwrap();
        }
    }
    let state = "SELECT CONCAT_WS(',', @@tx_isolation, @@tx_read_only, @@sql_safe_updates, \
                 CURRENT_ROLE())";
    assert_eq!(value(&mut other, state), "REPEATABLE-READ,OFF,OFF");
    assert_eq!(value(&mut one, state), "READ-COMMITTED,OFF,ON");
    assert_eq!(value(&mut other, state), "REPEATABLE-READ,OFF,OFF");
}
