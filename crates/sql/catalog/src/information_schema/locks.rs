//! INNODB_TRX, INNODB_LOCKS and INNODB_LOCK_WAITS: open transactions and who waits for whom.
//!
//! As in MariaDB 10.11, only locks that are waited for and those that block them are listed. Keys
//! have logical names here, so pages and places on them are NULL.

use std::collections::{BTreeSet, HashMap};

use store::{Activity, Isolation, OpenTransaction, ShownExtent, ShownLock, ShownWait};
use value::Value;

use super::Facts;
use super::rows::{Row, optional, text, time};

/// The names of these tables. Only accounts with the PROCESS privilege may read them.
pub(super) const TABLES: [&str; 3] = ["INNODB_LOCKS", "INNODB_LOCK_WAITS", "INNODB_TRX"];

/// `trx_query` has at most this many characters.
const QUERY_CHARS_MAX: usize = 1024;

pub(super) fn transactions(facts: &Facts<'_>) -> Vec<Row> {
    let Activity {
        mut transactions,
        locks,
        waits,
    } = (facts.activity)();
    transactions.sort_by_key(|it| (it.began_us, it.id));
    let wait_of: HashMap<u64, &ShownWait> = waits
        .iter()
        .filter_map(|wait| Some((locks.get(wait.wanted)?.transaction, wait)))
        .collect();
    let processes = (facts.processes)();
    let line_of: HashMap<u64, &super::Process> =
        processes.iter().map(|line| (line.id, line)).collect();
    let row = |it: &OpenTransaction| {
        let wait = wait_of.get(&it.id).filter(|_| it.id != 0);
        let wanted = wait.and_then(|wait| locks.get(wait.wanted));
        let line = line_of.get(&it.client.0);
        let query = line.and_then(|line| line.info.as_deref());
        let query = query.map(|text| text.chars().take(QUERY_CHARS_MAX).collect::<String>());
        // A lock that is waited for is counted, as in MariaDB.
        let waiting = u64::from(wait.is_some());
        vec![
            Value::UInt(it.id),
            text(state(it, wait.copied())),
            time(it.began_us),
            optional(wanted.map(|lock| &lock.id)),
            wait.map_or(Value::Null, |wait| time(wait.since_us)),
            Value::UInt(it.change_count + it.lock_object_count + waiting),
            Value::UInt(it.client.0),
            optional(query),
            optional(line.map(|line| &line.state)),
            Value::UInt(0),
            Value::UInt(it.table_count),
            Value::UInt(it.lock_object_count + waiting),
            Value::UInt(it.lock_bytes),
            Value::UInt(it.lock_count + waiting),
            Value::UInt(it.change_count),
            Value::UInt(0),
            text(isolation(it.isolation)),
            Value::Int(1),
            Value::Int(1),
            Value::Null,
            Value::Int(i64::from(it.is_read_only)),
            Value::Int(0),
        ]
    };
    transactions.iter().map(row).collect()
}

fn state(transaction: &OpenTransaction, wait: Option<&ShownWait>) -> &'static str {
    match (transaction.is_rolling_back, wait.is_some()) {
        (true, _) => "ROLLING BACK",
        (false, true) => "LOCK WAIT",
        (false, false) => "RUNNING",
    }
}

fn isolation(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::ReadUncommitted => "READ UNCOMMITTED",
        Isolation::ReadCommitted => "READ COMMITTED",
        Isolation::RepeatableRead => "REPEATABLE READ",
        Isolation::Serializable => "SERIALIZABLE",
    }
}

pub(super) fn locks(facts: &Facts<'_>) -> Vec<Row> {
    let activity = (facts.activity)();
    // A transaction may have several locks of one entry, whose names are alike.
    let mut listed = BTreeSet::new();
    let first = |lock: &&ShownLock| listed.insert((lock.id.clone(), mode(lock)));
    let row = |lock: &ShownLock| {
        let index = lock.index.as_ref();
        let table = index.map(|(table, _)| quoted(&table.database, &table.table));
        vec![
            text(&lock.id),
            Value::UInt(lock.transaction),
            text(mode(lock)),
            text("RECORD"),
            text(table.unwrap_or_default()),
            optional(index.map(|(_, name)| name)),
            Value::Null,
            Value::Null,
            Value::Null,
            text(lock.key.as_deref().unwrap_or("supremum pseudo-record")),
        ]
    };
    activity.locks.iter().filter(first).map(row).collect()
}

fn quoted(database: &str, table: &str) -> String {
    let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
    format!("{}.{}", quoted(database), quoted(table))
}

/// As MariaDB: the mode does not tell a record lock from a next-key lock. Behind the last entry
/// there is nothing but a gap, and the mode does not say so.
fn mode(lock: &ShownLock) -> &'static str {
    let is_gap = matches!(lock.extent, ShownExtent::Gap | ShownExtent::InsertIntention)
        && lock.key.is_some();
    match (lock.is_shared, is_gap) {
        (true, true) => "S,GAP",
        (true, false) => "S",
        (false, true) => "X,GAP",
        (false, false) => "X",
    }
}

pub(super) fn waits(facts: &Facts<'_>) -> Vec<Row> {
    let activity = (facts.activity)();
    let mut listed = BTreeSet::new();
    let rows = activity.waits.iter().filter_map(|wait| {
        let wanted = activity.locks.get(wait.wanted)?;
        let blocker = activity.locks.get(wait.blocker)?;
        let is_new = listed.insert((&wanted.id, &blocker.id));
        is_new.then(|| {
            vec![
                Value::UInt(wanted.transaction),
                text(&wanted.id),
                Value::UInt(blocker.transaction),
                text(&blocker.id),
            ]
        })
    });
    rows.collect()
}
