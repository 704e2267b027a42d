//! CALL: finds the procedure, passes its arguments, and switches to its privileges and settings.

use std::rc::Rc;
use std::sync::Arc;

use catalog::{
    AccountName, ComesFrom, Privilege, PrivilegeSet, Routine, RoutineKey, SessionPrivileges,
};
use errcode::{
    ClientError, ER_NO_SUCH_USER, ER_PROCACCESS_DENIED_ERROR, ER_SP_BADSELECT,
    ER_SP_DOES_NOT_EXIST, ER_SP_NOT_VAR_ARG, ER_SP_RECURSION_LIMIT, ER_SP_WRONG_NO_OF_ARGS,
};
use planner::StringRules;
use syntax::ast::{self, Direction, RoutineKind, StatementKind};
use value::{Charset, CollationId, ColumnType, Value};
use wire::Capabilities;

use super::NESTED_COUNT_MAX;
use super::compile::{call_of, call_with_parameters, compile_routine};
use super::evaluate::Strictness;
use crate::connection::frame::Frame;
use crate::connection::programs::{Output, Programs};
use crate::connection::reply::{Reply, Stop};
use crate::connection::session::Session;
use crate::connection::sink::made_up_column;
use crate::connection::state::{Acting, State};
use crate::statement::dispatch::syntax_error;
use crate::statement::statement_run::StatementRun;
use crate::variables::system::{NewValue, Variables};
use crate::worker::parsed::Parsed;
use crate::worker::program::{Call, Compiled, Instruction, Variable};
use crate::worker::source::Source;

/// Variables that a routine's definition fixes while it runs.
const KEPT_VARIABLES: [&str; 3] = ["sql_mode", "collation_connection", "character_set_client"];

/// It limits only the rows of a client's own statements.
const SELECT_LIMIT: &str = "sql_select_limit";

/// What to restore after a routine.
pub(crate) struct Around {
    database: Option<Rc<str>>,
    variables: Variables,
    acting: Option<Acting>,
}

impl Programs {
    /// Error 1436 if one more program would need more stack than there is.
    pub(crate) fn check_depth(&self) -> Result<(), Box<ClientError>> {
        // A function runs inside the loop of a statement, which takes as much stack again.
        if self.frames.len() + self.function_count < NESTED_COUNT_MAX {
            return Ok(());
        }
        let (used, all) = (self.frames.len(), NESTED_COUNT_MAX);
        let what = "programs run within each other";
        Err(Box::new(ClientError::too_deep(used, all, what)))
    }
}

impl Session {
    /// Answers CALL.
    pub(crate) async fn call_statement(
        &mut self,
        call: &ast::Call,
        parsed: &Parsed,
        run: &mut StatementRun,
    ) -> Result<Reply, Stop> {
        let call = call_of(call, &parsed.text);
        self.call(&call, run).await?;
        Ok(self.program_reply())
    }

    /// Runs a procedure.
    pub(crate) async fn call(&mut self, call: &Call, run: &mut StatementRun) -> Result<(), Stop> {
        let routine = self.called_routine(&call.name)?;
        let compiled = self.compiled(&routine)?;
        self.check_call(call, &routine, &compiled)?;
        let mut frame = Frame::of(&routine, routine.key(), Rc::clone(&compiled));
        for (place, argument) in call.arguments.iter().enumerate() {
            if compiled.variables[place].direction == Direction::Out {
                continue;
            }
            let (value, from) = self.evaluate(&argument.value, Strictness::OfMode).await?;
            self.set_parameter(&mut frame, place, value, &from)?;
        }
        let around = self.enter_routine(&routine)?;
        let outcome = self.run_unlimited(frame, run).await;
        self.leave_routine(around);
        let frame = outcome?;
        for (place, argument) in call.arguments.iter().enumerate() {
            let is_out = compiled.variables[place].direction != Direction::In;
            if let Some(target) = argument.target.as_ref().filter(|_| is_out) {
                let value = frame.values[place].clone();
                self.assign(target, value, &frame.types[place])?;
            }
        }
        Ok(())
    }

    /// Runs a program without `sql_select_limit`, and restores the limit afterwards.
    pub(crate) async fn run_unlimited(
        &mut self,
        frame: Frame,
        run: &mut StatementRun,
    ) -> Result<Frame, Stop> {
        let before = self.state.variables.borrow().clone();
        let select_rows = before.active().limits.select_rows;
        if select_rows.is_some() {
            let unlimited = NewValue::Number(u64::MAX.into());
            self.set_own_variable(SELECT_LIMIT, &unlimited)?;
        }
        let outcome = self.run_frame(frame, run).await;
        let mut variables = self.state.variables.borrow_mut();
        if variables.active().limits.select_rows != select_rows {
            variables.restore(&before, [SELECT_LIMIT].into_iter());
        }
        outcome
    }

    /// Runs a prepared CALL: its `?` are the variables of a program that does nothing else. Returns
    /// the values of those that stand for OUT parameters, by their numbers.
    pub(crate) async fn call_with(
        &mut self,
        call: &ast::Call,
        parsed: &Parsed,
        (values, types): (Vec<Value>, Vec<ColumnType>),
        run: &mut StatementRun,
    ) -> Result<Vec<Output>, Stop> {
        let call = call_with_parameters(call, &parsed.text, values.len());
        let mut outputs = self.outputs_of(&call)?;
        let variable = |_: &Value| Variable {
            name: String::new(),
            column_type: None,
            declared: None,
            is_nullable: true,
            direction: Direction::In,
        };
        let program = Compiled {
            variables: values.iter().map(variable).collect(),
            result: None,
            parameter_count: 0,
            code: vec![Instruction::Call(Box::new(call))],
            lines: vec![1],
            is_block: false,
            cursors: Vec::new(),
            handlers: Vec::new(),
            has_results: false,
        };
        let frame = Frame::with_values(Rc::new(program), (values, types), &self.state)?;
        let frame = self.run_frame(frame, run).await?;
        for output in &mut outputs {
            output.value = frame.values[output.number].clone();
        }
        Ok(outputs)
    }

    /// The `?` of a CALL that stand for OUT parameters.
    fn outputs_of(&self, call: &Call) -> Result<Vec<Output>, Stop> {
        let routine = self.called_routine(&call.name)?;
        let compiled = self.compiled(&routine)?;
        let arguments = call.arguments.iter().zip(&compiled.variables);
        let outputs = arguments.filter_map(|(argument, variable)| {
            let number = match &argument.target {
                Some(ast::IntoTarget::Slot(slot)) => stdx::to_usize(*slot),
                _ => return None,
            };
            let column_type = variable.declared.clone()?;
            let is_out = variable.direction != Direction::In;
            is_out.then(|| Output {
                number,
                name: variable.name.clone(),
                column_type,
                value: Value::Null,
            })
        });
        Ok(outputs.collect())
    }

    /// Sends the values of the OUT parameters of a prepared CALL as a row of its own.
    pub(crate) fn write_outputs(
        &mut self,
        outputs: &[Output],
        run: &mut StatementRun,
    ) -> Result<(), Stop> {
        let takes_them = self
            .client
            .capabilities()
            .contains(Capabilities::PS_MULTI_RESULTS);
        if outputs.is_empty() || !takes_them {
            return Ok(());
        }
        let columns: Vec<_> = outputs
            .iter()
            .map(|output| made_up_column(&output.name, output.column_type.clone()))
            .collect();
        let row = outputs.iter().map(|output| output.value.clone()).collect();
        self.programs.is_telling_outputs = true;
        let written = self.write_rows(&columns, vec![row], run);
        let ended = written.and_then(|reply| Ok(self.write_reply(Ok(reply), true)?));
        self.programs.is_telling_outputs = false;
        ended.map(|_| ())
    }

    /// Sets a parameter to its argument, as if the routine assigned it.
    pub(crate) fn set_parameter(
        &mut self,
        frame: &mut Frame,
        place: usize,
        value: Value,
        from: &ColumnType,
    ) -> Result<(), ClientError> {
        let program = Rc::clone(&frame.program);
        let own = std::mem::replace(frame, Frame::new(program));
        self.programs.frames.push(own);
        let outcome = self.set_local(place, value, from);
        *frame = self.programs.frames.pop().expect("pushed above");
        outcome
    }

    /// The named procedure, if the account may run it.
    fn called_routine(&self, name: &ast::ObjectName) -> Result<Arc<Routine>, ClientError> {
        let database = self.routine_database(name)?;
        let key = RoutineKey::new(RoutineKind::Procedure, &database, &name.name.text);
        let routines = self.state.worker.server.routines();
        let found = routines.find(&key);
        let privileges = self.routine_privileges(&key);
        if !privileges.has(Privilege::Execute) {
            return Err(self.routine_denied("execute", &database, &name.name.text));
        }
        found.cloned().ok_or_else(|| {
            let full = format!("{database}.{}", name.name.text);
            ClientError::new(ER_SP_DOES_NOT_EXIST, &[&"PROCEDURE", &full])
        })
    }

    /// The database of a routine's name.
    pub(crate) fn routine_database(&self, name: &ast::ObjectName) -> Result<String, ClientError> {
        match &name.schema {
            Some(schema) => Ok(schema.text.clone()),
            None => Ok(self.state.current_database()?.to_string()),
        }
    }

    /// What the session may do with a routine.
    pub(crate) fn routine_privileges(&self, key: &RoutineKey) -> PrivilegeSet {
        self.state.privileges().on_routine(key)
    }

    /// Error 1370.
    pub(crate) fn routine_denied(&self, command: &str, database: &str, name: &str) -> ClientError {
        denied(command, &self.state.account_name(), database, name)
    }

    /// The compiled routine, of now or of an earlier call.
    pub(crate) fn compiled(&self, routine: &Arc<Routine>) -> Result<Rc<Compiled>, Stop> {
        Ok(self.state.compiled_routine(&routine.key(), routine)?)
    }

    fn check_call(
        &self,
        call: &Call,
        routine: &Routine,
        compiled: &Compiled,
    ) -> Result<(), ClientError> {
        let full = format!("{}.{}", routine.database, routine.name);
        let (wanted, given) = (compiled.parameter_count, call.arguments.len());
        if wanted != given {
            let code = ER_SP_WRONG_NO_OF_ARGS;
            return Err(ClientError::new(
                code,
                &[&"PROCEDURE", &full, &wanted, &given],
            ));
        }
        for (place, argument) in call.arguments.iter().enumerate() {
            let is_out = compiled.variables[place].direction != Direction::In;
            if is_out && argument.target.is_none() {
                let code = ER_SP_NOT_VAR_ARG;
                return Err(ClientError::new(code, &[&(place + 1), &full]));
            }
        }
        let takes_results = self
            .client
            .capabilities()
            .contains(Capabilities::MULTI_RESULTS);
        if compiled.has_results && !takes_results {
            return Err(ClientError::new(ER_SP_BADSELECT, &[&full]));
        }
        self.check_recursion(routine)
    }

    /// Error 1456 if a routine recurses deeper than allowed.
    fn check_recursion(&self, routine: &Routine) -> Result<(), ClientError> {
        let key = routine.key();
        let frames = self.programs.frames.iter();
        let own_count = frames.filter(|it| it.key.as_ref() == Some(&key)).count();
        let limit = {
            let variables = self.state.variables.borrow();
            variables.settings().unsigned("max_sp_recursion_depth")
        };
        if stdx::to_usize(limit) < own_count {
            let code = ER_SP_RECURSION_LIMIT;
            return Err(ClientError::new(code, &[&limit, &routine.name]));
        }
        self.programs.check_depth().map_err(|error| *error)
    }

    /// From here on the definition's settings and privileges are in effect.
    pub(crate) fn enter_routine(&mut self, routine: &Routine) -> Result<Around, ClientError> {
        let is_own = routine.definer == self.state.account_name();
        let definer = match &routine.definer {
            _ if routine.is_invoker || is_own => None,
            definer => Some(self.definer(definer, routine)?),
        };
        let variables = self.variables_within(routine)?;
        // Nothing fails from here on, so the session gets its own account back for certain.
        let state = &self.state;
        let database = Some(routine.database.as_str().into());
        Ok(Around {
            database: state.set_database(database),
            variables: state.variables.replace(variables),
            acting: definer.map(|definer| state.act_as(definer)),
        })
    }

    /// The session's variables within a routine.
    fn variables_within(&self, routine: &Routine) -> Result<Variables, ClientError> {
        let mut variables = self.state.variables.borrow().clone();
        let values = [
            &routine.sql_mode,
            &routine.connection_collation,
            &routine.client_charset,
        ];
        let globals = self.state.worker.server.settings();
        for (name, value) in KEPT_VARIABLES.into_iter().zip(values) {
            if variables.settings().text(name) != value.as_str() {
                let value = NewValue::Text(value.clone());
                let set = variables.set(name, &value, &globals);
                set.map_err(|error| crate::connection::state::variable_error(name, &error))?;
            }
        }
        Ok(variables)
    }

    /// The account whose privileges the routine has; error 1370 if they do not suffice to run it.
    fn definer(&self, name: &AccountName, routine: &Routine) -> Result<Acting, ClientError> {
        let accounts = self.state.worker.server.accounts();
        let Some(account) = accounts.by_name(name) else {
            let code = ER_NO_SUCH_USER;
            return Err(ClientError::new(code, &[&name.user, &name.host]));
        };
        let privileges = SessionPrivileges::new(account, &accounts, ComesFrom::Account);
        if privileges
            .on_routine(&routine.key())
            .has(Privilege::Execute)
        {
            return Ok(Acting::new(Arc::clone(account), ComesFrom::Account));
        }
        Err(denied("execute", name, &routine.database, &routine.name))
    }

    pub(crate) fn leave_routine(&mut self, around: Around) {
        self.state.set_database(around.database);
        if let Some(acting) = around.acting {
            self.state.act_as(acting);
        }
        let mut variables = self.state.variables.borrow_mut();
        let is_same = KEPT_VARIABLES
            .iter()
            .all(|name| variables.settings().text(name) == around.variables.settings().text(name));
        if !is_same {
            variables.restore(&around.variables, KEPT_VARIABLES.into_iter());
        }
    }
}

/// Error 1370.
fn denied(command: &str, account: &AccountName, database: &str, name: &str) -> ClientError {
    let full = format!("{database}.{name}");
    let code = ER_PROCACCESS_DENIED_ERROR;
    ClientError::new(code, &[&command, &account.user, &account.host, &full])
}

impl State {
    /// The compiled routine, of now or of an earlier call.
    pub(crate) fn compiled_routine(
        &self,
        key: &RoutineKey,
        routine: &Arc<Routine>,
    ) -> Result<Rc<Compiled>, ClientError> {
        let found = self.worker.programs.borrow().find(key, routine);
        if let Some(found) = found {
            return Ok(found);
        }
        let compiled = Rc::new(compiled_from_text(routine)?);
        let mut programs = self.worker.programs.borrow_mut();
        programs.put(key.clone(), Arc::clone(routine), Rc::clone(&compiled));
        Ok(compiled)
    }
}

/// Parses and compiles a routine's text.
pub(crate) fn compiled_from_text(routine: &Routine) -> Result<Compiled, ClientError> {
    let text = Source::new(routine.show_create().into_bytes(), strings_of(routine));
    let mode = settings::SqlMode::of(&routine.sql_mode);
    let statement = syntax::parse::parse(&text, mode).map_err(|error| syntax_error(&error))?;
    let StatementKind::CreateRoutine(create) = &statement.kind else {
        return Err(ClientError::syntax("", 1));
    };
    let collation = CollationId::from_name(&routine.database_collation);
    let collation = collation.unwrap_or(CollationId::UTF8MB4_GENERAL_CI);
    compile_routine(create, &text, collation)
}

/// How the strings of a routine's text are read: as when it was created.
fn strings_of(routine: &Routine) -> StringRules {
    let usual = StringRules::default();
    StringRules {
        client: Charset::from_name(&routine.client_charset).unwrap_or(usual.client),
        collation: CollationId::from_name(&routine.connection_collation).unwrap_or(usual.collation),
    }
}
