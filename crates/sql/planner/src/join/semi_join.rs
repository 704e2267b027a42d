//! `IN` of a subquery, or EXISTS, as the first table of a join.
//!
//! `SELECT .. FROM big WHERE big.id IN (SELECT s.id FROM s)` would test each row of `big` against
//! the set of the subquery's values. If there are few values, and an index of `big` finds the rows
//! of one, it is cheaper to begin with them: each distinct value becomes a row, and finds its rows
//! by an equality (a semi-join by materialization and scan). An EXISTS that asks for a set has a
//! second plan for it (`exists_set`).
//!
//! (I1) No row comes twice: the values are distinct by the equality of the comparison. So both
//! sides have kinds for which the equality of values, which DISTINCT goes by, is that of the
//! comparison ([`is_alike`]). Other sets stay.
//! (I2) The subquery reads no outer row and does not vary, so the set would be built once in an
//! execution. The block that it is a condition of runs once, too, or is a derived table or a member
//! of a UNION: where that runs again, it is cheaper with all that the subquery reads.
//! (I3) A set of rows is read first or not at all, and only one. As a later table it would be no
//! better than the look-up in a set.

use std::rc::Rc;

use expression::{Class, ColumnPlace, CompareOperator, Expression, ExpressionKind, LookupKind};
use store::RowLock;
use value::{ColumnType, TypeKind};

use super::hash::START_COST;
use crate::PlanError;
use crate::access::{AccessChoice, Hints, WantedOrder, WantedRows};
use crate::bind::Binder;
use crate::estimate::rows_given;
use crate::from::{DerivedRows, From, Item, Source};
use crate::limits::rows_read;
use crate::plan::{Computed, DerivedOrigin, JoinKind, Node, Query};

/// Sets of one WHERE that are estimated; the rest are looked up.
const ESTIMATED_SETS_MAX: usize = 4;

/// What costs less than so many rows is not worth another plan.
const COST_MIN: f64 = 16.0;

/// How much more a look-up costs, beside a row that is read in sequence and tested against the set,
/// than the estimates of joins say. With 8,000 values and 40,000 rows the scan took 0.5 s and the
/// look-ups 0.6 s by the primary key, 1.7 s by another index.
const LOOKUP_FACTOR: f64 = 3.0;

/// A set that can be the first table.
struct Candidate {
    /// The position of its condition.
    place: usize,
    /// The number of its subquery.
    subquery: usize,
    /// The slot of the table whose rows it finds.
    found_slot: usize,
    /// The equalities between the table's rows and those of the set.
    equal: Vec<Expression>,
    cost: f64,
}

/// A condition of the block, and the slots of the list that it reads.
struct Told<'e> {
    condition: &'e Expression,
    slots: Vec<usize>,
}

/// A condition that a row is in a set.
struct SetTest<'e> {
    /// The number of the subquery.
    subquery: usize,
    left: &'e [Expression],
    classes: &'e [Class],
    /// Returns the rows of the set, without those of around.
    query: &'e Query,
    /// What each test costs beside the read of its row.
    test_cost: f64,
}

/// A table of a list of joins.
#[derive(Clone, Copy)]
struct Place<'f> {
    table: usize,
    slot: usize,
    hints: &'f Hints,
}

impl Binder<'_> {
    /// Lets a list of joins begin with the values of a set, if a condition asks for one and that is
    /// cheaper. Returns whether it does.
    pub(crate) fn begin_with_set(
        &mut self,
        from: &mut From,
        conditions: &mut Vec<Expression>,
        wanted: Option<&WantedOrder>,
    ) -> Result<bool, PlanError> {
        let all = || from.conditions.iter().chain(conditions.iter());
        // A locking read of the first rows in an order locks no others.
        let is_first_rows = |it: &WantedOrder| it.rows == WantedRows::Limited;
        let locks_few = self.lock.0 != RowLock::None && wanted.is_some_and(is_first_rows);
        let stays = from.is_straight || locks_few || self.runs_again();
        if stays || !all().any(|it| self.set_of(it).is_some()) {
            return Ok(false);
        }
        let (own, mut told) = (from.slots(), Vec::new());
        for condition in all() {
            self.spend()?;
            let mut slots = self.slots_of(condition);
            slots.retain(|slot| own.contains(slot));
            told.push(Told { condition, slots });
        }
        let Some(candidate) = self.cheapest_set(from, &told, wanted)? else {
            return Ok(false);
        };
        from.conditions.append(conditions);
        from.conditions.remove(candidate.place);
        from.conditions.extend(candidate.equal);
        let item = self.set_item(candidate.subquery);
        from.items.insert(0, item);
        from.begins_with_set = true;
        Ok(true)
    }

    /// True if the current block may run more than once in an execution. Derived tables are left
    /// out.
    fn runs_again(&self) -> bool {
        let block = self.blocks.last().expect("a block is bound");
        let is_inner = 1 < self.blocks.len();
        let is_kept_shortly = !block.outer_slots.is_empty() || self.has_varied;
        (is_inner && is_kept_shortly) || !self.recursions.is_empty()
    }

    /// The set that costs least, if no other table finds the rows at less.
    fn cheapest_set(
        &self,
        from: &From,
        conditions: &[Told<'_>],
        wanted: Option<&WantedOrder>,
    ) -> Result<Option<Candidate>, PlanError> {
        let mut best: Option<Candidate> = None;
        let sets = conditions.iter().enumerate();
        let sets = sets.filter_map(|(place, told)| Some((place, self.set_of(told.condition)?)));
        for (place, set) in sets.take(ESTIMATED_SETS_MAX) {
            self.spend()?;
            let Some(candidate) = self.candidate(from, conditions, (place, set), wanted) else {
                continue;
            };
            if best.as_ref().is_none_or(|best| candidate.cost < best.cost) {
                best = Some(candidate);
            }
        }
        Ok(best.filter(|best| {
            let mut places = from.items.iter().filter_map(place_of);
            let found = places.find(|place| place.slot == best.found_slot);
            let others = found.map(|found| self.cost_through_others(from, conditions, found));
            others.is_some_and(|others| best.cost < others)
        }))
    }

    /// A set as the first table, if that is cheaper than to look it up for all rows of a table.
    fn candidate(
        &self,
        from: &From,
        conditions: &[Told<'_>],
        (place, set): (usize, SetTest<'_>),
        wanted: Option<&WantedOrder>,
    ) -> Option<Candidate> {
        // What a function does may show how often it is called.
        if !self.functions.is_empty() {
            return None;
        }
        let found = self.found_table(from, set.left)?;
        let slot = self.slots.len();
        let equal = equalities(&set, slot)?;
        let own = visible(conditions, &[found.slot]);
        let looked = {
            let is_other = |it: &&Expression| !std::ptr::eq(*it, conditions[place].condition);
            let others = own.iter().copied().filter(is_other);
            let visible: Vec<&Expression> = others.chain(&equal).collect();
            let choice = self.choose_access(found.table, found.slot, found.hints, &visible, None);
            is_lookup_by(&choice, &[slot]).then_some(choice.cost)?
        };
        let root = &set.query.root;
        // A member of a UNION may run again with the whole UNION.
        let may_run_again = self.is_apart || 1 < self.blocks.len();
        let again = if may_run_again { rows_read(root) } else { 0 };
        let cost = lookup_cost(rows_given(root), looked) + stdx::u64_to_f64(again);
        let wanted = wanted.filter(|_| from.items.len() == 1);
        let scanned = self.choose_access(found.table, found.slot, found.hints, &own, wanted);
        let tested_cost = scanned.cost + scanned.rows * set.test_cost;
        if scanned.cost < COST_MIN || tested_cost <= cost {
            return None;
        }
        Some(Candidate {
            place,
            subquery: set.subquery,
            found_slot: found.slot,
            equal,
            cost,
        })
    }

    /// The set that a condition asks for: of `row IN (SELECT ..)`, or of EXISTS.
    fn set_of<'e>(&'e self, condition: &'e Expression) -> Option<SetTest<'e>> {
        match &condition.kind {
            ExpressionKind::Quantified(set) if set.operator == CompareOperator::Equal => {
                let subquery = self.subqueries[set.subquery].as_ref()?;
                let lookup = subquery.lookup.as_ref()?;
                let is_set = !set.is_all && lookup.kind == LookupKind::Keys;
                is_set.then_some(SetTest {
                    subquery: set.subquery,
                    left: &set.left,
                    classes: &set.classes,
                    query: &subquery.query,
                    test_cost: 0.0,
                })
            }
            ExpressionKind::Exists(number) => {
                let set = self.exists_sets.get(number)?;
                Some(SetTest {
                    subquery: *number,
                    left: &set.left,
                    classes: &set.classes,
                    query: &set.query,
                    test_cost: START_COST,
                })
            }
            _ => None,
        }
    }

    /// The table whose rows the left side of a set reads, and nothing else.
    fn found_table<'f>(&self, from: &'f From, left: &[Expression]) -> Option<Place<'f>> {
        let is_plain = |it: &Expression| it.subqueries().is_empty() && !self.varies(it);
        let mut slots: Vec<usize> = left.iter().flat_map(Expression::slots).collect();
        slots.dedup();
        let [only] = slots[..] else { return None };
        let mut places = from.items.iter().filter_map(place_of);
        places.find(|place| place.slot == only && left.iter().all(is_plain))
    }

    /// The least cost of the table's rows if they are found by those of another table.
    fn cost_through_others(&self, from: &From, conditions: &[Told<'_>], found: Place<'_>) -> f64 {
        let mut least = f64::INFINITY;
        for item in from.items.iter().filter(|it| it.kind == JoinKind::Inner) {
            let [slot] = item.slots[..] else { continue };
            let is_tied = |it: &Told<'_>| 1 < it.slots.len() && it.slots.contains(&slot);
            if slot == found.slot || !conditions.iter().any(is_tied) {
                continue;
            }
            let (rows, cost) = match place_of(item) {
                Some(Place { table, slot, hints }) => {
                    let own = visible(conditions, &[slot]);
                    let access = self.choose_access(table, slot, hints, &own, None);
                    (access.rows, access.cost)
                }
                None => (2.0, 2.0),
            };
            let is_between = |it: &Told<'_>| it.slots.len() == 2 && it.slots.contains(&found.slot);
            if !conditions.iter().any(|it| is_tied(it) && is_between(it)) {
                // Tables between the two may find the rows.
                least = least.min(cost);
                continue;
            }
            let both = visible(conditions, &[slot, found.slot]);
            let access = self.choose_access(found.table, found.slot, found.hints, &both, None);
            if is_lookup_by(&access, &[slot]) {
                least = least.min(cost + lookup_cost(rows, access.cost));
            }
        }
        least
    }

    /// The distinct rows of a subquery as a table of the current block. They are read there alone.
    fn set_item(&mut self, number: usize) -> Item {
        let subquery = self.subqueries[number].take().expect("it was bound");
        let inner = match self.exists_sets.remove(&number) {
            Some(set) => {
                self.is_for_values |= set.is_for_values;
                set.query
            }
            None => {
                let subquery = Rc::try_unwrap(subquery).expect("nothing else knows it yet");
                Rc::try_unwrap(subquery.query).expect("nothing else knows it yet")
            }
        };
        let slot = self.computed_slot(&inner.output);
        let types = self.slots[slot].clone();
        let distinct_slot = self.add_slot(types);
        let output = inner.output.iter().enumerate().map(|(column, kept)| {
            let place = ColumnPlace {
                slot: distinct_slot,
                column,
            };
            Expression::column(place, kept.column_type.clone(), kept.nullable)
        });
        let output = output.collect();
        let computed = Computed {
            slot: distinct_slot,
            key_count: inner.output.len(),
            kept: inner.output,
            dependent: inner.dependent,
        };
        let query = Query {
            root: Node::Distinct(Box::new(inner.root), Rc::new(computed)),
            output,
            dependent: Vec::new(),
        };
        self.block().set_slots.push(slot);
        Item {
            kind: JoinKind::Inner,
            source: Source::Derived {
                slot,
                rows: DerivedRows::Planned(Rc::new(query)),
                origin: DerivedOrigin::Set,
                varies: false,
            },
            on: Vec::new(),
            slots: vec![slot],
        }
    }
}

/// The equalities between the left side of a set and its rows in that slot. `None` if two rows that
/// are distinct could equal one left side.
fn equalities(set: &SetTest<'_>, slot: usize) -> Option<Vec<Expression>> {
    let mut equal = Vec::with_capacity(set.left.len());
    let columns = set.query.output.iter().zip(set.classes).enumerate();
    for ((column, (output, class)), left) in columns.zip(set.left) {
        let column_type = &output.column_type;
        if !is_alike(&left.column_type, column_type, *class) {
            return None;
        }
        let place = ColumnPlace { slot, column };
        let value = Expression::column(place, column_type.clone(), true);
        let operator = CompareOperator::Equal;
        equal.push(Binder::comparison_in(*class, operator, left.clone(), value));
    }
    Some(equal)
}

/// True if values of both types are equal in the class exactly if they are one value by the own
/// equality of the second type.
fn is_alike(left: &ColumnType, right: &ColumnType, class: Class) -> bool {
    let is_exact = |it: &ColumnType| it.kind.is_integer() || it.kind == TypeKind::Decimal;
    let is_text = |it: &ColumnType| it.kind.is_bytes() && it.kind != TypeKind::Geometry;
    match class {
        Class::Integer | Class::Decimal => is_exact(left) && is_exact(right),
        Class::Text(collation) => is_text(left) && is_text(right) && collation == right.collation,
        Class::DateTime => {
            left.kind == right.kind && matches!(left.kind, TypeKind::Date | TypeKind::DateTime)
        }
        Class::Time => left.kind == TypeKind::Time && right.kind == TypeKind::Time,
        Class::Double => false,
    }
}

/// The cost of finding rows by so many others, each at that cost.
pub(super) fn lookup_cost(rows: f64, cost: f64) -> f64 {
    rows * (START_COST + cost) * LOOKUP_FACTOR
}

/// The conditions that read, of the list's tables, only these, and at least one of them.
fn visible<'e>(conditions: &[Told<'e>], slots: &[usize]) -> Vec<&'e Expression> {
    let is_visible =
        |told: &&Told<'_>| !told.slots.is_empty() && told.slots.iter().all(|it| slots.contains(it));
    let visible = conditions.iter().filter(is_visible);
    visible.map(|told| told.condition).collect()
}

/// True if an access finds rows by a value of these slots.
fn is_lookup_by(choice: &AccessChoice<'_>, slots: &[usize]) -> bool {
    choice.any_equal_value(&|value| value.slots().iter().any(|it| slots.contains(it)))
}

/// The table of an item, if that is one of an inner join.
fn place_of(item: &Item) -> Option<Place<'_>> {
    match &item.source {
        Source::Table { table, slot, hints } if item.kind == JoinKind::Inner => Some(Place {
            table: *table,
            slot: *slot,
            hints,
        }),
        _ => None,
    }
}
