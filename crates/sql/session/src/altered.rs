//! [`Altered`]: a table's definition on its way to another, step by step of ALTER TABLE.

use errcode::{ClientError, ER_CANT_DROP_FIELD_OR_KEY, ER_WRONG_COLUMN_NAME};
use store::{ColumnDefinition, TableDefinition, Uniqueness};
use syntax::ast::{self, Ident, TableConstraint};
use value::{CollationId, TypeKind};

use crate::define::{checked_name, collation_of};
use crate::definition_statement::add_constraint;

/// A definition on its way to another.
pub(crate) struct Altered {
    /// As it is by now.
    pub(crate) definition: TableDefinition,
    /// For each column, the old column that its values come from.
    pub(crate) sources: Vec<Option<String>>,
    /// Rows have to be written anew.
    pub(crate) needs_copy: bool,
    /// `ALTER IGNORE`: rows whose keys others have are left out.
    pub(crate) is_ignoring: bool,
    /// `AUTO_INCREMENT = n`.
    pub(crate) auto_increment: Option<u64>,
    /// `ALGORITHM` and `LOCK`, as they were asked for.
    algorithm: Option<String>,
    lock: Option<String>,
}

impl Altered {
    pub(crate) fn new(old: &TableDefinition) -> Self {
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
    /// that was excluded, 1846 where an index would be built, or where others would have to wait
    /// for it and that was. What is cheaper than was asked for is done.
    pub(crate) fn check_asked(&self, old: &TableDefinition) -> Result<(), ClientError> {
        let kept = store::kept_indexes(&old.indexes, &self.definition.indexes);
        let builds = kept.contains(&None);
        if let Some(algorithm) = &self.algorithm {
            let is_excluded = match &**algorithm {
                "DEFAULT" | "COPY" | "INPLACE" => false,
                "NOCOPY" | "INSTANT" => self.needs_copy,
                _ => {
                    let code = errcode::ER_UNKNOWN_ALTER_ALGORITHM;
                    return Err(ClientError::new(code, &[algorithm]));
                }
            };
            let asked = format!("ALGORITHM={algorithm}");
            if is_excluded {
                let code = errcode::ER_ALTER_OPERATION_NOT_SUPPORTED;
                return Err(ClientError::new(code, &[&asked, &"ALGORITHM=COPY"]));
            }
            if builds && algorithm == "INSTANT" {
                return Err(too_much(&asked, "ADD INDEX", "ALGORITHM=NOCOPY"));
            }
        }
        match self.lock.as_deref() {
            None | Some("DEFAULT" | "SHARED" | "EXCLUSIVE") => Ok(()),
            Some("NONE") if self.needs_copy || builds => {
                let reason = "COPY algorithm requires a lock";
                Err(too_much("LOCK=NONE", reason, "LOCK=EXCLUSIVE"))
            }
            Some("NONE") => Ok(()),
            Some(lock) => Err(ClientError::new(errcode::ER_UNKNOWN_ALTER_LOCK, &[&lock])),
        }
    }

    pub(crate) fn position_of(&self, column: &str) -> Result<usize, ClientError> {
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

    pub(crate) fn add_column(
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

    pub(crate) fn change_column(
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
        let begins_to_check = column.is_json && !old.is_json;
        self.needs_copy |= !keeps_rows || begins_to_count || begins_to_check;
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
    pub(crate) fn apply(&mut self, action: &ast::AlterAction) -> Result<(), ClientError> {
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

/// Error 1846.
fn too_much(asked: &str, reason: &str, instead: &str) -> ClientError {
    let code = errcode::ER_ALTER_OPERATION_NOT_SUPPORTED_REASON;
    ClientError::new(code, &[&asked, &reason, &instead])
}
