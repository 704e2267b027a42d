//! Comparisons: the class in which two values meet.

use expression::{Class, Compare, CompareOperator, Expression, ExpressionKind, failure};
use value::collation::{TextRule, mix_to_compare};
use value::{Comparison, TypeKind, Value};

use super::Binder;
use super::literal::as_number;
use crate::PlanError;

impl Binder<'_> {
    /// `left op right`.
    pub(crate) fn comparison(
        &self,
        operator: CompareOperator,
        left: Expression,
        right: Expression,
    ) -> Result<Expression, PlanError> {
        let (left, right) = if left.column_type.kind.is_number() {
            (left, as_number(right))
        } else if right.column_type.kind.is_number() {
            (as_number(left), right)
        } else {
            (left, right)
        };
        let class = self.class(&left, &right, operator_text(operator))?;
        let is_certain = operator == CompareOperator::NullSafeEqual;
        let nullable = !is_certain && (left.nullable || right.nullable);
        let compare = Compare {
            operator,
            class,
            left,
            right,
        };
        Ok(Expression::condition(
            ExpressionKind::Compare(Box::new(compare)),
            nullable,
        ))
    }

    /// The class in which two expressions are compared.
    pub(crate) fn class(
        &self,
        left: &Expression,
        right: &Expression,
        operation: &str,
    ) -> Result<Class, PlanError> {
        let rules = [self.text_rule(left), self.text_rule(right)];
        let are_texts = left.column_type.kind.is_string() || right.column_type.kind.is_string();
        let collation = if are_texts {
            mix_to_compare(&rules, operation)
                .map_err(failure)?
                .collation
        } else {
            self.settings.collation
        };
        let (left, right) = (&left.column_type, &right.column_type);
        let comparison = Comparison::of(left, right, collation, self.settings.today);
        Ok(match comparison {
            Comparison::Integer => Class::Integer,
            Comparison::Decimal => Class::Decimal,
            Comparison::Double => Class::Double,
            Comparison::Text(collation) => Class::Text(collation),
            Comparison::DateTime(_) => Class::DateTime,
            Comparison::Time => Class::Time,
        })
    }

    /// The collation of an expression and how strongly it holds.
    pub(crate) fn text_rule(&self, expression: &Expression) -> TextRule {
        let collation = expression.column_type.collation;
        match &expression.kind {
            _ if expression.column_type.kind == TypeKind::Null => TextRule::NULL,
            _ if !expression.column_type.kind.is_string() => {
                TextRule::numeric(self.settings.collation)
            }
            ExpressionKind::Constant(value) => {
                let bytes = match value {
                    Value::Bytes(bytes) => bytes.as_slice(),
                    _ => &[],
                };
                TextRule::literal(collation, bytes)
            }
            ExpressionKind::Parameter(_) => TextRule {
                coercibility: value::collation::Coercibility::Coercible,
                ..TextRule::column(collation)
            },
            ExpressionKind::Function(call) => call.bound.rule,
            ExpressionKind::UserVariable(_) | ExpressionKind::SystemVariable(_) => TextRule {
                coercibility: value::collation::Coercibility::SystemConstant,
                ..TextRule::column(collation)
            },
            _ => TextRule::column(collation),
        }
    }
}

/// The operator as messages name it.
pub(super) fn operator_text(operator: CompareOperator) -> &'static str {
    match operator {
        CompareOperator::Equal => "=",
        CompareOperator::NullSafeEqual => "<=>",
        CompareOperator::NotEqual => "<>",
        CompareOperator::Less => "<",
        CompareOperator::LessOrEqual => "<=",
        CompareOperator::Greater => ">",
        CompareOperator::GreaterOrEqual => ">=",
    }
}
