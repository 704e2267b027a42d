//! The answers of a server as text, so that those of two servers can be compared.

use std::fmt::Write;

use anyhow::Result;
use testkit::Outcome;
use testkit::client::Column;

/// The results of a statement as comparable text. Rows are sorted unless the statement orders them.
pub(crate) fn show_outcomes(
    outcomes: Vec<Outcome>,
    statement: &str,
    has_types: bool,
) -> Result<String> {
    let mut text = String::new();
    for outcome in outcomes {
        match outcome {
            Outcome::Done(done) => writeln!(
                text,
                "ok, {} rows affected, last id {}, {} warnings",
                done.affected_rows, done.last_insert_id, done.warning_count
            )?,
            Outcome::Error(error) => {
                writeln!(text, "error {} {}", error.number, error.state)?;
            }
            Outcome::Rows(result) => {
                let names: Vec<_> = result.columns.iter().map(|it| it.name.as_str()).collect();
                writeln!(text, "| {} |", names.join(" | "))?;
                if has_types {
                    for column in &result.columns {
                        writeln!(text, "  {}", show_type(column))?;
                    }
                }
                let mut rows: Vec<String> = result.rows.iter().map(|row| show_row(row)).collect();
                if !statement.to_ascii_uppercase().contains("ORDER BY") {
                    rows.sort();
                }
                rows.iter().for_each(|row| text.push_str(row));
            }
        }
    }
    Ok(text)
}

fn show_type(column: &Column) -> String {
    let Column {
        kind,
        length,
        decimals,
        flags,
        collation,
        ..
    } = column;
    format!("type {kind} length {length} decimals {decimals} flags {flags} collation {collation}")
}

fn show_row(row: &[Option<Vec<u8>>]) -> String {
    let mut text = String::from("  ");
    for value in row {
        match value {
            None => text.push_str("NULL"),
            Some(bytes) => match std::str::from_utf8(bytes) {
                Ok(value) => text.push_str(&format!("{value:?}")),
                Err(_) => text.push_str(&format!("{bytes:02x?}")),
            },
        }
        text.push_str(", ");
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_show_null_text_and_bytes() {
        let row = [None, Some(b"a\"b".to_vec()), Some(vec![0xff])];
        assert_eq!(show_row(&row), "  NULL, \"a\\\"b\", [ff], \n");
    }
}
