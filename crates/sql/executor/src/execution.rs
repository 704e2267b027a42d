//! [`Execution`]: one plan, run again and again.
//!
//! ```text
//! new --> Idle --start--> Ready --step--> Running --step--> .. --> Idle
//!         Running also ends a step by: Paused (the sink wants room), Suspend, an error
//! ```
//!
//! An execution keeps its tables, cursors and buffers, so a session that caches it with its plan
//! runs a point query without allocating. It is bound to one worker and one statement at a time.

use std::rc::Rc;

use expression::{Frame, Memory, Slot, Statement, clear_values};
use planner::{Action, Plan, Query, SlotShape};
use smallvec::SmallVec;
use store::{RowBatch, Store, StoreError, Table, Transaction};
use value::{Value, ValueRef};

use crate::context::dependents::{Dependents, SubqueryRun};
use crate::context::{Context, ROWS_PER_TURN};
use crate::operator::build;
use crate::progress::{Progress, Summary};
use crate::sink::give_row;
use crate::write::{DeleteRunner, InsertRunner, UpdateRunner};
use crate::{Flow, HandlerCounts, Interrupt, Operator, Outcome, Rewind, RowSink};

/// What an execution runs in, borrowed for one step.
pub struct ExecutionContext<'w> {
    /// The store with the tables.
    pub store: &'w dyn Store,
    /// The transaction.
    pub txn: &'w mut dyn Transaction,
    /// The session around the statement.
    pub statement: &'w Statement<'w>,
}

impl std::fmt::Debug for ExecutionContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExecutionContext")
            .field("statement", &self.statement)
            .finish_non_exhaustive()
    }
}

/// A plan and all that it needs to run.
#[derive(Debug)]
pub struct Execution {
    plan: Rc<Plan>,
    machine: Option<Machine>,
    parameters: Vec<Value>,
    /// Rows that earlier runs inserted for the same statement.
    earlier_rows: u64,
    /// What a run is of its statement.
    extent: Extent,
    /// What the machine had allocated at the end of its last run.
    memory_bytes: usize,
    /// Calls to tables that the session has not taken yet.
    handler: HandlerCounts,
    /// A scan has read far more rows than the plan was made for.
    is_off: bool,
    /// All is done, but the store has not ended the statement yet.
    done: Option<Summary>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Ready,
    Running,
}

/// What a run is of its statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Extent {
    /// All of it: the end of the run is the end of the statement in the store.
    #[default]
    Whole,
    /// A part, as of LOAD DATA, which makes a run for each row. The caller ends the statement.
    Part,
}

/// The opened tables and the operators over them.
struct Machine {
    /// The store's schema version at which the tables were opened.
    schema_version: u64,
    tables: Vec<Rc<dyn Table>>,
    frame: Frame,
    subqueries: Vec<Option<SubqueryRun>>,
    runner: Runner,
    /// Its memory account.
    memory: Rc<Memory>,
    /// The result of the stored function for which it stopped.
    answer: Option<Value>,
}

/// An execution that has taken more is not kept idle, since many of them lie in caches.
const IDLE_BYTES_MAX: usize = 128 << 10;

impl std::fmt::Debug for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine")
            .field("runner", &self.runner)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
enum Runner {
    Select(SelectRunner),
    Rows { plan: Rc<Plan>, at: usize },
    Insert(InsertRunner),
    Update(UpdateRunner),
    Delete(DeleteRunner),
}

impl Execution {
    /// An execution of the plan; it reads nothing yet.
    pub fn new(plan: Rc<Plan>) -> Self {
        Self {
            plan,
            machine: None,
            parameters: Vec::new(),
            earlier_rows: 0,
            extent: Extent::Whole,
            memory_bytes: 0,
            handler: HandlerCounts::default(),
            is_off: false,
            done: None,
            state: State::Idle,
        }
    }

    /// The plan.
    pub fn plan(&self) -> &Rc<Plan> {
        &self.plan
    }

    /// Begins a run with the values of its parameters. A running one is dropped.
    ///
    /// # Panics
    /// If there are fewer values than the plan has parameters.
    pub fn start(&mut self, parameters: &[Value]) {
        assert!(
            self.plan.parameter_count <= parameters.len(),
            "each parameter has a value"
        );
        self.parameters.clear();
        self.parameters.extend_from_slice(parameters);
        self.done = None;
        self.state = State::Ready;
    }

    /// Each run is a part of one statement, which the caller ends. Messages count rows from here
    /// on.
    pub fn be_part_after(&mut self, count: u64) {
        self.extent = Extent::Part;
        self.earlier_rows = count;
    }

    /// Hands over the result of the stored function for which the execution stopped.
    ///
    /// # Panics
    /// If it is not running.
    pub fn answer(&mut self, value: Value) {
        let machine = self.machine.as_mut().expect("it runs");
        machine.answer = Some(value);
    }

    /// Continues the run. After `Interrupt::Suspend` (once it is over), `Interrupt::Call`
    /// (answered) and `Progress::Paused`, call it again with the same transaction and sink. After
    /// `Progress::Done` and after an error the execution is idle and may be started again.
    ///
    /// # Errors
    /// The error of the statement; its `effect` says what happens to the transaction.
    ///
    /// # Panics
    /// If it was not started.
    pub fn step(
        &mut self,
        world: &mut ExecutionContext<'_>,
        sink: &mut dyn RowSink,
    ) -> Outcome<Progress> {
        assert!(self.state != State::Idle, "the execution was started");
        let outcome = self.run(world, sink);
        if matches!(outcome, Ok(Progress::Done(_)) | Err(Interrupt::Error(_))) {
            self.state = State::Idle;
            clear_values(&mut self.parameters);
            if let Some(machine) = &mut self.machine {
                machine.frame.shrink();
            }
        }
        outcome
    }

    /// Takes the counts of calls to tables since the last take.
    pub fn take_handler_counts(&mut self) -> HandlerCounts {
        std::mem::take(&mut self.handler)
    }

    /// True once a scan has read far more rows than were expected by the values of the parameters
    /// that the plan was made for.
    pub fn is_off(&self) -> bool {
        self.is_off
    }

    /// The approximate bytes that it keeps for rows and texts while it waits for its next run.
    pub fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    fn run(
        &mut self,
        world: &mut ExecutionContext<'_>,
        sink: &mut dyn RowSink,
    ) -> Outcome<Progress> {
        if self.state == State::Ready {
            self.open(world)?;
            if !self.plan.columns.is_empty() {
                sink.columns(&self.plan.columns)?;
            }
            self.state = State::Running;
        }
        let machine = self.machine.as_mut().expect("opened before it runs");
        let mut cx = Context {
            txn: &mut *world.txn,
            statement: world.statement,
            frame: &mut machine.frame,
            tables: &machine.tables,
            subqueries: &mut machine.subqueries,
            turn_rows: ROWS_PER_TURN,
            memory: &machine.memory,
            answer: &mut machine.answer,
            handler: &mut self.handler,
            is_off: &mut self.is_off,
        };
        let outcome = match &mut machine.runner {
            _ if self.done.is_some() => Ok(Progress::Done(self.done.take().unwrap_or_default())),
            Runner::Select(runner) => runner.run(&mut cx, sink),
            Runner::Rows { plan, at } => give_rows(plan, at, sink),
            Runner::Insert(runner) => runner.run(&mut cx, sink),
            Runner::Update(runner) => runner.run(&mut cx).map(Progress::Done),
            Runner::Delete(runner) => runner.run(&mut cx, sink),
        };
        let outcome = match outcome {
            Ok(Progress::Done(summary)) if self.plan.is_write() && self.extent == Extent::Whole => {
                end_statement(summary, &mut *world.txn, &mut self.done)
            }
            other => other,
        };
        if matches!(outcome, Ok(Progress::Done(_)) | Err(Interrupt::Error(_))) {
            self.memory_bytes = machine.memory_bytes();
            if IDLE_BYTES_MAX < self.memory_bytes {
                self.machine = None;
                self.memory_bytes = 0;
            }
        }
        outcome
    }

    /// Opens the tables, or finds them unchanged, and resets everything.
    fn open(&mut self, world: &ExecutionContext<'_>) -> Outcome<()> {
        let version = world.store.schema_version();
        let is_open = self
            .machine
            .as_ref()
            .is_some_and(|open| open.schema_version == version);
        if !is_open {
            self.machine = None;
            self.machine = Some(Machine::open(&self.plan, world, version)?);
        }
        let machine = self.machine.as_mut().expect("opened above");
        machine.answer = None;
        std::mem::swap(&mut machine.frame.parameters, &mut self.parameters);
        machine.frame.forget_lists();
        for run in machine.subqueries.iter_mut().flatten() {
            run.rewind();
        }
        match &mut machine.runner {
            Runner::Select(runner) => runner.rewind(),
            Runner::Rows { at, .. } => *at = 0,
            Runner::Insert(runner) => {
                runner.rewind();
                runner.set_earlier_rows(self.earlier_rows);
            }
            Runner::Update(runner) => runner.rewind(),
            Runner::Delete(runner) => runner.rewind(),
        }
        Ok(())
    }
}

impl Machine {
    /// The most bytes that were kept, plus an estimate of other allocations. Operators have buffers
    /// for a row or for keys, which are no larger than what has passed through the frame.
    fn memory_bytes(&self) -> usize {
        self.memory.peak() + self.frame.memory_bytes()
    }

    fn open(plan: &Rc<Plan>, world: &ExecutionContext<'_>, schema_version: u64) -> Outcome<Self> {
        let mut tables = Vec::with_capacity(plan.tables.len());
        for table in &plan.tables {
            let open = world.store.table(table.definition.id)?;
            if open.definition().version != table.definition.version {
                return Err(StoreError::DefinitionChanged.into());
            }
            tables.push(open);
        }
        let slots = plan
            .slots
            .iter()
            .map(|shape| match shape {
                SlotShape::Table(table) => {
                    Slot::of_table(RowBatch::new(tables[*table].layout().clone()))
                }
                SlotShape::Computed(types) => Slot::computed(types.len()),
                SlotShape::Groups(grouping) => {
                    Slot::of_table(RowBatch::new(grouping.layout.clone()))
                }
            })
            .collect();
        let subqueries = plan
            .subqueries
            .iter()
            .map(|subquery| {
                let subquery = subquery.as_ref()?;
                let root = build(&subquery.query.root, &tables);
                Some(SubqueryRun::new(subquery.clone(), root))
            })
            .collect();
        let frame = Frame::new(slots, plan.subqueries.len(), plan.list_count);
        let runner = match &plan.action {
            Action::Select(query) | Action::Do(query) => {
                let is_silent = matches!(plan.action, Action::Do(_));
                Runner::Select(SelectRunner::new(query.clone(), is_silent, &tables))
            }
            Action::Rows(_) => Runner::Rows {
                plan: plan.clone(),
                at: 0,
            },
            Action::Insert(insert) => Runner::Insert(InsertRunner::new(insert.clone(), &tables)),
            Action::Update(update) => Runner::Update(UpdateRunner::new(update.clone(), &tables)),
            Action::Delete(delete) => Runner::Delete(DeleteRunner::new(delete.clone(), &tables)),
        };
        Ok(Self {
            schema_version,
            tables,
            subqueries,
            runner,
            memory: Rc::clone(frame.memory()),
            frame,
            answer: None,
        })
    }
}

/// Lets the store make the changes that it has kept back. Until that is done, `done` keeps the
/// summary.
fn end_statement(
    summary: Summary,
    txn: &mut dyn Transaction,
    done: &mut Option<Summary>,
) -> Outcome<Progress> {
    if let Err(interrupt) = txn.end_statement() {
        *done = Some(summary);
        return Err(interrupt.into());
    }
    Ok(Progress::Done(summary))
}

fn give_rows(plan: &Plan, at: &mut usize, sink: &mut dyn RowSink) -> Outcome<Progress> {
    let Action::Rows(rows) = &plan.action else {
        unreachable!("the runner of known rows")
    };
    while let Some(row) = rows.get(*at) {
        *at += 1;
        let values: SmallVec<[ValueRef<'_>; 16]> = row.iter().map(Value::as_ref).collect();
        if sink.row(&values)? == Flow::Pause {
            return Ok(Progress::Paused);
        }
    }
    let returned_rows = stdx::to_u64(rows.len());
    Ok(Progress::Done(Summary {
        returned_rows,
        ..Summary::default()
    }))
}

/// Runs a query whose rows go to the sink.
#[derive(Debug)]
struct SelectRunner {
    root: Box<dyn Operator>,
    query: Rc<Query>,
    dependents: Dependents,
    /// The root's row is not sent yet.
    holds_row: bool,
    /// `DO`: rows are computed and dropped.
    is_silent: bool,
    returned_rows: u64,
}

impl SelectRunner {
    fn new(query: Rc<Query>, is_silent: bool, tables: &[Rc<dyn Table>]) -> Self {
        let root = build(&query.root, tables);
        let dependents = Dependents::new(&query.dependent);
        Self {
            root,
            query,
            dependents,
            holds_row: false,
            is_silent,
            returned_rows: 0,
        }
    }

    fn rewind(&mut self) {
        self.root.rewind(Rewind::Fresh);
        self.dependents.rewind();
        self.holds_row = false;
        self.returned_rows = 0;
    }

    fn run(&mut self, cx: &mut Context<'_>, sink: &mut dyn RowSink) -> Outcome<Progress> {
        loop {
            if !self.holds_row {
                cx.frame.recycle();
                if !self.root.next(cx)? {
                    break;
                }
                self.holds_row = true;
            }
            self.dependents.run(cx)?;
            self.holds_row = false;
            self.returned_rows += 1;
            if self.is_silent {
                for expression in &self.query.output {
                    cx.evaluate(expression)?;
                }
            } else if give_row(&self.query.output, cx, sink)? == Flow::Pause {
                cx.frame.recycle();
                return Ok(Progress::Paused);
            }
        }
        let returned_rows = self.returned_rows;
        let found_rows = self.root.found_rows();
        Ok(Progress::Done(Summary {
            returned_rows,
            found_rows,
            ..Summary::default()
        }))
    }
}
