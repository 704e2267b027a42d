//! Queries.

mod table_ref;

use super::cursor::{Cursor, DEPTH_MAX, Parsed};
use super::error::{RoutineError, SyntaxErrorKind};
use super::scope::routine_fail;
use crate::ast::{
    CommonTable, Expr, ExprKind, FileFormat, Ident, IntoTarget, Limit, Literal, LockWait,
    OrderItem, Query, QueryBody, RowLock, Select, SelectInto, SelectItem, SelectOptions, SetMember,
    SetOperator, With,
};
use crate::keyword::Keyword as K;
use crate::token::{Kind, Span};

impl Cursor<'_> {
    /// An expression without predicates and logic, where `IN` or `AND` may follow it.
    pub(super) fn bit_level(&mut self) -> Parsed<Expr> {
        let (expr, height) = self.deeper(|this| this.bit_expr(0))?;
        self.check_height(height)?;
        Ok(expr)
    }

    /// Whether the next `(` opens a query, not an expression or a join.
    pub(super) fn is_query_paren(&mut self) -> bool {
        self.kind() == Kind::LeftParen && self.is_query_paren_at(0)
    }

    /// Looks into parentheses up to the first word. A query in its own parentheses may be an
    /// operand of a set operation; else what follows it makes it an expression.
    fn is_query_paren_at(&mut self, open: usize) -> bool {
        let mut first = open + 1;
        while self.kind_at(first) == Kind::LeftParen {
            first += 1;
            if DEPTH_MAX as usize + open < first {
                // Too deep for a query and for an expression; the latter fails with that error.
                return false;
            }
        }
        if !matches!(
            self.keyword_at(first),
            Some(K::Select | K::With | K::Values)
        ) {
            return false;
        }
        if self.keyword_at(first) == Some(K::Values) && !self.is_values_query_at(first) {
            return false;
        }
        let mut inner = first;
        while open + 1 < inner {
            inner -= 1;
            let behind = self.behind_parens(inner);
            let token = self.peek_at(behind);
            let is_query = match token.kind {
                Kind::RightParen => true,
                _ => matches!(
                    token.keyword,
                    Some(
                        K::Union
                            | K::Except
                            | K::Intersect
                            | K::Order
                            | K::Limit
                            | K::Offset
                            | K::Fetch
                            | K::For
                            | K::Lock
                            | K::Into
                    )
                ),
            };
            if !is_query {
                return false;
            }
        }
        true
    }

    /// Whether `VALUES (` is a query, not the function `VALUES(column)`.
    fn is_values_query_at(&mut self, first: usize) -> bool {
        if self.kind_at(first + 1) != Kind::LeftParen {
            return false;
        }
        let behind = self.behind_parens(first + 1);
        match self.kind_at(behind) {
            Kind::RightParen => {
                let is_column = Self::is_name(self.peek_at(first + 2));
                !(is_column && behind == first + 4)
            }
            Kind::Comma => self.kind_at(behind + 1) == Kind::LeftParen,
            _ => matches!(
                self.keyword_at(behind),
                Some(K::Union | K::Except | K::Intersect | K::Order | K::Limit)
            ),
        }
    }

    /// `( query )`.
    pub(super) fn paren_query(&mut self) -> Parsed<Query> {
        self.expect_kind(Kind::LeftParen)?;
        let query = self.query()?;
        self.expect_kind(Kind::RightParen)?;
        Ok(query)
    }

    /// `( query )` as a part of something else.
    pub(super) fn subquery(&mut self) -> Parsed<Query> {
        self.subquery_depth += 1;
        let query = self.paren_query();
        self.subquery_depth -= 1;
        query
    }

    /// A query with all clauses around it.
    pub(super) fn query(&mut self) -> Parsed<Query> {
        self.deeper(Self::query_inner)
    }

    fn query_inner(&mut self) -> Parsed<Query> {
        let start = self.start();
        let with = self.with_clause()?;
        let mut early_into = None;
        let body = self.query_body(&mut early_into)?;
        let order_by = self.order_by()?;
        let limit = self.limit()?;
        let mut into = early_into;
        self.clause_into(&mut into)?;
        let lock = self.row_lock()?;
        self.clause_into(&mut into)?;
        let query = Query {
            with,
            body,
            order_by,
            limit,
            into,
            lock,
            span: self.span_from(start),
        };
        Ok(unwrapped(query))
    }

    #[inline(never)]
    fn with_clause(&mut self) -> Parsed<Option<With>> {
        if !self.eat(K::With) {
            return Ok(None);
        }
        let recursive = self.eat(K::Recursive);
        let tables = self.list(Self::common_table)?;
        Ok(Some(With { recursive, tables }))
    }

    fn common_table(&mut self) -> Parsed<CommonTable> {
        let name = self.ident()?;
        let columns = if self.kind() == Kind::LeftParen {
            self.ident_list()?
        } else {
            Vec::new()
        };
        self.expect(K::As)?;
        let query = self.subquery()?;
        let mut cycle = Vec::new();
        if self.eat(K::Cycle) {
            cycle = self.list(Self::ident)?;
            self.expect(K::Restrict)?;
        }
        Ok(CommonTable {
            name,
            columns,
            query,
            cycle,
        })
    }

    /// Set operations, `INTERSECT` before the others, all to the left.
    fn query_body(&mut self, into: &mut Option<SelectInto>) -> Parsed<QueryBody> {
        let mut left = self.intersection(into)?;
        let mut height = self.height;
        while let Some(word) = self.eat_any(&[K::Union, K::Except]) {
            let operator = if word == K::Union {
                SetOperator::Union
            } else {
                SetOperator::Except
            };
            let all = self.set_quantifier();
            let body = self.intersection(into)?;
            // A UNION of many is planned as one; each other operation contains the one before it.
            if !is_union(&left) || operator != SetOperator::Union {
                height += 1;
                self.check_height(height)?;
            }
            left = with_member(left, operator, SetMember { all, body });
        }
        Ok(left)
    }

    fn intersection(&mut self, into: &mut Option<SelectInto>) -> Parsed<QueryBody> {
        let mut left = self.query_operand(into)?;
        let mut height = self.height;
        while self.eat(K::Intersect) {
            let all = self.set_quantifier();
            let body = self.query_operand(into)?;
            height += 1;
            self.check_height(height)?;
            left = with_member(left, SetOperator::Intersect, SetMember { all, body });
        }
        Ok(left)
    }

    fn set_quantifier(&mut self) -> bool {
        let all = self.eat(K::All);
        if !all {
            self.eat(K::Distinct);
        }
        all
    }

    #[inline(never)]
    fn query_operand(&mut self, into: &mut Option<SelectInto>) -> Parsed<QueryBody> {
        if self.kind() == Kind::LeftParen {
            return Ok(QueryBody::Nested(Box::new(self.paren_query()?)));
        }
        if self.eat(K::Values) {
            return Ok(QueryBody::Values(
                self.list(|this| this.paren_list(Self::expr))?,
            ));
        }
        if self.is(K::Select) {
            return Ok(QueryBody::Select(Box::new(self.select(into)?)));
        }
        Err(self.fail())
    }

    #[inline(never)]
    fn select(&mut self, into: &mut Option<SelectInto>) -> Parsed<Select> {
        let start = self.bump().span;
        let options = self.select_options()?;
        let items = self.list_within(SyntaxErrorKind::TooManyColumns, Self::select_item)?;
        self.clause_into(into)?;
        let mut select = Select {
            options,
            items,
            from: Vec::new(),
            condition: None,
            group_by: Vec::new(),
            with_rollup: false,
            having: None,
            windows: Vec::new(),
            procedure: None,
            span: start,
        };
        if self.eat(K::From) && !self.eat(K::Dual) {
            select.from = self.list(Self::table_ref)?;
        }
        self.select_tail(&mut select)?;
        select.span = self.span_from(start);
        Ok(select)
    }

    #[inline(never)]
    fn select_tail(&mut self, select: &mut Select) -> Parsed<()> {
        if self.eat(K::Where) {
            select.condition = Some(self.expr()?);
        }
        if self.eat_all(&[K::Group, K::By]) {
            select.group_by = self.list(Self::order_item)?;
            select.with_rollup = self.eat_all(&[K::With, K::Rollup]);
        }
        if self.eat(K::Having) {
            select.having = Some(self.expr()?);
        }
        if self.is(K::Window) {
            self.bump();
            select.windows = self.list(|this| {
                let name = this.ident()?;
                this.expect(K::As)?;
                Ok((name, this.window()?))
            })?;
        }
        if self.is(K::Procedure) {
            let start = self.bump().span;
            self.ident()?;
            self.skip_parens()?;
            let span = self.span_from(start);
            select.procedure = Some(crate::ast::Refused {
                name: "PROCEDURE".into(),
                span,
            });
        }
        Ok(())
    }

    fn select_options(&mut self) -> Parsed<SelectOptions> {
        let mut options = SelectOptions::default();
        let mut quantifiers = 0;
        while let Some(word) = self.keyword() {
            match word {
                K::All => quantifiers |= 1,
                K::Distinct | K::Distinctrow => {
                    quantifiers |= 2;
                    options.distinct = true;
                }
                K::SqlCalcFoundRows => options.calc_found_rows = true,
                K::StraightJoin => options.straight_join = true,
                K::HighPriority => options.high_priority = true,
                K::SqlSmallResult => options.small_result = true,
                K::SqlBigResult => options.big_result = true,
                K::SqlBufferResult => options.buffer_result = true,
                K::SqlCache => options.query_cache = Some(true),
                K::SqlNoCache => options.query_cache = Some(false),
                _ => break,
            }
            if quantifiers == 3 {
                return Err(self.fail());
            }
            self.bump();
        }
        Ok(options)
    }

    #[inline(never)]
    pub(super) fn select_item(&mut self) -> Parsed<SelectItem> {
        let start = self.start();
        if let Some(item) = self.wildcard()? {
            return Ok(item);
        }
        let expr = self.expr()?;
        let span = self.span_from(start);
        let alias = self.select_alias()?;
        Ok(SelectItem::Expr { expr, alias, span })
    }

    /// `*`, `t.*`, `s.t.*`.
    #[inline(never)]
    fn wildcard(&mut self) -> Parsed<Option<SelectItem>> {
        let start = self.start();
        if self.eat_kind(Kind::Star) {
            let span = self.span_from(start);
            return Ok(Some(SelectItem::Wildcard {
                schema: None,
                table: None,
                span,
            }));
        }
        if !Self::is_name(self.peek()) || self.kind_at(1) != Kind::Dot {
            return Ok(None);
        }
        if self.kind_at(2) == Kind::Star {
            let table = Some(self.ident()?);
            self.skip(2);
            let span = self.span_from(start);
            return Ok(Some(SelectItem::Wildcard {
                schema: None,
                table,
                span,
            }));
        }
        if self.kind_at(3) == Kind::Dot && self.kind_at(4) == Kind::Star {
            let schema = Some(self.ident()?);
            self.skip(1);
            let table = Some(self.ident()?);
            self.skip(2);
            let span = self.span_from(start);
            return Ok(Some(SelectItem::Wildcard {
                schema,
                table,
                span,
            }));
        }
        Ok(None)
    }

    fn select_alias(&mut self) -> Parsed<Option<Ident>> {
        if self.eat(K::As) {
            return self.ident_or_string().map(Some);
        }
        let token = self.peek();
        let is_alias = token.kind == Kind::String
            || (Self::is_name(token) && token.keyword != Some(K::Sounds));
        if is_alias {
            self.ident_or_string().map(Some)
        } else {
            Ok(None)
        }
    }

    /// `ORDER BY ..`, or nothing.
    #[inline(never)]
    pub(super) fn order_by(&mut self) -> Parsed<Vec<OrderItem>> {
        if !self.is(K::Order) {
            return Ok(Vec::new());
        }
        self.bump();
        self.expect(K::By)?;
        self.list(Self::order_item)
    }

    pub(super) fn order_item(&mut self) -> Parsed<OrderItem> {
        let expr = self.expr()?;
        let descending = self.eat(K::Desc);
        if !descending {
            self.eat(K::Asc);
        }
        Ok(OrderItem { expr, descending })
    }

    /// `LIMIT ..` or `OFFSET .. FETCH ..`, or nothing.
    #[inline(never)]
    pub(super) fn limit(&mut self) -> Parsed<Option<Limit>> {
        if self.eat(K::Limit) {
            return self.limit_tail().map(Some);
        }
        if !self.is_any(&[K::Offset, K::Fetch]) {
            return Ok(None);
        }
        let mut limit = Limit {
            count: None,
            offset: None,
            with_ties: false,
            rows_examined: None,
        };
        if self.eat(K::Offset) {
            limit.offset = Some(self.limit_number()?);
            if self.eat_any(&[K::Row, K::Rows]).is_none() {
                return Err(self.fail());
            }
        }
        if self.eat(K::Fetch) {
            if self.eat_any(&[K::First, K::Next]).is_none() {
                return Err(self.fail());
            }
            limit.count = if self.is_any(&[K::Row, K::Rows]) {
                let kind = ExprKind::Literal(Literal::Integer(1));
                Some(Expr {
                    kind,
                    span: Span::default(),
                })
            } else {
                Some(self.limit_number()?)
            };
            if self.eat_any(&[K::Row, K::Rows]).is_none() {
                return Err(self.fail());
            }
            limit.with_ties = self.eat_all(&[K::With, K::Ties]);
            if !limit.with_ties {
                self.expect(K::Only)?;
            }
        }
        Ok(Some(limit))
    }

    /// `LIMIT n` of a statement that changes rows, without an offset.
    pub(super) fn limit_count(&mut self) -> Parsed<Option<Limit>> {
        let has_offset = self.is(K::Limit) && self.kind_at(2) == Kind::Comma;
        if has_offset {
            self.skip(3);
            return Err(self.fail());
        }
        if self.is(K::Limit) && self.keyword_at(2) == Some(K::Offset) {
            self.skip(2);
            return Err(self.fail());
        }
        self.limit()
    }

    fn limit_tail(&mut self) -> Parsed<Limit> {
        let mut limit = Limit {
            count: None,
            offset: None,
            with_ties: false,
            rows_examined: None,
        };
        if !self.is(K::Rows) {
            limit.count = Some(self.limit_number()?);
            if self.eat_kind(Kind::Comma) {
                limit.offset = limit.count.take();
                limit.count = Some(self.limit_number()?);
            } else if self.eat(K::Offset) {
                limit.offset = Some(self.limit_number()?);
            }
        }
        if self.eat(K::Rows) {
            self.expect(K::Examined)?;
            limit.rows_examined = Some(self.limit_number()?);
        }
        Ok(limit)
    }

    /// Digits, a parameter, or a routine's variable.
    fn limit_number(&mut self) -> Parsed<Expr> {
        match self.kind() {
            Kind::Integer | Kind::Parameter => self.primary(),
            Kind::Word | Kind::Quoted if Self::is_name(self.peek()) => {
                let start = self.start();
                let column = self.column_name()?;
                let number = self.column_or_local(start, column);
                if matches!(number.kind, ExprKind::Column(_)) {
                    return Err(routine_fail(RoutineError::UndeclaredVariable, start));
                }
                Ok(number)
            }
            _ => Err(self.fail()),
        }
    }

    #[inline(never)]
    fn row_lock(&mut self) -> Parsed<Option<RowLock>> {
        let exclusive = self.is(K::For);
        if exclusive {
            self.bump();
            self.expect(K::Update)?;
        } else if !self.eat_all(&[K::Lock, K::In, K::Share, K::Mode]) {
            return Ok(None);
        }
        let wait = self.lock_wait()?;
        if wait == LockWait::Default && self.eat_all(&[K::Skip, K::Locked]) {
            return Ok(Some(RowLock {
                exclusive,
                wait: LockWait::Skip,
            }));
        }
        Ok(Some(RowLock { exclusive, wait }))
    }

    /// `WAIT n` and `NOWAIT` of the statement, for metadata locks.
    pub(super) fn definition_wait(&mut self) -> Parsed<()> {
        match self.lock_wait()? {
            // Another table of RENAME may have said it.
            LockWait::Default => {}
            wait => self.definition_wait = wait,
        }
        Ok(())
    }

    /// `WAIT n` and `NOWAIT`.
    fn lock_wait(&mut self) -> Parsed<LockWait> {
        if self.eat(K::Nowait) {
            return Ok(LockWait::No);
        }
        if self.eat(K::Wait) {
            return Ok(LockWait::Seconds(self.unsigned()?));
        }
        Ok(LockWait::Default)
    }

    #[inline(never)]
    fn clause_into(&mut self, into: &mut Option<SelectInto>) -> Parsed<()> {
        if !self.is(K::Into) || into.is_some() {
            return Ok(());
        }
        if 0 < self.subquery_depth {
            return Err(self.fail());
        }
        self.bump();
        *into = Some(if self.eat(K::Outfile) {
            let path = self.string()?;
            let charset = self.charset_clause()?;
            SelectInto::Outfile {
                path,
                charset,
                format: self.file_format()?,
            }
        } else if self.eat(K::Dumpfile) {
            SelectInto::Dumpfile(self.string()?)
        } else {
            SelectInto::Variables(self.list(Self::target_variable)?)
        });
        Ok(())
    }

    pub(super) fn target_variable(&mut self) -> Parsed<IntoTarget> {
        if self.kind() == Kind::UserVariable {
            return Ok(IntoTarget::User(self.variable_name()?));
        }
        let name = self.ident()?;
        if self.kind() == Kind::Dot {
            self.bump();
            let field = self.ident()?;
            let unknown = routine_fail(RoutineError::UndeclaredVariable, name.span);
            let scope = self.scope_of().map_err(|_| unknown)?;
            let slot = scope.field(&name.text, &field);
            return slot.map(IntoTarget::Slot).ok_or(unknown);
        }
        Ok(match self.local_target(&name)? {
            Some(slot) => IntoTarget::Slot(slot),
            None => IntoTarget::Local(name),
        })
    }

    /// `FIELDS ..` and `LINES ..`.
    pub(super) fn file_format(&mut self) -> Parsed<FileFormat> {
        let mut format = FileFormat::default();
        if self.eat_any(&[K::Fields, K::Columns]).is_some() {
            while self.is_any(&[K::Terminated, K::Optionally, K::Enclosed, K::Escaped]) {
                if self.eat_all(&[K::Terminated, K::By]) {
                    format.field_end = Some(self.string_literal()?);
                } else if self.eat_all(&[K::Escaped, K::By]) {
                    format.escape = Some(self.string_literal()?);
                } else {
                    format.quote_optional = self.eat(K::Optionally);
                    self.expect_all(&[K::Enclosed, K::By])?;
                    format.field_quote = Some(self.string_literal()?);
                }
            }
        }
        if self.eat(K::Lines) {
            while self.is_any(&[K::Terminated, K::Starting]) {
                if self.eat_all(&[K::Terminated, K::By]) {
                    format.line_end = Some(self.string_literal()?);
                } else {
                    self.expect_all(&[K::Starting, K::By])?;
                    format.line_start = Some(self.string_literal()?);
                }
            }
        }
        Ok(format)
    }

    /// A string, or bytes in digits.
    pub(super) fn string_literal(&mut self) -> Parsed<Vec<u8>> {
        match self.literal()? {
            Some(Literal::String { value, .. } | Literal::Hex { value, .. }) => Ok(value),
            Some(Literal::Bit { value, .. }) => Ok(value),
            _ => Err(self.fail()),
        }
    }
}

fn is_union(body: &QueryBody) -> bool {
    matches!(body, QueryBody::Set { operator, .. } if *operator == SetOperator::Union)
}

/// A body and one operand more.
fn with_member(mut body: QueryBody, operator: SetOperator, member: SetMember) -> QueryBody {
    if let QueryBody::Set {
        operator: its,
        rest,
        ..
    } = &mut body
        && *its == operator
    {
        rest.push(member);
        return body;
    }
    QueryBody::Set {
        operator,
        first: Box::new(body),
        rest: vec![member],
    }
}

/// `((SELECT 1))` is `SELECT 1`.
fn unwrapped(query: Query) -> Query {
    let is_bare = query.with.is_none()
        && query.order_by.is_empty()
        && query.limit.is_none()
        && query.into.is_none()
        && query.lock.is_none();
    match query.body {
        QueryBody::Nested(inner) if is_bare => *inner,
        body => Query { body, ..query },
    }
}
