//! `EXISTS` as a set: the inner sides of its equalities with outer rows.
//!
//! `EXISTS (SELECT .. FROM s WHERE s.k = b.id AND s.x = 1)` says the same of a row of `b` as
//! `b.id IN (SELECT s.k FROM s WHERE s.x = 1)`, if these equalities are all that it reads of outer
//! rows. So its block is planned a second time, without them. Where the values find the outer rows
//! (`semi_join`), that plan is taken, and the one that runs for each row is dropped: both fill the
//! same slots.
//!
//! Only for those that stand at the top of WHERE: the second plan costs as much as the first.

use expression::{Class, CompareOperator, Expression, ExpressionKind};

use crate::PlanError;
use crate::bind::{Binder, ExistsSet};
use crate::from::{DerivedRows, From, Item, Source};
use crate::plan::Query;

impl Binder<'_> {
    /// The set of the current block, if that is of an EXISTS that must hold.
    pub(crate) fn set_of_exists(
        &mut self,
        from: &From,
        conditions: &[Expression],
    ) -> Result<Option<ExistsSet>, PlanError> {
        if self.exists_depth != Some(self.blocks.len()) {
            return Ok(None);
        }
        let own = from.slots();
        let (mut left, mut classes) = (Vec::new(), Vec::new());
        let (mut output, mut rest) = (Vec::new(), Vec::new());
        for condition in from.conditions.iter().chain(conditions) {
            self.spend()?;
            if self.reads_only(condition, &own) {
                rest.push(condition.clone());
                continue;
            }
            let Some((outer, inner, class)) = self.correlation(condition, &own) else {
                return Ok(None);
            };
            left.push(outer.clone());
            output.push(inner.clone());
            classes.push(class);
        }
        if left.is_empty() || !self.are_closed(&from.items, &own) {
            return Ok(None);
        }
        let inner = From {
            conditions: rest,
            ..from.clone()
        };
        // Only the plan that is taken may say that it was made for its values.
        let is_for_values = std::mem::take(&mut self.is_for_values);
        let (root, _) = self.plan_from(inner, Vec::new(), None)?;
        let is_for_values = std::mem::replace(&mut self.is_for_values, is_for_values);
        let query = Query {
            root,
            output,
            dependent: Vec::new(),
        };
        Ok(Some(ExistsSet {
            left,
            classes,
            query,
            is_for_values,
        }))
    }

    fn reads_only(&self, condition: &Expression, slots: &[usize]) -> bool {
        self.slots_of(condition)
            .iter()
            .all(|slot| slots.contains(slot))
    }

    /// True if the outer joins among the items read nothing else.
    fn are_closed(&self, items: &[Item], slots: &[usize]) -> bool {
        let is_closed = |condition: &Expression| self.reads_only(condition, slots);
        items.iter().all(|item| {
            item.on.iter().all(is_closed)
                && match &item.source {
                    Source::Group(from) => {
                        from.conditions.iter().all(is_closed) && self.are_closed(&from.items, slots)
                    }
                    // It would be planned twice, and the first plan may take a query as a set.
                    Source::Derived { rows, .. } => matches!(rows, DerivedRows::Planned(_)),
                    Source::Table { .. } | Source::Latest(_) => true,
                }
        })
    }

    /// The outer and the inner side of an equality, and its class.
    fn correlation<'e>(
        &self,
        condition: &'e Expression,
        own: &[usize],
    ) -> Option<(&'e Expression, &'e Expression, Class)> {
        let ExpressionKind::Compare(compare) = &condition.kind else {
            return None;
        };
        if compare.operator != CompareOperator::Equal || !condition.subqueries().is_empty() {
            return None;
        }
        let is_inner = |side: &Expression| {
            let read = side.slots();
            !read.is_empty() && read.iter().all(|slot| own.contains(slot))
        };
        let is_outer = |side: &Expression| {
            let read = side.slots();
            !read.is_empty() && !read.iter().any(|slot| own.contains(slot))
        };
        match (&compare.left, &compare.right) {
            (left, right) if is_outer(left) && is_inner(right) => {
                Some((left, right, compare.class))
            }
            (left, right) if is_inner(left) && is_outer(right) => {
                Some((right, left, compare.class))
            }
            _ => None,
        }
    }
}
