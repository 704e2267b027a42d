//! From the text of a query to the statement that answers it.
//!
//! A text goes one of two ways. Statements over tables become a plan and run ([`super::run`]);
//! every other kind has a function in its own module. Unsupported statements fail with error 1235,
//! which names them.

use std::borrow::Cow;
use std::cell::Cell;
use std::rc::Rc;

use clients::KillOrder;
use clients::wait::{free_what_waits, unless_killed};
use errcode::{
    ClientError, ER_EMPTY_QUERY, ER_INVALID_CHARACTER_STRING, ER_QUERY_INTERRUPTED,
    ER_TOO_MANY_FIELDS, WORDS_NESTED_TOO_DEEPLY,
};
use expression::Share;
use front::Disconnect;
use planner::{StatementLimits, StringRules};
use store::until_done;
use syntax::ast::{Admin, Explain, LockWait, StatementKind};
use syntax::parse::{LIST_LEN_MAX, RoutineError, SyntaxErrorKind};
use syntax::token::Kind;
use value::{Charset, ColumnType, Value};
use wire::Capabilities;

use crate::connection::reply::{Reply, Stop};
use crate::connection::row_encoder::RowProtocol;
use crate::connection::session::{Next, Session};
use crate::metrics::CountedStatement as Counted;
use crate::statement::cached_query::Tried;
use crate::statement::estimates::Estimates;
use crate::statement::run::{Ran, timed_out};
use crate::statement::statement_run::StatementRun;
use crate::statement::virtual_store::SessionNames;
use crate::worker::parsed::Parsed;
use crate::worker::source::{Source, read_anew};

/// How often a statement is planned because a table changed under it, before it fails.
pub(crate) const PLAN_TRY_COUNT_MAX: usize = 10;

/// Statements of one text, or instructions of a program, that run before the task yields.
pub(crate) const TURN_STATEMENT_COUNT: u32 = 32;

/// The longest prefix of a statement that the process list keeps, in bytes.
const LISTED_TEXT_BYTES_MAX: usize = 1 << 16;

/// A plan, and what keeps it from being shared.
pub(crate) struct Planned {
    pub(crate) plan: planner::Plan,
    /// A system variable's value has gone into it.
    pub(crate) has_asked_variable: bool,
}

impl Session {
    /// COM_QUERY: one statement, or several if the client enabled that.
    pub(crate) async fn query(&mut self, text: &[u8]) -> Result<Next, Disconnect> {
        let charset = self.strings().client;
        let text = charset.read_statement(without_end(text));
        self.list_text(&text);
        match self.cached_query(&text).await {
            Tried::Answered(reply) => self.write_reply(reply, false),
            Tried::Not => self.parsed_query(text, charset).await,
        }
    }

    /// Parses and runs the statements of a text that no plan is kept for.
    async fn parsed_query(
        &mut self,
        mut text: Cow<'_, [u8]>,
        mut charset: Charset,
    ) -> Result<Next, Disconnect> {
        let (mut at, mut count) = (0, 0_u32);
        loop {
            let mut rest = text.get(at..).unwrap_or_default();
            let parsed = self.in_turns(|may_go_on| {
                let mode = self.mode();
                let (statement, length) = syntax::parse::parse_one_while(rest, mode, may_go_on)?;
                let (own, behind) = rest.split_at(length.min(rest.len()));
                let text = Source::new(own, self.strings());
                Ok((statement, text, behind))
            });
            let parsed = parsed.map(|((statement, text, behind), share)| {
                (rest, at) = (behind, at + text.len());
                Parsed::counted(statement, text, share)
            });
            let capabilities = self.client.capabilities();
            let is_multi = capabilities.contains(Capabilities::MULTI_STATEMENTS);
            let has_more =
                parsed.is_ok() && !is_blank(rest) && (is_multi || has_token(rest, self.mode()));
            let reply = match parsed {
                Ok(_) if has_more && !is_multi => self.refused(syntax_error_at(rest)),
                Ok(parsed) if parsed.statement.parameter_count != 0 => {
                    self.refused(stray_parameter(&parsed.text, self.mode()))
                }
                Ok(parsed) => {
                    let mut run = StatementRun::new(&self.state, RowProtocol::Text);
                    self.statement(&parsed, &mut run).await
                }
                Err(error) => self.refused(error),
            };
            let is_over = reply.is_err() || !has_more;
            let next = self.write_reply(reply, !is_over)?;
            if is_over || next == Next::End {
                return Ok(next);
            }
            let now = self.strings().client;
            if now != charset {
                text = read_anew(text.get(at..).unwrap_or_default(), charset, now).into();
                (charset, at) = (now, 0);
            }
            count = count.wrapping_add(1);
            self.state.running.begin_time();
            if self.client.should_flush() || count.is_multiple_of(TURN_STATEMENT_COUNT) {
                match self.give_way(None).await {
                    Ok(()) => {}
                    Err(Stop::Error(error)) => {
                        return self.write_reply(self.refused(*error), false);
                    }
                    Err(Stop::Disconnect(disconnect)) => return Err(*disconnect),
                }
            }
        }
    }

    /// Called between two of many things that a client has requested at once. Sends the pending
    /// output and lets other clients run. Fails if the session was killed or its time is over.
    pub(crate) async fn give_way(&mut self, deadline: Option<u64>) -> Result<(), Stop> {
        self.check_in_time(deadline)?;
        free_what_waits();
        if self.client.should_flush() {
            self.send_rows(deadline).await?;
        }
        runtime::yield_now().await;
        Ok(())
    }

    /// Sends the pending output. A client may take as long as it likes; KILL of the connection ends
    /// the wait. Afterwards the statement ends if it was killed or its time is over. Large or many
    /// rows may fill the buffer before each end of a turn.
    pub(crate) async fn send_rows(&mut self, deadline: Option<u64>) -> Result<(), Stop> {
        self.settle_reads().await?;
        if self.client.long_packet_bytes() != 0 {
            Box::pin(self.send_long_rows()).await?;
        }
        unless_killed(&self.state.handle, self.client.flush()).await?;
        self.check_in_time(deadline)
    }

    /// With `strict_reads`, waits until what the reply may tell is durable.
    pub(crate) async fn settle_reads(&self) -> Result<(), Disconnect> {
        let worker = &self.state.worker;
        if !worker.server.has_strict_reads() {
            return Ok(());
        }
        let settled = async {
            let settled = until_done(|| worker.store.seen_is_durable()).await;
            // The log has failed. The program stops, and this client must not hear anything.
            settled.map_err(|_| Disconnect::Killed)
        };
        unless_killed(&self.state.handle, settled).await
    }

    /// Sends long rows piece by piece, and gives back the memory of each.
    pub(crate) async fn send_long_rows(&mut self) -> Result<(), Disconnect> {
        while self.client.long_packet_bytes() != 0 {
            unless_killed(&self.state.handle, self.client.flush_piece()).await?;
            self.state.free_reply(self.client.long_packet_bytes());
        }
        Ok(())
    }

    /// Called before a wait that may last. Sends replies of statements that came with this one, as
    /// far as the client accepts them at once: this statement may hold locks and must not hold them
    /// longer. Its own output is sent when it ends or is large, since its rows may still become an
    /// error.
    pub(crate) async fn post_replies(&mut self) -> Result<(), Stop> {
        if self.client.has_replies() {
            self.settle_reads().await?;
        }
        Ok(unless_killed(&self.state.handle, self.client.post_replies()).await?)
    }

    /// Error 1317 once the statement was killed, 1969 once its time is over.
    pub(crate) fn check_in_time(&self, deadline: Option<u64>) -> Result<(), Stop> {
        self.state.look_at_peer();
        if self.state.handle.order() != KillOrder::None {
            return Err(self.interrupted());
        }
        match deadline {
            Some(deadline) if deadline <= self.state.worker.steady_us() => Err(timed_out()),
            _ => Ok(()),
        }
    }

    /// An error before anything ran: it is the only entry in the list of warnings.
    fn refused(&self, error: ClientError) -> Result<Reply, Stop> {
        self.state.clear_diagnostics();
        Err(error.into())
    }

    /// Runs a statement that the server composed, and writes its rows.
    pub(crate) async fn run_text(&mut self, text: &str) -> Result<Reply, Stop> {
        let parsed = self.parse(text.as_bytes())?;
        let mut run = StatementRun::new(&self.state, RowProtocol::Text);
        self.statement(&parsed, &mut run).await
    }

    /// The only statement of a text that arrives now.
    pub(crate) fn parse(&self, text: &[u8]) -> Result<Parsed, ClientError> {
        self.parse_as(text, self.strings())
    }

    /// The only statement of a text whose strings are read by `strings`: a part of another text
    /// uses the rules of that text.
    pub(crate) fn parse_as(
        &self,
        text: &[u8],
        strings: StringRules,
    ) -> Result<Parsed, ClientError> {
        let ((statement, text), share) = self.in_turns(|may_go_on| {
            let statement = syntax::parse::parse_while(text, self.mode(), may_go_on)?;
            Ok((statement, Source::new(text, strings)))
        })?;
        Ok(Parsed::counted(statement, text, share))
    }

    /// Parses a text that may be long: others run meanwhile, KILL ends it, and the memory of the
    /// result is counted.
    fn in_turns<T>(
        &self,
        read: impl FnOnce(&dyn Fn() -> bool) -> Result<T, syntax::parse::SyntaxError>,
    ) -> Result<(T, Share), ClientError> {
        let ended = Cell::new(None);
        let may_go_on = || {
            self.statement_deadline();
            match self.state.give_way() {
                Ok(()) => true,
                Err(failure) => {
                    ended.set(Some(failure));
                    false
                }
            }
        };
        let drafted = self.state.drafted(|| {
            let read = read(&may_go_on);
            read.map_err(|error| match ended.take() {
                Some(failure) => failure,
                None => Box::new(syntax_error(&error)),
            })
        });
        drafted.map_err(|error| *error)
    }

    /// How the strings of a text are read now.
    pub(crate) fn strings(&self) -> StringRules {
        self.state.variables.borrow().active().strings
    }

    /// Answers a statement.
    pub(crate) async fn statement(
        &mut self,
        parsed: &Parsed,
        run: &mut StatementRun,
    ) -> Result<Reply, Stop> {
        let kind = &parsed.statement.kind;
        let wait_s = match parsed.statement.lock_wait {
            LockWait::No => Some(0),
            LockWait::Seconds(seconds) => Some(seconds),
            LockWait::Default | LockWait::Skip => None,
        };
        self.state.running.set_definition_wait_s(wait_s);
        self.state.worker.counters().count_statement(counted(kind));
        if keeps_diagnostics(kind) {
            self.state.running.leave_warnings();
            return Box::pin(self.plain_statement(parsed, run)).await;
        }
        if reads_variables_alone(kind) {
            self.state.running.leave_warnings();
        } else {
            self.state.clear_diagnostics();
        }
        // Each client's task has room for the largest statement that is not boxed here. Only BEGIN
        // and COMMIT must not cost an allocation.
        if let StatementKind::Transaction(statement) = kind {
            self.transaction_statement(statement, run).await
        } else if parsed.is_planned() {
            Box::pin(self.planned(parsed, (&[], &[]), run)).await
        } else {
            Box::pin(self.plain_statement(parsed, run)).await
        }
    }

    /// Plans a statement and runs the plan.
    pub(crate) async fn planned(
        &mut self,
        parsed: &Parsed,
        (parameters, parameter_types): (&[Value], &[ColumnType]),
        run: &mut StatementRun,
    ) -> Result<Reply, Stop> {
        if is_write(&parsed.statement.kind) && run.described.is_none() {
            self.check_may_write()?;
        }
        for _ in 0..PLAN_TRY_COUNT_MAX {
            let given = (parameters, parameter_types);
            let plan = self.plan_estimated(parsed, given).await?.plan;
            self.check_privileges(&plan)?;
            if run.described.is_some() {
                run.described = Some(Rc::clone(&plan.columns));
                return Ok(Reply::Nothing);
            }
            match self.run_plan(plan, parameters, run).await? {
                Ran::Reply(reply) => return Ok(reply),
                Ran::Stale => {}
            }
        }
        Err(ClientError::new(errcode::ER_TABLE_DEF_CHANGED, &[]).into())
    }

    /// The plan of a statement that is to run with these parameters. Where the store has to read
    /// pages to tell how many rows they name, waits for it and plans again.
    pub(crate) async fn plan_estimated(
        &mut self,
        parsed: &Parsed,
        (parameters, types): (&[Value], &[ColumnType]),
    ) -> Result<Planned, Stop> {
        let limits = self.state.variables.borrow().active().limits;
        let zone = self.state.variables.borrow().active().options.zone.clone();
        let estimates = Estimates::new(parameters, zone);
        loop {
            let names = SessionNames::estimating(&self.state, &estimates);
            let plan = self.plan_with(parsed, types, &names, limits)?;
            let has_asked_variable = names.has_asked_variable();
            if !estimates.is_incomplete() {
                return Ok(Planned {
                    plan,
                    has_asked_variable,
                });
            }
            drop(plan);
            Box::pin(self.answer_all(&estimates)).await?;
        }
    }

    /// Waits until the store has answered all questions.
    async fn answer_all(&mut self, estimates: &Estimates<'_>) -> Result<(), Stop> {
        let store = Rc::clone(&self.state.worker.store);
        let deadline = self.statement_deadline();
        while let Some((place, wait)) = estimates.take_wait() {
            if let Some(suspend) = wait {
                self.wait_until(suspend, deadline).await?;
            }
            estimates.ask_again(&*store, place);
        }
        Ok(())
    }

    /// The plan of a statement under the current names and settings.
    pub(crate) fn plan(
        &self,
        parsed: &Parsed,
        parameter_types: &[ColumnType],
    ) -> Result<planner::Plan, Box<ClientError>> {
        let names = SessionNames::new(&self.state);
        let limits = self.state.variables.borrow().active().limits;
        self.plan_with(parsed, parameter_types, &names, limits)
    }

    /// The plan of a statement of the server's own, or of one that is not run yet: without limits.
    pub(crate) fn plan_own(&self, parsed: &Parsed) -> Result<planner::Plan, Box<ClientError>> {
        let names = SessionNames::new(&self.state);
        self.plan_with(parsed, &[], &names, StatementLimits::default())
    }

    /// The plan of a statement with these names.
    pub(crate) fn plan_with(
        &self,
        parsed: &Parsed,
        parameter_types: &[ColumnType],
        names: &SessionNames<'_>,
        limits: StatementLimits,
    ) -> Result<planner::Plan, Box<ClientError>> {
        let active = Rc::clone(self.state.variables.borrow().active());
        let database = self.state.database().as_deref().map(str::to_owned);
        let settings = planner::Settings {
            database,
            sql_mode: active.options.sql_mode,
            strings: parsed.text.strings,
            collation: active.strings.collation,
            division_increment: active.options.division_increment,
            today: self.state.wall_now().date(),
            parameter_types: parameter_types.to_vec(),
            limits,
        };
        names.set_needed(needed(&parsed.statement.kind));
        self.statement_deadline();
        let plan = || planner::plan(&parsed.statement, &parsed.text, names, &settings);
        let drafted = self.state.drafted(plan);
        let (mut plan, share) = drafted.map_err(|error| names.told(error))?;
        plan.memory = share;
        Ok(plan)
    }

    /// Statements that are not plans.
    async fn plain_statement(
        &mut self,
        parsed: &Parsed,
        run: &mut StatementRun,
    ) -> Result<Reply, Stop> {
        match &parsed.statement.kind {
            StatementKind::Transaction(statement) => {
                self.transaction_statement(statement, run).await
            }
            StatementKind::Set(items) => self.set_statement(items, parsed).await,
            StatementKind::Empty => Ok(Reply::Ok(crate::connection::reply::Done::default())),
            StatementKind::Use(name) => self.use_statement(&name.text),
            StatementKind::Show(show) => self.show_statement(show, parsed, run).await,
            StatementKind::Explain(explain) => self.explain_statement(explain, parsed, run).await,
            StatementKind::Prepared(statement) => {
                self.prepared_statement(statement, parsed, run).await
            }
            StatementKind::Account(statement) => self.account_statement(statement, parsed).await,
            StatementKind::Admin(Admin::Kill { query, id }) => {
                let id = self.constant(id, parsed).await?;
                self.kill_statement(&id, *query).await
            }
            StatementKind::Admin(statement) => self.admin_statement(statement, run).await,
            StatementKind::Refused(refused) => {
                Err(ClientError::not_supported(&refused.name).into())
            }
            StatementKind::LoadData(load) => self.load_statement(load, parsed).await,
            StatementKind::Call(call) => Box::pin(self.call_statement(call, parsed, run)).await,
            StatementKind::Program(program) => {
                Box::pin(self.program_statement(program, parsed, run)).await
            }
            StatementKind::CreateRoutine(create) => self.create_routine(create, parsed).await,
            StatementKind::AlterRoutine(alter) => self.alter_routine(alter).await,
            StatementKind::DropRoutine(drop) => self.drop_routine(drop).await,
            StatementKind::SetStatement {
                variables,
                statement,
            } => {
                let inner = Parsed::new((**statement).clone(), parsed.text.clone());
                Box::pin(self.set_for_statement(variables, (&inner, parsed), run)).await
            }
            _ => self.definition_statement(parsed).await,
        }
    }

    fn use_statement(&mut self, name: &str) -> Result<Reply, Stop> {
        self.use_database(name)?;
        self.track_schema();
        Ok(Reply::Ok(crate::connection::reply::Done::default()))
    }

    /// The session's `sql_mode`.
    pub(crate) fn mode(&self) -> settings::SqlMode {
        self.state.variables.borrow().active().options.sql_mode
    }

    /// Converts a statement from the client's character set to UTF-8.
    pub(crate) fn to_utf8(&self, text: &[u8]) -> Vec<u8> {
        let charset = self.state.variables.borrow().active().strings.client;
        charset.read_statement(text).into_owned()
    }

    /// Converts a name from the client's character set to UTF-8.
    pub(crate) fn text_of(&self, name: &[u8]) -> String {
        String::from_utf8_lossy(&self.to_utf8(name)).into_owned()
    }

    /// Shows the statement's text in the process list until the end of the command.
    pub(crate) fn list_text(&self, text: &[u8]) {
        let listed = &text[..text.len().min(LISTED_TEXT_BYTES_MAX)];
        let listed = String::from_utf8_lossy(listed);
        self.state.handle.update(|line| {
            line.statement.clear();
            line.statement.push_str(&listed);
        });
    }
}

/// The text without the zero byte that C programs send along.
fn without_end(text: &[u8]) -> &[u8] {
    text.strip_suffix(b"\0").unwrap_or(text)
}

/// Statements that read the last statement's warnings and therefore keep them.
fn keeps_diagnostics(kind: &StatementKind) -> bool {
    use syntax::ast::ShowKind::{CountErrors, CountWarnings, Errors, Warnings};
    match kind {
        StatementKind::Show(show) => {
            matches!(
                show.kind,
                Warnings(_) | Errors(_) | CountWarnings | CountErrors
            )
        }
        // They read or raise conditions themselves.
        StatementKind::Program(_) => true,
        _ => false,
    }
}

/// `SELECT @@warning_count` and the like: such a statement has no warnings and reads those of the
/// last one.
fn reads_variables_alone(kind: &StatementKind) -> bool {
    use syntax::ast::{ExprKind, QueryBody, SelectItem};
    let StatementKind::Query(query) = kind else {
        return false;
    };
    let QueryBody::Select(select) = &query.body else {
        return false;
    };
    let is_variable = |item: &SelectItem| {
        matches!(item, SelectItem::Expr { expr, .. }
            if matches!(expr.kind, ExprKind::SystemVariable(_)))
    };
    select.from.is_empty() && query.into.is_none() && select.items.iter().all(is_variable)
}

/// Statements that a read-only transaction refuses, whatever tables they name.
fn is_write(kind: &StatementKind) -> bool {
    matches!(
        kind,
        StatementKind::Insert(_) | StatementKind::Update(_) | StatementKind::Delete(_)
    )
}

/// The privilege that a statement needs on the first table that it names.
fn needed(kind: &StatementKind) -> &'static str {
    match kind {
        StatementKind::Insert(insert) if insert.is_replace => "INSERT, DELETE",
        StatementKind::Insert(insert) if !insert.on_duplicate.is_empty() => "INSERT, UPDATE",
        StatementKind::Insert(_) | StatementKind::LoadData(_) => "INSERT",
        StatementKind::Update(_) => "UPDATE",
        StatementKind::Delete(_) => "DELETE",
        StatementKind::Explain(explain) => match &**explain {
            Explain::Statement { statement, .. } => needed(&statement.kind),
            _ => "SELECT",
        },
        _ => "SELECT",
    }
}

/// The counter of a statement.
pub(crate) fn counted(kind: &StatementKind) -> Counted {
    use syntax::ast::{Transaction, Xa};
    match kind {
        StatementKind::Query(_) => Counted::Select,
        StatementKind::Insert(_) => Counted::Insert,
        StatementKind::Update(_) => Counted::Update,
        StatementKind::Delete(_) => Counted::Delete,
        StatementKind::Transaction(Transaction::Begin { .. }) => Counted::Begin,
        StatementKind::Transaction(Transaction::Commit(_)) => Counted::Commit,
        StatementKind::Transaction(Transaction::Rollback(_)) => Counted::Rollback,
        StatementKind::Transaction(Transaction::Xa(statement)) => match statement {
            Xa::Start { .. } => Counted::XaStart,
            Xa::End { .. } => Counted::XaEnd,
            Xa::Prepare(_) => Counted::XaPrepare,
            Xa::Commit { .. } => Counted::XaCommit,
            Xa::Rollback(_) => Counted::XaRollback,
            Xa::Recover { .. } => Counted::XaRecover,
        },
        _ => Counted::Other,
    }
}

/// The error for a text that is no statement.
pub(crate) fn syntax_error(error: &syntax::parse::SyntaxError) -> ClientError {
    match error.kind {
        SyntaxErrorKind::Unexpected => ClientError::syntax(
            &error.near,
            usize::try_from(error.line).unwrap_or(usize::MAX),
        ),
        SyntaxErrorKind::Empty => ClientError::new(ER_EMPTY_QUERY, &[]),
        SyntaxErrorKind::Routine(kind) => routine_error(kind, &error.name),
        SyntaxErrorKind::TooDeep => {
            ClientError::worded(WORDS_NESTED_TOO_DEEPLY, &[&error.near, &error.line])
        }
        SyntaxErrorKind::TooLong => {
            let what = format!("lists of more than {LIST_LEN_MAX} items");
            ClientError::not_supported(&what)
        }
        SyntaxErrorKind::TooManyColumns => ClientError::new(ER_TOO_MANY_FIELDS, &[]),
        SyntaxErrorKind::NotUtf8 => {
            ClientError::new(ER_INVALID_CHARACTER_STRING, &[&"utf8mb4", &error.near])
        }
        SyntaxErrorKind::Stopped => ClientError::new(ER_QUERY_INTERRUPTED, &[]),
    }
}

/// The error of a second statement where one was allowed.
fn syntax_error_at(rest: &[u8]) -> ClientError {
    ClientError::syntax(&syntax::parse::quoted(rest.trim_ascii_start()), 1)
}

/// The error of a `?` in a text that is not prepared.
fn stray_parameter(text: &[u8], mode: settings::SqlMode) -> ClientError {
    let mut lexer = syntax::token::Lexer::new(text, mode);
    loop {
        let token = lexer.next_token();
        if matches!(token.kind, Kind::Parameter | Kind::End) {
            let start = usize::try_from(token.span.start).unwrap_or(usize::MAX);
            let (before, near) = text.split_at_checked(start).unwrap_or((text, &[]));
            let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
            let near: String = String::from_utf8_lossy(near).chars().take(80).collect();
            return ClientError::syntax(&near, line);
        }
    }
}

/// True if anything but comments is left.
fn has_token(text: &[u8], mode: settings::SqlMode) -> bool {
    let mut lexer = syntax::token::Lexer::new(text, mode);
    lexer.next_token().kind != Kind::End
}

/// True if only blanks and semicolons are left.
fn is_blank(text: &[u8]) -> bool {
    text.iter()
        .all(|byte| byte.is_ascii_whitespace() || *byte == b';' || *byte == 0)
}

/// The error for a stored program that contradicts itself. `name` is the name in question.
pub(crate) fn routine_error(kind: RoutineError, name: &str) -> ClientError {
    let code = kind.code();
    match kind {
        RoutineError::LeaveLabel => ClientError::new(code, &[&"LEAVE", &name]),
        RoutineError::IterateLabel => ClientError::new(code, &[&"ITERATE", &name]),
        RoutineError::Statement(what)
        | RoutineError::StatementInFunction(what)
        | RoutineError::Create(what)
        | RoutineError::Change(what)
        | RoutineError::Unsupported(what) => ClientError::new(code, &[&what]),
        RoutineError::LabelAgain
        | RoutineError::EndLabel
        | RoutineError::UndeclaredCondition
        | RoutineError::NoReturn
        | RoutineError::UndeclaredCursor
        | RoutineError::UndeclaredVariable
        | RoutineError::ParameterAgain
        | RoutineError::VariableAgain
        | RoutineError::ConditionAgain
        | RoutineError::CursorAgain
        | RoutineError::CursorParameterCount
        | RoutineError::BadState => ClientError::new(code, &[&name]),
        RoutineError::SignalItemAgain => ClientError::new(code, &[&name.to_uppercase()]),
        RoutineError::ResultSet => ClientError::new(code, &[&"function"]),
        RoutineError::Return
        | RoutineError::CursorInto
        | RoutineError::VariableLate
        | RoutineError::CursorLate
        | RoutineError::HandlerAgain
        | RoutineError::SignalCondition
        | RoutineError::Commit
        | RoutineError::Autocommit => ClientError::new(code, &[]),
    }
}
