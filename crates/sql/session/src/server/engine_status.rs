//! SHOW ENGINE INNODB STATUS: open transactions, who waits for whom, and the last deadlock.
//!
//! Headings and the lines that programs look for are InnoDB's. Sections whose numbers the engine
//! does not have are left out: SHOW STATUS has its numbers.

use std::collections::HashMap;
use std::fmt::Write;

use catalog::information_schema::Process;
use store::{Activity, ClientId, OpenTransaction, ShownDeadlock, ShownExtent, ShownLock};
use value::{DateTime, Value};

/// What the text is made from.
pub(crate) struct Shown<'a> {
    /// Now, in microseconds since 1970.
    pub(crate) now_us: u64,
    /// Transactions and waits.
    pub(crate) activity: &'a Activity,
    /// The report of the last deadlock, if there was one.
    pub(crate) deadlock: Option<String>,
    /// Old row versions that purge has not removed.
    pub(crate) history_length: u64,
    /// All sessions.
    pub(crate) processes: &'a [Process],
}

/// The whole status.
pub(crate) fn status(shown: &Shown<'_>) -> String {
    let mut out = String::from("\n");
    let line = "=====================================\n";
    let now = moment(shown.now_us);
    out += &format!("{line}{now} INNODB MONITOR OUTPUT\n{line}");
    if let Some(report) = &shown.deadlock {
        out += "------------------------\nLATEST DETECTED DEADLOCK\n------------------------\n";
        out += report;
    }
    out += "------------\nTRANSACTIONS\n------------\n";
    out += &format!("History list length {}\n", shown.history_length);
    out += "LIST OF TRANSACTIONS FOR EACH SESSION:\n";
    append_transactions(shown, &mut out);
    out += "----------------------------\nEND OF INNODB MONITOR OUTPUT\n";
    out += "============================\n";
    out
}

/// All sides of a deadlock, and which one was rolled back. `process` finds a client by its number.
pub(crate) fn deadlock_report(
    deadlock: &ShownDeadlock,
    process: impl Fn(ClientId) -> Option<Process>,
) -> String {
    let mut out = moment(deadlock.at_us);
    out.push('\n');
    for (at, member) in deadlock.members.iter().enumerate() {
        let id = member.wanted.transaction;
        let waited_s = member.waited_us / 1_000_000;
        out += &format!(
            "*** ({}) TRANSACTION:\nTRANSACTION {id}, LOCK WAIT {waited_s} sec\n\
             weight {} (changes and locks)\n",
            at + 1,
            member.weight
        );
        let line = process(member.client);
        append_client(member.client.0, line.as_ref(), &mut out);
        let statement = member.statement.as_deref();
        out += statement.unwrap_or("(a statement that is not known)");
        out += "\n*** WAITING FOR THIS LOCK TO BE GRANTED:\n";
        append_lock(&member.wanted, &mut out);
        if let Some(blocker) = &member.blocker {
            out += "*** CONFLICTING WITH:\n";
            append_lock(blocker, &mut out);
        }
        out.push('\n');
    }
    if deadlock.left_out_count != 0 {
        out += &format!("{} transactions are left out\n", deadlock.left_out_count);
    }
    out += &format!("*** WE ROLL BACK TRANSACTION ({})\n", deadlock.victim + 1);
    out
}

fn append_transactions(shown: &Shown<'_>, out: &mut String) {
    let Activity {
        transactions,
        locks,
        waits,
    } = shown.activity;
    let mut transactions: Vec<&OpenTransaction> = transactions.iter().collect();
    transactions.sort_by_key(|it| (it.began_us, it.id));
    let line_of: HashMap<u64, &Process> =
        shown.processes.iter().map(|line| (line.id, line)).collect();
    let mut wait_of = HashMap::new();
    for wait in waits {
        wait_of
            .entry(locks[wait.wanted].transaction)
            .or_insert(wait);
    }
    for it in transactions {
        let active_s = shown.now_us.saturating_sub(it.began_us) / 1_000_000;
        let wait = wait_of.get(&it.id).filter(|_| it.id != 0);
        let state = if it.is_rolling_back { " rollback" } else { "" };
        *out += &format!("---TRANSACTION {}, ACTIVE {active_s} sec{state}\n", it.id);
        let waiting = u64::from(wait.is_some());
        *out += &format!(
            "{}{} lock struct(s), heap size {}, {} row lock(s)",
            if wait.is_some() { "LOCK WAIT " } else { "" },
            it.lock_object_count + waiting,
            it.lock_bytes,
            it.lock_count + waiting
        );
        if it.change_count != 0 {
            *out += &format!(", undo log entries {}", it.change_count);
        }
        out.push('\n');
        let line = line_of.get(&it.client.0).copied();
        append_client(it.client.0, line, out);
        if let Some(statement) = line.and_then(|line| line.info.as_ref()) {
            *out += statement;
            out.push('\n');
        }
        if let Some(wait) = wait {
            let waited_us = shown.now_us.saturating_sub(wait.since_us);
            *out += &format!(
                "------- TRX HAS BEEN WAITING {waited_us} us FOR THIS LOCK TO BE GRANTED:\n"
            );
            append_lock(&locks[wait.wanted], out);
            *out += "------------------\n";
        }
    }
}

/// The line of the client. Threads and queries have no numbers here, and programs look for them.
fn append_client(id: u64, line: Option<&Process>, out: &mut String) {
    let (user, host, state) = match line {
        Some(line) => (&*line.user, &*line.host, &*line.state),
        None => ("", "", ""),
    };
    let line =
        format!("MariaDB thread id {id}, OS thread handle 0, query id 0 {host} {user} {state}");
    *out += line.trim_end();
    out.push('\n');
}

fn append_lock(lock: &ShownLock, out: &mut String) {
    let index = lock.index.as_ref();
    let place = index.map_or_else(
        || "an index of a table that is gone".to_owned(),
        |(table, index)| {
            format!(
                "index {index} of table `{}`.`{}`",
                table.database, table.table
            )
        },
    );
    let mode = if lock.is_shared {
        "lock mode S"
    } else {
        "lock_mode X"
    };
    let extent = match (lock.extent, lock.key.is_some()) {
        (ShownExtent::Record, _) => " locks rec but not gap",
        (ShownExtent::Gap, true) => " locks gap before rec",
        (ShownExtent::InsertIntention, true) => " locks gap before rec insert intention",
        (ShownExtent::InsertIntention, false) => " insert intention",
        (ShownExtent::NextKey, _) | (ShownExtent::Gap, false) => "",
    };
    let waiting = if lock.is_held { "" } else { " waiting" };
    let key = lock.key.as_deref().unwrap_or("supremum pseudo-record");
    let id = lock.transaction;
    let written = writeln!(
        out,
        "RECORD LOCKS {place} trx id {id} {mode}{extent}{waiting}\nRecord lock, key: {key}"
    );
    written.expect("a text takes what is written");
}

/// A moment in UTC, to the second.
fn moment(us: u64) -> String {
    let time = i64::try_from(us).ok().and_then(DateTime::from_unix_micros);
    let Some(time) = time else {
        return String::new();
    };
    let mut text = Vec::new();
    let column = value::ColumnType::new(value::TypeKind::DateTime);
    let time = Value::DateTime(time.truncated(0));
    time.as_ref().append_text(&column, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}
