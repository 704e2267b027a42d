//! Plays transactions on a connection, and records them.

use anyhow::{Context, Result, bail};
use env::Clock as _;
use env::linux::SystemClock;
use history::{Act, Ending, Key, Level, Mode, Moment, Seen, Span, Statement, Transaction};
use sync::atomic::{AtomicBool, Ordering};
use testkit::{Client, Login, Outcome};

use super::draw::{Begin, Drawn, End, Groups, Lock, Step};
use super::tables::{Form, Range, write_statement};
use crate::random::Random;

/// What the sessions of a leg share with who ends it.
#[derive(Debug, Default)]
pub(super) struct Signals {
    /// Sessions end behind their transactions.
    pub(super) is_over: AtomicBool,
    /// Set before the server is killed: a lost connection is no wonder.
    pub(super) is_killed: AtomicBool,
}

/// A session.
pub(super) struct Player<'p> {
    pub(super) session: u32,
    pub(super) level: Level,
    pub(super) random: Random,
    pub(super) groups: &'p Groups,
    pub(super) signals: &'p Signals,
    /// What is wrong in itself.
    pub(super) contradictions: Vec<String>,
}

/// The deadlock, which has rolled the transaction back.
const DEADLOCK: u16 = 1213;
/// The time-out of a lock: the transaction goes on.
const LOCK_WAIT_TIMEOUT: u16 = 1205;
/// A server that ends.
const SHUTDOWN: u16 = 1053;

/// Long enough that waits end by a deadlock or a commit; seconds.
const LOCK_WAIT_S: u32 = 20;

/// The answer to one text.
enum Answer {
    Came(Span, Outcome),
    /// The transaction is rolled back, or has to be.
    Refused(u16),
    Broken(anyhow::Error),
}

/// A transaction that is being played.
struct Play {
    record: Transaction,
    /// The statement that made the snapshot of the transaction.
    view: Option<usize>,
    /// The first statement behind the savepoint.
    saved: usize,
}

/// Why a transaction did not come to its end.
enum Stop {
    Refused(u16),
    Broken(anyhow::Error),
    /// The server answered what it must not.
    Wrong(anyhow::Error),
}

impl Player<'_> {
    /// Plays until the leg is over or the connection is lost; `tell` is called behind each
    /// transaction.
    pub(super) fn play(&mut self, port: u16, tell: impl Fn()) -> Result<Vec<Transaction>> {
        let mut records = Vec::new();
        let mut client = match self.connect(port) {
            Ok(client) => client,
            Err(error) => return self.broken(error).map(|()| records),
        };
        // Relaxed: nothing depends on when exactly it is seen.
        while !self.signals.is_over.load(Ordering::Relaxed) {
            let drawn = self.groups.draw(self.level, &mut self.random);
            let (mut record, broken) = self.transaction(&mut client, &drawn)?;
            if record.ending == Ending::Aborted {
                forget_reads(&mut record);
            }
            records.push(record);
            tell();
            if let Some(error) = broken {
                return self.broken(error).map(|()| records);
            }
        }
        Ok(records)
    }

    fn connect(&self, port: u16) -> Result<Client> {
        let login = Login {
            database: String::from("history"),
            ..Login::root(port)
        };
        let mut client = Client::connect(&login)?;
        let level = self.level.sql();
        client.run(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"))?;
        client.run(&format!("SET innodb_lock_wait_timeout = {LOCK_WAIT_S}"))?;
        Ok(client)
    }

    /// A lost connection is an error unless the server was killed.
    fn broken(&self, error: anyhow::Error) -> Result<()> {
        match self.signals.is_killed.load(Ordering::SeqCst) {
            true => Ok(()),
            false => Err(error.context("a connection was lost before the kill")),
        }
    }

    /// Plays one transaction; also returns why the connection was lost.
    fn transaction(
        &mut self,
        client: &mut Client,
        drawn: &Drawn,
    ) -> Result<(Transaction, Option<anyhow::Error>)> {
        let mut play = Play {
            record: Transaction {
                session: self.session,
                level: self.level,
                ending: Ending::Aborted,
                statements: Vec::new(),
                undone: Vec::new(),
                commit: Span::default(),
            },
            view: None,
            saved: 0,
        };
        let played = self.steps(client, drawn, &mut play);
        let mut record = play.record;
        let is_alone = drawn.begin == Begin::Never;
        let broken = match played {
            Ok(()) if is_alone => {
                record.ending = Ending::Committed;
                record.commit = record
                    .statements
                    .last()
                    .map(|it| it.span)
                    .unwrap_or_default();
                None
            }
            Ok(()) => end(client, drawn.end, &mut record)?,
            Err(Stop::Refused(DEADLOCK)) => None,
            Err(Stop::Refused(_)) => end(client, End::RollBack, &mut record)?,
            Err(Stop::Broken(error)) => {
                if is_alone {
                    record.ending = Ending::Unknown;
                }
                Some(error)
            }
            Err(Stop::Wrong(error)) => return Err(error),
        };
        if let Some(only) = record.statements.last().filter(|_| is_alone) {
            record.commit = only.span;
        }
        Ok((record, broken))
    }

    fn steps(&mut self, client: &mut Client, drawn: &Drawn, play: &mut Play) -> Result<(), Stop> {
        match drawn.begin {
            Begin::Never => {}
            Begin::Plain => {
                done(ask(client, "START TRANSACTION"))?;
            }
            Begin::Snapshot => {
                let text = "START TRANSACTION WITH CONSISTENT SNAPSHOT";
                let (span, _) = done(ask(client, text))?;
                play.view = Some(0);
                play.add(span, Vec::new());
            }
        }
        for step in &drawn.steps {
            match *step {
                Step::Write(key, element, form) => {
                    let act = Act::Write(key, element);
                    if !play.write(client, &write_statement(key, element, form), &act)?
                        && drawn.begin != Begin::Never
                    {
                        let text = write_statement(key, element, Form::Insert);
                        play.write(client, &text, &act)?;
                    }
                }
                Step::Read(range, lock) => self.read(client, play, drawn.begin, (range, lock))?,
                Step::Savepoint => {
                    done(ask(client, "SAVEPOINT s"))?;
                    play.saved = play.record.statements.len();
                }
                Step::RollBack => {
                    done(ask(client, "ROLLBACK TO SAVEPOINT s"))?;
                    play.undo();
                }
            }
        }
        Ok(())
    }

    fn read(
        &mut self,
        client: &mut Client,
        play: &mut Play,
        begin: Begin,
        (range, lock): (Range, Lock),
    ) -> Result<(), Stop> {
        let text = format!("{}{}", range.statement(), lock.clause());
        let (span, rows) = match ask(client, &text) {
            Answer::Came(span, Outcome::Rows(rows)) => (span, rows.rows),
            other => return Err(other.stop(&text)),
        };
        let place = play.record.statements.len();
        let mode = match (lock, self.level) {
            (Lock::None, Level::ReadUncommitted) => Mode::Dirty,
            (Lock::None, Level::ReadCommitted) => Mode::View(place),
            (Lock::None, Level::RepeatableRead) => Mode::View(*play.view.get_or_insert(place)),
            // A SELECT that is its own transaction locks nothing.
            (Lock::None, Level::Serializable) if begin == Begin::Never => Mode::View(place),
            (_, Level::ReadUncommitted | Level::ReadCommitted) => Mode::LockedRows,
            (_, Level::RepeatableRead | Level::Serializable) => Mode::LockedRanges,
        };
        let (mut seen, twice) = range.read(&rows).map_err(Stop::Wrong)?;
        if mode != Mode::Dirty {
            let twice = twice.iter();
            self.contradictions
                .extend(twice.map(|key| format!("{key} twice at {}: {text}", self.level)));
        }
        let acts = range.keys().into_iter().filter_map(|key| {
            let seen = seen.remove(&key);
            // A dirty read can miss a row whose entry of an index moves back when its writer rolls
            // back.
            let is_missed = mode == Mode::Dirty && matches!(range, Range::Registers(_));
            match seen {
                Some(seen) => Some(Act::Read(key, seen, mode)),
                None if is_missed => None,
                None => Some(Act::Read(key, nothing(key), mode)),
            }
        });
        play.add(span, acts.collect());
        if let Some((key, seen)) = seen.pop_first() {
            let text = format!("{key} is {seen} and was not asked for: {text}");
            self.contradictions.push(text);
        }
        Ok(())
    }
}

impl Play {
    fn add(&mut self, span: Span, acts: Vec<Act>) {
        self.record.statements.push(Statement { span, acts });
    }

    /// Plays a write; false if there was no row to change.
    fn write(&mut self, client: &mut Client, text: &str, act: &Act) -> Result<bool, Stop> {
        let sent_at = now();
        let answer = ask(client, text);
        let (span, affected_rows) = match done(answer) {
            Ok(done) => done,
            Err(stop) => {
                // It counts as written if the transaction turns out to be committed.
                let span = Span {
                    sent_at,
                    answered_at: None,
                };
                self.add(span, vec![act.clone()]);
                return Err(stop);
            }
        };
        let is_written = affected_rows != 0;
        let acts = if is_written {
            vec![act.clone()]
        } else {
            Vec::new()
        };
        self.add(span, acts);
        Ok(is_written)
    }

    /// Takes back what was written behind the savepoint. What was read there is not judged. Without
    /// a statement before the savepoint, the engine's transaction ends, and with it the snapshot.
    fn undo(&mut self) {
        if self.saved == 0 {
            self.view = None;
        }
        for statement in &mut self.record.statements[self.saved..] {
            for act in statement.acts.drain(..) {
                if let Act::Write(key, element) = act {
                    self.record.undone.push((key, element));
                }
            }
        }
    }
}

impl Answer {
    fn stop(self, text: &str) -> Stop {
        match self {
            Answer::Refused(number) => Stop::Refused(number),
            Answer::Broken(error) => Stop::Broken(error),
            Answer::Came(_, outcome) => {
                Stop::Wrong(anyhow::anyhow!("{text} is answered by {outcome:?}"))
            }
        }
    }
}

/// Ends a transaction of several statements; returns why the connection was lost.
fn end(client: &mut Client, end: End, record: &mut Transaction) -> Result<Option<anyhow::Error>> {
    let text = match end {
        End::Commit => "COMMIT",
        End::RollBack => "ROLLBACK",
    };
    record.commit.sent_at = now();
    match (ask(client, text), end) {
        (Answer::Came(span, Outcome::Done(_)), End::Commit) => {
            record.commit = span;
            record.ending = Ending::Committed;
            Ok(None)
        }
        (Answer::Came(_, Outcome::Done(_)), End::RollBack) => Ok(None),
        (Answer::Broken(error), End::Commit) => {
            record.ending = Ending::Unknown;
            Ok(Some(error))
        }
        (Answer::Broken(error), End::RollBack) => Ok(Some(error)),
        (Answer::Refused(number), _) => bail!("{text} is refused with error {number}"),
        (Answer::Came(_, outcome), _) => bail!("{text} is answered by {outcome:?}"),
    }
}

/// Sends a text and waits for its answer.
fn ask(client: &mut Client, text: &str) -> Answer {
    let sent_at = now();
    let outcome = client.query(text);
    let span = Span {
        sent_at,
        answered_at: Some(now()),
    };
    match outcome {
        Ok(Outcome::Error(error)) => match error.number {
            DEADLOCK | LOCK_WAIT_TIMEOUT => Answer::Refused(error.number),
            SHUTDOWN => Answer::Broken(error.into()),
            _ => Answer::Came(span, Outcome::Error(error)),
        },
        Ok(outcome) => Answer::Came(span, outcome),
        Err(error) => Answer::Broken(error),
    }
}

/// The rows that a statement without a result set has changed.
fn done(answer: Answer) -> Result<(Span, u64), Stop> {
    match answer {
        Answer::Came(span, Outcome::Done(done)) => Ok((span, done.affected_rows)),
        other => Err(other.stop("a statement")),
    }
}

fn nothing(key: Key) -> Seen {
    match key {
        Key::List(_) => Seen::List(Vec::new()),
        Key::Set(_) => Seen::Set(Vec::new()),
        Key::Register(_) => Seen::Register {
            number: 0,
            last: None,
            before: None,
        },
    }
}

/// Nobody judges what an aborted transaction read.
fn forget_reads(record: &mut Transaction) {
    for statement in &mut record.statements {
        statement.acts.retain(|act| matches!(act, Act::Write(..)));
    }
}

/// The one clock of a history.
pub(super) fn now() -> Moment {
    Moment(SystemClock.now().nanos())
}

/// Connects, and waits until the server takes connections again.
pub(super) fn connect(port: u16) -> Result<Client> {
    let login = Login {
        database: String::from("history"),
        ..Login::root(port)
    };
    Client::connect(&login).context("the server takes connections")
}
