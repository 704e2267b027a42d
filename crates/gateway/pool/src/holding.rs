//! Sessions that hold a connection and wait for another: who may wait, and who is the victim.
//!
//! A session that holds nothing keeps no other session waiting. So a deadlock consists of sessions
//! that hold connections and wait for further ones. All of them are registered here, under one
//! mutex. It is taken only where a server has neither a slot within its limit nor one above.
//!
//! Session X *is in the way of* session Y if X holds a connection to the server that Y waits for.
//!
//! (D1) No registered session is in the way of a younger one. A session that begins to wait checks
//! both directions against each session that is registered and still waits:
//!
//! * An older one is in its way: it is the victim itself ([`Judgement::Victim`]).
//! * It is in the way of a younger one: that one is the victim ([`Judgement::Waits`]).
//!
//! So an older session waits for a younger one, and the oldest of all is never a victim of these
//! two rules. What a session holds does not change while it waits. A session that is not registered
//! runs: it will give back its connections, or register and be checked.
//!
//! (D2) A session that holds a connection to the very server that it would wait for is a victim,
//! because it could be the only one that has any.
//!
//! **Theorem.** If each session that runs gives back its connections or begins to wait, and no
//! waiter gives up, then each registered session gets its connection or is a victim.
//!
//! Proof. Assume that some sessions stay registered forever; let Y be the youngest of them, and S
//! the server that it waits for. Y holds no connection to S (D2). No other session that holds one
//! stays registered: it would be older than Y, as Y is the youngest, and D1 forbids that. So each
//! connection to S comes back.
//! A slot above the limit goes to the first session of S's queue that holds something. One within
//! it goes to the first of all, but for some that go to other lines (Q3 in `queue`), because
//! their first sessions have waited nearly as long, or a connection is on its way, or the line of
//! the first of all got one a moment ago. What is on its way arrives or is lost. The sessions of a
//! worker are finitely many and are served in turn. So in the lines
//! that get connections waits have a bound, and the first of all is late soon after that and
//! served. A session ahead of Y that gets a connection leaves the queue, and by the same argument
//! gives it back, or it is a victim.
//! Newcomers join behind Y. The sessions ahead of Y are finitely many, so Y becomes the first and
//! is served. This contradicts the assumption.
//!
//! The obvious rule, an age compared with all who hold a connection to S, would make the ages of
//! all holders known. That costs each use of a connection a write to shared memory, and makes
//! victims of sessions that wait for running ones.
//!
//! Locks inside of the servers are not seen here. A session that waits on a server for a row lock
//! counts as running, and ends by the server's own limits of time.

use env::Instant;
use smallvec::SmallVec;

use crate::keys::ServerId;

/// Which of two sessions is older. The caller keeps it for as long as the session holds anything,
/// and no two sessions have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Age {
    /// When the session began; earlier is older. Its transactions keep its age, so one that was a
    /// victim and is tried again is no younger, and gets through in the end.
    pub began_at: Instant,
    /// Decides between sessions of one moment: the session's number.
    pub session: u64,
}

impl Age {
    fn is_older(self, other: Age) -> bool {
        self < other
    }
}

/// A session that holds connections and waits, or is about to.
#[derive(Debug, Clone)]
pub(crate) struct Holder {
    pub(crate) age: Age,
    /// The servers of its connections.
    pub(crate) held: SmallVec<[ServerId; 4]>,
    /// The server that it waits for.
    pub(crate) wanted: ServerId,
}

impl Holder {
    fn is_in_the_way_of(&self, other: &Holder) -> bool {
        self.held.contains(&other.wanted)
    }
}

/// The registered sessions, each of which holds a connection. So there are no more of them than
/// all servers have connections, and to look at each is cheap enough for so rare a case. `W` is a
/// wait.
#[derive(Debug)]
pub(crate) struct Holders<W> {
    waits: Vec<(Holder, W)>,
}

/// What becomes of a session that is about to wait.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Judgement<W> {
    /// It may not wait.
    Victim,
    /// It may, and these become victims.
    Waits(Vec<W>),
}

impl<W> Default for Holders<W> {
    fn default() -> Self {
        Self { waits: Vec::new() }
    }
}

impl<W: Clone> Holders<W> {
    /// Checks D1 for a newcomer, against all of which `is_waiting` says that they still wait.
    pub(crate) fn judge(&self, newcomer: &Holder, is_waiting: impl Fn(&W) -> bool) -> Judgement<W> {
        if newcomer.is_in_the_way_of(newcomer) {
            return Judgement::Victim;
        }
        let mut victims = Vec::new();
        for (other, wait) in &self.waits {
            let is_older = newcomer.age.is_older(other.age);
            let gives_way = other.is_in_the_way_of(newcomer) && !is_older;
            let has_precedence = newcomer.is_in_the_way_of(other) && is_older;
            // The question is asked last: it takes a mutex, and few are in each other's way.
            if (gives_way || has_precedence) && is_waiting(wait) {
                if gives_way {
                    return Judgement::Victim;
                }
                victims.push(wait.clone());
            }
        }
        Judgement::Waits(victims)
    }

    /// Registers a session that was judged and may wait.
    pub(crate) fn register(&mut self, holder: Holder, wait: W) {
        self.waits.push((holder, wait));
    }

    /// The wait of a session is over.
    pub(crate) fn deregister(&mut self, is_it: impl Fn(&W) -> bool) {
        self.waits.retain(|it| !is_it(&it.1));
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.waits.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(began: u64, held: &[u32], wanted: u32) -> Holder {
        Holder {
            age: Age {
                began_at: Instant::from_nanos(began),
                session: 0,
            },
            held: held.iter().map(|it| ServerId(*it)).collect(),
            wanted: ServerId(wanted),
        }
    }

    #[test]
    fn who_is_in_nobodys_way_waits() {
        let mut holders = Holders::default();
        assert_eq!(
            holders.judge(&holder(1, &[1], 2), |_| true),
            Judgement::Waits(vec![])
        );
        holders.register(holder(1, &[1], 2), 'a');
        // Both wait for the same server, and each holds another one.
        let newcomer = holder(2, &[3], 2);
        assert_eq!(holders.judge(&newcomer, |_| true), Judgement::Waits(vec![]));
    }

    #[test]
    fn of_two_that_cross_the_younger_is_the_victim() {
        let mut holders = Holders::default();
        holders.register(holder(5, &[1], 2), 'a');
        let younger = holder(6, &[2], 1);
        assert_eq!(holders.judge(&younger, |_| true), Judgement::Victim);
        let older = holder(4, &[2], 1);
        assert_eq!(holders.judge(&older, |_| true), Judgement::Waits(vec!['a']));
        // Its wait has ended meanwhile.
        assert_eq!(holders.judge(&younger, |_| false), Judgement::Waits(vec![]));
    }

    #[test]
    fn an_older_one_waits_for_a_younger_one_that_waits() {
        let mut holders = Holders::default();
        holders.register(holder(5, &[1], 2), 'a');
        let older = holder(4, &[3], 1);
        assert_eq!(holders.judge(&older, |_| true), Judgement::Waits(vec![]));
        let younger = holder(6, &[3], 1);
        assert_eq!(holders.judge(&younger, |_| true), Judgement::Victim);
    }

    #[test]
    fn nobody_waits_for_oneself() {
        let holders = Holders::<char>::default();
        let both = holder(1, &[1, 2], 2);
        assert_eq!(holders.judge(&both, |_| true), Judgement::Victim);
    }

    #[test]
    fn a_wait_that_is_over_is_forgotten() {
        let mut holders = Holders::default();
        holders.register(holder(5, &[1], 2), 'a');
        holders.register(holder(6, &[1], 2), 'b');
        holders.deregister(|it| *it == 'a');
        assert_eq!(holders.len(), 1);
        let older = holder(4, &[2], 1);
        assert_eq!(holders.judge(&older, |_| true), Judgement::Waits(vec!['b']));
    }
}
