//! A shelf beside a list of the last uses.

use std::sync::Arc;
use std::time::Duration;

use env::Instant;
use proptest::prelude::*;
use sync::ChangeClock;
use wire::{
    Capabilities, ColumnDefinition, ColumnType, CommandByte, OkPacket, PacketWriter, ResultHead,
    TextRow, end_columns, end_rows,
};

use super::*;
use crate::flushes::Flushes;
use crate::reply::REPLY_BYTES;

const NO_LIMIT: Lifetime = Lifetime {
    hard: None,
    soft: None,
};

fn reply(budget: &Arc<Budget>, value: &[u8]) -> Option<Arc<KeptReply>> {
    let capabilities = Capabilities::PROTOCOL_41 | Capabilities::DEPRECATE_EOF;
    let mut out = PacketWriter::new();
    out.set_sequence(1);
    ResultHead::encode(&mut out, capabilities, 1);
    ColumnDefinition::new(b"c", ColumnType::String).encode(&mut out, capabilities);
    let ok = OkPacket::default();
    end_columns(&mut out, capabilities, ok.status, 0);
    let mut row = TextRow::begin(&mut out);
    row.bytes(value);
    row.finish();
    end_rows(&mut out, capabilities, &ok);
    let bytes: Box<[u8]> = out.as_bytes().into();
    let claim = Claim::take(budget, REPLY_BYTES + allocated_bytes(bytes.len()))?;
    KeptReply::new((CommandByte::QUERY, capabilities), bytes, claim).map(Arc::new)
}

fn value_of(reply: &KeptReply) -> u8 {
    // Behind the head, the column and the header and length of the row.
    let bytes = reply.bytes();
    let end = u8::MAX - 1;
    let last = bytes
        .iter()
        .rposition(|it| *it == end)
        .expect("an end packet");
    bytes[last - 5]
}

/// Hashes that few bits of the key decide, so that many are twins.
fn query<'a>(scope: &'a Scope, key: &'a [u8]) -> Query<'a> {
    let hash = key.first().map_or(0, |first| u64::from(first % 3));
    Query { scope, key, hash }
}

fn at(seconds: u64) -> Instant {
    Instant::default() + Duration::from_secs(seconds)
}

struct Scene {
    shelf: Shelf,
    /// Replies that were kept.
    count: u64,
    scope: Scope,
    budget: Arc<Budget>,
}

impl Scene {
    fn new(bytes: usize) -> Scene {
        let budget = Arc::new(Budget::new(bytes));
        Scene {
            shelf: Shelf::new(Arc::clone(&budget), 0),
            count: 0,
            scope: Scope::of([]),
            budget,
        }
    }

    /// Bytes of replies.
    fn used(&self) -> usize {
        self.budget.used() - self.shelf.doorkeeper.bytes()
    }

    fn keep(&mut self, key: u8, value: u8, second: u64) -> bool {
        let Some(reply) = reply(&self.budget, &[value]) else {
            return false;
        };
        let bytes = kept_bytes(&[key], &self.scope, &[]);
        let Some(claim) = Claim::take(&self.budget, bytes) else {
            return false;
        };
        self.count += 1;
        let arrival = Arrival {
            scope: self.scope.clone(),
            key: [key].into(),
            hash: query(&self.scope, &[key]).hash,
            reply,
            names: Arc::new([]),
            moment: ChangeClock::new(1).now(),
            now: at(second),
            beginning: Beginning {
                flushes: Flushes::default().count().expect("there are none"),
                kept_count: self.count,
            },
            claim,
        };
        self.shelf.keep(arrival, self.count).unwrap_or(false)
    }

    /// What the first reply takes, and what each takes behind it.
    fn costs() -> (usize, usize) {
        let mut scene = Scene::new(1 << 20);
        assert!(scene.keep(0, 0, 0));
        let first = scene.used();
        assert!(scene.keep(1, 0, 0));
        (first, scene.used() - first)
    }

    fn find(&mut self, key: u8, lifetime: Lifetime, second: u64) -> Lookup {
        let key = [key];
        let query = query(&self.scope, &key);
        self.shelf.find(&query, lifetime, at(second), |_, _| true)
    }

    fn value(&mut self, key: u8) -> Option<u8> {
        match self.find(key, NO_LIMIT, 0) {
            Lookup::Reply(reply) => Some(value_of(&reply)),
            Lookup::Miss(_) => None,
        }
    }
}

#[test]
fn replies_are_found_until_their_time_is_over() {
    let mut scene = Scene::new(1 << 20);
    assert!(scene.keep(1, 7, 10));
    assert_eq!(scene.value(1), Some(7));
    assert!(
        matches!(scene.find(4, NO_LIMIT, 0), Lookup::Miss(Miss::First)),
        "it has the same hash"
    );
    let hard = Lifetime {
        hard: Some(Duration::from_secs(5)),
        soft: None,
    };
    assert!(matches!(scene.find(1, hard, 14), Lookup::Reply(_)));
    assert!(matches!(scene.find(1, hard, 15), Lookup::Miss(Miss::Again)));
    assert_eq!((scene.shelf.len(), scene.used()), (0, 0));
    let expected = Counts {
        hits: 2,
        misses: 2,
        voids: 1,
        kept: 1,
        ..Counts::default()
    };
    assert_eq!(scene.shelf.counts, expected);
}

#[test]
fn one_query_renews_and_the_others_are_told_the_old_reply() {
    let mut scene = Scene::new(1 << 20);
    let lifetime = Lifetime {
        hard: Some(Duration::from_secs(9)),
        soft: Some(Duration::from_secs(3)),
    };
    assert!(scene.keep(1, 7, 0));
    assert!(matches!(scene.find(1, lifetime, 2), Lookup::Reply(_)));
    assert!(matches!(
        scene.find(1, lifetime, 3),
        Lookup::Miss(Miss::Renewal)
    ));
    assert!(matches!(scene.find(1, lifetime, 3), Lookup::Reply(_)));
    let key = [1];
    let asked = query(&scene.scope, &key);
    scene.shelf.give_up_renewal(&asked);
    assert!(matches!(
        scene.find(1, lifetime, 4),
        Lookup::Miss(Miss::Renewal)
    ));
    assert!(scene.keep(1, 8, 5));
    assert_eq!(scene.value(1), Some(8));
    assert_eq!(scene.shelf.len(), 1);
}

#[test]
fn who_was_not_asked_for_longest_goes_first() {
    // Room for three, and for what one more needs before it is kept.
    let (first, each) = Scene::costs();
    let mut scene = Scene::new(first + 3 * each - 1);
    for key in 0..3 {
        assert!(scene.keep(key, key, 0));
    }
    assert_eq!(scene.value(0), Some(0));
    assert!(scene.keep(3, 3, 0));
    let values: Vec<_> = (0..4).map(|key| scene.value(key)).collect();
    assert_eq!(values, [Some(0), None, Some(2), Some(3)]);
    assert_eq!(scene.shelf.counts.evictions, 1);
    scene.shelf.clear();
    assert_eq!((scene.shelf.len(), scene.used()), (0, 0));
}

#[test]
fn a_reply_that_a_client_is_being_sent_counts() {
    let mut scene = Scene::new(1 << 20);
    assert!(scene.keep(1, 7, 0));
    let Lookup::Reply(held) = scene.find(1, NO_LIMIT, 0) else {
        panic!("it was kept");
    };
    scene.shelf.clear();
    assert_ne!(scene.used(), 0);
    drop(held);
    assert_eq!(scene.used(), 0);
}

proptest! {
    /// A shelf is what a list of the last uses would be.
    #[test]
    fn a_shelf_is_a_list_of_the_last_used(
        steps in prop::collection::vec((0_u8..12, 0_u8..3, any::<u8>()), 0..300),
        room in 1_usize..8,
    ) {
        let (first, each) = Scene::costs();
        let mut scene = Scene::new(first + room * each - 1);
        let mut naive: Vec<(u8, u8)> = Vec::new();
        for (key, step, value) in steps {
            match step {
                0 => {
                    prop_assert!(scene.keep(key, value, 0));
                    naive.retain(|(other, _)| *other != key);
                    naive.push((key, value));
                    if room < naive.len() {
                        naive.remove(0);
                    }
                }
                1 => {
                    let place = naive.iter().position(|(other, _)| *other == key);
                    let expected = place.map(|place| naive.remove(place));
                    naive.extend(expected);
                    prop_assert_eq!(scene.value(key), expected.map(|(_, value)| value));
                }
                _ => {
                    // Void: the table has changed.
                    naive.retain(|(other, _)| *other != key);
                    let key = [key];
                    let asked = query(&scene.scope, &key);
                    let found = scene.shelf.find(&asked, NO_LIMIT, at(0), |_, _| false);
                    prop_assert!(matches!(found, Lookup::Miss(_)));
                }
            }
            prop_assert_eq!(scene.shelf.len(), naive.len());
            let expected = naive.len().checked_sub(1).map_or(0, |more| first + each * more);
            prop_assert_eq!(scene.used(), expected);
        }
    }
}
