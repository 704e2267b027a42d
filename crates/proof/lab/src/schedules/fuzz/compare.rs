//! The first difference between the records of one schedule on both servers, and its class.
//!
//! What follows the first difference follows from it, so it is not looked at.

use super::differing::Differing;
use super::draw::{Move, Schedule};
use super::scene::{DEADLOCK, Scene, TIMEOUT, is_answer};
use super::sign::Sign;
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
    /// The steps of its statement, and of the one that it meets.
    late: Option<usize>,
    early: Option<usize>,
    /// What the records tell of the reason.
    pub(super) sign: Option<Sign>,
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
            late: None,
            early: None,
            sign: None,
        });
    }
    let scene = Scene {
        schedule,
        there: expected,
        here: got,
        step,
    };
    let event = [expected, got].map(|record| record.events.get(same));
    let [left, right] = event;
    let session = left.or(right)?.session;
    let find = |events: &[&Event]| {
        let mut found = events.iter().filter(|it| it.session == session);
        found
            .rfind(|it| !matches!(it.what, What::Step(_)))
            .map(|it| it.what.clone())
    };
    let mut what = differing(scene, session, find(&there), find(&here));
    let dead = |events: &[&Event]| -> Vec<_> {
        let dead = events.iter().filter(|it| is_answer(&it.what, DEADLOCK));
        dead.map(|it| it.session).collect()
    };
    let is_dead_here = dead(&here).iter().any(|it| !dead(&there).contains(it));
    if is_dead_here && !what.is_wrong() {
        what = Differing::DeadlockHere;
    }
    if what.is_wrong() && what != Differing::Broken && scene.has_race() {
        what = Differing::Raced;
    }
    let late = scene.late(session);
    let early = scene.early(late.map(|(_, it)| it.session));
    Some(Difference {
        what,
        step,
        session,
        late: late.map(|it| it.0),
        early: early.map(|it| it.0),
        sign: Sign::of(scene, (what, session)),
    })
}

fn of_step(record: &Record, step: usize) -> Vec<&Event> {
    record.events.iter().filter(|it| it.step == step).collect()
}

fn differing(
    scene: Scene<'_>,
    session: Option<SessionName>,
    there: Option<What>,
    here: Option<What>,
) -> Differing {
    let (Some(there), Some(here)) = (there, here) else {
        return Differing::Broken;
    };
    let moved = scene.mover().map(|it| it.session);
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
        _ if scene.late(session).is_some_and(|(_, it)| skips(it)) => Differing::Skips,
        _ => Differing::Rows,
    }
}

fn skips(it: &Move) -> bool {
    it.statement.kind == Kind::SkipLocked
}

/// The name of a difference's class: `what/level/statement/its index/other statement`, and its sign
/// if there is one.
pub(super) fn class(schedule: &Schedule, difference: Difference) -> String {
    let Difference {
        what,
        late,
        early,
        sign,
        ..
    } = difference;
    let [late, early] = [late, early].map(|it| it.and_then(|place| schedule.moves.get(place)));
    let level = |it: &Move| schedule.level(it.session);
    let level = match (late, early) {
        (Some(late), Some(early)) if level(late) != level(early) => {
            format!("{}-after-{}", level(late), level(early))
        }
        (Some(it), _) | (None, Some(it)) => level(it).to_owned(),
        (None, None) => "none".to_owned(),
    };
    let name = |it: Option<&Move>| it.map_or("none", |it| it.statement.kind.family());
    let index = late.map_or("none", |it| it.statement.index());
    let (what, late, early) = (what.name(), name(late), name(early));
    let sign = sign.map_or(String::new(), |sign| format!("/{}", sign.name()));
    format!("{what}/{level}/{late}/{index}/{early}{sign}")
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

    /// A result differs behind a step in which two sessions went on at once on one server. If that
    /// step has let one go on alone, the result is wrong.
    #[test]
    fn a_race_proves_no_result_wrong() {
        let (ok, blocked) = (answer("ok"), What::Blocked);
        let (a, b) = (Some(A), Some(B));
        let c = Some(SessionName('C'));
        for (gone_here, wanted) in [
            (vec![(a, &ok), (b, &ok)], Differing::Raced),
            (vec![(a, &ok), (b, &blocked)], Differing::Rows),
        ] {
            let mut schedule = schedule(Kind::Select);
            schedule.levels = vec![1; 3];
            let select = schedule.moves[1].clone();
            let commit = Move {
                session: 2,
                statement: Statement::plain(Kind::Commit, "COMMIT"),
            };
            schedule.moves = vec![select.clone(), select.clone(), commit, select];
            schedule.moves[0].session = 0;
            let mut moves = schedule.moves.clone();
            moves[3].session = 2;
            schedule.moves = moves;
            let play = |rows: &str| {
                let mut record = Record::default();
                record.add(0, a, blocked.clone());
                record.add(1, b, blocked.clone());
                record.add(2, c, ok.clone());
                for (session, what) in &gone_here {
                    record.add(2, *session, (*what).clone());
                }
                record.add(3, c, answer(rows));
                record
            };
            let (there, here) = (play("| id |"), play("| id |\n 1"));
            let difference = first_difference(&schedule, &there, &here);
            assert_eq!(difference.map(|it| it.what), Some(wanted));
            assert!(
                !Differing::Raced.is_wrong() && wanted.is_wrong() != (wanted == Differing::Raced)
            );
        }
    }
}
