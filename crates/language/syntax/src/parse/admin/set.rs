//! `SET`.

use crate::ast::{
    Admin, ColumnName, Expr, ExprKind, Ident, SetItem, StatementKind, SystemVariable, VariableScope,
};
use crate::keyword::Keyword as K;
use crate::parse::cursor::{Cursor, Parsed};
use crate::token::Kind;

impl Cursor<'_> {
    pub(crate) fn set_statement(&mut self) -> Parsed<StatementKind> {
        self.bump();
        if self.is(K::Statement) {
            self.bump();
            let variables = self.list(Self::set_item)?;
            self.expect(K::For)?;
            let statement = Box::new(self.statement()?);
            return Ok(StatementKind::SetStatement {
                variables,
                statement,
            });
        }
        let is_named = matches!(self.kind_at(1), Kind::Word | Kind::Quoted | Kind::String);
        if self.is(K::Server) && is_named {
            return self.set_server();
        }
        let scope = match self.keyword() {
            Some(K::Global) => Some(VariableScope::Global),
            Some(K::Session | K::Local) => Some(VariableScope::Session),
            _ => None,
        };
        let scoped = usize::from(scope.is_some());
        if self.keyword_at(scoped) == Some(K::Transaction)
            && matches!(self.keyword_at(scoped + 1), Some(K::Isolation | K::Read))
        {
            self.skip(scoped + 1);
            return Ok(StatementKind::Transaction(self.set_transaction(scope)?));
        }
        Ok(StatementKind::Set(self.list(Self::set_item)?))
    }

    /// `SERVER name = 'word'`. A system variable of that name has no other word before its sign.
    fn set_server(&mut self) -> Parsed<StatementKind> {
        self.bump();
        let name = self.ident_or_string()?.text;
        self.set_sign()?;
        let wanted = self.string()?;
        Ok(StatementKind::Admin(Admin::SetServer { name, wanted }))
    }

    pub(crate) fn set_item(&mut self) -> Parsed<SetItem> {
        match self.kind() {
            Kind::UserVariable => {
                let name = self.variable_name()?;
                self.set_sign()?;
                return Ok(SetItem::User {
                    name,
                    value: self.expr()?,
                });
            }
            Kind::AtAt => {
                let variable = self.system_variable()?;
                return self.set_system(variable);
            }
            _ => {}
        }
        let is_assigned = matches!(self.kind_at(1), Kind::Equal | Kind::Assign);
        match self.keyword() {
            Some(word @ (K::Global | K::Session | K::Local)) if !is_assigned => {
                self.bump();
                let is_global = word == K::Global;
                let scope = if is_global {
                    VariableScope::Global
                } else {
                    VariableScope::Session
                };
                let variable = self.variable_path(Some(scope))?;
                self.set_system(variable)
            }
            Some(K::Names) if !is_assigned => self.set_names(),
            Some(K::Character | K::Char) if self.keyword_at(1) == Some(K::Set) => {
                self.skip(2);
                self.set_charset()
            }
            Some(K::Charset) if !is_assigned => {
                self.bump();
                self.set_charset()
            }
            Some(K::Password) => self.set_password(),
            Some(K::Role) if !is_assigned => self.set_role(),
            Some(K::Default) if self.keyword_at(1) == Some(K::Role) => self.set_role(),
            Some(K::Offset) => {
                let token = self.bump();
                let name = self.ident_of(token)?;
                self.set_system(SystemVariable {
                    scope: None,
                    instance: None,
                    name,
                })
            }
            _ => {
                let variable = self.variable_path(None)?;
                self.set_system(variable)
            }
        }
    }

    /// `=` or `:=`.
    fn set_sign(&mut self) -> Parsed<()> {
        if self.eat_kind(Kind::Assign) {
            Ok(())
        } else {
            self.expect_kind(Kind::Equal)
        }
    }

    fn set_system(&mut self, variable: SystemVariable) -> Parsed<SetItem> {
        self.set_sign()?;
        let is_default = self.is(K::Default) && self.kind_at(1) != Kind::LeftParen;
        if is_default {
            self.bump();
            return Ok(SetItem::System {
                variable,
                value: None,
            });
        }
        // Here `ON`, `ALL`, `BINARY`, `ROW` and `SYSTEM` are words, not syntax.
        let is_word = self.is_any(&[K::On, K::All, K::Binary, K::Row, K::System])
            && !matches!(self.kind_at(1), Kind::LeftParen | Kind::Dot | Kind::String);
        if is_word {
            let token = self.bump();
            let column = ColumnName {
                schema: None,
                table: None,
                column: self.ident_of(token)?,
            };
            let value = Expr {
                kind: ExprKind::Column(column),
                span: token.span,
            };
            return Ok(SetItem::System {
                variable,
                value: Some(value),
            });
        }
        Ok(SetItem::System {
            variable,
            value: Some(self.expr()?),
        })
    }

    fn charset_or_default(&mut self) -> Parsed<Option<Ident>> {
        if self.eat(K::Default) {
            Ok(None)
        } else {
            self.charset_name().map(Some)
        }
    }

    fn set_names(&mut self) -> Parsed<SetItem> {
        self.bump();
        let charset = self.charset_or_default()?;
        let mut collation = None;
        if charset.is_some() && self.eat(K::Collate) {
            collation = self.charset_or_default()?;
        }
        Ok(SetItem::Names { charset, collation })
    }

    fn set_charset(&mut self) -> Parsed<SetItem> {
        Ok(SetItem::CharacterSet(self.charset_or_default()?))
    }

    fn set_password(&mut self) -> Parsed<SetItem> {
        self.bump();
        let user = if self.eat(K::For) {
            Some(self.user_name()?)
        } else {
            None
        };
        self.set_sign()?;
        let hashed = self.is_any(&[K::Password, K::OldPassword]);
        if hashed {
            self.bump();
            self.expect_kind(Kind::LeftParen)?;
        }
        let text = self.string()?;
        if hashed {
            self.expect_kind(Kind::RightParen)?;
        }
        Ok(SetItem::Password { user, hashed, text })
    }

    fn set_role(&mut self) -> Parsed<SetItem> {
        let start = self.start();
        let name = if self.is(K::Default) {
            "SET DEFAULT ROLE"
        } else {
            "SET ROLE"
        };
        self.eat(K::Default);
        self.bump();
        if !self.eat(K::None) {
            self.ident_or_string()?;
        }
        if self.eat(K::For) {
            self.user_name()?;
        }
        let span = self.span_from(start);
        Ok(SetItem::Role(crate::ast::Refused {
            name: name.to_owned(),
            span,
        }))
    }
}

#[cfg(test)]
mod tests {
    use crate::SqlMode;
    use crate::ast::{Admin, StatementKind};
    use crate::parse::parse;

    fn kind(text: &str) -> Option<StatementKind> {
        let parsed = parse(text.as_bytes(), SqlMode::default());
        parsed.ok().map(|it| it.kind)
    }

    #[test]
    fn a_server_is_set_by_its_name() {
        for (text, expected) in [
            ("SET SERVER db0 = 'drain'", ("db0", "drain")),
            ("set server `db-1` := \"up\"", ("db-1", "up")),
            ("SET SERVER 'db.2' = 'any word'", ("db.2", "any word")),
            ("SET SERVER server = ''", ("server", "")),
        ] {
            let Some(StatementKind::Admin(Admin::SetServer { name, wanted })) = kind(text) else {
                panic!("{text}: {:?}", kind(text));
            };
            assert_eq!((&*name, &*wanted), (expected.0, expected.1.as_bytes()));
        }
        for text in [
            "SET SERVER db0",
            "SET SERVER db0 = up",
            "SET SERVER db0 = 1",
            "SET SERVER db0 = 'up', @a = 1",
            "SET SERVER a.b = 'up'",
        ] {
            assert_eq!(kind(text), None, "{text}");
        }
        // A variable may have that name.
        for text in ["SET server = 1", "SET server := 'up'", "SET @server = 1"] {
            assert!(matches!(kind(text), Some(StatementKind::Set(_))), "{text}");
        }
    }
}
