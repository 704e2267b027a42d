//! Lists of events, and random ones beside a naive twin: counts and a queue.

use std::collections::VecDeque;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::keys::{AccountId, ClassId};
use crate::queue::{Newcomer, Sequence, Standing};

type Tested = State<u32, char>;

fn login(account: u32, class: u32) -> Login {
    Login {
        account: AccountId(account),
        class: ClassId(class),
        client: None,
    }
}

/// The login of most tests.
const SAME: Login = Login {
    account: AccountId(0),
    class: ClassId(0),
    client: None,
};

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

fn limits(limit: u32, overflow: u32) -> Limits {
    Limits {
        limit,
        overflow,
        waiting_max: 100,
    }
}

fn question(login: Login, standing: Standing) -> Question {
    Question {
        login,
        standing,
        worker: 0,
        own_oldest: None,
        now: at(0),
        recycling: Recycling::default(),
    }
}

/// Asks for [`SAME`], holding nothing.
fn ask(state: &mut Tested) -> Asked<u32> {
    let asked = state.ask(&question(SAME, Standing::HoldsNone));
    state.check();
    asked
}

fn ask_holding(state: &mut Tested) -> Asked<u32> {
    let asked = state.ask(&question(SAME, Standing::HoldsOne));
    state.check();
    asked
}

fn newcomer(standing: Standing) -> Newcomer {
    Newcomer {
        login: SAME,
        standing,
        worker: 0,
        since: at(0),
    }
}

fn wait(state: &mut Tested, standing: Standing, name: char) -> Sequence {
    let sequence = state.wait(newcomer(standing), name).unwrap();
    state.check();
    sequence
}

fn facts(state: &Tested, kind: SlotKind, login: Login) -> Facts {
    Facts {
        kind,
        worker: 0,
        login,
        version: state.version(),
        opened_at: at(0),
    }
}

/// A connection of `login` comes back; if it stays idle, it is put into the shared stacks.
fn give(state: &mut Tested, kind: SlotKind, login: Login, connection: u32) -> Returned<char> {
    let facts = facts(state, kind, login);
    let returned = state.returned(&facts, at(1), &Recycling::default());
    if returned == Returned::Keep {
        state.rest(&facts, at(1), connection);
    }
    state.check();
    returned
}

fn opened<T>(asked: &Asked<T>) -> SlotKind {
    match asked {
        Asked::Granted(Grant {
            found: Found::Open(None),
            kind,
            ..
        }) => *kind,
        _ => panic!("not a right to open"),
    }
}

fn found(asked: Asked<u32>) -> Found<u32> {
    match asked {
        Asked::Granted(grant) => grant.found,
        other => panic!("{other:?}"),
    }
}

#[test]
fn connections_are_opened_up_to_the_limit() {
    let mut state = Tested::new(limits(2, 0));
    assert_eq!(opened(&ask(&mut state)), SlotKind::Within);
    assert_eq!(opened(&ask(&mut state)), SlotKind::Within);
    assert_eq!(ask(&mut state), Asked::Full);
    assert_eq!(state.numbers().open, 2);
    assert_eq!(state.freed(SlotKind::Within, 0), None);
    assert_eq!(opened(&ask(&mut state)), SlotKind::Within);
}

#[test]
fn a_limit_of_zero_lets_nobody_in() {
    let mut state = Tested::new(limits(0, 0));
    assert_eq!(ask(&mut state), Asked::Full);
    wait(&mut state, Standing::HoldsNone, 'a');
    let effects = state.set_limits(limits(1, 0));
    assert_eq!(effects.passed.len(), 1);
    state.check();
}

#[test]
fn the_last_used_is_taken_first() {
    let mut state = Tested::new(limits(2, 0));
    ask(&mut state);
    ask(&mut state);
    give(&mut state, SlotKind::Within, SAME, 1);
    give(&mut state, SlotKind::Within, SAME, 2);
    assert_eq!(found(ask(&mut state)), Found::Idle(2));
    assert_eq!(found(ask(&mut state)), Found::Idle(1));
    assert_eq!(state.numbers().taken_shared, 2);
}

#[test]
fn at_the_limit_the_longest_idle_of_another_key_is_turned_or_replaced() {
    let mut state = Tested::new(limits(2, 0));
    ask(&mut state);
    ask(&mut state);
    give(&mut state, SlotKind::Within, login(1, 0), 1);
    give(&mut state, SlotKind::Within, login(2, 1), 2);
    let turned = state.ask(&question(SAME, Standing::HoldsNone));
    assert_eq!(found(turned), Found::Turn(1));
    let replaced = state.ask(&question(SAME, Standing::HoldsNone));
    assert_eq!(found(replaced), Found::Open(Some(2)));
    assert_eq!(state.numbers().closed(CloseReason::Replaced), 1);
    assert_eq!(state.numbers().open, 2);
}

#[test]
fn the_longer_idle_of_own_and_shared_is_used() {
    for (own, expected) in [(0, Asked::OwnOldest), (1, Asked::OwnOldest)] {
        let mut state = Tested::new(limits(1, 0));
        ask(&mut state);
        give(&mut state, SlotKind::Within, login(1, 0), 1);
        let mut question = question(SAME, Standing::HoldsNone);
        question.own_oldest = Some(at(own));
        assert_eq!(state.ask(&question), expected);
        question.own_oldest = Some(at(2));
        assert_eq!(found(state.ask(&question)), Found::Turn(1));
    }
}

#[test]
fn what_comes_back_goes_to_the_first_in_line() {
    let mut state = Tested::new(limits(1, 0));
    ask(&mut state);
    wait(&mut state, Standing::HoldsNone, 'a');
    let gone = wait(&mut state, Standing::HoldsNone, 'b');
    wait(&mut state, Standing::HoldsNone, 'c');
    assert_eq!(state.leave(gone), Some('b'));
    assert_eq!(state.leave(gone), None);
    let serve = |waiter, fit| Returned::Serve { waiter, fit };
    let returned = give(&mut state, SlotKind::Within, SAME, 1);
    assert_eq!(returned, serve('a', Fit::Same));
    // A newcomer does not overtake.
    assert_eq!(ask(&mut state), Asked::Full);
    let returned = give(&mut state, SlotKind::Within, login(1, 0), 1);
    assert_eq!(returned, serve('c', Fit::Turn));
    assert_eq!(give(&mut state, SlotKind::Within, SAME, 1), Returned::Keep);
}

#[test]
fn a_slot_without_connection_and_an_unlike_connection_let_a_waiter_open() {
    let mut state = Tested::new(limits(1, 0));
    ask(&mut state);
    wait(&mut state, Standing::HoldsNone, 'a');
    wait(&mut state, Standing::HoldsNone, 'b');
    let passed = |waiter| {
        let kind = SlotKind::Within;
        Some(Passed { waiter, kind })
    };
    assert_eq!(state.freed(SlotKind::Within, 0), passed('a'));
    assert_eq!(
        give(&mut state, SlotKind::Within, login(0, 9), 1),
        Returned::Close {
            reason: CloseReason::Replaced,
            next: passed('b')
        }
    );
    assert_eq!(state.numbers().open, 1);
}

#[test]
fn who_holds_one_goes_above_the_limit_as_far_as_the_overflow() {
    let mut state = Tested::new(limits(1, 1));
    ask(&mut state);
    wait(&mut state, Standing::HoldsNone, 'a');
    assert_eq!(opened(&ask_holding(&mut state)), SlotKind::Above);
    assert_eq!(ask_holding(&mut state), Asked::Full);
    wait(&mut state, Standing::HoldsOne, 'b');
    let numbers = state.numbers();
    assert_eq!(
        (numbers.open, numbers.open_above, numbers.overflowed),
        (2, 1, 1)
    );
    // Each kind of slot has its own line.
    let serve = |waiter| Returned::Serve {
        waiter,
        fit: Fit::Same,
    };
    assert_eq!(give(&mut state, SlotKind::Above, SAME, 1), serve('b'));
    assert_eq!(give(&mut state, SlotKind::Within, SAME, 1), serve('a'));
    // Nobody waits: above the limit nothing stays.
    let close = Returned::Close {
        reason: CloseReason::Overflow,
        next: None,
    };
    assert_eq!(give(&mut state, SlotKind::Above, SAME, 1), close);
    assert_eq!(state.numbers().open, 1);
}

#[test]
fn a_connection_above_the_limit_stays_if_there_is_room_within() {
    let mut state = Tested::new(limits(1, 1));
    ask(&mut state);
    ask_holding(&mut state);
    assert_eq!(state.freed(SlotKind::Within, 0), None);
    assert_eq!(give(&mut state, SlotKind::Above, SAME, 1), Returned::Keep);
    let numbers = state.numbers();
    assert_eq!((numbers.open, numbers.open_above), (1, 0));
}

#[test]
fn the_line_has_a_limit() {
    for (waiting_max, expected) in [(1, false), (2, true), (3, true)] {
        let mut state = Tested::new(Limits {
            limit: 0,
            overflow: 0,
            waiting_max,
        });
        wait(&mut state, Standing::HoldsNone, 'a');
        let second = state.wait(newcomer(Standing::HoldsNone), 'b');
        assert_eq!(second.is_ok(), expected);
        assert_eq!(state.numbers().refused, u64::from(!expected));
    }
}

#[test]
fn a_lower_limit_closes_what_is_idle_and_what_comes_back() {
    let mut state = Tested::new(limits(3, 0));
    for _ in 0..3 {
        ask(&mut state);
    }
    give(&mut state, SlotKind::Within, SAME, 7);
    let effects = state.set_limits(limits(1, 0));
    state.check();
    let closing = Closing {
        connection: 7,
        reason: CloseReason::Limit,
    };
    assert_eq!(effects.closing, [closing]);
    assert!(state.has_demand());
    let close = Returned::Close {
        reason: CloseReason::Limit,
        next: None,
    };
    wait(&mut state, Standing::HoldsNone, 'a');
    assert_eq!(give(&mut state, SlotKind::Within, SAME, 1), close);
    let serve = Returned::Serve {
        waiter: 'a',
        fit: Fit::Same,
    };
    assert_eq!(give(&mut state, SlotKind::Within, SAME, 1), serve);
    assert!(!state.has_demand());
}

#[test]
fn higher_limits_let_waiters_open() {
    let mut state = Tested::new(limits(0, 0));
    for (name, standing) in [
        ('a', Standing::HoldsNone),
        ('b', Standing::HoldsOne),
        ('c', Standing::HoldsOne),
    ] {
        wait(&mut state, standing, name);
    }
    let effects = state.set_limits(limits(1, 1));
    state.check();
    let passed: Vec<_> = effects
        .passed
        .iter()
        .map(|it| (it.waiter, it.kind))
        .collect();
    assert_eq!(passed, [('a', SlotKind::Within), ('b', SlotKind::Above)]);
    assert_eq!(state.waiting_count(), 1);
}

#[test]
fn a_lower_overflow_closes_what_comes_back_beside_waiters() {
    let mut state = Tested::new(limits(0, 2));
    ask_holding(&mut state);
    ask_holding(&mut state);
    wait(&mut state, Standing::HoldsOne, 'a');
    state.set_limits(limits(0, 1));
    assert_eq!(
        give(&mut state, SlotKind::Above, SAME, 1),
        Returned::Close {
            reason: CloseReason::Overflow,
            next: None
        }
    );
    assert_eq!(
        give(&mut state, SlotKind::Above, SAME, 1),
        Returned::Serve {
            waiter: 'a',
            fit: Fit::Same
        }
    );
}

#[test]
fn a_new_version_voids_what_is_idle_and_what_comes_back() {
    let mut state = Tested::new(limits(2, 0));
    ask(&mut state);
    ask(&mut state);
    let old = facts(&state, SlotKind::Within, SAME);
    give(&mut state, SlotKind::Within, SAME, 7);
    let closing = state.raise_version();
    assert_eq!(closing.len(), 1);
    assert_eq!(closing[0].reason, CloseReason::Version);
    state.check();
    assert_eq!(
        state.returned(&old, at(1), &Recycling::default()),
        Returned::Close {
            reason: CloseReason::Version,
            next: None
        }
    );
    assert_eq!(state.numbers().open, 0);
}

#[test]
fn connections_are_recycled_by_age_and_by_idleness() {
    let recycling = Recycling {
        age_max: Duration::from_nanos(100),
        idle_max: Duration::from_nanos(10),
        own_idle_max: Duration::from_nanos(1),
    };
    let mut state = Tested::new(limits(3, 0));
    for _ in 0..3 {
        ask(&mut state);
    }
    let mut young = facts(&state, SlotKind::Within, SAME);
    let old = young;
    young.opened_at = at(50);
    state.rest(&old, at(95), 1);
    state.rest(&young, at(85), 2);
    state.rest(&young, at(95), 3);
    let closing = state.sweep(at(100), &recycling);
    let reasons: Vec<_> = closing
        .iter()
        .map(|it| (it.connection, it.reason))
        .collect();
    assert_eq!(reasons, [(2, CloseReason::Idle), (1, CloseReason::Age)]);
    state.check();
    // What no sweep has seen yet is not given out, either.
    let mut late = question(SAME, Standing::HoldsNone);
    late.recycling = recycling;
    late.now = at(105);
    assert_eq!(found(state.ask(&late)), Found::Open(Some(3)));
    assert_eq!(state.numbers().closed(CloseReason::Idle), 2);
    assert_eq!(
        state.returned(&old, at(100), &recycling),
        Returned::Close {
            reason: CloseReason::Age,
            next: None
        }
    );
}

#[test]
fn a_removed_server_takes_and_gives_nothing() {
    let mut state = Tested::new(limits(1, 1));
    ask(&mut state);
    ask_holding(&mut state);
    wait(&mut state, Standing::HoldsNone, 'a');
    let (waiters, closing) = state.remove();
    assert_eq!((waiters, closing.len()), (vec!['a'], 0));
    assert_eq!(ask(&mut state), Asked::Removed);
    for kind in [SlotKind::Within, SlotKind::Above] {
        assert_eq!(
            give(&mut state, kind, SAME, 1),
            Returned::Close {
                reason: CloseReason::Removed,
                next: None
            }
        );
    }
    let effects = state.set_limits(limits(5, 5));
    assert!(effects.passed.is_empty());
    assert_eq!(state.numbers().open, 0);
}

#[test]
#[should_panic(expected = "a worker gives what it has")]
fn a_slot_that_comes_back_twice_is_a_bug() {
    Tested::new(limits(1, 0)).freed(SlotKind::Within, 0);
}

/// The naive twin: a queue with a limit. All connections are alike, and nobody holds two.
#[derive(Default)]
struct Twin {
    limit: usize,
    in_use: usize,
    idle: usize,
    queue: VecDeque<char>,
}

impl Twin {
    fn ask(&mut self) -> bool {
        if !self.queue.is_empty() || self.limit <= self.in_use {
            return false;
        }
        self.in_use += 1;
        self.idle = self.idle.saturating_sub(1);
        true
    }

    /// Returns who is served.
    fn give(&mut self) -> Option<char> {
        if self.limit < self.in_use {
            self.in_use -= 1;
            return None;
        }
        if let Some(next) = self.queue.pop_front() {
            return Some(next);
        }
        self.in_use -= 1;
        self.idle += 1;
        None
    }

    /// Returns who is served.
    fn set_limit(&mut self, limit: usize) -> Vec<char> {
        self.limit = limit;
        let room = limit.saturating_sub(self.in_use).min(self.queue.len());
        self.in_use += room;
        self.idle = self.idle.min(limit.saturating_sub(self.in_use));
        self.queue.drain(..room).collect()
    }
}

proptest! {
    #[test]
    fn behaves_as_a_queue_with_a_limit(
        steps in prop::collection::vec((0..8_u32, 0..4_usize), 0..300)
    ) {
        let mut state = Tested::new(limits(2, 0));
        let mut twin = Twin { limit: 2, ..Twin::default() };
        let mut places: Vec<(char, Sequence)> = Vec::new();
        let mut names = ('\u{100}'..).cycle();
        for (what, number) in steps {
            match what {
                0..3 => {
                    let granted = matches!(ask(&mut state), Asked::Granted(_));
                    prop_assert_eq!(granted, twin.ask());
                    if !granted {
                        let name = names.next().unwrap();
                        places.push((name, wait(&mut state, Standing::HoldsNone, name)));
                        twin.queue.push_back(name);
                    }
                }
                3..6 if 0 < twin.in_use => {
                    let served = match give(&mut state, SlotKind::Within, SAME, 0) {
                        Returned::Serve { waiter, .. } => Some(waiter),
                        Returned::Keep | Returned::Close { next: None, .. } => None,
                        other => panic!("{other:?}"),
                    };
                    prop_assert_eq!(served, twin.give());
                }
                6 if number < places.len() => {
                    let (name, sequence) = places.remove(number);
                    let waits = twin.queue.iter().position(|it| *it == name);
                    let left = state.leave(sequence);
                    prop_assert_eq!(left.is_some(), waits.is_some());
                    if let Some(place) = waits {
                        twin.queue.remove(place);
                    }
                }
                7 => {
                    let limit = u32::try_from(number).unwrap();
                    let effects = state.set_limits(limits(limit, 0));
                    let served: Vec<_> = effects.passed.iter().map(|it| it.waiter).collect();
                    prop_assert_eq!(served, twin.set_limit(number));
                }
                _ => {}
            }
            state.check();
            let numbers = state.numbers();
            prop_assert_eq!(numbers.open, stdx::to_u64(twin.in_use + twin.idle));
            prop_assert_eq!(numbers.idle, stdx::to_u64(twin.idle));
            prop_assert_eq!(numbers.waiting, stdx::to_u64(twin.queue.len()));
        }
    }
}
