//! Planted anomalies, each beside the history that differs in the one thing that is wrong.

use std::collections::BTreeMap;
use std::slice::from_ref;

use crate::Anomaly::{
    AbortedRead, CircularInformation, DirtyUpdate, DirtyWrite, Duplicate, Garbage,
    IncompatibleOrder, IntermediateRead, Internal, ItemCycle, Lost, LostUpdate, Nonadjacent,
    Single, Torn, WrongCount,
};
use crate::Level::{ReadCommitted, ReadUncommitted, RepeatableRead, Serializable};
use crate::Mode::{Dirty, LockedRanges, LockedRows, View};
use crate::{
    Act, Anomaly, Element, Ending, History, Key, Level, Mode, Moment, Seen, Span, Statement,
    Transaction, check,
};

const A: Key = Key::List(1);
const B: Key = Key::List(2);
const R: Key = Key::Register(3);
const S: Key = Key::Set(4);

fn write(key: Key, element: u64) -> Act {
    Act::Write(key, Element(element))
}

fn elements(elements: &[u64]) -> Vec<Element> {
    elements.iter().copied().map(Element).collect()
}

/// A read of a list or set.
fn read(key: Key, seen: &[u64], mode: Mode) -> Act {
    let seen = match key {
        Key::Set(_) => Seen::Set(elements(seen)),
        _ => Seen::List(elements(seen)),
    };
    Act::Read(key, seen, mode)
}

fn register(number: u64, last: u64, before: u64) -> Seen {
    let element = |it| (it != 0).then_some(Element(it));
    Seen::Register {
        number,
        last: element(last),
        before: element(before),
    }
}

/// A committed transaction whose acts are statements, all at the same time as those of others.
fn transaction(level: Level, acts: &[Act]) -> Transaction {
    let span = Span {
        sent_at: Moment(0),
        answered_at: Some(Moment(1000)),
    };
    Transaction {
        session: 0,
        level,
        ending: Ending::Committed,
        statements: acts
            .iter()
            .map(|act| Statement {
                span,
                acts: vec![act.clone()],
            })
            .collect(),
        undone: Vec::new(),
        commit: span,
    }
}

fn ended(ending: Ending, level: Level, acts: &[Act]) -> Transaction {
    let mut transaction = transaction(level, acts);
    transaction.ending = ending;
    transaction.commit.answered_at = None;
    transaction
}

/// The same within these moments.
fn within(from: u64, to: u64, mut transaction: Transaction) -> Transaction {
    let span = Span {
        sent_at: Moment(from),
        answered_at: Some(Moment(to)),
    };
    transaction.commit = span;
    transaction
        .statements
        .iter_mut()
        .for_each(|it| it.span = span);
    transaction
}

/// The anomalies of a history that ends with these contents.
fn found(transactions: Vec<Transaction>, last: &[(Key, &[u64])]) -> Vec<Anomaly> {
    let last = last.iter().map(|(key, seen)| match key {
        Key::Set(_) => (*key, Seen::Set(elements(seen))),
        _ => (*key, Seen::List(elements(seen))),
    });
    found_with(transactions, last.collect())
}

fn ended_with(transactions: Vec<Transaction>, last: BTreeMap<Key, Seen>) -> History {
    History {
        transactions,
        last,
        restarts: Vec::new(),
    }
}

fn found_with(transactions: Vec<Transaction>, last: BTreeMap<Key, Seen>) -> Vec<Anomaly> {
    let verdict = check(&ended_with(transactions, last), None);
    verdict.findings.iter().map(|it| it.anomaly).collect()
}

#[test]
fn a_dirty_write_is_found() {
    let history = |second: [u64; 2]| {
        let transactions = vec![
            transaction(ReadUncommitted, &[write(A, 1), write(B, 2)]),
            transaction(ReadUncommitted, &[write(A, 3), write(B, 4)]),
        ];
        found(transactions, &[(A, &[1, 3]), (B, &second)])
    };
    assert_eq!(history([2, 4]), []);
    assert_eq!(history([4, 2]), [DirtyWrite]);
}

#[test]
fn an_aborted_read_is_found() {
    let history = |mode, level| {
        let transactions = vec![
            ended(Ending::Aborted, level, &[write(A, 1)]),
            transaction(level, &[read(A, &[1], mode)]),
        ];
        found(transactions, &[])
    };
    assert_eq!(history(Dirty, ReadUncommitted), []);
    assert_eq!(history(View(0), ReadCommitted), [AbortedRead]);
    assert_eq!(history(LockedRows, ReadUncommitted), [AbortedRead]);
}

#[test]
fn what_a_savepoint_undid_is_rolled_back() {
    let mut writer = transaction(ReadCommitted, &[write(A, 1)]);
    writer.undone = vec![(A, Element(2))];
    let reader = transaction(ReadCommitted, &[read(A, &[1, 2], View(0))]);
    assert_eq!(
        found(vec![writer.clone(), reader], &[(A, &[1])]),
        [AbortedRead]
    );
    assert_eq!(found(vec![writer], &[(A, &[1, 2])]), [AbortedRead]);
}

#[test]
fn an_intermediate_read_is_found() {
    let history = |seen: &[u64], mode| {
        let transactions = vec![
            transaction(RepeatableRead, &[write(A, 1), write(A, 2)]),
            transaction(RepeatableRead, &[read(A, seen, mode)]),
        ];
        found(transactions, &[(A, &[1, 2])])
    };
    assert_eq!(history(&[1, 2], View(0)), []);
    assert_eq!(history(&[1], Dirty), []);
    // That it was before the writer's end is a cycle of its own.
    assert_eq!(history(&[1], View(0)), [IntermediateRead, Single]);
}

#[test]
fn circular_information_is_found() {
    let history = |mode, level| {
        let transactions = vec![
            transaction(level, &[write(A, 1), read(B, &[2], mode)]),
            transaction(level, &[write(B, 2), read(A, &[1], mode)]),
        ];
        found(transactions, &[(A, &[1]), (B, &[2])])
    };
    assert_eq!(history(Dirty, ReadUncommitted), []);
    assert_eq!(history(View(1), ReadCommitted), [CircularInformation]);
}

/// A reader that sees a part of another transaction.
#[test]
fn a_torn_snapshot_is_found() {
    let history = |level, modes: [Mode; 2]| {
        let transactions = vec![
            transaction(level, &[write(A, 1), write(B, 2)]),
            transaction(level, &[read(A, &[], modes[0]), read(B, &[2], modes[1])]),
        ];
        found(transactions, &[(A, &[1]), (B, &[2])])
    };
    assert_eq!(history(ReadCommitted, [View(0), View(1)]), []);
    assert_eq!(history(RepeatableRead, [View(0), View(0)]), [Single]);
    // A snapshot, and then a locking read: InnoDB allows it.
    assert_eq!(history(RepeatableRead, [View(0), LockedRanges]), []);
    assert_eq!(
        history(Serializable, [LockedRanges, LockedRanges]),
        [Single]
    );
}

#[test]
fn a_statement_has_one_snapshot() {
    let mut reader = transaction(ReadCommitted, &[read(A, &[], View(0))]);
    reader.statements[0].acts.push(read(B, &[2], View(0)));
    let writer = transaction(ReadCommitted, &[write(A, 1), write(B, 2)]);
    let anomalies = found(vec![reader, writer], &[(A, &[1]), (B, &[2])]);
    assert_eq!(anomalies, [Single]);
}

#[test]
fn a_lost_update_is_found() {
    let history = |level, mode| {
        let reader = transaction(level, &[read(A, &[1], mode), write(A, 3)]);
        let transactions = vec![
            transaction(level, &[write(A, 1)]),
            transaction(level, &[write(A, 2)]),
            reader,
        ];
        found(transactions, &[(A, &[1, 2, 3])])
    };
    assert_eq!(history(RepeatableRead, View(0)), []);
    assert_eq!(history(ReadCommitted, LockedRows), [LostUpdate]);
    assert_eq!(history(Serializable, LockedRanges), [LostUpdate]);
}

#[test]
fn a_lost_update_of_a_register_is_found() {
    let history = |mode| {
        let read = Act::Read(R, register(1, 1, 0), mode);
        let transactions = vec![
            transaction(RepeatableRead, &[write(R, 1)]),
            transaction(RepeatableRead, &[write(R, 2)]),
            transaction(RepeatableRead, &[read, write(R, 3)]),
        ];
        found_with(transactions, BTreeMap::from([(R, register(3, 3, 2))]))
    };
    assert_eq!(history(View(0)), []);
    assert_eq!(history(LockedRanges), [LostUpdate]);
}

/// Two readers that see two writers in different orders (long fork).
#[test]
fn a_long_fork_is_found() {
    let history = |level, views: usize| {
        let transactions = vec![
            transaction(level, &[write(A, 1)]),
            transaction(level, &[write(B, 2)]),
            transaction(level, &[read(A, &[1], View(0)), read(B, &[], View(views))]),
            transaction(level, &[read(B, &[2], View(0)), read(A, &[], View(views))]),
        ];
        found(transactions, &[(A, &[1]), (B, &[2])])
    };
    assert_eq!(history(ReadCommitted, 1), [Nonadjacent]);
    assert_eq!(history(RepeatableRead, 0), [Nonadjacent]);
}

#[test]
fn write_skew_is_found_where_reads_lock() {
    let history = |level, mode| {
        let transactions = vec![
            transaction(level, &[write(A, 1), write(B, 2)]),
            transaction(level, &[read(A, &[1], mode), write(B, 3)]),
            transaction(level, &[read(B, &[2], mode), write(A, 4)]),
        ];
        found(transactions, &[(A, &[1, 4]), (B, &[2, 3])])
    };
    assert_eq!(history(RepeatableRead, View(0)), []);
    assert_eq!(history(ReadCommitted, View(0)), []);
    assert_eq!(history(RepeatableRead, LockedRanges), [ItemCycle]);
    assert_eq!(history(ReadCommitted, LockedRows), [ItemCycle]);
    assert_eq!(history(Serializable, LockedRanges), [ItemCycle]);
}

/// Two transactions that find a range empty, and each fills that of the other.
#[test]
fn a_phantom_is_found_where_ranges_are_locked() {
    let other = Key::Set(5);
    let history = |level, mode| {
        let transactions = vec![
            transaction(level, &[read(S, &[], mode), write(other, 1)]),
            transaction(level, &[read(other, &[], mode), write(S, 2)]),
        ];
        found(transactions, &[(S, &[2]), (other, &[1])])
    };
    assert_eq!(history(ReadCommitted, LockedRows), []);
    assert_eq!(history(RepeatableRead, View(0)), []);
    assert_eq!(history(RepeatableRead, LockedRanges), [ItemCycle]);
    assert_eq!(history(Serializable, LockedRanges), [ItemCycle]);
}

#[test]
fn a_dirty_update_is_found() {
    let transactions = vec![
        ended(Ending::Aborted, ReadCommitted, &[write(A, 1)]),
        transaction(ReadCommitted, &[write(A, 2)]),
    ];
    assert_eq!(found(transactions.clone(), &[(A, &[2])]), []);
    assert_eq!(found(transactions, &[(A, &[1, 2])]), [DirtyUpdate]);
}

#[test]
fn an_incompatible_order_is_found() {
    let transactions = vec![
        transaction(ReadCommitted, &[write(A, 1)]),
        transaction(ReadCommitted, &[write(A, 2)]),
        transaction(ReadCommitted, &[read(A, &[2, 1], View(0))]),
    ];
    let anomalies = found(transactions, &[(A, &[1, 2])]);
    assert_eq!(anomalies.first(), Some(&IncompatibleOrder));
    let read = Act::Read(R, register(1, 2, 0), View(0));
    let transactions = vec![
        transaction(ReadCommitted, &[write(R, 1)]),
        transaction(ReadCommitted, &[write(R, 2)]),
        transaction(ReadCommitted, &[read]),
    ];
    let last = BTreeMap::from([(R, register(2, 2, 1))]);
    assert_eq!(
        found_with(transactions, last).first(),
        Some(&IncompatibleOrder)
    );
}

#[test]
fn a_lost_acknowledged_append_is_found() {
    for key in [A, S] {
        let transactions = vec![
            transaction(ReadCommitted, &[write(key, 1)]),
            transaction(ReadCommitted, &[write(key, 2)]),
        ];
        assert_eq!(found(transactions.clone(), &[(key, &[1, 2])]), []);
        assert_eq!(found(transactions, &[(key, &[1])]), [Lost]);
    }
}

#[test]
fn an_unanswered_commit_may_be_there_and_not_in_part() {
    let history = |last: &[(Key, &[u64])]| {
        let acts = [write(A, 1), write(S, 2)];
        found(vec![ended(Ending::Unknown, ReadCommitted, &acts)], last)
    };
    assert_eq!(history(&[]), []);
    assert_eq!(history(&[(A, &[1]), (S, &[2])]), []);
    assert_eq!(history(&[(A, &[1])]), [Torn]);
    assert_eq!(history(&[(S, &[2])]), [Torn]);
}

/// An unanswered transaction that others saw takes part in cycles.
#[test]
fn an_unanswered_commit_is_inferred() {
    let transactions = vec![
        ended(Ending::Unknown, ReadCommitted, &[write(R, 1)]),
        transaction(ReadCommitted, &[Act::Read(R, register(1, 1, 0), View(0))]),
        transaction(ReadCommitted, &[write(R, 2)]),
    ];
    let last = BTreeMap::from([(R, register(2, 2, 1))]);
    let verdict = check(&ended_with(transactions, last), None);
    assert!(verdict.findings.is_empty(), "{:?}", verdict.findings);
    assert_eq!((verdict.committed_count, verdict.inferred_count), (3, 1));
}

/// A register that was written over proves nothing by itself; who read it and wrote does.
#[test]
fn unanswered_commits_are_inferred_from_each_other() {
    let read = |number, last, before| Act::Read(R, register(number, last, before), View(0));
    let history = |acts: &[Act]| {
        let transactions = vec![
            ended(Ending::Unknown, ReadCommitted, &[write(R, 1)]),
            transaction(ReadCommitted, &[write(R, 2)]),
            ended(Ending::Unknown, ReadCommitted, acts),
            transaction(ReadCommitted, &[write(R, 3), write(R, 4)]),
        ];
        let last = [(R, register(4, 4, 3)), (A, Seen::List(elements(&[9])))];
        check(&ended_with(transactions, BTreeMap::from(last)), None)
    };
    let verdict = history(&[read(2, 2, 1), write(A, 9)]);
    assert!(verdict.findings.is_empty(), "{:?}", verdict.findings);
    assert_eq!((verdict.committed_count, verdict.inferred_count), (4, 2));
}

#[test]
fn what_is_read_after_a_kill_has_survived_it() {
    let read = Act::Read(R, register(1, 1, 0), View(0));
    let history = History {
        transactions: vec![
            ended(Ending::Unknown, ReadCommitted, &[write(R, 1)]),
            within(21, 22, transaction(ReadCommitted, &[read])),
            within(
                30,
                31,
                transaction(ReadCommitted, &[write(R, 2), write(R, 3)]),
            ),
        ],
        last: BTreeMap::from([(R, register(3, 3, 2))]),
        restarts: vec![Moment(20)],
    };
    let verdict = check(&history, None);
    assert!(verdict.findings.is_empty(), "{:?}", verdict.findings);
    assert_eq!((verdict.inferred_count, verdict.lost_read_count), (1, 0));
}

/// A kill takes what was committed and not yet in the log. Whoever had read it and changed nothing
/// was answered; whoever changed anything must be lost with it.
#[test]
fn a_read_of_what_a_kill_took_is_allowed_without_changes() {
    let history = |acts: &[Act], from, left| {
        let transactions = vec![
            ended(Ending::Unknown, ReadCommitted, &[write(A, 1)]),
            within(from, from + 5, transaction(ReadCommitted, acts)),
        ];
        let history = History {
            transactions,
            last: BTreeMap::from([(B, Seen::List(elements(left)))]),
            restarts: vec![Moment(20)],
        };
        let verdict = check(&history, None);
        let found: Vec<_> = verdict.findings.iter().map(|it| it.anomaly).collect();
        (found, verdict.lost_read_count)
    };
    let seen = read(A, &[1], View(0));
    assert_eq!(history(from_ref(&seen), 10, &[]), (vec![], 1));
    assert_eq!(history(from_ref(&seen), 21, &[]), (vec![AbortedRead], 0));
    assert_eq!(
        history(&[seen, write(B, 2)], 10, &[2]),
        (vec![AbortedRead], 0)
    );
}

#[test]
fn a_register_counts_each_commit() {
    let history = |number, ending| {
        let transactions = vec![
            transaction(ReadCommitted, &[write(R, 1)]),
            ended(ending, ReadCommitted, &[write(R, 2)]),
        ];
        let last = match number {
            1 => register(1, 1, 0),
            _ => register(number, 2, 1),
        };
        found_with(transactions, BTreeMap::from([(R, last)]))
    };
    assert_eq!(history(1, Ending::Unknown), []);
    assert_eq!(history(2, Ending::Unknown), []);
    assert_eq!(history(1, Ending::Committed), [WrongCount]);
    assert_eq!(history(1, Ending::Aborted), []);
    assert!(history(3, Ending::Committed).contains(&WrongCount));
}

#[test]
fn own_writes_are_seen() {
    let history = |seen: &[u64]| {
        let acts = [write(A, 1), read(A, seen, View(1))];
        let transactions = vec![
            transaction(RepeatableRead, &[write(A, 2)]),
            transaction(RepeatableRead, &acts),
        ];
        found(transactions, &[(A, &[2, 1])])
    };
    assert_eq!(history(&[2, 1]), []);
    assert!(history(&[2]).contains(&Internal));
    let history = |seen| {
        let acts = [write(R, 1), write(R, 2), Act::Read(R, seen, Dirty)];
        let transactions = vec![transaction(ReadUncommitted, &acts)];
        found_with(transactions, BTreeMap::from([(R, register(2, 2, 1))]))
    };
    assert_eq!(history(register(2, 2, 1)), []);
    assert!(history(register(1, 1, 0)).contains(&Internal));
}

#[test]
fn duplicates_and_garbage_are_found() {
    let history = |seen: &[u64]| {
        let transactions = vec![
            transaction(RepeatableRead, &[write(S, 1)]),
            transaction(RepeatableRead, &[read(S, seen, View(0))]),
        ];
        found(transactions, &[(S, &[1])])
    };
    assert_eq!(history(&[1]), []);
    assert_eq!(history(&[1, 1]), [Duplicate]);
    assert_eq!(history(&[1, 7]), [Garbage]);
}

#[test]
fn a_stale_read_is_found_by_time() {
    let history = |begin, level, mode| {
        let transactions = vec![
            within(0, 10, transaction(level, &[write(A, 1)])),
            within(begin, 30, transaction(level, &[read(A, &[], mode)])),
        ];
        found(transactions, &[(A, &[1])])
    };
    for (level, mode) in [
        (ReadUncommitted, Dirty),
        (ReadCommitted, View(0)),
        (RepeatableRead, View(0)),
        (Serializable, LockedRanges),
    ] {
        assert_eq!(history(5, level, mode), []);
        assert_eq!(
            history(10, level, mode),
            [],
            "at one moment nothing is known"
        );
        assert_eq!(history(11, level, mode).len(), 1);
    }
}

#[test]
fn a_read_of_what_is_not_yet_committed_is_found_by_time() {
    let mut writer = within(0, 10, transaction(ReadCommitted, &[write(A, 1)]));
    writer.commit = Span {
        sent_at: Moment(20),
        answered_at: Some(Moment(30)),
    };
    let history = |to, mode| {
        let reader = within(12, to, transaction(ReadUncommitted, &[read(A, &[1], mode)]));
        found(vec![writer.clone(), reader], &[(A, &[1])])
    };
    assert_eq!(history(25, View(0)), []);
    assert_eq!(history(19, Dirty), []);
    assert_eq!(history(19, View(0)), [CircularInformation]);
    assert_eq!(history(19, LockedRows), [CircularInformation]);
}

#[test]
fn a_write_of_the_version_before_waits_for_its_commit() {
    let mut first = within(0, 10, transaction(ReadCommitted, &[write(A, 1)]));
    first.commit.sent_at = Moment(20);
    first.commit.answered_at = Some(Moment(30));
    let second = |to| within(12, to, transaction(ReadCommitted, &[write(A, 2)]));
    let history = |to| found(vec![first.clone(), second(to)], &[(A, &[1, 2])]);
    assert_eq!(history(25), []);
    assert_eq!(history(15), [DirtyWrite]);
}

/// The survey counts what a level allows, and its table refuses the rest.
#[test]
fn the_table_of_levels_is_applied() {
    let skew = |level| {
        let transactions = vec![
            transaction(level, &[read(A, &[], View(0)), write(B, 3)]),
            transaction(level, &[read(B, &[], View(0)), write(A, 4)]),
        ];
        let last = [
            (A, Seen::List(elements(&[4]))),
            (B, Seen::List(elements(&[3]))),
        ];
        let last = BTreeMap::from(last);
        check(&ended_with(transactions, last), Some(level))
    };
    let allowed = skew(RepeatableRead);
    assert!(allowed.findings.is_empty());
    assert!(allowed.met.contains_key(&ItemCycle));
    let refused = skew(Serializable);
    assert_eq!(refused.findings.len(), 1);
    assert_eq!(refused.findings[0].anomaly, ItemCycle);
}

#[test]
fn levels_allow_less_as_they_rise() {
    let all = [
        DirtyWrite,
        AbortedRead,
        IntermediateRead,
        CircularInformation,
        Single,
        LostUpdate,
        Nonadjacent,
        ItemCycle,
        DirtyUpdate,
        IncompatibleOrder,
        Internal,
        Duplicate,
        Garbage,
        Lost,
        Torn,
        WrongCount,
    ];
    for pair in Level::ALL.windows(2) {
        for anomaly in all {
            assert!(
                pair[0].allows(anomaly) || !pair[1].allows(anomaly),
                "{anomaly}"
            );
        }
    }
    assert!(!all.iter().any(|it| Serializable.allows(*it)));
}

#[test]
fn findings_are_bounded_and_counted() {
    let seen: Vec<u64> = (1..=100).collect();
    let transactions = vec![transaction(ReadCommitted, &[read(A, &seen, View(0))])];
    let history = History {
        transactions,
        ..History::default()
    };
    let verdict = check(&history, None);
    assert_eq!(verdict.findings.len(), crate::FINDINGS_MAX);
    assert_eq!(verdict.finding_count, 100);
}
