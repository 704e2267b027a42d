//! A floor of assertions a function for each storage crate, which only rises.
//!
//! The table is [`FLOORS`]: hundredths of an assertion a function, outside of tests. A crate below
//! its floor is a finding, and so is one that has risen by [`SLACK`] or more above it: the floor is
//! to follow, so that what was gained is not lost again.

use std::collections::BTreeMap;

use super::tree::{Finding, Tree};

/// Where this table stands, for findings.
const TABLE: &str = "crates/proof/xtask/src/tidy/assertions.rs";

/// Crates and their floors, in hundredths.
const FLOORS: &[(&str, u32)] = &[
    ("crates/storage/btree/", 25),
    ("crates/storage/buffer/", 25),
    ("crates/storage/engine/", 25),
    ("crates/storage/lock/", 25),
    ("crates/storage/txn/", 25),
    ("crates/storage/wal/", 25),
];

/// Hundredths by which a crate may be above its floor.
const SLACK: u32 = 10;

/// What counts as an assertion, in `debug_` form as well.
const MACROS: [&str; 3] = ["assert!(", "assert_eq!(", "assert_ne!("];

/// Functions and assertions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Count {
    functions: u32,
    assertions: u32,
}

impl Count {
    /// Assertions a function, in hundredths, rounded down.
    fn hundredths(self) -> u32 {
        self.assertions * 100 / self.functions.max(1)
    }
}

/// Each crate of the table has as many assertions as its floor says.
pub(crate) fn floors(tree: &Tree) -> Vec<Finding> {
    let mut counts: BTreeMap<&str, Count> = BTreeMap::new();
    for (path, text) in tree.sources().filter(|(path, _)| !is_test(path)) {
        let Some((name, _)) = FLOORS.iter().find(|(name, _)| path.starts_with(name)) else {
            continue;
        };
        let count = counts.entry(name).or_default();
        for line in code_lines(text) {
            count.functions += u32::from(is_function(line));
            count.assertions += u32::from(is_assertion(line));
        }
    }
    let judge = |&(name, floor): &(&str, u32)| judge(name, floor, *counts.get(name)?);
    FLOORS.iter().filter_map(judge).collect()
}

fn judge(name: &str, floor: u32, count: Count) -> Option<Finding> {
    let (
        now,
        Count {
            functions,
            assertions,
        },
    ) = (count.hundredths(), count);
    let facts = format!("{assertions} assertions in {functions} functions of {name}");
    if now < floor {
        let message = format!("{facts} are {now} hundredths, below the floor of {floor}");
        return Some(Finding::new(TABLE, 0, message));
    }
    (floor + SLACK <= now).then(|| {
        let message = format!("{facts} are {now} hundredths: raise the floor of {floor}");
        Finding::new(TABLE, 0, message)
    })
}

fn is_test(path: &str) -> bool {
    !path.contains("/src/") || path.ends_with("/tests.rs") || path.contains("/tests/")
}

/// The lines before a file's tests, without comments.
fn code_lines(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(str::trim_start);
    lines
        .take_while(|line| !line.starts_with("#[cfg(test)]") && !line.starts_with("#[cfg(all(test"))
        .filter(|line| !line.starts_with("//"))
}

fn is_function(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let is_prefix =
        |word: &&str| word.starts_with("pub") || ["const", "async", "unsafe"].contains(word);
    words.find(|word| !is_prefix(word)) == Some("fn")
}

fn is_assertion(line: &str) -> bool {
    let is_macro = |name: &&str| {
        let before = line.split(*name).next().unwrap_or_default();
        before.len() < line.len() && !before.ends_with(|last: char| last.is_alphanumeric())
    };
    MACROS.iter().any(is_macro)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        let findings = floors(&Tree::of(&[(path, text)]));
        findings.iter().map(|it| it.message.clone()).collect()
    }

    /// A file with so many functions, of which some assert something.
    fn source(functions: usize, assertions: usize) -> String {
        let assertion = "    debug_assert_eq!(a, b);\n".repeat(assertions);
        let function = "pub(crate) fn one() {\n}\n".repeat(functions);
        let tests = "#[cfg(test)]\nmod tests {\n    fn more() {}\n    assert!(true);\n}\n";
        format!("//! fn x() assert!(y)\n{function}{assertion}{tests}")
    }

    #[test]
    fn a_crate_below_its_floor_is_refused() {
        let path = "crates/storage/wal/src/a.rs";
        assert_eq!(found(path, &source(100, 25)), Vec::<String>::new());
        assert_eq!(
            found(path, &source(100, 24)),
            [
                "24 assertions in 100 functions of crates/storage/wal/ are 24 hundredths, \
              below the floor of 25"
            ]
        );
    }

    #[test]
    fn a_floor_follows_what_was_gained() {
        let path = "crates/storage/wal/src/a.rs";
        assert_eq!(found(path, &source(100, 34)), Vec::<String>::new());
        let told = found(path, &source(100, 35));
        assert!(
            told[0].ends_with("35 hundredths: raise the floor of 25"),
            "{told:?}"
        );
    }

    #[test]
    fn tests_and_other_crates_do_not_count() {
        let bare = source(100, 0);
        for path in [
            "crates/storage/wal/src/tests/a.rs",
            "crates/storage/wal/tests/a.rs",
        ] {
            assert_eq!(found(path, &bare), Vec::<String>::new());
        }
        assert_eq!(
            found("crates/sql/planner/src/a.rs", &bare),
            Vec::<String>::new()
        );
    }

    #[test]
    fn functions_and_assertions_are_told_from_words() {
        for line in [
            "fn a()",
            "pub const fn a()",
            "pub(crate) async fn a()",
            "unsafe fn a()",
        ] {
            assert!(is_function(line), "{line}");
        }
        assert!(!is_function("let f: fn(u8) = a;"));
        for line in [
            "assert!(a);",
            "debug_assert_ne!(a, b);",
            "const _: () = assert!(A < B);",
        ] {
            assert!(is_assertion(line), "{line}");
        }
        for line in [
            "prop_assertx!(a);",
            "self.assert_gathering();",
            "unassert!(a)",
        ] {
            assert!(!is_assertion(line), "{line}");
        }
    }
}
