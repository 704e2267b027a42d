//! Operators: producers of rows that can be stopped and called again.
//!
//! (O1) `next` puts a row into the slots below the operator and returns true, or returns false at
//! the end. Called after the end, it returns false again.
//! (O2) After `Interrupt::Suspend` the same call is made again. So an operator that holds a row of
//!      its input notes that before anything that may suspend, and never fetches a row twice.
//! (O3) `rewind` only resets the operator's own place. It neither reads nor evaluates, since the
//! rows that its expressions read may not be there yet.

use std::fmt::Debug;
use std::rc::Rc;

use planner::Node;
use store::Table;

use crate::Outcome;
use crate::context::Context;

mod aggregate;
mod collected;
mod derived;
mod distinct;
mod filter;
mod hash_join;
mod limit;
mod nested_loop;
mod range;
mod recursive;
mod scan;
mod simple;
mod sort;
mod union;

pub(crate) use limit::LimitCounts;

/// A producer of rows.
pub(crate) trait Operator: Debug {
    /// Starts over: the next row is the first again.
    fn rewind(&mut self, how: Rewind);

    /// Puts the next row into the slots. Returns false at the end.
    fn next(&mut self, cx: &mut Context<'_>) -> Outcome<bool>;

    /// Itself, if it can find the rows for many left rows of a join by one call, and such calls
    /// cost a round trip. `None`: it is started again for each left row.
    fn collector(&mut self) -> Option<&mut dyn Collector> {
        None
    }

    /// The number of rows without LIMIT, if the plan asked for it; known at the end.
    fn found_rows(&self) -> Option<u64> {
        None
    }
}

/// An operator at the right side of a join that looks up the rows for many left rows at once.
/// After `begin` come calls of `collect`. Then each `rewind` by [`Rewind::Again`] goes to the next
/// of the collected rows, and `next` returns what was found for it.
pub(crate) trait Collector {
    /// Drops what was collected.
    fn begin(&mut self);

    /// Notes what the current left row needs.
    fn collect(&mut self, cx: &mut Context<'_>) -> Outcome<()>;

    /// True once as much was collected as one call should ask for.
    fn is_full(&self) -> bool;
}

/// Why an operator starts over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rewind {
    /// For another row of the left side of a join: what does not depend on that row may be kept.
    Again,
    /// For another row of an outer query: what does not read that row may be kept.
    Outer,
    /// For another execution: nothing may be kept.
    Fresh,
}

/// Builds the operator of a node.
pub(crate) fn build(node: &Node, tables: &[Rc<dyn Table>]) -> Box<dyn Operator> {
    match node {
        Node::Nothing => Box::new(simple::Nothing),
        Node::One => Box::new(simple::One::default()),
        Node::Scan(plan) => Box::new(scan::ScanOperator::new(plan.clone(), tables)),
        Node::Filter(input, plan) => Box::new(filter::FilterOperator::new(
            build(input, tables),
            plan.clone(),
        )),
        Node::NestedLoop(left, right, plan) => Box::new(nested_loop::NestedLoopOperator::new(
            build(left, tables),
            build(right, tables),
            plan.clone(),
        )),
        Node::HashJoin(left, right, plan) => Box::new(hash_join::HashJoinOperator::new(
            build(left, tables),
            build(right, tables),
            plan.clone(),
        )),
        Node::Derived(query, plan) => Box::new(derived::DerivedOperator::new(
            build(&query.root, tables),
            query.clone(),
            plan.clone(),
        )),
        Node::Aggregate(input, plan) => Box::new(aggregate::AggregateOperator::new(
            build(input, tables),
            plan.clone(),
        )),
        Node::Sort(input, plan) => {
            Box::new(sort::SortOperator::new(build(input, tables), plan.clone()))
        }
        Node::Distinct(input, plan) => Box::new(distinct::DistinctOperator::new(
            build(input, tables),
            plan.clone(),
        )),
        Node::Limit(input, plan) => Box::new(limit::LimitOperator::new(
            build(input, tables),
            plan.clone(),
        )),
        Node::Union(queries, plan) => {
            let inputs = queries
                .iter()
                .map(|query| (build(&query.root, tables), query.clone()))
                .collect();
            Box::new(union::UnionOperator::new(inputs, plan.clone()))
        }
        Node::Recursive(queries, plan) => {
            let inputs = queries
                .iter()
                .map(|query| (build(&query.root, tables), query.clone()))
                .collect();
            Box::new(recursive::RecursiveOperator::new(inputs, plan.clone()))
        }
        Node::Latest(plan) => Box::new(recursive::LatestOperator::new(plan.clone())),
    }
}
