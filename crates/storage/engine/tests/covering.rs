//! A scan that reads only the entries of an index finds the same as one that reads the rows.

#![forbid(unsafe_code)]

use std::rc::Rc;

use env::Random;
use env::sim::seeds;
use sim::rows::{Row, Session, accounts, all, index, row, until_done};
use sim::{World, WorldOptions};
use store::{
    Isolation, Mutation, ScanOptions, SchemaStore, Table, TableDefinition, UndoMark, Uniqueness,
};
use value::Value;

/// Sessions at one time.
const SESSIONS: u64 = 4;

/// Keys that rows have in the index: few, so that entries are put back where they were.
const BALANCES: u64 = 5;

/// A transaction, and a place in it.
type Open = (Session, Option<UndoMark>);

/// Accounts with an index of their balances.
fn indexed() -> TableDefinition {
    let mut definition = accounts();
    let by_balance = index("by_balance", Uniqueness::None, &[1]);
    definition.indexes.push(by_balance);
    definition
}

#[test]
fn entries_tell_what_rows_tell() {
    let mut covered_count = 0;
    for seed in seeds(1, 3) {
        covered_count += run(seed);
    }
    assert!(
        200 < covered_count,
        "only {covered_count} rows came of entries"
    );
}

/// Random changes by several transactions. Returns the number of rows that came from entries alone.
fn run(seed: u64) -> usize {
    let world = World::new(seed, WorldOptions::default());
    let inner = world.clone();
    let mut random = Random::new(seed);
    let mut below = move |bound: u64| random.below(bound);
    let count = Rc::new(std::cell::Cell::new(0));
    let counted = Rc::clone(&count);
    world.run(async move {
        let database = inner.open().await.expect("a new directory opens");
        let created = database.engine.create_table(indexed()).await;
        created.expect("a new table");
        let table = database.table("accounts");
        let mut open: Vec<Option<Open>> = (0..SESSIONS).map(|_| None).collect();
        for _ in 0..100 {
            let slot = usize::try_from(below(SESSIONS)).expect("a small number");
            open[slot] = match open[slot].take() {
                None => Some((database.begin(isolation(below(3))), None)),
                Some(session) => change(&table, session, &mut below).await,
            };
            for session in open.iter_mut().flatten() {
                let found = compare(&table, &mut session.0).await;
                counted.set(counted.get() + found);
            }
        }
        drop(open);
        let mut last = database.begin(Isolation::RepeatableRead);
        compare(&table, &mut last).await;
    });
    count.get()
}

/// An entry that a transaction has marked and put back has its id, and may be the entry of a
/// version that was committed after its snapshot.
#[test]
fn an_entry_that_was_put_back_is_not_taken_for_seen() {
    let world = World::new(1, WorldOptions::default());
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.expect("a new directory opens");
        let created = database.engine.create_table(indexed()).await;
        created.expect("a new table");
        let table = database.table("accounts");
        let mut writer = database.begin(Isolation::RepeatableRead);
        let inserted = writer.insert(&table, &row(1, 5, "")).await;
        inserted.expect("nothing is in the way");
        writer.commit().await.expect("it is the only one");
        let mut reader = database.begin(Isolation::RepeatableRead);
        let (key, _) = key_of(&table, &mut reader, 1).await.expect("it is there");
        let mut other = database.begin(Isolation::RepeatableRead);
        let changed = other.update(&table, &key, &row(1, 6, "")).await;
        assert_eq!(changed, Ok(Mutation::Done));
        other.commit().await.expect("nobody else writes");
        let mark = reader.txn.mark();
        let changed = reader.update(&table, &key, &row(1, 7, "")).await;
        assert_eq!(changed, Ok(Mutation::Done));
        let undone = until_done(|| reader.txn.rollback_to(mark)).await;
        undone.expect("it can be undone");
        compare(&table, &mut reader).await;
    });
}

fn isolation(number: u64) -> Isolation {
    match number {
        0 => Isolation::ReadUncommitted,
        1 => Isolation::ReadCommitted,
        _ => Isolation::RepeatableRead,
    }
}

/// One step of a transaction; returns `None` if it ended. A transaction that waits too long is
/// rolled back.
async fn change(
    table: &Rc<dyn Table>,
    (mut session, mark): Open,
    below: &mut impl FnMut(u64) -> u64,
) -> Option<Open> {
    let step = below(12);
    let id = below(8).cast_signed();
    let balance = below(BALANCES).cast_signed();
    let key = key_of(table, &mut session, id).await;
    let done = match (step, key) {
        (0, _) => return session.commit().await.map_or(None, |()| None),
        (1, _) => return session.rollback().await.map_or(None, |()| None),
        (2, _) => {
            let mark = session.txn.mark();
            return Some((session, Some(mark)));
        }
        (3 | 4, _) if mark.is_some() => {
            let mark = mark.expect("just asked");
            until_done(|| session.txn.rollback_to(mark)).await
        }
        (5..8, Some((key, _))) => session.delete(table, &key).await.map(drop),
        (8, Some((key, old))) => {
            let same = [old[0].clone(), old[1].clone(), Value::bytes("changed")];
            session.update(table, &key, &same).await.map(drop)
        }
        (_, Some((key, _))) => session
            .update(table, &key, &row(id, balance, "moved"))
            .await
            .map(drop),
        (_, None) => session
            .insert(table, &row(id, balance, "new"))
            .await
            .map(drop),
    };
    match done {
        Ok(()) => Some((session, mark)),
        Err(_) => {
            session.rollback().await.expect("it is undone");
            None
        }
    }
}

/// The row of an account as the session sees it.
async fn key_of(table: &Rc<dyn Table>, session: &mut Session, id: i64) -> Option<Row> {
    let rows = session.scan(table, all()).await.expect("it can be read");
    rows.into_iter()
        .find(|(_, values)| values[0] == Value::Int(id))
}

/// Compares a scan that reads the columns of the index with one that reads all.
async fn compare(table: &Rc<dyn Table>, session: &mut Session) -> usize {
    let by_balance = |columns: Option<Rc<[usize]>>| ScanOptions {
        index: Some(1),
        columns,
        ..all()
    };
    let whole = session
        .scan(table, by_balance(None))
        .await
        .expect("it can be read");
    let short = session
        .scan(table, by_balance(Some(Rc::from([0, 1]))))
        .await
        .expect("it can be read");
    let read = |rows: &[Row]| -> Vec<(Vec<u8>, Vec<Value>)> {
        let cut = |(key, values): &Row| (key.clone(), values[..2].to_vec());
        rows.iter().map(cut).collect()
    };
    assert_eq!(read(&short), read(&whole));
    let none = session
        .scan(table, by_balance(Some(Rc::from([]))))
        .await
        .expect("it can be read");
    assert_eq!(none.len(), whole.len());
    let is_covered = |(_, values): &&Row| values[2] == Value::Null;
    short.iter().filter(is_covered).count()
}
