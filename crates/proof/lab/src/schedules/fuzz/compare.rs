//! The first difference between the records of one schedule on both servers, and its class.
//!
//! What follows the first difference follows from it, so it is not looked at.

use super::draw::{Move, Schedule};
use super::statement::Kind;
use crate::schedules::record::{Event, Record, What};
use crate::schedules::script::SessionName;

/// How two plays of one schedule first differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) what: Differing,
    /// The step after which it was seen.
    pub(super) step: usize,
    /// The session that differs; `None`: what is left in the table.
    pub(super) session: Option<SessionName>,
}

/// Kinds of differences. "There" is MariaDB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Differing {
    /// One of the two servers hangs or drops the connection.
    Broken,
    Rows,
    Affected,
    Error,
    Contents,
    /// A statement that has waited has other results. What it waited for may have differed before.
    AfterWait,
    /// A statement waits there, not here. Where it must not wait, it fails there.
    WaitsThere,
    WaitsHere,
    /// A waiter continues there and is blocked here.
    WakesThere,
    WakesHere,
    /// A deadlock (1213) there, none here.
    DeadlockThere,
    DeadlockHere,
    /// SKIP LOCKED leaves out other rows.
    Skips,
    /// The same deadlock has another victim.
    Victim,
}

impl Differing {
    pub(super) fn name(self) -> &'static str {
        match self {
            Differing::Broken => "broken",
            Differing::Rows => "rows",
            Differing::Affected => "affected",
            Differing::Error => "error",
            Differing::Contents => "contents",
            Differing::AfterWait => "after-wait",
            Differing::WaitsThere => "waits-there",
            Differing::WaitsHere => "waits-here",
            Differing::WakesThere => "wakes-there",
            Differing::WakesHere => "wakes-here",
            Differing::DeadlockThere => "deadlock-there",
            Differing::DeadlockHere => "deadlock-here",
            Differing::Skips => "skips",
            Differing::Victim => "victim",
        }
    }

    /// Whether both servers waited for the same and one of the results is wrong.
    pub(super) fn is_wrong(self) -> bool {
        self <= Differing::Contents
    }
}

/// The first difference of two plays; `None` if they agree.
pub(super) fn first_difference(
    schedule: &Schedule,
    expected: &Record,
    got: &Record,
) -> Option<Difference> {
    let pairs = expected.events.iter().zip(&got.events);
    let same = pairs.take_while(|(left, right)| left == right).count();
    let first = |record: &Record| record.events.get(same).map(|it| it.step);
    let step = [first(expected), first(got)].into_iter().flatten().min()?;
    let there = of_step(expected, step);
    let here = of_step(got, step);
    let victims = [&there, &here].map(|events| {
        let victim = events.iter().find(|it| is_answer(&it.what, DEADLOCK));
        victim.and_then(|it| it.session)
    });
    if let [Some(there), Some(here)] = victims
        && there != here
    {
        return Some(Difference {
            what: Differing::Victim,
            step,
            session: Some(there),
        });
    }
    let event = [expected, got].map(|record| record.events.get(same));
    let [left, right] = event;
    let session = left.or(right)?.session;
    let find = |events: &[&Event]| {
        let mut found = events.iter().filter(|it| it.session == session);
        found
            .rfind(|it| !matches!(it.what, What::Step(_)))
            .map(|it| it.what.clone())
    };
    let what = differing(schedule, (step, session), find(&there), find(&here));
    Some(Difference {
        what,
        step,
        session,
    })
}

fn of_step(record: &Record, step: usize) -> Vec<&Event> {
    record.events.iter().filter(|it| it.step == step).collect()
}

/// The errors of a deadlock and of a wait that may not be, as answers show them.
const DEADLOCK: &str = "error 1213";
const TIMEOUT: &str = "error 1205";

fn is_answer(what: &What, begin: &str) -> bool {
    matches!(what, What::Answer(answer) if answer.starts_with(begin))
}

fn differing(
    schedule: &Schedule,
    (step, session): (usize, Option<SessionName>),
    there: Option<What>,
    here: Option<What>,
) -> Differing {
    let (Some(there), Some(here)) = (there, here) else {
        return Differing::Broken;
    };
    let moved = schedule.moves.get(step).map(|it| it.session);
    let is_own = session.is_some() && moved == session.map(Schedule::session);
    match (&there, &here) {
        (What::Broken(_), _) | (_, What::Broken(_)) => Differing::Broken,
        (What::Left(_), _) | (_, What::Left(_)) => Differing::Contents,
        _ if is_answer(&there, DEADLOCK) => Differing::DeadlockThere,
        _ if is_answer(&here, DEADLOCK) => Differing::DeadlockHere,
        (What::Blocked, _) if is_own => Differing::WaitsThere,
        (_, What::Blocked) if is_own => Differing::WaitsHere,
        (What::Blocked, _) => Differing::WakesHere,
        (_, What::Blocked) => Differing::WakesThere,
        _ if is_answer(&there, TIMEOUT) => Differing::WaitsThere,
        _ if is_answer(&here, TIMEOUT) => Differing::WaitsHere,
        _ if !is_own => Differing::AfterWait,
        _ if is_answer(&there, "error") || is_answer(&here, "error") => Differing::Error,
        _ if is_answer(&there, "ok") => Differing::Affected,
        _ if late(schedule, step, session).is_some_and(skips) => Differing::Skips,
        _ => Differing::Rows,
    }
}

fn skips(it: &Move) -> bool {
    it.statement.kind == Kind::SkipLocked
}

/// The statement whose result differs: the session's last one.
fn late(schedule: &Schedule, step: usize, session: Option<SessionName>) -> Option<&Move> {
    let session = Schedule::session(session?);
    let until = schedule.moves.iter().take(step + 1);
    until.rev().find(|it| it.session == session)
}

/// The statement that it meets: the last one of another session, whose transaction is open, that
/// locks rows. In a reduced schedule little else is left.
fn early(schedule: &Schedule, step: usize, late: Option<usize>) -> Option<&Move> {
    let is_end = |it: &Move| matches!(it.statement.kind, Kind::Commit | Kind::Rollback);
    let until = schedule.moves.iter().take(step + 1).enumerate();
    let mut before = until.rev();
    before.find_map(|(place, it)| {
        let mut later = schedule.moves.iter().take(step).skip(place + 1);
        let is_over = later.any(|other| other.session == it.session && is_end(other));
        let is_read = it.statement.kind == Kind::Select && schedule.level(it.session) != "ser";
        let is_met = Some(it.session) != late && it.statement.kind.is_about_rows();
        (is_met && !is_over && !is_read).then_some(it)
    })
}

/// The name of a difference's class: `what/level/statement/its index/other statement`.
pub(super) fn class(schedule: &Schedule, difference: Difference) -> String {
    let Difference {
        what,
        step,
        session,
    } = difference;
    let late = late(schedule, step, session);
    let early = early(schedule, step, late.map(|it| it.session));
    let level = |it: &Move| schedule.level(it.session);
    let level = match (late, early) {
        (Some(late), Some(early)) if level(late) != level(early) => {
            format!("{}-after-{}", level(late), level(early))
        }
        (Some(it), _) | (None, Some(it)) => level(it).to_owned(),
        (None, None) => "none".to_owned(),
    };
    let name = |it: Option<&Move>| it.map_or("none", |it| it.statement.kind.family());
    let index = match schedule.table.is_kept_by_k() {
        true => "kept-by-k",
        false => late.map_or("none", |it| it.statement.index()),
    };
    let (what, late, early) = (what.name(), name(late), name(early));
    format!("{what}/{level}/{late}/{index}/{early}")
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::random::Random;
    use crate::schedules::fuzz::statement::Statement;
    use crate::schedules::fuzz::table::Table;

    const A: SessionName = SessionName('A');
    const B: SessionName = SessionName('B');

    /// A locks a row, B inserts one.
    fn schedule(kind: Kind) -> Schedule {
        let table = Table::draw(&mut Random::new(1));
        let statement = |kind| Statement::plain(kind, "S");
        let moves = [(0, Kind::SelectForUpdate), (1, kind)];
        Schedule {
            seed: 1,
            table,
            levels: vec![1, 1],
            moves: moves
                .map(|(session, kind)| Move {
                    session,
                    statement: statement(kind),
                })
                .into(),
        }
    }

    /// A is answered; then this happens to B, and this to A.
    fn record(b: &What, a: Option<&What>) -> Record {
        let mut record = Record::default();
        record.add(0, Some(A), What::Answer("ok".to_owned()));
        record.add(1, Some(B), b.clone());
        if let Some(a) = a {
            record.add(1, Some(A), a.clone());
        }
        record
    }

    fn answer(text: &str) -> What {
        What::Answer(text.to_owned())
    }

    #[test]
    fn differences_are_named_by_what_differs_first() {
        use Differing::{
            Affected, DeadlockHere, DeadlockThere, Error, Rows, Skips, WaitsHere, WaitsThere,
        };
        let (ok, rows) = (answer("ok, 1 rows"), answer("| id |"));
        for (kind, there, here, wanted) in [
            (Kind::Insert, What::Blocked, ok.clone(), WaitsThere),
            (Kind::Insert, ok.clone(), What::Blocked, WaitsHere),
            (Kind::NoWait, answer("error 1205"), rows.clone(), WaitsThere),
            (
                Kind::Insert,
                answer("error 1213"),
                ok.clone(),
                DeadlockThere,
            ),
            (Kind::Insert, ok.clone(), answer("error 1213"), DeadlockHere),
            (Kind::Insert, answer("error 1062"), ok.clone(), Error),
            (Kind::Update, answer("ok, 2 rows"), ok.clone(), Affected),
            (Kind::Select, rows.clone(), answer("| id |\n 1"), Rows),
            (Kind::SkipLocked, rows.clone(), answer("| id |\n 1"), Skips),
        ] {
            let schedule = schedule(kind);
            let difference =
                first_difference(&schedule, &record(&there, None), &record(&here, None));
            let difference = difference.expect("they differ");
            assert_eq!(difference.what, wanted, "{there:?} {here:?}");
            assert_eq!((difference.step, difference.session), (1, Some(B)));
            let name = class(&schedule, difference);
            assert!(name.ends_with("/none/lock"), "{name}");
            let same = record(&there, None);
            assert_eq!(first_difference(&schedule, &same, &same), None);
        }
    }

    #[test]
    fn one_deadlock_may_have_two_victims() {
        let (dead, ok) = (answer("error 1213"), answer("ok"));
        let there = record(&dead, Some(&ok));
        let here = record(&ok, Some(&dead));
        let difference = first_difference(&schedule(Kind::Update), &there, &here);
        assert_eq!(difference.map(|it| it.what), Some(Differing::Victim));
    }

    #[test]
    fn wrong_results_come_first() {
        assert!(Differing::Contents.is_wrong() && Differing::Broken.is_wrong());
        assert!(!Differing::AfterWait.is_wrong() && !Differing::WaitsThere.is_wrong());
    }
}
