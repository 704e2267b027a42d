//! The values of the sections in a settings file.

use crate::kind::Value;
use crate::section::Section;

/// The sections of a file, in its order.
#[derive(Debug, Default)]
pub struct Sections {
    pub(crate) entries: Vec<Entry>,
}

/// One section of the file.
#[derive(Debug)]
pub struct Entry {
    /// Its declaration; constant.
    pub(crate) section: &'static Section,
    /// The line of its header.
    pub(crate) line: usize,
    /// In the order of the declaration's fields: none, one or several values of the field's kind.
    pub(crate) values: Vec<Vec<Value>>,
}

impl Sections {
    /// All sections of a kind, in the order of the file.
    pub fn all(&self, section: &str) -> impl Iterator<Item = &Entry> {
        self.entries
            .iter()
            .filter(move |entry| entry.section.name == section)
    }

    /// The section of a kind that occurs once, if it is there.
    pub fn one(&self, section: &str) -> Option<&Entry> {
        self.all(section).next()
    }

    /// The section of that kind and name. Names are compared ignoring case.
    pub fn named(&self, section: &str, name: &str) -> Option<&Entry> {
        self.all(section)
            .find(|entry| entry.name().is_some_and(|it| it.eq_ignore_ascii_case(name)))
    }
}

impl Entry {
    /// The line of its header, for errors that are found later.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Its own name, if its kind has names.
    pub fn name(&self) -> Option<&str> {
        let field = self.section.fields.get(self.section.name_field()?)?;
        self.text(field.name)
    }

    /// The values of a field. Panics if no such field is declared, which only a bug causes.
    pub fn values(&self, field: &str) -> &[Value] {
        let index = self.section.field(field);
        let values = index.and_then(|index| self.values.get(index));
        match values {
            Some(values) => values,
            None => panic!("section {} declares no {field}", self.section.name),
        }
    }

    /// The value of a field that takes one; `None` if it is optional and was left out.
    pub fn value(&self, field: &str) -> Option<&Value> {
        self.values(field).first()
    }

    /// The text of a field that takes one; `None` if it is optional and was left out.
    pub fn text(&self, field: &str) -> Option<&str> {
        match self.value(field)? {
            Value::Text(text) => Some(text),
            other => panic!("field {field} is declared as a text, not {other:?}"),
        }
    }
}
