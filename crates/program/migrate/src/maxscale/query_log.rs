//! A filter `qlafilter`: the section `query_log`, and rules that choose statements.

use crate::condition::{self, Sees};
use crate::known::{Known, known, same};
use crate::note::{Kind, Note};
use crate::output::{Block, Names, Output};

use super::filter::{self, Common};
use super::service::Service;
use super::{Configuration, Draft};

pub(super) const MODULE: &str = "qlafilter";

/// Most bytes of a text that are shown: as much as a settings file takes.
const TEXT_MAX: &str = "64K";

/// The file of statements.
#[derive(Debug)]
pub(super) struct QueryLog {
    section: Block,
    rules: Vec<Block>,
}

impl QueryLog {
    /// Writes the section, and returns the rules.
    pub(super) fn write(self, output: &mut Output) -> Vec<Block> {
        output.add_only("query_log", self.section);
        self.rules
    }
}

/// The log of the first filter that services use. A gateway has one.
pub(super) fn translate(
    configuration: &Configuration<'_>,
    services: &[Service],
    names: &mut Names,
    notes: &mut Vec<Note>,
) -> Option<QueryLog> {
    let mut log: Option<(&str, QueryLog)> = None;
    for section in configuration.all("filter") {
        let uses = |it: &&Service| it.filters.contains(&section.name);
        let users: Vec<String> = services
            .iter()
            .filter(uses)
            .map(|it| it.name.clone())
            .collect();
        if section.value("module") != Some(MODULE) || users.is_empty() {
            continue;
        }
        let draft = configuration.draft(section);
        if let Some((first, _)) = &log {
            let text = format!(
                "filter `{MODULE}`: there is one query log, which is that of `{first}`. Write \
                 sections `rule` with `query_log = true` for what this one chooses"
            );
            notes.extend(draft.leave_out(Kind::ToDo, text));
            continue;
        }
        let reach = match users.len() == services.len() {
            true => Reach::All,
            false => Reach::Part,
        };
        let mut asked = Asked {
            draft,
            names,
            reach,
        };
        let made = asked.translate(users);
        notes.extend(asked.draft.notes);
        log = made.map(|made| (section.name.as_str(), made));
    }
    log.map(|(_, made)| made)
}

/// Whether a filter is one of all services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    All,
    Part,
}

/// A filter while it is translated.
#[derive(Debug)]
struct Asked<'a, 'b> {
    draft: Draft<'a>,
    names: &'b mut Names,
    reach: Reach,
}

impl Asked<'_, '_> {
    fn translate(&mut self, services: Vec<String>) -> Option<QueryLog> {
        let path = self.draft.text(&["filebase"]).unwrap_or_default();
        let common = filter::common(&mut self.draft, services);
        let logged = common.and_then(|it| self.logged(&it));
        let Some(Logged { what, rules }) = logged.filter(|_| !path.is_empty()) else {
            self.draft.note_all(
                Kind::ToDo,
                "nothing is logged: write a section `query_log`, and sections `rule` that choose",
            );
            return None;
        };
        self.draft.note_all(
            Kind::Differs,
            "there is one file, `path`, of lines of JSON with fields of their own. The gateway's \
             user has to be able to write it",
        );
        let mut section = Block::default();
        section.set("path", path);
        if what == What::All {
            section.set("all", true);
        }
        if !self.draft.is_on("use_canonical_form") {
            section.set("text", "literal");
        }
        section.set("text_max", TEXT_MAX);
        let _ = self.draft.take(&["module", "log_type", "log_data"]);
        self.draft.judge_rest(&[KNOWN], &mut section);
        Some(QueryLog { section, rules })
    }

    /// What is logged, and the rules that say so; `None` if no rule can.
    fn logged(&mut self, common: &Common) -> Option<Logged> {
        let chosen = self.pattern("match", common);
        let excluded = self.pattern("exclude", common);
        let mut rules = Vec::new();
        // Of both rules, the first decides.
        if let Ok(Some(excluded)) = excluded {
            rules.push(self.rule(common, Some(excluded), false.into()));
        }
        let chosen = chosen.ok()?;
        let is_all = self.reach == Reach::All && chosen.is_none() && common.is_of_anybody();
        let what = match is_all {
            true => What::All,
            false => {
                rules.push(self.rule(common, chosen, true.into()));
                What::OfRules
            }
        };
        Some(Logged { what, rules })
    }

    fn rule(&mut self, common: &Common, pattern: Option<String>, logs: toml::Value) -> Block {
        let mut block = Block::default();
        block.set("name", self.names.make(&self.draft.section.name));
        common.write(&mut block);
        if let Some(pattern) = pattern {
            block.set("pattern", pattern);
        }
        block.set("query_log", logs);
        block
    }

    /// The pattern that a setting has; an error if a rule cannot have it.
    fn pattern(&mut self, name: &'static str, common: &Common) -> Result<Option<String>, NoRule> {
        let draft = &mut self.draft;
        let Some(entry) = draft.take(&[name]).filter(|it| !it.value.is_empty()) else {
            return Ok(None);
        };
        let text = filter::bare_pattern(&entry.value);
        match condition::pattern(text, Sees::Text, common.letters) {
            Ok(pattern) => {
                if let Some(differs) = pattern.differs {
                    draft.note(entry, Kind::Differs, differs);
                }
                Ok(Some(pattern.text))
            }
            Err(reason) => {
                draft.note(entry, Kind::ToDo, format!("there is no rule: {reason}"));
                Err(NoRule)
            }
        }
    }
}

/// A rule cannot have a pattern.
#[derive(Debug)]
struct NoRule;

/// What a filter logs.
#[derive(Debug)]
struct Logged {
    what: What,
    rules: Vec<Block>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    /// All statements but those that rules except.
    All,
    /// Those that rules choose.
    OfRules,
}

const KNOWN: &[Known] = &[
    same("append"),
    same("flush"),
    same("separator"),
    same("newline_replacement"),
    same("duration_unit"),
    known(
        "user_*",
        &[""],
        Kind::ToDo,
        "rules know users by their names, not by patterns: all that the others choose is logged",
    ),
    known(
        "source_*",
        &[""],
        Kind::ToDo,
        "rules know clients by addresses and networks, not by patterns: all that the others choose \
         is logged",
    ),
];
