//! Aggregates and windows.

use crate::ast::{Aggregate, AggregateFunction, Expr, ExprKind, Frame, FrameBound, Over, Window};
use crate::keyword::Keyword as K;
use crate::parse::cursor::{Cursor, Parsed};
use crate::token::{Kind, Span};

impl Cursor<'_> {
    #[inline(never)]
    pub(crate) fn aggregate(&mut self, start: Span, function: AggregateFunction) -> Parsed<Expr> {
        self.expect_kind(Kind::LeftParen)?;
        let takes_distinct = matches!(
            function,
            AggregateFunction::Avg
                | AggregateFunction::Count
                | AggregateFunction::GroupConcat
                | AggregateFunction::JsonArrayAgg
                | AggregateFunction::Max
                | AggregateFunction::Min
                | AggregateFunction::Sum
        );
        let distinct = takes_distinct && self.eat(K::Distinct);
        if !distinct {
            self.eat(K::All);
        }
        let is_star =
            function == AggregateFunction::Count && !distinct && self.eat_kind(Kind::Star);
        let arguments = if is_star {
            Vec::new()
        } else if takes_list(function, distinct) {
            self.list(Self::expr)?
        } else {
            vec![self.expr()?]
        };
        let mut aggregate = Aggregate {
            function,
            distinct,
            arguments,
            order_by: Vec::new(),
            separator: None,
            limit: None,
            over: None,
        };
        let is_list = matches!(
            function,
            AggregateFunction::GroupConcat | AggregateFunction::JsonArrayAgg
        );
        if is_list {
            aggregate.order_by = self.order_by()?;
            if self.eat(K::Separator) {
                aggregate.separator = Some(self.string()?);
            }
            aggregate.limit = self.limit()?;
        }
        self.expect_kind(Kind::RightParen)?;
        let is_percentile = matches!(
            function,
            AggregateFunction::PercentileCont | AggregateFunction::PercentileDisc
        );
        if is_percentile {
            self.expect_all(&[K::Within, K::Group])?;
            self.expect_kind(Kind::LeftParen)?;
            aggregate.order_by = self.order_by()?;
            self.expect_kind(Kind::RightParen)?;
        }
        aggregate.over = self.over()?;
        Ok(self.made(start, ExprKind::Aggregate(Box::new(aggregate))))
    }

    #[inline(never)]
    pub(crate) fn over(&mut self) -> Parsed<Option<Over>> {
        if !self.eat(K::Over) {
            return Ok(None);
        }
        if self.kind() != Kind::LeftParen {
            return Ok(Some(Over::Named(self.ident()?)));
        }
        Ok(Some(Over::Window(self.window()?)))
    }

    /// `( .. )` of a window.
    #[inline(never)]
    pub(crate) fn window(&mut self) -> Parsed<Window> {
        self.expect_kind(Kind::LeftParen)?;
        let mut window = Window::default();
        let is_base = Self::is_name(self.peek());
        if is_base {
            window.base = Some(self.ident()?);
        }
        if self.eat_all(&[K::Partition, K::By]) {
            window.partition_by = self.list(Self::expr)?;
        }
        window.order_by = self.order_by()?;
        if let Some(word) = self.eat_any(&[K::Rows, K::Range]) {
            window.frame = Some(self.frame(word == K::Rows)?);
        }
        self.expect_kind(Kind::RightParen)?;
        Ok(window)
    }

    #[inline(never)]
    fn frame(&mut self, is_rows: bool) -> Parsed<Frame> {
        let (start, end) = if self.eat(K::Between) {
            let start = self.frame_bound()?;
            self.expect(K::And)?;
            (start, Some(self.frame_bound()?))
        } else {
            (self.frame_bound()?, None)
        };
        let mut exclude = None;
        if self.eat(K::Exclude) {
            let from = self.start();
            if !(self.eat_all(&[K::Current, K::Row]) || self.eat_all(&[K::No, K::Others])) {
                match self.eat_any(&[K::Group, K::Ties]) {
                    Some(_) => {}
                    None => return Err(self.fail()),
                }
            }
            exclude = Some(self.upper(self.span_from(from)));
        }
        Ok(Frame {
            is_rows,
            start,
            end,
            exclude,
        })
    }

    fn frame_bound(&mut self) -> Parsed<FrameBound> {
        if self.eat_all(&[K::Current, K::Row]) {
            return Ok(FrameBound::CurrentRow);
        }
        let distance = if self.eat(K::Unbounded) {
            None
        } else {
            Some(Box::new(self.bit_level()?))
        };
        match self.eat_any(&[K::Preceding, K::Following]) {
            Some(K::Preceding) => Ok(FrameBound::Preceding(distance)),
            Some(_) => Ok(FrameBound::Following(distance)),
            None => Err(self.fail()),
        }
    }
}

/// Whether more than one argument may follow; all others take one.
fn takes_list(function: AggregateFunction, is_distinct: bool) -> bool {
    match function {
        AggregateFunction::Count => is_distinct,
        AggregateFunction::GroupConcat
        | AggregateFunction::JsonArrayAgg
        | AggregateFunction::JsonObjectAgg => true,
        _ => false,
    }
}
