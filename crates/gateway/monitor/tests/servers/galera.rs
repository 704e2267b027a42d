//! A cluster of three.

use monitor::ServerId;
use testkit::topology::Galera;

use crate::support::{Watch, options};

#[test]
fn a_member_is_killed_and_another_one_desynchronized() {
    let mut cluster = Galera::start(3).unwrap();
    let watch = Watch::start(options(&cluster.servers));
    watch.wait_for_roles("writer:rw member:r member:r");
    let present = watch.present();
    for server in present.map.servers() {
        let galera = server.galera.as_ref().unwrap();
        assert_eq!((galera.size, galera.cluster.len()), (3, 36));
    }
    let mut member = cluster.servers[1].connect().unwrap();
    member.run("set global wsrep_desync = 1").unwrap();
    watch.wait_for_roles("writer:rw member:- member:r");
    member.run("set global wsrep_desync = 0").unwrap();
    watch.wait_for_roles("writer:rw member:r member:r");

    let mut writer = cluster.servers[0].connect().unwrap();
    writer.run("set global wsrep_desync = 1").unwrap();
    watch.wait_for_roles("member:- writer:rw member:r");
    writer.run("set global wsrep_desync = 0").unwrap();
    watch.wait_for_roles("member:r writer:rw member:r");

    member.run("set global wsrep_reject_queries = all").unwrap();
    watch.wait_for_roles("writer:rw member:- member:r");
    member
        .run("set global wsrep_reject_queries = none")
        .unwrap();
    watch.wait_for_roles("writer:rw member:r member:r");

    cluster.servers[0].kill().unwrap();
    watch.wait_for_whole_round();
    assert!(
        !watch
            .present()
            .map
            .server(ServerId(0))
            .unwrap()
            .is_reachable()
    );
    watch.wait_for_roles("unknown:- writer:rw member:r");
    // The third takes the writes until it notices that it is no primary component.
    cluster.servers[1].kill().unwrap();
    watch.wait_for_roles("unknown:- unknown:- member:-");
}
