//! Statements that MariaDB accepts and that are only ever refused by name.

use crate::ast::StatementKind;
use crate::keyword::Keyword as K;
use crate::parse::cursor::{Cursor, Parsed};
use crate::parse::definition::create::CreateHead;
use crate::token::Span;

impl Cursor<'_> {
    /// A statement that starts with `word`, if MariaDB has one.
    pub(crate) fn refused_statement(&mut self, word: K) -> Parsed<StatementKind> {
        let is_known = matches!(
            word,
            K::Handler
                | K::Help
                | K::Install
                | K::Uninstall
                | K::Change
                | K::Stop
                | K::Reset
                | K::Purge
                | K::Binlog
                | K::Cache
                | K::Backup
        );
        if !is_known {
            return Err(self.fail());
        }
        let start = self.bump().span;
        if self.is_end() {
            return Err(self.fail());
        }
        Ok(StatementKind::Refused(self.refuse_rest(word.text(), start)))
    }

    /// `START SLAVE` and the like; the first word has been consumed.
    pub(crate) fn refused_replication(&mut self, verb: &str, start: Span) -> Parsed<StatementKind> {
        if !self.is_any(&[K::Slave, K::Replica, K::All]) {
            return Err(self.fail());
        }
        let name = format!("{verb} SLAVE");
        Ok(StatementKind::Refused(self.refuse_rest(&name, start)))
    }

    /// `CREATE word ..`; stored programs extend to the end of the text.
    pub(crate) fn refused_create(&mut self, word: K, head: CreateHead) -> Parsed<StatementKind> {
        let name = match word {
            // Other functions are stored programs, which there are.
            K::Function => "CREATE FUNCTION .. SONAME".to_owned(),
            word => format!("CREATE {}", word.text()),
        };
        match word {
            K::Function | K::Trigger | K::Event | K::Package | K::Aggregate => {
                self.program_name(word)?;
                Ok(StatementKind::Refused(self.refuse_all(&name, head.start)))
            }
            K::Sequence | K::Server | K::Role | K::Temporary => {
                self.bump();
                if self.is_end() {
                    return Err(self.fail());
                }
                Ok(StatementKind::Refused(self.refuse_rest(&name, head.start)))
            }
            _ => Err(self.fail()),
        }
    }

    /// The head of a stored program: its name, and what must follow it.
    fn program_name(&mut self, word: K) -> Parsed<()> {
        self.bump();
        if word == K::Aggregate {
            self.expect(K::Function)?;
        }
        if word == K::Package {
            self.eat(K::Body);
        }
        self.if_not_exists()?;
        self.object_name()?;
        match word {
            K::Trigger if !self.is_any(&[K::Before, K::After]) => Err(self.fail()),
            K::Event => self.expect_all(&[K::On, K::Schedule]),
            _ => Ok(()),
        }
    }

    pub(crate) fn refused_alter(&mut self, word: K, start: Span) -> Parsed<StatementKind> {
        let name = format!("ALTER {}", word.text());
        match word {
            K::Procedure | K::Function => {
                self.bump();
                self.alter_routine(word)
            }
            K::Event | K::Sequence | K::Server => {
                self.bump();
                if self.is_end() {
                    return Err(self.fail());
                }
                Ok(StatementKind::Refused(self.refuse_all(&name, start)))
            }
            _ => Err(self.fail()),
        }
    }

    /// `DROP word ..`; the word has been consumed.
    pub(crate) fn refused_drop(&mut self, word: K, start: Span) -> Parsed<StatementKind> {
        let is_known = matches!(word, K::Role | K::Package);
        if !is_known {
            return Err(self.fail());
        }
        self.if_exists()?;
        if self.is_end() {
            return Err(self.fail());
        }
        let name = format!("DROP {}", word.text());
        Ok(StatementKind::Refused(self.refuse_rest(&name, start)))
    }
}
