//! LOAD DATA: an INSERT of one row whose values are the fields of a line.

use std::collections::BTreeMap;
use std::rc::Rc;

use errcode::{ER_BAD_FIELD_ERROR, ER_FIELD_SPECIFIED_TWICE};
use expression::{Expression, ExpressionKind};
use store::TableDefinition;
use syntax::ast;

use crate::bind::{Binder, Block, Clause, error};
use crate::plan::{Action, Insert, InsertSource, OnDuplicate, SlotShape, ValueRows};
use crate::{PlanError, not_supported};

impl Binder<'_> {
    /// The insert of one line. Parameter n is field n; all have the first of the parameters' types.
    /// Fields that only go into variables are parameters that nothing reads.
    pub(crate) fn load_data(&mut self, load: &ast::LoadData) -> Result<Action, PlanError> {
        if !load.partitions.is_empty() {
            return Err(not_supported("PARTITION"));
        }
        self.blocks.push(Block::default());
        let (table, old_slot) = self.open_table(&load.table, &load.table.name.text)?;
        let definition = self.tables[table].definition.clone();
        let types = definition.columns.iter();
        let types = types.map(|column| column.column_type.clone()).collect();
        let new_slot = self.add_slot(SlotShape::Computed(types));
        let (mut columns, mut values) = self.fields(load, &definition)?;
        self.block().clause = Clause::Values;
        // `SET a = a + 1` reads the value of the field.
        let relation = &mut self.block().scope.relations[0];
        let slot = std::mem::replace(&mut relation.slot, new_slot);
        for assignment in &load.assignments {
            let name = &assignment.column.column.text;
            let Some(column) = definition.column_position(name) else {
                return Err(error(ER_BAD_FIELD_ERROR, &[name, &"SET"]));
            };
            let value = self.assigned(&assignment.value)?;
            if value.as_ref().is_some_and(|it| !it.subqueries().is_empty()) {
                return Err(not_supported("a subquery in LOAD DATA"));
            }
            columns.push(column);
            values.push(value);
        }
        self.block().scope.relations[0].slot = slot;
        self.blocks.pop();
        let is_replace = load.duplicates == Some(ast::LoadDuplicates::Replace);
        let is_ignore = !is_replace && (load.local || load.duplicates.is_some());
        let duplicate = match (is_replace, is_ignore) {
            (true, _) => OnDuplicate::Replace,
            (false, true) => OnDuplicate::Ignore,
            (false, false) => OnDuplicate::Error,
        };
        let defaults = self.defaults(&definition)?;
        Ok(Action::Insert(Rc::new(Insert {
            returning: Vec::new(),
            table,
            new_slot,
            old_slot,
            columns,
            source: InsertSource::Values {
                rows: ValueRows::Expressions(vec![values]),
                dependent: BTreeMap::new(),
            },
            duplicate,
            is_ignore,
            is_load: true,
            defaults,
        })))
    }

    /// The columns that take fields, and the fields. Sets the number of parameters.
    fn fields(
        &mut self,
        load: &ast::LoadData,
        definition: &TableDefinition,
    ) -> Result<(Vec<usize>, Vec<Option<Expression>>), PlanError> {
        let field_type = self.settings.parameter_types.first();
        let field_type = field_type.expect("the session says what type fields are of");
        let mut targets = Vec::new();
        if load.columns.is_empty() {
            let columns = definition.columns.iter().enumerate();
            let visible = columns.filter(|(_, column)| !column.invisible);
            targets.extend(visible.map(|(place, _)| Some(place)));
        }
        for target in &load.columns {
            targets.push(match target {
                ast::IntoTarget::User(name) => {
                    self.user_variables.load(name, field_type.collation);
                    None
                }
                ast::IntoTarget::Slot(_) => None,
                ast::IntoTarget::Local(name) => {
                    let Some(column) = definition.column_position(&name.text) else {
                        return Err(error(ER_BAD_FIELD_ERROR, &[&name.text, &"field list"]));
                    };
                    if targets.contains(&Some(column)) {
                        return Err(error(ER_FIELD_SPECIFIED_TWICE, &[&name.text]));
                    }
                    Some(column)
                }
            });
        }
        self.parameter_count = targets.len();
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        for (number, target) in targets.into_iter().enumerate() {
            if let Some(column) = target {
                let kind = ExpressionKind::Parameter(number);
                columns.push(column);
                values.push(Some(Expression::new(kind, field_type.clone())));
            }
        }
        Ok((columns, values))
    }
}
