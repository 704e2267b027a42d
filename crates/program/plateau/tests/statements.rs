//! The server's results as text: each file of `tests/statements` is one or several sessions.
//!
//! ```text
//! # a comment
//! > SELECT 1
//! 1
//! two> SELECT 2          -- on a connection of its own, opened at its first use
//! 2
//! two& SELECT SLEEP(1)   -- only sent; `two<` reads its result
//! ```
//!
//! Each file is a test of its own, on a server of its own, so the tests run side by side:
//! `cargo test --package plateau --test statements file::alter`. `UPDATE_EXPECT=1` rewrites the
//! results; with `REFERENCE=mariadb` it writes MariaDB's. A file says in a comment where we differ
//! from MariaDB on purpose.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};

use testkit::{Client, Launch, Outcome, Server};

/// Declares a test for each file. The list is written out so that the tests are the standard
/// harness's, with its filters and its threads; a test holds it against the folder.
macro_rules! files {
    ($($name:ident)*) => {
        const FILES: &[&str] = &[$(stringify!($name)),*];

        mod file {
            $(
                #[test]
                fn $name() {
                    super::check(stringify!($name));
                }
            )*
        }
    };
}

files! {
    absent_by_name
    account_locks
    account_notes
    accounts_as_tables
    alter
    alter_copies
    alter_if_exists
    alter_mistakes
    alter_renames
    client_character_sets
    clock_and_role
    collations
    computed_defaults
    create_select
    dated_texts
    definition_clauses
    drop_if_exists
    engine_options
    enum_defaults
    enum_key_plans
    enum_keys
    execute_default
    explain_aliases
    explain_keys
    explain_plans
    extreme_plans
    extreme_rows
    failed_definitions
    for_loops
    functions
    geometry_texts
    handler_counts
    index_bounds
    insert_ids
    insert_subqueries
    joined_columns
    json_columns
    kept_tables
    key_constants
    key_lengths
    key_ranges
    late_columns
    lock_tables
    lone_steps
    long_common_keys
    looking_after
    looking_after_commits
    mixed_types
    names_of_tables
    negations
    password
    plan_literals
    prepared
    prepared_elsewhere
    procedure_errors
    procedure_kill
    procedure_rights
    procedures
    queues
    read_only
    refused
    rename
    rename_index
    replace_table
    returning
    routine_grants
    rows_and_warnings
    select_limit
    self_joins
    set_or_not
    set_reads
    show_in_modes
    shown_definitions
    small_functions
    time_zones
    tracking
    unique_parts
    update_reads
    user_variables
    variable_levels
    variables
    waits
    years
    zero_defaults
}

#[test]
fn every_file_has_its_test() {
    let entries = std::fs::read_dir(folder()).unwrap();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    found.sort();
    let listed: Vec<PathBuf> = FILES.iter().map(|name| path(name)).collect();
    assert_eq!(found, listed, "the list of this test, and the folder");
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/statements")
}

fn path(name: &str) -> PathBuf {
    folder().join(name).with_extension("test")
}

/// Runs a file on a fresh server, and compares or rewrites its results.
fn check(name: &str) {
    let file = path(name);
    let expected = std::fs::read_to_string(&file).expect("a file");
    let server = Launch::asked_for(env!("CARGO_BIN_EXE_plateau"))
        .start()
        .expect("the server starts");
    let answered = answer(&server, &expected).expect("connections");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&file, &answered).expect("a file");
        return;
    }
    let difference = difference(&expected, &answered);
    assert!(answered == expected, "{}:\n{difference}", file.display());
}

/// The file with the server's results.
fn answer(server: &Server, text: &str) -> anyhow::Result<String> {
    let mut clients: BTreeMap<String, Client> = BTreeMap::new();
    let mut setup = server.connect()?;
    setup.run("CREATE DATABASE test_of_statements")?;
    let mut out = String::new();
    for line in text.lines() {
        let is_kept = line.is_empty() || line.starts_with('#');
        if is_kept {
            out.push_str(line);
            out.push('\n');
            continue;
        }
        let Some((name, sign, statement)) = command(line) else {
            continue;
        };
        out.push_str(line);
        out.push('\n');
        let client = match clients.entry(name.to_owned()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let mut client = server.connect()?;
                client.run("USE test_of_statements")?;
                place.insert(client)
            }
        };
        if sign != '<' {
            client.send_query(statement.as_bytes())?;
        }
        if sign != '&' {
            match client.read_outcomes() {
                Ok(outcomes) => outcomes.iter().for_each(|outcome| show(outcome, &mut out)),
                Err(_) => out.push_str("disconnected\n"),
            }
        }
    }
    Ok(out)
}

/// `name> statement`, `name& statement`, `name<`; `None` for a line of a result.
fn command(line: &str) -> Option<(&str, char, &str)> {
    let end = line.find(|character: char| !character.is_ascii_lowercase())?;
    let (name, rest) = line.split_at(end);
    let sign = rest.chars().next()?;
    let statement = rest.get(1..)?;
    let is_command = matches!(sign, '>' | '&') && statement.starts_with(' ');
    (is_command || rest == "<").then(|| (name, sign, statement.trim_start()))
}

fn show(outcome: &Outcome, out: &mut String) {
    match outcome {
        Outcome::Done(done) => {
            out.push_str("= ok");
            for (name, number) in [
                ("affected", done.affected_rows),
                ("id", done.last_insert_id),
                ("warnings", done.warning_count.into()),
            ] {
                if number != 0 {
                    out.push_str(&format!(" {name} {number}"));
                }
            }
            if !done.session_changes.is_empty() {
                out.push_str(&format!(" ({})", done.session_changes.join(", ")));
            }
            out.push('\n');
        }
        Outcome::Rows(rows) => {
            for row in &rows.rows {
                let values: Vec<_> = row
                    .iter()
                    .map(|value| match value {
                        Some(bytes) => String::from_utf8_lossy(bytes).replace('\n', "\\n"),
                        None => "NULL".to_owned(),
                    })
                    .collect();
                out.push_str(&format!("= {}\n", values.join(" | ")));
            }
            if rows.rows.is_empty() {
                out.push_str("= no rows\n");
            }
        }
        Outcome::Error(error) => {
            let message = error.message.replace('\n', "\\n");
            let (number, state) = (error.number, &error.state);
            out.push_str(&format!("= error {number} {state} {message}\n"));
        }
    }
}

/// The first lines that differ, with a few around them.
fn difference(expected: &str, answered: &str) -> String {
    let mut shown = String::new();
    let mut statement = "";
    let mut count = 0;
    let mut expected = expected.lines();
    for line in answered.lines() {
        let wanted = expected.next().unwrap_or("(end)");
        if command(line).is_some() {
            statement = line;
        }
        if line != wanted {
            shown.push_str(&format!(
                "{statement}\n  wanted {wanted}\n  got    {line}\n"
            ));
            count += 1;
            if count == 8 {
                break;
            }
        }
    }
    shown
}
