//! Runs statements on both servers, and judges the results.

use std::fmt::Write;

use anyhow::{Context, Result};
use testkit::{Client, Outcome};

use crate::target::Running;

use super::statement::{Change, Statement};
use super::table::Table;

/// The two servers, queried in turns.
pub(super) struct Pair {
    reference: Client,
    candidate: Client,
    candidate_server: Running,
    _reference_server: Running,
    has_warnings: bool,
}

/// How the results of one statement compare.
pub(super) enum Verdict {
    Agree,
    /// Both refuse it.
    Refused,
    /// Refused here with error 1235.
    Unsupported,
    /// A change that one of the two refuses for an invalid number or date: the plan decides which
    /// rows are read, and when constants are converted.
    Strictness,
    /// MariaDB's result without indexes differs from its other one, and equals ours.
    TwoMinds,
    Differ(String),
}

impl Verdict {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Verdict::Agree => "agree",
            Verdict::Refused => "refused by both",
            Verdict::Unsupported => "refused here (1235)",
            Verdict::Strictness => "refused by one (1292)",
            Verdict::TwoMinds => "of two minds",
            Verdict::Differ(_) => "differ",
        }
    }
}

const OPENING: &[&str] = &[
    "SET NAMES utf8mb4",
    "SET time_zone = '+00:00'",
    "SET timestamp = 1700000000",
    "DROP DATABASE IF EXISTS drawn",
    "CREATE DATABASE drawn CHARACTER SET utf8mb4",
    "USE drawn",
];

impl Pair {
    pub(super) fn connect(
        reference_server: Running,
        candidate_server: Running,
        has_warnings: bool,
    ) -> Result<Pair> {
        Ok(Pair {
            reference: opened(&reference_server)?,
            candidate: opened(&candidate_server)?,
            candidate_server,
            _reference_server: reference_server,
            has_warnings,
        })
    }

    /// Creates the tables on both. Returns the differences between them, if any.
    pub(super) fn prepare(&mut self, tables: &[Table]) -> Result<Option<String>> {
        let setup: Vec<String> = tables.iter().flat_map(|it| it.setup.clone()).collect();
        self.make(&setup)?;
        for table in tables {
            let text = format!("SELECT * FROM {} ORDER BY id", table.name);
            let expected = answer(&mut self.reference, &text, true, false)?;
            let got = answer(&mut self.candidate, &text, true, false)?;
            if expected != got {
                let made = table.setup.join(";\n");
                return Ok(Some(format!("{made}\n{expected}--- but got\n{got}")));
            }
        }
        Ok(None)
    }

    /// Runs statements that create tables, in mode `''`.
    pub(super) fn make(&mut self, setup: &[String]) -> Result<()> {
        for client in [&mut self.reference, &mut self.candidate] {
            client.run("SET sql_mode = ''")?;
            client.run("BEGIN")?;
            for text in setup {
                client.query(text).with_context(|| text.clone())?;
            }
            client.run("COMMIT")?;
            client.run("SET sql_mode = DEFAULT")?;
        }
        Ok(())
    }

    pub(super) fn judge(&mut self, statement: &Statement, tables: &[Table]) -> Result<Verdict> {
        match statement {
            Statement::Select(_) => self.judge_select(statement, tables),
            Statement::Change(change) => {
                let text = statement.text(tables);
                let read = format!("SELECT * FROM {} ORDER BY id", change.table);
                let expected = changed(&mut self.reference, &text, &read, self.has_warnings)?;
                let got = changed(&mut self.candidate, &text, &read, self.has_warnings);
                let got = self.unless_lost(got)?;
                let is_1292 = |answer: &str| answer.starts_with("error 1292");
                if is_1292(&expected) != is_1292(&got) {
                    return Ok(Verdict::Strictness);
                }
                let verdict = verdict(&text, &expected, &got);
                if matches!(verdict, Verdict::Differ(_)) && self.has_two_minds(change, tables)? {
                    return Ok(Verdict::TwoMinds);
                }
                Ok(verdict)
            }
        }
    }

    /// True if MariaDB changes other rows without indexes.
    fn has_two_minds(&mut self, change: &Change, tables: &[Table]) -> Result<bool> {
        let Some(table) = tables.iter().find(|it| it.name == change.table) else {
            return Ok(false);
        };
        let Some(filter) = change.filter_text() else {
            return Ok(false);
        };
        let (name, keys) = (&table.name, table.keys.join(", "));
        let plain = format!("SELECT id FROM {name} WHERE {filter}");
        let bare = format!("SELECT id FROM {name} IGNORE INDEX ({keys}) WHERE {filter}");
        let plain = answer(&mut self.reference, &plain, false, false)?;
        Ok(plain != answer(&mut self.reference, &bare, false, false)?)
    }

    fn judge_select(&mut self, statement: &Statement, tables: &[Table]) -> Result<Verdict> {
        let is_ordered = statement.is_ordered();
        let text = statement.text(tables);
        let bare = statement.text_without_indexes(tables);
        let warnings = self.has_warnings;
        let expected = answer(&mut self.reference, &text, is_ordered, warnings)?;
        let got = answer(&mut self.candidate, &text, is_ordered, warnings);
        let got = self.unless_lost(got)?;
        let got_bare = answer(&mut self.candidate, &bare, is_ordered, false);
        let got_bare = self.unless_lost(got_bare)?;
        if without_warnings(&got) != without_warnings(&got_bare) {
            let said = format!(
                "{text}\n(MariaDB)\n{expected}--- with indexes\n{got}--- without\n{got_bare}"
            );
            return Ok(Verdict::Differ(said));
        }
        let verdict = verdict(&text, &expected, &got);
        if matches!(verdict, Verdict::Differ(_)) {
            let again = answer(&mut self.reference, &bare, is_ordered, warnings)?;
            if again == got {
                return Ok(Verdict::TwoMinds);
            }
        }
        Ok(verdict)
    }

    /// Reports a lost connection as a result, and opens a new one.
    fn unless_lost(&mut self, answer: Result<String>) -> Result<String> {
        match answer {
            Ok(answer) => Ok(answer),
            Err(error) => {
                self.candidate = self.candidate_server.connect()?;
                for text in OPENING.iter().filter(|it| !it.contains("DATABASE")) {
                    self.candidate.run(text)?;
                }
                Ok(format!("connection lost: {error:#}\n"))
            }
        }
    }
}

fn opened(server: &Running) -> Result<Client> {
    let mut client = server.connect()?;
    for text in OPENING {
        client.run(text)?;
    }
    Ok(client)
}

fn verdict(text: &str, expected: &str, got: &str) -> Verdict {
    let is_error = |answer: &str| answer.starts_with("error ");
    if expected == got {
        return match is_error(got) {
            true => Verdict::Refused,
            false => Verdict::Agree,
        };
    }
    match got.starts_with("error 1235") {
        true => Verdict::Unsupported,
        false => Verdict::Differ(format!("{text}\n{expected}--- but got\n{got}")),
    }
}

fn without_warnings(answer: &str) -> String {
    let lines = answer.lines().filter(|line| !line.ends_with(" warnings"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Runs a change, reads the table afterwards, and rolls back.
fn changed(client: &mut Client, text: &str, read: &str, warnings: bool) -> Result<String> {
    client.run("BEGIN")?;
    let mut said = answer(client, text, true, warnings)?;
    if !said.starts_with("error 1235") {
        said += &answer(client, read, true, false)?;
    }
    client.run("ROLLBACK")?;
    Ok(said)
}

/// A server's result of one statement.
fn answer(client: &mut Client, text: &str, is_ordered: bool, warnings: bool) -> Result<String> {
    let mut said = String::new();
    match client.query(text)? {
        Outcome::Done(done) => {
            writeln!(said, "ok, {} rows affected", done.affected_rows)?;
            if warnings {
                writeln!(said, "{} warnings", done.warning_count)?;
            }
        }
        Outcome::Error(error) => writeln!(said, "error {}", error.number)?,
        Outcome::Rows(result) => {
            let mut rows: Vec<String> = result.rows.iter().map(|row| shown(row)).collect();
            if !is_ordered {
                rows.sort();
            }
            said = rows.concat();
            if warnings {
                writeln!(said, "{} warnings", result.warning_count)?;
            }
        }
    }
    Ok(said)
}

fn shown(row: &[Option<Vec<u8>>]) -> String {
    let value = |value: &Option<Vec<u8>>| match value {
        None => "NULL".to_owned(),
        Some(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => format!("{text:?}"),
            Err(_) => format!("{bytes:02x?}"),
        },
    };
    let values: Vec<String> = row.iter().map(value).collect();
    format!("  {}\n", values.join(", "))
}
