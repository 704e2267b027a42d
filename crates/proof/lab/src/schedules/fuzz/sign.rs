//! [`Sign`]: what the records of two plays tell of the reason of a difference.

use super::differing::Differing;
use super::draw::Move;
use super::scene::{DEADLOCK, DUPLICATE, Scene, Sent, TIMEOUT, is_answer};
use super::statement::Kind;
use super::table::Secondary;
use crate::schedules::record::What;
use crate::schedules::script::SessionName;

/// A reason that the records prove to be possible. The narrower ones are looked for first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// An UPDATE .. ORDER BY waits, or has failed, in the middle of its rows.
    Ordered,
    /// A statement of another session has waited for a row, and its level locks no gaps; or one of
    /// the session that is in a deadlock, or waits, here alone.
    Waited,
    /// There SKIP LOCKED has left out a row whose entry of another index it keeps.
    Kept,
    /// There an insert waits for the gap before an entry that another names by its unique key.
    UniqueGap,
    /// An UPDATE or DELETE waits, or has failed, in the middle of its rows.
    Halted,
    /// A statement that puts a value of a unique key was blocked before the step.
    Awaited,
    /// Three sessions or more: here one of them is a victim of a deadlock, and not there.
    Among,
    /// There the holder of an entry is in a deadlock with one that waits for that entry alone.
    Holder,
    /// SKIP LOCKED reads a key behind a change of its own transaction, and another is blocked.
    Own,
    /// There an insert waits for a gap, and a row was taken back before.
    TakenBack,
    /// A scan that locks no gaps has waited, and another has put rows meanwhile.
    Grown,
    /// Two sessions or more were blocked before the step.
    Order,
}

/// All of them, in the order in which they are looked for.
const SIGNS: [Sign; 12] = [
    Sign::Ordered,
    Sign::Waited,
    Sign::Kept,
    Sign::UniqueGap,
    Sign::Halted,
    Sign::Awaited,
    Sign::Among,
    Sign::Holder,
    Sign::Own,
    Sign::TakenBack,
    Sign::Grown,
    Sign::Order,
];

/// What differs: in what, and for whom.
pub(super) type Found = (Differing, Option<SessionName>);

impl Sign {
    pub(super) fn name(self) -> &'static str {
        match self {
            Sign::Ordered => "ordered",
            Sign::Halted => "halted",
            Sign::Awaited => "awaited",
            Sign::Among => "among",
            Sign::Kept => "kept",
            Sign::Waited => "waited",
            Sign::UniqueGap => "unique-gap",
            Sign::Holder => "holder",
            Sign::Own => "own",
            Sign::TakenBack => "taken-back",
            Sign::Grown => "grown",
            Sign::Order => "order",
        }
    }

    /// The first sign that a difference has.
    pub(super) fn of(scene: Scene<'_>, found: Found) -> Option<Sign> {
        SIGNS.into_iter().find(|it| it.is_there(scene, found))
    }

    fn is_there(self, scene: Scene<'_>, (what, session): Found) -> bool {
        use Differing::{
            AfterWait, DeadlockHere, DeadlockThere, Skips, WaitsHere, WaitsThere, WakesHere,
            WakesThere,
        };
        let locked_there = || scene.lock(session).unwrap_or_default();
        match (self, what) {
            (Sign::Ordered, WaitsThere | WakesHere | DeadlockThere) => is_ordered(scene),
            (Sign::Halted, DeadlockHere | DeadlockThere | WaitsHere | Skips) => {
                scene.sent().any(|it| is_halted(scene, it))
            }
            // What it has locked or passed ahead here, others had not got.
            (Sign::Halted, WaitsThere | WakesHere) => {
                let is_own = |it: &Sent<'_>| Some(it.1.session) == session_of(session);
                scene.sent().filter(is_own).any(|it| is_halted(scene, it))
            }
            (Sign::Awaited, DeadlockHere | WaitsHere) => is_awaited(scene),
            (Sign::Among, DeadlockHere) => 3 <= session_count(scene),
            (Sign::Kept, WaitsThere | WakesHere) => is_kept(scene, locked_there(), session),
            (Sign::Waited, WaitsThere | WakesHere | DeadlockThere | Skips) => {
                let is_other = |it: &Sent<'_>| {
                    what == DeadlockThere || Some(it.1.session) != session_of(session)
                };
                // The deadlock itself gives nothing up that was waited for before.
                let until = scene.step + usize::from(what != DeadlockThere);
                let mut others = scene.sent().filter(is_other);
                others.any(|it| waited(scene, it, until))
            }
            // There the mover has kept what it asks for here, where another has got it.
            (Sign::Waited, DeadlockHere | WaitsHere) => {
                let mover = scene.mover().map(|it| it.session);
                let is_own = |it: &Sent<'_>| Some(it.1.session) == mover && it.0 < scene.step;
                let mut own = scene.sent().filter(is_own);
                own.any(|it| waited(scene, it, scene.step))
            }
            (Sign::UniqueGap, WaitsThere | WakesHere) => {
                let is_gap =
                    locked_there().starts_with("index k, ") && waits_for_gap(locked_there());
                is_gap && meets_unique(scene, session_of(session))
            }
            (Sign::UniqueGap, DeadlockThere) => {
                let mover = scene.mover().filter(|it| puts_entries(it));
                mover.is_some_and(|it| meets_unique(scene, Some(it.session)))
            }
            (Sign::Holder, DeadlockThere) => is_holder(scene),
            (Sign::Own, Skips) => is_own(scene),
            (Sign::TakenBack, WaitsThere | WakesHere) => {
                waits_for_gap(locked_there()) && has_taken_back(scene)
            }
            (Sign::Grown, AfterWait) => has_grown(scene, session),
            (Sign::Order, WakesThere | WakesHere | AfterWait | DeadlockThere) => {
                2 <= scene.blocked().count()
            }
            // Both have a victim whose locks two sessions get at once.
            (Sign::Order, WaitsHere | WaitsThere) => {
                scene.was_any_victim() && 2 <= scene.blocked().count()
            }
            _ => false,
        }
    }
}

impl<'a> Scene<'a> {
    /// What MariaDB says that a session waits for after the step.
    fn lock(self, session: Option<SessionName>) -> Option<&'a str> {
        let lock = self.there.locks.get(&(self.step, session?));
        lock.map(String::as_str)
    }

    fn was_any_victim(self) -> bool {
        let mut sessions = 0..self.schedule.levels.len();
        sessions.any(|it| self.was_victim(it, self.step..self.step + 1))
    }
}

fn session_of(session: Option<SessionName>) -> Option<usize> {
    session.map(super::draw::Schedule::session)
}

fn session_count(scene: Scene<'_>) -> usize {
    let mut sessions: Vec<usize> = scene.sent().map(|(_, it)| it.session).collect();
    sessions.sort_unstable();
    sessions.dedup();
    sessions.len()
}

/// Whether a statement that changes rows one by one waits, or has failed, and has its locks.
fn is_halted(scene: Scene<'_>, sent: Sent<'_>) -> bool {
    let (place, it) = sent;
    let family = it.statement.kind.family();
    let outcome = Scene::outcome(scene.there, (place, it.session));
    let is_stopped = outcome.is_some_and(|it| {
        *it == What::Blocked || is_answer(it, DUPLICATE) || is_answer(it, TIMEOUT)
    });
    let changes = matches!(family, "update" | "update-key" | "delete");
    changes && is_stopped && !names_row(it) && scene.holds(sent)
}

/// Whether a statement finds one row at the most.
fn names_row(it: &Move) -> bool {
    let access = it.statement.access.as_str();
    matches!(access, "primary-point" | "composite-point" | "unique-point")
}

/// Whether an UPDATE .. ORDER BY waits here, or has failed, and has its locks there.
fn is_ordered(scene: Scene<'_>) -> bool {
    scene.sent().any(|sent| {
        let (place, it) = sent;
        let text = &it.statement.text;
        let outcome = Scene::outcome(scene.here, (place, it.session));
        let is_stopped = outcome.is_some_and(|it| *it == What::Blocked || is_answer(it, DUPLICATE));
        text.starts_with("UPDATE ")
            && text.contains(" ORDER BY ")
            && is_stopped
            && scene.holds(sent)
    })
}

/// Whether a statement that puts a value of the unique key was blocked before the step.
fn is_awaited(scene: Scene<'_>) -> bool {
    let is_blocked = |sent: &Sent<'_>| {
        let (place, it) = *sent;
        let outcome = Scene::outcome(scene.there, (place, it.session));
        place < scene.step && puts_entries(it) && outcome == Some(&What::Blocked)
    };
    let is_under_way = |it: &Sent<'_>| scene.blocked().any(|session| session == it.1.session);
    let is_unique = scene.schedule.table.secondary == Secondary::Unique;
    let mover = scene.mover().map(|it| it.session);
    is_unique
        && scene
            .sent()
            .filter(|it| Some(it.1.session) != mover)
            .any(|it| is_blocked(&it) && is_under_way(&it))
}

/// Whether the lock is one of an index of columns, where another has left out a row.
fn is_kept(scene: Scene<'_>, lock: &str, session: Option<SessionName>) -> bool {
    let is_entry = lock.starts_with("index k, ") || lock.starts_with("index id, ");
    let skips = |it: &Sent<'_>| {
        it.1.statement.kind == Kind::SkipLocked && Some(it.1.session) != session_of(session)
    };
    is_entry && !waits_for_gap(lock) && scene.sent().any(|it| skips(&it) && scene.holds(it))
}

/// Whether a statement without gap locks has waited for a row before a step, and has its locks.
fn waited(scene: Scene<'_>, sent: Sent<'_>, until: usize) -> bool {
    let (place, it) = sent;
    let locks_none = matches!(scene.schedule.level(it.session), "rc" | "ru");
    let is_scan = it.statement.kind.has_plan() && it.statement.kind != Kind::Select;
    let was_blocked = Scene::outcome(scene.there, (place, it.session)) == Some(&What::Blocked);
    let mut given_up = scene.given_up(sent).filter(|step| *step < until);
    let has_waited = given_up.any(|step| was_blocked || step == place);
    locks_none && is_scan && has_waited && scene.holds(sent)
}

/// Whether another than this session names a value of the unique key, and has its locks or waits.
fn meets_unique(scene: Scene<'_>, session: Option<usize>) -> bool {
    let table = &scene.schedule.table;
    let is_unique = table.secondary == Secondary::Unique && !table.is_kept_by_k();
    let names = |sent: &Sent<'_>| {
        let (place, it) = *sent;
        let outcome = Scene::outcome(scene.there, (place, it.session));
        // The check for a duplicate names its value, too.
        let checks = !it.statement.kind.has_plan() && outcome == Some(&What::Blocked);
        it.statement.kind.is_about_rows() && (names_value(&it.statement.text) || checks)
    };
    is_unique
        && scene
            .sent()
            .filter(|it| Some(it.1.session) != session)
            .any(|it| names(&it) && scene.holds(it))
}

/// Whether one session alone is blocked, by a statement that looks for one row by the clustered
/// index and is all that it has locked. So it waits for the mover, which has that row.
fn is_holder(scene: Scene<'_>) -> bool {
    let mut blocked = scene.blocked();
    let (Some(session), None) = (blocked.next(), blocked.next()) else {
        return false;
    };
    let is_held = |it: &Sent<'_>| it.1.session == session && scene.holds(*it);
    let held: Vec<Sent<'_>> = scene
        .sent()
        .filter(|it| it.1.statement.kind.is_about_rows() && is_held(it))
        .collect();
    let is_alone = matches!(held.as_slice(), [(_, it)] if names_row(it));
    let is_clustered = held.iter().all(|(_, it)| it.statement.index() == "primary");
    is_alone && is_clustered && scene.mover().is_some_and(|it| it.session != session)
}

/// Whether the mover reads entries behind a change of its own transaction, and another is blocked.
fn is_own(scene: Scene<'_>) -> bool {
    let Some(mover) = scene.mover() else {
        return false;
    };
    let reads_entries = matches!(mover.statement.index(), "plain" | "unique");
    let changes = |it: &Sent<'_>| {
        let family = it.1.statement.kind.family();
        it.1.session == mover.session && family.starts_with("update") && scene.holds(*it)
    };
    reads_entries && scene.blocked().next().is_some() && scene.sent().any(|it| changes(&it))
}

/// Whether a condition names single values of k.
fn names_value(text: &str) -> bool {
    let is_one = text.contains("k BETWEEN ") && is_one_value(text);
    is_one || text.contains("WHERE k = ") || text.contains("k IN (")
}

/// Whether a range has one value.
fn is_one_value(text: &str) -> bool {
    text.split_once(" BETWEEN ").is_some_and(|(_, range)| {
        let mut words = range.split(' ');
        let (low, high) = (words.next(), words.nth(1));
        low.is_some() && low == high
    })
}

/// Whether a row was taken back, by the end of a transaction, a return to a savepoint or an error.
fn has_taken_back(scene: Scene<'_>) -> bool {
    scene.sent().any(|(place, it)| {
        let outcome = Scene::outcome(scene.there, (place, it.session));
        let has_failed =
            outcome.is_some_and(|it| is_answer(it, DUPLICATE) || is_answer(it, DEADLOCK));
        let goes_back = matches!(it.statement.kind, Kind::Rollback | Kind::RollbackTo);
        place < scene.step && (goes_back || has_failed)
    })
}

/// Whether a statement has waited that locks no gaps, and another has put rows meanwhile.
fn has_grown(scene: Scene<'_>, session: Option<SessionName>) -> bool {
    let Some((place, late)) = scene.late(session) else {
        return false;
    };
    let locks_none = matches!(scene.schedule.level(late.session), "rc" | "ru");
    let has_put = |step: usize, session: usize| {
        let outcome = Scene::outcome(scene.there, (step, session));
        outcome.is_some_and(|it| is_answer(it, "ok"))
    };
    let puts = |(at, it): Sent<'_>| {
        it.session != late.session
            && puts_entries(it)
            && (at.max(place + 1)..=scene.step).any(|step| has_put(step, it.session))
    };
    locks_none && place < scene.step && scene.sent().any(puts)
}

fn puts_entries(it: &Move) -> bool {
    let kind = it.statement.kind;
    let is_insert = kind.is_about_rows() && !kind.has_plan();
    is_insert || matches!(kind, Kind::InsertSelect | Kind::UpdateKey)
}

fn waits_for_gap(lock: &str) -> bool {
    lock.contains("gap before rec insert intention") || lock.contains("X insert intention")
}

#[cfg(test)]
mod tests;
