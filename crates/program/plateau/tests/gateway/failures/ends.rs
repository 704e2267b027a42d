//! How sessions end: by their client, their server, and the gateway's shutdown.

use super::*;

#[test]
fn the_statement_of_a_client_that_is_gone_is_ended() {
    let backend = backend();
    let (sections, port) = (sections(&[&backend]), backend.port());
    on_each_driver(|driver| {
        let gateway = Gateway::start(&sections, driver);
        let mut client = gateway.connect();
        let text = format!("SELECT SLEEP(1000), '{driver}'");
        client.send_query(text.as_bytes()).unwrap();
        let mut root = Client::connect(&Login::root(port)).unwrap();
        wait_until("the statement runs", || runs(&mut root, driver));
        drop(client);
        wait_until("the statement is ended", || !runs(&mut root, driver));
    });
}

#[test]
fn a_lost_server_is_told_and_the_next_client_gets_another() {
    let (mut one, other) = (backend(), backend());
    let gateway = Gateway::start(&(sections(&[&one, &other]) + PRIVATE), "auto");
    let mut clients: Vec<_> = (0..2).map(|_| gateway.connect()).collect();
    for client in &mut clients {
        client.run("DO 1").unwrap();
    }
    let of_first = |client: &mut Client| {
        let port = client.value("SELECT @@port").unwrap().unwrap();
        port == one.port().to_string()
    };
    let place = clients.iter_mut().position(of_first).unwrap();
    let mut client = clients.swap_remove(place);
    one.kill().unwrap();
    let error = error_of(client.query("SELECT 1").unwrap());
    assert_eq!((error.number, error.state.as_str()), (1158, "08S01"));
    assert!(error.message.contains("db0"), "{error:?}");
    let port = gateway.connect().value("SELECT @@port").unwrap();
    assert_eq!(port, Some(other.port().to_string()));
    clients[0].run("DO 2").unwrap();
}

#[test]
fn the_shutdown_waits_for_a_statement_and_dismisses_idle_clients() {
    let backend = backend();
    let mut gateway = Gateway::start(&sections(&[&backend]), "auto");
    let mut idle = gateway.connect();
    let mut busy = gateway.connect();
    idle.run("DO 1").unwrap();
    busy.send_query(b"SELECT SLEEP(1), 'last'").unwrap();
    let mut root = backend.connect().unwrap();
    wait_until("the statement runs", || runs(&mut root, "last"));
    gateway.server.stop().unwrap();
    let outcomes = busy.read_outcomes().unwrap();
    assert!(
        matches!(outcomes.as_slice(), [Outcome::Rows(_)]),
        "{outcomes:?}"
    );
    let told = idle.query("SELECT 1").map(error_of);
    assert!(told.is_err() || told.is_ok_and(|error| error.number == 1053));
}
