//! Query blocks and what is built of them: SELECT, UNION, ORDER BY, LIMIT.
//!
//! A SELECT is bound clause by clause. Then its nodes are built from the tables upward: tables,
//! WHERE, groups, HAVING, DISTINCT, ORDER BY, LIMIT. Each node that keeps rows gets a new slot for
//! them, and the expressions above are rewritten to read it.

use std::rc::Rc;

use errcode::{
    ClientError, ER_BAD_TABLE_ERROR, ER_NO_TABLES_USED, ER_SP_UNDECLARED_VAR,
    ER_WRONG_NUMBER_OF_COLUMNS_IN_SELECT, ER_WRONG_USAGE,
};
use expression::{ColumnPlace, Expression, ExpressionKind};
use store::{LockWait, RowLock};
use syntax::ast::{self, ExprKind, QueryBody, SelectItem};

use crate::access::{WantedOrder, WantedRows};
use crate::bind::{Aliases, Binder, Block, Clause, CommonTable, error, plain_output};
use crate::numbered::Numbered;
use crate::plan::{
    Aggregate, Computed, IntoVariable, Limit, Node, OutputColumn, Query, SetOperation, Union,
};
use crate::{PlanError, not_supported};

mod extremes;
mod rewrite;
mod select;
mod sorting;

use self::sorting::SortWork;

/// Bytes of the stack that binding may use. The result is later run, copied and dropped by
/// recursions like binding's, all on stacks of 2 MiB.
const STACK_USE_MAX: usize = if cfg!(debug_assertions) {
    1 << 20
} else {
    384 << 10
};

/// A bound query: its nodes, and the description of its columns for the client.
#[derive(Debug)]
pub(crate) struct BoundQuery {
    pub(crate) query: Query,
    pub(crate) columns: Vec<OutputColumn>,
}

/// ORDER BY, LIMIT and the like around a query's body.
pub(crate) struct Tail<'q> {
    pub(crate) order_by: &'q [ast::OrderItem],
    pub(crate) limit: Option<&'q ast::Limit>,
    /// Rows beyond the limit are counted, too (`SQL_CALC_FOUND_ROWS`).
    pub(crate) counts_all: bool,
    /// FOR UPDATE and the like: the lock of the tables of the body's last SELECT.
    pub(crate) lock: Option<(RowLock, LockWait)>,
}

pub(crate) const NO_TAIL: Tail<'static> = Tail {
    order_by: &[],
    limit: None,
    counts_all: false,
    lock: None,
};

/// The variables to which the only row is assigned.
pub(crate) fn into_variables(
    into: Option<&ast::SelectInto>,
) -> Result<Vec<IntoVariable>, PlanError> {
    let Some(into) = into else {
        return Ok(Vec::new());
    };
    let ast::SelectInto::Variables(targets) = into else {
        return Err(not_supported("SELECT .. INTO OUTFILE"));
    };
    let name = |target: &ast::IntoTarget| match target {
        ast::IntoTarget::User(name) => Ok(IntoVariable::User(name.to_lowercase())),
        ast::IntoTarget::Slot(slot) => Ok(IntoVariable::Slot(stdx::to_usize(*slot))),
        ast::IntoTarget::Local(name) => Err(error(ER_SP_UNDECLARED_VAR, &[&name.text])),
    };
    targets.iter().map(name).collect()
}

impl Binder<'_> {
    /// A query inside another construct, with the outer slots that it reads.
    pub(crate) fn query(
        &mut self,
        query: &ast::Query,
    ) -> Result<(BoundQuery, Vec<usize>), PlanError> {
        self.check_stack()?;
        let lock = query.lock.as_ref().map(crate::select_lock).transpose()?;
        let common_count = self.common_tables.len();
        if let Some(with) = &query.with {
            if with.tables.iter().any(|table| !table.cycle.is_empty()) {
                return Err(not_supported("CYCLE"));
            }
            let tables = with.tables.iter().map(|table| {
                Rc::new(CommonTable {
                    table: table.clone(),
                    is_recursive: with.recursive,
                })
            });
            self.common_tables.extend(tables);
        }
        let tail = Tail {
            order_by: &query.order_by,
            limit: query.limit.as_ref(),
            counts_all: crate::limits::counts_all(&query.body),
            lock,
        };
        let bound = self.body(&query.body, &tail);
        self.common_tables.truncate(common_count);
        bound
    }

    /// Binds what is no part of the current query's own tables.
    pub(crate) fn with_inner_lock<T>(&mut self, bind: impl FnOnce(&mut Self) -> T) -> T {
        self.with_lock((self.inner_lock, LockWait::Wait), bind)
    }

    /// Binds tables that are locked in this way.
    fn with_lock<T>(&mut self, lock: (RowLock, LockWait), bind: impl FnOnce(&mut Self) -> T) -> T {
        let around = std::mem::replace(&mut self.lock, lock);
        let bound = bind(self);
        self.lock = around;
        bound
    }

    /// Error 1436 if queries are nested deeper than the stack allows. The parser bounds the depth
    /// of a text; WITH nests its queries beyond that.
    pub(crate) fn check_stack(&self) -> Result<(), PlanError> {
        let used = self.stack_start.abs_diff(stdx::stack_place());
        if used <= STACK_USE_MAX {
            return Ok(());
        }
        let what = "bytes of the stack are in use";
        Err(Box::new(ClientError::too_deep(used, STACK_USE_MAX, what)))
    }

    /// The body of a query with its tail.
    pub(crate) fn body(
        &mut self,
        body: &QueryBody,
        tail: &Tail<'_>,
    ) -> Result<(BoundQuery, Vec<usize>), PlanError> {
        let lock = match body {
            // The last member takes the tail's lock.
            QueryBody::Set { .. } => self.lock,
            _ => tail.lock.unwrap_or(self.lock),
        };
        self.with_lock(lock, |binder| binder.locked_body(body, tail))
    }

    /// The body of a query whose own tables are locked as [`Self::lock`] says.
    fn locked_body(
        &mut self,
        body: &QueryBody,
        tail: &Tail<'_>,
    ) -> Result<(BoundQuery, Vec<usize>), PlanError> {
        let has_tail = !tail.order_by.is_empty() || tail.limit.is_some();
        match body {
            QueryBody::Select(select) => self.in_block(|binder| binder.select(select, tail)),
            QueryBody::Nested(query) if !has_tail => self.query(query),
            QueryBody::Nested(query) => {
                let (inner, outer_slots) = self.query(query)?;
                let (bound, more) = self.in_block(|binder| binder.with_tail(inner, tail))?;
                Ok((bound, merged(outer_slots, more)))
            }
            QueryBody::Set {
                operator,
                first,
                rest,
            } => {
                let first = self.body(first, &NO_TAIL)?;
                self.set_operation(*operator, first, rest, tail)
            }
            QueryBody::Values(_) => Err(not_supported("VALUES as a query")),
        }
    }

    /// A chain of one operator. A UNION has many members, other operations have two.
    fn set_operation(
        &mut self,
        operator: ast::SetOperator,
        first: (BoundQuery, Vec<usize>),
        rest: &[ast::SetMember],
        tail: &Tail<'_>,
    ) -> Result<(BoundQuery, Vec<usize>), PlanError> {
        let operation = |all| match operator {
            ast::SetOperator::Union => SetOperation::Union,
            ast::SetOperator::Except => SetOperation::Except { all },
            ast::SetOperator::Intersect => SetOperation::Intersect { all },
        };
        if operator == ast::SetOperator::Union {
            return self.combined(operation(false), first, rest, tail);
        }
        let mut left = first;
        for (place, member) in rest.iter().enumerate() {
            let is_last = place + 1 == rest.len();
            let tail = if is_last { tail } else { &NO_TAIL };
            let operand = std::slice::from_ref(member);
            left = self.combined(operation(member.all), left, operand, tail)?;
        }
        Ok(left)
    }

    /// Binds within a new block. Also returns the outer slots that were read.
    pub(crate) fn in_block<T>(
        &mut self,
        bind: impl FnOnce(&mut Self) -> Result<T, PlanError>,
    ) -> Result<(T, Vec<usize>), PlanError> {
        self.blocks.push(Block::default());
        let bound = bind(self);
        let block = self.blocks.pop().expect("pushed above");
        Ok((bound?, block.outer_slots))
    }

    /// Several queries as one.
    fn combined(
        &mut self,
        operation: SetOperation,
        (first, mut outer_slots): (BoundQuery, Vec<usize>),
        rest: &[ast::SetMember],
        tail: &Tail<'_>,
    ) -> Result<(BoundQuery, Vec<usize>), PlanError> {
        let mut columns: Vec<OutputColumn> = first.columns;
        let mut queries = Vec::with_capacity(rest.len() + 1);
        queries.push(Rc::new(first.query));
        for (place, member) in rest.iter().enumerate() {
            let lock = tail.lock.filter(|_| place + 1 == rest.len());
            if lock.is_some() && matches!(member.body, QueryBody::Nested(_)) {
                return Err(error(
                    ER_WRONG_USAGE,
                    &[&"lock options", &"SELECT in brackets"],
                ));
            }
            let (bound, outer) = self.body(&member.body, &Tail { lock, ..NO_TAIL })?;
            outer_slots = merged(outer_slots, outer);
            if columns.len() != bound.columns.len() {
                return Err(error(ER_WRONG_NUMBER_OF_COLUMNS_IN_SELECT, &[]));
            }
            queries.push(Rc::new(bound.query));
        }
        let mut types = Vec::with_capacity(columns.len());
        for (place, column) in columns.iter_mut().enumerate() {
            let values = queries.iter().map(|query| &query.output[place]);
            let (column_type, nullable) = self.union_type(values)?;
            *column = plain_output(column.name.clone(), column_type.clone(), nullable);
            types.push(column_type);
        }
        let slot = self.add_slot(crate::plan::SlotShape::Computed(types.clone()));
        // A plain UNION also removes duplicates from all rows before it.
        let last_distinct = rest.iter().rposition(|member| !member.all);
        let distinct: Vec<bool> = (0..queries.len())
            .map(|place| last_distinct.is_some_and(|last| place <= last + 1))
            .collect();
        let output = columns
            .iter()
            .enumerate()
            .map(|(column, described)| {
                let place = ColumnPlace { slot, column };
                Expression::column(place, described.column_type.clone(), described.nullable)
            })
            .collect();
        let root = Node::Union(
            queries,
            Rc::new(Union {
                operation,
                slot,
                distinct,
                types,
            }),
        );
        let query = Query {
            root,
            output,
            dependent: Vec::new(),
        };
        let bound = BoundQuery { query, columns };
        let (bound, more) = self.in_block(|binder| binder.with_tail(bound, tail))?;
        Ok((bound, merged(outer_slots, more)))
    }

    /// ORDER BY and LIMIT over rows that are already computed.
    fn with_tail(&mut self, bound: BoundQuery, tail: &Tail<'_>) -> Result<BoundQuery, PlanError> {
        let BoundQuery { mut query, columns } = bound;
        if tail.order_by.is_empty() && tail.limit.is_none() {
            return Ok(BoundQuery { query, columns });
        }
        self.block().clause = Clause::Order;
        let aliases = columns
            .iter()
            .zip(&query.output)
            .map(|(column, output)| (column.name.clone(), output.clone()));
        self.block().aliases = Aliases::new(aliases);
        let mut keys = Vec::with_capacity(tail.order_by.len());
        for item in tail.order_by {
            keys.push((self.order_term(item, &query.output)?, item.descending));
        }
        let limit = self.limit(tail.limit, tail.counts_all)?;
        if !keys.is_empty() {
            let Query {
                root,
                mut output,
                dependent,
            } = query;
            let work = SortWork {
                limit: limit.clone(),
                dependent,
                ..SortWork::default()
            };
            let root = self.sorted(root, &mut output, &keys, work);
            query = Query {
                root,
                output,
                dependent: Vec::new(),
            };
        } else if let Some(limit) = limit {
            query.root = Node::Limit(Box::new(query.root), Rc::new(limit));
        }
        Ok(BoundQuery { query, columns })
    }

    /// A term of ORDER BY or GROUP BY: a position, an alias, or an expression.
    pub(crate) fn order_term(
        &mut self,
        item: &ast::OrderItem,
        output: &[Expression],
    ) -> Result<Expression, PlanError> {
        let clause = self.block().clause;
        if let Some(selected) = clause.at_position(&item.expr, output)? {
            return Ok(selected);
        }
        // A select item's name takes precedence over a column's only if it is the whole term.
        if let ExprKind::Column(name) = &item.expr.kind
            && self.block().clause == Clause::Order
            && let Some(expression) = self.alias_of(name)
        {
            return Ok(expression);
        }
        let term = self.term(&item.expr)?;
        Ok(self.selected_alike(&term, output).unwrap_or(term))
    }

    /// The first select item that is written like a term that varies. `SELECT RAND() .. ORDER BY
    /// RAND()` orders by what it shows.
    fn selected_alike(&self, term: &Expression, output: &[Expression]) -> Option<Expression> {
        if !self.varies(term) {
            return None;
        }
        let written = |expression: &Expression| {
            let mut expression = expression.clone();
            expression.forget_occurrences();
            expression
        };
        let wanted = written(term);
        let mut alike = output.iter().filter(|it| self.varies(it));
        alike.find(|it| written(it) == wanted).cloned()
    }

    /// `LIMIT`.
    pub(crate) fn limit(
        &mut self,
        limit: Option<&ast::Limit>,
        counts_all: bool,
    ) -> Result<Option<Limit>, PlanError> {
        let Some(limit) = limit else { return Ok(None) };
        if limit.with_ties {
            return Err(not_supported("WITH TIES"));
        }
        if limit.rows_examined.is_some() {
            return Err(not_supported("LIMIT ROWS EXAMINED"));
        }
        let count = limit
            .count
            .as_ref()
            .map(|count| self.term(count))
            .transpose()?;
        let offset = limit
            .offset
            .as_ref()
            .map(|offset| self.term(offset))
            .transpose()?;
        Ok(Some(Limit {
            count,
            offset,
            counts_all,
        }))
    }

    /// The order in which a table's rows should come, if an index may give it. A locking read with
    /// a LIMIT also wants the empty order: it says that no surplus rows are to be fetched.
    pub(crate) fn wanted_order(
        &self,
        order: &[(Expression, bool)],
        limit: Option<&Limit>,
    ) -> Option<WantedOrder> {
        let is_limited = limit.is_some();
        let locks_some = is_limited && self.lock.0 != RowLock::None;
        if order.is_empty() && !locks_some {
            return None;
        }
        let columns: Option<Vec<_>> = order
            .iter()
            .map(|(key, descending)| Some((key.as_column()?, *descending)))
            .collect();
        let rows = match is_limited {
            true => WantedRows::Limited,
            false => WantedRows::All,
        };
        Some(WantedOrder {
            columns: columns?,
            rows,
            row_count: limit.map_or(f64::INFINITY, |limit| self.rows_until(limit)),
        })
    }

    /// True if rows are locked as they are read, and reading ends at a LIMIT.
    pub(crate) fn locks_some(&self, wanted: &WantedOrder, is_ordered: bool) -> bool {
        let ends_early = wanted.columns.is_empty() || is_ordered;
        let is_limited = matches!(wanted.rows, WantedRows::Limited | WantedRows::Groups);
        ends_early && is_limited && self.lock.0 != RowLock::None
    }
}

fn merged(mut a: Vec<usize>, b: Vec<usize>) -> Vec<usize> {
    for slot in b {
        if !a.contains(&slot) {
            a.push(slot);
        }
    }
    a
}

/// The members of a chain of UNIONs, each with whether the UNION before it drops duplicates.
pub(crate) fn union_members(body: &QueryBody) -> Vec<(&QueryBody, bool)> {
    match body {
        QueryBody::Set {
            operator: ast::SetOperator::Union,
            first,
            rest,
        } => {
            let rest = rest.iter().map(|member| (&member.body, !member.all));
            std::iter::once((&**first, false)).chain(rest).collect()
        }
        _ => vec![(body, false)],
    }
}
