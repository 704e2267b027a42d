//! Reduces a difference: first the statement, then the rows of the tables.

use anyhow::Result;

use super::compare::{Pair, Verdict};
use super::statement::Statement;
use super::table::Table;

/// How many times at most a statement is reduced.
const STEPS_MAX: usize = 200;

/// The smallest statement and rows found that still differ, as text.
pub(super) fn shrink(pair: &mut Pair, statement: &Statement, tables: &[Table]) -> Result<String> {
    let mut statement = statement.clone();
    let mut steps = 0;
    'smaller: while steps < STEPS_MAX {
        for candidate in statement.smaller() {
            steps += 1;
            if differs(pair, &candidate, tables)?.is_some() {
                statement = candidate;
                continue 'smaller;
            }
        }
        break;
    }
    let tables_kept = fewer_rows(pair, &statement, tables)?;
    pair.prepare(&tables_kept)?;
    let said = differs(pair, &statement, &tables_kept)?;
    let text = statement.text(tables);
    let mut report = String::new();
    for table in tables_kept.iter().filter(|it| text.contains(&it.name)) {
        report += &table.setup[1..].join(";\n");
        report += ";\n";
    }
    report += &said.unwrap_or_else(|| format!("{text}\n(with these rows alone it agrees)\n"));
    pair.prepare(tables)?;
    Ok(report)
}

fn differs(pair: &mut Pair, statement: &Statement, tables: &[Table]) -> Result<Option<String>> {
    Ok(match pair.judge(statement, tables)? {
        Verdict::Differ(said) => Some(said),
        _ => None,
    })
}

/// The tables with the fewest rows that still differ: ever smaller runs of rows are left out.
fn fewer_rows(pair: &mut Pair, statement: &Statement, tables: &[Table]) -> Result<Vec<Table>> {
    let mut kept = tables.to_vec();
    for place in 0..tables.len() {
        let mut run = kept[place].setup.len() / 2;
        while 0 < run {
            let mut start = FIRST_ROW;
            while start < kept[place].setup.len() {
                let mut fewer = kept.clone();
                let end = (start + run).min(fewer[place].setup.len());
                fewer[place].setup.drain(start..end);
                let is_same = pair.prepare(&fewer)?.is_none();
                if is_same && differs(pair, statement, &fewer)?.is_some() {
                    kept = fewer;
                } else {
                    start = end;
                }
            }
            run /= 2;
        }
    }
    Ok(kept)
}

/// The statements that drop and create the table come before it.
const FIRST_ROW: usize = 2;
