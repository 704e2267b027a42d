//! Plays one schedule on one server and records what happens.
//!
//! After each step it waits until every session either is answered or waits for a lock, as the
//! server itself reports (`stage`). So the record does not depend on time.

use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use testkit::Client;

use super::record::{Record, What};
use super::script::{Action, Busy, Script, SessionName, Step};
use super::stage::{Stage, Waits};
use crate::answer::show_outcomes;

/// How long to wait for a reply before asking the server whether the session waits.
const PATIENCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 2_000_000,
};

/// After this many queries the server counts as hung: at least half a minute.
const ASKED_MAX: u32 = 15_000;

/// How often in a row all must be seen waiting: a session that was just woken still shows its wait
/// until it runs.
const SEEN_WAITING: u32 = 3;

/// The sessions on one server. They are kept from play to play.
pub(crate) struct Player<'s> {
    pub(crate) stage: &'s Stage,
    /// The database of its plays.
    database: String,
    sessions: Vec<Session>,
    /// Who waited when it was seen last, and for what.
    waits: Arc<Waits>,
    /// Prepares tables, and reads what is left in them.
    maker: Client,
}

struct Session {
    name: SessionName,
    client: Client,
    /// The number by which the server shows its waits. Through a gateway the greeting has another.
    id: u32,
    /// The unanswered statement.
    statement: Option<String>,
    /// A reply that is not recorded yet.
    answer: Option<String>,
}

impl<'s> Player<'s> {
    /// A player with a database of its own.
    pub(crate) fn new(stage: &'s Stage, database: &str) -> Result<Self> {
        let mut player = Self {
            stage,
            database: String::new(),
            sessions: Vec::new(),
            waits: Arc::default(),
            maker: stage.connect()?,
        };
        player.enter(database)?;
        Ok(player)
    }

    /// Goes to another database, which is made unless it is there.
    pub(crate) fn enter(&mut self, database: &str) -> Result<()> {
        if self.database != database {
            let made = format!("CREATE DATABASE IF NOT EXISTS {database}");
            self.maker.run(&made)?;
            self.maker.run(&format!("USE {database}"))?;
            database.clone_into(&mut self.database);
        }
        Ok(())
    }

    /// Makes the table of a script.
    pub(crate) fn set_up(&mut self, script: &Script) -> Result<()> {
        for statement in &script.setup {
            self.maker.run(statement)?;
        }
        Ok(())
    }

    /// The rows of a statement of the session that makes the tables.
    pub(crate) fn rows(&mut self, statement: &str) -> Result<Vec<Vec<Option<Vec<u8>>>>> {
        self.maker.rows(statement)
    }

    /// Plays a schedule whose table is made, and returns the record.
    pub(crate) fn play(&mut self, script: &Script) -> Result<Record> {
        self.open_sessions(script)?;
        let mut record = Record::default();
        if let Err(error) = self.play_steps(script, &mut record) {
            // A server that hangs or drops a connection has shown its fault. The sessions'
            // transactions end with them.
            let error = format!("{error:#}");
            record.add(script.steps.len(), None, What::Broken(error));
            self.sessions.clear();
        }
        Ok(record)
    }

    fn open_sessions(&mut self, script: &Script) -> Result<()> {
        for (letter, _) in script.levels.iter().skip(self.sessions.len()) {
            self.sessions.push(Session {
                name: *letter,
                client: self.stage.connect()?,
                id: 0,
                statement: None,
                answer: None,
            });
        }
        for (session, (_, level)) in self.sessions.iter_mut().zip(&script.levels) {
            let client = &mut session.client;
            client.run(&format!("USE {}", self.database))?;
            client.run(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"))?;
            client.run("SET autocommit = 1, innodb_lock_wait_timeout = 50")?;
            let id = client.value("SELECT CONNECTION_ID()")?;
            session.id = id.context("it has a number")?.parse()?;
        }
        Ok(())
    }

    fn play_steps(&mut self, script: &Script, record: &mut Record) -> Result<()> {
        for (place, step) in script.steps.iter().enumerate() {
            let name = step.session;
            record.add(place, Some(name), What::Step(step.to_string()));
            if script.busy == Busy::LeaveOut && self.session(name)?.statement.is_some() {
                record.add(place, Some(name), What::Busy);
                continue;
            }
            self.take_step(step)?;
            self.settle(name, place, record)?;
        }
        self.end(script, record)
    }

    fn take_step(&mut self, step: &Step) -> Result<()> {
        match &step.action {
            Action::Run(statement) => self.send(step.session, statement),
            Action::Wait(other) => self.await_answer(*other),
            Action::Kill(other) => {
                let id = self.session(*other)?.id;
                let client = &mut self.session(step.session)?.client;
                client.run(&format!("KILL QUERY {id}"))?;
                self.await_answer(*other)
            }
        }
    }

    fn send(&mut self, name: SessionName, statement: &str) -> Result<()> {
        let session = self.session(name)?;
        ensure!(session.statement.is_none(), "{} is blocked", name.0);
        session.client.send_query(statement.as_bytes())?;
        session.statement = Some(statement.to_owned());
        Ok(())
    }

    /// Ends all transactions, each as soon as its session is free, and records what is left.
    fn end(&mut self, script: &Script, record: &mut Record) -> Result<()> {
        let names: Vec<SessionName> = script.levels.iter().map(|(name, _)| *name).collect();
        let mut place = script.steps.len();
        for _ in &names {
            for &name in &names {
                if self.session(name)?.statement.is_none() {
                    self.session(name)?.client.run("ROLLBACK")?;
                    self.settle(name, place, record)?;
                }
                place += 1;
            }
        }
        let blocked = self.sessions.iter().find(|it| it.statement.is_some());
        if let Some(session) = blocked {
            bail!("{} is blocked when all others have ended", session.name.0);
        }
        let left = self.maker.query_all(script.left.as_bytes())?;
        let left = show_outcomes(left, &script.left, false)?;
        record.add(place, None, What::Left(left));
        Ok(())
    }

    fn session(&mut self, name: SessionName) -> Result<&mut Session> {
        let found = self.sessions.iter_mut().find(|it| it.name == name);
        found.context("a session of the schedule")
    }

    /// Waits until each session is answered or waits for a lock. The order of replies depends on
    /// time, so the session of the step is recorded first, then the others in the order of their
    /// names.
    fn settle(&mut self, of: SessionName, place: usize, record: &mut Record) -> Result<()> {
        self.await_settled()?;
        let is_other = |session: &&mut Session| session.name != of;
        let mut sessions: Vec<&mut Session> = self.sessions.iter_mut().collect();
        sessions.sort_by_key(|session| is_other(session));
        for session in sessions {
            if let Some(answer) = session.answer.take() {
                record.add(place, Some(session.name), What::Answer(answer));
            } else if session.statement.is_some() {
                record.add(place, Some(session.name), What::Blocked);
                if let Some(lock) = self.waits.get(&session.id).filter(|it| !it.is_empty()) {
                    record.locks.insert((place, session.name), lock.clone());
                }
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
            let waiting = self.stage.waiting()?;
            let are_all = open.iter().all(|id| waiting.contains_key(id));
            seen_waiting = if are_all { seen_waiting + 1 } else { 0 };
            self.waits = waiting;
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
        open.map(|it| it.id)
    }

    /// Reads the replies that have arrived, or arrive soon. Returns true if there was one.
    fn take_answers(&mut self) -> Result<bool> {
        let open = self.sessions.iter_mut().filter(|it| it.statement.is_some());
        let mut open: Vec<&mut Session> = open.collect();
        if open.is_empty() {
            return Ok(false);
        }
        // The end of a stream counts as a reply, too: reading it fails.
        let streams = open.iter_mut().map(|it| &*it.client.stream());
        let mut polled: Vec<_> = streams.map(|it| PollFd::new(it, PollFlags::IN)).collect();
        let count = poll(&mut polled, Some(&PATIENCE))?;
        let ready: Vec<bool> = polled.iter().map(|it| !it.revents().is_empty()).collect();
        for (session, _) in open.iter_mut().zip(ready).filter(|(_, is_ready)| *is_ready) {
            let outcomes = session.client.read_outcomes()?;
            let statement = session.statement.take().unwrap_or_default();
            session.answer = Some(show_outcomes(outcomes, &statement, false)?);
        }
        Ok(0 < count)
    }
}
