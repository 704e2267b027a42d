//! [`Dependents`]: the subqueries and stored functions that run before an expression with them.

use std::rc::Rc;

use errcode::{ClientError, ER_SUBQUERY_NO_1_ROW};
use expression::{Members, Share, SubqueryResult};
use planner::{Dependent, Guard, GuardedCall, Subquery, SubqueryKind};
use smallvec::SmallVec;
use value::Value;

use crate::context::{Context, keep};
use crate::{FunctionCall, Interrupt, Operator, Outcome, Rewind};

/// The subqueries and stored functions that an operator needs before it evaluates, and how many of
/// them have run.
#[derive(Debug, Default)]
pub(crate) struct Dependents {
    list: Vec<Dependent>,
    at: usize,
    /// The current one is a call that the session was asked to run.
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

    /// Runs those that have no result for the current rows. Called again after a suspension, it
    /// continues; called for the next row, it begins again.
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
                        return Err(Interrupt::Call(Box::new(call)));
                    }
                }
            }
            self.at += 1;
        }
        self.at = 0;
        Ok(())
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Drops a half-done run.
    pub(crate) fn rewind(&mut self) {
        self.at = 0;
        self.is_asked = false;
    }
}

/// The cost of testing a condition, in bytes read.
const GUARD_COST: usize = 64;

/// The call that the session has to run; `None` if a condition around the call does not hold.
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
    /// The root's row is not taken yet (its dependents have suspended).
    holds_row: bool,
    /// The set that is looked up in place of the rows, while they are read.
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

    /// Drops its result: another execution begins.
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

    /// Keeps what is needed of a row. Returns false if no further row is needed.
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

    /// Adds the current row to the set.
    fn take_member(&mut self, cx: &mut Context<'_>) -> Outcome<()> {
        let (slot, output) = (self.plan.slot, &self.plan.query.output);
        let Some(lookup) = &self.plan.lookup else {
            return keep::push_row(cx, slot, output);
        };
        // The rows are moved out of the frame meanwhile: values borrow the frame.
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
