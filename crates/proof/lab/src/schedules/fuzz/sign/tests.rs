//! Plays that are alike but for their last step, and the signs that are found.

use super::*;

use crate::random::Random;
use crate::schedules::fuzz::compare::{class, first_difference};
use crate::schedules::fuzz::draw::Schedule;
use crate::schedules::fuzz::statement::Statement;
use crate::schedules::fuzz::table::{Primary, Table};
use crate::schedules::record::Record;

const RC: usize = 0;
const RR: usize = 1;

/// A step of a schedule: the session, the kind and the text of its statement, which may end in a
/// colon and its access, and what becomes of sessions, there and here.
type Play<'a> = (
    char,
    Kind,
    &'a str,
    &'a [(char, &'a str)],
    &'a [(char, &'a str)],
);

const BEGIN: Kind = Kind::Begin;
const OK: &str = "ok, 1 rows";
const BLOCKED: &str = "";
const DEAD: &str = "error 1213";
const TAKEN: &str = "error 1062";

/// The last step: B inserts a row, and waits for another on one of the servers.
const INSERT_WAITS_THERE: Play<'static> = ('B', Kind::Insert, "I", &[('B', BLOCKED)], &[('B', OK)]);
const INSERT_WAITS_HERE: Play<'static> = ('B', Kind::Insert, "I", &[('B', OK)], &[('B', BLOCKED)]);

/// Two plays that are alike but for the last step.
struct Plays {
    schedule: Schedule,
    there: Record,
    here: Record,
}

impl Plays {
    /// On a table with a unique key on k. Sessions that begin are answered.
    fn of(level: usize, plays: &[Play<'_>]) -> Self {
        let mut table = Table::draw(&mut Random::new(1));
        (table.primary, table.secondary) = (Primary::Id, Secondary::Unique);
        let (mut there, mut here) = (Record::default(), Record::default());
        let mut moves = Vec::new();
        for (step, (letter, kind, text, of_there, of_here)) in plays.iter().enumerate() {
            let mut statement = Statement::plain(*kind, text);
            statement.access = text.split(": ").nth(1).unwrap_or("none").to_owned();
            moves.push(Move {
                session: Schedule::session(SessionName(*letter)),
                statement,
            });
            for (record, outcomes) in [(&mut there, of_there), (&mut here, of_here)] {
                for (letter, outcome) in outcomes.iter() {
                    let what = match *outcome {
                        BLOCKED => What::Blocked,
                        text => What::Answer(text.to_owned()),
                    };
                    record.add(step, Some(SessionName(*letter)), what);
                }
            }
        }
        Self {
            schedule: Schedule {
                seed: 1,
                table,
                levels: vec![level; 4],
                moves,
            },
            there,
            here,
        }
    }

    /// With what MariaDB says that a session waits for at the last step.
    fn with_lock(mut self, letter: char, lock: &str) -> Self {
        let step = self.schedule.moves.len() - 1;
        let name = SessionName(letter);
        self.there.locks.insert((step, name), lock.to_owned());
        self
    }

    /// The name of the sign, or of what differs if there is none.
    fn sign(&self) -> String {
        let difference = first_difference(&self.schedule, &self.there, &self.here);
        let name = class(&self.schedule, difference.expect("they differ"));
        let parts: Vec<&str> = name.split('/').collect();
        let sign = parts.get(5).copied().unwrap_or("none");
        format!("{} {sign}", parts[0])
    }
}

/// A step that ends in the same way on both servers.
fn same<'a>(
    letter: char,
    (kind, text): (Kind, &'a str),
    outcomes: &'a [(char, &'a str)],
) -> Play<'a> {
    (letter, kind, text, outcomes, outcomes)
}

fn begin(letter: char) -> Play<'static> {
    let outcomes: &[(char, &str)] = match letter {
        'A' => &[('A', "ok")],
        'B' => &[('B', "ok")],
        _ => &[('C', "ok")],
    };
    same(letter, (BEGIN, "BEGIN"), outcomes)
}

const GAP: &str = "index k, lock X locks gap before rec insert intention waiting";

#[test]
fn a_change_that_has_failed_in_the_middle_tells_of_locks_ahead() {
    let failed = same('A', (Kind::UpdateKey, "UPDATE t"), &[('A', TAKEN)]);
    let waits =
        |begun: Play<'static>, failed| Plays::of(RR, &[begun, failed, INSERT_WAITS_HERE]).sign();
    assert_eq!(waits(begin('A'), failed), "waits-here halted");
    // Its transaction is over.
    assert_eq!(waits(begin('C'), failed), "waits-here none");
    let text = "UPDATE t SET k = 7 WHERE id < 9 ORDER BY id LIMIT 2";
    let ordered = same('A', (Kind::UpdateKey, text), &[('A', TAKEN)]);
    let plays = Plays::of(RR, &[begin('A'), ordered, INSERT_WAITS_THERE]);
    assert_eq!(plays.sign(), "waits-there ordered");
    let plays = Plays::of(RR, &[begin('A'), failed, INSERT_WAITS_THERE]);
    assert_eq!(plays.sign(), "waits-there none");
    // Its own session waits there for what it has locked ahead here.
    let own = (
        'A',
        Kind::NoWait,
        "S",
        &[('A', "error 1205")][..],
        &[('A', OK)][..],
    );
    let plays = Plays::of(RR, &[begin('A'), failed, own]);
    assert_eq!(plays.sign(), "waits-there halted");
    // It has passed the end of its range here before another has put an entry there.
    let halted = same('A', (Kind::UpdateKey, "UPDATE t"), &[('A', BLOCKED)]);
    let end = (
        'C',
        Kind::Commit,
        "COMMIT",
        &[('C', "ok"), ('A', BLOCKED)][..],
        &[('C', "ok"), ('A', OK)][..],
    );
    let plays = Plays::of(RC, &[begin('C'), begin('B'), halted, end]);
    assert_eq!(plays.sign(), "wakes-here halted");
}

#[test]
fn a_blocked_insert_tells_of_its_key() {
    let blocked = |kind| same('B', (kind, "I"), &[('B', BLOCKED)]);
    let dead = (
        'A',
        Kind::InsertSelect,
        "I",
        &[('A', OK), ('B', BLOCKED)][..],
        &[('A', OK), ('B', DEAD)][..],
    );
    let plays = Plays::of(RR, &[begin('A'), blocked(Kind::Replace), dead]);
    assert_eq!(plays.sign(), "deadlock-here awaited");
    let plays = Plays::of(RR, &[begin('A'), blocked(Kind::SelectShare), dead]);
    assert_eq!(plays.sign(), "deadlock-here none");
    let plays = Plays::of(
        RR,
        &[begin('C'), begin('A'), blocked(Kind::SelectShare), dead],
    );
    assert_eq!(plays.sign(), "deadlock-here among");
}

#[test]
fn a_wait_without_gap_locks_tells_of_a_lock_that_is_kept() {
    let scan = same('A', (Kind::Update, "U"), &[('A', BLOCKED)]);
    let end = same('C', (Kind::Commit, "COMMIT"), &[('C', "ok"), ('A', OK)]);
    let waits = |level, end| Plays::of(level, &[begin('A'), scan, end, INSERT_WAITS_THERE]).sign();
    assert_eq!(waits(RC, end), "waits-there waited");
    assert_eq!(waits(RR, end), "waits-there none");
    let (there, here) = ([('B', "| id |")], [('B', "| id |\n 1")]);
    let skipped = ('B', Kind::SkipLocked, "S", &there[..], &here[..]);
    let skips = Plays::of(RC, &[begin('A'), scan, end, skipped]).sign();
    assert_eq!(skips, "skips waited");
    // What it has waited for was not given up.
    let select = same('C', (Kind::Select, "S"), &[('C', "ok"), ('A', OK)]);
    assert_eq!(waits(RC, select), "waits-there none");
    // Another has got here what is kept there.
    let blocked = same('B', (Kind::InsertSelect, "I"), &[('B', BLOCKED)]);
    let dead = (
        'A',
        Kind::Delete,
        "D",
        &[('A', OK), ('B', BLOCKED)][..],
        &[('A', OK), ('B', DEAD)][..],
    );
    let meets = |level| Plays::of(level, &[begin('A'), scan, end, blocked, dead]).sign();
    assert_eq!(meets(RC), "deadlock-here waited");
    assert_ne!(meets(RR), "deadlock-here waited");
    // SKIP LOCKED keeps an entry.
    let skipped = same('A', (Kind::SkipLocked, "S"), &[('A', OK)]);
    let plays = || Plays::of(RC, &[begin('A'), skipped, INSERT_WAITS_THERE]);
    let entry = plays().with_lock('B', "index k, lock X locks rec but not gap waiting");
    assert_eq!(entry.sign(), "waits-there kept");
    let row = plays().with_lock('B', "index PRIMARY, lock X locks rec but not gap waiting");
    assert_eq!(row.sign(), "waits-there none");
}

#[test]
fn a_wait_for_a_gap_tells_of_a_unique_key_or_of_a_row_that_is_gone() {
    let waits = |text, begun| {
        let read = same('A', (Kind::SelectForUpdate, text), &[('A', OK)]);
        let plays = Plays::of(RR, &[begin(begun), read, INSERT_WAITS_THERE]);
        plays.with_lock('B', GAP).sign()
    };
    for text in [
        "WHERE k = 5",
        "WHERE k IN (5, 6)",
        "WHERE k BETWEEN 5 AND 5",
    ] {
        assert_eq!(waits(text, 'A'), "waits-there unique-gap", "{text}");
    }
    assert_eq!(waits("WHERE k BETWEEN 5 AND 6", 'A'), "waits-there none");
    assert_eq!(waits("WHERE k = 5", 'C'), "waits-there none");
    // The gap that a blocked check for a duplicate has asked for.
    let check = same('A', (Kind::Replace, "R"), &[('A', BLOCKED)]);
    let dead = (
        'B',
        Kind::Insert,
        "I",
        &[('B', OK), ('A', DEAD)][..],
        &[('B', OK), ('A', BLOCKED)][..],
    );
    let plays = Plays::of(RR, &[begin('B'), check, dead]);
    assert_eq!(plays.sign(), "deadlock-there unique-gap");
    let back = same('A', (Kind::RollbackTo, "ROLLBACK TO s"), &[('A', "ok")]);
    let plays = Plays::of(RR, &[begin('A'), back, INSERT_WAITS_THERE]);
    assert_eq!(plays.with_lock('B', GAP).sign(), "waits-there taken-back");
}

#[test]
fn several_that_wait_tell_of_their_order() {
    let blocked = |letter, outcomes| same(letter, (Kind::Delete, "D"), outcomes);
    let both = [
        begin('C'),
        blocked('A', &[('A', BLOCKED)]),
        blocked('B', &[('B', BLOCKED), ('A', BLOCKED)]),
    ];
    let sign = |there, here| {
        let last = ('C', Kind::Commit, "COMMIT", there, here);
        let plays = [both[0], both[1], both[2], last];
        Plays::of(RR, &plays).sign()
    };
    let (one, other): (&[_], &[_]) = (
        &[('C', "ok"), ('A', OK), ('B', BLOCKED)],
        &[('C', "ok"), ('A', BLOCKED), ('B', OK)],
    );
    assert_eq!(sign(one, other), "wakes-there order");
    // Both go on at once here, and a result differs: either may have been first.
    let one = &[('C', "ok"), ('A', "ok, 1 rows"), ('B', OK)];
    let other = &[('C', "ok"), ('A', "ok, 2 rows"), ('B', OK)];
    assert_eq!(sign(one, other), "after-wait order");
}

#[test]
fn a_scan_that_has_waited_may_see_what_was_put_meanwhile() {
    let plays = |level| {
        let scan = same('A', (Kind::Update, "U"), &[('A', BLOCKED)]);
        let put = same('B', (Kind::Insert, "I"), &[('B', OK), ('A', BLOCKED)]);
        let (there, here) = ([('C', "ok"), ('A', OK)], [('C', "ok"), ('A', "ok, 2 rows")]);
        let last = ('C', Kind::Commit, "COMMIT", &there[..], &here[..]);
        Plays::of(level, &[begin('C'), scan, put, last]).sign()
    };
    assert_eq!(plays(RC), "after-wait grown");
    assert_eq!(plays(RR), "after-wait none");
}

#[test]
fn a_holder_meets_one_that_waits_for_its_row_alone() {
    let dead = (
        'B',
        Kind::Delete,
        "D",
        &[('B', OK), ('A', DEAD)][..],
        &[('B', OK), ('A', BLOCKED)][..],
    );
    let sign = |text| {
        let waiter = same('A', (Kind::Delete, text), &[('A', BLOCKED)]);
        Plays::of(RR, &[begin('B'), waiter, dead]).sign()
    };
    assert_eq!(sign("D: primary-point"), "deadlock-there holder");
    assert_eq!(sign("D: primary-range"), "deadlock-there halted");
    // What it has locked before may be what the holder meets.
    let first = same('A', (Kind::SelectShare, "S"), &[('A', OK)]);
    let waiter = same(
        'A',
        (Kind::SelectShare, "S: primary-point"),
        &[('A', BLOCKED)],
    );
    let plays = Plays::of(RR, &[begin('A'), first, begin('B'), waiter, dead]);
    assert_eq!(plays.sign(), "deadlock-there none");
}

#[test]
fn a_reader_may_have_changed_the_row_that_it_skips() {
    let waiter = same('B', (Kind::Replace, "R"), &[('B', BLOCKED)]);
    let sign = |kind, text| {
        let own = same('A', (kind, "U"), &[('A', OK)]);
        let (there, here) = ([('A', "| id |")], [('A', "| id |\n 1")]);
        let last = ('A', Kind::SkipLocked, text, &there[..], &here[..]);
        Plays::of(RC, &[begin('A'), own, waiter, last]).sign()
    };
    assert_eq!(sign(Kind::Update, "S: unique-range"), "skips own");
    assert_eq!(sign(Kind::Update, "S: primary-range"), "skips none");
    assert_eq!(sign(Kind::SelectShare, "S: unique-range"), "skips none");
}
