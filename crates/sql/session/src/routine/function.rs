//! Stored functions: what a plan knows of them, and how they run for a statement that stopped.
//!
//! An execution that reaches a call stops ([`executor::Interrupt::Call`]). The statement's loop
//! runs the function here, and the execution continues with its value. So a body may wait, read and
//! write like any program; meanwhile nothing of the calling statement is borrowed.
//!
//! (F1) What a function does belongs to the calling statement. It begins no statement of its own
//! (READ COMMITTED reads one snapshot throughout) and commits nothing. Its changes are rolled back
//! if that statement fails.
//! (F2) The state of the last statement (ROW_COUNT, LAST_INSERT_ID, warnings) is set aside while it
//! runs. The warnings that it leaves are added to the statement's.
//! (F3) It changes no table that a calling statement uses: error 1442.
//! (F4) Its NOW() is that of the statement, so it is the same in all its calls.
//! (F5) If the transaction is lost while it runs, none of its handlers runs for that, and the
//! calling statement fails.

use std::rc::Rc;
use std::sync::Arc;

use catalog::{Privilege, Routine, RoutineKey};
use errcode::{
    ClientError, ER_CANT_UPDATE_USED_TABLE_IN_SF_OR_TRG, ER_LOCK_DEADLOCK, ER_SP_DOES_NOT_EXIST,
    ER_SP_NO_RECURSION, ER_SP_NORETURNEND, ER_TABLE_DEF_CHANGED,
};
use executor::{Execution, FunctionCall};
use expression::{Diagnostics, StoredFunction};
use planner::Plan;
use store::TableId;
use syntax::ast::RoutineKind;
use syntax::parse::RoutineError;
use value::Value;

use crate::connection::frame::Frame;
use crate::connection::programs::Programs;
use crate::connection::reply::Stop;
use crate::connection::running_statement::Caller;
use crate::connection::session::Session;
use crate::connection::state::State;
use crate::statement::dispatch::routine_error;
use crate::statement::statement_run::{Part, StatementRun};
use crate::worker::program::Compiled;

/// The state of the calling statement, set aside while a function runs.
struct SetAside {
    /// The time of the enclosing function, if it differs.
    caller: Option<Option<Caller>>,
    diagnostics: Rc<Diagnostics>,
    row_count: i64,
    found_rows: u64,
    insert_id: u64,
    /// `LAST_INSERT_ID(number)` has been called by the statement.
    has_insert_id: bool,
    affected_rows: u64,
    deadline: Option<Option<u64>>,
    has_kept_warnings: bool,
    used_table_count: usize,
}

impl Programs {
    /// True while a stored function runs.
    pub(crate) fn is_in_function(&self) -> bool {
        self.function_count != 0
    }

    /// Error 1442 if a plan changes a table that a calling statement uses.
    pub(crate) fn check_written(&self, plan: &Plan) -> Result<(), ClientError> {
        if self.used_tables.is_empty() || !plan.is_write() {
            return Ok(());
        }
        for place in plan.written_tables() {
            let definition = &plan.tables[place].definition;
            if self.used_tables.contains(&definition.id) {
                let code = ER_CANT_UPDATE_USED_TABLE_IN_SF_OR_TRG;
                return Err(ClientError::new(code, &[&definition.name.table]));
            }
        }
        Ok(())
    }
}

impl State {
    /// A stored function as a plan calls it.
    pub(crate) fn stored_function(
        &self,
        database: &str,
        name: &str,
    ) -> Result<Option<Rc<StoredFunction>>, ClientError> {
        let key = RoutineKey::new(RoutineKind::Function, database, name);
        let Some(routine) = self.worker.server.routines().find(&key).cloned() else {
            return Ok(None);
        };
        let compiled = self.compiled_routine(&key, &routine)?;
        Ok(function_of(&routine, &compiled).map(Rc::new))
    }
}

impl Session {
    /// Runs the stored function for which this plan's execution stopped, and hands it the value.
    /// `since` holds the start and the deadline of the calling statement.
    pub(crate) async fn answer_call(
        &mut self,
        call: &FunctionCall,
        execution: &mut Execution,
        part: Part,
        since: (i64, Option<u64>),
    ) -> Result<(), Stop> {
        let aside = self.begin_function(execution.plan(), since);
        let outcome = self.run_function(call, part).await;
        self.end_function(aside);
        let value = outcome?;
        if self.transaction.opened().is_none() {
            return Err(ClientError::new(ER_LOCK_DEADLOCK, &[]).into());
        }
        execution.answer(value);
        Ok(())
    }

    fn begin_function(&mut self, plan: &Plan, since: (i64, Option<u64>)) -> SetAside {
        let (now_us, deadline) = since;
        let used: Vec<TableId> = plan.tables.iter().map(|it| it.definition.id).collect();
        let state = Rc::clone(&self.state);
        let programs = &mut self.programs;
        if programs.frames.is_empty() && !programs.is_in_function() {
            programs.trace.clear();
        }
        programs.function_count += 1;
        let used_table_count = programs.used_tables.len();
        programs.used_tables.extend(used);
        let has_kept_warnings = programs.has_kept_warnings;
        let affected_rows = programs.affected_rows;
        SetAside {
            caller: state.running.enter_function(now_us),
            deadline: programs.deadline.replace(deadline),
            has_kept_warnings,
            affected_rows,
            used_table_count,
            row_count: state.row_count(),
            found_rows: state.found_rows(),
            insert_id: state.last_insert_id(),
            has_insert_id: state.given_insert_id().is_some(),
            diagnostics: self.set_diagnostics_aside(),
        }
    }

    fn end_function(&mut self, aside: SetAside) {
        let state = Rc::clone(&self.state);
        let programs = &mut self.programs;
        programs.function_count -= 1;
        programs.used_tables.truncate(aside.used_table_count);
        programs.deadline = aside.deadline;
        programs.affected_rows = aside.affected_rows;
        programs.has_kept_warnings = aside.has_kept_warnings;
        if let Some(caller) = aside.caller {
            state.running.leave_function(caller);
        }
        state.set_row_count(aside.row_count);
        state.set_found_rows(aside.found_rows);
        state.set_last_insert_id(aside.insert_id);
        state.set_insert_id_given(aside.has_insert_id);
        let own = state.diagnostics.replace(Rc::clone(&aside.diagnostics));
        for (level, noted) in own.warnings().entries() {
            aside.diagnostics.warnings().push(*level, noted.clone());
        }
        self.programs.spare = own;
    }

    async fn run_function(&mut self, call: &FunctionCall, part: Part) -> Result<Value, Stop> {
        let (key, routine) = self.called_function(&call.function)?;
        let compiled = self.state.compiled_routine(&key, &routine)?;
        let is_it = function_of(&routine, &compiled).is_some_and(|it| it == *call.function);
        let Some(result) = compiled.result.filter(|_| is_it) else {
            return Err(ClientError::new(ER_TABLE_DEF_CHANGED, &[]).into());
        };
        let frames = &self.programs.frames;
        if frames.iter().any(|frame| frame.key.as_ref() == Some(&key)) {
            return Err(ClientError::new(ER_SP_NO_RECURSION, &[]).into());
        }
        self.programs
            .check_depth()
            .map_err(|error| Stop::from(*error))?;
        let mut frame = Frame::of(&routine, key, compiled);
        for (place, value) in call.arguments.iter().enumerate() {
            self.set_parameter(&mut frame, place, value.clone(), &call.types[place])?;
        }
        let around = self.enter_routine(&routine)?;
        let mut run = StatementRun::part(&self.state, part);
        let outcome = self.run_frame(frame, &mut run).await;
        self.leave_routine(around);
        let frame = outcome?;
        if !frame.has_returned {
            return Err(ClientError::new(ER_SP_NORETURNEND, &[&routine.name]).into());
        }
        Ok(frame.values[result].clone())
    }

    /// The function, if the account may run it.
    fn called_function(
        &self,
        function: &StoredFunction,
    ) -> Result<(RoutineKey, Arc<Routine>), ClientError> {
        let (database, name) = (&function.database, &function.name);
        let key = RoutineKey::new(RoutineKind::Function, database, name);
        if !self.routine_privileges(&key).has(Privilege::Execute) {
            return Err(self.routine_denied("execute", database, name));
        }
        let routines = self.state.worker.server.routines();
        let Some(routine) = routines.find(&key).cloned() else {
            let full = format!("{database}.{name}");
            return Err(ClientError::new(
                ER_SP_DOES_NOT_EXIST,
                &[&"FUNCTION", &full],
            ));
        };
        Ok((key, routine))
    }

    /// Refuses what a statement may not do within a function, also in a procedure that it calls.
    pub(crate) fn check_in_function(
        &self,
        kind: &syntax::ast::StatementKind,
    ) -> Result<(), ClientError> {
        if !self.programs.is_in_function() {
            return Ok(());
        }
        let checked = syntax::parse::check_in_function(kind);
        checked.map_err(|error| routine_error(error, ""))
    }

    /// Error 1445 for `SET autocommit` while a function runs.
    pub(crate) fn check_set_in_function(&self, name: &str) -> Result<(), ClientError> {
        if self.programs.is_in_function() && name.eq_ignore_ascii_case("autocommit") {
            return Err(routine_error(RoutineError::Autocommit, ""));
        }
        Ok(())
    }
}

fn function_of(routine: &Routine, compiled: &Compiled) -> Option<StoredFunction> {
    let result = compiled.variables.get(compiled.result?)?;
    Some(StoredFunction {
        database: routine.database.clone(),
        name: routine.name.clone(),
        returns: result.column_type.clone()?,
        parameter_count: compiled.parameter_count,
        is_deterministic: routine.is_deterministic,
    })
}
