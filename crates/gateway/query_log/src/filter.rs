//! [`Filter`]: which statements are logged, and how their texts are shown.

use std::time::Duration;

/// See the module's head. Constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filter {
    /// Each statement is logged.
    pub all: bool,
    /// Each that fails is.
    pub errors: bool,
    /// Each that takes so long is.
    pub slow: Option<Duration>,
    /// What is shown of a text.
    pub form: TextForm,
    /// Most bytes of a text.
    pub text_bytes_max: usize,
}

/// What is shown of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextForm {
    /// Its canonical form, with `?` for literals.
    Canonical,
    /// The text as it was sent.
    Literal,
}

/// Why a statement is logged. Of several reasons, the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// A rule says so.
    Rule,
    /// It has failed.
    Error,
    /// It has taken long.
    Slow,
    /// All are logged.
    All,
}

impl Why {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Why::Rule => "rule",
            Why::Error => "error",
            Why::Slow => "slow",
            Why::All => "all",
        }
    }
}

/// A statement that has ended, as far as the choice goes by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// What a rule says of it.
    pub ruled: Option<bool>,
    /// How long it has taken.
    pub time: Duration,
    /// Its client got an error, or no whole answer.
    pub is_failed: bool,
}

impl Filter {
    /// Why a statement that has ended is logged; `None` if it is not.
    pub fn why(&self, ended: Ended) -> Option<Why> {
        match ended.ruled {
            Some(true) => Some(Why::Rule),
            Some(false) => None,
            None if self.errors && ended.is_failed => Some(Why::Error),
            None if self.slow.is_some_and(|slow| slow <= ended.time) => Some(Why::Slow),
            None => self.all.then_some(Why::All),
        }
    }

    /// How many bytes of a text must be kept until it has ended: one more than are shown, which
    /// tells whether a character ends there.
    pub fn kept_bytes(&self) -> usize {
        match self.form {
            TextForm::Canonical => 0,
            TextForm::Literal => self.text_bytes_max + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_go_first_and_then_the_rarest_reason() {
        let slow = Duration::from_millis(5);
        let filter = Filter {
            all: false,
            errors: true,
            slow: Some(slow),
            form: TextForm::Canonical,
            text_bytes_max: 9,
        };
        let all = Filter {
            all: true,
            ..filter
        };
        let ended = |ruled, time, is_failed| Ended {
            ruled,
            time,
            is_failed,
        };
        let short = slow - Duration::from_nanos(1);
        for (ended, expected, of_all) in [
            (ended(None, short, false), None, Some(Why::All)),
            (ended(None, slow, false), Some(Why::Slow), Some(Why::Slow)),
            (ended(None, slow, true), Some(Why::Error), Some(Why::Error)),
            (
                ended(Some(true), short, false),
                Some(Why::Rule),
                Some(Why::Rule),
            ),
            (ended(Some(false), slow, true), None, None),
        ] {
            assert_eq!(filter.why(ended), expected, "{ended:?}");
            assert_eq!(all.why(ended), of_all, "{ended:?}");
        }
        let nothing = Filter {
            errors: false,
            slow: None,
            ..filter
        };
        assert_eq!(nothing.why(ended(None, slow, true)), None);
        assert_eq!(nothing.kept_bytes(), 0);
        let literal = Filter {
            form: TextForm::Literal,
            ..filter
        };
        assert_eq!(literal.kept_bytes(), 10);
    }
}
