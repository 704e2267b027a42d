//! Work that takes long within one row, or between two: other clients of the worker are served
//! meanwhile, and KILL QUERY ends it.

#![forbid(unsafe_code)]

use testkit::client::Client;
use testkit::{Launch, Outcome, Server};

fn start(settings: &[&str]) -> (Server, Client) {
    // One worker, so the statement and the other clients share it.
    let launch = Launch::plateau(env!("CARGO_BIN_EXE_plateau"))
        .with_settings(["workers=1"].iter().chain(settings));
    let server = launch.start().expect("the server starts");
    let client = server.connect().expect("it serves");
    (server, client)
}

/// Runs a statement that does not end by itself. Serves another client meanwhile, and kills the
/// statement.
fn is_fair_and_mortal(server: &Server, bystander: &mut Client, endless: &str) {
    let mut victim = server.connect().expect("it serves");
    victim.send_query(endless.as_bytes()).expect("it reads");
    for _ in 0..20 {
        let one = bystander.value("select 1").expect("others are served");
        assert_eq!(one.as_deref(), Some("1"));
    }
    let order = format!("kill query {}", victim.connection_id);
    bystander.run(&order).expect("an order");
    let outcomes = victim.read_outcomes().expect("an answer");
    let Some(Outcome::Error(error)) = outcomes.first() else {
        panic!("{endless} goes on for ever, and gave {outcomes:?}");
    };
    assert_eq!(error.number, 1317, "{endless}");
    let one = victim.value("select 1").expect("the session goes on");
    assert_eq!(one.as_deref(), Some("1"));
}

/// Texts of 15 MB that nearly match at each position: hours of work in one call.
#[test]
fn one_call_can_be_ended_and_hurts_nobody() {
    let (server, mut bystander) = start(&[]);
    let text = "repeat('a', 15000000)";
    let needle = "concat(repeat('a', 7000000), 'b')";
    for call in [
        format!("locate({needle}, {text})"),
        format!("instr({text}, {needle})"),
        format!("replace({text}, {needle}, '')"),
        format!("{text} like concat('%', {needle})"),
        format!("substring_index({text}, {needle}, 1)"),
        format!("regexp_replace({text}, 'a*ab', 'x')"),
        format!("{text} regexp '(a|b|[a-c]){{900}}[^a]'"),
        format!("find_in_set('b', repeat('a,', 7000000)) + locate({needle}, {text})"),
    ] {
        is_fair_and_mortal(&server, &mut bystander, &format!("select {call}"));
        // The same with a value that is not constant.
        bystander.run("set @text = 'a'").expect("a variable");
        let statement = format!("select if(rand() < 2, {call}, 0)");
        is_fair_and_mortal(&server, &mut bystander, &statement);
    }
}

/// `max_statement_time` ends it too.
#[test]
fn one_call_has_the_statements_time() {
    let (_server, mut client) = start(&[]);
    let statement = "set statement max_statement_time = 0.2 for \
                     select locate(concat(repeat('a', 7000000), 'b'), repeat('a', 15000000))";
    match client.query(statement).expect("an answer") {
        Outcome::Error(error) => assert_eq!(error.number, 1969),
        other => panic!("ended, not {other:?}"),
    }
}

/// Many calls in one row, each long but not endless.
#[test]
fn many_calls_of_a_row_can_be_ended() {
    let (server, mut bystander) = start(&[]);
    let call = "length(upper(lower(reverse(hex(repeat('a', 7000000))))))";
    let row = vec![call; 200].join(", ");
    is_fair_and_mortal(&server, &mut bystander, &format!("select {row}"));
}
