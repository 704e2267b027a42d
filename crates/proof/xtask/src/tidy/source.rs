//! Rules about source files, each checked on its own.

use std::collections::BTreeSet;

use super::tree::{Finding, Tree};

const LINES_MAX: usize = 800;
const COLUMNS_MAX: usize = 100;

/// Sources that are tables of data and may have more than `LINES_MAX` lines.
const DATA_TABLES: &[&str] = &[
    "crates/protocol/errcode/src/table.rs",
    "crates/language/syntax/src/keyword.rs",
];

/// Folders of generated or collected data.
const DATA_FOLDERS: &[&str] = &["crates/language/value/src/collation/tables/"];

/// Crates that may contain `unsafe`, each block with its proof.
const UNSAFE_CRATES: &[&str] = &[
    "crates/base/sync/",
    "crates/base/env/",
    "crates/base/runtime/",
    "crates/storage/buffer/",
];

/// Every file begins with its purpose.
pub(crate) fn module_heads(tree: &Tree) -> Vec<Finding> {
    let lacks = |(_, text): &(&str, &str)| {
        !text
            .lines()
            .find(|line| !line.is_empty())
            .is_some_and(|line| line.starts_with("//! "))
    };
    let message = "does not begin with `//! ` and what the file is for";
    tree.sources()
        .filter(lacks)
        .map(|(path, _)| Finding::new(path, 1, message))
        .collect()
}

/// A file too long to read is split.
pub(crate) fn file_length(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.sources().filter(|(path, _)| !is_data_table(path)) {
        let count = text.lines().count();
        if count > LINES_MAX {
            let message = format!("has {count} lines, more than {LINES_MAX}");
            findings.push(Finding::new(path, count, message));
        }
    }
    findings
}

/// Sources fit on a screen.
pub(crate) fn line_length(tree: &Tree) -> Vec<Finding> {
    lines_of_sources(tree, |path, line| {
        let count = line.chars().count();
        (count > COLUMNS_MAX && !is_data_table(path))
            .then(|| format!("has {count} columns, more than {COLUMNS_MAX}"))
    })
}

/// Sources are ASCII, so that nothing is hidden in them; other text is written with escapes.
pub(crate) fn ascii(tree: &Tree) -> Vec<Finding> {
    lines_of_sources(tree, |_, line| {
        let odd = line.chars().find(|character| !character.is_ascii())?;
        Some(format!("has {}, which is not ASCII", odd.escape_unicode()))
    })
}

/// Leftover marks: the issue says what to do, not main.
pub(crate) fn marks(tree: &Tree) -> Vec<Finding> {
    let fix = concat!("FIX", "ME");
    let later = concat!("TO", "DO");
    lines_of_sources(tree, |_, line| {
        if line.contains(fix) {
            return Some(format!("has {fix}"));
        }
        let rest = line.split(later).nth(1)?;
        (!rest.starts_with("(#")).then(|| format!("has {later} without an issue, as {later}(#12)"))
    })
}

/// Commented-out code is in the history already.
pub(crate) fn commented_code(tree: &Tree) -> Vec<Finding> {
    lines_of_sources(tree, |_, line| {
        let comment = line.trim_start().strip_prefix("// ")?;
        let word = comment.split_whitespace().next()?;
        let is_code = ["let", "fn", "pub", "use", "impl", "match"].contains(&word)
            && (comment.ends_with(';') || comment.ends_with('{'));
        is_code.then(|| "has commented-out code".to_owned())
    })
}

/// `unsafe` stays in the named crates. Each test, bench and example is a crate of its own.
pub(crate) fn forbid_unsafe(tree: &Tree) -> Vec<Finding> {
    let is_root = |path: &str| path.starts_with("crates/") && is_crate_root(path);
    let is_named = |path: &str| UNSAFE_CRATES.iter().any(|prefix| path.starts_with(prefix));
    tree.sources()
        .filter(|(path, _)| is_root(path) && !is_named(path))
        .filter(|(_, text)| !text.contains("#![forbid(unsafe_code)]"))
        .map(|(path, _)| Finding::new(path, 1, "does not forbid unsafe code"))
        .collect()
}

/// Atomics come from `sync`; in a build for loom they are the model checker's.
pub(crate) fn atomics(tree: &Tree) -> Vec<Finding> {
    lines_of_sources(tree, |path, line| {
        if path.starts_with("crates/base/sync/") || line.trim_start().starts_with("//") {
            return None;
        }
        ["std", "core"]
            .iter()
            .any(|library| line.contains(&format!("{library}::sync::atomic")))
            .then(|| "names an atomic of std; take it from `sync::atomic`".to_owned())
    })
}

/// Numbers and texts of errors come from `errcode`, where each has its origin and retry.
pub(crate) fn error_numbers(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let is_elsewhere = |path: &str| !path.starts_with("crates/protocol/errcode/");
    for (path, text) in tree.sources().filter(|(path, _)| is_elsewhere(path)) {
        for (call, refuses, message) in ERROR_CALLS {
            for (at, _) in text.match_indices(call) {
                let argument = text[at + call.len()..].trim_start();
                if refuses(argument) {
                    let line = text[..at].matches('\n').count() + 1;
                    findings.push(Finding::new(path, line, *message));
                }
            }
        }
    }
    findings
}

/// How an error is made, which first arguments are refused, and what is said then.
type ErrorCall = (&'static str, fn(&str) -> bool, &'static str);

const ERROR_CALLS: &[ErrorCall] = &[
    (
        concat!("ErrorCode", "("),
        |argument| argument.starts_with(|first: char| first.is_ascii_digit()),
        "has the number of an error; take its constant from `errcode`",
    ),
    (
        concat!("with_message", "("),
        |argument| argument.trim_start_matches("errcode::").starts_with("ER_"),
        "has the text of an error; make it a `Wording` in `errcode`",
    ),
];

/// Every file under `src` belongs to its crate.
pub(crate) fn orphans(tree: &Tree) -> Vec<Finding> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<String> = tree
        .sources()
        .map(|(path, _)| path)
        .filter(|path| is_crate_root(path))
        .map(String::from)
        .collect();
    while let Some(path) = open.pop() {
        let text = tree.text(&path).unwrap_or_default();
        if reached.insert(path.clone()) {
            open.extend(modules_of(&path, text).filter(|path| tree.text(path).is_some()));
        }
    }
    tree.sources()
        .filter(|(path, _)| path.starts_with("crates/") && !reached.contains(*path))
        .map(|(path, _)| Finding::new(path, 0, "is reached by no `mod`"))
        .collect()
}

/// The repository contains no paths of a machine.
pub(crate) fn machine_paths(tree: &Tree) -> Vec<Finding> {
    let words = [
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("/fa", "rm/"),
    ];
    let files = tree.files().filter(|(path, _)| *path != "Cargo.lock");
    lines_of(files, |_, line| {
        let word = words.iter().find(|word| line.contains(**word))?;
        Some(format!("names a place of one machine: {word}"))
    })
}

/// Marks that git leaves in a file where two changes met.
pub(crate) fn conflicts(tree: &Tree) -> Vec<Finding> {
    let marks = ["<".repeat(7), ">".repeat(7)];
    lines_of(tree.files(), |_, line| {
        let is_mark = marks.iter().any(|mark| line.starts_with(mark.as_str()));
        is_mark.then(|| "has a mark of a conflict between two changes".to_owned())
    })
}

fn is_data_table(path: &str) -> bool {
    DATA_TABLES.contains(&path) || DATA_FOLDERS.iter().any(|folder| path.starts_with(folder))
}

fn lines_of_sources(tree: &Tree, refuse: impl Fn(&str, &str) -> Option<String>) -> Vec<Finding> {
    lines_of(tree.sources(), refuse)
}

fn lines_of<'t>(
    files: impl Iterator<Item = (&'t str, &'t str)>,
    refuse: impl Fn(&str, &str) -> Option<String>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in files {
        for (index, line) in text.lines().enumerate() {
            if let Some(message) = refuse(path, line) {
                findings.push(Finding::new(path, index + 1, message));
            }
        }
    }
    findings
}

/// Whether cargo finds the file by its location.
fn is_crate_root(path: &str) -> bool {
    let mut parts = path.rsplit('/');
    let file = parts.next().unwrap_or_default();
    let folder = parts.next().unwrap_or_default();
    let is_root_folder = ["tests", "benches", "examples", "fuzz_targets", "bin"].contains(&folder);
    // A folder with one of these names under `src` of a crate is a module, except `src/bin`.
    let is_module = folder != "bin" && parts.any(|part| part == "src");
    match file {
        "lib.rs" | "main.rs" => true,
        "build.rs" => !path.contains("/src/"),
        _ => is_root_folder && !is_module,
    }
}

/// The possible files of `mod name;` lines.
fn modules_of<'a>(path: &'a str, text: &'a str) -> impl Iterator<Item = String> + 'a {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = file.trim_end_matches(".rs");
    let own_folder = if is_crate_root(path) || stem == "mod" {
        folder.to_owned()
    } else {
        format!("{folder}/{stem}")
    };
    let mut named_path = None;
    text.lines().flat_map(move |line| {
        let line = line.trim();
        if let Some(name) = line.strip_prefix("#[path = \"") {
            named_path = name
                .strip_suffix("\"]")
                .map(|name| format!("{folder}/{name}"));
            return Vec::new();
        }
        let Some(name) = module_name(line) else {
            return Vec::new();
        };
        let places = vec![
            format!("{own_folder}/{name}.rs"),
            format!("{own_folder}/{name}/mod.rs"),
        ];
        named_path.take().map_or(places, |path| vec![path])
    })
}

fn module_name(line: &str) -> Option<&str> {
    let line = line.strip_suffix(';')?;
    let (before, name) = line.rsplit_once("mod ")?;
    let is_visibility = before.is_empty() || before.starts_with("pub");
    let is_name = name
        .chars()
        .all(|character| character.is_alphanumeric() || character == '_');
    (is_visibility && is_name).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(rule: fn(&Tree) -> Vec<Finding>, path: &str, text: &str) -> Vec<String> {
        rule(&Tree::of(&[(path, text)]))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn file_without_head_is_refused() {
        let found = findings(module_heads, "a.rs", "use std::fs;\n//! late\n");
        assert_eq!(
            found,
            ["a.rs:1: does not begin with `//! ` and what the file is for"]
        );
        assert!(findings(module_heads, "a.rs", "//! What for.\n").is_empty());
    }

    #[test]
    fn long_file_is_refused_unless_a_table() {
        let text = "//! x\n".repeat(801);
        assert_eq!(
            findings(file_length, "a.rs", &text),
            ["a.rs:801: has 801 lines, more than 800"]
        );
        assert!(findings(file_length, DATA_TABLES[0], &text).is_empty());
    }

    #[test]
    fn long_line_is_refused() {
        let text = format!("{}\n{}\n", "x".repeat(100), "x".repeat(101));
        let expected = ["a.rs:2: has 101 columns, more than 100"];
        assert_eq!(findings(line_length, "a.rs", &text), expected);
    }

    #[test]
    fn odd_character_is_refused() {
        let found = findings(ascii, "a.rs", "//! caf\u{e9}\n");
        assert_eq!(found, ["a.rs:1: has \\u{e9}, which is not ASCII"]);
    }

    #[test]
    fn marks_are_refused() {
        let text = concat!("// FIX", "ME\n// TO", "DO later\n// TO", "DO(#7): known\n");
        let found = findings(marks, "a.rs", text);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0], concat!("a.rs:1: has FIX", "ME"));
        assert!(found[1].starts_with("a.rs:2: "));
    }

    #[test]
    fn commented_code_is_refused() {
        let text = "// let x = 1;\n// let us see; it is prose\n// use the other one.\n";
        assert_eq!(
            findings(commented_code, "a.rs", text),
            ["a.rs:1: has commented-out code"]
        );
    }

    #[test]
    fn unsafe_is_confined() {
        let path = "crates/sql/x/src/lib.rs";
        let expected = format!("{path}:1: does not forbid unsafe code");
        assert_eq!(findings(forbid_unsafe, path, "//! X.\n"), [expected]);
        let forbids = "//! X.\n\n#![forbid(unsafe_code)]\n";
        assert!(findings(forbid_unsafe, path, forbids).is_empty());
        for root in ["tests/a.rs", "benches/a.rs", "examples/a.rs", "build.rs"] {
            let path = format!("crates/sql/x/{root}");
            assert_eq!(
                findings(forbid_unsafe, &path, "//! X.\n").len(),
                1,
                "{path}"
            );
        }
        // Their crate forbids it for modules.
        for path in ["crates/sql/x/src/tests/a.rs", "crates/sql/x/src/a.rs"] {
            assert!(findings(forbid_unsafe, path, "//! X.\n").is_empty());
        }
        assert!(findings(forbid_unsafe, "crates/base/sync/src/lib.rs", "//! X.\n").is_empty());
    }

    #[test]
    fn atomics_are_confined() {
        let text = concat!("use std::sync::", "atomic::AtomicU64;\n");
        let found = findings(atomics, "crates/base/env/src/a.rs", text);
        assert_eq!(
            found,
            ["crates/base/env/src/a.rs:1: names an atomic of std; take it from `sync::atomic`"]
        );
        assert!(findings(atomics, "crates/base/sync/src/a.rs", text).is_empty());
    }

    #[test]
    fn numbers_and_texts_of_errors_are_confined() {
        let path = "crates/sql/x/src/lib.rs";
        let text = concat!(
            "let a = errcode::ErrorCode",
            "(1062);\nlet b = ErrorCode",
            "(number);\nlet c = ClientError::with_message",
            "(\n    errcode::ER_YES, \"yes\");\nlet d = with_message",
            "(code, text);\n"
        );
        let found = findings(error_numbers, path, text);
        let expected = [
            "1: has the number of an error; take its constant from `errcode`",
            "3: has the text of an error; make it a `Wording` in `errcode`",
        ];
        assert_eq!(found, expected.map(|line| format!("{path}:{line}")));
        assert!(findings(error_numbers, "crates/protocol/errcode/src/x.rs", text).is_empty());
    }

    #[test]
    fn file_without_mod_is_refused() {
        let tree = Tree::of(&[
            ("crates/a/b/src/lib.rs", "mod one;\npub(crate) mod two;\n"),
            ("crates/a/b/src/one.rs", "mod tests;\n"),
            ("crates/a/b/src/one/tests.rs", ""),
            ("crates/a/b/src/two/mod.rs", "mod three;"),
            ("crates/a/b/src/two/three.rs", ""),
            ("crates/a/b/src/lost.rs", ""),
            (
                "crates/a/b/tests/root.rs",
                "#[path = \"shared/kit.rs\"]\nmod kit;",
            ),
            ("crates/a/b/tests/shared/kit.rs", ""),
        ]);
        let found: Vec<_> = orphans(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["crates/a/b/src/lost.rs:0: is reached by no `mod`"]);
    }

    #[test]
    fn conflicts_are_refused() {
        let text = format!("a\n{} main\nb\n", "<".repeat(7));
        let found = findings(conflicts, "docs/a.md", &text);
        assert_eq!(
            found,
            ["docs/a.md:2: has a mark of a conflict between two changes"]
        );
        assert!(findings(conflicts, "a.md", "a << b >> c\n").is_empty());
    }

    #[test]
    fn machine_paths_are_refused() {
        let found = findings(machine_paths, "README.md", concat!("see /wo", "rk/main\n"));
        assert_eq!(
            found,
            [concat!(
                "README.md:1: names a place of one machine: /wo",
                "rk/"
            )]
        );
    }
}
