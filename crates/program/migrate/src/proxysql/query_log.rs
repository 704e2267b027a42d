//! `eventslog_*` and `log` of rules: the section `query_log`.

use crate::note::Kind;
use crate::output::{Block, Output, whole};

use super::row::Row;

/// What `size` may be.
const FILE_BYTES_MIN: u64 = 64 << 10;
const FILE_BYTES_MAX: u64 = 1 << 40;

/// Most bytes of a text that are shown: as much as a settings file takes.
const TEXT_MAX: &str = "64K";

/// What variables say of ProxySQL's log of events.
#[derive(Debug)]
pub(super) struct EventLog<'a> {
    path: Option<&'a str>,
    file_bytes: Option<u64>,
    logs_all: bool,
}

impl<'a> EventLog<'a> {
    pub(super) fn read(row: &mut Row<'a>) -> EventLog<'a> {
        EventLog {
            path: row.text(&["eventslog_filename"]),
            file_bytes: row.count(&["eventslog_filesize"]),
            logs_all: row.boolean("eventslog_default_log") == Some(true),
        }
    }

    /// Whether there is a file, without which nothing is logged.
    pub(super) fn is_there(&self) -> bool {
        self.path.is_some()
    }

    /// Writes the section, if rules or the variables choose statements.
    pub(super) fn write(&self, has_rules: HasRules, row: &mut Row<'_>, output: &mut Output) {
        let Some(path) = self.path else {
            return;
        };
        if !self.logs_all && has_rules == HasRules::No {
            let text = "nothing is logged: no rule has `log`, and `eventslog_default_log` is not \
                        set";
            row.note("eventslog_filename", Kind::LeftOut, text);
            return;
        }
        let text = "lines are JSON with fields of their own; a path without `/` in front is \
                    relative to where the gateway is started; 5 full files are kept (`files`)";
        row.note("eventslog_filename", Kind::Differs, text);
        let mut block = Block::default();
        block.set("path", path);
        if self.logs_all {
            block.set("all", true);
        }
        block.set("text", "literal");
        block.set("text_max", TEXT_MAX);
        if let Some(bytes) = self.file_bytes {
            block.set("size", whole(bytes.clamp(FILE_BYTES_MIN, FILE_BYTES_MAX)));
        }
        output.add_only("query_log", block);
    }
}

/// Whether a rule logs statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HasRules {
    Yes,
    No,
}
