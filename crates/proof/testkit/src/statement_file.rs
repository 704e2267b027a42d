//! Files of statements with their results: one or several sessions as text.
//!
//! ```text
//! # a comment
//! > SELECT 1
//! 1
//! two> SELECT 2          -- on a connection of its own, opened at its first use
//! 2
//! two& SELECT SLEEP(1)   -- only sent; `two<` reads its result
//! ```

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use anyhow::Result;

use crate::{Client, Outcome};

/// The file with the server's results.
pub fn answer(connect: &dyn Fn() -> Result<Client>, text: &str) -> Result<String> {
    let mut clients: BTreeMap<String, Client> = BTreeMap::new();
    let mut setup = connect()?;
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
                let mut client = connect()?;
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
pub fn difference(expected: &str, answered: &str) -> String {
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
