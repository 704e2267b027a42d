//! Comparison operators.

use std::borrow::Cow;
use std::cmp::Ordering;

use value::collation::mix_to_compare;
use value::{ColumnType, Comparison, SqlCondition, TypeKind, Value, ValueRef};

use crate::bind::{Arg, Binding, Bound, text_in};
use crate::context::Context;
use crate::infer::{Inferred, boolean, certain};

type Evaluated = Result<Value, SqlCondition>;

/// The domain in which all arguments are compared.
pub(crate) fn plan(binding: &mut Binding<'_>, args: &[Arg]) -> Inferred {
    let texts = args
        .iter()
        .all(|arg| arg.is_text() || arg.column.kind == TypeKind::Null);
    if texts {
        let rules: Vec<_> = args.iter().map(|arg| arg.rule).collect();
        binding.texts = mix_to_compare(&rules, &binding.name.to_lowercase())?.collation;
    }
    let today = binding.env.today;
    let mut domain: Option<Comparison> = None;
    let known_null = |column: &ColumnType| column.kind == TypeKind::Null;
    for (left, right) in pairs_of_kinds(args) {
        let next = Comparison::of(left, right, binding.texts, today);
        if args.len() == 2 || !(known_null(left) || known_null(right)) {
            domain = Some(domain.map_or(next, |known| wider(known, next)));
        }
    }
    binding.comparison = domain.unwrap_or(Comparison::Integer);
    Ok(())
}

/// A kind of type among the arguments.
struct Kind<'a> {
    /// The first argument's.
    first: &'a ColumnType,
    is_repeated: bool,
}

/// The pairs of arguments whose kinds of type differ from those of all other pairs. A domain
/// follows from two kinds. There are few of them, and a statement may have millions of arguments.
fn pairs_of_kinds(args: &[Arg]) -> Vec<(&ColumnType, &ColumnType)> {
    let mut kinds: Vec<Kind<'_>> = Vec::new();
    let mut pairs = Vec::new();
    for Arg { column, .. } in args {
        match kinds.iter_mut().find(|kind| kind.first.kind == column.kind) {
            Some(kind) if kind.is_repeated => {}
            Some(kind) => {
                kind.is_repeated = true;
                pairs.push((kind.first, column));
            }
            None => {
                pairs.extend(kinds.iter().map(|kind| (kind.first, column)));
                kinds.push(Kind {
                    first: column,
                    is_repeated: false,
                });
            }
        }
    }
    pairs
}

/// The wider of two domains.
fn wider(left: Comparison, right: Comparison) -> Comparison {
    let rank = |domain: &Comparison| match domain {
        Comparison::Integer => 0,
        Comparison::Text(_) => 1,
        Comparison::Decimal => 2,
        Comparison::Double => 3,
        Comparison::Time => 4,
        Comparison::DateTime(_) => 5,
    };
    if rank(&right) > rank(&left) {
        right
    } else {
        left
    }
}

pub(crate) fn infer(binding: &mut Binding<'_>) -> Inferred {
    plan(binding, binding.args)?;
    boolean(binding)
}

pub(crate) fn infer_safe(binding: &mut Binding<'_>) -> Inferred {
    plan(binding, binding.args)?;
    certain(binding)
}

/// `a IN (b, c)`: each pair has its own domain, unless all are of one kind.
pub(crate) fn infer_in(binding: &mut Binding<'_>) -> Inferred {
    let (first, rest) = binding.args.split_first().expect("at least two arguments");
    plan(binding, binding.args)?;
    if first.is_text() && rest.iter().all(Arg::is_text) {
        binding.choice = 1;
    }
    boolean(binding)
}

impl Bound {
    /// The order of two arguments, or `None` if one is NULL.
    #[inline]
    pub(crate) fn order(
        &self,
        args: &[ValueRef<'_>],
        left: usize,
        right: usize,
        context: &mut Context<'_>,
    ) -> Option<Ordering> {
        self.order_in(self.comparison, args, left, right, context)
    }

    fn order_in(
        &self,
        domain: Comparison,
        args: &[ValueRef<'_>],
        left: usize,
        right: usize,
        context: &mut Context<'_>,
    ) -> Option<Ordering> {
        if let Comparison::Text(collation) = domain {
            let simple = |index: usize| {
                let column = &self.args[index];
                column.kind.is_bytes() && column.charset() == collation.charset()
            };
            if !(simple(left) && simple(right)) {
                let charset = collation.charset();
                let left = text_in(args[left], &self.args[left], charset)?;
                let right = text_in(args[right], &self.args[right], charset)?;
                return Some(collation.compare(&left, &right));
            }
        }
        let left = named(args[left], &self.args[left], domain);
        let right = named(args[right], &self.args[right], domain);
        domain.compare(left.as_value(), right.as_value(), context.warnings)
    }
}

/// A value, or the name of an ENUM or SET if it is compared with anything but a number.
enum Named<'a> {
    Plain(ValueRef<'a>),
    Text(Cow<'a, [u8]>),
}

impl Named<'_> {
    fn as_value(&self) -> ValueRef<'_> {
        match self {
            Self::Plain(value) => *value,
            Self::Text(text) => ValueRef::Bytes(text),
        }
    }
}

fn named<'a>(value: ValueRef<'a>, column: &ColumnType, domain: Comparison) -> Named<'a> {
    let by_name = matches!(column.kind, TypeKind::Enum | TypeKind::Set)
        && matches!(
            domain,
            Comparison::Text(_) | Comparison::DateTime(_) | Comparison::Time
        );
    match value.to_text(column) {
        Some(text) if by_name => Named::Text(text),
        _ => Named::Plain(value),
    }
}

fn decide(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
    holds: impl Fn(Ordering) -> bool,
) -> Evaluated {
    let order = bound.order(args, 0, 1, context);
    Ok(order.map_or(Value::Null, |order| Value::Int(i64::from(holds(order)))))
}

pub(crate) fn equal(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    decide(bound, args, context, Ordering::is_eq)
}

pub(crate) fn unequal(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    decide(bound, args, context, Ordering::is_ne)
}

pub(crate) fn less(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    decide(bound, args, context, Ordering::is_lt)
}

pub(crate) fn less_or_equal(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    decide(bound, args, context, Ordering::is_le)
}

pub(crate) fn greater(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    decide(bound, args, context, Ordering::is_gt)
}

pub(crate) fn greater_or_equal(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    decide(bound, args, context, Ordering::is_ge)
}

pub(crate) fn equal_or_both_null(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    let same = match (args[0].is_null(), args[1].is_null()) {
        (true, true) => true,
        (false, false) => bound
            .order(args, 0, 1, context)
            .is_some_and(Ordering::is_eq),
        _ => false,
    };
    Ok(Value::Int(i64::from(same)))
}

/// `a BETWEEN b AND c`, with the three-valued logic of `a >= b AND a <= c`.
pub(crate) fn between(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    let from = bound.order(args, 0, 1, context).map(Ordering::is_ge);
    let to = bound.order(args, 0, 2, context).map(Ordering::is_le);
    Ok(match (from, to) {
        (Some(false), _) | (_, Some(false)) => Value::Int(0),
        (Some(true), Some(true)) => Value::Int(1),
        _ => Value::Null,
    })
}

pub(crate) fn is_in(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    if args[0].is_null() {
        return Ok(Value::Null);
    }
    let mut unknown = false;
    for index in 1..args.len() {
        if args[index].is_null() {
            unknown = true;
            continue;
        }
        let domain = if bound.choice == 1 {
            bound.comparison
        } else {
            let (left, right) = (&bound.args[0], &bound.args[index]);
            Comparison::of(left, right, bound.texts, context.now.date())
        };
        match bound.order_in(domain, args, 0, index, context) {
            Some(Ordering::Equal) => return Ok(Value::Int(1)),
            Some(_) => {}
            None => unknown = true,
        }
    }
    Ok(if unknown { Value::Null } else { Value::Int(0) })
}
