//! [`Tally`]: the numbers of a row.

use std::time::Duration;

use env::Instant;

/// A statement that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Finished {
    /// How long it has taken.
    pub time: Duration,
    /// Rows that the client was sent.
    pub rows_sent: u64,
    /// Rows that it has changed.
    pub rows_affected: u64,
    /// Its client got an error, or no whole answer.
    pub is_failed: bool,
    /// A cache of results has answered it.
    pub is_kept: bool,
    /// The number of the server that has answered; `None` if none has.
    pub server: Option<u32>,
}

/// What statements have cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// How many there were.
    pub count: u64,
    /// How many of them have failed.
    pub failed: u64,
    /// How many of them a cache of results has answered.
    pub kept: u64,
    /// The times of all together.
    pub time_sum: Duration,
    /// The shortest time.
    pub time_min: Duration,
    /// The longest.
    pub time_max: Duration,
    /// How many there were of each length ([`BUCKETS`]).
    pub buckets: [u64; BUCKETS.len()],
    /// Rows that clients were sent.
    pub rows_sent: u64,
    /// Rows that were changed.
    pub rows_affected: u64,
    /// Who has answered.
    pub servers: Servers,
    /// When the first one has ended.
    pub first: Instant,
    /// When the last one has.
    pub last: Instant,
}

/// A length of time: up to `max`, and longer than all before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// For people.
    pub name: &'static str,
    /// Constant.
    pub max: Duration,
}

const fn bucket(name: &'static str, micros: u64) -> Bucket {
    Bucket {
        name,
        max: Duration::from_micros(micros),
    }
}

/// All lengths: those of ProxySQL, as its users know them.
pub const BUCKETS: [Bucket; 12] = [
    bucket("100us", 100),
    bucket("500us", 500),
    bucket("1ms", 1_000),
    bucket("5ms", 5_000),
    bucket("10ms", 10_000),
    bucket("50ms", 50_000),
    bucket("100ms", 100_000),
    bucket("500ms", 500_000),
    bucket("1s", 1_000_000),
    bucket("5s", 5_000_000),
    bucket("10s", 10_000_000),
    bucket("longer", u64::MAX),
];

/// A set of servers, by their numbers. Those from [`SERVERS_TOLD_APART`] on are not told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Servers(u64);

/// Servers with a bit of their own.
pub const SERVERS_TOLD_APART: u32 = 63;

impl Servers {
    /// Adds one.
    pub fn add(&mut self, server: u32) {
        self.0 |= 1 << server.min(SERVERS_TOLD_APART);
    }

    /// Whether it has this one, or one that is not told from it.
    pub fn has(self, server: u32) -> bool {
        self.0 & 1 << server.min(SERVERS_TOLD_APART) != 0
    }
}

impl Tally {
    /// Counts a statement that has ended now.
    pub fn count(&mut self, now: Instant, finished: &Finished) {
        let time = finished.time;
        if self.count == 0 {
            self.first = now;
            self.time_min = time;
        }
        self.last = now;
        self.count += 1;
        self.failed += u64::from(finished.is_failed);
        self.kept += u64::from(finished.is_kept);
        self.time_sum = self.time_sum.saturating_add(time);
        self.time_min = self.time_min.min(time);
        self.time_max = self.time_max.max(time);
        let place = BUCKETS.iter().position(|it| time <= it.max);
        if let Some(bucket) = place.and_then(|place| self.buckets.get_mut(place)) {
            *bucket += 1;
        }
        self.rows_sent = self.rows_sent.wrapping_add(finished.rows_sent);
        // A server may tell any number.
        self.rows_affected = self.rows_affected.wrapping_add(finished.rows_affected);
        if let Some(server) = finished.server {
            self.servers.add(server);
        }
    }

    /// Adds what somebody else has counted.
    pub fn add(&mut self, other: &Tally) {
        if self.count == 0 {
            *self = *other;
            return;
        }
        if other.count == 0 {
            return;
        }
        self.count += other.count;
        self.failed += other.failed;
        self.kept += other.kept;
        self.time_sum = self.time_sum.saturating_add(other.time_sum);
        self.time_min = self.time_min.min(other.time_min);
        self.time_max = self.time_max.max(other.time_max);
        for (bucket, other) in self.buckets.iter_mut().zip(other.buckets) {
            *bucket += other;
        }
        self.rows_sent = self.rows_sent.wrapping_add(other.rows_sent);
        self.rows_affected = self.rows_affected.wrapping_add(other.rows_affected);
        self.servers.0 |= other.servers.0;
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
    }
}
