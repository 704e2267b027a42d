//! [`Scope`]: the tables in scope, and the meaning of a column's name among them.

use std::collections::{BTreeMap, BTreeSet};

use errcode::{ER_BAD_FIELD_ERROR, ER_ILLEGAL_REFERENCE, ER_NON_UNIQ_ERROR};
use expression::{ColumnPlace, Expression, ExpressionKind};
use syntax::ast;
use value::{ColumnType, TypeKind};

use super::{Binder, Clause, Reader, error};
use crate::PlanError;
use crate::numbered::NameIndex;
use crate::plan::{KeyFlag, OutputColumn};

/// The most tables that queries in FROM bring into the block around them, beside the relations of
/// its text: a join's tables are levels of a tree that is run by recursion.
pub(crate) const MERGED_COUNT_MAX: usize = 16;

/// The relations of a query block, in the order of the text.
#[derive(Debug, Default, Clone)]
pub(crate) struct Scope {
    pub(crate) relations: Vec<Relation>,
    /// Earlier relations are out of scope: within ON, and between the parts of a list.
    pub(crate) visible_from: usize,
    /// What `*` shows, in its order.
    shown: Vec<ColumnPlace>,
    /// Columns that NATURAL and USING have merged into others and hidden.
    hidden: BTreeSet<ColumnPlace>,
}

/// A table, or something used as one.
#[derive(Debug, Clone)]
pub(crate) struct Relation {
    /// Its name in the statement.
    pub(crate) alias: String,
    /// Its database, empty for a derived table.
    pub(crate) database: String,
    /// Its own name, empty for a derived table.
    pub(crate) table: String,
    /// The slot of its row. That of a merged query is never filled: its names are found by it.
    pub(crate) slot: usize,
    pub(crate) columns: Vec<RelationColumn>,
    /// What it stands for, if it is a query that was merged into the block.
    merged: Option<Merged>,
    by_name: NameIndex,
    /// On the inner side of an outer join, so every column can be NULL.
    pub(crate) is_optional: bool,
}

/// What a query in FROM stands for that was merged into the block.
#[derive(Debug, Clone)]
struct Merged {
    /// The slots of its tables.
    slots: Vec<usize>,
    /// Its columns: those of its tables.
    columns: Vec<Expression>,
    /// The number of each of them.
    numbers: BTreeMap<ColumnPlace, usize>,
}

/// A column of a relation.
#[derive(Debug, Clone)]
pub(crate) struct RelationColumn {
    pub(crate) name: String,
    pub(crate) column_type: ColumnType,
    pub(crate) nullable: bool,
    pub(crate) invisible: bool,
    /// Its description for a client.
    pub(crate) output: OutputColumn,
}

impl Relation {
    /// A relation that is not on the inner side of an outer join.
    pub(crate) fn new(
        alias: &str,
        (database, table): (String, String),
        slot: usize,
        columns: Vec<RelationColumn>,
    ) -> Self {
        let by_name = NameIndex::new(columns.iter().map(|column| column.name.as_str()));
        Self {
            alias: alias.to_owned(),
            database,
            table,
            slot,
            columns,
            merged: None,
            by_name,
            is_optional: false,
        }
    }

    /// Makes it another name of these columns of tables in these slots.
    pub(crate) fn stand_for(&mut self, slots: Vec<usize>, columns: Vec<Expression>) {
        let places = columns.iter().filter_map(Expression::as_column);
        let numbers: BTreeMap<_, _> = places.zip(0..).collect();
        assert_eq!(numbers.len(), self.columns.len(), "columns are different");
        self.merged = Some(Merged {
            slots,
            columns,
            numbers,
        });
    }

    /// The slots of its tables.
    fn slots(&self) -> &[usize] {
        match &self.merged {
            Some(merged) => &merged.slots,
            None => std::slice::from_ref(&self.slot),
        }
    }

    /// The column at a place.
    fn column_at(&self, place: ColumnPlace) -> Option<&RelationColumn> {
        let Some(merged) = &self.merged else {
            return self
                .columns
                .get(place.column)
                .filter(|_| place.slot == self.slot);
        };
        merged.numbers.get(&place).map(|it| &self.columns[*it])
    }

    /// The position of the column with that name; the first of several.
    pub(crate) fn column_named(&self, name: &str) -> Option<usize> {
        let names = self.columns.iter().map(|column| column.name.as_str());
        self.by_name.find(name, names)
    }

    /// The column as an expression.
    pub(crate) fn expression(&self, column: usize) -> Expression {
        let place = ColumnPlace {
            slot: self.slot,
            column,
        };
        if let Some(merged) = &self.merged {
            return match self.is_optional {
                true => optional(&merged.columns[column]),
                false => merged.columns[column].clone(),
            };
        }
        let described = &self.columns[column];
        let nullable = described.nullable || self.is_optional;
        let expression = Expression::column(place, described.column_type.clone(), nullable);
        let is_stored = !self.table.is_empty();
        if described.column_type.kind == TypeKind::Timestamp && is_stored {
            return Expression {
                column_type: described.column_type.clone(),
                nullable,
                kind: ExpressionKind::Local(Box::new(expression)),
            };
        }
        expression
    }
}

/// A column on the inner side of an outer join.
fn optional(column: &Expression) -> Expression {
    let mut optional = column.clone();
    optional.nullable = true;
    if let ExpressionKind::Local(stored) = &mut optional.kind {
        stored.nullable = true;
    }
    optional
}

/// Select items by name.
#[derive(Debug, Default, Clone)]
pub(crate) struct Aliases {
    list: Vec<(String, Expression)>,
    /// Of the names that were there when one was last looked up.
    by_name: NameIndex,
}

impl Aliases {
    /// Of this list.
    pub(crate) fn new(list: impl Iterator<Item = (String, Expression)>) -> Self {
        Self {
            list: list.collect(),
            by_name: NameIndex::default(),
        }
    }

    /// Appends these.
    pub(crate) fn extend(&mut self, list: impl Iterator<Item = (String, Expression)>) {
        self.list.extend(list);
    }

    /// The expression with this name.
    pub(crate) fn find(&mut self, name: &str) -> Option<&Expression> {
        let Self { list, by_name } = self;
        let names = || list.iter().map(|(alias, _)| alias.as_str());
        by_name.extend(names());
        let place = by_name.find(name, names())?;
        Some(&list[place].1)
    }
}

impl Scope {
    /// Adds a relation to the scope.
    pub(crate) fn add(&mut self, relation: Relation) {
        let slot = relation.slot;
        let columns = relation.columns.iter().enumerate();
        let visible = columns.filter(|(_, column)| !column.invisible);
        self.shown
            .extend(visible.map(|(column, _)| ColumnPlace { slot, column }));
        self.relations.push(relation);
    }

    /// Moves the row of the only relation to another slot.
    pub(crate) fn move_only_relation(&mut self, slot: usize) {
        for relation in &mut self.relations {
            relation.slot = slot;
        }
        for place in &mut self.shown {
            place.slot = slot;
        }
    }

    /// What `*` shows.
    pub(crate) fn shown(&self) -> &[ColumnPlace] {
        &self.shown
    }

    /// Merges the columns of each pair; the second is hidden. From `start` on, `*` then shows the
    /// merged columns, then the others of the side whose columns stay visible, then those of the
    /// other side. The left side ends at `middle`.
    pub(crate) fn merge(
        &mut self,
        (start, middle): (usize, usize),
        pairs: &[(ColumnPlace, ColumnPlace)],
        is_right: bool,
    ) {
        self.hidden.extend(pairs.iter().map(|(_, hidden)| *hidden));
        let right = self.shown.split_off(middle);
        let left = self.shown.split_off(start);
        let (first, second) = if is_right {
            (right, left)
        } else {
            (left, right)
        };
        let seen: BTreeSet<ColumnPlace> = pairs.iter().map(|(seen, _)| *seen).collect();
        let (merged, others): (Vec<_>, Vec<_>) =
            first.into_iter().partition(|place| seen.contains(place));
        let hidden = &self.hidden;
        let second = second.into_iter().filter(|place| !hidden.contains(place));
        self.shown
            .extend(merged.into_iter().chain(others).chain(second));
    }

    /// True if a merged column hides this one.
    pub(crate) fn is_hidden(&self, place: ColumnPlace) -> bool {
        self.hidden.contains(&place)
    }

    /// The place of a name: (relation, column). `None` if this scope lacks it.
    fn find(&self, name: &ast::ColumnName) -> Result<Option<(usize, usize)>, ()> {
        let mut found = None;
        let relations = self.relations.iter().enumerate();
        for (relation_index, relation) in relations.skip(self.visible_from) {
            if let Some(table) = &name.table
                && relation.alias != table.text
            {
                continue;
            }
            if let Some(schema) = &name.schema
                && relation.database != schema.text
            {
                continue;
            }
            let Some(column) = relation.column_named(&name.column.text) else {
                continue;
            };
            let place = ColumnPlace {
                slot: relation.slot,
                column,
            };
            if name.table.is_none() && self.hidden.contains(&place) {
                continue;
            }
            if found.is_some() {
                return Err(());
            }
            found = Some((relation_index, column));
        }
        Ok(found)
    }

    /// The slots of the relations.
    pub(crate) fn slots(&self) -> Vec<usize> {
        let relations = self.relations.iter();
        relations.flat_map(Relation::slots).copied().collect()
    }

    /// How many tables merged queries have brought.
    pub(crate) fn merged_count(&self) -> usize {
        let merged = self.relations.iter().filter_map(|it| it.merged.as_ref());
        merged.map(|merged| merged.slots.len()).sum()
    }

    /// The column of a place.
    pub(crate) fn described(&self, place: ColumnPlace) -> Option<(&Relation, &RelationColumn)> {
        let mut relations = self.relations.iter();
        relations.find_map(|relation| Some((relation, relation.column_at(place)?)))
    }
}

impl Binder<'_> {
    /// The column that a name means, in the current block or an outer one.
    pub(crate) fn column(&mut self, name: &ast::ColumnName) -> Result<Expression, PlanError> {
        let clause = self.block().clause;
        for depth in (0..self.blocks.len()).rev() {
            let found = self.blocks[depth].scope.find(name);
            let Ok(found) = found else {
                return Err(error(ER_NON_UNIQ_ERROR, &[name, &clause.text()]));
            };
            let expression = match found {
                Some((relation, column)) => {
                    let relation = &self.blocks[depth].scope.relations[relation];
                    let expression = relation.expression(column);
                    let is_own = depth + 1 == self.blocks.len();
                    self.note_reader(
                        &expression,
                        match clause {
                            Clause::Where if is_own => Reader::OwnWhere,
                            _ => Reader::Other,
                        },
                    );
                    expression
                }
                None => match self.outer_alias(depth, name)? {
                    Some(expression) => expression,
                    None => continue,
                },
            };
            self.note_outer(&expression, depth);
            return Ok(expression);
        }
        Err(error(ER_BAD_FIELD_ERROR, &[name, &clause.text()]))
    }

    /// Records that the blocks within that one read what the expression does.
    fn note_outer(&mut self, expression: &Expression, depth: usize) {
        if depth + 1 == self.blocks.len() {
            return;
        }
        let slots = self.slots_of(expression);
        for block in &mut self.blocks[depth + 1..] {
            for slot in &slots {
                if !block.outer_slots.contains(slot) {
                    block.outer_slots.push(*slot);
                }
            }
        }
    }

    /// The select item of that name of an outer block. A query in its select list sees the items
    /// before it, one in GROUP BY, HAVING or ORDER BY sees all.
    fn outer_alias(
        &mut self,
        depth: usize,
        name: &ast::ColumnName,
    ) -> Result<Option<Expression>, PlanError> {
        let is_plain = name.table.is_none() && name.schema.is_none();
        let sees_items = matches!(
            self.blocks[depth].clause,
            Clause::Fields | Clause::Group | Clause::Having | Clause::Order
        );
        let is_outer = depth + 1 < self.blocks.len();
        if !is_plain || !sees_items || !is_outer {
            return Ok(None);
        }
        let Some(item) = self.blocks[depth].aliases.find(&name.column.text).cloned() else {
            return Ok(None);
        };
        if item.contains(&|part| matches!(part.kind, ExpressionKind::Aggregate(_))) {
            let why = "reference to group function";
            return Err(error(ER_ILLEGAL_REFERENCE, &[name, &why]));
        }
        if !self.varies(&item) {
            return Ok(Some(item));
        }
        self.has_varied = true;
        Ok(Some(self.once_a_run(&item)))
    }

    /// Records that a column is read.
    pub(crate) fn note_used(&mut self, expression: &Expression) {
        self.note_reader(expression, Reader::Other);
    }

    fn note_reader(&mut self, expression: &Expression, reader: Reader) {
        if let Some(place) = expression.as_column() {
            let known = self.used_columns.entry(place).or_insert(reader);
            *known = reader.max(*known);
        }
    }

    /// True if the current block has a column of this name.
    pub(crate) fn has_column(&mut self, name: &ast::ColumnName) -> bool {
        !matches!(self.block().scope.find(name), Ok(None))
    }
}

/// The description of a column that belongs to no table.
pub(crate) fn plain_output(name: String, column_type: ColumnType, nullable: bool) -> OutputColumn {
    OutputColumn {
        name,
        original_name: String::new(),
        table: String::new(),
        original_table: String::new(),
        database: String::new(),
        column_type,
        nullable,
        key: KeyFlag::None,
        auto_increment: false,
        no_default: false,
        on_update_now: false,
        is_derived: false,
        is_json: false,
    }
}
