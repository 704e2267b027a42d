//! Statements that do too much: `sql_select_limit`, `sql_safe_updates`, `max_join_size`.

use std::rc::Rc;

use errcode::{ER_TOO_BIG_SELECT, ER_UPDATE_WITHOUT_KEY_IN_SAFE_MODE};
use expression::Expression;
use syntax::ast;
use value::{ColumnType, TypeKind, Value};

use crate::PlanError;
use crate::bind::error;
use crate::plan::{Access, Limit, Node, Query};
use crate::settings::StatementLimits;

/// Adds `sql_select_limit` to a statement's outermost query, if that has no LIMIT.
pub(crate) fn limit_rows(bound: &mut Query, query: &ast::Query, limits: StatementLimits) {
    let Some(rows) = limits.select_rows.filter(|_| !has_limit(query)) else {
        return;
    };
    let count = Expression::constant(Value::UInt(rows), ColumnType::unsigned(TypeKind::BigInt));
    let limit = Limit {
        count: Some(count),
        offset: None,
        counts_all: counts_all(&query.body),
    };
    let root = std::mem::replace(&mut bound.root, Node::Nothing);
    bound.root = Node::Limit(Box::new(root), Rc::new(limit));
}

fn has_limit(query: &ast::Query) -> bool {
    match &query.body {
        _ if query.limit.is_some() => true,
        ast::QueryBody::Nested(inner) => has_limit(inner),
        _ => false,
    }
}

/// Whether a query asks for `FOUND_ROWS()` of all rows; of several, the first says it.
pub(crate) fn counts_all(body: &ast::QueryBody) -> bool {
    match body {
        ast::QueryBody::Select(select) => select.options.calc_found_rows,
        ast::QueryBody::Nested(query) => counts_all(&query.body),
        ast::QueryBody::Set { first, .. } => counts_all(first),
        _ => false,
    }
}

/// Error 1104 if a query is expected to read more rows than allowed.
pub(crate) fn check_join(query: &Query, limits: StatementLimits) -> Result<(), PlanError> {
    match limits.join_rows {
        Some(most) if most < rows_read(&query.root) => Err(error(ER_TOO_BIG_SELECT, &[])),
        _ => Ok(()),
    }
}

/// How many rows, or pairs of rows, a node is expected to read.
pub(crate) fn rows_read(node: &Node) -> u64 {
    match node {
        Node::Nothing | Node::One | Node::Latest(_) => 1,
        Node::Scan(scan) => scan.rows_estimate.max(1),
        Node::Filter(input, _)
        | Node::Aggregate(input, _)
        | Node::Sort(input, _)
        | Node::Distinct(input, _)
        | Node::Limit(input, _) => rows_read(input),
        Node::NestedLoop(left, right, _) => rows_read(left).saturating_mul(rows_read(right)),
        Node::HashJoin(left, right, _) => rows_read(left).saturating_add(rows_read(right)),
        Node::Derived(query, _) => rows_read(&query.root),
        Node::Append(inputs) => inputs
            .iter()
            .fold(0, |sum, input| rows_read(input).saturating_add(sum)),
        Node::Union(queries, _) | Node::Recursive(queries, _) => queries
            .iter()
            .fold(0, |sum, query| rows_read(&query.root).saturating_add(sum)),
    }
}

/// Error 1175 if an UPDATE or DELETE uses no key, or has several tables, and has no LIMIT.
pub(crate) fn check_write(
    input: &Node,
    is_limited: bool,
    limits: StatementLimits,
) -> Result<(), PlanError> {
    if limits.safe_updates && !is_limited && reads_all(input) {
        return Err(error(ER_UPDATE_WITHOUT_KEY_IN_SAFE_MODE, &[]));
    }
    Ok(())
}

/// True if a table is read completely.
fn reads_all(node: &Node) -> bool {
    match node {
        Node::Scan(scan) => matches!(scan.access, Access::All),
        Node::Filter(input, _)
        | Node::Aggregate(input, _)
        | Node::Sort(input, _)
        | Node::Distinct(input, _)
        | Node::Limit(input, _) => reads_all(input),
        Node::NestedLoop(left, right, _) | Node::HashJoin(left, right, _) => {
            reads_all(left) || reads_all(right)
        }
        Node::Append(inputs) => inputs.iter().any(reads_all),
        Node::Nothing
        | Node::One
        | Node::Derived(..)
        | Node::Union(..)
        | Node::Recursive(..)
        | Node::Latest(_) => false,
    }
}
