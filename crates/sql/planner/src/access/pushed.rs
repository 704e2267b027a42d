//! What is left to the store of a remote table: conditions, a limit and groups.
//!
//! Each is offered to the table once, when the plan is made, and the plan keeps what was taken. A
//! condition can be offered if its values are known before the scan starts, and if it says of each
//! column that it tests what ranges can say. If the ranges say less than the condition, it is also
//! tested above.
//!
//! Tables of this process are not asked, so their plans cost nothing more.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use expression::{AggregateCall, AggregateKind, Expression, ExpressionKind};
use format::row::RowLayout;
use store::{
    Aggregate, Condition, Grouping, IndexDefinition, IndexPart, Offer, RowLock, Table, Taken,
    Uniqueness,
};
use value::{ColumnType, TypeKind};

use super::finder::Finder;
use crate::bind::Binder;
use crate::keys::{KeyCondition, KeyPlan, reach};
use crate::plan::{ColumnTest, Limit, Node, PushedWork, Scan};

/// A condition as it is offered, and whether that is all of it.
type Offered = (Condition<ColumnTest>, bool);

impl Binder<'_> {
    /// Offers the conditions of a scan to its store. Returns those that are still to be tested, and
    /// what was taken.
    pub(super) fn push_conditions(
        &self,
        table: usize,
        slot: usize,
        conditions: Vec<Expression>,
    ) -> (Vec<Expression>, Option<Box<PushedWork>>) {
        let Some(far) = self.names.far_table(&self.tables[table].definition) else {
            return (conditions, None);
        };
        let place = (table, slot);
        let offered: Vec<Option<Offered>> = conditions
            .iter()
            .map(|condition| self.offered(place, condition))
            .collect();
        let shapes = offered.iter().flatten();
        let offer = Offer {
            conditions: shapes.map(|(condition, _)| condition.shape()).collect(),
            is_limited: false,
            grouping: None,
        };
        let mut answers = take(&*far, &offer).conditions.into_iter();
        let (mut rest, mut work) = (Vec::new(), PushedWork::default());
        for (condition, offered) in conditions.into_iter().zip(offered) {
            match offered {
                Some((pushed, is_exact)) if answers.next() == Some(true) => {
                    work.conditions.push(pushed);
                    if !is_exact {
                        rest.push(condition);
                    }
                }
                Some(_) | None => rest.push(condition),
            }
        }
        (rest, Some(Box::new(work)))
    }

    /// What can be offered of a condition.
    fn offered(&self, place: (usize, usize), condition: &Expression) -> Option<Offered> {
        let (is_all, list) = match &condition.kind {
            ExpressionKind::And(list) => (true, list),
            ExpressionKind::Or(list) => (false, list),
            _ => return self.of_one_column(place, condition),
        };
        if let Some(offered) = self.of_one_column(place, condition) {
            return Some(offered);
        }
        let (mut offered, mut is_exact) = (Vec::with_capacity(list.len()), true);
        for part in list {
            match self.offered(place, part) {
                Some((part, is_all)) => {
                    offered.push(part);
                    is_exact &= is_all;
                }
                None if is_all => is_exact = false,
                None => return None,
            }
        }
        if offered.is_empty() {
            return None;
        }
        let condition = match is_all {
            true => Condition::All(offered),
            false => Condition::Any(offered),
        };
        Some((condition, is_exact))
    }

    /// What can be offered of a condition that tests one column alone.
    fn of_one_column(
        &self,
        (table, slot): (usize, usize),
        condition: &Expression,
    ) -> Option<Offered> {
        let column = only_column(condition, slot)?;
        let index = IndexDefinition {
            name: String::new(),
            uniqueness: Uniqueness::None,
            parts: vec![IndexPart {
                column,
                prefix_length: None,
            }],
            comment: String::new(),
        };
        let finder = Finder {
            binder: self,
            slot,
            definition: &self.tables[table].definition,
            index: 0,
            keys: &index,
            conditions: &[],
        };
        let (says, is_exact) = finder.condition(condition, false)?;
        let mut are_given = true;
        says.for_each_value(&mut |value| are_given &= value.is_given());
        let conditions = [says];
        let reach = reach(&conditions, &[is_exact], 1);
        if !are_given || reach.depth == 0 {
            return None;
        }
        let is_exact = reach.answered.first() == Some(&true);
        let plan = KeyPlan {
            condition: KeyCondition::All(conditions.into()).into_owned(),
            depth: reach.depth,
            used_parts: reach.used_parts,
        };
        let test = ColumnTest { index, plan };
        Some((Condition::Column { column, test }, is_exact))
    }

    /// A limit above a node. If the node is the scan of a remote table, its store may stop there.
    pub(crate) fn limited(&self, mut node: Node, limit: Limit) -> Node {
        let limit = Rc::new(limit);
        let numbers = limit.count.iter().chain(&limit.offset);
        let can_push = !limit.counts_all && numbers.clone().all(Expression::is_given);
        if can_push
            && let Some((scan, far)) = self.far_scan(&mut node)
            && let Some(work) = scan.pushed.as_deref_mut()
            && work.grouping.is_none()
        {
            let offer = Offer {
                is_limited: true,
                ..offer_of(work)
            };
            if take(&*far, &offer).limit {
                work.limit = Some(Rc::clone(&limit));
            }
        }
        Node::Limit(Box::new(node), limit)
    }

    /// Offers grouping to the store of a scan. If it is taken, the scan's rows are the groups, in
    /// `slot`: first the keys, then the results of the calls.
    pub(crate) fn push_groups(
        &self,
        node: &mut Node,
        slot: usize,
        keys: &[Expression],
        calls: &[AggregateCall],
    ) -> Option<Rc<Grouping>> {
        let (scan, far) = self.far_scan(node)?;
        let of = scan.slot;
        let column = |expression: &Expression| {
            let place = expression.as_column().filter(|place| place.slot == of);
            place.map(|place| place.column)
        };
        let key_columns: Option<Vec<usize>> = keys.iter().map(column).collect();
        let aggregates = calls.iter().map(|call| aggregate(call, column));
        let key_types = keys.iter().map(|key| &key.column_type);
        let types = key_types.chain(calls.iter().map(|call| &call.column_type));
        let grouping = Rc::new(Grouping {
            keys: key_columns?,
            aggregates: aggregates.collect::<Option<_>>()?,
            layout: Arc::new(RowLayout::new(types)),
        });
        let work = scan.pushed.as_deref_mut()?;
        let offer = Offer {
            grouping: Some(Rc::clone(&grouping)),
            ..offer_of(work)
        };
        if scan.lock != RowLock::None || !take(&*far, &offer).grouping {
            return None;
        }
        work.grouping = Some(Rc::clone(&grouping));
        scan.slot = slot;
        Some(grouping)
    }

    /// The scan that the node is, and its table, if work can be left to its store.
    fn far_scan<'n>(&self, node: &'n mut Node) -> Option<(&'n mut Scan, Rc<dyn Table>)> {
        let Node::Scan(scan) = node else { return None };
        scan.pushed.as_ref()?;
        let far = self.names.far_table(&self.tables[scan.table].definition)?;
        Some((Rc::get_mut(scan)?, far))
    }
}

/// The answer of a table.
fn take(table: &dyn Table, offer: &Offer) -> Taken {
    let taken = table.take(offer);
    assert_eq!(
        taken.conditions.len(),
        offer.conditions.len(),
        "each offered condition has an answer"
    );
    taken
}

/// What a scan does already, to be offered with more.
fn offer_of(work: &PushedWork) -> Offer {
    Offer {
        conditions: work.conditions.iter().map(Condition::shape).collect(),
        is_limited: work.limit.is_some(),
        grouping: work.grouping.clone(),
    }
}

/// The only column of the slot that the condition reads.
fn only_column(condition: &Expression, slot: usize) -> Option<usize> {
    let mut columns = BTreeSet::new();
    condition.walk(&mut |part| {
        if let Some(place) = part.as_column().filter(|place| place.slot == slot) {
            columns.insert(place.column);
        }
        true
    });
    columns.pop_first().filter(|_| columns.is_empty())
}

/// The call as a store computes it, if it can be offered.
fn aggregate(
    call: &AggregateCall,
    column: impl Fn(&Expression) -> Option<usize>,
) -> Option<Aggregate> {
    if call.is_distinct {
        return None;
    }
    let [argument] = &call.arguments[..] else {
        let is_count = call.function == AggregateKind::Count && call.arguments.is_empty();
        return is_count.then_some(Aggregate::CountRows);
    };
    let (place, of) = (column(argument)?, &argument.column_type);
    match call.function {
        AggregateKind::Count => Some(Aggregate::Count(place)),
        AggregateKind::Sum if is_number(of) => Some(Aggregate::Sum(place)),
        AggregateKind::Min if is_ordered_as_key(of) => Some(Aggregate::Min(place)),
        AggregateKind::Max if is_ordered_as_key(of) => Some(Aggregate::Max(place)),
        _ => None,
    }
}

/// Numbers whose sum is exact, whoever adds them up and in which order.
fn is_number(column_type: &ColumnType) -> bool {
    column_type.kind.is_integer() || column_type.kind == TypeKind::Decimal
}

/// Types whose values MIN and MAX compare as an index does. ENUM and SET are compared as texts.
fn is_ordered_as_key(column_type: &ColumnType) -> bool {
    is_number(column_type)
        || column_type.kind.is_bytes()
        || matches!(
            column_type.kind,
            TypeKind::Double
                | TypeKind::Date
                | TypeKind::DateTime
                | TypeKind::Timestamp
                | TypeKind::Time
                | TypeKind::Year
        )
}
