//! What can be wrong with a setting, and with a settings file.

use crate::kind::Problem;
use crate::section::{NAME_BYTES_MAX, NAME_LETTERS};

/// A setting that cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    #[error("there is no setting `{name}`{}", suggestion_text(*.suggestion))]
    Unknown {
        name: String,
        suggestion: Option<&'static str>,
    },
    #[error("setting `{name}` cannot be `{text}`")]
    Refused {
        name: &'static str,
        text: String,
        source: Problem,
    },
    #[error(
        "setting `{name}` cannot be set: it is only reported to clients{}",
        suggestion_text(*.suggestion)
    )]
    Fixed {
        name: &'static str,
        suggestion: Option<&'static str>,
    },
    #[error("`{text}` is not of the form name=value")]
    NotAnAssignment { text: String },
}

/// A mistake in a settings file, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Counted from 1.
    pub line: usize,
    pub error: FileError,
}

/// What can be wrong in a settings file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    #[error("{message}; texts and sizes need quotes, as in listen = \"127.0.0.1:4006\"")]
    Syntax { message: String },
    #[error(transparent)]
    Setting(SettingError),
    #[error("`{name}` is neither a text, a number nor a boolean")]
    NotAScalar { name: String },
    #[error("setting `{name}` is set in line {line}, too")]
    SettingRepeated { name: &'static str, line: usize },
    #[error("there is no section `{name}`{}", suggestion_text(*.suggestion))]
    UnknownSection {
        name: String,
        suggestion: Option<&'static str>,
    },
    #[error("`{name}` is a section: write it below {header}")]
    NotASection { name: &'static str, header: String },
    #[error("there are more than {max} sections `{name}`")]
    TooManySections { name: &'static str, max: usize },
    #[error("section `{section}` has no field `{name}`{}", suggestion_text(*.suggestion))]
    UnknownField {
        section: &'static str,
        name: String,
        suggestion: Option<&'static str>,
    },
    #[error("section `{section}` has no field `{name}`: write this setting above all sections")]
    SettingInSection { section: &'static str, name: String },
    #[error("section `{section}` must have a field `{field}`")]
    FieldMissing {
        section: &'static str,
        field: &'static str,
    },
    #[error("section `{section}` must have exactly one of `{}`", .fields.join("`, `"))]
    NotOneOf {
        section: &'static str,
        fields: &'static [&'static str],
    },
    #[error("field `{field}` of section `{section}` is a list: write {field} = [..]")]
    NotAList {
        section: &'static str,
        field: &'static str,
    },
    #[error("field `{field}` of section `{section}` is an empty list: leave it out, or fill it")]
    EmptyList {
        section: &'static str,
        field: &'static str,
    },
    #[error("field `{field}` of section `{section}` has more than {max} values")]
    TooManyValues {
        section: &'static str,
        field: &'static str,
        max: usize,
    },
    #[error("field `{field}` of section `{section}` cannot be `{text}`")]
    FieldRefused {
        section: &'static str,
        field: &'static str,
        text: String,
        source: Problem,
    },
    #[error("`{text}` is not a name: expected 1 to {NAME_BYTES_MAX} {NAME_LETTERS}")]
    NotAName { text: String },
    #[error("the section `{section}` in line {line} is also named `{name}`")]
    NameRepeated {
        section: &'static str,
        name: String,
        line: usize,
    },
    #[error(
        "field `{field}` of section `{section}`: there is no section `{target}` with the name \
         `{name}`{}",
        suggestion_text(.suggestion.as_deref())
    )]
    Dangling {
        section: &'static str,
        field: &'static str,
        target: &'static str,
        name: String,
        suggestion: Option<String>,
    },
    #[error("field `{field}` of section `{section}` has `{name}` twice")]
    ReferenceRepeated {
        section: &'static str,
        field: &'static str,
        name: String,
    },
}

impl FileError {
    /// Whether it reports something missing. That may be in a line that cannot be read.
    pub(crate) fn is_absence(&self) -> bool {
        matches!(
            self,
            FileError::FieldMissing { .. }
                | FileError::NotOneOf { .. }
                | FileError::Dangling { .. }
        )
    }
}

/// Characters of a wrong text that a message repeats: enough to find it.
const SHOWN_COUNT_MAX: usize = 80;

/// A text of the file as a message repeats it: in one line, and not too long.
pub(crate) fn shown(text: &str) -> String {
    let mut shown = String::new();
    for (index, letter) in text.chars().enumerate() {
        if index == SHOWN_COUNT_MAX {
            shown.push_str("..");
            break;
        }
        if letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}') {
            shown.extend(letter.escape_default());
        } else {
            shown.push(letter);
        }
    }
    shown
}

fn suggestion_text(suggestion: Option<&str>) -> String {
    suggestion
        .map(|name| format!("; did you mean `{name}`?"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_shown_in_one_short_line() {
        assert_eq!(shown("a\nb\u{1b}"), "a\\nb\\u{1b}");
        let of_length = |length| "x".repeat(length);
        for length in [SHOWN_COUNT_MAX - 1, SHOWN_COUNT_MAX] {
            assert_eq!(shown(&of_length(length)), of_length(length));
        }
        let cut = format!("{}..", of_length(SHOWN_COUNT_MAX));
        assert_eq!(shown(&of_length(SHOWN_COUNT_MAX + 1)), cut);
    }
}
