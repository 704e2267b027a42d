//! [`AlterPlan`]: a table's definition while the steps of ALTER TABLE are applied.

use errcode::{
    ClientError, ER_BAD_FIELD_ERROR, ER_CANT_DROP_FIELD_OR_KEY, ER_DUP_KEYNAME,
    ER_KEY_COLUMN_DOES_NOT_EXIST, ER_KEY_DOES_NOT_EXISTS, ER_WRONG_COLUMN_NAME,
    ER_WRONG_NAME_FOR_INDEX, WORDS_ORDER_IGNORED,
};
use store::{ColumnDefinition, IndexDefinition, TableDefinition, Uniqueness};
use syntax::ast::{self, Renaming, TableConstraint};
use syntax::print::quoted_name;
use value::{CollationId, TypeKind};

use crate::define::{checked_name, collation_of};
use crate::schema::definition::add_constraint;

/// A definition that is being altered.
pub(crate) struct AlterPlan {
    /// The definition so far.
    pub(crate) definition: TableDefinition,
    /// For each column, the old column that its values come from.
    pub(crate) sources: Vec<Option<String>>,
    /// The rows have to be rewritten.
    pub(crate) needs_copy: bool,
    /// `ALTER IGNORE`: rows with duplicate keys are left out.
    pub(crate) is_ignoring: bool,
    /// `AUTO_INCREMENT = n`.
    pub(crate) auto_increment: Option<u64>,
    /// Names of unique indexes that have lost one of several columns, and of the lost columns.
    cut: Vec<(String, String)>,
    /// What IF EXISTS and IF NOT EXISTS skipped.
    pub(crate) notes: Vec<ClientError>,
    /// A column gets another type.
    changes_type: bool,
    /// How the rows are ordered when they are copied: `ORDER BY ..` in SQL, or empty.
    pub(crate) row_order: String,
    /// `ALGORITHM`, as written or by the variable `alter_algorithm`, and `LOCK`, as written.
    algorithm: Option<String>,
    lock: Option<String>,
}

impl AlterPlan {
    /// With the algorithm for statements that name none.
    pub(crate) fn new(old: &TableDefinition, algorithm: &str) -> Self {
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
            cut: Vec::new(),
            notes: Vec::new(),
            changes_type: false,
            row_order: String::new(),
            algorithm: Some(algorithm.to_owned()),
            lock: None,
        }
    }

    /// Refuses more work than ALGORITHM and LOCK allow. Error 1845 if the rows would be rewritten
    /// against the request. Error 1846 if an index would be built, or others would have to wait for
    /// it, against the request. A cheaper way than requested is taken.
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
            if is_excluded && self.changes_type {
                return Err(too_much(
                    &asked,
                    "Cannot change column type",
                    "ALGORITHM=COPY",
                ));
            }
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

    fn position_of(&self, column: &str) -> Result<usize, ClientError> {
        let position = self.definition.column_position(column);
        position.ok_or_else(|| self.unknown_column(column))
    }

    fn unknown_column(&self, column: &str) -> ClientError {
        let code = ER_BAD_FIELD_ERROR;
        ClientError::new(code, &[&column, &self.definition.name.table])
    }

    /// The place of a column by its name before the statement, unless a step has renamed it. A
    /// column that a step has added counts, too.
    fn old_position(&self, name: &str) -> Option<usize> {
        let columns = self.definition.columns.iter().zip(&self.sources);
        columns.into_iter().position(|(column, source)| {
            let is_renamed = source.as_ref().is_some_and(|of| *of != column.name);
            !is_renamed && column.name.eq_ignore_ascii_case(name)
        })
    }

    /// The same; error 1054 if there is none, or with IF EXISTS `None` and a note.
    pub(crate) fn old_column(
        &mut self,
        name: &str,
        if_exists: bool,
    ) -> Result<Option<usize>, ClientError> {
        match self.old_position(name) {
            Some(place) => Ok(Some(place)),
            None => self
                .tell_missing(self.unknown_column(name), if_exists)
                .map(|()| None),
        }
    }

    /// Returns the error, or notes it if IF EXISTS or IF NOT EXISTS was given.
    fn tell_missing(&mut self, error: ClientError, is_optional: bool) -> Result<(), ClientError> {
        if !is_optional {
            return Err(error);
        }
        self.notes.push(error);
        Ok(())
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
        at: usize,
        column: ColumnDefinition,
        position: Option<&ast::ColumnPosition>,
    ) -> Result<(), ClientError> {
        let old = &self.definition.columns[at];
        let keeps_rows = old.column_type == column.column_type && old.nullable == column.nullable;
        // A column that gets AUTO_INCREMENT numbers the rows that have no number.
        let begins_to_count = column.auto_increment && !old.auto_increment;
        let begins_to_check = column.is_json && !old.is_json;
        self.needs_copy |= !keeps_rows || begins_to_count || begins_to_check;
        self.changes_type |= old.column_type != column.column_type;
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

    fn drop_column(&mut self, name: &str, if_exists: bool) -> Result<(), ClientError> {
        let Some(at) = self.old_position(name) else {
            return self.tell_missing(cannot_drop("COLUMN", name), if_exists);
        };
        self.definition.columns.remove(at);
        self.sources.remove(at);
        for index in &mut self.definition.indexes {
            let has_column = index.parts.iter().any(|part| part.column == at);
            if has_column && index.uniqueness != Uniqueness::None {
                self.cut.push((index.name.clone(), name.to_owned()));
            }
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

    /// Error 1072 if a unique index has lost some of its columns: with fewer, other rows would be
    /// duplicates.
    pub(crate) fn check_cut(&self) -> Result<(), ClientError> {
        let is_there = |name: &str| {
            let mut indexes = self.definition.indexes.iter();
            indexes.any(|index| index.name.eq_ignore_ascii_case(name))
        };
        for (index, column) in &self.cut {
            if is_there(index) && self.definition.column_position(column).is_none() {
                let code = ER_KEY_COLUMN_DOES_NOT_EXIST;
                return Err(ClientError::new(code, &[column]));
            }
        }
        Ok(())
    }

    fn drop_index(&mut self, name: &str, if_exists: bool) -> Result<(), ClientError> {
        self.drop_key("INDEX", name, if_exists, |_| true)
    }

    /// Drops the index of that name if its kind matches; `word` is the kind in messages.
    fn drop_key(
        &mut self,
        word: &str,
        name: &str,
        if_exists: bool,
        is_meant: impl Fn(&IndexDefinition) -> bool,
    ) -> Result<(), ClientError> {
        let indexes = &mut self.definition.indexes;
        let is_it = |index: &IndexDefinition| index.name.eq_ignore_ascii_case(name);
        let Some(at) = indexes.iter().position(|it| is_it(it) && is_meant(it)) else {
            return self.tell_missing(cannot_drop(word, name), if_exists);
        };
        let removed = indexes.remove(at);
        self.needs_copy |= removed.uniqueness == Uniqueness::Primary;
        Ok(())
    }

    fn add_constraint(&mut self, constraint: &TableConstraint) -> Result<(), ClientError> {
        if let Some(note) = add_constraint(constraint, &mut self.definition)? {
            self.notes.push(note);
            return Ok(());
        }
        self.needs_copy |= matches!(constraint, TableConstraint::Index(index)
            if index.kind == ast::IndexKind::Primary);
        Ok(())
    }

    /// Steps that need only the definition.
    pub(crate) fn apply(&mut self, action: &ast::AlterAction) -> Result<(), ClientError> {
        use ast::AlterAction;
        match action {
            AlterAction::AddConstraint(constraint) => self.add_constraint(constraint),
            AlterAction::DropColumn { column, if_exists } => {
                self.drop_column(&column.text, *if_exists)
            }
            AlterAction::DropIndex { index, if_exists } => self.drop_index(&index.text, *if_exists),
            AlterAction::DropPrimaryKey => self.drop_index("PRIMARY", false),
            AlterAction::RenameColumn(renaming) => {
                if let Some(at) = self.old_column(&renaming.from.text, renaming.if_exists)? {
                    let name = checked_name(&renaming.to, ER_WRONG_COLUMN_NAME)?;
                    self.definition.columns[at].name = name;
                }
                Ok(())
            }
            AlterAction::ConvertCharset { charset, collation } => {
                let default = self.definition.collation;
                let to = collation_of(charset.as_ref(), collation.as_ref(), default)?;
                self.convert_charset(to);
                Ok(())
            }
            // Keys are always maintained.
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
            // There are no foreign keys.
            AlterAction::DropForeignKey { name, if_exists } => {
                self.tell_missing(cannot_drop("FOREIGN KEY", &name.text), *if_exists)
            }
            AlterAction::DropConstraint { name, if_exists } => {
                let is_constraint = |index: &IndexDefinition| index.uniqueness != Uniqueness::None;
                self.drop_key("CONSTRAINT", &name.text, *if_exists, is_constraint)
            }
            AlterAction::IgnoreIndex(..) => Err(ClientError::not_supported(&"IGNORED index")),
            AlterAction::Refused(refused) => Err(ClientError::not_supported(&refused.name)),
            AlterAction::AddColumn { .. }
            | AlterAction::ChangeColumn { .. }
            | AlterAction::AlterDefault { .. }
            | AlterAction::RenameIndex(_)
            | AlterAction::RenameTable(_)
            | AlterAction::OrderBy(_)
            | AlterAction::Option(_) => unreachable!("alter_step takes these"),
        }
    }

    /// Chooses the key that the rows are kept by. If it is not that of the old table, the rows are
    /// rewritten. A table of an early version that has such a key as any other is kept by hidden
    /// ids until its rows are rewritten for another reason.
    pub(crate) fn choose_clustered_key(&mut self, old: &TableDefinition) {
        let mut chosen = old.clone();
        chosen.choose_clustered_key();
        let is_early = chosen.clustered_key() != old.clustered_key();
        if is_early && !self.needs_copy {
            return;
        }
        self.definition.choose_clustered_key();
        let is_kept = match (old.clustered_key(), self.definition.clustered_key()) {
            (Some(before), Some(after)) => after.has_keys_of(before),
            (before, after) => before.is_none() && after.is_none(),
        };
        self.needs_copy |= !is_kept;
    }

    /// `ORDER BY`: the rows are written again, in the order of the old table's columns. A table
    /// with a clustered index keeps its order: this returns the warning, and columns do not matter.
    pub(crate) fn order_rows(
        &mut self,
        old: &TableDefinition,
        order: &[ast::RowOrder],
    ) -> Result<Option<ClientError>, ClientError> {
        self.needs_copy = true;
        self.choose_clustered_key(old);
        if self.definition.clustered_key().is_some() {
            let warning = ClientError::worded(WORDS_ORDER_IGNORED, &[&old.name.table]);
            return Ok(Some(warning));
        }
        let mut keys = Vec::new();
        for ast::RowOrder { column, descending } in order {
            let is_of = |name: &Option<ast::Ident>, own: &str| {
                name.as_ref().is_none_or(|name| name.text == own)
            };
            let is_own =
                is_of(&column.schema, &old.name.database) && is_of(&column.table, &old.name.table);
            let Some(at) = old.column_position(&column.column.text).filter(|_| is_own) else {
                return Err(ClientError::new(ER_BAD_FIELD_ERROR, &[column, &"ORDER BY"]));
            };
            let direction = if *descending { " DESC" } else { "" };
            keys.push(quoted_name(&old.columns[at].name) + direction);
        }
        self.row_order = format!("ORDER BY {}", keys.join(", "));
        Ok(None)
    }

    /// Renames indexes, all by their old names: two may swap theirs.
    pub(crate) fn rename_indexes<'a>(
        &mut self,
        renamings: impl Iterator<Item = &'a Renaming>,
    ) -> Result<(), ClientError> {
        let mut renamed = Vec::new();
        for renaming in renamings {
            let to = checked_name(&renaming.to, ER_WRONG_NAME_FOR_INDEX)?;
            let from = &renaming.from.text;
            let primary = [from, &to]
                .into_iter()
                .find(|name| name.eq_ignore_ascii_case("PRIMARY"));
            if let Some(primary) = primary {
                return Err(ClientError::new(ER_WRONG_NAME_FOR_INDEX, &[primary]));
            }
            let mut indexes = self.definition.indexes.iter_mut().enumerate();
            let found = indexes
                .find(|(at, index)| !renamed.contains(at) && index.name.eq_ignore_ascii_case(from));
            if let Some((at, index)) = found {
                index.name = to;
                renamed.push(at);
                continue;
            }
            let table = &self.definition.name.table;
            let error = ClientError::new(ER_KEY_DOES_NOT_EXISTS, &[from, table]);
            self.tell_missing(error, renaming.if_exists)?;
        }
        let indexes = &self.definition.indexes;
        for at in renamed {
            let name = &indexes[at].name;
            let is_other = |(other, index): (usize, &IndexDefinition)| {
                other != at && index.name.eq_ignore_ascii_case(name)
            };
            if indexes.iter().enumerate().any(is_other) {
                return Err(ClientError::new(ER_DUP_KEYNAME, &[name]));
            }
        }
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

/// Error 1091.
fn cannot_drop(word: &str, name: &str) -> ClientError {
    ClientError::new(ER_CANT_DROP_FIELD_OR_KEY, &[&word, &name])
}

/// Error 1846.
fn too_much(asked: &str, reason: &str, instead: &str) -> ClientError {
    let code = errcode::ER_ALTER_OPERATION_NOT_SUPPORTED_REASON;
    ClientError::new(code, &[&asked, &reason, &instead])
}

#[cfg(test)]
mod tests {
    use testkit::definitions::{column, index, table};
    use value::ColumnType;

    use super::*;

    /// A table of an early version, whose rows have hidden ids in spite of a unique key.
    fn early() -> TableDefinition {
        let number = |name| column(name, ColumnType::new(TypeKind::Int), false);
        let indexes = vec![index("u", Uniqueness::Unique, &[0])];
        table("t", vec![number("a"), number("b")], indexes)
    }

    /// After these changes: whether the rows are rewritten, and what they are kept by then.
    fn altered(
        old: &TableDefinition,
        change: impl FnOnce(&mut AlterPlan),
    ) -> (bool, Option<String>) {
        let mut plan = AlterPlan::new(old, "DEFAULT");
        change(&mut plan);
        plan.choose_clustered_key(old);
        let kept_by = plan.definition.clustered_key();
        (plan.needs_copy, kept_by.map(|index| index.name.clone()))
    }

    fn add(name: &str, column: usize) -> impl FnOnce(&mut AlterPlan) {
        let added = index(name, Uniqueness::Unique, &[column]);
        move |plan| plan.definition.indexes.push(added)
    }

    #[test]
    fn rows_are_rewritten_if_another_key_keeps_them() {
        let name = |name: &str| Some(name.to_owned());
        let mut old = early();
        old.choose_clustered_key();
        assert_eq!(altered(&old, |_| ()), (false, name("u")));
        assert_eq!(altered(&old, add("more", 1)), (false, name("u")));
        let drop = |plan: &mut AlterPlan| drop(plan.drop_index("u", false));
        assert_eq!(altered(&old, drop), (true, None));
        let exchange = |plan: &mut AlterPlan| {
            drop(plan);
            add("b", 1)(plan);
        };
        assert_eq!(altered(&old, exchange), (true, name("b")));
        // The same key under another name has the same rows in the same order.
        let rename = |plan: &mut AlterPlan| {
            drop(plan);
            add("a", 0)(plan);
        };
        assert_eq!(altered(&old, rename), (false, name("a")));
        let mut bare = early();
        bare.indexes.clear();
        assert_eq!(altered(&bare, |_| ()), (false, None));
        assert_eq!(altered(&bare, add("b", 1)), (true, name("b")));
    }

    #[test]
    fn an_early_table_keeps_its_hidden_ids_until_its_rows_are_rewritten() {
        let old = early();
        assert_eq!(altered(&old, |_| ()), (false, None));
        assert_eq!(altered(&old, add("more", 1)), (false, None));
        let force = |plan: &mut AlterPlan| plan.needs_copy = true;
        assert_eq!(altered(&old, force), (true, Some("u".to_owned())));
    }
}
