//! Rewrites expressions so that they read what a node below has kept.

use expression::{AggregateCall, AggregateKind, ColumnPlace, Expression, ExpressionKind};

use crate::numbered::Numbered;

/// The contents of a grouping node's slot, while the expressions above are rewritten.
pub(super) struct Groups {
    pub(super) slot: usize,
    pub(super) keys: Numbered<Expression>,
    pub(super) calls: Numbered<AggregateCall>,
    /// Slots of the tables that are grouped.
    pub(super) own_slots: Vec<usize>,
    /// `WITH ROLLUP`: keys can be NULL.
    pub(super) with_rollup: bool,
}

impl Groups {
    /// Makes the output read the groups: a column that a key names reads that key.
    pub(super) fn rewrite_output(
        &mut self,
        output: &mut [Expression],
        item_keys: &[Option<usize>],
    ) {
        for (expression, key) in output.iter_mut().zip(item_keys) {
            match key {
                Some(key) => self.read_key(expression, *key),
                None => self.rewrite(expression),
            }
        }
    }

    /// Makes the expression read this key.
    fn read_key(&self, expression: &mut Expression, key: usize) {
        let nullable = expression.nullable || self.with_rollup;
        let place = ColumnPlace {
            slot: self.slot,
            column: key,
        };
        *expression = Expression::column(place, expression.column_type.clone(), nullable);
    }

    /// Makes the expression read the groups: a key or a call by its column, and a column that is
    /// not grouped by as the value of the group's first row.
    pub(super) fn rewrite(&mut self, expression: &mut Expression) {
        if let Some(key) = self.keys.find(expression) {
            self.read_key(expression, key);
            return;
        }
        match &expression.kind {
            ExpressionKind::Aggregate(number) => {
                let column = self.keys.list().len() + number;
                let place = ColumnPlace {
                    slot: self.slot,
                    column,
                };
                let nullable = expression.nullable;
                let column_type = expression.column_type.clone();
                *expression = Expression::column(place, column_type, nullable);
            }
            ExpressionKind::Column(place) if self.own_slots.contains(&place.slot) => {
                let call = AggregateCall {
                    function: AggregateKind::First,
                    arguments: vec![expression.clone()],
                    is_distinct: false,
                    order: Vec::new(),
                    separator: Box::default(),
                    limit: None,
                    column_type: expression.column_type.clone(),
                };
                let number = self.calls.place_of(&call);
                let column = self.keys.list().len() + number;
                let place = ColumnPlace {
                    slot: self.slot,
                    column,
                };
                *expression = Expression::column(place, expression.column_type.clone(), true);
            }
            _ => expression.for_each_child_mut(&mut |child| self.rewrite(child)),
        }
    }
}

/// Makes each kept expression read its column of the slot; rewrites within others.
pub(super) fn read_kept(expression: &mut Expression, kept: &Numbered<Expression>, slot: usize) {
    if let Some(column) = kept.find(expression) {
        let place = ColumnPlace { slot, column };
        *expression =
            Expression::column(place, expression.column_type.clone(), expression.nullable);
        return;
    }
    expression.for_each_child_mut(&mut |child| read_kept(child, kept, slot));
}
