//! Harmful statements: each fails at a named limit or can be killed, takes a bounded amount of
//! memory, and other clients are served meanwhile.

#![forbid(unsafe_code)]

use testkit::client::Client;
use testkit::{Launch, Outcome, Server};

/// Two values of `max_allowed_packet`, and what the allocator has not returned yet.
const GROWTH_BYTES_MAX: u64 = 128 << 20;

fn start() -> (Server, Client) {
    // One worker, so the statement and the other clients share it.
    let server = Launch::plateau(env!("CARGO_BIN_EXE_plateau"))
        .with_settings(["workers=1", "max_allowed_packet=1M"])
        .start()
        .expect("the server starts");
    let client = server.connect().expect("it serves");
    (server, client)
}

fn error_number(client: &mut Client, statement: &str) -> u16 {
    match client.query(statement).expect("an answer") {
        Outcome::Error(error) => error.number,
        other => panic!("refused, not {other:?}"),
    }
}

#[test]
fn deep_nesting_is_an_error() {
    let (_server, mut client) = start();
    let nested = |open: &str, close: &str, depth: usize| {
        format!("select {}1{}", open.repeat(depth), close.repeat(depth))
    };
    for depth in [200, 5_000] {
        for (open, close) in [
            ("(", ")"),
            ("(select ", ")"),
            ("abs(", ")"),
            ("not ", ""),
            ("- ", ""),
            ("case when 1 then ", " end"),
            ("1 + ", ""),
            ("1 in (", ")"),
        ] {
            let statement = nested(open, close, depth * 3);
            assert_eq!(error_number(&mut client, &statement), 1436, "{open}");
        }
        let tables = "(select * from ".repeat(depth) + "t" + &") a".repeat(depth);
        let statement = format!("select * from {tables}");
        assert_eq!(error_number(&mut client, &statement), 1436);
        let except = vec!["select 1"; depth * 3].join(" except ");
        assert_eq!(error_number(&mut client, &except), 1436);
    }
    let long: Vec<String> = (0..50_000).map(|number| number.to_string()).collect();
    let statement = format!("select 49999 in ({})", long.join(","));
    assert_eq!(
        client.value(&statement).expect("a list").as_deref(),
        Some("1")
    );
}

/// EXPLAIN parses and plans the statement without running it.
#[test]
fn a_long_text_is_ended_while_it_is_read_and_planned() {
    let (server, mut root) = start();
    let text = format!("explain select 1 in ({}1)", "1,".repeat(500_000));
    let mut client = server.connect().expect("it serves");
    client.run("set max_statement_time = 0.001").expect("set");
    assert_eq!(error_number(&mut client, &text), 1969);
    client.run("set max_statement_time = 0").expect("set");
    let id = client.connection_id;
    let running = format!(
        "select count(*) from information_schema.processlist where id = {id} and command = 'Query'"
    );
    // The same worker serves others meanwhile, or they could not see it run.
    let mut is_killed = false;
    for _ in 0..20 {
        client.send_query(text.as_bytes()).expect("it reads");
        let seen = (0..10).any(|_| root.value(&running).unwrap().as_deref() == Some("1"));
        if seen {
            root.run(&format!("kill query {id}")).expect("killed");
        }
        let outcomes = client.read_outcomes().expect("an answer");
        if let [Outcome::Error(error)] = outcomes.as_slice() {
            assert_eq!(error.number, 1317);
            is_killed = true;
            break;
        }
    }
    assert!(is_killed, "it was never seen to run");
}

/// Each table of a FROM is a level of the tree of joins: thousands of them overflowed the stack.
#[test]
fn tables_of_a_join_are_counted() {
    let (_server, mut client) = start();
    for statement in ["create database d", "use d", "create table t (i int)"] {
        client.run(statement).unwrap();
    }
    let list = |what: &str, count: usize| {
        let names = (0..count).map(|number| format!("{what} a{number}"));
        names.collect::<Vec<_>>().join(",")
    };
    let statements = |count: usize| {
        let (tables, derived) = (list("t", count), list("(select 1)", count));
        let joined = (1..count.min(100)).map(|number| format!(" left join t a{number} on 1"));
        [
            format!("select count(*) from {tables}"),
            format!("select count(*) from {derived}"),
            format!("with t as (select 1) select count(*) from {tables}"),
            format!("select count(*) from (select 1 from {tables}) b"),
            format!("select count(*) from t where i in (select 1 from {tables})"),
            format!("select count(*) from t a0{}", joined.collect::<String>()),
            format!("select count(*) from t left join ({tables}) on 1 where 0"),
            format!("insert into t select 1 from {tables}"),
            format!("update {tables} set a0.i = 1"),
            format!("delete a0 from {tables}"),
            format!("execute immediate 'select 1 from {tables}'"),
        ]
    };
    for statement in statements(60) {
        let last = client.query(&statement).unwrap();
        assert!(!matches!(last, Outcome::Error(_)), "{statement}: {last:?}");
    }
    for count in [62, 5_000] {
        for statement in statements(count) {
            let number = error_number(&mut client, &statement);
            assert_eq!(number, 1116, "{}", &statement[..60]);
        }
    }
}

/// Each name of a WITH query is the whole query once more, in width and in depth.
#[test]
fn queries_that_with_puts_into_each_other_are_bounded() {
    let (mut server, mut client) = start();
    let before = server.process().resident_bytes().expect("it runs");
    let chain = |count: usize, body: &dyn Fn(&str) -> String| {
        let mut tables = vec!["c0 as (select 1 as a)".to_owned()];
        for place in 1..count {
            tables.push(format!(
                "c{place} as ({})",
                body(&format!("c{}", place - 1))
            ));
        }
        format!("with {} select a from c{}", tables.join(","), count - 1)
    };
    let doubled = |last: &str| format!("select x.a from {last} x, {last} y");
    let plain = |last: &str| format!("select a from {last}");
    let within = |last: &str| {
        let (open, close) = ("abs(".repeat(10), ")".repeat(10));
        format!("select {open}(select a from {last}){close} as a")
    };
    let wide = |last: &str| format!("select a /*{}*/ from {last} x", "x".repeat(300_000));
    for (statement, expected) in [
        (chain(60, &doubled), 1473),
        (chain(5_000, &plain), 1436),
        (chain(5_000, &within), 1436),
    ] {
        assert_eq!(error_number(&mut client, &statement), expected);
    }
    let many = vec!["select a from c2"; 40].join(" union all ");
    let statement = chain(3, &wide).replace("select a from c2", &many);
    assert_eq!(error_number(&mut client, &statement), 1473);
    let after = server.process().resident_bytes().expect("it runs");
    assert!(
        after < before + GROWTH_BYTES_MAX,
        "from {before} to {after}"
    );
    for (count, body) in [(12, &plain as &dyn Fn(&str) -> String), (6, &within)] {
        let answer = client.value(&chain(count, body)).expect("an answer");
        assert_eq!(answer.as_deref(), Some("1"));
    }
}

/// NULL and warning 1301, or error 1139 for expressions. The size that a call requests is not
/// allocated.
#[test]
fn results_and_expressions_have_limits() {
    let (mut server, mut client) = start();
    let before = server.process().resident_bytes().expect("it runs");
    for expression in [
        "repeat('a', 4000000000)",
        "space(4000000000)",
        "lpad('a', 4000000000, 'b')",
        "concat(repeat('a', 1000000), repeat('a', 1000000))",
        "hex(hex(hex(hex(hex(hex(repeat('a', 500000)))))))",
        "quote(quote(repeat('\\'', 300000)))",
        "to_base64(to_base64(to_base64(repeat('a', 600000))))",
        "regexp_replace(repeat('a', 900000), 'a', repeat('b', 900000))",
        "replace(repeat('a', 900000), 'a', repeat('b', 1000))",
        "make_set(255, repeat('a', 900000), repeat('b', 900000))",
        "export_set(5, repeat('a', 100000), repeat('b', 100000))",
    ] {
        let value = client.value(&format!("select length({expression})"));
        assert_eq!(value.expect(expression), None, "{expression}");
        let warnings = client.rows("show warnings").expect("a list");
        let code = warnings.first().and_then(|row| row.get(1)?.clone());
        assert_eq!(code.as_deref(), Some(&b"1301"[..]), "{expression}");
    }
    let growing = "select length(group_concat(repeat('a', 900000))) from \
                   (select 1 union all select 2 union all select 3) t";
    assert_eq!(
        client.value(growing).expect("a value").as_deref(),
        Some("1048576")
    );
    for pattern in ["'((((a{100}){100}){100}){100})'", "repeat('(', 5000)"] {
        let statement = format!("select 'a' regexp {pattern}");
        assert_eq!(error_number(&mut client, &statement), 1139);
    }
    for (statement, found) in [
        ("select repeat('a', 30) regexp '(a*)*b'", "0"),
        ("select repeat('a', 30000) regexp '(a|aa|aaa)+$'", "1"),
        (
            "select repeat('a', 5000) like concat(repeat('%a', 500), '%b')",
            "0",
        ),
    ] {
        let value = client.value(statement).expect("a value");
        assert_eq!(value.as_deref(), Some(found), "{statement}");
    }
    let after = server.process().resident_bytes().expect("it runs");
    assert!(
        after < before + GROWTH_BYTES_MAX,
        "{before} bytes grew to {after}"
    );
}

/// On one worker, while the statement runs, another client is served and kills it.
#[test]
fn endless_statements_can_be_ended_and_hurt_nobody() {
    let (server, mut bystander) = start();
    bystander.run("create database d").expect("a database");
    bystander
        .run("create table d.t (a int primary key, b varchar(50))")
        .expect("a table");
    let rows: Vec<String> = (0..400)
        .map(|row| format!("({row}, 'row {row}')"))
        .collect();
    bystander
        .run(&format!("insert into d.t values {}", rows.join(",")))
        .expect("rows");
    for endless in [
        "select count(*) from d.t a, d.t b, d.t c, d.t d, d.t e",
        "select a.b from d.t a, d.t b, d.t c, d.t d limit 100000000000, 1",
        "select sum(a.b regexp 'x+y') from d.t a, d.t b, d.t c, d.t d",
        "select a.a, count(*) from d.t a, d.t b, d.t c, d.t d group by a.a order by 2",
        "delete from d.t where a in (select a.a from d.t a, d.t b, d.t c, d.t d)",
        "select 1 from information_schema.columns a, information_schema.columns b, \
         information_schema.columns c, information_schema.columns d limit 100000000000, 1",
    ] {
        let mut victim = server.connect().expect("it serves");
        victim.send_query(endless.as_bytes()).expect("it reads");
        for _ in 0..20 {
            let one = bystander.value("select count(*) from d.t where a = 5");
            assert_eq!(one.expect("others are served").as_deref(), Some("1"));
        }
        let id = victim.connection_id;
        bystander
            .run(&format!("kill query {id}"))
            .expect("an order");
        let outcomes = victim.read_outcomes().expect("an answer");
        let Some(Outcome::Error(error)) = outcomes.first() else {
            panic!("{endless} goes on for ever, and gave {outcomes:?}");
        };
        assert_eq!(error.number, 1317, "{endless}");
        let one = victim.value("select 1").expect("the session goes on");
        assert_eq!(one.as_deref(), Some("1"));
    }
}

/// One text with many statements, each of them short.
#[test]
fn a_text_of_many_statements_can_be_ended_and_hurts_nobody() {
    let (server, mut bystander) = start();
    let mut victim = server.connect().expect("it serves");
    let text = "do 1;".repeat(180_000) + "select 1";
    victim.send_query(text.as_bytes()).expect("it reads");
    for _ in 0..20 {
        let one = bystander.value("select 1").expect("others are served");
        assert_eq!(one.as_deref(), Some("1"));
    }
    let id = victim.connection_id;
    bystander
        .run(&format!("kill query {id}"))
        .expect("an order");
    let outcomes = victim.read_outcomes().expect("answers");
    match outcomes.last() {
        Some(Outcome::Error(error)) => assert_eq!(error.number, 1317),
        other => panic!("it came to its end: {other:?}"),
    }
    let warnings = victim.rows("show warnings").expect("a list");
    assert_eq!(warnings.len(), 1, "the error alone");
    let texts = "select 2; select 3";
    let outcomes = victim.query_all(texts.as_bytes()).expect("it goes on");
    assert_eq!(outcomes.len(), 2);
}
