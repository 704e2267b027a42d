//! [`Condition`]: an error, a warning or a note that a program may handle.

use errcode::{ClientError, Sqlstate};
use syntax::ast::ConditionValue;
use value::{Level, SqlCondition};

/// A condition that was raised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) level: Level,
    pub(crate) error: ClientError,
}

impl Condition {
    /// A condition of the list of warnings.
    pub(crate) fn noted(level: Level, noted: &SqlCondition) -> Self {
        Self {
            level,
            error: noted.clone().into(),
        }
    }

    /// The first two characters of its SQLSTATE.
    pub(crate) fn class(&self) -> &[u8] {
        let Sqlstate(state) = &self.error.sqlstate;
        &state[..2]
    }

    /// How closely a handler's condition matches: the number before the SQLSTATE before the class.
    /// `None` if it does not match.
    pub(crate) fn rank(&self, value: ConditionValue) -> Option<u8> {
        let is_warning = self.level != Level::Error || self.class() == b"01";
        let (is_met, rank) = match value {
            ConditionValue::Code(code) => (self.error.code.number() == code, 2),
            ConditionValue::State(state) => (self.error.sqlstate == Sqlstate(state), 1),
            ConditionValue::Warning => {
                let is_noted = self.level == Level::Note;
                (is_warning && self.class() != b"02" && !is_noted, 0)
            }
            ConditionValue::NotFound => (self.class() == b"02", 0),
            ConditionValue::Exception => (!is_warning && self.class() != b"02", 0),
        };
        is_met.then_some(rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(level: Level, state: &str) -> Condition {
        Condition {
            level,
            error: ClientError::signalled(
                errcode::ER_SIGNAL_EXCEPTION,
                Sqlstate::from_text(state),
                "",
            ),
        }
    }

    #[test]
    fn the_number_comes_before_the_state_before_the_class() {
        let error = condition(Level::Error, "45000");
        assert_eq!(error.rank(ConditionValue::Code(1644)), Some(2));
        assert_eq!(error.rank(ConditionValue::State(*b"45000")), Some(1));
        assert_eq!(error.rank(ConditionValue::Exception), Some(0));
        assert_eq!(error.rank(ConditionValue::Code(1)), None);
        assert_eq!(error.rank(ConditionValue::Warning), None);
        assert_eq!(error.rank(ConditionValue::NotFound), None);
    }

    #[test]
    fn classes_are_those_of_the_state() {
        let warning = condition(Level::Warning, "HY000");
        assert_eq!(warning.rank(ConditionValue::Warning), Some(0));
        assert_eq!(warning.rank(ConditionValue::Exception), None);
        let note = condition(Level::Note, "HY000");
        assert_eq!(note.rank(ConditionValue::Warning), None);
        for level in [Level::Error, Level::Warning] {
            let nothing = condition(level, "02000");
            assert_eq!(nothing.rank(ConditionValue::NotFound), Some(0));
            assert_eq!(nothing.rank(ConditionValue::Warning), None);
            assert_eq!(nothing.rank(ConditionValue::Exception), None);
        }
    }
}
