//! ALTER TABLE: from one definition to another, with or without rewriting the rows.

use std::rc::Rc;

use catalog::Privilege;
use catalog::information_schema::default_text;
use errcode::{ClientError, ER_DUP_FIELDNAME, ER_DUP_KEYNAME};
use store::{ColumnDefault, ColumnDefinition, Store, StoreError, TableDefinition, TableName};
use syntax::ast::{self, ObjectName, StatementKind, TableOption};
use value::{Level, TypeKind, Value};

use crate::connection::reply::Stop;
use crate::connection::session::Session;
use crate::schema::alter_plan::AlterPlan;
use crate::schema::definition::{
    add_index, no_such_table, own_indexes, table_collation, table_exists,
};
use crate::statement::statement_run::Part;
use crate::variables::system::NewValue;
use crate::worker::parsed::Parsed;
use syntax::print::quoted_name;

impl Session {
    /// ALTER TABLE: the new definition is derived from the old one step by step. If the rows need
    /// no change they are left alone; else they are copied into a new table that replaces the old
    /// one. The account must have the privilege `needed`.
    pub(crate) async fn alter(
        &mut self,
        name: &ObjectName,
        actions: &[ast::AlterAction],
        needed: Privilege,
        parsed: &Parsed,
    ) -> Result<(), Stop> {
        let (is_ignoring, is_optional) = match &parsed.statement.kind {
            StatementKind::AlterTable(alter) => (alter.ignore, alter.if_exists),
            _ => (false, false),
        };
        let known = match self.usable_table(name) {
            Err(missing) if is_optional && missing.code == errcode::ER_NO_SUCH_TABLE => {
                self.note(missing.code, missing.message);
                return Ok(());
            }
            table => table?,
        };
        let name = known.name.clone();
        self.check_table_privilege(needed, &name)?;
        self.check_may_define(&name)?;
        for action in actions {
            if let ast::AlterAction::RenameTable(to) = action {
                self.check_may_rename(&name, &self.unchecked_name(to)?)?;
            }
        }
        // Errors of the current definition are reported before any wait. Notes of this trial are
        // dropped; the steps that count make them again.
        self.altered(&known, actions, parsed).await?;
        self.state.clear_diagnostics();
        let _database = self.hold_database(&name.database).await?;
        let Some((old, _hold)) = self.change_existing(&name).await? else {
            return Err(no_such_table(&name).into());
        };
        let mut changed = self.altered(&old, actions, parsed).await?;
        let target = &changed.definition.name;
        let mut _target = None;
        if target.database != old.name.database {
            _target = Some(self.hold_database(&target.database).await?);
        }
        if *target != old.name && self.existing(target).is_some() {
            return Err(table_exists(target).into());
        }
        let store = self.store();
        if let Some(next) = &mut changed.auto_increment {
            *next = (*next).max(self.number_after_rows(&old).await?);
        }
        changed.is_ignoring = is_ignoring;
        changed.needs_copy |= is_ignoring && changed.definition != *old;
        changed.check_asked(&old)?;
        if changed.needs_copy {
            return self.copy_table(&old, &changed).await;
        }
        if changed.definition != *old || changed.auto_increment.is_some() {
            let name = changed.definition.name.clone();
            // Its name and its counter change together with the rest, or nothing changes.
            let altering = store.alter_table(changed.definition.clone(), changed.auto_increment);
            match altering.await {
                // Only the key is known there. Copying the rows makes the proper message.
                Err(StoreError::DuplicateKey { .. }) => {
                    return self.copy_table(&old, &changed).await;
                }
                Err(StoreError::TableExists) => return Err(table_exists(&name).into()),
                outcome => outcome?,
            }
            if name != old.name {
                self.locked.forget_renamed(old.id);
            }
        }
        Ok(())
    }

    /// The definition after the actions.
    async fn altered(
        &mut self,
        old: &TableDefinition,
        actions: &[ast::AlterAction],
        parsed: &Parsed,
    ) -> Result<AlterPlan, Stop> {
        let mut changed = {
            let variables = self.state.variables.borrow();
            AlterPlan::new(old, variables.settings().text("alter_algorithm"))
        };
        // Indexes are dropped, and the remaining ones renamed, before any are added.
        let is_dropping = |action: &&ast::AlterAction| {
            use ast::AlterAction::{DropConstraint, DropIndex, DropPrimaryKey};
            matches!(
                action,
                DropIndex { .. } | DropPrimaryKey | DropConstraint { .. }
            )
        };
        for action in actions.iter().filter(is_dropping) {
            changed.apply(action)?;
        }
        changed.rename_indexes(actions.iter().filter_map(|action| match action {
            ast::AlterAction::RenameIndex(renaming) => Some(renaming),
            _ => None,
        }))?;
        for action in actions.iter().filter(|action| !is_dropping(action)) {
            self.alter_step(action, &mut changed, parsed).await?;
        }
        changed.check_cut()?;
        // CREATE OR REPLACE INDEX drops without a note.
        let is_told = !matches!(parsed.statement.kind, StatementKind::CreateIndex(_));
        for note in changed
            .notes
            .drain(..)
            .filter(|note| is_told || note.code == ER_DUP_KEYNAME)
        {
            self.tell(Level::Note, note);
        }
        self.finish(&mut changed.definition)?;
        changed.choose_clustered_key(old);
        for action in actions {
            if let ast::AlterAction::OrderBy(order) = action
                && let Some(warning) = changed.order_rows(old, order)?
            {
                self.tell(Level::Warning, warning);
            }
        }
        Ok(changed)
    }

    /// From here on zeros are ordinary values, until the variables are restored.
    fn keep_zeros(&self) -> Result<(), ClientError> {
        let mode = Rc::clone(&self.state.variables.borrow().active().sql_mode);
        let words = [&*mode, "NO_AUTO_VALUE_ON_ZERO"].join(",");
        let words = NewValue::Text(words.trim_start_matches(',').to_owned());
        self.set_own_variable("sql_mode", &words)
    }

    /// The first number above those of the rows in their AUTO_INCREMENT column.
    async fn number_after_rows(&mut self, table: &TableDefinition) -> Result<u64, Stop> {
        let Some(column) = table.columns.iter().find(|column| column.auto_increment) else {
            return Ok(1);
        };
        let text = format!(
            "SELECT CAST(GREATEST(MAX({}), 0) AS UNSIGNED) FROM {}.{}",
            quoted_name(&column.name),
            quoted_name(&table.name.database),
            quoted_name(&table.name.table)
        );
        let select = self.parse(text.as_bytes())?;
        Ok(match self.read_own(&select).await? {
            Some(Value::UInt(greatest)) => greatest.saturating_add(1),
            _ => 1,
        })
    }

    async fn alter_step(
        &mut self,
        action: &ast::AlterAction,
        changed: &mut AlterPlan,
        parsed: &Parsed,
    ) -> Result<(), Stop> {
        use ast::AlterAction;
        match action {
            AlterAction::AddColumn {
                column,
                position,
                if_not_exists,
            } => {
                let name = &column.name.text;
                if *if_not_exists && changed.definition.column_position(name).is_some() {
                    let note = ClientError::new(ER_DUP_FIELDNAME, &[name]);
                    changed.notes.push(note);
                    return Ok(());
                }
                let collation = changed.definition.collation;
                let defined = self.defined_column(column, collation, parsed).await?;
                changed.add_column(defined, position.as_ref(), None)?;
                for index in own_indexes(column) {
                    add_index(&index, &mut changed.definition)?;
                }
            }
            AlterAction::ChangeColumn {
                from,
                column,
                position,
                if_exists,
            } => {
                let Some(at) = changed.old_column(&from.text, *if_exists)? else {
                    return Ok(());
                };
                let collation = changed.definition.collation;
                let defined = self.defined_column(column, collation, parsed).await?;
                changed.change_column(at, defined, position.as_ref())?;
                for index in own_indexes(column) {
                    add_index(&index, &mut changed.definition)?;
                }
            }
            AlterAction::AlterDefault {
                column,
                default,
                if_exists,
            } => {
                let Some(position) = changed.old_column(&column.text, *if_exists)? else {
                    return Ok(());
                };
                let of = changed.definition.columns[position].clone();
                changed.definition.columns[position].default = match default {
                    Some(default) => self.defined_default(default, &of, parsed).await?,
                    None => ColumnDefault::None,
                };
            }
            AlterAction::RenameTable(to) => changed.definition.name = self.full_name(to)?,
            AlterAction::Option(option) => {
                if let TableOption::AutoIncrement(next) = option {
                    changed.auto_increment = Some(*next);
                }
                let default = changed.definition.collation;
                changed.definition.collation =
                    table_collation(std::slice::from_ref(option), default)?;
                self.apply_option(option, &mut changed.definition)?;
            }
            // These come before and after all others.
            AlterAction::RenameIndex(_) | AlterAction::OrderBy(_) => {}
            other => changed.apply(other)?,
        }
        Ok(())
    }

    /// Copies the rows into a table of the new definition and puts it in the old one's place.
    async fn copy_table(&mut self, old: &TableDefinition, changed: &AlterPlan) -> Result<(), Stop> {
        let store = self.store();
        let mut copy = changed.definition.clone();
        let final_name = copy.name.clone();
        copy.name = TableName {
            database: old.name.database.clone(),
            table: format!("{}{}", store::COPY_NAME_PREFIX, old.id.0),
        };
        copy.auto_increment_start = match changed.auto_increment {
            Some(next) => next,
            // The counter of a table without such a column numbers its rows internally.
            None if old.auto_increment_column().is_none() => old.auto_increment_start,
            None => store_next(&*self.state.worker.store, old),
        };
        let copy_id = store.create_table(copy.clone()).await?;
        let text = copying_text(old, &copy, changed);
        let around = self.state.variables.borrow().clone();
        let mut hold = None;
        let copied = async {
            // No other session uses it before it has its name, and LOCK TABLES passes to it.
            hold = self.change_table(copy_id).await?;
            if keeps_zeros(old, &copy, changed) {
                self.keep_zeros()?;
            }
            let insert = self.parse(text.as_bytes())?;
            self.run_own(&insert, Part::Of).await?;
            self.commit().await
        }
        .await;
        *self.state.variables.borrow_mut() = around;
        let replaced = match copied {
            Ok(()) => self.place(copy_id, &final_name, Some(old.id)).await,
            Err(stop) => {
                self.abandon_transaction().await;
                Err(stop)
            }
        };
        if let Err(stop) = replaced {
            store.drop_table(copy_id).await?;
            return Err(with_name(stop, &copy.name.table, &final_name.table));
        }
        self.locked.follow(old.id, &mut hold);
        if final_name != old.name {
            self.locked.forget_renamed(copy_id);
        }
        Ok(())
    }
}

/// The statement that copies the rows of a table into its copy.
fn copying_text(old: &TableDefinition, copy: &TableDefinition, changed: &AlterPlan) -> String {
    let (mut targets, mut sources) = (Vec::new(), Vec::new());
    for (column, source) in copy.columns.iter().zip(&changed.sources) {
        let value = match source {
            Some(source) => quoted_name(source),
            None if needs_value(column) => zero_literal(column.column_type.kind).to_owned(),
            None => continue,
        };
        targets.push(quoted_name(&column.name));
        sources.push(value);
    }
    // If all columns are new, the first is assigned its default explicitly.
    if targets.is_empty()
        && let Some(first) = copy.columns.first()
    {
        let default = default_text(first).filter(|_| !first.auto_increment);
        targets.push(quoted_name(&first.name));
        sources.push(default.unwrap_or_else(|| "NULL".to_owned()));
    }
    let database = quoted_name(&old.name.database);
    let (to, from) = (quoted_name(&copy.name.table), quoted_name(&old.name.table));
    let ignore = if changed.is_ignoring { "IGNORE" } else { "" };
    let (targets, sources) = (targets.join(", "), sources.join(", "));
    let order = &changed.row_order;
    format!(
        "INSERT {ignore} INTO {database}.{to} ({targets}) \
         SELECT {sources} FROM {database}.{from} {order}"
    )
}

/// Whether a zero in the AUTO_INCREMENT column is an ordinary value. It is if the column had
/// AUTO_INCREMENT before, since then its zeros were not meant to be numbered.
fn keeps_zeros(old: &TableDefinition, copy: &TableDefinition, changed: &AlterPlan) -> bool {
    let Some(counting) = old.columns.iter().find(|column| column.auto_increment) else {
        return false;
    };
    let mut of_copy = copy.columns.iter().zip(&changed.sources);
    of_copy.any(|(column, source)| column.auto_increment && source.as_ref() == Some(&counting.name))
}

/// Neither the existing rows nor the definition has a value for it.
fn needs_value(column: &ColumnDefinition) -> bool {
    let has_default = column.nullable || column.default != ColumnDefault::None;
    !has_default && !column.auto_increment
}

/// What existing rows get in a new NOT NULL column: zero, the empty text, the first member of an
/// ENUM.
fn zero_literal(kind: TypeKind) -> &'static str {
    match kind {
        TypeKind::Enum => "1",
        TypeKind::Date | TypeKind::DateTime | TypeKind::Timestamp => "'0000-00-00'",
        kind if kind.is_bytes() => "''",
        _ => "0",
    }
}

/// The error with the table's name in place of that of its copy.
pub(crate) fn with_name(stop: Stop, copy: &str, table: &str) -> Stop {
    match stop {
        Stop::Error(mut error) => {
            error.message = error.message.replace(copy, table);
            Stop::Error(error)
        }
        stop @ Stop::Disconnect(_) => stop,
    }
}

fn store_next(store: &dyn Store, table: &TableDefinition) -> u64 {
    store
        .table(table.id)
        .map_or(1, |table| table.next_auto_increment().max(1))
}
