//! The only condition that columns have: `CHECK (json_valid(column))`.

use errcode::{ClientError, ER_CONSTRAINT_FAILED};
use expression::Rows;
use store::{ColumnDefinition, TableDefinition};
use value::{Level, ValueRef, json};

use crate::Outcome;
use crate::context::Context;

/// Whether the row `rows[0]` may be written. If not, error 4025, or a warning if the statement
/// skips such rows.
pub(super) fn is_allowed(
    cx: &Context<'_>,
    rows: &Rows,
    definition: &TableDefinition,
    is_ignore: bool,
) -> Outcome<bool> {
    for (place, column) in definition.columns.iter().enumerate() {
        if !column.is_json || is_json(cx, rows.get(0, place), column)? {
            continue;
        }
        let name = &definition.name;
        let constraint = format!("{}.{}", name.table, column.name);
        let facts: [&dyn std::fmt::Display; 3] = [&constraint, &name.database, &name.table];
        let error = ClientError::new(ER_CONSTRAINT_FAILED, &facts);
        if !is_ignore {
            return Err(error.into());
        }
        cx.statement.warn(error);
        return Ok(false);
    }
    Ok(true)
}

/// Whether the column's value is NULL or JSON; if not, adds a note with the position of the error.
fn is_json(cx: &Context<'_>, value: ValueRef<'_>, column: &ColumnDefinition) -> Outcome<bool> {
    let ValueRef::Bytes(text) = value else {
        return Ok(true);
    };
    let spend = |bytes| cx.statement.spend(bytes);
    let fault = json::fault_of(text, column.column_type.charset(), &spend)?;
    if let Some(fault) = fault {
        let note = fault.note(1, "json_valid");
        cx.statement.diagnostics.warnings().push(Level::Note, note);
    }
    Ok(fault.is_none())
}
