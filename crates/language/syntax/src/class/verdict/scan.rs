//! The pass over the tokens of one statement: calls, variables, locking clauses.

use std::borrow::Cow;

use builtin::Reach;
use settings::SqlMode;

use super::super::effect::Class;
use super::super::facts::Facts;
use super::super::first::{Detail, Statement, find_explained};
use super::super::words::Words;
use super::Kind;
use crate::keyword::{Class as Reserve, Keyword as K};
use crate::token::{Kind as Token, name_value};

/// How deep a parenthesis may be for the columns of a common table expression to be told from a
/// call: one bit each.
pub(super) const DEPTH_TOLD_MAX: u32 = u64::BITS;

/// Databases whose tables tell of the server and not of data.
const SERVER_DATABASES: [&str; 4] = ["information_schema", "performance_schema", "mysql", "sys"];

/// Whether the tables of a database tell of the server and not of data.
#[must_use]
pub fn is_server_database(name: &[u8]) -> bool {
    let mut databases = SERVER_DATABASES.iter();
    databases.any(|database| name.eq_ignore_ascii_case(database.as_bytes()))
}

/// Words that are no function before a parenthesis, though they could be names of one.
const SYNTAX_WORDS: [K; 7] = [
    K::Against,
    K::Columns,
    K::Escape,
    K::Quick,
    K::SqlBufferResult,
    K::SqlCache,
    K::SqlNoCache,
];

/// The pass.
pub(super) struct Scan<'a> {
    words: Words<'a>,
    class: Class,
    ignores_space: bool,
    pub(super) facts: Facts,
    /// What the tokens show beyond the first ones.
    found: Kind,
    depth: u32,
    /// A bit for each depth whose parenthesis holds the columns of a common table expression, or
    /// the arguments of an unknown function.
    suspects: u64,
    /// The kind and keyword of the token before the current one.
    last: (Token, Option<K>),
    /// The keyword before the current name and its qualifiers.
    before_name: Option<K>,
    /// Behind INTO, among its variables.
    is_in_into: bool,
    /// A name before a parenthesis is a call.
    checks_calls: bool,
    /// LOAD DATA, which gives its variables values.
    is_load: bool,
    index: u32,
}

impl<'a> Scan<'a> {
    pub(super) fn new(words: Words<'a>, statement: &Statement<'a>, mode: SqlMode) -> Scan<'a> {
        let is_load = words.is(K::Load);
        let mut scan = Scan {
            words,
            class: statement.class,
            ignores_space: mode.has(SqlMode::IGNORE_SPACE),
            facts: Facts::NONE,
            found: Kind::Read,
            depth: 0,
            suspects: 0,
            last: (Token::End, None),
            before_name: None,
            is_in_into: false,
            checks_calls: calls_functions(statement),
            is_load,
            index: 0,
        };
        scan.explained();
        scan
    }

    /// The kind of the statement, whose first tokens show `first`.
    pub(super) fn kind(&self, first: Kind) -> Kind {
        match (first, self.found) {
            (_, Kind::Read) => first,
            (Kind::Read, found) => found,
            (_, found) => found.max_with(first),
        }
    }

    /// EXPLAIN of a query is read as one. Of a change it locks as the change does.
    fn explained(&mut self) {
        let mut words = self.words.clone();
        let is_explain = matches!(
            words.keyword(),
            Some(K::Explain | K::Describe | K::Desc | K::Analyze)
        );
        if self.class != Class::Show || !is_explain || !find_explained(&mut words) {
            return;
        }
        let is_query = words.token.kind == Token::LeftParen
            || matches!(words.keyword(), Some(K::Select | K::Values | K::With));
        self.class = Class::Query;
        if !is_query {
            self.found = Kind::Write;
            self.class = Class::Write;
        }
    }

    pub(super) fn run(&mut self) {
        while !self.words.is_at_end() {
            let gap = self.words.gap();
            if 4 <= gap.len() && depends_on_version(gap) {
                self.facts.add(Facts::DEPENDS_ON_VERSION);
            }
            self.token();
            self.last = (self.words.token.kind, self.words.keyword());
            self.index = self.index.saturating_add(1);
            self.words.bump();
        }
        if depends_on_version(self.words.gap()) {
            self.facts.add(Facts::DEPENDS_ON_VERSION);
        }
    }

    fn token(&mut self) {
        let kind = self.words.token.kind;
        if !matches!(kind, Token::UserVariable | Token::Comma) {
            self.is_in_into = false;
        }
        match kind {
            Token::LeftParen => self.depth = self.depth.saturating_add(1),
            Token::RightParen => self.close(),
            Token::LeftBrace => self.brace(),
            Token::UserVariable => self.user_variable(),
            Token::AtAt => self.system_variable(),
            Token::Invalid => self.facts.add(Facts::NOT_UNDERSTOOD),
            Token::Word | Token::Name | Token::Quoted => self.word(),
            _ => {}
        }
    }

    fn word(&mut self) {
        if self.last.0 != Token::Dot {
            self.before_name = self.last.1;
        }
        if let Some(keyword) = self.words.keyword() {
            self.keyword(keyword);
        }
        let ahead = self.words.ahead();
        match ahead.kind {
            Token::LeftParen => self.before_parenthesis(ahead.span.start),
            Token::Dot if self.last.0 != Token::Dot => self.qualifier(),
            _ if self.last.0 == Token::Dot => self.sequence_column(),
            _ if self.words.token.kind == Token::Word => self.bare(),
            _ => {}
        }
    }

    fn keyword(&mut self, keyword: K) {
        match (self.last.1, keyword) {
            (Some(K::For), K::Update | K::Share) | (Some(K::Lock), K::In) => {
                self.find(Kind::LockingRead);
            }
            (Some(K::For), K::SystemTime) => self.facts.add(Facts::NOT_DETERMINISTIC),
            (last, K::Time) if self.makes_time(last) => self.facts.add(Facts::NOT_DETERMINISTIC),
            (Some(K::Next), K::Value) => self.facts.add(Facts::ADVANCES_SEQUENCE),
            (Some(K::Previous), K::Value) => self.facts.add(Facts::READS_LAST_VALUE),
            (Some(K::Into), K::Outfile | K::Dumpfile) => self.facts.add(Facts::WRITES_FILE),
            (_, K::SqlCalcFoundRows) => self.facts.add(Facts::CALCULATES_FOUND_ROWS),
            (_, K::Returning) => self.facts.add(Facts::RETURNS_ROWS),
            (_, K::SqlNoCache) => self.facts.add(Facts::NO_CACHE),
            (_, K::Select) => self.checks_calls = true,
            (_, K::Into) => self.into(),
            // No function is called UPDATE or DELETE; MySQL has `WITH .. UPDATE (a JOIN b) SET ..`.
            (_, K::Update | K::Delete) if self.class == Class::Query => self.find(Kind::Write),
            (_, K::Insert | K::Replace) if self.class == Class::Query && !self.is_call() => {
                self.find(Kind::Write);
            }
            (_, K::Warnings | K::Errors) if self.class == Class::Show => {
                self.facts.add(Facts::READS_WARNINGS);
            }
            (last, K::Status | K::Profile | K::Profiles) if self.is_session_status(last) => {
                self.facts.add(Facts::READS_SESSION_STATUS);
            }
            (_, K::Get) if self.index == 0 => self.facts.add(Facts::READS_WARNINGS),
            _ => {}
        }
    }

    /// Whether the word TIME may make one: `TIME '10:00'`, `CAST(a AS TIME)`, `CONVERT(a, TIME)`,
    /// and a column of JSON_TABLE. [`builtin::makes_time`] says why that matters.
    fn makes_time(&self, last: Option<K>) -> bool {
        let ahead = self.words.ahead();
        let is_type = last == Some(K::As) || self.last.0 == Token::Comma;
        let makes = match ahead.kind {
            // A canonical text keeps such a string.
            Token::String => true,
            Token::RightParen => is_type,
            _ => matches!(ahead.keyword, Some(K::Path | K::Exists)),
        };
        makes && self.class == Class::Query
    }

    /// `{t '10:00'}`: a TIME, as ODBC writes it.
    fn brace(&mut self) {
        let ahead = self.words.ahead();
        let word = ahead.span.of(self.words.source);
        if word.eq_ignore_ascii_case(b"t") {
            self.facts.add(Facts::NOT_DETERMINISTIC);
        }
    }

    /// `REPLACE(a, b, c)` and `INSERT(..)` are functions, too.
    fn is_call(&self) -> bool {
        self.words.ahead().kind == Token::LeftParen
    }

    /// `SHOW STATUS`, `SHOW SESSION STATUS`, `SHOW PROFILE`.
    fn is_session_status(&self, last: Option<K>) -> bool {
        let is_second = self.index == 1 && last == Some(K::Show);
        let is_third = self.index == 2 && matches!(last, Some(K::Session | K::Local));
        self.class == Class::Show && (is_second || is_third)
    }

    /// A query may write a file or variables. Anything else belongs to a stored program.
    fn into(&mut self) {
        let ahead = self.words.ahead();
        let is_known = ahead.kind == Token::UserVariable
            || matches!(ahead.keyword, Some(K::Outfile | K::Dumpfile));
        if self.class == Class::Query && !is_known {
            self.find(Kind::Write);
        }
        self.is_in_into = true;
    }

    fn find(&mut self, kind: Kind) {
        self.found = self.found.max_with(kind);
    }

    /// `@a`: set or read, by what stands around it.
    fn user_variable(&mut self) {
        let both = Facts::SETS_USER_VARIABLES.with(Facts::READS_USER_VARIABLES);
        let is_assigned = self.words.ahead().kind == Token::Assign;
        let facts = match self.class {
            _ if is_assigned || self.is_in_into => Facts::SETS_USER_VARIABLES,
            Class::Set if self.is_target() => Facts::SETS_USER_VARIABLES,
            // `LOAD DATA .. (@a)`, `CALL p(@out)`, `GET DIAGNOSTICS @a = NUMBER`.
            Class::Write if self.is_load => both,
            Class::Call => both,
            // SIGNAL only reads it.
            Class::Diagnostics if self.facts.has(Facts::READS_WARNINGS) => both,
            _ => Facts::READS_USER_VARIABLES,
        };
        self.facts.add(facts);
    }

    /// Whether the current token is set by SET.
    fn is_target(&self) -> bool {
        let is_behind_word = matches!(
            self.last.1,
            Some(K::Set | K::Global | K::Session | K::Local)
        );
        self.depth == 0 && (is_behind_word || self.last.0 == Token::Comma)
    }

    /// `@@a`, `@@global.a`.
    fn system_variable(&mut self) {
        if self.class == Class::Set && self.is_target() {
            return;
        }
        let mut words = self.words.clone();
        words.bump();
        let mut name = words.name();
        while words.take_sign(Token::Dot) {
            name = words.name();
        }
        let is_any = |known: &[&str]| {
            known
                .iter()
                .any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
        };
        let special = match () {
            () if is_any(&["last_insert_id", "identity"]) => Facts::READS_LAST_INSERT_ID,
            () if is_any(&["warning_count", "error_count"]) => Facts::READS_WARNINGS,
            () if is_any(&["pseudo_thread_id"]) => Facts::READS_CONNECTION_ID,
            () => Facts::NONE,
        };
        let read = Facts::READS_SYSTEM_VARIABLES.with(Facts::NOT_DETERMINISTIC);
        self.facts.add(read.with(special));
    }

    /// The first part of `a.b`.
    fn qualifier(&mut self) {
        let text = self.words.text();
        let name = match self.words.token.kind {
            Token::Quoted => name_value(text),
            _ => Cow::Borrowed(text),
        };
        if is_server_database(&name) {
            self.facts.add(Facts::NOT_DETERMINISTIC);
        }
    }

    /// `s.NEXTVAL`, as Oracle writes it.
    fn sequence_column(&mut self) {
        let name = self.words.text();
        if builtin::reach(name) == Some(Reach::Sequence) {
            self.facts.add(Facts::ADVANCES_SEQUENCE);
        } else if name.eq_ignore_ascii_case(b"CURRVAL") {
            self.facts.add(Facts::READS_LAST_VALUE);
        }
    }

    /// `CURRENT_TIMESTAMP`: a function without parentheses.
    fn bare(&mut self) {
        let name = self.words.text();
        if builtin::is_called_bare(name) {
            self.facts
                .add(builtin::reach(name).map_or(Facts::NONE, Facts::of_call));
        }
    }

    /// A name before a parenthesis is a call, unless its place or itself says otherwise.
    fn before_parenthesis(&mut self, at: u32) {
        let is_adjacent = at == self.words.token.span.end;
        if !self.checks_calls || self.is_name_of_table() {
            return;
        }
        if self.last.0 == Token::Dot || self.words.token.kind == Token::Quoted {
            self.unknown_call();
            return;
        }
        let name = self.words.text();
        let is_split = builtin::find(name).is_some_and(|found| found.is_adjacent);
        let is_builtin = is_adjacent || self.ignores_space || !is_split;
        if let Some(reach) = builtin::reach(name).filter(|_| is_builtin) {
            self.facts.add(Facts::of_call(reach));
            if self.class == Class::Query && builtin::makes_time(name) {
                self.facts.add(Facts::NOT_DETERMINISTIC);
            }
            if reach == Reach::LastInsertId {
                self.last_insert_id();
            }
            return;
        }
        let is_syntax = self.words.keyword().is_some_and(|keyword| {
            keyword.class() != Reserve::Free || SYNTAX_WORDS.contains(&keyword)
        });
        if !is_syntax {
            self.unknown_call();
        }
    }

    /// `INSERT INTO t (a, b)`, `WITH t (a) AS ..`, `.. AS t (a)`.
    fn is_name_of_table(&self) -> bool {
        match self.before_name {
            Some(K::Into | K::Table | K::As | K::With | K::Recursive) => true,
            Some(K::Insert | K::Replace | K::Ignore | K::LowPriority | K::HighPriority)
            | Some(K::Delayed) => self.class == Class::Write,
            _ => false,
        }
    }

    /// `LAST_INSERT_ID(e)` sets what `LAST_INSERT_ID()` reads.
    fn last_insert_id(&mut self) {
        let mut words = self.words.clone();
        words.bump();
        words.bump();
        if words.token.kind != Token::RightParen {
            self.facts.add(Facts::SETS_LAST_INSERT_ID);
        }
    }

    /// Perhaps `b (x)` of `WITH a (x) AS (..), b (x) AS (..)`: the closing parenthesis tells.
    fn unknown_call(&mut self) {
        let can_be_table = self.last.0 == Token::Comma && self.class != Class::Set;
        if can_be_table && self.depth < DEPTH_TOLD_MAX {
            self.suspects |= 1 << self.depth;
        } else {
            self.facts.add(Facts::CALLS_UNKNOWN);
        }
    }

    fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        let bit = 1_u64.checked_shl(self.depth).unwrap_or(0);
        if self.suspects & bit == 0 {
            return;
        }
        self.suspects &= !bit;
        let mut words = self.words.clone();
        words.bump();
        let is_table = words.take(K::As) && words.token.kind == Token::LeftParen;
        if !is_table {
            self.facts.add(Facts::CALLS_UNKNOWN);
        }
    }
}

impl Kind {
    /// The one that asks for more.
    fn max_with(self, other: Kind) -> Kind {
        let rank = |kind: Kind| match kind {
            Kind::Read => 0,
            Kind::Session => 1,
            Kind::Transaction => 2,
            Kind::LockingRead => 3,
            Kind::Write => 4,
        };
        if rank(self) < rank(other) {
            other
        } else {
            self
        }
    }
}

/// Whether a name before a parenthesis can be a call: not among the columns of a definition.
fn calls_functions(statement: &Statement<'_>) -> bool {
    let is_definition = statement.detail == Detail::CreateTemporary;
    match statement.class {
        Class::Write => !is_definition,
        Class::Query
        | Class::Do
        | Class::Set
        | Class::Show
        | Class::Call
        | Class::Kill
        | Class::Prepared
        | Class::Diagnostics => true,
        _ => false,
    }
}

/// Whether a gap has an executable comment that not every server executes: MySQL 8 and MariaDB do
/// so up to version 50699.
fn depends_on_version(gap: &[u8]) -> bool {
    gap.windows(4).enumerate().any(|(at, window)| match window {
        b"/*M!" => true,
        [b'/', b'*', b'!', _] => {
            let digits = gap.get(at + 3..).unwrap_or_default();
            let count = digits
                .iter()
                .take(6)
                .take_while(|byte| byte.is_ascii_digit())
                .count();
            let is_old = count == 5
                && digits
                    .get(..5)
                    .is_some_and(|digits| digits < b"50700".as_slice());
            !(count < 5 || is_old)
        }
        _ => false,
    })
}
