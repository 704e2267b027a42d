//! Administration of the server and maintenance of tables.

mod account;
mod refused;
mod set;
mod show;
mod transaction;
mod xa;

use super::cursor::{Cursor, Parsed};
use crate::ast::{Admin, FlushLock, StatementKind, TableVerb};
use crate::keyword::Keyword as K;
use crate::token::Kind;

impl Cursor<'_> {
    /// `CHECK TABLE t, u EXTENDED` and the like.
    pub(super) fn table_verb(&mut self, verb: TableVerb) -> Parsed<StatementKind> {
        let start = self.bump().span;
        self.eat_any(&[K::NoWriteToBinlog, K::Local]);
        if self.is(K::View) {
            return Ok(StatementKind::Refused(
                self.refuse_rest("CHECK VIEW", start),
            ));
        }
        if self.eat_any(&[K::Table, K::Tables]).is_none() {
            return Err(self.fail());
        }
        let tables = self.list(Self::object_name)?;
        let mut options = Vec::new();
        if verb == TableVerb::Analyze && self.is(K::Persistent) {
            let refused = self.refuse_rest("PERSISTENT FOR", start);
            options.push(refused.name);
        }
        while let Some(word) = self.eat_any(&[
            K::Extended,
            K::Quick,
            K::Fast,
            K::Medium,
            K::Changed,
            K::UseFrm,
        ]) {
            options.push(word.text().to_owned());
        }
        if self.eat_all(&[K::For, K::Upgrade]) {
            options.push("FOR UPGRADE".to_owned());
        }
        self.definition_wait()?;
        Ok(StatementKind::Admin(Admin::Table {
            verb,
            tables,
            options,
        }))
    }

    /// `CHECKSUM TABLE t, .. [QUICK | EXTENDED]`.
    pub(super) fn checksum(&mut self) -> Parsed<StatementKind> {
        self.bump();
        if self.eat_any(&[K::Table, K::Tables]).is_none() {
            return Err(self.fail());
        }
        let tables = self.list(Self::object_name)?;
        let kind = self.eat_any(&[K::Quick, K::Extended]);
        Ok(StatementKind::Admin(Admin::Checksum {
            tables,
            is_quick: kind == Some(K::Quick),
        }))
    }

    pub(super) fn kill(&mut self) -> Parsed<StatementKind> {
        let start = self.bump().span;
        self.eat_any(&[K::Hard, K::Soft]);
        let word = self.eat_any(&[K::Connection, K::Query]);
        let query = word == Some(K::Query);
        let refused = match (self.is(K::User), query && self.is(K::Id)) {
            (true, _) => Some("KILL USER"),
            (_, true) => Some("KILL QUERY ID"),
            _ => None,
        };
        if let Some(name) = refused {
            return Ok(StatementKind::Refused(self.refuse_rest(name, start)));
        }
        Ok(StatementKind::Admin(Admin::Kill {
            query,
            id: self.expr()?,
        }))
    }

    pub(super) fn flush(&mut self) -> Parsed<StatementKind> {
        self.bump();
        self.eat_any(&[K::NoWriteToBinlog, K::Local]);
        let (mut what, mut tables, mut lock) = (Vec::new(), Vec::new(), None);
        if self.eat_any(&[K::Table, K::Tables]).is_some() {
            what.push("TABLES".to_owned());
            if Self::is_name(self.peek()) {
                tables = self.list(Self::object_name)?;
            }
            if self.eat_all(&[K::With, K::Read, K::Lock]) {
                lock = Some(FlushLock::Read);
            } else if self.eat_all(&[K::For, K::Export]) {
                lock = Some(FlushLock::Export);
            }
            if lock.is_some() && self.eat(K::And) {
                self.expect_all(&[K::Disable, K::Checkpoint])?;
            }
        } else {
            what = self.list(Self::flush_word)?;
            let is_cache = what.last().is_some_and(|it| it == "QUERY CACHE");
            if is_cache && self.eat_any(&[K::Table, K::Tables]).is_some() {
                tables = self.list(Self::object_name)?;
            }
        }
        Ok(StatementKind::Admin(Admin::Flush { what, tables, lock }))
    }

    /// One or two words: `STATUS`, `BINARY LOGS`, `QUERY CACHE`.
    fn flush_word(&mut self) -> Parsed<String> {
        let start = self.start();
        if self.kind() != Kind::Word {
            return Err(self.fail());
        }
        self.bump();
        if self.is_any(&[K::Logs, K::Cache]) {
            self.bump();
        }
        Ok(self.upper(self.span_from(start)))
    }

    /// `RELOAD CONFIGURATION`.
    pub(super) fn reload(&mut self) -> Parsed<StatementKind> {
        self.bump();
        match self.eat_word("CONFIGURATION") {
            true => Ok(StatementKind::Admin(Admin::ReloadConfiguration)),
            false => Err(self.fail()),
        }
    }

    pub(super) fn shutdown(&mut self) -> Parsed<StatementKind> {
        self.bump();
        if self.eat(K::Wait) {
            self.expect_all(&[K::For, K::All])?;
            if self.eat_any(&[K::Slaves, K::Replicas]).is_none() {
                return Err(self.fail());
            }
        }
        Ok(StatementKind::Admin(Admin::Shutdown))
    }
}
