//! Clients without privileges that send the most expensive requests: statements of many MiB,
//! packets that never end, and queries with long replies that they do not read. Meanwhile another
//! client sends small queries and measures its waits.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::client::{Client, Login};
use crate::server::Server;

/// The account of the clients. It has no privileges.
const ACCOUNT: &str = "nobody";

/// A client whose packets are no longer read checks at this interval whether the attack is over.
const WRITE_LIMIT: Duration = Duration::from_millis(500);

/// The size of an attack.
#[derive(Clone, Copy, Debug)]
pub struct Attack {
    /// Hostile clients: a third of them send statements, a third unfinished packets, and a third
    /// read no replies.
    pub clients: usize,
    /// The size of a statement.
    pub statement_bytes: usize,
    /// The announced size of an unfinished packet.
    pub packet_bytes: usize,
    /// How long the attack lasts, and before it the quiet phase for comparison.
    pub duration: Duration,
    /// After each hostile client an idle one connects. A new connection goes to the worker with the
    /// fewest, so one of two workers has no hostile clients.
    pub spares_a_worker: bool,
}

/// The result of an attack.
#[derive(Clone, Debug)]
pub struct Report {
    /// The other client's waits, in order, in the quiet phase ...
    pub quiet: Vec<Duration>,
    /// ... and during the attack.
    pub attacked: Vec<Duration>,
    /// The process's resident memory after the clients had connected.
    pub resident_bytes_before: u64,
    /// The most since the server's start.
    pub resident_bytes_max: u64,
    /// Answered statements, with rows or with an error.
    pub answers: u64,
}

/// The wait that `share` (of 1000) of the waits do not exceed.
///
/// # Panics
/// If there were none.
pub fn percentile(waits: &[Duration], share: usize) -> Duration {
    waits[(waits.len() * share / 1000).min(waits.len() - 1)]
}

/// Statements of about this many bytes that need no privileges, each the costliest of its kind.
pub fn statements(bytes: usize) -> Vec<String> {
    let filled = |head: &str, item: &str, tail: &str| {
        let count = bytes.saturating_sub(head.len() + tail.len()) / item.len();
        format!("{head}{}{tail}", item.repeat(count))
    };
    vec![
        filled("select 1 in (", "2,", "2)"),
        filled("select 'b' in (", "'a',", "'a')"),
        filled("select 1 in (", "2.5,", "2)"),
        filled("select 1 where 1", " and 1", ""),
        filled("select 1 where 0", " or 0", ""),
        filled("insert into no.t values (1)", ",(1)", ""),
        filled("select 1", ",1", ""),
        filled("select concat(1", ",1", ")"),
        filled("select (1, 1) in ((1, 2)", ",(1,2)", ")"),
        filled("select 1 in (2", ",1+2", ")"),
        filled("select case", " when 0 then 1", " end"),
        filled("select ", "(", "1"),
        filled("select '", "a", "'"),
        filled("select 1 from (select 1 a) t where a in (2", ",-2", ")"),
        filled("do 1 in (NULL", ",NULL", ")"),
    ]
}

/// Queries with replies of many MiB: a row of one text, of many, and many rows.
pub fn long_replies() -> Vec<String> {
    let text = "repeat('x', 15000000)";
    let numbers = "(select 0 union all select 1 union all select 2 union all select 3) n";
    vec![
        format!("select {text}"),
        format!("select {}", vec![text; 40].join(",")),
        format!("select {text} from {numbers}"),
        format!(
            "select {} from {numbers}",
            vec!["repeat('x', 30000)"; 1000].join(",")
        ),
    ]
}

/// Attacks a server, kills it afterwards, and returns the report.
///
/// # Errors
/// If the other client gets no reply, or the server ends.
pub fn attack(mut server: Server, attack: &Attack) -> Result<Report> {
    let mut root = server.connect()?;
    root.run(&format!("create user {ACCOUNT}"))?;
    let victim = server.connect()?;
    let mut idle = Vec::new();
    let mut clients = Vec::new();
    let login = Login {
        user: ACCOUNT.to_owned(),
        ..Login::root(server.port())
    };
    // Of the two existing connections, each of two workers has one.
    drop(root);
    for _ in 0..attack.clients {
        clients.push(Client::connect(&login)?);
        if attack.spares_a_worker {
            idle.push(Client::connect(&login)?);
        }
    }
    let (victim, quiet) = ask(victim, attack.duration)?;
    let resident_bytes_before = server.process().resident_bytes()?;
    let texts = Arc::new(statements(attack.statement_bytes));
    let mut ends: Vec<Sender<()>> = Vec::new();
    let mut threads: Vec<JoinHandle<u64>> = Vec::new();
    for (place, client) in clients.into_iter().enumerate() {
        let (end, is_over) = channel();
        ends.push(end);
        let (texts, login) = (Arc::clone(&texts), login.clone());
        let packet_bytes = attack.packet_bytes;
        threads.push(spawned(move || match place % 3 {
            0 => send_statements(client, &login, &texts, place / 3, &is_over),
            1 => send_unfinished(client, packet_bytes, &is_over),
            _ => leave_unread(client, place / 3, &is_over),
        })?);
    }
    let (_, attacked) = ask(victim, attack.duration)?;
    ensure!(server.process().is_running(), "the server has ended");
    let resident_bytes_max = server.process().resident_bytes_max()?;
    // So no statement has to finish; each may take a minute here.
    drop(ends);
    server.kill()?;
    drop(idle);
    let mut answers = 0;
    for thread in threads {
        let of_client = thread.join();
        answers += of_client.map_err(|_| anyhow::anyhow!("a client failed"))?;
    }
    Ok(Report {
        quiet,
        attacked,
        resident_bytes_before,
        resident_bytes_max,
        answers,
    })
}

/// A thread with a small stack: there are a thousand.
fn spawned(work: impl FnOnce() -> u64 + Send + 'static) -> Result<JoinHandle<u64>> {
    let builder = std::thread::Builder::new().stack_size(256 << 10);
    builder.spawn(work).context("no thread for a client")
}

/// Sends a small query again and again.
#[allow(
    clippy::disallowed_methods,
    reason = "a real server is measured, in real time"
)]
fn ask(mut client: Client, duration: Duration) -> Result<(Client, Vec<Duration>)> {
    let begun = Instant::now();
    let mut waits = Vec::new();
    while begun.elapsed() < duration {
        let asked = Instant::now();
        client.value("select 1")?;
        waits.push(asked.elapsed());
    }
    waits.sort();
    Ok((client, waits))
}

fn is_over(end: &Receiver<()>, wait: Duration) -> bool {
    !matches!(end.recv_timeout(wait), Err(RecvTimeoutError::Timeout))
}

/// Sends one statement after the other; after a disconnect it connects again.
fn send_statements(
    mut client: Client,
    login: &Login,
    texts: &[String],
    first: usize,
    end: &Receiver<()>,
) -> u64 {
    let mut answers = 0;
    for text in texts.iter().cycle().skip(first) {
        if is_over(end, Duration::ZERO) {
            break;
        }
        match client.query(text) {
            Ok(_) => answers += 1,
            Err(_) => match Client::connect(login) {
                Ok(again) => client = again,
                Err(_) if is_over(end, WRITE_LIMIT) => break,
                Err(_) => {}
            },
        }
    }
    answers
}

/// What an unfinished packet is filled with, for all clients.
static BLANKS: [u8; 64 << 10] = [b' '; 64 << 10];

/// Sends all of a packet except its last byte, and waits.
fn send_unfinished(mut client: Client, packet_bytes: usize, end: &Receiver<()>) -> u64 {
    let announced = packet_bytes.min(0xff_fffe).to_le_bytes();
    let head = [announced[0], announced[1], announced[2], 0, 3];
    let stream = client.stream();
    if stream.write_all(&head).is_err() || stream.set_write_timeout(Some(WRITE_LIMIT)).is_err() {
        return 0;
    }
    // What the server does not read now it may read later, so no more is sent.
    let mut left = packet_bytes.saturating_sub(2);
    while 0 < left && !is_over(end, Duration::ZERO) {
        match stream.write(&BLANKS[..left.min(BLANKS.len())]) {
            Ok(count) => left -= count,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => break,
        }
    }
    // Until the attack is over.
    let _ = end.recv();
    0
}

/// Sends a query with a long reply again and again, until one is not an error, and reads only the
/// beginning of that.
fn leave_unread(mut client: Client, place: usize, end: &Receiver<()>) -> u64 {
    let queries = long_replies();
    let query = queries[place % queries.len()].as_bytes();
    let mut answers = 0;
    while !is_over(end, Duration::ZERO) {
        if client.send_query(query).is_err() {
            return answers;
        }
        while !client.has_answer(WRITE_LIMIT).unwrap_or(true) {
            if is_over(end, Duration::ZERO) {
                return answers;
            }
        }
        answers += 1;
        // A refusal is a packet of its own: a length, a sequence id and 0xFF.
        let mut head = [0; 5];
        let peeked = client.stream().peek(&mut head);
        if peeked.is_ok_and(|count| count == head.len()) && head[4] == 0xFF {
            if client.read_outcomes().is_err() {
                return answers;
            }
            continue;
        }
        // Until the attack is over.
        let _ = end.recv();
    }
    answers
}
