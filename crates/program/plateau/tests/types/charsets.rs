//! Clients whose character set is not UTF-8: the meaning of their strings, names, parameters and
//! files, and the bytes of their results. `REFERENCE=mariadb` asks MariaDB instead.

use crate::wire::{
    BLOB, BULK_EXECUTE, EXECUTE, LATIN1, LONG_DATA, QUERY, Reply, UTF8MB4, VARCHAR, Wire,
    append_value, start,
};

/// Character sets of client and connection, a statement, and its row, in both protocols.
const STRINGS: &[(&str, &str, &[u8], &[u8])] = &[
    (
        "latin1",
        "latin1",
        b"SELECT HEX('\xe9'), '\xe9', CHARSET('\xe9'), HEX('\x80\x81')",
        b"E9|\xe9|latin1|8081",
    ),
    (
        "latin1",
        "utf8mb4",
        b"SELECT HEX('\xe9'), '\xe9', CHARSET('\xe9')",
        b"C3A9|\xe9|utf8mb4",
    ),
    (
        "latin1",
        "utf8mb4",
        b"SELECT HEX(_latin1'\xe9'), HEX(_binary'\xe9'), HEX(_utf8mb4'\xc3\xa9'), HEX(N'\xe9')",
        b"E9|E9|C3A9|E9",
    ),
    (
        "latin1",
        "latin1",
        b"SELECT HEX(CONCAT('\xe9', _utf8mb4 X'C3A9')), HEX(LEFT('\xe9x', 1)), UPPER('\xe9')",
        b"C3A9C3A9|E9|\xc9",
    ),
    (
        "utf8mb4",
        "latin1",
        "SELECT HEX('\u{e9}'), HEX('\u{416}'), '\u{416}', HEX(_latin1'\u{e9}')".as_bytes(),
        b"E9|3F|?|C3A9",
    ),
    (
        "utf8mb4",
        "ascii",
        "SELECT HEX('\u{e9}'), CHARSET('\u{e9}')".as_bytes(),
        b"3F|ascii",
    ),
    (
        "utf8mb4",
        "binary",
        "SELECT HEX('\u{e9}'), CHARSET('\u{e9}')".as_bytes(),
        b"C3A9|binary",
    ),
    (
        "utf8mb3",
        "utf8mb4",
        "SELECT HEX('\u{e9}'), HEX('\u{1F600}')".as_bytes(),
        b"C3A9|3F3F3F3F",
    ),
    ("ascii", "ascii", b"SELECT HEX('\xe9')", b"E9"),
    (
        "ascii",
        "utf8mb4",
        b"SELECT HEX('\xe9'), HEX(_latin1'\xe9')",
        b"3F|E9",
    ),
    (
        "binary",
        "binary",
        b"SELECT HEX('\xe9'), CHARSET('x')",
        b"E9|binary",
    ),
    ("binary", "utf8mb4", b"SELECT HEX('\xe9\xff')", b"E9FF"),
    (
        "latin1",
        "latin1",
        b"SELECT HEX(GROUP_CONCAT(a ORDER BY a SEPARATOR '\xe9')) \
          FROM (SELECT 1 AS a UNION SELECT 2) t",
        b"31E932",
    ),
    (
        "latin1",
        "utf8mb4",
        b"SELECT HEX(GROUP_CONCAT(a SEPARATOR '\xe9')) \
          FROM (SELECT CONVERT('\xe9' USING latin1) AS a UNION ALL SELECT 'x') t",
        b"E9E978",
    ),
];

fn set_names(wire: &mut Wire, client: &str, connection: &str) {
    wire.run(format!("SET NAMES {client}").as_bytes());
    wire.run(format!("SET character_set_connection = {connection}").as_bytes());
}

#[test]
fn a_string_is_a_text_of_the_connection() {
    let server = start();
    let mut wire = Wire::with_database(&server, UTF8MB4);
    for &(client, connection, text, expected) in STRINGS {
        set_names(&mut wire, client, connection);
        let shown = text.escape_ascii();
        for reply in [wire.query(text), wire.query(text), wire.prepared(text, &[])] {
            assert_eq!(reply.error, None, "{shown}");
            assert_eq!(reply.rows, [expected], "{client} {connection} {shown}");
        }
    }
}

#[test]
fn rows_are_written_and_found_in_the_clients_bytes() {
    let server = start();
    let mut wire = Wire::with_database(&server, LATIN1);
    wire.run(
        b"CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, u VARCHAR(9) DEFAULT '\xe9', \
          l VARCHAR(9) CHARACTER SET latin1 DEFAULT '\xe9', b VARBINARY(9) DEFAULT '\xe9', \
          KEY (u), KEY (l), KEY (b))",
    );
    wire.run(b"INSERT INTO t () VALUES ()");
    wire.run(b"INSERT INTO t (u, l, b) VALUES ('\xe9', '\xe9', '\xe9')");
    let insert = wire.prepare(b"INSERT INTO t (u, l, b) VALUES (?, ?, ?)");
    let parameters: [&[u8]; 3] = [b"\xe9", b"\xe9", b"\xe9"];
    assert_eq!(wire.execute(insert, &parameters, VARCHAR).error, None);
    for place in 0..3_u16 {
        let mut long = vec![LONG_DATA];
        long.extend_from_slice(&insert.to_le_bytes());
        long.extend_from_slice(&place.to_le_bytes());
        long.push(0xe9);
        wire.command(&long);
    }
    let mut execute = vec![EXECUTE];
    execute.extend_from_slice(&insert.to_le_bytes());
    execute.extend_from_slice(&[0, 1, 0, 0, 0, 0, 1]);
    execute.extend_from_slice(&[VARCHAR, 0, VARCHAR, 0, VARCHAR, 0]);
    wire.command(&execute);
    assert_eq!(wire.reply(true, b"").error, None);
    let mut bulk = vec![BULK_EXECUTE];
    bulk.extend_from_slice(&insert.to_le_bytes());
    bulk.extend_from_slice(&[128, 0, VARCHAR, 0, VARCHAR, 0, VARCHAR, 0]);
    for parameter in parameters {
        bulk.push(0);
        append_value(&mut bulk, parameter);
    }
    wire.command(&bulk);
    assert_eq!(wire.reply(true, b"").error, None);
    let rows = wire
        .query(b"SELECT HEX(u), HEX(l), HEX(b), u, l, b FROM t")
        .rows;
    assert_eq!(rows, vec![b"C3A9|E9|E9|\xe9|\xe9|\xe9".to_vec(); 5]);

    wire.run(b"INSERT INTO t (u, l, b) SELECT 'x', 'x', 'x' FROM t x, t y, t z");
    wire.run(b"ANALYZE TABLE t");
    for column in ["u", "l", "b"] {
        for (condition, parameter) in [
            (&b"= '\xe9'"[..], &b"\xe9"[..]),
            (b"LIKE '\xe9%'", b"\xe9%"),
            (b"IN ('\xe9', 'y')", b"\xe9"),
            (b"BETWEEN '\xe9' AND '\xe9z'", b"\xe9"),
        ] {
            let select = format!("SELECT CAST(COUNT(*) AS CHAR) FROM t WHERE {column} ");
            let text = [select.as_bytes(), condition].concat();
            let shown = text.escape_ascii();
            assert_eq!(wire.row(&text), b"5", "{shown}");
            let operator = condition.split(|byte| *byte == b' ').next();
            let operator = operator.filter(|it| *it != b"IN" && *it != b"BETWEEN");
            let text = [select.as_bytes(), operator.unwrap_or(b"="), b" ?"].concat();
            assert_eq!(wire.prepared(&text, &[parameter]).rows, [b"5"], "{shown}");
        }
    }
    // A BLOB parameter is bytes.
    let id = wire.prepare(b"SELECT HEX(?), CHARSET(?)");
    let reply = wire.execute(id, &[b"\xe9", b"\xe9"], BLOB);
    assert_eq!(reply.rows, [b"E9|binary"]);
    set_names(&mut wire, "latin1", "utf8mb4");
    let reply = wire.execute(id, &[b"\xe9", b"\xe9"], VARCHAR);
    assert_eq!(reply.rows, [b"C3A9|utf8mb4"]);
}

/// The same text from two clients is two statements.
#[test]
fn clients_of_other_character_sets_share_no_plan() {
    let server = start();
    let mut utf8 = Wire::with_database(&server, UTF8MB4);
    let mut latin1 = Wire::with_database(&server, LATIN1);
    let mut mixed = Wire::with_database(&server, LATIN1);
    set_names(&mut mixed, "latin1", "utf8mb4");
    utf8.run(b"CREATE TABLE one (a VARCHAR(9))");
    utf8.run(b"INSERT INTO one VALUES ('x')");
    for _ in 0..2 {
        for (wire, bytes, expected) in [
            (&mut utf8, &b"\xc3\xa9"[..], &b"C3A9|C3A9|C3A9"[..]),
            (&mut latin1, b"\xe9", b"E9|E9|E9"),
            (&mut mixed, b"\xe9", b"C3A9|E9|C3A9"),
        ] {
            let parts: [&[u8]; 5] = [
                b"SELECT HEX('",
                bytes,
                b"'), HEX(_latin1'",
                bytes,
                b"'), HEX(?) FROM one WHERE a = 'x'",
            ];
            let text = parts.concat();
            assert_eq!(wire.prepared(&text, &[bytes]).rows, [expected]);
            let text = text.escape_ascii().to_string();
            let with_value = parts[..4].concat();
            let with_value = [&with_value, &b"'), HEX('"[..], bytes, b"') FROM one"].concat();
            assert_eq!(wire.row(&with_value), expected, "{text}");
        }
    }
}

#[test]
fn names_and_errors_go_out_in_the_character_set_of_the_results() {
    let server = start();
    let mut wire = Wire::with_database(&server, LATIN1);
    wire.run(b"CREATE TABLE `t\xe9` (`c\xe9` INT)");
    wire.run(b"INSERT INTO `t\xe9` VALUES (1)");
    for (text, name) in [
        (&b"SELECT * FROM `t\xe9`"[..], &b"c\xe9"[..]),
        (b"SELECT '\xe9'", b"\xe9"),
        (b"SELECT 1 AS `a\xe9`", b"a\xe9"),
        (b"SELECT UPPER('\xe9')", b"UPPER('\xe9')"),
        (b"SHOW TABLES LIKE '%\xe9'", b"Tables_in_d (%\xe9)"),
    ] {
        assert_eq!(wire.query(text).names, [name], "{}", text.escape_ascii());
    }
    let utf8 = b"SELECT HEX(table_name) FROM information_schema.tables WHERE table_name = 't\xe9'";
    assert_eq!(wire.row(utf8), b"74C3A9");
    let signal = b"SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'caf\xe9'";
    let integer = b"INSERT INTO `t\xe9` VALUES ('\xe9')";
    for (text, message) in [
        (
            &b"SELECT * FROM `n\xe9`"[..],
            &b"Table 'd.n\xe9' doesn't exist"[..],
        ),
        (signal, b"caf\xe9"),
        (
            integer,
            b"Incorrect integer value: '\xe9' for column `d`.`t\xe9`.`c\xe9` at row 1",
        ),
    ] {
        let error = wire.query(text).error.expect("it fails");
        assert_eq!(
            error.escape_ascii().to_string(),
            message.escape_ascii().to_string()
        );
        let warning = wire.query(b"SHOW WARNINGS").rows.remove(0);
        assert!(warning.ends_with(message), "{}", warning.escape_ascii());
    }
    assert_eq!(
        wire.prepared(b"SELECT CAST('\xe9' = 1 AS CHAR)", &[]).rows,
        [b"0"]
    );
    let warning = wire.row(b"SHOW WARNINGS");
    let expected = b"Warning|1292|Truncated incorrect DECIMAL value: '\xe9'";
    assert_eq!(warning, expected);
    for (results, name, message) in [
        ("latin1", &b"?\xe9"[..], &b"\\0416\xe9"[..]),
        ("ascii", b"??", b"\\0416\\00E9"),
        (
            "utf8mb4",
            "\u{416}\u{e9}".as_bytes(),
            "\u{416}\u{e9}".as_bytes(),
        ),
        (
            "NULL",
            "\u{416}\u{e9}".as_bytes(),
            "\u{416}\u{e9}".as_bytes(),
        ),
    ] {
        wire.run(b"SET NAMES utf8mb4");
        wire.run(format!("SET character_set_results = {results}").as_bytes());
        let reply = wire.query("SELECT 1 AS `\u{416}\u{e9}`".as_bytes());
        assert_eq!(reply.names, [name], "{results}");
        let error = wire.query("CALL `\u{416}\u{e9}`()".as_bytes()).error;
        let expected = [b"PROCEDURE d.", message, b" does not exist"].concat();
        assert_eq!(error, Some(expected), "{results}");
    }
}

#[test]
fn files_are_loaded_in_their_own_character_set() {
    let server = start();
    let mut wire = Wire::with_database(&server, LATIN1);
    wire.run(
        b"CREATE TABLE f (u VARCHAR(9), l VARCHAR(9) CHARACTER SET latin1, b VARBINARY(9), \
          s VARCHAR(9))",
    );
    for (options, file, expected) in [
        (
            &b"FIELDS TERMINATED BY ',' (u, l, b) SET s = '\xe9'"[..],
            &b"\xc3\xa9,\xc3\xa9,\xc3\xa9\n"[..],
            &b"C3A9|E9|C3A9|C3A9"[..],
        ),
        (
            b"CHARACTER SET latin1 FIELDS TERMINATED BY ',' (u, l, @b) SET b = @b, s = '\xe9'",
            b"\xe9,\xe9,\xe9\n",
            b"C3A9|E9|E9|C3A9",
        ),
        (
            b"CHARACTER SET latin1 FIELDS TERMINATED BY '\xe9' (u, l, b) SET s = ''",
            b"a\xe9b\xe9c\n",
            b"61|62|63|",
        ),
    ] {
        wire.run(b"TRUNCATE TABLE f");
        let load = [b"LOAD DATA LOCAL INFILE '\xe9.txt' INTO TABLE f ", options].concat();
        wire.command(&[&[QUERY], load.as_slice()].concat());
        assert_eq!(wire.reply(false, file).error, None);
        assert_eq!(wire.asked_file, b"\xe9.txt");
        let row = wire.row(b"SELECT HEX(u), HEX(l), HEX(b), HEX(s) FROM f");
        assert_eq!(row, expected, "{}", options.escape_ascii());
    }
}

#[test]
fn programs_and_prepared_statements_keep_how_they_were_read() {
    let server = start();
    let mut latin1 = Wire::with_database(&server, LATIN1);
    latin1.run(
        b"CREATE PROCEDURE p(x VARCHAR(9) CHARACTER SET latin1) \
          BEGIN DECLARE v VARCHAR(9) CHARACTER SET utf8mb4 DEFAULT '\xe9'; \
          SELECT HEX(x), HEX(v), x = '\xe9', HEX('\xe9'), HEX(_latin1'\xe9'), \
          @@character_set_client, '\xe9' AS `\xe9`; END",
    );
    latin1.run(b"CREATE FUNCTION f() RETURNS VARCHAR(9) CHARACTER SET utf8mb4 RETURN '\xe9'");
    let id = latin1.prepare(b"SELECT HEX('\xe9'), HEX(_latin1'\xe9'), '\xe9'");
    latin1.run(b"PREPARE s FROM 'SELECT HEX(\"\xe9\"), HEX(_latin1\"\xe9\"), HEX(?), CHARSET(?)'");
    latin1.run(b"SET @v = '\xe9'");
    let mut utf8 = Wire::with_database(&server, UTF8MB4);
    for (wire, bytes) in [
        (&mut latin1, &b"\xe9"[..]),
        (&mut utf8, "\u{e9}".as_bytes()),
    ] {
        let reply = wire.query(&[b"CALL p('", bytes, b"')"].concat());
        assert_eq!(reply.rows, [[b"E9|C3A9|1|E9|E9|latin1|", bytes].concat()]);
        assert_eq!(reply.names[6], bytes);
        assert_eq!(wire.row(b"SELECT HEX(f())"), b"C3A9");
    }
    latin1.run(b"SET NAMES utf8mb4");
    let reply = latin1.execute(id, &[], VARCHAR);
    assert_eq!(reply.rows, ["E9|E9|\u{e9}".as_bytes()]);
    assert_eq!(latin1.row(b"EXECUTE s USING @v, @v"), b"E9|E9|C3A9|utf8mb4");
    // Variables of a block have the database's character set.
    latin1.run(b"SET NAMES latin1");
    let block = b"BEGIN NOT ATOMIC DECLARE v VARCHAR(9) DEFAULT '\xe9'; SELECT HEX(v); END";
    assert_eq!(latin1.row(block), b"C3A9");
}

#[test]
fn values_of_statements_that_are_no_plans() {
    let server = start();
    let mut wire = Wire::with_database(&server, LATIN1);
    let immediate = b"EXECUTE IMMEDIATE 'SELECT HEX(\"\xe9\"), 1 AS `\xe9`'";
    assert_eq!(wire.row(immediate), b"E9|1");
    assert_eq!(wire.query(immediate).names[1], b"\xe9");
    assert_eq!(
        wire.row(b"EXECUTE IMMEDIATE 'SELECT HEX(?)' USING '\xe9'"),
        b"E9"
    );
    wire.run(b"SET @a = '\xe9'");
    assert_eq!(
        wire.row(b"SELECT HEX(@a), CHARSET(@a), @a = '\xe9'"),
        b"E9|latin1|1"
    );
    let id = wire.prepare(b"SET @p = ?");
    assert_eq!(wire.execute(id, &[b"\xe9"], VARCHAR).error, None);
    assert_eq!(wire.row(b"SELECT HEX(@p), CHARSET(@p)"), b"E9|latin1");
    wire.run(b"CREATE TABLE s AS SELECT '\xe9' AS x");
    assert_eq!(wire.row(b"SELECT HEX(x), CHARSET(x) FROM s"), b"E9|latin1");
    wire.run(b"CREATE TABLE e (n ENUM('\xe9', 'b'), c INT COMMENT '\xe9')");
    wire.run(b"INSERT INTO e (n) VALUES ('\xe9')");
    assert_eq!(
        wire.row(b"SELECT HEX(n), n FROM e WHERE n = '\xe9'"),
        b"C3A9|\xe9"
    );
    // A password is the bytes that the client sends.
    wire.run(b"CREATE USER u@localhost IDENTIFIED BY 'p\xe9'");
    let hash = wire.row(b"SELECT PASSWORD('p\xe9')");
    let grants = wire.row(b"SHOW GRANTS FOR u@localhost");
    assert!(
        grants.windows(hash.len()).any(|part| part == hash),
        "{}",
        grants.escape_ascii()
    );
    wire.run(b"SET NAMES utf8mb4");
    assert_eq!(wire.row(b"SELECT HEX(@a)"), b"E9");
    let text = "EXECUTE IMMEDIATE 'SELECT HEX(?), CHARSET(?)' USING @a, @a";
    assert_eq!(wire.row(text.as_bytes()), b"C3A9|utf8mb4");
}

#[test]
fn the_rest_of_a_text_is_read_as_its_first_statement_says() {
    let server = start();
    let mut wire = Wire::with_database(&server, UTF8MB4);
    for (text, expected) in [
        (
            &b"SET NAMES latin1; SELECT HEX('\xe9'), HEX(_latin1'\xe9'), '\xe9'"[..],
            &b"E9|E9|\xe9"[..],
        ),
        (
            b"SET NAMES utf8mb4; SELECT HEX('\xc3\xa9'), HEX(_latin1'\xc3\xa9'), '\xc3\xa9'",
            b"C3A9|C3A9|\xc3\xa9",
        ),
    ] {
        assert_eq!(wire.query(text), Reply::default());
        assert_eq!(wire.reply(false, b"").rows, [expected]);
    }
}

#[test]
fn a_login_names_its_database_in_its_own_character_set() {
    let server = start();
    let mut wire = Wire::with_database(&server, LATIN1);
    wire.run(b"CREATE DATABASE `d\xe9`");
    for (collation, name) in [(LATIN1, &b"d\xe9"[..]), (UTF8MB4, "d\u{e9}".as_bytes())] {
        let mut wire = Wire::login(&server, collation, name).expect("the database is there");
        let expected = [b"64C3A9|", name].concat();
        assert_eq!(wire.row(b"SELECT HEX(DATABASE()), DATABASE()"), expected);
    }
    let refused = Wire::login(&server, LATIN1, b"n\xe9").map(drop);
    let error = refused.expect_err("there is none").error;
    assert_eq!(error, Some(b"Unknown database 'n\xe9'".to_vec()));
}
