//! [`Settings`]: what a plan depends on besides names.

use expression::SqlMode;
use value::{CollationId, ColumnType, Date};

/// What of the session a plan depends on. Two sessions with equal settings share plans.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The default database; `None` before `USE`.
    pub database: Option<String>,
    /// `sql_mode`.
    pub sql_mode: SqlMode,
    /// `collation_connection`.
    pub collation: CollationId,
    /// `div_precision_increment`.
    pub division_increment: u8,
    /// The date, as which a TIME is compared with a DATETIME.
    pub today: Date,
    /// The types of the parameters, in order; one that is missing is not known yet (a statement
    /// that is only prepared).
    pub parameter_types: Vec<ColumnType>,
    /// What a client has set against statements that do too much.
    pub limits: StatementLimits,
}

/// What a client has set against statements that do too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StatementLimits {
    /// `sql_select_limit`: rows of a SELECT without LIMIT.
    pub select_rows: Option<u64>,
    /// `max_join_size`: rows that a SELECT may be expected to read.
    pub join_rows: Option<u64>,
    /// `sql_safe_updates`: UPDATE and DELETE need a key or a LIMIT.
    pub safe_updates: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            database: None,
            sql_mode: SqlMode::DEFAULT,
            collation: CollationId::UTF8MB4_GENERAL_CI,
            division_increment: 4,
            today: Date::ZERO,
            parameter_types: Vec::new(),
            limits: StatementLimits::default(),
        }
    }
}
