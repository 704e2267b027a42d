//! Sessions as lists of events: a text, where it may go, and what its server reports.

use syntax::class::Facts;
use wire::StatusFlags;

use super::*;
use crate::judge::Judge;

const PRIMARY: ServerId = ServerId(0);
const REPLICA: ServerId = ServerId(1);

/// A session whose servers answer as told.
struct Scene {
    session: Session,
    judge: Judge,
}

/// What the server reports after a statement.
#[derive(Clone, Copy)]
enum Said {
    /// No transaction is open.
    Idle,
    /// One is.
    Open,
    /// The statement failed.
    Failed,
    /// As `Idle`, and that the session has changed.
    Changed,
}

use Goal::{Held, Primary, PrimaryFirst, Replica};
use Said::{Changed, Failed, Idle, Open};

impl Scene {
    fn new() -> Scene {
        let mut session = Session::default();
        session.observe_login(StatusFlags::AUTOCOMMIT);
        Scene {
            session,
            judge: Judge::default(),
        }
    }

    fn plan(&mut self, text: &str) -> Plan {
        let mode = SqlMode::default();
        let judged = self.judge.judge(text.as_bytes(), mode);
        self.session.plan(text.as_bytes(), mode, &judged)
    }

    /// The statement may go to `goal`, and is answered there.
    fn step(&mut self, text: &str, goal: Goal, said: Said) -> &mut Scene {
        let at = match goal {
            Held(server) => server,
            Primary | PrimaryFirst => PRIMARY,
            Replica => REPLICA,
        };
        self.step_at(text, goal, at, said)
    }

    fn step_at(&mut self, text: &str, goal: Goal, at: ServerId, said: Said) -> &mut Scene {
        let plan = self.plan(text);
        assert_eq!(plan.goal, goal, "{text}: {plan:?} {:?}", self.session);
        let mut changes = SessionChanges::new();
        let status = match said {
            Failed => None,
            Open => Some(StatusFlags::AUTOCOMMIT | StatusFlags::IN_TRANSACTION),
            Idle => Some(StatusFlags::AUTOCOMMIT),
            Changed => {
                changes.state();
                Some(StatusFlags::AUTOCOMMIT)
            }
        };
        let report = Report {
            status,
            changes: Some(changes.as_bytes()),
            tells_writes: true,
            told: Told::default(),
        };
        self.session.answered(&plan, at, report);
        self
    }

    fn pins(&self, expected: &[Pin]) {
        assert_eq!(self.session.pins().iter().collect::<Vec<_>>(), expected);
    }
}

#[test]
fn reads_go_to_replicas_and_all_else_to_the_primary() {
    for text in [
        "SELECT a FROM t WHERE id = 1",
        "(SELECT 1) UNION (SELECT 2)",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "SELECT NOW(), RAND()",
        "SELECT @a",
        "SELECT SQL_CALC_FOUND_ROWS a FROM t LIMIT 1",
        "VALUES (1)",
    ] {
        let plan = Scene::new().plan(text);
        assert_eq!((plan.goal, plan.may_repeat), (Replica, true), "{text}");
        assert!(!plan.may_write && !plan.is_kept, "{text}");
    }
    for text in [
        "INSERT INTO t VALUES (1)",
        "UPDATE t SET a = 1",
        "DELETE FROM t",
        "SELECT a FROM t FOR UPDATE",
        "SELECT a FROM t LOCK IN SHARE MODE",
        "SELECT f(a) FROM t",
        "SELECT NEXTVAL(s)",
        "SELECT GET_LOCK('a', 1)",
        "SELECT a FROM t INTO OUTFILE '/a'",
        "CALL p()",
        "CREATE TABLE t (a INT)",
        "SELECT @@last_insert_id",
        "SELECT LAST_INSERT_ID()",
        "SELECT CONNECTION_ID()",
        "SELECT @a := 1",
        "SELECT 1 INTO @a",
        "SELECT 1; SELECT 2",
        "BEGIN",
        "COMMIT",
        "XA START 'a'",
        "HANDLER t OPEN",
        "GRANT ALL ON *.* TO a",
        "EXECUTE s",
        "nonsense",
    ] {
        let plan = Scene::new().plan(text);
        assert_eq!((plan.goal, plan.may_repeat), (Primary, false), "{text}");
    }
}

#[test]
fn what_drivers_send_at_first_needs_no_primary() {
    for (text, is_kept) in [
        ("SET NAMES utf8mb4", true),
        ("SET autocommit = 1", true),
        ("USE shop", true),
        ("PREPARE s FROM 'SELECT 1'", true),
        ("SELECT @@version_comment LIMIT 1", false),
        ("SHOW TABLES", false),
        ("", false),
        ("SHOW VARIABLES LIKE 'a'", false),
    ] {
        let plan = Scene::new().plan(text);
        let found = (plan.goal, plan.is_kept, plan.may_repeat);
        assert_eq!(found, (PrimaryFirst, is_kept, false), "{text}");
    }
    let command = Scene::new().session.plan_session_command();
    assert_eq!(command.goal, PrimaryFirst);
}

#[test]
fn a_write_that_failed_may_have_written() {
    for (text, expected) in [
        ("INSERT INTO t VALUES (1), (1)", Written::Somewhere),
        ("CALL p()", Written::Somewhere),
        ("SELECT f(a) FROM t", Written::Somewhere),
        ("DROP TABLE a, b", Written::Somewhere),
        ("COMMIT", Written::Somewhere),
        ("DELETE FROM t; SELECT a", Written::Somewhere),
        ("BEGIN", Written::Nothing),
    ] {
        let mut scene = Scene::new();
        scene.step(text, Primary, Failed);
        assert_eq!(*scene.session.written(), expected, "{text}");
    }
    let mut scene = Scene::new();
    scene.step("SET autocommit = 1", PrimaryFirst, Failed);
    assert_eq!(*scene.session.written(), Written::Nothing);
    // What ends an open transaction commits it, and may fail behind that.
    for (text, expected) in [
        ("BEGIN", Written::Somewhere),
        ("LOCK TABLES t READ", Written::Somewhere),
        ("SET autocommit = 1", Written::Somewhere),
        ("SELECT a FROM t FOR UPDATE", Written::Nothing),
        ("SELECT a FROM t", Written::Nothing),
        ("SAVEPOINT a", Written::Nothing),
    ] {
        let mut scene = Scene::new();
        scene.step("BEGIN", Primary, Open);
        scene.step(text, Held(PRIMARY), Failed);
        assert_eq!(*scene.session.written(), expected, "{text}");
    }
}

#[test]
fn a_transaction_stays_where_it_was_begun() {
    let mut scene = Scene::new();
    scene
        .step("BEGIN", Primary, Open)
        .step("SELECT a FROM t", Held(PRIMARY), Open)
        .step("UPDATE t SET a = 1", Held(PRIMARY), Failed)
        .step("SELECT a FROM t", Held(PRIMARY), Open)
        .step("COMMIT", Held(PRIMARY), Idle)
        .step("SELECT a FROM t", Replica, Idle)
        .step("START TRANSACTION READ ONLY", Replica, Open)
        .step("SELECT a FROM t", Held(REPLICA), Open)
        .step("COMMIT", Held(REPLICA), Idle)
        .step("UPDATE t SET a = 1", Primary, Idle);
    // After a deadlock the next reply tells that none is open any more.
    scene
        .step("BEGIN", Primary, Open)
        .step("UPDATE t SET a = 1", Held(PRIMARY), Failed)
        .step("SELECT a FROM t", Held(PRIMARY), Idle)
        .step("SELECT a FROM t", Replica, Idle);
    assert_eq!(scene.session.loss(PRIMARY), Loss::Nothing);
    scene.step("BEGIN", Primary, Open);
    assert_eq!(scene.session.loss(PRIMARY), Loss::Transaction);
    assert_eq!(scene.session.loss(REPLICA), Loss::Nothing);
}

#[test]
fn a_session_may_be_read_only_for_good_or_once() {
    let mut scene = Scene::new();
    let text = "SET SESSION TRANSACTION READ ONLY";
    assert!(scene.plan(text).is_kept);
    scene
        .step(text, PrimaryFirst, Changed)
        .step("BEGIN", Replica, Open)
        .step("COMMIT", Held(REPLICA), Idle)
        .step("START TRANSACTION READ WRITE", Primary, Open)
        .step("COMMIT", Held(PRIMARY), Idle)
        .pins(&[]);
    let mut scene = Scene::new();
    scene.step("SET TRANSACTION READ ONLY", Primary, Changed);
    scene.pins(&[Pin::NextTransaction]);
    scene
        .step("START TRANSACTION", Held(PRIMARY), Open)
        .step("COMMIT", Held(PRIMARY), Idle)
        .step("SELECT 1", Replica, Idle)
        .pins(&[]);
}

#[test]
fn without_autocommit_statements_go_to_the_primary() {
    let mut scene = Scene::new();
    let plan = scene.plan("SET autocommit = 0");
    assert!(plan.is_kept && plan.goal == PrimaryFirst);
    let report = Report {
        status: Some(StatusFlags::default()),
        changes: Some(b""),
        tells_writes: true,
        told: Told::default(),
    };
    scene.session.answered(&plan, PRIMARY, report);
    scene
        .step("SELECT 1", Primary, Open)
        .step("SELECT 1", Held(PRIMARY), Idle)
        .step("SELECT 1", Replica, Idle);
}

/// The server has it before it tells a transaction.
#[test]
fn a_savepoint_without_autocommit_stays_until_its_transaction_ends() {
    let answer = |scene: &mut Scene, text: &str, status: StatusFlags| {
        let plan = scene.plan(text);
        let report = Report {
            status: Some(status),
            changes: Some(b""),
            tells_writes: true,
            told: Told::default(),
        };
        scene.session.answered(&plan, PRIMARY, report);
        scene.session.pins().iter().collect::<Vec<_>>()
    };
    let (idle, open) = (StatusFlags::default(), StatusFlags::IN_TRANSACTION);
    for end in ["COMMIT", "ROLLBACK", "TRUNCATE t", "SET autocommit = 1"] {
        let mut scene = Scene::new();
        assert_eq!(
            answer(&mut scene, "SAVEPOINT a", StatusFlags::AUTOCOMMIT),
            []
        );
        assert_eq!(answer(&mut scene, "SET autocommit = 0", idle), []);
        let pinned = [Pin::Savepoint];
        assert_eq!(answer(&mut scene, "SAVEPOINT a", idle), pinned);
        assert_eq!(scene.plan("SELECT 1").goal, Held(PRIMARY));
        assert_eq!(answer(&mut scene, "DO 1", idle), pinned);
        assert_eq!(answer(&mut scene, "INSERT INTO t VALUES (1)", open), pinned);
        assert_eq!(answer(&mut scene, "ROLLBACK TO a", open), pinned);
        let after = match end {
            "SET autocommit = 1" => StatusFlags::AUTOCOMMIT,
            _ => idle,
        };
        assert_eq!(answer(&mut scene, end, after), [], "{end}");
        assert!(scene.session.is_at_rest(), "{end}");
    }
}

#[test]
fn what_a_statement_leaves_is_read_where_it_ran() {
    let mut scene = Scene::new();
    scene
        .step("SHOW WARNINGS", Primary, Idle)
        .step("SELECT SQL_CALC_FOUND_ROWS a FROM t LIMIT 1", Replica, Idle)
        .step("SELECT FOUND_ROWS()", Held(REPLICA), Idle)
        .step("UPDATE t SET a = 1", Primary, Idle)
        .step("SELECT ROW_COUNT()", Held(PRIMARY), Idle)
        .step("SELECT a FROM t", Replica, Idle)
        .step("SHOW WARNINGS", Held(REPLICA), Idle)
        .step("SELECT LAST_INSERT_ID()", Primary, Idle);
    scene.session.forget(PRIMARY);
    scene.step("SHOW WARNINGS", Primary, Idle);
}

#[test]
fn of_several_statements_that_fail_one_may_have_begun_a_transaction() {
    for (text, stays) in [
        ("BEGIN; UPDATE t SET nothing = 1; COMMIT", true),
        ("SELECT 1; SELECT nothing", false),
    ] {
        let mut scene = Scene::new();
        scene.step(text, Primary, Failed);
        let pins = scene.session.pins();
        assert_eq!(pins.has(Pin::SeveralStatements), stays, "{text}");
    }
}

#[test]
fn state_that_others_cannot_be_given_pins() {
    let pinned = |text: &str, pins: &[Pin]| {
        let mut scene = Scene::new();
        scene.step(text, Primary, Idle).pins(pins);
        if pins.is_empty() {
            scene.step("SELECT 1", Replica, Idle);
        } else {
            scene.step("SELECT 1", Held(PRIMARY), Idle);
            assert_eq!(scene.session.loss(PRIMARY), Loss::State);
        }
        let mut failed = Scene::new();
        failed.step(text, Primary, Failed);
        let stays = failed.session.pins().has(Pin::SeveralStatements);
        assert_eq!(stays, pins.contains(&Pin::SeveralStatements), "{text}");
    };
    pinned("CREATE TEMPORARY TABLE t (a INT)", &[Pin::TemporaryTable]);
    pinned("SELECT GET_LOCK('a', 1)", &[Pin::UserLock]);
    pinned("LOCK TABLES t READ", &[Pin::TableLock]);
    pinned("FLUSH TABLES WITH READ LOCK", &[Pin::TableLock]);
    pinned("HANDLER t OPEN", &[Pin::Handler]);
    pinned("SELECT @a := 1", &[Pin::UserVariable]);
    pinned("SELECT a FROM t LIMIT 1 INTO @a", &[Pin::UserVariable]);
    pinned("SET @a = (SELECT MAX(a) FROM t)", &[Pin::UserVariable]);
    pinned("SET @a = UUID()", &[Pin::UserVariable]);
    pinned("SET @a = LAST_INSERT_ID()", &[Pin::UserVariable]);
    pinned("SET @a = f()", &[Pin::UserVariable]);
    pinned("SET sql_mode = f()", &[Pin::SystemVariable]);
    pinned("SET insert_id = 7", &[Pin::SystemVariable]);
    pinned("SET sql_auto_is_null = 1", &[Pin::SystemVariable]);
    pinned("SET SQL_AUTO_IS_NULL = @a", &[Pin::SystemVariable]);
    pinned("SET GLOBAL a = 1, SESSION b = 2", &[Pin::SystemVariable]);
    pinned("SET GLOBAL a = 1", &[]);
    pinned("SELECT @a := a FROM t FOR UPDATE", &[Pin::UserVariable]);
    pinned("INSERT INTO t VALUES (@a := 1)", &[Pin::UserVariable]);
    pinned("SET @a = 1; SELECT @a", &[Pin::SeveralStatements]);
    pinned("SELECT 1; SELECT 2", &[]);
    pinned("CREATE TABLE t (a INT)", &[]);
    let mut scene = Scene::new();
    scene
        .step("LOCK TABLES t READ", Primary, Idle)
        .step("UNLOCK TABLES", Held(PRIMARY), Idle)
        .step("SELECT 1", Replica, Idle)
        .step("DO GET_LOCK('a', 1)", Primary, Idle)
        .step("DO RELEASE_ALL_LOCKS()", Held(PRIMARY), Idle)
        .step("SELECT 1", Replica, Idle);
    // The lock of MySQL's backups is another one than those of tables.
    let mut scene = Scene::new();
    scene
        .step("LOCK INSTANCE FOR BACKUP", Primary, Idle)
        .step("UNLOCK TABLES", Held(PRIMARY), Idle)
        .step("SELECT 1", Held(PRIMARY), Idle);
    // Drivers turn it off when they connect.
    let mut scene = Scene::new();
    scene
        .step("SET SQL_AUTO_IS_NULL = 0", PrimaryFirst, Idle)
        .pins(&[]);
}

#[test]
fn what_the_text_does_not_show_pins() {
    let mut scene = Scene::new();
    scene.step("CALL p()", Primary, Changed);
    scene.pins(&[Pin::Unknown]);
    scene.step("SELECT 1", Held(PRIMARY), Idle);
    let mut scene = Scene::new();
    scene
        .step("SET NAMES utf8mb4", PrimaryFirst, Changed)
        .pins(&[]);
    let status = StatusFlags::AUTOCOMMIT;
    let plan = scene.plan("CALL p()");
    let report = Report {
        status: Some(status),
        changes: None,
        tells_writes: true,
        told: Told::default(),
    };
    scene.session.answered(&plan, PRIMARY, report);
    scene.pins(&[Pin::Unknown]);
    scene.session.reset(status);
    scene.pins(&[]);
    scene.step("SELECT 1", Replica, Idle);
}

#[test]
fn commands_of_the_session_are_kept_if_others_can_repeat_them() {
    for text in [
        "SET NAMES utf8mb4",
        "SET @a = 1",
        "SET @b = @a",
        "SET sql_mode = CONCAT(@@sql_mode, ',ANSI')",
        "USE db",
        "PREPARE s FROM 'SELECT 1'",
        "SET ROLE r",
        "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    ] {
        let plan = Scene::new().plan(text);
        assert!(plan.is_kept && plan.pins.is_empty(), "{text}: {plan:?}");
    }
    for text in [
        "SET GLOBAL a = 1",
        "SET PASSWORD = 'a'",
        "SET insert_id = 7",
        "SET @@session.gtid_seq_no = 7",
        "SET gtid_next = '3e11fa47-71ca-11e1-9e33-c80aa9429562:5'",
        "SET rand_seed1 = 7",
        "SET STATEMENT max_statement_time = 1 FOR SELECT 1",
        "SELECT 1",
        "GET DIAGNOSTICS @a = NUMBER",
        "SIGNAL SQLSTATE '01000' SET MESSAGE_TEXT = @a",
        "SET TRANSACTION READ ONLY",
    ] {
        assert!(!Scene::new().plan(text).is_kept, "{text}");
    }
}

#[test]
fn a_session_is_pinned_where_it_has_set_something() {
    let mut scene = Scene::new();
    scene.step("SELECT a FROM t", Replica, Idle);
    scene.session.pin(Pin::LastStatement, REPLICA);
    // A write may go elsewhere than to the server of the last read.
    scene.step("UPDATE t SET a = 1", Primary, Idle);
    scene.session.pin(Pin::LastStatement, REPLICA);
    scene.step("DELETE FROM t WHERE a = (@b := 1)", Primary, Idle);
    assert!(scene.session.pins().has(Pin::UserVariable));
    scene.step("SELECT a FROM t", Held(PRIMARY), Idle);
    // Also if it fails, and leaves something nevertheless.
    for text in [
        "INSERT INTO t VALUES (1); SELECT nothing",
        "INSERT INTO t VALUES (GET_LOCK('a', 1) + nothing)",
    ] {
        let mut scene = Scene::new();
        scene.step("SELECT a FROM t", Replica, Idle);
        scene.session.pin(Pin::LastStatement, REPLICA);
        scene.step(text, Primary, Failed);
        scene.step("INSERT INTO t VALUES (2)", Held(PRIMARY), Idle);
    }
}

#[test]
fn a_write_is_told_by_its_gtid() {
    let told = |text: &str, gtid: Option<&str>, tells_writes: bool| {
        let mut scene = Scene::new();
        let plan = scene.plan(text);
        let mut changes = SessionChanges::new();
        if let Some(gtid) = gtid {
            changes.variable("last_gtid", gtid.as_bytes());
        }
        let report = Report {
            status: Some(StatusFlags::AUTOCOMMIT),
            changes: Some(changes.as_bytes()),
            tells_writes,
            told: Told::default(),
        };
        scene.session.answered(&plan, PRIMARY, report);
        scene.session.written().clone()
    };
    let write = "INSERT INTO t VALUES (1)";
    let position = |text: &str| {
        let read = monitor::gtid::mariadb::MariaDbPosition::parse(text);
        Written::UpTo(GtidPosition::MariaDb(read.unwrap()))
    };
    assert_eq!(told(write, Some("0-1-5"), true), position("0-1-5"));
    assert_eq!(told("CALL p()", Some("0-1-5"), true), position("0-1-5"));
    assert_eq!(told(write, None, true), Written::Nothing);
    assert_eq!(told(write, None, false), Written::Somewhere);
    assert_eq!(told("SELECT 1", None, false), Written::Nothing);
    assert_eq!(told(write, Some("nonsense"), false), Written::Somewhere);
    let mut written = position("0-1-5");
    let Written::UpTo(next) = position("1-1-2") else {
        panic!("a position");
    };
    written.advance(Some(next));
    assert_eq!(written, position("0-1-5,1-1-2"));
    written.advance(None);
    assert_eq!(written, Written::Somewhere);
}

#[test]
fn flags_that_do_not_fit_are_counted() {
    let mut scene = Scene::new();
    scene.step("SELECT 1", Replica, Idle);
    assert_eq!(scene.session.surprises(), 0);
    scene.step("UPDATE t SET a = 1", Primary, Open);
    assert_eq!(scene.session.surprises(), 1);
    let judged = scene.judge.judge_unread(b"SELECT 1", SqlMode::default());
    assert!(judged.verdict.facts.has(Facts::NOT_UNDERSTOOD));
}

/// What pins a session pins its later writes, too, so it goes where these may go.
#[test]
fn what_pins_goes_to_the_primary() {
    let mut scene = Scene::new();
    scene.step("SELECT SQL_CALC_FOUND_ROWS 1", Replica, Idle);
    scene.step("SELECT FOUND_ROWS()", Held(REPLICA), Idle);
    scene.step("SELECT FOUND_ROWS() INTO @n", Primary, Idle);
    assert!(scene.session.pins().has(Pin::UserVariable));
    scene.step("INSERT INTO t VALUES (@n)", Held(PRIMARY), Idle);
    // What reads of the statement before goes where that went, until there is a write.
    let mut scene = Scene::new();
    scene.step("SELECT 1", Replica, Idle);
    scene.session.pin(Pin::LastStatement, REPLICA);
    scene.step("SELECT 2", Held(REPLICA), Idle);
    scene.step("INSERT INTO t VALUES (1)", Primary, Idle);
    scene.step("SELECT 3", Held(PRIMARY), Idle);
    // A rule or a hint sends no such read to a replica.
    let mut scene = Scene::new();
    let mode = SqlMode::default();
    let text = b"/* plateau: route=replica */ SELECT @r := @r + 1";
    let judged = scene.judge.judge(text, mode);
    let mut plan = scene.session.plan(text, mode, &judged);
    let hint = syntax::class::find_hint(text).unwrap().unwrap();
    scene.session.guide(&mut plan, &hint, None, &judged);
    assert_eq!(plan.goal, Primary);
}

#[test]
fn hints_guide_what_is_free_to_go() {
    let hinted = |scene: &mut Scene, text: &str, server: Option<ServerId>| {
        let mode = SqlMode::default();
        let judged = scene.judge.judge(text.as_bytes(), mode);
        let mut plan = scene.session.plan(text.as_bytes(), mode, &judged);
        let hint = syntax::class::find_hint(text.as_bytes()).unwrap().unwrap();
        scene.session.guide(&mut plan, &hint, server, &judged);
        plan
    };
    let mut scene = Scene::new();
    let mut goal = |text: &str, server| hinted(&mut scene, text, server).goal;
    let other = ServerId(2);
    assert_eq!(goal("/* plateau: route=primary */ SELECT 1", None), Primary);
    assert_eq!(
        goal("/* plateau: route=replica */ SELECT @@port", None),
        Replica
    );
    assert_eq!(
        goal("/* plateau: route=replica */ DELETE FROM t", None),
        Primary
    );
    let named = "/* plateau: server=c */ DELETE FROM t";
    assert_eq!(goal(named, Some(other)), Held(other));
    let plan = hinted(&mut scene, "/* plateau: max_lag=20, pin */ SELECT 1", None);
    assert_eq!(plan.lag_max, Some(std::time::Duration::from_millis(20)));
    assert!(plan.pins.has(Pin::Hint) && plan.may_repeat);
}

#[test]
fn a_transaction_may_have_parts_on_other_servers() {
    let other = ServerId(2);
    let mut scene = Scene::new();
    // Where a statement goes whose hint names the other server, and what it does to the parts.
    fn hinted(scene: &mut Scene, text: &str, server: ServerId) -> Plan {
        let text = format!("/* plateau: server=c */ {text}");
        let mode = SqlMode::default();
        let judged = scene.judge.judge(text.as_bytes(), mode);
        let mut plan = scene.session.plan(text.as_bytes(), mode, &judged);
        let hint = syntax::class::find_hint(text.as_bytes()).unwrap().unwrap();
        scene.session.guide(&mut plan, &hint, Some(server), &judged);
        plan
    }
    fn answer(scene: &mut Scene, plan: &Plan, at: ServerId, status: Option<StatusFlags>) {
        let changes = SessionChanges::new();
        let report = Report {
            status,
            changes: Some(changes.as_bytes()),
            tells_writes: true,
            told: Told::default(),
        };
        scene.session.answered(plan, at, report);
    }
    let open = Some(StatusFlags::AUTOCOMMIT | StatusFlags::IN_TRANSACTION);
    scene.step("BEGIN", Primary, Open);
    let plan = hinted(&mut scene, "UPDATE t SET a = 1", other);
    assert_eq!((plan.goal, plan.step), (Held(other), Step::Joins));
    scene.session.part_begun(other);
    assert_eq!(scene.session.parts(), [other], "before it is answered");
    answer(&mut scene, &plan, other, open);
    assert_eq!(scene.session.begin_part(), "START TRANSACTION");
    // It goes on at both.
    scene.step("UPDATE t SET a = 1", Held(PRIMARY), Open);
    let plan = hinted(&mut scene, "SELECT a FROM t", other);
    assert_eq!((plan.goal, plan.step), (Held(other), Step::MayJoin));
    answer(&mut scene, &plan, other, None);
    assert_eq!(scene.session.parts(), [other], "an error ends no part");
    let plan = hinted(&mut scene, "SELECT a FROM t", PRIMARY);
    assert_eq!((plan.goal, plan.step), (Held(PRIMARY), Step::MayJoin));
    assert_eq!(scene.session.loss(other), Loss::Transaction);
    // What ends it ends the parts before.
    for (text, step) in [
        ("COMMIT", Step::Commits),
        ("COMMIT AND CHAIN", Step::Commits),
        ("BEGIN", Step::Commits),
        ("CREATE TABLE x (a INT)", Step::Commits),
        ("LOCK TABLES t READ", Step::Commits),
        ("ROLLBACK", Step::RollsBack),
        ("SAVEPOINT a", Step::Refused),
        ("ROLLBACK TO a", Step::Refused),
        ("SET autocommit = 1", Step::Refused),
        ("SET @a = 1", Step::Refused),
        ("CALL p()", Step::Refused),
        ("SELECT 1; COMMIT", Step::Refused),
        ("XA START 'a'", Step::Refused),
        ("USE x", Step::Refused),
        ("INSERT INTO t VALUES (1)", Step::MayJoin),
    ] {
        let plan = scene.plan(text);
        assert_eq!((plan.goal, plan.step), (Held(PRIMARY), step), "{text}");
    }
    scene.session.parts_ended();
    scene.step("COMMIT", Held(PRIMARY), Idle);
    assert!(scene.session.is_at_rest());
    assert_eq!(*scene.session.written(), Written::Somewhere);
    // Without parts nothing is refused, and what is pinned stays.
    scene.step("BEGIN", Primary, Open);
    assert_eq!(scene.plan("SAVEPOINT a").step, Step::Stays);
    scene.session.pin(Pin::UserLock, PRIMARY);
    let plan = hinted(&mut scene, "UPDATE t SET a = 1", other);
    assert_eq!((plan.goal, plan.step), (Held(PRIMARY), Step::Stays));
    scene.session.rolled_back();
    assert_eq!(scene.session.open_at(), None);
}

#[test]
fn what_runs_unseen_and_locks_that_may_stay_pin() {
    for text in [
        "EXECUTE IMMEDIATE 'SELECT 1'",
        "BEGIN NOT ATOMIC DO 1; END",
        "IF 1 THEN DO 1; END IF",
        "nonsense",
    ] {
        assert!(Scene::new().plan(text).pins.has(Pin::Unknown), "{text}");
    }
    for text in [
        "EXECUTE s",
        "CALL p()",
        "SELECT f()",
        "BEGIN",
        "SELECT 1; SELECT 2",
    ] {
        assert!(Scene::new().plan(text).pins.is_empty(), "{text}");
    }
    for text in ["CALL p(); DO 1", "EXECUTE IMMEDIATE 'DO 1'; DO 1"] {
        let pins = Scene::new().plan(text).pins;
        assert!(pins.has(Pin::SeveralStatements), "{text}");
    }
    for text in ["BACKUP STAGE START", "BACKUP LOCK t"] {
        assert!(Scene::new().plan(text).pins.has(Pin::TableLock), "{text}");
    }
    for (text, is_lifted) in [
        ("SELECT RELEASE_ALL_LOCKS()", true),
        ("/* a */ do release_all_locks ( ) ; ", true),
        ("SELECT RELEASE_ALL_LOCKS() FROM t", false),
        ("SELECT IF(0, RELEASE_ALL_LOCKS(), 1)", false),
        ("SELECT RELEASE_ALL_LOCKS() + 1", false),
        ("DO 0 AND RELEASE_ALL_LOCKS()", false),
    ] {
        let lifts = Scene::new().plan(text).lifts;
        assert_eq!(lifts.has(Pin::UserLock), is_lifted, "{text}");
    }
    let mut scene = Scene::new();
    scene.step(
        "SELECT GET_LOCK('a', 1), (SELECT 1 UNION SELECT 2)",
        Primary,
        Failed,
    );
    assert!(scene.session.pins().has(Pin::UserLock));
}
