//! [`Stage`]: asks EXPLAIN ROUTE, sends the statement, and looks where it came to.

use anyhow::{Context, Result, bail, ensure};
use env::Random;

use crate::client::{Client, Login, Outcome};
use crate::programs::{Stop, read_reply};
use crate::topology::Replicated;
use crate::wait::wait_until;

use super::draw::{Deed, Trouble, deed, order, trouble};
use super::kept::{check_tables, is_told, may_be_told, will_be_told, will_not_be_told};
use super::log::GeneralLog;
use super::{CACHED_FROM, OPERATOR, Ports, SERVICES, Tally, USERS};

/// Servers, and a gateway before them that has [`Ports::settings`].
#[derive(Debug)]
pub struct Stage {
    topology: Replicated,
    ports: Ports,
    logs: Vec<GeneralLog>,
    /// Sessions of root, by server.
    roots: Vec<Client>,
    /// Holds replicas.
    holders: Vec<Client>,
    operator: Client,
    random: Random,
    tally: Tally,
    /// What befell servers since the session began.
    troubles: Vec<Trouble>,
    /// The number of the last pair.
    number: u64,
}

/// A session of a client.
struct Session {
    client: Client,
    /// How it was made, for messages.
    name: String,
    /// What it has done.
    done: Vec<String>,
    /// Statements that went where it is pinned.
    pinned: u32,
    is_over: bool,
    /// Its service has a cache.
    is_cached: bool,
}

/// What EXPLAIN ROUTE tells.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) server: Option<String>,
    pub(super) otherwise: Vec<String>,
    pub(super) why: String,
    pub(super) tables: String,
    pub(super) cache: String,
    pub(super) map_version: String,
    pub(super) is_conditional: bool,
}

/// How a statement was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reply {
    Done,
    /// By an error, or not at all.
    Error,
}

/// A statement that is sent in one of two ways.
#[derive(Debug, Clone, Copy)]
enum Sent<'a> {
    Text(&'a str),
    /// By the number of the prepared statement, and its text.
    Execution([u8; 4], &'a str),
}

/// Places of services: those whose statements have a choice come more often.
const DRAWN: [usize; 19] = [0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 8, 8, 8, 9];

/// A session ends after so many statements that go where it is pinned: few pins end before it.
const PINNED_MAX: u32 = 5;

/// Most things that a session does.
const DEEDS_MAX: usize = 24;

/// Times that a pair is tried while the monitor's map changes. It changes some ten times a second.
const TRIES_MAX: u32 = 20;

/// Of a thousand sessions, those that begin with a trouble.
const TROUBLED_PERMILLE: u32 = 250;

/// Of a thousand deeds, those before which something befalls a server.
const SURPRISE_PERMILLE: u32 = 12;

/// Of a thousand sessions, those about which an operator asks before they begin.
const ASKED_PERMILLE: u32 = 200;

const COM_INIT_DB: u8 = 2;
const COM_STMT_PREPARE: u8 = 22;
const COM_STMT_EXECUTE: u8 = 23;
const COM_STMT_CLOSE: u8 = 25;
const COM_RESET_CONNECTION: u8 = 31;

/// What sessions find on the servers.
const MADE: [&str; 14] = [
    "CREATE DATABASE shop",
    "CREATE DATABASE stock",
    "CREATE TABLE shop.t (a INT)",
    "CREATE TABLE shop.kept (a INT)",
    "CREATE TABLE shop.late (a INT)",
    "CREATE TABLE shop.ids (id INT PRIMARY KEY AUTO_INCREMENT)",
    "CREATE TABLE shop.d (a INT)",
    "CREATE VIEW shop.v AS SELECT a FROM shop.t",
    "CREATE SEQUENCE shop.s",
    "CREATE FUNCTION shop.f(a INT) RETURNS INT DETERMINISTIC RETURN a",
    "CREATE PROCEDURE shop.p() SELECT 1",
    "INSERT INTO shop.t VALUES (1), (2), (3)",
    "INSERT INTO shop.late VALUES (1)",
    "INSERT INTO shop.kept VALUES (1)",
];

/// What clients may do: not write to a server that is read-only.
const GRANTED: &str = "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, \
                       CREATE TEMPORARY TABLES, LOCK TABLES, EXECUTE";

impl Stage {
    /// Makes what sessions need. The gateway may start once this has returned.
    pub fn prepare(topology: &Replicated) -> Result<()> {
        let mut primary = topology.connect(0)?;
        for statement in MADE {
            primary.run(statement)?;
        }
        for user in USERS {
            primary.run(&format!("CREATE USER {user}@'%' IDENTIFIED BY '{user}'"))?;
            for database in ["shop", "stock"] {
                primary.run(&format!("GRANT {GRANTED} ON {database}.* TO {user}@'%'"))?;
            }
        }
        for replica in 1..topology.servers.len() {
            topology.wait_for_replica(replica, 0)?;
        }
        Ok(())
    }

    /// Once the gateway runs. Waits until each service has its servers.
    pub fn new(topology: Replicated, ports: Ports, seed: u64) -> Result<Stage> {
        let path = |server: &crate::Server| GeneralLog::new(server.data().join("general.log"));
        let logs = topology.servers.iter().map(path).collect();
        let roots = topology.servers.iter().map(crate::Server::connect);
        let roots = roots.collect::<Result<_>>()?;
        let used = ports.services.iter().enumerate();
        for (_, port) in used.filter(|(place, _)| ports.has(*place)) {
            wait_until("a service lets clients in", || {
                Client::connect(&login(USERS[0], *port, "")).is_ok()
            });
        }
        let operator = Client::connect(&login(OPERATOR, ports.operators, ""))?;
        let mut stage = Stage {
            topology,
            ports,
            logs,
            roots,
            holders: Vec::new(),
            operator,
            random: Random::new(seed),
            tally: Tally::default(),
            troubles: Vec::new(),
            number: 0,
        };
        stage.settle()?;
        Ok(stage)
    }

    /// Compares so many pairs.
    ///
    /// # Errors
    /// A pair differs: the text has the session, what it has done, and what was told.
    pub fn compare(&mut self, pairs: u64) -> Result<Tally> {
        let wanted = self.tally.agreed + pairs;
        while self.tally.agreed < wanted {
            if self.random.chance(TROUBLED_PERMILLE) {
                let trouble = trouble(&mut self.random);
                self.befall(trouble)?;
            }
            if let Some(mut session) = self.begin()? {
                let deeds = 1 + self.random.index(DEEDS_MAX);
                for _ in 0..deeds {
                    let is_done = session.is_over || PINNED_MAX <= session.pinned;
                    if is_done || wanted <= self.tally.agreed {
                        break;
                    }
                    if self.random.chance(SURPRISE_PERMILLE) {
                        let trouble = order(&mut self.random);
                        self.befall(trouble)?;
                        session.done.push(format!("({trouble:?})"));
                    }
                    let deed = deed(&mut self.random);
                    self.carry_out(&mut session, &deed)?;
                }
            } else {
                self.tally.not_begun += 1;
            }
            self.settle()?;
        }
        Ok(self.tally.clone())
    }

    /// Begins a session, some after an operator has asked about its first statement. `None` if no
    /// server can be reached.
    fn begin(&mut self) -> Result<Option<Session>> {
        let mut drawn = || DRAWN[self.random.index(DRAWN.len())];
        let mut place = drawn();
        while !self.ports.has(place) {
            place = drawn();
        }
        if place == CACHED_FROM && self.troubles.is_empty() {
            // After a statement that may change definitions nothing is kept for a while.
            let operator = &mut self.operator;
            wait_until("results are kept", || {
                let keeps = operator.value("SELECT MIN(keeps) FROM plateau.cache");
                keeps.is_ok_and(|it| it.as_deref() == Some("1"))
            });
        }
        let user = USERS[self.random.index(USERS.len())];
        let database = ["", "shop", "stock"][self.random.index(3)];
        let (service, _) = SERVICES[place];
        let login = login(user, self.ports.services[place], database);
        let connect = |login: &Login| Client::connect(login).ok();
        let name = format!("{user} of service {service}, in database '{database}'");
        let troubles = self.troubles.iter().map(|it| format!("({it:?})"));
        let done: Vec<_> = troubles.collect();
        let session = |client| Session {
            client,
            name,
            done,
            pinned: 0,
            is_over: false,
            is_cached: CACHED_FROM <= place,
        };
        if !self.random.chance(ASKED_PERMILLE) {
            return Ok(connect(&login).map(session));
        }
        let first = deed(&mut self.random);
        let Deed::Text(text) = first else {
            return Ok(connect(&login).map(session));
        };
        let mark = self.next_mark();
        let text = format!("{text} {mark}");
        let within = match database {
            "" => String::new(),
            name => format!("IN {name}"),
        };
        let whose = format!("AS {user} {within} SERVICE '{service}'");
        let told = explain(&mut self.operator, &text, &whose).context("an operator asks")?;
        let Some(client) = connect(&login) else {
            return Ok(None);
        };
        let mut session = session(client);
        self.read_logs("Query", &mark)?;
        session.send(Sent::Text(&text));
        let got = self.read_logs("Query", &mark)?;
        let after = explain(&mut self.operator, "SELECT 1", &whose).context("an operator asks")?;
        session.done.push(text.clone());
        check_tables(&text, &told)?;
        if self.judge(&told, &got) || may_be_told(&told) && got.is_empty() {
            self.tally.of_operator += 1;
        } else if told.map_version == after.map_version {
            bail!("{}", session.difference(&text, &told, &got));
        } else {
            self.tally.repeated += 1;
        }
        Ok(Some(session))
    }

    fn carry_out(&mut self, session: &mut Session, deed: &Deed) -> Result<()> {
        match deed {
            Deed::Text(text) => {
                let mark = self.next_mark();
                let text = format!("{text} {mark}");
                let first = self.pair(session, Sent::Text(&text))?;
                match first.filter(|_| session.is_cached && !session.is_over) {
                    Some(first) => self.pair_again(session, &text, &first),
                    None => Ok(()),
                }
            }
            Deed::Execution(text) => {
                let mark = self.next_mark();
                let text = format!("{text} {mark}");
                let Some(number) = session.prepare(&text) else {
                    self.tally.not_begun += 1;
                    return Ok(());
                };
                let before = self.tally.agreed;
                self.pair(session, Sent::Execution(number, &text))?;
                self.tally.prepared += self.tally.agreed - before;
                if self.random.coin() && !session.is_over {
                    let closed = session.client.send_command(COM_STMT_CLOSE, &number);
                    session.is_over |= closed.is_err();
                }
                Ok(())
            }
            Deed::Reset => {
                session.done.push("COM_RESET_CONNECTION".to_owned());
                session.command(COM_RESET_CONNECTION, b"");
                Ok(())
            }
            Deed::Choose(name) => {
                session.done.push(format!("COM_INIT_DB {name}"));
                session.command(COM_INIT_DB, name.as_bytes());
                Ok(())
            }
        }
    }

    /// The same text once more: what was said of its result has come true.
    fn pair_again(
        &mut self,
        session: &mut Session,
        text: &str,
        (first, reply): &(Told, Reply),
    ) -> Result<()> {
        let Some((second, _)) = self.pair(session, Sent::Text(text))? else {
            return Ok(());
        };
        if first.map_version != second.map_version || *reply == Reply::Error {
            return Ok(());
        }
        let is_wrong = match is_told(&second) {
            true => will_not_be_told(first),
            // What a server reports of its session pins that beyond the text.
            false => will_be_told(text, first) && !second.cache.ends_with("is pinned"),
        };
        ensure!(
            !is_wrong,
            "{}\nand then {second:?}",
            session.difference(text, first, &[])
        );
        self.tally.kept_later += u64::from(!is_told(first) && is_told(&second));
        Ok(())
    }

    /// Asks, sends and compares. Again, if the monitor's map has changed between both. Returns what
    /// was told and how the statement was answered; `None` if that is not known.
    fn pair(&mut self, session: &mut Session, sent: Sent<'_>) -> Result<Option<(Told, Reply)>> {
        let text = sent.text();
        let mark = text.get(text.rfind("/* pair").unwrap_or_default()..);
        let mark = mark.context("it has a mark")?;
        let command = sent.logged_as();
        for _ in 0..TRIES_MAX {
            // What came before, as the session's own commands on another connection.
            self.read_logs(command, mark)?;
            let Ok(mut told) = explain(&mut session.client, text, "") else {
                // Its server was lost meanwhile, as a client with a connection of its own notices.
                ensure!(session.is_lost()?, "no explanation of {text}");
                session.is_over = true;
                return Ok(None);
            };
            check_tables(text, &told)?;
            session.pinned += u32::from(told.why.starts_with("the session is pinned"));
            let before = match sent {
                Sent::Execution(..) => Some(self.executions()?),
                Sent::Text(_) => None,
            };
            let reply = session.send(sent);
            let mut got = self.read_logs(command, mark)?;
            if let Some(before) = before
                && reply == Reply::Error
            {
                // MariaDB logs no execution that fails, nor its preparation, and counts both.
                self.tally.counted += 1;
                let after = self.executions()?;
                let more = (0..)
                    .zip(before.iter().zip(&after))
                    .filter(|(_, (a, b))| a < b);
                got = more.map(|(place, _)| format!("db{place}")).collect();
            }
            let asked_again = match session.is_over {
                true => None,
                false => explain(&mut session.client, "SELECT 1", "").ok(),
            };
            // It may have ended with the reply, as its server was lost.
            session.is_over |= asked_again.is_none();
            let version = asked_again.map(|it| it.map_version);
            session.done.push(format!("{command}: {text}"));
            if let Sent::Execution(..) = sent {
                if may_be_told(&told) && got.is_empty() && reply == Reply::Done {
                    self.tally.agreed += 1;
                    return Ok(None);
                }
                // What was told is about the text.
                told.cache.clear();
            }
            if self.judge(&told, &got) {
                return Ok(Some((told, reply)));
            }
            let is_same = version.is_none_or(|it| it == told.map_version);
            if is_same && !session.is_over {
                bail!("{}", session.difference(text, &told, &got));
            }
            if session.is_over {
                // Nobody tells the version of the map any more: only a change explains it.
                let after = self.operator_version()?;
                let text = session.difference(text, &told, &got);
                ensure!(after != told.map_version, "{text}");
                self.tally.repeated += 1;
                return Ok(None);
            }
            self.tally.repeated += 1;
        }
        bail!("the map changes with each of {TRIES_MAX} tries of {text}")
    }

    /// Whether a statement came where it was said to go; then it is counted.
    fn judge(&mut self, told: &Told, got: &[String]) -> bool {
        if is_told(told) {
            self.tally.agreed += u64::from(got.is_empty());
            self.tally.kept += u64::from(got.is_empty());
            return got.is_empty();
        }
        let is_as_told = match &told.server {
            Some(server) => got == [server.clone()],
            None => got.is_empty(),
        };
        let is_otherwise = matches!(got, [one] if told.otherwise.contains(one));
        if !(is_as_told || told.is_conditional && is_otherwise) {
            return false;
        }
        self.tally.agreed += 1;
        self.tally.nowhere += u64::from(is_as_told && told.server.is_none());
        self.tally.conditional += u64::from(told.is_conditional);
        self.tally.otherwise += u64::from(!is_as_told);
        let reason = told.why.split([':', ';']).next().unwrap_or_default();
        let reason = ["db0", "db1", "db2"]
            .iter()
            .fold(reason.to_owned(), |text, name| {
                text.replace(name, "a server")
            });
        *self.tally.reasons.entry(reason).or_default() += 1;
        true
    }

    fn next_mark(&mut self) -> String {
        self.number += 1;
        format!("/* pair {} */", self.number)
    }

    /// The servers that a statement came to since the logs were read last.
    fn read_logs(&mut self, command: &str, mark: &str) -> Result<Vec<String>> {
        let mut servers = Vec::new();
        for (place, log) in self.logs.iter_mut().enumerate() {
            if 0 < log.count(command, mark)? {
                servers.push(format!("db{place}"));
            }
        }
        Ok(servers)
    }

    /// How many executions each server has begun, and how many preparations for them.
    fn executions(&mut self) -> Result<Vec<u64>> {
        let count = |root: &mut Client| {
            Ok(root.status("Com_stmt_execute")? + root.status("Com_stmt_prepare")?)
        };
        self.roots.iter_mut().map(count).collect()
    }

    fn operator_version(&mut self) -> Result<String> {
        let (service, _) = SERVICES[0];
        let told = explain(
            &mut self.operator,
            "SELECT 1",
            &format!("SERVICE {service}"),
        )?;
        Ok(told.map_version)
    }

    fn befall(&mut self, trouble: Trouble) -> Result<()> {
        match trouble {
            Trouble::Order(server, order) => {
                let text = format!("SET SERVER db{server} = '{order}'");
                self.operator.run(&text)?;
            }
            Trouble::Stop(replica) => {
                let root = &mut self.roots[replica];
                root.run("STOP SLAVE").context("a replica stops")?;
            }
            Trouble::Hold(replica) => {
                let mut holder = self.topology.connect(replica)?;
                holder.run("FLUSH TABLES WITH READ LOCK")?;
                self.holders.push(holder);
            }
        }
        self.troubles.push(trouble);
        Ok(())
    }

    /// Ends what has befallen servers, and waits until the session has ended.
    fn settle(&mut self) -> Result<()> {
        for holder in self.holders.drain(..) {
            holder.quit().context("a replica is held no longer")?;
        }
        for trouble in std::mem::take(&mut self.troubles) {
            match trouble {
                Trouble::Order(server, _) => {
                    let text = format!("SET SERVER db{server} = 'up'");
                    self.operator.run(&text)?;
                }
                Trouble::Stop(replica) => {
                    let root = &mut self.roots[replica];
                    root.run("START SLAVE").context("a replica goes on")?;
                }
                Trouble::Hold(_) => {}
            }
        }
        let operator = &mut self.operator;
        wait_until("no session is left", || {
            let count = operator.value("SELECT COUNT(*) FROM plateau.sessions");
            count.is_ok_and(|it| it.as_deref() == Some("0"))
        });
        // A session leaves the list before it leaves its server.
        for (service, server) in [("home", "db0"), ("reports", "db1")] {
            let whose = format!("SERVICE {service}");
            wait_until("no session is at a server, and all serve", || {
                let told = explain(operator, "SELECT 1", &whose);
                told.is_ok_and(|it| it.server.as_deref() == Some(server))
            });
        }
        Ok(())
    }
}

impl Session {
    /// Sends a statement and reads its reply.
    fn send(&mut self, sent: Sent<'_>) -> Reply {
        let is_error = match sent {
            Sent::Text(text) => {
                let outcomes = self.client.query_all(text.as_bytes());
                outcomes.map(|it| matches!(it.last(), Some(Outcome::Error(_))))
            }
            Sent::Execution(number, _) => {
                let body = [&number[..], &[0], &1_u32.to_le_bytes()].concat();
                let packets = self.ask(COM_STMT_EXECUTE, &body);
                packets.map(|it| it.last().is_some_and(|it| it.first() == Some(&0xff)))
            }
        };
        self.is_over |= is_error.is_err();
        match is_error {
            Ok(false) => Reply::Done,
            Ok(true) | Err(_) => Reply::Error,
        }
    }

    /// Prepares a statement. `None` if that fails.
    fn prepare(&mut self, text: &str) -> Option<[u8; 4]> {
        let Ok(packets) = self.ask(COM_STMT_PREPARE, text.as_bytes()) else {
            self.is_over = true;
            return None;
        };
        self.done.push(format!("Prepare: {text}"));
        match packets.first().map(Vec::as_slice) {
            Some([0, number @ ..]) => number.first_chunk().copied(),
            _ => None,
        }
    }

    fn command(&mut self, byte: u8, body: &[u8]) {
        let asked = self.ask(byte, body);
        self.is_over |= asked.is_err();
    }

    /// The packets of a reply.
    fn ask(&mut self, byte: u8, body: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.client.send_command(byte, body)?;
        let mut packets = Vec::new();
        let client = &mut self.client;
        let stop = read_reply(byte, &mut packets, &mut || client.next_packet())?;
        ensure!(stop == Stop::End, "the server waits for a packet");
        Ok(packets)
    }

    /// Whether the connection to the gateway has ended.
    fn is_lost(&mut self) -> Result<bool> {
        Ok(self.client.ping().is_err())
    }

    fn difference(&self, text: &str, told: &Told, got: &[String]) -> String {
        format!(
            "{text}\nwas to go to {told:?},\nand went to {got:?}\nin a session of {}, which has \
             done:\n{}",
            self.name,
            self.done.join("\n")
        )
    }
}

impl<'a> Sent<'a> {
    fn text(self) -> &'a str {
        match self {
            Sent::Text(text) | Sent::Execution(_, text) => text,
        }
    }

    fn logged_as(self) -> &'static str {
        match self {
            Sent::Text(_) => "Query",
            Sent::Execution(..) => "Execute",
        }
    }
}

fn login(user: &str, port: u16, database: &str) -> Login {
    Login {
        user: user.to_owned(),
        password: user.to_owned(),
        database: database.to_owned(),
        ..Login::root(port)
    }
}

fn explain(client: &mut Client, text: &str, whose: &str) -> Result<Told> {
    // Texts have no backslash, which one of the modes reads otherwise.
    let quoted = text.replace('\'', "''");
    let rows = match client.query(&format!("EXPLAIN ROUTE FOR '{quoted}' {whose}"))? {
        Outcome::Rows(rows) => rows.rows,
        Outcome::Done(_) => bail!("no rows"),
        Outcome::Error(error) => return Err(error.into()),
    };
    let mut told = Told::default();
    for row in rows {
        let mut values = row.into_iter().map(|it| it.map(String::from_utf8));
        let property = values.next().flatten().context("a property")??;
        let value = values.next().flatten().transpose()?;
        match property.as_str() {
            "server" => told.server = value,
            "otherwise" => {
                let names = value.iter().flat_map(|it| it.split(", "));
                told.otherwise = names.map(str::to_owned).collect();
            }
            "why" => told.why = value.unwrap_or_default(),
            "tables" => told.tables = value.unwrap_or_default(),
            "cache" => told.cache = value.unwrap_or_default(),
            "map_version" => told.map_version = value.unwrap_or_default(),
            "depends_on" => told.is_conditional = value.is_some(),
            _ => {}
        }
    }
    Ok(told)
}
