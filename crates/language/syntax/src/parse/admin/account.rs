//! Accounts and privileges.

use crate::ast::{
    Account, AccountOptions, Authentication, GrantTarget, ObjectName, Privilege, Refused, Secret,
    StatementKind, UserName, UserSpec,
};
use crate::keyword::Keyword as K;
use crate::parse::cursor::{Cursor, Parsed};
use crate::parse::definition::create::CreateHead;
use crate::token::{Kind, Span};

/// Privileges with names of two or three words.
const LONG_PRIVILEGES: [&[K]; 29] = [
    &[K::Replication, K::Master, K::Admin],
    &[K::Replication, K::Slave, K::Admin],
    &[K::Replication, K::Replica, K::Admin],
    &[K::Slave, K::Monitor],
    &[K::Replica, K::Monitor],
    &[K::Create, K::Temporary, K::Tables],
    &[K::Delete, K::Versioning, K::Rows],
    &[K::Show, K::Create, K::Routine],
    &[K::All, K::Privileges],
    &[K::Alter, K::Routine],
    &[K::Binlog, K::Admin],
    &[K::Binlog, K::Monitor],
    &[K::Binlog, K::Replay],
    &[K::Connection, K::Admin],
    &[K::Create, K::Routine],
    &[K::Create, K::Tablespace],
    &[K::Create, K::User],
    &[K::Create, K::View],
    &[K::Delete, K::History],
    &[K::Federated, K::Admin],
    &[K::Grant, K::Option],
    &[K::Lock, K::Tables],
    &[K::Replication, K::Client],
    &[K::Replication, K::Slave],
    &[K::Replication, K::Replica],
    &[K::Show, K::Databases],
    &[K::Show, K::View],
    &[K::Set, K::User],
    &[K::ReadOnly, K::Admin],
];

/// Privileges with names of one word.
const SHORT_PRIVILEGES: [K; 20] = [
    K::All,
    K::Alter,
    K::Create,
    K::Delete,
    K::Drop,
    K::Event,
    K::Execute,
    K::File,
    K::Index,
    K::Insert,
    K::Process,
    K::Proxy,
    K::References,
    K::Reload,
    K::Select,
    K::Shutdown,
    K::Super,
    K::Trigger,
    K::Update,
    K::Usage,
];

impl Cursor<'_> {
    /// `'u'@'h'`, `u@h`, `u`, `CURRENT_USER`.
    pub(crate) fn user_name(&mut self) -> Parsed<UserName> {
        if self.eat(K::CurrentUser) {
            if self.eat_kind(Kind::LeftParen) {
                self.expect_kind(Kind::RightParen)?;
            }
            return Ok(UserName::Current);
        }
        let user = self.ident_or_string()?.text;
        let host = match self.kind() {
            Kind::UserVariable => Some(self.variable_name()?),
            Kind::At => {
                self.bump();
                Some(self.ident_or_string()?.text)
            }
            _ => None,
        };
        Ok(UserName::Named { user, host })
    }

    fn user_spec(&mut self) -> Parsed<UserSpec> {
        let name = self.user_name()?;
        let mut authentication = Vec::new();
        if self.eat(K::Identified) {
            if self.eat(K::By) {
                authentication.push(self.identified_by()?);
            } else {
                if self.eat_any(&[K::Via, K::With]).is_none() {
                    return Err(self.fail());
                }
                authentication.push(self.identified_via()?);
                while self.eat(K::Or) {
                    authentication.push(self.identified_via()?);
                }
            }
        }
        Ok(UserSpec {
            name,
            authentication,
        })
    }

    fn identified_by(&mut self) -> Parsed<Authentication> {
        let is_hash = self.eat(K::Password);
        let text = self.string()?;
        let secret = if is_hash {
            Secret::Hash(text)
        } else {
            Secret::Password(text)
        };
        Ok(Authentication {
            plugin: None,
            secret: Some(secret),
        })
    }

    /// `plugin [USING '..' | AS '..' | USING PASSWORD('..') | BY '..']`. MySQL's `BY` is accepted
    /// too, so that its accounts for `caching_sha2_password` can be created.
    fn identified_via(&mut self) -> Parsed<Authentication> {
        let plugin = Some(self.ident_or_string()?);
        let mut secret = None;
        if self.eat(K::By) {
            secret = Some(Secret::Password(self.string()?));
        } else if self.eat_any(&[K::Using, K::As]).is_some() {
            secret = Some(if self.eat(K::Password) {
                self.expect_kind(Kind::LeftParen)?;
                let text = self.string()?;
                self.expect_kind(Kind::RightParen)?;
                Secret::Password(text)
            } else {
                Secret::Hash(self.string()?)
            });
        }
        Ok(Authentication { plugin, secret })
    }

    /// `REQUIRE ..`, `WITH ..`, `PASSWORD ..`, `ACCOUNT ..`. Also returns whether `GRANT OPTION`
    /// was there.
    fn account_options(&mut self) -> Parsed<(AccountOptions, bool)> {
        let mut options = AccountOptions::default();
        let mut grant_option = false;
        if self.eat(K::Require) {
            self.require(&mut options)?;
        }
        if self.eat(K::With) {
            loop {
                if self.eat_all(&[K::Grant, K::Option]) {
                    grant_option = true;
                } else {
                    self.account_limit(&mut options)?;
                }
                if !self.is_any(&[
                    K::Grant,
                    K::MaxQueriesPerHour,
                    K::MaxUpdatesPerHour,
                    K::MaxConnectionsPerHour,
                    K::MaxUserConnections,
                    K::MaxStatementTime,
                ]) {
                    break;
                }
            }
        }
        loop {
            let start = self.start();
            if self.eat_all(&[K::Password, K::Expire]) {
                options.password_expire = Some(self.password_expire(start)?);
            } else if self.eat(K::Account) {
                let locked = if self.eat(K::Lock) {
                    true
                } else {
                    self.expect(K::Unlock)?;
                    false
                };
                options.locked = Some(locked);
            } else {
                return Ok((options, grant_option));
            }
        }
    }

    fn require(&mut self, options: &mut AccountOptions) -> Parsed<()> {
        if let Some(word) = self.eat_any(&[K::None, K::Ssl, K::X509]) {
            options.require.push((word.text().to_owned(), Vec::new()));
            return Ok(());
        }
        loop {
            match self.eat_any(&[K::Subject, K::Issuer, K::Cipher]) {
                Some(word) => options
                    .require
                    .push((word.text().to_owned(), self.string()?)),
                None if options.require.is_empty() => return Err(self.fail()),
                None => return Ok(()),
            }
            self.eat(K::And);
        }
    }

    fn account_limit(&mut self, options: &mut AccountOptions) -> Parsed<()> {
        let word = self.eat_any(&[
            K::MaxQueriesPerHour,
            K::MaxUpdatesPerHour,
            K::MaxConnectionsPerHour,
            K::MaxUserConnections,
            K::MaxStatementTime,
        ]);
        match word {
            Some(word) => {
                options
                    .limits
                    .push((word.text().to_owned(), self.unsigned()?));
                Ok(())
            }
            None => Err(self.fail()),
        }
    }

    fn password_expire(&mut self, start: Span) -> Parsed<Refused> {
        if self.eat(K::Interval) {
            self.unsigned()?;
            self.expect(K::Day)?;
        } else {
            self.eat_any(&[K::Never, K::Default]);
        }
        Ok(Refused {
            name: "PASSWORD EXPIRE".to_owned(),
            span: self.span_from(start),
        })
    }

    pub(crate) fn create_user(&mut self, head: CreateHead) -> Parsed<StatementKind> {
        self.bump();
        let if_not_exists = self.if_not_exists()?;
        let users = self.list(Self::user_spec)?;
        let (options, grant_option) = self.account_options()?;
        if grant_option {
            return Err(self.fail());
        }
        let or_replace = head.or_replace;
        let create = Account::CreateUser {
            or_replace,
            if_not_exists,
            users,
            options,
        };
        Ok(StatementKind::Account(Box::new(create)))
    }

    pub(crate) fn alter_user(&mut self) -> Parsed<StatementKind> {
        self.bump();
        let if_exists = self.if_exists()?;
        let users = self.list(Self::user_spec)?;
        let (options, grant_option) = self.account_options()?;
        if grant_option {
            return Err(self.fail());
        }
        let alter = Account::AlterUser {
            if_exists,
            users,
            options,
        };
        Ok(StatementKind::Account(Box::new(alter)))
    }

    pub(crate) fn drop_user(&mut self) -> Parsed<StatementKind> {
        let if_exists = self.if_exists()?;
        let users = self.list(Self::user_name)?;
        Ok(StatementKind::Account(Box::new(Account::DropUser {
            if_exists,
            users,
        })))
    }

    pub(crate) fn rename_user(&mut self) -> Parsed<StatementKind> {
        let pairs = self.list(|this| {
            let from = this.user_name()?;
            this.expect(K::To)?;
            Ok((from, this.user_name()?))
        })?;
        Ok(StatementKind::Account(Box::new(Account::RenameUser(pairs))))
    }

    pub(crate) fn grant_or_revoke(&mut self, word: K) -> Parsed<StatementKind> {
        let start = self.bump().span;
        let is_grant = word == K::Grant;
        if self.is(K::Proxy) && self.keyword_at(1) == Some(K::On) {
            let name = if is_grant {
                "GRANT PROXY"
            } else {
                "REVOKE PROXY"
            };
            let account = Account::Role(self.refuse_rest(name, start));
            return Ok(StatementKind::Account(Box::new(account)));
        }
        let account = match self.privileges()? {
            Some(privileges) if is_grant => self.grant(privileges)?,
            Some(privileges) if is_everything(&privileges) && self.eat(K::From) => {
                Account::RevokeAll(self.list(Self::user_name)?)
            }
            Some(privileges) => self.revoke(privileges)?,
            // A privilege that does not exist.
            None if self.keyword_at(1) == Some(K::On) => {
                self.bump();
                return Err(self.fail());
            }
            None => {
                let name = if is_grant {
                    "GRANT role"
                } else {
                    "REVOKE role"
                };
                Account::Role(self.refuse_rest(name, start))
            }
        };
        Ok(StatementKind::Account(Box::new(account)))
    }

    /// The privileges up to `ON`; `None` if the names are roles.
    fn privileges(&mut self) -> Parsed<Option<Vec<Privilege>>> {
        let mut privileges = Vec::new();
        loop {
            match self.privilege()? {
                Some(privilege) => privileges.push(privilege),
                None if privileges.is_empty() => return Ok(None),
                None => return Err(self.fail()),
            }
            if !self.eat_kind(Kind::Comma) {
                return Ok(Some(privileges));
            }
        }
    }

    fn privilege(&mut self) -> Parsed<Option<Privilege>> {
        let long = LONG_PRIVILEGES.iter().find(|words| self.are(words));
        let name = if let Some(words) = long {
            self.skip(words.len());
            let words: Vec<&str> = words.iter().map(|word| word.text()).collect();
            words.join(" ")
        } else if let Some(word) = self.eat_any(&SHORT_PRIVILEGES) {
            word.text().to_owned()
        } else {
            return Ok(None);
        };
        let name = if name == "ALL PRIVILEGES" {
            "ALL".to_owned()
        } else {
            name
        };
        let columns = if self.kind() == Kind::LeftParen {
            self.ident_list()?
        } else {
            Vec::new()
        };
        Ok(Some(Privilege { name, columns }))
    }

    /// `ON [TABLE | FUNCTION | ..] target`.
    fn grant_target(&mut self) -> Parsed<GrantTarget> {
        self.expect(K::On)?;
        let word = self.eat_any(&[K::Function, K::Procedure, K::Package, K::Table]);
        if let Some(word @ (K::Function | K::Procedure | K::Package)) = word {
            return Ok(GrantTarget::Routine(
                word.text().to_owned(),
                self.object_name()?,
            ));
        }
        if self.eat_kind(Kind::Star) {
            if !self.eat_kind(Kind::Dot) {
                return Ok(GrantTarget::CurrentSchema);
            }
            self.expect_kind(Kind::Star)?;
            return Ok(GrantTarget::Global);
        }
        let first = self.ident()?;
        if !self.eat_kind(Kind::Dot) {
            return Ok(GrantTarget::Table(ObjectName {
                schema: None,
                name: first,
            }));
        }
        if self.eat_kind(Kind::Star) {
            return Ok(GrantTarget::Schema(first));
        }
        let name = self.ident()?;
        Ok(GrantTarget::Table(ObjectName {
            schema: Some(first),
            name,
        }))
    }

    fn grant(&mut self, privileges: Vec<Privilege>) -> Parsed<Account> {
        let on = self.grant_target()?;
        self.expect(K::To)?;
        let users = self.list(Self::user_spec)?;
        let (options, grant_option) = self.account_options()?;
        Ok(Account::Grant {
            privileges,
            on,
            users,
            options,
            grant_option,
        })
    }

    fn revoke(&mut self, privileges: Vec<Privilege>) -> Parsed<Account> {
        let on = self.grant_target()?;
        self.expect(K::From)?;
        let users = self.list(Self::user_name)?;
        Ok(Account::Revoke {
            privileges,
            on,
            users,
        })
    }
}

/// `ALL, GRANT OPTION`, which REVOKE accepts without a target.
fn is_everything(privileges: &[Privilege]) -> bool {
    let names = privileges.iter().map(|privilege| privilege.name.as_str());
    names.eq(["ALL", "GRANT OPTION"])
}
