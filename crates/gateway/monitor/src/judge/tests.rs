//! Conditions, epochs, orders of operators, the carry-over into another configuration.

use super::*;
use crate::facts::Access;
use crate::gtid::GtidPosition;
use crate::gtid::mariadb::MariaDbPosition;
use crate::scene::{Scene, Uptimes, entry};
use crate::state::{Condition, Rank};

#[test]
fn the_first_round_finds_all_and_the_next_is_silent() {
    let mut scene = Scene::replicated(2);
    assert_eq!(scene.serving(), "a:- b:-");
    assert_eq!(
        scene.round(),
        [
            "a: down: not checked yet -> up",
            "a: unknown -> primary",
            "a serves reads and writes",
            "b: down: not checked yet -> up",
            "b: unknown -> replica",
            "b serves reads",
            "primary - -> a",
        ]
    );
    assert_eq!(scene.round(), [""; 0]);
}

#[test]
fn a_server_is_down_after_its_number_of_failures() {
    for failures_max in [1, 2, 3] {
        let mut scene = Scene::replicated(2);
        scene.rules.failures_max = failures_max;
        scene.round();
        scene.set_down(1, Some(DownReason::TimedOut));
        for _ in 1..failures_max {
            assert_eq!(scene.round(), [""; 0]);
            assert_eq!(scene.serving(), "a:rw b:r");
        }
        let down = ["b: up -> down: does not answer in time"];
        assert_eq!(scene.round(), down, "{failures_max}");
        assert_eq!(scene.serving(), "a:rw b:-");
        scene.set_down(1, None);
        assert_eq!(scene.round().len(), 2);
        assert_eq!(scene.serving(), "a:rw b:r");
    }
}

#[test]
fn failures_count_in_succession_and_a_refused_connection_at_once() {
    let mut scene = Scene::replicated(2);
    scene.rules.failures_max = 2;
    scene.round();
    for _ in 0..3 {
        scene.set_down(1, Some(DownReason::Lost));
        assert_eq!(scene.round(), [""; 0]);
        scene.set_down(1, None);
        assert_eq!(scene.round(), [""; 0]);
    }
    scene.set_down(1, Some(DownReason::Unreachable));
    assert_eq!(scene.round(), ["b: up -> down: cannot be reached"]);
    scene.set_down(1, Some(DownReason::TimedOut));
    let another_reason = "b: down: cannot be reached -> down: does not answer in time";
    assert_eq!(scene.round(), [another_reason]);
}

#[test]
fn without_its_primary_reads_go_on() {
    let mut scene = Scene::replicated(3);
    scene.round();
    scene.crash(0);
    assert_eq!(
        scene.round(),
        ["a: up -> down: cannot be reached", "begun NoPrimary"]
    );
    assert_eq!(scene.serving(), "a:- b:r c:r");
    assert!(scene.map.primary().is_none());
    scene.set_down(0, None);
    assert_eq!(
        scene.round(),
        [
            "a: down: cannot be reached -> up",
            "a serves reads and writes",
            "primary a -> a",
            "ended NoPrimary"
        ]
    );
}

#[test]
fn a_restart_raises_the_epoch() {
    let mut scene = Scene::replicated(2);
    scene.uptimes = Uptimes::ByHand;
    scene.round();
    scene.facts[1].uptime_s = Some(102);
    assert_eq!(scene.round(), [""; 0]);
    scene.facts[1].uptime_s = Some(1);
    assert_eq!(scene.round(), ["b: epoch 1"]);
    // It was away, started again and has caught up with its old uptime: 1 s and then 11 s.
    scene.facts[1].uptime_s = Some(11);
    scene.facts[0].uptime_s = Some(162);
    let minute = Duration::from_secs(60);
    assert_eq!(scene.round_after(minute), ["b: epoch 2"]);
}

#[test]
fn an_uptime_may_lag_by_the_slack() {
    for (uptime_s, events) in [(106, 0), (105, 0), (104, 1)] {
        let mut scene = Scene::alone(1);
        scene.uptimes = Uptimes::ByHand;
        scene.round();
        scene.facts[0].uptime_s = Some(uptime_s);
        let passed = Duration::from_secs(10);
        assert_eq!(scene.round_after(passed).len(), events, "{uptime_s}");
    }
}

#[test]
fn another_server_in_its_place_raises_the_epoch() {
    let mut scene = Scene::alone(1);
    scene.facts[0].uid = Some("x".to_owned());
    scene.round();
    assert_eq!(scene.round(), [""; 0]);
    scene.facts[0].uid = Some("y".to_owned());
    assert_eq!(scene.round(), ["a: epoch 1"]);
}

#[test]
fn operators_take_servers_out() {
    let mut scene = Scene::replicated(2);
    scene.round();
    let drain = Order::Drain;
    assert_eq!(scene.order(1, drain), ["b: up -> draining"]);
    assert_eq!(scene.serving(), "a:rw b:-");
    assert_eq!(scene.order(0, drain), ["a: up -> draining"]);
    assert!(scene.map.primary().is_none(), "nothing begins there");
    let up = Order::Up;
    assert_eq!(scene.order(0, up), ["a: draining -> up"]);
    let maintenance = Order::Maintenance;
    assert_eq!(
        scene.order(0, maintenance),
        ["a: up -> maintenance", "begun NoPrimary"]
    );
    scene.set_down(1, Some(DownReason::Lost));
    let gone = ["b: draining -> down: closed the connection"];
    assert_eq!(scene.round(), gone);
    scene.set_down(1, None);
    scene.order(0, up);
    scene.order(1, up);
    scene.round();
    assert_eq!(scene.serving(), "a:rw b:r");
    assert_eq!(scene.order(9, up), [""; 0], "there is no such server");
}

#[test]
fn an_order_is_seen_beside_what_the_checks_say() {
    let mut scene = Scene::replicated(2);
    scene.round();
    let seen = |scene: &Scene| {
        let state = scene.map.server(ServerId(1)).unwrap();
        (state.order, state.down, state.condition)
    };
    assert_eq!(seen(&scene), (Order::Up, None, Condition::Up));
    let maintenance = Order::Maintenance;
    scene.order(1, maintenance);
    let taken_out = (Order::Maintenance, None, Condition::Maintenance);
    assert_eq!(seen(&scene), taken_out);
    // Who waits for its answer learns that there will be none.
    let before = scene.map.clone();
    scene.set_down(1, Some(DownReason::Lost));
    scene.round();
    let lost = Some(DownReason::Lost);
    assert_eq!(
        seen(&scene),
        (Order::Maintenance, lost, Condition::Maintenance)
    );
    assert!(!scene.map.looks_like(&before));
    scene.order(1, Order::Drain);
    assert_eq!(
        seen(&scene),
        (Order::Drain, lost, Condition::Down(DownReason::Lost))
    );
}

#[test]
fn another_configuration_keeps_what_is_known_by_name() {
    let mut scene = Scene::replicated(3);
    scene.round();
    scene.order(2, Order::Drain);
    // b has gone, c comes first, a has another address.
    let mut moved = entry(0);
    moved.address = entry(7).address;
    let map = ServerMap::new(vec![entry(2), moved, entry(5)], &[&scene.map]);
    let conditions: Vec<Condition> = map.servers().map(|it| it.condition).collect();
    let unknown = Condition::Down(DownReason::NotChecked);
    assert_eq!(conditions, [Condition::Draining, unknown, unknown]);
    let epochs: Vec<u64> = map.servers().map(|it| it.epoch.0).collect();
    assert_eq!(epochs, [0, 1, 0]);
    assert_eq!(map.primary, Some(ServerId(1)));
    assert_eq!(map.server(ServerId(0)).unwrap().id, ServerId(0));
}

#[test]
fn servers_of_two_monitors_keep_what_is_known_by_either() {
    let mut one = Scene::replicated(2);
    one.round();
    one.order(0, Order::Drain);
    let mut other = Scene::alone(3);
    for uid in ["x", "y"] {
        other.facts[2].uid = Some(uid.to_owned());
        other.round();
    }
    other.order(2, Order::Maintenance);
    let entries = vec![entry(2), entry(0), entry(5)];
    let map = ServerMap::new(entries, &[&one.map, &other.map]);
    let orders: Vec<Order> = map.servers().map(|it| it.order).collect();
    assert_eq!(orders, [Order::Maintenance, Order::Drain, Order::Up]);
    let epochs: Vec<u64> = map.servers().map(|it| it.epoch.0).collect();
    assert_eq!(epochs, [1, 0, 0]);
    assert_eq!(map.primary, Some(ServerId(1)));
}

#[test]
fn a_configuration_has_a_limit_of_servers() {
    let entries = |count| vec![entry(0); count];
    for count in [crate::SERVERS_MAX - 1, crate::SERVERS_MAX] {
        let map = ServerMap::new(entries(count), &[]);
        assert_eq!(map.servers().count(), count);
    }
}

#[test]
#[should_panic(expected = "the configuration has checked it")]
fn more_servers_than_that_are_a_bug() {
    ServerMap::new(vec![entry(0); crate::SERVERS_MAX + 1], &[]);
}

#[test]
fn routers_get_the_best_rank_within_their_lag() {
    let mut scene = Scene::replicated(4);
    let mut entries: Vec<_> = (0..4).map(entry).collect();
    entries[3].rank = Rank(1);
    scene.map = ServerMap::new(entries, &[]);
    scene.stream_of(1).lag_s = Some(5);
    scene.stream_of(2).lag_s = Some(9);
    scene.round();
    let replicas = |scene: &Scene, lag_s: Option<u64>| -> String {
        let found = scene.map.replicas(lag_s.map(Duration::from_secs));
        found.map(|it| &*it.entry.name).collect()
    };
    assert_eq!(replicas(&scene, None), "bc");
    assert_eq!(replicas(&scene, Some(9)), "bc");
    assert_eq!(replicas(&scene, Some(8)), "b");
    assert_eq!(replicas(&scene, Some(5)), "b");
    assert_eq!(replicas(&scene, Some(4)), "d", "the next rank");
    scene.set_down(3, Some(DownReason::Lost));
    scene.round();
    assert_eq!(replicas(&scene, Some(4)), "");
}

#[test]
fn a_replica_has_what_its_position_says() {
    let mut scene = Scene::replicated(2);
    let position = |text| GtidPosition::MariaDb(MariaDbPosition::parse(text).unwrap());
    scene.facts[1].position = Some(position("0-1-7"));
    scene.round();
    let has = |id, text| scene.map.has_applied(ServerId(id), &position(text));
    assert!(has(1, "0-1-6") && has(1, "0-1-7"));
    assert!(!has(1, "0-1-8"));
    assert!(!has(0, "0-1-1"), "it has told none");
    assert!(!has(9, "0-1-1"), "there is no such server");
}

#[test]
fn what_a_replica_has_written_itself_is_not_the_primarys() {
    let mut scene = Scene::replicated(2);
    let position = |text| GtidPosition::MariaDb(MariaDbPosition::parse(text).unwrap());
    for (facts, all, replicated) in [(0, "0-1-6", "0-2-3"), (1, "0-2-9", "0-1-5")] {
        scene.facts[facts].position = Some(position(all));
        scene.facts[facts].replicated = Some(position(replicated));
    }
    scene.round();
    let has = |scene: &Scene, id, text| scene.map.has_applied(ServerId(id), &position(text));
    assert!(has(&scene, 1, "0-1-5") && !has(&scene, 1, "0-1-6"));
    assert!(has(&scene, 0, "0-1-6"), "the primary has all that it wrote");
    // Once it is the primary, its own transactions are those that count.
    scene.facts[0].access = Access::ReadOnly;
    scene.facts[1].access = Access::Writable;
    scene.facts[1].streams = Streams::Known(Vec::new());
    scene.round();
    assert!(has(&scene, 1, "0-2-9"));
}
