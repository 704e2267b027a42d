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
        }
    }
}
