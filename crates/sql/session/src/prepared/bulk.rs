//! COM_STMT_BULK_EXECUTE: one prepared statement with many rows of parameters.
//!
//! An INSERT or REPLACE is one statement: a failing row rolls back the rows before it. An UPDATE or
//! DELETE runs once a row, and a failure keeps the rows before it. Either way there is one commit
//! and one reply, which counts the rows together.
//!
//! A parameter may be DEFAULT or IGNORE if it alone is a column's value. For a row with such
//! parameters the tree is changed (`?` becomes DEFAULT, an assignment is removed) and planned
//! again. The plans are cached by the places of these marks.

use std::rc::Rc;

use errcode::{
    ClientError, ER_INVALID_DEFAULT_PARAM, ER_MALFORMED_PACKET, ER_TABLE_DEF_CHANGED,
    ER_UNSUPPORTED_PS,
};
use executor::{Effect, Execution, Summary};
use planner::StringRules;
use syntax::ast::{Assignment, Expr, ExprKind, InsertSource, StatementKind, ValueRows};
use value::{CollationId, ColumnType, TypeKind, Value};
use wire::{BulkExecute, BulkRows, BulkValue, Capabilities, ParameterType, StatusFlags};

use crate::connection::prepared::Prepared;
use crate::connection::reply::{Reply, Stop};
use crate::connection::row_encoder::RowProtocol;
use crate::connection::session::Session;
use crate::connection::sink::{ResultState, Rows};
use crate::prepared::parameter::parameter;
use crate::prepared::statement::unknown_statement;
use crate::statement::dispatch::{PLAN_TRY_COUNT_MAX, TURN_STATEMENT_COUNT};
use crate::statement::run::{Failed, Ran, check_parameters};
use crate::statement::statement_run::StatementRun;
use crate::worker::parsed::Parsed;

/// Plans of one command that are kept, by the places of DEFAULT and IGNORE.
const PLAN_COUNT_MAX: usize = 16;

/// What a parameter is in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Value,
    Default,
    Ignore,
}

/// A row of parameters.
#[derive(Debug, Default)]
struct Row {
    values: Vec<Value>,
    marks: Vec<Mark>,
}

/// The plans of a command.
#[derive(Debug, Default)]
struct Plans {
    kept: Vec<(Vec<Mark>, Execution)>,
    types: Vec<ColumnType>,
}

impl Session {
    /// COM_STMT_BULK_EXECUTE.
    pub(crate) async fn bulk_execute_command(
        &mut self,
        bulk: &BulkExecute<'_>,
    ) -> Result<Reply, Stop> {
        let Some(mut prepared) = self.prepared.take(bulk.statement_id) else {
            return Err(unknown_statement(
                bulk.statement_id,
                "mysqld_stmt_bulk_execute",
            ));
        };
        let around = self.enter_database(prepared.database.as_ref());
        let reply = self.bulk_execute(&mut prepared, bulk).await;
        // As in each execution, long data is of this one alone.
        prepared.long_data.clear();
        self.leave_database(around);
        self.prepared.put_back(bulk.statement_id, prepared);
        reply
    }

    async fn bulk_execute(
        &mut self,
        prepared: &mut Prepared,
        bulk: &BulkExecute<'_>,
    ) -> Result<Reply, Stop> {
        let parsed = Rc::clone(&prepared.parsed);
        let count = stdx::to_usize(parsed.statement.parameter_count);
        let is_offered = self
            .client
            .capabilities()
            .contains(Capabilities::MARIADB_BULK_OPERATIONS);
        let is_fit = match &parsed.statement.kind {
            StatementKind::Insert(insert) => insert.returning.is_empty(),
            StatementKind::Delete(delete) => delete.returning.is_empty(),
            StatementKind::Update(_) => true,
            _ => false,
        };
        if !is_offered || !is_fit || count == 0 || bulk.wants_unit_results {
            return Err(ClientError::new(ER_UNSUPPORTED_PS, &[]).into());
        }
        let rows = bulk.rows(count, &mut prepared.types).map_err(malformed)?;
        self.state.clear_diagnostics();
        self.check_may_write()?;
        if self.is_at_gate() {
            self.admit().await?;
        }
        let is_insert = matches!(parsed.statement.kind, StatementKind::Insert(_));
        let mut total = Summary::default();
        let outcome = self.bulk_rows(&parsed, rows, count, &mut total).await;
        self.state.clear_insert_id();
        let outcome = match outcome {
            Ok(()) => Ok(total),
            Err(failed) if !is_insert && failed.effect == Effect::Statement => {
                return self.keep_rows_before(failed).await;
            }
            Err(failed) => Err(failed),
        };
        match self.finish_run(outcome, false, true).await? {
            Ran::Reply(reply) => Ok(reply),
            Ran::Stale => Err(ClientError::new(ER_TABLE_DEF_CHANGED, &[]).into()),
        }
    }

    /// Handles the failure of a row whose predecessors are kept.
    async fn keep_rows_before(&mut self, failed: Failed) -> Result<Reply, Stop> {
        self.roll_back_to(failed.mark).await?;
        let is_autocommit = self.state.variables.borrow().active().autocommit;
        if !self.transaction.is_begun() && is_autocommit {
            self.commit().await?;
        }
        Err(failed.stop)
    }

    /// Runs the statement for each row, and adds up the results in `total`.
    async fn bulk_rows(
        &mut self,
        parsed: &Parsed,
        mut rows: BulkRows<'_, '_>,
        count: usize,
        total: &mut Summary,
    ) -> Result<(), Failed> {
        let strings = self.strings();
        let is_insert = matches!(parsed.statement.kind, StatementKind::Insert(_));
        let run = &StatementRun::new(&self.state, RowProtocol::Binary);
        let mut mark = self.begin_steps();
        let deadline = self.statement_deadline();
        let types = rows.types().iter();
        let types = types.map(|&of| type_of(of, strings.collation));
        let mut plans = Plans {
            types: types.collect(),
            kept: Vec::new(),
        };
        let mut row_count = 0;
        while !rows.is_done() {
            if !is_insert {
                mark = self.begin_steps();
            }
            let failed = |stop| Failed {
                stop,
                effect: Effect::Statement,
                mark,
            };
            // Each row is a run of its own, too short to yield by itself.
            if (row_count + 1_u64).is_multiple_of(TURN_STATEMENT_COUNT.into()) {
                self.give_way(deadline).await.map_err(failed)?;
            }
            let row = next_row(&mut rows, count, strings).map_err(failed)?;
            let mut try_count = 0;
            let summary = loop {
                let mut execution = match self.bulk_plan(parsed, &mut plans, &row) {
                    Ok(Some(execution)) => execution,
                    Ok(None) => break Summary::default(),
                    Err(stop) => return Err(failed(stop)),
                };
                let plan = Rc::clone(execution.plan());
                check_parameters(&plan, &row.values).map_err(|error| failed(error.into()))?;
                self.hold_tables(&plan, run).await.map_err(failed)?;
                if is_insert {
                    execution.be_part_after(row_count);
                }
                let mut result =
                    ResultState::new(RowProtocol::Binary, None, StatusFlags::default());
                let mut unsent = Rows::Client(&mut result);
                let since = (mark, deadline);
                let ran = self
                    .steps(&mut execution, &row.values, &mut unsent, run, since)
                    .await;
                try_count += 1;
                match ran {
                    Ok(summary) => {
                        plans.keep(row.marks, execution);
                        break summary;
                    }
                    Err(stale)
                        if stale.effect == Effect::StalePlan && try_count < PLAN_TRY_COUNT_MAX =>
                    {
                        plans.kept.clear();
                    }
                    Err(error) => return Err(error),
                }
            };
            self.state.clear_insert_id();
            row_count += 1;
            add(total, &summary);
        }
        if is_insert {
            self.end_parts(mark, deadline).await?;
        }
        total.records = (is_insert && row_count > 1).then_some(row_count);
        Ok(())
    }

    /// The execution for a row, or `None` if the row changes nothing.
    fn bulk_plan(
        &self,
        parsed: &Parsed,
        plans: &mut Plans,
        row: &Row,
    ) -> Result<Option<Execution>, Stop> {
        let serves = |(of, execution): &(Vec<Mark>, Execution)| {
            *of == row.marks && self.state.has_types_of(execution.plan())
        };
        if let Some(place) = plans.kept.iter().position(serves) {
            return Ok(Some(plans.kept.swap_remove(place).1));
        }
        let plan = if row.marks.iter().all(|mark| *mark == Mark::Value) {
            self.plan(parsed, &plans.types)?
        } else {
            let marked = marked(parsed, &row.marks)?;
            if matches!(&marked.statement.kind, StatementKind::Update(update)
                if update.assignments.is_empty())
            {
                return Ok(None);
            }
            self.plan(&marked, &plans.types)?
        };
        self.check_privileges(&plan)?;
        Ok(Some(Execution::new(Rc::new(plan))))
    }
}

impl Plans {
    fn keep(&mut self, marks: Vec<Mark>, execution: Execution) {
        if self.kept.len() == PLAN_COUNT_MAX {
            self.kept.remove(0);
        }
        self.kept.push((marks, execution));
    }
}

fn add(total: &mut Summary, row: &Summary) {
    total.affected_rows += row.affected_rows;
    total.matched_rows += row.matched_rows;
    total.duplicates += row.duplicates;
    total.is_insert |= row.is_insert;
    total.is_update |= row.is_update;
    if total.last_insert_id == 0 {
        total.last_insert_id = row.last_insert_id;
    }
}

fn malformed(_: wire::Malformed) -> Stop {
    ClientError::new(ER_MALFORMED_PACKET, &[]).into()
}

fn next_row(rows: &mut BulkRows<'_, '_>, count: usize, strings: StringRules) -> Result<Row, Stop> {
    let mut row = Row::default();
    for _ in 0..count {
        let (wire_type, value) = rows.next_value().map_err(malformed)?;
        let (mark, value) = match value {
            BulkValue::Value(value) => (Mark::Value, parameter(value, wire_type, strings).0),
            BulkValue::Default => (Mark::Default, Value::Null),
            BulkValue::Ignore => (Mark::Ignore, Value::Null),
        };
        row.marks.push(mark);
        row.values.push(value);
    }
    Ok(row)
}

/// The type of a parameter in all rows, whether some are NULL or not.
fn type_of(wire_type: ParameterType, collation: CollationId) -> ColumnType {
    use wire::ColumnType as Wire;
    match wire_type.column_type {
        Wire::Tiny | Wire::Short | Wire::Year | Wire::Long | Wire::Int24 | Wire::LongLong => {
            if wire_type.is_unsigned {
                ColumnType::unsigned(TypeKind::BigInt)
            } else {
                ColumnType::new(TypeKind::BigInt)
            }
        }
        Wire::Float | Wire::Double => ColumnType::new(TypeKind::Double),
        Wire::NewDecimal => ColumnType::decimal(65, 30),
        Wire::Date | Wire::DateTime | Wire::Timestamp => {
            ColumnType::temporal(TypeKind::DateTime, 6)
        }
        Wire::Time => ColumnType::temporal(TypeKind::Time, 6),
        Wire::Null => ColumnType::new(TypeKind::Null),
        Wire::TinyBlob | Wire::MediumBlob | Wire::LongBlob | Wire::Blob | Wire::Geometry => {
            ColumnType::text(TypeKind::LongText, u32::MAX, CollationId::BINARY)
        }
        _ => ColumnType::text(TypeKind::LongText, u32::MAX, collation),
    }
}

/// The statement with DEFAULT in place of marked parameters, and without ignored assignments. Error
/// 4032 if a marked parameter is not alone a column's value.
pub(crate) fn marked(parsed: &Parsed, marks: &[Mark]) -> Result<Parsed, ClientError> {
    let mut statement = parsed.statement.clone();
    let mut used = 0;
    match &mut statement.kind {
        StatementKind::Insert(insert) => {
            if let InsertSource::Values(ValueRows::Trees(rows)) = &mut insert.source {
                for value in rows.iter_mut().flatten() {
                    used += usize::from(take_mark(value, marks) != Mark::Value);
                }
            }
            used += mark_assignments(&mut insert.on_duplicate, marks);
        }
        StatementKind::Update(update) => {
            used += mark_assignments(&mut update.assignments, marks);
        }
        _ => {}
    }
    if used != marks.iter().filter(|mark| **mark != Mark::Value).count() {
        return Err(ClientError::new(ER_INVALID_DEFAULT_PARAM, &[]));
    }
    Ok(Parsed::new(statement, parsed.text.clone()))
}

/// Applies the marks of assignments. Returns how many there were.
fn mark_assignments(assignments: &mut Vec<Assignment>, marks: &[Mark]) -> usize {
    let mut used = 0;
    assignments.retain_mut(|assignment| {
        let mark = take_mark(&mut assignment.value, marks);
        used += usize::from(mark != Mark::Value);
        mark != Mark::Ignore
    });
    used
}

/// Returns the mark of a value, and replaces a marked value by DEFAULT.
fn take_mark(value: &mut Expr, marks: &[Mark]) -> Mark {
    let ExprKind::Parameter(number) = value.kind else {
        return Mark::Value;
    };
    let mark = marks.get(stdx::to_usize(number)).copied();
    let mark = mark.unwrap_or(Mark::Value);
    if mark != Mark::Value {
        value.kind = ExprKind::Default(None);
    }
    mark
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::source::Source;

    /// How many values became DEFAULT and how many assignments are left, or the error.
    fn with_marks(text: &str, marks: &[Mark]) -> Result<(usize, usize), u16> {
        let statement =
            syntax::parse::parse(text.as_bytes(), settings::SqlMode::default()).unwrap();
        let text = Source::new(text.as_bytes(), StringRules::default());
        let parsed = Parsed::new(statement, text);
        let marked = marked(&parsed, marks).map_err(|error| error.code.number())?;
        let is_default = |value: &&Expr| value.kind == ExprKind::Default(None);
        Ok(match marked.statement.kind {
            StatementKind::Insert(insert) => match &insert.source {
                InsertSource::Values(ValueRows::Trees(rows)) => {
                    (rows.iter().flatten().filter(is_default).count(), 0)
                }
                _ => (0, 0),
            },
            StatementKind::Update(update) => {
                let values = update
                    .assignments
                    .iter()
                    .map(|assignment| &assignment.value);
                (values.filter(is_default).count(), update.assignments.len())
            }
            _ => (0, 0),
        })
    }

    #[test]
    fn marks_become_defaults_or_take_assignments_away() {
        use Mark::{Default, Ignore, Value};
        for (text, marks, expected) in [
            ("INSERT INTO t VALUES (?, ?)", [Default, Ignore], Ok((2, 0))),
            ("UPDATE t SET a = ?, b = ?", [Ignore, Default], Ok((1, 1))),
            ("UPDATE t SET a = ? + 1, b = ?", [Ignore, Value], Err(4032)),
            (
                "DELETE FROM t WHERE a = ? AND b = ?",
                [Value, Default],
                Err(4032),
            ),
        ] {
            assert_eq!(with_marks(text, &marks), expected, "{text}");
        }
    }
}
