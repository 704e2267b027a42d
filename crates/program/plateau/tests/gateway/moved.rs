//! Configurations of MaxScale and ProxySQL, translated: statements go where they went before.

use std::path::Path;
use std::process::{Command, Output};

use testkit::free_port;
use testkit::topology::Replicated;

use super::roles::replicated;
use super::*;

/// An example, with these texts in place of others.
fn example(text: &str, replaced: &[(String, String)]) -> String {
    let replace = |text: String, (from, to): &(String, String)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    };
    replaced.iter().fold(text.to_owned(), replace)
}

fn plateau(folder: &Folder, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plateau"));
    let command = command.args(arguments).current_dir(folder.path());
    command.output().expect("it runs")
}

/// What `plateau init gateway --from` says of a file, and the settings file, which has no mistakes.
fn translated(name: &str, text: &str) -> (String, String) {
    let folder = Folder::new("moved").expect("a folder");
    fs::write(folder.path().join(name), text).expect("the folder is there");
    let made = plateau(&folder, &["init", "gateway", "--from", name]);
    let notes = String::from_utf8(made.stderr).expect("UTF-8");
    assert!(made.status.success(), "{notes}");
    let checked = plateau(&folder, &["--check-config"]);
    let mistakes = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success(), "{mistakes}");
    let written = fs::read_to_string(folder.path().join("plateau.toml"));
    (notes, written.expect("the file is there"))
}

/// Gives each server tables that tell which one it is.
fn mark_tables(topology: &Replicated, tables: &[&str]) {
    let mut primary = topology.connect(0).expect("root gets in");
    for table in tables {
        for statement in [
            format!("CREATE TABLE shop.{table} (place INT)"),
            format!("INSERT INTO shop.{table} VALUES (0)"),
        ] {
            primary.run(&statement).expect(&statement);
        }
    }
    for replica in 1..topology.servers.len() {
        topology.wait_for_replica(replica, 0).expect("it follows");
        let mut client = topology.connect(replica).expect("root gets in");
        client.run("SET SESSION sql_log_bin = 0").expect("a SET");
        for table in tables {
            let update = format!("UPDATE shop.{table} SET place = {replica}");
            client.run(&update).expect(&update);
        }
    }
}

/// The servers that answer this statement, without those that do so again.
fn answering(client: &mut Client, text: &str) -> String {
    let mut places: Vec<String> = (0..8).map(|_| value(client, text)).collect();
    places.sort_unstable();
    places.dedup();
    places.join(",")
}

/// The server that takes a write: the tables of replicas keep what they have.
fn written_at(client: &mut Client, topology: &Replicated) -> u16 {
    client
        .run("INSERT INTO shop.written SELECT @@port")
        .expect("a write");
    let mut root = topology.connect(0).expect("root gets in");
    let text = "SELECT MAX(port) FROM shop.written";
    value(&mut root, text).parse().expect("a port")
}

fn path(folder: &Folder) -> String {
    folder.path().display().to_string()
}

/// The lines of a query log, once so many of them have this word.
fn logged(path: &Path, word: &str, count: usize) -> Vec<String> {
    let mut lines = Vec::new();
    wait_until("all lines are written", || {
        let text = fs::read_to_string(path).unwrap_or_default();
        lines = text.lines().map(str::to_owned).collect();
        count == lines.iter().filter(|it| it.contains(word)).count()
    });
    lines
}

fn run_all(topology: &Replicated, statements: &[&str]) {
    let mut root = topology.connect(0).expect("root gets in");
    for statement in statements {
        root.run(statement).expect(statement);
    }
    for replica in 1..topology.servers.len() {
        topology.wait_for_replica(replica, 0).expect("it follows");
    }
}

/// A gateway whose two services are ready.
fn start(text: &str) -> Gateway {
    let gateway = Gateway::start(text, "auto");
    wait_until("both services are ready", || {
        gateway.log().matches("a service is ready").count() == 2
    });
    gateway
}

fn connect_at(port: u16, user: &str, password: &str) -> Client {
    let login = Login {
        user: user.to_owned(),
        password: password.to_owned(),
        ..Login::root(port)
    };
    Client::connect(&login).expect("it gets in")
}

#[test]
fn what_maxscale_has_split_is_split() {
    let topology = replicated();
    // What the notes say is to be done.
    run_all(
        &topology,
        &[
            "CREATE USER maxmon@'%' IDENTIFIED BY 'watch'",
            "GRANT SLAVE MONITOR ON *.* TO maxmon@'%'",
            "GRANT SELECT ON mysql.* TO maxmon@'%'",
            "CREATE TABLE shop.written (port INT)",
        ],
    );
    mark_tables(&topology, &["here", "stock", "archive"]);
    let reports = free_port().expect("a port");
    let logs = Folder::new("moved-logs").expect("a folder");
    let mut replaced = vec![
        (
            "address=0.0.0.0\nport=4008".to_owned(),
            format!("port={reports}"),
        ),
        ("port=3306\n".to_owned(), String::new()),
        ("/var/log/maxscale".to_owned(), path(&logs)),
    ];
    for (place, server) in topology.servers.iter().enumerate() {
        let address = format!("address=127.0.0.1\nport={}", server.port());
        replaced.push((format!("address=10.0.0.{}", place + 1), address));
    }
    let text = include_str!("../../../../../docs/examples/maxscale.cnf");
    let (notes, text) = translated("maxscale.cnf", &example(text, &replaced));
    assert!(notes.contains("to do: [Read-Write] user: "), "{notes}");
    let gateway = start(&text);

    let mut client = gateway.connect();
    // The other replica has rank=secondary.
    assert_eq!(answering(&mut client, "SELECT place FROM shop.here"), "1");
    assert_eq!(
        answering(&mut client, "SELECT place FROM shop.here FOR UPDATE"),
        "0"
    );
    // By the filter.
    assert_eq!(answering(&mut client, "SELECT place FROM shop.stock"), "0");
    assert_eq!(
        answering(&mut client, "SELECT place FROM shop.archive"),
        "2"
    );
    let primary = topology.servers[0].port();
    assert_eq!(written_at(&mut client, &topology), primary);
    // `causal_reads=local`: a replica is waited for.
    for count in 2..6 {
        client.run("INSERT INTO shop.written VALUES (0)").unwrap();
        let seen = value(&mut client, "SELECT COUNT(*) FROM shop.written");
        assert_eq!(seen, count.to_string());
    }
    client.run("BEGIN").unwrap();
    assert_eq!(answering(&mut client, "SELECT place FROM shop.here"), "0");
    client.run("COMMIT").unwrap();
    // `router_options=slave`: all of a client goes to a replica.
    let mut client = connect_at(reports, "app", "secret");
    assert_eq!(port_of(&mut client), topology.servers[1].port());
    let stock = "SELECT place FROM shop.stock";
    assert_eq!(answering(&mut client, stock), "1");
    // By the filter `cache` of this service: the change is not seen.
    let mut replica = topology.connect(1).expect("root gets in");
    replica.run("SET SESSION sql_log_bin = 0").expect("a SET");
    replica.run("UPDATE shop.stock SET place = 7").expect("it");
    assert_eq!(answering(&mut client, stock), "1");
    // By the filter `qlafilter` of the other service.
    let lines = logged(&logs.path().join("statements"), "shop.archive", 8);
    let is_ours = |it: &String| it.contains("\"service\":\"Read-Write\"");
    assert!(lines.iter().all(is_ours), "{lines:?}");
}

#[test]
fn what_proxysql_has_routed_is_routed() {
    let topology = replicated();
    // What the notes say is to be done.
    run_all(
        &topology,
        &[
            "ALTER USER monitor@'%' IDENTIFIED BY 'watch'",
            "GRANT SELECT ON mysql.* TO monitor@'%'",
            "GRANT SELECT ON shop.* TO report@'%' IDENTIFIED BY 'numbers'",
            "CREATE TABLE shop.written (port INT)",
        ],
    );
    mark_tables(&topology, &["here", "archive", "report"]);
    let logs = Folder::new("moved-logs").expect("a folder");
    let [port, admin] = [free_port().expect("a port"), free_port().expect("a port")];
    let mut replaced = vec![
        ("6034".to_owned(), port.to_string()),
        (";/tmp/proxysql_admin.sock".to_owned(), String::new()),
        (
            "queries.log".to_owned(),
            format!("{}/queries.log", path(&logs)),
        ),
        ("127.0.0.1:6032".to_owned(), format!("127.0.0.1:{admin}")),
    ];
    for (place, server) in topology.servers.iter().enumerate() {
        let address = format!("address=\"127.0.0.1\", port={}", server.port());
        replaced.push((
            format!("address=\"10.0.0.{}\", port=3306", place + 1),
            address,
        ));
    }
    let text = include_str!("../../../../../docs/examples/proxysql.cnf");
    let (notes, text) = translated("proxysql.cnf", &example(text, &replaced));
    assert!(
        notes.contains("to do: mysql_variables: monitor_username: "),
        "{notes}"
    );
    let gateway = start(&text);

    let mut client = gateway.connect();
    assert_eq!(answering(&mut client, "SELECT place FROM shop.here"), "1,2");
    assert_eq!(
        answering(&mut client, "SELECT place FROM shop.here FOR UPDATE"),
        "0"
    );
    assert_eq!(
        answering(&mut client, "SELECT place FROM shop.archive"),
        "2"
    );
    // No rule is about it, so it goes to the default hostgroup of its user.
    let with = "WITH it AS (SELECT * FROM shop.here) SELECT place FROM it";
    assert_eq!(answering(&mut client, with), "0");
    let primary = topology.servers[0].port();
    assert_eq!(written_at(&mut client, &topology), primary);
    let refused = error_of(client.query("DELETE FROM shop.here").unwrap());
    assert_eq!(
        (refused.number, refused.message.as_str()),
        (1148, "DELETE without WHERE")
    );
    client.run("DELETE FROM shop.here WHERE place = 7").unwrap();

    let mut client = connect_at(gateway.server.port(), "report", "numbers");
    assert_eq!(answering(&mut client, "SELECT place FROM shop.here"), "2");
    // The other place is for all replicas, of which the less busy one is taken.
    let mut client = connect_at(port, "report", "numbers");
    let places = answering(&mut client, "SELECT place FROM shop.here");
    assert!(["1", "1,2"].contains(&places.as_str()), "{places}");
    // The rule for that place ends ProxySQL's search. Elsewhere, by `cache_ttl`, the first result
    // is sent again.
    let mut client = gateway.connect();
    let places = answering(&mut client, "SELECT place FROM shop.report");
    assert!(["1", "2"].contains(&places.as_str()), "{places}");

    let mut operator = connect_at(admin, "operator", "keys");
    let mut hits = |of: &str| value(&mut operator, &format!("SELECT hits FROM plateau.{of}"));
    assert_eq!(hits("rules WHERE name = 'rule-20'"), "8", "it has a limit");
    assert_eq!(hits("cache WHERE name = 'ttl-5000ms'"), "7");
    // By `log` of a rule.
    let lines = logged(&logs.path().join("queries.log"), "shop.archive", 8);
    assert_eq!(lines.len(), 8, "{lines:?}");
}
