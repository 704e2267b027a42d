//! CREATE TABLE .. SELECT: the table is filled under a name that no other session can use. Once its
//! rows are committed it gets its own name, or takes the place of the one that it replaces. So no
//! session sees it half full or drops it meanwhile. If the SELECT fails, the table to replace is
//! still there. The next start removes what a crash leaves.

use std::sync::Arc;

use errcode::{
    ClientError, ER_DUP_FIELDNAME, ER_TABLE_DEF_CHANGED, ER_TABLE_EXISTS_ERROR,
    ER_UPDATE_TABLE_USED, ER_WRONG_COLUMN_NAME,
};
use expression::zero_of;
use planner::{OutputColumn, Plan, TableUse};
use store::{ColumnDefault, ColumnDefinition, StoreError, TableDefinition, TableId, TableName};
use syntax::ast::{self, CreateTable, Ident};
use syntax::print::quoted_name;
use value::{CollationId, ColumnType, TypeKind};

use crate::connection::reply::{Done, Reply, Stop};
use crate::connection::session::Session;
use crate::define::checked_name;
use crate::lock::metadata::ExclusiveHold;
use crate::schema::alter::with_name;
use crate::schema::definition::table_exists;
use crate::statement::dispatch::PLAN_TRY_COUNT_MAX;
use crate::statement::run::Ran;
use crate::statement::statement_run::{Part, StatementRun};
use crate::worker::parsed::Parsed;

/// A table that CREATE OR REPLACE is about to replace, locked against others.
pub(crate) type Replaced = (Arc<TableDefinition>, Option<ExclusiveHold>);

impl Session {
    /// Creates the table of the definition, and fills the columns of the names `selected`.
    pub(crate) async fn create_filled(
        &mut self,
        create: &CreateTable,
        mut definition: TableDefinition,
        selected: &[String],
        mut replaced: Option<Replaced>,
        parsed: &Parsed,
    ) -> Result<Reply, Stop> {
        let name = definition.name.clone();
        definition.name.table = self.name_of_made();
        let made = definition.name.clone();
        let store = self.store();
        let id = store.create_table(definition).await?;
        let mut hold = None;
        let filled = async {
            hold = self.change_table(id).await?;
            let text = filling_text(&made, create, selected, parsed);
            let insert = self.parse_as(text.as_bytes(), parsed.text.strings)?;
            let reply = self.fill_table(&insert, id).await?;
            // Without autocommit too: the table stays, and so do its rows.
            self.commit().await.map(|()| reply)
        }
        .await;
        let placed = match filled {
            Ok(reply) => {
                let placed = self.place_made(id, &name, create.or_replace, &mut replaced);
                placed.await.map(|()| reply)
            }
            Err(stop) => {
                self.abandon_transaction().await;
                Err(with_name(stop, &made.table, &name.table))
            }
        };
        let stop = match placed {
            Ok(reply) => {
                if let Some((old, _)) = &replaced {
                    self.locked.follow(old.id, &mut hold);
                }
                return Ok(reply);
            }
            Err(stop) => stop,
        };
        store.drop_table(id).await?;
        match stop {
            Stop::Error(error) if error.code == ER_TABLE_EXISTS_ERROR => {
                self.tell_existing(create, &name)?;
                Ok(Reply::Ok(Done::default()))
            }
            stop => Err(stop),
        }
    }

    /// Gives a table its name. It may replace another, also one created since, if so allowed.
    async fn place_made(
        &mut self,
        id: TableId,
        name: &TableName,
        or_replace: bool,
        replaced: &mut Option<Replaced>,
    ) -> Result<(), Stop> {
        loop {
            let old = replaced.as_ref().map(|(old, _)| old.id);
            match self.place(id, name, old).await {
                Err(Stop::Error(error))
                    if or_replace && old.is_none() && error.code == ER_TABLE_EXISTS_ERROR =>
                {
                    *replaced = self.change_existing(name).await?;
                }
                placed => return placed,
            }
        }
    }

    /// CREATE OR REPLACE without rows: the new table replaces the old one and takes over its lock
    /// of LOCK TABLES.
    pub(crate) async fn replace_by_empty(
        &mut self,
        old: &TableDefinition,
        mut definition: TableDefinition,
    ) -> Result<(), Stop> {
        let name = definition.name.clone();
        definition.name.table = self.name_of_made();
        let store = self.store();
        let id = store.create_table(definition).await?;
        let mut hold = None;
        let placed = async {
            hold = self.change_table(id).await?;
            self.place(id, &name, Some(old.id)).await
        }
        .await;
        if let Err(stop) = placed {
            store.drop_table(id).await?;
            return Err(stop);
        }
        self.locked.follow(old.id, &mut hold);
        Ok(())
    }

    /// A table's name until it gets its final one.
    fn name_of_made(&self) -> String {
        format!(
            "{}create-{}",
            store::COPY_NAME_PREFIX,
            self.state.handle.id()
        )
    }

    /// Gives a finished table its name; the one that it replaces is dropped. Error 1050 if another
    /// table has got the name meanwhile.
    pub(crate) async fn place(
        &self,
        id: TableId,
        name: &TableName,
        old: Option<TableId>,
    ) -> Result<(), Stop> {
        let store = self.store();
        let placed = match old {
            Some(old) => store.replace_table(old, id, name.clone()).await,
            None => store.rename_tables(vec![(id, name.clone())]).await,
        };
        placed.map_err(|error| match error {
            StoreError::TableExists => table_exists(name).into(),
            error => error.into(),
        })
    }

    /// Runs the statement that fills the table `into` of `CREATE TABLE .. SELECT`.
    async fn fill_table(&mut self, insert: &Parsed, into: TableId) -> Result<Reply, Stop> {
        for _ in 0..PLAN_TRY_COUNT_MAX {
            let mut plan = self.plan(insert, &[])?;
            // A session that may create the table may fill it, whatever its temporary name.
            plan.privileges.retain(|table| table.definition.id != into);
            self.check_privileges(&plan)?;
            let mut run = StatementRun::part(&self.state, Part::Filling(into));
            match self.run_plan(plan, &[], &mut run).await? {
                Ran::Reply(reply) => return Ok(reply),
                Ran::Stale => {}
            }
        }
        Err(ClientError::new(ER_TABLE_DEF_CHANGED, &[]).into())
    }

    /// The columns of the SELECT from which a table of this name is created.
    pub(crate) fn selected_columns(
        &self,
        query: &ast::Query,
        name: &TableName,
        parsed: &Parsed,
    ) -> Result<Vec<ColumnDefinition>, Stop> {
        let select = self.parse_as(parsed.source(query.span), parsed.text.strings)?;
        let plan = self.plan(&select, &[])?;
        self.check_privileges(&plan)?;
        if plan.privileges.iter().any(|it| it.definition.name == *name) {
            let error = ClientError::new(ER_UPDATE_TABLE_USED, &[&name.table, &"CREATE"]);
            return Err(error.into());
        }
        let columns = plan.columns.iter();
        Ok(columns
            .map(|column| made_column(column, &plan))
            .collect::<Result<_, _>>()?)
    }
}

/// The column made from a selected one. A direct column of a table keeps its default; a column of a
/// derived table keeps only the comment.
fn made_column(column: &OutputColumn, plan: &Plan) -> Result<ColumnDefinition, ClientError> {
    let mut column_type = column.column_type.clone().bounded();
    if column_type.kind == TypeKind::Null {
        column_type = ColumnType::text(TypeKind::Binary, 0, CollationId::BINARY);
    }
    if !column_type.charset().is_of_columns() {
        // Columns cannot have the set of the client's literals.
        column_type.collation = CollationId::UTF8MB4_GENERAL_CI;
    }
    column_type.kind = match column_type.kind {
        TypeKind::VarChar if column_type.is_binary() => TypeKind::VarBinary,
        // A computed value: the CHAR of a table has no decimals.
        TypeKind::Char if column_type.decimals > 0 => TypeKind::VarChar,
        kind => kind,
    };
    let name = checked_name(&Ident::new(column.name.clone()), ER_WRONG_COLUMN_NAME)?;
    let mut made = ColumnDefinition::new(&name, column_type, column.nullable);
    let is_origin = |table: &&TableUse| {
        let name = &table.definition.name;
        name.table == column.original_table && name.database == column.database
    };
    let origin = plan.tables.iter().find(is_origin).and_then(|table| {
        let place = table.definition.column_position(&column.original_name)?;
        table.definition.columns.get(place)
    });
    let Some(origin) = origin else {
        return Ok(made);
    };
    made.comment.clone_from(&origin.comment);
    if !column.is_derived {
        made.default = match &origin.default {
            ColumnDefault::None if origin.auto_increment => {
                ColumnDefault::Value(zero_of(&made.column_type))
            }
            default => default.clone(),
        };
        made.on_update_now = origin.on_update_now;
    }
    Ok(made)
}

/// The columns of a table created from a SELECT. First those that only the definition names, then
/// the selected ones, which the definition may refine.
pub(crate) fn with_selected(
    mut defined: Vec<ColumnDefinition>,
    selected: Vec<ColumnDefinition>,
) -> Result<Vec<ColumnDefinition>, ClientError> {
    let mut placed: Vec<ColumnDefinition> = Vec::with_capacity(selected.len());
    for column in selected {
        let is_same = |other: &ColumnDefinition| other.name.eq_ignore_ascii_case(&column.name);
        if placed.iter().any(is_same) {
            return Err(ClientError::new(ER_DUP_FIELDNAME, &[&column.name]));
        }
        let own = defined.iter().position(is_same);
        placed.push(match own {
            Some(at) => defined.remove(at),
            None => column,
        });
    }
    defined.extend(placed);
    Ok(defined)
}

/// The statement that copies the rows into the table `made`.
fn filling_text(
    made: &TableName,
    create: &CreateTable,
    selected: &[String],
    parsed: &Parsed,
) -> String {
    let span = create.query.as_ref().map(|query| query.span);
    let source = span.map(|span| String::from_utf8_lossy(parsed.source(span)));
    let verb = match create.duplicates {
        Some(ast::LoadDuplicates::Ignore) => "INSERT IGNORE INTO",
        Some(ast::LoadDuplicates::Replace) => "REPLACE INTO",
        None => "INSERT INTO",
    };
    let (database, table) = (quoted_name(&made.database), quoted_name(&made.table));
    let names = selected.iter().map(|name| quoted_name(name));
    let list = names.collect::<Vec<_>>().join(", ");
    format!(
        "{verb} {database}.{table} ({list}) {}",
        source.unwrap_or_default()
    )
}
