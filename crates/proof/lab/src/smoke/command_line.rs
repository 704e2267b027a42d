//! The command-line client `mariadb`: typed input, logins by every method, rows of 17 MiB, and
//! sessions whose connection or server is lost.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use testkit::Launch;
use testkit::folder::Folder;
use testkit::process::run as run_program;

use super::{Abilities, mariadb, types};
use crate::target::{Running, reference};

/// Bytes of the large row.
const BIG_BYTES: usize = 17 << 20;

pub(super) fn command_line(running: &Running, abilities: &Abilities) -> Result<()> {
    tables_and_errors(running)?;
    load_file(running)?;
    logins(running, abilities)?;
    large_row(running)?;
    every_type(running)?;
    killed(running)
}

/// Statements, formatted tables, errors with number and state.
fn tables_and_errors(running: &Running) -> Result<()> {
    let statements = "CREATE TABLE IF NOT EXISTS typed (id INT PRIMARY KEY, v VARCHAR(20)); \
                      REPLACE INTO typed VALUES (1, 'one'), (2, NULL); \
                      SELECT * FROM typed ORDER BY id; SHOW TABLES LIKE 'typed'; DESCRIBE typed;";
    let output = run_program(mariadb(running.port(), "smoke").args(["-t", "-e", statements]))?;
    for line in [
        "|  1 | one  |",
        "|  2 | NULL |",
        "| typed ",
        "| id    | int(11)",
    ] {
        ensure!(output.contains(line), "no line {line} in\n{output}");
    }
    let error = run_program(mariadb(running.port(), "smoke").args(["-e", "SELECT * FROM missing"]))
        .err()
        .context("an unknown table is an error")?;
    ensure!(
        format!("{error:#}").contains("ERROR 1146 (42S02)"),
        "{error:#}"
    );
    for statement in [
        "STATUS",
        "SHOW DATABASES",
        "SHOW PROCESSLIST",
        "SHOW WARNINGS",
    ] {
        run_program(mariadb(running.port(), "smoke").args(["-e", statement]))
            .with_context(|| statement.to_owned())?;
    }
    Ok(())
}

/// A file of the client becomes rows, with quotes, escapes, NULL and duplicate rows.
fn load_file(running: &Running) -> Result<()> {
    let folder = Folder::new("load")?;
    let path = folder.path().join("rows.csv");
    std::fs::write(
        &path,
        "head\n1,\"a,\"\"b\"\"\"\n2,\\N\n1,\"in the way\"\n3,c\\td",
    )?;
    let statements = format!(
        "DROP TABLE IF EXISTS loaded; \
         CREATE TABLE loaded (id INT PRIMARY KEY, v VARCHAR(20), twice INT); \
         LOAD DATA LOCAL INFILE '{}' INTO TABLE loaded FIELDS TERMINATED BY ',' ENCLOSED BY '\"' \
         IGNORE 1 LINES (id, v) SET twice = id * 2; \
         SELECT 'rows', ROW_COUNT(); SELECT id, HEX(v), twice FROM loaded ORDER BY id;",
        path.display()
    );
    let mut command = mariadb(running.port(), "smoke");
    let output = run_program(command.args(["--local-infile=1", "-N", "-e", &statements]))?;
    for line in ["rows\t3", "1\t612C226222\t2", "2\tNULL\t4", "3\t630964\t6"] {
        ensure!(output.contains(line), "no line {line} in\n{output}");
    }
    Ok(())
}

/// Each method over TCP, TLS and the socket, with the right and a wrong password. Each way has new
/// accounts, so that a method's faster second login does not replace the first.
fn logins(running: &Running, abilities: &Abilities) -> Result<()> {
    let port = format!("-P{}", running.port());
    let mut ways = vec![(
        "tcp",
        vec!["-h127.0.0.1".to_owned(), port.clone(), "--skip-ssl".into()],
    )];
    if abilities.has_tls {
        let options = [
            "-h127.0.0.1",
            &port,
            "--ssl",
            "--skip-ssl-verify-server-cert",
        ];
        ways.push(("tls", options.map(str::to_owned).to_vec()));
    }
    if let Some(socket) = running.socket() {
        ways.push((
            "socket",
            vec![format!("-S{}", socket.display()), "--skip-ssl".into()],
        ));
    }
    for method in &abilities.methods {
        for (way, options) in &ways {
            login(running, method, way, options)
                .with_context(|| format!("login by {method} over {way}"))?;
        }
    }
    Ok(())
}

fn login(running: &Running, method: &str, way: &str, options: &[String]) -> Result<()> {
    let user = format!("cli_{method}_{way}");
    let account = super::account_statement(method, &user).context("a known method")?;
    let mut root = running.connect()?;
    root.run(&account)?;
    root.run(&format!("GRANT ALL ON smoke.* TO {user}@'%'"))?;
    let client = |password: &str| {
        let mut command = Command::new("mariadb");
        let statement = "SELECT CURRENT_USER(); SHOW STATUS LIKE 'Ssl_cipher'; SELECT 'done'";
        command.args(["--no-defaults", "-N", "-D", "smoke", "-e", statement]);
        command
            .arg(format!("-u{user}"))
            .arg(format!("-p{password}"))
            .args(options);
        run_program(&mut command)
    };
    let refused = client("wrong").err().context("a wrong password logs in")?;
    ensure!(
        format!("{refused:#}").contains("ERROR 1045 (28000)"),
        "{refused:#}"
    );
    // The second login of a method may take another path than the first.
    for _ in 0..2 {
        let output = client("pw")?;
        ensure!(output.starts_with(&format!("{user}@%\n")), "{output}");
        let has_cipher = output.lines().any(|line| {
            line.strip_prefix("Ssl_cipher\t")
                .is_some_and(|cipher| !cipher.is_empty())
        });
        ensure!(has_cipher == (way == "tls"), "cipher: {output}");
        ensure!(output.ends_with("done\n"), "{output}");
    }
    root.run(&format!("DROP USER {user}@'%'"))?;
    Ok(())
}

/// A text of 17 MiB is inserted as a literal and read back unchanged.
fn large_row(running: &Running) -> Result<()> {
    let text: String = (0..BIG_BYTES)
        .map(|index| char::from(b'a' + u8::try_from(index * index % 25).expect("below 25")))
        .collect();
    let folder = Folder::new("large")?;
    let path = folder.path().join("large.sql");
    std::fs::write(
        &path,
        format!(
            "DROP TABLE IF EXISTS large;\nCREATE TABLE large (id INT PRIMARY KEY, v LONGTEXT);\n\
             INSERT INTO large VALUES (1, '{text}');\nSELECT v FROM large;\nDROP TABLE large;\n"
        ),
    )?;
    let source = format!("source {}", path.display());
    let mut command = mariadb(running.port(), "smoke");
    let output = run_program(command.args(["--max-allowed-packet=64M", "-N", "-e", &source]))?;
    ensure!(
        output.trim_end() == text,
        "{} bytes came back of {BIG_BYTES}",
        output.len()
    );
    Ok(())
}

/// The client shows every type as it does with MariaDB.
fn every_type(running: &Running) -> Result<()> {
    let other = Running::of(reference().start()?);
    let mut seen = Vec::new();
    for server in [running, &other] {
        types::create(server, "shown")?;
        seen.push(types::shown(server, "shown")?);
        server.connect()?.run("DROP DATABASE shown")?;
    }
    ensure!(seen[0] == seen[1], "got\n{}\nfor\n{}", seen[0], seen[1]);
    Ok(())
}

/// A killed session gets the error, and can connect again (`\\r`; the client reconnects by itself
/// only at a terminal).
fn killed(running: &Running) -> Result<()> {
    let folder = Folder::new("killed")?;
    let path = folder.path().join("killed.sql");
    let script =
        "SELECT 'before';\nKILL CONNECTION_ID();\n\\r smoke\nSELECT 'after', DATABASE();\n";
    std::fs::write(&path, script)?;
    let mut command = mariadb(running.port(), "smoke");
    let output = command
        .args(["-N", "--force"])
        .stdin(File::open(&path)?)
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let closed = match running.is_before_galera() {
        // A Galera member closes the connection without a word.
        true => ["ERROR 2013", "ERROR 1158"]
            .iter()
            .any(|it| errors.contains(it)),
        false => false,
    };
    ensure!(closed || errors.contains("ERROR 1927 (70100)"), "{errors}");
    ensure!(is_answered(&text, "before"), "{text}{errors}");
    ensure!(is_answered(&text, "after\tsmoke"), "{text}{errors}");
    Ok(())
}

fn is_answered(output: &str, answer: &str) -> bool {
    output.lines().any(|line| line == answer)
}

/// A client survives a restart of the server: it reports the loss, and reconnects.
pub(super) fn restarted(launch: Launch) -> Result<()> {
    let mut server = launch.start()?;
    server.connect()?.run("CREATE DATABASE smoke")?;
    let mut client = mariadb(server.port(), "smoke")
        .args(["-N", "-n", "--force"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut input = client.stdin.take().context("its input is a pipe")?;
    let mut output = BufReader::new(client.stdout.take().context("its output is a pipe")?);
    writeln!(input, "SELECT 'before', DATABASE();")?;
    let mut before = String::new();
    output.read_line(&mut before)?;
    server.stop()?;
    server.start_again()?;
    writeln!(
        input,
        "SELECT 'lost';\n\\r smoke\nSELECT 'after', DATABASE();"
    )?;
    drop(input);
    let mut rest = String::new();
    output.read_to_string(&mut rest)?;
    client.wait()?;
    ensure!(
        before == "before\tsmoke\n",
        "before the restart: {before:?}"
    );
    ensure!(
        is_answered(&rest, "after\tsmoke"),
        "after the restart: {rest:?}"
    );
    ensure!(
        !is_answered(&rest, "lost"),
        "the lost connection answered: {rest:?}"
    );
    Ok(())
}
