//! Clients without privileges that send the most expensive requests: the process stays below its
//! limits, and another client is served. `cargo xtask hostile` does the same with a thousand of
//! them.

#![forbid(unsafe_code)]

use std::time::Duration;

use testkit::hostile::{Attack, attack};
use testkit::{Launch, Outcome};

const MIB: u64 = 1 << 20;

/// What the process takes in addition to what the limits count: socket buffers, stacks, and memory
/// that the allocator has not returned yet.
const UNCOUNTED_BYTES: u64 = 128 * MIB;

fn launch() -> Launch {
    Launch::plateau(env!("CARGO_BIN_EXE_plateau")).with_settings([
        "workers=2",
        "buffer_pool_size=16M",
        "statement_memory_size=48M",
        "packet_memory_size=16M",
    ])
}

#[test]
fn many_clients_stay_below_the_limits() {
    let server = launch().start().expect("the server starts");
    let plan = Attack {
        clients: 48,
        statement_bytes: 1 << 20,
        packet_bytes: 15 << 20,
        duration: Duration::from_secs(5),
        spares_a_worker: false,
    };
    let report = attack(server, &plan).expect("the server goes on");
    let limit = report.resident_bytes_before + (48 + 16) * MIB + UNCOUNTED_BYTES;
    assert!(
        report.resident_bytes_max <= limit,
        "{} MiB of {} MiB",
        report.resident_bytes_max / MIB,
        limit / MIB
    );
    assert!(!report.attacked.is_empty());
}

/// Sixteen bytes an element in addition to its text, which exists twice, and to the memory before.
#[test]
fn a_list_of_constants_costs_sixteen_bytes_an_element() {
    let mut server = launch().start().expect("the server starts");
    let mut client = server.connect().expect("it serves");
    let before = server.process().resident_bytes().expect("it runs");
    let count = 500_000_u64;
    let list = "2,".repeat(usize::try_from(count).expect("few"));
    let text = format!("select 1 in ({list}1)");
    assert_eq!(client.value(&text).expect("a list").as_deref(), Some("1"));
    let most = server.process().resident_bytes_max().expect("it runs");
    let text_bytes = u64::try_from(text.len()).expect("few");
    let limit = before + 3 * text_bytes + 16 * count + 24 * MIB;
    assert!(most <= limit, "{} MiB of {} MiB", most / MIB, limit / MIB);
}

#[test]
fn trees_and_plans_count_as_what_a_session_keeps() {
    let server = launch().start().expect("the server starts");
    let mut client = server.connect().expect("it serves");
    client
        .run("set max_session_mem_used = 1000000")
        .expect("set");
    let chain = format!("do 1{}", " and 1".repeat(20_000));
    assert_eq!(client.error_number(&chain).expect("an answer"), 1290);
    let list = format!("do 1 in ({}1)", "2,".repeat(20_000));
    assert_eq!(
        client.error_number(&list).expect("an answer"),
        0,
        "it is small"
    );
    client
        .run("set max_session_mem_used = 100000000")
        .expect("set");
    assert_eq!(client.error_number(&chain).expect("an answer"), 0);
    let again = client.query("select 1").expect("an answer");
    assert!(matches!(again, Outcome::Rows(_)), "it goes on");
}
