//! The state of one aggregate call within a group.

use errcode::{ClientError, ER_DATA_OUT_OF_RANGE};
use expression::{
    AggregateCall, AggregateKind, Class, Evaluator, Expression, Statement, convert_value,
};
use value::{Decimal, TypeKind, Value, ValueRef};

use super::group_concat::Concatenation;
use crate::Outcome;
use crate::context::Context;
use crate::keys::Keys;

/// A call's state within one group.
#[derive(Debug)]
pub(super) struct Accumulator {
    /// The values seen so far, for `DISTINCT`.
    seen: Option<Box<Keys>>,
    total: Total,
}

#[derive(Debug)]
enum Total {
    Count(i64),
    /// A sum of integers, as long as it fits.
    Integer {
        sum: i128,
        count: i64,
    },
    Decimal {
        sum: Box<Decimal>,
        count: i64,
    },
    Double {
        sum: f64,
        count: i64,
    },
    /// The least, greatest or first value; `None` before any.
    Picked(Option<Value>),
    Bits(u64),
    /// Welford's running mean and squared distance.
    Spread {
        count: i64,
        mean: f64,
        distance: f64,
    },
    Concatenation(Box<Concatenation>),
}

impl Accumulator {
    pub(super) fn new(call: &AggregateCall) -> Self {
        use AggregateKind as F;
        let total = match call.function {
            F::Count => Total::Count(0),
            F::Sum | F::Avg => empty_sum(call),
            F::Min | F::Max | F::First => Total::Picked(None),
            F::BitAnd => Total::Bits(u64::MAX),
            F::BitOr | F::BitXor => Total::Bits(0),
            F::StddevPop | F::StddevSamp | F::VarPop | F::VarSamp => Total::Spread {
                count: 0,
                mean: 0.0,
                distance: 0.0,
            },
            F::GroupConcat => Total::Concatenation(Box::default()),
        };
        let seen = call.is_distinct.then(Box::default);
        Self { seen, total }
    }

    /// Adds the current row. `kept_bytes` counts the values that accumulators keep.
    pub(super) fn add(
        &mut self,
        call: &AggregateCall,
        cx: &Context<'_>,
        kept_bytes: &mut usize,
    ) -> Outcome<()> {
        if call.function == AggregateKind::First {
            if let Total::Picked(picked @ None) = &mut self.total {
                keep(picked, cx.evaluate(&call.arguments[0])?, kept_bytes);
            }
            return Ok(());
        }
        if let Total::Concatenation(concatenation) = &mut self.total {
            return concatenation.add(call, self.seen.as_deref_mut(), cx);
        }
        if let Some(seen) = &mut self.seen {
            if !super::arguments_are_there(call, cx)? {
                return Ok(());
            }
            seen.begin();
            for argument in &call.arguments {
                seen.push(cx.evaluate(argument)?, &argument.column_type, cx)?;
            }
            let (_, is_new) = seen.insert(cx)?;
            if !is_new {
                return Ok(());
            }
        }
        let evaluator = cx.evaluator();
        match &mut self.total {
            Total::Count(count) => {
                if call.arguments.is_empty() || super::arguments_are_there(call, cx)? {
                    *count += 1;
                }
            }
            Total::Picked(picked) => pick(picked, call, &evaluator, kept_bytes)?,
            Total::Bits(bits) => {
                if let Some(number) = evaluator.bits(&call.arguments[0])? {
                    match call.function {
                        AggregateKind::BitAnd => *bits &= number,
                        AggregateKind::BitOr => *bits |= number,
                        _ => *bits ^= number,
                    }
                }
            }
            Total::Spread {
                count,
                mean,
                distance,
            } => {
                let value = evaluator.evaluate_as(&call.arguments[0], Class::Double)?;
                if let ValueRef::Double(number) = value {
                    *count += 1;
                    let step = number - *mean;
                    *mean += step / count_as_double(*count);
                    *distance += step * (number - *mean);
                }
            }
            Total::Integer { .. } | Total::Decimal { .. } | Total::Double { .. } => {
                add_to_sum(&mut self.total, &call.arguments[0], &evaluator)?;
            }
            Total::Concatenation(_) => unreachable!("handled above"),
        }
        Ok(())
    }

    /// The result, moved out.
    pub(super) fn finish(
        &mut self,
        call: &AggregateCall,
        statement: &Statement<'_>,
        kept_bytes: &mut usize,
    ) -> Outcome<Value> {
        let is_average = call.function == AggregateKind::Avg;
        Ok(match &mut self.total {
            Total::Count(count) => Value::Int(*count),
            Total::Picked(picked) => {
                let value = picked.take().unwrap_or(Value::Null);
                *kept_bytes -= heap_bytes(&value);
                value
            }
            Total::Bits(bits) => Value::UInt(*bits),
            Total::Integer { count: 0, .. }
            | Total::Decimal { count: 0, .. }
            | Total::Double { count: 0, .. } => Value::Null,
            Total::Integer { sum, count } => {
                let sum = decimal_of(*sum);
                decimal_result(&sum, *count, is_average, call, statement)?
            }
            Total::Decimal { sum, count } => {
                decimal_result(sum, *count, is_average, call, statement)?
            }
            Total::Double { sum, count } => Value::Double(if is_average {
                *sum / count_as_double(*count)
            } else {
                *sum
            }),
            Total::Spread {
                count, distance, ..
            } => spread(call.function, *count, *distance),
            Total::Concatenation(concatenation) => concatenation.finish(call, statement)?,
        })
    }
}

fn empty_sum(call: &AggregateCall) -> Total {
    match call.arguments[0].column_type.kind {
        kind if kind.is_integer() => Total::Integer { sum: 0, count: 0 },
        TypeKind::Decimal => Total::Decimal {
            sum: Box::new(Decimal::ZERO),
            count: 0,
        },
        _ if call.column_type.kind == TypeKind::Decimal => Total::Decimal {
            sum: Box::new(Decimal::ZERO),
            count: 0,
        },
        _ => Total::Double { sum: 0.0, count: 0 },
    }
}

fn add_to_sum(total: &mut Total, argument: &Expression, evaluator: &Evaluator<'_>) -> Outcome<()> {
    match total {
        Total::Integer { sum, count } => {
            let number = match evaluator.evaluate(argument)? {
                ValueRef::Int(number) => i128::from(number),
                ValueRef::UInt(number) => i128::from(number),
                _ => return Ok(()),
            };
            *sum += number;
            *count += 1;
        }
        Total::Decimal { sum, count } => {
            if let ValueRef::Decimal(number) = evaluator.evaluate_as(argument, Class::Decimal)? {
                let added = sum.add(&number.to_decimal());
                **sum = added.map_err(|_| out_of_range("DECIMAL"))?;
                *count += 1;
            }
        }
        Total::Double { sum, count } => {
            if let ValueRef::Double(number) = evaluator.evaluate_as(argument, Class::Double)? {
                *sum += number;
                *count += 1;
            }
        }
        _ => unreachable!("only sums are added to"),
    }
    Ok(())
}

fn pick(
    picked: &mut Option<Value>,
    call: &AggregateCall,
    evaluator: &Evaluator<'_>,
    kept_bytes: &mut usize,
) -> Outcome<()> {
    let argument = &call.arguments[0];
    let value = evaluator.evaluate(argument)?;
    if value.is_null() {
        return Ok(());
    }
    let is_better = match &*picked {
        None => true,
        Some(best) => {
            let order = evaluator.compare_values(value, best.as_ref(), &argument.column_type)?;
            if call.function == AggregateKind::Min {
                order.is_lt()
            } else {
                order.is_gt()
            }
        }
    };
    if is_better {
        keep(picked, value, kept_bytes);
    }
    Ok(())
}

/// Replaces the kept value.
fn keep(picked: &mut Option<Value>, value: ValueRef<'_>, kept_bytes: &mut usize) {
    *kept_bytes -= picked.as_ref().map_or(0, heap_bytes);
    let value = value.to_value();
    *kept_bytes += heap_bytes(&value);
    *picked = Some(value);
}

/// Bytes that a value takes on the heap.
fn heap_bytes(value: &Value) -> usize {
    match value {
        Value::Bytes(bytes) => bytes.capacity(),
        _ => 0,
    }
}

fn decimal_result(
    sum: &Decimal,
    count: i64,
    is_average: bool,
    call: &AggregateCall,
    statement: &Statement<'_>,
) -> Outcome<Value> {
    let from = value::ColumnType::decimal(Decimal::PRECISION_MAX, sum.scale());
    let result = if is_average {
        let quotient = sum.divide(&Decimal::from(count), statement.division_increment());
        let quotient = quotient.expect("a group with values has a count");
        quotient.map_err(|_| out_of_range("DECIMAL"))?
    } else {
        *sum
    };
    let result = Value::Decimal(result);
    Ok(convert_value(
        result.as_ref(),
        &from,
        &call.column_type,
        statement,
    )?)
}

fn spread(function: AggregateKind, count: i64, distance: f64) -> Value {
    use AggregateKind as F;
    let is_sample = matches!(function, F::StddevSamp | F::VarSamp);
    let divisor = if is_sample { count - 1 } else { count };
    if divisor <= 0 {
        return Value::Null;
    }
    let variance = distance / count_as_double(divisor);
    Value::Double(match function {
        F::StddevPop | F::StddevSamp => variance.sqrt(),
        _ => variance,
    })
}

/// Counts stay far below 2^53.
fn count_as_double(count: i64) -> f64 {
    count as f64
}

/// The exact number, by its digits: sums of 64-bit integers fit into 38 digits.
fn decimal_of(number: i128) -> Decimal {
    match i64::try_from(number) {
        Ok(small) => Decimal::from(small),
        Err(_) => number.to_string().parse().expect("an integer is a decimal"),
    }
}

fn out_of_range(what: &str) -> ClientError {
    ClientError::new(ER_DATA_OUT_OF_RANGE, &[&what, &"sum"])
}
