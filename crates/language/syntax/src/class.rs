//! What a statement does, from its first tokens: for routing, not for execution.
//!
//! The class decides where a statement may be sent; the effect is what it does to the open
//! transaction. Both are guesses about a text that may still be refused; the server's status flags
//! in the reply are the truth. It reads only a few words. Only SET, and a SELECT passed to
//! [`locks_rows`], are read to their end.
//!
//! Source of the implicit commits: MariaDB manual, "SQL statements That Cause an Implicit
//! Commit".

use builtin::{Meaning, SessionFunction};
use settings::SqlMode;

use crate::keyword::Keyword as K;
use crate::token::{Kind, Lexer, Token};

/// The kind of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// Only blanks and comments.
    Empty,
    /// `SELECT`, `VALUES`, `WITH`: reads, unless [`locks_rows`] says otherwise.
    Read,
    /// Changes rows, or might: `INSERT`, `UPDATE`, `CALL`, `LOAD DATA`, ...
    Write,
    /// Changes definitions.
    Ddl,
    /// Begins, ends or marks a transaction; `LOCK TABLES` and `SET TRANSACTION` too.
    Transaction,
    /// `SET`.
    Set,
    /// `SHOW`, `DESCRIBE`, `EXPLAIN`, `HELP`.
    Show,
    /// `USE`.
    Use,
    /// `PREPARE`, `EXECUTE`, `DEALLOCATE`.
    Prepared,
    /// Accounts and privileges.
    Account,
    /// `KILL`, `FLUSH`, `CHECK TABLE` and the like.
    Admin,
    /// No known statement.
    Unknown,
}

/// What a statement does to the transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Nothing; without autocommit it may begin one.
    None,
    /// Ends the open one, begins another.
    Begin,
    /// Commits it; `AND CHAIN` begins another.
    Commit {
        /// `AND CHAIN`.
        chain: bool,
    },
    /// Rolls it back.
    Rollback {
        /// `AND CHAIN`.
        chain: bool,
    },
    /// Commits it before the statement runs, and afterwards.
    ImplicitCommit,
    /// `SET autocommit = 1`, which also commits.
    AutocommitOn,
    /// `SET autocommit = 0`.
    AutocommitOff,
    /// `SET autocommit` to a value that the text does not show.
    AutocommitUnknown,
    /// Unknown until the server answers: `CALL`, `EXECUTE`.
    Unknown,
}

/// A statement's class and effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Classified {
    /// What it is.
    pub class: Class,
    /// What it does to the transaction.
    pub effect: Effect,
}

/// The class of the first statement of `text`.
#[must_use]
pub fn classify(text: &[u8], mode: SqlMode) -> Classified {
    let mut words = Words {
        source: text,
        lexer: Lexer::new(text, mode),
    };
    let mut first = words.next();
    while first.kind == Kind::LeftParen {
        first = words.next();
    }
    let Some(word) = first.keyword else {
        let class = if first.kind == Kind::End {
            Class::Empty
        } else {
            Class::Unknown
        };
        return Classified {
            class,
            effect: Effect::None,
        };
    };
    let (class, effect) = words.classify(word);
    Classified { class, effect }
}

/// Whether a query locks rows or writes a file: `FOR UPDATE`, `LOCK IN SHARE MODE`, `INTO OUTFILE`,
/// or a function that only the primary may run. Reads the whole text.
#[must_use]
pub fn locks_rows(text: &[u8], mode: SqlMode) -> bool {
    let mut lexer = Lexer::new(text, mode);
    let mut last: Option<K> = None;
    loop {
        let token = lexer.next_keyword();
        match (last, token.keyword) {
            (Some(K::For), Some(K::Update))
            | (Some(K::Lock), Some(K::In))
            | (Some(K::Into), Some(K::Outfile | K::Dumpfile))
            | (Some(K::Next), Some(K::Value))
            | (_, Some(K::Nextval | K::Setval)) => return true,
            _ => {}
        }
        if token.kind == Kind::Word && takes_named_lock(token.span.of(text)) {
            return true;
        }
        if matches!(token.kind, Kind::End | Kind::Semicolon) {
            return false;
        }
        last = token.keyword;
    }
}

fn takes_named_lock(word: &[u8]) -> bool {
    let meaning = builtin::find(word).map(|found| found.builtin.meaning);
    let is_lock = |function| {
        matches!(
            function,
            SessionFunction::GetLock | SessionFunction::ReleaseLock
        )
    };
    matches!(meaning, Some(Meaning::Session(function)) if is_lock(function))
}

struct Words<'a> {
    source: &'a [u8],
    lexer: Lexer<'a>,
}

impl Words<'_> {
    fn next(&mut self) -> Token {
        self.lexer.next_keyword()
    }

    fn classify(&mut self, word: K) -> (Class, Effect) {
        match word {
            K::Select | K::Values | K::With => (Class::Read, Effect::None),
            K::Insert | K::Replace | K::Update | K::Delete | K::Load | K::Do | K::Handler => {
                (Class::Write, Effect::None)
            }
            K::Call
            | K::Signal
            | K::Resignal
            | K::Get
            | K::If
            | K::Case
            | K::Loop
            | K::While
            | K::Repeat
            | K::For => (Class::Write, Effect::Unknown),
            K::Create | K::Drop => self.create_or_drop(word),
            K::Alter => match self.next().keyword {
                Some(K::User) => (Class::Account, Effect::ImplicitCommit),
                _ => (Class::Ddl, Effect::ImplicitCommit),
            },
            K::Rename => match self.next().keyword {
                Some(K::User) => (Class::Account, Effect::ImplicitCommit),
                _ => (Class::Ddl, Effect::ImplicitCommit),
            },
            K::Truncate => (Class::Ddl, Effect::ImplicitCommit),
            K::Begin | K::Start | K::Commit | K::Rollback => self.transaction(word),
            K::Savepoint | K::Release | K::Unlock => (Class::Transaction, Effect::None),
            K::Lock => (Class::Transaction, Effect::ImplicitCommit),
            K::Xa => (Class::Transaction, Effect::Unknown),
            K::Set => self.set(),
            K::Show | K::Explain | K::Describe | K::Desc | K::Help => (Class::Show, Effect::None),
            K::Use => (Class::Use, Effect::None),
            K::Prepare | K::Deallocate => (Class::Prepared, Effect::None),
            K::Execute => (Class::Prepared, Effect::Unknown),
            K::Grant | K::Revoke => (Class::Account, Effect::ImplicitCommit),
            K::Analyze => match self.next().keyword {
                Some(K::Table | K::Tables | K::NoWriteToBinlog | K::Local) => {
                    (Class::Admin, Effect::ImplicitCommit)
                }
                _ => (Class::Write, Effect::None),
            },
            K::Check
            | K::Optimize
            | K::Repair
            | K::Flush
            | K::Reset
            | K::Install
            | K::Uninstall
            | K::Cache
            | K::Stop
            | K::Change => (Class::Admin, Effect::ImplicitCommit),
            K::Checksum | K::Kill | K::Shutdown | K::Purge | K::Binlog | K::Backup => {
                (Class::Admin, Effect::None)
            }
            _ => (Class::Unknown, Effect::None),
        }
    }

    /// `TEMPORARY` tables cause no commit.
    fn create_or_drop(&mut self, word: K) -> (Class, Effect) {
        let mut next = self.next();
        if next.keyword == Some(K::Or) {
            self.next();
            next = self.next();
        }
        match next.keyword {
            Some(K::Temporary) => (Class::Write, Effect::None),
            Some(K::User | K::Role) => (Class::Account, Effect::ImplicitCommit),
            Some(K::Prepare) if word == K::Drop => (Class::Prepared, Effect::None),
            _ => (Class::Ddl, Effect::ImplicitCommit),
        }
    }

    fn transaction(&mut self, word: K) -> (Class, Effect) {
        let mut next = self.next();
        match (word, next.keyword) {
            (K::Start, Some(K::Transaction)) => return (Class::Transaction, Effect::Begin),
            (K::Start, _) => return (Class::Admin, Effect::ImplicitCommit),
            (K::Begin, Some(K::Not)) => return (Class::Write, Effect::Unknown),
            (K::Begin, _) => return (Class::Transaction, Effect::Begin),
            (_, Some(K::Work)) => next = self.next(),
            _ => {}
        }
        let mut chain = false;
        match next.keyword {
            Some(K::To) => return (Class::Transaction, Effect::None),
            Some(K::And) => chain = self.next().keyword == Some(K::Chain),
            _ => {}
        }
        let effect = if word == K::Commit {
            Effect::Commit { chain }
        } else {
            Effect::Rollback { chain }
        };
        (Class::Transaction, effect)
    }

    /// Looks for `autocommit` among all items.
    fn set(&mut self) -> (Class, Effect) {
        let mut token = self.next();
        match token.keyword {
            Some(K::Transaction) => return (Class::Transaction, Effect::None),
            Some(K::Password | K::Default) => return (Class::Account, Effect::ImplicitCommit),
            Some(K::Statement) => return (Class::Write, Effect::Unknown),
            _ => {}
        }
        let mut effect = Effect::None;
        let mut is_global = false;
        loop {
            match token.kind {
                Kind::End | Kind::Semicolon => return (Class::Set, effect),
                Kind::Comma => is_global = false,
                _ => {}
            }
            match token.keyword {
                Some(K::Global) => is_global = true,
                Some(K::Transaction) if effect == Effect::None => {
                    return (Class::Transaction, Effect::None);
                }
                _ => {}
            }
            let is_autocommit = matches!(token.kind, Kind::Word | Kind::Name | Kind::Quoted)
                && is_autocommit(token.span.of(self.source));
            token = self.next();
            if is_autocommit && !is_global && matches!(token.kind, Kind::Equal | Kind::Assign) {
                let value = self.next();
                token = self.next();
                effect = self.autocommit(value, token);
            }
        }
    }

    fn autocommit(&self, value: Token, behind: Token) -> Effect {
        let is_whole = matches!(behind.kind, Kind::End | Kind::Semicolon | Kind::Comma);
        let text = value.span.of(self.source);
        let text = match value.kind {
            Kind::String => text
                .get(1..text.len().saturating_sub(1))
                .unwrap_or_default(),
            _ => text,
        };
        let is = |word: &str| text.eq_ignore_ascii_case(word.as_bytes());
        match () {
            () if !is_whole => Effect::AutocommitUnknown,
            () if is("1") || is("ON") || is("TRUE") || is("DEFAULT") => Effect::AutocommitOn,
            () if is("0") || is("OFF") || is("FALSE") => Effect::AutocommitOff,
            () => Effect::AutocommitUnknown,
        }
    }
}

fn is_autocommit(name: &[u8]) -> bool {
    let name = name
        .strip_prefix(b"`")
        .and_then(|rest| rest.strip_suffix(b"`"))
        .unwrap_or(name);
    name.eq_ignore_ascii_case(b"autocommit")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sql: &str, class: Class, effect: Effect) {
        let got = classify(sql.as_bytes(), SqlMode::default());
        assert_eq!(got, Classified { class, effect }, "{sql}");
    }

    #[test]
    fn statements_have_their_class() {
        check("", Class::Empty, Effect::None);
        check("-- x", Class::Empty, Effect::None);
        check("/* x */ SELECT 1", Class::Read, Effect::None);
        check("((SELECT 1))", Class::Read, Effect::None);
        check("insert into t values (1)", Class::Write, Effect::None);
        check("CREATE TABLE t (a INT)", Class::Ddl, Effect::ImplicitCommit);
        check(
            "CREATE OR REPLACE TEMPORARY TABLE t (a INT)",
            Class::Write,
            Effect::None,
        );
        check("CREATE USER u", Class::Account, Effect::ImplicitCommit);
        check("DROP PREPARE s", Class::Prepared, Effect::None);
        check("/*!40101 SET NAMES utf8 */", Class::Set, Effect::None);
        check("SHOW TABLES", Class::Show, Effect::None);
        check("CALL p()", Class::Write, Effect::Unknown);
        let lone = "WHILE @n DO UPDATE t SET a = 1; END WHILE";
        check(lone, Class::Write, Effect::Unknown);
        check("blah", Class::Unknown, Effect::None);
    }

    #[test]
    fn transactions_have_their_effect() {
        check("BEGIN", Class::Transaction, Effect::Begin);
        check(
            "START TRANSACTION READ ONLY",
            Class::Transaction,
            Effect::Begin,
        );
        check("START SLAVE", Class::Admin, Effect::ImplicitCommit);
        check(
            "COMMIT",
            Class::Transaction,
            Effect::Commit { chain: false },
        );
        check(
            "COMMIT WORK AND CHAIN",
            Class::Transaction,
            Effect::Commit { chain: true },
        );
        check(
            "COMMIT AND NO CHAIN",
            Class::Transaction,
            Effect::Commit { chain: false },
        );
        check(
            "ROLLBACK",
            Class::Transaction,
            Effect::Rollback { chain: false },
        );
        check(
            "ROLLBACK WORK TO SAVEPOINT a",
            Class::Transaction,
            Effect::None,
        );
        check(
            "SET TRANSACTION READ ONLY",
            Class::Transaction,
            Effect::None,
        );
    }

    #[test]
    fn autocommit_is_found_wherever_it_stands() {
        check("SET autocommit=0", Class::Set, Effect::AutocommitOff);
        check(
            "SET @@session.autocommit = ON",
            Class::Set,
            Effect::AutocommitOn,
        );
        check(
            "SET NAMES utf8, AUTOCOMMIT := 1;",
            Class::Set,
            Effect::AutocommitOn,
        );
        check(
            "SET SESSION `autocommit`='off'",
            Class::Set,
            Effect::AutocommitOff,
        );
        check("SET GLOBAL autocommit=0", Class::Set, Effect::None);
        check("SET @@global.autocommit=0", Class::Set, Effect::None);
        check("SET autocommit=@a", Class::Set, Effect::AutocommitUnknown);
        check("SET autocommit=1-1", Class::Set, Effect::AutocommitUnknown);
        check("SET @autocommit=1", Class::Set, Effect::None);
    }

    #[test]
    fn locking_reads_are_found() {
        let locks = |sql: &str| locks_rows(sql.as_bytes(), SqlMode::default());
        assert!(locks("SELECT a FROM t FOR UPDATE"));
        assert!(locks("SELECT a FROM t LOCK IN SHARE MODE"));
        assert!(locks("SELECT a INTO OUTFILE 'x' FROM t"));
        assert!(locks("SELECT GET_LOCK('a', 1)"));
        assert!(!locks("SELECT 'FOR UPDATE' FROM t"));
    }
}
