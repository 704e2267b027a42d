//! [`Standing`]: what a session does and what keeps it where it is, for operators who ask.
//!
//! Its session writes, at the begin and at the end of each command; whoever lists sessions reads.
//! Each field stands for itself, so all accesses are relaxed, and the session pays for a store. A
//! listing may see a command's begin and not yet the pins of the one before.

use std::time::Duration;

use env::Instant;
use monitor::ServerId as Place;
use router::Pins;
use sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// See the module's head.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    /// [`Seen`] without its times and connections: bits 0 and 1 the phase, bit 2 an open
    /// transaction, from 16 on the pins, from 32 on the server that it stays at, from 48 on the one
    /// that it waits for. Servers count from 1; 0 is none.
    packed: AtomicU64,
    /// A bit for each server that it has a connection to, by place; those beyond share the last.
    held: AtomicU64,
    /// When the phase began, in milliseconds; wraps after 49 days.
    since_ms: AtomicU32,
    /// The configuration that the places are of. Constant. It is here because here is room for it.
    generation: u32,
}

/// What a session is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It waits for a command of its client.
    Idle,
    /// A command is under way.
    Running,
    /// It waits for a connection to a server.
    Connection(Place),
    /// It waits until a server may take its command.
    Server,
}

/// Why a session must stay where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stay {
    pub(crate) pins: Pins,
    /// Where that is.
    pub(crate) at: Option<Place>,
    pub(crate) is_in_transaction: bool,
}

/// A session, as a listing sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) phase: Phase,
    /// How long it has been in this phase.
    pub(crate) age: Duration,
    pub(crate) stay: Stay,
    /// As in [`Standing`].
    held: u64,
}

const PHASE: u64 = 0b11;
const IDLE: u64 = 0;
const RUNNING: u64 = 1;
const CONNECTION: u64 = 2;
const SERVER: u64 = 3;
const IN_TRANSACTION: u64 = 0b100;
const PINS_AT: u32 = 16;
const STAYS_AT: u32 = 32;
const WAITS_AT: u32 = 48;

/// Servers with a bit of their own.
const HELD_PLACES: u16 = 63;

impl Standing {
    /// Of a session of this configuration.
    pub(crate) fn of(generation: u32) -> Standing {
        Standing {
            generation,
            ..Standing::default()
        }
    }

    /// The configuration that the places are of.
    pub(crate) fn generation(&self) -> u32 {
        self.generation
    }

    /// The session waits for a command. Returns the pins that are new since it did so last.
    pub(crate) fn rest(&self, stay: Stay, now: Instant) -> Pins {
        let before = self.packed.load(Ordering::Relaxed);
        let stays_at = packed_place(stay.at) << STAYS_AT;
        let pins = u64::from(stay.pins.bits()) << PINS_AT;
        let transaction = match stay.is_in_transaction {
            true => IN_TRANSACTION,
            false => 0,
        };
        let packed = IDLE | transaction | pins | stays_at;
        self.packed.store(packed, Ordering::Relaxed);
        self.since_ms.store(millis(now), Ordering::Relaxed);
        stay.pins.without(Pins::of_bits(part(before, PINS_AT)))
    }

    /// A command is under way.
    pub(crate) fn run(&self, now: Instant) {
        self.enter(RUNNING);
        self.since_ms.store(millis(now), Ordering::Relaxed);
    }

    /// The command waits for a connection to a server.
    pub(crate) fn wait_for_connection(&self, place: Place) {
        self.enter(CONNECTION | packed_place(Some(place)) << WAITS_AT);
    }

    /// The command waits until a server may take it.
    pub(crate) fn wait_for_server(&self) {
        self.enter(SERVER);
    }

    /// The command waits no longer.
    pub(crate) fn go_on(&self) {
        self.enter(RUNNING);
    }

    fn enter(&self, phase: u64) {
        let before = self.packed.load(Ordering::Relaxed);
        let kept = before & !PHASE & ((1 << WAITS_AT) - 1);
        self.packed.store(kept | phase, Ordering::Relaxed);
    }

    /// The session has a connection to a server.
    pub(crate) fn hold(&self, place: Place) {
        let held = self.held.load(Ordering::Relaxed) | held_bit(place);
        self.held.store(held, Ordering::Relaxed);
    }

    /// The session has none to it any more.
    pub(crate) fn release(&self, place: Place) {
        let held = self.held.load(Ordering::Relaxed) & !held_bit(place);
        self.held.store(held, Ordering::Relaxed);
    }

    /// The session as it is now.
    pub(crate) fn look(&self, now: Instant) -> Seen {
        let packed = self.packed.load(Ordering::Relaxed);
        let waits_for = unpacked_place(part(packed, WAITS_AT));
        let phase = match packed & PHASE {
            IDLE => Phase::Idle,
            RUNNING => Phase::Running,
            CONNECTION => waits_for.map_or(Phase::Running, Phase::Connection),
            _ => Phase::Server,
        };
        let age_ms = millis(now).wrapping_sub(self.since_ms.load(Ordering::Relaxed));
        Seen {
            phase,
            age: Duration::from_millis(age_ms.into()),
            stay: Stay {
                pins: Pins::of_bits(part(packed, PINS_AT)),
                at: unpacked_place(part(packed, STAYS_AT)),
                is_in_transaction: packed & IN_TRANSACTION != 0,
            },
            held: self.held.load(Ordering::Relaxed),
        }
    }
}

impl Seen {
    /// The servers that it has connections to. One beyond the 63rd looks like the others there.
    pub(crate) fn held(&self) -> impl Iterator<Item = Place> + use<> {
        let held = self.held;
        (0..=HELD_PLACES)
            .map(Place)
            .filter(move |place| held & held_bit(*place) != 0)
    }

    /// These servers, and the one that it stays at.
    pub(crate) fn places(&self) -> impl Iterator<Item = Place> + use<> {
        let held = self.held;
        let beyond = self.stay.at.filter(|at| held & held_bit(*at) == 0);
        self.held().chain(beyond)
    }
}

fn held_bit(place: Place) -> u64 {
    1 << place.0.min(HELD_PLACES)
}

fn packed_place(place: Option<Place>) -> u64 {
    place.map_or(0, |place| u64::from(place.0) + 1)
}

fn unpacked_place(packed: u16) -> Option<Place> {
    packed.checked_sub(1).map(Place)
}

/// Sixteen bits from a position on.
fn part(packed: u64, at: u32) -> u16 {
    u16::try_from(packed >> at & u64::from(u16::MAX)).expect("masked")
}

fn millis(now: Instant) -> u32 {
    let millis = now.nanos() / 1_000_000;
    u32::try_from(millis & u64::from(u32::MAX)).expect("masked")
}

#[cfg(test)]
mod tests {
    use router::Pin;

    use super::*;

    fn at_ms(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn what_a_session_writes_is_what_is_seen() {
        let standing = Standing::default();
        let mut stay = Stay::default();
        assert!(standing.rest(stay, at_ms(5)).is_empty());
        standing.run(at_ms(7));
        let seen = standing.look(at_ms(10));
        assert_eq!((seen.phase, seen.age.as_millis()), (Phase::Running, 3));
        stay.pins.add(Pin::UserLock);
        stay.pins.add(Pin::Unknown);
        stay.at = Some(Place(1023));
        stay.is_in_transaction = true;
        let added = standing.rest(stay, at_ms(20));
        assert_eq!(added, stay.pins);
        assert!(standing.rest(stay, at_ms(21)).is_empty(), "they are known");
        for place in [0, 1023] {
            standing.run(at_ms(22));
            standing.wait_for_connection(Place(place));
            let seen = standing.look(at_ms(30));
            assert_eq!(seen.phase, Phase::Connection(Place(place)));
            assert_eq!((seen.stay, seen.age.as_millis()), (stay, 8));
        }
        standing.go_on();
        assert_eq!(standing.look(at_ms(30)).phase, Phase::Running);
        standing.wait_for_server();
        assert_eq!(standing.look(at_ms(30)).phase, Phase::Server);
        stay.pins.lift(Pin::UserLock);
        assert!(standing.rest(stay, at_ms(31)).is_empty());
        assert_eq!(standing.look(at_ms(31)).stay, stay);
    }

    #[test]
    fn connections_are_seen_by_their_places() {
        let standing = Standing::default();
        let held = || -> Vec<u16> { standing.look(at_ms(0)).held().map(|it| it.0).collect() };
        for place in [0, 62, 63, 64] {
            standing.hold(Place(place));
        }
        assert_eq!(held(), [0, 62, 63]);
        standing.release(Place(62));
        standing.release(Place(1));
        assert_eq!(held(), [0, 63]);
        for (at, places) in [(0, vec![0, 63]), (7, vec![0, 63, 7])] {
            let stay = Stay {
                at: Some(Place(at)),
                ..Stay::default()
            };
            standing.rest(stay, at_ms(0));
            let seen = standing.look(at_ms(0)).places();
            assert_eq!(seen.map(|it| it.0).collect::<Vec<_>>(), places);
        }
    }

    #[test]
    fn times_wrap() {
        let standing = Standing::default();
        standing.run(at_ms(u32::MAX.into()));
        let seen = standing.look(at_ms(u64::from(u32::MAX) + 11));
        assert_eq!(seen.age.as_millis(), 11);
    }
}
