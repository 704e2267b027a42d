//! Comparisons: the class in which two values are compared.

use expression::{Class, Compare, CompareOperator, Expression, ExpressionKind, failure};
use value::collation::{TextRule, illegal_mix, mix_to_compare};
use value::decimal::Rounding;
use value::{Charset, CollationId, ColumnType, Comparison, TypeKind, Value, Warnings};

use super::Binder;
use super::literal::as_compared;
use crate::PlanError;
use crate::plan::TextCheck;

impl Binder<'_> {
    /// `left op right`, with the special rules for constants.
    pub(crate) fn comparison(
        &self,
        operator: CompareOperator,
        left: Expression,
        right: Expression,
    ) -> Result<Expression, PlanError> {
        let right = constant_for(&left, right);
        let left = constant_for(&right, left);
        self.plain_comparison(operator, left, right)
    }

    /// `left op right`.
    pub(crate) fn plain_comparison(
        &self,
        operator: CompareOperator,
        left: Expression,
        right: Expression,
    ) -> Result<Expression, PlanError> {
        let (left, right) = if left.column_type.kind.is_number() {
            (left, as_compared(right))
        } else if right.column_type.kind.is_number() {
            (as_compared(left), right)
        } else {
            (left, right)
        };
        let class = self.class(&left, &right, operator_text(operator))?;
        Ok(Self::comparison_in(class, operator, left, right))
    }

    /// `left op right` in a class.
    pub(crate) fn comparison_in(
        class: Class,
        operator: CompareOperator,
        left: Expression,
        right: Expression,
    ) -> Expression {
        let is_certain = operator == CompareOperator::NullSafeEqual;
        let nullable = !is_certain && (left.nullable || right.nullable);
        let compare = Compare {
            operator,
            class,
            left,
            right,
        };
        Expression::condition(ExpressionKind::Compare(Box::new(compare)), nullable)
    }

    /// The class in which two expressions are compared.
    pub(crate) fn class(
        &self,
        left: &Expression,
        right: &Expression,
        operation: &str,
    ) -> Result<Class, PlanError> {
        let types = [&left.column_type, &right.column_type];
        function::refuse_geometry_with(types, operation).map_err(failure)?;
        let are_texts = left.column_type.kind.is_string() || right.column_type.kind.is_string();
        Ok(match self.class_of_types(left, right) {
            Class::Text(_) => Class::Text(self.texts_collation(&[left, right], operation)?),
            class => {
                if are_texts {
                    let rules = [self.text_rule(left), self.text_rule(right)];
                    mix_to_compare(&rules, operation).map_err(failure)?;
                }
                class
            }
        })
    }

    /// The class in which two expressions are compared, without the collation of texts.
    pub(super) fn class_of_types(&self, left: &Expression, right: &Expression) -> Class {
        let (left, right) = (&left.column_type, &right.column_type);
        let collation = self.settings.collation;
        match Comparison::of(left, right, collation, self.settings.today) {
            Comparison::Integer => Class::Integer,
            Comparison::Decimal => Class::Decimal,
            Comparison::Double => Class::Double,
            Comparison::Text(collation) => Class::Text(collation),
            Comparison::DateTime(_) => Class::DateTime,
            Comparison::Time => Class::Time,
        }
    }

    /// The collation in which several texts are compared.
    pub(crate) fn texts_collation(
        &self,
        texts: &[&Expression],
        operation: &str,
    ) -> Result<CollationId, PlanError> {
        let rules: Vec<TextRule> = texts.iter().map(|it| self.text_rule(it)).collect();
        let collation = mix_to_compare(&rules, operation)
            .map_err(failure)?
            .collation;
        self.check_texts(texts, collation, operation)?;
        Ok(collation)
    }

    /// Refuses a literal that the character set of the comparison lacks. A parameter is checked
    /// when it has a value.
    fn check_texts(
        &self,
        texts: &[&Expression],
        collation: CollationId,
        operation: &str,
    ) -> Result<(), PlanError> {
        let to = collation.charset();
        for text in texts {
            let from = text.column_type.charset();
            let is_text = text.column_type.kind.is_string();
            if !is_text || from == to || from == Charset::Binary || to == Charset::Binary {
                continue;
            }
            let refusal = || self.illegal_mix(texts, operation);
            match &text.kind {
                ExpressionKind::Constant(Value::Bytes(bytes)) if !to.can_hold(from, bytes) => {
                    return Err(refusal());
                }
                ExpressionKind::Parameter(parameter) => {
                    let check = TextCheck {
                        parameter: *parameter,
                        from,
                        to,
                        refusal: refusal(),
                    };
                    self.text_checks.borrow_mut().push(check);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The error for texts without a common collation.
    pub(super) fn illegal_mix(&self, texts: &[&Expression], operation: &str) -> PlanError {
        let rules: Vec<TextRule> = texts.iter().map(|it| self.text_rule(it)).collect();
        failure(illegal_mix(&rules, operation))
    }

    /// The collation of an expression and its strength.
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
            ExpressionKind::SystemVariable(_) => TextRule {
                coercibility: value::collation::Coercibility::SystemConstant,
                ..TextRule::column(collation)
            },
            _ => TextRule::column(collation),
        }
    }
}

/// A constant as MySQL reads it when it is compared with a column. Beside a YEAR it is a year;
/// beside a BIGINT, a date is the number of its digits; otherwise it is unchanged.
pub(super) fn constant_for(column: &Expression, other: Expression) -> Expression {
    if column.as_column().is_none() {
        return other;
    }
    match column.column_type.kind {
        TypeKind::Year => as_year(other, column.column_type.length),
        TypeKind::BigInt => as_digits(other),
        _ => other,
    }
}

/// A date, a time or both as the integer of its digits, unless it has a fraction.
fn as_digits(expression: Expression) -> Expression {
    if !expression.column_type.kind.is_temporal() {
        return expression;
    }
    let ExpressionKind::Constant(value) = &expression.kind else {
        let has_fraction = expression.column_type.decimals != 0;
        return match is_fixed(&expression) && !has_fraction {
            true => Expression {
                column_type: ColumnType::new(TypeKind::BigInt),
                nullable: expression.nullable,
                kind: ExpressionKind::Cast(Box::new(expression)),
            },
            false => expression,
        };
    };
    let number = value.as_ref().to_decimal(&mut Warnings::new(0));
    let whole = number.and_then(|number| {
        let rounded = number.round(0, Rounding::Truncate).ok()?;
        (rounded == number).then_some(rounded)
    });
    match whole.and_then(|number| number.to_string().parse::<i64>().ok()) {
        Some(digits) => Expression::constant(Value::Int(digits), ColumnType::new(TypeKind::BigInt)),
        None => expression,
    }
}

/// True of an expression with the same value for all rows.
fn is_fixed(expression: &Expression) -> bool {
    expression.slots().is_empty() && expression.subqueries().is_empty() && !expression.is_volatile()
}

fn as_year(expression: Expression, digits: u32) -> Expression {
    let expression = as_compared(expression);
    let column_type = &expression.column_type;
    match &expression.kind {
        ExpressionKind::AsYear(..) => expression,
        _ if column_type.kind == TypeKind::Null => expression,
        _ if !is_fixed(&expression) => expression,
        _ => Expression {
            column_type: match column_type.kind.is_temporal() {
                true => ColumnType::new(TypeKind::Int),
                false => column_type.clone(),
            },
            nullable: expression.nullable,
            kind: ExpressionKind::AsYear(Box::new(expression), digits),
        },
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
