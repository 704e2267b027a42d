//! Reads the sections of a settings file and collects what is wrong with them.
//!
//! Sections are read one by one in the order of the file. Then, with all names known, it finds
//! duplicate names and references to missing sections.

use std::collections::HashMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{FileError, Mistake, shown};
use crate::kind::Value;
use crate::lines::Lines;
use crate::section::{Field, FieldKind, Presence, Repetition, Section, VALUE_COUNT_MAX, is_name};
use crate::sections::{Entry, Sections};
use crate::suggest::nearest;

/// What has been read so far.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    declared: &'static [Section],
    lines: &'a Lines,
    entries: Vec<Entry>,
    mistakes: Vec<Mistake>,
    /// References to look up once all names are known.
    references: Vec<Reference>,
}

/// A name of another section, in the field of one.
#[derive(Debug)]
struct Reference {
    section: &'static Section,
    field: &'static Field,
    target: &'static str,
    name: String,
    line: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(declared: &'static [Section], lines: &'a Lines) -> Self {
        Reader {
            declared,
            lines,
            entries: Vec::new(),
            mistakes: Vec::new(),
            references: Vec::new(),
        }
    }

    /// Whether there are sections of this name.
    pub(crate) fn takes(&self, name: &str) -> bool {
        self.declared.iter().any(|section| section.name == name)
    }

    /// Reads all sections of a declared name.
    pub(crate) fn read(&mut self, name: &str, value: &Spanned<DeValue<'_>>) {
        let declared = self.declared.iter();
        let mut found = declared.filter(|section| section.name == name);
        let section = found.next().expect("the caller has asked `takes`");
        match (section.repetition, value.get_ref()) {
            (Repetition::Once, DeValue::Table(table)) => {
                self.entry(section, table, value.span().start);
            }
            (Repetition::List { count_max }, DeValue::Array(list)) => {
                for (index, item) in list.iter().enumerate() {
                    let at = item.span().start;
                    let DeValue::Table(table) = item.get_ref() else {
                        self.not_a_section(section, at);
                        continue;
                    };
                    if count_max <= index {
                        let (name, max) = (section.name, count_max);
                        self.mistake(at, FileError::TooManySections { name, max });
                        break;
                    }
                    self.entry(section, table, at);
                }
            }
            _ => self.not_a_section(section, value.span().start),
        }
    }

    /// The sections, and all mistakes in them.
    pub(crate) fn finish(mut self) -> (Sections, Vec<Mistake>) {
        self.entries.sort_by_key(|entry| entry.line);
        self.find_repeated_names();
        self.find_dangling();
        let sections = Sections {
            entries: self.entries,
        };
        (sections, self.mistakes)
    }

    fn entry(&mut self, section: &'static Section, table: &DeTable<'_>, at: usize) {
        let mut values = vec![Vec::new(); section.fields.len()];
        let mut given = vec![false; section.fields.len()];
        for (name, value) in table {
            let Some(index) = section.field(name.get_ref()) else {
                self.mistake(name.span().start, unknown_field(section, name.get_ref()));
                continue;
            };
            if let (Some(is_given), Some(slot), Some(field)) = (
                given.get_mut(index),
                values.get_mut(index),
                section.fields.get(index),
            ) {
                *is_given = true;
                *slot = self.field(section, field, value);
            }
        }
        self.complete(section, &given, &mut values, at);
        self.entries.push(Entry {
            section,
            line: self.lines.at(at),
            values,
        });
    }

    /// The values of a field, as far as they are valid.
    fn field(
        &mut self,
        section: &'static Section,
        field: &'static Field,
        value: &Spanned<DeValue<'_>>,
    ) -> Vec<Value> {
        let at = value.span().start;
        let (section_name, name) = (section.name, field.name);
        let items: Vec<&Spanned<DeValue<'_>>> = match (field.kind.takes_list(), value.get_ref()) {
            // To leave it out means all, so an empty list would mean the opposite of what it says.
            (true, DeValue::Array(items)) if items.is_empty() => {
                let (section, field) = (section_name, name);
                self.mistake(at, FileError::EmptyList { section, field });
                return Vec::new();
            }
            (true, DeValue::Array(items)) => items.iter().collect(),
            (true, _) => {
                let (section, field) = (section_name, name);
                self.mistake(at, FileError::NotAList { section, field });
                return Vec::new();
            }
            (false, _) => vec![value],
        };
        if VALUE_COUNT_MAX < items.len() {
            let error = FileError::TooManyValues {
                section: section_name,
                field: name,
                max: VALUE_COUNT_MAX,
            };
            self.mistake(at, error);
            return Vec::new();
        }
        let mut values = Vec::new();
        for item in items {
            match self.one(section, field, item) {
                Ok(value) if values.contains(&value) && field.kind.target().is_some() => {
                    let error = FileError::ReferenceRepeated {
                        section: section_name,
                        field: name,
                        name: value.to_string(),
                    };
                    self.mistake(item.span().start, error);
                }
                Ok(value) => values.push(value),
                Err(error) => self.mistake(item.span().start, error),
            }
        }
        values
    }

    fn one(
        &mut self,
        section: &'static Section,
        field: &'static Field,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<Value, FileError> {
        let text = scalar_text(value.get_ref()).ok_or_else(|| FileError::NotAScalar {
            name: field.name.to_owned(),
        })?;
        let kind = match field.kind {
            FieldKind::One(kind) | FieldKind::Many(kind) => kind,
            FieldKind::Name | FieldKind::Reference(_) | FieldKind::References(_) => {
                if !is_name(&text) {
                    return Err(FileError::NotAName { text: shown(&text) });
                }
                if let Some(target) = field.kind.target() {
                    self.references.push(Reference {
                        section,
                        field,
                        target,
                        name: text.clone(),
                        line: self.lines.at(value.span().start),
                    });
                }
                return Ok(Value::Text(text));
            }
        };
        kind.parse(&text).map_err(|source| FileError::FieldRefused {
            section: section.name,
            field: field.name,
            text: shown(&text),
            source,
        })
    }

    /// Fills in defaults, and finds what is missing.
    fn complete(
        &mut self,
        section: &'static Section,
        given: &[bool],
        values: &mut [Vec<Value>],
        at: usize,
    ) {
        let mut of_choice = 0;
        for ((field, is_given), slot) in section.fields.iter().zip(given).zip(values) {
            of_choice += usize::from(*is_given && section.one_of.contains(&field.name));
            match (field.presence, field.kind) {
                _ if *is_given => {}
                (Presence::Required, _) => {
                    let (section, field) = (section.name, field.name);
                    self.mistake(at, FileError::FieldMissing { section, field });
                }
                (Presence::Default(text), FieldKind::One(kind)) => {
                    let value = kind.parse(text);
                    slot.push(value.expect("the test of the sections parses each default"));
                }
                (Presence::Default(_) | Presence::Optional, _) => {}
            }
        }
        if !section.one_of.is_empty() && of_choice != 1 {
            let (section, fields) = (section.name, section.one_of);
            self.mistake(at, FileError::NotOneOf { section, fields });
        }
    }

    fn find_repeated_names(&mut self) {
        let mut mistakes = Vec::new();
        let mut lines = HashMap::new();
        for entry in &self.entries {
            let Some(name) = entry.name() else { continue };
            let section = entry.section.name;
            let key = (section, name.to_ascii_lowercase());
            if let Some(line) = lines.insert(key, entry.line) {
                let error = FileError::NameRepeated {
                    section,
                    name: name.to_owned(),
                    line,
                };
                let line = entry.line;
                mistakes.push(Mistake { line, error });
            }
        }
        self.mistakes.extend(mistakes);
    }

    fn find_dangling(&mut self) {
        let mut names: HashMap<&str, Vec<String>> = HashMap::new();
        for entry in &self.entries {
            let name = entry.name().map(str::to_ascii_lowercase);
            names.entry(entry.section.name).or_default().extend(name);
        }
        names.values_mut().for_each(|names| names.sort_unstable());
        for reference in &self.references {
            let known = names.get(reference.target).map_or(&[][..], Vec::as_slice);
            let name = reference.name.to_ascii_lowercase();
            if known.binary_search(&name).is_ok() {
                continue;
            }
            let suggestion = nearest(&name, known.iter().map(String::as_str));
            let error = FileError::Dangling {
                section: reference.section.name,
                field: reference.field.name,
                target: reference.target,
                name: reference.name.clone(),
                suggestion: suggestion.map(str::to_owned),
            };
            let line = reference.line;
            self.mistakes.push(Mistake { line, error });
        }
    }

    fn not_a_section(&mut self, section: &'static Section, at: usize) {
        let (name, header) = (section.name, section.header());
        self.mistake(at, FileError::NotASection { name, header });
    }

    fn mistake(&mut self, at: usize, error: FileError) {
        let line = self.lines.at(at);
        self.mistakes.push(Mistake { line, error });
    }
}

/// A value as text; `None` if it is a list, a table or a date.
pub(crate) fn scalar_text(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(integer_text(number)),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Boolean(truth) => Some(truth.to_string()),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

/// In decimal digits, however it was written. A number that fits no type is left unchanged: no kind
/// accepts it.
fn integer_text(number: &toml::de::DeInteger<'_>) -> String {
    match i128::from_str_radix(number.as_str(), number.radix()) {
        Ok(value) => value.to_string(),
        Err(_) => number.to_string(),
    }
}

fn unknown_field(section: &'static Section, name: &str) -> FileError {
    let fields = section.fields.iter().map(|field| field.name);
    let suggestion = nearest(name, fields);
    if suggestion.is_none() && crate::find(name).is_some() {
        return FileError::SettingInSection {
            section: section.name,
            name: shown(name),
        };
    }
    FileError::UnknownField {
        section: section.name,
        name: shown(name),
        suggestion,
    }
}
