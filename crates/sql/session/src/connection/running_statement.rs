//! [`RunningStatement`]: what the client's statement that runs has of its own.

use std::cell::{Cell, RefCell};

use value::DateTime;
use value::temporal::Zone;

/// The statement's time, its waits and its list of warnings. The time is that of the client's whole
/// statement: what its programs run shares it.
#[derive(Debug, Default)]
pub(crate) struct RunningStatement {
    /// On the steady clock, or `None` for no limit. The outer `None`: the time has not begun.
    deadline_us: Cell<Option<Option<u64>>>,
    /// In seconds, if the statement says it itself (`WAIT n`).
    definition_wait_s: Cell<Option<u64>>,
    /// While a stored function runs.
    caller: RefCell<Option<Caller>>,
    /// The session's list of warnings is that of an earlier statement: so far this one only reads
    /// it, or has not begun its own.
    has_old_warnings: Cell<bool>,
}

/// The statement that calls a stored function: when it began.
#[derive(Debug)]
pub(crate) struct Caller {
    /// In microseconds since 1970 UTC.
    began_us: i64,
    /// As local time of this zone, once that was asked for.
    wall: Option<(Zone, DateTime)>,
}

impl RunningStatement {
    /// A client's statement begins, with its full time.
    pub(crate) fn begin_time(&self) {
        self.deadline_us.set(None);
        self.definition_wait_s.set(None);
    }

    /// When its time is over (`max_statement_time`), once that has begun.
    pub(crate) fn deadline_us(&self) -> Option<Option<u64>> {
        self.deadline_us.get()
    }

    /// Notes when its time is over.
    pub(crate) fn set_deadline_us(&self, deadline: Option<u64>) {
        self.deadline_us.set(Some(deadline));
    }

    /// Whether its time is over.
    pub(crate) fn is_over(&self, now_us: impl FnOnce() -> u64) -> bool {
        let deadline = self.deadline_us.get().flatten();
        deadline.is_some_and(|deadline| deadline <= now_us())
    }

    /// How many seconds it waits for metadata locks, if it says so itself.
    pub(crate) fn definition_wait_s(&self) -> Option<u64> {
        self.definition_wait_s.get()
    }

    /// Sets how many seconds it waits for metadata locks; `None` for `lock_wait_timeout`.
    pub(crate) fn set_definition_wait_s(&self, seconds: Option<u64>) {
        self.definition_wait_s.set(seconds);
    }

    /// A stored function begins whose calling statement began then. Returns the caller to be given
    /// to [`RunningStatement::leave_function`], unless that is the same one.
    pub(crate) fn enter_function(&self, began_us: i64) -> Option<Option<Caller>> {
        if self.caller_began_us() == Some(began_us) {
            return None;
        }
        let caller = Caller {
            began_us,
            wall: None,
        };
        Some(self.caller.replace(Some(caller)))
    }

    /// A stored function ends.
    pub(crate) fn leave_function(&self, before: Option<Caller>) {
        self.caller.replace(before);
    }

    /// When the statement began that calls the running function, in microseconds since 1970 UTC.
    pub(crate) fn caller_began_us(&self) -> Option<i64> {
        self.caller.borrow().as_ref().map(|it| it.began_us)
    }

    /// A time in a zone. Stored programs ask before each of their expressions, so the time of the
    /// calling statement is kept.
    pub(crate) fn wall(&self, now_us: i64, zone: &Zone) -> DateTime {
        let mut caller = self.caller.borrow_mut();
        let caller = caller.as_mut().filter(|it| it.began_us == now_us);
        if let Some(Caller {
            wall: Some((of, wall)),
            ..
        }) = &caller
            && of == zone
        {
            return *wall;
        }
        let utc = DateTime::from_unix_micros(now_us);
        let wall = utc.and_then(|utc| zone.from_utc(utc)).unwrap_or_default();
        if let Some(caller) = caller {
            caller.wall = Some((zone.clone(), wall));
        }
        wall
    }

    /// Whether the list of warnings is that of an earlier statement.
    pub(crate) fn has_old_warnings(&self) -> bool {
        self.has_old_warnings.get()
    }

    /// The list stays that of an earlier statement.
    pub(crate) fn leave_warnings(&self) {
        self.has_old_warnings.set(true);
    }

    /// Its own list begins.
    pub(crate) fn begin_warnings(&self) {
        self.has_old_warnings.set(false);
    }
}
