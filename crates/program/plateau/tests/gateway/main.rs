//! The gateway in front of real servers.

#![forbid(unsafe_code)]

use std::fs;

use testkit::{
    Client, Folder, Launch, Login, Outcome, Server, ServerError, ServerKind, on_each_driver,
    wait_until,
};

mod admin;
mod cache;
mod failures;
mod home;
mod kill;
mod logins;
mod monitoring;
mod moved;
mod parts;
mod prepared;
mod programs;
mod proxy_headers;
mod reload;
mod remains;
mod roles;
mod rules;
mod shared;
mod split;
mod statements;

/// What a `[[service]]` says of its sessions: of both routers, and with a connection each.
const KINDS: [&str; 3] = [
    "router = \"read-write-split\"\n",
    "router = \"read-connection\"\n",
    "router = \"read-connection\"\nmultiplex = false\n",
];

/// A service whose clients have a connection each.
const PRIVATE: &str = "[[service]]\nname = \"clients\"\nmultiplex = false\n";

/// A gateway, and the folder with its settings file.
struct Gateway {
    server: Server,
    folder: Folder,
}

/// A MariaDB with the accounts of these tests.
fn backend() -> Server {
    let server = Launch::new(ServerKind::MariaDb)
        .start()
        .expect("MariaDB starts");
    create_accounts(&mut server.connect().expect("root gets in"));
    server
}

/// The accounts of these tests, and a database.
fn create_accounts(root: &mut Client) {
    for statement in [
        "CREATE USER plateau@'%' IDENTIFIED BY 'watch'",
        "GRANT SELECT ON mysql.* TO plateau@'%'",
        "GRANT SLAVE MONITOR ON *.* TO plateau@'%'",
        "CREATE USER app@'%' IDENTIFIED BY 'secret'",
        "CREATE DATABASE shop",
        "GRANT ALL ON *.* TO app@'%'",
    ] {
        root.run(statement).expect(statement);
    }
}

/// The sections that name these servers, and the account that watches them.
fn sections(servers: &[&Server]) -> String {
    sections_with(servers, "")
}

/// The same, with more fields of each server.
fn sections_with(servers: &[&Server], fields: &str) -> String {
    let mut text = String::new();
    for (index, server) in servers.iter().enumerate() {
        let port = server.port();
        text +=
            &format!("[[server]]\nname = \"db{index}\"\naddress = \"127.0.0.1:{port}\"\n{fields}");
    }
    text + "[[monitor]]\nuser = \"plateau\"\npassword = \"watch\"\n"
}

impl Gateway {
    fn launch(folder: &Folder, text: &str, driver: &str) -> Launch {
        let file = folder.path().join("plateau.toml");
        fs::write(&file, text).expect("the folder is there");
        Launch::plateau(env!("CARGO_BIN_EXE_plateau"))
            .with("--config")
            .with(file.to_str().expect("a path of the test"))
            .with_settings([format!("io={driver}"), "log=info".to_owned()])
    }

    /// In front of the servers of these sections, and ready.
    fn start(sections: &str, driver: &str) -> Gateway {
        let gateway = Gateway::unready(sections, driver);
        wait_until("a service is ready", || {
            gateway.log().contains("a service is ready")
        });
        gateway
    }

    fn unready(text: &str, driver: &str) -> Gateway {
        let folder = Folder::new("gateway").expect("a folder");
        let server = Gateway::launch(&folder, text, driver)
            .start()
            .expect("the gateway starts");
        Gateway { server, folder }
    }

    fn log(&self) -> String {
        self.server.log()
    }

    fn login(&self, user: &str, password: &str) -> Login {
        Login {
            user: user.to_owned(),
            password: password.to_owned(),
            ..Login::root(self.server.port())
        }
    }

    fn connect(&self) -> Client {
        Client::connect(&self.login("app", "secret")).expect("app gets in")
    }

    /// The error that a login gets.
    fn refusal(&self, user: &str, password: &str) -> ServerError {
        let refused = Client::connect(&self.login(user, password)).expect_err("it is refused");
        refused.downcast().expect("a server's error")
    }
}

/// Whether a statement with this text runs on the server.
fn runs(root: &mut Client, text: &str) -> bool {
    let count = format!(
        "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE '%{text}%' \
         AND id <> CONNECTION_ID()"
    );
    root.value(&count).expect("a count").as_deref() != Some("0")
}

/// The value of a query with one, or `NULL`.
fn value(client: &mut Client, text: &str) -> String {
    let value = client.value(text).expect(text);
    value.unwrap_or_else(|| "NULL".to_owned())
}

/// The port of the server that answers.
fn port_of(client: &mut Client) -> u16 {
    value(client, "SELECT @@port").parse().expect("a port")
}

fn error_of(outcome: Outcome) -> ServerError {
    match outcome {
        Outcome::Error(error) => error,
        other => panic!("no error: {other:?}"),
    }
}
