//! The first stage: a statement's class, its effect on the transaction, and the names that a
//! gateway needs, from its first tokens.
//!
//! Only SET is read to its end. [`is_several`] searches the text for a `;`, and reads tokens only
//! if something stands behind one. A compound statement, and the body of a stored program, contain
//! `;` of their own. This stage does not look for their end: all that follows belongs to them, and
//! the effect of the whole is unknown. For a compound statement that is true anyway.
//!
//! Source of the implicit commits: MariaDB manual, "SQL statements That Cause an Implicit Commit",
//! and a server (`tests/effects`).

mod admin;
mod assignment;

use settings::SqlMode;

use super::effect::{Access, Class, Completion, Effect, SetEffect, Tail};
use super::set::{Assignment, Assignments, Target};
use super::words::Words;
use crate::keyword::Keyword as K;
use crate::token::Kind;
pub(super) use admin::find_explained;
use assignment::set_effect;

/// One statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statement<'a> {
    /// What it is.
    pub class: Class,
    /// What it does to the transaction.
    pub effect: Effect,
    /// What a gateway needs beyond that.
    pub detail: Detail<'a>,
    /// It stands behind `SET STATEMENT .. FOR`.
    pub has_set_statement: bool,
}

/// Names and kinds that a gateway needs. Names are as written; [`crate::token::name_value`] takes
/// their quotes off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail<'a> {
    /// Nothing.
    None,
    /// `USE name`.
    Use(&'a [u8]),
    /// `PREPARE name FROM source`.
    Prepare(&'a [u8], Source<'a>),
    /// `EXECUTE name`.
    Execute(&'a [u8]),
    /// `EXECUTE IMMEDIATE source`.
    ExecuteImmediate(Source<'a>),
    /// `DEALLOCATE PREPARE name`, `DROP PREPARE name`.
    Deallocate(&'a [u8]),
    /// `KILL`.
    Kill(Kill<'a>),
    /// `XA`.
    Xa(Xa),
    /// `CREATE TEMPORARY TABLE`, or SEQUENCE.
    CreateTemporary,
    /// `DROP TEMPORARY TABLE`, or SEQUENCE.
    DropTemporary,
    /// `HANDLER t OPEN`.
    HandlerOpen,
    /// `HANDLER t CLOSE`.
    HandlerClose,
    /// `HANDLER t READ`.
    HandlerRead,
    /// `FLUSH TABLES WITH READ LOCK`, and `BACKUP`: some or all wait to write until UNLOCK TABLES.
    GlobalReadLock,
}

/// Where the text of a prepared statement comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source<'a> {
    /// One string, quotes included ([`crate::token::string_value`]).
    Literal(&'a [u8]),
    /// An expression.
    Expression,
}

/// `KILL [HARD | SOFT] [CONNECTION | QUERY [ID]] {id | USER name}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kill<'a> {
    /// `SOFT` was written: what may not be interrupted goes on.
    pub is_soft: bool,
    /// `QUERY`: only the statement ends.
    pub is_query: bool,
    /// Whom.
    pub target: KillTarget<'a>,
}

/// Whom a KILL ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KillTarget<'a> {
    /// The connection of that number.
    Connection(u64),
    /// The statement of that number: `QUERY ID`.
    Statement(u64),
    /// All of an account. The name is as written, perhaps with `@` and a host.
    User(&'a [u8]),
    /// An expression, or nothing that is known.
    Unknown,
}

/// A step of an XA transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Xa {
    /// `START`, `BEGIN`.
    Start,
    /// `END`.
    End,
    /// `PREPARE`. The transaction outlives its connection from then on.
    Prepare,
    /// `COMMIT .. ONE PHASE`.
    CommitOnePhase,
    /// `COMMIT`.
    Commit,
    /// `ROLLBACK`.
    Rollback,
    /// `RECOVER`.
    Recover,
}

/// The first statement of a text.
#[must_use]
pub fn classify(text: &[u8], mode: SqlMode) -> Statement<'_> {
    statement(&mut Words::new(text, mode))
}

/// Whether a text has several statements: something stands behind a `;`. A compound statement, and
/// the definition of a stored program, count as several if they contain a `;`.
#[must_use]
pub fn is_several(text: &[u8], mode: SqlMode) -> bool {
    let Some(at) = position(text, b';') else {
        return false;
    };
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b';');
    if text.get(at..).unwrap_or_default().iter().all(is_blank) {
        return false;
    }
    let mut words = Words::new(text, mode);
    skip_to_end(&mut words);
    while words.take_sign(Kind::Semicolon) {}
    words.token.kind != Kind::End
}

/// All statements of a text, in order. A text of blanks has one empty statement.
#[derive(Debug, Clone)]
pub struct Statements<'a> {
    words: Words<'a>,
    has_begun: bool,
    /// There is a `;` somewhere.
    has_semicolon: bool,
}

impl<'a> Statements<'a> {
    /// The statements of `text`.
    #[must_use]
    pub fn new(text: &'a [u8], mode: SqlMode) -> Statements<'a> {
        Statements {
            words: Words::new(text, mode),
            has_begun: false,
            has_semicolon: position(text, b';').is_some(),
        }
    }
}

impl<'a> Iterator for Statements<'a> {
    type Item = Statement<'a>;

    fn next(&mut self) -> Option<Statement<'a>> {
        if self.has_begun {
            if !self.has_semicolon {
                return None;
            }
            while self.words.take_sign(Kind::Semicolon) {}
            if self.words.token.kind == Kind::End {
                return None;
            }
        }
        self.has_begun = true;
        if !self.has_semicolon {
            return Some(statement(&mut self.words));
        }
        while self.words.take_sign(Kind::Semicolon) {}
        Some(statement_whole(&mut self.words))
    }
}

/// Reads a statement to its end: others may follow.
pub(super) fn statement_whole<'a>(words: &mut Words<'a>) -> Statement<'a> {
    let body = words.clone();
    let mut statement = statement(words);
    skip_to_end(words);
    let is_last = words.token.kind == Kind::End;
    let is_body = statement.class == Class::Definition && has_body(body);
    if statement.class == Class::Program || is_body {
        if !is_last {
            statement.effect = Effect::Unknown;
        }
        while words.token.kind != Kind::End {
            words.bump();
        }
    }
    statement
}

fn position(text: &[u8], wanted: u8) -> Option<usize> {
    // `contains` is a search by words; most texts have none.
    if !text.contains(&wanted) {
        return None;
    }
    text.iter().position(|&byte| byte == wanted)
}

fn skip_to_end(words: &mut Words<'_>) {
    while !words.is_at_end() {
        words.bump();
    }
}

/// Whether a CREATE or ALTER has a body of statements: its object is a stored program. A name in
/// DEFINER that is such a word counts, too.
pub(super) fn has_body(mut words: Words<'_>) -> bool {
    while !words.is_at_end() {
        match words.keyword() {
            Some(K::Procedure | K::Function | K::Trigger | K::Event | K::Package) => return true,
            Some(
                K::Table
                | K::Temporary
                | K::Index
                | K::Unique
                | K::Fulltext
                | K::Spatial
                | K::View
                | K::Database
                | K::Schema
                | K::User
                | K::Role
                | K::Server
                | K::Sequence
                | K::Algorithm
                | K::Sql
                | K::Online
                | K::Ignore,
            ) => return false,
            _ => words.bump(),
        }
    }
    false
}

impl<'a> Statement<'a> {
    fn new(class: Class, effect: Effect) -> Statement<'a> {
        Statement {
            class,
            effect,
            detail: Detail::None,
            has_set_statement: false,
        }
    }

    fn with(mut self, detail: Detail<'a>) -> Statement<'a> {
        self.detail = detail;
        self
    }
}

/// Classifies the statement that `words` is at. The cursor ends anywhere within it.
pub(super) fn statement<'a>(words: &mut Words<'a>) -> Statement<'a> {
    while words.take_sign(Kind::LeftParen) {}
    let Some(first) = words.keyword() else {
        return without_keyword(words);
    };
    words.bump();
    match first {
        K::Select | K::Values | K::With => Statement::new(Class::Query, Effect::Uses),
        K::Insert | K::Replace | K::Update | K::Delete => {
            Statement::new(Class::Write, Effect::Uses)
        }
        K::Set => set(words),
        K::Begin => begin(words),
        K::Start if words.is(K::Transaction) => start_transaction(words),
        K::Commit => Statement::new(Class::Transaction, Effect::Commit(completion(words))),
        K::Rollback => rollback(words),
        K::Savepoint | K::Release => Statement::new(Class::Transaction, Effect::None),
        K::Xa => xa(words),
        K::Do => Statement::new(Class::Do, Effect::Uses),
        K::Call => Statement::new(Class::Call, Effect::Unknown),
        K::If | K::Case | K::Loop | K::While | K::Repeat | K::For | K::Declare | K::Goto => {
            Statement::new(Class::Program, Effect::Unknown)
        }
        _ => admin::statement(words, first),
    }
}

/// Nothing, a label, or no statement of MariaDB.
fn without_keyword<'a>(words: &Words<'a>) -> Statement<'a> {
    match words.token.kind {
        Kind::End | Kind::Semicolon => Statement::new(Class::Empty, Effect::None),
        // `label: LOOP`.
        Kind::Word | Kind::Quoted if words.ahead().kind == Kind::Colon => {
            Statement::new(Class::Program, Effect::Unknown)
        }
        _ => Statement::new(Class::Unknown, Effect::Unknown),
    }
}

/// `BEGIN [WORK]`; anything else behind BEGIN makes it a compound statement.
fn begin<'a>(words: &mut Words<'a>) -> Statement<'a> {
    words.take(K::Work);
    if words.is_at_end() {
        Statement::new(Class::Transaction, Effect::Begin(Access::Default))
    } else {
        Statement::new(Class::Program, Effect::Unknown)
    }
}

/// `START TRANSACTION` with its options, in any order.
fn start_transaction<'a>(words: &mut Words<'a>) -> Statement<'a> {
    let mut access = Access::Default;
    while !words.is_at_end() {
        let is_read = words.is(K::Read);
        words.bump();
        match words.keyword() {
            Some(K::Only) if is_read => access = Access::ReadOnly,
            Some(K::Write) if is_read => access = Access::ReadWrite,
            _ => {}
        }
    }
    Statement::new(Class::Transaction, Effect::Begin(access))
}

/// `[WORK] [AND [NO] CHAIN] [[NO] RELEASE]`.
fn completion(words: &mut Words<'_>) -> Completion {
    let mut completion = Completion {
        chain: Tail::Default,
        release: Tail::Default,
    };
    words.take(K::Work);
    if words.take(K::And) {
        completion.chain = tail(words, K::Chain);
    }
    if words.is(K::No) || words.is(K::Release) {
        completion.release = tail(words, K::Release);
    }
    completion
}

fn tail(words: &mut Words<'_>, word: K) -> Tail {
    let is_negated = words.take(K::No);
    match words.take(word) {
        true if is_negated => Tail::No,
        true => Tail::Yes,
        false => Tail::Default,
    }
}

fn rollback<'a>(words: &mut Words<'a>) -> Statement<'a> {
    let mut ahead = words.clone();
    ahead.take(K::Work);
    if ahead.is(K::To) {
        return Statement::new(Class::Transaction, Effect::None);
    }
    Statement::new(Class::Transaction, Effect::Rollback(completion(words)))
}

fn xa<'a>(words: &mut Words<'a>) -> Statement<'a> {
    let (step, effect) = match words.keyword() {
        Some(K::Start | K::Begin) => (Xa::Start, Effect::XaStart),
        Some(K::End) => (Xa::End, Effect::None),
        Some(K::Prepare) => (Xa::Prepare, Effect::None),
        Some(K::Commit) if has_one_phase(words) => (Xa::CommitOnePhase, Effect::XaFinish),
        Some(K::Commit) => (Xa::Commit, Effect::XaFinish),
        Some(K::Rollback) => (Xa::Rollback, Effect::XaFinish),
        Some(K::Recover) => (Xa::Recover, Effect::None),
        _ => return Statement::new(Class::Xa, Effect::Unknown),
    };
    Statement::new(Class::Xa, effect).with(Detail::Xa(step))
}

fn has_one_phase(words: &mut Words<'_>) -> bool {
    while !words.is_at_end() && !words.is(K::One) {
        words.bump();
    }
    words.take(K::One) && words.is(K::Phase)
}

/// `SET`, all its assignments; or `SET STATEMENT .. FOR` and the statement behind it.
fn set<'a>(words: &mut Words<'a>) -> Statement<'a> {
    let mut assignments = Assignments::after_set(words.clone());
    let is_of_statement = assignments.is_of_statement();
    let mut all = AllAssignments::default();
    for assignment in &mut assignments {
        all.add(&assignment);
    }
    *words = assignments.into_words();
    if is_of_statement {
        return set_statement(words, &all);
    }
    let effect = match () {
        () if all.commits => Effect::ImplicitCommit,
        () if all.effect == SetEffect::default() => Effect::None,
        () => Effect::Set(all.effect),
    };
    let class = match () {
        () if all.commits => Class::Account,
        () if all.is_transaction_alone => Class::Transaction,
        () => Class::Set,
    };
    Statement::new(class, effect)
}

/// Variables that matter to transactions make the effect of the statement unknown.
fn set_statement<'a>(words: &mut Words<'a>, all: &AllAssignments) -> Statement<'a> {
    if !words.take(K::For) {
        return Statement::new(Class::Unknown, Effect::Unknown);
    }
    let is_plain = SetEffect {
        has_expression: false,
        ..all.effect
    } == SetEffect::default();
    let mut inner = match words.keyword() {
        // It cannot be nested (error 1064), and nesting would not be linear.
        Some(K::Set) if words.ahead().keyword == Some(K::Statement) => {
            Statement::new(Class::Unknown, Effect::Unknown)
        }
        _ => statement(words),
    };
    if !is_plain || all.commits {
        inner.effect = Effect::Unknown;
    } else if inner.effect == Effect::None && all.effect.has_expression {
        inner.effect = Effect::Uses;
    }
    inner.has_set_statement = true;
    inner
}

/// What the assignments of a SET do together.
#[derive(Debug, Default)]
struct AllAssignments {
    effect: SetEffect,
    /// `PASSWORD` or `DEFAULT ROLE` is among them.
    commits: bool,
    /// The only one is TRANSACTION.
    is_transaction_alone: bool,
    count: usize,
}

impl AllAssignments {
    fn add(&mut self, assignment: &Assignment<'_>) {
        self.count += 1;
        let is_transaction = assignment.target == Target::Transaction;
        self.is_transaction_alone = is_transaction && self.count == 1;
        self.commits |= matches!(assignment.target, Target::Password | Target::DefaultRole);
        set_effect(&mut self.effect, assignment);
    }
}

#[cfg(test)]
mod tests;
