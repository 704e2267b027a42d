//! What happened when a schedule was played.

use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};

use super::script::SessionName;

/// The events of a play, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) events: Vec<Event>,
    /// What a session waited for after a step, if the server tells. It is not compared.
    pub(crate) locks: BTreeMap<(usize, SessionName), String>,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// The step after which it was seen, from 0. The end of a play counts as further steps.
    pub(crate) step: usize,
    /// The session that it is about; `None`: all.
    pub(crate) session: Option<SessionName>,
    pub(crate) what: What,
}

/// What an event is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// The step itself, as it is shown.
    Step(String),
    /// The step was left out, because its session was blocked.
    Busy,
    /// A reply.
    Answer(String),
    /// The session waits for a lock.
    Blocked,
    /// What the table has at the end.
    Left(String),
    /// The play ended before its end: a hang, or a lost connection.
    Broken(String),
}

impl Record {
    pub(crate) fn add(&mut self, step: usize, session: Option<SessionName>, what: What) {
        self.events.push(Event {
            step,
            session,
            what,
        });
    }
}

/// A line for each event.
impl Display for Record {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        self.events.iter().try_for_each(|event| event.fmt(f))
    }
}

impl Display for Event {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let letter = self.session.map_or(' ', |it| it.0);
        match &self.what {
            What::Step(text) => writeln!(f, "{text}"),
            What::Busy => writeln!(f, "  {letter} is blocked: left out"),
            What::Answer(answer) => writeln!(f, "  {letter} answers: {}", answer.trim_end()),
            What::Blocked => writeln!(f, "  {letter} is blocked"),
            What::Left(rows) => write!(f, "left: {rows}"),
            What::Broken(error) => writeln!(f, "  ends here: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_lines() {
        let mut record = Record::default();
        let a = Some(SessionName('A'));
        record.add(0, a, What::Step("A: BEGIN".to_owned()));
        record.add(0, a, What::Answer("ok\n".to_owned()));
        record.add(1, a, What::Blocked);
        record.add(1, None, What::Left("| id |\n".to_owned()));
        let text = "A: BEGIN\n  A answers: ok\n  A is blocked\nleft: | id |\n";
        assert_eq!(record.to_string(), text);
    }
}
