//! Folds of effects; `tests/effects` compares many more with a server.

use super::super::first::{Statements, classify};
use super::*;
use settings::SqlMode;

fn after(text: &str) -> State {
    let statements = Statements::new(text.as_bytes(), SqlMode::default());
    statements.fold(State::new(), |state, it| state.done(it.effect))
}

fn flags(state: State) -> [Guess; 3] {
    [state.autocommit, state.in_transaction, state.is_read_only]
}

use Guess::{No, Unknown, Yes};

#[test]
fn statements_change_what_the_server_would_report() {
    for (text, expected) in [
        ("SELECT 1", [Yes, No, No]),
        ("BEGIN", [Yes, Yes, No]),
        ("BEGIN; COMMIT", [Yes, No, No]),
        ("BEGIN; COMMIT AND CHAIN", [Yes, Yes, No]),
        ("START TRANSACTION READ ONLY", [Yes, Yes, Yes]),
        ("SET TRANSACTION READ ONLY; BEGIN", [Yes, Yes, Yes]),
        (
            "SET TRANSACTION READ ONLY; BEGIN; COMMIT; BEGIN",
            [Yes, Yes, No],
        ),
        (
            "SET SESSION TRANSACTION READ ONLY; BEGIN; COMMIT; BEGIN",
            [Yes, Yes, Yes],
        ),
        ("SET autocommit = 0", [No, No, No]),
        ("SET autocommit = 0; SELECT 1", [No, Unknown, No]),
        ("BEGIN; SET autocommit = 1", [Yes, Yes, No]),
        (
            "SET autocommit = 0; BEGIN; SET autocommit = 1",
            [Yes, No, No],
        ),
        ("BEGIN; CREATE TABLE t (a INT)", [Yes, No, No]),
        ("BEGIN; CREATE TEMPORARY TABLE t (a INT)", [Yes, Yes, No]),
        ("SET completion_type = 1; BEGIN; COMMIT", [Yes, Yes, No]),
        ("XA START 'a'", [Yes, Yes, No]),
        ("CALL p()", [Unknown, Unknown, Unknown]),
    ] {
        assert_eq!(flags(after(text)), expected, "{text}");
    }
}

#[test]
fn what_no_flag_tells_is_kept() {
    assert_eq!(after("SET TRANSACTION READ ONLY").has_next, Yes);
    assert_eq!(after("SET TRANSACTION READ ONLY; BEGIN").has_next, No);
    assert_eq!(
        after("SET TRANSACTION READ ONLY; SELECT 1 FROM t").has_next,
        Unknown
    );
    assert_eq!(after("LOCK TABLES t READ").holds_tables, Yes);
    assert_eq!(after("LOCK TABLES t READ; UNLOCK TABLES").holds_tables, No);
    assert_eq!(after("COMMIT RELEASE").is_closed, Yes);
}

#[test]
fn failures_leave_all_that_is_possible() {
    let effect = |text: &str| classify(text.as_bytes(), SqlMode::default()).effect;
    let open = after("BEGIN");
    assert_eq!(open.failed(effect("USE a")), open);
    assert_eq!(
        open.failed(effect("CREATE TABLE t (a INT)")).in_transaction,
        Unknown
    );
    assert_eq!(open.rolled_back().in_transaction, No);
    let told = Flags {
        autocommit: true,
        in_transaction: false,
        is_read_only: false,
    };
    assert!(!open.allows(told));
    assert!(open.failed(effect("CREATE TABLE t (a INT)")).allows(told));
    assert_eq!(open.observe(told).in_transaction, No);
}
