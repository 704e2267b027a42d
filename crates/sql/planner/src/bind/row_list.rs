//! `(a, b) IN ((1, 2), (3, 4))`.
//!
//! The rows become one list of values, which an index can answer and which is searched by hash.
//! That needs one class for each column. Rows with other classes, or with nested rows, become
//! alternatives of equalities.

use expression::{Class, Compare, CompareOperator, Expression, ExpressionKind, InRows};
use syntax::ast::{Expr, ExprKind};
use value::TypeKind;

use super::Binder;
use super::term::{Bound, LONG_LIST, any_of, negated_if};

/// Rows that were bound so far, all compared in the same classes.
struct Alike {
    operands: Vec<Expression>,
    rows: Vec<Expression>,
    classes: Vec<Class>,
}

impl Binder<'_> {
    /// `(operands) [NOT] IN (list)`; `row` is the left side as a whole.
    pub(super) fn in_rows(
        &mut self,
        negated: bool,
        row: &Expr,
        operands: &[Expr],
        list: &[Expr],
    ) -> Bound {
        let is_row = |expr: &Expr| matches!(expr.kind, ExprKind::Row(_));
        let is_plain = |candidate: &Expr| match &candidate.kind {
            ExprKind::Row(values) => values.len() == operands.len() && !values.iter().any(is_row),
            _ => false,
        };
        // A single row can be a join's condition: column by column it can be a join key.
        if list.len() < 2 || operands.iter().any(is_row) || !list.iter().all(is_plain) {
            let equal = |candidate| self.compare_terms(CompareOperator::Equal, row, candidate);
            let any = list.iter().map(equal).collect::<Result<_, _>>()?;
            return Ok(negated_if(negated, any_of(any)));
        }
        let operands = operands.iter().map(|it| self.term(it));
        let operands = operands.collect::<Result<Vec<_>, _>>()?;
        let mut alike: Option<Alike> = None;
        let mut others = Vec::new();
        for candidate in list {
            let ExprKind::Row(values) = &candidate.kind else {
                unreachable!("all were seen to be rows");
            };
            let mut row = Vec::with_capacity(values.len());
            for (operand, value) in operands.iter().zip(values) {
                let value = self.term(value)?;
                let equal = self.comparison(CompareOperator::Equal, operand.clone(), value)?;
                match equal.kind {
                    ExpressionKind::Compare(compare) => row.push(*compare),
                    _ => unreachable!("a comparison is one"),
                }
            }
            match &mut alike {
                Some(alike) if alike.takes(&row) => {
                    alike
                        .rows
                        .extend(row.into_iter().map(|compare| compare.right));
                }
                Some(_) => others.push(all_of(row)),
                None => alike = Some(Alike::of(row)),
            }
        }
        let alike = alike.expect("a list has a member");
        let mut any = vec![self.rows(alike, negated && others.is_empty())];
        if others.is_empty() {
            return Ok(any.swap_remove(0));
        }
        any.append(&mut others);
        Ok(negated_if(negated, any_of(any)))
    }

    fn rows(&mut self, alike: Alike, negated: bool) -> Expression {
        let Alike {
            operands,
            rows,
            classes,
        } = alike;
        let nullable = operands.iter().chain(&rows).any(|it| it.nullable);
        let is_long = LONG_LIST * operands.len() <= rows.len();
        let table = (is_long && rows.iter().all(Expression::is_given)).then(|| {
            self.list_count += 1;
            self.list_count - 1
        });
        let kind = ExpressionKind::InRows(Box::new(InRows {
            operands,
            rows,
            classes: classes.into(),
            negated,
            table,
        }));
        Expression::condition(kind, nullable)
    }
}

impl Alike {
    fn of(row: Vec<Compare>) -> Self {
        let classes = row.iter().map(|compare| compare.class).collect();
        let (operands, rows) = row.into_iter().map(|it| (it.left, it.right)).unzip();
        Self {
            operands,
            rows,
            classes,
        }
    }

    /// True if a row is compared in the same classes; NULL fits each class.
    fn takes(&self, row: &[Compare]) -> bool {
        let is_alike = |(compare, (operand, class)): (&Compare, (&Expression, &Class))| {
            let is_null = compare.right.column_type.kind == TypeKind::Null;
            compare.left == *operand && (compare.class == *class || is_null)
        };
        row.iter()
            .zip(self.operands.iter().zip(&self.classes))
            .all(is_alike)
    }
}

/// The comparisons of a row, all of which must hold.
fn all_of(row: Vec<Compare>) -> Expression {
    let conditions = row
        .into_iter()
        .map(|it| Binder::comparison_in(it.class, it.operator, it.left, it.right));
    Expression::all(conditions.collect()).expect("a row has a part")
}
