//! One worker's gate: order, those who leave the line, idle transactions, the overdue. And two
//! gates beside each other.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use admission::controller::PERIOD_US;
use admission::gate::ADMINISTRATORS_MAX;
use admission::{Admission, Debt, Entry, Gate, Limit, Pass, Visitor};
use metrics::Registry;

type Waiting = Pin<Box<dyn Future<Output = Pass>>>;

/// A gate, its numbers, and the time.
struct Door {
    shared: Arc<Admission>,
    gate: Rc<Gate>,
    numbers: Registry,
    now_us: u64,
}

impl Door {
    fn new(limit: Limit) -> Self {
        let shared = Admission::new(1);
        shared.set_limit(limit);
        Self::of(&shared, 0)
    }

    /// Two workers with one limit.
    fn two(limit: Limit) -> [Self; 2] {
        let shared = Admission::new(2);
        shared.set_limit(limit);
        [0, 1].map(|index| Self::of(&shared, index))
    }

    fn of(shared: &Arc<Admission>, index: usize) -> Self {
        let mut numbers = Registry::new();
        shared.register_metrics(&mut numbers);
        Self {
            shared: Arc::clone(shared),
            gate: Gate::new(Arc::clone(shared), index),
            numbers,
            now_us: 0,
        }
    }

    fn enter(&self) -> Entry {
        self.gate.enter(|| Visitor::Client, || self.now_us)
    }

    fn inside(&self) -> Pass {
        match self.enter() {
            Entry::Inside(pass) => pass,
            other => panic!("there is room: {other:?}"),
        }
    }

    fn queued(&self) -> Waiting {
        match self.enter() {
            Entry::Queued(queued) => {
                let now_us = self.now_us;
                Box::pin(queued.entered(move || now_us))
            }
            other => panic!("there is no room: {other:?}"),
        }
    }

    fn tick(&mut self) -> bool {
        self.now_us += PERIOD_US;
        self.gate.tick(self.now_us, Debt::default())
    }

    /// Whether it was called since this was asked last.
    fn is_called(&self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        std::pin::pin!(self.gate.called())
            .poll(&mut context)
            .is_ready()
    }

    fn number(&self, name: &str) -> u64 {
        let numbers = self.numbers.numbers();
        let found = numbers.iter().find(|(of, _)| of == name);
        found.expect(name).1
    }
}

fn poll(waiting: &mut Waiting) -> Option<Pass> {
    let mut context = Context::from_waker(Waker::noop());
    match waiting.as_mut().poll(&mut context) {
        Poll::Ready(pass) => Some(pass),
        Poll::Pending => None,
    }
}

#[test]
fn without_a_limit_none_counts() {
    let door = Door::new(Limit::Off);
    assert!(door.gate.is_open());
    assert!(matches!(door.enter(), Entry::Free));
    assert_eq!(door.number("Admission_limit"), 0);
    assert!(!door.gate.begin_ticking());
}

#[test]
fn those_who_wait_come_in_in_their_order() {
    let door = Door::new(Limit::Fixed(2));
    let (first, second) = (door.inside(), door.inside());
    let mut waiting: Vec<Waiting> = (0..3).map(|_| door.queued()).collect();
    assert!(waiting.iter_mut().all(|it| poll(it).is_none()));
    assert_eq!(door.number("Admission_waiting"), 3);
    drop(first);
    let third = poll(&mut waiting[0]).expect("one place");
    assert!(poll(&mut waiting[1]).is_none());
    second.commit();
    let fourth = poll(&mut waiting[1]).expect("one more place");
    assert!(poll(&mut waiting[2]).is_none());
    drop((third, fourth));
    let last = poll(&mut waiting[2]).expect("room");
    assert_eq!(door.number("Admission_inside"), 1);
    drop(last);
    assert_eq!(door.number("Admission_inside"), 0);
    assert_eq!(door.number("Admission_waits"), 3);
    assert_eq!(door.number("Admission_admitted"), 5);
    assert_eq!(door.number("Admission_wait_us_count"), 3);
}

#[test]
fn a_waiter_that_goes_leaves_its_place_to_the_next() {
    let door = Door::new(Limit::Fixed(1));
    let inside = door.inside();
    let mut waiting: Vec<Waiting> = (0..4).map(|_| door.queued()).collect();
    // One goes while it waits, one when it was let in and does not know yet.
    drop(waiting.remove(1));
    assert_eq!(door.number("Admission_waiting"), 3);
    drop(inside);
    drop(waiting.remove(0));
    let next = poll(&mut waiting[0]).expect("its turn");
    assert!(poll(&mut waiting[1]).is_none());
    drop(waiting);
    drop(next);
    assert_eq!(door.number("Admission_waiting"), 0);
    assert_eq!(door.number("Admission_inside"), 0);
    drop(door.inside());
}

#[test]
fn idle_transactions_do_not_count_after_two_periods_and_come_back_at_once() {
    let mut door = Door::new(Limit::Fixed(2));
    let mut idle = [door.inside(), door.inside()];
    idle.iter_mut().for_each(Pass::set_idle);
    let mut waiting = door.queued();
    assert!(door.gate.begin_ticking() && !door.gate.begin_ticking());
    assert!(door.tick());
    assert!(poll(&mut waiting).is_none(), "not idle for a whole period");
    assert!(door.tick());
    let busy = poll(&mut waiting).expect("the idle ones do not count");
    assert_eq!(door.number("Admission_inside"), 1);
    idle.iter_mut().for_each(Pass::set_busy);
    assert_eq!(door.number("Admission_inside"), 3, "they come back at once");
    let mut late = door.queued();
    drop(busy);
    assert!(
        poll(&mut late).is_none(),
        "there are still as many as may be"
    );
    let [one, other] = idle;
    drop(one);
    let late = poll(&mut late).expect("room");
    drop((other, late));
    assert_eq!(door.number("Admission_inside"), 0);
}

#[test]
fn who_is_idle_in_any_period_leaves_as_often_as_it_came() {
    let mut door = Door::new(Limit::Fixed(4));
    for ticks in 0..5 {
        let mut pass = door.inside();
        pass.set_idle();
        for _ in 0..ticks {
            door.tick();
        }
        drop(pass);
        assert_eq!(door.number("Admission_inside"), 0, "after {ticks} ticks");
    }
}

#[test]
fn a_stall_lets_those_in_who_are_overdue_and_no_one_earlier() {
    let mut door = Door::new(Limit::Fixed(1));
    let _stuck = door.inside();
    let mut waiting: Vec<Waiting> = (0..20).map(|_| door.queued()).collect();
    for _ in 0..10 {
        door.tick();
    }
    let mut inside = Vec::new();
    let mut let_in = |waiting: &mut Vec<Waiting>| {
        let passes: Vec<Pass> = waiting.iter_mut().filter_map(poll).collect();
        let count = passes.len();
        inside.extend(passes);
        waiting.drain(..count).for_each(drop);
        count
    };
    assert_eq!(let_in(&mut waiting), 0, "a second has not passed");
    door.tick();
    assert_eq!(let_in(&mut waiting), 3, "an eighth of the overdue");
    for _ in 0..20 {
        door.tick();
    }
    let_in(&mut waiting);
    assert!(waiting.is_empty(), "none waits for ever");
    assert_eq!(door.number("Admission_overdue"), 20);
}

#[test]
fn time_in_which_the_process_stood_still_makes_none_overdue() {
    let mut door = Door::new(Limit::Fixed(1));
    let _slow = door.inside();
    let mut waiting = door.queued();
    door.tick();
    door.now_us += 3_600_000_000;
    for _ in 0..9 {
        door.tick();
    }
    assert!(poll(&mut waiting).is_none(), "it could not have come in");
    door.tick();
    assert!(poll(&mut waiting).is_some(), "a second at work has passed");
}

/// One transaction leaves each 20 seconds, and all ten take 200.
#[test]
fn a_limit_holds_however_long_transactions_take() {
    let mut door = Door::new(Limit::Fixed(1));
    let last = |door: &mut Door, pass: Pass| {
        for _ in 0..200 {
            door.tick();
        }
        drop(pass);
    };
    for _ in 0..3 {
        let pass = door.inside();
        door.gate.begin_ticking();
        last(&mut door, pass);
    }
    let mut inside = door.inside();
    let waiting: Vec<Waiting> = (0..9).map(|_| door.queued()).collect();
    for mut next in waiting {
        last(&mut door, inside);
        inside = poll(&mut next).expect("its turn");
    }
    assert_eq!(door.number("Admission_overdue"), 0);
}

/// 1,000 clients at a door that ten may pass. In each tick so many leave and come again. Returns
/// those who are inside at the end, and those who wait.
fn crowd(
    door: &mut Door,
    left_in_ticks: impl Iterator<Item = u32>,
) -> (VecDeque<Pass>, VecDeque<Waiting>) {
    let mut inside: VecDeque<Pass> = (0..10).map(|_| door.inside()).collect();
    let mut waiting: VecDeque<Waiting> = (0..990).map(|_| door.queued()).collect();
    door.gate.begin_ticking();
    for left in left_in_ticks {
        for _ in 0..left {
            drop(inside.pop_front());
            let mut next = waiting.pop_front().expect("a thousand clients");
            inside.push_back(poll(&mut next).expect("its turn"));
            waiting.push_back(door.queued());
        }
        door.tick();
    }
    (inside, waiting)
}

/// Of 1,000 clients 200 leave each second, and then none.
#[test]
fn a_stall_is_told_by_the_rate_before_it() {
    let mut door = Door::new(Limit::Fixed(10));
    let _clients = crowd(&mut door, std::iter::repeat_n(20, 300));
    assert_eq!(door.number("Admission_overdue"), 0);
    for _ in 0..60 {
        door.tick();
    }
    // The first of the line has waited for two rounds of five seconds.
    assert_ne!(door.number("Admission_overdue"), 0);
}

/// Of 1,000 clients 3,000 leave each second. Then another program takes three quarters of the
/// processors.
#[test]
fn a_server_that_slows_down_is_no_stall() {
    let mut door = Door::new(Limit::Fixed(10));
    let _clients = crowd(&mut door, [300; 100].into_iter().chain([75; 100]));
    assert_eq!(door.number("Admission_overdue"), 0);
}

/// One transaction has left on a worker in six seconds, and many on another. They have one line,
/// and so the waiters of both know the stall.
#[test]
fn a_stall_is_told_by_the_rate_of_all_workers() {
    let [mut slow, mut fast] = Door::two(Limit::Fixed(2));
    let first = slow.inside();
    let mut inside = fast.inside();
    slow.gate.begin_ticking();
    fast.gate.begin_ticking();
    for _ in 0..64 {
        for _ in 0..20 {
            drop(inside);
            inside = fast.inside();
        }
        slow.tick();
        fast.tick();
    }
    drop(first);
    let _stuck = slow.inside();
    let mut waiting: Vec<Waiting> = (0..3).map(|_| slow.queued()).collect();
    for _ in 0..20 {
        slow.tick();
        fast.tick();
    }
    let entered = waiting.iter_mut().filter_map(poll).count();
    assert_eq!(entered, 3, "two seconds are a stall");
}

#[test]
fn what_has_left_before_the_first_tick_is_no_rate() {
    let mut door = Door::new(Limit::Fixed(4));
    for _ in 0..100_000 {
        drop(door.inside());
    }
    let mut inside: VecDeque<Pass> = (0..4).map(|_| door.inside()).collect();
    assert!(door.gate.begin_ticking());
    // One of four leaves each two seconds.
    let mut go_on = |door: &mut Door, waiting: &mut VecDeque<Waiting>| {
        for _ in 0..20 {
            door.tick();
        }
        drop(inside.pop_front());
        inside.push_back(match waiting.pop_front() {
            Some(mut next) => poll(&mut next).expect("its turn"),
            None => door.inside(),
        });
    };
    let mut waiting = VecDeque::new();
    for _ in 0..20 {
        go_on(&mut door, &mut waiting);
    }
    waiting.extend((0..30).map(|_| door.queued()));
    while !waiting.is_empty() {
        go_on(&mut door, &mut waiting);
    }
    assert_eq!(door.number("Admission_overdue"), 0);
}

#[test]
fn a_few_administrators_enter_above_the_limit() {
    let door = Door::new(Limit::Fixed(1));
    let _client = door.inside();
    let enter = || door.gate.enter(|| Visitor::Administrator, || 0);
    let inside: Vec<Entry> = (0..ADMINISTRATORS_MAX).map(|_| enter()).collect();
    assert!(inside.iter().all(|it| matches!(it, Entry::Inside(_))));
    assert!(matches!(enter(), Entry::Queued(_)));
    drop(inside);
    assert!(matches!(enter(), Entry::Inside(_)));
    assert_eq!(door.number("Admission_inside"), 1, "they do not count");
}

#[test]
fn a_changed_limit_is_followed_at_the_next_tick() {
    let mut door = Door::new(Limit::Fixed(1));
    let inside = door.inside();
    let mut waiting: Vec<Waiting> = (0..3).map(|_| door.queued()).collect();
    door.shared.set_limit(Limit::Fixed(2));
    door.tick();
    let second = poll(&mut waiting[0]);
    assert!(second.is_some() && poll(&mut waiting[1]).is_none());
    door.shared.set_limit(Limit::Off);
    assert!(!door.tick(), "without a limit no tick is needed");
    let rest: Vec<Option<Pass>> = waiting[1..].iter_mut().map(poll).collect();
    assert!(rest.iter().all(Option::is_some));
    drop((inside, second, rest));
    assert_eq!(door.number("Admission_inside"), 0);
}

#[test]
fn ticks_end_with_the_load() {
    let mut door = Door::new(Limit::Auto);
    let limit = door.number("Admission_limit");
    let few: Vec<Pass> = (0..limit / 2 - 1).map(|_| door.inside()).collect();
    assert!(!door.gate.begin_ticking(), "half of the limit is not used");
    let more = [door.inside(), door.inside()];
    assert!(door.gate.begin_ticking());
    assert!(door.tick());
    drop(more);
    drop(few);
    assert!(door.tick(), "there was load since the last tick");
    assert!(!door.tick());
    let again: Vec<Pass> = (0..limit).map(|_| door.inside()).collect();
    assert!(door.gate.begin_ticking());
    drop(again);
}

/// Set while a visitor came: its gate has no limit when it is asked whether to tick.
#[test]
fn while_anyone_waits_there_are_ticks() {
    let mut door = Door::new(Limit::Fixed(1));
    let _idle = door.inside();
    let mut waiting = door.queued();
    door.shared.set_limit(Limit::Off);
    assert!(door.gate.begin_ticking());
    assert!(!door.tick());
    assert!(poll(&mut waiting).is_some());
}

#[test]
fn room_of_another_worker_is_taken_before_anyone_waits() {
    let [one, other] = Door::two(Limit::Fixed(64));
    let inside: Vec<Pass> = (0..63).map(|_| one.inside()).collect();
    let _first = other.inside();
    assert_eq!(one.number("Admission_inside"), 64);
    let mut late = [one.queued(), other.queued()];
    assert!(late.iter_mut().all(|it| poll(it).is_none()));
    drop(inside);
    assert!(poll(&mut late[0]).is_some());
    // The room is found at the end of a transaction, or at a tick.
    other.gate.follow();
    assert!(poll(&mut late[1]).is_some());
}

/// Idle transactions that come back are above the quota, which another worker has taken meanwhile.
#[test]
fn room_is_taken_above_the_quota_if_there_is_enough() {
    let [mut one, other] = Door::two(Limit::Fixed(8));
    let mut idle: Vec<Pass> = (0..6).map(|_| one.inside()).collect();
    idle.iter_mut().for_each(Pass::set_idle);
    one.tick();
    one.tick();
    let busy: Vec<Pass> = (0..5).map(|_| other.inside()).collect();
    drop(busy);
    idle.iter_mut().for_each(Pass::set_busy);
    assert_eq!(one.number("Admission_inside"), 6);
    // One place stays with each worker.
    let _seventh = one.inside();
    drop(one.queued());
    drop(other.inside());
}

#[test]
fn a_place_is_given_to_the_worker_where_someone_has_waited_longer() {
    let [mut one, mut other] = Door::two(Limit::Fixed(4));
    let mut inside = [one.inside(), one.inside()].map(Some);
    let _stuck = [other.inside(), other.inside()];
    let mut early = [other.queued(), other.queued()];
    (one.now_us, other.now_us) = (20_000, 20_000);
    let mut late = one.queued();
    assert!(one.is_called() && other.is_called(), "there is a limit now");
    inside[0] = None;
    assert!(other.is_called() && !one.is_called());
    assert!(poll(&mut late).is_none(), "others came earlier");
    assert!(poll(&mut early[0]).is_none(), "its worker has to look");
    other.gate.follow();
    let first = poll(&mut early[0]);
    assert!(first.is_some() && poll(&mut early[1]).is_none());
    // One place remains with each worker, so its line moves whatever others do.
    inside[1] = None;
    assert!(poll(&mut late).is_some());
    drop(first);
    assert!(poll(&mut early[1]).is_some());
    assert!(!other.is_called(), "what it had, it used at once");
}

/// What moves between workers does not change how many may be inside.
#[test]
fn places_that_move_between_workers_are_not_lost() {
    for seed in 1..20_u64 {
        let mut doors = Door::two(Limit::Fixed(6));
        let mut inside: [Vec<Pass>; 2] = Default::default();
        let mut waiting: [Vec<Waiting>; 2] = Default::default();
        let mut dice = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        for step in 0..400 {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            let pick = usize::try_from(dice >> 33).unwrap();
            let at = pick % 2;
            doors.iter_mut().for_each(|door| door.now_us = step * 3_000);
            match dice % 5 {
                0 | 1 => match doors[at].enter() {
                    Entry::Inside(pass) => inside[at].push(pass),
                    Entry::Queued(queued) => waiting[at].push(Box::pin(queued.entered(|| 0))),
                    Entry::Free => unreachable!("there is a limit"),
                },
                2 | 3 if !inside[at].is_empty() => {
                    let count = inside[at].len();
                    drop(inside[at].swap_remove(pick % count));
                }
                4 if !waiting[at].is_empty() => {
                    let count = waiting[at].len();
                    drop(waiting[at].swap_remove(pick % count));
                }
                _ => {}
            }
            for (door, (inside, waiting)) in doors.iter().zip(inside.iter_mut().zip(&mut waiting)) {
                if door.is_called() {
                    door.gate.follow();
                }
                waiting.retain_mut(|it| poll(it).map(|pass| inside.push(pass)).is_none());
            }
            let count = inside[0].len() + inside[1].len();
            assert!(count <= 6, "seed {seed}: {count} inside");
            assert!(
                doors[0].number("Admission_waiting") == 0 || 3 <= count,
                "seed {seed}"
            );
        }
        inside.iter_mut().for_each(Vec::clear);
        waiting.iter_mut().for_each(Vec::clear);
        assert_eq!(doors[0].number("Admission_inside"), 0, "seed {seed}");
        assert_eq!(doors[0].number("Admission_waiting"), 0, "seed {seed}");
        // One place stays with each worker.
        let _all: Vec<Pass> = (0..5).map(|_| doors[0].inside()).collect();
        assert!(matches!(doors[0].enter(), Entry::Queued(_)), "seed {seed}");
        drop(doors[1].inside());
    }
}

/// Random arrivals, ends and pauses over three workers. Two of them may keep a place in vain.
#[test]
fn while_anyone_waits_the_limit_is_used_up() {
    for seed in 1..20_u64 {
        let shared = Admission::new(3);
        shared.set_limit(Limit::Fixed(9));
        let doors = [0, 1, 2].map(|index| Door::of(&shared, index));
        let mut inside: [Vec<Pass>; 3] = Default::default();
        let mut waiting: [Vec<Waiting>; 3] = Default::default();
        let mut dice = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        for step in 0..300 {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            let pick = usize::try_from(dice >> 33).unwrap();
            let at = pick % 3;
            let count = inside[at].len();
            match dice % 6 {
                0 | 1 => match doors[at].enter() {
                    Entry::Inside(pass) => inside[at].push(pass),
                    Entry::Queued(queued) => waiting[at].push(Box::pin(queued.entered(|| 0))),
                    Entry::Free => unreachable!("there is a limit"),
                },
                2 if count != 0 => drop(inside[at].swap_remove(pick % count)),
                3 => inside[at].iter_mut().for_each(Pass::set_idle),
                4 => inside[at].iter_mut().for_each(Pass::set_busy),
                _ => {}
            }
            // The time stands still, so none is overdue.
            for door in doors.iter().cycle().take(9) {
                door.gate.tick(0, Debt::default());
                door.gate.follow();
            }
            for (inside, waiting) in inside.iter_mut().zip(&mut waiting) {
                waiting.retain_mut(|it| poll(it).map(|pass| inside.push(pass)).is_none());
            }
            let wait_count = doors[0].number("Admission_waiting");
            let inside_count = doors[0].number("Admission_inside");
            assert!(
                wait_count == 0 || 7 <= inside_count,
                "seed {seed}, step {step}: {inside_count} inside, {wait_count} wait"
            );
        }
    }
}

/// Random arrivals, ends, pauses and departures: the numbers never drift, and the line empties.
#[test]
fn no_place_is_lost_or_made() {
    for seed in 1..20_u64 {
        let mut door = Door::new(Limit::Fixed(3));
        let (mut inside, mut waiting) = (Vec::<Pass>::new(), Vec::<Waiting>::new());
        let mut dice = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        for _ in 0..150 {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            let pick = usize::try_from(dice >> 33).unwrap();
            match dice % 6 {
                0 | 1 => match door.enter() {
                    Entry::Inside(pass) => inside.push(pass),
                    Entry::Queued(queued) => waiting.push(Box::pin(queued.entered(|| 0))),
                    Entry::Free => unreachable!("there is a limit"),
                },
                2 if !inside.is_empty() => drop(inside.swap_remove(pick % inside.len())),
                3 if !waiting.is_empty() => drop(waiting.swap_remove(pick % waiting.len())),
                4 if !inside.is_empty() => {
                    let place = pick % inside.len();
                    match pick % 2 {
                        0 => inside[place].set_idle(),
                        _ => inside[place].set_busy(),
                    }
                }
                _ => drop(door.tick()),
            }
            waiting.retain_mut(|it| poll(it).map(|pass| inside.push(pass)).is_none());
            let waits = u64::try_from(waiting.len()).unwrap();
            assert_eq!(door.number("Admission_waiting"), waits, "seed {seed}");
            assert!(
                waits == 0 || 3 <= door.number("Admission_inside"),
                "seed {seed}"
            );
        }
        inside.clear();
        while !waiting.is_empty() {
            let before = waiting.len();
            waiting.retain_mut(|it| poll(it).is_none());
            assert!(waiting.len() < before, "seed {seed}: places are free");
        }
        assert_eq!(door.number("Admission_inside"), 0, "seed {seed}");
    }
}

/// A limit that rose for a crowd is far above those who fight for rows later.
#[test]
fn a_gate_ticks_while_some_wait_for_locks() {
    let door = Door::new(Limit::Fixed(1000));
    let passes: Vec<Pass> = (0..8).map(|_| door.inside()).collect();
    let blocked: Vec<_> = passes.iter().take(3).map(Pass::block).collect();
    assert!(!door.gate.begin_ticking(), "few wait");
    let one_more = passes[3].block();
    assert!(door.gate.begin_ticking());
    assert!(door.gate.tick(PERIOD_US, Debt::default()));
    drop((blocked, one_more));
    door.gate.tick(2 * PERIOD_US, Debt::default());
    assert!(!door.gate.tick(3 * PERIOD_US, Debt::default()));
}
