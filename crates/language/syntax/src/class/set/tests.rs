//! Assignments as `scope target = value`.

use super::*;

fn shown(text: &str) -> Vec<String> {
    assignments(text.as_bytes(), SqlMode::default())
        .map(|it| {
            let value = String::from_utf8_lossy(it.value.text);
            let target = match it.target {
                Target::User(name) | Target::System(name) => {
                    String::from_utf8_lossy(name).into_owned()
                }
                other => format!("{other:?}"),
            };
            format!("{:?} {target} {:?} {value}", it.scope, it.value.kind)
        })
        .collect()
}

#[test]
fn assignments_are_read_one_by_one() {
    for (text, expected) in [
        ("SET a = 1", &["Session a Literal 1"][..]),
        (
            "SET a := 'x', @b = NULL",
            &["Session a Literal 'x'", "Session @b Literal NULL"],
        ),
        (
            "SET GLOBAL a = 1, b = 2, SESSION c = 3",
            &[
                "Global a Literal 1",
                "Global b Literal 2",
                "Session c Literal 3",
            ],
        ),
        (
            "SET @@a = ON, @@global.b = DEFAULT",
            &["Bare a Word ON", "Global b Default DEFAULT"],
        ),
        ("SET a = 1 + 1", &["Session a Expression 1 + 1"]),
        (
            "SET @a = (SELECT MAX(a), 2 FROM t), b = 1",
            &[
                "Session @a Expression (SELECT MAX(a), 2 FROM t)",
                "Session b Literal 1",
            ],
        ),
        (
            "SET NAMES utf8mb4 COLLATE utf8mb4_bin, a = 1",
            &[
                "Session Names Expression utf8mb4 COLLATE utf8mb4_bin",
                "Session a Literal 1",
            ],
        ),
        ("SELECT 1", &[]),
        ("SET", &[]),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn phrases_have_targets_of_their_own() {
    let target = |text| {
        assignments(text, SqlMode::default())
            .next()
            .map(|it| it.target)
    };
    assert_eq!(
        target(b"SET CHARACTER SET latin1"),
        Some(Target::CharacterSet)
    );
    assert_eq!(
        target(b"SET SESSION TRANSACTION READ ONLY"),
        Some(Target::Transaction)
    );
    assert_eq!(target(b"SET PASSWORD FOR a = 'b'"), Some(Target::Password));
    assert_eq!(target(b"SET ROLE NONE"), Some(Target::Role));
    assert_eq!(target(b"SET DEFAULT ROLE r"), Some(Target::DefaultRole));
    assert!(
        target(b"SET `SQL_mode` = ''")
            .unwrap()
            .is_system("sql_mode")
    );
}
