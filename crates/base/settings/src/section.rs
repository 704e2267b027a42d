//! Sections of the settings file: the kinds of sections, and the fields of each.
//!
//! A section is declared once, as data, like a flat setting. From [`SECTIONS`] come the reader of
//! the file (`reader`), its errors and the reference page. A consumer asks [`crate::Sections`] for
//! the values.

use crate::kind::Kind;

/// One kind of section. All fields are constant.
#[derive(Debug)]
pub struct Section {
    /// Lower case, words joined by `_`.
    pub name: &'static str,
    pub repetition: Repetition,
    /// In the order of the reference page.
    pub fields: &'static [Field],
    /// Exactly one of these fields must be given; empty if there is no such rule.
    pub one_of: &'static [&'static str],
    /// What a section of this kind does.
    pub text: &'static str,
}

/// How often a section may stand in the file. It may always be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repetition {
    /// Once, as `[name]`.
    Once,
    /// As `[[name]]`, each in its place in a list.
    List { count_max: usize },
}

/// A field of a section. All fields are constant.
#[derive(Debug)]
pub struct Field {
    /// Lower case, words joined by `_`.
    pub name: &'static str,
    pub kind: FieldKind,
    pub presence: Presence,
    /// What it does, and its unit.
    pub text: &'static str,
}

/// The possible values of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FieldKind {
    /// The section's own name, by which others refer to it. Two sections of a kind never share one.
    Name,
    /// A value.
    One(Kind),
    /// A list of values.
    Many(Kind),
    /// The name of a section of this kind.
    Reference(&'static str),
    /// The names of sections of this kind, each once.
    References(&'static str),
}

/// Whether a field must be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    Required,
    /// Without it the field has no value.
    Optional,
    /// Without it the field has this value, written as in the file.
    Default(&'static str),
}

/// Most values in one field: more than any list that a person writes, few enough to be fast.
pub(crate) const VALUE_COUNT_MAX: usize = 1024;

/// Bytes of a section's name: as many as MySQL's identifiers have.
pub(crate) const NAME_BYTES_MAX: usize = 64;

/// Addresses beside `listen` and `socket`; each takes a descriptor on every worker.
const LISTENER_COUNT_MAX: usize = 64;

/// Every section.
pub const SECTIONS: &[Section] = &[Section {
    name: "listener",
    repetition: Repetition::List {
        count_max: LISTENER_COUNT_MAX,
    },
    fields: &[
        Field {
            name: "address",
            kind: FieldKind::One(Kind::Address),
            presence: Presence::Optional,
            text: "Address and port for clients.",
        },
        Field {
            name: "socket",
            kind: FieldKind::One(Kind::Path),
            presence: Presence::Optional,
            text: "Path of a unix socket, relative to the data directory.",
        },
    ],
    one_of: &["address", "socket"],
    text: "Another place where clients connect, in addition to `listen` and `socket`.",
}];

impl Section {
    /// Its header, as written in the file.
    pub fn header(&self) -> String {
        match self.repetition {
            Repetition::Once => format!("[{}]", self.name),
            Repetition::List { .. } => format!("[[{}]]", self.name),
        }
    }

    /// The field that holds the section's own name, if it has one.
    pub(crate) fn name_field(&self) -> Option<usize> {
        let is_name = |field: &Field| field.kind == FieldKind::Name;
        self.fields.iter().position(is_name)
    }

    pub(crate) fn field(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }
}

impl FieldKind {
    /// The kind in words, for the reference page.
    pub fn describe(&self) -> String {
        match self {
            FieldKind::Name => format!("a name of 1 to {NAME_BYTES_MAX} {NAME_LETTERS}"),
            FieldKind::One(kind) => kind.describe(),
            FieldKind::Many(kind) => format!("a list, each {}", kind.describe()),
            FieldKind::Reference(section) => format!("the name of a `{section}`"),
            FieldKind::References(section) => format!("a list of names of a `{section}`"),
        }
    }

    pub(crate) fn takes_list(&self) -> bool {
        match self {
            FieldKind::Many(_) | FieldKind::References(_) => true,
            FieldKind::Name | FieldKind::One(_) | FieldKind::Reference(_) => false,
        }
    }

    /// The kind of section that it refers to.
    pub(crate) fn target(&self) -> Option<&'static str> {
        match self {
            FieldKind::Reference(section) | FieldKind::References(section) => Some(section),
            FieldKind::Name | FieldKind::One(_) | FieldKind::Many(_) => None,
        }
    }
}

/// The allowed characters of names, in words.
pub(crate) const NAME_LETTERS: &str = "letters, digits, `_`, `-` and `.`";

/// Whether a text can be the name of a section.
pub(crate) fn is_name(text: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.chars().all(is_letter)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn declarations_are_consistent() {
        let mut names = BTreeSet::new();
        for section in SECTIONS.iter().chain(crate::configuration::tests::DECLARED) {
            assert!(names.insert(section.name), "{} stands twice", section.name);
            assert!(crate::find(section.name).is_none(), "{}", section.name);
            assert!(section.text.ends_with('.') && !section.text.contains('|'));
            let mut fields = BTreeSet::new();
            for field in section.fields {
                let at = format!("{}.{}", section.name, field.name);
                assert!(fields.insert(field.name), "{at} stands twice");
                assert!(field.text.ends_with('.') && !field.text.contains('|'));
                check_default(field, &at);
            }
            let is_field = |name: &&str| section.field(name).is_some();
            assert!(section.one_of.iter().all(is_field), "{}", section.name);
        }
    }

    fn check_default(field: &Field, at: &str) {
        let Presence::Default(text) = field.presence else {
            return;
        };
        match field.kind {
            FieldKind::One(kind) => assert!(kind.parse(text).is_ok(), "{at}"),
            FieldKind::Name
            | FieldKind::Many(_)
            | FieldKind::Reference(_)
            | FieldKind::References(_) => panic!("{at} cannot have a default"),
        }
    }

    #[test]
    fn names_have_a_length_and_an_alphabet() {
        let of_length = |length| "n".repeat(length);
        assert!(is_name("replica-1.eu_West"));
        assert!(is_name(&of_length(NAME_BYTES_MAX - 1)));
        assert!(is_name(&of_length(NAME_BYTES_MAX)));
        assert!(!is_name(&of_length(NAME_BYTES_MAX + 1)));
        for text in ["", "a b", "a/b", "\u{e9}"] {
            assert!(!is_name(text), "{text}");
        }
    }
}
