//! [`Evaluator`]: the value of an expression over the current rows.
//!
//! Values borrow their rows, or the frame's arena if they are computed; integers and references
//! need no allocation. Conditions have a path of their own ([`Evaluator::truth`]), which creates no
//! values at all.

use errcode::{ClientError, ER_INVALID_GROUP_FUNC_USE, ER_WRONG_ARGUMENTS};
use value::{ColumnType, TypeKind, Value, ValueRef};

use crate::domain::{self, Domain};
use crate::key::COMPARE_COST;
use crate::tree::{
    BitOperation, BitOperator, Case, Class, Compare, CompareOperator, Expression, ExpressionKind,
    Like, Test, UserVariable,
};
use crate::{Failure, Frame, Statement, compare_metered, damaged_row};

mod arithmetic;
mod library;
mod list;
mod members;
mod quantified;
mod row_list;

/// Evaluates expressions over the rows, in the session.
#[derive(Debug, Clone, Copy)]
pub struct Evaluator<'a> {
    /// The rows.
    pub(crate) frame: &'a Frame,
    /// The session.
    pub(crate) statement: &'a Statement<'a>,
}

/// A value, or the error.
pub(crate) type Evaluated<'a> = Result<ValueRef<'a>, Failure>;

impl<'a> Evaluator<'a> {
    /// Over these rows, in this statement.
    pub fn new(frame: &'a Frame, statement: &'a Statement<'a>) -> Self {
        Self { frame, statement }
    }

    /// The value of an expression, in its own type.
    #[inline]
    pub fn evaluate(&self, expression: &'a Expression) -> Result<ValueRef<'a>, Failure> {
        match &expression.kind {
            ExpressionKind::Column(place) => self
                .frame
                .column(place.slot, place.column)
                .map_err(|error| damaged_row(&error)),
            ExpressionKind::Constant(value) => Ok(value.as_ref()),
            ExpressionKind::Parameter(number) => self.parameter(*number),
            _ => self.evaluate_other(expression),
        }
    }

    /// The value of an expression, converted to a class.
    #[inline]
    pub fn evaluate_as(
        &self,
        expression: &'a Expression,
        class: Class,
    ) -> Result<ValueRef<'a>, Failure> {
        if let ExpressionKind::UserVariable(variable) = &expression.kind {
            return self.user_variable_as(variable, &expression.column_type, class);
        }
        let value = self.evaluate(expression)?;
        Ok(self.domain().bring(value, &expression.column_type, class))
    }

    /// The current value of a user variable in a class. A DECIMAL that the statement assigned to an
    /// integer variable keeps its digits here. A text that is no number causes no warning.
    fn user_variable_as(
        &self,
        variable: &UserVariable,
        planned: &ColumnType,
        class: Class,
    ) -> Evaluated<'a> {
        let as_type = match class {
            Class::Decimal => ColumnType::any_decimal(),
            Class::Double => ColumnType::new(TypeKind::Double),
            Class::Text(collation) => ColumnType::any_text(collation),
            Class::Integer if !planned.kind.is_integer() => ColumnType::new(TypeKind::BigInt),
            Class::Integer | Class::DateTime | Class::Time => planned.clone(),
        };
        let session = self.statement.session;
        let value = self.keep(session.user_variable(&variable.name, &as_type))?;
        Ok(self.domain().bring(value, &as_type, class))
    }

    /// The value of an expression as text in its own character set, or NULL.
    pub fn text(&self, expression: &'a Expression) -> Result<ValueRef<'a>, Failure> {
        let value = self.evaluate(expression)?;
        Ok(self.domain().text(value, &expression.column_type))
    }

    /// The value of an expression as unsigned 64 bits, or `None` for NULL.
    pub fn bits(&self, expression: &'a Expression) -> Result<Option<u64>, Failure> {
        let value = self.evaluate(expression)?;
        Ok(self.domain().bits(value))
    }

    /// True if the condition is true: neither false nor NULL.
    #[inline]
    pub fn is_true(&self, condition: &'a Expression) -> Result<bool, Failure> {
        Ok(self.truth(condition)? == Some(true))
    }

    /// Whether a condition is true; `None` is NULL.
    pub fn truth(&self, condition: &'a Expression) -> Result<Option<bool>, Failure> {
        match &condition.kind {
            ExpressionKind::Compare(compare) => self.compare(compare),
            ExpressionKind::And(list) => self.and(list),
            ExpressionKind::Or(list) => self.or(list),
            ExpressionKind::Not(operand) => Ok(self.truth(operand)?.map(|truth| !truth)),
            ExpressionKind::Xor(pair) => {
                let [left, right] = &**pair;
                let (left, right) = (self.truth(left)?, self.truth(right)?);
                Ok(left.zip(right).map(|(left, right)| left != right))
            }
            ExpressionKind::Is {
                operand,
                test,
                negated,
            } => Ok(Some(self.is(operand, *test)? != *negated)),
            ExpressionKind::In(list) => self.is_in(list),
            ExpressionKind::InRows(list) => self.is_in_rows(list),
            ExpressionKind::Like(like) => self.like(like),
            ExpressionKind::Exists(number) => Ok(Some(self.exists(*number))),
            ExpressionKind::Quantified(quantified) => self.quantified(quantified),
            _ => {
                let value = self.evaluate(condition)?;
                Ok(self.domain().truth(value, &condition.column_type))
            }
        }
    }

    /// Converts a value that does not come from an expression to a class.
    pub fn bring(&self, value: ValueRef<'a>, from: &ColumnType, class: Class) -> ValueRef<'a> {
        self.domain().bring(value, from, class)
    }

    pub(crate) fn domain(&self) -> Domain<'a> {
        Domain {
            arena: self.frame.arena(),
            statement: self.statement,
        }
    }

    fn parameter(&self, number: usize) -> Evaluated<'a> {
        match self.frame.parameters.get(number) {
            Some(value) => Ok(value.as_ref()),
            None => {
                let error = ClientError::new(ER_WRONG_ARGUMENTS, &[&"EXECUTE"]);
                Err(Box::new(error))
            }
        }
    }

    fn evaluate_other(&self, expression: &'a Expression) -> Evaluated<'a> {
        match &expression.kind {
            ExpressionKind::Constant(_)
            | ExpressionKind::Parameter(_)
            | ExpressionKind::Column(_) => self.evaluate(expression),
            // The planner replaces each by the column of its group; one that is left has no group.
            ExpressionKind::Aggregate(_) => {
                Err(Box::new(ClientError::new(ER_INVALID_GROUP_FUNC_USE, &[])))
            }
            ExpressionKind::Subquery(number) => Ok(self.scalar(*number)),
            ExpressionKind::Stored(call) => Ok(self.scalar(call.number)),
            ExpressionKind::Not(_)
            | ExpressionKind::And(_)
            | ExpressionKind::Or(_)
            | ExpressionKind::Xor(_)
            | ExpressionKind::Is { .. }
            | ExpressionKind::Compare(_)
            | ExpressionKind::In(_)
            | ExpressionKind::InRows(_)
            | ExpressionKind::Like(_)
            | ExpressionKind::Exists(_)
            | ExpressionKind::Quantified(_) => Ok(match self.truth(expression)? {
                Some(truth) => ValueRef::Int(i64::from(truth)),
                None => ValueRef::Null,
            }),
            ExpressionKind::Arithmetic(arithmetic) => {
                self.arithmetic(arithmetic, &expression.column_type)
            }
            ExpressionKind::Negate(operand) => self.negate(operand, &expression.column_type),
            ExpressionKind::BitOperation(bits) => self.bit_operation(bits),
            ExpressionKind::Complement(operand) => Ok(match self.bits(operand)? {
                Some(bits) => ValueRef::UInt(!bits),
                None => ValueRef::Null,
            }),
            ExpressionKind::Case(case) => self.case(case, expression),
            ExpressionKind::Coalesce(list) => self.coalesce(list, expression),
            ExpressionKind::NullIf(compare) => match self.compare(compare)? {
                Some(true) => Ok(ValueRef::Null),
                _ => self.evaluate(&compare.left),
            },
            ExpressionKind::Cast(operand) => self.cast(operand, expression),
            ExpressionKind::Now => {
                let now = self
                    .statement
                    .now()
                    .truncated(expression.column_type.decimals);
                Ok(ValueRef::DateTime(now))
            }
            ExpressionKind::Local(operand) => Ok(match self.evaluate(operand)? {
                ValueRef::DateTime(utc) => match self.statement.options.zone.from_utc(utc) {
                    Some(local) => ValueRef::DateTime(local),
                    None => ValueRef::Null,
                },
                other => other,
            }),
            ExpressionKind::AsYear(operand, digits) => {
                let value = self.evaluate(operand)?;
                self.keep(domain::as_year(value, &operand.column_type, *digits))
            }
            ExpressionKind::Function(call) => library::call(self, call),
            ExpressionKind::UserVariable(_)
            | ExpressionKind::AssignUserVariable(_)
            | ExpressionKind::SystemVariable(_) => self.variable(expression),
            ExpressionKind::Session(call) => {
                let mut values = Vec::with_capacity(call.arguments.len());
                for argument in &call.arguments {
                    values.push(self.evaluate(argument)?.to_value());
                }
                let answer = self.statement.session.call(call.function, &values)?;
                self.keep(answer)
            }
        }
    }

    fn variable(&self, expression: &'a Expression) -> Evaluated<'a> {
        let session = self.statement.session;
        match &expression.kind {
            ExpressionKind::UserVariable(variable) => {
                let value = session.user_variable(&variable.name, &expression.column_type);
                self.keep(value)
            }
            ExpressionKind::AssignUserVariable(assignment) => {
                let (name, operand) = &**assignment;
                let value = self.evaluate(operand)?;
                session.set_user_variable(name, value.to_value(), &operand.column_type)?;
                Ok(value)
            }
            ExpressionKind::SystemVariable(variable) => {
                let value = session.system_variable(variable.scope, &variable.name)?;
                self.keep(value)
            }
            _ => unreachable!("called for variables"),
        }
    }

    /// The order of two values of one type, counted as work; NULL is below all.
    ///
    /// # Errors
    /// If the statement has to end.
    pub fn compare_values(
        &self,
        a: ValueRef<'_>,
        b: ValueRef<'_>,
        column_type: &ColumnType,
    ) -> Result<std::cmp::Ordering, Failure> {
        crate::compare_values_metered(a, b, column_type, self.statement)
    }

    /// Counts the work of reading a value.
    ///
    /// # Errors
    /// If the statement has to end.
    #[inline]
    pub fn spend_on(&self, value: ValueRef<'_>) -> Result<(), Failure> {
        match value {
            ValueRef::Bytes(bytes) => {
                self.frame.count_arena(0, self.statement)?;
                self.statement.spend(bytes.len())
            }
            _ => Ok(()),
        }
    }

    /// Keeps a computed value in the arena, where a text counts as memory of the statement.
    ///
    /// # Errors
    /// 1290 or 1041 if that is too much, and those of a statement that has to end.
    pub(crate) fn keep(&self, value: Value) -> Evaluated<'a> {
        if let Value::Bytes(bytes) = &value {
            self.frame.count_arena(bytes.len(), self.statement)?;
            self.statement.spend(bytes.len())?;
        }
        Ok(domain::keep(self.frame.arena(), value))
    }

    fn compare(&self, compare: &'a Compare) -> Result<Option<bool>, Failure> {
        let left = self.evaluate_as(&compare.left, compare.class)?;
        if left.is_null() && compare.operator != CompareOperator::NullSafeEqual {
            return Ok(None);
        }
        let right = self.evaluate_as(&compare.right, compare.class)?;
        match (left.is_null(), right.is_null()) {
            (false, false) => {
                let order = compare_metered(left, right, compare.class, self.statement)?;
                Ok(Some(compare.operator.holds(order)))
            }
            (left, right) if compare.operator == CompareOperator::NullSafeEqual => {
                Ok(Some(left && right))
            }
            _ => Ok(None),
        }
    }

    fn and(&self, list: &'a [Expression]) -> Result<Option<bool>, Failure> {
        let mut result = Some(true);
        for condition in list {
            match self.truth(condition)? {
                Some(false) => return Ok(Some(false)),
                None => result = None,
                Some(true) => {}
            }
        }
        Ok(result)
    }

    fn or(&self, list: &'a [Expression]) -> Result<Option<bool>, Failure> {
        let mut result = Some(false);
        for condition in list {
            self.statement.spend(COMPARE_COST)?;
            match self.truth(condition)? {
                Some(true) => return Ok(Some(true)),
                None => result = None,
                Some(false) => {}
            }
        }
        Ok(result)
    }

    fn is(&self, operand: &'a Expression, test: Test) -> Result<bool, Failure> {
        Ok(match test {
            Test::Null => self.evaluate(operand)?.is_null(),
            Test::True => self.truth(operand)? == Some(true),
            Test::False => self.truth(operand)? == Some(false),
        })
    }

    fn like(&self, like: &'a Like) -> Result<Option<bool>, Failure> {
        let class = Class::Text(like.collation);
        let operand = self.evaluate_as(&like.operand, class)?;
        let pattern = self.evaluate_as(&like.pattern, class)?;
        let (ValueRef::Bytes(operand), ValueRef::Bytes(pattern)) = (operand, pattern) else {
            return Ok(None);
        };
        let meter = &mut |bytes| self.statement.spend(bytes);
        self.statement.spend(pattern.len())?;
        let matches = like
            .collation
            .like_metered(operand, pattern, like.escape, meter)?;
        Ok(Some(matches != like.negated))
    }

    fn bit_operation(&self, bits: &'a BitOperation) -> Evaluated<'a> {
        let (Some(left), Some(right)) = (self.bits(&bits.left)?, self.bits(&bits.right)?) else {
            return Ok(ValueRef::Null);
        };
        let shift = u32::try_from(right).ok();
        Ok(ValueRef::UInt(match bits.operator {
            BitOperator::And => left & right,
            BitOperator::Or => left | right,
            BitOperator::Xor => left ^ right,
            BitOperator::ShiftLeft => shift.and_then(|by| left.checked_shl(by)).unwrap_or(0),
            BitOperator::ShiftRight => shift.and_then(|by| left.checked_shr(by)).unwrap_or(0),
        }))
    }

    fn case(&self, case: &'a Case, whole: &'a Expression) -> Evaluated<'a> {
        for (condition, value) in &case.branches {
            if self.is_true(condition)? {
                return self.cast(value, whole);
            }
        }
        match &case.otherwise {
            Some(value) => self.cast(value, whole),
            None => Ok(ValueRef::Null),
        }
    }

    fn coalesce(&self, list: &'a [Expression], whole: &'a Expression) -> Evaluated<'a> {
        for value in list {
            let converted = self.cast(value, whole)?;
            if !converted.is_null() {
                return Ok(converted);
            }
        }
        Ok(ValueRef::Null)
    }

    /// The operand's value, converted to the type of the whole.
    fn cast(&self, operand: &'a Expression, whole: &'a Expression) -> Evaluated<'a> {
        let value = self.evaluate(operand)?;
        if value.is_null() || operand.column_type == whole.column_type {
            return Ok(value);
        }
        let from = &operand.column_type;
        let to = &whole.column_type;
        if from.kind.is_bytes()
            && to.kind.is_bytes()
            && from.charset() == to.charset()
            && !matches!(whole.kind, ExpressionKind::Cast(_))
        {
            return Ok(value);
        }
        if to.kind == TypeKind::Null {
            return Ok(ValueRef::Null);
        }
        let converted = crate::convert_value(value, from, to, self.statement)?;
        self.keep(converted)
    }
}
