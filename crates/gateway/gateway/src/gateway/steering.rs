//! [`Steering`]: how many connections the sessions of a server may share.
//!
//! A fixed number, or the one with the most transactions: the controller that limits the
//! transactions of an engine finds it (`admission::Controller`). A session with a connection of the
//! pool is inside, and one that waits for a connection waits for entry. Each time that a session
//! takes a connection counts as a transaction.
//!
//! What a server does under too many is seen as fewer transactions, and as nothing else. The
//! gateway does not know who waits for locks there, nor what a server has put off.

use admission::{Bounds, Controller, Debt, Sample};
use env::Instant;
use pool::{Limits, Numbers};

use crate::options::ServerOptions;

/// The fewest connections that are tried: one that works, and some that wait for their clients.
const LIMIT_MIN: u32 = 4;
/// The first limit: more than a server of a few processors needs, and few enough to be right for
/// one with many.
const LIMIT_START: u32 = 32;

/// See the module's head.
#[derive(Debug)]
pub(super) struct Steering {
    /// The present limits.
    limits: Limits,
    /// The most connections, as set.
    most: u32,
    /// None for a fixed number.
    controller: Option<Controller>,
    /// The end of the last period.
    before: Option<Seen>,
}

/// What was counted until a moment.
#[derive(Debug, Clone, Copy)]
struct Seen {
    at: Instant,
    taken: u64,
    waited: u64,
}

impl Steering {
    pub(super) fn new(options: &ServerOptions) -> Steering {
        let limits = limits(options);
        let mut steering = Steering {
            limits,
            most: 0,
            controller: None,
            before: None,
        };
        steering.configure(options);
        steering
    }

    /// Follows new settings. A limit that was found stays if it may.
    pub(super) fn configure(&mut self, options: &ServerOptions) -> Limits {
        let most = options.connections_max;
        let is_steered = self.controller.is_some();
        if options.is_adaptive != is_steered || self.most != most {
            let bounds = Bounds {
                min: LIMIT_MIN.min(most),
                max: most,
            };
            let start = if is_steered {
                self.limit()
            } else {
                LIMIT_START
            };
            self.controller = options.is_adaptive.then(|| Controller::new(bounds, start));
        }
        if !options.is_adaptive {
            // What is counted until the next search belongs to none of its periods.
            self.before = None;
        }
        self.most = most;
        let steered = self.controller.as_ref().map(Controller::limit);
        self.limits = Limits {
            limit: steered.unwrap_or(most),
            ..limits(options)
        };
        self.limits
    }

    pub(super) fn is_adaptive(&self) -> bool {
        self.controller.is_some()
    }

    /// The present limit.
    pub(super) fn limit(&self) -> u32 {
        self.limits.limit
    }

    /// A period has ended. Returns limits that differ from the last ones.
    pub(super) fn step(&mut self, now: Instant, numbers: &Numbers) -> Option<Limits> {
        let controller = self.controller.as_mut()?;
        let seen = Seen {
            at: now,
            taken: numbers.taken_own + numbers.taken_shared + numbers.taken_waiting,
            waited: numbers.waited,
        };
        let before = self.before.replace(seen)?;
        let span = now.since(before.at);
        let limit = controller.step(&Sample {
            span_us: u64::try_from(span.as_micros()).unwrap_or(u64::MAX),
            commits: seen.taken.saturating_sub(before.taken),
            statements: 0,
            admitted: count(numbers.open.saturating_sub(numbers.idle)),
            blocked: None,
            waiting: count(numbers.waiting),
            queued: seen.waited.saturating_sub(before.waited),
            debt: Debt::default(),
        });
        if limit == self.limits.limit {
            return None;
        }
        self.limits.limit = limit;
        Some(self.limits)
    }
}

fn count(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// What the settings allow. Who holds other connections may exceed the most, whatever the limit is.
fn limits(options: &ServerOptions) -> Limits {
    let usual = Limits::new(options.connections_max);
    Limits {
        overflow: options.overflow.unwrap_or(usual.overflow),
        ..usual
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use admission::controller::PERIOD_US;
    use backend::{Target, TlsMode};
    use monitor::Rank;
    use runtime::Address;

    use super::*;

    /// A server with a fixed limit of one connection.
    pub(in crate::gateway) fn options(name: &str, port: u16) -> ServerOptions {
        ServerOptions {
            name: name.into(),
            target: Target {
                address: Address::Tcp(([127, 0, 0, 1], port).into()),
                tls: TlsMode::Off,
                proxy_header: None,
                connect_timeout: Duration::from_secs(1),
                io_timeout: Duration::from_secs(1),
            },
            rank: Rank(0),
            connections_max: 1,
            overflow: None,
            is_adaptive: false,
        }
    }

    fn adaptive(most: u32) -> ServerOptions {
        ServerOptions {
            connections_max: most,
            is_adaptive: true,
            ..options("a", 1)
        }
    }

    /// A server that does most with 20 connections, under 1,000 sessions.
    fn run(steering: &mut Steering, seconds: u32) {
        let (mut numbers, mut now) = (Numbers::default(), Instant::default());
        for _ in 0..seconds * 10 {
            let inside = f64::from(steering.limit());
            let rate = 500.0 * (inside / 20.0).min(20.0 / inside);
            numbers.taken_waiting += stdx::f64_to_u64(rate);
            numbers.waited = numbers.taken_waiting;
            numbers.open = u64::from(steering.limit());
            numbers.waiting = 1000 - numbers.open;
            now = now + Duration::from_micros(PERIOD_US);
            steering.step(now, &numbers);
        }
    }

    #[test]
    fn a_fixed_limit_is_what_is_set() {
        let mut fixed = options("a", 1);
        fixed.connections_max = 7;
        let mut steering = Steering::new(&fixed);
        assert!(!steering.is_adaptive());
        run(&mut steering, 2);
        assert_eq!(steering.limit(), 7);
        fixed.connections_max = 9;
        fixed.overflow = Some(1);
        let limits = steering.configure(&fixed);
        assert_eq!((limits.limit, limits.overflow), (9, 1));
    }

    #[test]
    fn the_limit_with_the_most_transactions_is_found_and_kept() {
        let mut steering = Steering::new(&adaptive(500));
        assert_eq!(steering.limit(), LIMIT_START);
        run(&mut steering, 20);
        let found = steering.limit();
        assert!((16..=26).contains(&found), "{found}");
        assert_eq!(steering.configure(&adaptive(500)).limit, found);
        assert_eq!(steering.configure(&adaptive(400)).limit, found);
        assert_eq!(steering.configure(&adaptive(10)).limit, 10);
        let fixed = ServerOptions {
            connections_max: 50,
            ..options("a", 1)
        };
        assert_eq!(steering.configure(&fixed).limit, 50);
        assert!(!steering.is_adaptive());
    }

    #[test]
    fn a_limit_stays_within_the_settings() {
        for most in [1, 3, 12] {
            let mut steering = Steering::new(&adaptive(most));
            assert_eq!(steering.limit(), most);
            run(&mut steering, 5);
            assert!((1..=most).contains(&steering.limit()));
        }
    }

    #[test]
    fn a_search_that_begins_again_sees_nothing_of_before() {
        let mut steering = Steering::new(&adaptive(500));
        let mut numbers = Numbers::default();
        assert!(steering.step(Instant::default(), &numbers).is_none());
        let fixed = ServerOptions {
            is_adaptive: false,
            ..adaptive(500)
        };
        steering.configure(&fixed);
        steering.configure(&adaptive(500));
        (numbers.waited, numbers.taken_waiting) = (9_000, 9_000);
        let later = Instant::default() + Duration::from_secs(3600);
        assert!(steering.step(later, &numbers).is_none());
        let controller = steering.controller.as_ref();
        let decision = controller.map(Controller::decision);
        assert_eq!(decision, Some(admission::Decision::Free));
    }

    #[test]
    fn few_sessions_leave_the_limit_alone() {
        let mut steering = Steering::new(&adaptive(500));
        let (mut numbers, mut now) = (Numbers::default(), Instant::default());
        for _ in 0..50 {
            numbers.taken_own += 100;
            numbers.open = 5;
            now = now + Duration::from_micros(PERIOD_US);
            assert!(steering.step(now, &numbers).is_none());
        }
    }
}
