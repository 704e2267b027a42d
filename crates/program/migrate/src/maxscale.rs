//! MaxScale: its file, and what becomes of its sections.
//!
//! Servers, monitors, services and listeners become the sections of those names. Filters of a
//! service become rules of it, if they say where statements go; a cache of it; or the query log.

mod draft;
mod ini;
mod unit;

mod cache;
mod filter;
mod global;
mod listener;
mod monitor;
mod query_log;
mod server;
mod service;

use crate::error::{ParseError, TranslateError, What};
use crate::note::{Kind, Note};
use crate::output::{Names, Output};
use crate::{Source, known};

use draft::Draft;
use ini::{Entry, Parsed, Section};
use service::Limits;

/// Sections that others take values from.
const INCLUDE: &str = "include";

/// The configuration as it is translated.
#[derive(Debug)]
struct Configuration<'a> {
    sources: &'a [Source],
    sections: Vec<Section>,
}

impl Configuration<'_> {
    fn all<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Section> {
        self.sections.iter().filter(move |it| it.kind() == kind)
    }

    fn draft<'a>(&'a self, section: &'a Section) -> Draft<'a> {
        Draft::new(self.sources, section)
    }
}

impl Section {
    /// Its `type`. The section of global settings has none.
    fn kind(&self) -> &str {
        match self.value("type") {
            Some(kind) => kind,
            None if self.name.eq_ignore_ascii_case("maxscale") => "maxscale",
            None if self.name.eq_ignore_ascii_case("gateway") => "maxscale",
            None => "",
        }
    }

    fn value(&self, name: &str) -> Option<&str> {
        let entry = self.entries.iter().find(|it| it.name == name);
        entry.map(|it| it.value.as_str())
    }
}

/// Translates the main file and those of its folder.
pub(crate) fn translate(sources: &[Source]) -> Result<(Output, Vec<Note>), TranslateError> {
    let Parsed { sections, replaced } = ini::parse(sources)?;
    let mut notes = Vec::new();
    for (section, entry) in &replaced {
        // It may be a password.
        let text = "a later value replaces this one".to_owned();
        notes.push(note(sources, section, entry, Kind::Differs, text));
    }
    let configuration = Configuration {
        sources,
        sections: included(sections, sources, &mut notes)?,
    };
    if configuration.all("server").next().is_none() {
        let lacks = "no section has `type=server`";
        return Err(TranslateError::Empty { lacks });
    }
    let mut output = Output::default();
    output.head.comment(
        "Translated from a configuration of MaxScale. Comments tell what is different, left out \
         or to do; docs/from-maxscale.md tells of each setting.",
    );
    for section in &configuration.sections {
        let is_known = KINDS.contains(&section.kind());
        if !is_known {
            let draft = configuration.draft(section);
            let text = format!("sections of type `{}` are not known", section.kind());
            notes.extend(draft.leave_out(Kind::Unknown, text));
        }
    }
    let servers = server::translate(&configuration, &mut output, &mut notes);
    let watches = monitor::translate(&configuration, &servers, &mut output, &mut notes);
    let mut services = service::read(&configuration, &servers, &watches, &mut notes);
    if services.is_empty() {
        let lacks = "no listener leads to a service that a gateway could have";
        return Err(TranslateError::Empty { lacks });
    }
    cache::translate(&configuration, &mut services, &mut output, &mut notes);
    let mut names = Names::default();
    let rules = filter::translate(&configuration, &services, &servers, &mut names, &mut notes);
    let query_log = query_log::translate(&configuration, &services, &mut names, &mut notes);
    listener::write_first(&configuration, &services, &mut output);
    global::translate(&configuration, &services, &mut output, &mut notes);
    let limits: Vec<Limits> = services.iter().map(|it| it.limits).collect();
    let services = service::write(services, &mut output);
    listener::translate(&configuration, &services, &mut output, &mut notes);
    let logging = query_log.map(|it| it.write(&mut output));
    for rule in rules.into_iter().chain(logging.unwrap_or_default()) {
        output.add("rule", rule);
    }
    global::limits(&limits, &mut output);
    Ok((output, notes))
}

/// Types of sections that are translated or whose values others take.
const KINDS: [&str; 7] = [
    "maxscale", "server", "monitor", "service", "listener", "filter", INCLUDE,
];

fn note(sources: &[Source], section: &str, entry: &Entry, kind: Kind, text: String) -> Note {
    let file = sources.get(entry.place.file).map(|it| it.name.clone());
    Note {
        file: file.unwrap_or_default(),
        line: entry.place.line,
        setting: format!("[{section}] {}", entry.name),
        kind,
        text,
    }
}

/// The sections with what they include. What a section says itself goes first.
fn included(
    sections: Vec<Section>,
    sources: &[Source],
    notes: &mut Vec<Note>,
) -> Result<Vec<Section>, ParseError> {
    let all = sections.clone();
    let mut entry_count = 0;
    let mut whole = sections;
    for section in &mut whole {
        let Some(place) = section.entries.iter().position(|it| it.name == "@include") else {
            continue;
        };
        let entry = section.entries.remove(place);
        for name in unit::list(&entry.value) {
            let is_it = |it: &&Section| it.name == name && it.kind() == INCLUDE;
            let Some(found) = all.iter().find(is_it) else {
                let text = format!("there is no section `{name}` with type=include");
                notes.push(note(sources, &section.name, &entry, Kind::Unknown, text));
                continue;
            };
            if ini::ENTRIES_MAX < entry_count + found.entries.len() {
                let file = sources.get(entry.place.file).map(|it| it.name.clone());
                return Err(ParseError {
                    file: file.unwrap_or_default(),
                    line: entry.place.line,
                    what: What::Entries(ini::ENTRIES_MAX),
                });
            }
            for it in &found.entries {
                if section.value(&it.name).is_none() {
                    section.entries.push(it.clone());
                    entry_count += 1;
                }
            }
        }
    }
    Ok(whole)
}

/// Names of sections as the settings file has them, beside those that MaxScale has.
#[derive(Debug, Default)]
struct Renamed(Vec<(String, String)>);

impl Renamed {
    fn get(&self, old: &str) -> Option<&str> {
        let found = self.0.iter().find(|(it, _)| it == old);
        found.map(|(_, new)| new.as_str())
    }
}

/// Whether a value says no, or is not there.
fn is_off(section: &Section, name: &str) -> bool {
    let value = section.value(name).and_then(known::boolean);
    value != Some(true)
}
