//! SIGNAL, RESIGNAL and GET DIAGNOSTICS.
//!
//! The list of warnings keeps a number and a text for each condition. The other items of SIGNAL are
//! kept for the last raised condition only.

use std::collections::BTreeMap;
use std::rc::Rc;

use errcode::{
    ClientError, ER_DA_INVALID_CONDITION_NUMBER, ER_RESIGNAL_WITHOUT_ACTIVE_HANDLER,
    ER_SIGNAL_EXCEPTION, ER_SIGNAL_NOT_FOUND, ER_SIGNAL_WARN, ER_WRONG_VALUE_FOR_VAR, ErrorCode,
    Sqlstate,
};
use syntax::ast::{
    ConditionItem, ConditionValue, GetDiagnostics, IntoTarget, SignalItem, StatementItem,
};
use value::{CollationId, ColumnType, Level, TypeKind, Value};

use super::evaluate::Strictness;
use crate::connection::condition::Condition;
use crate::connection::programs::Signalled;
use crate::connection::reply::Stop;
use crate::connection::session::Session;
use crate::worker::program::{Fragment, Signal};

/// Characters of MESSAGE_TEXT that are kept (MariaDB's limit).
const MESSAGE_CHARS_MAX: usize = 512;

impl Session {
    /// SIGNAL and RESIGNAL: returns an error, or adds a warning to the list.
    pub(crate) async fn signal(&mut self, signal: &Signal) -> Result<(), Stop> {
        let mut items = BTreeMap::new();
        for (item, value) in &signal.items {
            let text = self.signal_text(*item, value).await?;
            items.insert(*item, text);
        }
        let active = self.frame().running.last().map(|it| it.condition.clone());
        let raised = match (&signal.condition, active) {
            (Some(condition), _) => signalled_condition(*condition),
            (None, Some(active)) => active,
            (None, None) => {
                let code = ER_RESIGNAL_WITHOUT_ACTIVE_HANDLER;
                return Err(ClientError::new(code, &[]).into());
            }
        };
        let Condition { level, error } = raised;
        let message = items.get(&SignalItem::MessageText);
        let number = items.get(&SignalItem::MysqlErrno);
        let code = number.and_then(|number| number.parse().ok());
        let error = ClientError::signalled(
            code.map_or(error.code, ErrorCode),
            error.sqlstate,
            message.cloned().unwrap_or(error.message),
        );
        self.programs.signalled = Some(Box::new(Signalled {
            error: error.clone(),
            items,
        }));
        // A condition that is raised again is listed once.
        if !signal.is_again || signal.condition.is_none() {
            self.state.clear_diagnostics();
        }
        if level == Level::Error {
            return Err(error.into());
        }
        let diagnostics = Rc::clone(&self.state.diagnostics.borrow());
        diagnostics.push(level, error);
        Ok(())
    }

    /// The text of an item; error 1231 for NULL and for a number that is no error's.
    async fn signal_text(&mut self, item: SignalItem, value: &Fragment) -> Result<String, Stop> {
        let (value, column_type) = self.evaluate(value, Strictness::Lax).await?;
        let mut text = Vec::new();
        value.as_ref().append_text(&column_type, &mut text);
        let text = column_type.charset().to_utf8_lossy(&text).into_owned();
        let name = item_name(item);
        let wrong = |shown: &str| ClientError::new(ER_WRONG_VALUE_FOR_VAR, &[&name, &shown]);
        if value.is_null() {
            return Err(wrong("NULL").into());
        }
        if item == SignalItem::MysqlErrno {
            let is_number = text.parse::<u16>().is_ok_and(|number| number != 0);
            return if is_number {
                Ok(text)
            } else {
                Err(wrong(&text).into())
            };
        }
        Ok(text.chars().take(MESSAGE_CHARS_MAX).collect())
    }

    /// GET DIAGNOSTICS.
    pub(crate) async fn get_diagnostics(
        &mut self,
        asked: &GetDiagnostics,
        number: Option<&Fragment>,
    ) -> Result<(), Stop> {
        let answers = match (asked, number) {
            (GetDiagnostics::Statement(items), _) => {
                let items = items.iter();
                let of = |(target, item): &(IntoTarget, StatementItem)| {
                    let number = self.statement_item(*item);
                    let column_type = match item {
                        StatementItem::RowCount => ColumnType::new(TypeKind::BigInt),
                        StatementItem::Number => ColumnType::unsigned(TypeKind::BigInt),
                    };
                    (target.clone(), number, column_type)
                };
                items.map(of).collect::<Vec<_>>()
            }
            (GetDiagnostics::Condition { items, .. }, Some(number)) => {
                let (number, _) = self.evaluate(number, Strictness::Lax).await?;
                let Some(condition) = self.listed_condition(&number) else {
                    let code = ER_DA_INVALID_CONDITION_NUMBER;
                    return Err(ClientError::new(code, &[]).into());
                };
                let items = items.iter();
                let of = |(target, item): &(IntoTarget, ConditionItem)| {
                    let (value, column_type) = self.condition_item(&condition, *item);
                    (target.clone(), value, column_type)
                };
                items.map(of).collect()
            }
            (GetDiagnostics::Condition { .. }, None) => Vec::new(),
        };
        for (target, value, column_type) in answers {
            self.assign(&target, value, &column_type)?;
        }
        Ok(())
    }

    /// Assigns a value to a variable of the program or of the user.
    pub(crate) fn assign(
        &mut self,
        target: &IntoTarget,
        value: Value,
        column_type: &ColumnType,
    ) -> Result<(), ClientError> {
        match target {
            IntoTarget::Slot(slot) => self.set_local(stdx::to_usize(*slot), value, column_type),
            IntoTarget::User(name) => {
                let assigned = self.state.set_user_variable(name, value, column_type);
                assigned.map_err(|failure| *failure)
            }
            IntoTarget::Local(name) => {
                let code = errcode::ER_SP_UNDECLARED_VAR;
                Err(ClientError::new(code, &[&name.text]))
            }
        }
    }

    fn statement_item(&self, item: StatementItem) -> Value {
        Value::Int(match item {
            StatementItem::RowCount => self.state.row_count(),
            StatementItem::Number => {
                let diagnostics = self.state.diagnostics.borrow();
                let count = diagnostics.warnings().count();
                i64::try_from(count).unwrap_or(i64::MAX)
            }
        })
    }

    /// The condition of that number, from 1.
    fn listed_condition(&self, number: &Value) -> Option<Condition> {
        let place = match number {
            Value::Int(number) => usize::try_from(*number).ok()?,
            Value::UInt(number) => usize::try_from(*number).ok()?,
            _ => return None,
        };
        let diagnostics = self.state.diagnostics.borrow();
        let warnings = diagnostics.warnings();
        let (level, noted) = warnings.entries().get(place.checked_sub(1)?)?;
        let mut condition = Condition::noted(*level, noted);
        if let Some(signalled) = &self.programs.signalled {
            signalled.complete(&mut condition.error);
        }
        Some(condition)
    }

    fn condition_item(&self, condition: &Condition, item: ConditionItem) -> (Value, ColumnType) {
        let text = |text: &str| {
            let column_type = ColumnType::varchar(512, CollationId::UTF8MB4_GENERAL_CI);
            (Value::bytes(text.as_bytes()), column_type)
        };
        let error = &condition.error;
        let signalled = self.programs.signalled.as_ref();
        let signalled =
            signalled.filter(|it| it.error.code == error.code && it.error.message == error.message);
        match item {
            ConditionItem::ReturnedSqlstate => text(error.sqlstate.as_str()),
            ConditionItem::Signal(SignalItem::MessageText) => text(&error.message),
            ConditionItem::Signal(SignalItem::MysqlErrno) => (
                Value::Int(error.code.number().into()),
                ColumnType::new(TypeKind::BigInt),
            ),
            ConditionItem::Signal(item) => {
                text(signalled.map_or("", |signalled| signalled.item(item)))
            }
        }
    }
}

/// The condition that SIGNAL raises.
fn signalled_condition(condition: ConditionValue) -> Condition {
    let state = match condition {
        ConditionValue::State(state) => Sqlstate(state),
        ConditionValue::Code(code) => ErrorCode(code).sqlstate(),
        ConditionValue::Warning => Sqlstate(*b"01000"),
        ConditionValue::NotFound => Sqlstate(*b"02000"),
        ConditionValue::Exception => Sqlstate(*b"45000"),
    };
    let Sqlstate(bytes) = state;
    let (level, code) = match &bytes[..2] {
        b"01" => (Level::Warning, ER_SIGNAL_WARN),
        b"02" => (Level::Error, ER_SIGNAL_NOT_FOUND),
        _ => (Level::Error, ER_SIGNAL_EXCEPTION),
    };
    let message = ClientError::new(code, &[]).message;
    Condition {
        level,
        error: ClientError::signalled(code, state, message),
    }
}

fn item_name(item: SignalItem) -> &'static str {
    match item {
        SignalItem::ClassOrigin => "CLASS_ORIGIN",
        SignalItem::SubclassOrigin => "SUBCLASS_ORIGIN",
        SignalItem::ConstraintCatalog => "CONSTRAINT_CATALOG",
        SignalItem::ConstraintSchema => "CONSTRAINT_SCHEMA",
        SignalItem::ConstraintName => "CONSTRAINT_NAME",
        SignalItem::CatalogName => "CATALOG_NAME",
        SignalItem::SchemaName => "SCHEMA_NAME",
        SignalItem::TableName => "TABLE_NAME",
        SignalItem::ColumnName => "COLUMN_NAME",
        SignalItem::CursorName => "CURSOR_NAME",
        SignalItem::MessageText => "MESSAGE_TEXT",
        SignalItem::MysqlErrno => "MYSQL_ERRNO",
    }
}
