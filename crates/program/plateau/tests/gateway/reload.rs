//! RELOAD CONFIGURATION and SIGHUP.

use std::process::Command;

use sync::atomic::{AtomicBool, Ordering};
use testkit::free_port;

use super::monitoring::get;
use super::roles::replicated;
use super::*;

/// A gateway with an operator, whose file can be written again.
pub(crate) struct Reloaded {
    pub(crate) gateway: Gateway,
    /// The file before the sections that change.
    head: String,
    operator: Client,
    /// Where its numbers are.
    metrics_port: u16,
}

const SHOP: &str = "[[service]]\nname = \"shop\"\nrouter = \"read-write-split\"\nwait = 1\n";

const MONITOR: &str = "[[monitor]]\nuser = \"plateau\"\npassword = \"watch\"\ninterval = 0.2\n";

const DIRECT: &str = "[[service]]\nname = \"direct\"\nmultiplex = false\n";

impl Reloaded {
    pub(crate) fn start(rest: &str) -> Reloaded {
        let port = free_port().expect("a port");
        let metrics_port = free_port().expect("a port");
        let head = format!(
            "admin_listen = \"127.0.0.1:{port}\"\n\
             metrics_listen = \"127.0.0.1:{metrics_port}\"\n\
             [[admin]]\nuser = \"ops\"\npassword = \"keys\"\nmay = \"change\"\n"
        );
        let gateway = Gateway::start(&format!("{head}{rest}"), "auto");
        let operator = Client::connect(&Login {
            user: "ops".to_owned(),
            password: "keys".to_owned(),
            ..Login::root(port)
        });
        Reloaded {
            gateway,
            head,
            operator: operator.expect("ops gets in"),
            metrics_port,
        }
    }

    /// The file has this behind its head now.
    fn write(&self, rest: &str) {
        let file = self.gateway.folder.path().join("plateau.toml");
        fs::write(file, format!("{}{rest}", self.head)).expect("the file is written");
    }

    fn reload(&mut self) -> Outcome {
        let reloaded = self.operator.query("RELOAD CONFIGURATION");
        reloaded.expect("an answer")
    }

    /// The gateway goes by this file now.
    pub(crate) fn take(&mut self, rest: &str) {
        self.write(rest);
        let outcome = self.reload();
        assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
    }

    pub(crate) fn connect(&self) -> Client {
        self.gateway.connect()
    }

    /// The values of a query to the gateway's tables, row by row.
    fn told(&mut self, text: &str) -> Vec<String> {
        let rows = self.operator.rows(text).expect(text);
        let values = rows.into_iter().flatten();
        let text = |value: Option<Vec<u8>>| value.map(|it| String::from_utf8(it).expect("a text"));
        values.map(|it| text(it).unwrap_or_default()).collect()
    }

    /// The servers whose statements the page of numbers counts.
    fn counted(&self) -> Vec<String> {
        let (_, page) = get(self.metrics_port, "/metrics");
        let name = |line: &str| {
            let rest = line.strip_prefix("plateau_server_statements_total{server=\"")?;
            Some(rest.split_once('"')?.0.to_owned())
        };
        page.lines().filter_map(name).collect()
    }

    /// How many statements a server was sent.
    fn statements(&mut self, server: &str) -> u64 {
        let text = format!("SELECT statements FROM plateau.servers WHERE name = '{server}'");
        self.told(&text).remove(0).parse().expect("a number")
    }
}

/// The section of a server.
fn section(name: &str, server: &Server) -> String {
    let port = server.port();
    format!("[[server]]\nname = \"{name}\"\naddress = \"127.0.0.1:{port}\"\n")
}

/// How many connections a server has of the gateway: its clients' and its monitor's.
fn connections(server: &Server) -> String {
    let text = "SELECT COUNT(*) FROM information_schema.processlist \
                WHERE user IN ('app', 'plateau')";
    let mut root = server.connect().expect("root gets in");
    root.value(text).expect(text).expect("a number")
}

const REFUSE: &str = "[[rule]]\nname = \"r\"\npattern = 'select 1'\nrefuse = \"not now\"\n";

#[test]
fn new_sessions_go_by_new_rules_and_old_ones_stay() {
    let backend = backend();
    let base = format!("{SHOP}{}", sections(&[&backend]));
    let mut reloaded = Reloaded::start(&base);
    let mut old = reloaded.connect();
    assert!(old.value("SELECT 1").is_ok());
    reloaded.take(&format!("{base}{REFUSE}"));
    assert!(old.value("SELECT 1").is_ok(), "it keeps its rules");
    let mut new = reloaded.connect();
    assert_eq!(error_of(new.query("SELECT 1").unwrap()).message, "not now");
    // By the signal, and back.
    reloaded.write(&base);
    let id = reloaded.gateway.server.process().id().to_string();
    let sent = Command::new("kill").args(["-HUP", &id]).status();
    assert!(sent.unwrap().success());
    wait_until("the file is read again", || {
        reloaded.gateway.connect().value("SELECT 1").is_ok()
    });
    assert_eq!(new.error_number("SELECT 1").unwrap(), 1148);
}

#[test]
fn limits_of_servers_change_at_once() {
    let backend = backend();
    let with = |limits: &str| format!("{SHOP}{}", sections_with(&[&backend], limits));
    let mut reloaded = Reloaded::start(&with(""));
    let mut waiter = reloaded.connect();
    reloaded.take(&with("max_connections = 1\noverflow = 0\n"));
    let mut holder = reloaded.connect();
    holder.run("BEGIN").unwrap();
    holder.run("SELECT 1").unwrap();
    assert_eq!(waiter.error_number("SELECT 1").unwrap(), 1040);
    reloaded.take(&with("max_connections = 2\n"));
    assert!(waiter.value("SELECT 1").is_ok());
}

/// Without load nothing moves a limit: a search begins with a few connections.
#[test]
fn a_limit_is_searched_while_that_is_set() {
    let backend = backend();
    let with = |limits: &str| format!("{SHOP}{}", sections_with(&[&backend], limits));
    let mut reloaded = Reloaded::start(&with("max_connections = 50\nadaptive = true\n"));
    let mut client = reloaded.connect();
    assert!(client.value("SELECT 1").is_ok());
    let limit = "SELECT max_connections FROM plateau.servers";
    assert_eq!(reloaded.told(limit), ["32"]);
    reloaded.take(&with("max_connections = 50\n"));
    assert_eq!(reloaded.told(limit), ["50"]);
    reloaded.take(&with("max_connections = 3\nadaptive = true\n"));
    assert_eq!(reloaded.told(limit), ["3"]);
    assert!(client.value("SELECT 1").is_ok());
}

#[test]
fn mistakes_change_nothing_and_the_rest_is_named() {
    let backend = backend();
    let base = format!("{SHOP}{}", sections(&[&backend]));
    let mut reloaded = Reloaded::start(&base);
    let mut old = reloaded.connect();
    let refused = |reloaded: &mut Reloaded, rest: &str, told: &str| {
        reloaded.write(&format!("{rest}{REFUSE}"));
        let error = error_of(reloaded.reload());
        assert!(error.message.contains(told), "{error:?}");
        assert!(reloaded.connect().value("SELECT 1").is_ok());
        assert_eq!(reloaded.told("SELECT name FROM plateau.servers"), ["db0"]);
    };
    let pattern = REFUSE.replace("select 1", "(").replace("\"r\"", "\"s\"");
    refused(&mut reloaded, &(base.clone() + &pattern), "unclosed group");
    let misspelt = format!("{SHOP}{}", sections_with(&[&backend], "rnak = 1\n"));
    refused(&mut reloaded, &misspelt, "did you mean `rank`");
    let nowhere = "[[server]]\nname = \"db1\"\naddress = \"no-such-host.invalid:1\"\n";
    refused(&mut reloaded, &(base.clone() + nowhere), "cannot look up");
    let unwatched = format!("{SHOP}{}", section("db0", &backend));
    refused(&mut reloaded, &unwatched, "section [[monitor]] is missing");
    refused(&mut reloaded, "", "there is no section `server`");
    reloaded.head = format!("workers = 1\n{}", reloaded.head);
    reloaded.take(&format!("{base}{REFUSE}"));
    wait_until("the rest is named", || {
        let log = reloaded.gateway.log();
        log.contains("needs_restart=\"`workers`\"")
    });
    let mut new = reloaded.connect();
    assert_eq!(new.error_number("SELECT 1").unwrap(), 1148);
    assert!(old.value("SELECT 1").is_ok());
}

#[test]
fn sessions_keep_the_options_of_their_service() {
    let backend = backend();
    let servers = sections(&[&backend]);
    let mut reloaded = Reloaded::start(&format!("{SHOP}{servers}"));
    let mut old = reloaded.connect();
    let mut open = reloaded.connect();
    open.run("BEGIN").unwrap();
    open.run("CREATE TEMPORARY TABLE shop.t (id INT)").unwrap();
    let limits = "max_statement_time = 0.3\nidle_transaction_timeout = 0.3\n";
    reloaded.take(&format!("{SHOP}{limits}{servers}"));
    let mut new = reloaded.connect();
    assert_eq!(new.error_number("SELECT SLEEP(30)").unwrap(), 1317);
    for client in [&mut old, &mut open] {
        let slept = client.value("SELECT SLEEP(0.7)").unwrap();
        assert_eq!(slept.as_deref(), Some("0"), "it has no limit");
    }
    new.run("BEGIN").unwrap();
    new.run("SELECT 1").unwrap();
    wait_until("the new session's transaction is ended", || {
        let text = format!(
            "SELECT 1 FROM plateau.sessions WHERE id = {}",
            new.connection_id
        );
        reloaded.told(&text).is_empty()
    });
    let rows = open.value("SELECT COUNT(*) FROM shop.t").unwrap();
    assert_eq!(rows.as_deref(), Some("0"), "it is in its transaction");
    open.run("COMMIT").unwrap();
    // And back: those that begin now have no limit either.
    reloaded.take(&format!("{SHOP}{servers}"));
    let slept = reloaded.connect().value("SELECT SLEEP(0.7)").unwrap();
    assert_eq!(slept.as_deref(), Some("0"));
}

#[test]
fn servers_come_and_go() {
    let topology = replicated();
    let [primary, first, second] = topology.servers.as_slice() else {
        panic!("three servers")
    };
    let with = |replicas: &[String]| {
        let primary = section("main", primary);
        format!("{SHOP}{primary}{}{MONITOR}", replicas.concat())
    };
    let (first_section, second_section) = (section("one", first), section("two", second));
    let mut reloaded = Reloaded::start(&with(std::slice::from_ref(&first_section)));
    let mut old = reloaded.connect();
    let reads = |client: &mut Client| {
        for _ in 0..20 {
            client.rows("SELECT 1").unwrap();
        }
    };
    reads(&mut old);
    assert!(0 < reloaded.statements("one"));

    // A second replica: new sessions read from it, the old one does not.
    reloaded.take(&with(&[first_section, second_section.clone()]));
    let mut new = reloaded.connect();
    reads(&mut new);
    let count = reloaded.statements("two");
    assert!(0 < count, "it gets reads");
    reads(&mut old);
    assert_eq!(reloaded.statements("two"), count, "it is not of its list");
    old.run("BEGIN").unwrap();
    old.run("CREATE TABLE shop.t (id INT PRIMARY KEY)").unwrap();
    new.quit().unwrap();

    // The first goes: the old session keeps it.
    reloaded.take(&with(&[second_section]));
    let shown = reloaded.told("SELECT name, wanted FROM plateau.servers");
    assert_eq!(shown, ["main", "up", "two", "up", "one", "removed"]);
    let mut new = reloaded.connect();
    let count = reloaded.statements("one");
    reads(&mut new);
    assert_eq!(reloaded.statements("one"), count, "no new session uses it");
    old.run("BEGIN").unwrap();
    old.run("INSERT INTO shop.t VALUES (1)").unwrap();
    old.run("COMMIT").unwrap();
    // Once the replica has what it wrote.
    wait_until("the old session does", || {
        reads(&mut old);
        reloaded.statements("one") != count
    });
    let name = "SELECT name FROM plateau.servers";
    assert_eq!(reloaded.told(name), ["main", "two", "one"]);
    assert_ne!(connections(first), "0");

    // With the old session its connections end, those of the monitor, too.
    old.quit().unwrap();
    wait_until("the server is left", || connections(first) == "0");
    assert_eq!(reloaded.told(name), ["main", "two"]);
    let written = new.value("SELECT id FROM shop.t").unwrap();
    assert_eq!(written.as_deref(), Some("1"));
}

#[test]
fn a_server_moves_to_another_address() {
    let (here, there) = (backend(), backend());
    let with = |server| format!("{DIRECT}{}{MONITOR}", section("db", server));
    let mut reloaded = Reloaded::start(&with(&here));
    let mut old = reloaded.connect();
    let mut running = reloaded.connect();
    assert_eq!(port_of(&mut old), here.port());
    running.send_query(b"SELECT SLEEP(60)").unwrap();
    reloaded.take(&with(&there));
    let mut new = reloaded.connect();
    assert_eq!(port_of(&mut new), there.port());
    assert_eq!(port_of(&mut old), here.port());
    let shown = reloaded.told("SELECT name, wanted, sessions FROM plateau.servers");
    assert_eq!(shown, ["db", "up", "1", "db", "removed", "2"]);
    let former = format!("db@127.0.0.1:{}", here.port());
    assert_eq!(reloaded.counted(), ["db", &*former]);
    // A session finds one of an older configuration.
    wait_until("the statement runs", || {
        let running = "SELECT COUNT(*) FROM information_schema.processlist \
                       WHERE info LIKE 'SELECT SLEEP%'";
        let count = here.connect().unwrap().value(running).unwrap();
        count.as_deref() == Some("1")
    });
    new.run(&format!("KILL QUERY {}", running.connection_id))
        .unwrap();
    let killed = running.read_outcomes().unwrap();
    assert!(matches!(
        killed.as_slice(),
        [Outcome::Rows(_) | Outcome::Error(_)]
    ));
    old.quit().unwrap();
    running.quit().unwrap();
    wait_until("the old address is left", || connections(&here) == "0");
    let shown = reloaded.told("SELECT name, wanted FROM plateau.servers");
    assert_eq!(shown, ["db", "up"]);
    assert_eq!(reloaded.counted(), ["db"]);
    // And back: the server is a new one again.
    reloaded.take(&with(&here));
    assert_eq!(port_of(&mut reloaded.connect()), here.port());
    assert_eq!(port_of(&mut new), there.port());
}

#[test]
fn orders_of_operators_reach_all_sessions_and_last() {
    let (one, two) = (backend(), backend());
    let with = |rest: &str| format!("{DIRECT}{}{rest}{MONITOR}", section("one", &one));
    let mut reloaded = Reloaded::start(&with(""));
    let mut old = reloaded.connect();
    assert_eq!(port_of(&mut old), one.port());
    reloaded.operator.run("SET SERVER one = 'drain'").unwrap();
    reloaded.take(&with(&section("two", &two)));
    let wanted = "SELECT name, wanted FROM plateau.servers";
    assert_eq!(reloaded.told(wanted), ["one", "drain", "two", "up"]);
    assert_eq!(port_of(&mut reloaded.connect()), two.port());
    assert_eq!(port_of(&mut old), one.port(), "it may end what it does");
    reloaded
        .operator
        .run("SET SERVER one = 'maintenance'")
        .unwrap();
    assert_eq!(old.error_number("SELECT 1").unwrap(), 1158);
}

/// The section of a listener.
fn listener(port: u16, service: &str) -> String {
    format!("[[listener]]\naddress = \"127.0.0.1:{port}\"\nservice = \"{service}\"\n")
}

#[test]
fn services_and_listeners_come_and_go() {
    let (one, two) = (backend(), backend());
    let direct = |name: &str, server: &str| {
        format!("[[service]]\nname = \"{name}\"\nservers = [\"{server}\"]\n")
    };
    let base = section("one", &one) + MONITOR + &direct("first", "one");
    let mut reloaded = Reloaded::start(&base);
    let port = free_port().unwrap();
    let login = Login {
        user: "app".to_owned(),
        password: "secret".to_owned(),
        ..Login::root(port)
    };
    let at_listener = || Client::connect(&login);
    assert!(at_listener().is_err());

    // A second service before the first: clients of the first listener keep theirs.
    let mut old = reloaded.connect();
    let second = direct("second", "two") + &section("two", &two) + &listener(port, "second");
    let pinned = listener(free_port().unwrap(), "first");
    let socket = "[[listener]]\nsocket = \"more.sock\"\nservice = \"first\"\n";
    reloaded.take(&format!("{second}{base}{pinned}{socket}"));
    let path = reloaded.gateway.server.data().join("more.sock");
    assert!(path.exists(), "{}", path.display());
    let mut new = None;
    wait_until("the new service knows its accounts", || {
        new = at_listener().ok();
        new.is_some()
    });
    let mut new = new.expect("it is connected");
    assert_eq!(port_of(&mut new), two.port());
    assert_eq!(port_of(&mut old), one.port());
    let services = "SELECT name, sessions FROM plateau.services ORDER BY name";
    assert_eq!(reloaded.told(services), ["first", "1", "second", "1"]);

    // A port that is taken: nothing changes.
    let taken = listener(one.port(), "second");
    reloaded.write(&format!("{second}{base}{pinned}{taken}"));
    let error = error_of(reloaded.reload());
    assert!(error.message.contains("cannot listen on"), "{error:?}");
    assert!(path.exists(), "{}", path.display());
    assert_eq!(port_of(&mut at_listener().unwrap()), two.port());

    // The listener gets another service, and the service is left to those who have it.
    reloaded.take(&format!("{base}{}", listener(port, "first")));
    assert!(!path.exists(), "{}", path.display());
    assert_eq!(port_of(&mut at_listener().unwrap()), one.port());
    assert_eq!(port_of(&mut new), two.port());
    assert_eq!(reloaded.told(services)[2..], ["second", "1"]);

    // The listener goes; its clients stay.
    let mut last = at_listener().unwrap();
    reloaded.take(&base);
    wait_until("the listener is closed", || at_listener().is_err());
    assert_eq!(port_of(&mut last), one.port());
    assert_eq!(port_of(&mut new), two.port());
    assert_eq!(port_of(&mut reloaded.connect()), one.port());
    new.quit().unwrap();
    wait_until("the server is left", || connections(&two) == "0");
    wait_until("the service is left", || {
        reloaded.told(services)[0] == "first"
    });
    let names = "SELECT name FROM plateau.servers";
    assert_eq!(reloaded.told(names), ["one"]);

    // And comes again.
    reloaded.take(&format!("{base}{}", listener(port, "first")));
    assert_eq!(port_of(&mut at_listener().unwrap()), one.port());
}

#[test]
fn accounts_of_operators_change() {
    let backend = backend();
    let base = format!("{SHOP}{}", sections(&[&backend]));
    let mut reloaded = Reloaded::start(&base);
    let port = reloaded.head.split([':', '"']).nth(2).expect("a port");
    let port = port.parse().expect("a number");
    let login = |user: &str, password: &str| {
        Client::connect(&Login {
            user: user.to_owned(),
            password: password.to_owned(),
            ..Login::root(port)
        })
    };
    reloaded.take(&format!(
        "[[admin]]\nuser = \"eye\"\npassword = \"look\"\n{base}"
    ));
    let mut eye = login("eye", "look").expect("eye gets in");
    let refused = eye.error_number("RELOAD CONFIGURATION");
    assert_eq!(refused.unwrap(), 1227);
    reloaded.head = reloaded.head.replace("keys", "locks");
    reloaded.take(&base);
    assert!(login("eye", "look").is_err(), "it is gone");
    assert!(login("ops", "keys").is_err(), "it has another password");
    login("ops", "locks").expect("ops gets in");
    // Sessions stay.
    assert!(eye.value("SELECT COUNT(*) FROM plateau.servers").is_ok());
    let log = reloaded.gateway.log();
    assert!(!log.contains("needs_restart=\"sections"), "{log}");
}

#[test]
fn no_client_is_dropped_while_reloads_come() {
    let topology = replicated();
    let [primary, first, second] = topology.servers.as_slice() else {
        panic!("three servers")
    };
    let both = section("one", first) + &section("two", second);
    let configurations = [
        format!("{SHOP}{}{both}{MONITOR}", section("main", primary)),
        format!(
            "{SHOP}{}{}{MONITOR}",
            section("main", primary),
            section("one", first)
        ),
        format!(
            "{SHOP}lag_max = 10\n{}{both}{MONITOR}",
            section("main", primary)
        ),
        format!(
            "{SHOP}multiplex = false\n{both}{}{MONITOR}",
            section("main", primary)
        ),
    ];
    let mut reloaded = Reloaded::start(&configurations[0]);
    let create = "CREATE TABLE shop.t (id INT AUTO_INCREMENT PRIMARY KEY, by_whom INT)";
    reloaded.connect().run(create).unwrap();
    let is_over = AtomicBool::new(false);
    let login = reloaded.gateway.login("app", "secret");
    let work = &|number: usize| {
        let connect = || Client::connect(&login).expect("app gets in");
        let mut client = connect();
        let mut done: u32 = 0;
        while !is_over.load(Ordering::Relaxed) {
            client.run("BEGIN").unwrap();
            let insert = format!("INSERT INTO shop.t (by_whom) VALUES ({number})");
            client.run(&insert).unwrap();
            client.run("COMMIT").unwrap();
            done += 1;
            let text = format!("SELECT COUNT(*) FROM shop.t WHERE by_whom = {number}");
            let count = client.value(&text).unwrap();
            assert_eq!(count, Some(done.to_string()), "it sees what it wrote");
            // Some stay for ever, others come again.
            if number.is_multiple_of(2) && done.is_multiple_of(10) {
                std::mem::replace(&mut client, connect()).quit().unwrap();
            }
        }
        done
    };
    let done: Vec<u32> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4).map(|it| scope.spawn(move || work(it))).collect();
        for round in 0..40 {
            reloaded.take(&configurations[round % configurations.len()]);
        }
        is_over.store(true, Ordering::Relaxed);
        let done = clients.into_iter().map(|it| it.join());
        done.collect::<Result<_, _>>().expect("no client fails")
    });
    assert!(done.iter().all(|it| 0 < *it), "{done:?}");
    wait_until("all have left", || {
        reloaded.told("SELECT COUNT(*) FROM plateau.sessions") == ["0"]
    });
}
