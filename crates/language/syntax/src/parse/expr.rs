//! Expressions: MariaDB's precedence table.
//!
//! From loose to tight: `:=`; `OR ||`; `XOR`; `AND &&`; `NOT`; `= <=> <> < > IS`; `BETWEEN`;
//! `LIKE REGEXP IN`; `|`; `&`; `<< >>`; `+ -`; `* / % DIV MOD`; `^`; `||` as concatenation; unary
//! `- + ~ ! BINARY`; `COLLATE`. Source: MariaDB manual, "Operator Precedence", checked with
//! `EXPLAIN EXTENDED`.
//!
//! Rules also return the height of their tree. So chains, whose parsing does not recurse, have a
//! bounded height, too.

mod aggregate;
mod builtin_call;
mod function;
mod literal;

use settings::SqlMode;

use super::cursor::{Cursor, Parsed};
use crate::ast::{
    BinaryOperator, CastType, ColumnName, Expr, ExprKind, Function, Ident, IntervalUnit,
    UnaryOperator,
};
use crate::keyword::Keyword as K;
use crate::token::{Kind, Span};

/// An expression and its height.
type High = (Expr, u32);

/// Longer chains of `AND` and `OR` are flat.
const CHAIN_LEFT_DEEP_MAX: usize = 32;

/// Levels of the predicates.
const BETWEEN: u8 = 1;
const LIKE: u8 = 2;
const NONE: u8 = 3;

/// A chain grows in parts of this many operands. A vector of millions would be copied whole again
/// and again, without letting others run.
const PART_LEN: usize = 4096;

impl Cursor<'_> {
    /// Any expression.
    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        let (expr, height) = self.deeper(|this| this.or_expr())?;
        self.check_height(height)?;
        Ok(expr)
    }

    fn or_expr(&mut self) -> Parsed<High> {
        self.chain(BinaryOperator::Or, Self::xor_expr, |this| {
            let pipes = this.kind() == Kind::PipePipe && !this.mode.has(SqlMode::PIPES_AS_CONCAT);
            pipes || this.is(K::Or)
        })
    }

    fn xor_expr(&mut self) -> Parsed<High> {
        let mut left = self.and_expr()?;
        while self.eat(K::Xor) {
            let right = self.and_expr()?;
            left = self.binary(BinaryOperator::Xor, left, right)?;
        }
        Ok(left)
    }

    fn and_expr(&mut self) -> Parsed<High> {
        self.chain(BinaryOperator::And, Self::not_expr, |this| {
            this.kind() == Kind::AndAnd || this.is(K::And)
        })
    }

    /// `a AND b AND ..`: left-deep as written, or flat when long.
    fn chain(
        &mut self,
        operator: BinaryOperator,
        operand: impl Fn(&mut Self) -> Parsed<High>,
        is_next: impl Fn(&mut Self) -> bool,
    ) -> Parsed<High> {
        let first = operand(self)?;
        if !is_next(self) {
            return Ok(first);
        }
        let mut operands = vec![first];
        while is_next(self) {
            self.bump();
            operands.push(operand(self)?);
            if CHAIN_LEFT_DEEP_MAX < operands.len() {
                return self.flat_chain(operator, operands, operand, is_next);
            }
        }
        let mut operands = operands.into_iter();
        let mut left = match operands.next() {
            Some(first) => first,
            None => return Err(self.fail()),
        };
        for right in operands {
            left = self.binary(operator, left, right)?;
        }
        Ok(left)
    }

    /// The operands of all parts, in order.
    fn operands_of(&mut self, parts: Vec<Vec<Expr>>, last: Vec<Expr>) -> Vec<Expr> {
        if parts.is_empty() {
            return last;
        }
        let mut operands = Vec::with_capacity(parts.len() * PART_LEN + last.len());
        for mut part in parts.into_iter().chain([last]) {
            operands.append(&mut part);
            self.look();
        }
        operands
    }

    /// The chain that continues after `first`.
    #[inline(never)]
    fn flat_chain(
        &mut self,
        operator: BinaryOperator,
        first: Vec<High>,
        operand: impl Fn(&mut Self) -> Parsed<High>,
        is_next: impl Fn(&mut Self) -> bool,
    ) -> Parsed<High> {
        let start = first.first().map(|(first, _)| first.span);
        let mut height = first.iter().map(|(_, height)| *height).max().unwrap_or(0);
        let mut parts = Vec::new();
        let mut operands: Vec<Expr> = first.into_iter().map(|(operand, _)| operand).collect();
        while is_next(self) {
            self.bump();
            let (next, its_height) = operand(self)?;
            height = height.max(its_height);
            if operands.len() == PART_LEN {
                parts.push(std::mem::take(&mut operands));
            }
            operands.push(next);
        }
        let operands = self.operands_of(parts, operands);
        let span = self.span_from(start.unwrap_or_default());
        self.grown(ExprKind::Chain { operator, operands }, span, height + 1)
    }

    fn binary(&mut self, operator: BinaryOperator, left: High, right: High) -> Parsed<High> {
        let span = left.0.span.to(right.0.span);
        let height = left.1.max(right.1) + 1;
        let (left, right) = (Box::new(left.0), Box::new(right.0));
        self.grown(
            ExprKind::Binary {
                operator,
                left,
                right,
            },
            span,
            height,
        )
    }

    fn grown(&mut self, kind: ExprKind, span: Span, height: u32) -> Parsed<High> {
        self.check_height(height)?;
        Ok((Expr { kind, span }, height))
    }

    fn unary(&mut self, operator: UnaryOperator, start: Span, operand: High) -> Parsed<High> {
        let span = start.to(operand.0.span);
        let height = operand.1 + 1;
        let operand = Box::new(operand.0);
        self.grown(ExprKind::Unary { operator, operand }, span, height)
    }

    #[inline(never)]
    fn not_expr(&mut self) -> Parsed<High> {
        if self.is(K::Not) && !self.mode.has(SqlMode::HIGH_NOT_PRECEDENCE) {
            let start = self.bump().span;
            let operand = self.deeper(Self::not_expr)?;
            return self.unary(UnaryOperator::Not, start, operand);
        }
        self.truth_test()
    }

    /// Comparisons and `IS`.
    fn truth_test(&mut self) -> Parsed<High> {
        let mut left = self.predicate(BETWEEN)?;
        loop {
            if self.eat(K::Is) {
                left = self.is_tail(left)?;
            } else if let Some(operator) = self.comparison() {
                self.bump();
                left = self.comparison_tail(operator, left)?;
            } else {
                return Ok(left);
            }
        }
    }

    #[inline(never)]
    fn is_tail(&mut self, (value, height): High) -> Parsed<High> {
        let start = value.span;
        let negated = self.eat(K::Not);
        let value = Box::new(value);
        let word = self.eat_any(&[K::Null, K::True, K::False, K::Unknown]);
        let kind = match word {
            Some(K::Null) => ExprKind::IsNull { negated, value },
            Some(K::True) => ExprKind::IsTruth {
                negated,
                value,
                truth: Some(true),
            },
            Some(K::False) => ExprKind::IsTruth {
                negated,
                value,
                truth: Some(false),
            },
            Some(_) => ExprKind::IsTruth {
                negated,
                value,
                truth: None,
            },
            None => return Err(self.fail()),
        };
        let span = self.span_from(start);
        self.grown(kind, span, height + 1)
    }

    fn comparison(&mut self) -> Option<BinaryOperator> {
        Some(match self.kind() {
            Kind::Equal => BinaryOperator::Equal,
            Kind::NullSafeEqual => BinaryOperator::NullSafeEqual,
            Kind::NotEqual => BinaryOperator::NotEqual,
            Kind::Less => BinaryOperator::Less,
            Kind::LessEqual => BinaryOperator::LessEqual,
            Kind::Greater => BinaryOperator::Greater,
            Kind::GreaterEqual => BinaryOperator::GreaterEqual,
            _ => return None,
        })
    }

    #[inline(never)]
    fn comparison_tail(&mut self, operator: BinaryOperator, left: High) -> Parsed<High> {
        let is_quantified = self.is_any(&[K::All, K::Any, K::Some]);
        if is_quantified
            && self.kind_at(1) == Kind::LeftParen
            && operator != BinaryOperator::NullSafeEqual
        {
            let for_all = self.is(K::All);
            self.bump();
            let start = left.0.span;
            let query = Box::new(self.subquery()?);
            let height = left.1.max(self.height) + 1;
            let value = Box::new(left.0);
            let span = self.span_from(start);
            let kind = ExprKind::Quantified {
                operator,
                for_all,
                value,
                query,
            };
            return self.grown(kind, span, height);
        }
        let right = self.predicate(BETWEEN)?;
        self.binary(operator, left, right)
    }

    /// `BETWEEN` at its level, `LIKE`, `REGEXP` and `IN` at theirs; at `NONE` neither. With `NOT`
    /// they bind to the nearest operand: `a LIKE b NOT LIKE c` is `a LIKE (b NOT LIKE c)`.
    #[inline(never)]
    fn predicate(&mut self, level: u8) -> Parsed<High> {
        let mut left = self.bit_expr(0)?;
        loop {
            let negated = self.is(K::Not);
            let word = self.keyword_at(usize::from(negated));
            left = match word {
                Some(K::Between) if negated || level <= BETWEEN => {
                    self.between_tail(left, negated)?
                }
                Some(K::Like) if negated || level <= LIKE => self.like_tail(left, negated)?,
                Some(K::Regexp | K::Rlike) if negated || level <= LIKE => {
                    self.regexp_tail(left, negated)?
                }
                Some(K::In) if negated || level <= LIKE => self.in_tail(left, negated)?,
                Some(K::Sounds) if level <= LIKE && !negated => self.sounds_tail(left)?,
                _ => return Ok(left),
            };
        }
    }

    #[inline(never)]
    fn between_tail(&mut self, left: High, negated: bool) -> Parsed<High> {
        self.skip(1 + usize::from(negated));
        let low = self.deeper(|this| this.predicate(BETWEEN))?;
        self.expect(K::And)?;
        let high = self.deeper(|this| this.predicate(BETWEEN))?;
        let span = left.0.span.to(high.0.span);
        let height = left.1.max(low.1).max(high.1) + 1;
        let (value, low, high) = (Box::new(left.0), Box::new(low.0), Box::new(high.0));
        self.grown(
            ExprKind::Between {
                negated,
                value,
                low,
                high,
            },
            span,
            height,
        )
    }

    #[inline(never)]
    fn like_tail(&mut self, left: High, negated: bool) -> Parsed<High> {
        self.skip(1 + usize::from(negated));
        let pattern = self.predicate(NONE)?;
        let mut height = left.1.max(pattern.1) + 1;
        let mut escape = None;
        if self.eat(K::Escape) {
            let (expr, escape_height) = self.predicate(NONE)?;
            height = height.max(escape_height + 1);
            escape = Some(Box::new(expr));
        }
        let span = self.span_from(left.0.span);
        let (value, pattern) = (Box::new(left.0), Box::new(pattern.0));
        self.grown(
            ExprKind::Like {
                negated,
                value,
                pattern,
                escape,
            },
            span,
            height,
        )
    }

    #[inline(never)]
    fn regexp_tail(&mut self, left: High, negated: bool) -> Parsed<High> {
        self.skip(1 + usize::from(negated));
        let start = left.0.span;
        let right = self.predicate(NONE)?;
        let matched = self.binary(BinaryOperator::Regexp, left, right)?;
        if negated {
            self.unary(UnaryOperator::Not, start, matched)
        } else {
            Ok(matched)
        }
    }

    /// `a SOUNDS LIKE b` compares sounds.
    #[inline(never)]
    fn sounds_tail(&mut self, left: High) -> Parsed<High> {
        self.skip(1);
        self.expect(K::Like)?;
        let right = self.predicate(NONE)?;
        let left = self.soundex(left)?;
        let right = self.soundex(right)?;
        self.binary(BinaryOperator::Equal, left, right)
    }

    fn soundex(&mut self, (argument, height): High) -> Parsed<High> {
        let span = argument.span;
        let function = Function {
            schema: None,
            name: Ident::new(builtin::Function::Soundex.name()),
            arguments: vec![argument],
            is_detached: false,
            over: None,
        };
        self.grown(ExprKind::Function(Box::new(function)), span, height + 1)
    }

    #[inline(never)]
    fn in_tail(&mut self, left: High, negated: bool) -> Parsed<High> {
        self.skip(1 + usize::from(negated));
        let start = left.0.span;
        let outer = std::mem::replace(&mut self.height, 0);
        let value = Box::new(left.0);
        let kind = if self.is_query_paren() {
            ExprKind::InQuery {
                negated,
                value,
                query: Box::new(self.subquery()?),
            }
        } else {
            ExprKind::InList {
                negated,
                value,
                list: self.member_list()?,
            }
        };
        let height = left.1.max(self.height) + 1;
        self.height = outer;
        let span = self.span_from(start);
        self.grown(kind, span, height)
    }

    /// Bits and arithmetic; `level` is the loosest accepted operator, from 0.
    pub(super) fn bit_expr(&mut self, level: u8) -> Parsed<High> {
        let mut left = self.concatenation()?;
        loop {
            let Some((operator, own)) = self.arithmetic() else {
                return Ok(left);
            };
            if own < level {
                return Ok(left);
            }
            self.bump();
            let is_sum = matches!(operator, BinaryOperator::Add | BinaryOperator::Subtract);
            if is_sum && self.is_interval() {
                left = self.interval_tail(operator == BinaryOperator::Subtract, left)?;
                continue;
            }
            let right = self.bit_expr(own + 1)?;
            left = self.binary(operator, left, right)?;
        }
    }

    fn arithmetic(&mut self) -> Option<(BinaryOperator, u8)> {
        let token = self.peek();
        Some(match (token.kind, token.keyword) {
            (Kind::Pipe, _) => (BinaryOperator::BitOr, 0),
            (Kind::Ampersand, _) => (BinaryOperator::BitAnd, 1),
            (Kind::ShiftLeft, _) => (BinaryOperator::ShiftLeft, 2),
            (Kind::ShiftRight, _) => (BinaryOperator::ShiftRight, 2),
            (Kind::Plus, _) => (BinaryOperator::Add, 3),
            (Kind::Minus, _) => (BinaryOperator::Subtract, 3),
            (Kind::Star, _) => (BinaryOperator::Multiply, 4),
            (Kind::Slash, _) => (BinaryOperator::Divide, 4),
            (Kind::Percent, _) | (Kind::Word, Some(K::Mod)) => (BinaryOperator::Modulo, 4),
            (Kind::Word, Some(K::Div)) => (BinaryOperator::IntegerDivide, 4),
            (Kind::Caret, _) => (BinaryOperator::BitXor, 5),
            _ => return None,
        })
    }

    /// `INTERVAL e unit`: the function `INTERVAL(a, b)` has a comma.
    fn is_interval(&mut self) -> bool {
        if !self.is(K::Interval) {
            return false;
        }
        let (mut ahead, mut open) = (1, 0_usize);
        loop {
            match self.kind_at(ahead) {
                Kind::LeftParen => open += 1,
                Kind::RightParen => open = open.saturating_sub(1),
                Kind::Comma if open == 1 => return false,
                Kind::End => return true,
                _ => {}
            }
            if open == 0 {
                return true;
            }
            ahead += 1;
        }
    }

    #[inline(never)]
    fn interval_tail(&mut self, subtract: bool, left: High) -> Parsed<High> {
        self.expect(K::Interval)?;
        let interval = self.deeper(|this| this.or_expr())?;
        let unit = self.interval_unit()?;
        let span = self.span_from(left.0.span);
        let height = left.1.max(interval.1) + 1;
        let (value, interval) = (Box::new(left.0), Box::new(interval.0));
        self.grown(
            ExprKind::DateAdd {
                subtract,
                value,
                interval,
                unit,
            },
            span,
            height,
        )
    }

    /// `INTERVAL n unit + e`, where `e` extends as far as that of `NOT`.
    #[inline(never)]
    fn interval_first(&mut self) -> Parsed<Expr> {
        let start = self.bump().span;
        let interval = Box::new(self.expr()?);
        let unit = self.interval_unit()?;
        self.expect_kind(Kind::Plus)?;
        let (value, height) = self.truth_test()?;
        self.check_height(height)?;
        let span = self.span_from(start);
        let value = Box::new(value);
        Ok(Expr {
            kind: ExprKind::DateAdd {
                subtract: false,
                value,
                interval,
                unit,
            },
            span,
        })
    }

    fn concatenation(&mut self) -> Parsed<High> {
        let mut left = self.prefixed()?;
        while self.mode.has(SqlMode::PIPES_AS_CONCAT) && self.eat_kind(Kind::PipePipe) {
            let right = self.prefixed()?;
            left = self.binary(BinaryOperator::Concat, left, right)?;
        }
        Ok(left)
    }

    fn prefixed(&mut self) -> Parsed<High> {
        let operator = match self.kind() {
            Kind::Minus => UnaryOperator::Negate,
            Kind::Plus => UnaryOperator::Plus,
            Kind::Tilde => UnaryOperator::BitNot,
            Kind::Exclamation => UnaryOperator::Not,
            Kind::Word if self.is(K::Not) && self.mode.has(SqlMode::HIGH_NOT_PRECEDENCE) => {
                UnaryOperator::Not
            }
            Kind::Word if self.is(K::Binary) => return self.binary_prefix(),
            _ => return self.collated(),
        };
        let start = self.bump().span;
        let operand = self.deeper(Self::prefixed)?;
        self.unary(operator, start, operand)
    }

    #[inline(never)]
    fn binary_prefix(&mut self) -> Parsed<High> {
        let start = self.bump().span;
        let (value, height) = self.deeper(Self::prefixed)?;
        let span = start.to(value.span);
        let kind = ExprKind::Cast {
            value: Box::new(value),
            to: CastType::Binary(None),
        };
        self.grown(kind, span, height + 1)
    }

    #[inline(never)]
    fn collated(&mut self) -> Parsed<High> {
        let outer = std::mem::replace(&mut self.height, 0);
        let mut expr = if self.is_interval() {
            self.interval_first()?
        } else {
            self.primary()?
        };
        let mut height = self.height + 1;
        self.height = outer;
        while self.eat(K::Collate) {
            let collation = self.charset_name()?;
            let span = self.span_from(expr.span);
            let kind = ExprKind::Collate {
                value: Box::new(expr),
                collation,
            };
            (expr, height) = self.grown(kind, span, height + 1)?;
        }
        Ok((expr, height))
    }

    /// The name of a character set or collation: a name, a string or the word `binary`.
    pub(super) fn charset_name(&mut self) -> Parsed<Ident> {
        if self.is_any(&[K::Binary, K::Ascii]) {
            let token = self.bump();
            return self.ident_of(token);
        }
        self.ident_or_string()
    }

    /// `a`, `t.a` or `s.t.a`.
    pub(super) fn column_name(&mut self) -> Parsed<ColumnName> {
        let first = self.ident()?;
        self.column_tail(first)
    }

    pub(super) fn column_tail(&mut self, first: Ident) -> Parsed<ColumnName> {
        if !self.eat_kind(Kind::Dot) {
            return Ok(ColumnName {
                schema: None,
                table: None,
                column: first,
            });
        }
        let second = self.ident()?;
        if !self.eat_kind(Kind::Dot) {
            return Ok(ColumnName {
                schema: None,
                table: Some(first),
                column: second,
            });
        }
        let column = self.ident()?;
        Ok(ColumnName {
            schema: Some(first),
            table: Some(second),
            column,
        })
    }

    /// The unit at this lookahead, if there is one.
    pub(super) fn unit_at(&mut self, ahead: usize) -> Option<IntervalUnit> {
        Some(match self.keyword_at(ahead)? {
            K::Microsecond => IntervalUnit::Microsecond,
            K::Second | K::SqlTsiSecond => IntervalUnit::Second,
            K::Minute | K::SqlTsiMinute => IntervalUnit::Minute,
            K::Hour | K::SqlTsiHour => IntervalUnit::Hour,
            K::Day | K::SqlTsiDay => IntervalUnit::Day,
            K::Week | K::SqlTsiWeek => IntervalUnit::Week,
            K::Month | K::SqlTsiMonth => IntervalUnit::Month,
            K::Quarter | K::SqlTsiQuarter => IntervalUnit::Quarter,
            K::Year | K::SqlTsiYear => IntervalUnit::Year,
            K::SecondMicrosecond => IntervalUnit::SecondMicrosecond,
            K::MinuteMicrosecond => IntervalUnit::MinuteMicrosecond,
            K::MinuteSecond => IntervalUnit::MinuteSecond,
            K::HourMicrosecond => IntervalUnit::HourMicrosecond,
            K::HourSecond => IntervalUnit::HourSecond,
            K::HourMinute => IntervalUnit::HourMinute,
            K::DayMicrosecond => IntervalUnit::DayMicrosecond,
            K::DaySecond => IntervalUnit::DaySecond,
            K::DayMinute => IntervalUnit::DayMinute,
            K::DayHour => IntervalUnit::DayHour,
            K::YearMonth => IntervalUnit::YearMonth,
            _ => return None,
        })
    }

    pub(super) fn interval_unit(&mut self) -> Parsed<IntervalUnit> {
        let Some(unit) = self.unit_at(0) else {
            return Err(self.fail());
        };
        self.bump();
        Ok(unit)
    }
}
