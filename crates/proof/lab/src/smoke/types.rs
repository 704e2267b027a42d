//! A database with a column of every type: its creation, and what a client sees of it.

use anyhow::{Context, Result};
use testkit::folder::repository_root;
use testkit::process::run as run_program;

use super::mariadb;
use crate::target::Running;

/// The tables that `every_type.sql` creates.
const TABLES: [&str; 4] = ["numbers", "texts", "moments", "shapes"];

/// Creates the tables in a new database, with the command-line client.
pub(super) fn create(running: &Running, database: &str) -> Result<()> {
    running
        .connect()?
        .run(&format!("CREATE DATABASE {database} CHARACTER SET utf8mb4"))?;
    let path = repository_root().join("crates/proof/lab/data/every_type.sql");
    let source = format!("source {}", path.display());
    run_program(mariadb(running.port(), database).args(["-e", &source]))
        .map(drop)
        .context("the tables of every type")
}

/// All rows as the command-line client shows them, geometries as text too.
pub(super) fn shown(running: &Running, database: &str) -> Result<String> {
    let mut statements = String::from("SET NAMES utf8mb4, time_zone = '+00:00'; ");
    for table in TABLES {
        statements.push_str(&format!("SELECT * FROM {table} ORDER BY id; "));
    }
    statements.push_str("SELECT ST_AsText(g), ST_SRID(g), ST_AsText(my), ST_AsText(c) FROM shapes");
    run_program(mariadb(running.port(), database).args(["-e", &statements]))
}

/// The output of SHOW CREATE TABLE for the tables.
pub(super) fn definitions(running: &Running, database: &str) -> Result<String> {
    let show = |table: &str| format!("SHOW CREATE TABLE {table}; ");
    let statements: String = TABLES.into_iter().map(show).collect();
    run_program(mariadb(running.port(), database).args(["-e", &statements]))
}
