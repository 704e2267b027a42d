//! Smoke suite of sqlx; see suites/README.md.

use std::process::ExitCode;

use sqlx::mysql::{MySqlConnectOptions, MySqlConnection, MySqlSslMode};
use sqlx::{ConnectOptions, Connection, Executor, Row};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn options(user: &str) -> MySqlConnectOptions {
    let port = std::env::args().nth(1).and_then(|port| port.parse().ok()).unwrap_or(4006);
    let options = MySqlConnectOptions::new().host("127.0.0.1").port(port).username(user);
    options.database("smoke").ssl_mode(MySqlSslMode::Disabled)
}

async fn root() -> Result<MySqlConnection> {
    Ok(options("root").connect().await?)
}

async fn types() -> Result<()> {
    let mut connection = root().await?;
    connection.execute("DROP TABLE IF EXISTS rust_types").await?;
    connection
        .execute(
            "CREATE TABLE rust_types (id INT NOT NULL PRIMARY KEY, b BIGINT, u BIGINT UNSIGNED, \
             d DOUBLE, t TEXT, x BLOB)",
        )
        .await?;
    for id in 1..=2 {
        let is_full = id == 1;
        sqlx::query("INSERT INTO rust_types VALUES (?, ?, ?, ?, ?, ?)")
            .bind(id)
            .bind(is_full.then_some(i64::MIN))
            .bind(is_full.then_some(u64::MAX))
            .bind(is_full.then_some(-2.5e-10_f64))
            .bind(is_full.then_some("h\u{e9}llo \u{1f600}"))
            .bind(is_full.then_some(vec![0_u8, 1, 255]))
            .execute(&mut connection)
            .await?;
    }
    let rows = sqlx::query("SELECT b, u, d, t, x FROM rust_types WHERE id > ? ORDER BY id")
        .bind(0)
        .fetch_all(&mut connection)
        .await?;
    assert_eq!(rows[0].try_get::<i64, _>(0)?, i64::MIN);
    assert_eq!(rows[0].try_get::<u64, _>(1)?, u64::MAX);
    assert_eq!(rows[0].try_get::<f64, _>(2)?, -2.5e-10);
    assert_eq!(rows[0].try_get::<String, _>(3)?, "h\u{e9}llo \u{1f600}");
    assert_eq!(rows[0].try_get::<Vec<u8>, _>(4)?, [0, 1, 255]);
    assert!(rows[1].try_get::<Option<i64>, _>(0)?.is_none());
    assert!(rows[1].try_get::<Option<String>, _>(3)?.is_none());
    Ok(())
}

/// All types as the server writes them as text, by the protocol that is asked for: `execute` of a
/// plain text uses COM_QUERY, of a query with values COM_STMT_EXECUTE.
async fn texts() -> Result<()> {
    let mut connection = root().await?;
    connection.execute("DROP TABLE IF EXISTS rust_texts").await?;
    let columns = TYPES.map(|(name, kind, _)| format!("{name} {kind}")).join(", ");
    let create = format!("CREATE TABLE rust_texts (id INT NOT NULL PRIMARY KEY, {columns})");
    connection.execute(create.as_str()).await?;
    let values = TYPES.map(|(_, _, value)| format!("'{value}'")).join(", ");
    let nulls = TYPES.map(|_| "NULL").join(", ");
    let places = TYPES.map(|_| "?").join(", ");
    connection.execute(format!("INSERT INTO rust_texts VALUES (1, {values})").as_str()).await?;
    connection.execute(format!("INSERT INTO rust_texts VALUES (2, {nulls})").as_str()).await?;
    let insert = format!("INSERT INTO rust_texts VALUES (?, {places})");
    let mut bound = sqlx::query(&insert).bind(3);
    for (_, _, value) in TYPES {
        bound = bound.bind(value);
    }
    bound.execute(&mut connection).await?;
    let names = TYPES.map(|(name, _, _)| format!("CAST({name} AS CHAR)")).join(", ");
    let select = format!("SELECT {names} FROM rust_texts ORDER BY id");
    let by_text = connection.fetch_all(select.as_str()).await?;
    let by_statement = sqlx::query(&select).fetch_all(&mut connection).await?;
    for rows in [by_text, by_statement] {
        assert_eq!(rows.len(), 3);
        for (place, (name, _, value)) in TYPES.into_iter().enumerate() {
            for full in [0, 2] {
                let found: Option<String> = rows[full].try_get(place)?;
                assert_eq!(found.as_deref(), Some(value), "{name}");
            }
            assert!(rows[1].try_get::<Option<String>, _>(place)?.is_none(), "{name}");
        }
    }
    Ok(())
}

/// Types, and a value of each as its text.
const TYPES: [(&str, &str, &str); 17] = [
    ("ti", "TINYINT", "-128"),
    ("tu", "TINYINT UNSIGNED", "255"),
    ("si", "SMALLINT", "-32768"),
    ("mi", "MEDIUMINT", "8388607"),
    ("i", "INT", "-2147483648"),
    ("iu", "INT UNSIGNED", "4294967295"),
    ("de", "DECIMAL(20,5)", "-123456789012345.67890"),
    ("fl", "FLOAT", "-2.25"),
    ("ch", "CHAR(10)", "char"),
    ("vc", "VARCHAR(50)", "h\u{e9}llo"),
    ("en", "ENUM('x','y')", "y"),
    ("se", "SET('p','q')", "p,q"),
    ("d", "DATE", "2024-02-29"),
    ("dtm", "DATETIME(6)", "2024-02-29 23:59:59.123456"),
    ("ts", "TIMESTAMP(6) NULL", "2000-01-01 00:00:00.000001"),
    ("t", "TIME(6)", "-838:01:00.000000"),
    ("y", "YEAR", "2024"),
];

/// A killed connection fails, and the next one works.
async fn reconnect() -> Result<()> {
    let (mut victim, mut killer) = (root().await?, root().await?);
    let id: u64 = sqlx::query_scalar("SELECT CONNECTION_ID()").fetch_one(&mut victim).await?;
    killer.execute(format!("KILL {id}").as_str()).await?;
    assert!(victim.execute("SELECT 1").await.is_err(), "a killed connection answered");
    Ok(root().await?.ping().await?)
}

async fn errors() -> Result<()> {
    let mut connection = root().await?;
    let expected = [("SELECT * FROM missing", "42S02", 1146), ("SELEC 1", "42000", 1064)];
    for (statement, state, number) in expected {
        let error = connection.execute(statement).await.expect_err(statement);
        let of_server = error.as_database_error().ok_or("not an error of the server")?;
        let of_mysql = of_server.downcast_ref::<sqlx::mysql::MySqlDatabaseError>();
        assert_eq!(of_mysql.number(), number, "{statement}");
        let code = error.as_database_error().and_then(|error| error.code().map(String::from));
        assert_eq!(code.as_deref(), Some(state), "{statement}");
    }
    Ok(())
}

async fn transactions() -> Result<()> {
    let mut connection = root().await?;
    connection.execute("DROP TABLE IF EXISTS rust_moved").await?;
    connection.execute("CREATE TABLE rust_moved (id INT NOT NULL PRIMARY KEY)").await?;
    for keep in [false, true] {
        let mut transaction = connection.begin().await?;
        transaction.execute("INSERT INTO rust_moved VALUES (1)").await?;
        if keep { transaction.commit().await? } else { transaction.rollback().await? }
    }
    let count: i64 =
        sqlx::query_scalar("SELECT COUNT(*) FROM rust_moved").fetch_one(&mut connection).await?;
    assert_eq!(count, 1);
    Ok(())
}

async fn large() -> Result<()> {
    let mut connection = root().await?;
    connection.execute("DROP TABLE IF EXISTS rust_large").await?;
    connection.execute("CREATE TABLE rust_large (id INT NOT NULL PRIMARY KEY, b LONGBLOB)").await?;
    let value = vec![b'x'; 17 * 1024 * 1024];
    let insert = sqlx::query("INSERT INTO rust_large VALUES (1, ?)").bind(&value);
    insert.execute(&mut connection).await?;
    let found: Vec<u8> =
        sqlx::query_scalar("SELECT b FROM rust_large").fetch_one(&mut connection).await?;
    assert!(found == value, "17 MiB came back changed");
    Ok(())
}

async fn login(user: &str, mode: MySqlSslMode) -> Result<()> {
    let mut connection = options(user).password("pw").ssl_mode(mode).connect().await?;
    let current = sqlx::query_scalar("SELECT CURRENT_USER()");
    let found: String = current.fetch_one(&mut connection).await?;
    assert_eq!(found.split('@').next(), Some(user));
    let cipher = connection.fetch_one("SHOW STATUS LIKE 'Ssl_cipher'").await?;
    let is_secret = !cipher.try_get::<String, _>(1)?.is_empty();
    assert_eq!(is_secret, matches!(mode, MySqlSslMode::Required));
    Ok(())
}

fn report(name: &str, result: Result<()>) -> bool {
    match &result {
        Ok(()) => println!("ok   sqlx {name}"),
        Err(error) => println!("FAIL sqlx {name} {error}"),
    }
    result.is_ok()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let mut is_fine = true;
    let methods = std::env::var("SMOKE_METHODS").unwrap_or_default();
    let has_tls = std::env::var("SMOKE_TLS").is_ok_and(|value| value == "1");
    // sqlx 0.8 knows no ed25519.
    for method in methods.split_whitespace().filter(|method| *method != "ed25519") {
        // Without TLS, sqlx asks for the server's RSA key by itself.
        let result = login(method, MySqlSslMode::Disabled).await;
        is_fine &= report(&format!("login {method}"), result);
        if has_tls {
            let result = login(method, MySqlSslMode::Required).await;
            is_fine &= report(&format!("login {method} over TLS"), result);
        }
    }
    is_fine &= report("types", types().await);
    is_fine &= report("types as texts", texts().await);
    is_fine &= report("reconnect", reconnect().await);
    is_fine &= report("errors", errors().await);
    is_fine &= report("transactions", transactions().await);
    is_fine &= report("large row", large().await);
    if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
