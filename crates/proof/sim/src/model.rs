//! What is known from outside of a store's contents, and whether a session's view agrees.
//!
//! See the head of `torture` for the ledger and the order of numbers.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use store::{Direction, ScanOptions, StoreError, Table};
use value::Value;

use crate::prepared::Promises;
use crate::ranges::Found;
use crate::rows::{Data, Session, Writes, all, data_of, integer};
use crate::schema::SchemaHistory;
use crate::tally::Tally;
use crate::world::Database;

/// A transaction that tried to commit.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tried {
    /// What it has written.
    pub(crate) writes: Writes,
    /// What its locking reads have found, if they keep what they have read.
    pub(crate) reads: Vec<Found>,
}

/// What is known of the round.
#[derive(Debug, Default)]
pub(crate) struct Round {
    /// The store, once its sessions are started.
    pub(crate) database: Option<Database>,
    /// They begin nothing more.
    pub(crate) is_closing: bool,
    /// Sessions that have not ended.
    pub(crate) running_count: u64,
    /// Transactions that stay open until the round ends may have rows locked.
    pub(crate) may_hang: bool,
}

/// What is known from outside.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// All transactions that tried to commit, by number.
    pub(crate) tried: BTreeMap<i64, Tried>,
    /// Those that were acknowledged.
    pub(crate) acknowledged: BTreeSet<i64>,
    /// What was told of those that commit in two phases.
    pub(crate) prepared: Promises,
    pub(crate) next: i64,
    pub(crate) schema: Rc<RefCell<SchemaHistory>>,
    pub(crate) tally: Tally,
    pub(crate) fault: Option<String>,
    /// The present round.
    pub(crate) round: Round,
}

/// Why a comparison did not complete.
pub(crate) enum Compared {
    /// Something could not be read.
    Unread(StoreError),
    /// The contents differ from the expected ones.
    Differs(String),
}

/// Compares a session's view with the model. Returns the transactions that it sees.
pub(crate) async fn compare(
    database: &Database,
    session: &mut Session,
    history: &Rc<RefCell<History>>,
) -> Result<BTreeSet<i64>, Compared> {
    let text = Compared::Unread;
    let ledger = session
        .scan(&database.table("ledger"), all())
        .await
        .map_err(text)?;
    let seen: BTreeSet<i64> = ledger.iter().map(|(_, row)| integer(&row[0])).collect();
    let data = database.table("data");
    let expected = replay(&history.borrow(), &seen).map_err(Compared::Differs)?;
    let scans = [
        all(),
        ScanOptions {
            direction: Direction::Backward,
            ..all()
        },
        ScanOptions {
            index: Some(1),
            ..all()
        },
        ScanOptions {
            index: Some(2),
            direction: Direction::Backward,
            ..all()
        },
    ];
    for (number, scan) in scans.into_iter().enumerate() {
        let found = session.scan(&data, scan).await.map_err(text)?;
        let count = found.len();
        let found: BTreeMap<i64, Data> = found.into_iter().map(|(_, row)| data_of(&row)).collect();
        if found != expected || count != expected.len() {
            let differing = expected
                .keys()
                .copied()
                .chain(found.keys().copied())
                .find(|key| found.get(key) != expected.get(key));
            let describe = |data: Option<&Data>| match data {
                Some((a, unique, note)) => {
                    format!("({a}, {unique:?}, {} of {:?})", note.len(), note.first())
                }
                None => "not there".to_owned(),
            };
            return Err(Compared::Differs(format!(
                "scan {number} of {} transactions, the last {:?}: key {differing:?} is {}, not {}",
                seen.len(),
                seen.last(),
                describe(differing.and_then(|key| found.get(&key))),
                describe(differing.and_then(|key| expected.get(&key))),
            )));
        }
    }
    compare_entries(session, &data, &expected).await?;
    history.borrow_mut().tally.snapshots += 1;
    Ok(seen)
}

/// The same for a scan that reads only index entries if they suffice.
async fn compare_entries(
    session: &mut Session,
    data: &Rc<dyn Table>,
    expected: &BTreeMap<i64, Data>,
) -> Result<(), Compared> {
    let covered = ScanOptions {
        index: Some(1),
        columns: Some(Rc::from([0, 1])),
        ..all()
    };
    let found = session.scan(data, covered).await;
    let found = found.map_err(Compared::Unread)?;
    let pair = |row: &[Value]| (integer(&row[1]), integer(&row[0]));
    let found: Vec<_> = found.iter().map(|(_, row)| pair(row)).collect();
    let mut expected: Vec<_> = expected.iter().map(|(key, row)| (row.0, *key)).collect();
    expected.sort_unstable();
    if found == expected {
        return Ok(());
    }
    let what = format!("entries alone tell {found:?}, not {expected:?}");
    Err(Compared::Differs(what))
}

/// The rows after these transactions, if each has read what was there before it.
fn replay(history: &History, seen: &BTreeSet<i64>) -> Result<BTreeMap<i64, Data>, String> {
    // Rows are long, and most are replaced: only the last ones are copied.
    let mut rows: BTreeMap<i64, &Data> = BTreeMap::new();
    for number in seen {
        let Some(tried) = history.tried.get(number) else {
            return Err(format!("the ledger has {number}, which never committed"));
        };
        for found in &tried.reads {
            let checked = found.check(&rows);
            checked.map_err(|error| format!("transaction {number}: {error}"))?;
        }
        for (key, row) in &tried.writes {
            match row {
                Some(row) => rows.insert(*key, row),
                None => rows.remove(key),
            };
        }
    }
    let rows = rows.into_iter().map(|(key, row)| (key, row.clone()));
    Ok(rows.collect())
}
