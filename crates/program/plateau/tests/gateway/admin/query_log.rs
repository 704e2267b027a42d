//! `[query_log]`: which statements are logged and what their lines say; and that no client waits
//! for a disk that is full.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::cache::cached_backend;
use crate::monitoring::get;
use crate::prepared::{Types, execute, prepare};
use crate::*;
use testkit::free_port;

/// A gateway with a query log.
struct Logged {
    gateway: Gateway,
    folder: Folder,
}

impl Logged {
    /// `log` are fields of the section, and `rest` is what stands before it.
    fn start(backend: &Server, log: &str, rest: &str) -> Logged {
        let folder = Folder::new("query-log").expect("a folder");
        let path = folder.path().join("q.json");
        let path = path.to_str().expect("a path of the test");
        Logged {
            gateway: Gateway::start(&configuration(backend, path, log, rest), "auto"),
            folder,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn length(&self) -> u64 {
        fs::metadata(self.path("q.json")).map_or(0, |it| it.len())
    }

    /// The lines of a file.
    fn lines(&self, name: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.path(name)).expect("it is UTF-8");
        assert!(text.is_empty() || text.ends_with('\n'), "{text}");
        let read = |line| serde_json::from_str(line).expect("an object");
        text.lines().map(read).collect()
    }

    /// Waits for so many lines, and returns a field of each.
    fn texts(&self, count: usize) -> Vec<String> {
        wait_until("all lines are there", || {
            count <= self.lines("q.json").len()
        });
        let lines = self.lines("q.json");
        lines
            .iter()
            .map(|it| it["text"].as_str().unwrap_or("-").to_owned())
            .collect()
    }

    /// Sets how long a file of the gateway may be.
    fn limit_files(&mut self, bytes: &str) {
        let id = self.gateway.server.process().id().to_string();
        let limit = format!("--fsize={bytes}:");
        let set = Command::new("prlimit")
            .args(["--pid", &id, &limit])
            .status();
        assert!(set.expect("prlimit is installed").success());
    }
}

fn configuration(backend: &Server, path: &str, log: &str, rest: &str) -> String {
    format!(
        "{rest}{}[query_log]\npath = \"{path}\"\n{log}",
        sections(&[backend])
    )
}

#[test]
fn each_statement_is_a_line() {
    let backend = backend();
    for kind in &KINDS[..2] {
        let service = format!("[[service]]\nname = \"shop\"\n{kind}");
        let rest = "log = \"info\"\n";
        let mut logged = Logged::start(&backend, &format!("all = true\n{service}"), rest);
        let mut client = logged.gateway.connect();
        client
            .run("CREATE TABLE IF NOT EXISTS shop.item (id INT PRIMARY KEY)")
            .unwrap();
        client.run("USE shop").unwrap();
        client.run("BEGIN").unwrap();
        client.run("REPLACE INTO item VALUES (1),(2)").unwrap();
        assert_eq!(
            client.error_number("INSERT INTO item VALUES (2)").unwrap(),
            1062
        );
        client.run("COMMIT").unwrap();
        let read = prepare(&mut client, "SELECT id FROM item WHERE id<=?");
        execute(&mut client, &read, 2, Types::Told);
        // What waits is written at the end.
        logged.gateway.server.stop().unwrap();
        let lines = logged.lines("q.json");
        let shown = |line: &Value| {
            let fields = [
                "schema",
                "server",
                "text",
                "prepared",
                "rows",
                "error",
                "sqlstate",
                "in_transaction",
                "why",
            ];
            fields.map(|name| line[name].to_string()).join(" ")
        };
        let expected = [
            "null \"db0\" \"CREATE TABLE IF NOT EXISTS shop.item (id INT PRIMARY KEY)\" false 0 \
             null null false \"all\"",
            "\"shop\" \"db0\" \"USE shop\" false 0 null null false \"all\"",
            "\"shop\" \"db0\" \"BEGIN\" false 0 null null true \"all\"",
            "\"shop\" \"db0\" \"REPLACE INTO item VALUES (?),(?)\" false 0 null null true \"all\"",
            "\"shop\" \"db0\" \"INSERT INTO item VALUES (?)\" false 0 1062 \"23000\" true \"all\"",
            "\"shop\" \"db0\" \"COMMIT\" false 0 null null false \"all\"",
            "\"shop\" \"db0\" \"SELECT id FROM item WHERE id<=?\" true 2 null null false \"all\"",
        ];
        assert_eq!(
            lines.iter().map(shown).collect::<Vec<_>>(),
            expected,
            "{kind}"
        );
        for line in &lines {
            assert_eq!(line["id"], client.connection_id);
            assert_eq!(
                (&line["user"], &line["service"]),
                (&"app".into(), &"shop".into())
            );
            assert!(line["client"].as_str().unwrap().starts_with("127.0.0.1:"));
            assert_eq!(line["digest"].as_str().unwrap().len(), 16);
            assert!(line["duration_us"].as_u64().unwrap() < 60_000_000);
            let time = line["time"].as_str().unwrap();
            assert!(time.len() == 27 && time.ends_with('Z'), "{time}");
        }
        assert_eq!(
            lines[3]["affected_rows"].as_u64().map(|it| it >= 2),
            Some(true)
        );
        client.run("DO 1").unwrap_err();
    }
}

#[test]
fn lines_tell_why_a_statement_went_there() {
    let backend = cached_backend();
    for (kind, own, read, session) in [
        (
            "router = \"read-write-split\"\n",
            "primary",
            "read",
            "session",
        ),
        ("router = \"read-connection\"\n", "home", "home", "home"),
    ] {
        let service = format!(
            "[[service]]\nname = \"shop\"\n{kind}cache = \"c\"\n[[cache]]\nname = \"c\"\n\
             [[rule]]\nname = \"first\"\npattern = 'from shop.u'\nserver = \"db0\"\n"
        );
        let mut logged = Logged::start(
            &backend,
            &format!("all = true\n{service}"),
            "log = \"info\"\n",
        );
        wait_until("results are kept", || {
            logged.gateway.log().contains("results are kept")
        });
        let mut client = logged.gateway.connect();
        let is_split = own == "primary";
        let or = |led: &'static str, other| if is_split { led } else { other };
        let statements = [
            ("SELECT v FROM shop.t", read),
            ("SELECT v FROM shop.t", "cache"),
            ("UPDATE shop.t SET v = v + 1", own),
            ("SET sql_select_limit = 100", session),
            ("/* plateau: server=db0 */ SELECT 3", or("hint", read)),
            ("SELECT v FROM shop.u WHERE id = 5", or("rule", read)),
            ("BEGIN", own),
            ("SELECT v + 1 FROM shop.t", "transaction"),
            ("COMMIT", "transaction"),
            ("SELECT GET_LOCK('a', 1)", own),
            ("SELECT 4", "pin"),
            ("SELECT FOUND_ROWS()", "pin"),
            ("DO RELEASE_ALL_LOCKS()", "pin"),
            ("SHOW WARNINGS", "last statement"),
            ("EXPLAIN ROUTE FOR 'SELECT 1'", ""),
        ];
        for (text, _) in statements {
            client.query(text).unwrap();
        }
        logged.gateway.server.stop().unwrap();
        let lines = logged.lines("q.json");
        let routes: Vec<_> = lines
            .iter()
            .map(|it| it["route"].as_str().unwrap())
            .collect();
        let expected: Vec<_> = statements.iter().map(|(_, route)| *route).collect();
        assert_eq!(routes, expected[..expected.len() - 1], "{kind}");
    }
}

#[test]
fn rules_failures_and_time_choose_statements() {
    let backend = backend();
    let rules = "[[rule]]\nname = \"watched\"\npattern = 'shop.watched'\nquery_log = true\n\
                 [[rule]]\nname = \"no\"\npattern = 'forbidden'\nrefuse = \"no\"\n\
                 [[rule]]\nname = \"unseen\"\npattern = 'unseen'\nquery_log = false\n";
    let log = format!("slow = 0.3\nerrors = true\ntext = \"literal\"\ntext_max = 40\n{rules}");
    let logged = Logged::start(&backend, &log, "");
    let mut client = logged.gateway.connect();
    client
        .run("CREATE TABLE shop.watched (name VARBINARY(90))")
        .unwrap();
    client.value("SELECT 'no line'").unwrap();
    client.value("SELECT SLEEP(0.31)").unwrap();
    assert_eq!(
        client.error_number("SELECT unseen FROM no.table").unwrap(),
        1146
    );
    assert_eq!(
        client.error_number("SELECT seen FROM no.table").unwrap(),
        1146
    );
    assert_eq!(client.error_number("SELECT forbidden").unwrap(), 1148);
    client
        .send_query(b"INSERT shop.watched VALUES ('\"\xff\n\xc3\xa9')")
        .unwrap();
    client.read_outcomes().unwrap();
    client
        .run(&format!(
            "INSERT shop.watched VALUES ('{}')",
            "\u{e9}".repeat(20)
        ))
        .unwrap();
    let long = format!(
        "INSERT shop.watched VALUES {}('')",
        "('\u{e9}'),".repeat(200_000)
    );
    client.run(&long).unwrap();
    let insert = "INSERT shop.watched VALUES (";
    let expected = [
        "CREATE TABLE shop.watched (name VARBINAR".to_owned(),
        "SELECT SLEEP(0.31)".to_owned(),
        "SELECT seen FROM no.table".to_owned(),
        "SELECT forbidden".to_owned(),
        format!("{insert}'\"\\xff\n\u{e9}')"),
        format!("{insert}'\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}"),
        format!("{insert}'\u{e9}'),('\u{e9}')"),
    ];
    assert_eq!(logged.texts(expected.len()), expected);
    let lines = logged.lines("q.json");
    let whys: Vec<_> = lines.iter().map(|it| it["why"].as_str().unwrap()).collect();
    assert_eq!(
        whys,
        ["rule", "slow", "error", "error", "rule", "rule", "rule"]
    );
    let server = [&lines[1]["server"], &lines[3]["server"]];
    assert_eq!(
        server,
        [&Value::from("db0"), &Value::Null],
        "a rule has refused it"
    );
    assert!(lines[1]["duration_us"].as_u64().unwrap() >= 300_000);
    let whole: Vec<_> = lines.iter().map(|it| it["text_bytes"].as_u64()).collect();
    let bytes = |text: &str| Some(u64::try_from(text.len()).unwrap());
    assert_eq!(whole[..3], [Some(46), None, None]);
    assert_eq!(whole[5..], [Some(71), bytes(&long)]);
    assert_eq!(lines[6]["digest"], Value::Null, "it was not read");
}

#[test]
fn files_rotate_and_are_opened_again() {
    let backend = backend();
    let metrics = free_port().unwrap();
    let rest = format!("metrics_listen = \"127.0.0.1:{metrics}\"\n");
    let log = "all = true\nsize = \"64K\"\nfiles = 2\n";
    let mut logged = Logged::start(&backend, log, &rest);
    let mut clients: Vec<_> = (0..8).map(|_| logged.gateway.connect()).collect();
    let mut sent = 0;
    let mut expected = BTreeSet::new();
    let run = |clients: &mut Vec<Client>, expected: &mut BTreeSet<String>, sent: &mut u32| {
        for client in clients {
            // Names differ, and literals do not show.
            client.value(&format!("SELECT 1 AS n{sent}")).unwrap();
            expected.insert(format!("SELECT ? AS n{sent}"));
            *sent += 1;
        }
    };
    // One who reads beside the writer may see a part of a line, and while files change places no
    // file at all.
    let texts = || {
        let files = ["q.json.1", "q.json"].map(|name| fs::read_to_string(logged.path(name)));
        let text = |line| {
            let read: Value = serde_json::from_str(line).ok()?;
            Some(read["text"].as_str()?.to_owned())
        };
        let lines = files.iter().flatten().flat_map(|it| it.lines());
        lines.filter_map(text).collect::<BTreeSet<_>>()
    };
    // What is sent is written before more is sent: however late the disk is, one file is full.
    while !logged.path("q.json.1").exists() {
        run(&mut clients, &mut expected, &mut sent);
        wait_until("all are written", || texts() == expected);
    }
    let full = fs::metadata(logged.path("q.json.1")).unwrap().len();
    assert!(0 < full && full <= 64 << 10, "{full}");
    // A program takes the file away, and has it opened again.
    fs::rename(logged.path("q.json"), logged.path("taken")).unwrap();
    let id = logged.gateway.server.process().id().to_string();
    let hang_up = Command::new("kill").args(["-HUP", &id]).status();
    assert!(hang_up.unwrap().success());
    wait_until("it is opened again", || logged.path("q.json").exists());
    clients[0].value("SELECT 1 AS again").unwrap();
    assert_eq!(logged.texts(1), ["SELECT ? AS again"]);
    let lines = sent + 1;
    wait_until("they are counted", || {
        let (_, page) = get(metrics, "/metrics");
        page.contains(&format!("plateau_query_log_lines_total {lines}\n"))
            && page.contains("plateau_query_log_dropped_total 0\n")
    });
    // Without the section nothing is logged, by no session.
    let file = logged.gateway.folder.path().join("plateau.toml");
    fs::write(&file, format!("{rest}{}", sections(&[&backend]))).unwrap();
    let hang_up = Command::new("kill").args(["-HUP", &id]).status();
    assert!(hang_up.unwrap().success());
    wait_until("it is read again", || {
        logged
            .gateway
            .log()
            .matches("read the settings file again")
            .count()
            == 2
    });
    clients[0].value("SELECT 1 AS unseen").unwrap();
    logged.gateway.server.stop().unwrap();
    assert_eq!(logged.lines("q.json").len(), 1);
}

#[test]
fn a_full_disk_stops_the_log_and_no_client() {
    let backend = backend();
    let mut logged = Logged::start(&backend, "all = true\n", "");
    let mut clients: Vec<_> = (0..4).map(|_| logged.gateway.connect()).collect();
    let mut run = |count: u32| {
        for number in 0..count {
            for client in &mut clients {
                client.value(&format!("SELECT {number}")).unwrap();
            }
        }
    };
    run(300);
    wait_until("all are written", || logged.lines("q.json").len() == 1200);
    // A part of a line fits.
    let before = logged.length();
    logged.limit_files(&(before + 100).to_string());
    run(300);
    let told = "the query log cannot be written";
    wait_until("the log says so", || logged.gateway.log().contains(told));
    run(300);
    // It says so once, and what is there are whole lines.
    assert_eq!(logged.gateway.log().matches(told).count(), 1);
    assert_eq!(logged.length(), before);
    logged.limit_files("unlimited");
    let again = "the query log is written again";
    wait_until("it goes on by itself", || {
        run(1);
        logged.gateway.log().contains(again)
    });
    logged.gateway.server.stop().unwrap();
    let lines = logged.lines("q.json").len();
    assert!((1201..3600).contains(&lines), "{lines}");
    assert_eq!(logged.gateway.log().matches(told).count(), 1);
}

#[test]
fn a_file_that_cannot_be_opened_is_told_at_the_start_and_changes_nothing_later() {
    let backend = backend();
    let folder = Folder::new("query-log").unwrap();
    let fifo = folder.path().join("fifo");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let text = configuration(&backend, fifo.to_str().unwrap(), "all = true\n", "");
    let Err(refused) = Gateway::launch(&folder, &text, "auto").start() else {
        panic!("it starts");
    };
    let refused = format!("{refused:#}");
    assert!(refused.contains("is a FIFO, and no file"), "{refused}");
    // Longer than a name may be.
    let long = folder.path().join("q".repeat(300));
    let text = configuration(&backend, long.to_str().unwrap(), "all = true\n", "");
    let Err(refused) = Gateway::launch(&folder, &text, "auto").start() else {
        panic!("it starts");
    };
    let refused = format!("{refused:#}");
    assert!(refused.contains("the query log: cannot open"), "{refused}");
    let logged = Logged::start(&backend, "all = true\n", "");
    let mut client = logged.gateway.connect();
    let file = logged.gateway.folder.path().join("plateau.toml");
    fs::write(&file, &text).unwrap();
    let mut gateway = logged.gateway;
    let id = gateway.server.process().id().to_string();
    assert!(
        Command::new("kill")
            .args(["-HUP", &id])
            .status()
            .unwrap()
            .success()
    );
    wait_until("the file is not taken", || {
        gateway
            .log()
            .contains("the settings file was not taken: the query log: cannot open")
    });
    client.value("SELECT 1").unwrap();
    gateway.server.stop().unwrap();
    assert_eq!(
        fs::read_to_string(logged.folder.path().join("q.json"))
            .unwrap()
            .lines()
            .count(),
        1
    );
}
