//! The engine and a naive store in one server, behind a routed store.
//!
//! The naive store has the database `far`, each call of which takes a while. All other databases
//! are the engine's.

use std::rc::Rc;
use std::time::Duration;

use buffer::{PoolOptions, StartOptions};
use engine::{Engine, EngineOptions, PURGE_PATIENCE, Sleep, WorkerOptions};
use env::linux::SystemClock;
use routed::{Member, RoutedStore};
use store::{SchemaStore, StoreError};
use testkit::client::Client;
use testkit::folder::Folder;
use testkit::naive_store::NaiveStore;
use value::CollationId;
use wal::{OnLogLoss, WalOptions};

use super::ROUND_TRIP;
use super::server::{TestServer, be_remote};

/// An id that the engine does not give to a table here.
const FAR_IDS_ABOVE: u64 = 1 << 32;

/// A server over both, and a client of it.
struct Routed {
    server: TestServer,
    client: Client,
    /// The engine's files; removed after the server has ended.
    _folder: Folder,
}

impl Routed {
    fn new(name: &str) -> Self {
        let folder = Folder::new(name).expect("a folder");
        let directory = folder.path().to_owned();
        let server = TestServer::start(move || async move {
            let engine = Rc::new(open_engine(directory).await);
            let far = NaiveStore::with_ids_above(FAR_IDS_ABOVE);
            let made = far
                .create_database("far", CollationId::UTF8MB4_GENERAL_CI)
                .await;
            made.expect("it is empty");
            be_remote(&far, ROUND_TRIP);
            let far = Rc::new(far);
            runtime::set_local(Rc::clone(&far));
            let near = Member {
                store: Rc::clone(&engine) as _,
                schema: Some(engine),
            };
            let far = Member {
                store: Rc::clone(&far) as _,
                schema: Some(far),
            };
            Rc::new(RoutedStore::new(vec![near, far]))
        });
        let mut client = server.connect().expect("a client");
        for sql in [
            "CREATE DATABASE near",
            "USE near",
            "CREATE TABLE a (id INT PRIMARY KEY, k INT)",
            "CREATE TABLE far.b (id INT PRIMARY KEY, k INT)",
            "INSERT INTO a VALUES (1, 10), (2, 20), (3, 30)",
            "INSERT INTO far.b VALUES (2, 200), (3, 300), (4, 400)",
        ] {
            client.run(sql).expect(sql);
        }
        Self {
            server,
            client,
            _folder: folder,
        }
    }

    fn run(&mut self, sql: &str) {
        self.client.run(sql).expect(sql);
    }

    /// The rows of a statement, in one text.
    fn rows(&mut self, sql: &str) -> String {
        let rows = self.client.rows(sql).expect(sql);
        let value = |value: &Option<Vec<u8>>| match value {
            Some(text) => String::from_utf8_lossy(text).into_owned(),
            None => "NULL".to_owned(),
        };
        let row = |row: &Vec<_>| row.iter().map(value).collect::<Vec<_>>().join(" ");
        rows.iter().map(row).collect::<Vec<_>>().join(", ")
    }

    /// The numbers of both tables, as another client sees them.
    fn seen(&mut self) -> (String, String) {
        let mut other = self.server.connect().expect("a client");
        let mut value = |sql: &str| other.value(sql).expect(sql).unwrap_or_default();
        let near = value("SELECT GROUP_CONCAT(k ORDER BY id) FROM near.a");
        let far = value("SELECT GROUP_CONCAT(k ORDER BY id) FROM far.b");
        (near, far)
    }

    fn prepared(&self) -> u64 {
        self.server.with_naive(NaiveStore::prepared)
    }
}

/// The storage engine in a new directory, as the program opens it.
async fn open_engine(directory: std::path::PathBuf) -> Engine {
    let wal = WalOptions {
        worker_count: 1,
        ..WalOptions::default()
    };
    let options = StartOptions {
        directory,
        wal,
        pool: PoolOptions {
            frame_count: 512,
            ..PoolOptions::default()
        },
        on_loss: OnLogLoss::Refuse,
    };
    let disk = runtime::disk();
    let die = Box::new(|failure: &wal::WalError| panic!("{failure}"));
    let started = buffer::start(disk, options, die, &mut |_| {}).await;
    let started = started.expect("a new directory");
    let wal = std::sync::Arc::clone(started.pool.wal());
    runtime::on_tick_end(Box::new(move || {
        if let Some(job) = wal.try_lead() {
            let disk = runtime::disk();
            runtime::spawn(async move { job.run(&*disk).await });
        }
    }));
    let sleep: Sleep = Rc::new(|duration| Box::pin(runtime::sleep(duration)));
    let worker = WorkerOptions {
        index: 0,
        clock: Rc::new(SystemClock),
        sleep,
        purge_patience: PURGE_PATIENCE,
    };
    let options = EngineOptions {
        worker_count: 1,
        on_loss: OnLogLoss::Refuse,
        ..EngineOptions::default()
    };
    let pages = started.pool.pages(0, runtime::disk());
    let engine = Engine::open(pages, &started, options, worker).await;
    let engine = engine.expect("a new directory");
    let background = engine.clone();
    runtime::spawn_background(async move { background.run_background(runtime::shutdown()).await });
    engine
}

#[test]
fn a_statement_joins_tables_of_two_stores() {
    let mut routed = Routed::new("routed-joins");
    let inner = "SELECT a.id, a.k, b.k FROM a JOIN far.b ON b.id = a.id ORDER BY a.id";
    assert_eq!(routed.rows(inner), "2 20 200, 3 30 300");
    let left = "SELECT b.id, a.k FROM far.b LEFT JOIN a ON a.id = b.id ORDER BY b.id";
    assert_eq!(routed.rows(left), "2 20, 3 30, 4 NULL");
    let inside = "SELECT id FROM a WHERE id NOT IN (SELECT id FROM far.b)";
    assert_eq!(routed.rows(inside), "1");
    let tables = "SELECT table_schema, table_name FROM information_schema.tables \
                  WHERE table_schema IN ('near', 'far') ORDER BY 1";
    assert_eq!(routed.rows(tables), "far b, near a");
    routed.run("INSERT INTO far.b SELECT id + 10, k FROM a");
    assert_eq!(routed.seen().1, "200,300,400,10,20,30");
}

#[test]
fn a_transaction_that_wrote_in_both_prepares_and_commits_both() {
    let mut routed = Routed::new("routed-commit");
    let before = routed.prepared();
    routed.run("UPDATE a JOIN far.b ON b.id = a.id SET a.k = a.k + 1, b.k = b.k + 1");
    let both = ("10,21,31".to_owned(), "201,301,400".to_owned());
    assert_eq!(routed.seen(), both);
    assert_eq!(routed.prepared() - before, 1);
    routed.run("BEGIN");
    routed.run("UPDATE a SET k = 0 WHERE id = 1");
    routed.run("DELETE FROM far.b WHERE id = 4");
    assert_eq!(routed.seen().0, "10,21,31", "the engine isolates");
    routed.run("COMMIT");
    assert_eq!(routed.seen(), ("0,21,31".to_owned(), "201,301".to_owned()));
    assert_eq!(routed.prepared() - before, 2);
    // Whoever wrote in one store only prepares nothing.
    routed.run("BEGIN");
    routed.rows("SELECT COUNT(*) FROM a");
    routed.run("DELETE FROM far.b WHERE id = 3");
    routed.run("COMMIT");
    assert_eq!(routed.prepared() - before, 2);
}

#[test]
fn a_rollback_a_savepoint_and_a_failed_statement_reach_both() {
    let mut routed = Routed::new("routed-rollback");
    let before = routed.seen();
    let both = "UPDATE a JOIN far.b ON b.id = a.id SET a.k = a.k + 1, b.k = b.k + 1";
    routed.run("BEGIN");
    routed.run(both);
    routed.run("SAVEPOINT s");
    routed.run("DELETE FROM a");
    routed.run("DELETE FROM far.b");
    routed.run("ROLLBACK TO s");
    assert_eq!(routed.rows("SELECT SUM(k) FROM a"), "62");
    assert_eq!(routed.rows("SELECT SUM(k) FROM far.b"), "902");
    routed.run("ROLLBACK");
    assert_eq!(routed.seen(), before);
    // The end of the statement fails in the far store: the engine's changes are undone, too.
    let refused = || StoreError::Remote {
        server: "s1".into(),
        code: errcode::ER_DUP_ENTRY,
        state: errcode::ER_DUP_ENTRY.sqlstate(),
        text: "no".into(),
    };
    routed.run("BEGIN");
    for call in 0.. {
        routed
            .server
            .with_naive(move |store| store.fail_after(call, refused()));
        let failed = routed.client.run(both).is_err();
        if routed.server.with_naive(NaiveStore::withdraw_failure) {
            assert!(!failed && 1 < call);
            break;
        }
        if failed {
            assert_eq!(routed.rows("SELECT SUM(k) FROM a"), "60", "at {call}");
            assert_eq!(routed.rows("SELECT SUM(k) FROM far.b"), "900", "at {call}");
        } else {
            routed.run("ROLLBACK");
            routed.run("BEGIN");
        }
    }
    routed.run("ROLLBACK");
    assert_eq!(routed.seen(), before);
}

#[test]
fn a_commit_that_cannot_be_prepared_changes_neither() {
    let mut routed = Routed::new("routed-prepare");
    let before = routed.seen();
    routed.run("BEGIN");
    routed.run("UPDATE a SET k = 1");
    routed.run("UPDATE far.b SET k = 1");
    routed
        .server
        .with_naive(|store| store.fail_after(0, StoreError::DiskFull));
    assert_eq!(
        routed.client.error_number("COMMIT").expect("an error"),
        1021
    );
    // What the engine had changed is undone in the background.
    routed.run("UPDATE a SET k = k + 0");
    assert_eq!(routed.seen(), before);
}

#[test]
fn a_far_call_lets_other_clients_run() {
    assert!(Duration::ZERO < ROUND_TRIP);
    let mut routed = Routed::new("routed-waits");
    let mut other = routed.server.connect().expect("a client");
    routed
        .client
        .send_query(b"SELECT COUNT(*) FROM far.b x, far.b y")
        .expect("it is sent");
    let near = other.value("SELECT COUNT(*) FROM near.a").expect("a value");
    assert_eq!(near.as_deref(), Some("3"));
    routed.client.read_outcomes().expect("an answer");
}
