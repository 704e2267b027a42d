//! [`Draft`]: a section of MaxScale while it is translated, with what is left of it.

use crate::Source;
use crate::known::{Known, boolean, judge};
use crate::note::{Kind, Note};
use crate::output::Block;
use crate::port::{no_port, port};

use super::ini::{Entry, Section};
use super::unit::{self, Bare};

/// A section whose values are taken one after the other. What was not taken is judged at the end,
/// so no value is lost.
#[derive(Debug)]
pub(super) struct Draft<'a> {
    sources: &'a [Source],
    pub(super) section: &'a Section,
    taken: Vec<&'a str>,
    pub(super) notes: Vec<Note>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(sources: &'a [Source], section: &'a Section) -> Draft<'a> {
        Draft {
            sources,
            section,
            taken: vec!["type"],
            notes: Vec::new(),
        }
    }

    /// The entry of one of these names: a setting may have had others.
    pub(super) fn take(&mut self, names: &[&'static str]) -> Option<&'a Entry> {
        self.taken.extend(names);
        let entries = &self.section.entries;
        let entry = names
            .iter()
            .find_map(|name| entries.iter().find(|it| it.name == *name))?;
        if entry.value.starts_with('$') {
            let text = "it may be a variable of the environment (`substitute_variables`): write \
                        its value";
            self.note(entry, Kind::ToDo, text);
        }
        Some(entry)
    }

    /// Takes an entry whose name is made at run time.
    pub(super) fn mark(&mut self, entry: &'a Entry) {
        self.taken.push(&entry.name);
    }

    pub(super) fn text(&mut self, names: &[&'static str]) -> Option<&'a str> {
        self.take(names).map(|it| it.value.as_str())
    }

    /// Whether it is set to yes.
    pub(super) fn is_on(&mut self, name: &'static str) -> bool {
        let value = self.text(&[name]);
        value.and_then(boolean) == Some(true)
    }

    /// Milliseconds of a duration, which has seconds without a unit. What is none is noted.
    pub(super) fn milliseconds(&mut self, names: &[&'static str]) -> Option<u64> {
        self.duration(names, Bare::Seconds)
    }

    /// The same.
    pub(super) fn duration(&mut self, names: &[&'static str], bare: Bare) -> Option<u64> {
        let entry = self.take(names)?;
        let made = unit::milliseconds(&entry.value, bare);
        if made.is_none() {
            self.note(entry, Kind::Unknown, "its value is no duration");
        }
        made
    }

    pub(super) fn number(&mut self, names: &[&'static str]) -> Option<u64> {
        let entry = self.take(names)?;
        let made = entry.value.parse().ok();
        if made.is_none() {
            self.note(entry, Kind::Unknown, "its value is no number");
        }
        made
    }

    /// The port, or the usual one. What is none is noted; a variable of the environment was.
    pub(super) fn port(&mut self, usual: &'static str) -> &'a str {
        let Some(entry) = self.take(&["port"]) else {
            return usual;
        };
        if port(&entry.value).is_some() || entry.value.starts_with('$') {
            return &entry.value;
        }
        self.note(entry, Kind::ToDo, no_port(&entry.value, usual));
        usual
    }

    /// A password in clear, and another one in place of an encrypted one.
    pub(super) fn password(&mut self, names: &[&'static str]) -> &'a str {
        let Some(entry) = self.take(names) else {
            return "";
        };
        if !unit::is_encrypted(&entry.value) {
            return &entry.value;
        }
        let text = "it is encrypted by `maxpasswd`, and only MaxScale has the key: write the \
                    password in clear where the file says change-me";
        self.note(entry, Kind::ToDo, text);
        "change-me"
    }

    pub(super) fn note(&mut self, entry: &Entry, kind: Kind, text: impl Into<String>) {
        let setting = format!("[{}] {}", self.section.name, entry.name);
        self.push(entry.place.file, entry.place.line, setting, kind, text);
    }

    /// A note about the section as a whole.
    pub(super) fn note_all(&mut self, kind: Kind, text: impl Into<String>) {
        let place = self.section.place;
        let setting = format!("[{}]", self.section.name);
        self.push(place.file, place.line, setting, kind, text);
    }

    fn push(
        &mut self,
        file: usize,
        line: usize,
        setting: String,
        kind: Kind,
        text: impl Into<String>,
    ) {
        let file = self.sources.get(file).map(|it| it.name.clone());
        self.notes.push(Note {
            file: file.unwrap_or_default(),
            line,
            setting,
            kind,
            text: text.into(),
        });
    }

    /// Judges what was not taken. All notes become comments of the block, too.
    pub(super) fn finish(mut self, known: &[&[Known]], block: &mut Block) -> Vec<Note> {
        self.judge_rest(known, block);
        self.notes
    }

    /// The same, without giving the notes away.
    pub(super) fn judge_rest(&mut self, known: &[&[Known]], block: &mut Block) {
        for entry in &self.section.entries {
            if self.taken.contains(&entry.name.as_str()) {
                continue;
            }
            if let Some((kind, text)) = judge(known, &entry.name, &entry.value) {
                self.note(entry, kind, text);
            }
        }
        for note in &self.notes {
            block.comment(note.comment());
        }
    }

    /// The notes of a section that is left out: it alone is named, with the reason.
    pub(super) fn leave_out(mut self, kind: Kind, text: impl Into<String>) -> Vec<Note> {
        self.note_all(kind, text);
        self.notes
    }
}
