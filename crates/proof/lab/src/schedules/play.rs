//! Runs one schedule on one server and records what happens.
//!
//! After each step it waits until every session either is answered or waits for a lock, as the
//! server itself reports (`SHOW ENGINE INNODB STATUS` of MariaDB, the process list of Plateau). So
//! the record does not depend on time.

use std::fmt::Write;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use testkit::{Client, Login, Outcome};

use super::script::{Action, SESSIONS, Script, SessionName};
use crate::answer::show_outcomes;

/// How long to wait for a reply before asking the server whether the session waits.
const PATIENCE: Duration = Duration::from_millis(2);

/// After this many queries the server counts as hung: at least half a minute.
const ASKED_MAX: u32 = 15_000;

/// How often in a row all must be seen waiting: a session that was just woken still shows its wait
/// until it runs.
const SEEN_WAITING: u32 = 3;

/// The sessions on one server. They are kept from run to run.
pub(crate) struct Player {
    /// The server's port.
    port: u16,
    /// The database of its runs.
    database: String,
    sessions: Vec<Session>,
    /// Prepares tables and asks which sessions wait.
    watcher: Client,
    is_mariadb: bool,
}

struct Session {
    name: SessionName,
    client: Client,
    /// The unanswered statement.
    statement: Option<String>,
    /// A reply that is not recorded yet.
    answer: Option<String>,
}

impl Player {
    /// A player with the database of this number.
    pub(crate) fn new(port: u16, number: usize) -> Result<Self> {
        let mut watcher = Client::connect(&Login::root(port))?;
        let comment = watcher.value("SELECT @@version_comment")?;
        let database = format!("schedule{number}");
        watcher.run(&format!("CREATE DATABASE {database}"))?;
        watcher.run(&format!("USE {database}"))?;
        Ok(Self {
            port,
            database,
            sessions: Vec::new(),
            watcher,
            is_mariadb: comment.as_deref() != Some("Plateau"),
        })
    }

    /// Whether the server is MariaDB.
    pub(crate) fn is_mariadb(&self) -> bool {
        self.is_mariadb
    }

    /// Runs a schedule. Returns the record, a line for each step and reply.
    pub(crate) fn play(&mut self, script: &Script) -> Result<String> {
        self.prepare(script)?;
        let mut told = String::new();
        if let Err(error) = self.play_steps(script, &mut told) {
            // A server that hangs or drops a connection has shown its fault. The sessions'
            // transactions end with them.
            writeln!(told, "  ends here: {error:#}")?;
            self.sessions.clear();
        }
        Ok(told)
    }

    fn prepare(&mut self, script: &Script) -> Result<()> {
        for statement in &script.setup {
            self.watcher.run(statement)?;
        }
        for &letter in SESSIONS.iter().skip(self.sessions.len()) {
            let mut client = Client::connect(&Login::root(self.port))?;
            client.run(&format!("USE {}", self.database))?;
            self.sessions.push(Session {
                name: SessionName(letter),
                client,
                statement: None,
                answer: None,
            });
        }
        for session in &mut self.sessions {
            let level = script.level;
            let client = &mut session.client;
            client.run(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"))?;
            client.run("SET autocommit = 1, innodb_lock_wait_timeout = 50")?;
            if self.is_mariadb {
                // By which InnoDB names it. Through a gateway the greeting has another number.
                let number = client.value("SELECT CONNECTION_ID()")?;
                client.connection_id = number.context("it has a number")?.parse()?;
            }
        }
        Ok(())
    }

    fn play_steps(&mut self, script: &Script, told: &mut String) -> Result<()> {
        for step in &script.steps {
            let name = step.session;
            match &step.action {
                Action::Run(statement) => self.send(name, statement, told)?,
                Action::Wait(other) => {
                    writeln!(told, "{} waits for {}", name.0, other.0)?;
                    self.await_answer(*other)?;
                }
                Action::Kill(other) => {
                    writeln!(told, "{} kills {}", name.0, other.0)?;
                    let id = self.session(*other)?.client.connection_id;
                    let client = &mut self.session(name)?.client;
                    client.run(&format!("KILL QUERY {id}"))?;
                    self.await_answer(*other)?;
                }
            }
            self.settle(name, told)?;
        }
        self.end(told)
    }

    fn send(&mut self, name: SessionName, statement: &str, told: &mut String) -> Result<()> {
        writeln!(told, "{}: {statement}", name.0)?;
        let session = self.session(name)?;
        ensure!(session.statement.is_none(), "{} is blocked", name.0);
        session.client.send_query(statement.as_bytes())?;
        session.statement = Some(statement.to_owned());
        Ok(())
    }

    /// Ends all transactions, each as soon as its session is free, and records what is left.
    fn end(&mut self, told: &mut String) -> Result<()> {
        for _ in SESSIONS {
            for &letter in SESSIONS {
                let name = SessionName(letter);
                if self.session(name)?.statement.is_none() {
                    self.session(name)?.client.run("ROLLBACK")?;
                    self.settle(name, told)?;
                }
            }
        }
        let blocked = self.sessions.iter().find(|it| it.statement.is_some());
        if let Some(session) = blocked {
            bail!("{} is blocked when all others have ended", session.name.0);
        }
        let statement = "SELECT * FROM t WHERE v <> 0 OR v IS NULL OR id < 1000 ORDER BY id, k, v";
        let left = self.watcher.query_all(statement.as_bytes())?;
        write!(told, "left: {}", show_outcomes(left, statement, false)?)?;
        Ok(())
    }

    fn session(&mut self, name: SessionName) -> Result<&mut Session> {
        let found = self.sessions.iter_mut().find(|it| it.name == name);
        found.context("a session of the schedule")
    }

    /// Waits until each session is answered or waits for a lock. The order of replies depends on
    /// time, so the session of the step is recorded first, then the others in the order of their
    /// names.
    fn settle(&mut self, of: SessionName, told: &mut String) -> Result<()> {
        self.await_settled()?;
        let is_other = |session: &&mut Session| session.name != of;
        let mut sessions: Vec<&mut Session> = self.sessions.iter_mut().collect();
        sessions.sort_by_key(|session| is_other(session));
        for session in sessions {
            if let Some(answer) = session.answer.take() {
                writeln!(told, "  {} answers: {}", session.name.0, answer.trim_end())?;
            } else if session.statement.is_some() {
                writeln!(told, "  {} is blocked", session.name.0)?;
            }
        }
        Ok(())
    }

    fn await_settled(&mut self) -> Result<()> {
        let mut seen_waiting = 0;
        for _ in 0..ASKED_MAX {
            if self.take_answers()? {
                seen_waiting = 0;
            }
            let open: Vec<u32> = self.open().collect();
            if open.is_empty() || seen_waiting == SEEN_WAITING {
                return Ok(());
            }
            let waiting = self.waiting()?;
            let are_all = open.iter().all(|id| waiting.contains(id));
            seen_waiting = if are_all { seen_waiting + 1 } else { 0 };
        }
        bail!("no answer, and no wait for a lock");
    }

    fn await_answer(&mut self, name: SessionName) -> Result<()> {
        for _ in 0..ASKED_MAX {
            if self.session(name)?.statement.is_none() {
                return Ok(());
            }
            self.take_answers()?;
        }
        bail!("{} is not answered", name.0)
    }

    /// Connections with an unanswered statement.
    fn open(&self) -> impl Iterator<Item = u32> {
        let open = self.sessions.iter().filter(|it| it.statement.is_some());
        open.map(|it| it.client.connection_id)
    }

    /// Reads the replies that have arrived. Returns true if there was one.
    fn take_answers(&mut self) -> Result<bool> {
        let mut is_any = false;
        for session in &mut self.sessions {
            let is_open = session.statement.is_some();
            if !is_open || !session.client.has_answer(PATIENCE)? {
                continue;
            }
            let outcomes = session.client.read_outcomes()?;
            let statement = session.statement.take().unwrap_or_default();
            session.answer = Some(show_outcomes(outcomes, &statement, false)?);
            is_any = true;
        }
        Ok(is_any)
    }

    /// Connections that are waiting for a lock.
    fn waiting(&mut self) -> Result<Vec<u32>> {
        if self.is_mariadb {
            let status = self.watcher.query("SHOW ENGINE INNODB STATUS")?;
            let Outcome::Rows(status) = status else {
                bail!("no status of InnoDB");
            };
            let text = status.rows.into_iter().flatten().flatten().next_back();
            let text = text.context("an empty status of InnoDB")?;
            return waiting_in_status(&String::from_utf8_lossy(&text));
        }
        let rows = self.watcher.rows(
            "SELECT id FROM information_schema.processlist \
             WHERE state IN ('Waiting for row lock', 'Waiting for table metadata lock')",
        )?;
        let ids = rows.into_iter().flatten().flatten();
        let ids = ids.map(|id| Ok(String::from_utf8(id)?.parse()?));
        ids.collect()
    }
}

/// The connections of waiting transactions, from the text of `SHOW ENGINE INNODB STATUS`.
fn waiting_in_status(status: &str) -> Result<Vec<u32>> {
    // The part before describes deadlocks that are over.
    let (_, transactions) = status
        .split_once("\nTRANSACTIONS\n")
        .context("a status without transactions")?;
    let mut waiting = Vec::new();
    for transaction in transactions.split("\n---TRANSACTION ").skip(1) {
        if !transaction.contains("\nLOCK WAIT ") {
            continue;
        }
        let Some((_, rest)) = transaction.split_once("\nMariaDB thread id ") else {
            continue;
        };
        let id = rest.split(',').next().unwrap_or_default();
        waiting.push(id.parse().context("the number of a thread")?);
    }
    Ok(waiting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_found_in_the_status_of_innodb() {
        let status = "LATEST DETECTED DEADLOCK\nLOCK WAIT 2\nMariaDB thread id 9, x\n\
            ------------\nTRANSACTIONS\n------------\nTrx id counter 5\n\
            ---TRANSACTION 42, not started\n0 lock struct(s)\n\
            ---TRANSACTION 43, ACTIVE 0 sec starting index read\nmysql tables in use 1\n\
            LOCK WAIT 2 lock struct(s), heap size 1128\nMariaDB thread id 7, OS thread handle 1\n\
            ---TRANSACTION 44, ACTIVE 1 sec\n2 lock struct(s)\nMariaDB thread id 8, OS\n";
        assert_eq!(waiting_in_status(status).unwrap(), [7]);
        assert!(waiting_in_status("nothing").is_err());
    }
}
