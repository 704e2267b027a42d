//! The first difference between the records of one schedule on both servers, and its class.
//!
//! What follows the first difference follows from it, so it is not looked at.

use super::draw::{Move, Schedule};
use super::statement::Kind;
use super::table::Secondary;
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
    /// What the records tell of the reason.
    pub(super) sign: Option<Sign>,
}

/// What the records of both plays tell of the reason of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// An UPDATE or DELETE waits, or has failed, in the middle of its rows.
    Halted,
    /// Three sessions or more: here one of them is a victim of a deadlock, and not there.
    Among,
    /// The statement that is met had to wait for a row, and its level locks no gaps.
    Waited,
    /// There an insert waits for the gap before an entry that another has found by its unique key.
    UniqueGap,
    /// Two sessions or more were blocked before the step.
    Order,
}

impl Sign {
    fn name(self) -> &'static str {
        match self {
            Sign::Halted => "halted",
            Sign::Among => "among",
            Sign::Waited => "waited",
            Sign::UniqueGap => "unique-gap",
            Sign::Order => "order",
        }
    }
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
            sign: None,
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
    let mut what = differing(schedule, (step, session), find(&there), find(&here));
    let dead = |events: &[&Event]| -> Vec<_> {
        let dead = events.iter().filter(|it| is_answer(&it.what, DEADLOCK));
        dead.map(|it| it.session).collect()
    };
    let is_dead_here = dead(&here).iter().any(|it| !dead(&there).contains(it));
    if is_dead_here && !what.is_wrong() {
        what = Differing::DeadlockHere;
    }
    Some(Difference {
        what,
        step,
        session,
        sign: sign(schedule, expected, (what, step, session)),
    })
}

/// See [`Sign`].
fn sign(
    schedule: &Schedule,
    expected: &Record,
    (what, step, session): (Differing, usize, Option<SessionName>),
) -> Option<Sign> {
    let until = || schedule.moves.iter().enumerate().take(step + 1);
    let at_once = |place: usize, session: usize| {
        let mut events = expected.events.iter().filter(|it| it.step == place);
        let last = events.rfind(|it| it.session.map(Schedule::session) == Some(session));
        last.map(|it| &it.what)
    };
    let mut sessions: Vec<usize> = until().map(|(_, it)| it.session).collect();
    sessions.sort_unstable();
    sessions.dedup();
    let is_halted = || {
        until().any(|(place, it)| {
            let reads_ahead = matches!(
                it.statement.kind.family(),
                "update" | "update-key" | "delete"
            );
            let event = at_once(place, it.session).filter(|_| reads_ahead);
            event.is_some_and(|it| *it == What::Blocked || is_answer(it, "error 1062"))
        })
    };
    let met = early(
        schedule,
        step,
        late(schedule, step, session).map(|it| it.session),
    );
    let waited = || {
        let met = met.filter(|it| matches!(schedule.level(it.session), "rc" | "ru"));
        met.is_some_and(|met| {
            let place = until().position(|(_, it)| std::ptr::eq(it, met));
            let event = place.and_then(|place| at_once(place, met.session));
            event == Some(&What::Blocked)
        })
    };
    let waits_for_unique_gap = || {
        let lock = session.and_then(|it| expected.locks.get(&(step, it)));
        let is_gap = lock.is_some_and(|it| {
            it.starts_with("index k, ") && it.contains("gap before rec insert intention")
        });
        let is_looked_for = met.is_some_and(|it| it.statement.text.contains("WHERE k = "));
        let table = &schedule.table;
        let is_unique = table.secondary == Secondary::Unique && !table.is_kept_by_k();
        is_gap && is_looked_for && is_unique
    };
    match what {
        Differing::DeadlockHere if 3 <= sessions.len() => Some(Sign::Among),
        Differing::DeadlockHere | Differing::WaitsHere | Differing::Skips if is_halted() => {
            Some(Sign::Halted)
        }
        Differing::WaitsThere | Differing::WakesHere if waited() => Some(Sign::Waited),
        Differing::WaitsThere | Differing::WakesHere if waits_for_unique_gap() => {
            Some(Sign::UniqueGap)
        }
        Differing::WakesThere
        | Differing::WakesHere
        | Differing::AfterWait
        | Differing::DeadlockThere
            if 2 <= blocked_before(expected, (step, &sessions)) =>
        {
            Some(Sign::Order)
        }
        _ => None,
    }
}

/// How many of these sessions were blocked before a step.
fn blocked_before(record: &Record, (step, sessions): (usize, &[usize])) -> usize {
    let is_blocked = |session: usize| {
        let mut events = record.events.iter().filter(|it| it.step < step);
        let last = events.rfind(|it| {
            let is_state = !matches!(it.what, What::Step(_) | What::Busy);
            is_state && it.session.map(Schedule::session) == Some(session)
        });
        last.is_some_and(|it| it.what == What::Blocked)
    };
    sessions.iter().filter(|it| is_blocked(**it)).count()
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

/// The statement whose result differs: the session's last one. While one waits, a COMMIT behind it
/// is left out.
fn late(schedule: &Schedule, step: usize, session: Option<SessionName>) -> Option<&Move> {
    let session = Schedule::session(session?);
    let until = || schedule.moves.iter().take(step + 1).rev();
    let mut own = until().filter(|it| it.session == session);
    let about_rows = own.find(|it| it.statement.kind.is_about_rows());
    about_rows.or_else(|| until().find(|it| it.session == session))
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

/// The name of a difference's class: `what/level/statement/its index/other statement`, and its sign
/// if there is one.
pub(super) fn class(schedule: &Schedule, difference: Difference) -> String {
    let Difference {
        what,
        step,
        session,
        sign,
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
    use crate::schedules::fuzz::table::{Primary, Table};

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
    fn the_records_tell_of_reasons() {
        let (ok, dead) = (answer("ok"), answer("error 1213"));
        let name = |schedule: &Schedule, there: &Record, here: &Record| {
            let difference = first_difference(schedule, there, here);
            class(schedule, difference.expect("they differ"))
        };
        // A has failed at a row in the middle.
        let mut halted = schedule(Kind::Insert);
        halted.moves[0].statement.kind = Kind::UpdateKey;
        let record_of = |a: &What, b: &What| {
            let mut record = Record::default();
            record.add(0, Some(A), a.clone());
            record.add(1, Some(B), b.clone());
            record
        };
        let failed = answer("error 1062");
        let (there, here) = (record_of(&failed, &ok), record_of(&failed, &What::Blocked));
        let class = name(&halted, &there, &here);
        assert!(class.ends_with("/update-key/halted"), "{class}");
        // A was blocked, and goes on when B comes.
        let mut waited = halted.clone();
        waited.levels = vec![0, 0];
        let (there, here) = (
            record_of(&What::Blocked, &What::Blocked),
            record_of(&What::Blocked, &ok),
        );
        let class = name(&waited, &there, &here);
        assert!(class.ends_with("/update-key/waited"), "{class}");
        // Two wait, and one of them goes on.
        let mut order = schedule(Kind::Commit);
        order.levels.push(1);
        let record_of = |a: &What| {
            let mut record = Record::default();
            record.add(0, Some(A), What::Blocked);
            record.add(0, Some(SessionName('C')), What::Blocked);
            record.add(1, Some(A), a.clone());
            record
        };
        order.moves[0].session = 2;
        order.moves.insert(0, order.moves[0].clone());
        order.moves[0].session = 0;
        let mut moved = [record_of(&What::Blocked), record_of(&ok)];
        moved
            .iter_mut()
            .flat_map(|it| &mut it.events)
            .for_each(|it| it.step += 1);
        let class = name(&order, &moved[0], &moved[1]);
        assert!(class.ends_with("/order"), "{class}");
        // A third session has something to do with it.
        let mut among = schedule(Kind::Insert);
        among.levels.push(1);
        let mut third = among.moves[0].clone();
        third.session = 2;
        among.moves.insert(0, third);
        let record_of = |b: &What| {
            let mut record = Record::default();
            record.add(2, Some(B), b.clone());
            record
        };
        let class = name(&among, &record_of(&What::Blocked), &record_of(&dead));
        assert!(class.starts_with("deadlock-here/"), "{class}");
        assert!(class.ends_with("/among"), "{class}");
        // A has looked for a value of a unique key, and B waits for the gap before it there.
        let mut gap = schedule(Kind::Insert);
        gap.table.primary = Primary::Id;
        gap.table.secondary = Secondary::Unique;
        gap.moves[0].statement.text = "SELECT * FROM t WHERE k = 5 FOR UPDATE".to_owned();
        let (mut there, here) = (record(&What::Blocked, None), record(&ok, None));
        let lock = "index k, lock X locks gap before rec insert intention waiting";
        there.locks.insert((1, B), lock.to_owned());
        let class = name(&gap, &there, &here);
        assert!(class.ends_with("/unique-gap"), "{class}");
        gap.table.secondary = Secondary::Plain;
        let class = name(&gap, &there, &here);
        assert!(class.ends_with("/lock"), "{class}");
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
