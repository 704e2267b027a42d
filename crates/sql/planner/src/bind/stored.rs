//! Calls of stored functions, and what must run before an expression is evaluated.
//!
//! Subqueries and stored functions run before the expression that contains them, not during its
//! evaluation. A function must be called only if evaluation would reach it, so its call carries the
//! conditions around it: `IF(a, f(b), c)` calls `f` only if `a` is true. They are collected when an
//! expression has its final place, where one operator evaluates all of it.

use std::collections::HashMap;
use std::rc::Rc;

use errcode::{ER_FUNC_INEXISTENT_NAME_COLLISION, ER_SP_DOES_NOT_EXIST, ER_SP_WRONG_NO_OF_ARGS};
use expression::{Case, Expression, ExpressionKind, StoredCall, Test};
use syntax::ast;

use super::term::Bound;
use super::{Binder, error};
use crate::plan::{Dependent, Guard, GuardedCall};

impl Binder<'_> {
    /// A call of a stored function, or error 1305; 1630 if a built-in function has the name, but
    /// this is no call of it.
    pub(super) fn stored(&mut self, call: &ast::Function, arguments: Vec<Expression>) -> Bound {
        let database = match &call.schema {
            Some(schema) => schema.text.clone(),
            None => self.settings.database.clone().unwrap_or_default(),
        };
        let name = call.name.text.as_str();
        let full = match database.as_str() {
            "" => name.to_owned(),
            database => format!("{database}.{name}"),
        };
        let Some(function) = self.names.stored_function(&database, name)? else {
            let is_word = name.starts_with(|first: char| first.is_ascii_alphabetic());
            if call.schema.is_none() && is_word && builtin::find(name.as_bytes()).is_some() {
                return Err(error(ER_FUNC_INEXISTENT_NAME_COLLISION, &[&full]));
            }
            return Err(error(ER_SP_DOES_NOT_EXIST, &[&"FUNCTION", &full]));
        };
        let (wanted, given) = (function.parameter_count, arguments.len());
        if wanted != given {
            let code = ER_SP_WRONG_NO_OF_ARGS;
            return Err(error(code, &[&"FUNCTION", &full, &wanted, &given]));
        }
        let number = self.subqueries.len();
        self.subqueries.push(None);
        self.subquery_slots.push(Vec::new());
        if !self.functions.contains(&function) {
            self.functions.push(Rc::clone(&function));
        }
        let column_type = function.returns.clone();
        let call = StoredCall {
            number,
            function,
            arguments,
        };
        let kind = ExpressionKind::Stored(Box::new(call));
        Ok(Expression::new(kind, column_type))
    }

    /// What must run before the expressions are evaluated, in order of dependence.
    pub(crate) fn dependents<'e>(
        &self,
        expressions: impl IntoIterator<Item = &'e Expression>,
    ) -> Vec<Dependent> {
        let mut found = Found {
            has_calls: !self.functions.is_empty(),
            ..Found::default()
        };
        for expression in expressions {
            found.look_into(expression);
        }
        let guards: Rc<[Guard]> = found.guards.into();
        let found = found.found.into_iter();
        found
            .map(|(one, innermost)| match one {
                One::Subquery(number) => Dependent::Subquery(number),
                One::Call(call) => Dependent::Call(Rc::new(GuardedCall {
                    call,
                    guards: Rc::clone(&guards),
                    innermost,
                })),
            })
            .collect()
    }
}

enum One {
    Subquery(usize),
    Call(StoredCall),
}

/// What was found so far, and the condition around the current place.
#[derive(Default)]
struct Found {
    /// The statement calls stored functions; only then do conditions matter.
    has_calls: bool,
    /// Each with the innermost condition around it.
    found: Vec<(One, Option<usize>)>,
    /// The position in `found` of each number.
    places: HashMap<usize, usize>,
    guards: Vec<Guard>,
    /// For each guard: whether it encloses the current place.
    are_open: Vec<bool>,
    innermost: Option<usize>,
}

impl Found {
    /// Adds what is not there yet. What occurs in several places (an alias that is used again) is
    /// needed if the conditions common to all of them hold.
    fn add(&mut self, number: usize, one: impl FnOnce() -> One) {
        let Some(&place) = self.places.get(&number) else {
            self.places.insert(number, self.found.len());
            self.found.push((one(), self.innermost));
            return;
        };
        let shared = &mut self.found[place].1;
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
            ExpressionKind::Stored(call) => {
                self.children(expression);
                self.add(call.number, || One::Call(StoredCall::clone(call)));
            }
            ExpressionKind::Subquery(number) | ExpressionKind::Exists(number) => {
                self.add(*number, || One::Subquery(*number));
            }
            ExpressionKind::Quantified(quantified) => {
                self.children(expression);
                let number = quantified.subquery;
                self.add(number, || One::Subquery(number));
            }
            _ => self.children(expression),
        }
    }

    fn children(&mut self, expression: &Expression) {
        expression.for_each_child(&mut |child| self.look_into(child));
    }

    fn guard(&mut self, condition: &Expression, test: Test, negated: bool) {
        let operand = Box::new(condition.clone());
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

    /// Each is evaluated only if all before it were true (or false, if negated).
    fn in_turn(&mut self, list: &[Expression], test: Test, negated: bool) {
        let around = self.innermost;
        let last_call = match self.has_calls {
            true => list.iter().rposition(calls),
            false => None,
        };
        for (place, expression) in list.iter().enumerate() {
            self.look_into(expression);
            if last_call.is_some_and(|last| place < last) {
                self.guard(expression, test, negated);
            }
        }
        self.leave(around);
    }

    fn case(&mut self, case: &Case) {
        let around = self.innermost;
        let conditions = case.branches.iter();
        let mut parts = conditions.flat_map(|(condition, value)| [condition, value]);
        let has_calls =
            self.has_calls && (parts.any(calls) || case.otherwise.as_ref().is_some_and(calls));
        for (condition, value) in &case.branches {
            self.look_into(condition);
            let before = self.innermost;
            if has_calls {
                self.guard(condition, Test::True, false);
            }
            self.look_into(value);
            self.leave(before);
            if has_calls {
                self.guard(condition, Test::True, true);
            }
        }
        if let Some(otherwise) = &case.otherwise {
            self.look_into(otherwise);
        }
        self.leave(around);
    }
}

/// True if the expression calls a stored function.
fn calls(expression: &Expression) -> bool {
    expression.contains(&|part| matches!(part.kind, ExpressionKind::Stored(_)))
}
