//! [`Judge`]: what texts do, remembered for texts that differ in their literals alone.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use settings::SqlMode;
use syntax::canonical::Canonical;
use syntax::class::{Class, Effect, Facts, Kind, Verdict, classify, verdict};

/// Most verdicts that a worker remembers. An application has some hundred distinct texts.
pub const VERDICTS_MAX: usize = 4096;

/// What a text does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judged {
    /// What its first statement is.
    pub class: Class,
    /// What the text reads and changes.
    pub verdict: Verdict,
    /// What its first statement does to the transaction.
    pub effect: Effect,
}

impl Judged {
    /// Of a text that was not read to its end: nothing is known.
    pub fn unread(text: &[u8], mode: SqlMode) -> Judged {
        let first = classify(text, mode);
        Judged {
            class: first.class,
            verdict: Verdict {
                kind: Kind::Write,
                facts: Facts::NOT_UNDERSTOOD,
                is_several: false,
            },
            effect: first.effect,
        }
    }

    fn of(text: &[u8], mode: SqlMode) -> Judged {
        let first = classify(text, mode);
        Judged {
            class: first.class,
            verdict: verdict(text, mode),
            effect: first.effect,
        }
    }
}

/// The verdicts of a worker, by canonical text. Those that were not asked for while half of
/// [`VERDICTS_MAX`] others came are forgotten.
#[derive(Debug, Default)]
pub struct Judge {
    canonical: Canonical,
    recent: Verdicts,
    older: Verdicts,
}

type Verdicts = HashMap<Box<[u8]>, Judged, RandomState>;

impl Judge {
    /// What a text does, as a server with this mode reads it.
    pub fn judge(&mut self, text: &[u8], mode: SqlMode) -> Judged {
        if !self.canonical.fill(text, mode) {
            return Judged::of(text, mode);
        }
        // The modes that change tokens are rare, and their texts are not remembered.
        if mode != SqlMode::default() {
            return Judged::of(self.canonical.text(), mode);
        }
        let key = self.canonical.text();
        if let Some(known) = self.recent.get(key) {
            return *known;
        }
        let judged = match self.older.remove(key) {
            Some(known) => known,
            None => Judged::of(key, mode),
        };
        if VERDICTS_MAX / 2 <= self.recent.len() {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(key.into(), judged);
        judged
    }

    /// How many verdicts are remembered.
    pub fn len(&self) -> usize {
        self.recent.len() + self.older.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_share_a_verdict() {
        let mut judge = Judge::default();
        let mode = SqlMode::default();
        for id in 0..10 {
            let text = format!("SELECT a FROM t WHERE id = {id}");
            let judged = judge.judge(text.as_bytes(), mode);
            assert_eq!(judged.verdict.kind, Kind::Read);
        }
        assert_eq!(judge.len(), 1);
        assert_eq!(judge.judge(b"COMMIT", mode).verdict.kind, Kind::Transaction);
        assert_eq!(judge.len(), 1, "what is short is read again");
    }

    #[test]
    fn as_many_are_kept_as_there_is_room_for() {
        let mut judge = Judge::default();
        let mut ask = |number: usize| {
            let text = format!("SELECT a{number} FROM t");
            judge.judge(text.as_bytes(), SqlMode::default());
            judge.len()
        };
        for number in 0..VERDICTS_MAX - 1 {
            assert_eq!(ask(number), number + 1);
        }
        assert_eq!(ask(VERDICTS_MAX - 1), VERDICTS_MAX);
        assert_eq!(ask(VERDICTS_MAX), VERDICTS_MAX / 2 + 1);
        // What is asked for again stays.
        assert_eq!(ask(VERDICTS_MAX / 2), VERDICTS_MAX / 2 + 1);
    }
}
