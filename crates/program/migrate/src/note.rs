//! [`Note`]: what a person has to know about a setting that was not simply translated.

use std::fmt;

/// About one setting. It is a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The file that has the setting.
    pub file: String,
    /// Its line there, from 1.
    pub line: usize,
    /// The setting, as a person would look for it.
    pub setting: String,
    /// How much it matters.
    pub kind: Kind,
    /// What to know, and what to do.
    pub text: String,
}

/// What became of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Somebody has to do something before the gateway works.
    ToDo,
    /// It was translated, or needs nothing, but something is different.
    Differs,
    /// A gateway has nothing like it.
    LeftOut,
    /// The translator does not know it.
    Unknown,
}

impl Kind {
    /// The word in front of a note.
    pub fn word(self) -> &'static str {
        match self {
            Kind::ToDo => "to do",
            Kind::Differs => "differs",
            Kind::LeftOut => "left out",
            Kind::Unknown => "unknown",
        }
    }
}

impl Note {
    /// What the settings file says of it.
    pub(crate) fn comment(&self) -> String {
        format!("{}: {}: {}", self.kind.word(), self.setting, self.text)
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Note {
            file,
            line,
            setting,
            kind,
            text,
        } = self;
        write!(f, "{file}:{line}: {}: {setting}: {text}", kind.word())
    }
}
