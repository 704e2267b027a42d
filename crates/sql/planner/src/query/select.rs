//! SELECT: one query block.

use errcode::{
    ER_MIX_OF_GROUP_FUNC_AND_FIELDS, ER_TOO_MANY_FIELDS, ER_WRONG_FIELD_WITH_GROUP,
    ER_WRONG_GROUP_FIELD, ER_WRONG_USAGE,
};
use expression::{AggregateCall, CompareOperator, Test};
use settings::SqlMode;
use value::{ColumnType, Date, TypeKind, Value};

use crate::bind::required_exists;
use crate::condition::conjuncts;
use crate::from::{BoundSelect, From, SelectParts};
use crate::plan::SlotShape;

use super::rewrite::{Groups, read_kept};
use super::*;

/// The most columns of a result: what the reply to a PREPARE can count. MariaDB has no limit
/// otherwise. No real program reaches it, and it keeps a statement of 16 MiB from a plan of many
/// GiB.
const COLUMN_COUNT_MAX: usize = 65_535;

/// Of how many groups HAVING is taken to keep one.
const GROUPS_PER_HAVING: f64 = 10.0;

/// How the rows come that are to be grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GroupInput {
    Unordered,
    /// Those of a group follow each other.
    SideBySide,
    /// They are sorted for `WITH ROLLUP`.
    Rollup,
}

impl Binder<'_> {
    pub(super) fn select(
        &mut self,
        select: &ast::Select,
        tail: &Tail<'_>,
    ) -> Result<BoundQuery, PlanError> {
        let tables = self.select_tables(select)?;
        let bound = self.bound_select(select, tail, tables)?;
        self.planned_select(bound)
    }

    /// The tables of a SELECT, and the conditions of its WHERE.
    pub(crate) fn select_tables(
        &mut self,
        select: &ast::Select,
    ) -> Result<(From, Vec<Expression>), PlanError> {
        if select.procedure.is_some() {
            return Err(not_supported("PROCEDURE"));
        }
        if !select.windows.is_empty() {
            return Err(not_supported("window functions"));
        }
        let mut from = self.bind_from(&select.from)?;
        if select.options.straight_join {
            from.set_straight();
        }
        let conditions = self.where_clause(select.condition.as_ref())?;
        Ok((from, conditions))
    }

    /// A SELECT whose tables and WHERE are bound.
    pub(crate) fn bound_select(
        &mut self,
        select: &ast::Select,
        tail: &Tail<'_>,
        (from, conditions): (From, Vec<Expression>),
    ) -> Result<BoundSelect, PlanError> {
        let parts = self.parts(select, tail)?;
        let limit = self.limit(tail.limit, select.options.calc_found_rows)?;
        let bound = BoundSelect {
            from,
            conditions,
            parts,
            limit,
            is_distinct: select.options.distinct,
            with_rollup: select.with_rollup,
        };
        if self.is_grouped(&bound) {
            self.check_groups(&bound)?;
        }
        Ok(bound)
    }

    /// True if a SELECT of the current block returns groups.
    fn is_grouped(&mut self, select: &BoundSelect) -> bool {
        let has_calls = !self.block().calls.list().is_empty();
        has_calls || select.with_rollup || !select.parts.keys.list().is_empty()
    }

    /// The query of a SELECT that is bound.
    pub(crate) fn planned_select(&mut self, select: BoundSelect) -> Result<BoundQuery, PlanError> {
        let is_grouped = self.is_grouped(&select);
        let BoundSelect {
            mut from,
            mut conditions,
            mut parts,
            limit,
            is_distinct,
            with_rollup,
        } = select;
        self.simplify_outer_joins(&mut from, &mut conditions);
        let calls = std::mem::take(&mut self.block().calls);
        let own_slots = self.block().scope.slots();
        let wanted = if with_rollup || (is_distinct && !is_grouped) {
            None
        } else if is_grouped {
            self.grouped_order(&parts, limit.as_ref())
        } else {
            self.wanted_order(&parts.order, limit.as_ref())
        };
        let is_plain = !is_grouped && parts.having.is_none() && limit.is_none();
        self.exists_set = match is_plain {
            true => self.set_of_exists(&from, &conditions)?,
            false => None,
        };
        self.begin_with_set(&mut from, &mut conditions, wanted.as_ref())?;
        self.sole_slot = from.sole_table();
        let extremes = match is_grouped && !with_rollup {
            true => self.extreme_rows(&from, &conditions, (&parts, calls.list(), &own_slots))?,
            false => None,
        };
        let (mut node, mut is_ordered) = match extremes {
            Some(node) => (node, false),
            None => self.plan_from(from, conditions, wanted.as_ref())?,
        };
        self.sole_slot = None;
        is_ordered &= wanted.is_some();
        if is_grouped {
            let input = match is_ordered {
                _ if with_rollup => GroupInput::Rollup,
                true => GroupInput::SideBySide,
                false => GroupInput::Unordered,
            };
            node = self.grouped((node, input), &mut parts, calls, own_slots);
            // Groups that the store has made come in its order.
            is_ordered &= matches!(node, Node::Aggregate(..));
        }
        if let Some(having) = parts.having.take() {
            node = self.with_filter(node, vec![having]);
        }
        if is_distinct {
            node = self.distinct(node, &mut parts);
        }
        if !parts.order.is_empty() && !is_ordered {
            let order = std::mem::take(&mut parts.order);
            node = self.sorted_rows(node, &mut parts.output, &order, limit);
        } else if let Some(limit) = limit {
            node = self.limited(node, limit);
        }
        self.evaluate_in_turn(&mut parts.output);
        let dependent = self.dependents(&parts.output);
        let query = Query {
            root: node,
            output: parts.output,
            dependent,
        };
        Ok(BoundQuery {
            query,
            columns: parts.columns,
        })
    }

    /// The order in which equal terms of GROUP BY come side by side, and their groups in the order
    /// of ORDER BY. `None` if that orders by something else, or if the terms are not columns. A
    /// correlated query may keep its rows instead ([`Self::try_kept_table`]).
    fn grouped_order(&self, parts: &SelectParts, limit: Option<&Limit>) -> Option<WantedOrder> {
        // A TIMESTAMP is none: times that differ are shown alike where clocks are set back.
        let is_plain = |key: &Expression| matches!(key.kind, ExpressionKind::Column(_));
        let keys = parts.keys.list();
        let mut order = parts.order.clone();
        let are_keys = order.iter().all(|(key, _)| keys.contains(key));
        let are_plain = !keys.is_empty() && keys.iter().all(is_plain);
        if !are_plain || !are_keys || 1 < self.blocks.len() {
            return None;
        }
        let direction = order.last().is_some_and(|(_, descending)| *descending);
        let is_ordered_by = |key: &&Expression| parts.order.iter().any(|(it, _)| it == *key);
        let others = keys.iter().filter(|key| !is_ordered_by(key));
        order.extend(others.map(|key| (key.clone(), direction)));
        let mut wanted = self.wanted_order(&order, limit)?;
        if wanted.rows == WantedRows::Limited {
            wanted.rows = WantedRows::Groups;
        }
        if parts.having.is_some() {
            wanted.row_count *= GROUPS_PER_HAVING;
        }
        Some(wanted)
    }

    /// The conditions of a WHERE clause.
    pub(crate) fn where_clause(
        &mut self,
        condition: Option<&ast::Expr>,
    ) -> Result<Vec<Expression>, PlanError> {
        let Some(condition) = condition else {
            return Ok(Vec::new());
        };
        self.block().clause = Clause::Where;
        self.block().required_exists = required_exists(condition);
        let mut bound = self.condition(condition)?;
        self.find_zero_dates(&mut bound)?;
        Ok(conjuncts(bound))
    }

    /// `IS NULL` of a NOT NULL DATE or DATETIME finds the zero date, as in MySQL. ODBC programs,
    /// which have no such date, query it this way.
    pub(crate) fn find_zero_dates(&mut self, condition: &mut Expression) -> Result<(), PlanError> {
        if let ExpressionKind::And(list) | ExpressionKind::Or(list) = &mut condition.kind {
            return list.iter_mut().try_for_each(|it| self.find_zero_dates(it));
        }
        let (is, is_inverse) = match &condition.kind {
            ExpressionKind::Not(inner) => (&inner.kind, true),
            kind => (kind, false),
        };
        let ExpressionKind::Is {
            operand,
            test: Test::Null,
            negated,
        } = is
        else {
            return Ok(());
        };
        if *negated != is_inverse {
            return Ok(());
        }
        let is_date = matches!(
            operand.column_type.kind,
            TypeKind::Date | TypeKind::DateTime
        );
        let Some(place) = operand.as_column().filter(|_| is_date) else {
            return Ok(());
        };
        let relations = &self.block().scope.relations;
        let Some(relation) = relations.iter().find(|it| it.slot == place.slot) else {
            return Ok(());
        };
        if relation.table.is_empty() || relation.columns[place.column].nullable {
            return Ok(());
        }
        let is_optional = relation.is_optional;
        let zero = Expression::constant(Value::Date(Date::ZERO), ColumnType::new(TypeKind::Date));
        let operand = (**operand).clone();
        let is_zero = self.plain_comparison(CompareOperator::Equal, operand, zero)?;
        if is_optional {
            let nullable = is_zero.nullable;
            let either = vec![condition.clone(), is_zero];
            *condition = Expression::condition(ExpressionKind::Or(either), nullable);
        } else {
            *condition = is_zero;
        }
        Ok(())
    }

    pub(crate) fn parts(
        &mut self,
        select: &ast::Select,
        tail: &Tail<'_>,
    ) -> Result<SelectParts, PlanError> {
        self.block().clause = Clause::Fields;
        self.block().allows_aggregates = true;
        let (output, columns) = self.select_items(&select.items)?;
        self.block().clause = Clause::Group;
        self.block().allows_aggregates = false;
        let (mut keys, mut key_order) = (Numbered::default(), Vec::new());
        let mut item_keys = vec![None; output.len()];
        for item in &select.group_by {
            let key = self.order_term(item, &output)?;
            if key.contains(&|part| matches!(part.kind, ExpressionKind::Aggregate(_))) {
                let name = self.text(item.expr.span);
                return Err(error(ER_WRONG_GROUP_FIELD, &[&name]));
            }
            key_order.push((key.clone(), item.descending));
            if select.with_rollup {
                // Each key is a level, also one that is repeated.
                let place = keys.push(&key);
                if let Some(grouped) = grouped_item(item, &key, &output, &columns) {
                    item_keys[grouped] = Some(place);
                }
            } else {
                keys.place_of(&key);
            }
        }
        self.block().group_keys = key_order.iter().map(|(key, _)| key.clone()).collect();
        self.block().clause = Clause::Having;
        self.block().allows_aggregates = true;
        let having = select
            .having
            .as_ref()
            .map(|having| self.condition(having))
            .transpose()?;
        if select.with_rollup && !tail.order_by.is_empty() {
            return Err(error(ER_WRONG_USAGE, &[&"CUBE/ROLLUP", &"ORDER BY"]));
        }
        self.block().clause = Clause::Order;
        let mut order = Vec::with_capacity(tail.order_by.len());
        for item in tail.order_by {
            let key = self.order_term(item, &output)?;
            if !matches!(key.kind, ExpressionKind::Constant(_)) {
                order.push((key, item.descending));
            }
        }
        let rollup_order = match select.with_rollup {
            true => key_order
                .iter()
                .map(|(_, descending)| *descending)
                .collect(),
            false => Vec::new(),
        };
        // As in MariaDB: groups come sorted unless another order (or NULL) is asked for.
        if tail.order_by.is_empty() && !key_order.is_empty() && !select.with_rollup {
            order = key_order;
        }
        Ok(SelectParts {
            output,
            columns,
            keys,
            item_keys,
            rollup_order,
            having,
            order,
        })
    }

    pub(crate) fn select_items(
        &mut self,
        items: &[SelectItem],
    ) -> Result<(Vec<Expression>, Vec<OutputColumn>), PlanError> {
        let (mut output, mut columns) = (Vec::new(), Vec::new());
        if COLUMN_COUNT_MAX < items.len() {
            return Err(error(ER_TOO_MANY_FIELDS, &[]));
        }
        for item in items {
            let before = output.len();
            match item {
                SelectItem::Wildcard { schema, table, .. } => {
                    self.wildcard(schema.as_ref(), table.as_ref(), &mut output, &mut columns)?;
                }
                SelectItem::Expr { expr, .. } => {
                    let expression = self.term(expr)?;
                    let name = item.name(self.source).unwrap_or_default();
                    columns.push(self.described(&expression, name));
                    output.push(expression);
                }
            }
            if COLUMN_COUNT_MAX < output.len() {
                return Err(error(ER_TOO_MANY_FIELDS, &[]));
            }
            let names = columns[before..].iter().map(|it| it.name.clone());
            let items = names.zip(output[before..].iter().cloned());
            self.block().aliases.extend(items);
        }
        Ok((output, columns))
    }

    /// The description of an expression for the client.
    fn described(&mut self, expression: &Expression, name: String) -> OutputColumn {
        let found = expression.as_column().and_then(|place| {
            let mut blocks = self.blocks.iter().rev();
            blocks.find_map(|block| block.scope.described(place))
        });
        match found {
            Some((_, column)) => OutputColumn {
                name,
                nullable: expression.nullable,
                ..column.output.clone()
            },
            None => plain_output(name, expression.column_type.clone(), expression.nullable),
        }
    }

    fn wildcard(
        &mut self,
        schema: Option<&ast::Ident>,
        table: Option<&ast::Ident>,
        output: &mut Vec<Expression>,
        columns: &mut Vec<OutputColumn>,
    ) -> Result<(), PlanError> {
        let scope = self.block().scope.clone();
        if scope.relations.is_empty() {
            return Err(error(ER_NO_TABLES_USED, &[]));
        }
        let mut places: Vec<(usize, usize)> = Vec::new();
        let place_in = |place: ColumnPlace| {
            let relation = scope.relations.iter().position(|r| r.slot == place.slot);
            (
                relation.expect("what is shown is of a relation"),
                place.column,
            )
        };
        let mut is_found = table.is_none();
        if is_found {
            places.extend(scope.shown().iter().copied().map(place_in));
        }
        for (relation_index, relation) in scope.relations.iter().enumerate() {
            let is_wanted = table.is_some_and(|table| relation.alias == table.text)
                && schema.is_none_or(|schema| relation.database == schema.text);
            if !is_wanted {
                continue;
            }
            is_found = true;
            let columns = relation.columns.iter().enumerate();
            let visible = columns.filter(|(_, described)| !described.invisible);
            places.extend(visible.map(|(column, _)| (relation_index, column)));
        }
        if !is_found {
            let name = table.map_or_else(String::new, |table| table.text.clone());
            let database = schema
                .map(|schema| &schema.text)
                .or(self.settings.database.as_ref());
            let name = database.map_or(name.clone(), |database| format!("{database}.{name}"));
            return Err(error(ER_BAD_TABLE_ERROR, &[&name]));
        }
        for (relation, column) in places {
            let expression = scope.relations[relation].expression(column);
            self.note_used(&expression);
            let described = &scope.relations[relation].columns[column];
            columns.push(OutputColumn {
                nullable: expression.nullable,
                ..described.output.clone()
            });
            output.push(expression);
        }
        Ok(())
    }

    /// Adds grouping above a node; the clauses above then read the groups.
    fn grouped(
        &mut self,
        (mut input, how): (Node, GroupInput),
        parts: &mut SelectParts,
        calls: Numbered<AggregateCall>,
        own_slots: Vec<usize>,
    ) -> Node {
        let with_rollup = how == GroupInput::Rollup;
        let slot = self.add_slot(SlotShape::Computed(Vec::new()));
        let mut groups = Groups {
            slot,
            keys: std::mem::take(&mut parts.keys),
            calls,
            own_slots,
            with_rollup,
        };
        groups.rewrite_output(&mut parts.output, &parts.item_keys);
        if let Some(having) = &mut parts.having {
            groups.rewrite(having);
        }
        for (key, _) in &mut parts.order {
            groups.rewrite(key);
        }
        let kept_slots = self.slots_read_by_subqueries(parts, &groups.own_slots);
        let (mut keys, mut calls) = (groups.keys.into_list(), groups.calls.into_list());
        if with_rollup && !keys.is_empty() {
            assert_eq!(keys.len(), parts.rollup_order.len(), "each key is a level");
            input = self.sorted_for_rollup(input, &mut keys, &mut calls, &parts.rollup_order);
        }
        let key_types = keys.iter().map(|key| key.column_type.clone());
        let call_types = calls.iter().map(|call| call.column_type.clone());
        let types = key_types.chain(call_types).collect();
        self.slots[slot] = SlotShape::Computed(types);
        let arguments = calls.iter().flat_map(|call| {
            call.arguments
                .iter()
                .chain(call.order.iter().map(|(key, _)| key))
        });
        let dependent = self.dependents(keys.iter().chain(arguments));
        if !with_rollup
            && kept_slots.is_empty()
            && let Some(grouping) = self.push_groups(&mut input, slot, &keys, &calls)
        {
            self.slots[slot] = SlotShape::Groups(grouping);
            return input;
        }
        let aggregate = Aggregate {
            slot,
            is_ordered: matches!(how, GroupInput::SideBySide | GroupInput::Rollup)
                && !keys.is_empty()
                && kept_slots.is_empty(),
            keys,
            calls,
            with_rollup,
            kept_slots,
            dependent,
        };
        Node::Aggregate(Box::new(input), Rc::new(aggregate))
    }

    /// Sorts all columns that are read by the keys: a rollup needs equal keys side by side.
    fn sorted_for_rollup(
        &mut self,
        input: Node,
        keys: &mut [Expression],
        calls: &mut [AggregateCall],
        descending: &[bool],
    ) -> Node {
        let mut read = Numbered::of(keys);
        for call in &*calls {
            for argument in &call.arguments {
                read.place_of(argument);
            }
            for (key, _) in &call.order {
                read.place_of(key);
            }
        }
        let order: Vec<_> = keys
            .iter()
            .cloned()
            .zip(descending.iter().copied())
            .collect();
        let mut sorted = read.list().to_vec();
        let node = self.sorted(input, &mut sorted, &order, SortWork::default());
        let sorted_slot = sorted[0].as_column().expect("a sort gives columns").slot;
        let into_slot = |expression: &mut Expression| read_kept(expression, &read, sorted_slot);
        keys.iter_mut().for_each(into_slot);
        for call in calls {
            call.arguments.iter_mut().for_each(into_slot);
            call.order.iter_mut().for_each(|(key, _)| into_slot(key));
        }
        node
    }

    /// What is evaluated for a group reads no row of it beside the terms of GROUP BY.
    fn check_groups(&mut self, select: &BoundSelect) -> Result<(), PlanError> {
        let own_slots = self.block().scope.slots();
        let parts = &select.parts;
        if select.with_rollup && !self.slots_read_by_subqueries(parts, &own_slots).is_empty() {
            return Err(not_supported("a correlated subquery WITH ROLLUP"));
        }
        if !self.settings.sql_mode.has(SqlMode::ONLY_FULL_GROUP_BY) {
            return Ok(());
        }
        let items = parts.output.iter().zip(&parts.item_keys);
        let items = items.filter(|(_, key)| key.is_none()).map(|(item, _)| item);
        let mut ungrouped = items
            .chain(&parts.having)
            .filter_map(|it| first_ungrouped(it, &parts.keys, &own_slots));
        match ungrouped.next() {
            Some(place) => Err(self.not_full_group_by(place, parts.keys.list())),
            None => Ok(()),
        }
    }

    /// The slots among these that subqueries above the groups read.
    fn slots_read_by_subqueries(&self, parts: &SelectParts, own_slots: &[usize]) -> Vec<usize> {
        let above = parts.output.iter().chain(&parts.having);
        let above = above.chain(parts.order.iter().map(|(key, _)| key));
        let numbers = above.flat_map(|expression| expression.subqueries());
        let read: Vec<usize> = numbers
            .flat_map(|number| &self.subquery_slots[number])
            .copied()
            .collect();
        let own = own_slots.iter().copied();
        own.filter(|slot| read.contains(slot)).collect()
    }

    /// Error 1055 or 1140 under ONLY_FULL_GROUP_BY.
    fn not_full_group_by(&mut self, place: ColumnPlace, keys: &[Expression]) -> PlanError {
        if keys.is_empty() {
            return error(ER_MIX_OF_GROUP_FUNC_AND_FIELDS, &[]);
        }
        let name = self
            .block()
            .scope
            .described(place)
            .map_or_else(String::new, |(r, c)| {
                format!("{}.{}.{}", r.database, r.alias, c.name)
            });
        error(ER_WRONG_FIELD_WITH_GROUP, &[&name])
    }

    fn distinct(&mut self, input: Node, parts: &mut SelectParts) -> Node {
        let mut kept = Numbered::default();
        let places: Vec<usize> = parts
            .output
            .iter()
            .map(|output| kept.place_of(output))
            .collect();
        let key_count = kept.list().len();
        let orders: Vec<usize> = parts
            .order
            .iter()
            .map(|(key, _)| kept.place_of(key))
            .collect();
        let mut kept = kept.into_list();
        self.evaluate_in_turn(&mut kept);
        let slot = self.computed_slot(&kept);
        let dependent = self.dependents(&kept);
        let column = |column: usize, expression: &Expression| {
            let place = ColumnPlace { slot, column };
            Expression::column(place, expression.column_type.clone(), expression.nullable)
        };
        for (output, place) in parts.output.iter_mut().zip(places) {
            *output = column(place, output);
        }
        for ((key, _), place) in parts.order.iter_mut().zip(orders) {
            *key = column(place, key);
        }
        let computed = Computed {
            slot,
            kept,
            key_count,
            dependent,
        };
        Node::Distinct(Box::new(input), Rc::new(computed))
    }

    /// The query of `DO`.
    pub(crate) fn do_query(&mut self, expressions: &[ast::Expr]) -> Result<Query, PlanError> {
        let (mut output, _) = self.in_block(|binder| {
            expressions
                .iter()
                .map(|expr| binder.term(expr))
                .collect::<Result<Vec<_>, _>>()
        })?;
        self.evaluate_in_turn(&mut output);
        let dependent = self.dependents(&output);
        Ok(Query {
            root: Node::One,
            output,
            dependent,
        })
    }
}

/// The output column that a term of GROUP BY names: by position, by name, or the first equal one.
fn grouped_item(
    item: &ast::OrderItem,
    key: &Expression,
    output: &[Expression],
    columns: &[OutputColumn],
) -> Option<usize> {
    if let ExprKind::Literal(ast::Literal::Integer(number)) = &item.expr.kind {
        return usize::try_from(*number).ok()?.checked_sub(1);
    }
    let is_named = |(column, expression): (&OutputColumn, &Expression)| match &item.expr.kind {
        ExprKind::Column(name) => {
            expression == key && column.name.eq_ignore_ascii_case(&name.column.text)
        }
        _ => false,
    };
    let named = columns.iter().zip(output).position(is_named);
    named.or_else(|| output.iter().position(|expression| expression == key))
}

/// The first column of these slots that an expression reads outside of the terms of GROUP BY, and
/// of calls.
fn first_ungrouped(
    expression: &Expression,
    keys: &Numbered<Expression>,
    own_slots: &[usize],
) -> Option<ColumnPlace> {
    let mut found = None;
    expression.walk(&mut |part| {
        if found.is_some() || keys.find(part).is_some() {
            return false;
        }
        if let ExpressionKind::Column(place) = part.kind
            && own_slots.contains(&place.slot)
        {
            found = Some(place);
        }
        true
    });
    found
}
