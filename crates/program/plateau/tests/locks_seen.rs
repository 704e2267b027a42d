//! What an operator sees of locks: who waits for whom, and both sides of the last deadlock.

#![forbid(unsafe_code)]

use std::thread;

use testkit::client::{Client, Login, Outcome};
use testkit::{Launch, Server, ServerKind};

fn start() -> Server {
    let server = Launch::new(ServerKind::Plateau).start().expect("a server");
    let mut client = server.connect().expect("a login");
    for statement in [
        "create database d",
        "create table d.t (id int primary key, k varchar(9), v int, key (k))",
        "insert into d.t values (1, 'a', 0), (2, 'b', 0), (9, 'z', 0)",
        "create user watcher",
        "grant select, update on d.* to watcher",
    ] {
        client.run(statement).expect(statement);
    }
    server
}

fn id_of(client: &mut Client) -> String {
    value(client, "select connection_id()")
}

/// The only value of an answer.
fn value(client: &mut Client, statement: &str) -> String {
    let mut rows = texts(client, statement);
    assert_eq!(rows.len(), 1, "{statement}: {rows:?}");
    rows.swap_remove(0).swap_remove(0)
}

/// The rows of an answer; NULL is `-`.
fn texts(client: &mut Client, statement: &str) -> Vec<Vec<String>> {
    let rows = client.rows(statement).expect(statement);
    let text = |value: Option<Vec<u8>>| match value {
        Some(bytes) => String::from_utf8(bytes).expect("a text"),
        None => "-".to_owned(),
    };
    let row = |row: Vec<Option<Vec<u8>>>| row.into_iter().map(text).collect();
    rows.into_iter().map(row).collect()
}

/// Waits until so many transactions wait for locks.
fn await_waiters(watcher: &mut Client, count: usize) {
    let asked =
        "select count(distinct requesting_trx_id) from information_schema.INNODB_LOCK_WAITS";
    while value(watcher, asked) != count.to_string() {
        thread::yield_now();
    }
}

fn error(client: &mut Client, statement: &str) -> u16 {
    match client.query(statement).expect("an answer") {
        Outcome::Error(error) => error.number,
        other => panic!("{statement} is refused, not {other:?}"),
    }
}

/// Open transactions, by client.
const TRANSACTIONS: &str = "\
    select trx_mysql_thread_id, trx_state, trx_query, trx_weight, trx_lock_structs, \
    trx_rows_locked, trx_rows_modified, trx_tables_locked, trx_isolation_level, \
    trx_requested_lock_id is null, trx_wait_started >= trx_started \
    from information_schema.INNODB_TRX order by trx_mysql_thread_id";

/// Locks that are waited for, and those that wait.
const LOCKS: &str = "\
    select trx_mysql_thread_id, lock_mode, lock_type, lock_table, lock_index, lock_data \
    from information_schema.INNODB_LOCKS join information_schema.INNODB_TRX \
    on trx_id = lock_trx_id order by trx_mysql_thread_id";

/// Who waits for whom.
const WAITS: &str = "\
    select r.trx_mysql_thread_id, b.trx_mysql_thread_id, \
    requested_lock_id = r.trx_requested_lock_id, l.lock_trx_id = blocking_trx_id \
    from information_schema.INNODB_LOCK_WAITS \
    join information_schema.INNODB_TRX r on r.trx_id = requesting_trx_id \
    join information_schema.INNODB_TRX b on b.trx_id = blocking_trx_id \
    join information_schema.INNODB_LOCKS l on l.lock_id = blocking_lock_id";

#[test]
fn a_wait_is_in_all_three_tables() {
    let mut server = start();
    let connect = || server.connect().expect("a login");
    let (mut holder, mut waiter, mut watcher) = (connect(), connect(), connect());
    let (holder_id, waiter_id) = (id_of(&mut holder), id_of(&mut waiter));
    holder.run("begin").expect("a transaction");
    holder
        .run("update d.t set v = 1 where id = 2")
        .expect("a change");
    holder
        .run("insert into d.t values (3, 'c', 0)")
        .expect("a change");
    thread::scope(|scope| {
        let change = "update d.t set v = v + 10 where id = 2";
        let waiting = scope.spawn(move || waiter.run(change).map(|_| ()));
        await_waiters(&mut watcher, 1);
        let transactions = texts(&mut watcher, TRANSACTIONS);
        // As MariaDB 10.11 shows them: weights, lock objects and rows, too.
        let holder_row = [
            &holder_id,
            "RUNNING",
            "-",
            "4",
            "2",
            "1",
            "2",
            "1",
            "REPEATABLE READ",
            "1",
            "-",
        ];
        let waiter_row = [
            &waiter_id,
            "LOCK WAIT",
            change,
            "2",
            "2",
            "1",
            "0",
            "1",
            "REPEATABLE READ",
            "0",
            "1",
        ];
        assert_eq!(transactions, [holder_row, waiter_row]);
        let locks = texts(&mut watcher, LOCKS);
        let lock = |id| [id, "X", "RECORD", "`d`.`t`", "PRIMARY", "2"];
        assert_eq!(locks, [lock(&*holder_id), lock(&*waiter_id)]);
        let waits = texts(&mut watcher, WAITS);
        assert_eq!(waits, [[&waiter_id, &holder_id, "1", "1"]]);
        holder.run("commit").expect("a commit");
        waiting.join().expect("no panic").expect("a change");
    });
    let none = "select count(*) from information_schema.INNODB_TRX";
    assert_eq!(value(&mut watcher, none), "0");
    server.stop().expect("an end");
}

/// As MariaDB 10.11: each waiter waits for the holder, and for each waiter before it.
#[test]
fn a_waiter_shows_all_that_stand_before_it() {
    let mut server = start();
    let connect = || server.connect().expect("a login");
    let (mut holder, mut watcher) = (connect(), connect());
    let mut ids = vec![id_of(&mut holder)];
    holder.run("begin").expect("a transaction");
    let change = "update d.t set v = v + 1 where id = 2";
    holder.run(change).expect("a change");
    thread::scope(|scope| {
        let mut waiting = Vec::new();
        for count in 1..=3 {
            let mut waiter = connect();
            ids.push(id_of(&mut waiter));
            waiting.push(scope.spawn(move || waiter.run(change).map(|_| ())));
            await_waiters(&mut watcher, count);
        }
        let mut shown = texts(&mut watcher, WAITS);
        shown.sort();
        let mut expected = Vec::new();
        for (place, waiter) in ids.iter().enumerate() {
            let edge = |before: &String| [waiter, before, "1", "1"].map(str::to_owned).to_vec();
            expected.extend(ids[..place].iter().map(edge));
        }
        expected.sort();
        assert_eq!(shown, expected);
        let text = status(&mut watcher);
        assert_eq!(text.matches("LOCK WAIT").count(), 3, "{text}");
        holder.run("commit").expect("a commit");
        for waiter in waiting {
            waiter.join().expect("no panic").expect("a change");
        }
    });
    server.stop().expect("an end");
}

const STATUS: &str = "show engine innodb status";

fn status(watcher: &mut Client) -> String {
    texts(watcher, STATUS).swap_remove(0).swap_remove(2)
}

/// What the two sides of a deadlock executed in it. `one` is the victim: it has fewer changes,
/// though the other closes the cycle.
fn make_deadlock([one, two, watcher]: [&mut Client; 3]) -> [&'static str; 2] {
    one.run("set autocommit = 0").expect("a setting");
    one.run("update d.t set v = 1 where id = 1")
        .expect("a change");
    two.run("begin").expect("a transaction");
    for id in [2, 9] {
        let change = format!("update d.t set v = 2 where id = {id}");
        two.run(&change).expect("a change");
    }
    let first = "update d.t set v = 1 where id = 2";
    let second = "update d.t set v = 2 where id = 1";
    thread::scope(|scope| {
        let waiting = scope.spawn(|| error(one, first));
        await_waiters(watcher, 1);
        assert!(status(watcher).contains("LOCK WAIT"));
        two.run(second).expect("a change");
        assert_eq!(waiting.join().expect("no panic"), 1213);
    });
    two.run("rollback").expect("an end");
    [first, second]
}

/// Both sides of a report: the client, its statement, the lock that it waits for.
fn assert_sides(report: &str, ids: [&str; 2], statements: [&str; 2]) {
    let (closed, waited) = report
        .split_once("*** (2) TRANSACTION:")
        .expect("two sides");
    assert!(closed.contains("*** (1) TRANSACTION:"), "{report}");
    let [one, two] = ids;
    let [first, second] = statements;
    for (side, id, statement, key) in [(closed, two, second, "1"), (waited, one, first, "2")] {
        assert!(side.contains(&format!("thread id {id},")), "{report}");
        assert!(side.contains(statement), "{report}");
        let (wanted, blocker) = side.split_once("*** CONFLICTING WITH:").expect("a blocker");
        let heading = "*** WAITING FOR THIS LOCK TO BE GRANTED:";
        assert!(wanted.contains(heading), "{report}");
        for of in [wanted, blocker] {
            assert!(of.contains("index PRIMARY of table `d`.`t`"), "{report}");
            assert!(of.contains("lock_mode X locks rec but not gap"), "{report}");
            assert!(of.contains(&format!("key: {key}")), "{report}");
        }
        assert!(
            wanted.contains(" waiting") && !blocker.contains(" waiting"),
            "{report}"
        );
    }
    assert!(
        report.contains("*** WE ROLL BACK TRANSACTION (2)"),
        "{report}"
    );
}

#[test]
fn the_report_of_a_deadlock_names_both_sides() {
    let mut server = start();
    let connect = || server.connect().expect("a login");
    let (mut one, mut two, mut watcher) = (connect(), connect(), connect());
    let (one_id, two_id) = (id_of(&mut one), id_of(&mut two));
    let before = status(&mut watcher);
    assert!(!before.contains("LATEST DETECTED DEADLOCK"));
    assert!(before.contains("\nHistory list length "), "{before}");
    let made = make_deadlock([&mut one, &mut two, &mut watcher]);
    let report = status(&mut watcher);
    let begin = report.find("LATEST DETECTED DEADLOCK\n").expect("a report");
    let end = report.find("------------\nTRANSACTIONS\n").expect("a list");
    assert_sides(&report[begin..end], [&one_id, &two_id], made);
    // It stays as it was, also once its clients are gone and its table is another.
    drop((one, two));
    watcher.run("alter table d.t force").expect("a new table");
    assert!(status(&mut watcher).contains(&report[begin..end]));
    drop(watcher);
    server.stop().expect("an end");
}

#[test]
fn the_log_has_reports_once_they_are_wanted() {
    let mut server = start();
    let connect = || server.connect().expect("a login");
    let (mut one, mut two, mut watcher) = (connect(), connect(), connect());
    let (one_id, two_id) = (id_of(&mut one), id_of(&mut two));
    make_deadlock([&mut one, &mut two, &mut watcher]);
    let on = "set global innodb_print_all_deadlocks = on";
    watcher.run(on).expect("a setting");
    let made = make_deadlock([&mut one, &mut two, &mut watcher]);
    drop((one, two, watcher));
    server.stop().expect("an end");
    let log = server.log();
    assert_eq!(log.matches("a deadlock was broken").count(), 1, "{log}");
    let report = &log[log.find("a deadlock was broken").expect("a report")..];
    assert_sides(report, [&one_id, &two_id], made);
}

/// Errors are those of MariaDB 10.11.
#[test]
fn only_the_process_privilege_shows_locks() {
    let mut server = start();
    let mut client = Client::connect(&Login {
        user: "watcher".to_owned(),
        ..Login::root(server.port())
    })
    .expect("a login");
    for table in ["INNODB_TRX", "INNODB_LOCKS", "INNODB_LOCK_WAITS"] {
        let asked = format!("select * from information_schema.{table}");
        assert_eq!(error(&mut client, &asked), 1227, "{table}");
    }
    assert_eq!(error(&mut client, "show engine innodb status"), 1227);
    assert_eq!(error(&mut client, "show engine nothing status"), 1286);
    let mut root = server.connect().expect("a login");
    assert_eq!(error(&mut root, "show engine nothing status"), 1286);
    assert!(texts(&mut root, "show engine aria status").is_empty());
    assert!(texts(&mut root, "show engine innodb mutex").is_empty());
    drop((client, root));
    server.stop().expect("an end");
}
