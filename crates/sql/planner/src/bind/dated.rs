//! Dated texts: what date arithmetic makes of a text.
//!
//! `'2024-01-31' + INTERVAL 1 DAY` is of type text, for it may be a date or a date with time. Where
//! a number is wanted it counts as that of its date, 20240201, and not as its first digits, 2024.
//! So who wants a number has the call give the moment itself ([`as_moment`]), and who calculates
//! has it as a double ([`as_double`]). CASE, COALESCE, variables and columns have the text alone.

use expression::{Case, CompareOperator, Expression, ExpressionKind};
use value::{ColumnType, TypeKind};

use super::Binder;
use super::literal::{as_compared, as_number};
use super::term::Bound;

/// A dated text whose values are the moments; the type stays text. Other expressions stay.
pub(super) fn as_moment(mut expression: Expression) -> Expression {
    if let ExpressionKind::Function(call) = &mut expression.kind
        && call.bound.is_dated_text()
    {
        call.bound.give_moments();
    }
    expression
}

/// A dated text as the number of its moment. Other expressions stay.
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

/// Arguments of a function, dated texts among them as the function takes them.
pub(super) fn arguments_of(name: &str, mut arguments: Vec<Expression>) -> Vec<Expression> {
    for (index, argument) in arguments.iter_mut().enumerate() {
        let taken = std::mem::replace(argument, Expression::null());
        *argument = match name {
            _ if function::wants_number(name, index) => as_number(taken),
            "FORMAT" => as_double(taken),
            "TIME" | "TIME_TO_SEC" | "TIMEDIFF" | "ADDTIME" | "SUBTIME" | "DATE" | "YEAR"
            | "TO_DAYS" => as_moment(taken),
            _ => taken,
        };
    }
    let is_number = |argument: &Expression| argument.column_type.kind.is_number();
    if !arguments.iter().any(is_number) {
        return arguments;
    }
    match name {
        "GREATEST" | "LEAST" | "NULLIF" => arguments.into_iter().map(as_number).collect(),
        "FIELD" => arguments.into_iter().map(as_double).collect(),
        _ => arguments,
    }
}

fn is_dated_text(expression: &Expression) -> bool {
    match &expression.kind {
        ExpressionKind::Function(call) => call.bound.is_dated_text(),
        _ => false,
    }
}

impl Binder<'_> {
    /// `NULLIF(dated, number)` compares numbers and gives the text; None of another NULLIF.
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
