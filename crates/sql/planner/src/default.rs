//! Defaults that are computed for each row: `DEFAULT (uuid())`.
//!
//! Their text is canonical: it is read in the default `sql_mode` and in utf8mb4, whatever the
//! session's settings. So a table's rows do not depend on the session that inserts them. They read
//! no columns, so the order of filling the columns does not matter.

use errcode::{ER_BAD_FIELD_ERROR, ER_INVALID_GROUP_FUNC_USE};
use expression::{Expression, ExpressionKind};
use value::Date;

use crate::bind::{Binder, Block};
use crate::{Names, PlanError, Settings, not_supported};

/// Whether `text` can be the default of a column.
///
/// # Errors
/// 1235 for what is not built, and MySQL's errors for such an expression.
pub fn check_default(text: &str, names: &dyn Names) -> Result<(), PlanError> {
    computed(text, names, Date::ZERO).map(drop)
}

/// The expression of `text`.
pub(crate) fn computed(
    text: &str,
    names: &dyn Names,
    today: Date,
) -> Result<Expression, PlanError> {
    let settings = Settings {
        today,
        ..Settings::default()
    };
    let read = syntax::parse_expr(text.as_bytes(), settings::SqlMode::default());
    let parsed = read.map_err(|_| not_supported("this DEFAULT (expression)"))?;
    let mut binder = Binder::new(text.as_bytes(), names, &settings);
    binder.blocks.push(Block::default());
    let bound = binder.term(&parsed).map_err(|error| match error.code {
        ER_BAD_FIELD_ERROR => not_supported("other columns in a DEFAULT"),
        ER_INVALID_GROUP_FUNC_USE => not_supported("aggregate functions in a DEFAULT"),
        _ => error,
    })?;
    if !binder.functions.is_empty() {
        return Err(not_supported("stored functions in a DEFAULT"));
    }
    if !binder.subqueries.is_empty() {
        return Err(not_supported("a subquery in a DEFAULT"));
    }
    let mut reads_session = false;
    bound.walk(&mut |part| {
        reads_session |= matches!(
            part.kind,
            ExpressionKind::UserVariable(_)
                | ExpressionKind::AssignUserVariable(_)
                | ExpressionKind::SystemVariable(_)
        );
        true
    });
    if reads_session {
        return Err(not_supported("variables in a DEFAULT"));
    }
    if 0 < binder.list_count {
        return Err(not_supported("so long a list in a DEFAULT"));
    }
    Ok(bound)
}
