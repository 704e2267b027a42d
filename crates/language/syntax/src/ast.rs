//! The tree of a statement: plain owned enums, with a span wherever a name or message needs it.
//!
//! It is built once per plan-cache miss, so it is made for the reader, not for fast allocation.
//! Trees compare by meaning: spans are all equal ([`Span`]), names compare byte by byte.

pub mod admin;
pub mod ddl;
pub mod dml;
pub mod expr;
pub mod list;
pub mod query;
pub mod routine;

pub use admin::*;
pub use ddl::*;
pub use dml::*;
pub use expr::*;
pub use list::*;
pub use query::*;
pub use routine::*;

use crate::token::Span;

/// A name as written, quotes removed; the catalog decides whether case matters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Ident {
    /// The name.
    pub text: String,
    /// Its position, quotes included.
    pub span: Span,
}

impl Ident {
    /// A name that is not in any source text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Ident {
        Ident {
            text: text.into(),
            span: Span::default(),
        }
    }

    /// Whether it equals `other`, ignoring the case of ASCII letters.
    #[must_use]
    pub fn is(&self, other: &str) -> bool {
        self.text.eq_ignore_ascii_case(other)
    }
}

/// The name of a table, view, routine or the like, perhaps with its database.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ObjectName {
    /// The database, if one was written.
    pub schema: Option<Ident>,
    /// The object.
    pub name: Ident,
}

/// One statement of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// What it says.
    pub kind: StatementKind,
    /// From its first to its last token, without the `;`.
    pub span: Span,
    /// How many `?` it has; they are numbered from 0 in the order of the text.
    pub parameter_count: u32,
    /// `WAIT n` and `NOWAIT` of a statement that waits for metadata locks. (A query has them in its
    /// locking clause.)
    pub lock_wait: LockWait,
}

/// What a statement says.
#[derive(Debug, Clone, PartialEq)]
pub enum StatementKind {
    /// Only comments, `/*!99999 .. */` included: succeeds without effect.
    Empty,
    /// `SELECT`, `VALUES`, `WITH .. SELECT`, `TABLE`-less unions and so on.
    Query(Box<Query>),
    /// `INSERT` and `REPLACE`.
    Insert(Box<Insert>),
    /// `UPDATE`, one table or many.
    Update(Box<Update>),
    /// `DELETE`, one table or many.
    Delete(Box<Delete>),
    /// `TRUNCATE [TABLE] t`.
    Truncate(ObjectName),
    /// `LOAD DATA`.
    LoadData(Box<LoadData>),
    /// `DO e, ..`.
    Do(Vec<Expr>),
    /// `CALL p(..)`.
    Call(Call),
    /// `CREATE TABLE`.
    CreateTable(Box<CreateTable>),
    /// `ALTER TABLE`.
    AlterTable(Box<AlterTable>),
    /// `DROP TABLE`, `DROP VIEW` and the like.
    Drop(Drop),
    /// `RENAME TABLE a TO b, ..`.
    RenameTables(Vec<(ObjectName, ObjectName)>),
    /// `CREATE INDEX`.
    CreateIndex(Box<CreateIndex>),
    /// `DROP INDEX`.
    DropIndex(DropIndex),
    /// `CREATE DATABASE`.
    CreateDatabase(CreateDatabase),
    /// `ALTER DATABASE`.
    AlterDatabase {
        /// The database; the current one when absent.
        name: Option<Ident>,
        /// What changes.
        options: DatabaseOptions,
    },
    /// `DROP DATABASE`.
    DropDatabase {
        /// The database.
        name: Ident,
        /// No error if it is missing.
        if_exists: bool,
    },
    /// `CREATE VIEW`.
    CreateView(Box<CreateView>),
    /// `CREATE PROCEDURE`, `CREATE FUNCTION`.
    CreateRoutine(Box<CreateRoutine>),
    /// `ALTER PROCEDURE`, `ALTER FUNCTION`.
    AlterRoutine(AlterRoutine),
    /// `DROP PROCEDURE`, `DROP FUNCTION`.
    DropRoutine(DropRoutine),
    /// `BEGIN NOT ATOMIC`, `IF`, `CASE`, loops, `SIGNAL`, `RESIGNAL` and `GET DIAGNOSTICS` outside
    /// of a routine.
    Program(Box<Program>),
    /// `BEGIN`, `COMMIT`, savepoints, `XA`, `LOCK TABLES` ..
    Transaction(Transaction),
    /// `SET a = 1, NAMES utf8mb4, ..`.
    Set(Vec<SetItem>),
    /// `SET STATEMENT a = 1 FOR ..`.
    SetStatement {
        /// The variables that apply to one statement.
        variables: Vec<SetItem>,
        /// The statement.
        statement: Box<Statement>,
    },
    /// `SHOW ..`.
    Show(Box<Show>),
    /// `USE db`.
    Use(Ident),
    /// `EXPLAIN`, `DESCRIBE`, `ANALYZE statement`.
    Explain(Box<Explain>),
    /// `PREPARE`, `EXECUTE`, `DEALLOCATE`.
    Prepared(Prepared),
    /// Accounts, roles, privileges.
    Account(Box<Account>),
    /// `KILL`, `FLUSH`, `CHECK TABLE` and the like.
    Admin(Admin),
    /// Known only by name and position: valid for MariaDB, refused with error 1235.
    Refused(Refused),
}

/// A statement, or a part of one, that is skipped without being parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Its name for the message of error 1235: `CREATE PROCEDURE`, `XA START`, ...
    pub name: String,
    /// The skipped text.
    pub span: Span,
}
