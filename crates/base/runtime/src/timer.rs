//! The timers of one worker: a hierarchical wheel. Setting and cancelling cost the same for any
//! number of timers.
//!
//! Time is cut into ticks of 131 us. Level 0 has 64 slots of one tick, each further level 64 slots
//! of 64 times the length. A timer lies on the level of the highest group of six bits in which its
//! tick differs from the wheel's. When the wheel comes to a slot of a higher level, its timers
//! move down. Slots are doubly linked lists through the slab of timers, so cancelling unlinks.
//! (Varghese and Lauck, "Hashed and Hierarchical Timing Wheels", 1987.)
//!
//! (I1) No timer fires early: deadlines are rounded up to ticks, the present time down.
//! (I2) Timers of different ticks fire in the order of their ticks.
//! (I3) A level's `occupied` has the bit of a slot set exactly if the slot's list is not empty.

use std::task::Waker;

use env::Instant;
use stdx::Slab;

const TICK_NANOS_BITS: u32 = 17;
const SLOT_BITS: u32 = 6;
const SLOT_COUNT: usize = 1 << SLOT_BITS;
const LEVEL_COUNT: usize = 6;
/// The farthest tick that the wheel can tell apart, 102 days ahead; later timers go round again. It
/// is the last slot of the highest level, never the present one, which the wheel would not leave.
const HORIZON_TICKS: u64 = (SLOT_COUNT as u64 - 1) << (SLOT_BITS * 5);
const _: () = assert!(LEVEL_COUNT == 6, "the horizon is that of six levels");

/// Marks the ends of lists.
const NONE: usize = usize::MAX;

/// See the module's head.
pub(crate) struct Wheel {
    /// The tick up to which timers have fired.
    elapsed: u64,
    levels: [Level; LEVEL_COUNT],
    timers: Slab<Timer>,
    /// Counts timers, so that the key of a fired timer does not match the next timer in its slot.
    generation: u64,
}

/// Names a timer that was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimerKey {
    index: usize,
    generation: u64,
}

struct Level {
    /// Bit `n`: slot `n` has timers (I3).
    occupied: u64,
    /// First timer of each slot's list.
    heads: [usize; SLOT_COUNT],
    /// Last timer of each slot's list: where new ones go, so that equal ticks fire in order.
    tails: [usize; SLOT_COUNT],
}

struct Timer {
    generation: u64,
    /// The tick when it is due.
    due: u64,
    waker: Waker,
    level: usize,
    slot: usize,
    previous: usize,
    next: usize,
}

impl Wheel {
    /// A wheel without timers at time `now`.
    pub(crate) fn new(now: Instant) -> Self {
        let level = || Level {
            occupied: 0,
            heads: [NONE; SLOT_COUNT],
            tails: [NONE; SLOT_COUNT],
        };
        Self {
            elapsed: now.nanos() >> TICK_NANOS_BITS,
            levels: std::array::from_fn(|_| level()),
            timers: Slab::new(),
            generation: 0,
        }
    }

    /// Wakes `waker` once the time is `deadline` or later.
    pub(crate) fn set(&mut self, deadline: Instant, waker: Waker) -> TimerKey {
        let round_up = (1 << TICK_NANOS_BITS) - 1;
        let due = deadline.nanos().saturating_add(round_up) >> TICK_NANOS_BITS;
        self.generation += 1;
        let generation = self.generation;
        let timer = Timer {
            generation,
            due,
            waker,
            level: 0,
            slot: 0,
            previous: NONE,
            next: NONE,
        };
        let index = self.timers.insert(timer);
        self.link(index);
        TimerKey { index, generation }
    }

    /// Replaces the waker of a timer. Returns `false` if it has fired.
    pub(crate) fn replace_waker(&mut self, key: TimerKey, waker: &Waker) -> bool {
        match self.timers.get_mut(key.index) {
            Some(timer) if timer.generation == key.generation => {
                timer.waker.clone_from(waker);
                true
            }
            _ => false,
        }
    }

    /// Cancels a timer, if it has not fired.
    pub(crate) fn cancel(&mut self, key: TimerKey) {
        let is_set = self
            .timers
            .get(key.index)
            .is_some_and(|timer| timer.generation == key.generation);
        if is_set {
            self.unlink(key.index);
            self.timers.remove(key.index);
        }
    }

    /// Moves on to `now` and returns the wakers of all timers that are due, in their order.
    pub(crate) fn expire(&mut self, now: Instant, due: &mut Vec<Waker>) {
        let target = now.nanos() >> TICK_NANOS_BITS;
        while let Some((level, slot, tick)) = self.next_slot() {
            if target < tick {
                break;
            }
            assert!(self.elapsed <= tick, "the wheel does not turn back");
            self.elapsed = tick;
            let mut index = self.levels[level].take(slot);
            while index != NONE {
                let timer = self
                    .timers
                    .get(index)
                    .expect("a list names timers that are set");
                let next = timer.next;
                if timer.due <= tick {
                    let timer = self.timers.remove(index).expect("just seen");
                    due.push(timer.waker);
                } else {
                    self.link(index);
                }
                index = next;
            }
        }
        self.elapsed = self.elapsed.max(target);
    }

    /// A time at which it is worth calling [`Self::expire`] again: not after the next deadline's
    /// tick. `None` if there are no timers.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.next_slot()
            .map(|(_, _, tick)| Instant::from_nanos(tick << TICK_NANOS_BITS))
    }

    /// The first slot with timers, and the tick when the wheel comes to it.
    fn next_slot(&self) -> Option<(usize, usize, u64)> {
        // A lower level's slots all come before a higher level's next one.
        (0..LEVEL_COUNT).find_map(|level| {
            let shift = SLOT_BITS * stdx::to_u32(level);
            let present = stdx::low_u32((self.elapsed >> shift) & (SLOT_COUNT as u64 - 1));
            let ahead = self.levels[level].occupied.rotate_right(present);
            if ahead == 0 {
                return None;
            }
            let distance = ahead.trailing_zeros();
            let slot = (present + distance) % 64;
            let tick = ((self.elapsed >> shift) + u64::from(distance)) << shift;
            Some((level, stdx::to_usize(slot), tick.max(self.elapsed)))
        })
    }

    /// Puts a timer into the list where it belongs now.
    fn link(&mut self, index: usize) {
        let timer = self
            .timers
            .get_mut(index)
            .expect("a timer is linked after it was stored");
        // Due already: the present slot. Beyond the horizon: the last slot, and round again.
        let due = timer
            .due
            .clamp(self.elapsed, self.elapsed.saturating_add(HORIZON_TICKS));
        let differing = (self.elapsed ^ due) | (SLOT_COUNT as u64 - 1);
        let level = stdx::to_usize((63 - differing.leading_zeros()) / SLOT_BITS);
        let level = level.min(LEVEL_COUNT - 1);
        let shift = SLOT_BITS * stdx::to_u32(level);
        let slot = stdx::to_usize((due >> shift) & (SLOT_COUNT as u64 - 1));
        let lists = &mut self.levels[level];
        let previous = lists.tails[slot];
        (timer.level, timer.slot, timer.previous, timer.next) = (level, slot, previous, NONE);
        lists.tails[slot] = index;
        lists.occupied |= 1 << slot;
        if previous == NONE {
            lists.heads[slot] = index;
        } else {
            self.timers
                .get_mut(previous)
                .expect("a list names timers that are set")
                .next = index;
        }
    }

    fn unlink(&mut self, index: usize) {
        let timer = self
            .timers
            .get(index)
            .expect("the caller has seen this timer");
        let (level, slot) = (timer.level, timer.slot);
        let (previous, next) = (timer.previous, timer.next);
        let lists = &mut self.levels[level];
        match self.timers.get_mut(previous) {
            Some(before) => before.next = next,
            None => lists.heads[slot] = next,
        }
        match self.timers.get_mut(next) {
            Some(after) => after.previous = previous,
            None => lists.tails[slot] = previous,
        }
        if lists.heads[slot] == NONE {
            lists.occupied &= !(1 << slot);
        }
    }
}

impl Level {
    /// Empties a slot's list and returns its first timer.
    fn take(&mut self, slot: usize) -> usize {
        self.occupied &= !(1 << slot);
        self.tails[slot] = NONE;
        std::mem::replace(&mut self.heads[slot], NONE)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::Wake;
    use std::time::Duration;

    use env::Random;
    use sync::Mutex;

    use super::*;

    struct Noting {
        number: usize,
        fired: Arc<Mutex<Vec<usize>>>,
    }

    impl Wake for Noting {
        fn wake(self: Arc<Self>) {
            self.fired.lock().push(self.number);
        }
    }

    struct Bench {
        wheel: Wheel,
        fired: Arc<Mutex<Vec<usize>>>,
    }

    impl Bench {
        fn new(start: Instant) -> Self {
            Self {
                wheel: Wheel::new(start),
                fired: Arc::default(),
            }
        }

        fn set(&mut self, number: usize, deadline: Instant) -> TimerKey {
            let waker = Arc::new(Noting {
                number,
                fired: self.fired.clone(),
            });
            self.wheel.set(deadline, waker.into())
        }

        fn expire(&mut self, now: Instant) -> Vec<usize> {
            let mut due = Vec::new();
            self.wheel.expire(now, &mut due);
            due.into_iter().for_each(Waker::wake);
            std::mem::take(&mut self.fired.lock())
        }
    }

    /// A timer beyond the horizon waits in a slot ahead, with no other timer before it.
    #[test]
    fn the_farthest_timer_alone_does_not_hold_the_wheel() {
        for start in [1 << 17, 123_456_789_012, (1 << 52) + (1 << 47) + 7] {
            let now = Instant::from_nanos(start);
            let mut bench = Bench::new(now);
            bench.set(1, Instant::from_nanos(u64::MAX));
            let next = bench.wheel.next_expiry().expect("a timer is set");
            assert!(now < next, "{now:?} {next:?}");
            assert_eq!(bench.expire(now + Duration::from_secs(1)), []);
        }
    }

    #[test]
    fn fires_in_order_never_early_and_cancels() {
        let start = Instant::from_nanos(123_456_789_012);
        let mut bench = Bench::new(start);
        let at = |millis| start + Duration::from_millis(millis);
        bench.set(1, at(500));
        let cancelled = bench.set(2, at(20));
        bench.set(3, at(20));
        bench.set(4, at(7_200_000));
        bench.set(5, start);
        bench.wheel.cancel(cancelled);
        bench.wheel.cancel(cancelled);
        assert_eq!(bench.expire(at(1)), [5]);
        assert_eq!(bench.expire(at(19)), []);
        assert!(bench.wheel.next_expiry().unwrap() <= at(21));
        assert_eq!(bench.expire(at(600)), [3, 1]);
        assert_eq!(bench.expire(at(7_199_999)), []);
        assert_eq!(bench.expire(at(7_200_001)), [4]);
        assert_eq!(bench.wheel.next_expiry(), None);
    }

    #[test]
    fn agrees_with_a_sorted_list_whatever_the_seed() {
        for seed in 0..50 {
            let mut random = Random::new(seed);
            let mut now = Instant::from_nanos(random.below(1 << 50));
            let mut bench = Bench::new(now);
            let mut expected: Vec<(Instant, usize, TimerKey)> = Vec::new();
            for number in 0..300 {
                let reach = 1 << (10 + random.below(34));
                let deadline = now + Duration::from_nanos(random.below(reach));
                let key = bench.set(number, deadline);
                expected.push((deadline, number, key));
                if random.chance(200) {
                    let (_, _, key) = expected.swap_remove(random.index(expected.len()));
                    bench.wheel.cancel(key);
                }
                let stride = 1 << (10 + random.below(30));
                now = now + Duration::from_nanos(random.below(stride));
                // Never early: what fires is due.
                for fired in bench.expire(now) {
                    let at = expected.iter().position(|it| it.1 == fired).unwrap();
                    assert!(expected.swap_remove(at).0 <= now);
                }
                // Never late by more than a tick: what is left is not due.
                let tick = Duration::from_nanos(1 << TICK_NANOS_BITS);
                assert!(expected.iter().all(|it| now < it.0 + tick), "seed {seed}");
            }
            // Each step goes to the next expiry, as the loop does; all fire in tick order.
            let mut last = 0;
            while let Some(next) = bench.wheel.next_expiry() {
                for fired in bench.expire(next) {
                    let at = expected.iter().position(|it| it.1 == fired).unwrap();
                    let tick = expected.swap_remove(at).0.nanos() >> TICK_NANOS_BITS;
                    assert!(last <= tick, "seed {seed}");
                    last = tick;
                }
            }
            assert!(expected.is_empty());
        }
    }

    #[test]
    fn a_waker_can_be_replaced_until_it_fired() {
        let mut bench = Bench::new(Instant::default());
        let key = bench.set(1, Instant::from_nanos(5));
        let other = Arc::new(Noting {
            number: 2,
            fired: bench.fired.clone(),
        });
        assert!(bench.wheel.replace_waker(key, &other.clone().into()));
        assert_eq!(bench.expire(Instant::from_nanos(1 << 20)), [2]);
        assert!(!bench.wheel.replace_waker(key, &other.into()));
    }

    #[test]
    fn beyond_the_horizon_goes_round_again() {
        let mut bench = Bench::new(Instant::from_nanos(77));
        let far = Instant::from_nanos(HORIZON_TICKS << (TICK_NANOS_BITS + 1));
        bench.set(1, far);
        bench.set(2, Instant::from_nanos(u64::MAX));
        assert_eq!(
            bench.expire(Instant::from_nanos(HORIZON_TICKS << TICK_NANOS_BITS)),
            []
        );
        assert_eq!(bench.expire(far + Duration::from_millis(1)), [1]);
    }
}
