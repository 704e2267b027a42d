//! Calls: arithmetic, functions, aggregates, and the types of their results.

use errcode::ER_SP_DOES_NOT_EXIST;
use expression::{
    AggregateCall, AggregateFunction, Arithmetic, ArithmeticOperator, Class, Expression,
    ExpressionKind,
};
use syntax::ast::{self, BinaryOperator, Expr, ExprKind};
use value::{ColumnType, Decimal, TypeKind};

use super::term::Bound;
use super::{Binder, error};
use crate::{PlanError, not_supported};

impl Binder<'_> {
    /// `+ - * / DIV %`.
    pub(super) fn arithmetic(
        &mut self,
        operator: BinaryOperator,
        left: Expression,
        right: Expression,
        whole: &Expr,
    ) -> Bound {
        let operator = match operator {
            BinaryOperator::Add => ArithmeticOperator::Add,
            BinaryOperator::Subtract => ArithmeticOperator::Subtract,
            BinaryOperator::Multiply => ArithmeticOperator::Multiply,
            BinaryOperator::Divide => ArithmeticOperator::Divide,
            BinaryOperator::IntegerDivide => ArithmeticOperator::IntegerDivide,
            BinaryOperator::Modulo => ArithmeticOperator::Modulo,
            _ => return Err(not_supported("this operator")),
        };
        let mut class = meet(class_of(&left.column_type), class_of(&right.column_type));
        if operator == ArithmeticOperator::Divide && class == Class::Integer {
            class = Class::Decimal;
        }
        let column_type = arithmetic_type(
            operator,
            class,
            &left,
            &right,
            self.settings.division_increment,
        );
        let divides = !matches!(
            operator,
            ArithmeticOperator::Add | ArithmeticOperator::Subtract | ArithmeticOperator::Multiply
        );
        let nullable = divides || left.nullable || right.nullable;
        let text = self.text(whole.span).into();
        let kind = ExpressionKind::Arithmetic(Box::new(Arithmetic {
            operator,
            class,
            left,
            right,
            text,
        }));
        Ok(Expression {
            kind,
            column_type,
            nullable,
        })
    }

    pub(super) fn negate(&mut self, operand: Expression, _: &Expr) -> Bound {
        let mut column_type = match class_of(&operand.column_type) {
            Class::Integer => ColumnType::new(TypeKind::BigInt),
            Class::Decimal => operand.column_type.clone(),
            _ => ColumnType::new(TypeKind::Double),
        };
        column_type.unsigned = false;
        let nullable = operand.nullable;
        let kind = ExpressionKind::Negate(Box::new(operand));
        Ok(Expression {
            kind,
            column_type,
            nullable,
        })
    }

    /// The type in which several values meet: CASE, COALESCE, UNION.
    pub(crate) fn union_type<'e>(
        &self,
        values: impl IntoIterator<Item = &'e Expression>,
    ) -> Result<(ColumnType, bool), PlanError> {
        let mut result: Option<ColumnType> = None;
        let mut nullable = false;
        for value in values {
            nullable |= value.nullable;
            if value.column_type.kind == TypeKind::Null {
                continue;
            }
            result = Some(match result {
                None => value.column_type.clone(),
                Some(known) => self.meeting_type(&known, &value.column_type),
            });
        }
        Ok((
            result.unwrap_or_else(|| ColumnType::new(TypeKind::Null)),
            nullable,
        ))
    }

    fn meeting_type(&self, a: &ColumnType, b: &ColumnType) -> ColumnType {
        if a == b {
            return a.clone();
        }
        if a.kind.is_number() && b.kind.is_number() {
            return match meet(class_of(a), class_of(b)) {
                Class::Integer => {
                    let mut integer = ColumnType::new(TypeKind::BigInt);
                    integer.unsigned = a.unsigned && b.unsigned;
                    integer
                }
                Class::Decimal => {
                    let scale = a.decimals.min(30).max(b.decimals.min(30));
                    ColumnType::decimal(Decimal::PRECISION_MAX, scale)
                }
                _ => ColumnType::new(TypeKind::Double),
            };
        }
        let chars = a.length.max(b.length);
        let collation = match (a.kind.is_string(), b.kind.is_string()) {
            (true, _) => a.collation,
            (false, true) => b.collation,
            (false, false) => self.settings.collation,
        };
        let is_short = chars <= 16_383 && !a.kind.is_blob() && !b.kind.is_blob();
        let kind = if is_short {
            TypeKind::VarChar
        } else {
            TypeKind::LongText
        };
        ColumnType::text(kind, chars, collation)
    }

    /// An aggregate call: noted in the block, and named by its number.
    pub(super) fn aggregate(&mut self, aggregate: &ast::Aggregate) -> Bound {
        self.check_aggregate_allowed()?;
        if aggregate.over.is_some() {
            return Err(not_supported("window functions"));
        }
        self.block().allows_aggregates = false;
        let arguments: Result<Vec<_>, _> = aggregate
            .arguments
            .iter()
            .map(|argument| self.term(argument))
            .collect();
        let order: Result<Vec<_>, _> = aggregate
            .order_by
            .iter()
            .map(|item| Ok::<_, PlanError>((self.term(&item.expr)?, item.descending)))
            .collect();
        self.block().allows_aggregates = true;
        let (arguments, order) = (arguments?, order?);
        let function = aggregate_function(aggregate.function)?;
        let column_type = self.aggregate_type(function, &arguments);
        let limit = match &aggregate.limit {
            None => None,
            Some(limit) => Some(constant_limit(limit)?),
        };
        let separator = aggregate.separator.clone().unwrap_or_else(|| b",".to_vec());
        let call = AggregateCall {
            function,
            arguments,
            is_distinct: aggregate.distinct,
            order,
            separator: separator.into(),
            limit,
            column_type: column_type.clone(),
        };
        let calls = &mut self.block().calls;
        let number = calls
            .iter()
            .position(|known| *known == call)
            .unwrap_or(calls.len());
        if number == calls.len() {
            calls.push(call);
        }
        let nullable = function != AggregateFunction::Count;
        Ok(Expression {
            kind: ExpressionKind::Aggregate(number),
            column_type,
            nullable,
        })
    }

    fn aggregate_type(&self, function: AggregateFunction, arguments: &[Expression]) -> ColumnType {
        use AggregateFunction as F;
        let argument = arguments.first().map(|argument| &argument.column_type);
        match function {
            F::Count => {
                let mut count = ColumnType::new(TypeKind::BigInt);
                count.length = 21;
                count
            }
            F::Sum | F::Average => sum_type(function, argument, self.settings.division_increment),
            F::Min | F::Max | F::First => argument
                .cloned()
                .unwrap_or_else(|| ColumnType::new(TypeKind::Null)),
            F::BitAnd | F::BitOr | F::BitXor => {
                let mut bits = ColumnType::unsigned(TypeKind::BigInt);
                bits.length = 21;
                bits
            }
            F::DeviationPopulation
            | F::DeviationSample
            | F::VariancePopulation
            | F::VarianceSample => ColumnType::new(TypeKind::Double),
            F::GroupConcat => {
                let collation = match argument {
                    Some(argument) if argument.kind.is_string() => argument.collation,
                    _ => self.settings.collation,
                };
                ColumnType::text(TypeKind::MediumText, 1 << 20, collation)
            }
        }
    }

    /// A call of the function library.
    pub(super) fn call(&mut self, expr: &Expr) -> Bound {
        match &expr.kind {
            ExprKind::Function(function) => {
                if function.over.is_some() {
                    return Err(not_supported("window functions"));
                }
                let database = self.settings.database.clone().unwrap_or_default();
                let name = format!("{database}.{}", function.name.text);
                Err(error(ER_SP_DOES_NOT_EXIST, &[&"FUNCTION", &name]))
            }
            ExprKind::Match { .. } => Err(not_supported("MATCH .. AGAINST")),
            _ => Err(not_supported("this expression")),
        }
    }
}

/// The class in which a type calculates.
pub(crate) fn class_of(column_type: &ColumnType) -> Class {
    match column_type.kind {
        kind if kind.is_integer() => Class::Integer,
        TypeKind::Year | TypeKind::Bit | TypeKind::Null => Class::Integer,
        TypeKind::Decimal => Class::Decimal,
        TypeKind::Date => Class::Integer,
        TypeKind::Time | TypeKind::DateTime | TypeKind::Timestamp => {
            if column_type.decimals > 0 {
                Class::Decimal
            } else {
                Class::Integer
            }
        }
        _ => Class::Double,
    }
}

fn meet(a: Class, b: Class) -> Class {
    match (a, b) {
        (Class::Double, _) | (_, Class::Double) => Class::Double,
        (Class::Decimal, _) | (_, Class::Decimal) => Class::Decimal,
        _ => Class::Integer,
    }
}

fn arithmetic_type(
    operator: ArithmeticOperator,
    class: Class,
    left: &Expression,
    right: &Expression,
    increment: u8,
) -> ColumnType {
    let (left, right) = (&left.column_type, &right.column_type);
    if operator == ArithmeticOperator::IntegerDivide || class == Class::Integer {
        let mut integer = ColumnType::new(TypeKind::BigInt);
        integer.unsigned = match operator {
            ArithmeticOperator::Modulo => left.unsigned,
            _ => left.unsigned || right.unsigned,
        };
        return integer;
    }
    if class == Class::Double {
        return ColumnType::new(TypeKind::Double);
    }
    let scale = |side: &ColumnType| side.decimals.min(Decimal::SCALE_MAX);
    let scale = match operator {
        ArithmeticOperator::Multiply => scale(left).saturating_add(scale(right)),
        ArithmeticOperator::Divide => scale(left).saturating_add(increment),
        _ => scale(left).max(scale(right)),
    };
    ColumnType::decimal(Decimal::PRECISION_MAX, scale.min(Decimal::SCALE_MAX))
}

fn sum_type(
    function: AggregateFunction,
    argument: Option<&ColumnType>,
    increment: u8,
) -> ColumnType {
    let Some(argument) = argument else {
        return ColumnType::new(TypeKind::Double);
    };
    let (precision, scale) = match class_of(argument) {
        Class::Integer => (argument.length.min(20), 0),
        Class::Decimal => (argument.length, argument.decimals),
        _ => {
            let mut double = ColumnType::new(TypeKind::Double);
            double.length = 23;
            return double;
        }
    };
    let is_average = function == AggregateFunction::Average;
    let (more, scale) = if is_average {
        (
            u32::from(increment),
            scale.saturating_add(increment).min(Decimal::SCALE_MAX),
        )
    } else {
        (22, scale)
    };
    let precision = (precision + more).min(u32::from(Decimal::PRECISION_MAX));
    ColumnType::decimal(
        u8::try_from(precision).unwrap_or(Decimal::PRECISION_MAX),
        scale,
    )
}

fn aggregate_function(function: ast::AggregateFunction) -> Result<AggregateFunction, PlanError> {
    use ast::AggregateFunction as F;
    Ok(match function {
        F::Avg => AggregateFunction::Average,
        F::BitAnd => AggregateFunction::BitAnd,
        F::BitOr => AggregateFunction::BitOr,
        F::BitXor => AggregateFunction::BitXor,
        F::Count => AggregateFunction::Count,
        F::GroupConcat => AggregateFunction::GroupConcat,
        F::Max => AggregateFunction::Max,
        F::Min => AggregateFunction::Min,
        F::StddevPop => AggregateFunction::DeviationPopulation,
        F::StddevSamp => AggregateFunction::DeviationSample,
        F::Sum => AggregateFunction::Sum,
        F::VarPop => AggregateFunction::VariancePopulation,
        F::VarSamp => AggregateFunction::VarianceSample,
        F::JsonArrayAgg => return Err(not_supported("JSON_ARRAYAGG")),
        F::JsonObjectAgg => return Err(not_supported("JSON_OBJECTAGG")),
        F::PercentileCont | F::PercentileDisc | F::Median => {
            return Err(not_supported("percentiles"));
        }
    })
}

/// (count, offset) of a limit inside an aggregate.
fn constant_limit(limit: &ast::Limit) -> Result<(u64, u64), PlanError> {
    let number = |expr: &Option<Expr>, absent| match expr.as_ref().map(|expr| &expr.kind) {
        None => Ok(absent),
        Some(ExprKind::Literal(ast::Literal::Integer(number))) => Ok(*number),
        Some(_) => Err(not_supported(
            "LIMIT of other than a number in an aggregate",
        )),
    };
    Ok((number(&limit.count, u64::MAX)?, number(&limit.offset, 0)?))
}
