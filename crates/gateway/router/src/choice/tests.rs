//! Choices out of maps that the monitor's judge has made.

use std::sync::Arc;

use backend::ServerVersion;
use env::Instant;
use monitor::gtid::GtidPosition;
use monitor::gtid::mariadb::MariaDbPosition;
use monitor::{
    Access, DownReason, Facts, Failure, Observation, Order, Rank, Rules, ServerEntry,
    SourceAddress, Stream, Streams, Thread,
};
use runtime::Address;

use super::*;

const PRIMARY: ServerId = ServerId(0);

pub(crate) fn position(text: &str) -> GtidPosition {
    GtidPosition::MariaDb(MariaDbPosition::parse(text).unwrap())
}

fn entry(index: u16) -> ServerEntry {
    ServerEntry {
        name: Arc::from(index.to_string()),
        address: Address::Tcp(([127, 0, 0, 1], index + 1).into()),
        rank: Rank(0),
    }
}

fn stream() -> Stream {
    Stream {
        source: SourceAddress {
            host: "127.0.0.1".to_owned(),
            port: 1,
        },
        source_number: 1,
        receiver: Thread::Running,
        applier: Thread::Running,
        lag_s: Some(0),
        error: String::new(),
    }
}

/// What a server says; the first is the primary.
pub(crate) fn says(index: u16, gtid: &str) -> Observation {
    let (access, streams) = match index {
        0 => (Access::Writable, Vec::new()),
        _ => (Access::ReadOnly, vec![stream()]),
    };
    Observation::Read(Box::new(Facts {
        read_at: Instant::default(),
        version: ServerVersion::parse(b"10.11.6-MariaDB"),
        uptime_s: Some(100),
        number: u32::from(index) + 1,
        uid: None,
        access,
        position: Some(position(gtid)),
        replicated: None,
        streams: Streams::Known(streams),
        galera: None,
    }))
}

pub(crate) fn silence() -> Observation {
    Observation::Failed(Failure {
        reason: DownReason::Unreachable,
        error: "refused".to_owned(),
    })
}

pub(crate) fn map(observations: Vec<Observation>) -> ServerMap {
    let entries = (0..).take(observations.len()).map(entry).collect();
    let before = ServerMap::new(entries, &[]);
    let rules = Rules::default();
    monitor::judge(&before, observations, &rules, Instant::default()).map
}

/// The choice among servers that are equally busy.
fn chosen(goal: Goal, map: &ServerMap, written: &Written) -> Option<u16> {
    choose(goal, map, written, None, None, |_| Some(cost(0, 0))).map(|it| it.0)
}

#[test]
fn reads_go_to_a_replica_that_has_what_was_written() {
    let map = map(vec![says(0, "0-1-9"), says(1, "0-1-5"), says(2, "0-1-7")]);
    let reads = |written| chosen(Goal::Replica, &map, &written);
    assert_eq!(reads(Written::Nothing), Some(1));
    assert_eq!(reads(Written::UpTo(position("0-1-5"))), Some(1));
    assert_eq!(reads(Written::UpTo(position("0-1-6"))), Some(2));
    assert_eq!(reads(Written::UpTo(position("0-1-8"))), Some(PRIMARY.0));
    assert_eq!(reads(Written::Somewhere), Some(PRIMARY.0));
    assert_eq!(
        chosen(Goal::Primary, &map, &Written::Nothing),
        Some(PRIMARY.0)
    );
    let held = Goal::Held(ServerId(2));
    assert_eq!(chosen(held, &map, &Written::Somewhere), Some(2));
}

/// Of a server with so many statements under way, and answered.
pub(crate) fn cost(operations: u32, answered: u64) -> Cost {
    let load = Load {
        operations,
        answered,
        ..Load::default()
    };
    load.cost(Balance::Operations, Instant::default())
}

#[test]
fn a_slow_server_is_tried_again_after_a_while() {
    let second = |seconds: u64| Instant::default() + Duration::from_secs(seconds);
    let mut slow = Load::default();
    let mut quick = Load::default();
    let costs = |slow: &Load, quick: &Load, now| {
        let of = |load: &Load| load.cost(Balance::ResponseTime, now);
        (of(slow), of(quick))
    };
    // What was never asked is asked first.
    quick
        .response_time
        .note(Duration::from_millis(1), second(0));
    let (unknown, known) = costs(&slow, &quick, second(0));
    assert!(unknown < known);
    let note = |load: &mut Load, took_ms, at| {
        let took = Duration::from_millis(took_ms);
        load.response_time.note(took, second(at));
    };
    for at in 1..=20 {
        note(&mut slow, 10, at);
        note(&mut quick, 1, at);
    }
    let average = slow.response_time.average_us(second(20));
    assert!((9_900.0..10_100.0).contains(&average), "{average}");
    let (of_slow, of_quick) = costs(&slow, &quick, second(20));
    assert!(of_quick < of_slow);
    // Eleven statements under way at the quick one take longer than one at the slow one.
    quick.operations = 11;
    let (of_slow, of_quick) = costs(&slow, &quick, second(20));
    assert!(of_slow < of_quick);
    quick.operations = 0;
    // Half a minute later, in which only the quick one was asked.
    for at in 21..=50 {
        note(&mut quick, 1, at);
    }
    let (of_slow, of_quick) = costs(&slow, &quick, second(50));
    assert!(of_slow < of_quick, "{of_slow:?} {of_quick:?}");
}

#[test]
fn the_least_busy_replica_is_taken() {
    let map = map(vec![says(0, ""), says(1, ""), says(2, "")]);
    let by = |loads: [Cost; 3]| {
        let cost = |id: ServerId| Some(loads[usize::from(id.0)]);
        choose(Goal::Replica, &map, &Written::Nothing, None, None, cost).map(|it| it.0)
    };
    let load = cost;
    let idle = load(0, 0);
    assert_eq!(by([idle, load(2, 0), load(1, 9)]), Some(2));
    assert_eq!(by([idle, load(1, 8), load(1, 9)]), Some(1));
    assert_eq!(by([load(5, 5), load(1, 9), load(1, 8)]), Some(2));
}

#[test]
fn who_is_down_or_has_just_failed_is_left_out() {
    let two_up = map(vec![says(0, ""), silence(), says(2, "")]);
    let reads = |map: &ServerMap, without| {
        let load = |_| Some(cost(0, 0));
        choose(Goal::Replica, map, &Written::Nothing, None, without, load).map(|it| it.0)
    };
    assert_eq!(reads(&two_up, None), Some(2));
    assert_eq!(reads(&two_up, Some(ServerId(2))), Some(PRIMARY.0));
    assert_eq!(
        chosen(Goal::Held(ServerId(1)), &two_up, &Written::Nothing),
        None
    );
    let ours = |id: ServerId| (id.0 == 1).then(|| cost(0, 0));
    let foreign = choose(Goal::Replica, &two_up, &Written::Nothing, None, None, ours);
    assert_eq!(foreign, None);
    let alone = map(vec![says(0, ""), silence(), silence()]);
    assert_eq!(reads(&alone, None), Some(PRIMARY.0));
    assert_eq!(reads(&alone, Some(PRIMARY)), None);
    let headless = map(vec![silence(), says(1, ""), says(2, "")]);
    assert_eq!(chosen(Goal::Primary, &headless, &Written::Nothing), None);
    assert_eq!(reads(&headless, None), Some(1));
    let first = |map| chosen(Goal::PrimaryFirst, map, &Written::Nothing);
    assert_eq!(
        (first(&alone), first(&headless)),
        (Some(PRIMARY.0), Some(1))
    );
    assert_eq!(chosen(Goal::Replica, &headless, &Written::Somewhere), None);
}

#[test]
fn nothing_begins_where_an_operator_has_ordered_so() {
    let mut map = map(vec![says(0, ""), says(1, ""), says(2, "")]);
    let mut order = |server, order| {
        let orders = [(ServerId(server), order)];
        map = monitor::order(&map, &orders, &Rules::default(), Instant::default()).map;
        let goals = [Goal::Primary, Goal::Replica, Goal::Held(ServerId(server))];
        goals.map(|goal| chosen(goal, &map, &Written::Nothing))
    };
    let primary = Some(PRIMARY.0);
    // What is open on a server goes on while it drains.
    assert_eq!(order(1, Order::Drain), [primary, Some(2), Some(1)]);
    assert_eq!(order(1, Order::Maintenance), [primary, Some(2), None]);
    assert_eq!(order(2, Order::Maintenance), [primary, primary, None]);
    assert_eq!(order(0, Order::Drain), [None, None, primary]);
    assert_eq!(order(0, Order::Maintenance), [None, None, None]);
    assert_eq!(order(2, Order::Up), [None, Some(2), Some(2)]);
    assert_eq!(order(0, Order::Up), [primary, Some(2), primary]);
}

#[test]
fn a_replica_that_is_too_far_behind_is_left_out() {
    let late = |seconds| {
        let Observation::Read(mut facts) = says(1, "") else {
            panic!("it answers");
        };
        facts.streams = Streams::Known(vec![Stream {
            lag_s: Some(seconds),
            ..stream()
        }]);
        map(vec![says(0, ""), Observation::Read(facts)])
    };
    let max = Some(Duration::from_secs(10));
    let reads = |map: &ServerMap| {
        let load = |_| Some(cost(0, 0));
        choose(Goal::Replica, map, &Written::Nothing, max, None, load).map(|it| it.0)
    };
    assert_eq!(reads(&late(9)), Some(1));
    assert_eq!(reads(&late(10)), Some(1));
    assert_eq!(reads(&late(11)), Some(PRIMARY.0));
}
