//! Transaction control.

use crate::ast::{Completion, Isolation, StatementKind, TableLock, Transaction, VariableScope};
use crate::keyword::Keyword as K;
use crate::parse::cursor::{Cursor, Parsed};

impl Cursor<'_> {
    pub(crate) fn transaction(&mut self, word: K) -> Parsed<StatementKind> {
        let start = self.bump().span;
        let transaction = match word {
            K::Begin if self.is(K::Not) => {
                return Ok(StatementKind::Refused(
                    self.refuse_all("BEGIN NOT ATOMIC", start),
                ));
            }
            K::Begin => {
                self.eat(K::Work);
                Transaction::Begin {
                    read_only: None,
                    consistent_snapshot: false,
                }
            }
            K::Start if self.is(K::Transaction) => self.start_transaction()?,
            K::Start => return self.refused_replication("START", start),
            K::Commit => Transaction::Commit(self.completion()?),
            K::Rollback => self.rollback()?,
            K::Savepoint => Transaction::Savepoint(self.ident()?),
            K::Release => {
                self.expect(K::Savepoint)?;
                Transaction::ReleaseSavepoint(self.ident()?)
            }
            K::Lock => self.lock_tables()?,
            K::Unlock => {
                self.expect_tables()?;
                Transaction::UnlockTables
            }
            _ => Transaction::Xa(self.xa()?),
        };
        Ok(StatementKind::Transaction(transaction))
    }

    fn expect_tables(&mut self) -> Parsed<()> {
        match self.eat_any(&[K::Table, K::Tables]) {
            Some(_) => Ok(()),
            None => Err(self.fail()),
        }
    }

    fn start_transaction(&mut self) -> Parsed<Transaction> {
        self.bump();
        let (mut read_only, mut consistent_snapshot) = (None, false);
        while !self.is_end() {
            if self.eat(K::With) {
                self.expect_all(&[K::Consistent, K::Snapshot])?;
                consistent_snapshot = true;
            } else {
                self.expect(K::Read)?;
                let value = self.access_mode()?;
                if read_only.is_some() {
                    return Err(self.fail());
                }
                read_only = Some(value);
            }
            if !self.eat_kind(crate::token::Kind::Comma) {
                break;
            }
        }
        Ok(Transaction::Begin {
            read_only,
            consistent_snapshot,
        })
    }

    /// `ONLY` (true) or `WRITE`.
    fn access_mode(&mut self) -> Parsed<bool> {
        match self.eat_any(&[K::Only, K::Write]) {
            Some(word) => Ok(word == K::Only),
            None => Err(self.fail()),
        }
    }

    fn completion(&mut self) -> Parsed<Completion> {
        self.eat(K::Work);
        let mut completion = Completion::default();
        if self.eat(K::And) {
            completion.chain = Some(!self.eat(K::No));
            self.expect(K::Chain)?;
        }
        if self.are(&[K::No, K::Release]) {
            self.skip(2);
            completion.release = Some(false);
        } else if completion.chain != Some(true) && self.eat(K::Release) {
            completion.release = Some(true);
        }
        Ok(completion)
    }

    fn rollback(&mut self) -> Parsed<Transaction> {
        let work = usize::from(self.is(K::Work));
        if self.keyword_at(work) == Some(K::To) {
            self.skip(work + 1);
            self.eat(K::Savepoint);
            return Ok(Transaction::RollbackTo(self.ident()?));
        }
        Ok(Transaction::Rollback(self.completion()?))
    }

    fn lock_tables(&mut self) -> Parsed<Transaction> {
        self.expect_tables()?;
        let tables = self.list(Self::table_lock)?;
        self.definition_wait()?;
        Ok(Transaction::LockTables { tables })
    }

    fn table_lock(&mut self) -> Parsed<TableLock> {
        let name = self.object_name()?;
        let alias = self.table_alias()?;
        if self.eat(K::Read) {
            let local = self.eat(K::Local);
            return Ok(TableLock {
                name,
                alias,
                write: false,
                local,
            });
        }
        self.eat(K::LowPriority);
        self.expect(K::Write)?;
        let local = self.eat(K::Concurrent);
        Ok(TableLock {
            name,
            alias,
            write: true,
            local,
        })
    }

    /// What follows `SET [scope] TRANSACTION`.
    pub(crate) fn set_transaction(&mut self, scope: Option<VariableScope>) -> Parsed<Transaction> {
        let (mut isolation, mut read_only) = (None, None);
        loop {
            if self.eat_all(&[K::Isolation, K::Level]) {
                if isolation.is_some() {
                    return Err(self.fail());
                }
                isolation = Some(self.isolation()?);
            } else {
                if read_only.is_some() {
                    return Err(self.fail());
                }
                self.expect(K::Read)?;
                read_only = Some(self.access_mode()?);
            }
            if !self.eat_kind(crate::token::Kind::Comma) {
                return Ok(Transaction::Set {
                    scope,
                    isolation,
                    read_only,
                });
            }
        }
    }

    fn isolation(&mut self) -> Parsed<Isolation> {
        if self.eat(K::Serializable) {
            return Ok(Isolation::Serializable);
        }
        if self.eat_all(&[K::Repeatable, K::Read]) {
            return Ok(Isolation::RepeatableRead);
        }
        self.expect(K::Read)?;
        match self.eat_any(&[K::Committed, K::Uncommitted]) {
            Some(K::Committed) => Ok(Isolation::ReadCommitted),
            Some(_) => Ok(Isolation::ReadUncommitted),
            None => Err(self.fail()),
        }
    }
}
