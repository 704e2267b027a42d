//! Classes, effects and details of single statements, as tables.

use super::super::effect::{SetCompletion, Switch};
use super::*;

fn first(text: &str) -> Statement<'_> {
    classify(text.as_bytes(), SqlMode::default())
}

fn completion_of(chain: Tail, release: Tail) -> Completion {
    Completion { chain, release }
}

/// Texts of each class.
const CLASSES: &[(Class, &[&str])] = &[
    (
        Class::Query,
        &[
            "SELECT 1",
            "((select 1))",
            "/* a */ WITH a AS (SELECT 1) SELECT 1",
            "VALUES (1)",
        ],
    ),
    (
        Class::Write,
        &[
            "INSERT INTO t VALUES (1)",
            "replace t set a = 1",
            "LOAD DATA INFILE 'a' INTO TABLE t",
            "CREATE TEMPORARY TABLE t (a INT)",
            "ANALYZE UPDATE t SET a = 1",
        ],
    ),
    (Class::Do, &["DO 1"]),
    (Class::Call, &["CALL p()"]),
    (
        Class::Program,
        &[
            "BEGIN NOT ATOMIC SELECT 1; END",
            "IF 1 THEN SELECT 1; END IF",
            "a: LOOP LEAVE a; END LOOP",
            "WHILE 0 DO SELECT 1; END WHILE",
        ],
    ),
    (
        Class::Definition,
        &[
            "CREATE TABLE t (a INT)",
            "ALTER TABLE t ADD b INT",
            "DROP VIEW v",
            "TRUNCATE t",
            "RENAME TABLE a TO b",
        ],
    ),
    (
        Class::Transaction,
        &[
            "BEGIN",
            "START TRANSACTION",
            "COMMIT",
            "ROLLBACK TO a",
            "SAVEPOINT a",
            "RELEASE SAVEPOINT a",
            "SET TRANSACTION READ ONLY",
        ],
    ),
    (Class::Xa, &["XA START 'a'", "XA nonsense"]),
    (Class::Set, &["SET a = 1", "/*!40101 SET NAMES utf8 */"]),
    (
        Class::Show,
        &[
            "SHOW TABLES",
            "EXPLAIN SELECT 1",
            "DESC t",
            "HELP 'a'",
            "CHECKSUM TABLE t",
        ],
    ),
    (Class::Use, &["USE a"]),
    (
        Class::Prepared,
        &[
            "PREPARE s FROM 'SELECT 1'",
            "EXECUTE s",
            "EXECUTE IMMEDIATE 'SELECT 1'",
            "DROP PREPARE s",
        ],
    ),
    (
        Class::Diagnostics,
        &["GET DIAGNOSTICS @a = NUMBER", "SIGNAL SQLSTATE '45000'"],
    ),
    (
        Class::Lock,
        &[
            "LOCK TABLES t READ",
            "UNLOCK TABLES",
            "FLUSH TABLES t WITH READ LOCK",
        ],
    ),
    (
        Class::Unknown,
        &["LOCK INSTANCE FOR BACKUP", "UNLOCK INSTANCE", "nonsense"],
    ),
    (Class::Handler, &["HANDLER t OPEN"]),
    (
        Class::Account,
        &[
            "GRANT ALL ON *.* TO a",
            "CREATE USER a",
            "DROP ROLE r",
            "SET PASSWORD = 'a'",
        ],
    ),
    (Class::Kill, &["KILL 7"]),
    (
        Class::Admin,
        &[
            "FLUSH STATUS",
            "ANALYZE TABLE t",
            "OPTIMIZE TABLE t",
            "START SLAVE",
        ],
    ),
    (Class::Empty, &["", "  ", "-- a", "/* a */"]),
    (Class::Unknown, &["blah", "1", "? = ?"]),
];

#[test]
fn classes_are_told_by_the_first_words() {
    for (class, texts) in CLASSES {
        for text in *texts {
            assert_eq!(first(text).class, *class, "{text}");
        }
    }
}

#[test]
fn transactions_have_their_effects() {
    let begin = Effect::Begin;
    for (text, effect) in [
        ("BEGIN", begin(Access::Default)),
        ("BEGIN WORK;", begin(Access::Default)),
        (
            "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
            begin(Access::ReadOnly),
        ),
        ("START TRANSACTION READ WRITE", begin(Access::ReadWrite)),
        (
            "COMMIT",
            Effect::Commit(completion_of(Tail::Default, Tail::Default)),
        ),
        (
            "COMMIT WORK AND CHAIN",
            Effect::Commit(completion_of(Tail::Yes, Tail::Default)),
        ),
        (
            "COMMIT AND NO CHAIN NO RELEASE",
            Effect::Commit(completion_of(Tail::No, Tail::No)),
        ),
        (
            "ROLLBACK RELEASE",
            Effect::Rollback(completion_of(Tail::Default, Tail::Yes)),
        ),
        ("ROLLBACK WORK TO SAVEPOINT a", Effect::None),
        ("SAVEPOINT a", Effect::None),
        ("XA BEGIN 'a' JOIN", Effect::XaStart),
        ("XA END 'a'", Effect::None),
        ("XA COMMIT 'a' ONE PHASE", Effect::XaFinish),
        ("CREATE TABLE t (a INT)", Effect::ImplicitCommit),
        ("DROP TEMPORARY TABLE t", Effect::Uses),
        ("FLUSH TABLES", Effect::ImplicitCommit),
        ("FLUSH TABLES a, b FOR EXPORT", Effect::FlushLock),
        ("LOCK TABLES t WRITE", Effect::Lock),
        ("UNLOCK TABLES", Effect::Unlock),
        ("SET PASSWORD = 'a'", Effect::ImplicitCommit),
        ("BEGIN NOT ATOMIC END", Effect::Unknown),
        ("CALL p()", Effect::Unknown),
        ("SELECT 1", Effect::Uses),
        ("USE a", Effect::None),
    ] {
        assert_eq!(first(text).effect, effect, "{text}");
    }
}

#[test]
fn set_finds_what_matters_to_transactions() {
    let set = |change: fn(&mut SetEffect)| {
        let mut effect = SetEffect::default();
        change(&mut effect);
        Effect::Set(effect)
    };
    let on = set(|it| it.autocommit = Some(Switch::On));
    let off = set(|it| it.autocommit = Some(Switch::Off));
    let next = set(|it| it.next_read_only = Some(Switch::On));
    let session = set(|it| it.session_read_only = Some(Switch::On));
    let isolation = set(|it| it.sets_next_isolation = true);
    let chain = set(|it| it.completion = Some(SetCompletion::Chain));
    for (text, effect) in [
        ("SET autocommit=0", off),
        ("SET @@session.autocommit = ON", on),
        ("SET NAMES utf8, AUTOCOMMIT := 1;", on),
        ("SET SESSION `autocommit`='off'", off),
        ("SET GLOBAL autocommit=0", Effect::None),
        ("SET @@global.autocommit=0", Effect::None),
        ("SET @autocommit=1", Effect::None),
        ("SET a = 1, b = 2", Effect::None),
        ("SET TRANSACTION READ ONLY", next),
        ("SET @@tx_read_only = 1", next),
        ("SET SESSION TRANSACTION READ ONLY", session),
        ("SET tx_read_only = 1", session),
        ("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", isolation),
        ("SET completion_type = CHAIN", chain),
    ] {
        assert_eq!(first(text).effect, effect, "{text}");
    }
    let Effect::Set(unknown) = first("SET autocommit = @a").effect else {
        panic!("it sets autocommit");
    };
    assert_eq!(unknown.autocommit, Some(Switch::Unknown));
    let inner = first("SET STATEMENT max_statement_time = 1 FOR UPDATE t SET a = 1");
    assert!(inner.has_set_statement);
    assert_eq!((inner.class, inner.effect), (Class::Write, Effect::Uses));
}

#[test]
fn details_have_names_and_numbers() {
    assert_eq!(first("USE `a b`").detail, Detail::Use(b"`a b`"));
    let literal = Source::Literal(b"'SELECT 1'");
    let prepared = first("PREPARE s FROM 'SELECT 1'").detail;
    assert_eq!(prepared, Detail::Prepare(b"s", literal));
    let prepared = first("PREPARE s FROM @a").detail;
    assert_eq!(prepared, Detail::Prepare(b"s", Source::Expression));
    assert_eq!(first("EXECUTE s USING @a").detail, Detail::Execute(b"s"));
    assert_eq!(
        first("DEALLOCATE PREPARE s").detail,
        Detail::Deallocate(b"s")
    );
    assert_eq!(first("DROP PREPARE s").detail, Detail::Deallocate(b"s"));
    assert_eq!(first("HANDLER a.b OPEN AS c").detail, Detail::HandlerOpen);
    assert_eq!(first("HANDLER c CLOSE").detail, Detail::HandlerClose);
    assert_eq!(first("HANDLER c READ NEXT").detail, Detail::HandlerRead);
    let global = first("FLUSH LOCAL TABLES WITH READ LOCK").detail;
    assert_eq!(global, Detail::GlobalReadLock);
    for (text, is_soft, is_query, target) in [
        ("KILL 7", false, false, KillTarget::Connection(7)),
        (
            "KILL SOFT CONNECTION 7;",
            true,
            false,
            KillTarget::Connection(7),
        ),
        ("KILL QUERY ID 8", false, true, KillTarget::Statement(8)),
        ("KILL HARD USER a@b", false, false, KillTarget::User(b"a@b")),
        ("KILL 1 + 1", false, false, KillTarget::Unknown),
    ] {
        let kill = Kill {
            is_soft,
            is_query,
            target,
        };
        assert_eq!(first(text).detail, Detail::Kill(kill), "{text}");
    }
    assert_eq!(first("XA COMMIT 'a'").detail, Detail::Xa(Xa::Commit));
}

#[test]
fn several_statements_are_found_and_read_one_by_one() {
    let mode = SqlMode::default();
    for text in [
        "",
        "SELECT 1",
        "SELECT ';'",
        "SELECT 1;",
        "SELECT 1; ; -- a",
        "SELECT 1 /* ; */",
    ] {
        assert!(!is_several(text.as_bytes(), mode), "{text}");
    }
    for text in [
        "SELECT 1; SELECT 2",
        "; SELECT 1; SELECT 2",
        "BEGIN; /* a */ COMMIT",
    ] {
        assert!(is_several(text.as_bytes(), mode), "{text}");
    }
    let classes = |text: &str| {
        let all = Statements::new(text.as_bytes(), mode);
        all.map(|it| it.class).collect::<Vec<_>>()
    };
    assert_eq!(classes(""), [Class::Empty]);
    assert_eq!(classes(";SELECT 1;;DO 1;"), [Class::Query, Class::Do]);
    assert_eq!(
        classes("SET a = 1; BEGIN; USE a"),
        [Class::Set, Class::Transaction, Class::Use]
    );
    // A body has `;` of its own.
    let body = "SELECT 1; CREATE PROCEDURE p() BEGIN SELECT 1; END; SELECT 2";
    assert_eq!(classes(body), [Class::Query, Class::Definition]);
    assert_eq!(
        classes("BEGIN NOT ATOMIC DO 1; END; DO 2"),
        [Class::Program]
    );
}
