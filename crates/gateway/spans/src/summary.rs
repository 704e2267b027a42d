//! A summary of a statement: what it does, and to which tables. Many texts have one summary, so
//! spans are named by it.
//!
//! ```text
//! INSERT INTO shop.sale SELECT * FROM cart WHERE id = ?  -->  INSERT shop.sale SELECT cart
//! ```
//!
//! It is found without a grammar, in the canonical text. A table behind a comma is not seen.

/// Bytes of a summary: as many as the semantic conventions allow.
pub const SUMMARY_BYTES_MAX: usize = 255;

/// Parentheses within each other that are told apart.
const DEPTH_MAX: usize = 64;

/// A piece of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a [u8]),
    Open,
    Close,
    Other,
}

/// What the next word is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// What is done.
    Operation,
    /// A table, unless it is one of the words before a table.
    Table,
    Unknown,
}

/// Words between what is done and the table.
const BEFORE_TABLE: [&[u8]; 13] = [
    b"LOW_PRIORITY",
    b"HIGH_PRIORITY",
    b"DELAYED",
    b"QUICK",
    b"IGNORE",
    b"INTO",
    b"FROM",
    b"TABLE",
    b"ONLY",
    b"LATERAL",
    b"IF",
    b"NOT",
    b"EXISTS",
];

/// The summary of a canonical text; empty if that has no word.
pub(crate) fn summary(text: &[u8]) -> String {
    let mut made = String::new();
    let mut next = Next::Operation;
    // By parentheses: whether FROM and JOIN stand before a table.
    let mut reads = vec![false];
    let mut rest = text;
    while let Some((token, more)) = token(rest) {
        rest = more;
        next = match token {
            Token::Open | Token::Other if next == Next::Operation => next,
            Token::Open => {
                if reads.len() < DEPTH_MAX {
                    reads.push(false);
                }
                Next::Unknown
            }
            Token::Close => {
                if 1 < reads.len() {
                    reads.pop();
                }
                Next::Unknown
            }
            Token::Other => Next::Unknown,
            Token::Word(word) => {
                let reads = reads.last_mut().expect("the first one stays");
                word_behind(word, next, reads, &mut made)
            }
        };
    }
    made
}

/// Returns what stands behind a word.
fn word_behind(word: &[u8], next: Next, reads: &mut bool, made: &mut String) -> Next {
    let is = |known: &[u8]| word.eq_ignore_ascii_case(known);
    match next {
        Next::Table if BEFORE_TABLE.iter().any(|it| is(it)) => Next::Table,
        Next::Table if is(b"SELECT") => {
            add(made, b"SELECT");
            *reads = true;
            Next::Unknown
        }
        Next::Table => {
            let name: Vec<u8> = word.iter().copied().filter(|it| *it != b'`').collect();
            add(made, &name);
            Next::Unknown
        }
        Next::Operation => {
            add(made, &word.to_ascii_uppercase());
            let has_table: [&[u8]; 7] = [
                b"INSERT",
                b"REPLACE",
                b"UPDATE",
                b"DELETE",
                b"TRUNCATE",
                b"CALL",
                b"TABLE",
            ];
            *reads = is(b"SELECT");
            match has_table.iter().any(|it| is(it)) {
                true => Next::Table,
                false => Next::Unknown,
            }
        }
        Next::Unknown if is(b"SELECT") => {
            add(made, b"SELECT");
            *reads = true;
            Next::Unknown
        }
        Next::Unknown if *reads && (is(b"FROM") || is(b"JOIN")) => Next::Table,
        Next::Unknown if is(b"TABLE") && made.split(' ').count() == 1 => {
            add(made, b"TABLE");
            Next::Table
        }
        Next::Unknown => Next::Unknown,
    }
}

/// Adds a word, unless there is no room for it.
fn add(made: &mut String, word: &[u8]) {
    let word = String::from_utf8_lossy(word);
    let space = usize::from(!made.is_empty());
    if made.len() + space + word.len() <= SUMMARY_BYTES_MAX {
        if 0 < space {
            made.push(' ');
        }
        made.push_str(&word);
    }
}

/// The first piece of a text, and the rest.
fn token(text: &[u8]) -> Option<(Token<'_>, &[u8])> {
    let text = text.trim_ascii_start();
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"_$.".contains(&byte) || 127 < byte;
    let mut length = 0;
    while let Some(byte) = text.get(length) {
        let rest = text.get(length + 1..).unwrap_or_default();
        length += match byte {
            b'`' => 1 + rest.iter().position(|it| *it == b'`')? + 1,
            byte if is_letter(*byte) => 1,
            _ => break,
        };
    }
    let (word, rest) = text.split_at_checked(length)?;
    if !word.is_empty() {
        return Some((Token::Word(word), rest));
    }
    let (byte, rest) = text.split_first()?;
    let token = match byte {
        b'(' => Token::Open,
        b')' => Token::Close,
        _ => Token::Other,
    };
    Some((token, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn statements_are_named_by_what_they_do_and_to_what() {
        for (text, expected) in [
            ("", ""),
            ("?", ""),
            ("select ?", "SELECT"),
            ("SELECT a, b FROM shop.item WHERE id=?", "SELECT shop.item"),
            (
                "SELECT * FROM `shop`.`my item` x JOIN sale ON a=b",
                "SELECT shop.my item sale",
            ),
            (
                "(SELECT 1 FROM a) UNION (SELECT 2 FROM b)",
                "SELECT a SELECT b",
            ),
            (
                "SELECT EXTRACT(YEAR FROM d), TRIM(? FROM e) FROM t",
                "SELECT t",
            ),
            ("SELECT * FROM (SELECT a FROM t) d", "SELECT SELECT t"),
            ("INSERT INTO t VALUES (?)", "INSERT t"),
            ("insert low_priority ignore t (a) values (?)", "INSERT t"),
            ("INSERT INTO a SELECT * FROM b", "INSERT a SELECT b"),
            (
                "INSERT t VALUES (?) ON DUPLICATE KEY UPDATE a=?",
                "INSERT t",
            ),
            ("REPLACE INTO t SET a=?", "REPLACE t"),
            ("UPDATE t SET a=(SELECT MAX(b) FROM u)", "UPDATE t SELECT u"),
            ("DELETE FROM t WHERE a=?", "DELETE t"),
            (
                "WITH c AS (SELECT 1 FROM t) SELECT * FROM c",
                "WITH SELECT t SELECT c",
            ),
            ("SELECT a FROM t FOR UPDATE", "SELECT t"),
            ("CREATE TABLE IF NOT EXISTS t (id INT)", "CREATE TABLE t"),
            ("TRUNCATE TABLE t", "TRUNCATE t"),
            ("CALL shop.buy(?)", "CALL shop.buy"),
            ("SHOW TABLES", "SHOW"),
            ("SET @@sql_mode=?", "SET"),
            ("COMMIT", "COMMIT"),
            ("SELECT * FROM `t", "SELECT"),
        ] {
            assert_eq!(summary(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn a_summary_has_a_length() {
        let name = |bytes: usize| format!("SELECT * FROM {}", "a".repeat(bytes));
        let room = SUMMARY_BYTES_MAX - "SELECT ".len();
        assert_eq!(summary(name(room).as_bytes()).len(), SUMMARY_BYTES_MAX);
        assert_eq!(summary(name(room + 1).as_bytes()), "SELECT");
        let deep = "(".repeat(DEPTH_MAX + 9) + "SELECT 1 FROM t";
        assert_eq!(summary(deep.as_bytes()), "SELECT t");
    }

    proptest! {
        #[test]
        fn any_text_has_a_short_one(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(summary(&text).len() <= SUMMARY_BYTES_MAX);
        }
    }
}
