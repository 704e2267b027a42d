//! What a session remembers between statements, as expressions see it.
//!
//! Everything is behind shared references: an expression that assigns a user variable does so while
//! its row is borrowed. A session is one task, and no guard of these cells is held over an await.
//! So two borrows never meet.

use std::cell::{Cell, RefCell, RefMut};
use std::rc::Rc;
use std::sync::Arc;

use catalog::{Account, AccountName, Accounts, ComesFrom, SessionPrivileges};
use clients::{KillOrder, SessionHandle};
use errcode::{
    ClientError, ER_GLOBAL_VARIABLE, ER_INCORRECT_GLOBAL_LOCAL_VAR, ER_LOCAL_VARIABLE,
    ER_QUERY_INTERRUPTED, ER_SERVER_SHUTDOWN, ER_STATEMENT_TIMEOUT, ER_UNKNOWN_SYSTEM_VARIABLE,
    ER_VARIABLE_IS_READONLY, ER_WRONG_TYPE_FOR_VAR, ER_WRONG_VALUE_FOR_VAR,
};
use executor::{HandlerCall, HandlerCounts};
use expression::{Diagnostics, Memory, MemoryPool, Share, StatementOptions};
use function::{RandomState, SessionFacts};
use planner::Plan;
use value::{ColumnType, DateTime, Level, Value};

use crate::connection::liveness_probe::LivenessProbe;
use crate::connection::running_statement::RunningStatement;
use crate::server::draft::Draft;
use crate::variables::system::{self, Extra, VariableError, Variables};
use crate::variables::user_variables::{self, UserVariables};
use crate::variables::value::{micros_value, setting_value};
use crate::worker::Worker;

/// What a named lock takes: its name, held three times while the statement that takes it runs.
const NAMED_LOCK_BYTES: usize = 640;

/// A session's memory.
#[derive(Debug)]
pub struct State {
    /// The worker that the session belongs to. Constant.
    pub worker: Rc<Worker>,
    /// Its entry in the process list. Constant.
    pub handle: Arc<SessionHandle>,
    /// The account it acts as: that of the login, or the definer of a stored program.
    acting: RefCell<Acting>,
    /// The accounts from which `acting` was last derived.
    seen_accounts: RefCell<Option<Arc<Accounts>>>,
    /// System variables.
    pub variables: RefCell<Variables>,
    /// `@name`.
    user_variables: RefCell<UserVariables>,
    /// The latest list of warnings.
    pub diagnostics: RefCell<Rc<Diagnostics>>,
    /// What the statement that runs has of its own.
    pub(crate) running: RunningStatement,
    /// `@@in_transaction`.
    pub in_transaction: Cell<bool>,
    /// What its statements have asked of tables since FLUSH STATUS (`Handler_%`).
    handler: RefCell<HandlerCounts>,
    /// What the session keeps between statements: variables, savepoints, prepared statements and
    /// their cursors.
    kept_memory: Rc<Memory>,
    /// What its statements take beside their executions: trees and plans, program variables, values
    /// of SET, long rows that wait to be sent.
    passing_memory: Rc<Memory>,
    /// The tree or the plan that is being built.
    draft: RefCell<Draft>,
    /// The memory share of the user variables.
    user_variables_share: RefCell<Share>,
    /// The memory share of long rows that wait to be sent.
    reply_share: RefCell<Share>,
    /// How many named locks it holds, counting each time one was taken.
    named_lock_count: Cell<u64>,
    /// The memory share of the named locks.
    named_locks_share: RefCell<Share>,
    /// The number of the deadlock that the session has reported last.
    pub(crate) reported_deadlock: Cell<u64>,
    /// Whether the connection goes over TLS; set at login.
    pub has_tls: Cell<bool>,
    /// LOCK TABLES is in effect; written by `LockedTables` alone.
    pub(crate) locks_tables: Rc<Cell<bool>>,
    /// Whether the client is connected while a statement computes.
    pub(crate) liveness_probe: LivenessProbe,
    /// The current database, the user, and what else information functions return.
    facts: RefCell<SessionFacts>,
}

/// The account a session acts as.
#[derive(Debug)]
pub struct Acting {
    /// Derived from published accounts, so that their address shows whether they are current.
    privileges: SessionPrivileges,
    from: ComesFrom,
}

impl Acting {
    /// Acts as that account.
    pub fn new(account: Arc<Account>, from: ComesFrom) -> Self {
        let privileges = SessionPrivileges::of_account(account);
        Self { privileges, from }
    }

    fn name(&self) -> &AccountName {
        &self.privileges.account().name
    }

    /// Brings the account, and those that serve it, up to date.
    fn renew(&mut self, accounts: &Accounts) {
        let known = self.privileges.account();
        let account = Arc::clone(accounts.by_name(&known.name).unwrap_or(known));
        self.privileges = SessionPrivileges::new(&account, accounts, self.from);
    }
}

impl State {
    /// A session's memory after its login.
    pub fn new(
        worker: Rc<Worker>,
        handle: Arc<SessionHandle>,
        user_text: String,
        acting: Acting,
    ) -> Self {
        let settings = worker.server.settings();
        let facts = RefCell::new(SessionFacts {
            version: settings.text("version").to_owned(),
            connection_id: handle.id(),
            user: user_text,
            current_user: account_text(acting.name()),
            ..SessionFacts::default()
        });
        let variables = Variables::new(settings);
        let (kept_memory, passing_memory) = Memory::of_session();
        Self {
            worker,
            handle,
            acting: RefCell::new(acting),
            seen_accounts: RefCell::default(),
            variables: RefCell::new(variables),
            user_variables: RefCell::default(),
            diagnostics: RefCell::default(),
            running: RunningStatement::default(),
            in_transaction: Cell::new(false),
            handler: RefCell::default(),
            kept_memory: Rc::new(kept_memory),
            passing_memory: Rc::new(passing_memory),
            draft: RefCell::default(),
            user_variables_share: RefCell::default(),
            reply_share: RefCell::default(),
            named_lock_count: Cell::new(0),
            named_locks_share: RefCell::default(),
            reported_deadlock: Cell::new(0),
            has_tls: Cell::new(false),
            locks_tables: Rc::default(),
            liveness_probe: LivenessProbe::default(),
            facts,
        }
    }

    /// Reports how much a part of the session keeps between statements.
    ///
    /// # Errors
    /// 1290 beyond `max_session_mem_used`, 1041 beyond half of `statement_memory_size`.
    pub(crate) fn keep(&self, share: &mut Share, bytes: usize) -> Result<(), ClientError> {
        self.count_in(&self.kept_memory, share, bytes)
    }

    /// Reports how much a part of a statement takes.
    ///
    /// # Errors
    /// 1290 beyond `max_session_mem_used`, 1041 beyond `statement_memory_size`.
    pub(crate) fn count(&self, share: &mut Share, bytes: usize) -> Result<(), ClientError> {
        self.count_in(&self.passing_memory, share, bytes)
    }

    fn count_in(
        &self,
        memory: &Rc<Memory>,
        share: &mut Share,
        bytes: usize,
    ) -> Result<(), ClientError> {
        let limit = self.variables.borrow().active().options.kept_bytes_max;
        let counted = share.set(bytes, memory, limit, || self.memory_pool());
        counted.map_err(|failure| *failure)
    }

    /// Reports how much long rows take that wait to be sent, before they take it.
    ///
    /// # Errors
    /// Those of [`State::count`].
    pub(crate) fn count_reply(&self, bytes: usize) -> Result<(), ClientError> {
        self.count(&mut self.reply_share.borrow_mut(), bytes)
    }

    /// Reports that long rows take no more than this.
    pub(crate) fn free_reply(&self, bytes: usize) {
        let mut share = self.reply_share.borrow_mut();
        let bytes = bytes.min(share.bytes());
        let left = self.count(&mut share, bytes);
        assert!(left.is_ok(), "less is never too much");
    }

    /// Builds a tree or a plan, and counts its memory, also during the build
    /// ([`expression::SessionContext::give_way`]).
    ///
    /// # Errors
    /// Those of `make`, and those of [`State::count`].
    pub(crate) fn drafted<T>(
        &self,
        make: impl FnOnce() -> Result<T, Box<ClientError>>,
    ) -> Result<(T, Share), Box<ClientError>> {
        self.begin_draft();
        let made = make();
        let counted = self.count_draft();
        let share = self.end_draft();
        let made = made?;
        counted?;
        Ok((made, share))
    }

    /// Begins to count what this thread allocates where it gives way.
    pub(crate) fn begin_draft(&self) {
        let now = (self.worker.server.heap.thread_bytes)();
        self.draft.borrow_mut().begin(now);
    }

    /// Ends that; returns the share of what was counted.
    pub(crate) fn end_draft(&self) -> Share {
        self.draft.borrow_mut().end()
    }

    /// Counts the memory of the draft so far.
    fn count_draft(&self) -> Result<(), expression::Failure> {
        let now = (self.worker.server.heap.thread_bytes)();
        match self.draft.borrow_mut().pause(now) {
            Some((bytes, share)) => Ok(self.count(share, bytes)?),
            None => Ok(()),
        }
    }

    /// How many named locks the session holds, counting each time one was taken.
    pub(crate) fn named_lock_count(&self) -> u64 {
        self.named_lock_count.get()
    }

    /// Sets that count; error 1290 or 1041 if the memory does not suffice.
    pub(crate) fn set_named_lock_count(&self, count: u64) -> Result<(), ClientError> {
        let bytes = stdx::to_usize(count).saturating_mul(NAMED_LOCK_BYTES);
        self.keep(&mut self.named_locks_share.borrow_mut(), bytes)?;
        self.named_lock_count.set(count);
        Ok(())
    }

    /// As after a login: COM_RESET_CONNECTION.
    pub fn reset(&self) {
        self.variables
            .borrow_mut()
            .reset(self.worker.server.settings());
        *self.user_variables.borrow_mut() = UserVariables::default();
        *self.user_variables_share.borrow_mut() = Default::default();
        *self.diagnostics.borrow_mut() = Rc::default();
        {
            let mut facts = self.facts.borrow_mut();
            facts.row_count = 0;
            facts.found_rows = 0;
            facts.last_insert_id = 0;
            facts.random_state = None;
        }
        self.flush_status();
    }

    /// Counts what a part of a statement asked of tables.
    pub(crate) fn count_handler(&self, counts: &HandlerCounts) {
        self.handler.borrow_mut().add(counts);
        self.worker.counters().count_handler(counts);
    }

    /// Counts one call of a transaction.
    pub(crate) fn count_handler_call(&self, call: HandlerCall) {
        self.handler.borrow_mut().count(call);
        self.worker.counters().handler(call).increment();
    }

    /// The `Handler_%` counts of the session.
    pub(crate) fn handler_counts(&self) -> HandlerCounts {
        *self.handler.borrow()
    }

    /// Sets the session's counts to zero; the server's go on.
    pub(crate) fn flush_status(&self) {
        self.handler.take();
    }

    /// What LAST_INSERT_ID() returns.
    pub fn last_insert_id(&self) -> u64 {
        self.facts.borrow().last_insert_id
    }

    /// The argument of `LAST_INSERT_ID(number)`, if it was called since the statement began.
    pub fn given_insert_id(&self) -> Option<u64> {
        let facts = self.facts.borrow();
        facts
            .is_last_insert_id_given
            .then_some(facts.last_insert_id)
    }

    /// Records whether `LAST_INSERT_ID(number)` has been called since the statement began.
    pub fn set_insert_id_given(&self, is_given: bool) {
        self.facts.borrow_mut().is_last_insert_id_given = is_given;
    }

    /// Sets what LAST_INSERT_ID() returns.
    pub fn set_last_insert_id(&self, id: u64) {
        self.facts.borrow_mut().last_insert_id = id;
    }

    /// The account that the session acts as, up to date; that of the login if it is gone.
    pub fn account(&self) -> Arc<Account> {
        Arc::clone(self.privileges().account())
    }

    /// The privileges that the session has now. They follow the current accounts, so a REVOKE holds
    /// from the next statement on.
    pub fn privileges(&self) -> SessionPrivileges {
        let server = &self.worker.server;
        let mut seen = self.seen_accounts.borrow_mut();
        let mut acting = self.acting.borrow_mut();
        if !seen.as_ref().is_some_and(|seen| server.are_current(seen)) {
            let accounts = server.accounts();
            acting.renew(&accounts);
            *seen = Some(accounts);
        }
        acting.privileges.clone()
    }

    /// Switches the session to another account: COM_CHANGE_USER. The current database stays.
    pub fn set_account(&self, user_text: String, acting: Acting) {
        {
            let mut facts = self.facts.borrow_mut();
            facts.user = user_text;
            facts.current_user = account_text(acting.name());
        }
        *self.acting.borrow_mut() = acting;
        *self.seen_accounts.borrow_mut() = None;
    }

    /// The session acts under another account with these privileges. Returns the former one, to be
    /// restored later.
    pub(crate) fn act_as(&self, acting: Acting) -> Acting {
        self.facts.borrow_mut().current_user = account_text(acting.name());
        *self.seen_accounts.borrow_mut() = None;
        self.acting.replace(acting)
    }

    /// The name of the account.
    pub fn account_name(&self) -> AccountName {
        self.acting.borrow().name().clone()
    }

    /// The current database.
    pub fn database(&self) -> Option<Rc<str>> {
        self.facts.borrow().database.clone()
    }

    /// Sets the current database, and returns the former one.
    pub fn set_database(&self, database: Option<Rc<str>>) -> Option<Rc<str>> {
        std::mem::replace(&mut self.facts.borrow_mut().database, database)
    }

    /// `ROW_COUNT()`.
    pub fn row_count(&self) -> i64 {
        self.facts.borrow().row_count
    }

    /// Sets what `ROW_COUNT()` returns.
    pub fn set_row_count(&self, count: i64) {
        self.facts.borrow_mut().row_count = count;
    }

    /// `FOUND_ROWS()`.
    pub fn found_rows(&self) -> u64 {
        self.facts.borrow().found_rows
    }

    /// Sets what `FOUND_ROWS()` returns.
    pub fn set_found_rows(&self, count: u64) {
        self.facts.borrow_mut().found_rows = count;
    }

    /// The current database's name, or error 1046.
    pub fn current_database(&self) -> Result<Rc<str>, ClientError> {
        self.database()
            .ok_or_else(|| ClientError::new(errcode::ER_NO_DB_ERROR, &[]))
    }

    /// How many seconds the statement waits for metadata locks.
    pub(crate) fn definition_wait_limit_s(&self) -> u64 {
        let own = self.running.definition_wait_s();
        own.unwrap_or_else(|| self.variables.borrow().active().lock_wait_timeout_s)
    }

    /// The constants of a statement that begins now.
    pub fn statement_options(&self) -> StatementOptions {
        let variables = self.variables.borrow();
        StatementOptions {
            now_us: self.now_us(&variables),
            insert_id: variables.extra.insert_id,
            ..variables.active().options.clone()
        }
    }

    /// The start time of a statement that begins now, in microseconds since 1970 UTC.
    fn now_us(&self, variables: &Variables) -> i64 {
        let set = variables.extra.timestamp_us;
        set.or_else(|| self.running.caller_began_us())
            .unwrap_or_else(|| self.worker.wall_us())
    }

    /// Now, in the session's time zone.
    pub fn wall_now(&self) -> DateTime {
        let variables = self.variables.borrow();
        let now_us = self.now_us(&variables);
        self.running.wall(now_us, &variables.active().options.zone)
    }

    /// The type of `@name`, in lower case.
    pub(crate) fn user_variable_type(&self, name: &str) -> ColumnType {
        self.user_variables.borrow().type_of(name)
    }

    /// True if a plan is valid for the current user variables: each that it reads has the type that
    /// it had when the plan was made.
    pub(crate) fn has_types_of(&self, plan: &Plan) -> bool {
        plan.user_variables.is_empty() || {
            let variables = self.user_variables.borrow();
            let mut read = plan.user_variables.iter();
            read.all(|(name, column_type)| variables.is_of_type(name, column_type))
        }
    }

    /// Forgets the last statement's warnings.
    pub fn clear_diagnostics(&self) {
        self.running.begin_warnings();
        let mut diagnostics = self.diagnostics.borrow_mut();
        match Rc::get_mut(&mut diagnostics) {
            Some(own) => own.clear(),
            None => *diagnostics = Rc::default(),
        }
        let variables = self.variables.borrow();
        let active = variables.active();
        let mut warnings = diagnostics.warnings();
        warnings.set_limits(active.warning_count_max, active.has_notes);
    }

    /// The state of RAND() without a seed, once a seed was set.
    fn random_state(&self) -> Option<RandomState> {
        self.facts.borrow().random_state
    }

    /// `SET rand_seed1`, `rand_seed2`; the other one is kept, or drawn at random.
    pub fn set_random_state(&self, change: impl FnOnce(&mut RandomState)) {
        let (first, second) = (self.random() >> 34, self.random() >> 34);
        let mut facts = self.facts.borrow_mut();
        change(
            facts
                .random_state
                .get_or_insert(RandomState { first, second }),
        );
    }

    /// The statement has used up `SET insert_id`.
    pub fn clear_insert_id(&self) {
        self.variables.borrow_mut().extra.insert_id = None;
    }

    /// How many errors the last statement left.
    pub fn error_count(&self) -> u64 {
        let diagnostics = self.diagnostics.borrow();
        let warnings = diagnostics.warnings();
        let errors = warnings
            .entries()
            .iter()
            .filter(|(level, _)| *level == Level::Error);
        errors.count() as u64
    }

    /// A system variable that is no setting.
    fn extra_variable(&self, name: &str) -> Option<Value> {
        let variables = self.variables.borrow();
        let Extra {
            timestamp_us,
            insert_id,
        } = variables.extra;
        Some(match name {
            "last_insert_id" | "identity" => Value::UInt(self.last_insert_id()),
            "insert_id" => Value::UInt(insert_id.unwrap_or(0)),
            "rand_seed1" => Value::UInt(self.random_state().map_or(0, |state| state.first)),
            "rand_seed2" => Value::UInt(self.random_state().map_or(0, |state| state.second)),
            "timestamp" => {
                let micros = timestamp_us.unwrap_or_else(|| self.worker.wall_us());
                micros_value(micros)
            }
            "warning_count" => Value::UInt(self.diagnostics.borrow().warnings().count()),
            "error_count" => Value::UInt(self.error_count()),
            "pseudo_thread_id" => Value::UInt(self.handle.id()),
            "in_transaction" => Value::UInt(u64::from(self.in_transaction.get())),
            _ => return None,
        })
    }
}

/// `CURRENT_USER()` of an account.
fn account_text(name: &AccountName) -> String {
    format!("{}@{}", name.user, name.host)
}

/// The error for a variable that cannot be read or set.
pub fn variable_error(name: &str, error: &VariableError) -> ClientError {
    match error {
        VariableError::Unknown => ClientError::new(ER_UNKNOWN_SYSTEM_VARIABLE, &[&name]),
        VariableError::ReadOnly => {
            ClientError::new(ER_INCORRECT_GLOBAL_LOCAL_VAR, &[&name, &"read only"])
        }
        VariableError::ReadOnlyInSession => {
            let code = ER_VARIABLE_IS_READONLY;
            ClientError::new(code, &[&"SESSION", &name, &"GLOBAL"])
        }
        VariableError::NotBuilt { text } => ClientError::not_supported(&format!("{name}={text}")),
        VariableError::SessionOnly => ClientError::new(ER_LOCAL_VARIABLE, &[&name]),
        VariableError::GlobalOnly => ClientError::new(ER_GLOBAL_VARIABLE, &[&name]),
        VariableError::WrongLevel { level } => {
            ClientError::new(ER_INCORRECT_GLOBAL_LOCAL_VAR, &[&name, level])
        }
        VariableError::WrongValue { text } if name == "time_zone" => {
            ClientError::new(errcode::ER_UNKNOWN_TIME_ZONE, &[text])
        }
        VariableError::WrongValue { text } => {
            let mut error = ClientError::new(ER_WRONG_VALUE_FOR_VAR, &[&name, text]);
            if let Some(kind) = settings::find(name).map(|(_, found)| found.kind)
                && matches!(kind, settings::Kind::CountOrAuto { .. })
            {
                // Plateau's own, so no manual of MariaDB tells what is allowed.
                error.message.push_str(": expected ");
                error.message.push_str(&kind.describe());
            }
            error
        }
        VariableError::WrongType => ClientError::new(ER_WRONG_TYPE_FOR_VAR, &[&name]),
    }
}

/// The session's part of [`expression::SessionContext`].
impl State {
    /// `@name`, in lower case, as a value of that type.
    pub(crate) fn user_variable(&self, name: &str, as_type: &ColumnType) -> Value {
        self.user_variables.borrow().value(name, as_type)
    }

    /// `@name := value`.
    ///
    /// # Errors
    /// Those of [`State::keep`].
    pub(crate) fn set_user_variable(
        &self,
        name: &str,
        value: Value,
        column_type: &ColumnType,
    ) -> Result<(), expression::Failure> {
        let name = name.to_lowercase();
        let (value, column_type) = user_variables::kept(value, column_type);
        let mut variables = self.user_variables.borrow_mut();
        let bytes = variables.bytes_with(&name, &value);
        self.keep(&mut self.user_variables_share.borrow_mut(), bytes)?;
        variables.set(&name, value, column_type, bytes);
        Ok(())
    }

    /// `@@name`.
    pub(crate) fn system_variable(
        &self,
        scope: Option<settings::VariableScope>,
        name: &str,
    ) -> Result<Value, expression::Failure> {
        let name = name.to_ascii_lowercase();
        let is_global = scope == Some(settings::VariableScope::Global);
        if !is_global && let Some(value) = self.extra_variable(&name) {
            return Ok(value);
        }
        let fail = |error| Box::new(variable_error(&name, &error));
        let found = system::visible(&name);
        if found.is_err() && self.extra_variable(&name).is_some() {
            return Err(fail(VariableError::WrongLevel { level: "SESSION" }));
        }
        let setting = found.map_err(fail)?;
        let is_session_only = scope == Some(settings::VariableScope::Session);
        let is_sessions =
            setting.scope == settings::Scope::Session || system::is_fixed_in_sessions(setting.name);
        if is_session_only && !is_sessions {
            return Err(fail(VariableError::WrongLevel { level: "GLOBAL" }));
        }
        let globals = self.worker.server.settings();
        let variables = self.variables.borrow();
        let values = if setting.scope == settings::Scope::Session && !is_global {
            variables.settings()
        } else {
            &*globals
        };
        Ok(values
            .value(setting.name)
            .map(|value| setting_value(setting.name, value))
            .unwrap_or_default())
    }

    /// What information functions return.
    pub(crate) fn facts(&self) -> RefMut<'_, SessionFacts> {
        self.facts.borrow_mut()
    }

    /// Random bits.
    pub(crate) fn random(&self) -> u64 {
        let mut bytes = [0; 8];
        (self.worker.front.options().random)(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// True once the statement was killed.
    pub(crate) fn is_killed(&self) -> bool {
        self.handle.order() != KillOrder::None
    }

    /// Where the memory of large statements comes from.
    pub(crate) fn memory_pool(&self) -> Arc<MemoryPool> {
        Arc::clone(&self.worker.server.memory_pool)
    }

    /// Lets others run, if the statement has had its time
    /// ([`expression::SessionContext::give_way`]).
    ///
    /// # Errors
    /// 1317, 1969 or 1053 if the statement is to end.
    pub(crate) fn give_way(&self) -> Result<(), expression::Failure> {
        let stopped = |code| Err(Box::new(ClientError::new(code, &[])));
        self.count_draft()?;
        let given = runtime::give_way();
        let now = (self.worker.server.heap.thread_bytes)();
        self.draft.borrow_mut().resume(now);
        if given == runtime::WayGiven::Ending {
            return stopped(ER_SERVER_SHUTDOWN);
        }
        self.look_at_peer();
        if self.is_killed() {
            return stopped(ER_QUERY_INTERRUPTED);
        }
        match self.running.is_over(|| self.worker.steady_us()) {
            true => stopped(ER_STATEMENT_TIMEOUT),
            false => Ok(()),
        }
    }
}
