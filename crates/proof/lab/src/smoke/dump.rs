//! `mariadb-dump`: databases are dumped from the server under test to MariaDB and back, and vice
//! versa: sysbench's tables, and a database with a column of every type.

use std::fs::File;
use std::process::Command;

use anyhow::{Result, ensure};
use testkit::folder::Folder;
use testkit::process::run as run_program;

use super::{mariadb, types};
use crate::load::Load;
use crate::target::{Running, reference};

pub(super) fn dumps(running: &Running) -> Result<()> {
    let other = Running::of(reference().start()?);
    let folder = Folder::new("dump")?;
    sysbench(running, &other, &folder)?;
    let servers = [("here", running), ("there", &other)];
    for [(from_name, from), (_, to)] in [servers, [servers[1], servers[0]]] {
        for options in [
            &[][..],
            &["--hex-blob", "--skip-extended-insert", "--complete-insert"],
        ] {
            every_type(from, to, &folder, from_name, options)?;
        }
    }
    Ok(())
}

fn sysbench(running: &Running, other: &Running, folder: &Folder) -> Result<()> {
    for statement in ["DROP DATABASE IF EXISTS sbtest", "CREATE DATABASE sbtest"] {
        running.connect()?.run(statement)?;
    }
    let load = Load {
        script: "oltp_read_write".to_owned(),
        port: running.port(),
        tables: 2,
        rows: 2000,
        clients: 4,
        seconds: 1,
        is_prepared: true,
    };
    load.prepare()?;
    let original = sums(running, "sbtest")?;
    copy(running, "sbtest", other, "copied", folder, &[])?;
    ensure!(
        sums(other, "copied")? == original,
        "MariaDB has other sums than the dumped server"
    );
    copy(other, "copied", running, "returned", folder, &[])?;
    ensure!(
        sums(running, "returned")? == original,
        "the sums changed on the way back"
    );
    running.connect()?.run("DROP DATABASE returned")?;
    Ok(())
}

/// A database of every type, created on one server, is the same on the other and back again.
fn every_type(
    from: &Running,
    to: &Running,
    folder: &Folder,
    name: &str,
    options: &[&str],
) -> Result<()> {
    let first = format!("made_{name}");
    types::create(from, &first)?;
    let (rows, definitions) = (
        types::shown(from, &first)?,
        types::definitions(from, &first)?,
    );
    copy(from, &first, to, "sent", folder, options)?;
    let sent = types::shown(to, "sent")?;
    ensure!(
        sent == rows,
        "sent from {name} {options:?}: got\n{sent}\nfor\n{rows}"
    );
    copy(to, "sent", from, "back", folder, options)?;
    let back = types::shown(from, "back")?;
    ensure!(
        back == rows,
        "back {name} {options:?}: got\n{back}\nfor\n{rows}"
    );
    let redefined = types::definitions(from, "back")?;
    ensure!(
        redefined == definitions,
        "back {name}: defined as\n{redefined}\nfor\n{definitions}"
    );
    for (server, database) in [(from, first.as_str()), (to, "sent"), (from, "back")] {
        server
            .connect()?
            .run(&format!("DROP DATABASE {database}"))?;
    }
    Ok(())
}

fn copy(
    from: &Running,
    name: &str,
    to: &Running,
    new_name: &str,
    folder: &Folder,
    options: &[&str],
) -> Result<()> {
    let path = folder.path().join(format!("{new_name}.sql"));
    run_program(
        Command::new("mariadb-dump")
            .args([
                "--no-defaults",
                "-h127.0.0.1",
                "-uroot",
                "--skip-ssl",
                "--single-transaction",
            ])
            .args(["--routines", "--triggers", "--events"])
            .args(options)
            .arg(format!("-P{}", from.port()))
            .arg(format!("--result-file={}", path.display()))
            .arg(name),
    )?;
    to.connect()?
        .run(&format!("CREATE DATABASE {new_name} CHARACTER SET utf8mb4"))?;
    let status = mariadb(to.port(), new_name)
        .stdin(File::open(&path)?)
        .status()?;
    ensure!(status.success(), "loading the dump of {name} failed");
    Ok(())
}

fn sums(running: &Running, database: &str) -> Result<Vec<Vec<Option<Vec<u8>>>>> {
    let mut client = running.connect()?;
    let mut all = Vec::new();
    for table in 1..=2 {
        all.extend(client.rows(&format!(
            "SELECT COUNT(*), SUM(id), SUM(k), SUM(CRC32(c)), SUM(CRC32(pad)) \
             FROM {database}.sbtest{table}"
        ))?);
    }
    Ok(all)
}
