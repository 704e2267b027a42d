//! Fragments of programs: statements and expressions whose parameters are the program's variables.
//!
//! A fragment keeps the plan that it ran last, with what the plan depends on: the types of the
//! variables, the session's settings and the schema's version. So a loop plans its statements once,
//! in whichever session it runs.

use std::rc::Rc;

use errcode::{ClientError, ER_BAD_NULL_ERROR};
use executor::{Flow, Outcome, RowSink};
use expression::{Statement, fits_as_is, store_value};
use planner::{OutputColumn, StatementLimits};
use value::{ColumnType, Place, TypeKind, Value, ValueRef};

use crate::connection::frame::Frame;
use crate::connection::kept_rows::CursorRows;
use crate::connection::reply::{Reply, Stop};
use crate::connection::row_encoder::RowProtocol;
use crate::connection::session::Session;
use crate::connection::sink::Rows;
use crate::prepared::inline_parameters::inline_at;
use crate::statement::dispatch::{PLAN_TRY_COUNT_MAX, counted};
use crate::statement::run::Ran;
use crate::statement::statement_run::StatementRun;
use crate::statement::virtual_store::SessionNames;
use crate::worker::held_plans::FragmentPlan;
use crate::worker::parsed::Parsed;
use crate::worker::plan_cache::{PlanCache, SharedPlan, is_cacheable};
use crate::worker::program::Fragment;

/// Whether a doubtful value is an error in strict mode: it is if it is assigned to a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// As the mode says.
    OfMode,
    /// A warning at most.
    Lax,
}

/// A sink that keeps the first value.
#[derive(Debug, Default)]
struct FirstValue(Option<Value>);

impl RowSink for FirstValue {
    fn columns(&mut self, _: &[OutputColumn]) -> Outcome<()> {
        Ok(())
    }

    fn row(&mut self, row: &[ValueRef<'_>]) -> Outcome<Flow> {
        if self.0.is_none() {
            self.0 = row.first().map(|value| value.to_value());
        }
        Ok(Flow::More)
    }
}

impl Session {
    /// The innermost program.
    pub(crate) fn frame(&mut self) -> &mut Frame {
        self.programs
            .frames
            .last_mut()
            .expect("instructions are run by a program")
    }

    /// The values and types of a fragment's variables.
    fn locals_of(&self, fragment: &Fragment) -> Result<(Vec<Value>, Vec<ColumnType>), ClientError> {
        let Some(frame) = self.programs.frames.last() else {
            return Ok((Vec::new(), Vec::new()));
        };
        if !frame.absent.is_empty() {
            let absent = fragment.locals.iter();
            let mut absent = absent.filter_map(|(slot, _)| frame.absent.get(slot));
            if let Some(error) = absent.next() {
                return Err(error.clone());
            }
        }
        let of = |(slot, _): &(usize, syntax::Span)| {
            (frame.values[*slot].clone(), frame.types[*slot].clone())
        };
        Ok(fragment.locals.iter().map(of).unzip())
    }

    /// The plan of a fragment, new or kept.
    fn fragment_plan(
        &mut self,
        fragment: &Fragment,
        types: &[ColumnType],
        limits: StatementLimits,
    ) -> Result<Rc<SharedPlan>, Stop> {
        let mut key = std::mem::take(&mut self.buffers.key);
        self.with_key_context(|surroundings| {
            PlanCache::write_prepared_key(&mut key, b"", types, surroundings);
        });
        let schema_version = self.state.worker.plan_version();
        let worker = Rc::clone(&self.state.worker);
        let held = fragment.held.get();
        let found = worker
            .held_plans
            .borrow_mut()
            .find(held, &key, schema_version);
        let found = found.filter(|found| self.state.has_types_of(found.plan()));
        if let Some(shared) = found {
            self.buffers.key = key;
            return Ok(shared);
        }
        let names = SessionNames::new(&self.state);
        let planned = self.plan_with(&fragment.parsed, types, &names, limits);
        let is_own = names.has_asked_variable();
        let held_key = Rc::from(key.as_slice());
        self.buffers.key = key;
        let plan = planned?;
        let is_own = is_own || !is_cacheable(&plan) || !plan.warnings.is_empty();
        let shared = SharedPlan::new(plan, counted(&fragment.parsed.statement.kind));
        if !is_own {
            let plan = FragmentPlan {
                key: held_key,
                schema_version,
                shared: Rc::clone(&shared),
            };
            let ticket = worker.held_plans.borrow_mut().put(held, plan);
            fragment.held.set(Some(ticket));
        }
        Ok(shared)
    }

    /// The value of an expression, and its type.
    pub(crate) async fn evaluate(
        &mut self,
        fragment: &Fragment,
        strictness: Strictness,
    ) -> Result<(Value, ColumnType), Stop> {
        if let Some(slot) = fragment.only
            && let Some(frame) = self.programs.frames.last()
            && frame.absent.is_empty()
        {
            return Ok((frame.values[slot].clone(), frame.types[slot].clone()));
        }
        let (values, types) = self.locals_of(fragment)?;
        for _ in 0..PLAN_TRY_COUNT_MAX {
            let shared = self.fragment_plan(fragment, &types, StatementLimits::default())?;
            self.check_shared_privileges(&shared)?;
            let mut first = FirstValue::default();
            let mut execution = shared.take();
            let is_strict = strictness == Strictness::OfMode && self.has_strict_mode();
            let run = StatementRun::new(&self.state, RowProtocol::Text);
            let rows = Rows::Own {
                sink: &mut first,
                is_strict,
            };
            let ran = self.run_into(&mut execution, &values, rows, &run);
            if ran.await?.is_none() {
                continue;
            }
            shared.give_back(execution);
            let null = || ColumnType::new(TypeKind::Null);
            let column = shared.plan().columns.first();
            let column_type = column.map_or_else(null, |column| column.column_type.clone());
            return Ok((first.0.unwrap_or_default(), column_type));
        }
        Err(ClientError::new(errcode::ER_TABLE_DEF_CHANGED, &[]).into())
    }

    fn has_strict_mode(&self) -> bool {
        let variables = self.state.variables.borrow();
        variables.active().options.sql_mode.is_strict()
    }

    /// True if a condition holds: `SELECT condition IS TRUE`.
    pub(crate) async fn holds(&mut self, condition: &Fragment) -> Result<bool, Stop> {
        let (value, _) = self.evaluate(condition, Strictness::Lax).await?;
        Ok(value == Value::Int(1))
    }

    /// Runs a plan and keeps its rows. Returns `None` if the plan is stale.
    async fn run_for_rows(
        &mut self,
        shared: &SharedPlan,
        values: &[Value],
    ) -> Result<Option<CursorRows>, Stop> {
        let mut rows = CursorRows::of(&self.state);
        let mut run = StatementRun::new(&self.state, RowProtocol::Text);
        let ran = self.run_shared(shared, values, &mut run, Some(&mut rows));
        match ran.await? {
            Ran::Reply(_) => Ok(Some(rows)),
            Ran::Stale => Ok(None),
        }
    }

    /// The rows of a program's cursor.
    pub(crate) async fn cursor_rows(&mut self, fragment: &Fragment) -> Result<CursorRows, Stop> {
        let (values, types) = self.locals_of(fragment)?;
        let limits = self.state.variables.borrow().active().limits;
        for _ in 0..PLAN_TRY_COUNT_MAX {
            let shared = self.fragment_plan(fragment, &types, limits)?;
            self.check_shared_privileges(&shared)?;
            if let Some(rows) = self.run_for_rows(&shared, &values).await? {
                return Ok(rows);
            }
        }
        Err(ClientError::new(errcode::ER_TABLE_DEF_CHANGED, &[]).into())
    }

    /// Runs a statement of a program.
    pub(crate) async fn fragment_statement(
        &mut self,
        fragment: &Fragment,
        run: &mut StatementRun,
    ) -> Result<Reply, Stop> {
        let parsed = &fragment.parsed;
        self.check_in_function(&parsed.statement.kind)?;
        run.has_partial_rows = false;
        if !parsed.is_planned() {
            if fragment.locals.is_empty() {
                return self.statement(parsed, run).await;
            }
            let inlined = self.inlined(fragment)?;
            return self.statement(&inlined, run).await;
        }
        let state = &self.state;
        // What DDL before it has said of its own wait is over.
        state.running.set_definition_wait_s(None);
        let counters = state.worker.counters();
        counters.count_statement(counted(&parsed.statement.kind));
        let (values, types) = self.locals_of(fragment)?;
        let limits = self.state.variables.borrow().active().limits;
        for _ in 0..PLAN_TRY_COUNT_MAX {
            let aside = self.set_diagnostics_aside();
            let with = (&values[..], &types[..], limits);
            let ran = self.run_fragment(fragment, with, run).await;
            // A statement without tables keeps the list of warnings, unless it has some of its own.
            if ran.as_ref().is_ok_and(|(_, has_tables)| !has_tables) {
                self.keep_diagnostics(aside);
            }
            if let (Ran::Reply(reply), _) = ran? {
                return Ok(reply);
            }
        }
        Err(ClientError::new(errcode::ER_TABLE_DEF_CHANGED, &[]).into())
    }

    /// Plans and runs a statement of a program. Also returns whether it uses tables.
    async fn run_fragment(
        &mut self,
        fragment: &Fragment,
        (values, types, limits): (&[Value], &[ColumnType], StatementLimits),
        run: &mut StatementRun,
    ) -> Result<(Ran, bool), Stop> {
        let shared = self.fragment_plan(fragment, types, limits)?;
        self.check_shared_privileges(&shared)?;
        let ran = self.run_shared(&shared, values, run, None).await?;
        Ok((ran, !shared.plan().tables.is_empty()))
    }

    /// A statement without a plan, with the values of its variables in place of their names.
    fn inlined(&self, fragment: &Fragment) -> Result<Parsed, ClientError> {
        let (values, types) = self.locals_of(fragment)?;
        let span = fragment.parsed.statement.span;
        let places: Vec<_> = fragment.locals.iter().map(|(_, place)| *place).collect();
        let text = inline_at(
            &fragment.parsed.text,
            span,
            self.mode(),
            &places,
            (&values, &types),
        );
        self.parse_as(&text, fragment.parsed.text.strings)
    }

    /// Assigns a value to a variable of the innermost program.
    pub(crate) fn set_local(
        &mut self,
        slot: usize,
        value: Value,
        from: &ColumnType,
    ) -> Result<(), ClientError> {
        let state = Rc::clone(&self.state);
        let frame = self.frame();
        let program = Rc::clone(&frame.program);
        let variable = &program.variables[slot];
        let Some(to) = &variable.column_type else {
            frame.set(slot, value, &state)?;
            frame.types[slot] = from.clone();
            return Ok(());
        };
        if value.is_null() && !variable.is_nullable {
            return Err(ClientError::new(ER_BAD_NULL_ERROR, &[&variable.name]));
        }
        if value.is_null() || fits_as_is(value.as_ref(), from, to) {
            return frame.set(slot, value, &state);
        }
        let options = state.statement_options();
        let diagnostics = Rc::clone(&state.diagnostics.borrow());
        let run = StatementRun::new(&state, RowProtocol::Text);
        let statement = Statement {
            session: &run,
            options: &options,
            diagnostics: &diagnostics,
            is_strict: options.sql_mode.is_strict(),
        };
        let place = Place {
            database: "",
            table: "",
            column: &variable.name,
            row: 0,
        };
        let stored = store_value(value.as_ref(), from, to, place, &statement);
        let stored = stored.map_err(|failure| *failure)?;
        self.frame().set(slot, stored, &state)
    }
}
