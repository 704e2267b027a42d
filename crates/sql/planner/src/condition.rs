//! Conditions: the parts that must all hold, and which can never hold.

use expression::{Expression, ExpressionKind};

/// The parts of a condition that must all hold.
pub(crate) fn conjuncts(condition: Expression) -> Vec<Expression> {
    match condition.kind {
        // Long chains are flat: nothing has to be collected again.
        ExpressionKind::And(list) if !list.iter().any(is_and) => list,
        ExpressionKind::And(list) => list.into_iter().flat_map(conjuncts).collect(),
        _ => vec![condition],
    }
}

fn is_and(condition: &Expression) -> bool {
    matches!(condition.kind, ExpressionKind::And(_))
}

/// True for a condition that is false or NULL whatever the data.
pub(crate) fn is_never(condition: &Expression) -> bool {
    match &condition.kind {
        ExpressionKind::Constant(value) => {
            value.as_ref().to_bool(&mut value::Warnings::new(0)) != Some(true)
        }
        _ => false,
    }
}
