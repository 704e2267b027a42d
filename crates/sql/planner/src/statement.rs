//! Whole statements: what is bound and planned of each kind, and the plan around it.

use std::rc::Rc;

use expression::Share;
use syntax::ast;

use crate::bind::{Binder, UserVariableUses};
use crate::explain;
use crate::limits::{check_join, limit_rows};
use crate::needed_privileges::needed_privileges;
use crate::plan::{Action, OutputColumn, Plan};
use crate::query::into_variables;
use crate::{PlanError, not_supported};

impl Binder<'_> {
    /// The plan of a whole statement.
    pub(crate) fn statement(mut self, statement: &ast::Statement) -> Result<Plan, PlanError> {
        self.parameter_count = stdx::to_usize(statement.parameter_count);
        self.user_variables = UserVariableUses::of(statement.span.of(self.source));
        match &statement.kind {
            ast::StatementKind::Query(query) => {
                let into = into_variables(query.into.as_ref())?;
                let (mut bound, _) = self.query(query)?;
                limit_rows(&mut bound.query, query, self.settings.limits);
                check_join(&bound.query, self.settings.limits)?;
                let mut plan = self.finish(Action::Select(Rc::new(bound.query)), bound.columns);
                plan.into_variables = into;
                Ok(plan)
            }
            ast::StatementKind::Insert(insert) => {
                let (action, columns) = self.insert(insert)?;
                Ok(self.finish(action, columns))
            }
            ast::StatementKind::LoadData(load) => {
                let action = self.load_data(load)?;
                Ok(self.finish(action, Vec::new()))
            }
            ast::StatementKind::Update(update) => {
                let action = self.update(update)?;
                Ok(self.finish(action, Vec::new()))
            }
            ast::StatementKind::Delete(delete) => {
                let (action, columns) = self.delete(delete)?;
                Ok(self.finish(action, columns))
            }
            ast::StatementKind::Do(expressions) => {
                let query = self.do_query(expressions)?;
                Ok(self.finish(Action::Do(Rc::new(query)), Vec::new()))
            }
            ast::StatementKind::Explain(explain) => match &**explain {
                ast::Explain::Statement {
                    analyze: false,
                    json: false,
                    statement,
                    ..
                } => {
                    let plan = self.statement(statement)?;
                    Ok(explain::explain(&plan))
                }
                ast::Explain::Statement { .. } => Err(not_supported("ANALYZE and EXPLAIN FORMAT")),
                _ => Err(not_supported("EXPLAIN")),
            },
            _ => Err(not_supported("this statement")),
        }
    }

    fn finish(self, action: Action, columns: Vec<OutputColumn>) -> Plan {
        Plan {
            reads_for_update: self.reads_for_update,
            locks_rows: self.locks_rows,
            privileges: needed_privileges(&action, &self.tables),
            action,
            tables: self.tables,
            slots: self.slots,
            subqueries: self.subqueries,
            functions: self.functions,
            parameter_count: self.parameter_count,
            list_count: self.list_count,
            columns: columns.into(),
            into_variables: Vec::new(),
            warnings: Vec::new(),
            text_checks: self.text_checks.into_inner(),
            user_variables: self.user_variables.into_types(),
            is_for_values: self.is_for_values,
            memory: Share::default(),
        }
    }
}
