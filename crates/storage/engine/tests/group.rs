//! A node of a group: what it sends, what it refuses, what it keeps over a crash. The provider
//! orders whatever it gets at once; `sim --replication` has several nodes.

#![forbid(unsafe_code)]

use std::rc::Rc;
use std::sync::Arc;

use env::sim::poll_at_most;
use sim::rows::{Row, accounts, all, big, index, row, until_done};
use sim::{Database, World, WorldOptions};
use store::replication::{Certified, GroupId, Position, Provider, RowChange, Ticket, WriteSet};
use store::{
    Durability, Inserted, Isolation, Mutation, Outcome, Prepared, SchemaStore, Store, StoreError,
    Suspend, Table, Uniqueness, WaitReason, Xid,
};
use sync::Mutex;
use testkit::definitions::table;
use value::Value;

const GROUP: GroupId = GroupId([9; 16]);

/// What the provider says of the next write set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Mood {
    #[default]
    Accepts,
    Refuses,
    IsNotReady,
    /// Nothing comes from the group.
    IsSilent,
    /// Places come, and turns do not.
    HoldsTurns,
}

#[derive(Debug, Default)]
struct Alone {
    bytes_max: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    mood: Mood,
    sent: Vec<Arc<WriteSet>>,
    left: u64,
}

impl Alone {
    fn new(left: u64, bytes_max: u64) -> Arc<Self> {
        let state = State {
            left,
            ..State::default()
        };
        Arc::new(Self {
            bytes_max,
            state: Mutex::new(state),
        })
    }

    fn set_mood(&self, mood: Mood) {
        self.state.lock().mood = mood;
    }

    fn sent(&self) -> Vec<Arc<WriteSet>> {
        self.state.lock().sent.clone()
    }
}

impl Provider for Alone {
    fn write_set_bytes_max(&self) -> u64 {
        self.bytes_max
    }

    fn certify(&self, _: Ticket, writes: &Arc<WriteSet>) -> Outcome<Certified> {
        let mut state = self.state.lock();
        match state.mood {
            Mood::IsNotReady => Err(StoreError::NotSupported { what: "a test" }.into()),
            Mood::Refuses => Ok(Certified::Refused),
            Mood::IsSilent => Err(silence().into()),
            Mood::Accepts | Mood::HoldsTurns => {
                state.sent.push(Arc::clone(writes));
                Ok(Certified::At(at(state.left + 1)))
            }
        }
    }

    fn enter(&self, position: Position) -> Outcome<()> {
        let state = self.state.lock();
        if state.mood == Mood::HoldsTurns {
            return Err(silence().into());
        }
        assert_eq!(state.left + 1, position.seqno);
        Ok(())
    }

    fn leave(&self, position: Position) {
        self.state.lock().left = position.seqno;
    }
}

/// A wait that only the waiter's own end ends.
fn silence() -> Suspend {
    Suspend::new(WaitReason::Order, std::future::pending())
}

fn at(seqno: u64) -> Position {
    Position {
        group: GROUP,
        seqno,
    }
}

/// A node with the table of accounts, and three rows in it that stand at place 1.
async fn node(world: &World, bytes_max: u64) -> (Database, Arc<Alone>, Rc<dyn Table>, Vec<Row>) {
    let database = world.open().await.expect("the store works");
    database
        .engine
        .create_table(accounts())
        .await
        .expect("the store works");
    let alone = Alone::new(0, bytes_max);
    database.engine.shared().set_provider(alone.clone());
    let table = database.table("accounts");
    let mut session = database.begin(Isolation::RepeatableRead);
    for id in 0..3 {
        session
            .insert(&table, &row(id, 0, "old"))
            .await
            .expect("the store works");
    }
    session.commit().await.expect("the store works");
    assert_eq!(database.engine.position(), Some(at(1)));
    let rows = session.scan(&table, all()).await.expect("the store works");
    session.commit().await.expect("the store works");
    (database, alone, table, rows)
}

/// What another node has made of a row.
fn change(
    table: &Rc<dyn Table>,
    before: Option<&[Value]>,
    after: Option<&[Value]>,
) -> Arc<WriteSet> {
    let encode = |values: &[Value]| {
        let values: Vec<_> = values.iter().map(Value::as_ref).collect();
        let mut bytes = Vec::new();
        let encoded = table.layout().encode(&values, &mut bytes);
        encoded.expect("a row of the table");
        bytes.into_boxed_slice()
    };
    Arc::new(WriteSet {
        changes: vec![RowChange {
            table: Arc::clone(table.definition()),
            before: before.map(encode),
            after: after.map(encode),
        }],
        keys: Vec::new(),
    })
}

async fn ids(database: &Database, table: &Rc<dyn Table>) -> Vec<Value> {
    let mut reader = database.begin(Isolation::RepeatableRead);
    let rows = reader.scan(table, all()).await.expect("the store works");
    rows.into_iter().map(|(_, mut row)| row.remove(0)).collect()
}

fn run(world: &World, story: impl AsyncFnOnce(World) + 'static) {
    let inner = world.clone();
    world.run(async move { story(inner).await });
}

#[test]
fn a_write_set_has_what_was_not_undone() {
    let world = World::new(1, WorldOptions::default());
    run(&world, async |world| {
        let (database, alone, table, rows) = node(&world, 1 << 20).await;
        let mut session = database.begin(Isolation::RepeatableRead);
        let changed = row(0, 5, "new");
        let update = session.update(&table, &rows[0].0, &changed).await;
        assert_eq!(update, Ok(Mutation::Done));
        let mark = session.txn.mark();
        session.delete(&table, &rows[1].0).await.unwrap();
        session.insert(&table, &row(9, 9, "gone")).await.unwrap();
        until_done(|| session.txn.rollback_to(mark)).await.unwrap();
        let refused = session.insert(&table, &row(2, 0, "double")).await.unwrap();
        assert!(matches!(refused, Inserted::Duplicate { .. }));
        let moved = row(7, 1, "moved");
        session.update(&table, &rows[2].0, &moved).await.unwrap();
        session.commit().await.unwrap();
        let sent = alone.sent();
        let writes = sent.last().unwrap();
        let kinds: Vec<_> = writes
            .changes
            .iter()
            .map(|change| (change.before.is_some(), change.after.is_some()))
            .collect();
        assert_eq!(kinds, [(true, true), (true, true)]);
        let encode = |values: &[Value]| {
            let values: Vec<_> = values.iter().map(Value::as_ref).collect();
            let mut bytes = Vec::new();
            table.layout().encode(&values, &mut bytes).unwrap();
            bytes
        };
        let images = |number: usize| {
            let change = &writes.changes[number];
            [&change.before, &change.after].map(|row| row.as_deref().unwrap().to_vec())
        };
        assert_eq!(images(0), [encode(&rows[0].1), encode(&changed)]);
        assert_eq!(images(1), [encode(&rows[2].1), encode(&moved)]);
        // The primary keys of 0, 2 and 7.
        assert_eq!(writes.keys.len(), 3);
    });
}

#[test]
fn who_changes_nothing_has_no_place() {
    let world = World::new(2, WorldOptions::default());
    run(&world, async |world| {
        let (database, alone, table, rows) = node(&world, 1 << 20).await;
        let mut session = database.begin(Isolation::RepeatableRead);
        session.scan(&table, all()).await.unwrap();
        session.commit().await.unwrap();
        session.delete(&table, &rows[0].0).await.unwrap();
        session.rollback().await.unwrap();
        assert_eq!(
            (alone.sent().len(), database.engine.position()),
            (1, Some(at(1)))
        );
    });
}

#[test]
fn a_refused_commit_is_rolled_back() {
    let world = World::new(3, WorldOptions::default());
    run(&world, async |world| {
        let (database, alone, table, rows) = node(&world, 1 << 20).await;
        let before = ids(&database, &table).await;
        let mut session = database.begin(Isolation::RepeatableRead);
        session.delete(&table, &rows[0].0).await.unwrap();
        alone.set_mood(Mood::Refuses);
        assert_eq!(session.commit().await, Err(StoreError::Deadlock));
        assert_eq!(ids(&database, &table).await, before);
        alone.set_mood(Mood::Accepts);
        session.delete(&table, &rows[0].0).await.unwrap();
        session.commit().await.unwrap();
        assert_eq!(ids(&database, &table).await, before[1..]);
    });
}

/// The write set was not sent, so the transaction goes on, and is whole when it commits later.
#[test]
fn a_provider_that_is_not_ready_leaves_the_transaction_open() {
    let world = World::new(4, WorldOptions::default());
    run(&world, async |world| {
        let (database, alone, table, rows) = node(&world, 1 << 20).await;
        let mut session = database.begin(Isolation::RepeatableRead);
        session.delete(&table, &rows[0].0).await.unwrap();
        alone.set_mood(Mood::IsNotReady);
        let refused = session.commit().await;
        assert!(matches!(refused, Err(StoreError::NotSupported { .. })));
        alone.set_mood(Mood::Accepts);
        session.delete(&table, &rows[1].0).await.unwrap();
        session.commit().await.unwrap();
        assert_eq!(alone.sent().last().unwrap().changes.len(), 2);
        assert_eq!(ids(&database, &table).await, [Value::Int(2)]);
    });
}

#[test]
fn a_write_set_has_a_limit() {
    let world = World::new(5, WorldOptions::default());
    run(&world, async |world| {
        let (database, alone, table, _rows) = node(&world, 1 << 20).await;
        let mut session = database.begin(Isolation::RepeatableRead);
        session.insert(&table, &row(50, 0, "")).await.unwrap();
        session.commit().await.unwrap();
        let writes = Arc::clone(alone.sent().last().unwrap());
        let rows = writes.changes.iter().filter_map(|it| it.after.as_ref());
        let keys = writes.keys.iter().map(|it| it.key.len());
        let of_one = rows.map(|row| row.len()).chain(keys).sum::<usize>();
        for (short, fits) in [(0, true), (1, false)] {
            let world = World::new(6, WorldOptions::default());
            let bytes_max = stdx::to_u64(3 * of_one + 3 * "old".len() - short);
            let inner = world.clone();
            // Three rows are inserted by `node` in one transaction.
            let opened = world.run(async move {
                let database = inner.open().await.unwrap();
                database.engine.create_table(accounts()).await.unwrap();
                let alone = Alone::new(0, bytes_max);
                database.engine.shared().set_provider(alone);
                let table = database.table("accounts");
                let mut session = database.begin(Isolation::RepeatableRead);
                for id in 0..2 {
                    session.insert(&table, &row(id, 0, "old")).await.unwrap();
                }
                let last = session.insert(&table, &row(2, 0, "old")).await;
                session.commit().await.unwrap();
                (last, ids(&database, &table).await.len())
            });
            let expected = match fits {
                true => (Ok(Inserted::Done), 3),
                false => (Err(StoreError::WriteSetTooLarge), 2),
            };
            assert_eq!(opened, expected);
        }
    });
}

#[test]
fn what_no_other_node_can_repeat_is_refused() {
    let world = World::new(7, WorldOptions::default());
    run(&world, async |world| {
        let (database, _alone, table_of_accounts, rows) = node(&world, 1 << 20).await;
        let definition = table("keyless", vec![big("id")], vec![]);
        database.engine.create_table(definition).await.unwrap();
        let keyless = database.table("keyless");
        let mut session = database.begin(Isolation::RepeatableRead);
        let refused = session.insert(&keyless, &[Value::Int(1)]).await;
        assert!(matches!(refused, Err(StoreError::NotSupported { .. })));
        let xid = Xid::new(1, b"a", b"").unwrap();
        session
            .delete(&table_of_accounts, &rows[0].0)
            .await
            .unwrap();
        let prepared = until_done(|| session.txn.prepare_as(&xid, Durability::Durable)).await;
        assert!(matches!(prepared, Err(StoreError::NotSupported { .. })));
        session.commit().await.unwrap();
        let prepared = until_done(|| session.txn.prepare_as(&xid, Durability::Durable)).await;
        assert_eq!(prepared, Ok(Prepared::Nothing));
    });
}

/// A transaction was prepared before a crash, and then the node has a part in a group. It cannot
/// commit there, since no other node has its changes, but it can be rolled back.
#[test]
fn what_was_prepared_outside_of_the_group_is_rolled_back_at_the_most() {
    let world = World::new(14, WorldOptions::default());
    run(&world, async |world| {
        let database = world.open().await.unwrap();
        database.engine.create_table(accounts()).await.unwrap();
        let table = database.table("accounts");
        let mut session = database.begin(Isolation::RepeatableRead);
        session.insert(&table, &row(1, 0, "")).await.unwrap();
        let xid = Xid::new(1, b"a", b"").unwrap();
        let prepared = until_done(|| session.txn.prepare_as(&xid, Durability::Durable)).await;
        assert_eq!(prepared, Ok(Prepared::Ready));
    });
    let world = world.crash();
    run(&world, async |world| {
        let database = world.open().await.unwrap();
        let alone = Alone::new(0, 1 << 20);
        database.engine.shared().set_provider(alone.clone());
        let mut left = database.engine.take_left_prepared().remove(0).transaction;
        let refused = until_done(|| left.commit(Durability::Durable)).await;
        assert!(matches!(refused, Err(StoreError::NotSupported { .. })));
        until_done(|| left.rollback()).await.unwrap();
        let table = database.table("accounts");
        assert_eq!(ids(&database, &table).await, []);
        let mut session = database.begin(Isolation::RepeatableRead);
        session.insert(&table, &row(1, 0, "")).await.unwrap();
        session.commit().await.unwrap();
        assert_eq!(database.engine.position(), Some(at(1)));
    });
}

/// A write set that does not fit the rows here fails, changes nothing, and passes no place.
#[test]
fn an_inconsistent_write_set_is_refused() {
    let world = World::new(8, WorldOptions::default());
    run(&world, async |world| {
        let (database, alone, table, rows) = node(&world, 1 << 20).await;
        let mut session = database.begin(Isolation::RepeatableRead);
        session.insert(&table, &row(60, 0, "new")).await.unwrap();
        session.delete(&table, &rows[0].0).await.unwrap();
        session.commit().await.unwrap();
        let writes = Arc::clone(alone.sent().last().unwrap());
        let before = ids(&database, &table).await;
        let apply = |writes| database.engine.apply(at(3), writes, Durability::Durable);
        let inconsistent = |found: Result<(), StoreError>| {
            assert!(
                matches!(found, Err(StoreError::Inconsistent { .. })),
                "{found:?}"
            );
        };
        inconsistent(apply(Arc::clone(&writes)).await);
        // The delete alone: the row is gone.
        let mut rest = WriteSet::clone(&writes);
        rest.changes.remove(0);
        inconsistent(apply(Arc::new(rest)).await);
        database.sleep(std::time::Duration::from_millis(50)).await;
        assert_eq!(ids(&database, &table).await, before);
        assert_eq!(database.engine.position(), Some(at(2)));
        let mut whole = WriteSet::clone(&writes);
        whole.changes.reverse();
        for change in &mut whole.changes {
            std::mem::swap(&mut change.before, &mut change.after);
        }
        apply(Arc::new(whole)).await.unwrap();
        assert_eq!(database.engine.position(), Some(at(3)));
        assert_eq!(
            ids(&database, &table).await,
            (0..3).map(Value::Int).collect::<Vec<_>>()
        );
    });
}

/// A session has no patience for locks. Its write set was sent, and then its own changes had to go.
/// They are made again at their place, whoever has come in between.
#[test]
fn a_displaced_write_set_has_an_appliers_patience() {
    let world = World::new(11, WorldOptions::default());
    run(&world, async |world| {
        let (database, alone, table, rows) = node(&world, 1 << 20).await;
        let mut session = database.begin(Isolation::RepeatableRead);
        session.txn.set_lock_wait_timeout(0);
        let (key, old) = &rows[0];
        let own = row(0, 5, "own");
        session.update(&table, key, &own).await.unwrap();
        alone.set_mood(Mood::IsSilent);
        assert_eq!(poll_at_most(1, session.commit()).await, None);
        let foreign = row(0, 7, "foreign");
        let writes = change(&table, Some(old), Some(&foreign));
        let applied = database.engine.apply(at(2), writes, Durability::Durable);
        applied.await.unwrap();
        let mut other = database.begin(Isolation::ReadCommitted);
        let local = row(0, 9, "local");
        other.update(&table, key, &local).await.unwrap();
        alone.set_mood(Mood::Accepts);
        assert_eq!(session.commit().await, Ok(()));
        assert_eq!(database.engine.position(), Some(at(3)));
        let told = other.update(&table, key, &local).await;
        assert_eq!(told, Err(StoreError::Deadlock));
        let orders = database.engine.shared().order_counts();
        assert_eq!((orders.sent, orders.idle, orders.replayed), (1, 1, 1));
        let found = session.scan(&table, all()).await.unwrap();
        assert_eq!(found[0].1, own);
    });
}

/// A write set with a later place has looked for its unique value among deleted entries. It locks
/// no gap beside them: an earlier one inserts there, and the later one need not go.
#[test]
fn what_is_applied_passes_the_gaps_of_what_is_applied() {
    let world = World::new(14, WorldOptions::default());
    run(&world, async |world| {
        let (database, alone, _, _) = node(&world, 1 << 20).await;
        let columns = vec![big("id"), big("number")];
        let primary = index("PRIMARY", Uniqueness::Primary, &[0]);
        let unique = index("number", Uniqueness::Unique, &[1]);
        let numbered = table("numbered", columns, vec![primary, unique]);
        database.engine.create_table(numbered).await.unwrap();
        let numbered = database.table("numbered");
        let pair = |id, number| vec![Value::Int(id), Value::Int(number)];
        let mut session = database.begin(Isolation::RepeatableRead);
        session.insert(&numbered, &pair(1, 20)).await.unwrap();
        session.commit().await.unwrap();
        // It keeps the deleted entry from purge.
        let mut reader = database.begin(Isolation::RepeatableRead);
        let rows = reader.scan(&numbered, all()).await.unwrap();
        session.delete(&numbered, &rows[0].0).await.unwrap();
        session.commit().await.unwrap();
        assert_eq!(database.engine.position(), Some(at(3)));

        let insert = |id, number| change(&numbered, None, Some(&pair(id, number)));
        let apply = |place, writes| {
            let engine = &database.engine;
            engine.apply(at(place), writes, Durability::Durable)
        };
        alone.set_mood(Mood::HoldsTurns);
        let mut later = std::pin::pin!(apply(5, insert(3, 20)));
        for _ in 0..20 {
            assert_eq!(poll_at_most(1, later.as_mut()).await, None);
            database.sleep(std::time::Duration::from_millis(1)).await;
        }
        alone.set_mood(Mood::Accepts);
        apply(4, insert(2, 15)).await.unwrap();
        assert_eq!(database.engine.shared().order_counts().applying, 0);
        assert_eq!(database.engine.position(), Some(at(4)));
    });
}

/// After a crash: the next start has the rows and the place of the node's beginning.
fn finds_nothing_new(world: World) {
    let world = world.crash();
    run(&world, async |world| {
        let database = world.open().await.expect("it opens again");
        assert_eq!(database.engine.position(), Some(at(1)));
        let table = database.table("accounts");
        assert_eq!(ids(&database, &table).await.len(), 3);
    });
}

/// A session goes away behind its write set, and nothing comes from the group any more. The engine
/// ends, and the next start has neither the changes nor their place.
#[test]
fn an_end_does_not_wait_for_the_group() {
    let world = World::new(12, WorldOptions::default());
    run(&world, async |world| {
        let (database, alone, table, rows) = node(&world, 1 << 20).await;
        let mut session = database.begin(Isolation::RepeatableRead);
        session.delete(&table, &rows[0].0).await.unwrap();
        alone.set_mood(Mood::IsSilent);
        assert_eq!(poll_at_most(1, session.commit()).await, None);
        drop(session);
        let closed = poll_at_most(10_000, database.close()).await;
        assert_eq!(closed, Some(Ok(())));
    });
    finds_nothing_new(world);
}

/// The same with a place: the worker has applied it, and waits for its turn.
#[test]
fn an_end_does_not_wait_for_a_turn() {
    let world = World::new(13, WorldOptions::default());
    run(&world, async |world| {
        let (database, alone, table, rows) = node(&world, 1 << 20).await;
        let mut session = database.begin(Isolation::RepeatableRead);
        session.delete(&table, &rows[0].0).await.unwrap();
        alone.set_mood(Mood::HoldsTurns);
        assert_eq!(poll_at_most(1, session.commit()).await, None);
        drop(session);
        database.sleep(std::time::Duration::from_millis(50)).await;
        assert_eq!(database.engine.shared().order_counts().replayed, 1);
        let closed = poll_at_most(10_000, database.close()).await;
        assert_eq!(closed, Some(Ok(())));
    });
    finds_nothing_new(world);
}

/// A kill at each step of three commits and of places without an outcome: the place that the node
/// has afterwards is that of its rows. (A place without an outcome is durable with the next
/// commit.)
#[test]
fn the_place_is_exact_after_each_kill() {
    let mut seen = std::collections::BTreeSet::new();
    for steps in 0.. {
        let world = World::new(9, WorldOptions::default());
        let inner = world.clone();
        let (database, table) = world.run(async move {
            let (database, _alone, table, _rows) = node(&inner, 1 << 20).await;
            (database, table)
        });
        let is_done = Rc::new(std::cell::Cell::new(false));
        let done = Rc::clone(&is_done);
        world.executor.spawn(async move {
            for seqno in [2, 4, 6] {
                let mut session = database.begin(Isolation::RepeatableRead);
                let id = i64::try_from(seqno).unwrap();
                session
                    .insert(&table, &row(id + 100, 0, "x"))
                    .await
                    .unwrap();
                session.commit().await.unwrap();
                database.engine.pass(at(seqno + 1)).await.unwrap();
            }
            done.set(true);
        });
        world.executor.run_steps(steps * 3);
        let was_done = is_done.get();
        let world = world.crash();
        let inner = world.clone();
        let (place, count) = world.run(async move {
            let database = inner.open().await.unwrap();
            let table = database.table("accounts");
            let count = ids(&database, &table).await.len();
            (database.engine.position().unwrap(), count)
        });
        assert_eq!(place.group, GROUP);
        let rows_of = |seqno: u64| 3 + stdx::to_usize(seqno / 2);
        assert_eq!(count, rows_of(place.seqno), "{steps}");
        seen.insert(place.seqno);
        if was_done {
            break;
        }
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [1, 2, 4, 6]);
}

/// Another life with another group: the newer place holds, though its seqno is lower.
#[test]
fn a_node_may_join_another_group() {
    let world = World::new(10, WorldOptions::default());
    run(&world, async |world| {
        let (database, _alone, _table, _rows) = node(&world, 1 << 20).await;
        for seqno in 2..8 {
            database.engine.pass(at(seqno)).await.unwrap();
        }
        database.close().await.unwrap();
    });
    let options = WorldOptions {
        worker_count: 2,
        ..WorldOptions::default()
    };
    let world = world.crash().with_options(options);
    let other = Position {
        group: GroupId([3; 16]),
        seqno: 2,
    };
    run(&world, async move |world| {
        let database = world.open().await.unwrap();
        assert_eq!(database.engine.position(), Some(at(7)));
        database
            .engine
            .shared()
            .set_provider(Alone::new(1, 1 << 20));
        // By the segment of the other worker.
        database.on(1).engine.pass(other).await.unwrap();
        assert_eq!(database.engine.position(), Some(other));
        database.close().await.unwrap();
    });
    let world = world.crash();
    run(&world, async move |world| {
        let database = world.open().await.unwrap();
        assert_eq!(database.engine.position(), Some(other));
        assert_eq!(
            other.to_string(),
            format!("{}:2", "03030303-0303-0303-0303-030303030303")
        );
    });
}
