//! BEGIN, COMMIT, ROLLBACK, savepoints, SET TRANSACTION, LOCK TABLES.

use catalog::Privilege;
use errcode::{
    ClientError, ER_CANT_CHANGE_TX_CHARACTERISTICS, ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION,
    ER_SP_DOES_NOT_EXIST,
};
use executor::HandlerCall;
use store::{ClientId, Isolation, TableId, TransactionOptions};
use syntax::ast::{self, Completion, Transaction, VariableScope};

use crate::connection::reply::{Done, Reply, Stop};
use crate::connection::session::Session;
use crate::connection::transaction::{End, NextTransaction};
use crate::lock::locked_tables::LockedTable;
use crate::lock::metadata::Mode;
use crate::statement::statement_run::StatementRun;
use crate::variables::system::NewValue;

impl Session {
    /// Answers a statement of transaction control.
    pub(crate) async fn transaction_statement(
        &mut self,
        statement: &Transaction,
        run: &mut StatementRun,
    ) -> Result<Reply, Stop> {
        match statement {
            Transaction::Begin {
                read_only,
                consistent_snapshot,
            } => {
                self.begin(*read_only, *consistent_snapshot).await?;
            }
            Transaction::Commit(completion) => return self.complete(true, *completion).await,
            Transaction::Rollback(completion) => {
                self.check_no_xa()?;
                return self.complete(false, *completion).await;
            }
            Transaction::Savepoint(name) => {
                self.check_xa_open()?;
                self.set_savepoint(&name.text)?;
            }
            Transaction::RollbackTo(name) => self.roll_back_to_savepoint(&name.text).await?,
            Transaction::ReleaseSavepoint(name) => {
                if !self.transaction.release_savepoint(&name.text) {
                    return Err(no_savepoint(&name.text));
                }
            }
            Transaction::Set {
                scope,
                isolation,
                read_only,
            } => {
                self.set_transaction(*scope, *isolation, *read_only)?;
            }
            Transaction::LockTables { tables } => Box::pin(self.lock_tables(tables)).await?,
            Transaction::UnlockTables => {
                if self.locked.are_on() {
                    self.commit().await?;
                    self.locked.clear();
                }
            }
            Transaction::Xa(statement) => {
                return Box::pin(self.xa_statement(statement, run)).await;
            }
        }
        Ok(Reply::Ok(Done::default()))
    }

    /// BEGIN: commits the open transaction first.
    pub(crate) async fn begin(
        &mut self,
        read_only: Option<bool>,
        with_snapshot: bool,
    ) -> Result<(), Stop> {
        let next = self.transaction.next;
        self.commit().await?;
        self.locked.clear();
        self.transaction.next = next;
        if self.is_at_gate() {
            self.admit().await?;
        }
        let default = self.state.variables.borrow().active().read_only;
        let is_read_only = read_only.or(next.read_only).unwrap_or(default);
        self.transaction.begin(is_read_only);
        if with_snapshot {
            let options = self.transaction_options();
            let store = std::rc::Rc::clone(&self.state.worker.store);
            self.transaction
                .store_transaction(&*store, || options)
                .open_snapshot();
        }
        Ok(())
    }

    async fn complete(&mut self, is_commit: bool, completion: Completion) -> Result<Reply, Stop> {
        let was_read_only = self.transaction.is_read_only;
        let default = {
            let variables = self.state.variables.borrow();
            variables.settings().text("completion_type").to_owned()
        };
        let isolation = self.transaction.next.isolation;
        if is_commit {
            self.commit().await?;
        } else {
            self.end_transaction(End::Rollback).await?;
        }
        if completion.chain.unwrap_or(default == "CHAIN") {
            self.transaction.next.isolation = isolation;
            self.transaction.begin(was_read_only);
        }
        if completion.release.unwrap_or(default == "RELEASE") {
            let capabilities = self.client.capabilities();
            let ok = wire::OkPacket {
                status: self.status(),
                ..wire::OkPacket::default()
            };
            ok.encode(self.client.out(), capabilities, wire::OkKind::Ok);
            return Ok(Reply::End);
        }
        Ok(Reply::Ok(Done::default()))
    }

    /// SAVEPOINT: without a transaction it has no effect, since each statement is its own.
    fn set_savepoint(&mut self, name: &str) -> Result<(), ClientError> {
        let autocommit = self.state.variables.borrow().active().autocommit;
        if !self.transaction.is_begun() && autocommit {
            return Ok(());
        }
        let (share, bytes) = self.transaction.savepoints_share(name);
        self.state.keep(share, bytes)?;
        let options = self.transaction_options();
        let store = std::rc::Rc::clone(&self.state.worker.store);
        self.transaction.store_transaction(&*store, || options);
        self.transaction.set_savepoint(name);
        self.state.count_handler_call(HandlerCall::Savepoint);
        Ok(())
    }

    async fn roll_back_to_savepoint(&mut self, name: &str) -> Result<(), Stop> {
        match self.transaction.savepoint(name) {
            Some(back) => {
                self.state
                    .count_handler_call(HandlerCall::SavepointRollback);
                self.go_back(back).await
            }
            None => Err(no_savepoint(name)),
        }
    }

    /// The options of a transaction that begins now, or of the open one.
    pub(crate) fn transaction_options(&self) -> TransactionOptions {
        let variables = self.state.variables.borrow();
        let active = variables.active();
        let transaction = &self.transaction;
        let next = transaction.next;
        let is_alone = active.autocommit && !transaction.is_begun();
        TransactionOptions {
            isolation: match next.isolation.unwrap_or(active.isolation) {
                // A statement that is a transaction of its own need not lock what it reads.
                Isolation::Serializable if is_alone => Isolation::RepeatableRead,
                isolation => isolation,
            },
            read_only: if transaction.is_open() {
                transaction.is_read_only
            } else {
                next.read_only.unwrap_or(active.read_only)
            },
            lock_wait_timeout_s: active.row_lock_wait_timeout_s,
            client: ClientId(self.state.handle.id()),
        }
    }

    /// Error 1792 if the transaction that the statement is in, or would begin, is read-only.
    pub(crate) fn check_may_write(&self) -> Result<(), ClientError> {
        if self.transaction_options().read_only {
            let code = ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION;
            return Err(ClientError::new(code, &[]));
        }
        Ok(())
    }

    fn set_transaction(
        &mut self,
        scope: Option<VariableScope>,
        isolation: Option<ast::Isolation>,
        read_only: Option<bool>,
    ) -> Result<(), Stop> {
        let Some(scope) = scope else {
            if self.transaction.is_open() {
                let error = ClientError::new(ER_CANT_CHANGE_TX_CHARACTERISTICS, &[]);
                return Err(error.into());
            }
            let next = &mut self.transaction.next;
            *next = NextTransaction {
                isolation: isolation.map(store_isolation).or(next.isolation),
                read_only: read_only.or(next.read_only),
            };
            return Ok(());
        };
        if let Some(isolation) = isolation {
            let text = NewValue::Text(isolation_text(isolation).to_owned());
            self.set_variable(scope, "tx_isolation", &text)?;
        }
        if let Some(read_only) = read_only {
            let number = NewValue::Number(i128::from(read_only));
            self.set_variable(scope, "tx_read_only", &number)?;
        }
        Ok(())
    }

    /// LOCK TABLES: commits the open transaction, releases earlier locks, and takes the tables for
    /// this session alone. READ excludes others as WRITE does, which is more than was asked and
    /// never less. This session itself may then only read.
    async fn lock_tables(&mut self, tables: &[ast::TableLock]) -> Result<(), Stop> {
        self.commit().await?;
        self.locked.clear();
        if tables.iter().any(|table| table.write) {
            self.check_may_write()?;
        }
        loop {
            let wanted = self.tables_to_lock(tables)?;
            let mut locked = Vec::new();
            for &(id, may_write) in &wanted {
                let worker = std::rc::Rc::clone(&self.state.worker);
                let own = self.state.handle.id();
                let hold = worker.metadata.change(&worker.server.metadata, id, own);
                let hold = self.wait_for_definition(id, Mode::Exclusive, hold).await?;
                locked.push(LockedTable { hold, may_write });
            }
            // During the wait the names may have changed their meaning, or may be gone.
            if self.tables_to_lock(tables)? == wanted {
                // All or none: if one could not be locked, the others are released again.
                self.locked.set(locked);
                return Ok(());
            }
        }
    }

    /// Which tables to lock, each once, and whether for writing.
    fn tables_to_lock(&self, tables: &[ast::TableLock]) -> Result<Vec<(TableId, bool)>, Stop> {
        let mut wanted = Vec::with_capacity(tables.len());
        for table in tables {
            let definition = self.table_named(&table.name)?;
            self.check_database_privilege(Privilege::LockTables, &definition.name.database)?;
            self.check_table_privilege(Privilege::Select, &definition.name)?;
            wanted.push((definition.id, table.write));
        }
        // One order for all sessions, also for RENAME TABLE, so that two never wait for each other.
        wanted.sort_unstable_by_key(|&(id, may_write)| (id, !may_write));
        wanted.dedup_by_key(|(id, _)| *id);
        Ok(wanted)
    }
}

fn no_savepoint(name: &str) -> Stop {
    ClientError::new(ER_SP_DOES_NOT_EXIST, &[&"SAVEPOINT", &name]).into()
}

fn store_isolation(isolation: ast::Isolation) -> Isolation {
    match isolation {
        ast::Isolation::ReadUncommitted => Isolation::ReadUncommitted,
        ast::Isolation::ReadCommitted => Isolation::ReadCommitted,
        ast::Isolation::RepeatableRead => Isolation::RepeatableRead,
        ast::Isolation::Serializable => Isolation::Serializable,
    }
}

fn isolation_text(isolation: ast::Isolation) -> &'static str {
    match isolation {
        ast::Isolation::ReadUncommitted => "READ-UNCOMMITTED",
        ast::Isolation::ReadCommitted => "READ-COMMITTED",
        ast::Isolation::RepeatableRead => "REPEATABLE-READ",
        ast::Isolation::Serializable => "SERIALIZABLE",
    }
}
