//! The sessions that wait for a connection to one server, first come, first served.
//!
//! Each worker's sessions stand in a line of their own, since to change its worker costs a
//! connection as much as several statements. A connection that comes back stays on its worker if
//! sessions wait there, unless one of these holds:
//!
//! * A line is *late*: its first session has waited longer than the first one here by
//!   [`LATE_PART`], and its line has got none for that in the last [`PAUSE_PART`] of its wait. The
//!   connection goes to the one of such lines whose first session came first.
//! * The worker of the first of all has fewer connections than its share, by its connections and
//!   the sessions that wait; and more than its share are here.
//!
//! It also stays while another one is on its way. The order of time alone would not do: a
//! connection that has moved is felt only after a whole wait, when the sessions that it served come
//! again. Until then others would follow, too many, and all come back later. So lines swing, and
//! the worker that has no connection stands still.
//!
//! (Q1) A waiter gets its number when it comes, and leaves by that number from any place. So one
//! that gives up leaves no hole.
//! (Q2) A session that holds another connection has a place among all, and one among its like.
//! (Q3) The sessions of a worker are served in their order. The first of all is served at the
//! latest when its line is late, its pause is over, and no other connection is on its way; then it
//! is the first of the late ones.
//! (Q4) The connections of a worker are those in use, in its own stacks, promised to one of its
//! sessions, or on their way to the shared stacks.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use env::Instant;

use crate::keys::Login;

/// The part of its first session's wait by which that is longer than another one's, in a line that
/// is late.
const LATE_PART: u32 = 8;

/// The same as a time, if the part is shorter.
const LATE_TIME: Duration = Duration::from_millis(1);

/// A line gets connections because it is late once in this part of its first session's wait.
const PAUSE_PART: u32 = 8;

/// The number of a waiter in its server's queue, which rises, and its worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sequence {
    number: u64,
    worker: usize,
}

/// Whether a session that asks holds a connection already, to any server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It holds none, so no other session waits for it.
    HoldsNone,
    /// It holds one.
    HoldsOne,
}

/// A session that begins to wait.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Newcomer {
    pub(crate) login: Login,
    pub(crate) standing: Standing,
    pub(crate) worker: usize,
    /// When it came.
    pub(crate) since: Instant,
}

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Queue<W> {
    next: u64,
    /// By worker.
    lines: Vec<Line<W>>,
    /// Sessions of all lines.
    len: usize,
    /// Connections on their way to sessions of other workers, which have left the queue.
    moving: u32,
    /// Those that hold a connection.
    holding: BTreeSet<Sequence>,
}

/// The sessions of a worker that wait.
#[derive(Debug)]
struct Line<W> {
    /// In the order of their numbers.
    places: VecDeque<Place<W>>,
    /// Connections of the worker (Q4).
    held: u32,
    /// When it got a connection because it was late.
    moved_at: Instant,
}

#[derive(Debug)]
struct Place<W> {
    number: u64,
    login: Login,
    since: Instant,
    waiter: W,
}

/// A line that gets a connection.
#[derive(Debug, Clone, Copy)]
struct Next {
    worker: usize,
    /// Because it is late.
    is_late: bool,
}

/// A waiter that left the queue, and what it waits for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Left<W> {
    pub(crate) login: Login,
    pub(crate) worker: usize,
    pub(crate) waiter: W,
}

impl<W> Default for Queue<W> {
    fn default() -> Self {
        Self {
            next: 0,
            lines: Vec::new(),
            len: 0,
            moving: 0,
            holding: BTreeSet::new(),
        }
    }
}

impl<W> Default for Line<W> {
    fn default() -> Self {
        Self {
            places: VecDeque::new(),
            held: 0,
            moved_at: Instant::default(),
        }
    }
}

impl<W> Line<W> {
    /// Since when its first session waits; `None` if no session does.
    fn since(&self) -> Option<Instant> {
        self.places.front().map(|it| it.since)
    }

    /// What the worker's share goes by: sessions that wait, and connections, most of which a
    /// session has.
    fn wanted(&self) -> u64 {
        stdx::to_u64(self.places.len()) + u64::from(self.held)
    }

    /// Whether it still has a larger share than another one after it has given that a connection.
    fn is_rich_beside(&self, other: &Self) -> bool {
        let (own, others) = (u64::from(self.held), u64::from(other.held));
        (others + 1) * self.wanted() < own.saturating_sub(1) * other.wanted()
    }

    /// Whether it is late beside a line whose first session waits since then.
    fn is_late(&self, beside: Instant, now: Instant) -> bool {
        self.since().is_some_and(|since| {
            let waited = now.since(since);
            LATE_TIME.max(waited / LATE_PART) < beside.since(since)
                && waited / PAUSE_PART <= now.since(self.moved_at)
        })
    }
}

impl<W> Queue<W> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether a session waits that holds another connection.
    pub(crate) fn has_holding(&self) -> bool {
        !self.holding.is_empty()
    }

    /// Adds a waiter behind all others.
    pub(crate) fn join(&mut self, newcomer: Newcomer, waiter: W) -> Sequence {
        let Newcomer {
            login,
            standing,
            worker,
            since,
        } = newcomer;
        let number = self.next;
        self.next += 1;
        self.len += 1;
        self.line(worker).places.push_back(Place {
            number,
            login,
            since,
            waiter,
        });
        let sequence = Sequence { number, worker };
        if standing == Standing::HoldsOne {
            self.holding.insert(sequence);
        }
        sequence
    }

    /// Takes the first waiter of all.
    pub(crate) fn leave_first(&mut self) -> Option<Left<W>> {
        let (worker, _) = self.first()?;
        self.leave_line(worker)
    }

    /// Takes the waiter for a connection that comes back on a worker.
    pub(crate) fn leave_next(&mut self, worker: usize, now: Instant) -> Option<Left<W>> {
        let Next { worker, is_late } = self.next(worker, now)?;
        if is_late {
            self.line(worker).moved_at = now;
        }
        self.leave_line(worker)
    }

    /// What the waiter wants that [`Queue::leave_next`] takes.
    pub(crate) fn next_login(&self, worker: usize, now: Instant) -> Option<Login> {
        let Next { worker, .. } = self.next(worker, now)?;
        Some(self.lines.get(worker)?.places.front()?.login)
    }

    /// The line whose first session gets a connection that comes back on a worker.
    fn next(&self, worker: usize, now: Instant) -> Option<Next> {
        let (first_worker, _) = self.first()?;
        let of = |worker| Next {
            worker,
            is_late: false,
        };
        let own = self.lines.get(worker);
        let Some((own, since)) = own.and_then(|it| Some((it, it.since()?))) else {
            return Some(of(first_worker));
        };
        if 0 < self.moving {
            return Some(of(worker));
        }
        let lines = self.lines.iter().enumerate();
        let late = lines.filter(|(_, line)| line.is_late(since, now));
        if let Some((worker, _)) = late.min_by_key(|(_, line)| line.since()) {
            let is_late = true;
            return Some(Next { worker, is_late });
        }
        let first = self.lines.get(first_worker)?;
        let is_rich = own.is_rich_beside(first);
        Some(of(if is_rich { first_worker } else { worker }))
    }

    /// A worker has one more connection.
    pub(crate) fn hold(&mut self, worker: usize) {
        self.line(worker).held += 1;
    }

    /// A worker has one connection less.
    pub(crate) fn let_go(&mut self, worker: usize) {
        let held = &mut self.line(worker).held;
        assert!(0 < *held, "a worker gives what it has");
        *held -= 1;
    }

    fn line(&mut self, worker: usize) -> &mut Line<W> {
        if self.lines.len() <= worker {
            self.lines.resize_with(worker + 1, Line::default);
        }
        &mut self.lines[worker]
    }

    /// Connections of all workers.
    #[cfg(test)]
    pub(crate) fn held_count(&self) -> u32 {
        self.lines.iter().map(|it| it.held).sum()
    }

    /// A connection is on its way to a session of another worker.
    pub(crate) fn departs(&mut self) {
        self.moving += 1;
    }

    /// It has arrived, or is lost.
    pub(crate) fn arrives(&mut self) {
        assert!(0 < self.moving, "what arrives has departed");
        self.moving -= 1;
    }

    /// Takes the first of those that hold a connection.
    pub(crate) fn leave_first_holding(&mut self) -> Option<Left<W>> {
        let sequence = *self.holding.first()?;
        self.leave(sequence)
    }

    /// Takes out a waiter; `None` if it has left before.
    pub(crate) fn leave(&mut self, sequence: Sequence) -> Option<Left<W>> {
        let places = &mut self.lines.get_mut(sequence.worker)?.places;
        let found = places.binary_search_by_key(&sequence.number, |it| it.number);
        let place = places.remove(found.ok()?)?;
        Some(self.left(sequence, place))
    }

    /// The first waiter of all, and its worker.
    fn first(&self) -> Option<(usize, &Place<W>)> {
        let firsts = self.lines.iter().enumerate();
        let firsts = firsts.filter_map(|(worker, line)| Some((worker, line.places.front()?)));
        firsts.min_by_key(|(_, place)| place.number)
    }

    fn leave_line(&mut self, worker: usize) -> Option<Left<W>> {
        let place = self.lines.get_mut(worker)?.places.pop_front()?;
        let number = place.number;
        Some(self.left(Sequence { number, worker }, place))
    }

    fn left(&mut self, sequence: Sequence, place: Place<W>) -> Left<W> {
        self.len -= 1;
        self.holding.remove(&sequence);
        let Place { login, waiter, .. } = place;
        Left {
            login,
            worker: sequence.worker,
            waiter,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{AccountId, ClassId};

    fn newcomer(standing: Standing, worker: usize, since: Instant) -> Newcomer {
        let login = Login {
            account: AccountId(0),
            class: ClassId(0),
            client: None,
        };
        Newcomer {
            login,
            standing,
            worker,
            since,
        }
    }

    #[test]
    fn who_gives_up_leaves_no_hole_in_either_line() {
        let at = Instant::from_nanos(0);
        let mut queue = Queue::default();
        let standings = [
            Standing::HoldsNone,
            Standing::HoldsOne,
            Standing::HoldsNone,
            Standing::HoldsOne,
        ];
        let places: Vec<_> = (0..)
            .zip(standings)
            .map(|(name, standing)| queue.join(newcomer(standing, name % 2, at), name))
            .collect();
        assert_eq!(queue.leave(places[0]).map(|it| it.waiter), Some(0));
        assert_eq!(queue.leave(places[0]), None);
        assert_eq!(queue.leave(places[1]).map(|it| it.waiter), Some(1));
        assert!(queue.has_holding());
        assert_eq!(queue.leave_first_holding().map(|it| it.waiter), Some(3));
        assert!(!queue.has_holding());
        assert_eq!(queue.leave_first_holding(), None);
        assert!(queue.next_login(0, at).is_some());
        assert_eq!(queue.leave_first().map(|it| it.waiter), Some(2));
        assert_eq!(queue.leave_first(), None);
        assert_eq!((queue.len(), queue.is_empty()), (0, true));
        assert_eq!(queue.next_login(0, at), None);
    }

    /// Two sessions of workers 0 and 1, the second of which came so much later.
    fn two(later: Duration) -> Queue<char> {
        let begin = Instant::from_nanos(1_000);
        let mut queue = Queue::default();
        queue.join(newcomer(Standing::HoldsNone, 0, begin), 'a');
        queue.join(newcomer(Standing::HoldsNone, 1, begin + later), 'b');
        queue
    }

    #[test]
    fn a_connection_moves_to_a_session_that_is_late() {
        let step = Duration::from_nanos(1);
        let served = |later, worker, waited| {
            let now = Instant::from_nanos(1_000) + waited;
            two(later).leave_next(worker, now).map(|it| it.waiter)
        };
        // Where the first has waited for a short time, or for a longer one.
        for (waited, late) in [(8, 1), (80, 10)] {
            let [waited, late] = [waited, late].map(Duration::from_millis);
            assert_eq!(served(late - step, 1, waited), Some('b'));
            assert_eq!(served(late, 1, waited), Some('b'));
            assert_eq!(served(late + step, 1, waited), Some('a'));
            // A worker without sessions that wait.
            assert_eq!(served(Duration::ZERO, 2, waited), Some('a'));
            assert_eq!(served(Duration::ZERO, 0, waited), Some('a'));
        }
    }

    #[test]
    fn connections_move_to_late_sessions_with_pauses() {
        let begin = Instant::from_nanos(1_000);
        let at = |millis| begin + Duration::from_millis(millis);
        let mut queue = Queue::default();
        for name in ['a', 'b', 'c'] {
            queue.join(newcomer(Standing::HoldsNone, 0, at(0)), name);
        }
        for name in ['x', 'y', 'z'] {
            queue.join(newcomer(Standing::HoldsNone, 1, at(60)), name);
        }
        let mut served = |millis| queue.leave_next(1, at(millis)).map(|it| it.waiter);
        assert_eq!(served(90), Some('a'));
        assert_eq!(served(91), Some('x'));
        assert_eq!(served(102), Some('y'));
        // An eighth of the 103 ms of the first is over.
        assert_eq!(served(103), Some('b'));
        assert_eq!(served(104), Some('z'));
    }

    #[test]
    fn a_worker_with_more_than_its_share_gives_a_connection_away() {
        let now = Instant::from_nanos(1_000);
        let served = |held: [u32; 2]| {
            let mut queue = two(Duration::ZERO);
            for worker in [0, 0, 1, 1] {
                queue.join(newcomer(Standing::HoldsNone, worker, now), 'c');
            }
            for (line, held) in queue.lines.iter_mut().zip(held) {
                line.held = held;
            }
            queue.leave_next(1, now).map(|it| it.waiter)
        };
        assert_eq!(served([2, 2]), Some('b'));
        // That would only turn it round.
        assert_eq!(served([2, 3]), Some('b'));
        assert_eq!(served([1, 3]), Some('b'));
        assert_eq!(served([1, 6]), Some('a'));
        assert_eq!(served([0, 4]), Some('a'));
        assert_eq!(served([4, 1]), Some('b'));
    }

    #[test]
    fn a_connection_stays_on_its_worker_while_another_one_is_on_its_way() {
        let now = Instant::from_nanos(1_000);
        let mut queue = two(Duration::from_secs(1));
        queue.departs();
        assert_eq!(queue.leave_next(1, now).map(|it| it.waiter), Some('b'));
        // No session of worker 1 waits now.
        assert_eq!(queue.leave_next(1, now).map(|it| it.waiter), Some('a'));
        let mut queue = two(Duration::from_secs(1));
        queue.departs();
        queue.arrives();
        assert_eq!(queue.leave_next(1, now).map(|it| it.waiter), Some('a'));
    }
}
