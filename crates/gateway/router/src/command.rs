//! [`Command`]: one that changes the session, and what it sets.

use settings::SqlMode;
use syntax::class::set::{Scope, Target, assignments};
use syntax::class::{Detail, Source, classify};
use syntax::token::name_value;
use wire::CommandByte;

/// A command that changed the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// COM_QUERY with this text.
    Query(Box<[u8]>),
    /// COM_INIT_DB with this name.
    InitDb(Box<[u8]>),
    /// COM_SET_OPTION with this option.
    SetOption([u8; 2]),
}

impl Command {
    /// The database that it chooses.
    pub fn database(&self, mode: SqlMode) -> Option<Vec<u8>> {
        match self {
            Command::InitDb(name) => Some(name.to_vec()),
            Command::Query(text) => match classify(text, mode).detail {
                Detail::Use(name) if name.starts_with(b"`") || name.starts_with(b"\"") => {
                    Some(name_value(name).to_vec())
                }
                Detail::Use(name) => Some(name.to_vec()),
                _ => None,
            },
            Command::SetOption(_) => None,
        }
    }

    /// Its first byte.
    pub fn byte(&self) -> u8 {
        match self {
            Command::Query(_) => CommandByte::QUERY,
            Command::InitDb(_) => CommandByte::INIT_DB,
            Command::SetOption(_) => CommandByte::SET_OPTION,
        }
    }

    /// What follows that.
    pub fn body(&self) -> &[u8] {
        match self {
            Command::Query(bytes) | Command::InitDb(bytes) => bytes,
            Command::SetOption(option) => option,
        }
    }
}

/// The names that a command sets to constants, sorted. The command by its first byte and the rest.
pub(crate) fn names_of((byte, text): (u8, &[u8]), mode: SqlMode) -> Option<Vec<Box<[u8]>>> {
    let one = |kind: &str, name: &[u8]| Some(vec![named(kind, name)]);
    match byte {
        CommandByte::QUERY => {}
        CommandByte::INIT_DB => return one("use", b""),
        _ => return one("option", b""),
    }
    match classify(text, mode).detail {
        Detail::Use(_) => return one("use", b""),
        Detail::Prepare(name, Source::Literal(_)) => return one("prepare", name),
        Detail::Deallocate(name) => return one("prepare", name),
        _ => {}
    }
    let mut names = Vec::new();
    for assignment in assignments(text, mode) {
        let is_phrase = matches!(assignment.target, Target::Names | Target::CharacterSet);
        if !assignment.value.is_constant() && !is_phrase {
            return None;
        }
        names.push(match assignment.target {
            Target::User(name) => named("@", name),
            Target::System(name) if assignment.scope == Scope::Session => named("", name),
            Target::System(name) => named("@@", name),
            Target::Names => named("names", b""),
            Target::CharacterSet => named("character set", b""),
            _ => return None,
        });
    }
    names.sort_unstable();
    (!names.is_empty()).then_some(names)
}

fn named(kind: &str, name: &[u8]) -> Box<[u8]> {
    let mut key = kind.as_bytes().to_vec();
    key.push(b' ');
    key.extend(name.iter().map(u8::to_ascii_lowercase));
    key.into()
}

/// Whether a text is SET ROLE.
pub(crate) fn sets_role(text: &[u8]) -> bool {
    // The word is the same in each mode.
    let mut assignments = assignments(text, SqlMode::default());
    assignments.any(|it| it.target == Target::Role)
}

/// Variables that programs set often, and that no server reads a text by.
pub(crate) const READ_BY_NONE: [&str; 6] = [
    "autocommit",
    "sql_select_limit",
    "time_zone",
    "transaction_isolation",
    "transaction_read_only",
    "tx_isolation",
];

/// Whether a server may read the texts behind this command in another way.
pub(crate) fn decides_reading((byte, body): (u8, &[u8]), mode: SqlMode) -> bool {
    match byte {
        CommandByte::QUERY => {}
        CommandByte::INIT_DB => return true,
        _ => return false,
    }
    if let Detail::Prepare(..) | Detail::Deallocate(_) = classify(body, mode).detail {
        return false;
    }
    let mut assignments = assignments(body, mode).peekable();
    let is_set = assignments.peek().is_some();
    let is_read_by_none = |target: Target<'_>| {
        matches!(target, Target::User(_)) || READ_BY_NONE.iter().any(|it| target.is_system(it))
    };
    !(is_set && assignments.all(|it| is_read_by_none(it.target) && it.scope != Scope::Global))
}
