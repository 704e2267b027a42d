//! A session of a node: random transactions, and what it was told about each.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use env::Random;
use env::sim::poll_at_most;
use store::{Isolation, RowLock, ScanOptions, StoreError, Table, TableDefinition, Uniqueness};
use testkit::definitions::{column, index, table};
use value::{ColumnType, TypeKind, Value};

use super::model::Model;
use super::{GroupOptions, GroupTally};
use crate::Database;
use crate::rows::{Row, Session, all, big, blob};

/// Bytes of a note that does not stand in its row's page.
const LONG_NOTE_BYTES: usize = 6_000;

/// The table that all change: `id`, `code` (unique, or NULL), `count`, `note`.
pub(crate) fn things() -> TableDefinition {
    let code = column("code", ColumnType::new(TypeKind::BigInt), true);
    let columns = vec![big("id"), code, big("count"), blob("note")];
    let primary = index("PRIMARY", Uniqueness::Primary, &[0]);
    let unique = index("code", Uniqueness::Unique, &[1]);
    let plain = index("count", Uniqueness::None, &[2]);
    table("things", columns, vec![primary, unique, plain])
}

/// The table with the numbers of the transactions that have committed.
pub(crate) fn journal() -> TableDefinition {
    let primary = index("PRIMARY", Uniqueness::Primary, &[0]);
    table("journal", vec![big("id")], vec![primary])
}

/// What clients were told.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    next: i64,
    committed: BTreeSet<i64>,
    rolled_back: BTreeSet<i64>,
    pub(crate) tally: GroupTally,
}

impl Ledger {
    /// Compares with what has a place (G3).
    pub(crate) fn agrees_with(&self, model: &Model) -> Result<(), String> {
        let journal = model.tables.get("journal").cloned().unwrap_or_default();
        let layout = format::row::RowLayout::new(&[ColumnType::new(TypeKind::BigInt)]);
        let encode = |number: &i64| {
            let mut bytes = Vec::new();
            let encoded = layout.encode(&[Value::Int(*number).as_ref()], &mut bytes);
            encoded.map(|()| bytes).unwrap_or_default()
        };
        let has = |number: &&i64| journal.contains(&encode(number));
        if let Some(lost) = self.committed.iter().find(|number| !has(number)) {
            return Err(format!("(G3) transaction {lost} is lost"));
        }
        if let Some(kept) = self.rolled_back.iter().find(has) {
            return Err(format!(
                "(G3) transaction {kept} was told to be rolled back"
            ));
        }
        Ok(())
    }
}

/// How a transaction went.
enum End {
    Committed,
    RolledBack,
    Unknown,
}

/// Runs the transactions of one session.
pub(crate) async fn play(
    database: Database,
    options: GroupOptions,
    seed: u64,
    ledger: Rc<RefCell<Ledger>>,
) {
    let mut random = Random::new(seed);
    for _ in 0..options.transaction_count {
        let number = {
            let mut ledger = ledger.borrow_mut();
            ledger.next += 1;
            ledger.next
        };
        let mut player = Player {
            things: database.table("things"),
            journal: database.table("journal"),
            session: database.begin(match random.coin() {
                true => Isolation::RepeatableRead,
                false => Isolation::ReadCommitted,
            }),
            database: &database,
            random: &mut random,
            ledger: &ledger,
            options,
        };
        let end = player.transaction(number).await;
        drop(player);
        let mut ledger = ledger.borrow_mut();
        match end {
            End::Committed => {
                ledger.tally.committed += 1;
                ledger.committed.insert(number);
            }
            End::RolledBack => {
                ledger.rolled_back.insert(number);
            }
            End::Unknown => ledger.tally.left += 1,
        }
    }
}

struct Player<'a> {
    database: &'a Database,
    things: Rc<dyn Table>,
    journal: Rc<dyn Table>,
    session: Session,
    random: &'a mut Random,
    ledger: &'a RefCell<Ledger>,
    options: GroupOptions,
}

impl Player<'_> {
    async fn transaction(&mut self, number: i64) -> End {
        match self.statements(number).await {
            Ok(()) => {}
            Err(StoreError::Deadlock) => {
                self.ledger.borrow_mut().tally.aborted += 1;
                return End::RolledBack;
            }
            Err(StoreError::LockWaitTimeout) => return self.roll_back().await,
            Err(other) => panic!("a statement fails: {other}"),
        }
        match self.random.below(20) {
            0..=1 => self.roll_back().await,
            // The client leaves: the worker rolls back, and nobody is told.
            2 => End::RolledBack,
            3..=4 => {
                let polls = 1 + self.random.index(6);
                match poll_at_most(polls, self.session.commit()).await {
                    None => End::Unknown,
                    Some(outcome) => self.told(outcome),
                }
            }
            _ => {
                let outcome = self.session.commit().await;
                self.told(outcome)
            }
        }
    }

    fn told(&self, outcome: Result<(), StoreError>) -> End {
        match outcome {
            Ok(()) => End::Committed,
            Err(StoreError::Deadlock) => {
                self.ledger.borrow_mut().tally.refused += 1;
                End::RolledBack
            }
            Err(other) => panic!("a commit fails: {other}"),
        }
    }

    async fn roll_back(&mut self) -> End {
        let rolled_back = self.session.rollback().await;
        rolled_back.expect("a rollback does not fail");
        End::RolledBack
    }

    async fn statements(&mut self, number: i64) -> Result<(), StoreError> {
        for _ in 0..1 + self.random.below(4) {
            let mark = self.session.txn.mark();
            self.statement().await?;
            if self.random.chance(100) {
                crate::rows::until_done(|| self.session.txn.rollback_to(mark)).await?;
            }
            self.pause().await?;
        }
        let row = [Value::Int(number)];
        self.session.insert(&self.journal, &row).await?;
        Ok(())
    }

    /// The client thinks, with its locks held. Then it asks for something, and hears of an order.
    async fn pause(&mut self) -> Result<(), StoreError> {
        if !self.random.chance(250) {
            return Ok(());
        }
        let pause = Duration::from_micros(100 + self.random.below(20_000));
        self.database.sleep(pause).await;
        let woken = self.session.scan(&self.things, all()).await;
        if let Err(StoreError::Deadlock) = woken {
            self.ledger.borrow_mut().tally.aborted_idle += 1;
        }
        woken.map(|_| ())
    }

    async fn statement(&mut self) -> Result<(), StoreError> {
        self.session.txn.begin_statement();
        let mark = self.session.txn.mark();
        let done = self.change().await;
        if let Err(error) = &done
            && !error.ends_transaction()
        {
            crate::rows::until_done(|| self.session.txn.rollback_to(mark)).await?;
        }
        done
    }

    async fn change(&mut self) -> Result<(), StoreError> {
        let options = ScanOptions {
            lock: match self.random.below(8) {
                0 => RowLock::Exclusive,
                1 => RowLock::Shared,
                _ => RowLock::None,
            },
            ..all()
        };
        let rows = self.session.scan(&self.things, options).await?;
        let new = self.new_row();
        match self.random.below(10) {
            0..=2 => {
                self.session.insert(&self.things, &new).await?;
            }
            3 => {
                if let Some((key, _)) = self.pick(&rows) {
                    self.session.delete(&self.things, &key).await?;
                }
            }
            4 => {
                // Another primary key.
                if let Some((key, _)) = self.pick(&rows) {
                    self.session.update(&self.things, &key, &new).await?;
                }
            }
            _ => {
                if let Some((key, old)) = self.pick(&rows) {
                    let mut row = new;
                    row[0] = old[0].clone();
                    self.session.update(&self.things, &key, &row).await?;
                }
            }
        }
        Ok(())
    }

    fn pick(&mut self, rows: &[Row]) -> Option<Row> {
        (!rows.is_empty()).then(|| rows[self.random.index(rows.len())].clone())
    }

    fn new_row(&mut self) -> Vec<Value> {
        let number = |random: &mut Random, bound: i64| {
            let bound = u64::try_from(bound).expect("there are rows");
            i64::try_from(random.below(bound)).expect("it is small")
        };
        let count = self.options.row_count;
        let code = match self.random.chance(300) {
            true => Value::Null,
            false => Value::Int(number(self.random, count)),
        };
        let length = match self.random.chance(50) {
            true => LONG_NOTE_BYTES,
            false => self.random.index(20),
        };
        vec![
            Value::Int(number(self.random, count)),
            code,
            Value::Int(number(self.random, 1_000)),
            Value::bytes(vec![b'n'; length]),
        ]
    }
}
