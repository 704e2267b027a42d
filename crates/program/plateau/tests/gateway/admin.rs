//! The gateway's own tables, and the orders of operators.

use std::process::Command;

use testkit::free_port;

use super::roles::replicated;
use super::*;

mod digests;
mod explain;
mod query_log;
mod tracing;

const ADMINS: &str = "[[admin]]\nuser = \"ops\"\npassword = \"keys\"\nmay = \"change\"\n\
                      [[admin]]\nuser = \"eye\"\npassword = \"look\"\n";

const SPLIT: &str = "[[service]]\nname = \"shop\"\nrouter = \"read-write-split\"\nwait = 2\n";

/// A gateway with operators, and the port where these log in.
pub(crate) struct Watched {
    gateway: Gateway,
    port: u16,
}

impl Watched {
    pub(crate) fn start(servers: &[&Server], service: &str) -> Watched {
        let port = free_port().expect("a port");
        let watch = "interval = 0.2\ntimeout = 0.5\n";
        let text = format!("admin_listen = \"127.0.0.1:{port}\"\n");
        let gateway = Gateway::start(
            &(text + &sections(servers) + watch + service + ADMINS),
            "auto",
        );
        Watched { gateway, port }
    }

    pub(crate) fn login(&self, user: &str, password: &str) -> anyhow::Result<Client> {
        Client::connect(&Login {
            user: user.to_owned(),
            password: password.to_owned(),
            ..Login::root(self.port)
        })
    }

    /// Ends the gateway.
    pub(crate) fn stop(&mut self) {
        self.gateway.server.stop().expect("it ends");
    }

    pub(crate) fn operator(&self) -> Client {
        self.login("ops", "keys").expect("ops gets in")
    }

    /// What `app` is shown by the client of MariaDB over a socket in the data directory.
    pub(crate) fn mariadb(&self, socket: &str, text: &str) -> String {
        let shown = Command::new("mariadb")
            .args(["--no-defaults", "-uapp", "-psecret", "-N", "-S"])
            .arg(self.gateway.server.data().join(socket))
            .args(["-e", text])
            .output()
            .expect("the client is installed");
        assert!(shown.status.success(), "{shown:?}");
        String::from_utf8(shown.stdout).expect("a text")
    }

    pub(crate) fn log(&self) -> String {
        self.gateway.log()
    }

    pub(crate) fn connect(&self) -> Client {
        self.gateway.connect()
    }
}

/// The rows of a query, with `NULL` for what is not known.
pub(crate) fn table(client: &mut Client, text: &str) -> Vec<Vec<String>> {
    let value = |value: Option<Vec<u8>>| {
        let bytes = value.unwrap_or_else(|| b"NULL".to_vec());
        String::from_utf8(bytes).expect("a text")
    };
    let rows = client.rows(text).expect(text);
    let row = |row: Vec<Option<Vec<u8>>>| row.into_iter().map(value).collect();
    rows.into_iter().map(row).collect()
}

/// The one row of a session, by the columns.
fn session(operator: &mut Client, columns: &str, client: &Client) -> Vec<String> {
    let number = client.connection_id;
    let text = format!("SELECT {columns} FROM plateau.sessions WHERE id = {number}");
    let mut rows = table(operator, &text);
    assert_eq!(rows.len(), 1, "{text}: {rows:?}");
    rows.remove(0)
}

#[test]
fn operators_log_in_by_socket_and_by_tcp() {
    let backend = backend();
    let mut watched = Watched::start(&[&backend], "");
    let mut operator = watched.operator();
    let names = table(&mut operator, "SHOW TABLES FROM plateau");
    assert_eq!(
        names.concat(),
        [
            "cache",
            "pools",
            "rules",
            "servers",
            "services",
            "sessions",
            "statements",
            "workers"
        ]
    );
    for (user, password) in [
        ("ops", "look"),
        ("ops", ""),
        ("app", "secret"),
        ("root", ""),
    ] {
        let refused = watched.login(user, password).expect_err("it is refused");
        let refused: ServerError = refused.downcast().expect("a server's error");
        assert_eq!(refused.number, 1045, "{user}");
    }
    let socket = watched.gateway.server.data().join("admin.sock");
    let shown = Command::new("mariadb")
        .args(["--no-defaults", "-ueye", "-plook", "-N", "-S"])
        .arg(&socket)
        .args(["-e", "SELECT name, role, wanted FROM plateau.servers"])
        .output()
        .expect("the client is installed");
    assert!(shown.status.success(), "{shown:?}");
    assert_eq!(shown.stdout, b"db0\tprimary\tup\n");
    // Clients of the servers are not let in here, nor operators there.
    assert_eq!(watched.gateway.refusal("ops", "keys").number, 1045);
    // An operator who does nothing holds no shutdown up.
    watched.gateway.server.stop().unwrap();
    let told = operator.query("DO 1").map(error_of);
    assert!(told.is_err() || told.is_ok_and(|error| error.number == 1053));
}

#[test]
fn without_operators_there_is_no_socket() {
    let backend = backend();
    let port = free_port().unwrap();
    let text = format!("admin_listen = \"127.0.0.1:{port}\"\n");
    let gateway = Gateway::start(&(text + &sections(&[&backend])), "auto");
    assert!(!gateway.server.data().join("admin.sock").exists());
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn servers_are_shown_as_the_monitor_sees_them() {
    let mut topology = replicated();
    let servers: Vec<_> = topology.servers.iter().collect();
    let watched = Watched::start(&servers, SPLIT);
    let mut operator = watched.operator();
    let text = "SELECT name, state, role, serves, wanted, `rank`, max_connections \
                FROM plateau.servers ORDER BY name";
    let row = |name, role, serves| [name, "up", role, serves, "up", "0", "100"].map(str::to_owned);
    let expected = [
        row("db0", "primary", "reads and writes"),
        row("db1", "replica", "reads"),
        row("db2", "replica", "reads"),
    ];
    wait_until("all are known", || table(&mut operator, text) == expected);
    let mut client = watched.connect();
    client.run("CREATE TABLE shop.t (a INT)").unwrap();
    client.run("BEGIN").unwrap();
    let text = "SELECT sessions, in_use, idle, statements FROM plateau.servers WHERE name = 'db0'";
    let [sessions, in_use, idle, statements] =
        table(&mut operator, text).remove(0).try_into().unwrap();
    assert_eq!((&*sessions, &*in_use, &*idle), ("1", "1", "0"));
    assert!(2 <= statements.parse().unwrap());
    let text = "SELECT lag_ms, gtid LIKE '0-%', version LIKE '%MariaDB%', \
                address FROM plateau.servers WHERE name = 'db1'";
    let port = topology.servers[1].port();
    let expected = ["0", "1", "1", &format!("127.0.0.1:{port}")].map(str::to_owned);
    wait_until("the lag is known", || {
        table(&mut operator, text).remove(0) == expected
    });
    let text = "SELECT open FROM plateau.pools WHERE server = 'db0'";
    assert_eq!(table(&mut operator, text).concat(), ["1"]);
    let text = "SELECT name, router, servers, reachable, primary_server, sessions \
                FROM plateau.services";
    let expected = ["shop", "read-write-split", "db0,db1,db2", "3", "db0", "1"];
    assert_eq!(table(&mut operator, text).concat(), expected);

    topology.servers[2].kill().unwrap();
    let text = "SELECT state, error IS NOT NULL FROM plateau.servers WHERE name = 'db2'";
    wait_until("it is down", || {
        table(&mut operator, text).concat() == ["down", "1"]
    });
    let text = "SELECT reachable FROM plateau.services";
    assert_eq!(table(&mut operator, text).concat(), ["2"]);
}

#[test]
fn sessions_show_what_they_do_and_what_pins_them() {
    let backend = backend();
    let servers =
        sections(&[&backend]).replacen("[[monitor]]", "max_connections = 1\n[[monitor]]", 1);
    let port = free_port().unwrap();
    let text = format!("admin_listen = \"127.0.0.1:{port}\"\n");
    let service = SPLIT.replace("wait = 2", "wait = 60");
    let gateway = Gateway::start(&(text + &servers + &service + ADMINS), "auto");
    let watched = Watched { gateway, port };
    let mut operator = watched.operator();
    let [mut pinned, mut waiting] = [0; 2].map(|_| watched.connect());
    pinned.run("USE shop").unwrap();
    let all = "user, host, service, db, state, pins, stays_at, in_transaction, connections";
    let idle = [
        "app",
        "localhost",
        "shop",
        "shop",
        "idle",
        "",
        "NULL",
        "0",
        "",
    ];
    wait_until("it is idle", || {
        let mut seen = session(&mut operator, all, &pinned);
        seen[1].truncate("localhost".len());
        seen == idle
    });
    pinned.value("SELECT GET_LOCK('a', 0)").unwrap();
    let what = "db, state, pins, stays_at, connections";
    wait_until("it is pinned", || {
        session(&mut operator, what, &pinned) == ["shop", "idle", "user lock", "db0", "db0"]
    });
    waiting.send_query(b"SELECT 1").unwrap();
    let what = "db, state, waits_for, connections";
    wait_until("it waits", || {
        let expected = ["NULL", "waits for a connection", "db0", ""];
        session(&mut operator, what, &waiting) == expected
    });
    let waits = "SELECT waiting FROM plateau.servers";
    assert_eq!(table(&mut operator, waits).concat(), ["1"]);
    // Who waits for whom.
    let text = "SELECT w.id, h.id, h.pins FROM plateau.sessions w \
                JOIN plateau.servers s ON s.name = w.waits_for \
                JOIN plateau.sessions h ON h.stays_at = s.name";
    let [waiter, holder] = [&waiting, &pinned].map(|it| it.connection_id.to_string());
    let expected = [&waiter, &holder, "user lock"];
    assert_eq!(table(&mut operator, text).concat(), expected);
    pinned.value("SELECT RELEASE_ALL_LOCKS()").unwrap();
    waiting.read_outcomes().unwrap();
    pinned.run("BEGIN").unwrap();
    let what = "pins, stays_at, in_transaction, connections";
    wait_until("it is in a transaction", || {
        session(&mut operator, what, &pinned) == ["", "db0", "1", "db0"]
    });
    pinned.run("COMMIT").unwrap();
    pinned.send_query(b"SELECT SLEEP(1000)").unwrap();
    wait_until("it runs", || {
        session(&mut operator, "state, connections", &pinned) == ["running", "db0"]
    });
    let number = pinned.connection_id;
    operator.run(&format!("KILL QUERY {number}")).unwrap();
    assert_eq!(pinned.read_outcomes().unwrap().len(), 1);
    pinned.run("DO 1").unwrap();
    let text = "SELECT SUM(sessions), SUM(sessions_begun), SUM(under_way), SUM(statements), \
                SUM(kills), SUM(connections), MIN(turns) > 0, MIN(polls) > 0 \
                FROM plateau.workers";
    let sent = operator.value("SELECT statements FROM plateau.servers");
    let sent = sent.unwrap().unwrap();
    let expected = ["2", "2", "0", &sent, "1", "3", "1", "1"];
    assert_eq!(table(&mut operator, text).concat(), expected);
}

#[test]
fn rules_count_the_statements_that_met_them() {
    let backend = backend();
    let rules = "[[rule]]\nname = \"reports\"\nusers = [\"app\", \"other\"]\n\
                 pattern = '^select 7\\b'\nroute = \"replica\"\nmax_statement_time = 1.5\n\
                 [[rule]]\nname = \"all\"\nserver = \"db0\"\nmultiplex = true\n\
                 [[rule]]\nname = \"never\"\nschemas = [\"none\"]\naddresses = [\"10.0.0.0/8\"]\n\
                 digests = [\"00000000000000ff\"]\nrefuse = \"no\"\n\
                 [[rule]]\nname = \"some\"\ntables = [\"shop.none\", \"it\"]\nmultiplex = true\n";
    let watched = Watched::start(&[&backend], &(SPLIT.to_owned() + rules));
    let mut operator = watched.operator();
    let (mut one, mut other) = (watched.connect(), watched.connect());
    for _ in 0..3 {
        one.run("SELECT 7").unwrap();
        other.run("SELECT 8 FROM (SELECT 1) it").unwrap();
    }
    let hits = table(&mut operator, "SELECT name, hits FROM plateau.rules");
    let expected = [
        ["reports", "3"],
        ["all", "6"],
        ["never", "0"],
        ["some", "3"],
    ];
    assert_eq!(hits, expected);
    let columns = "id, users, db, addresses, digests, tables, pattern";
    let shown = table(
        &mut operator,
        &format!("SELECT {columns} FROM plateau.rules"),
    );
    let null = "NULL";
    let conditions = [
        ["1", "app, other", null, null, null, null, "^select 7\\b"],
        ["2", null, null, null, null, null, null],
        [
            "3",
            null,
            "none",
            "10.0.0.0/8",
            "00000000000000ff",
            null,
            null,
        ],
        ["4", null, null, null, null, "shop.none, it", null],
    ];
    assert_eq!(shown, conditions);
    let columns = "route, server, lag_max_ms, max_statement_time_ms, multiplex, refuse";
    let shown = table(
        &mut operator,
        &format!("SELECT {columns} FROM plateau.rules"),
    );
    let expected = [
        ["replica", null, null, "1500", null, null],
        [null, "db0", null, null, "1", null],
        [null, null, null, null, null, "no"],
        [null, null, null, null, "1", null],
    ];
    assert_eq!(shown, expected);
}

#[test]
fn a_session_of_one_connection_shows_its_server() {
    let backend = backend();
    let watched = Watched::start(&[&backend], "");
    let mut operator = watched.operator();
    let mut client = watched.connect();
    client.run("BEGIN").unwrap();
    let what = "service, db, state, in_transaction, connections, pins";
    let expected = ["default", "NULL", "idle", "1", "db0", ""];
    wait_until("it is in a transaction", || {
        session(&mut operator, what, &client) == expected
    });
    let text = "SELECT name, router, role, sessions FROM plateau.services";
    let expected = ["default", "read-connection", "any", "1"];
    assert_eq!(table(&mut operator, text).concat(), expected);
    drop(client);
    wait_until("it is gone", || {
        table(&mut operator, "SELECT id FROM plateau.sessions").is_empty()
    });
}

#[test]
fn a_server_in_maintenance_gets_nothing() {
    let topology = replicated();
    let servers: Vec<_> = topology.servers.iter().collect();
    let ports: Vec<_> = topology.servers.iter().map(Server::port).collect();
    let watched = Watched::start(&servers, SPLIT);
    let mut operator = watched.operator();
    let mut client = watched.connect();
    let mut holder = watched.connect();
    let read = "SELECT @@port FROM mysql.global_priv LIMIT 1";
    let reads = |client: &mut Client| -> Vec<u16> {
        let read = |_| client.value(read).unwrap().unwrap().parse().unwrap();
        let mut ports: Vec<u16> = (0..6).map(read).collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    };
    // The rest of this test goes by hints, since a system variable is read on the primary.
    let on = |name: &str| format!("/* plateau: server={name} */ SELECT @@port");
    assert_eq!(reads(&mut client), [ports[0]]);
    let at = |client: &mut Client, name: &str| client.value(&on(name)).unwrap().unwrap();
    assert_eq!(at(&mut client, "db1"), ports[1].to_string());

    operator.run("SET SERVER db1 = 'maintenance'").unwrap();
    let text = "SELECT serves FROM plateau.servers WHERE name = 'db1'";
    assert_eq!(
        table(&mut operator, text).concat(),
        ["nothing: in maintenance"]
    );
    let text = "SELECT state, wanted, open FROM plateau.servers WHERE name = 'db1'";
    wait_until("its connections are closed", || {
        table(&mut operator, text).concat() == ["up", "maintenance", "0"]
    });
    assert_eq!(client.error_number(&on("db1")).unwrap(), 1158);
    let spread = "SELECT 1 FROM mysql.global_priv LIMIT 1";
    for _ in 0..6 {
        client.run(spread).unwrap();
    }
    assert_eq!(
        table(&mut operator, text).concat(),
        ["up", "maintenance", "0"]
    );
    operator.run("SET SERVER `db1` = 'UP'").unwrap();
    assert_eq!(at(&mut client, "db1"), ports[1].to_string());

    // What a session holds on the primary ends with it; writes wait for another.
    holder.run("BEGIN").unwrap();
    operator.run("SET SERVER 'db0' = 'maintenance'").unwrap();
    let lost = error_of(holder.query("INSERT INTO shop.none VALUES (1)").unwrap());
    assert_eq!((lost.number, &*lost.state), (1158, "08S01"));
    assert!(holder.query("DO 1").is_err(), "its session has ended");
    let refused = error_of(client.query("INSERT INTO shop.none VALUES (1)").unwrap());
    assert_eq!(refused.number, 1429);
    assert!(refused.message.contains("there is no primary"), "{refused}");
    client.run(spread).unwrap();
    let writer = std::thread::scope(|scope| {
        let writes = scope.spawn(|| client.run("CREATE TABLE shop.t (a INT)").is_ok());
        wait_until("it waits", || {
            let text = "SELECT COUNT(*) FROM plateau.sessions WHERE state = 'waits for a server'";
            table(&mut operator, text).concat() == ["1"]
        });
        operator.run("SET SERVER db0 = 'up'").unwrap();
        writes.join().unwrap()
    });
    assert!(writer, "the write has waited");
}

#[test]
fn a_draining_server_keeps_what_is_open_there() {
    let topology = replicated();
    let servers: Vec<_> = topology.servers.iter().collect();
    let watched = Watched::start(&servers, SPLIT);
    let mut operator = watched.operator();
    let [mut holder, mut other] = [0; 2].map(|_| watched.connect());
    holder.run("CREATE TABLE shop.t (a INT)").unwrap();
    holder.run("BEGIN").unwrap();
    operator.run("SET SERVER db0 = 'drain'").unwrap();
    let text = "SELECT state, wanted FROM plateau.servers WHERE name = 'db0'";
    assert_eq!(table(&mut operator, text).concat(), ["up", "drain"]);
    holder.run("INSERT INTO shop.t VALUES (1)").unwrap();
    assert_eq!(other.error_number("DELETE FROM shop.t").unwrap(), 1429);
    holder.run("COMMIT").unwrap();
    assert_eq!(holder.error_number("DELETE FROM shop.t").unwrap(), 1429);
    operator.run("SET SERVER db0 = 'up'").unwrap();
    other.run("DELETE FROM shop.t").unwrap();
}

#[test]
fn numbers_of_a_statement_outlive_its_server() {
    let topology = replicated();
    let servers: Vec<_> = topology.servers.iter().collect();
    let home = "[[service]]\nname = \"home\"\nrole = \"replica\"\nwait = 2\n";
    for service in [SPLIT, home] {
        let watched = Watched::start(&servers, service);
        let mut operator = watched.operator();
        let mut clients: Vec<_> = (0..4).map(|_| watched.connect()).collect();
        let on = match service == home {
            true => "",
            false => "/* plateau: server=db1 */ ",
        };
        let texts = [
            "SELECT 1 UNION SELECT 2",
            "SELECT SQL_CALC_FOUND_ROWS 1 UNION SELECT 2 LIMIT 1",
            "SELECT CAST('warned' AS INT) UNION SELECT 2",
            "SELECT CAST('warned' AS INT) UNION SELECT 2",
        ];
        for (client, text) in clients.iter_mut().zip(texts) {
            client.rows(&format!("{on}{text}")).unwrap();
        }
        operator.run("SET SERVER db1 = 'maintenance'").unwrap();
        // Other numbers, and other warnings, where the clients go now.
        let mut others: Vec<_> = (0..2).map(|_| watched.connect()).collect();
        for other in &mut others {
            let text = "SELECT CAST('other' AS INT) UNION SELECT 2 UNION SELECT 3";
            other.rows(text).unwrap();
            other.run("DO CAST('other' AS INT)").unwrap();
        }
        for client in &mut clients[..3] {
            let told = client.value("SELECT CONCAT(FOUND_ROWS(), ' ', ROW_COUNT())");
            assert_eq!(told.unwrap().as_deref(), Some("2 -1"), "{service}");
        }
        let mut warnings = |place: usize| {
            let rows = table(&mut clients[place], "SHOW WARNINGS");
            rows.into_iter()
                .map(|row| row[2].clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(warnings(0), [""; 0], "{service}");
        let told = warnings(3);
        assert!(told.len() == 1 && told[0].contains("warned"), "{told:?}");
        operator.run("SET SERVER db1 = 'up'").unwrap();
    }
}

#[test]
fn clients_of_one_connection_leave_a_server_in_maintenance() {
    let topology = replicated();
    let servers: Vec<_> = topology.servers.iter().collect();
    let service = "[[service]]\nname = \"any\"\nmultiplex = false\n";
    let watched = Watched::start(&servers, service);
    let mut operator = watched.operator();
    let mut clients: Vec<_> = (0..3).map(|_| watched.connect()).collect();
    let at = topology.servers[1].port();
    let place = clients.iter_mut().position(|it| port_of(it) == at);
    let mut moved = clients.remove(place.expect("they are spread"));
    moved.send_query(b"SELECT SLEEP(0.5)").unwrap();
    operator.run("SET SERVER db1 = 'maintenance'").unwrap();
    // What is under way ends; the next command is not taken.
    let slept = moved.read_outcomes().unwrap();
    assert!(matches!(slept[..], [Outcome::Rows(_)]), "{slept:?}");
    assert_eq!(error_of(moved.query("DO 1").unwrap()).number, 1158);
    assert!(moved.query("DO 1").is_err(), "its session has ended");
    for mut client in (0..4).map(|_| watched.connect()) {
        assert_ne!(port_of(&mut client), at);
    }
    operator.run("SET SERVER db1 = 'drain'").unwrap();
    for mut client in (0..4).map(|_| watched.connect()) {
        assert_ne!(port_of(&mut client), at);
    }
    for client in &mut clients {
        client.run("DO 1").unwrap();
    }
}

#[test]
fn operators_end_clients() {
    let backend = backend();
    let mut root = backend.connect().unwrap();
    for service in ["", SPLIT] {
        let watched = Watched::start(&[&backend], service);
        let mut operator = watched.operator();
        let mut victim = watched.connect();
        let number = victim.connection_id;
        // An order against no statement is none against the next.
        operator.run(&format!("KILL QUERY {number}")).unwrap();
        assert_eq!(
            victim.value("SELECT SLEEP(0.2)").unwrap().as_deref(),
            Some("0")
        );
        victim.send_query(b"SELECT SLEEP(1000), 'long'").unwrap();
        wait_until("it runs", || runs(&mut root, "long"));
        operator.run(&format!("KILL QUERY {number}")).unwrap();
        assert_eq!(victim.read_outcomes().unwrap().len(), 1);
        victim.run("DO 1").unwrap();
        victim.send_query(b"SELECT SLEEP(1000), 'longer'").unwrap();
        wait_until("it runs", || runs(&mut root, "longer"));
        operator.run(&format!("KILL {number}")).unwrap();
        wait_until("it is ended", || !runs(&mut root, "longer"));
        wait_until("the client is gone", || {
            operator.error_number(&format!("KILL {number}")).unwrap() == 1094
        });
        let idle = watched.connect();
        let number = idle.connection_id;
        operator.run(&format!("KILL CONNECTION {number}")).unwrap();
        wait_until("it is gone, too", || {
            table(&mut operator, "SELECT id FROM plateau.sessions").is_empty()
        });
        let own = operator.connection_id;
        let other = watched.operator();
        operator
            .run(&format!("KILL {}", other.connection_id))
            .unwrap();
        assert_eq!(operator.error_number(&format!("KILL {own}")).unwrap(), 1927);
    }
}

/// The limits of clients are those of the settings file.
#[test]
fn operators_set_no_variable_for_all() {
    let backend = backend();
    let watched = Watched::start(&[&backend], "");
    let mut operator = watched.operator();
    for text in [
        "SET GLOBAL max_connections = 20",
        "SET GLOBAL wait_timeout = 9, GLOBAL net_read_timeout = 9",
    ] {
        assert_eq!(operator.error_number(text).unwrap(), 1238, "{text}");
    }
    let globals = "SELECT @@GLOBAL.max_connections, @@GLOBAL.wait_timeout";
    assert_eq!(table(&mut operator, globals), [["1040", "28800"]]);
    operator.run("SET SESSION wait_timeout = 9").unwrap();
}

#[test]
fn who_may_only_read_changes_nothing() {
    let backend = backend();
    let watched = Watched::start(&[&backend], "");
    let client = watched.connect();
    let mut eye = watched.login("eye", "look").unwrap();
    let number = client.connection_id;
    for text in ["SET SERVER db0 = 'drain'", &format!("KILL {number}")] {
        let error = error_of(eye.query(text).unwrap());
        assert_eq!(error.number, 1227, "{text}");
        assert!(error.message.contains("you need"), "{error}");
    }
    let text = "SELECT wanted, sessions FROM plateau.servers";
    assert_eq!(table(&mut eye, text).concat(), ["up", "1"]);
    assert_eq!(
        eye.error_number("DELETE FROM plateau.servers").unwrap(),
        1142
    );

    let mut operator = watched.operator();
    let error = error_of(operator.query("SET SERVER db7 = 'up'").unwrap());
    assert_eq!(error.number, 1477);
    assert_eq!(
        error.message,
        "There is no server 'db7'; the servers are db0"
    );
    let error = error_of(operator.query("SET SERVER db0 = 'away'").unwrap());
    assert_eq!(error.number, 1231);
    for (text, number) in [
        ("DELETE FROM plateau.servers", 1142),
        ("CREATE TABLE plateau.t (a INT)", 1142),
        ("DROP TABLE plateau.servers", 1142),
        ("CREATE DATABASE d", 1044),
        ("CREATE USER u", 1227),
        ("SHUTDOWN", 1227),
        ("SET PASSWORD = PASSWORD('x')", 1177),
        ("SELECT * FROM mysql.user", 1142),
    ] {
        assert_eq!(operator.error_number(text).unwrap(), number, "{text}");
    }
    // Sessions of operators are ordinary ones beside that.
    operator
        .run("PREPARE s FROM 'SELECT COUNT(*) FROM plateau.servers'")
        .unwrap();
    assert_eq!(operator.value("EXECUTE s").unwrap().as_deref(), Some("1"));
    operator
        .run("PREPARE s FROM 'SELECT wanted FROM plateau.servers'")
        .unwrap();
    operator
        .run("PREPARE o FROM \"SET SERVER db0 = 'maintenance'\"")
        .unwrap();
    operator.run("EXECUTE o").unwrap();
    assert_eq!(
        operator.value("EXECUTE s").unwrap().as_deref(),
        Some("maintenance")
    );
    for wanted in ["drain", "up"] {
        operator
            .run(&format!("SET SERVER db0 = '{wanted}'"))
            .unwrap();
        for text in ["EXECUTE s", "SELECT wanted FROM plateau.servers"] {
            assert_eq!(
                operator.value(text).unwrap().as_deref(),
                Some(wanted),
                "{text}"
            );
        }
    }
    operator.run("BEGIN").unwrap();
    operator
        .value("SELECT name FROM plateau.servers FOR UPDATE")
        .unwrap();
    operator.run("COMMIT").unwrap();
}
