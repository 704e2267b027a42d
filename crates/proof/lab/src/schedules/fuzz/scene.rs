//! What the records of two plays tell at a step: who was blocked, what was left out, and whose
//! locks are held.
//!
//! Up to the step both records are the same but for what MariaDB alone tells of its locks.

use super::draw::{Move, Schedule};
use super::statement::Kind;
use crate::schedules::record::{Event, Record, What};
use crate::schedules::script::SessionName;

/// The errors of a deadlock, of a wait that may not be, and of a duplicate, as answers show them.
pub(super) const DEADLOCK: &str = "error 1213";
pub(super) const TIMEOUT: &str = "error 1205";
pub(super) const DUPLICATE: &str = "error 1062";

pub(super) fn is_answer(what: &What, begin: &str) -> bool {
    matches!(what, What::Answer(answer) if answer.starts_with(begin))
}

/// A schedule, both records, and a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scene<'a> {
    pub(super) schedule: &'a Schedule,
    pub(super) there: &'a Record,
    pub(super) here: &'a Record,
    pub(super) step: usize,
}

/// A statement that was sent, and its step.
pub(super) type Sent<'a> = (usize, &'a Move);

impl<'a> Scene<'a> {
    /// The statements that were sent up to the step, and not left out.
    pub(super) fn sent(self) -> impl DoubleEndedIterator<Item = Sent<'a>> {
        let moves = self.schedule.moves.iter().enumerate().take(self.step + 1);
        moves.filter(move |(place, _)| {
            let mut events = self.there.events.iter();
            !events.any(|it| it.step == *place && it.what == What::Busy)
        })
    }

    /// The statement of the step itself; `None` behind the last one.
    pub(super) fn mover(self) -> Option<&'a Move> {
        let last = self.sent().next_back();
        last.filter(|(place, _)| *place == self.step)
            .map(|(_, it)| it)
    }

    /// What became of a session at a step.
    pub(super) fn outcome(record: &'a Record, (step, session): (usize, usize)) -> Option<&'a What> {
        let mut events = record.events.iter().filter(|it| it.step == step);
        let is_of = |it: &&Event| is_state(it) && session_of(it) == Some(session);
        events.rfind(is_of).map(|it| &it.what)
    }

    /// Whether a session was blocked before a step.
    pub(super) fn is_blocked_before(record: &Record, step: usize, session: usize) -> bool {
        let mut events = record.events.iter().filter(|it| it.step < step);
        let is_of = |it: &&Event| is_state(it) && session_of(it) == Some(session);
        let last = events.rfind(is_of);
        last.is_some_and(|it| it.what == What::Blocked)
    }

    /// The sessions that were blocked before the step.
    pub(super) fn blocked(self) -> impl Iterator<Item = usize> {
        let sessions = 0..self.schedule.levels.len();
        sessions.filter(move |it| Self::is_blocked_before(self.there, self.step, *it))
    }

    /// Whether two sessions or more that were blocked have gone on at one step, up to this one, on
    /// one of the servers.
    pub(super) fn has_race(self) -> bool {
        let is_one = |record: &Record, step: usize| {
            let gone = (0..self.schedule.levels.len()).filter(|session| {
                let outcome = Scene::outcome(record, (step, *session));
                Self::is_blocked_before(record, step, *session)
                    && outcome.is_some_and(|it| *it != What::Blocked)
            });
            2 <= gone.count()
        };
        (0..=self.step).any(|step| is_one(self.there, step) || is_one(self.here, step))
    }

    /// Whether a statement is under way at the step, or its transaction was open then.
    pub(super) fn holds(self, (place, it): Sent<'a>) -> bool {
        let session = it.session;
        let of_session = |(_, other): &Sent<'a>| other.session == session;
        let is_last = self.sent().rfind(of_session).map(|it| it.0) == Some(place);
        if is_last && (place == self.step || self.blocked().any(|it| it == session)) {
            return true;
        }
        let (mut is_open, mut is_implicit) = (false, false);
        for (at, other) in self.sent().filter(of_session) {
            let text = other.statement.text.as_str();
            match other.statement.kind {
                Kind::Begin => {
                    is_open |= text.starts_with("BEGIN") || text.starts_with("START");
                    is_implicit |= text.starts_with("SET autocommit");
                }
                Kind::Commit | Kind::Rollback if at < self.step => {
                    if place < at {
                        return false;
                    }
                    is_open = false;
                }
                _ => {}
            }
            if at == place && !(is_open || is_implicit) {
                return false;
            }
        }
        !self.was_victim(session, place..self.step)
    }

    /// Whether a session was a deadlock's victim at one of these steps.
    pub(super) fn was_victim(self, session: usize, mut steps: std::ops::Range<usize>) -> bool {
        steps.any(|step| {
            let outcome = Self::outcome(self.there, (step, session));
            outcome.is_some_and(|it| is_answer(it, DEADLOCK))
        })
    }

    /// The steps behind `place`, up to this one, at which another session has given something up.
    pub(super) fn given_up(self, (place, it): Sent<'a>) -> impl Iterator<Item = usize> {
        let session = it.session;
        (place..=self.step).filter(move |step| {
            let is_end = |it: &Move| {
                matches!(
                    it.statement.kind,
                    Kind::Commit | Kind::Rollback | Kind::RollbackTo
                )
            };
            let sent = self.sent().find(|(at, _)| at == step);
            let has_ended = sent.is_some_and(|(_, it)| it.session != session && is_end(it));
            let others = (0..self.schedule.levels.len()).filter(|it| *it != session);
            let has_victim = others
                .filter_map(|it| Self::outcome(self.there, (*step, it)))
                .any(|it| is_answer(it, DEADLOCK));
            has_ended && place < *step || has_victim
        })
    }

    /// The statement whose result differs: the last one that the session has sent, of those about
    /// rows if there is one.
    pub(super) fn late(self, session: Option<SessionName>) -> Option<Sent<'a>> {
        let session = Schedule::session(session?);
        let own = || self.sent().filter(move |(_, it)| it.session == session);
        let about_rows = own().rfind(|(_, it)| it.statement.kind.is_about_rows());
        about_rows.or_else(|| own().next_back())
    }

    /// The statement that it meets: the last one of another session, whose transaction is open,
    /// that locks rows. In a reduced schedule little else is left.
    pub(super) fn early(self, late: Option<usize>) -> Option<Sent<'a>> {
        let is_end = |it: &Move| matches!(it.statement.kind, Kind::Commit | Kind::Rollback);
        self.sent().rfind(|(place, it)| {
            let later = self.sent().filter(|(at, _)| place < at && *at < self.step);
            let mut own = later.filter(|(_, other)| other.session == it.session);
            let is_over = own.any(|(_, other)| is_end(other));
            let is_read =
                it.statement.kind == Kind::Select && self.schedule.level(it.session) != "ser";
            let is_met = Some(it.session) != late && it.statement.kind.is_about_rows();
            is_met && !is_over && !is_read
        })
    }
}

fn is_state(event: &Event) -> bool {
    matches!(event.what, What::Answer(_) | What::Blocked)
}

fn session_of(event: &Event) -> Option<usize> {
    event.session.map(Schedule::session)
}
