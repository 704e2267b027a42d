//! A primary and two replicas.

use monitor::gtid::GtidPosition;
use monitor::gtid::mariadb::MariaDbPosition;
use monitor::{Condition, DownReason, Notice, ServerId};
use testkit::topology::Replicated;
use testkit::wait_until;

use crate::support::{Watch, options};

const ALL_UP: &str = "primary:rw replica:r replica:r";

fn start() -> (Replicated, Watch) {
    let topology = Replicated::start(2).unwrap();
    let watch = Watch::start(options(&topology.servers));
    watch.wait_for_roles(ALL_UP);
    (topology, watch)
}

#[test]
fn roles_and_positions_are_found() {
    let (topology, watch) = start();
    let mut primary = topology.connect(0).unwrap();
    primary.run("create database d").unwrap();
    let position = primary.value("select @@gtid_binlog_pos").unwrap().unwrap();
    let position = GtidPosition::MariaDb(MariaDbPosition::parse(&position).unwrap());
    for server in 0..3 {
        wait_until("each server has the write", || {
            watch.present().map.has_applied(ServerId(server), &position)
        });
    }
    let present = watch.present();
    let primary = present.map.primary().unwrap();
    assert_eq!(primary.id, ServerId(0));
    let version = primary.version.as_ref().unwrap();
    assert_eq!(version.product, backend::Product::MariaDb);
    let replicas = present.map.replicas(Some(std::time::Duration::ZERO));
    assert_eq!(replicas.count(), 2);
    assert_eq!(present.map.notices().count(), 0);
}

#[test]
fn a_stopped_replica_is_broken_until_it_is_started() {
    let (topology, watch) = start();
    let mut replica = topology.connect(1).unwrap();
    for (stop, start) in [
        ("stop slave", "start slave"),
        ("stop slave sql_thread", "start slave sql_thread"),
        ("stop slave io_thread", "start slave io_thread"),
    ] {
        replica.run(stop).unwrap();
        watch.wait_for_roles("primary:rw replica:- replica:r");
        replica.run(start).unwrap();
        watch.wait_for_roles(ALL_UP);
    }
    // A row that the primary's change does not find.
    let mut primary = topology.connect(0).unwrap();
    primary
        .run("create table mysql.t (a int primary key)")
        .unwrap();
    topology.wait_for_replica(1, 0).unwrap();
    replica.run("set sql_log_bin = 0").unwrap();
    replica.run("insert into mysql.t values (1)").unwrap();
    primary.run("insert into mysql.t values (1)").unwrap();
    watch.wait_for_roles("primary:rw replica:- replica:r");
    let present = watch.present();
    let complaint = present.map.server(ServerId(1)).unwrap().complaint.clone();
    assert!(complaint.unwrap().contains("Duplicate entry"));
}

#[test]
fn killed_servers_are_out_after_a_round_and_reads_go_on() {
    let (mut topology, watch) = start();
    let mut primary = topology.connect(0).unwrap();
    wait_until("an uptime from which a restart can be told", || {
        3 <= primary.status("Uptime").unwrap()
    });
    topology.servers[1].kill().unwrap();
    watch.wait_for_whole_round();
    let down = Condition::Down(DownReason::Unreachable);
    assert_eq!(watch.condition(1), down);
    assert_eq!(watch.roles(), "primary:rw replica:- replica:r");
    topology.servers[0].kill().unwrap();
    watch.wait_for_whole_round();
    assert_eq!(watch.roles(), "primary:- replica:- replica:r");
    watch.wait_for_notice(Notice::NoPrimary);

    let epoch = |server| watch.present().map.server(ServerId(server)).unwrap().epoch;
    let before = epoch(0);
    topology.servers[0].start_again().unwrap();
    topology.servers[1].start_again().unwrap();
    watch.wait_for_roles(ALL_UP);
    assert!(before < epoch(0), "older connections are of no use");
}

#[test]
fn a_switchover_by_hand_moves_the_primary() {
    let (topology, watch) = start();
    topology
        .connect(0)
        .unwrap()
        .run("set global read_only = 1")
        .unwrap();
    watch.wait_for_notice(Notice::NoPrimary);
    topology.wait_for_replica(1, 0).unwrap();
    let mut promoted = topology.connect(1).unwrap();
    for statement in ["stop slave", "reset slave all", "set global read_only = 0"] {
        promoted.run(statement).unwrap();
    }
    watch.wait_for_roles("unknown:- primary:rw replica:-");
    let position = promoted.value("select @@gtid_binlog_pos").unwrap().unwrap();
    let mut old = topology.connect(0).unwrap();
    old.run(&format!("set global gtid_slave_pos = '{position}'"))
        .unwrap();
    topology.replicate(0, 1).unwrap();
    watch.wait_for_roles("relay:r primary:rw replica:r");
    topology.connect(2).unwrap().run("stop slave").unwrap();
    topology.replicate(2, 1).unwrap();
    watch.wait_for_roles("replica:r primary:rw replica:r");
    assert_eq!(watch.present().map.notices().count(), 0);
}

#[test]
fn a_second_writable_server_does_not_take_the_writes() {
    let (topology, watch) = start();
    let mut replica = topology.connect(2).unwrap();
    for statement in ["stop slave", "reset slave all", "set global read_only = 0"] {
        replica.run(statement).unwrap();
    }
    watch.wait_for_notice(Notice::SecondWritable(ServerId(2)));
    assert_eq!(watch.roles(), "primary:rw replica:r unknown:-");
}

#[test]
fn a_replicas_own_writes_are_not_taken_for_the_primarys() {
    let (topology, watch) = start();
    let mut replica = topology.connect(1).unwrap();
    replica.run("stop slave sql_thread").unwrap();
    for number in 0..3 {
        replica
            .run(&format!("create database own{number}"))
            .unwrap();
    }
    let mut primary = topology.connect(0).unwrap();
    primary.run("create database d").unwrap();
    let position = primary.value("select @@gtid_binlog_pos").unwrap().unwrap();
    let position = GtidPosition::MariaDb(MariaDbPosition::parse(&position).unwrap());
    wait_until("the other replica has the write", || {
        watch.present().map.has_applied(ServerId(2), &position)
    });
    watch.wait_for_whole_round();
    assert!(!watch.present().map.has_applied(ServerId(1), &position));
    replica.run("start slave").unwrap();
    wait_until("it has the write, too", || {
        watch.present().map.has_applied(ServerId(1), &position)
    });
}
