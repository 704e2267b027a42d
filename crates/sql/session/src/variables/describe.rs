//! What `information_schema.SYSTEM_VARIABLES` says of each setting.

use catalog::information_schema::SystemVariable;
use settings::{Kind, Scope, Setting, Settings};

use crate::variables::value::setting_text;

/// The settings whose values are compared.
pub(crate) struct Sources<'a> {
    /// Of the server's start.
    pub(crate) start: &'a Settings,
    /// The server's now.
    pub(crate) global: &'a Settings,
    /// The session's.
    pub(crate) session: &'a Settings,
}

/// All variables, ordered by name.
pub(crate) fn system_variables(sources: &Sources<'_>) -> Vec<SystemVariable> {
    let variables = sources.global.variables().into_iter();
    let describe = |(name, setting, _)| describe(name, setting, sources);
    variables.map(describe).collect()
}

fn describe(
    name: &'static str,
    setting: &'static Setting,
    sources: &Sources<'_>,
) -> SystemVariable {
    let value = |settings: &Settings| {
        let value = settings.value(setting.name).expect("a declared setting");
        setting_text(setting.name, value)
    };
    let (start, global) = (value(sources.start), value(sources.global));
    let default = setting_text(setting.name, &setting.default_value());
    let (kind, range, words) = shape(setting.kind);
    SystemVariable {
        name,
        session_value: (setting.scope == Scope::Session).then(|| value(sources.session)),
        origin: match setting.scope {
            _ if global != start => "SQL",
            _ if global == default => "COMPILE-TIME",
            Scope::Fixed => "AUTO",
            Scope::Start | Scope::Global | Scope::Session => "CONFIG",
        },
        global_value: global,
        default,
        kind,
        comment: setting.text,
        range,
        words,
        is_read_only: matches!(setting.scope, Scope::Fixed | Scope::Start),
        is_argument: !setting.is_fixed(),
    }
}

/// The type in SQL, the range of a number, and the possible words.
type Shape = (
    &'static str,
    Option<(u64, u64)>,
    Option<&'static [&'static str]>,
);

fn shape(kind: Kind) -> Shape {
    match kind {
        Kind::Bool | Kind::Only(_) => ("BOOLEAN", None, Some(&["OFF", "ON"])),
        Kind::Unsigned { min, max } | Kind::Bytes { min, max } => {
            ("BIGINT UNSIGNED", Some((min, max)), None)
        }
        Kind::Seconds { max } => ("DOUBLE", Some((0, max)), None),
        Kind::Ratio => ("DOUBLE", Some((0, 1)), None),
        Kind::Text
        | Kind::CountOrAuto { .. }
        | Kind::Path
        | Kind::Address
        | Kind::AddressOrNone
        | Kind::HostAndPort
        | Kind::Network => ("VARCHAR", None, None),
        Kind::Choice(words) => ("ENUM", None, Some(words)),
        Kind::Flags { words, .. } => ("SET", None, Some(words)),
    }
}
