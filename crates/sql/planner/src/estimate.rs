//! How many rows a node returns, roughly. It is an upper bound, as far as indexes and groups tell;
//! what a filter drops is unknown.

use crate::plan::{JoinKind, Node};

/// Rows of the latest step of a recursive table.
const LATEST_ROWS: f64 = 1000.0;

/// The expected rows of a node at each start.
pub(crate) fn rows_given(node: &Node) -> f64 {
    match node {
        Node::Nothing | Node::One => 1.0,
        Node::Latest(_) => LATEST_ROWS,
        Node::Scan(scan) => stdx::u64_to_f64(scan.rows_estimate.max(1)),
        Node::Aggregate(_, aggregate) if aggregate.keys.is_empty() => 1.0,
        Node::Filter(input, _)
        | Node::Aggregate(input, _)
        | Node::Sort(input, _)
        | Node::Distinct(input, _)
        | Node::Limit(input, _) => rows_given(input),
        Node::NestedLoop(left, _, join) if join.kind == JoinKind::Anti => rows_given(left),
        Node::HashJoin(left, _, join) if join.kind == JoinKind::Anti => rows_given(left),
        Node::NestedLoop(left, right, _) => rows_given(left) * rows_given(right),
        // Each row of the smaller side is assumed to match its share of the larger one.
        Node::HashJoin(left, right, _) => rows_given(left).max(rows_given(right)),
        Node::Derived(query, _) => rows_given(&query.root),
        Node::Append(inputs) => inputs.iter().map(rows_given).sum(),
        Node::Union(queries, _) | Node::Recursive(queries, _) => {
            queries.iter().map(|query| rows_given(&query.root)).sum()
        }
    }
}
