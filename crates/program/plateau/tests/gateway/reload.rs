//! RELOAD CONFIGURATION and SIGHUP.

use std::process::Command;

use testkit::free_port;

use super::*;

/// A gateway with an operator, whose file can be written again.
struct Reloaded {
    gateway: Gateway,
    /// The file, but for the sections that change.
    base: String,
    operator: Client,
}

impl Reloaded {
    fn start(backend: &Server) -> Reloaded {
        let port = free_port().expect("a port");
        let base = format!(
            "admin_listen = \"127.0.0.1:{port}\"\n\
             [[service]]\nname = \"shop\"\nrouter = \"read-write-split\"\nwait = 1\n\
             [[admin]]\nuser = \"ops\"\npassword = \"keys\"\nmay = \"change\"\n\
             [[monitor]]\nuser = \"plateau\"\npassword = \"watch\"\n\
             [[server]]\nname = \"db0\"\naddress = \"127.0.0.1:{}\"\n",
            backend.port()
        );
        let gateway = Gateway::start(&base, "auto");
        let operator = Client::connect(&Login {
            user: "ops".to_owned(),
            password: "keys".to_owned(),
            ..Login::root(port)
        });
        Reloaded {
            gateway,
            base,
            operator: operator.expect("ops gets in"),
        }
    }

    /// The file has this behind its base now.
    fn write(&self, rest: &str) {
        let file = self.gateway.folder.path().join("plateau.toml");
        fs::write(file, format!("{}{rest}", self.base)).expect("the file is written");
    }

    fn reload(&mut self) -> Outcome {
        let reloaded = self.operator.query("RELOAD CONFIGURATION");
        reloaded.expect("an answer")
    }
}

const REFUSE: &str = "[[rule]]\nname = \"r\"\npattern = 'select 1'\nrefuse = \"not now\"\n";

#[test]
fn new_sessions_go_by_new_rules_and_old_ones_stay() {
    let backend = backend();
    let mut reloaded = Reloaded::start(&backend);
    let mut old = reloaded.gateway.connect();
    assert!(old.value("SELECT 1").is_ok());
    reloaded.write(REFUSE);
    assert!(matches!(reloaded.reload(), Outcome::Done(_)));
    assert!(old.value("SELECT 1").is_ok(), "it keeps its rules");
    let mut new = reloaded.gateway.connect();
    assert_eq!(error_of(new.query("SELECT 1").unwrap()).message, "not now");
    // By the signal, and back.
    reloaded.write("");
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
    let mut reloaded = Reloaded::start(&backend);
    reloaded.write("max_connections = 1\noverflow = 0\n");
    assert!(matches!(reloaded.reload(), Outcome::Done(_)));
    let mut waiter = reloaded.gateway.connect();
    let mut holder = reloaded.gateway.connect();
    holder.run("BEGIN").unwrap();
    holder.run("SELECT 1").unwrap();
    assert_eq!(waiter.error_number("SELECT 1").unwrap(), 1040);
    reloaded.write("max_connections = 2\n");
    assert!(matches!(reloaded.reload(), Outcome::Done(_)));
    assert!(waiter.value("SELECT 1").is_ok());
}

#[test]
fn mistakes_change_nothing_and_the_rest_is_named() {
    let backend = backend();
    let mut reloaded = Reloaded::start(&backend);
    reloaded.write(&REFUSE.replace("select 1", "("));
    let error = error_of(reloaded.reload());
    assert!(error.message.contains("unclosed group"), "{error:?}");
    reloaded.write("rnak = 1\n");
    let error = error_of(reloaded.reload());
    assert!(error.message.contains("did you mean `rank`"), "{error:?}");
    reloaded.write(&format!("rank = 1\n{REFUSE}"));
    assert!(matches!(reloaded.reload(), Outcome::Done(_)));
    wait_until("the rest is named", || {
        let log = reloaded.gateway.log();
        log.contains("needs_restart=\"sections `server`\"")
    });
    assert_eq!(
        reloaded.gateway.connect().error_number("SELECT 1").unwrap(),
        1148
    );
}
