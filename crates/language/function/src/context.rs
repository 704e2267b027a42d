//! The context of an evaluation: the statement's time, the session, its modes.

use std::rc::Rc;

use errcode::{
    ER_DATETIME_FUNCTION_OVERFLOW, ER_DIVISION_BY_ZERO, ER_WARN_ALLOWED_PACKET_OVERFLOWED,
};
use value::temporal::DateRules;
use value::{DateTime, SqlCondition, Warnings, Zone};

use crate::matcher::{Meter, Patterns};
use crate::random_state::{RandomState, Seeds};

/// The effect of a division by zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DivisionByZero {
    /// NULL without a warning.
    #[default]
    Silent,
    /// NULL with warning 1365 (`ERROR_FOR_DIVISION_BY_ZERO`).
    Warn,
    /// Error 1365 (both modes, in a statement that writes).
    Refuse,
}

/// What information functions return.
#[derive(Debug, Clone, Default)]
pub struct SessionFacts {
    /// `DATABASE()`
    pub database: Option<Rc<str>>,
    /// `USER()`: the name that the client sent, and its host.
    pub user: String,
    /// `CURRENT_USER()`: the account that matched.
    pub current_user: String,
    /// `CONNECTION_ID()`
    pub connection_id: u64,
    /// `VERSION()`
    pub version: String,
    /// `LAST_INSERT_ID()`; a call with an argument sets it.
    pub last_insert_id: u64,
    /// Such a call was made since the statement began; the number is sent to its client.
    pub is_last_insert_id_given: bool,
    /// `ROW_COUNT()`
    pub row_count: i64,
    /// `FOUND_ROWS()`
    pub found_rows: u64,
    /// The state of RAND() without a seed, once `rand_seed1` or `rand_seed2` was set.
    pub random_state: Option<RandomState>,
}

/// The context of an evaluation; one for each statement.
pub struct Context<'a> {
    /// Receives the warnings.
    pub warnings: &'a mut Warnings,
    /// The statement's start as local time of the session, with microseconds.
    pub now: DateTime,
    /// The same in UTC.
    pub utc_now: DateTime,
    /// The current local time of the session, for SYSDATE().
    pub clock: &'a dyn Fn() -> DateTime,
    /// The session's time zone.
    pub zone: &'a Zone,
    /// The dates that `sql_mode` refuses.
    pub dates: DateRules,
    /// For `/`, `DIV`, `%` and `MOD`.
    pub division_by_zero: DivisionByZero,
    /// The mode of WEEK() without an argument for it (`default_week_format`).
    pub default_week_format: u8,
    /// Longest result of a string function in bytes (`max_allowed_packet`).
    pub result_bytes_max: usize,
    /// Random bits for RAND() and UUID().
    pub random: &'a mut dyn FnMut() -> u64,
    /// State of RAND(seed), by call.
    pub seeds: Seeds,
    /// Compiled regular expressions.
    pub patterns: Patterns,
    /// What information functions return.
    pub session: &'a mut SessionFacts,
    /// Called with the work, in bytes read. Others may run before it returns; it fails if the
    /// statement has to end.
    pub meter: Meter<'a>,
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

/// Warning 1441 of a moment beyond year 9999.
pub(crate) fn moment_overflow() -> SqlCondition {
    SqlCondition::new(ER_DATETIME_FUNCTION_OVERFLOW, &[&"datetime"])
}

impl Context<'_> {
    /// Reports this many bytes as read. Loops over text call it about every
    /// [`value::collation::BYTES_PER_SPEND`].
    pub(crate) fn spend(&self, bytes: usize) -> Result<(), SqlCondition> {
        (self.meter)(bytes)
    }

    /// Handles a zero divisor: the result is NULL, or it is an error.
    pub(crate) fn divided_by_zero(&mut self) -> Result<(), SqlCondition> {
        let condition = SqlCondition::new(ER_DIVISION_BY_ZERO, &[]);
        match self.division_by_zero {
            DivisionByZero::Silent => Ok(()),
            DivisionByZero::Warn => {
                self.warnings.warn(condition);
                Ok(())
            }
            DivisionByZero::Refuse => Err(condition),
        }
    }

    /// True if a result of this many bytes is allowed; otherwise adds warning 1301 for a NULL.
    pub(crate) fn fits(&mut self, bytes: usize, name: &str) -> bool {
        if bytes <= self.result_bytes_max {
            return true;
        }
        let limit = self.result_bytes_max;
        let name = name.to_lowercase();
        self.warnings.warn(SqlCondition::new(
            ER_WARN_ALLOWED_PACKET_OVERFLOWED,
            &[&name, &limit],
        ));
        false
    }
}
