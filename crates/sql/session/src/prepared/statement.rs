//! Prepared statements: of the protocol by number, of SQL by name.
//!
//! A statement is parsed once. Its plan depends on the types of its parameters, which the protocol
//! sends at the first execution and may change at any later one. A plan is made for them, or found
//! in the worker's cache. It is kept as long as the types stay and no table has changed.

use std::rc::Rc;

use errcode::{ClientError, ER_UNKNOWN_STMT_HANDLER, ER_UNSUPPORTED_PS, ER_WRONG_ARGUMENTS};
use expression::Share;
use planner::OutputColumn;
use syntax::ast::{self, StatementKind};
use value::{CollationId, ColumnType, TypeKind, Value};
use wire::{BinaryValue, CursorKind, Execute, PrepareOk};

use crate::admin::{checksum_columns, look_after_columns};
use crate::connection::hot::HotPlace;
use crate::connection::kept_rows::CursorRows;
use crate::connection::prepared::{Named, Prepared};
use crate::connection::programs::Output;
use crate::connection::reply::{Done, Reply, Stop};
use crate::connection::row_encoder::RowProtocol;
use crate::connection::session::Session;
use crate::connection::sink::{made_up_column, reserve_columns, write_columns};
use crate::prepared::bulk::{Mark, marked};
use crate::prepared::inline_parameters::inline_parameters;
use crate::prepared::limit_parameters::{limit_parameters, limit_value};
use crate::prepared::parameter::{in_connection, parameter, type_of};
use crate::server::PreparedPlace;
use crate::statement::dispatch::counted;
use crate::statement::run::Ran;
use crate::statement::statement_run::StatementRun;
use crate::worker::parsed::Parsed;
use crate::worker::plan_cache::{PlanCache, PlanKeyContext, SharedPlan, is_cacheable};

/// Memory of a text and its tree per byte of the text: an expression has some 100 bytes and is
/// written in some 10.
const TREE_BYTES_PER_BYTE: usize = 11;

/// The database to restore once a prepared statement has run.
#[derive(Debug)]
pub(crate) struct DatabaseGuard(Option<Rc<str>>);

impl Session {
    /// COM_STMT_PREPARE.
    pub(crate) async fn prepare_command(&mut self, text: &[u8]) -> Result<Reply, Stop> {
        let reply = self.prepare(text).await;
        self.prepared.has_failed = reply.is_err();
        reply
    }

    async fn prepare(&mut self, text: &[u8]) -> Result<Reply, Stop> {
        let text = self.to_utf8(text);
        let parsed = self.parse_shared(&text)?;
        check_preparable(&parsed)?;
        let place = self.prepared_place(&parsed)?;
        let columns = self.describe(&parsed).await?;
        self.prepared.last_id = self.prepared.last_id.wrapping_add(1).max(1);
        let statement_id = self.prepared.last_id;
        let parameter_count = u16::try_from(parsed.statement.parameter_count)
            .map_err(|_| ClientError::new(errcode::ER_PS_MANY_PARAM, &[]))?;
        let column_count = u16::try_from(columns.len())
            .map_err(|_| ClientError::new(errcode::ER_TOO_MANY_FIELDS, &[]))?;
        reserve_columns(&self.client, &columns, &self.state).map_err(|failure| *failure)?;
        let prepared = Prepared::new(parsed, self.state.database(), place, self.mode());
        self.prepared.by_id.insert(statement_id, Box::new(prepared));
        let ok = PrepareOk {
            statement_id,
            column_count,
            parameter_count,
            warnings: 0,
        };
        ok.encode(self.client.out());
        let parameter = made_up_column("?", ColumnType::varchar(0, CollationId::BINARY));
        self.write_definitions(&vec![parameter; usize::from(parameter_count)]);
        self.write_definitions(&columns);
        Ok(Reply::Nothing)
    }

    /// Reserves a place among the prepared statements, or error 1461, and memory for one.
    fn prepared_place(&self, parsed: &Parsed) -> Result<(PreparedPlace, Share), ClientError> {
        let server = &self.state.worker.server;
        let place = server.prepared_place().map_err(|limit| {
            ClientError::new(errcode::ER_MAX_PREPARED_STMT_COUNT_REACHED, &[&limit])
        })?;
        let mut share = Share::default();
        let usual_bytes = parsed.text.len() * TREE_BYTES_PER_BYTE;
        self.state
            .keep(&mut share, usual_bytes.max(parsed.memory_bytes()))?;
        Ok((place, share))
    }

    /// The tree of a text, shared with other sessions.
    fn parse_shared(&self, text: &[u8]) -> Result<Rc<Parsed>, ClientError> {
        let texts = &self.state.worker.prepared_texts;
        let found = texts.borrow().find(text, self.mode(), self.strings());
        if let Some(parsed) = found {
            return Ok(parsed);
        }
        let parsed = Rc::new(self.parse(text)?);
        texts.borrow_mut().put(text, self.mode(), &parsed);
        Ok(parsed)
    }

    /// The columns of a statement's result. SHOW and EXPLAIN are run for it, without writing their
    /// rows.
    async fn describe(&mut self, parsed: &Parsed) -> Result<Rc<[OutputColumn]>, Stop> {
        match parsed.statement.kind {
            _ if has_plan(parsed) => {
                let plan = self.plan(parsed, &[])?;
                self.check_privileges(&plan)?;
                let is_taken = !plan.into_variables.is_empty();
                Ok(if is_taken { Rc::from([]) } else { plan.columns })
            }
            StatementKind::Show(_) | StatementKind::Explain(_) => {
                let mut run = StatementRun::new(&self.state, RowProtocol::Binary);
                run.described = Some(Rc::from([]));
                let outcome = Box::pin(self.statement(parsed, &mut run)).await;
                let columns = run.described.unwrap_or_else(|| Rc::from([]));
                outcome.map(|_| columns)
            }
            StatementKind::Admin(ast::Admin::Table { .. }) => Ok(look_after_columns().into()),
            StatementKind::Admin(ast::Admin::Checksum { .. }) => Ok(checksum_columns().into()),
            _ => Ok(Rc::from([])),
        }
    }

    /// Writes column definitions and their end, or nothing if there are no columns.
    fn write_definitions(&mut self, columns: &[OutputColumn]) {
        if columns.is_empty() {
            return;
        }
        let charset = self.state.variables.borrow().active().results_charset;
        write_columns(&mut self.client, columns, charset);
        let (capabilities, status) = (self.client.capabilities(), self.status());
        wire::end_columns(self.client.out(), capabilities, status, 0);
    }

    /// COM_STMT_SEND_LONG_DATA, which has no reply.
    pub(crate) fn long_data_command(&mut self, statement_id: u32, parameter: u16, data: &[u8]) {
        let bytes_max = {
            let variables = self.state.variables.borrow();
            variables.settings().unsigned("max_allowed_packet")
        };
        let bytes_max = stdx::to_usize(bytes_max);
        let state = Rc::clone(&self.state);
        if let Some(long_data) = self.prepared.long_data_of(statement_id) {
            let keep = |share: &mut Share, bytes| state.keep(share, bytes);
            long_data.append(parameter, data, bytes_max, keep);
        }
    }

    /// COM_STMT_EXECUTE.
    pub(crate) async fn execute_command(&mut self, execute: &Execute<'_>) -> Result<Reply, Stop> {
        let id = execute.statement_id;
        let Some(mut prepared) = self.prepared.take(id) else {
            return Err(unknown_statement(id, "mysqld_stmt_execute"));
        };
        prepared.cursor = None;
        HotPlace::Prepared.note(&*prepared);
        HotPlace::ParameterTypes.note(&prepared.types[..]);
        if let Some(held) = &prepared.held {
            HotPlace::PlannedTypes.note(held.types());
        }
        let mut run = StatementRun::new(&self.state, RowProtocol::Binary);
        let around = self.enter_database(prepared.database.as_ref());
        let reply = self
            .execute_prepared(&mut prepared, execute, &mut run)
            .await;
        self.leave_database(around);
        prepared.long_data.clear();
        self.prepared.put_back(id, prepared);
        reply
    }

    /// A statement's names mean what they meant when it was prepared. So the current database of
    /// that time is current again while it runs.
    pub(crate) fn enter_database(&self, database: Option<&Rc<str>>) -> Option<DatabaseGuard> {
        let is_elsewhere = self.state.database().as_ref() != database;
        is_elsewhere.then(|| DatabaseGuard(self.state.set_database(database.cloned())))
    }

    /// Restores the current database, whatever the statement made of it.
    pub(crate) fn leave_database(&self, around: Option<DatabaseGuard>) {
        if let Some(DatabaseGuard(database)) = around {
            self.state.set_database(database);
        }
    }

    async fn execute_prepared(
        &mut self,
        prepared: &mut Prepared,
        execute: &Execute<'_>,
        run: &mut StatementRun,
    ) -> Result<Reply, Stop> {
        let (values, types) = self.parameters(prepared, execute)?;
        let parsed = Rc::clone(&prepared.parsed);
        if let StatementKind::Call(call) = &parsed.statement.kind {
            let called = self.prepared_call(call, &parsed, (values, types), run);
            let outputs = Box::pin(called).await?;
            self.write_outputs(&outputs, run)?;
            return Ok(self.program_reply());
        }
        if !parsed.is_planned() {
            return Box::pin(self.plain_with(&parsed, (&values, &types), run)).await;
        }
        if locks_rows(&parsed.statement.kind) {
            self.list_text(&parsed.text);
        }
        let wants_cursor = execute.cursor == CursorKind::ReadOnly;
        let kind = counted(&parsed.statement.kind);
        self.state.worker.counters().count_statement(kind);
        self.state.clear_diagnostics();
        let held = prepared.held.take();
        let mut held = held.filter(|held| self.serves(held, &types));
        if held.is_none()
            && let Some(shared) = self.find_prepared(prepared, &types)
        {
            held = Some(self.hold(&types, shared));
        }
        loop {
            let (is_fresh, running) = match held.take() {
                Some(held) => (false, held),
                None => {
                    let shared = self.plan_prepared(prepared, (&values, &types)).await?;
                    (true, self.hold(&types, shared))
                }
            };
            let shared = &running.shared;
            self.check_shared_privileges(shared)?;
            let has_rows = !shared.plan().columns.is_empty();
            let is_taken = !shared.plan().into_variables.is_empty();
            let mut cursor =
                (wants_cursor && has_rows && !is_taken).then(|| CursorRows::of(&self.state));
            let ran = self.run_shared(shared, &values, run, cursor.as_mut()).await;
            match ran? {
                Ran::Reply(reply) => {
                    let reply = match &cursor {
                        Some(cursor) => self.write_cursor_head(cursor)?,
                        None => reply,
                    };
                    prepared.cursor = cursor;
                    if is_cacheable(shared.plan()) && !shared.is_off() {
                        prepared.held = Some(running);
                    }
                    return Ok(reply);
                }
                Ran::Stale if is_fresh => {
                    return Err(ClientError::new(errcode::ER_TABLE_DEF_CHANGED, &[]).into());
                }
                Ran::Stale => {}
            }
        }
    }

    /// The plan that a session of this worker has made for the same text and types.
    fn find_prepared(
        &mut self,
        prepared: &Prepared,
        types: &[ColumnType],
    ) -> Option<Rc<SharedPlan>> {
        self.write_prepared_key(prepared, types);
        let worker = &self.state.worker;
        let schema_version = worker.plan_version();
        let mut plans = worker.plans.borrow_mut();
        let found = plans.find(&self.buffers.key, schema_version);
        found.filter(|found| self.state.has_types_of(found.plan()))
    }

    /// A plan made now, shared if it may be.
    async fn plan_prepared(
        &mut self,
        prepared: &Prepared,
        (values, types): (&[Value], &[ColumnType]),
    ) -> Result<Rc<SharedPlan>, Stop> {
        let schema_version = self.state.worker.plan_version();
        let parsed = &prepared.parsed;
        let planned = Box::pin(self.plan_estimated(parsed, (values, types))).await?;
        let plan = planned.plan;
        let is_own =
            planned.has_asked_variable || !is_cacheable(&plan) || !plan.warnings.is_empty();
        let shared = SharedPlan::new(plan, counted(&parsed.statement.kind));
        if !is_own {
            self.write_prepared_key(prepared, types);
            self.share_plan(&self.buffers.key, &shared, schema_version);
        }
        Ok(shared)
    }

    fn write_prepared_key(&mut self, prepared: &Prepared, types: &[ColumnType]) {
        let mut key = std::mem::take(&mut self.buffers.key);
        let text = &prepared.parsed.text;
        self.with_key_context(|context| {
            // The tree was read in the mode of that time.
            let context = PlanKeyContext {
                text_mode: prepared.mode,
                strings: text.strings,
                ..*context
            };
            PlanCache::write_prepared_key(&mut key, text, types, &context);
        });
        self.buffers.key = key;
    }

    /// The values of the parameters, and their types for the plan.
    fn parameters(
        &self,
        prepared: &mut Prepared,
        execute: &Execute<'_>,
    ) -> Result<(Vec<Value>, Vec<ColumnType>), Stop> {
        prepared.long_data.check()?;
        let malformed = |_| ClientError::new(ER_WRONG_ARGUMENTS, &[&"mysqld_stmt_execute"]);
        let count = prepared.parsed.statement.parameter_count;
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let strings = self.strings();
        let mut reader = execute
            .parameters(count, &mut prepared.types)
            .map_err(malformed)?;
        let (mut values, mut types) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for position in 0..count {
            let long = prepared.long_data.get(position);
            let bound = reader.next_value(long.is_some()).map_err(malformed)?;
            let Some((wire_type, value)) = bound else {
                let error = ClientError::new(ER_WRONG_ARGUMENTS, &[&"mysqld_stmt_execute"]);
                return Err(error.into());
            };
            let value = match long {
                Some(bytes) => BinaryValue::Bytes(bytes),
                None => value,
            };
            let (value, column_type) = parameter(value, wire_type, strings);
            values.push(value);
            types.push(column_type);
        }
        Ok((values, types))
    }

    /// COM_STMT_RESET.
    pub(crate) fn reset_statement(&mut self, statement_id: u32) -> Result<Reply, Stop> {
        match self.prepared.get_mut(statement_id) {
            Some(prepared) => {
                prepared.long_data.clear();
                prepared.cursor = None;
                Ok(Reply::Ok(Done::default()))
            }
            None => Err(unknown_statement(statement_id, "mysqld_stmt_reset")),
        }
    }

    /// PREPARE, EXECUTE, DEALLOCATE PREPARE.
    pub(crate) async fn prepared_statement(
        &mut self,
        statement: &ast::Prepared,
        parsed: &Parsed,
        run: &mut StatementRun,
    ) -> Result<Reply, Stop> {
        match statement {
            ast::Prepared::Prepare { name, from } => {
                let key = name.text.to_lowercase();
                self.prepared.by_name.remove(&key);
                let of = self.parse_value(from, parsed).await?;
                if has_plan(&of) {
                    // Unknown names are reported now.
                    self.check_privileges(&self.plan_own(&of)?)?;
                }
                let place = self.prepared_place(&of)?;
                let named = Named::new(Rc::new(of), self.state.database(), place);
                self.prepared.by_name.insert(key, named);
                self.track_state();
                Ok(Reply::Ok(Done {
                    info: "Statement prepared".to_owned(),
                    ..Done::default()
                }))
            }
            ast::Prepared::Execute { name, using } => {
                let Some(named) = self.prepared.by_name.get(&name.text.to_lowercase()) else {
                    return Err(unknown_statement(&name.text, "EXECUTE"));
                };
                let (of, database) = (Rc::clone(&named.parsed), named.database.clone());
                self.execute_using((&of, database), using, parsed, run)
                    .await
            }
            ast::Prepared::ExecuteImmediate { from, using } => {
                let of = Rc::new(self.parse_value(from, parsed).await?);
                let database = self.state.database();
                self.execute_using((&of, database), using, parsed, run)
                    .await
            }
            ast::Prepared::Deallocate(name) => {
                match self.prepared.by_name.remove(&name.text.to_lowercase()) {
                    Some(_) => Ok(Reply::Ok(Done::default())),
                    None => Err(unknown_statement(&name.text, "DEALLOCATE PREPARE")),
                }
            }
        }
    }

    /// Parses the statement that is the value of an expression.
    async fn parse_value(&mut self, from: &ast::Expr, around: &Parsed) -> Result<Parsed, Stop> {
        let (value, column_type) = self.constant_typed(from, around).await?;
        let text = match value {
            Value::Bytes(text) if column_type.is_binary() => self.to_utf8(&text),
            Value::Bytes(text) => column_type.charset().read_statement(&text).into_owned(),
            other => {
                let mut text = Vec::new();
                other
                    .as_ref()
                    .append_text(&ColumnType::new(TypeKind::BigInt), &mut text);
                text
            }
        };
        let parsed = self.parse(&text)?;
        check_preparable(&parsed)?;
        Ok(parsed)
    }

    async fn execute_using(
        &mut self,
        (of, database): (&Rc<Parsed>, Option<Rc<str>>),
        using: &[ast::UsingValue],
        around: &Parsed,
        run: &mut StatementRun,
    ) -> Result<Reply, Stop> {
        let wanted = usize::try_from(of.statement.parameter_count).unwrap_or(usize::MAX);
        if using.len() != wanted {
            return Err(ClientError::new(ER_WRONG_ARGUMENTS, &[&"EXECUTE"]).into());
        }
        let collation = self.strings().collation;
        let (mut values, mut types, mut marks) = (Vec::new(), Vec::new(), Vec::new());
        for of in using {
            let (mut value, mut own, mut mark) = (Value::Null, collation, Mark::Value);
            match of {
                ast::UsingValue::Value(expression) => {
                    let (given, from) = self.constant_typed(expression, around).await?;
                    (value, own) = in_connection(given, &from, collation);
                }
                ast::UsingValue::Default => mark = Mark::Default,
                ast::UsingValue::Ignore => mark = Mark::Ignore,
            }
            types.push(type_of(&value, own));
            values.push(value);
            marks.push(mark);
        }
        for number in limit_parameters(&of.text, self.mode()) {
            let limit = limit_value(&values[number]);
            let limit = limit.ok_or_else(|| ClientError::new(ER_WRONG_ARGUMENTS, &[&"EXECUTE"]))?;
            (values[number], types[number]) = limit;
        }
        let is_plain = marks.iter().all(|mark| *mark == Mark::Value);
        let of = if is_plain {
            Rc::clone(of)
        } else {
            Rc::new(marked(of, &marks)?)
        };
        let elsewhere = self.enter_database(database.as_ref());
        let reply = self.execute_with(&of, using, (values, types), run).await;
        self.leave_database(elsewhere);
        reply
    }

    /// Executes a statement with the values of its parameters, which `using` names.
    async fn execute_with(
        &mut self,
        of: &Rc<Parsed>,
        using: &[ast::UsingValue],
        (values, types): (Vec<Value>, Vec<ColumnType>),
        run: &mut StatementRun,
    ) -> Result<Reply, Stop> {
        match &of.statement.kind {
            _ if of.is_planned() => self.planned(of, (&values, &types), run).await,
            StatementKind::Call(call) => {
                let called = self.prepared_call(call, of, (values, types), run);
                let outputs = Box::pin(called).await?;
                for output in outputs {
                    if let Some(ast::UsingValue::Value(target)) = using.get(output.number)
                        && let ast::ExprKind::UserVariable(name) = &target.kind
                    {
                        let column_type = &output.column_type;
                        self.state
                            .set_user_variable(name, output.value, column_type)?;
                    }
                }
                Ok(self.program_reply())
            }
            StatementKind::Prepared(_) => Err(ClientError::new(ER_UNSUPPORTED_PS, &[]).into()),
            _ => Box::pin(self.plain_with(of, (&values, &types), run)).await,
        }
    }

    /// Executes a CALL with the values of its parameters.
    async fn prepared_call(
        &mut self,
        call: &ast::Call,
        parsed: &Parsed,
        values: (Vec<Value>, Vec<ColumnType>),
        run: &mut StatementRun,
    ) -> Result<Vec<Output>, Stop> {
        let kind = counted(&parsed.statement.kind);
        self.state.worker.counters().count_statement(kind);
        self.state.clear_diagnostics();
        self.call_with(call, parsed, values, run).await
    }

    /// Executes a statement that has no plan, with the values of its parameters.
    async fn plain_with(
        &mut self,
        parsed: &Parsed,
        (values, types): (&[Value], &[ColumnType]),
        run: &mut StatementRun,
    ) -> Result<Reply, Stop> {
        if values.is_empty() {
            return self.statement(parsed, run).await;
        }
        let text = inline_parameters(&parsed.text, self.mode(), (values, types));
        let inlined = self.parse_as(&text, parsed.text.strings)?;
        self.statement(&inlined, run).await
    }
}

/// True of statements that are planned. Errors of the others show when they run.
fn has_plan(parsed: &Parsed) -> bool {
    matches!(
        parsed.statement.kind,
        StatementKind::Query(_)
            | StatementKind::Insert(_)
            | StatementKind::Update(_)
            | StatementKind::Delete(_)
    )
}

/// Statements that cannot be prepared: those about prepared statements.
fn check_preparable(parsed: &Parsed) -> Result<(), ClientError> {
    match parsed.statement.kind {
        StatementKind::Prepared(_) => Err(ClientError::new(ER_UNSUPPORTED_PS, &[])),
        _ => Ok(()),
    }
}

pub(crate) fn unknown_statement(id: impl std::fmt::Display, what: &str) -> Stop {
    ClientError::new(ER_UNKNOWN_STMT_HANDLER, &[&id, &what]).into()
}

/// Whether a statement may be a side of a deadlock, whose report names it. Others pay nothing for
/// that.
fn locks_rows(kind: &StatementKind) -> bool {
    match kind {
        StatementKind::Query(query) => query.lock.is_some(),
        _ => true,
    }
}
