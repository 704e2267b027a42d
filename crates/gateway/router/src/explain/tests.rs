//! Explanations of sessions in each state, and of choices out of maps.

use env::Instant;
use monitor::{DownReason, Order, Rules as MonitorRules};
use syntax::class::find_hint;
use wire::{SessionChanges, StatusFlags};

use super::*;
use crate::choice::tests::{cost, map, position, says, silence};
use crate::{Decision, Judge, Pin, Report, Told};

const PRIMARY: ServerId = ServerId(0);
const REPLICA: ServerId = ServerId(1);

fn judged(text: &str) -> Judged {
    Judge::default().judge(text.as_bytes(), SqlMode::default())
}

fn fresh() -> Session {
    let mut session = Session::default();
    session.observe_login(StatusFlags::AUTOCOMMIT);
    session
}

/// The session after a statement that was answered with these flags.
fn after(mut session: Session, text: &str, at: ServerId, status: StatusFlags) -> Session {
    let mode = SqlMode::default();
    let plan = session.plan(text.as_bytes(), mode, &judged(text));
    let changes = SessionChanges::new();
    let report = Report {
        status: Some(status),
        changes: Some(changes.as_bytes()),
        tells_writes: true,
        told: Told::default(),
    };
    session.answered(&plan, at, report);
    session
}

fn explained(session: &Session, text: &str, guidance: &Guidance<'_>) -> Explanation {
    let asked = (text.as_bytes(), SqlMode::default());
    explain(session, asked, &judged(text), guidance)
}

fn cause(session: &Session, text: &str) -> (Goal, Cause) {
    let told = explained(session, text, &Guidance::default());
    assert_eq!((told.hint, told.rule), (Heed::Absent, Heed::Absent));
    (told.plan.goal, told.cause)
}

#[test]
fn of_a_free_session_the_statement_decides() {
    let of_primary = Nature::ReadOfPrimary;
    for (text, goal, nature) in [
        ("SELECT a FROM t", Goal::Replica, Nature::Read),
        ("VALUES (1)", Goal::Replica, Nature::Read),
        (
            "START TRANSACTION READ ONLY",
            Goal::Replica,
            Nature::ReadOnlyTransaction,
        ),
        ("SELECT @@port", Goal::PrimaryFirst, Nature::ReadOfServer),
        ("SHOW TABLES", Goal::PrimaryFirst, Nature::ReadOfServer),
        ("USE shop", Goal::PrimaryFirst, Nature::Session),
        ("SET @a = 1", Goal::PrimaryFirst, Nature::Session),
        (
            "SET @a = CONNECTION_ID()",
            Goal::Primary,
            Nature::SessionOfOne,
        ),
        (
            "SELECT LAST_INSERT_ID()",
            Goal::Primary,
            of_primary(Facts::READS_LAST_INSERT_ID),
        ),
        // There is no statement before.
        (
            "SELECT FOUND_ROWS()",
            Goal::Primary,
            of_primary(Facts::READS_FOUND_ROWS),
        ),
        (
            "SELECT a FROM t FOR UPDATE",
            Goal::Primary,
            Nature::LockingRead,
        ),
        ("BEGIN", Goal::Primary, Nature::Transaction),
        ("DELETE FROM t", Goal::Primary, Nature::Write(Facts::NONE)),
        (
            "SELECT f(a) FROM t",
            Goal::Primary,
            Nature::Write(Facts::CALLS_UNKNOWN),
        ),
        (
            "SELECT GET_LOCK('a', 1)",
            Goal::Primary,
            Nature::Write(Facts::TAKES_USER_LOCK),
        ),
        ("SELECT 1; SELECT 2", Goal::Primary, Nature::Several),
        ("FROB t", Goal::Primary, Nature::NotUnderstood),
    ] {
        let expected = (goal, Cause::Statement(nature));
        assert_eq!(cause(&fresh(), text), expected, "{text}");
    }
}

#[test]
fn what_holds_a_session_is_told_before_what_a_statement_is() {
    let idle = StatusFlags::AUTOCOMMIT;
    let open = StatusFlags::AUTOCOMMIT | StatusFlags::IN_TRANSACTION;
    let read = "SELECT a FROM t";
    let held = Goal::Held(REPLICA);
    let session = after(fresh(), "START TRANSACTION READ ONLY", REPLICA, open);
    assert_eq!(cause(&session, read), (held, Cause::Transaction(REPLICA)));
    let session = after(fresh(), "SELECT GET_LOCK('a', 1)", PRIMARY, idle);
    let (goal, told) = cause(&session, read);
    assert_eq!(goal, Goal::Held(PRIMARY));
    assert!(matches!(told, Cause::Pinned(PRIMARY, pins) if pins.has(Pin::UserLock)));
    // An open transaction is told before a pin.
    let session = after(session, "BEGIN", PRIMARY, open);
    assert_eq!(cause(&session, read).1, Cause::Transaction(PRIMARY));
    let session = after(fresh(), read, REPLICA, idle);
    let before = cause(&session, "SELECT FOUND_ROWS()");
    assert_eq!(before, (held, Cause::LastStatement(REPLICA)));
    let session = after(fresh(), "SET autocommit = 0", PRIMARY, StatusFlags(0));
    assert_eq!(cause(&session, read), (Goal::Primary, Cause::NoAutocommit));
    // A write would go to the primary in any case.
    let write = Cause::Statement(Nature::Write(Facts::NONE));
    assert_eq!(cause(&session, "DELETE FROM t"), (Goal::Primary, write));
}

/// What a hint in the text and a rule do. The hint's or rule's server is the replica.
fn guided(session: &Session, text: &str, route: Option<Route>) -> Explanation {
    let hint = find_hint(text.as_bytes()).and_then(Result::ok);
    let ruling = Ruling {
        route,
        ..Ruling::default()
    };
    let guidance = Guidance {
        hint: hint.map(|it| (it, it.server.map(|_| REPLICA))),
        ruling: Some(&ruling),
        is_routed: true,
        ruled_to: Some(REPLICA),
    };
    explained(session, text, &guidance)
}

#[test]
fn hints_and_rules_are_told_if_they_decide() {
    let session = fresh();
    let told = guided(&session, "/* plateau: server=b */ DELETE FROM t", None);
    assert_eq!(
        (told.plan.goal, told.cause, told.hint, told.rule),
        (
            Goal::Held(REPLICA),
            Cause::Hint,
            Heed::Followed,
            Heed::Absent
        )
    );
    let told = guided(&session, "/* plateau: route=replica */ DELETE FROM t", None);
    assert_eq!(told.plan.goal, Goal::Primary);
    assert_eq!(told.hint, Heed::Ignored);
    assert_eq!(told.cause, Cause::Statement(Nature::Write(Facts::NONE)));
    let told = guided(&session, "SELECT a FROM t", Some(Route::Primary));
    assert_eq!((told.cause, told.rule), (Cause::Rule, Heed::Followed));
    // It says what would be so without it.
    let told = guided(&session, "SELECT a FROM t", Some(Route::Replica));
    assert_eq!(told.cause, Cause::Statement(Nature::Read));
    assert_eq!(told.rule, Heed::Followed);
    // A hint counts more than a rule.
    let text = "/* plateau: route=primary */ SELECT a FROM t";
    let told = guided(&session, text, Some(Route::Server("b".into())));
    assert_eq!((told.plan.goal, told.cause), (Goal::Primary, Cause::Hint));
    assert_eq!((told.hint, told.rule), (Heed::Followed, Heed::Ignored));
    // What holds the session counts more than both.
    let pinned = after(
        fresh(),
        "SELECT GET_LOCK('a', 1)",
        PRIMARY,
        StatusFlags::AUTOCOMMIT,
    );
    let told = guided(&pinned, text, Some(Route::Replica));
    assert_eq!((told.hint, told.rule), (Heed::Ignored, Heed::Ignored));
    assert!(matches!(told.cause, Cause::Pinned(PRIMARY, _)));
}

#[test]
fn each_rule_is_told_with_what_it_decides() {
    let ruling = |route: Option<Route>, seconds: Option<u64>| Ruling {
        route,
        time_max: seconds.map(Duration::from_secs),
        ..Ruling::default()
    };
    let rule = |name: &str, pattern: Option<&str>, ruling| crate::Rule {
        name: name.into(),
        who: crate::Who::default(),
        what: crate::What {
            pattern: pattern.map(str::to_owned),
            ..crate::What::default()
        },
        ruling,
    };
    let rules = crate::Rules::new(vec![
        rule("a", Some("orders"), ruling(Some(Route::Primary), None)),
        rule("b", None, ruling(Some(Route::Replica), Some(5))),
        rule("c", Some("nothing"), ruling(None, Some(1))),
        rule("d", None, ruling(None, Some(9))),
    ]);
    let mut judge = Judge::new(std::sync::Arc::new(rules.unwrap()));
    let session = judge.rules_of(&crate::SessionFacts {
        service: "s",
        user: "u",
        schema: None,
        address: [127, 0, 0, 1].into(),
    });
    let judged = judge.judge(b"SELECT a FROM orders", SqlMode::default());
    let decided = |name: &str, decides| Decision {
        name: name.into(),
        decides,
    };
    let decisions = judge.explain(&session, &judged);
    assert_eq!(
        decisions,
        [
            decided("a", ruling(Some(Route::Primary), None)),
            decided("b", ruling(None, Some(5))),
            decided("d", Ruling::default()),
        ]
    );
    assert_eq!(judge.hits(), [0; 4], "a question is no hit");
    let sum = Decision::sum(&decisions);
    assert_eq!(Some(&sum), judge.ruling(&session, &judged).as_deref());
}

fn chosen(goal: Goal, map: &ServerMap, written: &Written) -> (Option<u16>, Vec<PassedOver>) {
    let max = Some(Duration::from_secs(10));
    let told = explain_choice(goal, map, written, max, |_| Some(cost(0, 0)));
    let primary = map.primary().map(|it| it.id);
    assert_eq!(
        told.is_primary,
        told.server.is_some() && told.server == primary
    );
    let others = told.others.into_iter().map(|(_, why)| why);
    (told.server.map(|it| it.0), others.collect())
}

#[test]
fn of_each_other_server_is_told_why_not() {
    let map = map(vec![
        says(0, "0-1-9"),
        says(1, "0-1-5"),
        says(2, "0-1-7"),
        silence(),
    ]);
    let down = PassedOver::Condition(Condition::Down(DownReason::Unreachable));
    let reads = |written| chosen(Goal::Replica, &map, &written);
    let (primary, busier) = (PassedOver::Primary, PassedOver::Busier);
    assert_eq!(
        reads(Written::Nothing),
        (Some(1), vec![primary, busier, down])
    );
    let behind = PassedOver::Behind;
    let six = Written::UpTo(position("0-1-6"));
    assert_eq!(reads(six), (Some(2), vec![primary, behind, down]));
    let eight = Written::UpTo(position("0-1-8"));
    assert_eq!(reads(eight), (Some(0), vec![behind, behind, down]));
    let no = PassedOver::NotPrimary;
    let writes = chosen(Goal::Primary, &map, &Written::Nothing);
    assert_eq!(writes, (Some(0), vec![no, no, down]));
    let held = chosen(Goal::Held(ServerId(2)), &map, &Written::Nothing);
    assert_eq!(held, (Some(2), vec![]));
    let orders = [
        (ServerId(0), Order::Drain),
        (ServerId(1), Order::Maintenance),
    ];
    let rules = MonitorRules::default();
    let map = monitor::order(&map, &orders, &rules, Instant::default()).map;
    let ordered = |condition| PassedOver::Condition(condition);
    let (drains, out) = (
        ordered(Condition::Draining),
        ordered(Condition::Maintenance),
    );
    let writes = chosen(Goal::Primary, &map, &Written::Nothing);
    assert_eq!(writes, (None, vec![drains, out, no, down]));
    let first = chosen(Goal::PrimaryFirst, &map, &Written::Nothing);
    assert_eq!(first, (Some(2), vec![drains, out, down]));
}

#[test]
fn names_are_told_once_and_as_they_are_written() {
    let mode = SqlMode::default();
    let of = |text: &str| {
        let judged = Judge::default().judge(text.as_bytes(), mode);
        let told = named_tables(text.as_bytes(), mode, &judged);
        (told.names.join(" "), told.changed.join(" "), told.changes)
    };
    let tables = |name: &'static str| Changes::of_tables([name.as_bytes()]);
    for (text, names, changed, changes) in [
        (
            "SELECT a FROM t JOIN u USING (a)",
            "a t u",
            "",
            Changes::Nothing,
        ),
        (
            "INSERT INTO d.T SELECT a FROM u",
            "d T a u",
            "T",
            tables("t"),
        ),
        ("INSERT INTO t VALUES (f())", "t f", "", Changes::AnyTable),
        ("DROP TABLE t", "t", "", Changes::Anything),
        ("XA COMMIT 'a'", "", "", Changes::AnyTable),
        ("COMMIT", "", "", Changes::Nothing),
    ] {
        let expected = (names.to_owned(), changed.to_owned(), changes);
        assert_eq!(of(text), expected, "{text}");
    }
}
