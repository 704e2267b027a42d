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
//! `UPDATE_EXPECT=1` rewrites the results; with `REFERENCE=mariadb` it writes MariaDB's. A file
//! says in a comment where we differ from MariaDB on purpose.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};

use testkit::{Client, Launch, Outcome, Server};

#[test]
fn files_get_the_answers_that_they_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/statements");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let only = std::env::var("ONLY").unwrap_or_default();
    let server = Launch::asked_for(env!("CARGO_BIN_EXE_plateau"))
        .start()
        .unwrap();
    let mut failures = Vec::new();
    for file in files {
        if !file.to_string_lossy().contains(&only) {
            continue;
        }
        let expected = std::fs::read_to_string(&file).unwrap();
        let answered = answer(&server, &expected).unwrap();
        if answered == expected {
            continue;
        }
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&file, &answered).unwrap();
        } else {
            failures.push(format!(
                "{}:\n{}",
                file.display(),
                difference(&expected, &answered)
            ));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The file with the server's results.
fn answer(server: &Server, text: &str) -> anyhow::Result<String> {
    let mut clients: BTreeMap<String, Client> = BTreeMap::new();
    let mut setup = server.connect()?;
    setup.run("CREATE OR REPLACE DATABASE test_of_statements")?;
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
            out.push_str(&format!("= error {} {}\n", error.number, error.state));
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
