//! XA START, END, PREPARE, COMMIT, ROLLBACK, RECOVER. See [`crate::xa`] for the states.

use std::rc::Rc;
use std::sync::Arc;

use errcode::{
    ClientError, ER_UNKNOWN_EXPLAIN_FORMAT, ER_XAER_DUPID, ER_XAER_INVAL, ER_XAER_NOTA,
    ER_XAER_OUTSIDE,
};
use store::{Interrupt, Prepared, Xid};
use syntax::ast::{self, Association, Phases, Xa};
use value::{CollationId, ColumnType, Value};

use crate::connection::reply::{Done, Reply, Stop};
use crate::connection::session::Session;
use crate::connection::sink::{made_up_column, number_column, text_column};
use crate::connection::transaction::{End, wait_for_end};
use crate::statement::statement_run::StatementRun;
use crate::xa::XaName;
use crate::xa::branch::{XaBranch, XaState, wrong_state};

impl Session {
    /// Answers a statement about XA transactions.
    pub(crate) async fn xa_statement(
        &mut self,
        statement: &Xa,
        run: &mut StatementRun,
    ) -> Result<Reply, Stop> {
        match statement {
            Xa::Start { xid, association } => self.xa_start(xid, *association).await?,
            Xa::End { suspend: true, .. } => {
                return Err(ClientError::new(ER_XAER_INVAL, &[]).into());
            }
            Xa::End { xid, .. } => {
                self.own_branch(xid, XaState::Active)?.state = XaState::Idle;
            }
            Xa::Prepare(xid) => self.xa_prepare(xid).await?,
            Xa::Commit { xid, phases } => self.xa_commit(xid, *phases).await?,
            Xa::Rollback(xid) => self.xa_rollback(xid).await?,
            Xa::Recover { format } => return self.xa_recover(format.as_deref(), run),
        }
        Ok(Reply::Ok(Done::default()))
    }

    async fn xa_start(
        &mut self,
        xid: &ast::Xid,
        association: Option<Association>,
    ) -> Result<(), Stop> {
        let wanted = xid_of(xid);
        if association == Some(Association::Resume)
            && let Some(branch) = self.transaction.xa()
            && branch.state == XaState::Idle
        {
            if Some(branch.name.xid()) != wanted.as_ref() {
                return Err(ClientError::new(ER_XAER_NOTA, &[]).into());
            }
            branch.state = XaState::Active;
            return Ok(());
        }
        if association.is_some() {
            return Err(ClientError::new(ER_XAER_INVAL, &[]).into());
        }
        self.check_no_xa()?;
        if self.locked.are_on() || self.transaction.is_open() {
            return Err(ClientError::new(ER_XAER_OUTSIDE, &[]).into());
        }
        let wanted = wanted.ok_or_else(|| ClientError::new(ER_XAER_INVAL, &[]))?;
        let names = Arc::clone(&self.state.worker.server.xa_names);
        let is_taken = || ClientError::new(ER_XAER_DUPID, &[]);
        if names.has(&wanted) {
            return Err(is_taken().into());
        }
        // Whoever waits for admission holds nothing, and no name either.
        self.begin(None, false).await?;
        let Some(name) = XaName::take(&names, wanted) else {
            self.transaction.end();
            return Err(is_taken().into());
        };
        let state = XaState::Active;
        self.transaction.set_xa(XaBranch { name, state });
        Ok(())
    }

    /// The session's own transaction, which must be the named one and in a state.
    fn own_branch(&mut self, xid: &ast::Xid, state: XaState) -> Result<&mut XaBranch, ClientError> {
        let wanted = xid_of(xid);
        match self.transaction.xa() {
            Some(branch) if branch.state == state => {
                if Some(branch.name.xid()) == wanted.as_ref() {
                    Ok(branch)
                } else {
                    Err(ClientError::new(ER_XAER_NOTA, &[]))
                }
            }
            other => Err(wrong_state(other.map(|branch| branch.state))),
        }
    }

    async fn xa_prepare(&mut self, xid: &ast::Xid) -> Result<(), Stop> {
        let xid = self.own_branch(xid, XaState::Idle)?.name.xid().clone();
        let durability = self.state.worker.server.durability();
        while let Some(open) = self.transaction.opened() {
            match open.prepare_as(&xid, durability) {
                Ok(Prepared::Ready | Prepared::Nothing) => break,
                Err(Interrupt::Suspend(suspend)) => wait_for_end(suspend).await,
                Err(Interrupt::Error(error)) => {
                    // As in MariaDB, what cannot be prepared is rolled back.
                    self.transaction.take_xa();
                    self.end_transaction(End::Rollback).await?;
                    return Err(error.into());
                }
            }
        }
        let branch = self.transaction.xa().expect("its state was checked");
        branch.state = XaState::Prepared;
        branch.name.set_prepared();
        Ok(())
    }

    async fn xa_commit(&mut self, xid: &ast::Xid, phases: Phases) -> Result<(), Stop> {
        let durability = self.state.worker.server.durability();
        let Some(state) = self.own_state(xid) else {
            return self.decide(xid, phases, End::Commit(durability)).await;
        };
        match (state, phases) {
            (XaState::RollbackOnly(code), _) => {
                self.transaction.take_xa();
                Err(ClientError::new(code, &[]).into())
            }
            (XaState::Idle, Phases::One) | (XaState::Prepared, Phases::Two) => {
                self.end_branch(End::Commit(durability)).await
            }
            (XaState::Prepared, Phases::One) => Err(ClientError::new(ER_XAER_INVAL, &[]).into()),
            (XaState::Active | XaState::Idle, _) => Err(wrong_state(Some(state)).into()),
        }
    }

    async fn xa_rollback(&mut self, xid: &ast::Xid) -> Result<(), Stop> {
        match self.own_state(xid) {
            None => self.decide(xid, Phases::Two, End::Rollback).await,
            Some(XaState::Active) => Err(wrong_state(Some(XaState::Active)).into()),
            Some(_) => self.end_branch(End::Rollback).await,
        }
    }

    /// The state of the session's transaction, if it is the named one.
    fn own_state(&mut self, xid: &ast::Xid) -> Option<XaState> {
        let wanted = xid_of(xid);
        let branch = self.transaction.xa()?;
        (Some(branch.name.xid()) == wanted.as_ref()).then_some(branch.state)
    }

    /// Ends the session's transaction. A prepared one that cannot be ended now is left to others:
    /// it must not stay unknown what becomes of it.
    async fn end_branch(&mut self, how: End) -> Result<(), Stop> {
        let branch = self.transaction.take_xa().expect("its state was checked");
        if branch.state != XaState::Prepared || !self.transaction.has_changes() {
            return self.end_transaction(how).await;
        }
        let pass = self.transaction.take_pass();
        let xid = self.detach(branch);
        let worker = Rc::clone(&self.state.worker);
        let owner = worker.server.xa_names.take(&xid);
        let owner = owner.expect("nobody else could take it meanwhile");
        self.state.count_handler_call(how.handler_call());
        let decided = worker.decide(owner, &xid, how).await;
        if decided.is_ok()
            && let Some(pass) = pass
        {
            how.leave(pass);
        }
        Ok(decided.map_err(ClientError::from)?)
    }

    /// Ends a transaction that no session has.
    async fn decide(&mut self, xid: &ast::Xid, phases: Phases, how: End) -> Result<(), Stop> {
        let is_manual = !self.state.variables.borrow().active().autocommit;
        let has_own = self.transaction.xa().is_some();
        if has_own || is_manual || self.transaction.is_open() {
            return Err(ClientError::new(ER_XAER_OUTSIDE, &[]).into());
        }
        if phases == Phases::One {
            return Err(ClientError::new(ER_XAER_INVAL, &[]).into());
        }
        let worker = Rc::clone(&self.state.worker);
        let xid = xid_of(xid);
        let taken = xid.and_then(|xid| Some((worker.server.xa_names.take(&xid)?, xid)));
        let (owner, xid) = taken.ok_or_else(|| ClientError::new(ER_XAER_NOTA, &[]))?;
        let decided = Box::pin(worker.decide(owner, &xid, how)).await;
        Ok(decided.map_err(ClientError::from)?)
    }

    /// Gives the session's prepared transaction to its worker.
    pub(crate) fn detach(&mut self, branch: XaBranch) -> Xid {
        let worker = Rc::clone(&self.state.worker);
        let detached = self.transaction.detach();
        let xid = branch.name.detach(worker.index);
        worker.detached.borrow_mut().insert(xid.clone(), detached);
        xid
    }

    /// Error 1399 if the session has an XA transaction, whatever its state.
    pub(crate) fn check_no_xa(&mut self) -> Result<(), ClientError> {
        match self.transaction.xa() {
            Some(branch) => Err(wrong_state(Some(branch.state))),
            None => Ok(()),
        }
    }

    /// Error 1399 if the session has an XA transaction that takes no more statements.
    pub(crate) fn check_xa_open(&mut self) -> Result<(), ClientError> {
        match self.transaction.xa() {
            Some(branch) if branch.state != XaState::Active => Err(wrong_state(Some(branch.state))),
            _ => Ok(()),
        }
    }

    fn xa_recover(&mut self, format: Option<&[u8]>, run: &mut StatementRun) -> Result<Reply, Stop> {
        let is_sql = match format {
            None => false,
            Some(name) if name.eq_ignore_ascii_case(b"RAW") => false,
            Some(name) if name.eq_ignore_ascii_case(b"SQL") => true,
            Some(name) => {
                let name = String::from_utf8_lossy(name);
                let words: [&dyn std::fmt::Display; 2] = [&"XA RECOVER", &name];
                return Err(ClientError::new(ER_UNKNOWN_EXPLAIN_FORMAT, &words).into());
            }
        };
        let prepared = self.state.worker.server.xa_names.prepared();
        let rows = prepared.iter().map(|xid| {
            let length = |part: &[u8]| Value::Int(i64::try_from(part.len()).unwrap_or(i64::MAX));
            let data = if is_sql {
                sql_of(xid).into_bytes()
            } else {
                [xid.global(), xid.branch()].concat()
            };
            vec![
                Value::Int(xid.format_id().into()),
                length(xid.global()),
                length(xid.branch()),
                Value::Bytes(data),
            ]
        });
        let data = if is_sql {
            text_column("data", SQL_CHARS_MAX)
        } else {
            let bytes = ColumnType::varchar(RAW_BYTES_MAX, CollationId::BINARY);
            made_up_column("data", bytes)
        };
        let columns = [
            number_column("formatID"),
            number_column("gtrid_length"),
            number_column("bqual_length"),
            data,
        ];
        self.write_rows(&columns, rows.collect(), run)
    }
}

fn xid_of(xid: &ast::Xid) -> Option<Xid> {
    Xid::new(xid.format_id, &xid.global, &xid.branch)
}

/// An identifier as XA statements take it.
fn sql_of(xid: &Xid) -> String {
    let is_plain = |byte: &u8| (b' '..=b'~').contains(byte) && !b"'\\".contains(byte);
    let (global, branch) = (xid.global(), xid.branch());
    let are_plain = global.iter().chain(branch).all(is_plain);
    let part = |bytes: &[u8]| {
        if are_plain {
            return format!("'{}'", String::from_utf8_lossy(bytes));
        }
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("X'{digits}'")
    };
    let mut text = part(global);
    if !branch.is_empty() || xid.format_id() != 1 {
        text = format!("{text},{}", part(branch));
    }
    if xid.format_id() != 1 {
        text = format!("{text},{}", xid.format_id());
    }
    text
}

/// The most characters of an identifier in SQL: each byte takes two digits.
const SQL_CHARS_MAX: u32 = 2 * 2 * 64 + 32;
/// The most bytes of both parts.
const RAW_BYTES_MAX: u32 = 2 * 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_shown_as_statements_take_them() {
        let sql = |format_id, global: &[u8], branch: &[u8]| {
            sql_of(&Xid::new(format_id, global, branch).expect("it is short"))
        };
        assert_eq!(sql(1, b"a", b""), "'a'");
        assert_eq!(sql(1, b"a", b"b"), "'a','b'");
        assert_eq!(sql(7, b"a", b""), "'a','',7");
        assert_eq!(sql(2, b"a'b", b"c\\d"), "X'612762',X'635c64',2");
        assert_eq!(sql(1, "\u{e4}".as_bytes(), b""), "X'c3a4'");
    }
}
