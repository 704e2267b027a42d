//! [`Command`]: one that changes the session, and what it sets.

use settings::SqlMode;
use syntax::class::set::{Assignment, Scope, Target, ValueKind, assignments};
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

/// The names that a command sets to constants or the server's values, sorted. The command by its
/// first byte and the rest.
pub(crate) fn names_of((byte, text): (u8, &[u8]), mode: SqlMode) -> Option<Vec<Box<[u8]>>> {
    let one = |kind: &str, name: &[u8]| Some(vec![named(kind, name)]);
    match byte {
        CommandByte::QUERY => {}
        CommandByte::INIT_DB => return one("use", b""),
        _ => return one("option", b""),
    }
    let statement = classify(text, mode);
    if statement.has_set_statement {
        // It reads what it sets for itself alone.
        return None;
    }
    match statement.detail {
        Detail::Use(_) => return one("use", b""),
        Detail::Prepare(name, Source::Literal(_)) => return one("prepare", name),
        Detail::Deallocate(name) => return one("prepare", name),
        _ => {}
    }
    let mut names = Vec::new();
    for assignment in assignments(text, mode) {
        let (scope, value) = (assignment.scope, assignment.value);
        let is_default = value.kind == ValueKind::Default;
        match assignment.target {
            Target::User(name) if value.is_constant() => names.push(named("@", name)),
            Target::System(name) if value.is_constant() || is_default => {
                let kind = if scope == Scope::Session { "" } else { "@@" };
                names.push(named(kind, name));
            }
            Target::Names => names.push(named("names", b"")),
            Target::CharacterSet => names.push(named("character set", b"")),
            Target::Role => names.push(named("role", b"")),
            Target::Transaction if scope == Scope::Session => {
                names.extend(characteristics(value.text)?);
            }
            _ => return None,
        }
    }
    names.sort_unstable();
    (!names.is_empty()).then_some(names)
}

/// The names of the characteristics in `ISOLATION LEVEL .., READ ONLY`. `None` if they cannot be
/// read.
fn characteristics(text: &[u8]) -> Option<Vec<Box<[u8]>>> {
    let name = |part: &[u8]| {
        let mut words = part
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty());
        let first = words.next()?;
        let is_first = |word: &str| first.eq_ignore_ascii_case(word.as_bytes());
        match () {
            () if is_first("ISOLATION") => Some(named("transaction", b"isolation")),
            () if is_first("READ") => Some(named("transaction", b"access")),
            () => None,
        }
    };
    text.split(|byte| *byte == b',').map(name).collect()
}

/// Whether a command with these names sets the role alone.
pub(crate) fn is_role(names: Option<&[Box<[u8]>]>) -> bool {
    matches!(names, Some([name]) if **name == *b"role ")
}

/// Whether a command with these names may succeed by the role that the session has. What is known
/// to need no privilege does not.
pub(crate) fn depends_on_role(names: Option<&[Box<[u8]>]>) -> bool {
    let needs_none = |name: &[u8]| match str::from_utf8(name).ok().and_then(|it| it.split_once(' '))
    {
        Some(("@" | "names" | "character set" | "role" | "transaction" | "option", _)) => true,
        Some(("", name)) => READ_BY_NONE.contains(&name) || name == "sql_mode",
        _ => false,
    };
    names.is_none_or(|names| !names.iter().all(|it| needs_none(it)))
}

fn named(kind: &str, name: &[u8]) -> Box<[u8]> {
    let mut key = kind.as_bytes().to_vec();
    key.push(b' ');
    key.extend(name.iter().map(u8::to_ascii_lowercase));
    key.into()
}

/// Whether a word stands in a text, in any case.
pub(crate) fn has_word(text: &[u8], word: &str) -> bool {
    let mut places = text.windows(word.len());
    places.any(|it| it.eq_ignore_ascii_case(word.as_bytes()))
}

/// Whether a text is SET ROLE.
pub(crate) fn sets_role(text: &[u8]) -> bool {
    // The word is the same in each mode.
    let mut assignments = assignments(text, SqlMode::default());
    assignments.any(|it| it.target == Target::Role)
}

/// Variables that programs set often, and that no server reads a text by.
pub(crate) const READ_BY_NONE: [&str; 7] = [
    "autocommit",
    "sql_select_limit",
    "time_zone",
    "transaction_isolation",
    "transaction_read_only",
    "tx_isolation",
    "tx_read_only",
];

/// Whether a command has a string that servers read by `sql_mode` and the character sets.
pub(crate) fn depends_on_reading((byte, body): (u8, &[u8]), mode: SqlMode) -> bool {
    if byte != CommandByte::QUERY {
        return !body.is_ascii();
    }
    let has_any = |bytes: &[u8]| body.iter().any(|byte| bytes.contains(byte));
    // The value of a user variable has a character set.
    let sets_user = || assignments(body, mode).any(|it| matches!(it.target, Target::User(_)));
    !body.is_ascii() || has_any(b"\\\"") || has_any(b"'") && sets_user()
}

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
    let is_read_by_none = |target: Target<'_>| {
        matches!(target, Target::User(_) | Target::Transaction)
            || READ_BY_NONE.iter().any(|it| target.is_system(it))
    };
    !sets_only(body, mode, |it| {
        is_read_by_none(it.target) && it.scope != Scope::Global
    })
}

/// Whether a text is a SET all of whose assignments are such. SET STATEMENT is none: what it
/// assigns holds for the inner statement alone.
pub(crate) fn sets_only(
    text: &[u8],
    mode: SqlMode,
    is_such: impl Fn(&Assignment<'_>) -> bool,
) -> bool {
    let mut assignments = assignments(text, mode).peekable();
    !classify(text, mode).has_set_statement
        && assignments.peek().is_some()
        && assignments.all(|it| is_such(&it))
}
