//! `SHOW`.

use crate::ast::{Ident, RoutineKind, Show, ShowFilter, ShowKind, UserName, VariableScope};
use crate::keyword::Keyword as K;
use crate::parse::cursor::{Cursor, Parsed};
use crate::token::Kind;

/// What `userstat` counts in MariaDB.
const USER_STATISTICS: [&str; 4] = [
    "CLIENT_STATISTICS",
    "INDEX_STATISTICS",
    "TABLE_STATISTICS",
    "USER_STATISTICS",
];

impl Cursor<'_> {
    pub(crate) fn show(&mut self) -> Parsed<Show> {
        let start = self.bump().span;
        let kind = match self.show_kind()? {
            Some(kind) => kind,
            None => {
                if self.is_end() {
                    return Err(self.fail());
                }
                let word = self.bump().span;
                let name = format!("SHOW {}", self.upper(word));
                ShowKind::Refused(self.refuse_rest(&name, start))
            }
        };
        let filter = self.show_filter()?;
        Ok(Show { kind, filter })
    }

    fn show_filter(&mut self) -> Parsed<Option<ShowFilter>> {
        if self.eat(K::Like) {
            return Ok(Some(ShowFilter::Like(self.string()?)));
        }
        if self.eat(K::Where) {
            return Ok(Some(ShowFilter::Where(self.expr()?)));
        }
        Ok(None)
    }

    fn show_kind(&mut self) -> Parsed<Option<ShowKind>> {
        if self.eat(K::Full) {
            return self.show_full().map(Some);
        }
        if self.is_any(&[K::Global, K::Session, K::Local]) {
            return self.show_scoped().map(Some);
        }
        if self.kind_at(1) == Kind::LeftParen && self.eat_word("COUNT") {
            return self.show_count().map(Some);
        }
        let start = self.start();
        if let Some(word) = USER_STATISTICS.iter().find(|word| self.eat_word(word)) {
            let refused = self.refuse_rest(&format!("SHOW {word}"), start);
            return Ok(Some(ShowKind::Refused(refused)));
        }
        let Some(word) = self.keyword() else {
            return Err(self.fail());
        };
        self.bump();
        let kind = match word {
            K::Databases | K::Schemas => ShowKind::Databases,
            K::Tables => ShowKind::Tables {
                full: false,
                schema: self.schema_named()?,
            },
            K::Table if self.eat(K::Status) => ShowKind::TableStatus(self.schema_named()?),
            K::Open if self.eat(K::Tables) => ShowKind::OpenTables(self.schema_named()?),
            K::Triggers => ShowKind::Triggers(self.schema_named()?),
            K::Events => ShowKind::Events(self.schema_named()?),
            K::Columns | K::Fields => self.show_columns(false)?,
            K::Index | K::Indexes | K::Keys => ShowKind::Index(self.table_named()?),
            K::Create => return self.show_create(),
            K::Variables => ShowKind::Variables(None),
            K::Status => ShowKind::Status(None),
            K::Processlist => ShowKind::Processlist { full: false },
            K::Warnings => ShowKind::Warnings(self.limit()?),
            K::Errors => ShowKind::Errors(self.limit()?),
            K::Grants => ShowKind::Grants(self.for_user()?),
            K::Storage if self.eat(K::Engines) => ShowKind::Engines,
            K::Engines => ShowKind::Engines,
            K::Engine => self.show_engine()?,
            K::Character if self.eat(K::Set) => ShowKind::CharacterSets,
            K::Char if self.eat(K::Set) => ShowKind::CharacterSets,
            K::Charset => ShowKind::CharacterSets,
            K::Collation => ShowKind::Collations,
            _ => return self.show_server(word),
        };
        Ok(Some(kind))
    }

    /// SHOW of the server itself; the word has been consumed.
    fn show_server(&mut self, word: K) -> Parsed<Option<ShowKind>> {
        let kind = match word {
            K::Plugins if !self.is(K::Soname) => ShowKind::Plugins,
            K::Privileges => ShowKind::Privileges,
            K::Procedure if self.eat(K::Status) => {
                ShowKind::RoutineStatus(Some(RoutineKind::Procedure))
            }
            K::Function if self.eat(K::Status) => {
                ShowKind::RoutineStatus(Some(RoutineKind::Function))
            }
            // There are no packages.
            K::Package if self.eat(K::Body) => {
                self.expect(K::Status)?;
                ShowKind::RoutineStatus(None)
            }
            K::Package if self.eat(K::Status) => ShowKind::RoutineStatus(None),
            K::Profiles => ShowKind::Profiles,
            K::Master | K::Binlog if self.eat(K::Status) => ShowKind::MasterStatus,
            K::Master | K::Binary if self.eat(K::Logs) => ShowKind::BinaryLogs,
            K::All => match self.eat_any(&[K::Slaves, K::Replicas]) {
                Some(_) => {
                    self.expect(K::Status)?;
                    ShowKind::ReplicaStatus
                }
                None => return Err(self.fail()),
            },
            K::Slave | K::Replica => {
                if self.kind() == Kind::String {
                    self.bump();
                }
                if !self.eat(K::Status) {
                    return self.show_refused(word).map(Some);
                }
                ShowKind::ReplicaStatus
            }
            _ => return self.show_refused(word).map(Some),
        };
        Ok(Some(kind))
    }

    /// SHOW statements known only by name; any other word is an error.
    fn show_refused(&mut self, word: K) -> Parsed<ShowKind> {
        let is_known = matches!(
            word,
            K::Authors
                | K::Binlog
                | K::Contributors
                | K::Explain
                | K::Package
                | K::Profile
                | K::Relaylog
                | K::Slave
                | K::Replica
                | K::Procedure
                | K::Function
                | K::Plugins
                | K::Analyze
                | K::Master
        );
        if !is_known {
            return Err(self.fail());
        }
        let start = self.start();
        Ok(ShowKind::Refused(
            self.refuse_rest(&format!("SHOW {}", word.text()), start),
        ))
    }

    fn show_full(&mut self) -> Parsed<ShowKind> {
        match self.eat_any(&[
            K::Tables,
            K::Columns,
            K::Fields,
            K::Processlist,
            K::Triggers,
        ]) {
            Some(K::Tables) => Ok(ShowKind::Tables {
                full: true,
                schema: self.schema_named()?,
            }),
            Some(K::Columns | K::Fields) => self.show_columns(true),
            Some(K::Processlist) => Ok(ShowKind::Processlist { full: true }),
            Some(_) => Ok(ShowKind::Triggers(self.schema_named()?)),
            None => Err(self.fail()),
        }
    }

    fn show_scoped(&mut self) -> Parsed<ShowKind> {
        let is_global = self.bump().keyword == Some(K::Global);
        let scope = if is_global {
            VariableScope::Global
        } else {
            VariableScope::Session
        };
        match self.eat_any(&[K::Variables, K::Status]) {
            Some(K::Variables) => Ok(ShowKind::Variables(Some(scope))),
            Some(_) => Ok(ShowKind::Status(Some(scope))),
            None => Err(self.fail()),
        }
    }

    /// `COUNT(*) WARNINGS`.
    fn show_count(&mut self) -> Parsed<ShowKind> {
        self.expect_kind(Kind::LeftParen)?;
        self.expect_kind(Kind::Star)?;
        self.expect_kind(Kind::RightParen)?;
        match self.eat_any(&[K::Warnings, K::Errors]) {
            Some(K::Warnings) => Ok(ShowKind::CountWarnings),
            Some(_) => Ok(ShowKind::CountErrors),
            None => Err(self.fail()),
        }
    }

    fn show_columns(&mut self, full: bool) -> Parsed<ShowKind> {
        Ok(ShowKind::Columns {
            full,
            table: self.table_named()?,
        })
    }

    fn show_engine(&mut self) -> Parsed<ShowKind> {
        let name = self.ident_or_string()?;
        match self.eat_any(&[K::Status, K::Mutex, K::Logs]) {
            Some(word) => Ok(ShowKind::Engine {
                name,
                what: word.text().to_owned(),
            }),
            None => Err(self.fail()),
        }
    }

    /// `FROM db`, or nothing.
    fn schema_named(&mut self) -> Parsed<Option<Ident>> {
        if self.eat_any(&[K::From, K::In]).is_some() {
            return self.ident().map(Some);
        }
        Ok(None)
    }

    /// `FROM t [FROM db]`.
    fn table_named(&mut self) -> Parsed<crate::ast::ObjectName> {
        if self.eat_any(&[K::From, K::In]).is_none() {
            return Err(self.fail());
        }
        let mut table = self.object_name()?;
        if let Some(schema) = self.schema_named()? {
            table.schema = Some(schema);
        }
        Ok(table)
    }

    fn for_user(&mut self) -> Parsed<Option<UserName>> {
        if self.eat(K::For) {
            self.user_name().map(Some)
        } else {
            Ok(None)
        }
    }

    fn show_create(&mut self) -> Parsed<Option<ShowKind>> {
        let start = self.start();
        let Some(word) = self.keyword() else {
            return Err(self.fail());
        };
        self.bump();
        Ok(Some(match word {
            K::Table => ShowKind::CreateTable(self.object_name()?),
            K::View => ShowKind::CreateView(self.object_name()?),
            K::Database | K::Schema => {
                let if_not_exists = self.if_not_exists()?;
                ShowKind::CreateDatabase {
                    name: self.ident()?,
                    if_not_exists,
                }
            }
            K::User => {
                let user = if self.is_end() {
                    None
                } else {
                    Some(self.user_name()?)
                };
                ShowKind::CreateUser(user)
            }
            K::Procedure => ShowKind::CreateRoutine(RoutineKind::Procedure, self.object_name()?),
            K::Function => ShowKind::CreateRoutine(RoutineKind::Function, self.object_name()?),
            K::Trigger | K::Event | K::Sequence | K::Package => {
                let name = format!("SHOW CREATE {}", word.text());
                ShowKind::Refused(self.refuse_rest(&name, start))
            }
            _ => return Err(self.fail()),
        }))
    }
}
