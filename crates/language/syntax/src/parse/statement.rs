//! Selects the rule for a statement by its first words.

use settings::SqlMode;

use super::cursor::{Cursor, Parsed};
use super::error::SyntaxErrorKind;
use crate::ast::{
    Drop, DropIndex, Dropped, Explain, ExplainRoute, LockWait, ObjectName, Prepared, Statement,
    StatementKind, TableVerb, UsingValue,
};
use crate::keyword::Keyword as K;
use crate::token::{Kind, Lexer, Span};

/// A statement up to its `;` or the end, which is not consumed.
pub(super) fn whole(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    if cursor.is_end() {
        let end = cursor.start();
        if cursor
            .text(Span {
                start: 0,
                end: end.start,
            })
            .trim_ascii()
            .is_empty()
        {
            return Err(cursor.fail_as(SyntaxErrorKind::Empty));
        }
        let span = Span {
            end: end.start,
            ..end
        };
        return Ok(Statement {
            kind: StatementKind::Empty,
            span,
            parameter_count: 0,
            lock_wait: LockWait::Default,
        });
    }
    let statement = cursor.statement()?;
    if cursor.is_end() {
        Ok(statement)
    } else {
        Err(cursor.fail())
    }
}

/// True for the first word of a statement that is planned together with its text. Parts of other
/// statements may be kept without their text.
fn is_planned(word: K) -> bool {
    matches!(
        word,
        K::Select
            | K::With
            | K::Values
            | K::Insert
            | K::Replace
            | K::Update
            | K::Delete
            | K::Do
            | K::Explain
            | K::Describe
            | K::Desc
    )
}

impl Cursor<'_> {
    /// A statement; what follows it is not checked.
    pub(super) fn statement(&mut self) -> Parsed<Statement> {
        let start = self.start();
        let first_parameter = self.parameter_count;
        let kind = self.deeper(Self::statement_kind)?;
        let parameter_count = self.parameter_count - first_parameter;
        Ok(Statement {
            kind,
            span: self.span_from(start),
            parameter_count,
            lock_wait: std::mem::replace(&mut self.definition_wait, LockWait::Default),
        })
    }

    fn statement_kind(&mut self) -> Parsed<StatementKind> {
        if self.kind() == Kind::LeftParen {
            return Ok(StatementKind::Query(Box::new(self.query()?)));
        }
        let Some(word) = self.keyword() else {
            return Err(self.fail());
        };
        self.leaves_constants &= is_planned(word);
        match word {
            K::Select | K::With | K::Values => Ok(StatementKind::Query(Box::new(self.query()?))),
            K::Insert | K::Replace => self.insert(),
            K::Update => self.update(),
            K::Delete => self.delete(),
            K::Truncate => {
                self.bump();
                self.eat(K::Table);
                let name = self.object_name()?;
                self.definition_wait()?;
                Ok(StatementKind::Truncate(name))
            }
            K::Load => self.load(),
            K::Do => {
                self.bump();
                Ok(StatementKind::Do(self.list(Self::expr)?))
            }
            K::Call => Ok(StatementKind::Call(self.call_statement()?)),
            K::Create => self.create(),
            K::Alter => self.alter(),
            K::Drop => self.drop(),
            K::Rename => self.rename(),
            _ => self.other_statement(word),
        }
    }

    fn other_statement(&mut self, word: K) -> Parsed<StatementKind> {
        match word {
            K::Begin if self.keyword_at(1) == Some(K::Not) => self.compound(),
            K::Signal
            | K::Resignal
            | K::Get
            | K::If
            | K::Case
            | K::Loop
            | K::While
            | K::Repeat
            | K::For => self.lone_step(),
            K::Begin
            | K::Start
            | K::Commit
            | K::Rollback
            | K::Savepoint
            | K::Release
            | K::Xa
            | K::Lock
            | K::Unlock => self.transaction(word),
            K::Set => self.set_statement(),
            K::Show => Ok(StatementKind::Show(Box::new(self.show()?))),
            K::Use => {
                self.bump();
                Ok(StatementKind::Use(self.ident()?))
            }
            K::Explain | K::Describe | K::Desc => self.explain(),
            K::Analyze => match self.keyword_at(1) {
                Some(K::Table | K::NoWriteToBinlog | K::Local | K::Tables) => {
                    self.table_verb(TableVerb::Analyze)
                }
                _ => self.explain(),
            },
            K::Check => self.table_verb(TableVerb::Check),
            K::Optimize => self.table_verb(TableVerb::Optimize),
            K::Repair => self.table_verb(TableVerb::Repair),
            K::Checksum => self.checksum(),
            K::Prepare | K::Execute | K::Deallocate => {
                Ok(StatementKind::Prepared(self.prepared(word)?))
            }
            K::Grant | K::Revoke => self.grant_or_revoke(word),
            K::Kill => self.kill(),
            K::Flush => self.flush(),
            K::Shutdown => self.shutdown(),
            K::Reload => self.reload(),
            _ => self.refused_statement(word),
        }
    }

    fn drop(&mut self) -> Parsed<StatementKind> {
        let start = self.bump().span;
        let temporary = self.is(K::Temporary);
        if temporary && matches!(self.keyword_at(1), Some(K::Table | K::Tables | K::Sequence)) {
            self.bump();
        }
        let Some(word) = self.keyword() else {
            return Err(self.fail());
        };
        self.bump();
        match word {
            K::Table | K::Tables | K::View => {
                let if_exists = self.if_exists()?;
                let names = self.list(Self::object_name)?;
                self.definition_wait()?;
                self.eat_any(&[K::Restrict, K::Cascade]);
                let is_view = word == K::View;
                Ok(StatementKind::Drop(Drop {
                    what: if is_view {
                        Dropped::View
                    } else {
                        Dropped::Table
                    },
                    temporary,
                    if_exists,
                    names,
                }))
            }
            K::Procedure | K::Function => self.drop_routine(word),
            K::Database | K::Schema => {
                let if_exists = self.if_exists()?;
                Ok(StatementKind::DropDatabase {
                    name: self.ident()?,
                    if_exists,
                })
            }
            K::Index | K::Key => {
                let if_exists = self.if_exists()?;
                let name = self.index_name()?;
                self.expect(K::On)?;
                let table = self.object_name()?;
                self.definition_wait()?;
                let mut asked = Vec::new();
                while self.is_any(&[K::Algorithm, K::Lock]) {
                    asked.push(self.algorithm_or_lock()?);
                }
                Ok(StatementKind::DropIndex(DropIndex {
                    if_exists,
                    name,
                    table,
                    asked,
                }))
            }
            K::Prepare => Ok(StatementKind::Prepared(Prepared::Deallocate(self.ident()?))),
            K::User => self.drop_user(),
            K::Sequence => self.drop_named(Dropped::Sequence, temporary),
            K::Trigger => self.drop_named(Dropped::Trigger, false),
            K::Event => self.drop_named(Dropped::Event, false),
            K::Server => self.drop_named(Dropped::Server, false),
            _ => self.refused_drop(word, start),
        }
    }

    /// The names of objects that do not exist here; for sequences there may be several.
    fn drop_named(&mut self, what: Dropped, temporary: bool) -> Parsed<StatementKind> {
        let if_exists = self.if_exists()?;
        let names = match what {
            Dropped::Sequence => self.list(Self::object_name)?,
            Dropped::Server => vec![ObjectName {
                schema: None,
                name: self.ident()?,
            }],
            _ => vec![self.object_name()?],
        };
        Ok(StatementKind::Drop(Drop {
            what,
            temporary,
            if_exists,
            names,
        }))
    }

    fn rename(&mut self) -> Parsed<StatementKind> {
        self.bump();
        if self.eat(K::User) {
            return self.rename_user();
        }
        if self.eat_any(&[K::Table, K::Tables]).is_none() {
            return Err(self.fail());
        }
        let start = self.start();
        if self.if_exists()? {
            return Ok(StatementKind::Refused(
                self.refuse_rest("RENAME TABLE IF EXISTS", start),
            ));
        }
        let pairs = self.list(|this| {
            let from = this.object_name()?;
            this.definition_wait()?;
            this.expect(K::To)?;
            Ok((from, this.object_name()?))
        })?;
        Ok(StatementKind::RenameTables(pairs))
    }

    fn prepared(&mut self, word: K) -> Parsed<Prepared> {
        self.bump();
        match word {
            K::Prepare => {
                let name = self.ident()?;
                self.expect(K::From)?;
                Ok(Prepared::Prepare {
                    name,
                    from: self.expr()?,
                })
            }
            K::Execute if self.is(K::Immediate) => {
                self.bump();
                let from = self.expr()?;
                Ok(Prepared::ExecuteImmediate {
                    from,
                    using: self.using()?,
                })
            }
            K::Execute => {
                let name = self.ident()?;
                Ok(Prepared::Execute {
                    name,
                    using: self.using()?,
                })
            }
            _ => {
                self.expect(K::Prepare)?;
                Ok(Prepared::Deallocate(self.ident()?))
            }
        }
    }

    fn using(&mut self) -> Parsed<Vec<UsingValue>> {
        if self.eat(K::Using) {
            self.list(Self::using_value)
        } else {
            Ok(Vec::new())
        }
    }

    fn using_value(&mut self) -> Parsed<UsingValue> {
        Ok(if self.eat(K::Default) {
            UsingValue::Default
        } else if self.eat(K::Ignore) {
            UsingValue::Ignore
        } else {
            UsingValue::Value(self.expr()?)
        })
    }

    fn explain(&mut self) -> Parsed<StatementKind> {
        let word = self.bump().keyword;
        if word == Some(K::Explain) && self.is_word("ROUTE") && self.keyword_at(1) == Some(K::For) {
            self.skip(2);
            let explain = match self.eat(K::Connection) {
                true => Explain::RouteOf(self.unsigned()?),
                false => Explain::Route(self.explain_route()?),
            };
            return Ok(StatementKind::Explain(Box::new(explain)));
        }
        let analyze = word == Some(K::Analyze);
        let (mut extended, mut partitions, mut json) = (false, false, false);
        if self.eat(K::Format) {
            self.expect_kind(Kind::Equal)?;
            let format = self.ident_or_string()?;
            json = format.is("json");
        } else if self.eat(K::Extended) {
            extended = true;
        } else if self.eat(K::Partitions) {
            partitions = true;
        }
        if self.eat(K::For) {
            self.expect(K::Connection)?;
            let explain = Explain::Connection(self.expr()?);
            return Ok(StatementKind::Explain(Box::new(explain)));
        }
        let is_statement = self.kind() == Kind::LeftParen
            || self.is_any(&[
                K::Select,
                K::With,
                K::Values,
                K::Insert,
                K::Replace,
                K::Update,
                K::Delete,
                K::Analyze,
                K::Set,
            ]);
        if is_statement {
            let statement = Box::new(self.statement()?);
            let explain = Explain::Statement {
                analyze,
                extended,
                partitions,
                json,
                statement,
            };
            return Ok(StatementKind::Explain(Box::new(explain)));
        }
        if analyze {
            return Err(self.fail());
        }
        let table = self.object_name()?;
        let column = if self.is_end() {
            None
        } else {
            Some(self.ident_or_string()?.text.into_bytes())
        };
        Ok(StatementKind::Explain(Box::new(Explain::Table {
            table,
            column,
        })))
    }

    /// `'text' [AS user] [IN database] [SERVICE name]`.
    fn explain_route(&mut self) -> Parsed<ExplainRoute> {
        let text = self.string()?;
        let user = match self.eat(K::As) {
            true => Some(self.ident_or_string()?.text),
            false => None,
        };
        let database = match self.eat(K::In) {
            true => Some(self.ident_or_string()?.text),
            false => None,
        };
        let service = match self.eat_word("SERVICE") {
            true => Some(self.service_name()?),
            false => None,
        };
        Ok(ExplainRoute {
            text,
            user,
            database,
            service,
        })
    }

    /// Many services are called `all`, which is reserved.
    fn service_name(&mut self) -> Parsed<String> {
        match self.eat(K::All) {
            true => Ok("all".to_owned()),
            false => Ok(self.ident_or_string()?.text),
        }
    }
}

/// Whether a text begins as EXPLAIN ROUTE FOR does. No other statement does.
#[must_use]
pub fn is_explain_route(text: &[u8], mode: SqlMode) -> bool {
    let mut lexer = Lexer::new(text, mode);
    if lexer.next_keyword().keyword != Some(K::Explain) {
        return false;
    }
    let word = lexer.next_token();
    let is_route = word.kind == Kind::Word && word.span.of(text).eq_ignore_ascii_case(b"ROUTE");
    is_route && lexer.next_keyword().keyword == Some(K::For)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<ExplainRoute> {
        let parsed = crate::parse(text.as_bytes(), SqlMode::default());
        match parsed.ok()?.kind {
            StatementKind::Explain(explain) => match *explain {
                Explain::Route(route) => Some(route),
                _ => None,
            },
            _ => None,
        }
    }

    #[test]
    fn explain_route_is_read() {
        let short = read("/* a */ explain route for 'SELECT ''a''';").unwrap();
        assert_eq!(short.text, b"SELECT 'a'");
        let names = (short.user, short.database, short.service);
        assert_eq!(names, (None, None, None));
        let text = "EXPLAIN ROUTE FOR \"SELECT 1\" AS 'app' IN `shop` SERVICE reports";
        let long = read(text).unwrap();
        assert_eq!(long.text, b"SELECT 1");
        assert_eq!(long.user.as_deref(), Some("app"));
        assert_eq!(long.database.as_deref(), Some("shop"));
        assert_eq!(long.service.as_deref(), Some("reports"));
        let all = read("EXPLAIN ROUTE FOR 'SELECT 1' SERVICE all").unwrap();
        assert_eq!(all.service.as_deref(), Some("all"));
    }

    #[test]
    fn explain_route_of_a_connection_is_read() {
        let read = |text: &str| match crate::parse(text.as_bytes(), SqlMode::default())?.kind {
            StatementKind::Explain(explain) => Ok::<_, crate::SyntaxError>(*explain),
            kind => panic!("{kind:?}"),
        };
        let asked = read("EXPLAIN ROUTE FOR CONNECTION 1073741825");
        assert_eq!(asked, Ok(Explain::RouteOf(1_073_741_825)));
        for text in [
            "EXPLAIN ROUTE FOR CONNECTION",
            "EXPLAIN ROUTE FOR CONNECTION 'a'",
            "EXPLAIN ROUTE FOR CONNECTION 1 AS app",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn explain_route_is_known_by_three_words() {
        let is_it = |text: &str| is_explain_route(text.as_bytes(), SqlMode::default());
        for text in [
            "EXPLAIN ROUTE FOR 'SELECT 1'",
            " /* a */ explain /* b */ route\nfor",
            "EXPLAIN ROUTE FOR SELECT 1",
        ] {
            assert!(is_it(text), "{text}");
        }
        for text in [
            "",
            "EXPLAIN",
            // That of a table with this name.
            "EXPLAIN route",
            "EXPLAIN route 'a'",
            "EXPLAIN `route` FOR 'a'",
            "DESCRIBE ROUTE FOR 'a'",
            "EXPLAIN FOR CONNECTION 7",
            "EXPLAIN SELECT 1",
        ] {
            assert!(!is_it(text), "{text}");
        }
    }

    #[test]
    fn a_wrong_explain_route_fails_at_its_first_wrong_word() {
        for (text, near) in [
            ("EXPLAIN ROUTE FOR", ""),
            ("EXPLAIN ROUTE FOR SELECT 1", "SELECT 1"),
            ("EXPLAIN ROUTE FOR 7", "7"),
            ("EXPLAIN ROUTE FOR 'a' AS", ""),
            ("EXPLAIN ROUTE FOR 'a' IN b AS c", "AS c"),
            ("EXPLAIN ROUTE FOR 'a' CONNECTION 7", "CONNECTION 7"),
            ("EXPLAIN ROUTE FOR 'a'; SELECT 1", "SELECT 1"),
        ] {
            let error = crate::parse(text.as_bytes(), SqlMode::default()).unwrap_err();
            assert_eq!(error.near, near, "{text}");
            assert_eq!(error.code().number(), 1064, "{text}");
        }
        // It describes the table of that name.
        assert!(crate::parse(b"EXPLAIN ROUTE", SqlMode::default()).is_ok());
    }
}
