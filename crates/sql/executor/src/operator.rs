//! Operators: producers of rows that can be stopped and called again. What each of them promises is
//! in the head of `context::operator`.

use std::rc::Rc;

use planner::Node;
use store::Table;

use crate::Operator;

mod aggregate;
mod append;
mod collected;
mod derived;
mod distinct;
mod filter;
mod hash_join;
mod limit;
mod nested_loop;
mod pushed;
mod range;
mod recursive;
mod scan;
mod simple;
mod sort;
mod union;

pub(crate) use collected::{CALL_ROWS_MAX, is_remote};
pub(crate) use limit::LimitCounts;

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
        Node::Append(inputs) => {
            let inputs = inputs.iter().map(|input| build(input, tables)).collect();
            Box::new(append::AppendOperator::new(inputs))
        }
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
