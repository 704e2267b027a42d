//! Rules about names that stand in one place.

use builtin::{Grammar, TABLE};

use super::modules::lines_for_tests;
use super::tree::{Finding, Tree};

/// Sources that know functions by `builtin::Function` and ask the table for the rest.
const USERS: [&str; 5] = [
    "crates/language/function/src/",
    "crates/language/syntax/src/",
    "crates/sql/expression/src/",
    "crates/sql/planner/src/",
    "crates/sql/executor/src/",
];

/// The words of the grammar, which is a table of its own.
const KEYWORDS: &str = "crates/language/syntax/src/keyword.rs";

/// Names of functions that name something else, too: types, units, statements, clauses. The last
/// two name trees that are no calls.
const OTHER_MEANINGS: [&str; 23] = [
    "CHAR",
    "CHARSET",
    "CONVERT",
    "COUNT",
    "DATE",
    "DAY",
    "HOUR",
    "INSERT",
    "INTERVAL",
    "MICROSECOND",
    "MINUTE",
    "MONTH",
    "QUARTER",
    "REPLACE",
    "SECOND",
    "TIME",
    "TIMESTAMP",
    "UUID",
    "WEEK",
    "YEAR",
    "PASSWORD",
    "GET_FORMAT",
    "JSON_TABLE",
];

/// The name of a built-in function stands in the table alone.
pub(crate) fn function_names(tree: &Tree) -> Vec<Finding> {
    let is_user = |path: &str| path != KEYWORDS && USERS.iter().any(|user| path.starts_with(user));
    let mut findings = Vec::new();
    for (path, text) in tree.sources().filter(|(path, _)| is_user(path)) {
        let tests = lines_for_tests(text);
        for (place, line) in text.lines().enumerate() {
            let is_for_tests = tests.iter().any(|item| item.contains(&(place + 1)));
            if is_for_tests || line.trim_start().starts_with("//") {
                continue;
            }
            let named = line
                .split('"')
                .skip(1)
                .step_by(2)
                .find(|it| is_function(it));
            findings.extend(named.map(|name| {
                let message = format!("names the function {name}; `builtin::TABLE` has the name");
                Finding::new(path, place + 1, message)
            }));
        }
    }
    findings
}

fn is_function(word: &str) -> bool {
    let is_name = |name: &&builtin::Name| name.grammar != Grammar::Operator && name.text == word;
    !OTHER_MEANINGS.contains(&word)
        && TABLE
            .iter()
            .any(|function| function.names.iter().any(|name| is_name(&name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        function_names(&Tree::of(&[(path, text)]))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn the_name_of_a_function_is_refused_outside_of_the_table() {
        let path = "crates/sql/planner/src/a.rs";
        let text = "//! x\nmatch name {\n    \"NOW\" | \"SUBSTR\" => 1,\n}\n";
        assert_eq!(
            findings(path, text),
            [format!(
                "{path}:3: names the function NOW; `builtin::TABLE` has the name"
            )]
        );
        assert_eq!(
            findings(path, "//! \"NOW\"\nlet unit = \"DAY\";\n"),
            [""; 0]
        );
        assert_eq!(
            findings(path, "#[cfg(test)]\nlet name = \"NOW\";\n"),
            [""; 0]
        );
        // What follows an item for tests is code again.
        let text = "#[cfg(test)]\nuse a::\"NOW\";\n\nlet name = \"NOW\";\n";
        let path = "crates/sql/planner/src/a.rs";
        let refused = format!("{path}:4: names the function NOW; `builtin::TABLE` has the name");
        assert_eq!(findings(path, text), [refused]);
        assert_eq!(findings(KEYWORDS, "let word = \"COALESCE\";\n"), [""; 0]);
        assert_eq!(findings("crates/proof/lab/src/a.rs", "\"NOW\"\n"), [""; 0]);
    }
}
