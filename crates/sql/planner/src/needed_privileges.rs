//! What a statement does to each of its tables: the privileges that it needs.
//!
//! A changing statement needs its own privilege on its targets, and SELECT on every other table. If
//! it reads a column of a target, it needs SELECT there, too: a condition reveals rows as a query
//! does. If a plan does not show which column is read, the error may name another one.

use expression::Expression;

use crate::plan::{
    Access, Action, Assignment, DerivedOrigin, Node, OnDuplicate, Scan, TablePrivileges, TableUse,
};

/// The privileges that a plan of this action over these tables needs.
pub(crate) fn needed_privileges(action: &Action, tables: &[TableUse]) -> Vec<TablePrivileges> {
    let mut privileges: Vec<TablePrivileges> = tables
        .iter()
        .map(|table| TablePrivileges {
            definition: table.definition.clone(),
            inserts: false,
            updates: false,
            deletes: false,
            selects: true,
            reads: None,
        })
        .collect();
    match action {
        Action::Select(_) | Action::Do(_) | Action::Rows(_) => {}
        Action::Insert(insert) => {
            let needed = &mut privileges[insert.table];
            needed.inserts = true;
            needed.selects = false;
            needed.deletes = matches!(insert.duplicate, OnDuplicate::Replace);
            if let OnDuplicate::Update(assignments) = &insert.duplicate {
                needed.updates = true;
                needed.reads = assigned_from(assignments, insert.old_slot);
            }
            needed.reads = needed.reads.or_else(|| {
                let mut values = insert.returning.iter();
                values.find_map(|value| column_read(value, insert.new_slot))
            });
        }
        Action::Update(update) => {
            for target in &update.targets {
                let needed = &mut privileges[target.table];
                needed.updates = true;
                needed.selects = false;
                needed.reads = assigned_from(&target.assignments, target.slot)
                    .or_else(|| found_by(&update.input, target.slot, tables))
                    .or(update.order_column);
            }
        }
        Action::Delete(delete) => {
            for &(table, slot) in &delete.targets {
                let needed = &mut privileges[table];
                needed.deletes = true;
                needed.selects = false;
                let mut values = delete.returning.iter();
                needed.reads = found_by(&delete.input, slot, tables)
                    .or(delete.order_column)
                    .or_else(|| values.find_map(|value| column_read(value, slot)));
            }
        }
    }
    privileges
}

/// A column of the slot that the assignments read.
fn assigned_from(assignments: &[Assignment], slot: usize) -> Option<usize> {
    let values = assignments.iter().filter_map(|it| it.value.as_ref());
    values.filter_map(|value| column_read(value, slot)).next()
}

/// A column of the slot by which rows are found, or `None` if all rows are taken.
fn found_by(node: &Node, slot: usize, tables: &[TableUse]) -> Option<usize> {
    match node {
        Node::Nothing | Node::One => None,
        Node::Limit(input, _) => found_by(input, slot, tables),
        Node::Scan(scan) => scanned_by(scan, &tables[scan.table]),
        Node::Filter(_, filter) => Some(column_read(&filter.predicate, slot).unwrap_or(0)),
        Node::NestedLoop(left, right, _) if is_set(left) => found_by(right, slot, tables),
        Node::NestedLoop(..)
        | Node::HashJoin(..)
        | Node::Derived(..)
        | Node::Aggregate(..)
        | Node::Sort(..)
        | Node::Distinct(..)
        | Node::Append(_)
        | Node::Union(..)
        | Node::Recursive(..)
        | Node::Latest(_) => Some(0),
    }
}

/// True of a set, by whose rows those of the table are found.
fn is_set(node: &Node) -> bool {
    matches!(node, Node::Derived(_, derived) if derived.origin == DerivedOrigin::Set)
}

fn scanned_by(scan: &Scan, table: &TableUse) -> Option<usize> {
    match scan.access {
        Access::All => None,
        Access::Unique(_) | Access::Range(_) | Access::Keys(_) => {
            let index = scan
                .index
                .and_then(|place| table.definition.indexes.get(place));
            let first = index.and_then(|index| index.parts.first());
            Some(first.map_or(0, |part| part.column))
        }
    }
}

/// A column of the slot that the expression reads.
pub(crate) fn column_read(expression: &Expression, slot: usize) -> Option<usize> {
    let mut found = None;
    expression.walk(&mut |part| {
        let place = part.as_column().filter(|place| place.slot == slot);
        found = found.or(place.map(|place| place.column));
        found.is_none()
    });
    found
}
