//! The corpus: every statement that MariaDB 10.11 accepts is accepted.

#![forbid(unsafe_code)]

use syntax::{SqlMode, parse};

/// Statements of MySQL 8 that MariaDB 10.11 refuses with error 1064, and LATERAL.
const REFUSED: [&str; 4] = ["j->'$.a'", "MEMBER OF", "AS new ON DUPLICATE", "LATERAL"];

#[test]
fn all_valid_statements_parse() {
    let corpus = include_str!("corpus.sql");
    let mut taken = 0;
    for line in corpus.lines().filter(|line| !line.starts_with("-- @")) {
        let is_refused = REFUSED.iter().any(|part| line.contains(part));
        match parse(line.as_bytes(), SqlMode::default()) {
            Ok(_) => {
                assert!(!is_refused, "taken, though MariaDB refuses it: {line}");
                taken += 1;
            }
            Err(error) => {
                assert!(is_refused, "{error}\n{line}");
                assert_eq!(error.code().number(), 1064, "{line}");
            }
        }
    }
    assert!(
        306 <= taken,
        "only {taken} statements of the corpus were taken"
    );
}
