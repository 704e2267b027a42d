//! Queries that stand as tables: derived tables, and those that WITH names.

use std::rc::Rc;

use errcode::{ER_DUP_FIELDNAME, ER_VIEW_WRONG_LIST};
use syntax::ast;

use super::{From, Item, Source};
use crate::PlanError;
use crate::bind::{Binder, Relation, RelationColumn, error};
use crate::output::derived_output;
use crate::plan::JoinKind;

impl Binder<'_> {
    pub(super) fn derived_table(
        &mut self,
        query: &ast::Query,
        alias: &str,
        names: &[ast::Ident],
    ) -> Result<From, PlanError> {
        // A derived table sees none of the tables beside it.
        let around = std::mem::take(&mut self.blocks);
        let bound = self.query(query);
        self.blocks = around;
        let (bound, _) = bound?;
        if !names.is_empty() && names.len() != bound.columns.len() {
            return Err(error(ER_VIEW_WRONG_LIST, &[]));
        }
        let slot = self.computed_slot(&bound.query.output);
        let columns: Vec<RelationColumn> = bound
            .columns
            .iter()
            .enumerate()
            .map(|(place, column)| {
                let name = names
                    .get(place)
                    .map_or(&column.name, |name| &name.text)
                    .clone();
                RelationColumn {
                    column_type: column.column_type.clone(),
                    nullable: column.nullable,
                    invisible: false,
                    output: derived_output(column, &name, alias),
                    name,
                }
            })
            .collect();
        for (place, RelationColumn { name, .. }) in columns.iter().enumerate() {
            if columns[..place]
                .iter()
                .any(|other| other.name.eq_ignore_ascii_case(name))
            {
                return Err(error(ER_DUP_FIELDNAME, &[name]));
            }
        }
        self.block().scope.relations.push(Relation {
            alias: alias.to_owned(),
            database: String::new(),
            table: String::new(),
            slot,
            columns,
            is_optional: false,
        });
        let source = Source::Derived {
            slot,
            query: Rc::new(bound.query),
        };
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
}
