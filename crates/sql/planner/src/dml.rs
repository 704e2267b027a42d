//! INSERT, REPLACE, UPDATE, DELETE, and LOAD DATA.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use errcode::{
    ER_BAD_FIELD_ERROR, ER_FIELD_SPECIFIED_TWICE, ER_NO_DEFAULT_FOR_FIELD, ER_UNKNOWN_TABLE,
    ER_WRONG_VALUE_COUNT_ON_ROW,
};
use expression::{ColumnPlace, Expression, ExpressionKind};
use store::{ColumnDefault, ColumnDefinition, LockWait, RowLock, TableDefinition};
use syntax::ast::{self, ExprKind};
use value::{TypeKind, Value};

use crate::bind::{Binder, Block, Clause, error};
use crate::from::From;
use crate::numbered::Numbered;
use crate::plan::{
    Access, Action, Assignment, Delete, Dependent, Finding, Insert, InsertSource, Node,
    OnDuplicate, OutputColumn, SlotShape, Sort, SortKey, Step, Update, UpdateTarget, ValueRows,
};
use crate::{PlanError, not_supported};

mod load;

impl Binder<'_> {
    pub(crate) fn insert(
        &mut self,
        insert: &ast::Insert,
    ) -> Result<(Action, Vec<OutputColumn>), PlanError> {
        if !insert.partitions.is_empty() {
            return Err(not_supported("PARTITION"));
        }
        self.inner_lock = match &insert.source {
            ast::InsertSource::Values(_) => RowLock::Shared,
            ast::InsertSource::Query(_) => RowLock::Source,
        };
        self.blocks.push(Block::default());
        let (table, old_slot) = self.open_table(&insert.table, &insert.table.name.text)?;
        let definition = self.tables[table].definition.clone();
        let types = definition
            .columns
            .iter()
            .map(|column| column.column_type.clone())
            .collect();
        let new_slot = self.add_slot(SlotShape::Computed(types));
        let columns = target_columns(insert, &definition)?;
        let source = match &insert.source {
            ast::InsertSource::Values(rows) => {
                let rows = self.value_rows(rows, &columns, new_slot)?;
                let dependent = self.value_dependents(rows.expressions());
                InsertSource::Values { rows, dependent }
            }
            ast::InsertSource::Query(query) => self.insert_query(query, table, columns.len())?,
        };
        let columns = match &source {
            // `VALUES ()` assigns every column its default.
            InsertSource::Values {
                rows: ValueRows::Expressions(rows),
                ..
            } if rows.iter().all(Vec::is_empty) => Vec::new(),
            _ => columns,
        };
        let duplicate = if insert.is_replace {
            OnDuplicate::Replace
        } else if !insert.on_duplicate.is_empty() {
            self.new_row = Some((new_slot, table));
            let assignments = self.assignments(&insert.on_duplicate, &definition)?;
            self.new_row = None;
            OnDuplicate::Update(assignments)
        } else if insert.ignore {
            OnDuplicate::Ignore
        } else {
            OnDuplicate::Error
        };
        self.block().scope.move_only_relation(new_slot);
        let (returning, described) = self.returning(&insert.returning)?;
        self.blocks.pop();
        let defaults = self.defaults(&definition)?;
        let plan = Insert {
            table,
            new_slot,
            old_slot,
            columns,
            source,
            duplicate,
            is_ignore: insert.ignore,
            is_load: false,
            defaults,
            returning,
        };
        Ok((Action::Insert(Rc::new(plan)), described))
    }

    /// The list of RETURNING, over the tables in scope.
    fn returning(
        &mut self,
        items: &[ast::SelectItem],
    ) -> Result<(Vec<Expression>, Vec<OutputColumn>), PlanError> {
        self.block().clause = Clause::Returning;
        let (returning, columns) = self.select_items(items)?;
        if returning.iter().any(|value| !value.subqueries().is_empty()) {
            return Err(not_supported("a subquery in RETURNING"));
        }
        Ok((returning, columns))
    }

    fn value_rows(
        &mut self,
        rows: &ast::ValueRows,
        columns: &[usize],
        new_slot: usize,
    ) -> Result<ValueRows, PlanError> {
        self.block().clause = Clause::Values;
        let rows = match rows {
            ast::ValueRows::Trees(rows) => rows,
            ast::ValueRows::Constants { values, width } => {
                return self.constant_rows(values, stdx::to_usize(*width), columns.len());
            }
        };
        // A value may read a column that was assigned before it: the new row is in scope.
        let relation = &mut self.block().scope.relations[0];
        let old_slot = std::mem::replace(&mut relation.slot, new_slot);
        let mut bound = Vec::with_capacity(rows.len());
        for (place, row) in rows.iter().enumerate() {
            let is_empty = row.is_empty() && rows[0].is_empty();
            if row.len() != columns.len() && !is_empty {
                return Err(error(ER_WRONG_VALUE_COUNT_ON_ROW, &[&(place + 1)]));
            }
            let mut values = Vec::with_capacity(row.len());
            for expr in row {
                values.push(self.assigned(expr)?);
            }
            bound.push(values);
        }
        self.block().scope.relations[0].slot = old_slot;
        Ok(ValueRows::Expressions(bound))
    }

    /// What must run before a value of VALUES, by its row and its place there. Queries that read no
    /// column of their row run before the first value: they see the tables as they were before all
    /// rows.
    fn value_dependents(
        &self,
        rows: &[Vec<Option<Expression>>],
    ) -> BTreeMap<(usize, usize), Vec<Dependent>> {
        let mut dependents = BTreeMap::new();
        if self.subqueries.is_empty() {
            return dependents;
        }
        let is_of_row = |dependent: &Dependent| self.reads_row(dependent);
        let mut early = Vec::new();
        for (row, values) in rows.iter().enumerate() {
            for (place, value) in values.iter().enumerate() {
                let of_value = self.dependents(value).into_iter();
                let (own, others): (Vec<_>, Vec<_>) = of_value.partition(is_of_row);
                early.extend(others);
                if !own.is_empty() {
                    dependents.insert((row, place), own);
                }
            }
        }
        if !early.is_empty() {
            let first = dependents.entry((0, 0)).or_default();
            early.append(first);
            *first = early;
        }
        dependents
    }

    /// Whether what runs before a value of VALUES, or a condition around it, needs the row so far.
    fn reads_row(&self, dependent: &Dependent) -> bool {
        let is_call = |part: &Expression| matches!(part.kind, ExpressionKind::Stored(_));
        let is_of_row = |number: usize| {
            let subquery = self.subqueries[number].as_ref();
            subquery.is_some_and(|it| it.is_correlated || it.varies)
        };
        let mut conditions = dependent.conditions();
        conditions.any(|it| {
            !self.slots_of(it).is_empty()
                || it.contains(&is_call)
                || it.subqueries().into_iter().any(is_of_row)
        }) || match &dependent.step {
            Step::Subquery(number) => is_of_row(*number),
            Step::Call(_) => true,
        }
    }

    /// The value of an assignment; `None` is `DEFAULT`.
    pub(crate) fn assigned(&mut self, expr: &ast::Expr) -> Result<Option<Expression>, PlanError> {
        match expr.kind {
            ExprKind::Default(None) => Ok(None),
            _ => self.term(expr).map(Some),
        }
    }

    fn insert_query(
        &mut self,
        query: &ast::Query,
        table: usize,
        column_count: usize,
    ) -> Result<InsertSource, PlanError> {
        // The rows that are read are locked, so that what is written stays consistent with them.
        let around = std::mem::take(&mut self.blocks);
        let bound = self.with_inner_lock(|binder| binder.query(query));
        self.blocks = around;
        let (bound, _) = bound?;
        if bound.columns.len() != column_count {
            return Err(error(ER_WRONG_VALUE_COUNT_ON_ROW, &[&1]));
        }
        let id = self.tables[table].definition.id;
        let is_kept = self
            .tables
            .iter()
            .enumerate()
            .any(|(place, used)| place != table && used.definition.id == id);
        Ok(InsertSource::Query {
            query: Rc::new(bound.query),
            is_kept,
        })
    }

    fn assignments(
        &mut self,
        assignments: &[ast::Assignment],
        definition: &TableDefinition,
    ) -> Result<Vec<Assignment>, PlanError> {
        self.block().clause = Clause::DuplicateUpdate;
        let mut bound = Vec::with_capacity(assignments.len());
        for assignment in assignments {
            let name = &assignment.column.column.text;
            let Some(column) = definition.column_position(name) else {
                return Err(error(ER_BAD_FIELD_ERROR, &[name, &"UPDATE"]));
            };
            let value = self.assigned(&assignment.value)?;
            if value
                .as_ref()
                .is_some_and(|value| !value.subqueries().is_empty())
            {
                return Err(not_supported("a subquery in ON DUPLICATE KEY UPDATE"));
            }
            bound.push(Assignment::new(column, value));
        }
        mark_reads(self.block().scope.relations[0].slot, &mut bound);
        Ok(bound)
    }

    /// What each column without a value gets.
    pub(crate) fn defaults(
        &mut self,
        definition: &TableDefinition,
    ) -> Result<Vec<Option<Expression>>, PlanError> {
        let mut defaults = Vec::with_capacity(definition.columns.len());
        for column in &definition.columns {
            defaults.push(match &column.default {
                ColumnDefault::None => None,
                ColumnDefault::Value(value) => Some(stored_default(value, column)),
                ColumnDefault::Now => {
                    let column_type = column.column_type.clone();
                    let kind = ExpressionKind::Now;
                    Some(Expression {
                        kind,
                        column_type,
                        nullable: false,
                    })
                }
                ColumnDefault::Expression(text) => Some(crate::default::computed(
                    text,
                    self.names,
                    self.settings.today,
                )?),
            });
        }
        Ok(defaults)
    }

    pub(crate) fn update(&mut self, update: &ast::Update) -> Result<Action, PlanError> {
        if update.portion.is_some() {
            return Err(not_supported("FOR PORTION OF"));
        }
        self.reads_whole_rows = true;
        self.lock = (RowLock::Change, LockWait::Wait);
        self.inner_lock = match update.tables.as_slice() {
            [ast::TableRef::Table(_)] => RowLock::Source,
            _ => RowLock::Shared,
        };
        self.blocks.push(Block::default());
        let from = self.bind_from(&update.tables)?;
        let (tables, are_plain) = from.tables();
        let from_count = from.items.len();
        if tables.len() == 1 {
            self.lock.1 = LockWait::SemiConsistent;
        }
        let mut targets: Vec<UpdateTarget> = Vec::new();
        self.block().clause = Clause::Set;
        for assignment in &update.assignments {
            let target = self.column(&assignment.column)?;
            let place = target.as_column().expect("a column was bound");
            let Some(&(table, slot)) = tables.iter().find(|(_, slot)| *slot == place.slot) else {
                return Err(self.not_updatable(place));
            };
            let value = self.assigned(&assignment.value)?;
            if value.is_none() {
                let definition = &self.tables[table].definition;
                check_default(&definition.columns[place.column])?;
            }
            let target = self.target_of((table, slot), &mut targets)?;
            let assignment = Assignment::new(place.column, value);
            target.assignments.push(assignment);
        }
        for target in &mut targets {
            mark_reads(target.slot, &mut target.assignments);
        }
        let conditions = self.where_clause(update.condition.as_ref())?;
        let order = self.write_order(&update.order_by)?;
        let order_column = order_column(&order, targets[0].slot);
        let limit = update.limit.as_ref();
        let (mut input, has_set) = self.write_input(from, conditions, order, limit)?;
        crate::limits::check_write(&input, limit.is_some(), self.settings.limits)?;
        self.blocks.pop();
        let is_kept = targets.len() > 1 || tables.len() > 1 || has_set || {
            let target = &targets[0];
            let definition = self.tables[target.table].definition.clone();
            moves_rows(&input, target, &definition)
        };
        let finding = match (is_kept, are_plain) {
            (false, true) => Finding::OneByOne,
            (true, true) => Finding::AllFirst,
            (_, false) => Finding::Repeated,
        };
        for target in &mut targets {
            self.find_dependents(&mut target.assignments, from_count);
        }
        let is_late = self.order_late(&mut targets, &tables) || finding == Finding::Repeated;
        if finding == Finding::OneByOne && !is_late && targets.iter().all(is_repeatable) {
            claim_row(&mut input);
        }
        Ok(Action::Update(Rc::new(Update {
            input,
            is_late,
            targets,
            finding,
            is_ordered: !update.order_by.is_empty(),
            order_column,
            is_ignore: update.ignore,
            kept: tables,
        })))
    }

    /// Error 1288 for a column of a query in FROM.
    fn not_updatable(&mut self, place: ColumnPlace) -> PlanError {
        let described = self.block().scope.described(place);
        let name = described.map_or("", |(relation, _)| relation.alias.as_str());
        error(errcode::ER_NON_UPDATABLE_TABLE, &[&name, &"UPDATE"])
    }

    /// Finds what runs before each assignment. With several tables all of it reads the row as it
    /// was found, as in MariaDB, so it runs before the first. A condition around a subquery may
    /// read what is assigned, so there it guards nothing.
    fn find_dependents(&self, assignments: &mut [Assignment], from_count: usize) {
        if from_count == 1 {
            for assignment in assignments {
                assignment.dependent = self.dependents(&assignment.value);
            }
            return;
        }
        let values = assignments.iter().filter_map(|it| it.value.as_ref());
        let mut dependent = self.dependents(values);
        for it in &mut dependent {
            if matches!(it.step, Step::Subquery(_)) {
                it.innermost = None;
            }
        }
        if let Some(first) = assignments.first_mut() {
            first.dependent = dependent;
        }
    }

    /// The target at a slot of FROM; appends one if `targets` lacks it.
    fn target_of<'t>(
        &mut self,
        (table, slot): (usize, usize),
        targets: &'t mut Vec<UpdateTarget>,
    ) -> Result<&'t mut UpdateTarget, PlanError> {
        let known = targets.iter().position(|target| target.slot == slot);
        let position = match known {
            Some(position) => position,
            None => {
                let definition = self.tables[table].definition.clone();
                targets.push(UpdateTarget {
                    table,
                    slot,
                    assignments: Vec::new(),
                    defaults: self.defaults(&definition)?,
                });
                targets.len() - 1
            }
        };
        Ok(&mut targets[position])
    }

    /// True if all values must be computed before anything is written: several tables are changed,
    /// or one that is also read under another name, in the join or a subquery. Then the targets are
    /// written in the order of `tables`, (table, slot).
    fn order_late(&self, targets: &mut [UpdateTarget], tables: &[(usize, usize)]) -> bool {
        let mut places = targets.iter().map(|target| target.table);
        let is_late = targets.len() > 1 || places.any(|table| self.is_read_elsewhere(table));
        if is_late {
            let place = |slot| tables.iter().position(|&(_, other)| other == slot);
            targets.sort_by_key(|target| place(target.slot));
        }
        is_late
    }

    pub(crate) fn delete(
        &mut self,
        delete: &ast::Delete,
    ) -> Result<(Action, Vec<OutputColumn>), PlanError> {
        if delete.period.is_some() {
            return Err(not_supported("DELETE HISTORY"));
        }
        self.reads_whole_rows = true;
        self.lock = (RowLock::Change, LockWait::Wait);
        self.inner_lock = RowLock::Shared;
        self.blocks.push(Block::default());
        let from = self.bind_from(&delete.from)?;
        let (tables, are_plain) = from.tables();
        let targets = if delete.targets.is_empty() {
            tables.clone()
        } else {
            self.delete_targets(&delete.targets, &tables)?
        };
        let conditions = self.where_clause(delete.condition.as_ref())?;
        let order = self.write_order(&delete.order_by)?;
        let order_column = targets
            .first()
            .and_then(|&(_, slot)| order_column(&order, slot));
        let limit = delete.limit.as_ref();
        let (mut input, has_set) = self.write_input(from, conditions, order, limit)?;
        let is_limited = delete.limit.is_some() && delete.condition.is_some();
        crate::limits::check_write(&input, is_limited, self.settings.limits)?;
        let (returning, described) = self.returning(&delete.returning)?;
        self.blocks.pop();
        let mut places = targets.iter().map(|&(table, _)| table);
        let is_kept = tables.len() > 1
            || !are_plain
            || has_set
            || places.any(|table| self.is_read_elsewhere(table));
        let finding = match is_kept {
            true => Finding::AllFirst,
            false => Finding::OneByOne,
        };
        if finding == Finding::OneByOne {
            claim_row(&mut input);
        }
        let plan = Delete {
            input,
            targets,
            finding,
            order_column,
            returning,
        };
        Ok((Action::Delete(Rc::new(plan)), described))
    }

    /// Whether a table that is changed is also read under another name: in a join or a subquery.
    fn is_read_elsewhere(&self, target: usize) -> bool {
        let id = self.tables[target].definition.id;
        let mut others = self.tables.iter().enumerate();
        others.any(|(table, other)| table != target && other.definition.id == id)
    }

    fn delete_targets(
        &mut self,
        names: &[ast::ObjectName],
        tables: &[(usize, usize)],
    ) -> Result<Vec<(usize, usize)>, PlanError> {
        let mut targets = Vec::with_capacity(names.len());
        for name in names {
            let relations = &self.block().scope.relations;
            let found = relations.iter().find(|relation| {
                relation.alias == name.name.text
                    && name
                        .schema
                        .as_ref()
                        .is_none_or(|s| s.text == relation.database)
            });
            let slot = found.map(|relation| relation.slot);
            match tables
                .iter()
                .find(|(_, table_slot)| Some(*table_slot) == slot)
            {
                Some(target) => targets.push(*target),
                None => {
                    let clause = "MULTI DELETE";
                    return Err(error(ER_UNKNOWN_TABLE, &[&name.name.text, &clause]));
                }
            }
        }
        Ok(targets)
    }

    fn write_order(
        &mut self,
        order_by: &[ast::OrderItem],
    ) -> Result<Vec<(Expression, bool)>, PlanError> {
        self.block().clause = Clause::Order;
        let mut order = Vec::with_capacity(order_by.len());
        for item in order_by {
            order.push((self.term(&item.expr)?, item.descending));
        }
        Ok(order)
    }

    /// The rows that an UPDATE or DELETE changes, with its order and limit. Also returns whether a
    /// set is read first: it would have been kept before the first change, so the rows are.
    fn write_input(
        &mut self,
        mut from: From,
        mut conditions: Vec<Expression>,
        order: Vec<(Expression, bool)>,
        limit: Option<&ast::Limit>,
    ) -> Result<(Node, bool), PlanError> {
        let (tables, are_plain) = from.tables();
        let is_single = tables.len() == 1 && are_plain;
        self.simplify_outer_joins(&mut from, &mut conditions);
        let kept_slots = from.slots();
        let limit = self.limit(limit, false)?;
        // Rows of a join are all found before the first change, so they are sorted.
        let wanted = self.wanted_order(&order, limit.as_ref());
        let wanted = wanted.filter(|wanted| is_single || wanted.columns.is_empty());
        let has_set =
            is_single && self.begin_with_set(&mut from, &mut conditions, wanted.as_ref())?;
        let (node, is_ordered) = self.plan_from(from, conditions, wanted.as_ref())?;
        if order.is_empty() || (wanted.is_some() && is_ordered) {
            let node = match limit {
                Some(limit) => Node::Limit(Box::new(node), Rc::new(limit)),
                None => node,
            };
            return Ok((node, has_set));
        }
        let mut kept = Numbered::default();
        let keys = order
            .iter()
            .map(|(key, descending)| SortKey {
                kept: kept.place_of(key),
                descending: *descending,
            })
            .collect();
        let kept = kept.into_list();
        let slot = self.computed_slot(&kept);
        let dependent = self.dependents(&kept);
        let sort = Sort {
            slot,
            kept,
            kept_slots,
            keys,
            limit,
            dependent,
        };
        Ok((Node::Sort(Box::new(node), Rc::new(sort)), has_set))
    }
}

/// Marks the assignments that read what earlier assignments to the row have changed.
fn mark_reads(slot: usize, assignments: &mut [Assignment]) {
    let mut changed = BTreeSet::new();
    for assignment in assignments {
        if let Some(value) = &assignment.value {
            assignment.reads_assigned = value.contains(&|part| {
                matches!(&part.kind, ExpressionKind::Column(place)
                    if place.slot == slot && changed.contains(&place.column))
            });
        }
        changed.insert(assignment.column);
    }
}

/// The columns for which an INSERT has values.
fn target_columns(
    insert: &ast::Insert,
    definition: &TableDefinition,
) -> Result<Vec<usize>, PlanError> {
    if !insert.has_columns && insert.columns.is_empty() {
        let visible = definition
            .columns
            .iter()
            .enumerate()
            .filter(|(_, c)| !c.invisible);
        return Ok(visible.map(|(place, _)| place).collect());
    }
    let mut columns = Vec::with_capacity(insert.columns.len());
    for name in &insert.columns {
        let Some(column) = definition.column_position(&name.text) else {
            return Err(error(ER_BAD_FIELD_ERROR, &[&name.text, &"INSERT INTO"]));
        };
        if columns.contains(&column) {
            return Err(error(ER_FIELD_SPECIFIED_TWICE, &[&name.text]));
        }
        columns.push(column);
    }
    Ok(columns)
}

/// A default that is stored unchanged: a TIMESTAMP is already UTC there.
fn stored_default(value: &Value, column: &ColumnDefinition) -> Expression {
    let constant = Expression::constant(value.clone(), column.column_type.clone());
    if column.column_type.kind == TypeKind::Timestamp && !value.is_null() {
        let nullable = constant.nullable;
        return Expression {
            kind: ExpressionKind::Local(Box::new(constant)),
            column_type: column.column_type.clone(),
            nullable,
        };
    }
    constant
}

/// True if an assignment changes a column that the scan reads by, so that it could meet a row
/// again.
fn moves_rows(input: &Node, target: &UpdateTarget, definition: &TableDefinition) -> bool {
    let scan = match input {
        Node::Scan(scan) => scan,
        Node::Filter(input, _) | Node::Limit(input, _) => {
            return moves_rows(input, target, definition);
        }
        // A sort has read all rows before it returns the first.
        Node::Sort(..) | Node::Nothing | Node::One => return false,
        _ => return true,
    };
    if matches!(scan.access, Access::Unique(_)) {
        return false;
    }
    let is_assigned = |column: usize| {
        let touched = definition.columns[column].on_update_now;
        touched
            || target
                .assignments
                .iter()
                .any(|assignment| assignment.column == column)
    };
    let clustered = definition.clustered_key();
    let Some(index) = scan.index.or(clustered.map(|_| 0)) else {
        return false;
    };
    let mut parts = definition.indexes[index].parts.iter();
    let moves_in_index = parts.any(|part| is_assigned(part.column));
    let moves_rows =
        clustered.is_some_and(|key| key.parts.iter().any(|part| is_assigned(part.column)));
    moves_in_index || moves_rows
}

/// Whether the target's new row may be computed twice: nothing else shows that it was.
fn is_repeatable(target: &UpdateTarget) -> bool {
    if target.assignments.iter().any(|it| !it.dependent.is_empty()) {
        return false;
    }
    let values = target.assignments.iter().map(|it| it.value.as_ref());
    let mut values = values.chain(target.defaults.iter().map(Option::as_ref));
    values.all(|value| value.is_none_or(|value| !value.is_volatile() && !value.acts()))
}

/// Lets a scan claim its row in place of locking it, if it names one row of the store's own order
/// and nothing above it drops rows.
fn claim_row(input: &mut Node) {
    let Node::Scan(scan) = input else {
        return;
    };
    let scan = Rc::get_mut(scan).expect("the plan is not shared yet");
    if matches!(scan.access, Access::Unique(_)) && scan.dependent.is_empty() {
        scan.lock = RowLock::Claim;
    }
}

/// A column of the slot that ORDER BY reads.
fn order_column(order: &[(Expression, bool)], slot: usize) -> Option<usize> {
    let mut terms = order.iter();
    terms.find_map(|(term, _)| crate::needed_privileges::column_read(term, slot))
}

/// Error 1364 if UPDATE sets a column to a default that it lacks, in every sql_mode.
fn check_default(column: &ColumnDefinition) -> Result<(), PlanError> {
    let has_default = column.default != ColumnDefault::None;
    if has_default || column.nullable || column.auto_increment {
        return Ok(());
    }
    Err(error(ER_NO_DEFAULT_FOR_FIELD, &[&column.name]))
}
