//! ALTER TABLE: from a definition to another, with or without writing the rows anew.

use std::rc::Rc;

use catalog::Privilege;
use catalog::information_schema::default_text;
use errcode::{
    ClientError, ER_CANT_DROP_FIELD_OR_KEY, ER_TABLE_EXISTS_ERROR, ER_WRONG_COLUMN_NAME,
};
use store::{
    ColumnDefault, ColumnDefinition, IndexDefinition, Store, StoreError, TableDefinition,
    TableName, Uniqueness,
};
use syntax::ast::{self, Ident, ObjectName, StatementKind, TableConstraint, TableOption};
use value::{CollationId, TypeKind, Value};

use crate::define::{self, checked_name, collation_of};
use crate::definition_statement::{
    add_constraint, add_index, no_such_table, own_indexes, table_collation,
};
use crate::dispatch::Parsed;
use crate::reply::Stop;
use crate::session::Session;
use crate::variables::NewValue;
use syntax::print::quoted_name;

impl Session {
    /// ALTER TABLE: the new definition is made from the old one step by step. Rows that stay as
    /// they are are left alone; where columns change, the rows are copied into a new table that
    /// takes the old one's place. The account must have the privilege `needed`.
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
        // What is wrong by the definition as it is now is told before anybody is waited for. What
        // is noted on the way is noted again by the steps that count.
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
            return Err(ClientError::new(ER_TABLE_EXISTS_ERROR, &[&target.table]).into());
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
        if changed.definition != *old {
            let renamed = changed.definition.name.clone();
            changed.definition.name = old.name.clone();
            if changed.definition != *old {
                match store.alter_table(changed.definition.clone()).await {
                    // Only the key is known there. Who writes the rows finds the words for it.
                    Err(StoreError::DuplicateKey { .. }) => {
                        changed.definition.name = renamed;
                        return self.copy_table(&old, &changed).await;
                    }
                    outcome => outcome?,
                }
            }
            if renamed != old.name {
                store.rename_tables(vec![(old.id, renamed)]).await?;
                self.locked.forget_renamed(old.id);
            }
        }
        if let Some(next) = changed.auto_increment {
            store.set_auto_increment(old.id, next).await?;
        }
        Ok(())
    }

    /// What the actions make of a definition.
    async fn altered(
        &mut self,
        old: &TableDefinition,
        actions: &[ast::AlterAction],
        parsed: &Parsed,
    ) -> Result<Altered, Stop> {
        let mut changed = Altered::new(old);
        for action in actions {
            self.alter_step(action, &mut changed, parsed).await?;
        }
        define::finish(&mut changed.definition)?;
        Ok(changed)
    }

    /// Zeros are values like others from here on, until the variables are as they were.
    fn keep_zeros(&self) -> Result<(), ClientError> {
        let mode = Rc::clone(&self.state.variables.borrow().active().sql_mode);
        let words = [&*mode, "NO_AUTO_VALUE_ON_ZERO"].join(",");
        let words = NewValue::Text(words.trim_start_matches(',').to_owned());
        self.set_own_variable("sql_mode", &words)
    }

    /// The first number above those that the rows have in their AUTO_INCREMENT column.
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
        changed: &mut Altered,
        parsed: &Parsed,
    ) -> Result<(), Stop> {
        use ast::AlterAction;
        match action {
            AlterAction::AddColumn {
                column,
                position,
                if_not_exists,
            } => {
                if *if_not_exists
                    && changed
                        .definition
                        .column_position(&column.name.text)
                        .is_some()
                {
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
                if *if_exists && changed.definition.column_position(&from.text).is_none() {
                    return Ok(());
                }
                let collation = changed.definition.collation;
                let defined = self.defined_column(column, collation, parsed).await?;
                changed.change_column(&from.text, defined, position.as_ref())?;
                for index in own_indexes(column) {
                    add_index(&index, &mut changed.definition)?;
                }
            }
            AlterAction::AlterDefault {
                column,
                default,
                if_exists,
            } => {
                if *if_exists && changed.definition.column_position(&column.text).is_none() {
                    return Ok(());
                }
                let position = changed.position_of(&column.text)?;
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
            other => changed.apply(other)?,
        }
        Ok(())
    }

    /// Copies the rows into a table of the new definition and puts it in the old one's place.
    async fn copy_table(&mut self, old: &TableDefinition, changed: &Altered) -> Result<(), Stop> {
        let store = self.store();
        let mut copy = changed.definition.clone();
        let final_name = copy.name.clone();
        copy.name = TableName {
            database: old.name.database.clone(),
            table: format!("{}{}", store::COPY_NAME_PREFIX, old.id.0),
        };
        copy.auto_increment_start = match changed.auto_increment {
            Some(next) => next,
            // The counter of a table that has no such column numbers its rows within.
            None if old.auto_increment_column().is_none() => old.auto_increment_start,
            None => store_next(&*store, old),
        };
        let copy_id = store.create_table(copy.clone()).await?;
        let text = copying_text(old, &copy, changed);
        let around = self.state.variables.borrow().clone();
        let mut hold = None;
        let copied = async {
            // Nobody uses it before it has its name, and who has locked the table has it then.
            hold = self.change_table(copy_id).await?;
            if keeps_zeros(old, &copy, changed) {
                self.keep_zeros()?;
            }
            let insert = self.parse(text.as_bytes())?;
            self.run_own(&insert).await?;
            self.commit().await
        }
        .await;
        *self.state.variables.borrow_mut() = around;
        let replaced = match copied {
            Ok(()) => store
                .replace_table(old.id, copy_id)
                .await
                .map_err(Stop::from),
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
            store.rename_tables(vec![(copy_id, final_name)]).await?;
            self.locked.forget_renamed(copy_id);
        }
        Ok(())
    }
}

/// The statement that copies the rows of a table into its copy.
fn copying_text(old: &TableDefinition, copy: &TableDefinition, changed: &Altered) -> String {
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
    // Where all columns are new, the first is told what it would get anyway.
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
    format!(
        "INSERT {ignore} INTO {database}.{to} ({targets}) SELECT {sources} FROM {database}.{from}"
    )
}

/// Whether a zero in the AUTO_INCREMENT column is a value like any other: it is where the column
/// counted before, as its rows did not get it by counting.
fn keeps_zeros(old: &TableDefinition, copy: &TableDefinition, changed: &Altered) -> bool {
    let Some(counting) = old.columns.iter().find(|column| column.auto_increment) else {
        return false;
    };
    let mut of_copy = copy.columns.iter().zip(&changed.sources);
    of_copy.any(|(column, source)| column.auto_increment && source.as_ref() == Some(&counting.name))
}

/// Rows that are there already have no value for it, nor has its definition.
fn needs_value(column: &ColumnDefinition) -> bool {
    let has_default = column.nullable || column.default != ColumnDefault::None;
    !has_default && !column.auto_increment
}

/// What the rows that are there get in a new column that is NOT NULL: zero, the empty text, the
/// first member of an ENUM.
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

/// A definition on its way to another.
struct Altered {
    /// As it is by now.
    definition: TableDefinition,
    /// For each column, the old column that its values come from.
    sources: Vec<Option<String>>,
    /// Rows have to be written anew.
    needs_copy: bool,
    /// `ALTER IGNORE`: rows whose keys others have are left out.
    is_ignoring: bool,
    /// `AUTO_INCREMENT = n`.
    auto_increment: Option<u64>,
    /// `ALGORITHM` and `LOCK`, as they were asked for.
    algorithm: Option<String>,
    lock: Option<String>,
}

impl Altered {
    fn new(old: &TableDefinition) -> Self {
        let sources = old
            .columns
            .iter()
            .map(|column| Some(column.name.clone()))
            .collect();
        Self {
            definition: old.clone(),
            sources,
            needs_copy: false,
            is_ignoring: false,
            auto_increment: None,
            algorithm: None,
            lock: None,
        }
    }

    /// Refuses what would do more than was allowed: error 1845 where rows would be written anew and
    /// that was excluded, 1846 where others would have to wait for it and that was. What is
    /// cheaper than was asked for is done.
    fn check_asked(&self, old: &TableDefinition) -> Result<(), ClientError> {
        let is_built = |index: &IndexDefinition| !old.indexes.contains(index);
        let builds = self.definition.indexes.iter().any(is_built);
        if let Some(algorithm) = &self.algorithm {
            let (is_too_much, instead) = match &**algorithm {
                "DEFAULT" | "COPY" | "INPLACE" => (false, ""),
                "NOCOPY" => (self.needs_copy, "ALGORITHM=COPY"),
                "INSTANT" if self.needs_copy => (true, "ALGORITHM=COPY"),
                "INSTANT" => (builds, "ALGORITHM=NOCOPY"),
                _ => {
                    let code = errcode::ER_UNKNOWN_ALTER_ALGORITHM;
                    return Err(ClientError::new(code, &[algorithm]));
                }
            };
            if is_too_much {
                let asked = format!("ALGORITHM={algorithm}");
                let code = errcode::ER_ALTER_OPERATION_NOT_SUPPORTED;
                return Err(ClientError::new(code, &[&asked, &instead]));
            }
        }
        match self.lock.as_deref() {
            None | Some("DEFAULT" | "SHARED" | "EXCLUSIVE") => Ok(()),
            Some("NONE") if self.needs_copy || builds => Err(ClientError::new(
                errcode::ER_ALTER_OPERATION_NOT_SUPPORTED_REASON,
                &[
                    &"LOCK=NONE",
                    &"COPY algorithm requires a lock",
                    &"LOCK=EXCLUSIVE",
                ],
            )),
            Some("NONE") => Ok(()),
            Some(lock) => Err(ClientError::new(errcode::ER_UNKNOWN_ALTER_LOCK, &[&lock])),
        }
    }

    fn position_of(&self, column: &str) -> Result<usize, ClientError> {
        let unknown = || {
            let code = errcode::ER_BAD_FIELD_ERROR;
            ClientError::new(code, &[&column, &self.definition.name.table])
        };
        self.definition.column_position(column).ok_or_else(unknown)
    }

    fn place(&self, position: Option<&ast::ColumnPosition>) -> Result<usize, ClientError> {
        match position {
            None => Ok(self.definition.columns.len()),
            Some(ast::ColumnPosition::First) => Ok(0),
            Some(ast::ColumnPosition::After(column)) => Ok(self.position_of(&column.text)? + 1),
        }
    }

    fn add_column(
        &mut self,
        column: ColumnDefinition,
        position: Option<&ast::ColumnPosition>,
        source: Option<String>,
    ) -> Result<(), ClientError> {
        let place = self.place(position)?;
        self.definition.columns.insert(place, column);
        self.sources.insert(place, source);
        for part in self
            .definition
            .indexes
            .iter_mut()
            .flat_map(|index| &mut index.parts)
        {
            if place <= part.column {
                part.column += 1;
            }
        }
        self.needs_copy = true;
        Ok(())
    }

    fn change_column(
        &mut self,
        from: &str,
        column: ColumnDefinition,
        position: Option<&ast::ColumnPosition>,
    ) -> Result<(), ClientError> {
        let at = self.position_of(from)?;
        let old = &self.definition.columns[at];
        let keeps_rows = old.column_type == column.column_type && old.nullable == column.nullable;
        // A column that begins to count gives numbers to the rows that have none.
        let begins_to_count = column.auto_increment && !old.auto_increment;
        self.needs_copy |= !keeps_rows || begins_to_count;
        self.definition.columns[at] = column;
        let Some(position) = position else {
            return Ok(());
        };
        let target = match position {
            ast::ColumnPosition::First => 0,
            ast::ColumnPosition::After(other) => {
                let other = self.position_of(&other.text)?;
                if other < at { other + 1 } else { other }
            }
        };
        self.move_column(at, target);
        Ok(())
    }

    fn move_column(&mut self, from: usize, to: usize) {
        if from == to {
            return;
        }
        let column = self.definition.columns.remove(from);
        let source = self.sources.remove(from);
        self.definition.columns.insert(to, column);
        self.sources.insert(to, source);
        for part in self
            .definition
            .indexes
            .iter_mut()
            .flat_map(|index| &mut index.parts)
        {
            part.column = match part.column {
                column if column == from => to,
                column if from < column && column <= to => column - 1,
                column if to <= column && column < from => column + 1,
                column => column,
            };
        }
        self.needs_copy = true;
    }

    fn drop_column(&mut self, name: &str) -> Result<(), ClientError> {
        let missing = || ClientError::new(ER_CANT_DROP_FIELD_OR_KEY, &[&"COLUMN", &name]);
        let at = self.definition.column_position(name).ok_or_else(missing)?;
        self.definition.columns.remove(at);
        self.sources.remove(at);
        for index in &mut self.definition.indexes {
            index.parts.retain(|part| part.column != at);
            for part in &mut index.parts {
                if at < part.column {
                    part.column -= 1;
                }
            }
        }
        self.definition
            .indexes
            .retain(|index| !index.parts.is_empty());
        self.needs_copy = true;
        Ok(())
    }

    fn drop_index(&mut self, name: &str, if_exists: bool) -> Result<(), ClientError> {
        let indexes = &mut self.definition.indexes;
        let at = indexes
            .iter()
            .position(|index| index.name.eq_ignore_ascii_case(name));
        match at {
            Some(at) => {
                let removed = indexes.remove(at);
                self.needs_copy |= removed.uniqueness == Uniqueness::Primary;
                Ok(())
            }
            None if if_exists => Ok(()),
            None => Err(ClientError::new(
                ER_CANT_DROP_FIELD_OR_KEY,
                &[&"INDEX", &name],
            )),
        }
    }

    /// Steps that need nothing but the definition.
    fn apply(&mut self, action: &ast::AlterAction) -> Result<(), ClientError> {
        use ast::AlterAction;
        match action {
            AlterAction::AddConstraint(constraint) => {
                let is_primary = matches!(constraint, TableConstraint::Index(index)
                    if index.kind == ast::IndexKind::Primary);
                self.needs_copy |= is_primary;
                add_constraint(constraint, &mut self.definition)
            }
            AlterAction::DropColumn { column, if_exists } => {
                if *if_exists && self.definition.column_position(&column.text).is_none() {
                    return Ok(());
                }
                self.drop_column(&column.text)
            }
            AlterAction::DropIndex { index, if_exists } => self.drop_index(&index.text, *if_exists),
            AlterAction::DropPrimaryKey => self.drop_index("PRIMARY", false),
            AlterAction::RenameColumn(from, to) => {
                let at = self.position_of(&from.text)?;
                self.definition.columns[at].name = checked_name(to, ER_WRONG_COLUMN_NAME)?;
                Ok(())
            }
            AlterAction::RenameIndex(from, to) => self.rename_index(&from.text, to),
            AlterAction::ConvertCharset { charset, collation } => {
                let default = self.definition.collation;
                let to = collation_of(charset.as_ref(), collation.as_ref(), default)?;
                self.convert_charset(to);
                Ok(())
            }
            // Keys are always kept.
            AlterAction::EnableKeys(_) => Ok(()),
            AlterAction::Algorithm(algorithm) => {
                self.algorithm = Some(algorithm.clone());
                Ok(())
            }
            AlterAction::Lock(lock) => {
                self.lock = Some(lock.clone());
                Ok(())
            }
            AlterAction::Force => {
                self.needs_copy = true;
                Ok(())
            }
            AlterAction::OrderBy(_) => Err(ClientError::not_supported(&"ALTER .. ORDER BY")),
            AlterAction::DropForeignKey { .. } => {
                Err(ClientError::not_supported(&"DROP FOREIGN KEY"))
            }
            AlterAction::DropConstraint { name, if_exists } => {
                self.drop_index(&name.text, *if_exists)
            }
            AlterAction::IgnoreIndex(..) => Err(ClientError::not_supported(&"IGNORED index")),
            AlterAction::Refused(refused) => Err(ClientError::not_supported(&refused.name)),
            AlterAction::AddColumn { .. }
            | AlterAction::ChangeColumn { .. }
            | AlterAction::AlterDefault { .. }
            | AlterAction::RenameTable(_)
            | AlterAction::Option(_) => unreachable!("alter_step takes these"),
        }
    }

    fn rename_index(&mut self, from: &str, to: &Ident) -> Result<(), ClientError> {
        let missing = || ClientError::new(ER_CANT_DROP_FIELD_OR_KEY, &[&"INDEX", &from]);
        let to = checked_name(to, errcode::ER_WRONG_NAME_FOR_INDEX)?;
        let indexes = &mut self.definition.indexes;
        if indexes
            .iter()
            .any(|index| index.name.eq_ignore_ascii_case(&to))
        {
            return Err(ClientError::new(errcode::ER_DUP_KEYNAME, &[&to]));
        }
        let index = indexes
            .iter_mut()
            .find(|index| index.name.eq_ignore_ascii_case(from));
        index.ok_or_else(missing)?.name = to;
        Ok(())
    }

    fn convert_charset(&mut self, to: CollationId) {
        self.definition.collation = to;
        for column in &mut self.definition.columns {
            let kind = column.column_type.kind;
            let is_text = kind.is_string() || matches!(kind, TypeKind::Enum | TypeKind::Set);
            if is_text && column.column_type.collation != CollationId::BINARY {
                column.column_type.collation = to;
                self.needs_copy = true;
            }
        }
    }
}
