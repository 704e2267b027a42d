//! The first stage of what is not run often: definitions, accounts, administration, prepared
//! statements, KILL, SHOW.

use super::super::effect::{Class, Effect};
use super::super::words::Words;
use super::{Detail, Kill, KillTarget, Source, Statement, statement as any_statement};
use crate::keyword::Keyword as K;
use crate::token::{Kind, Token};

/// How many words may stand between EXPLAIN or ANALYZE and its statement: `FORMAT = JSON`.
const EXPLAIN_WORDS_MAX: usize = 6;

/// Classifies a statement whose first word is behind the cursor.
pub(super) fn statement<'a>(words: &mut Words<'a>, first: K) -> Statement<'a> {
    let is_user = matches!(words.keyword(), Some(K::User | K::Role));
    let commits = |class| Statement::new(class, Effect::ImplicitCommit);
    let none = |class| Statement::new(class, Effect::None);
    match first {
        K::Create => create(words),
        K::Drop => drop(words),
        K::Alter | K::Rename if is_user => commits(Class::Account),
        K::Alter | K::Rename | K::Truncate => commits(Class::Definition),
        K::Grant | K::Revoke => commits(Class::Account),
        K::Use => {
            let name = words.name();
            none(Class::Use).with(Detail::Use(name))
        }
        K::Prepare => prepare(words),
        K::Execute => execute(words),
        K::Deallocate => deallocate(words),
        K::Show | K::Help => none(Class::Show),
        K::Explain | K::Describe | K::Desc | K::Checksum => {
            Statement::new(Class::Show, Effect::Uses)
        }
        K::Analyze => analyze(words),
        K::Load => match words.keyword() {
            Some(K::Index) => none(Class::Admin),
            _ => Statement::new(Class::Write, Effect::Uses),
        },
        // MySQL's lock for a backup. UNLOCK TABLES leaves it, and no server tells of it.
        K::Lock | K::Unlock if words.text().eq_ignore_ascii_case(b"instance") => {
            Statement::new(Class::Unknown, Effect::Unknown)
        }
        K::Lock => Statement::new(Class::Lock, Effect::Lock),
        K::Unlock => Statement::new(Class::Lock, Effect::Unlock),
        K::Handler => handler(words),
        K::Flush => flush(words),
        K::Kill => kill(words),
        K::Get | K::Signal | K::Resignal => none(Class::Diagnostics),
        K::Check | K::Optimize | K::Repair | K::Reset | K::Install | K::Uninstall => {
            commits(Class::Admin)
        }
        K::Backup => commits(Class::Admin).with(Detail::GlobalReadLock),
        K::Cache | K::Start | K::Stop | K::Change | K::Purge | K::Shutdown => none(Class::Admin),
        K::Binlog => Statement::new(Class::Write, Effect::Unknown),
        _ => Statement::new(Class::Unknown, Effect::Unknown),
    }
}

fn create<'a>(words: &mut Words<'a>) -> Statement<'a> {
    if words.take(K::Or) {
        words.bump();
    }
    match words.keyword() {
        Some(K::Temporary) => {
            Statement::new(Class::Write, Effect::Uses).with(Detail::CreateTemporary)
        }
        Some(K::User | K::Role) => Statement::new(Class::Account, Effect::ImplicitCommit),
        _ => Statement::new(Class::Definition, Effect::ImplicitCommit),
    }
}

fn drop<'a>(words: &mut Words<'a>) -> Statement<'a> {
    match words.keyword() {
        Some(K::Prepare) => deallocate(words),
        Some(K::Temporary) => {
            Statement::new(Class::Write, Effect::Uses).with(Detail::DropTemporary)
        }
        Some(K::User | K::Role) => Statement::new(Class::Account, Effect::ImplicitCommit),
        _ => Statement::new(Class::Definition, Effect::ImplicitCommit),
    }
}

/// `name FROM source`.
fn prepare<'a>(words: &mut Words<'a>) -> Statement<'a> {
    let name = words.name();
    words.take(K::From);
    let from = source(words);
    let effect = match from {
        Source::Literal(_) => Effect::None,
        Source::Expression => Effect::Uses,
    };
    Statement::new(Class::Prepared, effect).with(Detail::Prepare(name, from))
}

fn execute<'a>(words: &mut Words<'a>) -> Statement<'a> {
    let detail = if words.is(K::Immediate) {
        words.bump();
        Detail::ExecuteImmediate(source(words))
    } else {
        Detail::Execute(words.name())
    };
    Statement::new(Class::Prepared, Effect::Unknown).with(detail)
}

/// At `PREPARE name`.
fn deallocate<'a>(words: &mut Words<'a>) -> Statement<'a> {
    words.take(K::Prepare);
    let name = words.name();
    Statement::new(Class::Prepared, Effect::None).with(Detail::Deallocate(name))
}

/// A string alone, or an expression.
fn source<'a>(words: &mut Words<'a>) -> Source<'a> {
    let text = words.text();
    let is_string = words.token.kind == Kind::String;
    words.bump();
    if is_string && (words.is_at_end() || words.is(K::Using)) {
        Source::Literal(text)
    } else {
        Source::Expression
    }
}

/// `ANALYZE [NO_WRITE_TO_BINLOG | LOCAL] TABLE`, or a statement that is run and measured.
fn analyze<'a>(words: &mut Words<'a>) -> Statement<'a> {
    let is_table = matches!(
        words.keyword(),
        Some(K::Table | K::Tables | K::NoWriteToBinlog | K::Local)
    );
    if is_table {
        return Statement::new(Class::Admin, Effect::ImplicitCommit);
    }
    if find_explained(words) {
        any_statement(words)
    } else {
        Statement::new(Class::Unknown, Effect::Unknown)
    }
}

/// Goes to the statement behind EXPLAIN or ANALYZE; false if there is none.
pub(in super::super) fn find_explained(words: &mut Words<'_>) -> bool {
    for _ in 0..EXPLAIN_WORDS_MAX {
        match words.token {
            Token {
                kind: Kind::LeftParen,
                ..
            } => return true,
            Token {
                keyword:
                    Some(
                        K::Select
                        | K::Values
                        | K::With
                        | K::Insert
                        | K::Replace
                        | K::Update
                        | K::Delete,
                    ),
                ..
            } => return true,
            _ if words.is_at_end() => return false,
            _ => words.bump(),
        }
    }
    false
}

fn handler<'a>(words: &mut Words<'a>) -> Statement<'a> {
    words.name();
    while words.take_sign(Kind::Dot) {
        words.name();
    }
    let (detail, effect) = match words.keyword() {
        Some(K::Open) => (Detail::HandlerOpen, Effect::Uses),
        Some(K::Close) => (Detail::HandlerClose, Effect::None),
        _ => (Detail::HandlerRead, Effect::Uses),
    };
    Statement::new(Class::Handler, effect).with(detail)
}

/// `FLUSH TABLES [names] [WITH READ LOCK | FOR EXPORT]`, or something else.
fn flush<'a>(words: &mut Words<'a>) -> Statement<'a> {
    let plain = Statement::new(Class::Admin, Effect::ImplicitCommit);
    if words.is(K::NoWriteToBinlog) || words.is(K::Local) {
        words.bump();
    }
    if !words.is(K::Table) && !words.is(K::Tables) {
        return plain;
    }
    words.bump();
    if words.take(K::With) {
        return plain.with(Detail::GlobalReadLock);
    }
    while !words.is_at_end() && !words.is(K::With) && !words.is(K::For) {
        words.bump();
    }
    if words.is_at_end() {
        plain
    } else {
        Statement::new(Class::Lock, Effect::FlushLock)
    }
}

fn kill<'a>(words: &mut Words<'a>) -> Statement<'a> {
    let is_soft = words.is(K::Soft);
    if is_soft || words.is(K::Hard) {
        words.bump();
    }
    let is_query = words.take(K::Query);
    let is_id = is_query && words.take(K::Id);
    if !is_query {
        words.take(K::Connection);
    }
    let target = if words.take(K::User) {
        let start = words.start();
        while !words.is_at_end() {
            words.bump();
        }
        KillTarget::User(words.between(start, words.last_end))
    } else {
        let number = number(words);
        match number {
            Some(id) if is_id => KillTarget::Statement(id),
            Some(id) => KillTarget::Connection(id),
            None => KillTarget::Unknown,
        }
    };
    let kill = Kill {
        is_soft,
        is_query,
        target,
    };
    // The number may be an expression that reads a table.
    let effect = match target {
        KillTarget::Unknown => Effect::Uses,
        _ => Effect::None,
    };
    Statement::new(Class::Kill, effect).with(Detail::Kill(kill))
}

/// A whole number that ends the statement.
fn number(words: &mut Words<'_>) -> Option<u64> {
    let text = std::str::from_utf8(words.text()).ok()?;
    let number = text.parse().ok();
    words.bump();
    number.filter(|_| words.is_at_end())
}
