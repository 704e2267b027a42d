//! [`Touched`]: what a text reads from and changes, as far as a cache of results has to know.

use std::borrow::Cow;
use std::sync::Arc;

use result_cache::{Changes, TableSlot};
use settings::SqlMode;
use syntax::class::{
    Class, Effect, Facts, Kind, Verdict, changed_tables, classify, has_verb_of_change,
    must_read_row, names, verdict,
};

/// A query with more names is not kept. Each costs a look at each use of its reply.
pub const NAMES_MAX: usize = 64;

/// See the module's head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    /// The names in a query whose reply can be kept, or why it cannot.
    pub names: Result<Arc<[TableSlot]>, Unkept>,
    /// A row of its reply is one of a table, or was made from one ([`must_read_row`]).
    pub must_read_row: bool,
    /// What the text changes, if it is carried out.
    pub changes: Changes,
}

/// Why the reply to a text is not kept, whatever tables it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unkept {
    /// It is no query.
    NoQuery,
    /// It is several statements.
    Several,
    /// The answer depends on more than tables and text, or the query does more than read.
    Facts(Facts),
    /// It locks the rows that it reads.
    Locks,
    /// A name has other letters than those of ASCII.
    OddName,
    /// It has more than [`NAMES_MAX`] names.
    ManyNames,
}

/// With these a text may do what it does not show.
const UNKNOWN: Facts = Facts::NOT_UNDERSTOOD
    .with(Facts::DEPENDS_ON_VERSION)
    .with(Facts::EXECUTES);

impl Touched {
    /// Of a text of which nothing is known.
    pub(crate) fn unknown() -> Touched {
        Touched {
            names: Err(Unkept::Facts(Facts::NOT_UNDERSTOOD)),
            must_read_row: false,
            changes: Changes::Anything,
        }
    }

    pub(crate) fn of(text: &[u8], mode: SqlMode, class: Class, verdict: &Verdict) -> Touched {
        let names = names_of(text, mode, class, verdict);
        Touched {
            must_read_row: names.is_ok() && must_read_row(text, mode),
            names,
            changes: changes(text, mode, class, verdict),
        }
    }
}

/// The names of a query that each server answers alike to each session of the same state.
fn names_of(
    text: &[u8],
    mode: SqlMode,
    class: Class,
    verdict: &Verdict,
) -> Result<Arc<[TableSlot]>, Unkept> {
    match () {
        () if verdict.is_several => return Err(Unkept::Several),
        () if class != Class::Query => return Err(Unkept::NoQuery),
        () if !verdict.facts.is_empty() => return Err(Unkept::Facts(verdict.facts)),
        () if verdict.kind != Kind::Read => return Err(Unkept::Locks),
        () => {}
    }
    let mut slots = Vec::new();
    for name in names(text, mode) {
        slots.push(TableSlot::of(&name).ok_or(Unkept::OddName)?);
        if NAMES_MAX < slots.len() {
            slots.sort_unstable();
            slots.dedup();
        }
        if NAMES_MAX < slots.len() {
            return Err(Unkept::ManyNames);
        }
    }
    slots.sort_unstable();
    slots.dedup();
    Ok(slots.into())
}

/// What a text changes, beside what the open transaction has.
pub(crate) fn changes(text: &[u8], mode: SqlMode, class: Class, verdict: &Verdict) -> Changes {
    let facts = verdict.facts;
    if verdict.kind != Kind::Write {
        return Changes::Nothing;
    }
    if verdict.is_several || facts.has_any(UNKNOWN) {
        return Changes::Anything;
    }
    match class {
        Class::Call | Class::Program | Class::Prepared | Class::Unknown => Changes::Anything,
        // What a function does is unknown, but it cannot change definitions.
        _ if facts.has(Facts::CALLS_UNKNOWN) => Changes::AnyTable,
        _ if facts.has_any(TEMPORARY) => Changes::Nothing,
        Class::Write => of_names(changed_tables(text, mode)),
        // TRUNCATE is one that names what it changes.
        Class::Definition => match changed_tables(text, mode) {
            Some(tables) => of_names(Some(tables)),
            None => Changes::Anything,
        },
        // EXPLAIN and ANALYZE of a change, the latter of which carries it out.
        Class::Account | Class::Admin | Class::Show => Changes::AnyTable,
        // WITH before a change, as MySQL has it.
        Class::Query if has_verb_of_change(text, mode) => Changes::AnyTable,
        // Sessions that begin from now on may be told something else.
        Class::Set if facts.has(Facts::SETS_GLOBAL_VARIABLES) => Changes::AnyTable,
        // They are writes since only the primary has what they take: locks, variables, sequences.
        Class::Query
        | Class::Do
        | Class::Set
        | Class::Use
        | Class::Lock
        | Class::Handler
        | Class::Kill
        | Class::Diagnostics
        | Class::Transaction
        | Class::Xa
        | Class::Empty => Changes::Nothing,
    }
}

/// Tables that no other session sees.
const TEMPORARY: Facts = Facts::CREATES_TEMPORARY.with(Facts::DROPS_TEMPORARY);

fn of_names(tables: Option<Vec<Cow<'_, [u8]>>>) -> Changes {
    let tables = tables.unwrap_or_default();
    Changes::of_tables(tables.iter().map(|name| &**name))
}

/// What a text has changed that a server has carried out. What a transaction has changed is told by
/// its statements, and not by its end.
#[must_use]
pub fn changes_of(text: &[u8], mode: SqlMode) -> Changes {
    let first = classify(text, mode);
    let changed = changes(text, mode, first.class, &verdict(text, mode));
    changed.and(of_effect(first.effect))
}

/// What the end of a transaction changes that is not the session's own.
pub(crate) fn of_effect(effect: Effect) -> Changes {
    match effect {
        // Whose changes they are is not known.
        Effect::XaFinish => Changes::AnyTable,
        _ => Changes::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Touched {
        let (text, mode) = (text.as_bytes(), SqlMode::default());
        Touched::of(text, mode, classify(text, mode).class, &verdict(text, mode))
    }

    fn is_kept(text: &str) -> bool {
        of(text).names.is_ok()
    }

    #[test]
    fn queries_of_tables_alone_are_kept() {
        for text in [
            "SELECT c FROM t WHERE id = 1",
            "SELECT COUNT(*), UPPER(c) FROM t JOIN d.u USING (id) GROUP BY 1",
            "(SELECT 1) UNION SELECT a FROM t",
            "WITH a AS (SELECT 1) SELECT * FROM a",
            "SELECT 1",
        ] {
            assert!(is_kept(text), "{text}");
        }
        for text in [
            "SELECT NOW()",
            "SELECT RAND()",
            "SELECT CURRENT_USER()",
            "SELECT @a",
            "SELECT @@version",
            "SELECT f(1)",
            "SELECT a FROM t FOR UPDATE",
            "SELECT a FROM t LOCK IN SHARE MODE",
            "SELECT SQL_NO_CACHE a FROM t",
            "SELECT SQL_CALC_FOUND_ROWS a FROM t",
            "SELECT FOUND_ROWS()",
            "SELECT a INTO @b FROM t",
            "SELECT a FROM t INTO OUTFILE 'f'",
            "SELECT * FROM information_schema.tables",
            "SELECT GET_LOCK('a', 1)",
            "SELECT a FROM t; SELECT b FROM t",
            "SELECT a FROM t FOR SYSTEM_TIME ALL",
            "SELECT NEXT VALUE FOR s",
            "SHOW TABLES",
            "CALL p",
            "VALUES (UUID())",
            "SELECT a FROM `\u{e4}`",
        ] {
            assert!(!is_kept(text), "{text}");
        }
    }

    #[test]
    fn what_keeps_a_reply_from_being_kept_is_told() {
        let many = format!("SELECT {} FROM t", ["c"; NAMES_MAX].join("1, c"));
        let columns: Vec<String> = (0..NAMES_MAX).map(|it| format!("c{it}")).collect();
        let too_many = format!("SELECT {} FROM t", columns.join(", "));
        for (text, expected) in [
            ("INSERT INTO t VALUES (1)", Unkept::NoQuery),
            ("SELECT 1; SELECT 2", Unkept::Several),
            ("SELECT RAND()", Unkept::Facts(Facts::NOT_DETERMINISTIC)),
            ("SELECT @a", Unkept::Facts(Facts::READS_USER_VARIABLES)),
            ("SELECT f()", Unkept::Facts(Facts::CALLS_UNKNOWN)),
            (
                "SELECT SQL_NO_CACHE a FROM t",
                Unkept::Facts(Facts::NO_CACHE),
            ),
            ("SELECT a FROM t FOR UPDATE", Unkept::Locks),
            ("SELECT a FROM `\u{e4}`", Unkept::OddName),
            (&too_many, Unkept::ManyNames),
        ] {
            assert_eq!(of(text).names, Err(expected), "{text}");
        }
        assert!(is_kept(&many), "it has few names that differ");
        let unknown = Touched::unknown().names;
        assert_eq!(unknown, Err(Unkept::Facts(Facts::NOT_UNDERSTOOD)));
    }

    #[test]
    fn a_query_has_at_most_so_many_names() {
        let text = |count| {
            let columns: Vec<String> = (1..count).map(|it| format!("c{it}")).collect();
            format!("SELECT {} FROM t WHERE c1 = c2", columns.join(", "))
        };
        for (count, expected) in [
            (NAMES_MAX - 1, true),
            (NAMES_MAX, true),
            (NAMES_MAX + 1, false),
        ] {
            assert_eq!(is_kept(&text(count)), expected, "{count}");
        }
        let names = of("SELECT a, A FROM t, t AS a").names.unwrap();
        assert_eq!(names.len(), 2);
    }

    #[test]
    fn changes_are_those_of_the_named_tables_or_more() {
        let tables =
            |names: &[&'static str]| Changes::of_tables(names.iter().map(|name| name.as_bytes()));
        for (text, expected) in [
            ("SELECT a FROM t", Changes::Nothing),
            ("SELECT a FROM t FOR UPDATE", Changes::Nothing),
            ("SELECT GET_LOCK('a', 1)", Changes::Nothing),
            ("SELECT f(1)", Changes::AnyTable),
            ("COMMIT", Changes::Nothing),
            ("SET GLOBAL read_only = 1", Changes::AnyTable),
            (
                "WITH c AS (SELECT 1 a) UPDATE t JOIN c SET t.a = 2",
                Changes::AnyTable,
            ),
            ("SELECT NEXT VALUE FOR s", Changes::Nothing),
            ("SET @a = f()", Changes::AnyTable),
            ("SHOW TABLES", Changes::Nothing),
            ("INSERT INTO t VALUES (1)", tables(&["t"])),
            ("INSERT INTO t VALUES (f())", Changes::AnyTable),
            ("UPDATE t SET a = 1", tables(&["t"])),
            (
                "DELETE t FROM t JOIN u ON t.a = u.b",
                tables(&["t", "u", "a", "b"]),
            ),
            (
                "DELETE t FROM t JOIN u ON t.a = u.b AND t.c = 1",
                Changes::AnyTable,
            ),
            ("TRUNCATE t", tables(&["t"])),
            ("LOAD DATA INFILE 'f' INTO TABLE t", tables(&["t"])),
            ("ANALYZE UPDATE t SET a = 1", Changes::AnyTable),
            (
                "SET STATEMENT max_statement_time = 1 FOR DELETE FROM t",
                Changes::AnyTable,
            ),
            ("GRANT SELECT ON t TO u", Changes::AnyTable),
            ("CREATE TABLE t (a INT)", Changes::Anything),
            ("CREATE TEMPORARY TABLE t (a INT)", Changes::Nothing),
            ("DROP TABLE t", Changes::Anything),
            (
                "CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET @a = 1",
                Changes::Anything,
            ),
            ("CALL p", Changes::Anything),
            ("EXECUTE s", Changes::Anything),
            ("BEGIN NOT ATOMIC SELECT 1; END", Changes::Anything),
            (
                "INSERT INTO t VALUES (1); INSERT INTO u VALUES (1)",
                Changes::Anything,
            ),
            ("INSERT INTO t VALUES (1 /*M! , 2 */)", Changes::Anything),
            ("what", Changes::Anything),
        ] {
            assert_eq!(of(text).changes, expected, "{text}");
            assert_eq!(changes_of(text.as_bytes(), SqlMode::default()), expected);
        }
        let finish = changes_of(b"XA COMMIT X'61',X'',1", SqlMode::default());
        assert_eq!(finish, Changes::AnyTable);
    }
}
