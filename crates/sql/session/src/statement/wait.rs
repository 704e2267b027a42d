//! Functions that wait: SLEEP and GET_LOCK.
//!
//! An expression cannot wait, since it is computed in the middle of a row. So it notes what it
//! waits for, and the statement's loop waits.
//!
//! SLEEP returns at once. The time is slept when the executor next returns control, before any
//! result is sent or committed. So the statement takes as long as it should, and SYSDATE is the
//! time after the sleep.
//!
//! GET_LOCK of a lock that another session holds fails with a mark in [`Waits`]. The statement's
//! effects are undone (rows back to the statement's mark, named locks one by one). Then it waits
//! for the lock and begins again. It can do so as long as no row was written to the client.

use builtin::SessionFunction;
use errcode::{
    ClientError, ER_LOCK_DEADLOCK, ER_QUERY_INTERRUPTED, ER_TOO_LONG_IDENT, ER_WRONG_VALUE_FOR_TYPE,
};
use expression::Failure;
use std::sync::Arc;
use std::time::Duration;
use value::{Charset, ColumnType, Level, TypeKind, Value};

use crate::connection::reply::Stop;
use crate::connection::session::Session;
use crate::connection::sink::Rows;
use crate::connection::state::State;
use crate::statement::run::timed_out;
use crate::statement::statement_run::StatementRun;

/// The longest name of a lock, in bytes.
const NAME_BYTES_MAX: usize = 192;

/// What a statement has to wait for.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// SLEEP, in microseconds.
    sleep_us: u64,
    /// The lock that stopped the statement, and for how many microseconds it is wanted at most.
    wanted: Option<(String, u64)>,
    /// When the wait for the current lock ends, on the steady clock.
    until: Option<(String, u64)>,
    /// Locks whose wait has timed out.
    given_up: Vec<String>,
    /// Locks taken since the statement began.
    taken: Vec<String>,
}

impl StatementRun {
    /// True if the statement still has to sleep.
    pub(crate) fn has_sleep(&self) -> bool {
        self.owed_sleep_us() != 0
    }

    /// How long it still has to sleep.
    pub(crate) fn owed_sleep_us(&self) -> u64 {
        self.waits.borrow().sleep_us
    }

    /// True if the statement was stopped by a named lock.
    pub(crate) fn wants_lock(&self) -> bool {
        self.waits.borrow().wanted.is_some()
    }

    /// Its steps begin.
    pub(crate) fn clear_waits(&self) {
        *self.waits.borrow_mut() = Waits::default();
    }

    /// Answers a function of the session.
    pub(crate) fn session_function(
        &self,
        function: SessionFunction,
        arguments: &[Value],
    ) -> Result<Value, Failure> {
        let locks = &self.state.worker.server.named_locks;
        let own = self.state.handle.id();
        match function {
            SessionFunction::Sleep => {
                let micros = self.micros(arguments.first()).unwrap_or(0);
                let mut waits = self.waits.borrow_mut();
                waits.sleep_us = waits.sleep_us.saturating_add(micros);
                return Ok(Value::Int(0));
            }
            SessionFunction::ReleaseAllLocks => {
                let released = locks.release_all(own);
                self.state.set_named_lock_count(0)?;
                return Ok(Value::Int(i64::try_from(released).unwrap_or(i64::MAX)));
            }
            _ => {}
        }
        let Some(name) = lock_name(arguments.first())? else {
            return Ok(Value::Null);
        };
        let truth = |is_true| Value::Int(i64::from(is_true));
        Ok(match function {
            SessionFunction::GetLock => return self.get_lock(name, arguments.get(1)),
            SessionFunction::ReleaseLock => match locks.release(&name, own) {
                Some(is_released) => {
                    let count = self.state.named_lock_count();
                    self.state
                        .set_named_lock_count(count.saturating_sub(is_released.into()))?;
                    truth(is_released)
                }
                None => Value::Null,
            },
            SessionFunction::IsFreeLock => truth(locks.owner(&name).is_none()),
            _ => locks.owner(&name).map_or(Value::Null, Value::UInt),
        })
    }

    fn get_lock(&self, name: String, timeout: Option<&Value>) -> Result<Value, Failure> {
        let Some(timeout_us) = self.micros(timeout) else {
            let given = timeout.map(shown).unwrap_or_default();
            let code = ER_WRONG_VALUE_FOR_TYPE;
            let error = ClientError::new(code, &[&"timeout", &given, &"get_lock"]);
            self.state.diagnostics.borrow().push(Level::Warning, error);
            return Ok(Value::Null);
        };
        let mut waits = self.waits.borrow_mut();
        let (locks, own) = (
            &self.state.worker.server.named_locks,
            self.state.handle.id(),
        );
        if locks.try_lock(&name, own) {
            if let Err(refused) = self
                .state
                .set_named_lock_count(self.state.named_lock_count() + 1)
            {
                locks.release(&name, own);
                return Err(Box::new(refused));
            }
            waits.taken.push(name);
            return Ok(Value::Int(1));
        }
        if timeout_us == 0 || waits.given_up.contains(&name) {
            return Ok(Value::Int(0));
        }
        waits.wanted = Some((name, timeout_us));
        Err(Box::new(ClientError::new(ER_QUERY_INTERRUPTED, &[])))
    }

    /// Seconds as microseconds; `None` for NULL and negative numbers.
    fn micros(&self, seconds: Option<&Value>) -> Option<u64> {
        let diagnostics = self.state.diagnostics.borrow();
        let seconds = seconds?.as_ref().to_f64(&mut diagnostics.warnings())?;
        let span = Duration::try_from_secs_f64(seconds).ok();
        match span {
            Some(span) => Some(u64::try_from(span.as_micros()).unwrap_or(u64::MAX)),
            None if seconds < 0.0 => None,
            None => Some(u64::MAX),
        }
    }
}

impl State {
    /// Releases the named locks of a session that ends or is reset.
    pub(crate) fn release_named_locks(&self) {
        if self.named_lock_count() != 0 {
            self.worker.server.named_locks.release_all(self.handle.id());
            let less = self.set_named_lock_count(0);
            assert!(less.is_ok(), "less is never too much");
        }
    }
}

fn shown(value: &Value) -> String {
    if value.is_null() {
        return "NULL".to_owned();
    }
    let mut text = Vec::new();
    let number = ColumnType::new(TypeKind::Double);
    value.as_ref().append_text(&number, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// The name of a lock, in lower case; `None` for NULL and the empty name.
fn lock_name(value: Option<&Value>) -> Result<Option<String>, Failure> {
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let name = match value {
        // Bytes that are not UTF-8 are distinguished too: they count as latin1 text.
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(name) => name.to_owned(),
            Err(_) => Charset::Latin1.to_utf8_lossy(bytes).into_owned(),
        },
        other => shown(other),
    };
    if NAME_BYTES_MAX < name.len() {
        return Err(Box::new(ClientError::new(ER_TOO_LONG_IDENT, &[&name])));
    }
    Ok(Some(name).filter(|name| !name.is_empty()))
}

impl Session {
    /// Sleeps for what the statement has requested since the last call.
    pub(crate) async fn sleep_off(
        &mut self,
        run: &StatementRun,
        deadline: Option<u64>,
    ) -> Result<(), Stop> {
        let micros = std::mem::take(&mut run.waits.borrow_mut().sleep_us);
        if micros == 0 {
            return Ok(());
        }
        self.post_replies().await?;
        let (limit_us, is_cut) = self.limited(micros, deadline);
        let sleep = runtime::sleep_until(runtime::now() + Duration::from_micros(limit_us));
        self.wait_shown("User sleep", sleep).await?;
        if is_cut { Err(timed_out()) } else { Ok(()) }
    }

    /// Waits for the named lock that stopped the statement, until it is free or its time is over.
    /// Then the statement has to begin again.
    pub(crate) async fn wait_for_lock(
        &mut self,
        run: &StatementRun,
        rows: &mut Rows<'_>,
        deadline: Option<u64>,
    ) -> Result<(), Stop> {
        let Some((name, timeout_us)) = run.waits.borrow_mut().wanted.take() else {
            return Ok(());
        };
        if rows.has_sent_any() {
            return Err(ClientError::not_supported(&"GET_LOCK that waits after rows").into());
        }
        // Before anything is released or checked, so that what is found still holds when the wait
        // begins.
        self.post_replies().await?;
        rows.forget();
        let server = Arc::clone(&self.state.worker.server);
        let own = self.state.handle.id();
        let taken = std::mem::take(&mut run.waits.borrow_mut().taken);
        let count = self.state.named_lock_count();
        let left = count.saturating_sub(stdx::to_u64(taken.len()));
        self.state.set_named_lock_count(left)?;
        for name in taken {
            server.named_locks.release(&name, own);
        }
        if server.named_locks.would_deadlock(&name, own) {
            return Err(ClientError::new(ER_LOCK_DEADLOCK, &[]).into());
        }
        let now_us = self.state.worker.steady_us();
        let until_us = match &run.waits.borrow().until {
            Some((of, until_us)) if *of == name => *until_us,
            _ => now_us.saturating_add(timeout_us),
        };
        run.waits.borrow_mut().until = Some((name.clone(), until_us));
        let (limit_us, is_cut) = self.limited(until_us.saturating_sub(now_us), deadline);
        let freed = server.named_locks.freed(&name, own);
        let limited = runtime::timeout(Duration::from_micros(limit_us), freed);
        if self.wait_shown("User lock", limited).await?.is_err() {
            if is_cut {
                return Err(timed_out());
            }
            run.waits.borrow_mut().given_up.push(name);
        }
        Ok(())
    }

    /// A wait as `max_statement_time` limits it, and whether it does.
    fn limited(&self, wait_us: u64, deadline: Option<u64>) -> (u64, bool) {
        // Cut to a year: a longer timer makes no difference.
        let wait_us = wait_us.min(366 * 86_400 * 1_000_000);
        let now_us = self.state.worker.steady_us();
        match deadline.map(|deadline| deadline.saturating_sub(now_us)) {
            Some(left_us) if left_us < wait_us => (left_us, true),
            _ => (wait_us, false),
        }
    }
}
