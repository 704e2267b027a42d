//! Trees of prepared statements, shared by the sessions of a worker that have prepared one text.
//!
//! Programs with thousands of connections prepare the same few statements on each. A tree lives as
//! long as a session has the statement; the map only holds weak references.

use std::collections::HashMap;
use std::rc::{Rc, Weak};

use foldhash::fast::FixedState;
use planner::StringRules;

use crate::worker::parsed::Parsed;

/// How large the map may grow before trees that are gone are swept.
const SWEEP_COUNT_MIN: usize = 64;

/// The trees of one worker.
#[derive(Debug, Default)]
pub(crate) struct PreparedTexts {
    by_text: HashMap<Box<[u8]>, Entry, FixedState>,
    /// Twice the entries that the last sweep left.
    sweep_at: usize,
}

#[derive(Debug)]
struct Entry {
    /// How the text and its strings were read.
    mode: settings::SqlMode,
    strings: StringRules,
    parsed: Weak<Parsed>,
}

impl PreparedTexts {
    /// The tree of a text that was read in this way.
    pub(crate) fn find(
        &self,
        text: &[u8],
        mode: settings::SqlMode,
        strings: StringRules,
    ) -> Option<Rc<Parsed>> {
        let entry = self.by_text.get(text)?;
        let is_it = entry.mode == mode && entry.strings == strings;
        is_it.then(|| entry.parsed.upgrade()).flatten()
    }

    /// Shares a tree from now on.
    pub(crate) fn put(&mut self, text: &[u8], mode: settings::SqlMode, parsed: &Rc<Parsed>) {
        if self.sweep_at.max(SWEEP_COUNT_MIN) <= self.by_text.len() {
            self.by_text
                .retain(|_, entry| 0 < entry.parsed.strong_count());
            self.sweep_at = self.by_text.len() * 2;
        }
        let entry = Entry {
            mode,
            strings: parsed.text.strings,
            parsed: Rc::downgrade(parsed),
        };
        self.by_text.insert(text.into(), entry);
    }
}

#[cfg(test)]
mod tests {
    use value::Charset;

    use super::*;
    use crate::worker::source::Source;

    fn parsed(text: &[u8]) -> Rc<Parsed> {
        let statement = syntax::parse::parse(text, settings::SqlMode::default()).unwrap();
        let text = Source::new(text, StringRules::default());
        Rc::new(Parsed::new(statement, text))
    }

    #[test]
    fn trees_are_shared_while_somebody_has_them() {
        let mode = settings::SqlMode::default();
        let other_mode = settings::SqlMode::ANSI_QUOTES;
        let mut texts = PreparedTexts::default();
        let tree = parsed(b"SELECT 1");
        texts.put(b"SELECT 1", mode, &tree);
        let strings = StringRules::default();
        let found = texts.find(b"SELECT 1", mode, strings).unwrap();
        assert!(Rc::ptr_eq(&found, &tree));
        assert!(texts.find(b"SELECT 1", other_mode, strings).is_none());
        let other_strings = StringRules {
            client: Charset::Latin1,
            ..strings
        };
        assert!(texts.find(b"SELECT 1", mode, other_strings).is_none());
        assert!(texts.find(b"SELECT 2", mode, strings).is_none());
        drop((found, tree));
        assert!(texts.find(b"SELECT 1", mode, strings).is_none());
    }

    #[test]
    fn texts_that_nobody_has_are_swept() {
        let mode = settings::SqlMode::default();
        let mut texts = PreparedTexts::default();
        let kept = parsed(b"SELECT 0");
        texts.put(b"SELECT 0", mode, &kept);
        for number in 1..1000 {
            let text = format!("SELECT {number}");
            texts.put(text.as_bytes(), mode, &parsed(text.as_bytes()));
        }
        assert!(texts.by_text.len() <= SWEEP_COUNT_MIN + 1);
        assert!(
            texts
                .find(b"SELECT 0", mode, StringRules::default())
                .is_some()
        );
    }
}
