//! `DEFAULT` of a column in CREATE and ALTER TABLE.

use builtin::Function;
use errcode::{ClientError, ER_INVALID_DEFAULT};
use planner::StringRules;
use settings::SqlMode;
use store::{ColumnDefault, ColumnDefinition};
use syntax::ast::{self, ExprKind};
use value::temporal::{DateRules, Zone};
use value::{ColumnType, Place, StoreRules, TypeKind, Value, store_value};

use crate::connection::reply::Stop;
use crate::connection::session::Session;
use crate::schema::definition::has_clock;
use crate::statement::virtual_store::SessionNames;
use crate::worker::parsed::Parsed;

impl Session {
    /// A default: a value of the column's type, the current time, or an expression to be kept.
    pub(crate) async fn defined_default(
        &mut self,
        default: &ast::Expr,
        column: &ColumnDefinition,
        parsed: &Parsed,
    ) -> Result<ColumnDefault, Stop> {
        let invalid = || Stop::from(ClientError::new(ER_INVALID_DEFAULT, &[&column.name]));
        if column.auto_increment {
            return Err(invalid());
        }
        let source = String::from_utf8_lossy(parsed.source(default.span)).into_owned();
        if has_clock(column) && is_now(&source) {
            return Ok(ColumnDefault::Now);
        }
        if !is_literal(default) {
            return self.computed_default(default, &source, parsed.text.strings);
        }
        let (value, from) = self.constant_typed(default, parsed).await?;
        if value.is_null() {
            return if column.nullable {
                Ok(ColumnDefault::Value(Value::Null))
            } else {
                Err(invalid())
            };
        }
        let (value, from) = as_member(value, from, column);
        let zone = Zone::Utc;
        let rules = StoreRules {
            strict: true,
            dates: self.date_rules(),
            today: value::Date::ZERO,
            zone: &zone,
        };
        let place = Place {
            database: "",
            table: "",
            column: &column.name,
            row: 1,
        };
        let mut warnings = value::Warnings::new(1);
        let stored = store_value(
            value.as_ref(),
            &from,
            &column.column_type,
            place,
            &rules,
            &mut warnings,
        );
        let stored = stored.map_err(|_| invalid())?;
        if is_place_of_member(&value, &stored, column) {
            return Err(invalid());
        }
        Ok(ColumnDefault::Value(stored))
    }

    /// Which dates `sql_mode` accepts, strict or not.
    fn date_rules(&self) -> DateRules {
        let mode = self.state.statement_options().sql_mode;
        DateRules {
            no_zero_date: mode.has(SqlMode::NO_ZERO_DATE),
            no_zero_in_date: mode.has(SqlMode::NO_ZERO_IN_DATE),
            allow_invalid: mode.has(SqlMode::ALLOW_INVALID_DATES),
        }
    }

    /// A default that is computed for each row, as text that every session reads alike.
    fn computed_default(
        &self,
        default: &ast::Expr,
        source: &str,
        strings: StringRules,
    ) -> Result<ColumnDefault, Stop> {
        let is_utf8 =
            strings.is_as_written() && strings.collation.charset() == value::Charset::Utf8mb4;
        if !source.is_ascii() && !is_utf8 {
            let what = "DEFAULT (expression) in a character set other than utf8mb4";
            return Err(ClientError::not_supported(&what).into());
        }
        let text = syntax::print::print_expr(default);
        let stands_alone = text.starts_with('(') || matches!(default.kind, ExprKind::Function(_));
        let text = if stands_alone {
            text
        } else {
            format!("({text})")
        };
        planner::check_default(&text, &SessionNames::new(&self.state))?;
        Ok(ColumnDefault::Expression(text))
    }
}

/// A number as the text of a member if the column is an ENUM or a SET: as a default it is not the
/// member's place.
fn as_member(value: Value, from: ColumnType, column: &ColumnDefinition) -> (Value, ColumnType) {
    let has_members = matches!(column.column_type.kind, TypeKind::Enum | TypeKind::Set);
    if !has_members || matches!(value, Value::Bytes(_)) {
        return (value, from);
    }
    let text = value.as_ref().to_text(&from).unwrap_or_default();
    let chars = stdx::to_u32(text.len());
    let text_type = ColumnType::varchar(chars, column.column_type.collation);
    (Value::Bytes(text.into_owned()), text_type)
}

/// Whether digits were stored in an ENUM or a SET as the place of a member, as INSERT does.
fn is_place_of_member(given: &Value, stored: &Value, column: &ColumnDefinition) -> bool {
    let has_members = matches!(column.column_type.kind, TypeKind::Enum | TypeKind::Set);
    match given {
        Value::Bytes(text) if has_members && text.iter().all(u8::is_ascii_digit) => {
            let member = stored.as_ref().to_text(&column.column_type);
            member.is_none_or(|member| *member != **text)
        }
        _ => false,
    }
}

/// `CURRENT_TIMESTAMP` and its synonyms, with or without parentheses and precision.
fn is_now(source: &str) -> bool {
    let (word, digits) = source.split_once('(').unwrap_or((source, ")"));
    let word = word.trim();
    let is_call = digits
        .trim_end()
        .strip_suffix(')')
        .is_some_and(|digits| digits.trim().bytes().all(|byte| byte.is_ascii_digit()));
    is_call && Function::Now.has_name(word)
}

/// A literal, perhaps with a sign.
fn is_literal(expression: &ast::Expr) -> bool {
    match &expression.kind {
        ExprKind::Literal(_) => true,
        ExprKind::Unary {
            operator: ast::UnaryOperator::Negate,
            operand,
        } => is_literal(operand),
        _ => false,
    }
}
