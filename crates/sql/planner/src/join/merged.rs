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
use std::rc::Rc;

use expression::{ColumnPlace, Expression};
use syntax::ast;

use crate::PlanError;
use crate::bind::{Binder, Block, MERGED_COUNT_MAX};
use crate::from::{BoundDerived, BoundSelect, DerivedRows, From, Item, Source};
use crate::plan::OutputColumn;
use crate::query::{BoundQuery, NO_TAIL};

/// A query in FROM.
pub(super) enum Derived {
    Merged(MergedQuery),
    /// It is run by itself.
    Apart(DerivedRows, Vec<OutputColumn>),
}

impl Derived {
    /// One that is planned.
    pub(super) fn planned(bound: BoundQuery) -> Self {
        Self::Apart(DerivedRows::Planned(Rc::new(bound.query)), bound.columns)
    }
}

/// A SELECT in FROM, bound.
enum MergedOrBound {
    Merged(MergedQuery),
    Bound(Box<BoundSelect>),
}

/// A query that becomes a part of the one around it.
pub(super) struct MergedQuery {
    from: From,
    /// Its items, which are columns of its tables.
    output: Vec<Expression>,
    columns: Vec<OutputColumn>,
}

/// The SELECT of a query that is nothing else.
fn whole_select(query: &ast::Query) -> Option<&ast::Select> {
    let is_whole = query.with.is_none() && query.into.is_none() && query.lock.is_none();
    if !is_whole || !query.order_by.is_empty() || query.limit.is_some() {
        return None;
    }
    match &query.body {
        ast::QueryBody::Select(select) => Some(select),
        ast::QueryBody::Nested(inner) => whole_select(inner),
        ast::QueryBody::Set { .. } | ast::QueryBody::Values(_) => None,
    }
}

/// True if a SELECT may become a part of the query around it.
fn is_plain(select: &ast::Select) -> bool {
    let is_column = |item: &ast::SelectItem| match item {
        ast::SelectItem::Wildcard { .. } => true,
        ast::SelectItem::Expr { expr, .. } => matches!(expr.kind, ast::ExprKind::Column(_)),
    };
    select.options == ast::SelectOptions::default()
        && !select.from.is_empty()
        && select.items.iter().all(is_column)
        && select.group_by.is_empty()
        && select.having.is_none()
        && select.windows.is_empty()
        && select.procedure.is_none()
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
        let room = if is_alike { room } else { 0 };
        let (bound, varies) = self.apart(|binder| match whole_select(query) {
            Some(select) => binder.derived_select(select, room),
            None => Ok(Derived::planned(binder.query(query)?.0)),
        });
        Ok((bound?, varies))
    }

    /// Binds a SELECT in FROM.
    fn derived_select(&mut self, select: &ast::Select, room: usize) -> Result<Derived, PlanError> {
        self.check_stack()?;
        self.blocks.push(Block::default());
        let bound = self.merged_or_bound(select, room);
        let block = self.blocks.pop().expect("pushed above");
        let mut select = match bound? {
            MergedOrBound::Merged(merged) => return Ok(Derived::Merged(merged)),
            MergedOrBound::Bound(select) => *select,
        };
        let columns = std::mem::take(&mut select.parts.columns);
        let bound = BoundDerived { select, block };
        // What a recursive table reads is planned while that is known.
        let is_recursive = !self.recursions.is_empty();
        let is_planned = is_recursive || self.has_varied || bound.select.from.items.is_empty();
        let rows = match is_planned {
            true => DerivedRows::Planned(Rc::new(self.planned_derived(bound)?)),
            false => DerivedRows::Bound(Rc::new(bound)),
        };
        Ok(Derived::Apart(rows, columns))
    }

    /// Binds a SELECT whose tables join those of the query around it, if that has room.
    fn merged_or_bound(
        &mut self,
        select: &ast::Select,
        room: usize,
    ) -> Result<MergedOrBound, PlanError> {
        let first = ColumnPlace {
            slot: self.slots.len(),
            column: 0,
        };
        let tables = self.select_tables(select)?;
        let used = self.used_columns.range(first..);
        let used: Vec<_> = used.map(|(place, reader)| (*place, *reader)).collect();
        let mut bound = self.bound_select(select, &NO_TAIL, tables)?;
        let (from, conditions) = (&bound.from, &bound.conditions);
        let has_query = |it: &Expression| !it.subqueries().is_empty();
        let has_queries = from.any_condition(&has_query) || conditions.iter().any(has_query);
        let are_tables = from.tables().1 && !from.is_straight;
        let has_room = self.block().scope.slots().len() <= room;
        let is_plain = is_plain(select) && are_tables && !has_queries && !self.has_varied;
        if !is_plain || !has_room || !are_different_columns(&bound.parts.output) {
            return Ok(MergedOrBound::Bound(Box::new(bound)));
        }
        // The outer query notes which of the items it reads.
        self.used_columns.split_off(&first);
        self.used_columns.extend(used);
        self.simplify_outer_joins(&mut bound.from, &mut bound.conditions);
        bound.from.conditions.append(&mut bound.conditions);
        Ok(MergedOrBound::Merged(MergedQuery {
            from: bound.from,
            output: bound.parts.output,
            columns: bound.parts.columns,
        }))
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
