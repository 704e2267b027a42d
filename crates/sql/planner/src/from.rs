//! What is bound and not yet planned: the tables of a FROM clause, and a SELECT.

use std::rc::Rc;

use expression::Expression;

use crate::access::Hints;
use crate::bind::Block;
use crate::numbered::Numbered;
use crate::plan::{DerivedOrigin, JoinKind, Latest, Limit, OutputColumn, Query};

/// An item of a flattened list of joins.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) kind: JoinKind,
    pub(crate) source: Source,
    /// `ON` of an outer join.
    pub(crate) on: Vec<Expression>,
    /// Slots that it fills.
    pub(crate) slots: Vec<usize>,
}

#[derive(Debug, Clone)]
pub(crate) enum Source {
    Table {
        table: usize,
        slot: usize,
        hints: Hints,
    },
    Derived {
        slot: usize,
        rows: DerivedRows,
        origin: DerivedOrigin,
        /// It may return other rows each time, or sets variables.
        varies: bool,
    },
    /// The latest rows of a recursive table.
    Latest(Rc<Latest>),
    /// The right side of an outer join that is itself a join.
    Group(From),
}

/// The rows of a query in FROM.
#[derive(Debug, Clone)]
pub(crate) enum DerivedRows {
    Planned(Rc<Query>),
    /// The query is planned once the conditions on its rows are known.
    Bound(Rc<BoundDerived>),
}

/// A query in FROM whose conditions may grow.
#[derive(Debug, Clone)]
pub(crate) struct BoundDerived {
    pub(crate) select: BoundSelect,
    pub(crate) block: Block,
}

/// A SELECT.
#[derive(Debug, Clone)]
pub(crate) struct BoundSelect {
    pub(crate) from: From,
    /// Those of WHERE.
    pub(crate) conditions: Vec<Expression>,
    pub(crate) parts: SelectParts,
    pub(crate) limit: Option<Limit>,
    pub(crate) is_distinct: bool,
    pub(crate) with_rollup: bool,
}

/// The clauses of a SELECT behind WHERE, and its list.
#[derive(Debug, Clone)]
pub(crate) struct SelectParts {
    pub(crate) output: Vec<Expression>,
    pub(crate) columns: Vec<OutputColumn>,
    /// The terms of GROUP BY.
    pub(crate) keys: Numbered<Expression>,
    /// Of each output column the key that names it, under `WITH ROLLUP`.
    pub(crate) item_keys: Vec<Option<usize>>,
    /// Whether each key is descending, under `WITH ROLLUP`.
    pub(crate) rollup_order: Vec<bool>,
    pub(crate) having: Option<Expression>,
    /// Each term of ORDER BY, and whether it is descending.
    pub(crate) order: Vec<(Expression, bool)>,
}

/// A flattened list of joins.
#[derive(Debug, Default, Clone)]
pub(crate) struct From {
    pub(crate) items: Vec<Item>,
    pub(crate) conditions: Vec<Expression>,
    /// The tables are read in the order of the text.
    pub(crate) is_straight: bool,
    /// The first item is a set, which is read before all others.
    pub(crate) begins_with_set: bool,
}

impl DerivedRows {
    /// What each row has.
    pub(crate) fn output(&self) -> &[Expression] {
        match self {
            Self::Planned(query) => &query.output,
            Self::Bound(bound) => &bound.select.parts.output,
        }
    }
}

impl From {
    /// The (table, slot) pairs of all plain tables, and whether there is nothing else.
    pub(crate) fn tables(&self) -> (Vec<(usize, usize)>, bool) {
        let mut tables = Vec::new();
        let mut are_all = true;
        for item in &self.items {
            match &item.source {
                Source::Table { table, slot, .. } => tables.push((*table, *slot)),
                Source::Derived { .. } | Source::Latest(_) => are_all = false,
                Source::Group(from) => {
                    let (inner, are_inner_all) = from.tables();
                    tables.extend(inner);
                    are_all &= are_inner_all;
                }
            }
        }
        (tables, are_all)
    }

    /// Reads the tables in the order of the text.
    pub(crate) fn set_straight(&mut self) {
        self.is_straight = true;
    }

    /// The slot of the only item, if that is a table.
    pub(crate) fn sole_table(&self) -> Option<usize> {
        match &self.items[..] {
            [item] => match item.source {
                Source::Table { slot, .. } => Some(slot),
                Source::Derived { .. } | Source::Latest(_) | Source::Group(_) => None,
            },
            _ => None,
        }
    }

    pub(crate) fn slots(&self) -> Vec<usize> {
        self.items
            .iter()
            .flat_map(|item| item.slots.iter().copied())
            .collect()
    }
}
