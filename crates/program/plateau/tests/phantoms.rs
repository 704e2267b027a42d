//! No row comes into a range that a transaction has locked, while real threads insert and remove
//! rows at its ends. The rows are long, so that most gaps reach over two leaves, which come and go.

#![forbid(unsafe_code)]

use std::thread;

use testkit::client::{Client, Outcome, ServerError};
use testkit::{Launch, Server};

/// Keys are drawn from this many.
const KEY_COUNT: u64 = 160;
/// Rounds of each client.
const ROUND_COUNT: u64 = 300;
/// Clients that lock a range and look twice, and clients that change rows.
const READER_COUNT: u64 = 4;
const WRITER_COUNT: u64 = 4;

/// Errors that end a transaction in a contest: a deadlock, a wait that was too long.
const LOST: [u16; 2] = [1213, 1205];

/// A number below `limit`, another for each client, round and purpose.
fn draw((client, round, purpose): (u64, u64, u64), limit: u64) -> u64 {
    let mut mixed = client * 7919 + round * 104_729 + purpose * 1_299_709 + 1;
    for _ in 0..3 {
        mixed ^= mixed << 13;
        mixed ^= mixed >> 7;
        mixed ^= mixed << 17;
    }
    mixed % limit
}

fn fill(server: &Server) {
    let mut client = server.connect().expect("a login");
    for statement in [
        "create database d",
        "create table d.t (id int primary key, k int, pad varchar(3000), key (k))",
    ] {
        client.run(statement).expect(statement);
    }
    for key in (0..KEY_COUNT).step_by(4) {
        let row = insert(key);
        client.run(&row).expect("a row");
    }
}

fn insert(key: u64) -> String {
    format!("insert ignore into d.t values ({key}, {key}, repeat('x', 3000))")
}

/// The first column of the answer, or `None` if the contest was lost.
fn ask(client: &mut Client, statement: &str) -> Option<Vec<Vec<u8>>> {
    match client.query(statement).expect("an answer") {
        Outcome::Done(_) => Some(Vec::new()),
        Outcome::Rows(found) => {
            let first = |mut row: Vec<Option<Vec<u8>>>| row.swap_remove(0).expect("a value");
            Some(found.rows.into_iter().map(first).collect())
        }
        Outcome::Error(ServerError {
            number, message, ..
        }) => {
            assert!(LOST.contains(&number), "{statement}: {number} {message}");
            None
        }
    }
}

/// Locks a range, sees what is in it, and looks again twice. Returns whether it came to the end.
fn look_twice(client: &mut Client, at: (u64, u64)) -> bool {
    let draw = |purpose, limit| stdx::to_usize(draw((at.0, at.1, purpose), limit));
    let (column, index) = [("id", "primary"), ("k", "k")][draw(0, 2)];
    let level = ["repeatable read", "serializable"][draw(1, 2)];
    let lock = ["for update", "lock in share mode"][draw(4, 2)];
    let direction = ["asc", "desc"][draw(5, 2)];
    let low = draw(2, KEY_COUNT);
    let high = low + draw(3, 24);
    let seen = format!(
        "select id from d.t force index ({index}) where {column} between {low} and {high} \
         order by {column} {direction} {lock}"
    );
    // A row of its own, which comes and goes, splits a gap and joins it again.
    let own_id = KEY_COUNT + at.0;
    let own = format!("insert into d.t values ({own_id}, {low}, repeat('x', 3000))");
    let level = format!("set transaction isolation level {level}");
    let mut looks = Vec::new();
    for statement in [
        level.as_str(),
        "begin",
        &seen,
        "savepoint s",
        &own,
        "rollback to s",
        &seen,
        &seen,
    ] {
        let Some(rows) = ask(client, statement) else {
            client.run("rollback").expect("an end");
            return false;
        };
        if statement == seen {
            looks.push(rows);
        }
    }
    assert!(
        looks.iter().all(|look| *look == looks[0]),
        "{seen}: {looks:?}"
    );
    client.run("rollback").expect("an end");
    true
}

fn change(client: &mut Client, at: (u64, u64)) -> bool {
    let key = draw((at.0, at.1, 6), KEY_COUNT);
    let other = draw((at.0, at.1, 7), KEY_COUNT);
    let statement = match draw((at.0, at.1, 8), 4) {
        0 | 1 => insert(key),
        2 => format!("delete from d.t where id = {key}"),
        _ => format!("update d.t set k = {other} where id = {key}"),
    };
    ask(client, &statement).is_some()
}

#[test]
fn a_locked_range_stays_as_it_is() {
    let server = Launch::plateau(env!("CARGO_BIN_EXE_plateau"))
        .with_settings(["workers=4"])
        .start()
        .expect("the server starts");
    fill(&server);
    let connect = |_| server.connect().expect("a login");
    let clients: Vec<Client> = (0..READER_COUNT + WRITER_COUNT).map(connect).collect();
    thread::scope(|scope| {
        let numbered = (0..).zip(clients);
        let running: Vec<_> = numbered
            .map(|(number, client)| scope.spawn(move || run(number, client)))
            .collect();
        for (number, client) in running.into_iter().enumerate() {
            let won = client.join().expect("no phantom");
            assert!(
                ROUND_COUNT / 10 < won,
                "client {number} did {won} of {ROUND_COUNT} rounds"
            );
        }
    });
}

/// The rounds of a client. Returns how many came to their end.
fn run(number: u64, mut client: Client) -> u64 {
    let go = if number < READER_COUNT {
        look_twice
    } else {
        change
    };
    let won = (0..ROUND_COUNT).filter(|&round| go(&mut client, (number, round)));
    stdx::to_u64(won.count())
}
