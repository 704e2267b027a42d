//! [`Statement`]: the session of a running statement, as expressions see it.

use std::cell::{Cell, RefCell, RefMut};
use std::sync::Arc;

use builtin::SessionFunction;
use errcode::{ClientError, ER_DIVISION_BY_ZERO, ER_QUERY_INTERRUPTED};
use function::{Patterns, Seeds, SessionFacts};
use settings::{SqlMode, VariableScope};
use value::temporal::DateRules;
use value::{CollationId, ColumnType, Date, DateTime, Level, StoreRules, Value, Warnings, Zone};

use crate::{Failure, MemoryPool};

/// What a session offers to expressions. All by shared reference: an expression that assigns a
/// variable does so while its row is borrowed.
pub trait SessionContext {
    /// `@name` (in lower case) as a value of that type, whatever its type is since the statement
    /// was planned; NULL if it was never set.
    fn user_variable(&self, name: &str, as_type: &ColumnType) -> Value;

    /// `@name := value`.
    ///
    /// # Errors
    /// If the session would keep more than allowed.
    fn set_user_variable(
        &self,
        name: &str,
        value: Value,
        column_type: &ColumnType,
    ) -> Result<(), Failure>;

    /// `@@name`.
    fn system_variable(&self, scope: Option<VariableScope>, name: &str) -> Result<Value, Failure>;

    /// What information functions return: `DATABASE()`, `LAST_INSERT_ID()` and the like.
    fn facts(&self) -> RefMut<'_, SessionFacts>;

    /// Random bits for `RAND()` and `UUID()`.
    fn random(&self) -> u64;

    /// The current time, in microseconds since 1970 UTC, for `SYSDATE()`.
    fn clock_us(&self) -> i64;

    /// Answers a function of the session. If it has to wait, it notes so in the session, which
    /// waits later. After an error the statement may have to begin again.
    fn call(&self, function: SessionFunction, arguments: &[Value]) -> Result<Value, Failure>;

    /// True once `KILL QUERY` was received.
    fn is_killed(&self) -> bool;

    /// The pool for the memory of large statements.
    fn memory_pool(&self) -> Arc<MemoryPool>;

    /// Whether the statement's time slice is used up.
    fn is_slice_over(&self) -> bool;

    /// Yields to other tasks if the time slice is used up. Called in the middle of long work:
    /// nothing that others use is borrowed meanwhile.
    ///
    /// # Errors
    /// If the statement has to end: it was killed, its time is over, or the server stops.
    fn give_way(&self) -> Result<(), Failure>;

    /// From now on, `give_way` counts what this thread allocates as memory that the session keeps.
    fn begin_draft(&self) {}

    /// Ends that: what was counted is not kept any longer, or counts elsewhere.
    fn end_draft(&self) {}
}

/// The constants of a statement.
#[derive(Debug, Clone)]
pub struct StatementOptions {
    /// `sql_mode`.
    pub sql_mode: SqlMode,
    /// When the statement began: microseconds since 1970 UTC (or `SET timestamp`).
    pub now_us: i64,
    /// `time_zone`.
    pub zone: Zone,
    /// `div_precision_increment`.
    pub division_increment: u8,
    /// `group_concat_max_len`.
    pub group_concat_bytes_max: usize,
    /// Longest result of a string function (`max_allowed_packet`).
    pub result_bytes_max: usize,
    /// `collation_connection`.
    pub collation: CollationId,
    /// `auto_increment_increment`.
    pub auto_increment_step: u64,
    /// `auto_increment_offset`.
    pub auto_increment_offset: u64,
    /// `SET insert_id`: the first AUTO_INCREMENT value of the statement.
    pub insert_id: Option<u64>,
    /// `default_week_format`.
    pub default_week_format: u8,
    /// What a statement may keep in memory (`max_session_mem_used`).
    pub kept_bytes_max: usize,
}

impl Default for StatementOptions {
    fn default() -> Self {
        Self {
            sql_mode: SqlMode::DEFAULT,
            now_us: 0,
            zone: Zone::Utc,
            division_increment: 4,
            group_concat_bytes_max: 1 << 20,
            result_bytes_max: 16 << 20,
            collation: CollationId::UTF8MB4_GENERAL_CI,
            auto_increment_step: 1,
            auto_increment_offset: 1,
            insert_id: None,
            default_week_format: 0,
            kept_bytes_max: 1 << 30,
        }
    }
}

/// The statement's warnings. Shared, because values that borrow rows are in use while a warning is
/// added.
#[derive(Debug, Default)]
pub struct Diagnostics {
    warnings: RefCell<Warnings>,
    /// What functions keep from row to row.
    scratch: RefCell<Scratch>,
    /// Work that may be done before the next look at the clock.
    work_left: Cell<usize>,
}

/// Bytes read between two looks at the clock: 10 to 100 us of work. Others wait for a slice of the
/// runtime (200 us) and at most this much more.
const WORK_PER_LOOK: usize = 32 << 10;

/// What functions keep from row to row.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(crate) seeds: Seeds,
    pub(crate) patterns: Patterns,
}

impl Diagnostics {
    /// Keeps at most `limit` conditions.
    pub fn new(limit: usize) -> Self {
        Self {
            warnings: RefCell::new(Warnings::new(limit)),
            scratch: RefCell::default(),
            work_left: Cell::new(WORK_PER_LOOK),
        }
    }

    /// Resets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.warnings.get_mut().clear();
        *self.scratch.get_mut() = Scratch::default();
    }

    /// The warnings, mutable.
    pub fn warnings(&self) -> RefMut<'_, Warnings> {
        self.warnings.borrow_mut()
    }

    pub(crate) fn scratch(&self) -> RefMut<'_, Scratch> {
        self.scratch.borrow_mut()
    }

    /// Adds a condition.
    pub fn push(&self, level: Level, error: ClientError) {
        self.warnings().push(level, error.into());
    }
}

/// The session of a statement while it runs.
#[derive(Clone, Copy)]
pub struct Statement<'s> {
    /// Variables and state.
    pub session: &'s dyn SessionContext,
    /// The constants.
    pub options: &'s StatementOptions,
    /// Receives the warnings.
    pub diagnostics: &'s Diagnostics,
    /// The statement stores values: in strict mode its warnings are errors.
    pub is_strict: bool,
}

impl std::fmt::Debug for Statement<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Statement")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Statement<'_> {
    /// Adds a warning.
    pub fn warn(&self, error: ClientError) {
        self.diagnostics.push(Level::Warning, error);
    }

    /// The start of the statement, as local time of the session.
    pub fn now(&self) -> DateTime {
        self.wall(self.options.now_us)
    }

    /// The local time of the session this many microseconds after 1970 UTC.
    pub(crate) fn wall(&self, unix_us: i64) -> DateTime {
        let utc = DateTime::from_unix_micros(unix_us).unwrap_or_default();
        self.options.zone.from_utc(utc).unwrap_or(utc)
    }

    /// The current date of the statement, in the session's zone.
    pub fn today(&self) -> Date {
        self.now().date()
    }

    /// How values are stored.
    pub fn store_rules(&self) -> StoreRules<'_> {
        let mode = self.options.sql_mode;
        StoreRules {
            strict: self.is_strict,
            dates: DateRules {
                no_zero_date: mode.has(SqlMode::NO_ZERO_DATE),
                no_zero_in_date: mode.has(SqlMode::NO_ZERO_IN_DATE),
                allow_invalid: mode.has(SqlMode::ALLOW_INVALID_DATES),
            },
            today: self.today(),
            zone: &self.options.zone,
        }
    }

    /// How many more fractional digits a quotient has than its dividend.
    pub fn division_increment(&self) -> u8 {
        self.options.division_increment
    }

    /// The length at which GROUP_CONCAT is truncated.
    pub fn group_concat_bytes_max(&self) -> usize {
        self.options.group_concat_bytes_max
    }

    /// Counts work, in bytes read; yields to other tasks if it was much.
    ///
    /// # Errors
    /// If the statement has to end.
    #[inline]
    pub fn spend(&self, bytes: usize) -> Result<(), Failure> {
        let left = self.diagnostics.work_left.get();
        match left.checked_sub(bytes) {
            Some(left) => {
                self.diagnostics.work_left.set(left);
                Ok(())
            }
            None => {
                self.diagnostics.work_left.set(WORK_PER_LOOK);
                self.session.give_way()
            }
        }
    }

    /// Error 1317 once the statement was killed.
    pub fn check_killed(&self) -> Result<(), Failure> {
        if self.session.is_killed() {
            return Err(Box::new(ClientError::new(ER_QUERY_INTERRUPTED, &[])));
        }
        Ok(())
    }

    /// Handles a division by zero: NULL, with a warning or not, or an error.
    pub fn division_by_zero(&self) -> Result<(), Failure> {
        if !self
            .options
            .sql_mode
            .has(SqlMode::ERROR_FOR_DIVISION_BY_ZERO)
        {
            return Ok(());
        }
        let error = ClientError::new(ER_DIVISION_BY_ZERO, &[]);
        if self.is_strict {
            return Err(Box::new(error));
        }
        self.warn(error);
        Ok(())
    }
}
