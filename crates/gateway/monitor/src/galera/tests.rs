//! Members, donors, split clusters and the choice of the writer, as lists of events.

use std::time::Duration;

use super::*;
use crate::scene::Scene;
use crate::state::{DownReason, Rank};

#[test]
fn one_member_takes_the_writes_and_keeps_them() {
    let mut scene = Scene::galera(3);
    (scene.galera_of(0).index, scene.galera_of(2).index) = (2, 0);
    assert!(scene.round().contains(&"primary - -> c".to_owned()));
    assert_eq!(scene.serving(), "a:r b:r c:rw");
    scene.set_down(2, Some(DownReason::Unreachable));
    assert_eq!(
        scene.round(),
        [
            "b: galera member -> galera writer",
            "b serves reads and writes",
            "c: up -> down: cannot be reached",
            "c: galera writer -> unknown",
            "primary c -> b"
        ]
    );
    scene.set_down(2, None);
    scene.round();
    assert_eq!(scene.serving(), "a:r b:rw c:r");
}

#[test]
fn rank_comes_before_the_index() {
    let mut scene = Scene::galera(3);
    let mut entries: Vec<_> = scene.map.servers().map(|it| it.entry.clone()).collect();
    (entries[0].rank, entries[1].rank) = (Rank(2), Rank(1));
    scene.map = ServerMap::new(entries, &[]);
    scene.round();
    assert_eq!(scene.serving(), "a:r b:r c:rw");
    scene.facts[2].access = Access::ReadOnly;
    scene.round();
    assert_eq!(scene.serving(), "a:r b:rw c:r");
    scene.order(1, Order::Maintenance);
    assert_eq!(scene.serving(), "a:rw b:- c:r");
}

#[test]
fn members_that_cannot_serve_are_out() {
    type Spoil = fn(&mut GaleraFacts);
    let spoil: [(Spoil, &str); 5] = [
        (
            |it| it.is_in_primary_component = false,
            "outside of the primary component",
        ),
        (|it| it.is_ready = false, "not ready"),
        (|it| it.local_state = 3, "not ready"),
        (
            |it| it.local_state = GALERA_DONOR,
            "donor or desynchronized",
        ),
        (|it| it.rejects_queries = true, "rejects queries"),
    ];
    for (spoil, why) in spoil {
        let mut scene = Scene::galera(3);
        scene.round();
        let whole = scene.galera_of(1).clone();
        spoil(scene.galera_of(1));
        assert_eq!(scene.round(), [format!("b serves nothing: {why}")]);
        assert_eq!(scene.serving(), "a:rw b:- c:r");
        *scene.galera_of(1) = whole;
        assert_eq!(scene.round(), ["b serves reads"]);
    }
}

/// A cluster of one, to which a second member joins.
#[test]
fn a_donor_serves_if_no_other_can() {
    let mut scene = Scene::galera(2);
    scene.set_down(1, Some(DownReason::Unreachable));
    scene.galera_of(0).local_state = GALERA_DONOR;
    scene.round();
    assert_eq!(scene.serving(), "a:rw b:-");
    scene.set_down(1, None);
    scene.galera_of(1).local_state = 1;
    scene.round();
    assert_eq!(scene.serving(), "a:rw b:-");
    scene.galera_of(1).local_state = GALERA_SYNCED;
    scene.round();
    assert_eq!(scene.serving(), "a:- b:rw");
    scene.galera_of(0).local_state = GALERA_SYNCED;
    scene.round();
    assert_eq!(scene.serving(), "a:r b:rw");
}

#[test]
fn without_a_primary_component_no_member_serves() {
    let mut scene = Scene::galera(3);
    scene.round();
    for index in 0..3 {
        scene.galera_of(index).is_in_primary_component = false;
    }
    scene.round();
    assert_eq!(scene.serving(), "a:- b:- c:-");
    assert_eq!(scene.notices(), [Notice::NoPrimary].into());
}

#[test]
fn two_clusters_are_not_mixed() {
    let mut scene = Scene::galera(3);
    for index in 1..3 {
        scene.galera_of(index).cluster = "v".to_owned();
    }
    scene.round();
    assert_eq!(scene.serving(), "a:- b:rw c:r", "the larger one");
    let other = Notice::OtherCluster(ServerId(0));
    assert_eq!(scene.notices(), [other].into());
    scene.galera_of(2).cluster = "u".to_owned();
    scene.round();
    assert_eq!(scene.serving(), "a:- b:rw c:-", "that of the writer");
}

#[test]
fn halves_of_a_split_cluster_are_told_apart_in_the_second_round() {
    let mut scene = Scene::galera(3);
    scene.round();
    scene.galera_of(1).configuration = 4;
    scene.galera_of(2).configuration = 4;
    assert_eq!(scene.round(), [""; 0], "members may hear of it one by one");
    scene.round();
    assert_eq!(scene.serving(), "a:rw b:- c:-", "the half of the writer");
    scene.galera_of(0).configuration = 4;
    scene.round();
    assert_eq!(scene.serving(), "a:rw b:r c:r");
}

#[test]
fn a_server_outside_of_the_cluster_serves_nothing() {
    let mut scene = Scene::galera(2);
    scene.facts[1].galera = None;
    scene.round();
    assert_eq!(scene.serving(), "a:rw b:-");
    scene.rules.kind = crate::Kind::Replication;
    scene.round();
    assert_eq!(scene.serving(), "a:rw b:-", "a second writable one");
}

#[test]
fn what_the_servers_said_last_tells_the_kind_while_all_are_down() {
    let mut scene = Scene::galera(2);
    scene.round();
    for index in 0..2 {
        scene.set_down(index, Some(DownReason::Unreachable));
    }
    scene.round();
    scene.set_down(1, None);
    assert!(
        scene
            .round()
            .contains(&"b: galera member -> galera writer".to_owned())
    );
}

#[test]
fn the_share_of_flow_control_is_that_of_the_last_interval() {
    let mut scene = Scene::galera(2);
    let permille = |scene: &Scene| {
        let server = scene.map.server(ServerId(1)).unwrap();
        server.galera.as_ref().unwrap().paused_permille
    };
    let held = Notice::FlowControl(ServerId(1));
    let mut paused = Duration::from_secs(100);
    scene.galera_of(1).paused_ns = 100_000_000_000;
    scene.round();
    assert_eq!(permille(&scene), 0);
    for (held_ms, share) in [(998, 499), (1000, 500), (1002, 501), (9000, 1000), (0, 0)] {
        paused += Duration::from_millis(held_ms);
        scene.galera_of(1).paused_ns = u64::try_from(paused.as_nanos()).unwrap();
        scene.round();
        assert_eq!(permille(&scene), share);
        assert_eq!(scene.notices().contains(&held), 500 <= share, "{share}");
    }
    // FLUSH STATUS.
    scene.galera_of(1).paused_ns = 0;
    scene.round();
    assert_eq!(permille(&scene), 0);
}
