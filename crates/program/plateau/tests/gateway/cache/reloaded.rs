//! A new configuration, while sessions of older ones go on.

use super::super::reload::Reloaded;
use super::*;

/// A service of this name with the cache, if it has one.
fn service(name: &str, cache: &str) -> String {
    format!("[[service]]\nname = \"{name}\"\n{}{cache}", POOLED[0])
}

const CACHED: &str = "cache = \"c\"\n";

/// Sessions that began before there was a cache are not seen changing anything.
#[test]
fn nothing_is_kept_while_sessions_go_on_that_are_not_seen() {
    let backend = cached_backend();
    let mut root = backend.connect().unwrap();
    let before = sections(&[&backend]) + &service("shop", "");
    let mut reloaded = Reloaded::start(&before);
    let mut old = reloaded.connect();
    reloaded.take(&(before + CACHED + CACHE));
    wait_until("it says why", || {
        reloaded.gateway.log().contains("another configuration")
    });
    let mut client = reloaded.connect();
    assert_eq!(read(&mut client), "10");
    old.run("UPDATE shop.t SET v = 11 WHERE id = 1").unwrap();
    assert_eq!(read(&mut client), "11");
    old.quit().unwrap();
    wait_until_kept(&mut client, &mut root);
}

/// Sessions that keep results go on after the cache has left the configuration. The new ones are
/// not seen changing anything, also once the cache is back.
#[test]
fn nothing_is_kept_once_the_last_cache_is_gone() {
    let backend = cached_backend();
    let mut root = backend.connect().unwrap();
    let plain = sections(&[&backend]) + &service("shop", "");
    let cached = plain.clone() + CACHED + CACHE;
    let mut reloaded = Reloaded::start(&cached);
    let mut old = reloaded.connect();
    wait_until_kept(&mut old, &mut root);
    assert_eq!(read(&mut old), "10");
    root.run(ASIDE).unwrap();
    assert_eq!(read(&mut old), "10", "it was kept");
    reloaded.take(&plain);
    assert_eq!(read(&mut old), "1010", "it is kept no more");
    let mut unseen = reloaded.connect();
    unseen.run("UPDATE shop.t SET v = 11 WHERE id = 1").unwrap();
    assert_eq!(read(&mut old), "11");
    reloaded.take(&cached);
    let mut client = reloaded.connect();
    wait_until("it says why", || {
        reloaded.gateway.log().contains("another configuration")
    });
    for v in ["12", "13"] {
        assert_eq!(read(&mut old), read(&mut client));
        let change = format!("UPDATE shop.t SET v = {v} WHERE id = 1");
        unseen.run(&change).unwrap();
        assert_eq!((read(&mut old), read(&mut client)), (v.into(), v.into()));
    }
    unseen.quit().unwrap();
    wait_until_kept(&mut client, &mut root);
    wait_until_kept(&mut old, &mut root);
}

/// Definitions are read again, of servers too that only older sessions have.
#[test]
fn servers_that_only_old_sessions_have_are_asked_too() {
    let (first, second) = (cached_backend(), cached_backend());
    let (mut root, mut of_second) = (first.connect().unwrap(), second.connect().unwrap());
    of_second
        .run("CREATE VIEW shop.seen AS SELECT v FROM shop.t WHERE id = 1")
        .unwrap();
    let on = |backend: &Server| sections(&[backend]) + &service("shop", CACHED) + CACHE;
    let mut reloaded = Reloaded::start(&on(&second));
    let mut old = reloaded.connect();
    wait_until_kept(&mut old, &mut of_second);
    reloaded.take(&on(&first));
    let mut client = reloaded.connect();
    wait_until_kept(&mut client, &mut root);
    client.run("CREATE TABLE shop.new (id INT)").unwrap();
    wait_until_kept(&mut client, &mut root);
    wait_until_kept(&mut old, &mut of_second);
    // No name in it is one of the change.
    let through_view = "SELECT * FROM seen";
    old.run("USE shop").unwrap();
    assert_eq!(value(&mut old, through_view), "10");
    old.run("UPDATE t SET v = 11 WHERE id = 1").unwrap();
    assert_eq!(value(&mut old, through_view), "11");
}

/// What sessions of an older configuration write is known, however it names services and servers.
#[test]
fn a_replica_is_late_for_what_old_sessions_wrote() {
    let topology = cached_topology();
    let file = |service: &str, server: &str| {
        let servers: Vec<_> = topology.servers.iter().collect();
        let sections = sections(&servers).replace("name = \"db", &format!("name = \"{server}"));
        let watch = "interval = 0.1\ntimeout = 0.5\n";
        let split = "router = \"read-write-split\"\ncausal_reads = \"off\"\n";
        let service = format!("[[service]]\nname = \"{service}\"\n{split}{CACHED}");
        sections + watch + &service + CACHE
    };
    let mut reloaded = Reloaded::start(&file("one", "db"));
    let mut old = reloaded.connect();
    for (service, server) in [("two", "db"), ("two", "other")] {
        reloaded.take(&file(service, server));
        let login = reloaded.gateway.login("app", "secret");
        wait_until("its accounts are known", || Client::connect(&login).is_ok());
        let mut reader = reloaded.connect();
        wait_until("replicas are believed", || {
            let before = value(&mut reader, "SELECT v FROM shop.u WHERE id = 1");
            let mut root = topology.connect(0).expect("root gets in");
            root.run("UPDATE shop.u SET v = v + 1").unwrap();
            wait_for_replicas(&topology);
            before == value(&mut reader, "SELECT v FROM shop.u WHERE id = 1")
        });
        old.run("UPDATE shop.t SET v = 10 WHERE id = 1").unwrap();
        wait_for_replicas(&topology);
        let mut replicas: Vec<_> = (1..=2).map(|it| topology.connect(it).unwrap()).collect();
        for replica in &mut replicas {
            replica.run("LOCK TABLES shop.t READ").unwrap();
        }
        old.run("UPDATE shop.t SET v = 11 WHERE id = 1").unwrap();
        assert_eq!(read(&mut reader), "10", "{service}, {server}");
        for replica in &mut replicas {
            replica.run("UNLOCK TABLES").unwrap();
        }
        wait_until("the replicas follow", || read(&mut reader) == "11");
    }
}

/// Sessions of an older configuration see a switchover by a watch of their own, later than others.
/// Until then they take the old primary for the one that is, and what it says is not kept beyond.
#[test]
fn a_switchover_is_noted_for_each_configuration() {
    let topology = cached_topology();
    let (first, second) = (&topology.servers[0], &topology.servers[1]);
    let file = |watch: &str| {
        let service = "[[service]]\nname = \"shop\"\nrouter = \"read-connection\"\n\
                       role = \"primary\"\n";
        sections(&[first, second]) + watch + service + CACHED + CACHE
    };
    let mut reloaded = Reloaded::start(&file("interval = 5\n"));
    let mut old = reloaded.connect();
    let (mut of_first, mut of_second) = (first.connect().unwrap(), second.connect().unwrap());
    wait_until_kept(&mut old, &mut of_first);
    reloaded.take(&file("interval = 0.1\ntimeout = 0.5\n"));
    let mut new = reloaded.connect();
    wait_until_kept(&mut new, &mut of_first);
    topology.wait_for_replica(1, 0).unwrap();
    for statement in ["STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL read_only = 0"] {
        of_second.run(statement).expect(statement);
    }
    of_first.run("SET GLOBAL read_only = 1").unwrap();
    let port = "SELECT @@port";
    wait_until("the new primary is taken", || {
        value(&mut new, port) == second.port().to_string()
    });
    wait_until_kept(&mut new, &mut of_second);
    new.run("UPDATE shop.t SET v = 59 WHERE id = 1").unwrap();
    // Mostly from the old primary, since its own watch looks again later.
    let answer = read(&mut old);
    assert!(["10", "59"].contains(&&*answer), "{answer}");
    assert_eq!(read(&mut new), "59");
    wait_until("the new primary is seen", || read(&mut old) == "59");
}

/// Servers that only older sessions have may be gone for good, and others go on.
#[test]
fn a_dead_server_of_old_sessions_stops_no_cache() {
    let (first, mut second) = (cached_backend(), cached_backend());
    let (mut root, mut of_second) = (first.connect().unwrap(), second.connect().unwrap());
    let on = |backend: &Server| {
        let watch = "interval = 0.1\ntimeout = 0.5\n";
        sections(&[backend]) + watch + &service("shop", CACHED) + CACHE
    };
    let mut reloaded = Reloaded::start(&on(&second));
    let mut old = reloaded.connect();
    wait_until_kept(&mut old, &mut of_second);
    reloaded.take(&on(&first));
    second.kill().unwrap();
    let mut client = reloaded.connect();
    wait_until_kept(&mut client, &mut root);
    client.run("CREATE TABLE shop.new (id INT)").unwrap();
    wait_until_kept(&mut client, &mut root);
    old.quit().unwrap();
}
