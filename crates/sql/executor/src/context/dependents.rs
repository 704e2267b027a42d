//! [`Dependents`]: the subqueries and stored functions that run before an expression with them.

use std::rc::Rc;

use errcode::{ClientError, ER_SUBQUERY_NO_1_ROW};
use expression::{Members, Share, StoredCall, SubqueryResult};
use planner::{Dependent, Step, Subquery, SubqueryKind};
use smallvec::SmallVec;

use crate::context::{Context, keep};
use crate::{FunctionCall, Interrupt, Operator, Outcome, Rewind};

/// The subqueries and stored functions that an operator needs before it evaluates, and how many of
/// them have run.
#[derive(Debug, Default)]
pub(crate) struct Dependents {
    list: Vec<Dependent>,
    at: usize,
    /// The current one has begun: the conditions around it hold. A call is with the session.
    is_begun: bool,
    /// For each condition around the current one, whether it and its outer ones hold, once that
    /// was needed for the current rows.
    known: Vec<Option<bool>>,
}

impl Dependents {
    /// These, in this order.
    pub(crate) fn new(list: &[Dependent]) -> Self {
        Self {
            list: list.to_vec(),
            ..Self::default()
        }
    }

    /// Runs those that have no result for the current rows. Called again after a suspension, it
    /// continues; called for the next row, it begins again.
    #[inline]
    pub(crate) fn run(&mut self, cx: &mut Context<'_>) -> Outcome<()> {
        while let Some(dependent) = self.list.get(self.at) {
            match &dependent.step {
                Step::Call(call) if self.is_begun => {
                    let value = cx.answer.take().expect("a call is answered");
                    cx.frame.subqueries[call.number] = SubqueryResult::Scalar(value);
                }
                _ if !self.is_begun && !is_due(&self.list, self.at, &mut self.known, cx)? => {}
                Step::Subquery(number) => {
                    self.is_begun = true;
                    run_subquery(*number, cx)?;
                }
                Step::Call(call) => {
                    let call = function_call(call, cx)?;
                    self.is_begun = true;
                    return Err(Interrupt::Call(Box::new(call)));
                }
            }
            self.is_begun = false;
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
        self.is_begun = false;
    }
}

/// The cost of testing a condition, in bytes read.
const GUARD_COST: usize = 64;

/// Whether the one at that place of the list has to run: it lacks a result, and the conditions
/// around it hold. `known` is for the current rows, and is dropped where other conditions begin.
fn is_due(
    list: &[Dependent],
    at: usize,
    known: &mut Vec<Option<bool>>,
    cx: &mut Context<'_>,
) -> Outcome<bool> {
    let Dependent {
        step,
        guards,
        innermost,
    } = &list[at];
    let before = at.checked_sub(1).map(|before| &list[before].guards);
    if !before.is_some_and(|before| Rc::ptr_eq(before, guards)) {
        known.clear();
    }
    if let Step::Subquery(number) = step
        && cx.subqueries[*number]
            .as_ref()
            .is_some_and(SubqueryRun::is_valid)
    {
        return Ok(false);
    }
    known.resize(guards.len(), None);
    let mut is_due = true;
    let mut unknown: SmallVec<[usize; 8]> = SmallVec::new();
    let mut next = *innermost;
    while let Some(place) = next {
        if let Some(holds) = known[place] {
            is_due = holds;
            break;
        }
        unknown.push(place);
        next = guards[place].outer;
    }
    let warnings_before = cx.statement.diagnostics.warnings().count();
    for place in unknown.into_iter().rev() {
        if is_due {
            cx.statement.spend(GUARD_COST)?;
            is_due = cx.is_true(&guards[place].condition)?;
        }
        known[place] = Some(is_due);
    }
    // The expression gives them when it evaluates its conditions.
    let mut warnings = cx.statement.diagnostics.warnings();
    warnings.return_to(warnings_before);
    Ok(is_due)
}

/// The call that the session has to run.
fn function_call(call: &StoredCall, cx: &mut Context<'_>) -> Outcome<FunctionCall> {
    let mut arguments = Vec::with_capacity(call.arguments.len());
    for argument in &call.arguments {
        arguments.push(cx.evaluate(argument)?.to_value());
    }
    let types = call.arguments.iter().map(|it| it.column_type.clone());
    Ok(FunctionCall {
        function: Rc::clone(&call.function),
        arguments,
        types: types.collect(),
    })
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

    /// Whether it has a result for the whole execution.
    fn is_valid(&self) -> bool {
        self.state == SubqueryState::Done && !self.plan.is_correlated && !self.plan.varies
    }

    fn run(&mut self, number: usize, cx: &mut Context<'_>) -> Outcome<()> {
        match self.state {
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
