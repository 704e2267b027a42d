//! [`Bench`]: a session without a server over the naive store, with three tables.

use std::cell::{Cell, RefCell, RefMut};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use builtin::SessionFunction;
use executor::{
    Execution, ExecutionContext, Flow, Interrupt, KeptRows, Outcome, Progress, RowSink, Summary,
};
use expression::{Diagnostics, Failure, MemoryPool, SessionContext, Statement, StatementOptions};
use function::SessionFacts;
use planner::{Names, OutputColumn, Settings};
use settings::VariableScope;
use store::{
    CallCost, ColumnDefault, Durability, Isolation, Store, Table, TableDefinition, TableStatistics,
    Transaction, TransactionOptions, Uniqueness, WaitReason,
};
use testkit::NaiveStore;
use testkit::definitions::{column, index, table};
use value::{CollationId, ColumnType, TypeKind, Value, ValueRef};

/// A session that has only a table of user variables.
#[derive(Default)]
struct Session {
    variables: RefCell<HashMap<String, Value>>,
    facts: RefCell<SessionFacts>,
    /// How often the statement has looked at the clock.
    looks: Cell<u64>,
    /// Statements count as never having used up their time.
    is_fast: Cell<bool>,
}

impl SessionContext for Session {
    fn user_variable(&self, name: &str, _: &ColumnType) -> Value {
        self.variables
            .borrow()
            .get(name)
            .cloned()
            .unwrap_or_default()
    }

    fn set_user_variable(&self, name: &str, value: Value, _: &ColumnType) -> Result<(), Failure> {
        self.variables.borrow_mut().insert(name.to_owned(), value);
        Ok(())
    }

    fn call(&self, _: SessionFunction, _: &[Value]) -> Result<Value, Failure> {
        Ok(Value::Null)
    }

    fn system_variable(&self, _: Option<VariableScope>, _: &str) -> Result<Value, Failure> {
        Ok(Value::Int(1))
    }

    fn facts(&self) -> RefMut<'_, SessionFacts> {
        self.facts.borrow_mut()
    }

    fn random(&self) -> u64 {
        4
    }

    fn clock_us(&self) -> i64 {
        0
    }

    fn is_killed(&self) -> bool {
        false
    }

    fn memory_pool(&self) -> Arc<MemoryPool> {
        Arc::new(MemoryPool::new(u64::MAX))
    }

    fn is_slice_over(&self) -> bool {
        !self.is_fast.get()
    }

    fn give_way(&self) -> Result<(), Failure> {
        self.looks.set(self.looks.get() + 1);
        Ok(())
    }
}

pub(crate) struct Bench {
    pub(crate) store: NaiveStore,
    txn: Box<dyn Transaction>,
    session: Session,
    pub(crate) settings: Settings,
    /// The session options of statements.
    pub(crate) options: StatementOptions,
    is_strict: bool,
    /// The store suspends now and then.
    pub(crate) is_interrupted: bool,
    /// The sink asks for a pause at each row.
    pub(crate) pauses: bool,
    /// How often the last statement yielded between rows.
    pub(crate) turn_count: u32,
}

/// Keeps rows, and pauses at each if so set.
struct Sink {
    kept: KeptRows,
    pauses: bool,
}

impl RowSink for Sink {
    fn columns(&mut self, columns: &[OutputColumn]) -> Outcome<()> {
        self.kept.columns(columns)
    }

    fn row(&mut self, row: &[ValueRef<'_>]) -> Outcome<Flow> {
        self.kept.row(row)?;
        Ok(if self.pauses { Flow::Pause } else { Flow::More })
    }
}

struct StoreNames<'s>(&'s NaiveStore);

impl Names for StoreNames<'_> {
    fn table(&self, database: &str, table: &str) -> Option<Arc<TableDefinition>> {
        let definitions = self.0.definitions();
        let is_named = |definition: &&Arc<TableDefinition>| {
            definition.name.database == database && definition.name.table == table
        };
        definitions.iter().find(is_named).cloned()
    }

    fn has_database(&self, database: &str) -> bool {
        database == "test"
    }

    fn far_table(&self, definition: &TableDefinition) -> Option<Rc<dyn Table>> {
        let table = self.0.table(definition.id).ok()?;
        (table.call_cost() == CallCost::RoundTrip).then_some(table)
    }

    fn covers(&self, definition: &TableDefinition, index: usize, columns: &[usize]) -> bool {
        let table = self.0.table(definition.id);
        table.is_ok_and(|table| table.covers(index, columns))
    }

    fn statistics(&self, definition: &TableDefinition) -> TableStatistics {
        self.0
            .table(definition.id)
            .map(|table| table.statistics())
            .unwrap_or_default()
    }
}

impl Bench {
    /// With people and cities, and an empty `sbtest1`.
    pub(crate) fn new() -> Self {
        let store = NaiveStore::new();
        let int = || ColumnType::new(TypeKind::Int);
        let text = |chars| ColumnType::varchar(chars, CollationId::UTF8MB4_GENERAL_CI);
        let mut id = column("id", int(), false);
        id.auto_increment = true;
        let mut k = column("k", int(), false);
        k.default = ColumnDefault::Value(Value::Int(0));
        let mut c = column("c", text(120), false);
        c.default = ColumnDefault::Value(Value::bytes(""));
        let mut pad = column("pad", text(60), false);
        pad.default = ColumnDefault::Value(Value::bytes(""));
        let sbtest = table(
            "sbtest1",
            vec![id, k, c, pad],
            vec![
                index("PRIMARY", Uniqueness::Primary, &[0]),
                index("k_1", Uniqueness::None, &[1]),
            ],
        );
        store.add_table(sbtest);
        let people = table(
            "people",
            vec![
                column("id", int(), false),
                column("name", text(20), true),
                column("city", int(), true),
                column("age", int(), true),
            ],
            vec![
                index("PRIMARY", Uniqueness::Primary, &[0]),
                index("name", Uniqueness::Unique, &[1]),
                index("city_age", Uniqueness::None, &[2, 3]),
            ],
        );
        store.add_table(people);
        let cities = table(
            "cities",
            vec![column("id", int(), false), column("title", text(20), true)],
            vec![index("PRIMARY", Uniqueness::Primary, &[0])],
        );
        store.add_table(cities);
        let options = TransactionOptions {
            isolation: Isolation::RepeatableRead,
            read_only: false,
            lock_wait_timeout_s: 1,
            client: store::ClientId::NONE,
        };
        let txn = store.begin(options);
        let settings = Settings {
            database: Some("test".into()),
            ..Settings::default()
        };
        let bench = Self {
            store,
            txn,
            session: Session::default(),
            settings,
            options: StatementOptions::default(),
            is_strict: true,
            is_interrupted: false,
            pauses: false,
            turn_count: 0,
        };
        bench.filled()
    }

    fn filled(mut self) -> Self {
        self.ok("INSERT INTO cities VALUES (1, 'Turku'), (2, 'Oulu'), (3, 'Pori')");
        self.ok(
            "INSERT INTO people VALUES (1, 'Anna', 1, 30), (2, 'bert', 2, 40), \
             (3, 'Cecil', 1, 50), (4, 'dora', NULL, 20), (5, NULL, 2, NULL)",
        );
        self
    }

    /// From now on statements count as never having used up their time.
    pub(crate) fn make_fast(&mut self) {
        self.session.is_fast.set(true);
    }

    pub(crate) fn run(&mut self, sql: &str) -> Result<(Vec<Vec<Value>>, Summary), String> {
        self.run_with(sql, &[])
    }

    pub(crate) fn run_with(
        &mut self,
        sql: &str,
        parameters: &[Value],
    ) -> Result<(Vec<Vec<Value>>, Summary), String> {
        let mut execution = self.execution(sql)?;
        let is_read = !execution.plan().is_write();
        let first = self.execute(&mut execution, parameters)?;
        if is_read && !self.is_interrupted {
            self.store.suspend_every(3);
            let again = self.execute(&mut execution, parameters);
            self.store.suspend_every(0);
            assert_eq!(again.as_ref(), Ok(&first), "{sql} restarted");
        }
        Ok(first)
    }

    /// How often statements have looked at the clock.
    pub(crate) fn look_count(&self) -> u64 {
        self.session.looks.get()
    }

    /// An execution of the statement.
    pub(crate) fn execution(&self, sql: &str) -> Result<Execution, String> {
        let parsed = syntax::parse(sql.as_bytes(), settings::SqlMode::default());
        let statement = parsed.map_err(|error| format!("{error:?}"))?;
        let names = StoreNames(&self.store);
        let plan = planner::plan(&statement, sql.as_bytes(), &names, &self.settings)
            .map_err(|error| error.to_string())?;
        Ok(Execution::new(Rc::new(plan)))
    }

    pub(crate) fn execute(
        &mut self,
        execution: &mut Execution,
        parameters: &[Value],
    ) -> Result<(Vec<Vec<Value>>, Summary), String> {
        let diagnostics = Diagnostics::default();
        let statement = Statement {
            session: &self.session,
            options: &self.options,
            diagnostics: &diagnostics,
            is_strict: self.is_strict,
        };
        let mark = self.txn.mark();
        let mut sink = Sink {
            kept: KeptRows::default(),
            pauses: self.pauses,
        };
        self.turn_count = 0;
        execution.start(parameters);
        loop {
            let mut world = ExecutionContext {
                store: &self.store,
                txn: &mut *self.txn,
                statement: &statement,
            };
            match execution.step(&mut world, &mut sink) {
                Ok(Progress::Done(summary)) => return Ok((as_texts(&sink.kept), summary)),
                Ok(Progress::Paused) => {}
                Err(Interrupt::Suspend(suspend)) => {
                    self.turn_count += u32::from(suspend.reason() == WaitReason::Turn);
                }
                Err(Interrupt::Call(call)) => panic!("no such function: {call:?}"),
                Err(Interrupt::Error(error)) => {
                    self.txn
                        .rollback_to(mark)
                        .map_err(|_| "rollback".to_owned())?;
                    return Err(error.error.to_string());
                }
            }
        }
    }

    /// The rows as text, one per line.
    pub(crate) fn rows(&mut self, sql: &str) -> String {
        match self.run(sql) {
            Ok((rows, _)) => shown(&rows),
            Err(error) => error,
        }
    }

    pub(crate) fn ok(&mut self, sql: &str) -> Summary {
        match self.run(sql) {
            Ok((_, summary)) => summary,
            Err(error) => panic!("{sql}: {error}"),
        }
    }

    pub(crate) fn check(&mut self, sql: &str, expected: &[&str]) {
        assert_eq!(self.rows(sql), expected.join("\n"), "{sql}");
    }

    pub(crate) fn end(&mut self) {
        loop {
            match self.txn.commit(Durability::Durable) {
                Ok(()) => return,
                Err(store::Interrupt::Suspend(_)) => {}
                Err(store::Interrupt::Error(error)) => panic!("the naive store commits: {error}"),
            }
        }
    }
}

/// The rows as a client of the text protocol reads them.
fn as_texts(sink: &KeptRows) -> Vec<Vec<Value>> {
    let text = |(value, column): (&Value, &OutputColumn)| {
        let text = value.as_ref().to_text(&column.column_type);
        text.map_or(Value::Null, |text| Value::bytes(text.into_owned()))
    };
    sink.rows
        .iter()
        .map(|row| row.iter().zip(&sink.columns).map(text).collect())
        .collect()
}

pub(crate) fn shown(rows: &[Vec<Value>]) -> String {
    let value = |value: &Value| match value {
        Value::Null => String::from("NULL"),
        other => {
            let text = ColumnType::new(TypeKind::Null);
            let text = other.as_ref().to_text(&text).unwrap_or_default();
            String::from_utf8_lossy(&text).into_owned()
        }
    };
    let row = |row: &Vec<Value>| row.iter().map(value).collect::<Vec<_>>().join(" ");
    rows.iter().map(row).collect::<Vec<_>>().join("\n")
}
