//! [`must_read_row`]: queries whose replies show that they have read from a table.

use builtin::Grammar;
use settings::SqlMode;

use super::touched::value;
use super::words::Words;
use crate::keyword::Keyword as K;
use crate::token::Kind;

/// Whether each row of a query's reply was made from at least one row of a table. So it is for one
/// SELECT over named tables, without an aggregate: that may make a row from none.
///
/// A table whose name begins with `seq_` may be one that MariaDB's engine SEQUENCE computes.
#[must_use]
pub fn must_read_row(text: &[u8], mode: SqlMode) -> bool {
    let mut words = Words::new(text, mode);
    if !words.take(K::Select) {
        return false;
    }
    let (mut has_table, mut depth) = (false, 0_usize);
    while !words.is_at_end() {
        match (words.token.kind, words.keyword()) {
            (_, Some(K::Select | K::Union | K::Except | K::Intersect | K::Values | K::Rollup)) => {
                return false;
            }
            // `TRIM(a FROM b)` has one, too.
            (_, Some(K::From)) if depth == 0 => {
                words.bump();
                has_table |= value(&words).is_some();
                continue;
            }
            (Kind::LeftParen, _) => depth += 1,
            (Kind::RightParen, _) => depth = depth.saturating_sub(1),
            (Kind::Word | Kind::Name | Kind::Quoted, _) => {
                let name = value(&words);
                let is_call = words.ahead().kind == Kind::LeftParen;
                let makes_rows = is_call && !is_scalar(words.text(), name.as_deref());
                if makes_rows || name.is_some_and(|it| is_computed(&it)) {
                    return false;
                }
            }
            _ => {}
        }
        words.bump();
    }
    has_table
}

/// Whether a name is that of a computed table: `seq_1_to_9`.
fn is_computed(name: &[u8]) -> bool {
    let head = name.get(..4);
    head.is_some_and(|it| it.eq_ignore_ascii_case(b"seq_"))
}

/// Whether what stands before a parenthesis makes at most a value. A word that is no `name` may be
/// an operator, as IN is.
fn is_scalar(word: &[u8], name: Option<&[u8]>) -> bool {
    match builtin::find(word).map(|it| it.grammar) {
        Some(Grammar::Aggregate | Grammar::Table) => false,
        Some(_) => true,
        None => name.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_select_over_named_tables_reads_from_them() {
        let must = |text: &str| must_read_row(text.as_bytes(), SqlMode::default());
        for text in [
            "SELECT v FROM t WHERE id = 1",
            "select `v` from `d`.`t` as a where v in (1, 2) and (w = 3 or not (x))",
            "SELECT UPPER(a), IF(b, 1, 2), TRIM(a FROM b) FROM t JOIN u USING (id) LIMIT 3",
            "SELECT DISTINCT a FROM t, u GROUP BY b HAVING a > 1",
            "SELECT ROW_NUMBER() OVER () FROM t",
        ] {
            assert!(must(text), "{text}");
        }
        for text in [
            "SELECT 1",
            "SELECT 1 FROM DUAL",
            "SELECT TRIM(a FROM b), EXTRACT(DAY FROM c)",
            "SELECT * FROM (SELECT 1 AS x) d",
            "SELECT v FROM t WHERE id = (SELECT 5)",
            "SELECT 1 FROM t UNION VALUES (1)",
            "WITH a AS (SELECT 1 x) SELECT * FROM a",
            "SELECT COUNT(*) FROM t WHERE 1 = 0",
            "SELECT max (id) FROM t WHERE 0",
            "SELECT a FROM t WHERE 0 HAVING COUNT(*) = 0",
            "SELECT a FROM t WHERE 0 GROUP BY a WITH ROLLUP",
            "SELECT * FROM seq_1_to_3",
            "SELECT * FROM `SEQ_1_to_3`",
            "SELECT * FROM (VALUES (1)) q",
            "SELECT * FROM JSON_TABLE('[1]', '$[*]' COLUMNS (x INT PATH '$')) j",
            "SELECT my_sum(a) FROM t",
            "(SELECT a FROM t)",
            "",
        ] {
            assert!(!must(text), "{text}");
        }
    }
}
