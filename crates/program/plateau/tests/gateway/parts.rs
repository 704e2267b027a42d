//! Transactions over several servers, by hints.

use std::thread;

use super::*;

const STMT_PREPARE: u8 = 22;
const STMT_EXECUTE: u8 = 23;

/// Two servers of their own, and a gateway with so many connections to each.
struct Pair {
    servers: Vec<Server>,
    gateway: Gateway,
}

impl Pair {
    fn start(limit: &str) -> Pair {
        let servers = vec![backend(), backend()];
        let both: Vec<_> = servers.iter().collect();
        let service = "[[service]]\nname = \"both\"\nrouter = \"read-write-split\"\nwait = 30\n";
        let text = sections_with(&both, &format!("{limit}\n")) + service;
        for server in &servers {
            let mut root = server.connect().expect("root gets in");
            root.run("CREATE TABLE shop.account (id INT PRIMARY KEY, amount INT)")
                .and_then(|_| {
                    root.run("INSERT INTO shop.account SELECT seq, 0 FROM mysql.seq_1_to_16")
                })
                .expect("a table");
        }
        let gateway = Gateway::start(&text, "auto");
        Pair { servers, gateway }
    }

    /// What a server has, as others see it.
    fn sum(&self, server: usize) -> i64 {
        let mut root = self.servers[server].connect().expect("root gets in");
        let sum = root.value("SELECT SUM(amount) FROM shop.account");
        let sum = sum.expect("a read").expect("rows");
        sum.parse().expect("a number")
    }
}

fn change(server: usize, id: u32, by: i32) -> String {
    format!(
        "/* plateau: server=db{server} */ UPDATE shop.account SET amount = amount + {by} \
         WHERE id = {id}"
    )
}

#[test]
fn parts_of_a_transaction_end_together() {
    let pair = Pair::start("max_connections = 10");
    let mut client = pair.gateway.connect();
    client.run("BEGIN").unwrap();
    client.run(&change(0, 1, 5)).unwrap();
    client.run(&change(1, 1, -5)).unwrap();
    assert_eq!((pair.sum(0), pair.sum(1)), (0, 0));
    let read = "/* plateau: server=db1 */ SELECT SUM(amount) FROM shop.account";
    assert_eq!(client.value(read).unwrap().unwrap(), "-5");
    // What is of one server alone is refused, and nothing ends by it.
    assert_eq!(client.error_number("SAVEPOINT a").unwrap(), 1235);
    assert_eq!(client.error_number("SET @a = 1").unwrap(), 1235);
    client.run("COMMIT").unwrap();
    assert_eq!((pair.sum(0), pair.sum(1)), (5, -5));
    client.run("BEGIN").unwrap();
    client.run(&change(1, 1, 100)).unwrap();
    client.run(&change(0, 1, 100)).unwrap();
    client.run("ROLLBACK").unwrap();
    assert_eq!((pair.sum(0), pair.sum(1)), (5, -5));
    // An implicit commit ends both, too.
    client.run("BEGIN").unwrap();
    client.run(&change(0, 2, 1)).unwrap();
    client.run(&change(1, 2, -1)).unwrap();
    client.run("CREATE TABLE shop.other (a INT)").unwrap();
    assert_eq!((pair.sum(0), pair.sum(1)), (6, -6));
    // Without autocommit as well.
    client.run("SET autocommit = 0").unwrap();
    client.run(&change(0, 2, 1)).unwrap();
    client.run(&change(1, 2, -1)).unwrap();
    assert_eq!((pair.sum(0), pair.sum(1)), (6, -6));
    client.run("COMMIT").unwrap();
    assert_eq!((pair.sum(0), pair.sum(1)), (7, -7));
}

#[test]
fn a_part_that_is_lost_takes_the_others_along() {
    let pair = Pair::start("max_connections = 10");
    let mut client = pair.gateway.connect();
    client.run("BEGIN").unwrap();
    client.run(&change(0, 1, 5)).unwrap();
    client.run(&change(1, 1, -5)).unwrap();
    let mut root = pair.servers[1].connect().unwrap();
    let kill = "SELECT id FROM information_schema.processlist WHERE user = 'app'";
    let id = root.value(kill).unwrap().unwrap();
    root.run(&format!("KILL {id}")).unwrap();
    let error = error_of(client.query("COMMIT").unwrap());
    assert_eq!(error.number, 1180, "{error:?}");
    assert!(
        error.message.contains("committed on no server"),
        "{error:?}"
    );
    assert_eq!((pair.sum(0), pair.sum(1)), (0, 0));
    // The session goes on.
    client.run("BEGIN").unwrap();
    client.run(&change(1, 1, 1)).unwrap();
    client.run("COMMIT").unwrap();
    assert_eq!(pair.sum(1), 1);
}

#[test]
fn a_part_whose_first_statement_is_refused_ends_with_the_others() {
    let pair = Pair::start("max_connections = 1\noverflow = 0");
    let [mut client, mut other] = [0; 2].map(|_| pair.gateway.connect());
    let mut root = pair.servers[1].connect().unwrap();
    root.run("CREATE TABLE shop.gone (a INT)").unwrap();
    let text = b"/* plateau: server=db1 */ DELETE FROM shop.gone";
    client.send_command(STMT_PREPARE, text).unwrap();
    let prepared = client.next_packet().unwrap();
    assert_eq!(prepared[0], 0, "{prepared:?}");
    // What another session sets has the connection reset: the statement is prepared again.
    other.run("SET @a = 1").unwrap();
    let read = "/* plateau: server=db1 */ SELECT @a";
    assert_eq!(other.value(read).unwrap().as_deref(), Some("1"));
    root.run("DROP TABLE shop.gone").unwrap();
    client.run("BEGIN").unwrap();
    let execute = [&prepared[1..5], &[0, 1, 0, 0, 0]].concat();
    client.send_command(STMT_EXECUTE, &execute).unwrap();
    let error = client.next_packet().unwrap();
    assert_eq!(error[..3], [0xff, 0x7a, 0x04], "error 1146: {error:?}");
    client.run("COMMIT").unwrap();
    let text = "/* plateau: server=db1 */ SELECT @@in_transaction";
    assert_eq!(other.value(text).unwrap().as_deref(), Some("0"));
    // What goes there next is a part again.
    client.run("BEGIN").unwrap();
    client.run(&change(1, 2, 1)).unwrap();
    client.run("ROLLBACK").unwrap();
    assert_eq!((pair.sum(0), pair.sum(1)), (0, 0));
}

#[test]
fn a_deadlock_on_one_server_ends_all_parts() {
    let pair = Pair::start("max_connections = 10");
    let (mut one, mut other) = (pair.gateway.connect(), pair.gateway.connect());
    for client in [&mut one, &mut other] {
        client.run("BEGIN").unwrap();
    }
    one.run(&change(0, 1, 1)).unwrap();
    one.run(&change(1, 1, 1)).unwrap();
    other.run(&change(0, 8, 1)).unwrap();
    other.run(&change(1, 2, 1)).unwrap();
    one.send_query(change(1, 2, 1).as_bytes()).unwrap();
    let theirs = other.query(&change(1, 1, 1)).unwrap();
    let ours = one.read_outcomes().unwrap().remove(0);
    let is_deadlock = |it: &Outcome| matches!(it, Outcome::Error(it) if it.number == 1213);
    let victims = [&ours, &theirs].into_iter().filter(|it| is_deadlock(it));
    assert_eq!(victims.count(), 1, "{ours:?} {theirs:?}");
    for client in [&mut one, &mut other] {
        client.run("COMMIT").unwrap();
    }
    // The survivor has one row on the first server, and two on the other.
    assert_eq!((pair.sum(0), pair.sum(1)), (1, 2));
}

/// Each client adds to both servers, in either order, as often as it has to. Returns how often it
/// had to do so again.
fn add_to_both(limit: &str) -> u32 {
    const CLIENTS: u32 = 16;
    const TRANSFERS: u32 = 40;
    let pair = Pair::start(limit);
    let login = pair.gateway.login("app", "secret");
    let run = |number: u32| {
        let mut client = Client::connect(&login).expect("app gets in");
        let mut victims = 0;
        for transfer in 0..TRANSFERS {
            let from = usize::from((number + transfer).is_multiple_of(2));
            // Rows of its own: no server knows whom a row lock of another one keeps waiting.
            let id = 1 + number;
            let statements = [
                format!("/* plateau: server=db{from} */ BEGIN"),
                change(from, id, 1),
                change(1 - from, id, 1),
                "COMMIT".to_owned(),
            ];
            while !is_done(&mut client, &statements) {
                victims += 1;
            }
        }
        victims
    };
    let victims: u32 = thread::scope(|scope| {
        let run = &run;
        let clients = (0..CLIENTS).map(|it| scope.spawn(move || run(it)));
        let clients: Vec<_> = clients.collect();
        clients
            .into_iter()
            .map(|it| it.join().expect("no error"))
            .sum()
    });
    let done = i64::from(CLIENTS * TRANSFERS);
    assert_eq!((pair.sum(0), pair.sum(1)), (done, done));
    victims
}

#[test]
fn few_connections_do_not_deadlock() {
    // Who holds one of two finds another above the limit.
    assert_eq!(add_to_both("max_connections = 2"), 0);
    // Without that, the younger of two makes room for the older.
    assert!(0 < add_to_both("max_connections = 2\noverflow = 0"));
}

/// Carries out a transaction. False if it was rolled back to break a deadlock.
fn is_done(client: &mut Client, statements: &[String]) -> bool {
    for statement in statements {
        match client.query(statement).expect("an answer") {
            Outcome::Error(error) if error.number == 1213 => return false,
            Outcome::Error(error) => panic!("{statement}: {error}"),
            _ => {}
        }
    }
    true
}
