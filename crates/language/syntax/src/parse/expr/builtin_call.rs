//! Calls of built-in functions. Many have arguments with a syntax of their own.

use builtin::{Found, Grammar, Meaning};

use crate::ast::{BinaryOperator, Expr, ExprKind, Ident, IntervalUnit, ObjectName, TrimSide};
use crate::keyword::Keyword as K;
use crate::parse::cursor::{Cursor, Parsed};
use crate::token::{Kind, Span};

impl Cursor<'_> {
    /// A call of a built-in function; `(` is next.
    #[inline(never)]
    pub(super) fn builtin_call(&mut self, start: Span, name: Ident, found: Found) -> Parsed<Expr> {
        if let Meaning::Aggregate(function) = found.builtin.meaning {
            return self.aggregate(start, function);
        }
        let kind = match found.grammar {
            Grammar::Plain
            | Grammar::Counted
            | Grammar::Bare
            | Grammar::Sequence
            | Grammar::Operator
            | Grammar::Table
            | Grammar::Aggregate => return self.call(start, None, name, false),
            Grammar::Precision => return self.call_with_precision(start, name),
            Grammar::Substring => return self.substring(start, name),
            Grammar::Position => return self.position(start),
            Grammar::Cast => self.cast()?,
            Grammar::Convert => self.convert()?,
            Grammar::Extract => self.extract()?,
            Grammar::Trim => self.trim()?,
            Grammar::DateAdd | Grammar::DateSub | Grammar::AddDays | Grammar::SubDays => {
                self.date_add(found.grammar)?
            }
            Grammar::TimestampAdd | Grammar::TimestampDiff => self.timestamp_call(found.grammar)?,
            Grammar::GetFormat => self.get_format()?,
            Grammar::Char => self.char_call()?,
            Grammar::WeightString => self.weight_string()?,
            Grammar::Modulo => self.mod_call()?,
            Grammar::NextValue => ExprKind::NextValue(self.sequence()?),
            Grammar::PreviousValue => ExprKind::PreviousValue(self.sequence()?),
        };
        Ok(self.made(start, kind))
    }

    /// `NOW(6)`.
    fn call_with_precision(&mut self, start: Span, name: Ident) -> Parsed<Expr> {
        self.skip(1);
        let precision = self.precision()?.into_iter().collect();
        self.expect_kind(Kind::RightParen)?;
        Ok(self.function(start, None, name, precision))
    }

    /// The sequence of `NEXTVAL(sequence)`.
    fn sequence(&mut self) -> Parsed<ObjectName> {
        self.skip(1);
        let name = self.object_name()?;
        self.expect_kind(Kind::RightParen)?;
        Ok(name)
    }

    #[inline(never)]
    fn cast(&mut self) -> Parsed<ExprKind> {
        self.skip(1);
        let value = Box::new(self.expr()?);
        self.expect(K::As)?;
        let to = self.cast_type()?;
        self.expect_kind(Kind::RightParen)?;
        Ok(ExprKind::Cast { value, to })
    }

    #[inline(never)]
    fn extract(&mut self) -> Parsed<ExprKind> {
        self.skip(1);
        let unit = self.interval_unit()?;
        self.expect(K::From)?;
        let value = Box::new(self.expr()?);
        self.expect_kind(Kind::RightParen)?;
        Ok(ExprKind::Extract { unit, value })
    }

    /// `MOD(a, b)` is `a % b`.
    #[inline(never)]
    fn mod_call(&mut self) -> Parsed<ExprKind> {
        self.skip(1);
        let left = Box::new(self.expr()?);
        self.expect_kind(Kind::Comma)?;
        let right = Box::new(self.expr()?);
        self.expect_kind(Kind::RightParen)?;
        Ok(ExprKind::Binary {
            operator: BinaryOperator::Modulo,
            left,
            right,
        })
    }

    #[inline(never)]
    fn convert(&mut self) -> Parsed<ExprKind> {
        self.skip(1);
        let value = Box::new(self.expr()?);
        let kind = if self.eat(K::Using) {
            let charset = if self.eat(K::Default) {
                None
            } else {
                Some(self.charset_name()?)
            };
            ExprKind::ConvertUsing { value, charset }
        } else {
            self.expect_kind(Kind::Comma)?;
            ExprKind::Cast {
                value,
                to: self.cast_type()?,
            }
        };
        self.expect_kind(Kind::RightParen)?;
        Ok(kind)
    }

    #[inline(never)]
    fn char_call(&mut self) -> Parsed<ExprKind> {
        self.skip(1);
        let codes = self.list(Self::expr)?;
        let charset = if self.eat(K::Using) {
            Some(self.charset_name()?)
        } else {
            None
        };
        self.expect_kind(Kind::RightParen)?;
        Ok(ExprKind::Char { codes, charset })
    }

    #[inline(never)]
    fn timestamp_call(&mut self, grammar: Grammar) -> Parsed<ExprKind> {
        self.skip(1);
        let unit = self.interval_unit()?;
        self.expect_kind(Kind::Comma)?;
        let first = Box::new(self.expr()?);
        self.expect_kind(Kind::Comma)?;
        let second = Box::new(self.expr()?);
        self.expect_kind(Kind::RightParen)?;
        Ok(if grammar == Grammar::TimestampAdd {
            ExprKind::TimestampAdd {
                unit,
                interval: first,
                value: second,
            }
        } else {
            ExprKind::TimestampDiff {
                unit,
                from: first,
                to: second,
            }
        })
    }

    #[inline(never)]
    fn get_format(&mut self) -> Parsed<ExprKind> {
        self.skip(1);
        let of = match self.eat_any(&[K::Date, K::Time, K::Datetime, K::Timestamp]) {
            Some(word) => word.text().to_owned(),
            None => return Err(self.fail()),
        };
        self.expect_kind(Kind::Comma)?;
        let value = Box::new(self.expr()?);
        self.expect_kind(Kind::RightParen)?;
        Ok(ExprKind::GetFormat { of, value })
    }

    #[inline(never)]
    fn weight_string(&mut self) -> Parsed<ExprKind> {
        self.skip(1);
        let value = Box::new(self.expr()?);
        let mut length = None;
        if self.eat(K::As) {
            let is_bytes = self.is(K::Binary);
            if self.eat_any(&[K::Char, K::Binary]).is_none() {
                return Err(self.fail());
            }
            self.expect_kind(Kind::LeftParen)?;
            length = Some((is_bytes, self.length()?));
            self.expect_kind(Kind::RightParen)?;
        }
        self.expect_kind(Kind::RightParen)?;
        Ok(ExprKind::WeightString { value, length })
    }

    #[inline(never)]
    fn trim(&mut self) -> Parsed<ExprKind> {
        self.skip(1);
        let word = self.eat_any(&[K::Both, K::Leading, K::Trailing]);
        let side = match word {
            Some(K::Leading) => TrimSide::Leading,
            Some(K::Trailing) => TrimSide::Trailing,
            _ => TrimSide::Both,
        };
        let mut removed = None;
        if !(word.is_some() && self.is(K::From)) {
            removed = Some(Box::new(self.expr()?));
        }
        let value = if self.eat(K::From) {
            Box::new(self.expr()?)
        } else {
            match removed.take() {
                Some(value) if word.is_none() => value,
                _ => return Err(self.fail()),
            }
        };
        self.expect_kind(Kind::RightParen)?;
        Ok(ExprKind::Trim {
            side,
            removed,
            value,
        })
    }

    /// `DATE_ADD(e, INTERVAL n unit)`; `ADDDATE(e, n)` means days.
    #[inline(never)]
    fn date_add(&mut self, grammar: Grammar) -> Parsed<ExprKind> {
        self.skip(1);
        let subtract = matches!(grammar, Grammar::DateSub | Grammar::SubDays);
        let takes_days = matches!(grammar, Grammar::AddDays | Grammar::SubDays);
        let value = Box::new(self.expr()?);
        self.expect_kind(Kind::Comma)?;
        let (interval, unit) = if takes_days && !self.is(K::Interval) {
            (self.expr()?, IntervalUnit::Day)
        } else {
            self.expect(K::Interval)?;
            (self.expr()?, self.interval_unit()?)
        };
        self.expect_kind(Kind::RightParen)?;
        Ok(ExprKind::DateAdd {
            subtract,
            value,
            interval: Box::new(interval),
            unit,
        })
    }

    #[inline(never)]
    fn position(&mut self, start: Span) -> Parsed<Expr> {
        self.skip(1);
        let needle = self.bit_level()?;
        self.expect(K::In)?;
        let haystack = self.expr()?;
        self.expect_kind(Kind::RightParen)?;
        let locate = Ident::new(builtin::Function::Locate.name());
        Ok(self.function(start, None, locate, vec![needle, haystack]))
    }

    #[inline(never)]
    fn substring(&mut self, start: Span, name: Ident) -> Parsed<Expr> {
        self.skip(1);
        let mut arguments = vec![self.expr()?];
        if self.eat(K::From) {
            arguments.push(self.expr()?);
            if self.eat(K::For) {
                arguments.push(self.expr()?);
            }
        } else {
            self.expect_kind(Kind::Comma)?;
            arguments.extend(self.list(Self::expr)?);
        }
        self.expect_kind(Kind::RightParen)?;
        Ok(self.function(start, None, name, arguments))
    }
}
