//! Many clients on few threads, and what is counted meanwhile.

use std::fs;
use std::num::NonZero;
use std::thread;
use std::time::Duration;

use env::Clock as _;
use env::linux::SystemClock;
use sync::Mutex;
use sync::atomic::{AtomicU64, Ordering};

/// Turns between two looks at the clock.
const TURNS_PER_LOOK: u32 = 32;

/// What was counted.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Measured {
    pub(super) operations: f64,
    pub(super) seconds: f64,
    /// Acquisitions that found the wall's latch taken.
    pub(super) contended: f64,
    /// Context switches of the threads.
    pub(super) switches: f64,
    /// Bytes that views have copied.
    pub(super) copied: f64,
}

impl Measured {
    /// Of a measurement that knows its rate alone.
    pub(super) fn of_rate(rate: f64) -> Self {
        Self {
            operations: rate,
            seconds: 1.0,
            ..Self::default()
        }
    }

    /// Operations a second.
    pub(super) fn rate(&self) -> f64 {
        self.operations / self.seconds.max(1e-9)
    }

    /// A count for each thousand operations.
    pub(super) fn per_thousand(&self, count: f64) -> f64 {
        1000.0 * count / self.operations.max(1.0)
    }
}

/// The measurement in the middle, by its rate.
pub(super) fn median(mut all: Vec<Measured>) -> Measured {
    all.sort_by(|a, b| a.rate().total_cmp(&b.rate()));
    all.get(all.len() / 2).copied().unwrap_or_default()
}

/// A latch that counts who found it taken.
#[derive(Default)]
pub(super) struct Latch {
    taken: Mutex<()>,
    contended: AtomicU64,
}

impl Latch {
    /// Calls `act` with the latch held.
    pub(super) fn with<T>(&self, act: impl FnOnce() -> T) -> T {
        let guard = self.taken.try_lock().unwrap_or_else(|| {
            // Relaxed: a count that orders nothing.
            self.contended.fetch_add(1, Ordering::Relaxed);
            self.taken.lock()
        });
        let done = act();
        drop(guard);
        done
    }

    pub(super) fn contended(&self) -> f64 {
        stdx::u64_to_f64(self.contended.load(Ordering::Relaxed))
    }
}

/// Calls `act` behind the latch, if there is one.
pub(super) fn behind<T>(latch: Option<&Latch>, act: impl FnOnce() -> T) -> T {
    match latch {
        Some(latch) => latch.with(act),
        None => act(),
    }
}

/// The clients of one thread.
pub(super) trait Player {
    /// The next operation of a client.
    fn turn(&mut self, client: usize);
    /// All clients of the thread had a turn.
    fn end_round(&mut self) {}
}

/// Threads for so many clients.
pub(super) fn thread_count(clients: u32) -> usize {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    processors.min(stdx::to_usize(u64::from(clients))).max(1)
}

/// Lets the clients play for a while. `make` gets the number of a thread and of its clients.
pub(super) fn play<P: Player>(
    clients: u32,
    duration: Duration,
    make: impl Fn(usize, usize) -> P + Sync,
) -> Measured {
    let threads = thread_count(clients);
    let clients = stdx::to_usize(u64::from(clients));
    thread::scope(|scope| {
        let one = |number: usize| {
            let own = clients / threads + usize::from(number < clients % threads);
            let make = &make;
            scope.spawn(move || play_one(make(number, own), own, duration))
        };
        let running: Vec<_> = (0..threads).map(one).collect();
        let mut sum = Measured::default();
        for thread in running {
            let one = thread.join().expect("a player does not panic");
            sum.operations += one.operations;
            sum.switches += one.switches;
            sum.seconds = sum.seconds.max(one.seconds);
        }
        sum
    })
}

fn play_one(mut player: impl Player, clients: usize, duration: Duration) -> Measured {
    let clock = SystemClock;
    let begun = clock.now();
    let mut operations = 0_u32;
    loop {
        for client in 0..clients {
            player.turn(client);
            operations += 1;
        }
        player.end_round();
        let is_time_to_look = operations.is_multiple_of(TURNS_PER_LOOK) || 1 < clients;
        if is_time_to_look && duration <= clock.now().since(begun) {
            break;
        }
    }
    Measured {
        operations: f64::from(operations),
        seconds: clock.now().since(begun).as_secs_f64(),
        switches: switches(),
        ..Measured::default()
    }
}

/// Context switches of this thread since it began.
fn switches() -> f64 {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let lines = status.lines().filter(|line| line.contains("ctxt_switches"));
    let counts = lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    counts.sum()
}
