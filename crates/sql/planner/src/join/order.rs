//! In which order the tables of a list are read.
//!
//! Each time the table is placed next that returns the fewest rows for a row of those before it,
//! and has a condition to one of them.
//! If the rows are to come in the order of one table's columns, and only the first of them are
//! wanted, that table may be read first in this order instead: a nested loop keeps the order of its
//! left side, and ends with the last wanted row. `ORDER BY o.placed_at LIMIT 20` then reads 20
//! orders, not all of them. It is chosen if the rows that are read until then are fewer. How many
//! these are follows from the conditions on each table that an index answers; a condition that
//! none answers is assumed to hold.

use expression::Expression;

use super::Conjunct;
use crate::access::{AccessChoice, Hints, OFF_ROWS_MIN, WantedOrder, WantedRows};
use crate::bind::Binder;
use crate::from::{DerivedRows, Item, Source};
use crate::plan::{JoinKind, Node};

/// A list of joins whose order is looked for.
#[derive(Clone, Copy)]
pub(super) struct List<'f> {
    pub(super) items: &'f [Item],
    pub(super) conjuncts: &'f [Conjunct],
    /// The slots of all items.
    pub(super) own: &'f [usize],
    /// The tables are read in the order of the text.
    pub(super) is_straight: bool,
    /// The first item is a set that finds rows of another.
    pub(super) begins_with_set: bool,
}

/// What an item adds to those before it.
struct Estimate {
    /// Rows for each row of those before it.
    rows: f64,
    /// What is read once, whatever rows there are.
    once: f64,
}

/// What an order of tables reads.
struct Reads {
    /// The rows of all prefixes of the order, but for the first table's.
    joined: f64,
    /// What is read once.
    once: f64,
    /// The rows of the result.
    rows: f64,
}

/// What the wanted rows cost in two orders of tables.
struct Costs {
    /// The first table is read in the wanted order until they are found.
    ordered: f64,
    /// The same if they are never found.
    ordered_all: f64,
    /// All rows are joined and sorted.
    sorted: f64,
}

/// What a row that is sorted costs beside one that is read.
const SORT_COST: f64 = 0.5;

/// The least part of its rows that a condition is taken to keep.
const PART_KEPT_MIN: f64 = 1e-6;

/// The rank of queries in FROM, whose rows are not known.
const DERIVED_RANK: f64 = 500.0;

/// The rank of joins on the right side of an outer one.
const GROUP_RANK: f64 = 5e3;

/// The rank of tables without a condition to the placed ones, whose rows they multiply.
const UNTIED_RANK: f64 = 1e6;

impl Binder<'_> {
    /// The order of the items, and whether the first one is to be read in the wanted order.
    pub(super) fn join_order(
        &mut self,
        list: List<'_>,
        wanted: Option<&WantedOrder>,
    ) -> (Vec<usize>, bool) {
        let order = self.order_from(list, None);
        let start = wanted.and_then(|wanted| Some((wanted, self.ordered_start(list, wanted)?)));
        let Some((wanted, first)) = start.filter(|_| !self.begins_with_kept(list, order[0])) else {
            return (order, false);
        };
        if wanted.rows == WantedRows::All {
            let is_first = order[0] == first;
            return (order, is_first);
        }
        let ordered = self.order_from(list, Some(first));
        self.asked_values.set(false);
        let Some(costs) = self.costs(list, (&ordered, &order), wanted) else {
            return (order, false);
        };
        // For other values of parameters, that of LIMIT included, the other order may be far
        // better. A sorted result that is long costs more than to choose again; so does a first
        // table that is read to its end.
        let is_better = costs.ordered < costs.sorted;
        let (is_asked, cost) = match is_better {
            true => (self.asked_values.get(), costs.ordered_all),
            false => (self.names.given_values().is_some(), costs.sorted),
        };
        self.is_for_values |= is_asked && OFF_ROWS_MIN < cost;
        match is_better {
            true => (ordered, true),
            false => (order, false),
        }
    }

    /// The item that could be read in the wanted order before all others.
    fn ordered_start(&self, list: List<'_>, wanted: &WantedOrder) -> Option<usize> {
        // Queries that set variables come before the tables whose conditions read them.
        let varies = |item: &Item| matches!(item.source, Source::Derived { varies: true, .. });
        match wanted.rows == WantedRows::Extreme || list.items.iter().any(varies) {
            true => None,
            false => ordered_table(list, wanted),
        }
    }

    /// True if the rows of a first item are kept for all rows of an outer query.
    fn begins_with_kept(&self, list: List<'_>, place: usize) -> bool {
        let own = visible(list, place, &[]);
        self.try_kept_table(&list.items[place], &own).is_some()
    }

    /// The order in which each next item has the least rank, behind a given first one.
    fn order_from(&self, list: List<'_>, first: Option<usize>) -> Vec<usize> {
        let mut left: Vec<usize> = (0..list.items.len()).collect();
        let mut order = Vec::with_capacity(left.len());
        let mut placed = Vec::new();
        while !left.is_empty() {
            let next = match first.filter(|_| order.is_empty()) {
                Some(first) => first,
                None => self.next_item(list, &left, &placed),
            };
            left.retain(|place| *place != next);
            placed.extend(&list.items[next].slots);
            order.push(next);
        }
        order
    }

    /// Which of the items that are left to place next.
    fn next_item(&self, list: List<'_>, left: &[usize], placed: &[usize]) -> usize {
        let is_ready = |place: &&usize| {
            let item = &list.items[**place];
            let mut read = item.on.iter().flat_map(|on| self.slots_of(on));
            let is_there = |slot: usize| {
                !list.own.contains(&slot) || placed.contains(&slot) || item.slots.contains(&slot)
            };
            item.kind == JoinKind::Inner || (!placed.is_empty() && read.all(is_there))
        };
        let mut ready = left.iter().filter(is_ready);
        let is_straight = list.is_straight || (list.begins_with_set && placed.is_empty());
        if is_straight || left.len() == 1 {
            return *ready.next().unwrap_or(&left[0]);
        }
        let mut best = (left[0], f64::INFINITY);
        for place in ready {
            let rank = self.rank(list, *place, placed);
            if rank < best.1 {
                best = (*place, rank);
            }
        }
        best.0
    }

    /// The rows of an item for each row of those before it, roughly.
    fn rank(&self, list: List<'_>, place: usize, placed: &[usize]) -> f64 {
        let (table, slot, hints) = match &list.items[place].source {
            Source::Table { table, slot, hints } => (*table, *slot, hints),
            // A query without tables has one row, which may set variables for the others.
            Source::Derived {
                rows: DerivedRows::Planned(query),
                ..
            } if matches!(query.root, Node::One) => return 0.0,
            Source::Derived { .. } | Source::Latest(_) => return DERIVED_RANK,
            Source::Group(_) => return GROUP_RANK,
        };
        let visible = visible(list, place, placed);
        let rows = self.choose_access(table, slot, hints, &visible, None).rows;
        match placed.is_empty() || self.ties(&visible, slot, placed) {
            true => rows,
            false => rows * 1e3 + UNTIED_RANK,
        }
    }

    /// True if a condition reads a table and those before it.
    fn ties(&self, conditions: &[&Expression], slot: usize, placed: &[usize]) -> bool {
        conditions.iter().any(|condition| {
            let slots = self.slots_of(condition);
            slots.contains(&slot) && slots.iter().any(|it| placed.contains(it))
        })
    }

    fn estimate(&self, list: List<'_>, place: usize, placed: &[usize]) -> Estimate {
        let item = &list.items[place];
        let (rows, once) = match table_of(item) {
            None => (1.0, 0.0),
            Some((table, slot, hints)) => {
                let all = visible(list, place, placed);
                let access = self.choose_access(table, slot, hints, &all, None);
                let own = visible(list, place, &[]);
                let alone = self.choose_access(table, slot, hints, &own, None);
                // If no index answers what ties it, its rows are read once into a hash table.
                let is_hashed = alone.rows <= access.rows && self.ties(&all, slot, placed);
                match is_hashed {
                    true => (1.0, alone.cost),
                    false => (access.rows, 0.0),
                }
            }
        };
        let rows = match item.kind {
            JoinKind::Inner => rows,
            JoinKind::Left => rows.max(1.0),
            JoinKind::Anti => 1.0,
        };
        Estimate { rows, once }
    }

    /// What an order reads behind its first item.
    fn reads(&self, list: List<'_>, order: &[usize]) -> Reads {
        let mut placed: Vec<usize> = Vec::new();
        let mut reads = Reads {
            joined: 0.0,
            once: 0.0,
            rows: 1.0,
        };
        for place in order {
            let estimate = self.estimate(list, *place, &placed);
            reads.rows *= estimate.rows;
            reads.once += estimate.once;
            if !placed.is_empty() {
                reads.joined += reads.rows;
            }
            placed.extend(&list.items[*place].slots);
        }
        reads
    }

    /// What the wanted rows cost if the first table is read in their order, and if all are sorted;
    /// `None` if no index has that order.
    fn costs(
        &self,
        list: List<'_>,
        (ordered, sorted): (&[usize], &[usize]),
        wanted: &WantedOrder,
    ) -> Option<Costs> {
        let start = self.first_access(list, ordered[0], Some(wanted))?;
        if !start.is_ordered {
            return None;
        }
        let in_order = self.reads(list, ordered);
        let unordered = self.reads(list, sorted);
        let parts = ordered[1..].iter().map(|it| self.part_kept(list, *it));
        // Both orders have one result; each estimate leaves out what the other one sees.
        let kept = in_order.rows * parts.product::<f64>();
        let result_rows = kept.min(unordered.rows).max(1.0);
        let read = start.cost / start.wanted_part + in_order.joined;
        let part = match wanted.rows {
            WantedRows::Groups => start.wanted_part,
            _ => (wanted.row_count / result_rows).min(1.0),
        };
        let first = self.first_access(list, sorted[0], None);
        let first_cost = first.map_or(1.0, |first| first.cost);
        let sort_cost = unordered.rows * SORT_COST;
        Some(Costs {
            ordered: read * part + in_order.once,
            ordered_all: read + in_order.once,
            sorted: first_cost + unordered.joined + unordered.once + sort_cost,
        })
    }

    /// How the rows of the first item are read, if it is a table.
    fn first_access<'f>(
        &self,
        list: List<'f>,
        place: usize,
        wanted: Option<&WantedOrder>,
    ) -> Option<AccessChoice<'f>> {
        let (table, slot, hints) = table_of(&list.items[place])?;
        let own = visible(list, place, &[]);
        Some(self.choose_access(table, slot, hints, &own, wanted))
    }

    /// Which part of a table's rows its own conditions keep, as far as an index tells.
    fn part_kept(&self, list: List<'_>, place: usize) -> f64 {
        let item = &list.items[place];
        let Some((table, slot, hints)) = table_of(item).filter(|_| item.kind == JoinKind::Inner)
        else {
            return 1.0;
        };
        let own = visible(list, place, &[]);
        let kept = self.choose_access(table, slot, hints, &own, None).rows;
        let all = self.choose_access(table, slot, hints, &[], None).rows;
        (kept / all.max(1.0)).clamp(PART_KEPT_MIN, 1.0)
    }
}

/// The item of the table whose columns give the wanted order, if it can be the first.
fn ordered_table(list: List<'_>, wanted: &WantedOrder) -> Option<usize> {
    let (place, _) = wanted.columns.first()?;
    if wanted.columns.iter().any(|(it, _)| it.slot != place.slot) || list.begins_with_set {
        return None;
    }
    let is_it = |item: &Item| {
        item.kind == JoinKind::Inner
            && table_of(item).is_some_and(|(_, slot, _)| slot == place.slot)
    };
    let found = list.items.iter().position(is_it)?;
    (found == 0 || !list.is_straight).then_some(found)
}

fn table_of(item: &Item) -> Option<(usize, usize, &Hints)> {
    match &item.source {
        Source::Table { table, slot, hints } => Some((*table, *slot, hints)),
        Source::Derived { .. } | Source::Latest(_) | Source::Group(_) => None,
    }
}

/// The conditions that an item is read under, behind those that are placed.
fn visible<'f>(list: List<'f>, place: usize, placed: &[usize]) -> Vec<&'f Expression> {
    let item = &list.items[place];
    if item.kind != JoinKind::Inner {
        return item.on.iter().collect();
    }
    let is_new = |it: &&Conjunct| it.slots.iter().any(|slot| item.slots.contains(slot));
    let is_there = |slot: &usize| placed.contains(slot) || item.slots.contains(slot);
    let conjuncts = list.conjuncts.iter().filter(is_new);
    let visible = conjuncts.filter(|it| !it.is_used && it.slots.iter().all(is_there));
    visible.map(|it| &it.expression).collect()
}
