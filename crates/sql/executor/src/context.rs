//! [`Context`]: what every operator is handed while the execution runs.

use std::rc::Rc;

use errcode::{ClientError, ER_SUBQUERY_NO_1_ROW};
use expression::{Evaluator, Expression, Frame, Members, Memory, Share, Statement, SubqueryResult};
use planner::{Dependent, Guard, GuardedCall, Subquery, SubqueryKind};
use smallvec::SmallVec;
use store::{Suspend, Table, Transaction};
use value::{Value, ValueRef};

use crate::{FunctionCall, Halt, HandlerCounts, Operator, Outcome, Rewind};

/// After so many rows a statement asks whether it has had its time, and gives way if so. Not for
/// the rows alone: a range of a hundred is read in a quarter of a slice, and what gives way waits
/// behind others and comes back to cold caches (with 4,096 clients such a range cost half as much
/// again).
pub const ROWS_PER_TURN: u32 = 64;

/// The world of a running execution, borrowed for one step.
pub(crate) struct Context<'e> {
    /// Within which transaction.
    pub(crate) txn: &'e mut dyn Transaction,
    /// The session around the statement.
    pub(crate) statement: &'e Statement<'e>,
    /// The rows in flight.
    pub(crate) frame: &'e mut Frame,
    /// The plan's tables, opened.
    pub(crate) tables: &'e [Rc<dyn Table>],
    /// The plan's subqueries; `None` while one is running.
    pub(crate) subqueries: &'e mut [Option<SubqueryRun>],
    /// Rows left in this turn.
    pub(crate) turn_rows: u32,
    /// What the statement keeps.
    pub(crate) memory: &'e Rc<Memory>,
    /// The value of the stored function that the execution halted for.
    pub(crate) answer: &'e mut Option<Value>,
    /// What was asked of tables.
    pub(crate) handler: &'e mut HandlerCounts,
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("turn_rows", &self.turn_rows)
            .finish_non_exhaustive()
    }
}

impl Context<'_> {
    /// What evaluates expressions over the frame as it stands.
    #[inline]
    pub(crate) fn evaluator(&self) -> Evaluator<'_> {
        Evaluator::new(self.frame, self.statement)
    }

    /// The value of an expression over the frame as it stands.
    #[inline]
    pub(crate) fn evaluate<'a>(&'a self, expression: &'a Expression) -> Outcome<ValueRef<'a>> {
        Ok(self.evaluator().evaluate(expression)?)
    }

    /// True if the condition is true (neither false nor NULL).
    #[inline]
    pub(crate) fn is_true(&self, condition: &Expression) -> Outcome<bool> {
        Ok(self.evaluator().is_true(condition)?)
    }

    /// Counts the work of looking at a value; others may run before it returns.
    #[inline]
    pub(crate) fn spend_on(&self, value: ValueRef<'_>) -> Outcome<()> {
        Ok(self.evaluator().spend_on(value)?)
    }

    /// Counts rows that were looked at; once there were enough of them to look at the clock, gives
    /// way if the statement has had its time. Call it where the operator's place is kept, before
    /// the next piece of work.
    #[inline]
    pub(crate) fn charge(&mut self, rows: u32) -> Outcome<()> {
        if rows <= self.turn_rows {
            self.turn_rows -= rows;
            return Ok(());
        }
        self.turn_rows = ROWS_PER_TURN;
        self.statement.check_killed()?;
        if !self.statement.session.is_slice_over() {
            return Ok(());
        }
        Err(Suspend::turn().into())
    }

    /// Says how much a part of the statement keeps; refuses what keeps more than it may.
    pub(crate) fn keep(&self, share: &mut Share, bytes: usize) -> Outcome<()> {
        let limit = self.statement.options.kept_bytes_max;
        let pool = || self.statement.session.memory_pool();
        Ok(share.set(bytes, self.memory, limit, pool)?)
    }
}

/// The subqueries and stored functions that an operator needs before it evaluates, and how far it
/// has come with them.
#[derive(Debug, Default)]
pub(crate) struct Dependents {
    list: Vec<Dependent>,
    at: usize,
    /// The one at hand is a call that the session was asked to run.
    is_asked: bool,
}

impl Dependents {
    /// These, in this order.
    pub(crate) fn new(list: &[Dependent]) -> Self {
        Self {
            list: list.to_vec(),
            at: 0,
            is_asked: false,
        }
    }

    /// Runs those that have no result for the current rows. Called again after a suspension it
    /// goes on where it was; called for the next row it begins anew.
    #[inline]
    pub(crate) fn run(&mut self, cx: &mut Context<'_>) -> Outcome<()> {
        while let Some(dependent) = self.list.get(self.at) {
            match dependent {
                Dependent::Subquery(number) => run_subquery(*number, cx)?,
                Dependent::Call(guarded) if self.is_asked => {
                    let value = cx.answer.take().expect("a call is answered");
                    cx.frame.subqueries[guarded.call.number] = SubqueryResult::Scalar(value);
                    self.is_asked = false;
                }
                Dependent::Call(guarded) => {
                    if let Some(call) = begin_call(guarded, cx)? {
                        self.is_asked = true;
                        return Err(Halt::Call(Box::new(call)));
                    }
                }
            }
            self.at += 1;
        }
        self.at = 0;
        Ok(())
    }

    /// As [`Dependents::run`], and nothing if that has come to its end before.
    pub(crate) fn run_once(&mut self, cx: &mut Context<'_>) -> Outcome<()> {
        self.run(cx)?;
        self.list.clear();
        Ok(())
    }

    /// Forgets a half-done run.
    pub(crate) fn rewind(&mut self) {
        self.at = 0;
        self.is_asked = false;
    }
}

/// What a look at a condition costs, in bytes looked at.
const GUARD_COST: usize = 64;

/// What the session is to run; none where a condition around the call does not hold.
fn begin_call(guarded: &GuardedCall, cx: &mut Context<'_>) -> Outcome<Option<FunctionCall>> {
    let call = &guarded.call;
    cx.frame.subqueries[call.number] = SubqueryResult::Scalar(Value::Null);
    let mut guards: SmallVec<[&Guard; 8]> = SmallVec::new();
    let mut next = guarded.innermost;
    while let Some(guard) = next.and_then(|place| guarded.guards.get(place)) {
        guards.push(guard);
        next = guard.outer;
    }
    for guard in guards.into_iter().rev() {
        cx.statement.spend(GUARD_COST)?;
        if !cx.is_true(&guard.condition)? {
            return Ok(None);
        }
    }
    let mut arguments = Vec::with_capacity(call.arguments.len());
    for argument in &call.arguments {
        arguments.push(cx.evaluate(argument)?.to_value());
    }
    let types = call.arguments.iter().map(|it| it.column_type.clone());
    Ok(Some(FunctionCall {
        function: Rc::clone(&call.function),
        arguments,
        types: types.collect(),
    }))
}

/// A subquery of the execution.
#[derive(Debug)]
pub(crate) struct SubqueryRun {
    plan: Rc<Subquery>,
    root: Box<dyn Operator>,
    dependents: Dependents,
    state: SubqueryState,
    /// The root's row is not taken yet (its dependents suspended).
    holds_row: bool,
    /// What is looked up in place of its rows, while they are read.
    members: Members,
    share: Share,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SubqueryState {
    Fresh,
    Running,
    Done,
}

impl SubqueryRun {
    /// A subquery that has not run.
    pub(crate) fn new(plan: Rc<Subquery>, root: Box<dyn Operator>) -> Self {
        let dependents = Dependents::new(&plan.query.dependent);
        Self {
            plan,
            root,
            dependents,
            state: SubqueryState::Fresh,
            holds_row: false,
            members: Members::default(),
            share: Share::default(),
        }
    }

    /// Forgets its result: another execution begins.
    pub(crate) fn rewind(&mut self) {
        self.state = SubqueryState::Fresh;
        self.root.rewind(Rewind::Fresh);
        self.dependents.rewind();
        self.holds_row = false;
    }

    fn run(&mut self, number: usize, cx: &mut Context<'_>) -> Outcome<()> {
        match self.state {
            SubqueryState::Done if !self.plan.is_correlated => return Ok(()),
            SubqueryState::Done | SubqueryState::Fresh => self.start(number, cx),
            SubqueryState::Running => {}
        }
        loop {
            if !self.holds_row {
                if !self.root.next(cx)? {
                    break;
                }
                self.holds_row = true;
            }
            self.dependents.run(cx)?;
            self.holds_row = false;
            if !self.take_row(number, cx)? {
                break;
            }
        }
        if self.plan.lookup.is_some() {
            cx.frame.subqueries[number] = SubqueryResult::Set {
                slot: self.plan.slot,
                members: Some(Rc::new(std::mem::take(&mut self.members))),
            };
        }
        self.state = SubqueryState::Done;
        Ok(())
    }

    fn start(&mut self, number: usize, cx: &mut Context<'_>) {
        self.root.rewind(Rewind::Outer);
        self.dependents.rewind();
        self.holds_row = false;
        self.state = SubqueryState::Running;
        cx.frame.subqueries[number] = match self.plan.kind {
            SubqueryKind::Scalar => SubqueryResult::Pending,
            SubqueryKind::Exists => SubqueryResult::Exists(false),
            SubqueryKind::Set => {
                cx.frame.rows_mut(self.plan.slot).clear();
                self.members = Members::default();
                SubqueryResult::Set {
                    slot: self.plan.slot,
                    members: None,
                }
            }
        };
    }

    /// Keeps what is wanted of a row; false if no other row is needed.
    fn take_row(&mut self, number: usize, cx: &mut Context<'_>) -> Outcome<bool> {
        match self.plan.kind {
            SubqueryKind::Exists => {
                cx.frame.subqueries[number] = SubqueryResult::Exists(true);
                Ok(false)
            }
            SubqueryKind::Scalar => {
                if !matches!(cx.frame.subqueries[number], SubqueryResult::Pending) {
                    return Err(ClientError::new(ER_SUBQUERY_NO_1_ROW, &[]).into());
                }
                let value = cx.evaluate(&self.plan.query.output[0])?.to_value();
                cx.frame.subqueries[number] = SubqueryResult::Scalar(value);
                Ok(true)
            }
            SubqueryKind::Set => {
                self.take_member(cx)?;
                let bytes = cx.frame.rows(self.plan.slot).memory_bytes();
                cx.keep(&mut self.share, bytes + self.members.memory_bytes())?;
                Ok(true)
            }
        }
    }

    /// Takes the row at hand into the set.
    fn take_member(&mut self, cx: &mut Context<'_>) -> Outcome<()> {
        let (slot, output) = (self.plan.slot, &self.plan.query.output);
        let Some(lookup) = &self.plan.lookup else {
            return crate::keep::push_row(cx, slot, output);
        };
        // The rows stand outside the frame meanwhile: values borrow the frame.
        let mut rows = std::mem::take(cx.frame.rows_mut(slot));
        let taken = (self.members).take_row(&cx.evaluator(), output, lookup, &mut rows);
        *cx.frame.rows_mut(slot) = rows;
        cx.frame.recycle();
        Ok(taken?)
    }
}

fn run_subquery(number: usize, cx: &mut Context<'_>) -> Outcome<()> {
    let mut run = cx.subqueries[number]
        .take()
        .expect("a subquery does not contain itself");
    let outcome = run.run(number, cx);
    cx.subqueries[number] = Some(run);
    outcome
}
