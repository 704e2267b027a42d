//! The innermost expressions: constants, names, parentheses, and everything that looks like a call.

use builtin::{Found, Grammar};
use settings::SqlMode;

use crate::ast::{
    ColumnName, Expr, ExprKind, Function, Ident, Literal, MatchMode, SystemVariable, TemporalKind,
    VariableScope,
};
use crate::keyword::{Class, Keyword as K};
use crate::parse::cursor::{Cursor, Parsed};
use crate::token::{Kind, Span, Token};

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
            Class::Reserved => !(is_call && grammar(word).is_some_and(is_called)),
            Class::NeverCalled => is_call && !grammar(word).is_some_and(Grammar::has_own_syntax),
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
        let Some(found) = builtin::find(name.text.as_bytes()) else {
            return self.call(token.span, None, name, false);
        };
        let is_apart = token.span.end != paren.span.start && !self.mode.has(SqlMode::IGNORE_SPACE);
        if is_apart && found.is_adjacent {
            return self.call(token.span, None, name, true);
        }
        self.builtin_call(token.span, name, found)
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
            _ if grammar(word) == Some(Grammar::Bare) => {
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
    pub(super) fn precision(&mut self) -> Parsed<Option<Expr>> {
        if self.kind() == Kind::RightParen {
            return Ok(None);
        }
        let start = self.start();
        let digits = self.unsigned()?;
        Ok(Some(
            self.made(start, ExprKind::Literal(Literal::Integer(digits))),
        ))
    }

    pub(super) fn function(
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

    /// Keywords that look like a call and are none; `(` is the token after next.
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
            _ => return Ok(None),
        };
        Ok(Some(self.made(start, kind)))
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
            self.check_length(branches.len())?;
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

    /// A call with plain arguments; `(` is next.
    #[inline(never)]
    pub(super) fn call(
        &mut self,
        start: Span,
        schema: Option<Ident>,
        name: Ident,
        is_detached: bool,
    ) -> Parsed<Expr> {
        self.expect_kind(Kind::LeftParen)?;
        let counted = builtin::find(name.text.as_bytes())
            .filter(|found| found.grammar == Grammar::Counted && schema.is_none());
        let arguments = match counted {
            Some(Found { builtin, .. }) => self.counted_arguments(builtin.least, builtin.most)?,
            None if self.kind() == Kind::RightParen => Vec::new(),
            None => self.list(Self::argument)?,
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

/// How a call of this word is written, if it is a function's name.
fn grammar(word: K) -> Option<Grammar> {
    builtin::find(word.text().as_bytes()).map(|found| found.grammar)
}

/// True if `name(..)` calls the function.
fn is_called(grammar: Grammar) -> bool {
    grammar.is_plain_call() || grammar.has_own_syntax()
}
