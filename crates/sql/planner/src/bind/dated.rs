//! Dated texts: the results of date arithmetic on texts.
//!
//! `'2024-01-31' + INTERVAL 1 DAY` has type text, since it may be a date or a date with time. As a
//! number it is that of its date, 20240201, not of its first digits, 2024. So an expression that
//! needs a number makes the call return the moment itself ([`as_moment`]); arithmetic takes it as a
//! double ([`as_double`]). CASE, COALESCE, variables and columns see only the text.

use builtin::{Builtin, Dated};
use expression::{Case, CompareOperator, Expression, ExpressionKind};
use value::{ColumnType, TypeKind};

use super::Binder;
use super::literal::{as_compared, as_number};
use super::term::Bound;

/// Makes a dated text return moments; its type stays text. Returns other expressions unchanged.
pub(super) fn as_moment(mut expression: Expression) -> Expression {
    if let ExpressionKind::Function(call) = &mut expression.kind
        && call.bound.is_dated_text()
    {
        call.bound.give_moments();
    }
    expression
}

/// A dated text as the number of its moment. Returns other expressions unchanged.
pub(super) fn as_double(expression: Expression) -> Expression {
    if !is_dated_text(&expression) {
        return expression;
    }
    let mut double = ColumnType::new(TypeKind::Double);
    let digits = expression.column_type.decimals;
    if digits < ColumnType::NOT_FIXED {
        double.fix_digits(digits);
    }
    Expression {
        column_type: double,
        nullable: expression.nullable,
        kind: ExpressionKind::Cast(Box::new(as_moment(expression))),
    }
}

/// Arguments of a function, with dated texts in the form that the function takes.
pub(super) fn arguments_of(function: &Builtin, mut arguments: Vec<Expression>) -> Vec<Expression> {
    for (index, argument) in arguments.iter_mut().enumerate() {
        let taken = std::mem::replace(argument, Expression::null());
        *argument = match function.dated {
            _ if function.numbers.has(index) => as_number(taken),
            Dated::Doubles => as_double(taken),
            Dated::Moments => as_moment(taken),
            Dated::Texts | Dated::NumbersBesideNumbers | Dated::DoublesBesideNumbers => taken,
        };
    }
    let is_number = |argument: &Expression| argument.column_type.kind.is_number();
    if !arguments.iter().any(is_number) {
        return arguments;
    }
    match function.dated {
        Dated::NumbersBesideNumbers => arguments.into_iter().map(as_number).collect(),
        Dated::DoublesBesideNumbers => arguments.into_iter().map(as_double).collect(),
        Dated::Texts | Dated::Moments | Dated::Doubles => arguments,
    }
}

fn is_dated_text(expression: &Expression) -> bool {
    match &expression.kind {
        ExpressionKind::Function(call) => call.bound.is_dated_text(),
        _ => false,
    }
}

impl Binder<'_> {
    /// `NULLIF(dated, number)` compares numbers and returns the text. `None` for another NULLIF.
    pub(super) fn nullif_of_dated(&self, arguments: &[Expression]) -> Option<Bound> {
        let [value, other] = arguments else {
            return None;
        };
        if !is_dated_text(value) || !other.column_type.kind.is_number() {
            return None;
        }
        let other = as_compared(other.clone());
        let equal = self.comparison(CompareOperator::Equal, value.clone(), other);
        Some(equal.map(|equal| {
            let case = Case {
                branches: vec![(equal, Expression::null())],
                otherwise: Some(value.clone()),
            };
            Expression::new(
                ExpressionKind::Case(Box::new(case)),
                value.column_type.clone(),
            )
        }))
    }
}
