//! Runs a plan: the one loop that awaits the store's suspensions.
//!
//! A statement runs between a mark of its transaction and its end. The error's effect decides what
//! a failure means: back to the mark, or the whole transaction is gone, or the plan was stale and
//! is made again. A statement that is its own transaction is committed here. Its reply is written
//! when the commit is as durable as requested.

use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use clients::KillOrder;
use clients::wait::{Interruption, interruptible};
use errcode::{
    ClientError, ER_LOCK_DEADLOCK, ER_LOCK_WAIT_TIMEOUT, ER_QUERY_INTERRUPTED, ER_SP_FETCH_NO_DATA,
    ER_STATEMENT_TIMEOUT, ER_WRONG_NUMBER_OF_COLUMNS_IN_SELECT,
};
use executor::{
    Effect, Execution, ExecutionContext, HandlerCall, Interrupt, KeptRows, Progress, Summary,
};
use expression::{Diagnostics, Statement};
use front::Disconnect;
use planner::{Action, Finding, IntoVariable, Plan, TableUse};
use store::{Suspend, TableId, Transaction, WaitReason};
use value::{Level, Value};
use wire::StatusFlags;

use crate::connection::kept_rows::CursorRows;
use crate::connection::reply::{Done, Reply, Stop};
use crate::connection::row_encoder::RowProtocol;
use crate::connection::session::Session;
use crate::connection::sink::{ResultState, Rows};
use crate::connection::transaction::End;
use crate::lock::metadata::Mode;
use crate::metrics::CountedStatement;
use crate::statement::statement_run::{Part, StatementRun};
use crate::statement::virtual_store::VirtualStore;
use crate::worker::parsed::Parsed;
use crate::worker::plan_cache::SharedPlan;

/// The outcome of running a plan.
pub(crate) enum Ran {
    /// It ran, and this is its reply.
    Reply(Reply),
    /// A table has changed since the plan was made; nothing was done.
    Stale,
}

impl Session {
    /// Runs a plan that belongs to this statement alone.
    pub(crate) async fn run_plan(
        &mut self,
        plan: Plan,
        parameters: &[Value],
        run: &mut StatementRun,
    ) -> Result<Ran, Stop> {
        let shared = SharedPlan::new(plan, CountedStatement::Other);
        self.run_shared(&shared, parameters, run, None).await
    }

    /// Runs a plan to its end and writes its rows, or keeps them in `kept`. The execution goes back
    /// to its plan before the commit, which may take long. So the next session runs it while it is
    /// warm.
    pub(crate) async fn run_shared(
        &mut self,
        shared: &SharedPlan,
        parameters: &[Value],
        run: &mut StatementRun,
        kept: Option<&mut CursorRows>,
    ) -> Result<Ran, Stop> {
        let plan = Rc::clone(shared.plan());
        check_parameters(&plan, parameters)?;
        if plan.is_write() || plan.reads_for_update {
            self.check_may_write()?;
        }
        self.programs.check_written(&plan)?;
        let is_taken = !plan.into_variables.is_empty();
        if is_taken {
            check_into(&plan)?;
        }
        // From here on the statement holds something, and ends by `finish_run`.
        if self.needs_admission(&plan, run) {
            self.admit().await?;
        }
        self.hold_tables(&plan, run).await?;
        // A statement without tables is no transaction, and does not consume what is set for the
        // next one.
        let uses_tables = !plan.tables.is_empty() || !plan.functions.is_empty();
        let idle =
            (!uses_tables && self.transaction.opened().is_none()).then_some(self.transaction.next);
        let charset = self.state.variables.borrow().active().results_charset;
        let mut result = ResultState::new(run.protocol, charset, self.status());
        let mut taken = is_taken.then(|| CursorRows::of_one_row(&self.state));
        let mut execution = shared.take();
        let mut rows = match taken.as_mut().or(kept) {
            Some(rows) => Rows::Kept(rows),
            None => Rows::Client(&mut result),
        };
        let outcome = self
            .step_to_end(&mut execution, parameters, &mut rows, run)
            .await;
        if outcome.is_ok() {
            shared.give_back(execution);
        }
        run.has_partial_rows = outcome.is_err() && result.has_begun();
        let has_rows = !plan.columns.is_empty() && !is_taken;
        self.transaction.seen.results |= has_rows;
        if !plan.tables.is_empty() {
            self.transaction.seen.writes |= plan.is_write();
            self.transaction.seen.reads |= !plan.is_write();
        }
        if matches!(plan.action, Action::Insert(_)) {
            self.state.clear_insert_id();
        }
        if idle.is_some() {
            self.transaction.forget_unused();
        }
        let ran = self.finish_run(outcome, has_rows, plan.is_write()).await;
        if let Some(next) = idle {
            self.transaction.next = next;
        }
        match (ran?, taken) {
            (Ran::Reply(_), Some(rows)) => Ok(Ran::Reply(self.assign_row(&plan, rows)?)),
            (ran, _) => Ok(ran),
        }
    }

    /// `SELECT .. INTO @a, b`: assigns the only row to the variables.
    fn assign_row(&mut self, plan: &Plan, rows: CursorRows) -> Result<Reply, ClientError> {
        let names = &plan.into_variables;
        let mut rows = rows.into_rows();
        let Some(row) = rows.next() else {
            let diagnostics = Rc::clone(&self.state.diagnostics.borrow());
            diagnostics.push(Level::Warning, ClientError::new(ER_SP_FETCH_NO_DATA, &[]));
            return Ok(Reply::Ok(Done::default()));
        };
        for ((target, value), column) in names.iter().zip(row).zip(plan.columns.iter()) {
            let column_type = &column.column_type;
            match target {
                IntoVariable::User(name) => {
                    self.state
                        .set_user_variable(name, value, column_type)
                        .map_err(|failure| *failure)?;
                }
                IntoVariable::Slot(slot) => self.set_local(*slot, value, column_type)?,
            }
        }
        self.state.set_row_count(1);
        Ok(Reply::Ok(Done {
            affected_rows: 1,
            ..Done::default()
        }))
    }

    /// Runs a reading plan of the session's own. Tables (functions may use some, too) are held,
    /// read and locked in the session's transaction, or in one that ends with the run. Returns
    /// `None` if the plan is stale; nothing was done then.
    pub(crate) async fn run_into(
        &mut self,
        execution: &mut Execution,
        parameters: &[Value],
        mut rows: Rows<'_>,
        run: &StatementRun,
    ) -> Result<Option<Summary>, Stop> {
        let plan = Rc::clone(execution.plan());
        assert!(!plan.is_write(), "what the session asks itself only reads");
        if plan.tables.is_empty() && plan.functions.is_empty() {
            let ran = self.run_without_tables(execution, parameters, &mut rows, run);
            return ran.await.map(Some);
        }
        if self.needs_admission(&plan, run) {
            self.admit().await?;
        }
        self.hold_tables(&plan, run).await?;
        let since = (self.begin_steps(), self.statement_deadline());
        let outcome = self
            .steps(execution, parameters, &mut rows, run, since)
            .await;
        self.transaction.seen.reads = true;
        self.end_run(outcome).await
    }

    /// A statement without tables needs no transaction: one that is created for it leaves no trace.
    async fn run_without_tables(
        &mut self,
        execution: &mut Execution,
        parameters: &[Value],
        rows: &mut Rows<'_>,
        run: &StatementRun,
    ) -> Result<Summary, Stop> {
        let was_open = self.transaction.opened().is_some();
        let since = (self.opened_transaction().mark(), self.statement_deadline());
        let outcome = self.steps(execution, parameters, rows, run, since).await;
        if !was_open {
            self.transaction.forget_unused();
        }
        outcome.map_err(|failed| failed.stop)
    }

    /// Runs a changing statement of the server's own on tables that this session has locked
    /// exclusively. Writes nothing to the client and commits nothing.
    pub(crate) async fn run_own(&mut self, parsed: &Parsed, part: Part) -> Result<(), Stop> {
        let run = &StatementRun::part(&self.state, part);
        let plan = Rc::new(self.plan_own(parsed)?);
        let mut execution = Execution::new(Rc::clone(&plan));
        let mut result = ResultState::new(RowProtocol::Text, None, StatusFlags::default());
        let mut rows = Rows::Client(&mut result);
        let outcome = self.step_to_end(&mut execution, &[], &mut rows, run).await;
        outcome.map(|_| ()).map_err(|failed| failed.stop)
    }

    /// The one value of a SELECT of the server's own, on tables that this session has locked
    /// exclusively.
    pub(crate) async fn read_own(&mut self, parsed: &Parsed) -> Result<Option<Value>, Stop> {
        let plan = Rc::new(self.plan_own(parsed)?);
        let mut execution = Execution::new(Rc::clone(&plan));
        let mut kept = KeptRows::default();
        let mut rows = Rows::Own {
            sink: &mut kept,
            is_strict: false,
        };
        let run = StatementRun::new(&self.state, RowProtocol::Text);
        let steps = self.step_to_end(&mut execution, &[], &mut rows, &run);
        if let Err(failed) = steps.await {
            self.abandon_transaction().await;
            return Err(failed.stop);
        }
        self.commit().await?;
        Ok(kept.rows.into_iter().flatten().next())
    }

    /// Locks the definitions of the plan's tables until the end of the transaction. If that fails
    /// and no transaction is open, all are released: nothing else would release them.
    pub(crate) async fn hold_tables(
        &mut self,
        plan: &Plan,
        run: &StatementRun,
    ) -> Result<(), Stop> {
        let is_stored = |table: &TableUse| !catalog::is_virtual(table.definition.id);
        if plan.tables.iter().any(is_stored) {
            self.check_xa_open()?;
        }
        let held = self.hold_each(plan, run).await;
        if held.is_err() && !self.transaction.is_open() {
            self.transaction.end();
        }
        held
    }

    async fn hold_each(&mut self, plan: &Plan, run: &StatementRun) -> Result<(), Stop> {
        if self.locked.are_on() {
            return Ok(self.check_locked(plan, run)?);
        }
        for table in &plan.tables {
            let id = table.definition.id;
            if run.is_filling(id) {
                continue;
            }
            if !self.transaction.holds(id) {
                let worker = Rc::clone(&self.state.worker);
                let locks = &worker.server.metadata;
                let hold = match worker.metadata.try_hold(locks, id) {
                    Some(hold) => hold,
                    None => {
                        let hold = worker.metadata.hold(locks, id);
                        Box::pin(self.wait_for_definition(id, Mode::Shared, hold)).await?
                    }
                };
                self.transaction.keep(hold);
            }
        }
        Ok(())
    }

    /// Runs a whole statement. No `async fn`: its future would hold that of `steps` in addition to
    /// the arguments.
    fn step_to_end(
        &mut self,
        execution: &mut Execution,
        parameters: &[Value],
        rows: &mut Rows<'_>,
        run: &StatementRun,
    ) -> impl Future<Output = Result<Summary, Failed>> {
        if !self.state.running.has_old_warnings() && run.part == Part::Whole {
            self.state.clear_diagnostics();
        }
        let mark = self.begin_steps();
        let deadline = self.statement_deadline();
        self.steps(execution, parameters, rows, run, (mark, deadline))
    }

    /// Begins a statement in the transaction, and first the transaction if there is none. Returns
    /// the mark to which a failure rolls back.
    pub(crate) fn begin_steps(&mut self) -> store::UndoMark {
        self.state.set_insert_id_given(false);
        let is_in_function = self.programs.is_in_function();
        let open = self.opened_transaction();
        // A stored function is a part of the calling statement.
        if !is_in_function {
            open.begin_statement();
        }
        open.mark()
    }

    /// The store's transaction, created if there is none. It waits for row locks as long as the
    /// session says now.
    fn opened_transaction(&mut self) -> &mut Box<dyn Transaction> {
        let options = self.transaction_options();
        let patience_s = options.lock_wait_timeout_s;
        let worker_store = Rc::clone(&self.state.worker.store);
        let open = self
            .transaction
            .store_transaction(&*worker_store, || options);
        open.set_lock_wait_timeout(patience_s);
        open
    }

    /// Runs an execution to its end within a statement that has begun; with the statement's start
    /// and deadline.
    pub(crate) async fn steps(
        &mut self,
        execution: &mut Execution,
        parameters: &[Value],
        rows: &mut Rows<'_>,
        run: &StatementRun,
        (mark, deadline): (store::UndoMark, Option<u64>),
    ) -> Result<Summary, Failed> {
        let plan = &Rc::clone(execution.plan());
        let options = run.state.statement_options();
        let diagnostics = Rc::clone(&run.state.diagnostics.borrow());
        let is_strict = rows.is_strict(plan, options.sql_mode);
        let statement = Statement {
            session: run,
            options: &options,
            diagnostics: &diagnostics,
            is_strict,
        };
        let store = VirtualStore::new(Rc::clone(&run.state));
        run.clear_waits();
        let refused = RefusedWarnings::of(&diagnostics, is_strict && has_strict_warnings(plan));
        execution.start(parameters);
        loop {
            let stepped = {
                let open = self.transaction.opened().expect("opened above");
                let mut world = ExecutionContext {
                    store: &store,
                    txn: &mut **open,
                    statement: &statement,
                };
                rows.step(execution, &mut world, &mut self.client, &run.state)
            };
            run.state.count_handler(&execution.take_handler_counts());
            let failed = |stop| Failed {
                stop,
                effect: Effect::Statement,
                mark,
            };
            // Boxed: few statements need the room.
            if run.has_sleep() && matches!(stepped, Ok(_) | Err(Interrupt::Call(_))) {
                let slept = Box::pin(self.sleep_off(run, deadline)).await;
                slept.map_err(failed)?;
            }
            if run.wants_lock() && matches!(stepped, Err(Interrupt::Error(_))) {
                Box::pin(self.wait_for_lock(run, rows, deadline))
                    .await
                    .map_err(failed)?;
                Box::pin(self.roll_back_to(mark)).await.map_err(failed)?;
                execution.start(parameters);
                continue;
            }
            let stopped = match stepped {
                Ok(Progress::Done(summary)) => match refused.first() {
                    None => return Ok(summary),
                    Some(error) => Err(error.into()),
                },
                Ok(Progress::Paused) => Box::pin(self.send_rows(deadline)).await,
                // Boxed: most statements never wait, and all would be larger for it.
                Err(Interrupt::Suspend(suspend)) => {
                    Box::pin(self.wait_and_sleep(suspend, rows, (plan, run), deadline)).await
                }
                Err(Interrupt::Call(call)) => {
                    let since = (options.now_us, deadline);
                    Box::pin(self.answer_call(&call, execution, run.part, since)).await
                }
                Err(Interrupt::Error(failure)) => {
                    return Err(refused.failed(*failure, mark));
                }
            };
            stopped.map_err(failed)?;
        }
    }

    /// Waits for the store, and then sleeps for what the statement has requested before. In this
    /// order: others may wait for the pages that the wait brings in.
    async fn wait_and_sleep(
        &mut self,
        suspend: Suspend,
        rows: &mut Rows<'_>,
        (plan, run): (&Plan, &StatementRun),
        deadline: Option<u64>,
    ) -> Result<(), Stop> {
        self.wait_and_tell(suspend, rows, plan, deadline).await?;
        if run.has_sleep() {
            self.sleep_off(run, deadline).await?;
        }
        Ok(())
    }

    /// Ends a statement of several runs in the store.
    pub(crate) async fn end_parts(
        &mut self,
        mark: store::UndoMark,
        deadline: Option<u64>,
    ) -> Result<(), Failed> {
        let failed = |stop, effect| Failed { stop, effect, mark };
        while let Some(open) = self.transaction.opened() {
            match open.end_statement() {
                Ok(()) => break,
                Err(store::Interrupt::Suspend(suspend)) => {
                    let waited = Box::pin(self.wait_until(suspend, deadline)).await;
                    waited.map_err(|stop| failed(stop, Effect::Statement))?;
                }
                Err(store::Interrupt::Error(error)) => {
                    let effect = executor::effect_of(&error);
                    return Err(failed(error.into(), effect));
                }
            }
        }
        Ok(())
    }

    /// Ends the statement, and makes its reply.
    pub(crate) async fn finish_run(
        &mut self,
        outcome: Result<Summary, Failed>,
        has_rows: bool,
        is_write: bool,
    ) -> Result<Ran, Stop> {
        Ok(match self.end_run(outcome).await? {
            Some(summary) => Ran::Reply(self.reply_of(&summary, has_rows, is_write)),
            None => Ran::Stale,
        })
    }

    /// Commits or rolls back what ends with the statement. Returns `None` if its plan was stale.
    async fn end_run(&mut self, outcome: Result<Summary, Failed>) -> Result<Option<Summary>, Stop> {
        let is_own_transaction = !self.transaction.is_begun()
            && !self.programs.is_in_function()
            && self.state.variables.borrow().active().autocommit;
        if outcome.is_ok()
            && let Some(pass) = self.transaction.pass()
        {
            pass.count_statement();
        }
        match outcome {
            Ok(summary) => {
                if is_own_transaction {
                    self.commit().await?;
                } else if self.transaction.is_active() {
                    self.state.count_handler_call(HandlerCall::Commit);
                }
                Ok(Some(summary))
            }
            Err(Failed {
                stop,
                effect: Effect::Transaction | Effect::Fatal,
                ..
            }) => {
                self.lose_transaction(&stop);
                self.report_deadlock(&stop);
                Err(stop)
            }
            Err(Failed { stop, effect, mark }) => {
                let next = self.transaction.next;
                if is_own_transaction {
                    self.end_transaction(End::Rollback).await?;
                } else {
                    self.roll_back_to(mark).await?;
                }
                if effect == Effect::StalePlan {
                    self.transaction.next = next;
                    Ok(None)
                } else {
                    Err(stop)
                }
            }
        }
    }

    /// The running statement's deadline, on the steady clock. Its time begins at the first call,
    /// and does not begin again with a wait or a plan.
    pub(crate) fn statement_deadline(&self) -> Option<u64> {
        let own = || {
            let limit_us = self.state.variables.borrow().active().statement_time_us_max;
            (limit_us != 0).then(|| self.state.worker.steady_us().saturating_add(limit_us))
        };
        // A statement of a routine shares the time of its CALL.
        let running = &self.state.running;
        let known = self.programs.deadline().or(running.deadline_us());
        let deadline = known.unwrap_or_else(own);
        running.set_deadline_us(deadline);
        deadline
    }

    pub(crate) async fn wait_until(
        &mut self,
        suspend: Suspend,
        deadline: Option<u64>,
    ) -> Result<(), Stop> {
        let reason = suspend.reason();
        if reason == WaitReason::Turn {
            suspend.await;
            return self.check_in_time(deadline);
        }
        let now_us = self.state.worker.steady_us();
        let _blocked = match reason {
            WaitReason::RowLock => self.transaction.pass().map(|pass| pass.block()),
            _ => None,
        };
        // When the time for a row lock is over, the store is asked again and fails.
        let lock_s = match reason {
            WaitReason::RowLock => Some(
                self.state
                    .variables
                    .borrow()
                    .active()
                    .row_lock_wait_timeout_s,
            ),
            _ => None,
        };
        let lock_us = lock_s.map(|seconds| seconds.saturating_mul(1_000_000));
        let left_us = deadline.map(|deadline| deadline.saturating_sub(now_us));
        let limit_us = match (lock_us, left_us) {
            (Some(lock), Some(left)) => Some(lock.min(left)),
            (lock, left) => lock.or(left),
        };
        let Some(limit_us) = limit_us else {
            return self.wait_for(reason, suspend).await;
        };
        let limited = runtime::timeout(Duration::from_micros(limit_us), suspend);
        let waited = self.wait_for(reason, limited).await?;
        let is_over = deadline.is_some_and(|deadline| deadline <= self.state.worker.steady_us());
        if waited.is_err() && is_over {
            Err(timed_out())
        } else {
            Ok(())
        }
    }

    /// Waits for a metadata lock, at most `lock_wait_timeout` or as long as the statement says:
    /// error 1205. If sessions would wait for each other, this one's transaction is rolled back:
    /// error 1213.
    pub(crate) async fn wait_for_definition<T>(
        &mut self,
        table: TableId,
        mode: Mode,
        wait: impl Future<Output = T>,
    ) -> Result<T, Stop> {
        let server = Arc::clone(&self.state.worker.server);
        let shared = self.transaction.held_tables().collect();
        let own = self.state.handle.id();
        let Ok(_noted) = server.metadata.note_wait(own, table, mode, shared) else {
            let ended = self.end_transaction(End::Rollback).await;
            // An XA transaction outlives this, and must not be committed without its changes.
            self.transaction.lost(ER_LOCK_DEADLOCK);
            ended?;
            return Err(ClientError::new(ER_LOCK_DEADLOCK, &[]).into());
        };
        let limit_s = self.state.definition_wait_limit_s();
        let lock_us = limit_s.saturating_mul(1_000_000);
        let deadline = self.statement_deadline();
        let left_us =
            deadline.map(|deadline| deadline.saturating_sub(self.state.worker.steady_us()));
        let limit_us = left_us.map_or(lock_us, |left| lock_us.min(left));
        let limited = runtime::timeout(Duration::from_micros(limit_us), wait);
        match self.wait_for(WaitReason::MetadataLock, limited).await? {
            Ok(value) => Ok(value),
            Err(_) if limit_us < lock_us => Err(timed_out()),
            Err(_) => Err(ClientError::new(ER_LOCK_WAIT_TIMEOUT, &[]).into()),
        }
    }

    /// As [`Session::wait_for`], until the statement's time is over.
    pub(crate) async fn wait_in_time<T>(
        &mut self,
        reason: WaitReason,
        wait: impl Future<Output = T>,
    ) -> Result<T, Stop> {
        let Some(deadline) = self.statement_deadline() else {
            return self.wait_for(reason, wait).await;
        };
        let left_us = deadline.saturating_sub(self.state.worker.steady_us());
        let limited = runtime::timeout(Duration::from_micros(left_us), wait);
        let waited = self.wait_for(reason, limited).await?;
        waited.map_err(|_| timed_out())
    }

    /// Waits for `wait`, for an order to be killed, and for the client's disconnect.
    pub(crate) async fn wait_for<T>(
        &mut self,
        reason: WaitReason,
        wait: impl Future<Output = T>,
    ) -> Result<T, Stop> {
        if is_for_others(reason) {
            self.post_replies().await?;
        }
        self.wait_shown(state_text(reason), wait).await
    }

    /// As [`Session::wait_for`], with a state for the process list; sends nothing before.
    pub(crate) async fn wait_shown<T>(
        &mut self,
        text: &'static str,
        wait: impl Future<Output = T>,
    ) -> Result<T, Stop> {
        let handle = Arc::clone(&self.state.handle);
        let waited = {
            let (gone, wait) = (pin!(self.client.peer_gone()), pin!(wait));
            interruptible(&handle, text, gone, wait).await
        };
        waited.map_err(|interruption| match interruption {
            Interruption::Killed => self.interrupted(),
            Interruption::PeerGone => Disconnect::PeerClosed.into(),
        })
    }

    /// The error of a killed statement.
    pub(crate) fn interrupted(&self) -> Stop {
        match self.state.handle.order() {
            KillOrder::Connection => Disconnect::Killed.into(),
            KillOrder::Query | KillOrder::None => {
                ClientError::new(ER_QUERY_INTERRUPTED, &[]).into()
            }
        }
    }
}

/// Error 1235 if a statement has parameters without values: `SET @a = ?`.
pub(crate) fn check_parameters(plan: &Plan, parameters: &[Value]) -> Result<(), ClientError> {
    if parameters.len() < plan.parameter_count {
        return Err(ClientError::not_supported(&"? in this statement"));
    }
    for check in &plan.text_checks {
        if let Some(Value::Bytes(text)) = parameters.get(check.parameter)
            && !check.to.can_hold(check.from, text)
        {
            return Err((*check.refusal).clone());
        }
    }
    Ok(())
}

/// `SELECT .. INTO` must name as many variables as there are columns.
fn check_into(plan: &Plan) -> Result<(), ClientError> {
    if plan.into_variables.len() == plan.columns.len() {
        return Ok(());
    }
    let code = ER_WRONG_NUMBER_OF_COLUMNS_IN_SELECT;
    Err(ClientError::new(code, &[]))
}

/// True if a warning of the statement is an error in strict mode: what it writes may depend on the
/// doubtful value. Rows that are found before anything is written are found without this rule.
fn has_strict_warnings(plan: &Plan) -> bool {
    match &plan.action {
        Action::Insert(_) => true,
        Action::Update(update) => update.finding == Finding::OneByOne && !update.is_ordered,
        _ => false,
    }
}

pub(crate) fn timed_out() -> Stop {
    ClientError::new(ER_STATEMENT_TIMEOUT, &[]).into()
}

/// A statement that failed.
pub(crate) struct Failed {
    /// Why.
    pub(crate) stop: Stop,
    /// Its effect on the transaction.
    pub(crate) effect: Effect,
    /// Where the statement began.
    pub(crate) mark: store::UndoMark,
}

/// The warnings that strict mode turns into errors of a statement.
struct RefusedWarnings<'s> {
    diagnostics: &'s Diagnostics,
    /// How many conditions there were before the statement; `None` if warnings are no errors.
    kept: Option<usize>,
}

impl<'s> RefusedWarnings<'s> {
    fn of(diagnostics: &'s Diagnostics, are_refused: bool) -> Self {
        let kept = are_refused.then(|| diagnostics.warnings().entries().len());
        Self { diagnostics, kept }
    }

    /// The first of them as an error; it and those behind it are removed from the warnings.
    fn first(&self) -> Option<ClientError> {
        let noted = self.diagnostics.warnings().take_first_behind(self.kept?)?;
        Some(*expression::failure(noted))
    }

    /// The failure, or the warning that preceded it.
    fn failed(&self, failure: executor::ExecutionError, mark: store::UndoMark) -> Failed {
        let executor::ExecutionError { error, effect } = failure;
        let first = match effect {
            Effect::Statement => self.first(),
            _ => None,
        };
        Failed {
            stop: first.unwrap_or(error).into(),
            effect,
            mark,
        }
    }
}

/// Whether a wait depends on other statements and has no end of its own.
fn is_for_others(reason: WaitReason) -> bool {
    match reason {
        WaitReason::RowLock
        | WaitReason::MetadataLock
        | WaitReason::LogSpace
        | WaitReason::Admission
        | WaitReason::Order
        | WaitReason::Remote => true,
        WaitReason::PageMiss
        | WaitReason::Growth
        | WaitReason::LatchBusy
        | WaitReason::NoFrame
        | WaitReason::Durability
        | WaitReason::CommitNumber
        | WaitReason::Turn => false,
    }
}

/// What the process list shows of a wait.
fn state_text(reason: WaitReason) -> &'static str {
    match reason {
        WaitReason::PageMiss => "Reading from disk",
        WaitReason::Growth => "Making room on disk",
        WaitReason::LatchBusy => "Waiting for a page",
        WaitReason::RowLock => "Waiting for row lock",
        WaitReason::MetadataLock => "Waiting for table metadata lock",
        WaitReason::LogSpace => "Waiting for room in the log",
        WaitReason::NoFrame => "Waiting for memory",
        WaitReason::Admission => "Waiting for admission",
        WaitReason::Durability => "Waiting for the log",
        WaitReason::CommitNumber => "Waiting for a commit",
        WaitReason::Order => "Waiting for the group",
        WaitReason::Turn => "",
        WaitReason::Remote => "Waiting for a server",
    }
}
