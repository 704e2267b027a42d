//! KILL, FLUSH, SET SERVER, RELOAD CONFIGURATION, and maintenance of tables.

mod checksum;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use catalog::{Privilege, PrivilegeSet};
use clients::{IDLE, KillOrder};
use errcode::{
    ClientError, ER_CONNECTION_KILLED, ER_KILL_DENIED_ERROR, ER_NO_SUCH_TABLE, ER_NO_SUCH_THREAD,
    ER_QUERY_INTERRUPTED,
};
use planner::OutputColumn;
use store::{LocalFuture, Suspend, TableName, WaitReason};
use syntax::ast::{Admin, FlushLock, ObjectName, TableVerb};
use value::{Level, SqlCondition, Value};

use crate::admin::checksum::ChecksumSink;
use crate::connection::reply::{Done, Reply, Stop};
use crate::connection::session::Session;
use crate::connection::sink::{number_column, text_column};
use crate::server::control::Wanted;
use crate::set::Checks;
use crate::statement::statement_run::StatementRun;

/// How long KILL waits at most for an idle session to hang up: its client may accept no data.
const HANG_UP_TIME_MAX: Duration = Duration::from_secs(1);

/// Options of FLUSH that need no work here. There is no table cache, query cache or log of that
/// kind to flush, and privileges are always those of the tables.
const FLUSHED: [&str; 14] = [
    "TABLES",
    "TABLE",
    "STATUS",
    "LOGS",
    "HOSTS",
    "QUERY CACHE",
    "BINARY LOGS",
    "ENGINE LOGS",
    "ERROR LOGS",
    "GENERAL LOGS",
    "SLOW LOGS",
    "RELAY LOGS",
    "USER_RESOURCES",
    "PRIVILEGES",
];

impl Session {
    /// Answers statements that administer the server.
    pub(crate) async fn admin_statement(
        &mut self,
        statement: &Admin,
        run: &mut StatementRun,
    ) -> Result<Reply, Stop> {
        match statement {
            Admin::Kill { .. } => unreachable!("its id is evaluated before"),
            Admin::Flush { what, tables, lock } => self.flush((what, tables), *lock).await,
            Admin::Checksum { tables, is_quick } => self.checksum(tables, *is_quick, run).await,
            Admin::Table { verb, tables, .. } => self.look_after(*verb, tables, run).await,
            Admin::SetServer { name, wanted } => self.set_server(name, wanted).await,
            Admin::ReloadConfiguration => self.reload().await,
            Admin::Shutdown => self.shut_down(),
        }
    }

    /// KILL [QUERY] with an id from an expression.
    pub(crate) async fn kill_statement(
        &mut self,
        id: &Value,
        is_query: bool,
    ) -> Result<Reply, Stop> {
        let id = match id {
            Value::Int(id) => u64::try_from(*id).unwrap_or(0),
            Value::UInt(id) => *id,
            _ => 0,
        };
        self.kill(id, is_query).await
    }

    /// Ends another session, or its statement, or this session.
    pub(crate) async fn kill(&mut self, id: u64, is_query: bool) -> Result<Reply, Stop> {
        let registry = &self.state.worker.server.clients.registry();
        let order = match is_query {
            true => KillOrder::Query,
            false => KillOrder::Connection,
        };
        let Some(handle) = registry.find(id) else {
            return self.kill_elsewhere(id, order);
        };
        let privileges = self.state.privileges();
        let ends_any = [Privilege::ConnectionAdmin, Privilege::Super];
        let may_end_any = ends_any.iter().any(|it| privileges.global().has(*it));
        if !may_end_any && handle.line().user != privileges.account().name.user {
            return Err(ClientError::new(ER_KILL_DENIED_ERROR, &[&id]).into());
        }
        handle.give_order(order);
        if id == self.state.handle.id() {
            let code = if is_query {
                ER_QUERY_INTERRUPTED
            } else {
                ER_CONNECTION_KILLED
            };
            return Err(ClientError::new(code, &[]).into());
        }
        // The client of a running statement waits for its reply, so its session is not waited for.
        if !is_query && handle.line().command == IDLE {
            let hung_up = runtime::timeout(HANG_UP_TIME_MAX, handle.hung_up());
            // If the client accepts nothing, its own session's limit cuts it off.
            let _ = hung_up.await;
        }
        Ok(Reply::Ok(Done::default()))
    }

    /// Ends a client that is no session of this server, or its statement.
    fn kill_elsewhere(&self, id: u64, order: KillOrder) -> Result<Reply, Stop> {
        let Some(control) = self.state.worker.server.control() else {
            return Err(ClientError::new(ER_NO_SUCH_THREAD, &[&id]).into());
        };
        self.check_global_privilege(Privilege::ConnectionAdmin)?;
        control.kill(id, order)?;
        Ok(Reply::Ok(Done::default()))
    }

    /// SET SERVER.
    async fn set_server(&mut self, name: &str, wanted: &[u8]) -> Result<Reply, Stop> {
        let server = Arc::clone(&self.state.worker.server);
        let Some(control) = server.control() else {
            return Err(ClientError::not_supported(&"SET SERVER").into());
        };
        self.check_super()?;
        let order = control.set_server(name, Wanted::of_word(wanted)?);
        self.order(order).await?;
        Ok(Reply::Ok(Done::default()))
    }

    /// RELOAD CONFIGURATION.
    async fn reload(&mut self) -> Result<Reply, Stop> {
        let server = Arc::clone(&self.state.worker.server);
        let Some(control) = server.control() else {
            return Err(ClientError::not_supported(&"RELOAD CONFIGURATION").into());
        };
        self.check_super()?;
        let info = self.order(control.reload()).await?;
        Ok(Reply::Ok(Done {
            info,
            ..Done::default()
        }))
    }

    /// Waits until an order was carried out.
    pub(crate) async fn order<T: 'static>(
        &mut self,
        order: LocalFuture<'static, Result<T, ClientError>>,
    ) -> Result<T, Stop> {
        let answer = Rc::new(Cell::new(None));
        let told = Rc::clone(&answer);
        let wait = async move { told.set(Some(order.await)) };
        let deadline = self.statement_deadline();
        let wait = Suspend::new(WaitReason::Remote, wait);
        self.wait_until(wait, deadline).await?;
        Ok(answer.take().expect("it was waited for")?)
    }

    async fn flush(
        &mut self,
        (what, tables): (&[String], &[ObjectName]),
        lock: Option<FlushLock>,
    ) -> Result<Reply, Stop> {
        self.commit().await?;
        if what == ["QUERY CACHE"] && self.state.worker.server.control().is_some() {
            self.check_super()?;
        } else {
            self.check_global_privilege(Privilege::Reload)?;
        }
        match lock {
            Some(FlushLock::Read) => {
                return Err(ClientError::not_supported(&"FLUSH TABLES WITH READ LOCK").into());
            }
            Some(FlushLock::Export) => {
                return Err(ClientError::not_supported(&"FLUSH TABLES FOR EXPORT").into());
            }
            None => {}
        }
        for thing in what {
            if !FLUSHED.contains(&thing.as_str()) {
                return Err(ClientError::not_supported(&format!("FLUSH {thing}")).into());
            }
            if thing == "QUERY CACHE" {
                self.flush_results(tables)?;
            }
            if thing == "STATUS" {
                self.state.flush_status();
            }
            if thing == "PRIVILEGES" {
                let turn = self.change_turn().await?;
                self.reload_published(&turn).await?;
                self.state.worker.front.forget_proven();
            }
        }
        Ok(Reply::Ok(Done::default()))
    }

    /// A database keeps no results, so it has none to flush.
    fn flush_results(&self, tables: &[ObjectName]) -> Result<(), Stop> {
        match self.state.worker.server.control() {
            Some(control) => {
                let names: Vec<String> = tables.iter().map(|it| it.name.text.clone()).collect();
                control.flush_results(&names);
                Ok(())
            }
            None if tables.is_empty() => Ok(()),
            None => Err(ClientError::not_supported(&"FLUSH QUERY CACHE TABLE").into()),
        }
    }

    async fn look_after(
        &mut self,
        verb: TableVerb,
        tables: &[ObjectName],
        run: &mut StatementRun,
    ) -> Result<Reply, Stop> {
        // As before definitions. A transaction that only reads does not block once it has ended.
        self.commit().await?;
        let rewrites = matches!(verb, TableVerb::Optimize | TableVerb::Repair);
        if rewrites {
            self.check_may_write()?;
        }
        let operation = match verb {
            TableVerb::Analyze => "analyze",
            TableVerb::Check => "check",
            TableVerb::Optimize => "optimize",
            TableVerb::Repair => "repair",
        };
        for name in tables {
            self.check_may_look_after(verb, name)?;
        }
        let mut rows = Vec::new();
        for name in tables {
            let row = |table: &str, kind: &str, message: &str| {
                [table, operation, kind, message]
                    .map(|text| Value::bytes(text.as_bytes()))
                    .to_vec()
            };
            let usable = self.usable_table(name).and_then(|table| {
                if rewrites {
                    self.locked.check_change(&table)?;
                }
                Ok(table)
            });
            match usable {
                Ok(definition) => {
                    let table = definition.name.to_string();
                    rows.push(match verb {
                        TableVerb::Analyze | TableVerb::Optimize => {
                            let store = Rc::clone(&self.state.worker.schema);
                            store.renew_statistics(definition.id).await?;
                            row(&table, "status", "OK")
                        }
                        TableVerb::Check => self.check_table(&definition).await?,
                        _ => row(
                            &table,
                            "note",
                            "The storage engine for the table doesn't support repair",
                        ),
                    });
                }
                Err(error) => {
                    let table = self.unchecked_name(name)?.to_string();
                    rows.push(row(&table, "Error", &error.message));
                    rows.push(row(&table, "status", "Operation failed"));
                }
            }
        }
        self.write_rows(&look_after_columns(), rows, run)
    }

    /// Error 1142 without the privileges: any on the table for CHECK, as with MariaDB, and SELECT
    /// and INSERT for the others. A missing table is reported in its row.
    fn check_may_look_after(&self, verb: TableVerb, name: &ObjectName) -> Result<(), ClientError> {
        if self.table_named(name).is_ok_and(|it| is_own_table(&it)) {
            return Ok(());
        }
        let table = self.unchecked_name(name)?;
        match verb {
            TableVerb::Check => self.check_table_known("CHECK TABLE", &table),
            TableVerb::Analyze | TableVerb::Optimize | TableVerb::Repair => {
                let needed = PrivilegeSet::of(&[Privilege::Select, Privilege::Insert]);
                self.state.check_table_granted(needed, &table)
            }
        }
    }

    /// Reads every row by the key that rows are kept by and by every other index, and reports what
    /// cannot be read.
    async fn check_table(
        &mut self,
        definition: &store::TableDefinition,
    ) -> Result<Vec<Value>, Stop> {
        let read = self.read_whole(definition).await;
        let (kind, message) = match read {
            Ok(()) => ("status", "OK".to_owned()),
            Err(Stop::Error(error)) => ("Error", error.message),
            Err(stop) => return Err(stop),
        };
        let table = definition.name.to_string();
        Ok([&*table, "check", kind, &*message]
            .map(|text| Value::bytes(text.as_bytes()))
            .to_vec())
    }

    async fn read_whole(&mut self, definition: &store::TableDefinition) -> Result<(), Stop> {
        let table = quoted(&definition.name);
        let rows = format!("SELECT * FROM {table} USE INDEX ()");
        let is_other = |index: &&store::IndexDefinition| !index.is_clustered();
        let others = definition.indexes.iter().filter(is_other);
        let entries = others.map(|index| {
            let index = syntax::print::quoted_name(&index.name);
            format!("SELECT COUNT(*) FROM {table} FORCE INDEX ({index})")
        });
        for text in std::iter::once(rows).chain(entries) {
            self.sum_of(&text).await?;
        }
        Ok(())
    }

    /// Reads the rows of a query and keeps only their sum.
    async fn sum_of(&mut self, query: &str) -> Result<ChecksumSink, Stop> {
        let select = self.parse(query.as_bytes())?;
        let sink_for = |plan: &planner::Plan| {
            let types = plan.columns.iter().map(|it| it.column_type.clone());
            ChecksumSink::new(types.collect())
        };
        let (_, sum) = self.run_select(&select, Checks::Done, sink_for).await?;
        Ok(sum)
    }

    /// CHECKSUM TABLE: a CRC-32 of each row, in the order of the primary key, added up. The number
    /// is Plateau's own; MariaDB's depends on its row format. QUICK asks for a sum stored with the
    /// table; there is none.
    async fn checksum(
        &mut self,
        tables: &[ObjectName],
        is_quick: bool,
        run: &mut StatementRun,
    ) -> Result<Reply, Stop> {
        let mut rows = Vec::new();
        for name in tables {
            let definition = match self.table_named(name) {
                Ok(definition) => definition,
                Err(error) if error.code == ER_NO_SUCH_TABLE => {
                    let table = self.unchecked_name(name)?.to_string();
                    rows.push(vec![Value::bytes(table.into_bytes()), Value::Null]);
                    let warning = SqlCondition::from(error);
                    let diagnostics = self.state.diagnostics.borrow();
                    diagnostics.warnings().push(Level::Error, warning);
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            if !is_own_table(&definition) {
                self.check_table_privilege(Privilege::Select, &definition.name)?;
            }
            let sum = if is_quick {
                Value::Null
            } else {
                let all = format!("SELECT * FROM {}", quoted(&definition.name));
                Value::Int(i64::from(self.sum_of(&all).await?.checksum()))
            };
            let table = Value::bytes(definition.name.to_string().into_bytes());
            rows.push(vec![table, sum]);
        }
        self.write_rows(&checksum_columns(), rows, run)
    }

    /// SHUTDOWN and COM_SHUTDOWN.
    pub(crate) fn shut_down(&mut self) -> Result<Reply, Stop> {
        self.check_global_privilege(Privilege::Shutdown)?;
        self.state.worker.server.shut_down();
        Ok(Reply::Ok(Done::default()))
    }
}

/// The columns of the reply to a maintenance statement.
pub(crate) fn look_after_columns() -> Vec<OutputColumn> {
    vec![
        text_column("Table", 128),
        text_column("Op", 10),
        text_column("Msg_type", 10),
        text_column("Msg_text", 1024),
    ]
}

/// The columns of CHECKSUM TABLE.
pub(crate) fn checksum_columns() -> Vec<OutputColumn> {
    vec![text_column("Table", 128), number_column("Checksum")]
}

/// A table's name as a statement writes it.
fn quoted(name: &TableName) -> String {
    let part = syntax::print::quoted_name;
    format!("{}.{}", part(&name.database), part(&name.table))
}

/// A table of `information_schema`.
fn is_own_table(definition: &store::TableDefinition) -> bool {
    catalog::information_schema::definition_by_id(definition.id).is_some()
}
