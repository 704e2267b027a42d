//! Queries in FROM that become a part of the query around them.
//!
//! `SELECT .. FROM (SELECT id, email FROM customers WHERE ..) t WHERE t.id = 5` reads `customers`
//! by its key: the tables of the inner query join the outer ones, its conditions become theirs, and
//! `t.id` is another name of `customers.id`. MariaDB calls this `derived_merge`. Otherwise the
//! inner query would be run as a whole, and its rows searched one by one.
//!
//! It is done for queries of stored tables whose items are different columns. On the right side of
//! an outer join an item must be NULL where the join finds no row: a column is, a constant is not.
//! Queries are run apart if they lock otherwise than the query around them, or vary. So are those
//! with queries or stored functions in their conditions, which would run once for each outer row.

use std::collections::BTreeSet;

use expression::{ColumnPlace, Expression};
use syntax::ast;

use crate::PlanError;
use crate::bind::{Binder, MERGED_COUNT_MAX};
use crate::from::{From, Item, Source};
use crate::plan::OutputColumn;
use crate::query::{BoundQuery, NO_TAIL};

/// A query in FROM, bound.
pub(super) enum Derived {
    Merged(MergedQuery),
    /// It is run by itself.
    Apart(BoundQuery),
}

/// A query that becomes a part of the one around it.
pub(super) struct MergedQuery {
    from: From,
    /// Its items, which are columns of its tables.
    output: Vec<Expression>,
    columns: Vec<OutputColumn>,
}

/// The SELECT of a query, if that may become a part of the query around it.
fn plain_select(query: &ast::Query) -> Option<&ast::Select> {
    let is_whole = query.with.is_none() && query.into.is_none() && query.lock.is_none();
    if !is_whole || !query.order_by.is_empty() || query.limit.is_some() {
        return None;
    }
    let select = match &query.body {
        ast::QueryBody::Select(select) => select,
        ast::QueryBody::Nested(inner) => return plain_select(inner),
        ast::QueryBody::Set { .. } | ast::QueryBody::Values(_) => return None,
    };
    let is_column = |item: &ast::SelectItem| match item {
        ast::SelectItem::Wildcard { .. } => true,
        ast::SelectItem::Expr { expr, .. } => matches!(expr.kind, ast::ExprKind::Column(_)),
    };
    let is_plain = select.options == ast::SelectOptions::default()
        && !select.from.is_empty()
        && select.items.iter().all(is_column)
        && select.group_by.is_empty()
        && select.having.is_none()
        && select.windows.is_empty()
        && select.procedure.is_none();
    is_plain.then_some(&**select)
}

impl Binder<'_> {
    /// Binds a query in FROM, which does not see the tables beside it. Also tells whether it
    /// varies.
    pub(super) fn derived_query(
        &mut self,
        query: &ast::Query,
    ) -> Result<(Derived, bool), PlanError> {
        let is_alike = self.lock.0 == self.inner_lock && !self.reads_whole_rows;
        let room = MERGED_COUNT_MAX.saturating_sub(self.block().scope.merged_count());
        let select = plain_select(query).filter(|_| is_alike);
        let (bound, varies) = self.apart(|binder| match select {
            Some(select) => binder.merged_or_apart(select, room),
            None => Ok(Derived::Apart(binder.query(query)?.0)),
        });
        Ok((bound?, varies))
    }

    /// Binds a plain SELECT whose tables join those of the query around it, if that has room.
    fn merged_or_apart(&mut self, select: &ast::Select, room: usize) -> Result<Derived, PlanError> {
        self.check_stack()?;
        let first = ColumnPlace {
            slot: self.slots.len(),
            column: 0,
        };
        let (bound, _) = self.in_block(|binder| {
            let (mut from, conditions) = binder.select_tables(select)?;
            let used = binder.used_columns.range(first..);
            let used: Vec<_> = used.map(|(place, reader)| (*place, *reader)).collect();
            let parts = binder.parts(select, &NO_TAIL)?;
            let has_query = |it: &Expression| !it.subqueries().is_empty();
            let is_plain = from.tables().1 && !from.is_straight && !binder.has_varied;
            let has_queries = from.any_condition(&has_query) || conditions.iter().any(has_query);
            let has_room = binder.block().scope.slots().len() <= room;
            if !is_plain || has_queries || !has_room || !are_different_columns(&parts.output) {
                let query = binder.planned_select(select, &NO_TAIL, (from, conditions), parts)?;
                return Ok(Derived::Apart(query));
            }
            // The outer query notes which of the items it reads.
            binder.used_columns.split_off(&first);
            binder.used_columns.extend(used);
            binder.narrow_outer_joins(&mut from, &conditions);
            from.conditions.extend(conditions);
            Ok(Derived::Merged(MergedQuery {
                from,
                output: parts.output,
                columns: parts.columns,
            }))
        })?;
        Ok(bound)
    }

    /// Adds a query that is a part of the current one to its scope.
    pub(super) fn show_merged(
        &mut self,
        merged: MergedQuery,
        alias: &str,
        names: &[ast::Ident],
    ) -> Result<From, PlanError> {
        let slot = self.computed_slot(&merged.output);
        self.show_derived(&merged.columns, names, alias, slot)?;
        let relations = &mut self.block().scope.relations;
        let relation = relations.last_mut().expect("it was added above");
        relation.stand_for(merged.from.slots(), merged.output);
        Ok(merged.from)
    }
}

impl From {
    /// True if a condition of its joins satisfies the test.
    fn any_condition(&self, test: &dyn Fn(&Expression) -> bool) -> bool {
        let within = |item: &Item| match &item.source {
            Source::Group(inner) => inner.any_condition(test),
            Source::Table { .. } | Source::Derived { .. } | Source::Latest(_) => false,
        };
        let mut on = self.items.iter().flat_map(|item| &item.on);
        self.conditions.iter().any(test) || on.any(test) || self.items.iter().any(within)
    }
}

/// True if each expression is a column that no other is.
fn are_different_columns(output: &[Expression]) -> bool {
    let places: Option<BTreeSet<_>> = output.iter().map(Expression::as_column).collect();
    places.is_some_and(|places| places.len() == output.len())
}
