//! Roles, lag and broken replicas, as lists of events.

use super::*;
use crate::scene::{Scene, stream};
use crate::state::DownReason;

fn set_access(scene: &mut Scene, index: usize, access: Access) {
    scene.facts[index].access = access;
}

fn set_streams(scene: &mut Scene, index: usize, streams: Vec<Stream>) {
    scene.facts[index].streams = Streams::Known(streams);
}

#[test]
fn stopped_replication_takes_a_replica_out() {
    use crate::facts::Thread;

    let mut scene = Scene::replicated(2);
    scene.round();
    let stopped = "b serves nothing: its replication has stopped";
    for (receiver, applier) in [
        (Thread::Stopped, Thread::Stopped),
        (Thread::Running, Thread::Stopped),
        (Thread::Stopped, Thread::Running),
    ] {
        (scene.stream_of(1).receiver, scene.stream_of(1).applier) = (receiver, applier);
        scene.stream_of(1).lag_s = None;
        assert_eq!(scene.round(), [stopped]);
        assert_eq!(scene.round(), [""; 0]);
        *scene.stream_of(1) = stream(0);
        assert_eq!(scene.round(), ["b serves reads"]);
    }
    scene.stream_of(1).applier = Thread::Stopped;
    scene.stream_of(1).error = "duplicate key".to_owned();
    assert_eq!(scene.round(), [format!("{stopped} (duplicate key)")]);
}

#[test]
fn a_manual_switchover_moves_the_primary() {
    let mut scene = Scene::replicated(3);
    scene.round();
    set_access(&mut scene, 0, Access::ReadOnly);
    assert_eq!(
        scene.round(),
        ["a: primary -> unknown", "a serves reads", "begun NoPrimary"],
        "the former primary has the newest data"
    );
    set_streams(&mut scene, 1, Vec::new());
    set_access(&mut scene, 1, Access::Writable);
    assert_eq!(
        scene.round(),
        [
            "a serves nothing: read-only, and replicates from no server",
            "b: replica -> primary",
            "b serves reads and writes",
            "c serves nothing: the server that it replicates from gets no changes",
            "primary a -> b",
            "ended NoPrimary"
        ]
    );
    set_streams(&mut scene, 0, vec![stream(1)]);
    assert_eq!(
        scene.round(),
        ["a: unknown -> relay", "a serves reads", "c serves reads"]
    );
    set_streams(&mut scene, 2, vec![stream(1)]);
    assert_eq!(scene.round(), ["a: relay -> replica"]);
    assert_eq!(scene.serving(), "a:r b:rw c:r");
}

#[test]
fn the_present_primary_keeps_its_place() {
    let mut scene = Scene::alone(3);
    scene.round();
    assert_eq!(scene.serving(), "a:rw b:- c:-");
    let second = |id| Notice::SecondWritable(ServerId(id));
    assert_eq!(scene.notices(), [second(1), second(2)].into());
    scene.set_down(0, Some(DownReason::Unreachable));
    scene.round();
    assert_eq!(scene.serving(), "a:- b:rw c:-");
    scene.set_down(0, None);
    scene.round();
    assert_eq!(scene.serving(), "a:- b:rw c:-");
    assert_eq!(scene.notices(), [second(0), second(2)].into());
}

#[test]
fn rank_and_then_followers_decide_among_writable_servers() {
    let mut scene = Scene::alone(4);
    set_access(&mut scene, 3, Access::ReadOnly);
    set_streams(&mut scene, 3, vec![stream(2)]);
    scene.round();
    assert_eq!(scene.serving(), "a:- b:- c:rw d:r");

    let mut entries: Vec<_> = scene.map.servers().map(|it| it.entry.clone()).collect();
    for index in [0, 2, 3] {
        entries[index].rank = crate::Rank(1);
    }
    scene.map = ServerMap::new(entries, &[]);
    scene.round();
    let wrong_tree = "a:- b:rw c:- d:-";
    assert_eq!(scene.serving(), wrong_tree);
}

#[test]
fn a_draining_server_is_the_last_choice() {
    let mut scene = Scene::alone(2);
    scene.order(0, Order::Drain);
    scene.round();
    assert_eq!(scene.serving(), "a:- b:rw");
}

/// Somebody forgot `read_only`. It takes no writes even if its primary is gone: it could be behind.
#[test]
fn a_writable_replica_is_no_candidate_until_its_replication_is_stopped() {
    let mut scene = Scene::replicated(2);
    set_access(&mut scene, 1, Access::Writable);
    scene.round();
    assert_eq!(scene.serving(), "a:rw b:r");
    assert!(scene.notices().is_empty());
    scene.crash(0);
    scene.round();
    assert_eq!(scene.serving(), "a:- b:r");
    let stopped = Stream {
        receiver: crate::facts::Thread::Stopped,
        applier: crate::facts::Thread::Stopped,
        ..stream(0)
    };
    set_streams(&mut scene, 1, vec![stopped]);
    scene.round();
    assert_eq!(scene.serving(), "a:- b:rw");
}

#[test]
fn of_two_primaries_in_a_circle_one_takes_the_writes() {
    let mut scene = Scene::alone(3);
    set_streams(&mut scene, 0, vec![stream(1)]);
    set_streams(&mut scene, 1, vec![stream(0)]);
    set_access(&mut scene, 2, Access::ReadOnly);
    set_streams(&mut scene, 2, vec![stream(1)]);
    scene.round();
    // b has one follower more.
    assert_eq!(scene.serving(), "a:r b:rw c:r");
    assert!(scene.notices().is_empty());
    scene.crash(1);
    scene.round();
    assert_eq!(scene.serving(), "a:rw b:- c:r");
}

#[test]
fn lag_is_told_or_grows() {
    let mut scene = Scene::replicated(2);
    scene.stream_of(1).lag_s = Some(3);
    scene.round();
    assert_eq!(scene.lags(), [Some(0), Some(3)]);
    // It cannot reach its primary, which is there.
    scene.stream_of(1).lag_s = None;
    scene.stream_of(1).receiver = crate::facts::Thread::Connecting;
    scene.round();
    scene.round();
    assert_eq!(scene.lags(), [Some(0), Some(7)]);
    *scene.stream_of(1) = stream(0);
    scene.round();
    assert_eq!(scene.lags(), [Some(0), Some(0)]);
}

#[test]
fn lag_stands_still_without_a_primary() {
    let mut scene = Scene::replicated(2);
    scene.stream_of(1).lag_s = Some(3);
    scene.round();
    scene.crash(0);
    scene.round_after(Duration::from_secs(30));
    scene.round_after(Duration::from_secs(30));
    assert_eq!(scene.lags(), [None, Some(3)]);
    assert_eq!(scene.serving(), "a:- b:r");
}

#[test]
fn a_lag_that_was_never_told_counts_once_there_is_a_primary() {
    let mut scene = Scene::replicated(2);
    scene.crash(0);
    scene.round();
    assert_eq!(scene.serving(), "a:- b:r");
    scene.set_down(0, None);
    scene.round();
    assert_eq!(scene.serving(), "a:rw b:-");
}

#[test]
fn a_replica_over_the_limit_returns_at_half_of_it() {
    let mut scene = Scene::replicated(2);
    scene.rules.lag_max = Some(Duration::from_secs(10));
    scene.round();
    for (lag_s, serves) in [
        (9, "r"),
        (10, "r"),
        (11, "-"),
        (10, "-"),
        (6, "-"),
        (5, "r"),
        (10, "r"),
    ] {
        scene.stream_of(1).lag_s = Some(lag_s);
        scene.round();
        assert_eq!(scene.serving(), format!("a:rw b:{serves}"), "{lag_s}");
    }
}

#[test]
fn what_a_relay_lacks_its_replicas_lack() {
    let mut scene = Scene::replicated(4);
    set_streams(&mut scene, 2, vec![stream(1)]);
    set_streams(&mut scene, 3, vec![stream(2)]);
    scene.stream_of(1).lag_s = Some(8);
    scene.stream_of(3).lag_s = Some(1);
    assert!(scene.round().contains(&"b: unknown -> relay".to_owned()));
    assert_eq!(scene.lags(), [Some(0), Some(8), Some(8), Some(8)]);
    scene.stream_of(1).applier = crate::facts::Thread::Stopped;
    let behind = "serves nothing: the server that it replicates from gets no changes";
    assert_eq!(
        scene.round(),
        [
            "b serves nothing: its replication has stopped".to_owned(),
            format!("c {behind}"),
            format!("d {behind}")
        ]
    );
    // A relay that is gone is found by the lag that grows.
    scene.stream_of(1).applier = crate::facts::Thread::Running;
    scene.round();
    scene.crash(1);
    scene.rules.lag_max = Some(Duration::from_secs(10));
    scene.round_after(Duration::from_secs(11));
    assert_eq!(scene.serving(), "a:rw b:- c:- d:-");
}

#[test]
fn a_source_is_found_by_number_or_address() {
    let mut scene = Scene::replicated(2);
    scene.stream_of(1).source.host = "db1.internal".to_owned();
    scene.round();
    assert!(scene.notices().is_empty());
    scene.stream_of(1).source_number = 0;
    scene.round();
    assert_eq!(
        scene.notices(),
        [Notice::SourceNotListed(ServerId(1))].into()
    );
    assert_eq!(scene.serving(), "a:rw b:r");
    scene.stream_of(1).source.host = "127.0.0.1".to_owned();
    scene.round();
    assert!(scene.notices().is_empty());
}

#[test]
fn one_number_of_two_servers_is_noticed() {
    let mut scene = Scene::replicated(3);
    scene.facts[2].number = 1;
    scene.round();
    let same = Notice::SameNumber(ServerId(0), ServerId(2));
    assert_eq!(scene.notices(), [same].into());
    assert_eq!(scene.serving(), "a:rw b:r c:r", "by address");
}

#[test]
fn replicas_of_a_primary_elsewhere_serve_reads() {
    let mut scene = Scene::replicated(2);
    set_access(&mut scene, 0, Access::ReadOnly);
    set_streams(&mut scene, 0, vec![stream(9)]);
    scene.round();
    assert_eq!(scene.serving(), "a:r b:r");
    let source = Notice::SourceNotListed(ServerId(0));
    assert_eq!(scene.notices(), [Notice::NoPrimary, source].into());
}

#[test]
fn an_account_without_rights_costs_the_replicas_only() {
    let mut scene = Scene::replicated(2);
    scene.facts[0].streams = Streams::Denied;
    scene.facts[1].streams = Streams::Denied;
    scene.round();
    assert_eq!(scene.serving(), "a:rw b:-");
    let denied = |id| Notice::Denied(ServerId(id));
    assert_eq!(scene.notices(), [denied(0), denied(1)].into());
}

/// A replica may be writable, which is the default of MariaDB. So either may be the replica.
#[test]
fn of_two_writable_servers_that_tell_no_streams_none_is_the_primary() {
    let mut scene = Scene::replicated(2);
    for facts in &mut scene.facts {
        (facts.streams, facts.access) = (Streams::Denied, Access::Writable);
    }
    scene.round();
    assert_eq!(scene.serving(), "a:- b:-");
    // One that tells is known to be no replica.
    scene.facts[1].streams = Streams::Known(Vec::new());
    scene.round();
    assert_eq!(scene.serving(), "a:- b:rw");
}

/// STOP SLAVE holds the answer back while it waits for the applier.
#[test]
fn an_answer_that_is_held_back_changes_nothing() {
    let mut scene = Scene::replicated(2);
    scene.round();
    scene.facts[1].streams = Streams::Unanswered;
    assert_eq!(scene.round(), [""; 0]);
    assert_eq!(scene.serving(), "a:rw b:r");
}

#[test]
fn a_read_only_server_that_is_alone_serves_reads() {
    let mut scene = Scene::alone(1);
    set_access(&mut scene, 0, Access::ReadOnly);
    scene.round();
    assert_eq!(scene.serving(), "a:r");
}
