//! What the properties `tables` and `cache` say, against what the drawn statements are and what
//! became of them.

use anyhow::{Result, ensure};

use super::draw::{Changed, bare, changed_by, warns};
use super::stage::Told;

/// Whether a session is told that its statement gets a kept result.
pub(super) fn is_told(told: &Told) -> bool {
    told.cache.starts_with("told: ")
}

/// Whether it may get one: an operator asks before the session begins, and an execution has other
/// results than its text.
pub(super) fn may_be_told(told: &Told) -> bool {
    is_told(told) || told.cache.starts_with("asked: ")
}

/// Whether the result of the statement is there afterwards, if it was answered without an error
/// and the map is the same. The first query of a transaction may find no row, and opens no table
/// then.
pub(super) fn will_be_told(text: &str, told: &Told) -> bool {
    let is_kept = told.cache.contains("that of its server is kept");
    let is_first = told.cache.contains("the first query of a transaction");
    is_told(told) || is_kept && !is_first && !told.is_conditional && !warns(text)
}

/// Whether its result is not there afterwards. What is under way in the background may end between
/// the question and the statement.
pub(super) fn will_not_be_told(told: &Told) -> bool {
    let passes = [
        "a change of its tables",
        "definitions of tables",
        "not known to have all writes",
        // A transaction ends with an error, as does a pin.
        "transaction",
        "pinned",
    ];
    !may_be_told(told) && !passes.iter().any(|it| told.cache.contains(it))
}

/// Checks the tables that a statement is said to name and to change.
pub(super) fn check_tables(text: &str, told: &Told) -> Result<()> {
    if told.why.starts_with("the gateway answers it itself") {
        return Ok(());
    }
    let (names, changes) = match told.tables.split_once("may change ") {
        Some((names, changes)) => (names, changes),
        None => (&*told.tables, ""),
    };
    let expected = match changed_by(text) {
        Changed::Nothing => changes.is_empty(),
        // While definitions are in doubt, any other table as well.
        Changed::Table(table) => changes.split(", and").next() == Some(table),
        Changed::AnyTable => changes == "any table",
        Changed::Anything => changes == "any table and definition",
    };
    ensure!(expected, "{text}\nis said to change: {}", told.tables);
    let names = names.trim_start_matches("names ").trim_end_matches("; ");
    let named: Vec<_> = names.split(", ").collect();
    let word = |rest: &str| -> String {
        let is_part = |it: &char| it.is_ascii_alphanumeric() || *it == '_';
        rest.chars().take_while(is_part).collect()
    };
    // What stands in a string is another statement's.
    let is_read = named != [""] && !text.contains('\'');
    for (at, _) in text.match_indices("shop.").filter(|_| is_read) {
        let table = word(text.get(at + "shop.".len()..).unwrap_or_default());
        let is_named = named.contains(&&*table);
        ensure!(is_named, "{text}\nis said to name: {}", told.tables);
    }
    let reads = bare(text).starts_with("SELECT") && text.contains("FROM shop.");
    let is_several = text.contains(';');
    ensure!(
        is_several || !reads || named != [""],
        "{text}\nis said to name nothing"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(tables: &str, cache: &str) -> Told {
        Told {
            tables: tables.to_owned(),
            cache: cache.to_owned(),
            ..Told::default()
        }
    }

    #[test]
    fn wrong_tables_are_found() {
        for (text, tables, is_right) in [
            ("SELECT a FROM shop.t", "names a, shop, t", true),
            ("SELECT a FROM shop.t", "names a, shop", false),
            ("SELECT a FROM shop.t", "", false),
            (
                "SELECT a FROM shop.t",
                "names shop, t, a; may change t",
                false,
            ),
            (
                "REPLACE INTO shop.t VALUES (5)",
                "names shop, t; may change t",
                true,
            ),
            (
                "REPLACE INTO shop.t VALUES (5)",
                "names shop, t; may change d",
                false,
            ),
            (
                "CALL shop.p()",
                "names shop, p; may change any table",
                false,
            ),
            ("COMMIT", "", true),
        ] {
            let checked = check_tables(&format!("{text} /* pair 1 */"), &told(tables, ""));
            assert_eq!(checked.is_ok(), is_right, "{text}: {tables}");
        }
    }

    #[test]
    fn what_a_cache_has_afterwards_follows_from_what_is_told() {
        let kept = "asked: the cache `c` has no result; that of its server is kept";
        for (cache, is_kept, is_not) in [
            ("told: the cache `c` has its result", true, false),
            (kept, true, false),
            (
                "asked: the cache `c` has no result; none is kept: `v` is a view",
                false,
                false,
            ),
            ("not asked: it has a hint", false, true),
            ("not asked: the transaction has written", false, false),
        ] {
            let told = told("", cache);
            let found = (will_be_told("", &told), will_not_be_told(&told));
            assert_eq!(found, (is_kept, is_not), "{cache}");
        }
    }
}
