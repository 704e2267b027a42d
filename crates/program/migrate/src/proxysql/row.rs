//! [`Row`]: a row of one of ProxySQL's tables, or a group of variables, while it is translated.

use crate::known::{Known, boolean, judge};
use crate::note::{Kind, Note};
use crate::output::Block;

use super::config::{Setting, Value};

/// Values that are taken one after the other. What was not taken is judged at the end.
#[derive(Debug)]
pub(super) struct Row<'a> {
    file: &'a str,
    /// How notes name it, as in `mysql_servers 10.0.0.1`; empty: the file.
    name: String,
    pub(super) line: usize,
    settings: &'a [Setting],
    taken: Vec<&'a str>,
    pub(super) notes: Vec<Note>,
}

impl<'a> Row<'a> {
    pub(super) fn new(file: &'a str, name: &str, line: usize, settings: &'a [Setting]) -> Row<'a> {
        Row {
            file,
            name: name.to_owned(),
            line,
            settings,
            taken: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Names it by one of its values, too.
    pub(super) fn name_by(&mut self, value: &str) {
        self.name = format!("{} {value}", self.name);
    }

    /// Says nothing of a setting.
    pub(super) fn pass_over(&mut self, name: &'a str) {
        self.taken.push(name);
    }

    /// A value that is neither empty nor NULL.
    pub(super) fn text(&mut self, names: &[&'static str]) -> Option<&'a str> {
        self.taken.extend(names);
        let is_it = |it: &&Setting| names.iter().any(|name| plain_name(&it.name) == *name);
        let found = self.settings.iter().find(is_it)?;
        match &found.value {
            Value::Scalar(text) if !text.is_empty() && !is_null(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn number(&mut self, names: &[&'static str]) -> Option<i64> {
        let text = self.text(names)?;
        let made = text.parse().ok();
        if made.is_none() {
            let name = names.first().copied().unwrap_or_default();
            self.note(name, Kind::Unknown, "its value is no number");
        }
        made
    }

    /// A number that is neither zero nor negative.
    pub(super) fn count(&mut self, names: &[&'static str]) -> Option<u64> {
        let number = self.number(names)?;
        u64::try_from(number).ok().filter(|it| *it != 0)
    }

    pub(super) fn boolean(&mut self, name: &'static str) -> Option<bool> {
        self.text(&[name]).and_then(boolean)
    }

    /// A note about one of its values.
    pub(super) fn note(&mut self, setting: &str, kind: Kind, text: impl Into<String>) {
        let found = self
            .settings
            .iter()
            .find(|it| plain_name(&it.name) == setting);
        let line = found.map_or(self.line, |it| it.line);
        let setting = match self.name.is_empty() {
            true => setting.to_owned(),
            false => format!("{}: {setting}", self.name),
        };
        self.push(line, setting, kind, text);
    }

    /// A note about all of it.
    pub(super) fn note_all(&mut self, kind: Kind, text: impl Into<String>) {
        self.push(self.line, self.name.clone(), kind, text);
    }

    fn push(&mut self, line: usize, setting: String, kind: Kind, text: impl Into<String>) {
        self.notes.push(Note {
            file: self.file.to_owned(),
            line,
            setting,
            kind,
            text: text.into(),
        });
    }

    /// Judges what was not taken.
    pub(super) fn judge_rest(&mut self, known: &[Known]) {
        for setting in self.settings {
            let name = plain_name(&setting.name);
            if self.taken.contains(&name) {
                continue;
            }
            let value = match &setting.value {
                Value::Scalar(text) => text.as_str(),
                Value::Group(_) | Value::Many(_) => "a group",
            };
            if is_null(value) {
                continue;
            }
            if let Some((kind, text)) = judge(&[known], name, value) {
                self.note(name, kind, text);
            }
        }
    }

    /// The same, and all notes become comments of the block, too.
    pub(super) fn finish(mut self, known: &[Known], block: &mut Block) -> Vec<Note> {
        self.judge_rest(known);
        for note in &self.notes {
            block.comment(note.comment());
        }
        self.notes
    }
}

/// How a dump writes NULL.
fn is_null(value: &str) -> bool {
    matches!(value, "NULL" | "(null)")
}

/// The name of a variable without what stands in front of it in the admin interface.
fn plain_name(name: &str) -> &str {
    let begins = ["mysql-", "admin-"];
    begins
        .iter()
        .find_map(|it| name.strip_prefix(it))
        .unwrap_or(name)
}
