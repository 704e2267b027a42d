//! What is declared of one setting.

use crate::kind::Kind;

/// Where and when a setting can be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Only by the file or the command line; SQL sees it as read-only.
    Start,
    /// By `SET GLOBAL` too.
    Global,
    /// By `SET GLOBAL` for later sessions and by `SET SESSION` for one.
    Session,
    /// Never: clients can only read it.
    Fixed,
}

/// Whose value of a system variable is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VariableScope {
    /// `GLOBAL`, `@@global.`: the server's.
    Global,
    /// `SESSION` and `LOCAL`, `@@session.`: the session's.
    Session,
}

/// One entry of the table. All fields are constant.
#[derive(Debug)]
pub struct Setting {
    /// Lower case, words joined by `_`.
    pub name: &'static str,
    /// Other names for the same value.
    pub aliases: &'static [&'static str],
    pub kind: Kind,
    /// As it would be written in the file.
    pub default: &'static str,
    pub scope: Scope,
    /// Whether SQL sees it as a system variable.
    pub is_variable: bool,
    /// What it does, and its unit.
    pub text: &'static str,
}

impl Setting {
    const fn new(
        scope: Scope,
        name: &'static str,
        kind: Kind,
        default: &'static str,
        text: &'static str,
    ) -> Setting {
        Setting {
            name,
            aliases: &[],
            kind,
            default,
            scope,
            is_variable: true,
            text,
        }
    }

    pub(crate) const fn alias(mut self, aliases: &'static [&'static str]) -> Setting {
        self.aliases = aliases;
        self
    }

    /// Only for the program: not seen by SQL.
    pub(crate) const fn hidden(mut self) -> Setting {
        self.is_variable = false;
        self
    }

    /// Whether it can only be read.
    pub fn is_fixed(&self) -> bool {
        self.scope == Scope::Fixed
    }
}

pub(crate) const fn start(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    text: &'static str,
) -> Setting {
    Setting::new(Scope::Start, name, kind, default, text)
}

pub(crate) const fn global(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    text: &'static str,
) -> Setting {
    Setting::new(Scope::Global, name, kind, default, text)
}

pub(crate) const fn session(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    text: &'static str,
) -> Setting {
    Setting::new(Scope::Session, name, kind, default, text)
}

pub(crate) const fn fixed(
    name: &'static str,
    default: &'static str,
    text: &'static str,
) -> Setting {
    Setting::new(Scope::Fixed, name, Kind::Text, default, text)
}

pub(crate) const fn fixed_number(
    name: &'static str,
    default: &'static str,
    text: &'static str,
) -> Setting {
    Setting::new(Scope::Fixed, name, number(0, u64::MAX), default, text)
}

pub(crate) const fn fixed_flag(
    name: &'static str,
    default: &'static str,
    text: &'static str,
) -> Setting {
    Setting::new(Scope::Fixed, name, Kind::Bool, default, text)
}

pub(crate) const fn number(min: u64, max: u64) -> Kind {
    Kind::Unsigned { min, max }
}

pub(crate) const fn size(min: u64, max: u64) -> Kind {
    Kind::Bytes { min, max }
}
