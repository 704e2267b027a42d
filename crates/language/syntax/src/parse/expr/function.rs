//! The innermost expressions: constants, names, parentheses, and everything that looks like a call,
//! many with a syntax of their own.

use super::aggregate::aggregate_function;
use super::arity::arity;
use crate::ast::{
    ColumnName, Expr, ExprKind, Function, Ident, Literal, MatchMode, SystemVariable, TemporalKind,
    TrimSide, VariableScope,
};
use crate::keyword::{Class, Keyword as K};
use crate::parse::cursor::{Cursor, Parsed};
use crate::token::{Kind, Span, Token};

/// Reserved words that call a function with plain arguments if `(` follows.
const RESERVED_CALLS: [K; 9] = [
    K::If,
    K::Left,
    K::Right,
    K::Replace,
    K::Insert,
    K::Repeat,
    K::Mod,
    K::Interval,
    K::RowNumber,
];

/// Words that call a function without parentheses.
const BARE_CALLS: [K; 9] = [
    K::CurrentDate,
    K::CurrentTime,
    K::CurrentTimestamp,
    K::CurrentUser,
    K::CurrentRole,
    K::Localtime,
    K::Localtimestamp,
    K::UtcDate,
    K::UtcTime,
];

/// Names that are built in only if `(` follows directly (MariaDB, `IGNORE_SPACE`).
const ADJACENT_ONLY: [&str; 27] = [
    "ADDDATE",
    "BIT_AND",
    "BIT_OR",
    "BIT_XOR",
    "CAST",
    "COUNT",
    "CURDATE",
    "CURTIME",
    "DATE_ADD",
    "DATE_SUB",
    "EXTRACT",
    "GROUP_CONCAT",
    "MAX",
    "MID",
    "MIN",
    "NOW",
    "POSITION",
    "STD",
    "STDDEV",
    "SUBDATE",
    "SUBSTR",
    "SUBSTRING",
    "SUM",
    "SYSDATE",
    "TRIM",
    "VARIANCE",
    "VAR_POP",
];

impl Cursor<'_> {
    /// An expression without operators.
    pub(crate) fn primary(&mut self) -> Parsed<Expr> {
        let start = self.start();
        if let Some(literal) = self.literal()? {
            return Ok(self.made(start, ExprKind::Literal(literal)));
        }
        match self.kind() {
            Kind::Parameter if self.scope.is_none() => {
                self.bump();
                let number = self.parameter_count;
                self.parameter_count += 1;
                Ok(self.made(start, ExprKind::Parameter(number)))
            }
            Kind::UserVariable => self.user_variable(),
            Kind::AtAt => {
                let variable = self.system_variable()?;
                Ok(self.made(start, ExprKind::SystemVariable(variable)))
            }
            Kind::LeftParen => self.parenthesis(),
            Kind::LeftBrace => self.braces(),
            Kind::Quoted | Kind::Name => self.column_or_call(),
            Kind::Word => self.word(),
            _ => Err(self.fail()),
        }
    }

    pub(crate) fn made(&self, start: Span, kind: ExprKind) -> Expr {
        Expr {
            kind,
            span: self.span_from(start),
        }
    }

    #[inline(never)]
    fn user_variable(&mut self) -> Parsed<Expr> {
        let start = self.start();
        let variable = self.variable_name()?;
        if !self.eat_kind(Kind::Assign) {
            return Ok(self.made(start, ExprKind::UserVariable(variable)));
        }
        let value = Box::new(self.expr()?);
        Ok(self.made(start, ExprKind::Assign { variable, value }))
    }

    /// The name of `@name`, quotes removed.
    pub(crate) fn variable_name(&mut self) -> Parsed<String> {
        let token = self.peek();
        if token.kind != Kind::UserVariable {
            return Err(self.fail());
        }
        self.bump();
        let raw = self.text(token.span).get(1..).unwrap_or_default();
        let value = match raw.first() {
            Some(b'\'' | b'"') => crate::token::string_value(raw, self.mode),
            Some(b'`') => crate::token::name_value(raw),
            _ => raw.into(),
        };
        Ok(String::from_utf8_lossy(&value).into_owned())
    }

    /// `@@[scope.][instance.]name`.
    #[inline(never)]
    pub(crate) fn system_variable(&mut self) -> Parsed<SystemVariable> {
        self.expect_kind(Kind::AtAt)?;
        let scope = match self.keyword() {
            Some(K::Global) => Some(VariableScope::Global),
            Some(K::Session | K::Local) => Some(VariableScope::Session),
            _ => None,
        };
        let scope = scope.filter(|_| self.kind_at(1) == Kind::Dot);
        if scope.is_some() {
            self.skip(2);
        }
        self.variable_path(scope)
    }

    /// `name` or `instance.name`.
    pub(crate) fn variable_path(&mut self, scope: Option<VariableScope>) -> Parsed<SystemVariable> {
        let first = self.variable_word()?;
        if self.eat_kind(Kind::Dot) {
            let name = self.ident()?;
            return Ok(SystemVariable {
                scope,
                instance: Some(first),
                name,
            });
        }
        Ok(SystemVariable {
            scope,
            instance: None,
            name: first,
        })
    }

    /// `DEFAULT` may be the instance of a key cache.
    fn variable_word(&mut self) -> Parsed<Ident> {
        if self.is(K::Default) && self.kind_at(1) == Kind::Dot {
            let token = self.bump();
            return self.ident_of(token);
        }
        self.ident()
    }

    #[inline(never)]
    fn parenthesis(&mut self) -> Parsed<Expr> {
        let start = self.start();
        if self.is_query_paren() {
            let query = Box::new(self.subquery()?);
            return Ok(self.made(start, ExprKind::Subquery(query)));
        }
        let mut list = self.paren_list(Self::expr)?;
        if list.len() == 1
            && let Some(only) = list.pop()
        {
            return Ok(only);
        }
        Ok(self.made(start, ExprKind::Row(list)))
    }

    /// `{d '..'}`, `{t '..'}`, `{ts '..'}`, and `{anything e}`, which is `e`.
    #[inline(never)]
    fn braces(&mut self) -> Parsed<Expr> {
        let start = self.bump().span;
        let name = self.ident()?;
        let kind = match name.text.to_ascii_lowercase().as_str() {
            "d" => Some(TemporalKind::Date),
            "t" => Some(TemporalKind::Time),
            "ts" => Some(TemporalKind::Timestamp),
            _ => None,
        };
        let is_plain = self.kind() == Kind::String && self.kind_at(1) == Kind::RightBrace;
        let expr = match kind {
            Some(kind) if is_plain => self.temporal(kind, start)?,
            _ => self.expr()?,
        };
        self.expect_kind(Kind::RightBrace)?;
        Ok(Expr {
            span: self.span_from(start),
            ..expr
        })
    }

    #[inline(never)]
    fn column_or_call(&mut self) -> Parsed<Expr> {
        let start = self.start();
        let token = self.bump();
        let first = self.ident_of(token)?;
        if self.kind() == Kind::LeftParen {
            return self.call(start, None, first, false);
        }
        self.column_or_stored(start, first)
    }

    /// A column, or `db.function(..)`.
    fn column_or_stored(&mut self, start: Span, first: Ident) -> Parsed<Expr> {
        let mut column = self.column_tail(first)?;
        let is_call = self.kind() == Kind::LeftParen && column.schema.is_none();
        if is_call && let Some(schema) = column.table.take() {
            return self.call(start, Some(schema), column.column, false);
        }
        Ok(self.column_or_local(start, column))
    }

    /// The meaning of a name: a variable of the enclosing routine, or a column.
    pub(crate) fn column_or_local(&mut self, start: Span, column: ColumnName) -> Expr {
        let local = match (&column.schema, &column.table) {
            (None, None) => self.local(&column.column),
            (None, Some(row)) => self.local_field(row, &column.column),
            _ => None,
        };
        let kind = match local {
            Some(number) => ExprKind::Parameter(number),
            None => ExprKind::Column(column),
        };
        self.made(start, kind)
    }

    #[inline(never)]
    fn word(&mut self) -> Parsed<Expr> {
        let token = self.peek();
        let Some(word) = token.keyword else {
            return self.plain_word(token);
        };
        let is_call = self.kind_at(1) == Kind::LeftParen;
        if let Some(expr) = self.word_without_call(word, is_call)? {
            return Ok(expr);
        }
        if is_call && let Some(expr) = self.keyword_call(word)? {
            return Ok(expr);
        }
        let is_taken = match word.class() {
            Class::Reserved => !(is_call && RESERVED_CALLS.contains(&word)),
            Class::NeverCalled => is_call,
            Class::Free => false,
        };
        if is_taken {
            return Err(self.fail());
        }
        self.plain_word(token)
    }

    /// A name: of a column, or of a function.
    #[inline(never)]
    fn plain_word(&mut self, token: Token) -> Parsed<Expr> {
        self.bump();
        let name = self.ident_of(token)?;
        let paren = self.peek();
        if paren.kind != Kind::LeftParen {
            return self.column_or_stored(token.span, name);
        }
        let is_apart = token.span.end != paren.span.start && !self.mode.ignore_space;
        let is_detached = is_apart && ADJACENT_ONLY.iter().any(|only| name.is(only));
        if !is_detached && let Some(expr) = self.special_call(token.span, &name)? {
            return Ok(expr);
        }
        self.call(token.span, None, name, is_detached)
    }

    /// Words with a meaning of their own without parentheses.
    #[inline(never)]
    fn word_without_call(&mut self, word: K, is_call: bool) -> Parsed<Option<Expr>> {
        let start = self.start();
        let literal = match word {
            K::Null => Literal::Null,
            K::True => Literal::Bool(true),
            K::False => Literal::Bool(false),
            K::Case => return self.case().map(Some),
            K::Exists if is_call => {
                self.bump();
                let query = Box::new(self.subquery()?);
                return Ok(Some(self.made(start, ExprKind::Exists(query))));
            }
            K::Match => return self.full_text().map(Some),
            K::Date | K::Time | K::Timestamp if self.kind_at(1) == Kind::String => {
                self.bump();
                let kind = match word {
                    K::Date => TemporalKind::Date,
                    K::Time => TemporalKind::Time,
                    _ => TemporalKind::Timestamp,
                };
                return self.temporal(kind, start).map(Some);
            }
            K::Next | K::Previous if self.keyword_at(1) == Some(K::Value) => {
                return self.sequence_value(word).map(Some);
            }
            K::Default if !is_call => {
                self.bump();
                return Ok(Some(self.made(start, ExprKind::Default(None))));
            }
            _ if BARE_CALLS.contains(&word) || word == K::UtcTimestamp => {
                return self.bare_call().map(Some);
            }
            _ => return Ok(None),
        };
        self.bump();
        Ok(Some(self.made(start, ExprKind::Literal(literal))))
    }

    /// `CURRENT_TIMESTAMP`, `CURRENT_TIMESTAMP()`, `CURRENT_TIMESTAMP(6)`.
    #[inline(never)]
    fn bare_call(&mut self) -> Parsed<Expr> {
        let token = self.bump();
        let name = self.ident_of(token)?;
        let mut arguments = Vec::new();
        if self.eat_kind(Kind::LeftParen) {
            arguments.extend(self.precision()?);
            self.expect_kind(Kind::RightParen)?;
        }
        Ok(self.function(token.span, None, name, arguments))
    }

    /// Digits of a second, as a literal.
    fn precision(&mut self) -> Parsed<Option<Expr>> {
        if self.kind() == Kind::RightParen {
            return Ok(None);
        }
        let start = self.start();
        let digits = self.unsigned()?;
        Ok(Some(
            self.made(start, ExprKind::Literal(Literal::Integer(digits))),
        ))
    }

    fn function(
        &self,
        start: Span,
        schema: Option<Ident>,
        name: Ident,
        arguments: Vec<Expr>,
    ) -> Expr {
        let function = Function {
            schema,
            name,
            arguments,
            is_detached: false,
            over: None,
        };
        self.made(start, ExprKind::Function(Box::new(function)))
    }

    #[inline(never)]
    fn sequence_value(&mut self, word: K) -> Parsed<Expr> {
        let start = self.start();
        self.skip(2);
        self.expect(K::For)?;
        let name = self.object_name()?;
        let kind = if word == K::Next {
            ExprKind::NextValue(name)
        } else {
            ExprKind::PreviousValue(name)
        };
        Ok(self.made(start, kind))
    }

    /// Calls of keywords whose arguments have their own syntax; `(` is the token after next.
    #[inline(never)]
    fn keyword_call(&mut self, word: K) -> Parsed<Option<Expr>> {
        let start = self.start();
        let kind = match word {
            K::Row => {
                self.bump();
                let mut list = self.paren_list(Self::expr)?;
                if list.len() == 1
                    && let Some(only) = list.pop()
                {
                    return Ok(Some(only));
                }
                ExprKind::Row(list)
            }
            K::Convert => self.convert()?,
            K::Char => self.char_call()?,
            K::Values | K::Value | K::Default => {
                self.skip(2);
                let column = self.column_name()?;
                self.expect_kind(Kind::RightParen)?;
                if word == K::Default {
                    ExprKind::Default(Some(column))
                } else {
                    ExprKind::InsertedValue(column)
                }
            }
            K::Timestampadd | K::Timestampdiff => self.timestamp_call(word)?,
            K::GetFormat => self.get_format()?,
            K::WeightString => self.weight_string()?,
            K::Nextval | K::Lastval => {
                self.skip(2);
                let name = self.object_name()?;
                self.expect_kind(Kind::RightParen)?;
                if word == K::Nextval {
                    ExprKind::NextValue(name)
                } else {
                    ExprKind::PreviousValue(name)
                }
            }
            K::Mod => self.mod_call()?,
            K::Setval => return self.generic_keyword_call().map(Some),
            _ => return Ok(None),
        };
        Ok(Some(self.made(start, kind)))
    }

    /// `MOD(a, b)` is `a % b`.
    #[inline(never)]
    fn mod_call(&mut self) -> Parsed<ExprKind> {
        self.skip(2);
        let left = Box::new(self.expr()?);
        self.expect_kind(Kind::Comma)?;
        let right = Box::new(self.expr()?);
        self.expect_kind(Kind::RightParen)?;
        Ok(ExprKind::Binary {
            operator: crate::ast::BinaryOperator::Modulo,
            left,
            right,
        })
    }

    fn generic_keyword_call(&mut self) -> Parsed<Expr> {
        let token = self.bump();
        let name = self.ident_of(token)?;
        self.call(token.span, None, name, false)
    }

    #[inline(never)]
    fn convert(&mut self) -> Parsed<ExprKind> {
        self.skip(2);
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
        self.skip(2);
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
    fn timestamp_call(&mut self, word: K) -> Parsed<ExprKind> {
        self.skip(2);
        let unit = self.interval_unit()?;
        self.expect_kind(Kind::Comma)?;
        let first = Box::new(self.expr()?);
        self.expect_kind(Kind::Comma)?;
        let second = Box::new(self.expr()?);
        self.expect_kind(Kind::RightParen)?;
        Ok(if word == K::Timestampadd {
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
        self.skip(2);
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
        self.skip(2);
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
    fn case(&mut self) -> Parsed<Expr> {
        let start = self.bump().span;
        let operand = if self.is(K::When) {
            None
        } else {
            Some(Box::new(self.expr()?))
        };
        let mut branches = Vec::new();
        while self.eat(K::When) {
            let when = self.expr()?;
            self.expect(K::Then)?;
            branches.push((when, self.expr()?));
        }
        if branches.is_empty() {
            return Err(self.fail());
        }
        let otherwise = if self.eat(K::Else) {
            Some(Box::new(self.expr()?))
        } else {
            None
        };
        self.expect(K::End)?;
        Ok(self.made(
            start,
            ExprKind::Case {
                operand,
                branches,
                otherwise,
            },
        ))
    }

    #[inline(never)]
    fn full_text(&mut self) -> Parsed<Expr> {
        let start = self.bump().span;
        let columns: Vec<ColumnName> = if self.kind() == Kind::LeftParen {
            self.paren_list(Self::column_name)?
        } else {
            self.list(Self::column_name)?
        };
        self.expect(K::Against)?;
        self.expect_kind(Kind::LeftParen)?;
        let against = Box::new(self.bit_level()?);
        let mode = if self.eat_all(&[K::In, K::Boolean, K::Mode]) {
            MatchMode::Boolean
        } else {
            let _ = self.eat_all(&[K::In, K::Natural, K::Language, K::Mode]);
            if self.eat_all(&[K::With, K::Query, K::Expansion]) {
                MatchMode::NaturalExpanded
            } else {
                MatchMode::Natural
            }
        };
        self.expect_kind(Kind::RightParen)?;
        Ok(self.made(
            start,
            ExprKind::Match {
                columns,
                against,
                mode,
            },
        ))
    }

    /// Functions whose names are no keywords but whose arguments have their own syntax.
    #[inline(never)]
    fn special_call(&mut self, start: Span, name: &Ident) -> Parsed<Option<Expr>> {
        let upper = name.text.to_ascii_uppercase();
        if let Some(function) = aggregate_function(&upper) {
            return self.aggregate(start, function).map(Some);
        }
        let kind = match upper.as_str() {
            "CAST" => {
                self.skip(1);
                let value = Box::new(self.expr()?);
                self.expect(K::As)?;
                let to = self.cast_type()?;
                self.expect_kind(Kind::RightParen)?;
                ExprKind::Cast { value, to }
            }
            "EXTRACT" => {
                self.skip(1);
                let unit = self.interval_unit()?;
                self.expect(K::From)?;
                let value = Box::new(self.expr()?);
                self.expect_kind(Kind::RightParen)?;
                ExprKind::Extract { unit, value }
            }
            "TRIM" => self.trim()?,
            "DATE_ADD" | "ADDDATE" => self.date_add(&upper, false)?,
            "DATE_SUB" | "SUBDATE" => self.date_add(&upper, true)?,
            "POSITION" => return self.position(start).map(Some),
            "SUBSTRING" | "SUBSTR" | "MID" => return self.substring(start, name).map(Some),
            "NOW" | "SYSDATE" | "CURTIME" => {
                self.skip(1);
                let precision = self.precision()?.into_iter().collect();
                self.expect_kind(Kind::RightParen)?;
                return Ok(Some(self.function(start, None, name.clone(), precision)));
            }
            _ => return Ok(None),
        };
        Ok(Some(self.made(start, kind)))
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
    fn date_add(&mut self, name: &str, subtract: bool) -> Parsed<ExprKind> {
        self.skip(1);
        let value = Box::new(self.expr()?);
        self.expect_kind(Kind::Comma)?;
        let has_days = name == "ADDDATE" || name == "SUBDATE";
        let kind = if has_days && !self.is(K::Interval) {
            let interval = Box::new(self.expr()?);
            let unit = crate::ast::IntervalUnit::Day;
            ExprKind::DateAdd {
                subtract,
                value,
                interval,
                unit,
            }
        } else {
            self.expect(K::Interval)?;
            let interval = Box::new(self.expr()?);
            let unit = self.interval_unit()?;
            ExprKind::DateAdd {
                subtract,
                value,
                interval,
                unit,
            }
        };
        self.expect_kind(Kind::RightParen)?;
        Ok(kind)
    }

    #[inline(never)]
    fn position(&mut self, start: Span) -> Parsed<Expr> {
        self.skip(1);
        let needle = self.bit_level()?;
        self.expect(K::In)?;
        let haystack = self.expr()?;
        self.expect_kind(Kind::RightParen)?;
        Ok(self.function(start, None, Ident::new("LOCATE"), vec![needle, haystack]))
    }

    #[inline(never)]
    fn substring(&mut self, start: Span, name: &Ident) -> Parsed<Expr> {
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
        Ok(self.function(start, None, name.clone(), arguments))
    }

    /// A call with plain arguments; `(` is next.
    #[inline(never)]
    fn call(
        &mut self,
        start: Span,
        schema: Option<Ident>,
        name: Ident,
        is_detached: bool,
    ) -> Parsed<Expr> {
        self.expect_kind(Kind::LeftParen)?;
        let arguments = match arity(&name.text) {
            Some((least, most)) if schema.is_none() => self.counted_arguments(least, most)?,
            _ if self.kind() == Kind::RightParen => Vec::new(),
            _ => self.list(Self::argument)?,
        };
        self.expect_kind(Kind::RightParen)?;
        let over = self.over()?;
        let function = Function {
            schema,
            name,
            arguments,
            is_detached,
            over,
        };
        Ok(self.made(start, ExprKind::Function(Box::new(function))))
    }

    fn counted_arguments(&mut self, least: usize, most: usize) -> Parsed<Vec<Expr>> {
        let mut arguments = Vec::new();
        let mut has_more = self.kind() != Kind::RightParen;
        while has_more {
            if arguments.len() == most {
                return Err(self.fail());
            }
            arguments.push(self.expr()?);
            has_more = self.eat_kind(Kind::Comma);
        }
        if arguments.len() < least {
            return Err(self.fail());
        }
        Ok(arguments)
    }

    /// An argument; one of a loadable function may have a name, which is skipped.
    fn argument(&mut self) -> Parsed<Expr> {
        let argument = self.expr()?;
        if self.eat(K::As) {
            self.ident_or_string()?;
        }
        Ok(argument)
    }
}
