//! What must run before an expression is evaluated.
//!
//! Subqueries and stored functions run before the expression that contains them, not during its
//! evaluation. They must run only if evaluation would reach them, so each carries the conditions
//! around it: `IF(a, f(b), c)` calls `f` only if `a` is true. They are collected when an expression
//! has its final place, where one operator evaluates all of it.
//!
//! A condition is evaluated once before the expression, and once within it. One that could differ
//! between the two (`RAND() < 0.5`, a variable that a function may set), or that acts (`@n := 1`),
//! guards nothing.

use std::collections::HashMap;
use std::rc::Rc;

use expression::{
    Case, Compare, CompareOperator, Expression, ExpressionKind, InList, StoredCall, Test,
};

use super::Binder;
use crate::plan::{Dependent, Guard, Step};

impl Binder<'_> {
    /// What must run before the expressions are evaluated, in order of dependence.
    pub(crate) fn dependents<'e>(
        &self,
        expressions: impl IntoIterator<Item = &'e Expression>,
    ) -> Vec<Dependent> {
        if self.subqueries.is_empty() {
            return Vec::new();
        }
        let mut found = Found::new(self);
        for expression in expressions {
            found.look_into(expression);
        }
        let guards: Rc<[Guard]> = found.guards.into();
        let steps = found.steps.into_iter();
        steps
            .map(|(step, innermost)| Dependent {
                step,
                guards: Rc::clone(&guards),
                innermost,
            })
            .collect()
    }

    /// True if two evaluations over the same rows may differ, or act. Stored functions are left
    /// out: a query with one is evaluated once, as in MariaDB.
    pub(crate) fn varies(&self, expression: &Expression) -> bool {
        expression.contains(&varies) || self.has_varying_subquery(expression)
    }

    fn has_varying_subquery(&self, expression: &Expression) -> bool {
        let numbers = expression.subqueries().into_iter();
        let mut subqueries = numbers.filter_map(|number| self.subqueries[number].as_ref());
        subqueries.any(|subquery| subquery.varies)
    }

    /// Subqueries run before all of a list is evaluated. If one of them varies, each other part
    /// that varies becomes a query of its own. So all of them are evaluated from left to right.
    pub(crate) fn evaluate_in_turn(&mut self, list: &mut [Expression]) {
        if !list.iter().any(|it| self.has_varying_subquery(it)) {
            return;
        }
        for expression in list.iter_mut().filter(|it| it.contains(&varies)) {
            *expression = self.as_subquery(expression);
        }
    }
}

/// Members of an IN list before one with a subquery that guard it. Each guard has a copy of the
/// operand; behind longer lists subqueries run in any case.
const IN_GUARDS_MAX: usize = 16;

/// What was found so far, and the condition around the current place.
struct Found<'b> {
    binder: &'b Binder<'b>,
    /// Each with the innermost condition around it.
    steps: Vec<(Step, Option<usize>)>,
    /// The position in `steps` of each number.
    places: HashMap<usize, usize>,
    guards: Vec<Guard>,
    /// For each guard: whether it encloses the current place.
    are_open: Vec<bool>,
    innermost: Option<usize>,
}

impl<'b> Found<'b> {
    fn new(binder: &'b Binder<'b>) -> Self {
        Self {
            binder,
            steps: Vec::new(),
            places: HashMap::new(),
            guards: Vec::new(),
            are_open: Vec::new(),
            innermost: None,
        }
    }

    /// Adds what is not there yet. What occurs in several places (an alias that is used again) is
    /// needed if the conditions common to all of them hold.
    fn add(&mut self, number: usize, step: impl FnOnce() -> Step) {
        let Some(&place) = self.places.get(&number) else {
            self.places.insert(number, self.steps.len());
            self.steps.push((step(), self.innermost));
            return;
        };
        let shared = &mut self.steps[place].1;
        while let Some(guard) = shared.filter(|guard| !self.are_open[*guard]) {
            *shared = self.guards[guard].outer;
        }
    }

    /// Leaves the conditions within that one.
    fn leave(&mut self, around: Option<usize>) {
        while let Some(guard) = self.innermost.filter(|_| self.innermost != around) {
            self.are_open[guard] = false;
            self.innermost = self.guards[guard].outer;
        }
    }

    fn look_into(&mut self, expression: &Expression) {
        match &expression.kind {
            ExpressionKind::And(list) => self.in_turn(list, Test::False, true),
            ExpressionKind::Or(list) => self.in_turn(list, Test::True, true),
            ExpressionKind::Coalesce(list) => self.in_turn(list, Test::Null, false),
            ExpressionKind::Case(case) => self.case(case),
            ExpressionKind::In(list) => self.members(list),
            ExpressionKind::Compare(compare) => self.compare(compare),
            ExpressionKind::Stored(call) => {
                self.children(expression);
                self.add(call.number, || Step::Call(Rc::new(StoredCall::clone(call))));
            }
            ExpressionKind::Subquery(number) | ExpressionKind::Exists(number) => {
                self.add(*number, || Step::Subquery(*number));
            }
            ExpressionKind::Quantified(quantified) => {
                self.children(expression);
                let number = quantified.subquery;
                self.add(number, || Step::Subquery(number));
            }
            _ => self.children(expression),
        }
    }

    fn children(&mut self, expression: &Expression) {
        expression.for_each_child(&mut |child| self.look_into(child));
    }

    fn guard(&mut self, condition: Expression, test: Test, negated: bool) {
        if !self.is_steady(&condition) {
            return;
        }
        let operand = Box::new(condition);
        let kind = ExpressionKind::Is {
            operand,
            test,
            negated,
        };
        self.guards.push(Guard {
            condition: Expression::condition(kind, false),
            outer: self.innermost,
        });
        self.are_open.push(true);
        self.innermost = Some(self.guards.len() - 1);
    }

    /// True if a second evaluation gives the same and changes nothing. Results of stored functions
    /// stay in the frame, and so do those of subqueries that do not vary.
    fn is_steady(&self, condition: &Expression) -> bool {
        let may_be_set = |part: &Expression| {
            matches!(
                part.kind,
                ExpressionKind::UserVariable(_) | ExpressionKind::SystemVariable(_)
            )
        };
        !self.binder.varies(condition)
            && (self.binder.functions.is_empty() || !condition.contains(&may_be_set))
    }

    /// Each is evaluated only if the test of all before it holds.
    fn in_turn(&mut self, list: &[Expression], test: Test, negated: bool) {
        let around = self.innermost;
        let last = list.iter().rposition(has_steps);
        for (place, expression) in list.iter().enumerate() {
            self.look_into(expression);
            if last.is_some_and(|last| place < last) {
                self.guard(expression.clone(), test, negated);
            }
        }
        self.leave(around);
    }

    fn case(&mut self, case: &Case) {
        let around = self.innermost;
        let conditions = case.branches.iter();
        let mut parts = conditions.flat_map(|(condition, value)| [condition, value]);
        let has_steps = parts.any(has_steps) || case.otherwise.as_ref().is_some_and(has_steps);
        for (condition, value) in &case.branches {
            self.look_into(condition);
            let before = self.innermost;
            if has_steps {
                self.guard(condition.clone(), Test::True, false);
            }
            self.look_into(value);
            self.leave(before);
            if has_steps {
                self.guard(condition.clone(), Test::True, true);
            }
        }
        if let Some(otherwise) = &case.otherwise {
            self.look_into(otherwise);
        }
        self.leave(around);
    }

    /// The right side is evaluated only if the left one is not NULL.
    fn compare(&mut self, compare: &Compare) {
        let around = self.innermost;
        self.look_into(&compare.left);
        if compare.operator != CompareOperator::NullSafeEqual && has_steps(&compare.right) {
            self.guard(compare.left.clone(), Test::Null, true);
        }
        self.look_into(&compare.right);
        self.leave(around);
    }

    /// A member is evaluated only if the operand is not NULL and equals none before.
    fn members(&mut self, list: &InList) {
        let around = self.innermost;
        self.look_into(&list.operand);
        let members = list.list.expressions();
        if let Some(last) = members.iter().rposition(has_steps) {
            self.guard(list.operand.clone(), Test::Null, true);
            for (place, member) in members.iter().enumerate().take(last + 1) {
                self.look_into(member);
                if place < last.min(IN_GUARDS_MAX) {
                    let equal = Compare {
                        operator: CompareOperator::Equal,
                        class: list.class,
                        left: list.operand.clone(),
                        right: member.clone(),
                    };
                    let kind = ExpressionKind::Compare(Box::new(equal));
                    self.guard(Expression::condition(kind, true), Test::True, true);
                }
            }
        }
        self.leave(around);
    }
}

/// True if the expression uses a subquery or calls a stored function.
fn has_steps(expression: &Expression) -> bool {
    expression.contains(&|part| {
        matches!(
            part.kind,
            ExpressionKind::Stored(_)
                | ExpressionKind::Subquery(_)
                | ExpressionKind::Exists(_)
                | ExpressionKind::Quantified(_)
        )
    })
}

/// True if two evaluations of this part may differ whatever it reads, or if it acts.
pub(super) fn varies(part: &Expression) -> bool {
    match &part.kind {
        ExpressionKind::AssignUserVariable(_) | ExpressionKind::Session(_) => true,
        ExpressionKind::UserVariable(variable) => variable.is_assigned,
        ExpressionKind::Function(call) => call.is_volatile(),
        _ => false,
    }
}
