//! The controller against synthetic engines: curves of throughput over the number of transactions
//! inside, with chance, and with loads that change. Time is simulated, and chance has a seed.

#![forbid(unsafe_code)]

use admission::controller::PERIOD_US;
use admission::{Bounds, Controller, Debt, Decision, Sample};

const BOUNDS: Bounds = Bounds { min: 8, max: 8192 };
const START: u32 = 64;
/// Periods in a second.
const SECOND: u32 = 10;

/// Throughput over the number of transactions inside.
#[derive(Debug, Clone, Copy)]
enum Shape {
    /// Rises to the knee, then falls as locks are waited for.
    Thrashing { knee: f64, loss: f64 },
    /// The universal law of scalability, with its top at the knee.
    Universal { knee: f64 },
    /// Rises to the knee, and beyond it is a fraction.
    Cliff { knee: f64, rest: f64 },
    /// Rises to the knee, then loses a share each octave.
    Plateau { knee: f64, loss: f64 },
    /// Rises ever less while more and more wait for rows, as TPC-C on ten warehouses.
    Gentle { half: f64 },
    /// Rises all the way: each transaction waits for a disk.
    Rising { half: f64 },
    /// One is enough.
    Flat,
}

impl Shape {
    /// As a part of the most there could be.
    fn at(self, inside: f64) -> f64 {
        match self {
            Shape::Thrashing { knee, loss } => {
                let fall = 1.0 + loss * (inside / knee - 1.0).max(0.0);
                round(knee / inside, fall)
            }
            Shape::Universal { knee } => {
                let of =
                    |n: f64| n / (1.0 + 0.02 * (n - 1.0) + 0.98 / knee.powi(2) * n * (n - 1.0));
                of(inside) / of(knee)
            }
            Shape::Cliff { knee, rest } if knee < inside => rest,
            Shape::Cliff { knee, .. } => inside / knee,
            Shape::Plateau { knee, loss } => {
                let fall = (1.0 - loss).powf(-(inside / knee).log2().max(0.0));
                round(knee / inside, fall)
            }
            Shape::Gentle { half } => 1.0 - 0.26 * (-inside / half).exp2(),
            Shape::Rising { half } => inside / (inside + half),
            Shape::Flat => 1.0,
        }
    }

    fn is_cliff(self) -> bool {
        matches!(self, Shape::Cliff { .. })
    }

    /// What the controller has to reach, as a share of the best: in the mean, and with each seed. A
    /// cliff is nothing that engines have: each trial beyond its edge costs most of the throughput,
    /// and beyond it nothing tells the way back. So one search of some fifty stays there.
    fn least_shares(self) -> (f64, f64) {
        if self.is_cliff() {
            (0.88, 0.25)
        } else {
            (0.95, 0.85)
        }
    }

    /// The share of those inside that wait for locks. Others lose throughput in ways that only show
    /// in it, as a server behind a gateway.
    fn blocked(self, inside: f64) -> Option<f64> {
        match self {
            Shape::Thrashing { knee, .. } | Shape::Cliff { knee, .. } => {
                Some((1.0 - knee / inside).max(0.0))
            }
            Shape::Gentle { half } => Some(inside / (inside + 4.0 * half)),
            Shape::Rising { .. } => Some(0.0),
            Shape::Universal { .. } | Shape::Plateau { .. } | Shape::Flat => None,
        }
    }
}

/// One through the larger of two times, with the corner between them rounded off: engines have
/// none.
fn round(rise: f64, fall: f64) -> f64 {
    (rise.powi(6) + fall.powi(6)).powf(-1.0 / 6.0)
}

/// A load.
#[derive(Debug, Clone, Copy)]
struct Load {
    shape: Shape,
    /// Commits a second at the top.
    top: f64,
    clients: f64,
}

/// Thousands of clients without conflicts.
const CALM: Load = Load {
    shape: Shape::Rising { half: 300.0 },
    top: 20_000.0,
    clients: 4096.0,
};

impl Load {
    /// What the best fixed limit gives, as a part of `top`.
    fn best(&self) -> f64 {
        (BOUNDS.min..=BOUNDS.max)
            .map(|limit| self.shape.at(f64::from(limit).min(self.clients)))
            .fold(0.0, f64::max)
    }
}

/// Chance.
struct Dice(u64);

impl Dice {
    fn unit(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        f64::from(u32::try_from(self.0 >> 32).expect("32 bits")) / f64::from(u32::MAX)
    }

    /// About a normal distribution: mean 0, deviation 1.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}

/// An engine whose transactions the controller limits.
struct Engine {
    dice: Dice,
    /// The deviation of a period's throughput, as a share.
    noise: f64,
    inside: f64,
    controller: Controller,
    debt: Debt,
}

impl Engine {
    fn new(seed: u64, noise: f64) -> Self {
        Self {
            dice: Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            noise,
            inside: 0.0,
            controller: Controller::new(BOUNDS, START),
            debt: Debt::default(),
        }
    }

    /// A period; returns its throughput as a part of the load's top.
    fn period(&mut self, load: &Load) -> f64 {
        let limit = f64::from(self.controller.limit());
        let wanted = limit.min(load.clients);
        let rate = load.top * load.shape.at(self.inside.max(1.0));
        // More come in at once; others leave as they end.
        let ended = rate * 0.1;
        self.inside = wanted.max(self.inside - ended).min(load.clients);
        let expected = load.top * load.shape.at(self.inside) * 0.1;
        let chance =
            expected.sqrt() * self.dice.normal() + expected * self.noise * self.dice.normal();
        let commits = (expected + chance).max(0.0).round();
        let waiting = load.clients - self.inside;
        let blocked = load.shape.blocked(self.inside);
        self.controller.step(&Sample {
            span_us: PERIOD_US,
            commits: whole(commits),
            statements: whole(commits),
            admitted: small(self.inside),
            blocked: blocked.map(|share| small(share * self.inside)),
            waiting: small(waiting),
            queued: if 0.0 < waiting { whole(commits) } else { 0 },
            debt: self.debt,
        });
        commits / (load.top * 0.1)
    }

    /// The mean of some seconds, as a part of the top.
    fn mean(&mut self, load: &Load, seconds: u32) -> f64 {
        let periods = seconds * SECOND;
        (0..periods).map(|_| self.period(load)).sum::<f64>() / f64::from(periods)
    }
}

fn whole(number: f64) -> u64 {
    stdx::f64_to_u64(number.round())
}

fn small(number: f64) -> u32 {
    u32::try_from(whole(number)).expect("counts of this test are small")
}

const SHAPES: [Shape; 14] = [
    Shape::Thrashing {
        knee: 16.0,
        loss: 0.05,
    },
    Shape::Thrashing {
        knee: 16.0,
        loss: 0.5,
    },
    Shape::Thrashing {
        knee: 100.0,
        loss: 0.2,
    },
    Shape::Thrashing {
        knee: 700.0,
        loss: 1.0,
    },
    Shape::Universal { knee: 12.0 },
    Shape::Universal { knee: 90.0 },
    Shape::Universal { knee: 1000.0 },
    Shape::Cliff {
        knee: 50.0,
        rest: 0.3,
    },
    Shape::Cliff {
        knee: 400.0,
        rest: 0.1,
    },
    Shape::Plateau {
        knee: 16.0,
        loss: 0.02,
    },
    Shape::Plateau {
        knee: 16.0,
        loss: 0.1,
    },
    Shape::Plateau {
        knee: 300.0,
        loss: 0.0,
    },
    Shape::Rising { half: 300.0 },
    Shape::Flat,
];

#[test]
fn the_best_fixed_limit_is_nearly_reached_within_ten_seconds() {
    for noise in [0.0, 0.03] {
        for top in [3_000.0, 20_000.0] {
            for shape in SHAPES {
                let load = Load {
                    shape,
                    top,
                    clients: 4096.0,
                };
                let shares = (1..=8).map(|seed| {
                    let mut engine = Engine::new(seed, noise);
                    engine.mean(&load, 10);
                    engine.mean(&load, 20) / load.best()
                });
                let shares: Vec<f64> = shares.collect();
                let mean = shares.iter().sum::<f64>() / 8.0;
                let least = shares.iter().copied().fold(1.0, f64::min);
                let told = format!("{shape:?}, {top} a second, noise {noise}: {shares:.3?}");
                let (mean_min, least_min) = shape.least_shares();
                assert!(mean_min <= mean && least_min <= least, "{told}");
            }
        }
    }
}

/// With much noise and few commits chance hides differences of a tenth; larger ones are found.
#[test]
fn noise_costs_a_tenth_at_most() {
    let mut shares = Vec::new();
    for top in [1_000.0, 20_000.0] {
        for shape in SHAPES.into_iter().filter(|shape| !shape.is_cliff()) {
            let load = Load {
                shape,
                top,
                clients: 4096.0,
            };
            for seed in 1..=8 {
                let mut engine = Engine::new(seed, 0.08);
                engine.mean(&load, 10);
                shares.push(engine.mean(&load, 20) / load.best());
            }
        }
    }
    let count = f64::from(u32::try_from(shares.len()).unwrap());
    let mean = shares.iter().sum::<f64>() / count;
    assert!(0.95 <= mean, "{mean:.3}");
    let tenth = shares.iter().filter(|it| **it < 0.9).count();
    assert!(
        f64::from(u32::try_from(tenth).unwrap()) < count / 10.0,
        "{tenth}"
    );
}

/// Fewer would have fewer waits for rows, and less throughput.
#[test]
fn many_who_wait_for_rows_do_not_lower_the_limit_alone() {
    for top in [3_000.0, 20_000.0] {
        for clients in [64.0, 100.0] {
            let load = Load {
                shape: Shape::Gentle { half: 16.0 },
                top,
                clients,
            };
            let shares = (1..=8).map(|seed| {
                let mut engine = Engine::new(seed, 0.06);
                engine.mean(&load, 10);
                engine.mean(&load, 30) / load.best()
            });
            let shares: Vec<f64> = shares.collect();
            let mean = shares.iter().sum::<f64>() / 8.0;
            let told = format!("{clients} clients, {top} a second: {shares:.3?}");
            assert!(0.96 <= mean, "{told}");
        }
    }
}

#[test]
fn a_load_that_changes_is_followed_within_ten_seconds() {
    let load = |shape, top, clients| Load {
        shape,
        top,
        clients,
    };
    let (low, high) = (
        Shape::Thrashing {
            knee: 20.0,
            loss: 0.3,
        },
        Shape::Thrashing {
            knee: 600.0,
            loss: 0.3,
        },
    );
    let changes = [
        [load(low, 20_000.0, 4096.0), load(high, 8_000.0, 4096.0)],
        [load(high, 8_000.0, 4096.0), load(low, 20_000.0, 4096.0)],
        [load(low, 20_000.0, 8.0), load(low, 20_000.0, 4096.0)],
        [load(high, 20_000.0, 4096.0), load(low, 3_000.0, 1000.0)],
    ];
    for [before, after] in changes {
        let mut shares = Vec::new();
        for seed in 1..=8 {
            let mut engine = Engine::new(seed, 0.03);
            engine.mean(&before, 30);
            engine.mean(&after, 10);
            shares.push(engine.mean(&after, 10) / after.best());
        }
        let mean = shares.iter().sum::<f64>() / 8.0;
        assert!(0.95 <= mean, "{before:?}, then {after:?}: {shares:.3?}");
    }
}

#[test]
fn a_limit_stays_within_its_bounds_whatever_it_is_told() {
    let mut dice = Dice(7);
    let mut any = |most: f64| whole(dice.unit() * most);
    let mut controller = Controller::new(BOUNDS, START);
    for _ in 0..20_000 {
        let zero_or = |it: u64| if it.is_multiple_of(5) { 0 } else { it };
        let share = |it: u64| f64::from(u32::try_from(it).unwrap()) / 100.0;
        let small_or_none = |it: u64| u32::try_from(it).ok().filter(|it| !it.is_multiple_of(5));
        let limit = controller.step(&Sample {
            span_us: zero_or(any(3e5)),
            commits: zero_or(any(1e6)),
            statements: zero_or(any(1e6)),
            admitted: u32::try_from(any(1e4)).unwrap(),
            blocked: small_or_none(any(1e4)),
            waiting: u32::try_from(zero_or(any(1e4))).unwrap(),
            queued: zero_or(any(1e4)),
            debt: Debt {
                log: share(any(110.0)),
                dirty: share(any(100.0)),
                purge: 0.0,
            },
        });
        assert!((BOUNDS.min..=BOUNDS.max).contains(&limit), "{limit}");
    }
}

#[test]
fn few_clients_are_never_in_the_way_of_each_other() {
    let load = Load {
        clients: 40.0,
        ..CALM
    };
    let mut engine = Engine::new(3, 0.03);
    for _ in 0..100 {
        engine.period(&load);
        assert_eq!(engine.controller.decision(), Decision::Free);
        assert_eq!(engine.controller.limit(), START);
    }
}

/// All come in within a second, and no search keeps any of them out later.
#[test]
fn clients_without_conflicts_are_let_in_at_once() {
    let mut engine = Engine::new(3, 0.1);
    engine.mean(&CALM, 1);
    for _ in 0..60 * SECOND {
        engine.period(&CALM);
        assert!(CALM.clients <= engine.inside);
        assert_eq!(engine.controller.decision(), Decision::Free);
    }
}

/// Behind a debt they come in again without a search, and what a rise began is forgotten.
#[test]
fn a_debt_does_not_keep_out_clients_without_conflicts() {
    let mut engine = Engine::new(3, 0.0);
    engine.mean(&CALM, 1);
    engine.debt.log = 0.96;
    engine.mean(&CALM, 2);
    assert_eq!(engine.controller.decision(), Decision::Paying);
    engine.debt.log = 0.8;
    engine.mean(&CALM, 1);
    assert_eq!(engine.controller.decision(), Decision::Free);
    assert!(CALM.clients <= engine.inside);
}

/// A rise is undone if many are blocked behind it, but not if a debt came between.
#[test]
fn a_climb_begins_before_the_rise_that_blocked_many() {
    let sample = |blocked, log| Sample {
        span_us: PERIOD_US,
        commits: 1000,
        admitted: START,
        blocked: Some(blocked),
        waiting: START,
        debt: Debt {
            log,
            ..Debt::default()
        },
        ..Sample::default()
    };
    for (debt, is_undone) in [(0.0, true), (0.96, false)] {
        let mut controller = Controller::new(BOUNDS, START);
        assert_eq!(controller.step(&sample(0, 0.0)), 2 * START);
        let before = controller.step(&sample(0, debt));
        assert_eq!(before == 4 * START, is_undone);
        controller.step(&sample(START / 2, 0.0));
        assert_eq!(controller.decision(), Decision::Searching);
        let now = controller.limit();
        assert_eq!(now, if is_undone { 2 * START } else { before });
    }
}

/// All come in at once, too, when conflicts for rows have ended.
#[test]
fn a_limit_rises_when_conflicts_end() {
    let hot = Load {
        shape: Shape::Thrashing {
            knee: 20.0,
            loss: 0.3,
        },
        top: 2_000.0,
        clients: 4096.0,
    };
    for seed in 1..=8 {
        let mut engine = Engine::new(seed, 0.03);
        engine.mean(&hot, 20);
        assert!(engine.inside < 100.0, "{seed}");
        engine.mean(&CALM, 10);
        assert!(CALM.clients <= engine.inside, "{seed}: {}", engine.inside);
    }
}

/// The limit keeps none out, but most of those inside wait for locks.
#[test]
fn too_many_blocked_ones_bring_a_limit_that_none_reached() {
    let load = Load {
        shape: Shape::Thrashing {
            knee: 10.0,
            loss: 0.5,
        },
        top: 20_000.0,
        clients: 60.0,
    };
    let mut engine = Engine::new(3, 0.0);
    engine.mean(&load, 10);
    let share = engine.mean(&load, 10) / load.best();
    assert!(0.95 <= share, "{share:.3}");
}

#[test]
fn debt_lowers_the_limit_until_it_is_paid_or_that_does_not_help() {
    let load = Load {
        shape: Shape::Universal { knee: 90.0 },
        top: 20_000.0,
        clients: 4096.0,
    };
    let mut engine = Engine::new(1, 0.0);
    engine.mean(&load, 10);
    let before = engine.controller.limit();
    engine.debt.log = 0.96;
    engine.mean(&load, 1);
    assert_eq!(engine.controller.decision(), Decision::Paying);
    assert!(engine.controller.limit() < before / 2);
    engine.debt.log = 0.9;
    engine.mean(&load, 1);
    assert_eq!(engine.controller.decision(), Decision::Paying, "not paid");
    engine.debt.log = 0.8;
    engine.mean(&load, 10);
    assert_ne!(engine.controller.decision(), Decision::Paying);
    assert!(0.9 <= engine.mean(&load, 10) / load.best());
    // A disk that is too slow: fewer transactions do not help.
    engine.debt.log = 0.99;
    engine.mean(&load, 4);
    assert_ne!(engine.controller.decision(), Decision::Paying);
    engine.mean(&load, 10);
    assert!(0.9 <= engine.mean(&load, 10) / load.best());
}

/// TPC-C with few warehouses on a machine that others use, too: few commits, a speed that changes
/// all the time, and most of those inside wait for locks at any limit.
#[test]
fn a_load_that_fights_is_not_starved_by_a_machine_that_changes_its_speed() {
    let shape = Shape::Thrashing {
        knee: 24.0,
        loss: 0.0,
    };
    for top in [500.0, 4_000.0] {
        let mut shares = Vec::new();
        for seed in 1..=24 {
            let mut engine = Engine::new(seed, 0.1);
            let mut share = 0.0;
            let mut speeds = Dice(seed | 1 << 40);
            for _ in 0..40 {
                let load = Load {
                    shape,
                    top: top * (0.5 + speeds.unit()),
                    clients: 4096.0,
                };
                let periods = 5 + small(speeds.unit() * 20.0);
                let mean = (0..periods).map(|_| engine.period(&load)).sum::<f64>();
                share += mean / f64::from(periods) / load.best() / 40.0;
            }
            shares.push(share);
        }
        let mean = shares.iter().sum::<f64>() / 24.0;
        let least = shares.iter().copied().fold(1.0, f64::min);
        assert!(0.95 <= mean && 0.9 <= least, "{top} a second: {shares:.3?}");
    }
}

/// Transactions that come back from a pause are above the limit, and all wait for locks.
#[test]
fn those_above_the_limit_do_not_raise_it() {
    let mut controller = Controller::new(BOUNDS, START);
    let sample = Sample {
        span_us: PERIOD_US,
        admitted: 20 * START,
        blocked: Some(20 * START),
        ..Sample::default()
    };
    for _ in 0..SECOND {
        assert!(controller.step(&sample) <= START);
    }
}

/// What a search costs is paid once: later trials are few.
#[test]
fn a_limit_that_was_found_is_seldom_doubted() {
    for loss in [0.0, 0.1, 0.3] {
        for noise in [0.02, 0.05, 0.1] {
            let load = Load {
                shape: Shape::Thrashing { knee: 24.0, loss },
                top: 40_000.0,
                clients: 1000.0,
            };
            let (mut rests, mut share) = (0, 0.0);
            for seed in 1..=8 {
                let mut engine = Engine::new(seed, noise);
                engine.mean(&load, 30);
                for _ in 0..90 * SECOND {
                    share += engine.period(&load) / load.best() / 7200.0;
                    rests += u32::from(engine.controller.decision() == Decision::Resting);
                }
            }
            let told = format!("{loss}, noise {noise}: {rests} of 7200 periods, {share:.3}");
            assert!(6300 <= rests && 0.97 <= share, "{told}");
        }
    }
}
