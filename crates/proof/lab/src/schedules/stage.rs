//! A server on which schedules are played, and its sessions that wait for a lock.
//!
//! Many players ask who waits, again and again, and the answer costs a server more than most
//! statements. So one of them asks at a time, and its answer is that of all who asked before it
//! began.
//!
//! (I1) An answer is only given to those who asked before its query was sent.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, bail};
use testkit::{Client, Login, Outcome};

use crate::target::{Running, Target, reference, with_options};

/// Options of each MariaDB on which schedules are played: nothing is kept longer than the plays.
const OPTIONS: [&str; 4] = [
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-flush-method=nosync",
    "--innodb-file-per-table=0",
    "--innodb-stats-persistent=0",
];

/// A server.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) port: u16,
    pub(crate) kind: StageKind,
    watch: Mutex<Watch>,
    /// Woken when the connection of the watch is free again.
    is_seen: Condvar,
}

/// What the server is, since each shows waits in its own way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StageKind {
    MariaDb,
    Plateau,
}

/// Who waits, as it was seen last.
#[derive(Debug)]
struct Watch {
    /// Asks the server; away while somebody asks.
    client: Option<Client>,
    /// How many queries have begun.
    begun: u64,
    /// The last query that was answered.
    answered: u64,
    waiting: Arc<Waits>,
}

/// The connections that wait for a lock, each with what the server says of the lock.
pub(crate) type Waits = BTreeMap<u32, String>;

/// Starts MariaDB and the server under test.
pub(crate) fn start_pair(target: &Target) -> Result<(Running, Running)> {
    let candidate = match target.is_plateau() && target.is_own() {
        // With one worker, once a watcher is answered, every session that was woken before it has
        // run.
        true => {
            let settings = ["workers=1", "flush_log_at_trx_commit=0"];
            Running::of(target.launch().with_settings(settings).start()?)
        }
        // Who waits for whom is told by the servers' numbers of their connections.
        false => target.start_private(&OPTIONS)?,
    };
    let reference = with_options(reference(), &OPTIONS);
    Ok((Running::of(reference.start()?), candidate))
}

impl Stage {
    /// The server of a port.
    pub(crate) fn new(port: u16) -> Result<Self> {
        let mut client = Client::connect(&Login::root(port))?;
        let comment = client.value("SELECT @@version_comment")?;
        let kind = match comment.as_deref() == Some("Plateau") {
            true => StageKind::Plateau,
            false => StageKind::MariaDb,
        };
        Ok(Self {
            port,
            kind,
            watch: Mutex::new(Watch {
                client: Some(client),
                begun: 0,
                answered: 0,
                waiting: Arc::default(),
            }),
            is_seen: Condvar::new(),
        })
    }

    pub(crate) fn connect(&self) -> Result<Client> {
        Client::connect(&Login::root(self.port))
    }

    /// The connections that wait for a lock, seen after this call.
    pub(crate) fn waiting(&self) -> Result<Arc<Waits>> {
        let mut watch = self.lock();
        let wanted = watch.begun + 1;
        loop {
            if wanted <= watch.answered {
                return Ok(Arc::clone(&watch.waiting));
            }
            let Some(mut client) = watch.client.take() else {
                let waited = self.is_seen.wait(watch);
                watch = waited.unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            watch.begun += 1;
            drop(watch);
            let seen = self.ask(&mut client);
            watch = self.lock();
            watch.client = Some(client);
            self.is_seen.notify_all();
            watch.waiting = Arc::new(seen?);
            watch.answered = watch.begun;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Watch> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, client: &mut Client) -> Result<Waits> {
        if self.kind == StageKind::MariaDb {
            let status = client.query("SHOW ENGINE INNODB STATUS")?;
            let Outcome::Rows(status) = status else {
                bail!("no status of InnoDB");
            };
            let text = status.rows.into_iter().flatten().flatten().next_back();
            let text = text.context("an empty status of InnoDB")?;
            return waiting_in_status(&String::from_utf8_lossy(&text));
        }
        let rows = client.rows(
            "SELECT id FROM information_schema.processlist \
             WHERE state IN ('Waiting for row lock', 'Waiting for table metadata lock')",
        )?;
        let ids = rows.into_iter().flatten().flatten();
        let ids = ids.map(|id| Ok((String::from_utf8(id)?.parse()?, String::new())));
        ids.collect()
    }
}

/// The connections of waiting transactions, from the text of `SHOW ENGINE INNODB STATUS`.
fn waiting_in_status(status: &str) -> Result<Waits> {
    // The part before describes deadlocks that are over.
    let (_, transactions) = status
        .split_once("\nTRANSACTIONS\n")
        .context("a status without transactions")?;
    let mut waiting = Waits::new();
    for transaction in transactions.split("\n---TRANSACTION ").skip(1) {
        if !transaction.contains("\nLOCK WAIT ") || waits_for_dictionary(transaction) {
            continue;
        }
        let Some((_, rest)) = transaction.split_once("\nMariaDB thread id ") else {
            continue;
        };
        let id = rest.split(',').next().unwrap_or_default();
        let id = id.parse().context("the number of a thread")?;
        waiting.insert(id, lock_in_status(rest).unwrap_or_default());
    }
    Ok(waiting)
}

/// Whether a transaction waits for DDL of another table, which is no wait of a schedule. All DDL
/// changes tables of InnoDB's own, as `SYS_TABLES` and `mysql.innodb_table_stats`.
fn waits_for_dictionary(transaction: &str) -> bool {
    let is_lock =
        |line: &&str| line.starts_with("TABLE LOCK ") || line.starts_with("RECORD LOCKS ");
    let mut locks = transaction.lines().filter(is_lock);
    locks.any(|lock| lock.contains(" table `SYS_") || lock.contains(" table `mysql`."))
}

/// The lock that a transaction waits for, from its part of the status.
fn lock_in_status(transaction: &str) -> Option<String> {
    let (_, lock) = transaction.split_once("\nRECORD LOCKS ")?;
    let line = lock.lines().next()?;
    let (_, index) = line.split_once(" index ")?;
    let index = index.split(' ').next()?;
    let (_, mode) = line.split_once(" lock")?;
    let mode = mode
        .trim_start_matches("_mode ")
        .trim_start_matches(" mode ");
    Some(format!("index {index}, lock {mode}"))
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
            ------- TRX HAS BEEN WAITING 9 us FOR THIS LOCK TO BE GRANTED:\n\
            RECORD LOCKS space id 0 page no 3 n bits 72 index k of table `d`.`t` trx id 43 \
            lock_mode X locks gap before rec insert intention waiting\n\
            ---TRANSACTION 44, ACTIVE 1 sec\n2 lock struct(s)\nMariaDB thread id 8, OS\n\
            ---TRANSACTION 45, ACTIVE 0 sec\nLOCK WAIT 1 lock struct(s), heap size 1128\n\
            MariaDB thread id 9, OS\n\
            TABLE LOCK table `SYS_TABLES` trx id 45 lock mode X waiting\n\
            ---TRANSACTION 46, ACTIVE 0 sec\nLOCK WAIT 1 lock struct(s), heap size 1128\n\
            MariaDB thread id 10, OS\n\
            RECORD LOCKS space id 1 page no 3 n bits 72 index PRIMARY of table \
            `mysql`.`innodb_table_stats` trx id 46 lock_mode X waiting\n";
        let lock = "index k, lock X locks gap before rec insert intention waiting";
        let waits = Waits::from([(7, lock.to_owned())]);
        assert_eq!(waiting_in_status(status).unwrap(), waits);
        assert!(waiting_in_status("nothing").is_err());
    }
}
