//! A printed tree parses to the same tree.

#![forbid(unsafe_code)]

use syntax::canonical::Canonical;
use syntax::print::{print, print_with};
use syntax::{SqlMode, parse};

/// Skipped parts cannot be printed.
const READ_OVER: [&str; 5] = [
    "SYSTEM_TIME",
    "JSON_TABLE",
    "PROCEDURE",
    "PORTION",
    "HISTORY",
];

fn statements() -> impl Iterator<Item = &'static str> {
    include_str!("corpus.sql")
        .lines()
        .chain(include_str!("more.sql").lines())
        .filter(|line| !line.starts_with("--") && !line.is_empty())
        .filter(|line| !READ_OVER.iter().any(|part| line.contains(part)))
}

#[test]
fn printing_keeps_the_tree() {
    let mut count = 0;
    for sql in statements() {
        let Ok(tree) = parse(sql.as_bytes(), SqlMode::default()) else {
            continue;
        };
        let Some(text) = print(&tree) else {
            continue;
        };
        let again = parse(text.as_bytes(), SqlMode::default())
            .unwrap_or_else(|error| panic!("{error}\n  {sql}\n  {text}"));
        assert_eq!(tree, again, "{sql}\n  {text}");
        count += 1;
    }
    assert!(120 < count, "only {count} statements were printed");
}

#[test]
fn canonical_text_with_its_literals_is_the_statement() {
    let mut form = Canonical::new();
    let mut count = 0;
    for sql in statements() {
        let Ok(tree) = parse(sql.as_bytes(), SqlMode::default()) else {
            continue;
        };
        if !form.fill(sql.as_bytes(), SqlMode::default()) {
            continue;
        }
        let canonical = parse(form.text(), SqlMode::default())
            .unwrap_or_else(|error| panic!("{error}\n  {sql}"));
        let parameters = form.parameters().iter();
        let literals: Vec<_> = parameters
            .map(|parameter| parameter.literal(sql.as_bytes(), SqlMode::default()))
            .collect();
        assert_eq!(literals.len(), canonical.parameter_count as usize, "{sql}");
        assert_eq!(print_with(&canonical, &literals), print(&tree), "{sql}");
        count += 1;
    }
    assert!(100 < count, "only {count} statements have a canonical form");
}
