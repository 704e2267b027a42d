//! Argument counts that are part of MariaDB's grammar. A call with another count is a syntax error
//! there; other functions fail with 1582.

/// The least and most arguments; `None` for functions whose count the grammar does not check.
pub(crate) fn arity(name: &str) -> Option<(usize, usize)> {
    let name = name.to_ascii_uppercase();
    let known = ARITIES.binary_search_by(|(known, _, _)| (*known).cmp(name.as_str()));
    let (_, least, most) = ARITIES.get(known.ok()?)?;
    Some((*least, *most))
}

/// Sorted by name.
const ARITIES: [(&str, usize, usize); 30] = [
    ("ASCII", 1, 1),
    ("CHARSET", 1, 1),
    ("COLLATION", 1, 1),
    ("DATABASE", 0, 0),
    ("DATE", 1, 1),
    ("DAY", 1, 1),
    ("FORMAT", 2, 3),
    ("HOUR", 1, 1),
    ("IF", 3, 3),
    ("INSERT", 4, 4),
    ("INTERVAL", 2, usize::MAX),
    ("LEFT", 2, 2),
    ("MICROSECOND", 1, 1),
    ("MINUTE", 1, 1),
    ("MOD", 2, 2),
    ("MONTH", 1, 1),
    ("PASSWORD", 1, 1),
    ("QUARTER", 1, 1),
    ("REPEAT", 2, 2),
    ("REPLACE", 3, 3),
    ("RIGHT", 2, 2),
    ("ROW_COUNT", 0, 0),
    ("SCHEMA", 0, 0),
    ("SECOND", 1, 1),
    ("SESSION_USER", 0, 0),
    ("SYSTEM_USER", 0, 0),
    ("TIME", 1, 1),
    ("TRUNCATE", 2, 2),
    ("USER", 0, 0),
    ("YEAR", 1, 1),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_found_in_any_case() {
        assert!(ARITIES.is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!(arity("left"), Some((2, 2)));
        assert_eq!(arity("CONCAT"), None);
    }
}
