//! Queries inside expressions.

use std::rc::Rc;

use errcode::ER_OPERAND_COLUMNS;
use expression::{
    Class, CompareOperator, Expression, ExpressionKind, Lookup, LookupKind, Quantified,
};
use syntax::ast::{self, BinaryOperator, Expr, ExprKind, QueryBody};

use super::term::Bound;
use super::{Binder, error};
use crate::PlanError;
use crate::plan::{Node, Query, Subquery, SubqueryKind};

/// The set that an EXISTS asks for.
#[derive(Debug)]
pub(crate) struct ExistsSet {
    /// What the outer row has, one expression for each column of the query.
    pub(crate) left: Vec<Expression>,
    /// The class in which each column is compared.
    pub(crate) classes: Vec<Class>,
    /// The values.
    pub(crate) query: Query,
    /// See [`Plan::is_for_values`](crate::Plan::is_for_values).
    pub(crate) is_for_values: bool,
}

/// The beginnings of the EXISTS queries that must hold for a condition, in the text.
pub(crate) fn required_exists(condition: &Expr) -> Vec<u32> {
    let (mut found, mut left) = (Vec::new(), vec![condition]);
    while let Some(expr) = left.pop() {
        match &expr.kind {
            ExprKind::Chain {
                operator: BinaryOperator::And,
                operands,
            } => left.extend(operands),
            ExprKind::Binary {
                operator: BinaryOperator::And,
                left: first,
                right: second,
            } => left.extend([&**first, &**second]),
            ExprKind::Exists(query) if is_simple(query) => found.push(query.span.start),
            _ => {}
        }
    }
    found
}

/// True of a SELECT whose rows count as they are found.
fn is_simple(query: &ast::Query) -> bool {
    matches!(query.body, QueryBody::Select(_)) && query.limit.is_none() && query.lock.is_none()
}

impl Binder<'_> {
    pub(super) fn scalar_subquery(&mut self, query: &ast::Query) -> Bound {
        let number = self.subquery(query, SubqueryKind::Scalar)?;
        let output = self.subquery_output(number);
        let [only] = output.as_slice() else {
            return Err(error(ER_OPERAND_COLUMNS, &[&1]));
        };
        let column_type = only.column_type.clone();
        Ok(Expression::new(
            ExpressionKind::Subquery(number),
            column_type,
        ))
    }

    pub(super) fn exists(&mut self, query: &ast::Query) -> Bound {
        let is_required = self.block().required_exists.contains(&query.span.start);
        let depth = is_required.then_some(self.blocks.len() + 1);
        let around = std::mem::replace(&mut self.exists_depth, depth);
        let number = self.subquery(query, SubqueryKind::Exists);
        self.exists_depth = around;
        let (number, set) = (number?, self.exists_set.take());
        let varies = self.subqueries[number].as_ref().is_none_or(|it| it.varies);
        if let Some(set) = set.filter(|_| is_required && !varies) {
            self.exists_sets.insert(number, set);
        }
        Ok(Expression::condition(ExpressionKind::Exists(number), false))
    }

    pub(super) fn quantified(
        &mut self,
        operator: CompareOperator,
        is_all: bool,
        value: &Expr,
        query: &ast::Query,
    ) -> Bound {
        let left: Vec<Expression> = match &value.kind {
            ExprKind::Row(parts) => parts
                .iter()
                .map(|part| self.term(part))
                .collect::<Result<_, _>>()?,
            _ => vec![self.term(value)?],
        };
        let subquery = self.subquery(query, SubqueryKind::Set)?;
        let output = self.subquery_output(subquery);
        if output.len() != left.len() {
            return Err(error(ER_OPERAND_COLUMNS, &[&left.len()]));
        }
        let mut classes = Vec::with_capacity(left.len());
        for (left, right) in left.iter().zip(&output) {
            classes.push(self.class(left, right, "in")?);
        }
        self.set_lookup(subquery, operator, is_all, &classes);
        let types = output
            .iter()
            .map(|output| output.column_type.clone())
            .collect();
        let quantified = Quantified {
            operator,
            is_all,
            left,
            classes,
            types,
            subquery,
        };
        let kind = ExpressionKind::Quantified(Box::new(quantified));
        Ok(Expression::condition(kind, true))
    }

    /// Decides what is kept of a subquery's rows. One that runs again for each outer row is
    /// searched once a run; comparing with each row then costs no more than building a set.
    fn set_lookup(
        &mut self,
        number: usize,
        operator: CompareOperator,
        is_all: bool,
        classes: &[Class],
    ) {
        let kind = match (operator, is_all) {
            (CompareOperator::Equal, false) | (CompareOperator::NotEqual, true) => LookupKind::Keys,
            (CompareOperator::NullSafeEqual, _) => return,
            _ if classes.len() == 1 => LookupKind::Extremes,
            _ => return,
        };
        let subquery = self.subqueries[number].as_mut().expect("it was bound");
        let subquery = Rc::get_mut(subquery).expect("nothing else knows it yet");
        if !subquery.is_correlated && !subquery.varies {
            let classes = classes.into();
            subquery.lookup = Some(Lookup { kind, classes });
        }
    }

    fn subquery_output(&self, number: usize) -> Vec<Expression> {
        let subquery = self.subqueries[number].as_ref().expect("it was bound");
        subquery.query.output.clone()
    }

    /// Binds a query inside an expression. Returns its number.
    fn subquery(&mut self, query: &ast::Query, kind: SubqueryKind) -> Result<usize, PlanError> {
        let number = self.subqueries.len();
        self.subqueries.push(None);
        self.subquery_slots.push(Vec::new());
        let around = std::mem::replace(&mut self.has_varied, false);
        let (bound, outer_slots) = self.with_inner_lock(|binder| binder.query(query))?;
        let varies = self.has_varied;
        self.has_varied |= around;
        let slot = match kind {
            SubqueryKind::Set => self.computed_slot(&bound.query.output),
            SubqueryKind::Scalar | SubqueryKind::Exists => usize::MAX,
        };
        let is_correlated = !outer_slots.is_empty();
        let query = Rc::new(bound.query);
        self.subqueries[number] = Some(Rc::new(Subquery {
            query,
            kind,
            is_correlated,
            varies,
            slot,
            lookup: None,
        }));
        self.subquery_slots[number] = outer_slots;
        Ok(number)
    }

    /// An expression that varies as a query of its own: `(SELECT @n := @n + 1)`.
    pub(super) fn as_subquery(&mut self, expression: &Expression) -> Expression {
        let subquery = self.query_of(expression);
        self.read_subquery(subquery, expression)
    }

    /// An expression that varies as a query that runs once before the rows of a table are read, so
    /// that it may bound an index.
    pub(super) fn once_a_run(&mut self, expression: &Expression) -> Expression {
        let subquery = Subquery {
            is_correlated: true,
            varies: false,
            ..self.query_of(expression)
        };
        self.read_subquery(subquery, expression)
    }

    fn query_of(&self, expression: &Expression) -> Subquery {
        let query = Query {
            root: Node::One,
            output: vec![expression.clone()],
            dependent: self.dependents([expression]),
        };
        Subquery {
            query: Rc::new(query),
            kind: SubqueryKind::Scalar,
            is_correlated: !self.slots_of(expression).is_empty(),
            varies: true,
            slot: usize::MAX,
            lookup: None,
        }
    }

    fn read_subquery(&mut self, subquery: Subquery, expression: &Expression) -> Expression {
        self.subqueries.push(Some(Rc::new(subquery)));
        self.subquery_slots.push(self.slots_of(expression));
        Expression {
            kind: ExpressionKind::Subquery(self.subqueries.len() - 1),
            column_type: expression.column_type.clone(),
            nullable: expression.nullable,
        }
    }
}
