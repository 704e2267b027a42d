//! The properties `tables` and `cache` of EXPLAIN ROUTE, and EXPLAIN ROUTE FOR CONNECTION.

use super::*;
use crate::admin::table;
use crate::cache::{cached_backend, started};

const READ: &str = "SELECT v FROM shop.t WHERE id = 1";

/// A gateway with a cache for one of two services, and operators.
fn watched(backend: &Server) -> Watched {
    let mut root = backend.connect().expect("root gets in");
    for statement in [
        "CREATE VIEW shop.w AS SELECT * FROM shop.t",
        "CREATE TABLE shop.m (id INT) ENGINE=MyISAM",
        "CREATE TABLE shop.p (id INT PRIMARY KEY)",
        "CREATE TABLE shop.c (id INT, FOREIGN KEY (id) REFERENCES shop.p (id) ON DELETE CASCADE)",
    ] {
        root.run(statement).expect(statement);
    }
    let services = "[[cache]]\nname = \"front\"\n\
                    [[service]]\nname = \"shop\"\nrouter = \"read-write-split\"\n\
                    cache = \"front\"\n\
                    [[rule]]\nname = \"fresh\"\npattern = 'from shop.u'\ncache = \"off\"\n";
    let watched = Watched::start(&[backend], services);
    wait_until("results are kept", || {
        watched.gateway.log().contains("results are kept")
    });
    watched
}

fn cache_of(client: &mut Client, text: &str) -> String {
    let told = explain(client, text, "");
    told.get("cache").cloned().unwrap_or_default()
}

#[test]
fn a_client_is_told_whether_its_result_is_kept() {
    let backend = cached_backend();
    let watched = watched(&backend);
    let mut client = watched.connect();
    let none = "asked: the cache `front` has no result; that of its server is kept";
    let told = "told: the cache `front` has its result";
    assert_eq!(cache_of(&mut client, READ), none);
    assert_eq!(cache_of(&mut client, READ), none, "asking changes nothing");
    assert_eq!(value(&mut client, READ), "10");
    assert_eq!(cache_of(&mut client, READ), told);
    let other = format!(" {READ} -- the same");
    assert_eq!(cache_of(&mut client, &other), told);
    client.run("UPDATE shop.t SET v = v + 1").unwrap();
    assert_eq!(cache_of(&mut client, READ), none);
    for (text, reason) in [
        (
            "SELECT v, NOW() FROM shop.t",
            "depends on more than its tables: NOW()",
        ),
        ("SELECT f(v) FROM shop.t", "what it calls is not known: f()"),
        ("SELECT @a, v FROM shop.t", "it reads user variables"),
        ("SELECT @@port, v FROM shop.t", "system variables"),
        (
            "SELECT v FROM shop.t FOR UPDATE",
            "it locks the rows that it reads",
        ),
        ("SELECT SQL_NO_CACHE v FROM shop.t", "SQL_NO_CACHE"),
        (
            "SELECT table_name FROM information_schema.tables",
            "more than its tables",
        ),
        ("SELECT GET_LOCK('a', 1)", "GET_LOCK()"),
        ("SELECT v FROM shop.t; SELECT 2", "several statements"),
        ("UPDATE shop.t SET v = 1", "it is no SELECT"),
        ("SELECT 1", "it reads no table"),
        (
            "SELECT `\u{e4}` FROM shop.t",
            "other letters than those of ASCII",
        ),
        (
            "SELECT v FROM shop.u",
            "the rule `fresh` says cache = \"off\"",
        ),
        (
            "/* plateau: route=primary */ SELECT v FROM shop.t",
            "it has a hint",
        ),
    ] {
        let cache = cache_of(&mut client, text);
        assert!(cache.starts_with("not asked: "), "{text}: {cache}");
        assert!(cache.contains(reason), "{text}: {cache}");
    }
    for (text, names) in [
        ("SELECT v FROM shop.w", "`w`"),
        ("SELECT id FROM shop.m", "`m`"),
    ] {
        let cache = cache_of(&mut client, text);
        let reason = format!("none is kept: {names} is a view, a sequence,");
        assert!(cache.contains(&reason), "{text}: {cache}");
    }
    assert_eq!(cache_of(&mut client, "EXPLAIN ROUTE FOR ''"), "");
}

#[test]
fn what_the_session_is_like_decides_whether_a_cache_is_asked() {
    let backend = cached_backend();
    let watched = watched(&backend);
    let mut client = watched.connect();
    let mut check = |before: &str, reason: &str| {
        for statement in before.split("; ") {
            client.run(statement).unwrap();
        }
        let cache = cache_of(&mut client, READ);
        assert!(cache.contains(reason), "{before}: {cache}");
    };
    check(
        "BEGIN",
        "asked: the first query of a transaction goes to its server",
    );
    check(
        "SELECT v FROM shop.t",
        "has no result; that of its server is kept",
    );
    check(
        "UPDATE shop.t SET v = 3",
        "not asked: the transaction has written",
    );
    check("COMMIT", "asked: the cache `front` has no result");
    check(
        "SELECT GET_LOCK('a', 1)",
        "not asked: the session is pinned",
    );
    check("DO RELEASE_ALL_LOCKS()", "asked: the cache");
    check(
        "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        "not asked: the session has set READ UNCOMMITTED or SERIALIZABLE",
    );
    check(
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "asked: the cache",
    );
    check(
        "SET sql_mode = 'ORACLE'",
        "not asked: the session has set sql_mode to what is or may be ORACLE",
    );
    check("SET sql_mode = DEFAULT", "asked: the cache");
    check(
        "USE mysql",
        "not asked: the session's database is one of the server itself",
    );
    check("USE shop", "asked: the cache");
    let mut operator = watched.operator();
    let told = explain(&mut operator, READ, "AS app");
    let depends = "asked: whether the cache `front` has a result depends on the session; that of \
                   its server is kept";
    assert_eq!(told["cache"], depends);
    let off = explain(&mut operator, "SELECT v FROM shop.u", "");
    assert_eq!(
        off["cache"],
        "not asked: the rule `fresh` says cache = \"off\""
    );
}

#[test]
fn tables_are_those_that_a_text_names_and_may_change() {
    let backend = cached_backend();
    let watched = watched(&backend);
    let mut client = watched.connect();
    for (text, tables) in [
        (READ, "names v, shop, t, id"),
        (
            "INSERT INTO shop.t SELECT * FROM shop.u",
            "names shop, t, u; may change t",
        ),
        (
            "DELETE FROM shop.p",
            "names shop, p; may change p, and with it any table",
        ),
        (
            "CALL shop.q()",
            "names shop, q; may change any table and definition",
        ),
        ("GRANT SELECT ON shop.t TO app", "may change any table"),
    ] {
        let told = explain(&mut client, text, "");
        assert_eq!(told["tables"], tables, "{text}");
    }
    assert!(!explain(&mut client, "COMMIT", "").contains_key("tables"));
    let unkept = started(
        &(sections(&[&backend])
            + "[[service]]\nname = \"shop\"\n\
                            router = \"read-write-split\"\n[[cache]]\nname = \"c\"\n"),
    );
    let mut client = unkept.connect();
    let told = explain(&mut client, READ, "");
    assert_eq!(
        told["cache"],
        "not asked: neither its service nor a rule names a cache"
    );
}

#[test]
fn operators_ask_where_the_statement_of_a_client_is() {
    let backend = cached_backend();
    let watched = watched(&backend);
    let mut client = watched.connect();
    let mut operator = watched.operator();
    let number = value(&mut client, "SELECT CONNECTION_ID()");
    let ask = |operator: &mut Client| {
        table(operator, &format!("EXPLAIN ROUTE FOR CONNECTION {number}"))
            .into_iter()
            .map(|row| (row[0].clone(), row[1].clone()))
            .collect::<HashMap<_, _>>()
    };
    let idle = ask(&mut operator);
    assert_eq!(
        (&*idle["user"], &*idle["state"], &*idle["server"]),
        ("app", "idle", "NULL")
    );
    assert_eq!(
        idle["why"],
        "nothing holds the session: each statement goes by its text"
    );
    client.run("SELECT GET_LOCK('a', 1)").unwrap();
    client.run("SELECT @a := 1").unwrap();
    let pinned = ask(&mut operator);
    assert_eq!((&*pinned["server"], &*pinned["state"]), ("db0", "idle"));
    let why = "the session is pinned to db0: GET_LOCK: the lock is that connection's";
    assert!(pinned["why"].starts_with(why), "{pinned:?}");
    let by = "user lock: SELECT GET_LOCK(?, ?); user variable: SELECT @a := ?";
    assert_eq!(pinned["pinned_by"], by);
    let columns = "SELECT pins, pin_reasons, pinned_by FROM plateau.sessions";
    let shown = table(&mut operator, columns).remove(0);
    assert_eq!(shown[0], "user lock,user variable");
    assert!(shown[1].starts_with("GET_LOCK: the lock is"), "{shown:?}");
    assert_eq!(shown[2], by);
    client.run("DO RELEASE_ALL_LOCKS()").unwrap();
    assert_eq!(
        ask(&mut operator)["pinned_by"],
        "user variable: SELECT @a := ?"
    );
    client.run("BEGIN").unwrap();
    let open = ask(&mut operator);
    assert_eq!(open["why"], "the session's transaction is open on db0");
    let mut blocker = backend.connect().unwrap();
    blocker.run("LOCK TABLES shop.t WRITE").unwrap();
    client.send_command(3, b"SELECT v FROM shop.t").unwrap();
    wait_until("a statement runs", || {
        ask(&mut operator)["state"] == "running"
    });
    assert_eq!(ask(&mut operator)["server"], "db0");
    // Clients ask about themselves alone, and there has to be one of this number.
    let mut other = watched.connect();
    let text = format!("EXPLAIN ROUTE FOR CONNECTION {number}");
    assert_eq!(other.error_number(&text).unwrap(), 1210);
    let nobody = operator.error_number("EXPLAIN ROUTE FOR CONNECTION 7");
    assert_eq!(nobody.unwrap(), 1094);
}
