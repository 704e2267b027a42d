//! All contents of a settings file and the command line: the flat settings and the sections.

use std::collections::HashMap;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::error::{FileError, Mistake, SettingError, shown};
use crate::lines::Lines;
use crate::places::find;
use crate::reader::{Reader, scalar_text};
use crate::registry::Settings;
use crate::section::{SECTIONS, Section};
use crate::sections::Sections;
use crate::suggest::nearest;

/// The defaults, changed by the file and then by the command line.
#[derive(Debug)]
pub struct Configuration {
    pub settings: Settings,
    pub sections: Sections,
    /// The existing sections; constant.
    declared: &'static [Section],
    /// The line that gave a setting its value, for those that the file gave.
    lines: HashMap<&'static str, usize>,
}

impl Default for Configuration {
    fn default() -> Self {
        Configuration::declaring(SECTIONS)
    }
}

impl Configuration {
    fn declaring(declared: &'static [Section]) -> Configuration {
        Configuration {
            settings: Settings::default(),
            sections: Sections::default(),
            declared,
            lines: HashMap::new(),
        }
    }

    /// Takes the contents of a settings file and returns its mistakes, by their lines. What is
    /// right is taken although something else is wrong, so that each mistake is found in one
    /// reading.
    pub fn read_file(&mut self, text: &str) -> Vec<Mistake> {
        let lines = Lines::of(text);
        let (document, errors) = DeTable::parse_recoverable(text);
        let mut mistakes: Vec<Mistake> = errors.iter().map(|error| syntax(error, &lines)).collect();
        let mut reader = Reader::new(self.declared, &lines);
        for (name, value) in document.get_ref() {
            if reader.takes(name.get_ref()) {
                reader.read(name.get_ref(), value);
            } else if let Err(error) = self.read_setting(name, value, &lines) {
                let line = lines.at(name.span().start);
                mistakes.push(Mistake { line, error });
            }
        }
        let (sections, in_sections) = reader.finish();
        self.sections = sections;
        mistakes.extend(in_sections);
        without_echoes(&mut mistakes);
        mistakes
    }

    /// Sets one value from `name=value`, as the command line has it.
    pub fn assign(&mut self, text: &str) -> Result<(), SettingError> {
        self.settings.assign(text)?;
        let name = text.split('=').next().unwrap_or_default();
        if let Some((_, setting)) = find(name.trim()) {
            self.lines.remove(setting.name);
        }
        Ok(())
    }

    /// The kinds of sections that exist.
    pub(crate) fn declared(&self) -> &'static [Section] {
        self.declared
    }

    /// The line of the file that set the setting; `None` if the file did not.
    pub fn line_of(&self, name: &str) -> Option<usize> {
        self.lines.get(name).copied()
    }

    fn read_setting(
        &mut self,
        name: &Spanned<DeString<'_>>,
        value: &Spanned<DeValue<'_>>,
        lines: &Lines,
    ) -> Result<(), FileError> {
        let line = lines.at(name.span().start);
        let given = name.get_ref().as_ref();
        let found = find(given).map(|(_, setting)| setting.name);
        let Some(text) = scalar_text(value.get_ref()) else {
            return Err(match (found, value.get_ref()) {
                (None, DeValue::Table(_) | DeValue::Array(_)) => FileError::UnknownSection {
                    name: shown(given),
                    suggestion: nearest(given, self.declared.iter().map(|section| section.name)),
                },
                _ => FileError::NotAScalar { name: shown(given) },
            });
        };
        self.settings
            .set(given, &text)
            .map_err(FileError::Setting)?;
        let name = found.expect("it was set");
        match self.lines.insert(name, line) {
            Some(line) => Err(FileError::SettingRepeated { name, line }),
            None => Ok(()),
        }
    }
}

fn syntax(error: &toml::de::Error, lines: &Lines) -> Mistake {
    Mistake {
        line: lines.at(error.span().map_or(0, |span| span.start)),
        error: FileError::Syntax {
            message: shown(error.message()),
        },
    }
}

/// Orders the mistakes, and drops those that follow from an unreadable line: errors from what the
/// parser made of it, and parts that may be missing because of it.
fn without_echoes(mistakes: &mut Vec<Mistake>) {
    let is_syntax = |mistake: &Mistake| matches!(mistake.error, FileError::Syntax { .. });
    let mut unread: Vec<usize> = mistakes
        .iter()
        .filter(|mistake| is_syntax(mistake))
        .map(|mistake| mistake.line)
        .collect();
    unread.sort_unstable();
    mistakes.sort_by_key(|mistake| mistake.line);
    mistakes.retain(|mistake| {
        let is_echo = mistake.error.is_absence() && !unread.is_empty()
            || unread.binary_search(&mistake.line).is_ok();
        is_syntax(mistake) || !is_echo
    });
    // One line has one syntax error: later errors of the parser in it are guesses.
    mistakes.dedup_by(|later, earlier| {
        is_syntax(later) && is_syntax(earlier) && later.line == earlier.line
    });
}

#[cfg(test)]
pub(crate) mod tests;
