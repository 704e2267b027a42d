//! Digests of expressions, to find equal ones among many.
//!
//! Equal expressions have equal digests. Only the first parts of an expression are hashed, so the
//! cost of a digest is bounded. Expressions that differ only in later parts share one.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::discriminant;

use value::Value;

use crate::tree::{AggregateCall, Expression, ExpressionKind};

/// How many parts are hashed. Select lists written by programs differ earlier.
const PARTS_MAX: usize = 64;

impl Expression {
    /// A number that is equal for equal expressions.
    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.digest_into(&mut hasher);
        hasher.finish()
    }

    fn digest_into(&self, hasher: &mut DefaultHasher) {
        let mut parts_left = PARTS_MAX;
        self.walk(&mut |part| {
            if parts_left == 0 {
                return false;
            }
            parts_left -= 1;
            part.digest_part(hasher);
            true
        });
    }

    /// Hashes this part alone. What is left out can make digests equal, never different.
    fn digest_part(&self, hasher: &mut DefaultHasher) {
        discriminant(&self.kind).hash(hasher);
        match &self.kind {
            ExpressionKind::Constant(value) => digest_value(value, hasher),
            ExpressionKind::Column(place) => place.hash(hasher),
            ExpressionKind::Parameter(number)
            | ExpressionKind::Aggregate(number)
            | ExpressionKind::Subquery(number)
            | ExpressionKind::Exists(number) => number.hash(hasher),
            ExpressionKind::UserVariable(variable) => {
                (&variable.name, variable.occurrence).hash(hasher);
            }
            ExpressionKind::Function(call) => call.occurrence.hash(hasher),
            ExpressionKind::Session(call) => call.occurrence.hash(hasher),
            _ => {}
        }
    }
}

impl AggregateCall {
    /// A number that is equal for equal calls.
    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        discriminant(&self.function).hash(&mut hasher);
        for argument in &self.arguments {
            argument.digest_into(&mut hasher);
        }
        for (key, is_descending) in &self.order {
            key.digest_into(&mut hasher);
            is_descending.hash(&mut hasher);
        }
        self.separator.hash(&mut hasher);
        self.limit.hash(&mut hasher);
        hasher.finish()
    }
}

fn digest_value(value: &Value, hasher: &mut DefaultHasher) {
    discriminant(value).hash(hasher);
    match value {
        Value::Int(number) => number.hash(hasher),
        Value::UInt(number) => number.hash(hasher),
        Value::Bytes(bytes) => bytes.hash(hasher),
        Value::Date(date) => date.packed().hash(hasher),
        // Other equal values may look different (0 and -0, 1.0 and 1.00).
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use value::{ColumnType, TypeKind};

    use super::*;
    use crate::tree::ColumnPlace;

    fn column(column: usize) -> Expression {
        let place = ColumnPlace { slot: 0, column };
        Expression::column(place, ColumnType::new(TypeKind::Int), true)
    }

    #[test]
    fn digests_follow_equality() {
        let number =
            |number| Expression::constant(Value::Int(number), ColumnType::new(TypeKind::BigInt));
        let many: Vec<Expression> = (0..100).map(column).chain((0..100).map(number)).collect();
        for (place, a) in many.iter().enumerate() {
            for (other, b) in many.iter().enumerate() {
                assert_eq!(a.digest() == b.digest(), place == other);
            }
        }
        let all = |list: Vec<Expression>| Expression::condition(ExpressionKind::Or(list), true);
        let both = [
            all(vec![column(1), column(2)]),
            all(vec![column(1), column(3)]),
        ];
        assert_ne!(both[0].digest(), both[1].digest());
        assert_eq!(both[0].digest(), both[0].clone().digest());
        let zero = |number| {
            let column_type = ColumnType::new(TypeKind::Double);
            Expression::constant(Value::Double(number), column_type)
        };
        assert_eq!(zero(0.0), zero(-0.0));
        assert_eq!(zero(0.0).digest(), zero(-0.0).digest());
    }
}
