//! KILL by the numbers that clients were told.

use super::*;

/// A client whose statement sleeps, once it does.
fn sleeper(gateway: &Gateway, root: &mut Client, mark: &str) -> Client {
    let mut client = gateway.connect();
    client
        .send_query(format!("SELECT SLEEP(1000), '{mark}'").as_bytes())
        .expect("it is sent");
    wait_until("the statement runs", || runs(root, mark));
    client
}

#[test]
fn a_number_of_a_client_ends_its_statement_or_its_connection() {
    let backend = backend();
    let mut root = backend.connect().unwrap();
    for service in ["", PRIVATE] {
        let gateway = Gateway::start(&(sections(&[&backend]) + service), "auto");
        let mut killer = gateway.connect();
        let mut victim = sleeper(&gateway, &mut root, "first");
        let number = victim.connection_id;
        assert!((1 << 30) < number && number < (1 << 31));
        // Its pieces come one after the other.
        let kill = format!("KILL QUERY {number}");
        let pause = || root.run("DO SLEEP(0.3)").map(|_| ());
        killer
            .send_query_in_two(kill.as_bytes(), "KILL QUERY 1".len(), pause)
            .unwrap();
        let told = killer.read_outcomes().unwrap();
        assert!(matches!(told[..], [Outcome::Done(_)]), "{told:?}");
        // As directly: SLEEP says that it was cut short, or the statement fails.
        assert_eq!(victim.read_outcomes().unwrap().len(), 1);
        victim.run("DO 1").unwrap();
        victim.send_query(b"SELECT SLEEP(1000), 'second'").unwrap();
        wait_until("the statement runs", || runs(&mut root, "second"));
        killer
            .run(&format!("/* all of it */ KILL {number};"))
            .unwrap();
        wait_until("the statement is ended", || !runs(&mut root, "second"));
        let told = victim.read_outcomes();
        let is_told = |outcome: &Outcome| matches!(outcome, Outcome::Error(_));
        assert!(told.is_err() || told.is_ok_and(|told| told.iter().all(is_told)));
        assert!(victim.query("DO 1").is_err());
        wait_until("the victim has left", || {
            killer
                .error_number(&format!("KILL {number}"))
                .is_ok_and(|code| code == 1094)
        });
    }
}

#[test]
fn numbers_of_the_server_and_other_accounts_are_its_business() {
    let backend = backend();
    let mut root = backend.connect().unwrap();
    root.run("CREATE USER weak@'%' IDENTIFIED BY 'w'").unwrap();
    let gateway = Gateway::start(&sections(&[&backend]), "auto");
    let mut killer = gateway.connect();
    let mut victim = gateway.connect();
    let inner = victim.value("SELECT CONNECTION_ID()").unwrap().unwrap();
    let mut weak = Client::connect(&gateway.login("weak", "w")).unwrap();
    let denied = weak.error_number(&format!("KILL {}", victim.connection_id));
    assert_eq!(denied.unwrap(), 1095);
    victim.run("DO 1").unwrap();
    killer.run(&format!("KILL {inner}")).unwrap();
    let error = victim.query("DO 1").map(error_of);
    assert!(error.is_err() || error.is_ok_and(|error| error.number == 1158));
    assert_eq!(killer.error_number("KILL 1073741823").unwrap(), 1094);
    assert_eq!(killer.error_number("KILL 2147483647").unwrap(), 1094);
}
