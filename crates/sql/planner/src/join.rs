//! FROM: the tables of a query block, their joins, and the order in which they are read.
//!
//! Inner joins are flattened into one list of items with one list of conditions. The right side of
//! an outer join is an item of its own with its ON condition. Items are placed one by one
//! ([`order`]), each once its ON condition reads only placed tables. A condition is tested as soon
//! as all its columns are there.

use std::rc::Rc;

use errcode::{ER_BAD_FIELD_ERROR, ER_NONUNIQ_TABLE, ER_TOO_MANY_TABLES};
use expression::{CompareOperator, Expression};
use syntax::ast::{self, TableRef};

use crate::access::{Hints, WantedOrder};
use crate::bind::{Binder, Clause, Relation, RelationColumn, error};
use crate::condition::{conjuncts, is_never};
use crate::from::{From, Item, Source};
use crate::output::table_output;
use crate::plan::{Derived, DerivedRun, Filter, Join, JoinKind, Node, SlotShape, TableUse};
use crate::{PlanError, not_supported};

mod condition_pushdown;
mod correlated;
mod derived;
mod exists_set;
mod hash;
mod lateral;
mod merged;
mod optional;
mod order;
mod semi_join;

use self::order::List;

/// A condition, and the slots of the current list that it reads.
#[derive(Debug)]
pub(crate) struct Conjunct {
    pub(crate) expression: Expression,
    pub(crate) slots: Vec<usize>,
    pub(crate) is_used: bool,
}

/// The most tables of one FROM, as in MariaDB. Each is a level of the tree of joins, which is run
/// by recursion. The next table to place is searched among all that are left.
const TABLE_COUNT_MAX: usize = 61;

impl Binder<'_> {
    /// Binds the tables of a FROM clause into the scope of the current block.
    pub(crate) fn bind_from(&mut self, tables: &[TableRef]) -> Result<From, PlanError> {
        let mut from = From::default();
        for table in tables {
            self.block().scope.visible_from = self.block().scope.relations.len();
            let part = self.table_reference(table)?;
            from.is_straight |= part.is_straight;
            from.items.extend(part.items);
            from.conditions.extend(part.conditions);
        }
        self.block().scope.visible_from = 0;
        self.check_aliases()?;
        Ok(from)
    }

    /// Error 1066 for two tables with one name.
    fn check_aliases(&mut self) -> Result<(), PlanError> {
        let relations = &self.block().scope.relations;
        for (place, relation) in relations.iter().enumerate() {
            let is_twin = |other: &Relation| {
                other.alias == relation.alias && other.database == relation.database
            };
            if relations[..place].iter().any(is_twin) {
                return Err(error(ER_NONUNIQ_TABLE, &[&relation.alias]));
            }
        }
        Ok(())
    }

    fn table_reference(&mut self, reference: &TableRef) -> Result<From, PlanError> {
        let is_join = matches!(reference, TableRef::Join { .. } | TableRef::List(_));
        if !is_join && self.block().scope.relations.len() == TABLE_COUNT_MAX {
            return Err(error(ER_TOO_MANY_TABLES, &[&TABLE_COUNT_MAX]));
        }
        match reference {
            TableRef::Table(named) => self.named_table(named),
            TableRef::Derived {
                query,
                alias,
                columns,
                ..
            } => self.derived_table(query, &alias.text, columns),
            TableRef::Join {
                kind,
                natural,
                left,
                right,
                on,
                using,
            } => self.join(*kind, *natural, left, right, on.as_ref(), using),
            TableRef::List(tables) => {
                let mut from = From::default();
                for table in tables {
                    let part = self.table_reference(table)?;
                    from.items.extend(part.items);
                    from.conditions.extend(part.conditions);
                }
                Ok(from)
            }
            TableRef::JsonTable { .. } => Err(not_supported("JSON_TABLE")),
        }
    }

    fn named_table(&mut self, named: &ast::NamedTable) -> Result<From, PlanError> {
        if !named.partitions.is_empty() {
            return Err(not_supported("PARTITION"));
        }
        if named.system_time.is_some() {
            return Err(not_supported("FOR SYSTEM_TIME"));
        }
        let alias = named
            .alias
            .as_ref()
            .unwrap_or(&named.name.name)
            .text
            .clone();
        if named.name.schema.is_none()
            && let Some(common) = self.common_table(&named.name.name.text, &alias)
        {
            return common;
        }
        let (table, slot) = self.open_table(&named.name, &alias)?;
        let definition = self.tables[table].definition.clone();
        let hints = Hints::of(&named.hints, &definition)?;
        let source = Source::Table { table, slot, hints };
        let item = Item {
            kind: JoinKind::Inner,
            source,
            on: Vec::new(),
            slots: vec![slot],
        };
        Ok(From {
            items: vec![item],
            ..From::default()
        })
    }

    /// Finds a table and adds it to the scope of the current block.
    pub(crate) fn open_table(
        &mut self,
        name: &ast::ObjectName,
        alias: &str,
    ) -> Result<(usize, usize), PlanError> {
        let database = self.database_of(name)?;
        let Some(definition) = self.names.table(&database, &name.name.text) else {
            return Err(self.names.no_table(&database, &name.name.text));
        };
        if definition.view.is_some() {
            return Err(not_supported("views"));
        }
        let columns = definition
            .columns
            .iter()
            .enumerate()
            .map(|(place, column)| RelationColumn {
                name: column.name.clone(),
                column_type: column.column_type.clone(),
                nullable: column.nullable,
                invisible: column.invisible,
                output: table_output(&definition, place, alias),
            })
            .collect();
        self.tables.push(TableUse {
            definition: definition.clone(),
            alias: alias.to_owned(),
            is_for_update: false,
        });
        let table = self.tables.len() - 1;
        let slot = self.add_slot(SlotShape::Table(table));
        let names = (database, definition.name.table.clone());
        let relation = Relation::new(alias, names, slot, columns);
        self.block().scope.add(relation);
        Ok((table, slot))
    }

    fn join(
        &mut self,
        kind: ast::JoinKind,
        natural: bool,
        left: &TableRef,
        right: &TableRef,
        on: Option<&ast::Expr>,
        using: &[ast::Ident],
    ) -> Result<From, PlanError> {
        let start = self.block().scope.relations.len();
        let shown_start = self.block().scope.shown().len();
        let mut left_part = self.table_reference(left)?;
        let middle = self.block().scope.relations.len();
        let shown = (shown_start, self.block().scope.shown().len());
        let mut right_part = self.table_reference(right)?;
        let end = self.block().scope.relations.len();
        let is_right = kind == ast::JoinKind::Right;
        let mut on = match on {
            Some(on) => {
                let scope = &mut self.block().scope;
                let visible_from = std::mem::replace(&mut scope.visible_from, start);
                let clause = std::mem::replace(&mut self.block().clause, Clause::On);
                let bound = self.condition(on);
                self.block().clause = clause;
                self.block().scope.visible_from = visible_from;
                let mut bound = bound?;
                if is_inner(kind) {
                    self.find_zero_dates(&mut bound)?;
                }
                conjuncts(bound)
            }
            None => Vec::new(),
        };
        let parts = (start, middle, end);
        on.extend(self.merge_columns((parts, shown), natural, using, is_right)?);
        if is_inner(kind) {
            left_part.is_straight |= kind == ast::JoinKind::Straight || right_part.is_straight;
            left_part.items.append(&mut right_part.items);
            left_part.conditions.append(&mut right_part.conditions);
            left_part.conditions.append(&mut on);
            return Ok(left_part);
        }
        let (mut outer, inner, optional) = if is_right {
            (right_part, left_part, start..middle)
        } else {
            (left_part, right_part, middle..end)
        };
        for relation in &mut self.block().scope.relations[optional] {
            relation.is_optional = true;
        }
        outer.items.push(optional_item(inner, on));
        Ok(outer)
    }

    /// The conditions of NATURAL and USING; their columns are merged in the scope.
    fn merge_columns(
        &mut self,
        ((start, middle, end), shown): ((usize, usize, usize), (usize, usize)),
        natural: bool,
        using: &[ast::Ident],
        is_right: bool,
    ) -> Result<Vec<Expression>, PlanError> {
        let scope = &self.block().scope;
        let find = |range: std::ops::Range<usize>, name: &str| {
            scope.relations[range].iter().find_map(|relation| {
                let column = relation.column_named(name)?;
                let place = expression::ColumnPlace {
                    slot: relation.slot,
                    column,
                };
                (!scope.is_hidden(place)).then(|| (relation.expression(column), place))
            })
        };
        let names: Vec<String> = if natural {
            let right = &scope.relations[middle..end];
            let is_right = |name: &str| right.iter().any(|it| it.column_named(name).is_some());
            let left = scope.relations[start..middle]
                .iter()
                .flat_map(|r| &r.columns);
            left.map(|column| column.name.clone())
                .filter(|name| is_right(name))
                .collect()
        } else {
            using.iter().map(|name| name.text.clone()).collect()
        };
        let mut pairs = Vec::with_capacity(names.len());
        for name in &names {
            let (Some(left), Some(right)) = (find(start..middle, name), find(middle..end, name))
            else {
                return Err(error(ER_BAD_FIELD_ERROR, &[name, &"FROM"]));
            };
            pairs.push((left, right));
        }
        let seen_and_hidden: Vec<_> = pairs
            .iter()
            .map(|((_, left), (_, right))| match is_right {
                true => (*right, *left),
                false => (*left, *right),
            })
            .collect();
        if !pairs.is_empty() {
            let scope = &mut self.block().scope;
            scope.merge(shown, &seen_and_hidden, is_right);
        }
        let mut conditions = Vec::with_capacity(pairs.len());
        for ((left, _), (right, _)) in pairs {
            self.note_used(&left);
            self.note_used(&right);
            conditions.push(self.comparison(CompareOperator::Equal, left, right)?);
        }
        Ok(conditions)
    }

    /// The node that reads the tables, with all conditions tested. Also returns whether rows come
    /// in the wanted order.
    pub(crate) fn plan_from(
        &mut self,
        from: From,
        conditions: Vec<Expression>,
        wanted: Option<&WantedOrder>,
    ) -> Result<(Node, bool), PlanError> {
        let all = from.conditions.into_iter().chain(conditions);
        let own = from
            .items
            .iter()
            .flat_map(|item| item.slots.iter().copied())
            .collect::<Vec<_>>();
        let mut conjuncts = Vec::with_capacity(all.size_hint().0);
        for condition in all {
            self.spend()?;
            conjuncts.push(self.conjunct(condition, &own));
        }
        let is_impossible = |conjunct: &Conjunct| is_never(&conjunct.expression);
        if conjuncts.iter().any(is_impossible) {
            return Ok((Node::Nothing, true));
        }
        let gate = self.take_visible(&mut conjuncts, &[], &[])?;
        if from.items.is_empty() {
            return Ok((self.with_filter(Node::One, gate), true));
        }
        let list = List {
            items: &from.items,
            conjuncts: &conjuncts,
            own: &own,
            is_straight: from.is_straight,
            begins_with_set: from.begins_with_set,
        };
        let is_join = 1 < from.items.len();
        let (order, is_begun_in_order) = match is_join {
            true => self.join_order(list, wanted),
            false => (vec![0], true),
        };
        let stops_early = self.stops_early;
        self.stops_early |=
            is_join && wanted.is_some_and(|it| self.locks_some(it, is_begun_in_order));
        let wanted = wanted.filter(|_| is_begun_in_order);
        let mut items: Vec<Option<Item>> = from.items.into_iter().map(Some).collect();
        let mut placed: Vec<usize> = Vec::new();
        let mut planned: Option<(Node, bool)> = None;
        for place in order {
            let item = items[place].take().expect("each item is placed once");
            let slots = item.slots.clone();
            planned = Some(match planned {
                None => self.first_item(item, &mut conjuncts, wanted)?,
                Some((node, is_ordered)) => (
                    self.joined_item(node, item, &mut conjuncts, &placed)?,
                    is_ordered && is_begun_in_order,
                ),
            });
            placed.extend(slots);
        }
        self.stops_early = stops_early;
        let (node, is_ordered) = planned.expect("there is at least one item");
        let node = self.filtered(node, &mut conjuncts, &placed)?;
        Ok((self.gated(node, gate, placed), is_ordered))
    }

    /// Conditions that read none of the tables are tested once, before anything is read.
    fn gated(&self, node: Node, gate: Vec<Expression>, right_slots: Vec<usize>) -> Node {
        if gate.is_empty() {
            return node;
        }
        let gate = self.with_filter(Node::One, gate);
        let kind = JoinKind::Inner;
        let join = Join {
            kind,
            on: None,
            dependent: Vec::new(),
            left_slots: Vec::new(),
            right_slots,
        };
        Node::NestedLoop(Box::new(gate), Box::new(node), Rc::new(join))
    }

    pub(crate) fn conjunct(&self, expression: Expression, own: &[usize]) -> Conjunct {
        Conjunct {
            slots: self.own_slots_read(&expression, own),
            expression,
            is_used: false,
        }
    }

    /// The slots among these that a condition reads.
    pub(crate) fn own_slots_read(&self, condition: &Expression, own: &[usize]) -> Vec<usize> {
        let mut slots = self.slots_of(condition);
        slots.retain(|slot| own.contains(slot));
        // `RAND() < 0.5`, `@n := @n + 1`: evaluated for each row.
        if slots.is_empty() && self.varies(condition) {
            slots = own.to_vec();
        }
        slots
    }

    fn first_item(
        &mut self,
        item: Item,
        conjuncts: &mut [Conjunct],
        wanted: Option<&WantedOrder>,
    ) -> Result<(Node, bool), PlanError> {
        assert!(
            item.kind == JoinKind::Inner,
            "an outer join's right side is never first"
        );
        let slots = item.slots.clone();
        let own = self.take_visible(conjuncts, &slots, &[])?;
        // A kept table's rows are found by values of columns that no scan tests.
        let sole_slot = self.sole_slot.take();
        if wanted.is_none()
            && let Some(keys) = self.try_kept_table(&item, &own.iter().collect::<Vec<_>>())
        {
            return Ok((self.kept_table(item, own, &keys)?, true));
        }
        self.sole_slot = sole_slot;
        self.item_node(item, own, false, wanted)
    }

    fn joined_item(
        &mut self,
        left: Node,
        mut item: Item,
        conjuncts: &mut [Conjunct],
        placed: &[usize],
    ) -> Result<Node, PlanError> {
        let kind = item.kind;
        let slots = item.slots.clone();
        let conditions = match kind {
            JoinKind::Left | JoinKind::Anti => std::mem::take(&mut item.on),
            JoinKind::Inner => self.take_visible(conjuncts, &slots, placed)?,
        };
        let is_lateral = self.is_lateral_better(&left, &item, &conditions, placed);
        if !is_lateral && let Some(equal) = self.try_hash_join(&left, &item, &conditions, placed) {
            let node = self.hash_joined(left, item, conditions, placed, &equal)?;
            return Ok(match kind {
                JoinKind::Inner => node,
                JoinKind::Left | JoinKind::Anti => {
                    self.filtered(node, conjuncts, &with_slots(placed, &slots))?
                }
            });
        }
        let right = match is_lateral {
            true => self.lateral_node(item, conditions, placed)?,
            false => self.item_node(item, conditions, true, None)?.0,
        };
        let join = Join {
            kind,
            on: None,
            dependent: Vec::new(),
            left_slots: placed.to_vec(),
            right_slots: slots.clone(),
        };
        let node = Node::NestedLoop(Box::new(left), Box::new(right), Rc::new(join));
        if kind != JoinKind::Inner {
            return self.filtered(node, conjuncts, &with_slots(placed, &slots));
        }
        Ok(node)
    }

    /// The node that reads one item, with its conditions tested.
    fn item_node(
        &mut self,
        item: Item,
        conditions: Vec<Expression>,
        is_repeated: bool,
        wanted: Option<&WantedOrder>,
    ) -> Result<(Node, bool), PlanError> {
        match item.source {
            Source::Table { table, slot, hints } => {
                Ok(self.table_node(table, slot, &hints, conditions, wanted))
            }
            Source::Derived {
                slot,
                rows,
                origin,
                varies: _,
            } => {
                let derived = Derived {
                    slot,
                    origin,
                    run: match is_repeated {
                        true => DerivedRun::Kept,
                        false => DerivedRun::Once,
                    },
                };
                let node = self.derived_node(rows, derived, &[], conditions)?;
                Ok((node, false))
            }
            Source::Latest(latest) => {
                Ok((self.with_filter(Node::Latest(latest), conditions), false))
            }
            Source::Group(from) => {
                // Within the group, outside conditions read placed slots as outer ones.
                let (node, _) = self.plan_from(from, conditions, None)?;
                Ok((node, false))
            }
        }
    }

    /// Puts the conditions above a node.
    pub(crate) fn with_filter(&self, node: Node, conditions: Vec<Expression>) -> Node {
        match Expression::all(conditions) {
            None => node,
            Some(predicate) => {
                let dependent = self.dependents([&predicate]);
                Node::Filter(
                    Box::new(node),
                    Rc::new(Filter {
                        predicate,
                        dependent,
                    }),
                )
            }
        }
    }

    /// Puts the unused conditions whose slots are placed above a node.
    fn filtered(
        &self,
        node: Node,
        conjuncts: &mut [Conjunct],
        placed: &[usize],
    ) -> Result<Node, PlanError> {
        let conditions = self.take_visible(conjuncts, placed, &[])?;
        Ok(self.with_filter(node, conditions))
    }

    /// Takes the unused conditions whose slots are all in `own` or `placed`. NULL is left.
    fn take_visible(
        &self,
        conjuncts: &mut [Conjunct],
        own: &[usize],
        placed: &[usize],
    ) -> Result<Vec<Expression>, PlanError> {
        let mut taken = Vec::new();
        for conjunct in conjuncts {
            self.spend()?;
            let is_visible = conjunct
                .slots
                .iter()
                .all(|slot| own.contains(slot) || placed.contains(slot));
            if !conjunct.is_used && is_visible {
                conjunct.is_used = true;
                let expression = std::mem::replace(&mut conjunct.expression, Expression::null());
                taken.push(expression);
            }
        }
        Ok(taken)
    }
}

/// True of a join whose ON is one more condition of WHERE.
fn is_inner(kind: ast::JoinKind) -> bool {
    matches!(
        kind,
        ast::JoinKind::Inner | ast::JoinKind::Cross | ast::JoinKind::Straight
    )
}

fn with_slots(placed: &[usize], slots: &[usize]) -> Vec<usize> {
    placed.iter().chain(slots).copied().collect()
}

fn optional_item(mut inner: From, mut on: Vec<Expression>) -> Item {
    let slots = inner.slots();
    if inner.items.len() == 1 && inner.items[0].kind == JoinKind::Inner {
        let item = inner.items.remove(0);
        on.extend(inner.conditions);
        return Item {
            kind: JoinKind::Left,
            on,
            ..item
        };
    }
    Item {
        kind: JoinKind::Left,
        source: Source::Group(inner),
        on,
        slots,
    }
}
