//! Conditions of stored programs: what handlers name, `SIGNAL`, `GET DIAGNOSTICS`.

use crate::ast::{
    ConditionItem, ConditionValue, GetDiagnostics, IntoTarget, ProgramExpr, Signal, SignalItem,
    StatementItem, StepKind,
};
use crate::keyword::Keyword as K;
use crate::parse::cursor::{Cursor, Parsed};
use crate::parse::error::RoutineError;
use crate::parse::scope::routine_fail;
use crate::token::Kind;

/// The words of the items that SIGNAL sets.
const SIGNAL_ITEMS: [(K, SignalItem); 12] = [
    (K::ClassOrigin, SignalItem::ClassOrigin),
    (K::SubclassOrigin, SignalItem::SubclassOrigin),
    (K::ConstraintCatalog, SignalItem::ConstraintCatalog),
    (K::ConstraintSchema, SignalItem::ConstraintSchema),
    (K::ConstraintName, SignalItem::ConstraintName),
    (K::CatalogName, SignalItem::CatalogName),
    (K::SchemaName, SignalItem::SchemaName),
    (K::TableName, SignalItem::TableName),
    (K::ColumnName, SignalItem::ColumnName),
    (K::CursorName, SignalItem::CursorName),
    (K::MessageText, SignalItem::MessageText),
    (K::MysqlErrno, SignalItem::MysqlErrno),
];

impl Cursor<'_> {
    /// A condition of `DECLARE .. CONDITION FOR`: a number or an SQLSTATE.
    pub(crate) fn condition_number(&mut self) -> Parsed<ConditionValue> {
        if self.is(K::Sqlstate) {
            return self.sqlstate();
        }
        let fail = self.fail();
        let number = self.unsigned()?;
        match u16::try_from(number) {
            Ok(code) if code != 0 => Ok(ConditionValue::Code(code)),
            _ => Err(fail),
        }
    }

    /// `SQLSTATE [VALUE] '..'`.
    fn sqlstate(&mut self) -> Parsed<ConditionValue> {
        self.expect(K::Sqlstate)?;
        self.eat(K::Value);
        let place = self.start();
        let text = self.string()?;
        let state = <[u8; 5]>::try_from(text.as_slice()).ok();
        let state = state.filter(|state| {
            state
                .iter()
                .all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
        });
        match state {
            Some(state) if !state.starts_with(b"00") => Ok(ConditionValue::State(state)),
            _ => Err(routine_fail(RoutineError::BadState, place)),
        }
    }

    /// A condition of a handler.
    pub(crate) fn handled_condition(&mut self) -> Parsed<ConditionValue> {
        if self.eat(K::Sqlwarning) {
            return Ok(ConditionValue::Warning);
        }
        if self.eat(K::Sqlexception) {
            return Ok(ConditionValue::Exception);
        }
        if self.eat_all(&[K::Not, K::Found]) {
            return Ok(ConditionValue::NotFound);
        }
        if self.is(K::Sqlstate) || self.kind() == Kind::Integer {
            return self.condition_number();
        }
        let name = self.ident()?;
        let declared = self.scope_of()?.condition(&name.text);
        declared.ok_or_else(|| routine_fail(RoutineError::UndeclaredCondition, name.span))
    }

    /// `SIGNAL` and `RESIGNAL`.
    pub(crate) fn signal(&mut self, word: K) -> Parsed<StepKind> {
        self.bump();
        let mut condition = None;
        if self.is(K::Sqlstate) {
            condition = Some(self.sqlstate()?);
        } else if !self.is_end() && !self.is(K::Set) {
            let name = self.ident()?;
            let declared = self.scope_of()?.condition(&name.text);
            let error = match declared {
                None => RoutineError::UndeclaredCondition,
                Some(ConditionValue::Code(_)) => RoutineError::SignalCondition,
                Some(value) => {
                    condition = Some(value);
                    RoutineError::UndeclaredCondition
                }
            };
            if condition.is_none() {
                return Err(routine_fail(error, name.span));
            }
        }
        if condition.is_none() && word == K::Signal {
            return Err(self.fail());
        }
        let items = if self.eat(K::Set) {
            self.signal_items()?
        } else {
            Vec::new()
        };
        let signal = Box::new(Signal { condition, items });
        Ok(match word {
            K::Signal => StepKind::Signal(signal),
            _ => StepKind::Resignal(signal),
        })
    }

    fn signal_items(&mut self) -> Parsed<Vec<(SignalItem, ProgramExpr)>> {
        let mut items: Vec<(SignalItem, ProgramExpr)> = Vec::new();
        loop {
            let place = self.start();
            let Some(item) = self.signal_item() else {
                return Err(self.fail());
            };
            if items.iter().any(|(seen, _)| *seen == item) {
                return Err(routine_fail(RoutineError::SignalItemAgain, place));
            }
            self.expect_kind(Kind::Equal)?;
            // Only literals and variables may stand here.
            let (expr, locals) = self.fragment(Self::primary)?;
            items.push((item, ProgramExpr { expr, locals }));
            if !self.eat_kind(Kind::Comma) {
                return Ok(items);
            }
        }
    }

    fn signal_item(&mut self) -> Option<SignalItem> {
        let word = self.keyword()?;
        let (_, item) = SIGNAL_ITEMS.iter().find(|(known, _)| *known == word)?;
        self.bump();
        Some(*item)
    }

    /// `GET [CURRENT] DIAGNOSTICS ..`.
    pub(crate) fn get_diagnostics(&mut self) -> Parsed<StepKind> {
        self.bump();
        self.eat(K::Current);
        self.expect(K::Diagnostics)?;
        let asked = if self.eat(K::Condition) {
            let (number, locals) = self.fragment(Self::primary)?;
            GetDiagnostics::Condition {
                number: ProgramExpr {
                    expr: number,
                    locals,
                },
                items: self.list(Self::asked_of_condition)?,
            }
        } else {
            GetDiagnostics::Statement(self.list(Self::asked_of_statement)?)
        };
        Ok(StepKind::GetDiagnostics(Box::new(asked)))
    }

    fn asked_of_statement(&mut self) -> Parsed<(IntoTarget, StatementItem)> {
        let target = self.target_variable()?;
        self.expect_kind(Kind::Equal)?;
        match self.eat_any(&[K::Number, K::RowCount]) {
            Some(K::Number) => Ok((target, StatementItem::Number)),
            Some(_) => Ok((target, StatementItem::RowCount)),
            None => Err(self.fail()),
        }
    }

    fn asked_of_condition(&mut self) -> Parsed<(IntoTarget, ConditionItem)> {
        let target = self.target_variable()?;
        self.expect_kind(Kind::Equal)?;
        if self.eat(K::ReturnedSqlstate) {
            return Ok((target, ConditionItem::ReturnedSqlstate));
        }
        match self.signal_item() {
            Some(item) => Ok((target, ConditionItem::Signal(item))),
            None => Err(self.fail()),
        }
    }
}
