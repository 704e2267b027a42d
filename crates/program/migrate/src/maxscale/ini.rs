//! The parser of MaxScale's files.
//!
//! A file has sections, `[name]`, with lines `name=value`. A line that begins with a blank goes on
//! with the list of the line before. `#` and `;` begin comments, at the begin of a line alone.

use crate::error::{ParseError, What};
use crate::{BYTE_ORDER_MARK, Source};

/// Most headers and values of all files together. People write some hundreds.
pub(crate) const ENTRIES_MAX: usize = 10_000;

/// A section, of all files that have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) entries: Vec<Entry>,
}

/// A setting of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) place: Place,
}

/// Where something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The file's place among all.
    pub(crate) file: usize,
    /// Its line, from 1.
    pub(crate) line: usize,
}

/// What a file says, and settings that it says more than once.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Parsed {
    pub(crate) sections: Vec<Section>,
    /// Those that a later one replaces.
    pub(crate) replaced: Vec<(String, Entry)>,
}

/// Reads all files. A section that several have is one, in which the later value counts.
pub(crate) fn parse(sources: &[Source]) -> Result<Parsed, ParseError> {
    let mut parsed = Parsed::default();
    let mut entry_count = 0;
    for (file, source) in sources.iter().enumerate() {
        let mut current = None;
        let text = source.text.trim_start_matches(BYTE_ORDER_MARK);
        for (line, text) in (1..).zip(text.lines()) {
            let place = Place { file, line };
            let wrong = |what| ParseError {
                file: source.name.clone(),
                line,
                what,
            };
            let told = parsed.line(text, place, &mut current);
            if told.map_err(wrong)? == Told::Something {
                entry_count += 1;
            }
            if ENTRIES_MAX < entry_count {
                return Err(wrong(What::Entries(ENTRIES_MAX)));
            }
        }
    }
    Ok(parsed)
}

/// Whether a line says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Something,
    Nothing,
}

/// Where lines are added to.
#[derive(Debug, Clone)]
struct Current {
    /// The section's place.
    section: usize,
    /// The name of the setting that a line may go on with.
    entry: Option<String>,
}

impl Parsed {
    fn line(
        &mut self,
        text: &str,
        place: Place,
        current: &mut Option<Current>,
    ) -> Result<Told, What> {
        let words = text.trim();
        if words.is_empty() || words.starts_with(['#', ';']) {
            return Ok(Told::Nothing);
        }
        if text.starts_with(char::is_whitespace)
            && let Some(before) = self.entry_before(current.as_ref())
        {
            let is_apart = before.value.ends_with(',') || words.starts_with(',');
            if !is_apart && !before.value.is_empty() {
                before.value.push(',');
            }
            before.value.push_str(words);
            return Ok(Told::Nothing);
        }
        if let Some(header) = words.strip_prefix('[') {
            let (name, _) = header.split_once(']').ok_or(What::Header)?;
            let section = self.section(name.trim(), place);
            let entry = None;
            *current = Some(Current { section, entry });
            return Ok(Told::Something);
        }
        let sign = words.find(['=', ':']).ok_or(What::Line)?;
        let (name, rest) = words.split_at_checked(sign).ok_or(What::Line)?;
        let value = rest.get(1..).unwrap_or_default();
        let name = name.trim().to_ascii_lowercase().replace('-', "_");
        if name.is_empty() {
            return Err(What::Line);
        }
        let current = current.as_mut().ok_or(What::NoSection)?;
        current.entry = Some(name.clone());
        let value = unquoted(value.trim()).to_owned();
        let section = self.sections.get_mut(current.section);
        let section = section.ok_or(What::NoSection)?;
        let entry = Entry { name, value, place };
        if let Some(old) = section.entries.iter_mut().find(|it| it.name == entry.name) {
            let old = std::mem::replace(old, entry);
            self.replaced.push((section.name.clone(), old));
        } else {
            section.entries.push(entry);
        }
        Ok(Told::Something)
    }

    /// The setting that a line goes on with.
    fn entry_before(&mut self, current: Option<&Current>) -> Option<&mut Entry> {
        let current = current?;
        let name = current.entry.as_ref()?;
        let entries = &mut self.sections.get_mut(current.section)?.entries;
        entries.iter_mut().find(|it| it.name == *name)
    }

    /// The place of a section, which is made if there is none.
    fn section(&mut self, name: &str, place: Place) -> usize {
        if let Some(found) = self.sections.iter().position(|it| it.name == name) {
            return found;
        }
        self.sections.push(Section {
            name: name.to_owned(),
            place,
            entries: Vec::new(),
        });
        self.sections.len() - 1
    }
}

/// A value without the quotes around it, which it may have.
fn unquoted(value: &str) -> &str {
    let inside = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
    inside('"').or(inside('\'')).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(texts: &[&str]) -> Vec<Source> {
        let source = |(place, text): (usize, &&str)| Source {
            name: format!("f{place}"),
            text: (*text).to_owned(),
        };
        texts.iter().enumerate().map(source).collect()
    }

    fn values(parsed: &Parsed) -> Vec<String> {
        let mut values = Vec::new();
        for section in &parsed.sections {
            for it in &section.entries {
                let Place { file, line } = it.place;
                let name = &section.name;
                values.push(format!("{file}:{line} {name}.{}={}", it.name, it.value));
            }
        }
        values
    }

    #[test]
    fn sections_values_and_lists_over_lines_are_read() {
        let text = "\u{feff}# a\n; b\n[one]\r\n type = server \naddress:db1\n\n[Two Words] x\n\
                    servers=a,\n  b\n\tc\n  # d\n\t, d\nAuto-Tune=all # e\n\
                    password='a b'\nempty=\"\"\nopen='\n";
        let parsed = parse(&sources(&[text])).unwrap();
        assert_eq!(
            values(&parsed),
            [
                "0:4 one.type=server",
                "0:5 one.address=db1",
                "0:8 Two Words.servers=a,b,c, d",
                "0:13 Two Words.auto_tune=all # e",
                "0:14 Two Words.password=a b",
                "0:15 Two Words.empty=",
                "0:16 Two Words.open='",
            ]
        );
    }

    #[test]
    fn later_values_count_and_earlier_ones_are_kept() {
        let parsed = parse(&sources(&["[a]\nx=1\n[b]\ny=2\n", "[a]\nx=3\nz=4\n"])).unwrap();
        assert_eq!(values(&parsed), ["1:2 a.x=3", "1:3 a.z=4", "0:4 b.y=2"]);
        let [(section, old)] = parsed.replaced.as_slice() else {
            panic!("one was replaced")
        };
        assert_eq!((section.as_str(), old.value.as_str()), ("a", "1"));
    }

    #[test]
    fn mistakes_have_their_line() {
        for (text, line, what) in [
            ("a=1\n", 1, What::NoSection),
            ("[a]\n\nb\n", 3, What::Line),
            ("[a]\n=b\n", 2, What::Line),
            ("[a\n", 1, What::Header),
        ] {
            let error = parse(&sources(&["", text])).unwrap_err();
            assert_eq!((error.line, error.what), (line, what), "{text}");
            assert_eq!(error.file, "f1");
        }
    }

    #[test]
    fn settings_have_a_limit() {
        // A header counts like a value.
        for count in [ENTRIES_MAX - 1, ENTRIES_MAX] {
            let lines = "[a]\n".repeat(count);
            assert!(parse(&sources(&[&lines])).is_ok());
        }
        let lines = "[a]\n".repeat(ENTRIES_MAX + 1);
        let error = parse(&sources(&[&lines])).unwrap_err();
        assert_eq!(
            (error.line, error.what),
            (ENTRIES_MAX + 1, What::Entries(ENTRIES_MAX))
        );
    }
}
