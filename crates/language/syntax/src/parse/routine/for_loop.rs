//! Cursors with parameters, and `FOR` loops over integers and over rows.

use std::ops::Range;
use std::rc::Rc;

use crate::ast::{
    CursorRange, Direction, ExprKind, Ident, IntegerRange, LoopKind, LoopStep, OpenCursor,
    ProgramExpr, ProgramStatement, RowVariable, StatementKind, Step, StepKind, TypeName,
};
use crate::keyword::Keyword as K;
use crate::parse::cursor::{Cursor, Parsed};
use crate::parse::definition::data_type::plain;
use crate::parse::error::{RoutineError, SyntaxErrorKind};
use crate::parse::scope::{Meaning, routine_fail};
use crate::token::{Kind, Span};

impl Cursor<'_> {
    /// `(a t, b t)` of a cursor. Declares them and returns their variables.
    pub(crate) fn cursor_parameters(&mut self) -> Parsed<Range<u32>> {
        let scope = self.scope_of()?;
        let own_start = scope.name_count();
        let outer_start = std::mem::replace(&mut scope.block_start, own_start);
        let first = scope.variable_count();
        if self.eat_kind(Kind::LeftParen) {
            self.list(Self::cursor_parameter)?;
            self.expect_kind(Kind::RightParen)?;
        }
        let scope = self.scope_of()?;
        scope.block_start = outer_start;
        Ok(first..scope.variable_count())
    }

    fn cursor_parameter(&mut self) -> Parsed<()> {
        self.eat(K::In);
        let name = self.ident()?;
        let data_type = Rc::new(self.data_type()?);
        let scope = self.scope_of()?;
        if scope.has_declared(&name.text, |meaning| {
            matches!(meaning, Meaning::Variable(_))
        }) {
            return Err(routine_fail(RoutineError::ParameterAgain, name.span));
        }
        let text = name.text.clone();
        let slot = scope.add_variable(name, Some(data_type), Direction::In);
        scope.declare(&text, Meaning::Variable(slot));
        Ok(())
    }

    /// The query of a cursor.
    pub(crate) fn cursor_query(&mut self) -> Parsed<ProgramStatement> {
        let (start, unexpected) = (self.start(), self.fail());
        let statement = self.program_statement()?;
        let StatementKind::Query(query) = &statement.statement.kind else {
            return Err(unexpected);
        };
        if query.into.is_some() {
            return Err(routine_fail(RoutineError::CursorInto, start));
        }
        Ok(statement)
    }

    /// The cursor with this name.
    pub(crate) fn known_cursor(&mut self) -> Parsed<u32> {
        let name = self.ident()?;
        let cursor = self.scope_of()?.cursor(&name.text);
        cursor.ok_or_else(|| routine_fail(RoutineError::UndeclaredCursor, name.span))
    }

    /// `c(a, b)` after OPEN.
    pub(crate) fn open_cursor(&mut self) -> Parsed<OpenCursor> {
        let start = self.start();
        let cursor = self.known_cursor()?;
        let mut values: Vec<ProgramExpr> = Vec::new();
        if self.eat_kind(Kind::LeftParen) {
            values = self.list(Self::program_expr)?;
            self.expect_kind(Kind::RightParen)?;
        }
        self.opened(cursor, values, start)
    }

    /// A cursor with as many values as it has parameters.
    fn opened(&mut self, cursor: u32, values: Vec<ProgramExpr>, start: Span) -> Parsed<OpenCursor> {
        let scope = self.scope_of()?;
        let number = usize::try_from(cursor).unwrap_or(usize::MAX);
        let parameters = scope.cursor_parameters.get(number).cloned();
        let parameters = parameters.unwrap_or_default();
        if parameters.len() != values.len() {
            return Err(routine_fail(RoutineError::CursorParameterCount, start));
        }
        Ok(OpenCursor {
            cursor,
            arguments: parameters.zip(values).collect(),
        })
    }

    /// `FOR i IN .. DO .. END FOR`; label and first word have been consumed.
    pub(crate) fn for_behind_word(&mut self, label: Option<Ident>) -> Parsed<StepKind> {
        let name = self.ident()?;
        self.expect(K::In)?;
        let outer_names = self.scope_of()?.name_count();
        if !self.is_cursor_next() {
            let range = Box::new(self.integer_range(name)?);
            let (number, body) = self.for_body(label.as_ref())?;
            self.scope_of()?.forget(outer_names);
            self.leave_label(label.as_ref())?;
            return Ok(StepKind::Loop(Box::new(LoopStep {
                label: number,
                kind: LoopKind::Range(range),
                body,
            })));
        }
        let is_own = self.kind() == Kind::LeftParen;
        let open = if is_own {
            self.bump();
            let query = self.cursor_query()?;
            self.expect_kind(Kind::RightParen)?;
            let cursor = self.scope_of()?.add_cursor(query, 0..0);
            OpenCursor {
                cursor,
                arguments: Vec::new(),
            }
        } else {
            self.named_rows()?
        };
        let row = self.scope_of()?.add_row(name);
        let (number, body) = self.for_body(label.as_ref())?;
        let scope = self.scope_of()?;
        scope.forget(outer_names);
        let row: Option<RowVariable> = scope.rows.get(row).map(|row| row.variable.clone());
        let row = match row {
            Some(row) => row,
            None => return Err(self.fail()),
        };
        self.leave_label(label.as_ref())?;
        Ok(StepKind::Loop(Box::new(LoopStep {
            label: number,
            kind: LoopKind::Rows(Box::new(CursorRange { open, is_own, row })),
            body,
        })))
    }

    /// `c` and `c(..)` of a FOR loop: here the parentheses may be empty, and a name alone could
    /// have been a variable.
    fn named_rows(&mut self) -> Parsed<OpenCursor> {
        let start = self.start();
        if self.kind_at(1) == Kind::LeftParen && self.kind_at(2) == Kind::RightParen {
            let cursor = self.known_cursor()?;
            self.skip(2);
            return self.opened(cursor, Vec::new(), start);
        }
        let is_alone = self.keyword_at(1) == Some(K::Do);
        self.open_cursor().map_err(|fail| match fail.kind {
            SyntaxErrorKind::Routine(RoutineError::UndeclaredCursor) if is_alone => {
                routine_fail(RoutineError::UndeclaredVariable, start)
            }
            _ => fail,
        })
    }

    /// True before `c DO`, `c(..) DO` and `(SELECT ..) DO`.
    fn is_cursor_next(&mut self) -> bool {
        let behind = match self.kind() {
            Kind::LeftParen if self.is_query_paren() => return true,
            Kind::LeftParen => self.behind_parens(0),
            _ if !Self::is_name(self.peek()) => return false,
            _ if self.kind_at(1) == Kind::LeftParen => self.behind_parens(1),
            _ => 1,
        };
        self.keyword_at(behind) == Some(K::Do)
    }

    /// `[REVERSE] a..b`; the name is declared after it.
    fn integer_range(&mut self, name: Ident) -> Parsed<IntegerRange> {
        let is_reverse = self.is(K::Reverse) && self.kind_at(1) != Kind::DotDot;
        if is_reverse {
            self.bump();
        }
        let lower = self.bound()?;
        self.expect_kind(Kind::DotDot)?;
        let upper = self.bound()?;
        let (first, last) = match is_reverse {
            true => (upper, lower),
            false => (lower, upper),
        };
        let hidden = Ident {
            text: "[target_bound]".to_owned(),
            span: name.span,
        };
        let big = Rc::new(plain(TypeName::BigInt));
        let scope = self.scope_of()?;
        let text = name.text.clone();
        let index = scope.add_variable(name, Some(Rc::clone(&big)), Direction::In);
        let limit = scope.add_variable(hidden, Some(big), Direction::In);
        scope.declare(&text, Meaning::Variable(index));
        Ok(IntegerRange {
            index,
            first,
            limit,
            last,
            is_reverse,
        })
    }

    /// A bound: a name alone is a variable.
    fn bound(&mut self) -> Parsed<ProgramExpr> {
        let start = self.start();
        let bound = self.program_expr()?;
        if matches!(bound.expr.kind, ExprKind::Column(_)) {
            return Err(routine_fail(RoutineError::UndeclaredVariable, start));
        }
        Ok(bound)
    }

    /// `DO .. END FOR`, with the label's number.
    fn for_body(&mut self, label: Option<&Ident>) -> Parsed<(Option<u32>, Vec<Step>)> {
        self.expect(K::Do)?;
        let number = self.enter(label, true)?;
        let body = self.some_steps()?;
        self.expect_all(&[K::End, K::For])?;
        Ok((number, body))
    }
}
