//! Accounts, reports of sessions, operators, servers that end or freeze.

use std::time::Duration;

use backend::ClientSecret;
use monitor::{Condition, DownReason, Notice, Order, ServerId};
use testkit::topology::{POOR, many};
use testkit::wait_until;

use crate::support::{Watch, options};

#[test]
fn an_account_without_rights_is_noticed() {
    let servers = many(1).unwrap();
    let mut options = options(&servers);
    options.user = POOR.to_owned();
    options.secret = ClientSecret::password(POOR.as_bytes());
    let watch = Watch::start(options);
    watch.wait_for_notice(Notice::Denied(ServerId(0)));
    assert_eq!(watch.roles(), "primary:rw", "writes need no such right");
    // A server looks at global privileges at a login.
    let mut root = servers[0].connect().unwrap();
    root.run(&format!("GRANT SLAVE MONITOR ON *.* TO {POOR}@'%'"))
        .unwrap();
    wait_until("the right is noticed", || {
        let denied = Notice::Denied(ServerId(0));
        watch.present().map.notices().all(|it| *it != denied)
    });
}

#[test]
fn a_wrong_password_is_the_reason() {
    let servers = many(1).unwrap();
    let mut options = options(&servers);
    options.secret = ClientSecret::password(b"wrong");
    let watch = Watch::start(options);
    let refused = Condition::Down(DownReason::LoginRefused);
    wait_until("the login is refused", || watch.condition(0) == refused);
    let present = watch.present();
    let complaint = present.map.server(ServerId(0)).unwrap().complaint.clone();
    assert!(complaint.unwrap().contains("Access denied"));
}

#[test]
fn a_full_server_is_down_for_that_reason() {
    let servers = many(1).unwrap();
    let mut client = servers[0].connect().unwrap();
    client.run("set global max_connections = 10").unwrap();
    // One more than the limit is for administrators.
    let clients: Vec<_> = std::iter::from_fn(|| servers[0].connect().ok()).collect();
    assert!(8 < clients.len());
    let watch = Watch::start(options(&servers));
    let full = Condition::Down(DownReason::Full);
    wait_until("it is full", || watch.condition(0) == full);
    drop(clients);
    watch.wait_for_roles("primary:rw");
}

#[test]
fn a_frozen_server_delays_no_verdict_beyond_its_limit() {
    let mut servers = many(2).unwrap();
    let watch = Watch::start(options(&servers));
    watch.wait_for_roles("primary:rw unknown:-");
    servers[0].process().pause().unwrap();
    watch.wait_for_whole_round();
    assert_eq!(watch.condition(0), Condition::Down(DownReason::TimedOut));
    assert_eq!(watch.roles(), "unknown:- primary:rw");
    servers[0].process().resume().unwrap();
    watch.wait_for_roles("unknown:- primary:rw");
    wait_until("it is back", || watch.condition(0) == Condition::Up);
}

#[test]
fn a_killed_connection_is_no_failure() {
    let servers = many(1).unwrap();
    let watch = Watch::start(options(&servers));
    watch.wait_for_roles("primary:rw");
    let version = watch.present().version;
    let mut client = servers[0].connect().unwrap();
    for _ in 0..3 {
        let logins = || watch.monitor.counters().logins.value();
        let before = logins();
        client.run("kill user monitor").unwrap();
        wait_until("it has logged in again", || before < logins());
    }
    watch.wait_for_whole_round();
    assert_eq!(watch.present().version, version);
    assert_eq!(watch.monitor.counters().failures.value(), 0);
}

#[test]
fn a_report_brings_the_next_round_at_once() {
    let mut servers = many(2).unwrap();
    let mut options = options(&servers);
    options.interval = Duration::from_secs(3600);
    let watch = Watch::start(options);
    watch.wait_for_roles("primary:rw unknown:-");
    servers[0].kill().unwrap();
    watch.monitor.report_failure(ServerId(9));
    assert_eq!(watch.monitor.counters().rounds.value(), 1);
    for _ in 0..1000 {
        watch.monitor.report_failure(ServerId(0));
    }
    watch.wait_for_roles("unknown:- primary:rw");
    watch.monitor.report_failure(ServerId(0));
    let counters = watch.monitor.counters();
    assert!(counters.rounds.value() <= 3, "{counters:?}");
    assert!(counters.reports.value() <= 2, "{counters:?}");
}

#[test]
fn operators_change_the_map_between_rounds() {
    let servers = many(1).unwrap();
    let mut options = options(&servers);
    options.interval = Duration::from_secs(3600);
    let watch = Watch::start(options);
    watch.wait_for_roles("primary:rw");
    let mut reader = watch.monitor.reader();
    for (order, condition) in [
        (Order::Drain, Condition::Draining),
        (Order::Maintenance, Condition::Maintenance),
        (Order::Up, Condition::Up),
    ] {
        drop(watch.monitor.order(ServerId(0), order));
        wait_until("the order is in the map", || {
            let map = &reader.map().map;
            map.server(ServerId(0)).unwrap().condition == condition
        });
    }
    let mut registry = metrics::Registry::new();
    watch
        .monitor
        .register_metrics(&mut registry, &metrics::Label::new("monitor", "0"));
    let maps = registry
        .numbers()
        .into_iter()
        .find(|(name, _)| name == "Monitor_maps_0");
    assert_eq!(maps.map(|(_, number)| number), Some(4));
}

#[test]
fn a_stopped_monitor_closes_its_connections() {
    let servers = many(1).unwrap();
    let watch = Watch::start(options(&servers));
    watch.wait_for_roles("primary:rw");
    watch.monitor.stop();
    let mut client = servers[0].connect().unwrap();
    wait_until("no session of it is left", || {
        let sessions = "select count(*) from information_schema.processlist where user = 'monitor'";
        client.value(sessions).unwrap().as_deref() == Some("0")
    });
    assert_eq!(watch.roles(), "primary:rw", "the last map stays");
}
