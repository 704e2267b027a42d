//! The second stage: what a statement reads and changes, from all its tokens.
//!
//! [`verdict`] is made to run once for each distinct text: the caller caches it by the key of the
//! canonical form, and calls it with [`crate::canonical::Canonical::text`]. A text without a
//! canonical form is passed as it is. No literal changes a verdict, except in SET.
//!
//! (I1) [`Kind::Read`] means: known to change no data, lock no row, write no file, and take nothing
//! that only the primary has. Whatever is not understood is a [`Kind::Write`].
//! (I2) With [`Facts::CALLS_UNKNOWN`] or [`Facts::NOT_UNDERSTOOD`] the facts are a lower bound.
//!
//! Names are not resolved. A view or a table's default may call what this text does not show, and
//! a trigger may set a user variable: only the server's replies tell. Any limit without an order
//! may give other rows on another server; that is not said here.

use settings::SqlMode;

use super::effect::Class;
use super::facts::Facts;
use super::first::{self, Detail, Statement, has_body, statement_whole};
use super::set::{Assignment, Assignments, Scope, Target, Value, ValueKind};
use super::words::Words;
use crate::keyword::Keyword as K;
use crate::token::Kind as Token;

mod scan;

use scan::Scan;
pub use scan::is_server_database;

/// Where a statement may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Only reads (I1).
    Read,
    /// Changes its session alone: `SET`, `USE`, `PREPARE`. Each connection that the session uses
    /// needs it.
    Session,
    /// Begins, ends or marks a transaction.
    Transaction,
    /// Reads and locks rows: `FOR UPDATE`, `FOR SHARE`, `LOCK IN SHARE MODE`.
    LockingRead,
    /// Changes data or definitions, or might.
    Write,
}

/// What a text does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// The kind of the statement; of several, that of all if they agree, else [`Kind::Write`].
    pub kind: Kind,
    /// What it has to do with its session, and what its answer depends on; of several statements,
    /// all of it.
    pub facts: Facts,
    /// The text has several statements.
    pub is_several: bool,
}

impl Verdict {
    /// True of a read that each connection of the account answers alike if it sees the same data:
    /// nothing of its session or its server is asked or changed.
    #[must_use]
    pub fn is_free_read(&self) -> bool {
        let harmless = Facts::NO_CACHE.with(Facts::HAS_SET_STATEMENT);
        self.kind == Kind::Read && self.facts.without(harmless).is_empty()
    }
}

/// Judges all statements of a text.
#[must_use]
pub fn verdict(text: &[u8], mode: SqlMode) -> Verdict {
    let mut words = Words::new(text, mode);
    let has_semicolon = text.contains(&b';');
    let mut total = None;
    loop {
        while words.take_sign(Token::Semicolon) {}
        if words.token.kind == Token::End && total.is_some() {
            break;
        }
        let start = words.clone();
        let statement = match has_semicolon {
            true => statement_whole(&mut words),
            false => first::statement(&mut words),
        };
        let one = judge(start, &statement, mode);
        total = Some(match total {
            None => one,
            Some(before) => join(before, one),
        });
        if !has_semicolon {
            break;
        }
    }
    total.unwrap_or(Verdict {
        kind: Kind::Write,
        facts: Facts::NOT_UNDERSTOOD,
        is_several: false,
    })
}

fn join(left: Verdict, right: Verdict) -> Verdict {
    let is_same = left.kind == right.kind;
    Verdict {
        kind: if is_same { left.kind } else { Kind::Write },
        facts: left.facts.with(right.facts),
        is_several: true,
    }
}

fn judge(start: Words<'_>, statement: &Statement<'_>, mode: SqlMode) -> Verdict {
    let mut facts = of_statement(statement);
    let mut kind = kind_of(statement);
    let is_program = statement.class == Class::Program
        || (statement.class == Class::Definition && has_body(start.clone()));
    if is_program {
        // Its body is not run now, or is unknown as a whole.
        if statement.class == Class::Program {
            facts.add(Facts::CALLS_UNKNOWN);
        }
    } else {
        let mut scan = Scan::new(start.clone(), statement, mode);
        scan.run();
        facts.add(scan.facts);
        kind = scan.kind(kind);
    }
    if statement.class == Class::Set || is_set_transaction(&start, statement) {
        let (set, is_global) = assigned(start);
        facts.add(set);
        if is_global {
            kind = Kind::Write;
        }
    }
    let takes = Facts::TAKES_USER_LOCK
        .with(Facts::FREES_USER_LOCK)
        .with(Facts::FREES_USER_LOCKS)
        .with(Facts::READS_USER_LOCK)
        .with(Facts::ADVANCES_SEQUENCE)
        .with(Facts::WRITES_FILE)
        .with(Facts::CALLS_UNKNOWN)
        .with(Facts::DEPENDS_ON_VERSION)
        .with(Facts::NOT_UNDERSTOOD);
    if facts.has_any(takes) {
        kind = Kind::Write;
    }
    Verdict {
        kind,
        facts,
        is_several: false,
    }
}

/// The kind that the first tokens show.
fn kind_of(statement: &Statement<'_>) -> Kind {
    match statement.class {
        Class::Query | Class::Do | Class::Show | Class::Empty => Kind::Read,
        Class::Set | Class::Use | Class::Diagnostics => Kind::Session,
        Class::Prepared => match statement.detail {
            Detail::Prepare(..) | Detail::Deallocate(_) => Kind::Session,
            _ => Kind::Write,
        },
        Class::Transaction | Class::Xa => Kind::Transaction,
        Class::Write
        | Class::Call
        | Class::Program
        | Class::Definition
        | Class::Lock
        | Class::Handler
        | Class::Account
        | Class::Kill
        | Class::Admin
        | Class::Unknown => Kind::Write,
    }
}

/// The facts that the first tokens show.
fn of_statement(statement: &Statement<'_>) -> Facts {
    let of_class = match statement.class {
        Class::Use => Facts::CHANGES_DATABASE,
        Class::Call => Facts::CALLS_UNKNOWN,
        Class::Unknown => Facts::NOT_UNDERSTOOD,
        Class::Show => Facts::NOT_DETERMINISTIC,
        Class::Lock => match statement.effect {
            super::Effect::Unlock => Facts::UNLOCKS_TABLES,
            _ => Facts::LOCKS_TABLES,
        },
        _ => Facts::NONE,
    };
    let of_detail = match statement.detail {
        Detail::Prepare(..) => Facts::PREPARES,
        Detail::Execute(_) => Facts::EXECUTES,
        Detail::ExecuteImmediate(_) => Facts::CALLS_UNKNOWN,
        Detail::Deallocate(_) => Facts::DEALLOCATES,
        Detail::CreateTemporary => Facts::CREATES_TEMPORARY,
        Detail::DropTemporary => Facts::DROPS_TEMPORARY,
        Detail::HandlerOpen => Facts::OPENS_HANDLER,
        Detail::HandlerClose => Facts::CLOSES_HANDLER,
        Detail::HandlerRead => Facts::READS_HANDLER,
        Detail::GlobalReadLock => Facts::TAKES_GLOBAL_LOCK,
        Detail::None | Detail::Use(_) | Detail::Kill(_) | Detail::Xa(_) => Facts::NONE,
    };
    let facts = of_class.with(of_detail);
    if statement.has_set_statement {
        facts.with(Facts::HAS_SET_STATEMENT)
    } else {
        facts
    }
}

/// `SET TRANSACTION` and `SET PASSWORD` have classes of their own.
fn is_set_transaction(start: &Words<'_>, statement: &Statement<'_>) -> bool {
    let is_one = matches!(statement.class, Class::Transaction | Class::Account);
    is_one && start.is(K::Set) && !statement.has_set_statement
}

/// The facts of the assignments, and whether one is the server's.
fn assigned(mut start: Words<'_>) -> (Facts, bool) {
    start.bump();
    let mut assignments = Assignments::after_set(start);
    if assignments.is_of_statement() {
        // Those hold for one statement; what it sets itself stands behind them.
        for _ in &mut assignments {}
        let mut words = assignments.into_words();
        words.take(K::For);
        if !words.take(K::Set) {
            return (Facts::NONE, false);
        }
        assignments = Assignments::after_set(words);
    }
    let mut facts = Facts::NONE;
    for assignment in assignments {
        facts.add(of_assignment(&assignment));
    }
    let is_global = facts.has_any(Facts::SETS_GLOBAL_VARIABLES.with(Facts::SETS_PASSWORD));
    (facts, is_global)
}

fn of_assignment(assignment: &Assignment<'_>) -> Facts {
    let is_phrase = matches!(assignment.target, Target::Names | Target::CharacterSet);
    let is_constant = assignment.value.is_constant()
        || (is_phrase && assignment.value.kind != ValueKind::Default);
    let session = if is_constant {
        Facts::SETS_SESSION_VARIABLES
    } else {
        Facts::SETS_SESSION_VARIABLES.with(Facts::SETS_TO_EXPRESSION)
    };
    let is = |name: &str| assignment.target.is_system(name);
    let is_any = |names: &[&str]| names.iter().any(|name| is(name));
    match assignment.target {
        Target::User(_) => Facts::SETS_USER_VARIABLES,
        Target::Password | Target::DefaultRole => Facts::SETS_PASSWORD,
        Target::Role => Facts::SETS_ROLE,
        Target::Unknown => Facts::NOT_UNDERSTOOD,
        _ if assignment.scope == Scope::Global => Facts::SETS_GLOBAL_VARIABLES,
        Target::Transaction if assignment.scope == Scope::Bare => Facts::SETS_NEXT_TRANSACTION,
        Target::Transaction => Facts::SETS_SESSION_VARIABLES,
        Target::Names | Target::CharacterSet => session,
        Target::System(_) if is("timestamp") => session.with(Facts::SETS_TIMESTAMP),
        Target::System(_) if is_any(&OF_NEXT_WRITE) => session.with(Facts::SETS_INSERT_ID),
        // By it a comparison with NULL reads LAST_INSERT_ID(). Drivers turn it off.
        Target::System(_) if is("sql_auto_is_null") && !is_off(&assignment.value) => {
            session.with(Facts::SETS_AUTO_IS_NULL)
        }
        Target::System(_) if is_any(&["last_insert_id", "identity"]) => {
            session.with(Facts::SETS_LAST_INSERT_ID)
        }
        Target::System(_) if is_any(&["rand_seed1", "rand_seed2"]) => {
            session.with(Facts::SETS_RAND_SEED)
        }
        Target::System(_) if assignment.scope == Scope::Bare && is_any(&OF_NEXT_TRANSACTION) => {
            Facts::SETS_NEXT_TRANSACTION
        }
        Target::System(_) => session,
    }
}

fn is_off(value: &Value<'_>) -> bool {
    ["0", "OFF", "FALSE"].iter().any(|it| value.is(it))
}

/// The next statement that writes uses these up.
const OF_NEXT_WRITE: [&str; 3] = ["insert_id", "gtid_seq_no", "gtid_next"];

/// By `@@name` these are set for the next transaction alone.
const OF_NEXT_TRANSACTION: [&str; 4] = [
    "tx_isolation",
    "tx_read_only",
    "transaction_isolation",
    "transaction_read_only",
];

#[cfg(test)]
mod tests;
