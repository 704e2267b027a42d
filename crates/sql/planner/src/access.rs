//! Access paths: how one table is read.
//!
//! Each index is tried against the conditions on the table: equalities on its first parts, then a
//! range, a list or a LIKE prefix on the next. The cheapest by the estimates is taken. Conditions
//! that the index answers exactly are not tested again.

mod finder;
mod index_union;
mod measured;
mod order;
mod pushed;

use std::rc::Rc;

use errcode::ER_KEY_DOES_NOT_EXISTS;
use expression::{ColumnPlace, Expression};
use store::{Direction, IndexDefinition, RowLock, TableDefinition};
use syntax::ast;

use crate::PlanError;
use crate::bind::{Binder, Reader, error};
use crate::keys::RangePlan;
use crate::keys::{KeyCondition, KeyPlan, Reach};
use crate::plan::{Access, Node, Scan};

use self::finder::Finder;
use self::order::OrderWeigher;
pub(crate) use self::order::{WantedOrder, WantedRows};

/// A start that reads so many times the rows that were expected was planned for other values.
const OFF_FACTOR: f64 = 10.0;

/// Fewer rows than these cost less than another plan.
pub(crate) const OFF_ROWS_MIN: f64 = 1000.0;

/// The assumed rows of a table if nothing is known.
const ROWS_UNKNOWN: f64 = 1000.0;

/// The indexes that a statement's hints ask for.
#[derive(Debug, Default, Clone)]
pub(crate) struct Hints {
    /// Only these.
    only: Option<Vec<usize>>,
    ignored: Vec<usize>,
    is_forced: bool,
}

/// A way to read a table.
#[derive(Debug)]
pub(crate) struct AccessChoice<'e> {
    pub(crate) index: Option<usize>,
    access: Candidate<'e>,
    /// The rows that it returns, roughly.
    pub(crate) rows: f64,
    /// The cost of reading them once, in rows of the table that are read sequentially.
    pub(crate) cost: f64,
    /// What part of them are wanted, if only the first ones are; `cost` is that of this part.
    pub(crate) wanted_part: f64,
    /// The conditions that the access answers, by position.
    covered: Vec<usize>,
    /// Parts bound by equality.
    equal_count: usize,
    pub(crate) is_ordered: bool,
    is_covering: bool,
    pub(crate) direction: Direction,
    /// The indexes that the conditions could use.
    possible: Vec<usize>,
}

/// A candidate access. Lists are borrowed from the conditions, since most candidates are dropped.
#[derive(Debug)]
enum Candidate<'e> {
    All,
    Unique(Vec<&'e Expression>),
    Range(RangePlan),
    Keys {
        conditions: Vec<KeyCondition<'e>>,
        reach: Reach,
    },
}

impl AccessChoice<'_> {
    /// True if no condition narrows the scan.
    pub(crate) fn reads_all(&self) -> bool {
        matches!(self.access, Candidate::All)
    }

    /// True if one of the values that the keys must equal satisfies the test.
    pub(crate) fn any_equal_value(&self, test: &dyn Fn(&Expression) -> bool) -> bool {
        match &self.access {
            Candidate::All => false,
            Candidate::Unique(values) => values.iter().any(|value| test(value)),
            Candidate::Range(range) => range.equal.iter().any(|equal| test(&equal.value)),
            Candidate::Keys { conditions, .. } => conditions
                .iter()
                .any(|condition| condition.any_equal_value(test)),
        }
    }
}

impl Candidate<'_> {
    fn into_access(self) -> Access {
        match self {
            Self::All => Access::All,
            Self::Unique(values) => Access::Unique(values.into_iter().cloned().collect()),
            Self::Range(range) => Access::Range(range),
            Self::Keys { conditions, reach } => Access::Keys(Box::new(KeyPlan {
                condition: KeyCondition::All(conditions).into_owned(),
                depth: reach.depth,
                used_parts: reach.used_parts,
            })),
        }
    }
}

impl Hints {
    /// The hints of the statement.
    pub(crate) fn of(
        hints: &[ast::IndexHint],
        definition: &TableDefinition,
    ) -> Result<Self, PlanError> {
        let mut all = Self::default();
        for hint in hints {
            let mut indexes = Vec::with_capacity(hint.indexes.len());
            for name in &hint.indexes {
                let is_named = |index: &IndexDefinition| name.is(&index.name);
                let Some(place) = definition.indexes.iter().position(is_named) else {
                    let table = &definition.name.table;
                    return Err(error(ER_KEY_DOES_NOT_EXISTS, &[&name.text, table]));
                };
                indexes.push(place);
            }
            match hint.kind {
                ast::IndexHintKind::Ignore => all.ignored.extend(indexes),
                ast::IndexHintKind::Use => all.only.get_or_insert_default().extend(indexes),
                ast::IndexHintKind::Force => {
                    all.only.get_or_insert_default().extend(indexes);
                    all.is_forced = true;
                }
            }
        }
        Ok(all)
    }

    fn allows(&self, index: usize) -> bool {
        !self.ignored.contains(&index)
            && self.only.as_ref().is_none_or(|only| only.contains(&index))
    }
}

impl Binder<'_> {
    /// The node that reads a table, and whether its rows come in the wanted order.
    pub(crate) fn table_node(
        &mut self,
        table: usize,
        slot: usize,
        hints: &Hints,
        conditions: Vec<Expression>,
        wanted: Option<&WantedOrder>,
    ) -> (Node, bool) {
        self.asked_values.set(false);
        let Some(scans) = self.index_union((table, slot, hints), &conditions, wanted) else {
            return self.scan_node((table, slot, hints), conditions, wanted);
        };
        let scan = |conditions| self.scan_node((table, slot, hints), conditions, None).0;
        let scans = scans.into_iter().map(scan).collect();
        (Node::Append(scans), wanted.is_none())
    }

    /// The node that reads a table by one scan.
    fn scan_node(
        &mut self,
        (table, slot, hints): (usize, usize, &Hints),
        conditions: Vec<Expression>,
        wanted: Option<&WantedOrder>,
    ) -> (Node, bool) {
        let visible: Vec<&Expression> = conditions.iter().collect();
        let choice = self.choose_access(table, slot, hints, &visible, wanted);
        let rows_read_max = self.rows_read_max(&choice);
        let AccessChoice {
            index,
            rows,
            covered,
            is_ordered,
            is_covering,
            direction,
            possible,
            ..
        } = choice;
        let access = choice.access.into_access();
        let dependent = self.dependents(access_values(&access));
        self.locks_rows |= self.lock.0 != RowLock::None;
        if matches!(self.lock.0, RowLock::Exclusive | RowLock::Change) {
            self.reads_for_update = true;
            self.tables[table].is_for_update = true;
        }
        let rest: Vec<Expression> = conditions
            .into_iter()
            .enumerate()
            .filter(|(place, _)| !covered.contains(place))
            .map(|(_, condition)| condition)
            .collect();
        let columns = self.columns_of(table, slot, &rest.iter().collect::<Vec<_>>());
        let (rest, pushed) = self.push_conditions(table, slot, rest);
        let fetch_rows_max = match wanted.filter(|_| is_ordered).map(|wanted| wanted.rows) {
            Some(WantedRows::Extreme) => 1,
            // Each fetched row is locked against others, wanted or not.
            Some(WantedRows::Limited | WantedRows::Groups) if self.lock.0 != RowLock::None => 1,
            Some(WantedRows::Limited) => 16,
            _ if self.stops_early => 1,
            Some(WantedRows::All | WantedRows::Groups) | None => 64,
        };
        let scan = Scan {
            slot,
            table,
            index,
            access,
            direction,
            lock: self.lock.0,
            wait: self.lock.1,
            columns,
            fetch_rows_max,
            dependent,
            rows_estimate: stdx::f64_to_u64(rows.max(1.0)),
            rows_read_max,
            is_covering,
            possible_indexes: possible.into(),
            pushed,
        };
        (
            self.with_filter(Node::Scan(Rc::new(scan)), rest),
            is_ordered,
        )
    }

    /// The rows that one start may read before it is clear that the choice was made for other
    /// values; `None` if no parameter's value has told. A choice that reads many rows, where there
    /// were others, is made again for each execution: that costs little beside it.
    fn rows_read_max(&mut self, choice: &AccessChoice<'_>) -> Option<u64> {
        if !self.asked_values.get() {
            return None;
        }
        let is_only = self.tables.len() == 1
            && choice.possible.len() == 1
            && choice.index == Some(choice.possible[0]);
        self.is_for_values |= OFF_ROWS_MIN < choice.rows && !is_only;
        Some(stdx::f64_to_u64(
            (choice.rows * OFF_FACTOR).max(OFF_ROWS_MIN),
        ))
    }

    /// The columns of a table that the statement reads if it tests these of the table's conditions;
    /// `None` for all.
    fn columns_of(&self, table: usize, slot: usize, tested: &[&Expression]) -> Option<Rc<[usize]>> {
        if self.reads_whole_rows {
            return None;
        }
        let columns = self.columns_read(slot, tested);
        let is_all = columns.len() == self.tables[table].definition.columns.len();
        (!is_all).then(|| columns.into())
    }

    /// The columns, for a statement that reads no whole rows. A column that only the WHERE clause
    /// reads is not needed if the access answers those conditions. That is known only if the whole
    /// clause is for this table, and no tested condition has a subquery, whose plan may read it.
    fn columns_read(&self, slot: usize, tested: &[&Expression]) -> Vec<usize> {
        let place = |column| ColumnPlace { slot, column };
        let is_sole = self.sole_slot == Some(slot)
            && tested
                .iter()
                .all(|condition| condition.subqueries().is_empty());
        let is_tested = |place: ColumnPlace| {
            let reads = |part: &Expression| part.as_column() == Some(place);
            tested.iter().any(|condition| condition.contains(&reads))
        };
        let used = self.used_columns.range(place(0)..=place(usize::MAX));
        let read = used
            .filter(|(place, reader)| !is_sole || **reader == Reader::Other || is_tested(**place));
        read.map(|(place, _)| place.column).collect()
    }

    /// The cheapest way to read a table under the conditions. These read only slots that are
    /// placed, and the table's own.
    pub(crate) fn choose_access<'e>(
        &self,
        table: usize,
        slot: usize,
        hints: &Hints,
        conditions: &[&'e Expression],
        wanted: Option<&WantedOrder>,
    ) -> AccessChoice<'e> {
        let definition = &self.tables[table].definition;
        let statistics = self.names.statistics(definition);
        let rows = match statistics.row_count {
            0 => ROWS_UNKNOWN,
            count => stdx::u64_to_f64(count),
        };
        // Under safe updates a key is used, however few rows there are.
        let changes = matches!(self.lock.0, RowLock::Exclusive | RowLock::Change);
        let is_safe = self.settings.limits.safe_updates && changes;
        let avoids_all = hints.is_forced || is_safe;
        let mut best = AccessChoice {
            index: None,
            access: Candidate::All,
            rows,
            cost: if avoids_all {
                (rows + 1.0) * 1e6
            } else {
                rows + 1.0
            },
            wanted_part: 1.0,
            covered: Vec::new(),
            equal_count: 0,
            is_ordered: wanted.is_none(),
            is_covering: false,
            direction: Direction::Forward,
            possible: Vec::new(),
        };
        let mut possible = Vec::new();
        let all_index = definition.clustered_key().map(|_| 0);
        let weigher = OrderWeigher {
            slot,
            definition,
            wanted,
            statistics: &statistics,
            rows,
            condition_count: conditions.len(),
        };
        weigher.weigh(&mut best, all_index);
        for index in 0..definition.indexes.len() {
            if !hints.allows(index) {
                continue;
            }
            let finder = Finder {
                binder: self,
                slot,
                definition,
                index,
                keys: &definition.indexes[index],
                conditions,
            };
            let mut candidates = vec![finder.narrowed(rows, &statistics)];
            if candidates.iter().any(Option::is_some) {
                possible.push(index);
            }
            if wanted.is_some() || hints.is_forced {
                candidates.push(Some(finder.whole(rows)));
            }
            for mut candidate in candidates.into_iter().flatten() {
                weigher.weigh(&mut candidate, Some(index));
                if candidate.cost < best.cost {
                    best = candidate;
                }
            }
        }
        best.possible = possible;
        best
    }
}

/// The values that an access computes when it starts; of a list, those that are not constants.
pub(crate) fn access_values(access: &Access) -> Vec<&Expression> {
    match access {
        Access::All => Vec::new(),
        Access::Unique(values) => values.iter().collect(),
        Access::Range(range) => {
            let bounds = range.lower.iter().chain(&range.upper).map(|bound| &bound.0);
            let equal = range.equal.iter().map(|equal| &equal.value);
            equal.chain(bounds).collect()
        }
        Access::Keys(keys) => {
            let mut values = Vec::new();
            keys.condition.for_each_value(&mut |value| {
                if !value.is_given() {
                    values.push(value);
                }
            });
            values
        }
    }
}
