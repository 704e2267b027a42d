//! [`diagnosed_variables`]: the user variables that GET DIAGNOSTICS sets.

use settings::SqlMode;

use super::words::Words;
use crate::keyword::Keyword as K;
use crate::token::Kind;

/// A user variable that GET DIAGNOSTICS sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiagnosedVariable<'a> {
    /// Its name as written, with the sign and quotes.
    pub name: &'a [u8],
    /// What it gets.
    pub item: DiagnosticItem,
}

/// What a variable gets of the diagnostics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiagnosticItem {
    /// A whole number.
    Number,
    /// A text.
    Text,
}

/// The items that are whole numbers.
const NUMBERS: [K; 4] = [K::Number, K::RowCount, K::MysqlErrno, K::RowNumber];

/// The variables of `GET DIAGNOSTICS @a = item, ..`, in their order. `None` if the text is another
/// one, or sets anything else.
#[must_use]
pub fn diagnosed_variables(text: &[u8], mode: SqlMode) -> Option<Vec<DiagnosedVariable<'_>>> {
    let mut words = Words::new(text, mode);
    if !words.take(K::Get) {
        return None;
    }
    // The number of a condition stands before the first variable, and may be a variable itself.
    while words.token.kind != Kind::UserVariable || words.ahead().kind != Kind::Equal {
        if words.is_at_end() {
            return None;
        }
        words.bump();
    }
    let mut variables = Vec::new();
    loop {
        if words.token.kind != Kind::UserVariable {
            return None;
        }
        let name = words.text();
        words.bump();
        if !words.take_sign(Kind::Equal) {
            return None;
        }
        let is_number = words.keyword().is_some_and(|it| NUMBERS.contains(&it));
        words.name();
        let item = match is_number {
            true => DiagnosticItem::Number,
            false => DiagnosticItem::Text,
        };
        variables.push(DiagnosedVariable { name, item });
        if !words.take_sign(Kind::Comma) {
            return words.is_at_end().then_some(variables);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(text: &str) -> Option<Vec<(String, DiagnosticItem)>> {
        let found = diagnosed_variables(text.as_bytes(), SqlMode::default())?;
        let name = |it: &[u8]| String::from_utf8(it.to_vec()).unwrap();
        Some(found.iter().map(|it| (name(it.name), it.item)).collect())
    }

    #[test]
    fn variables_have_the_kind_of_their_item() {
        let number = |name: &str| (name.to_owned(), DiagnosticItem::Number);
        let text = |name: &str| (name.to_owned(), DiagnosticItem::Text);
        for (statement, expected) in [
            ("GET DIAGNOSTICS @n = NUMBER", vec![number("@n")]),
            (
                "get current diagnostics @`a b` = row_count, @n=Number",
                vec![number("@`a b`"), number("@n")],
            ),
            (
                "GET DIAGNOSTICS CONDITION 1 @t = MESSAGE_TEXT, @e = MYSQL_ERRNO;",
                vec![text("@t"), number("@e")],
            ),
            (
                "GET DIAGNOSTICS CONDITION @i @s = RETURNED_SQLSTATE",
                vec![text("@s")],
            ),
        ] {
            assert_eq!(variables(statement), Some(expected), "{statement}");
        }
    }

    #[test]
    fn other_texts_are_not_read() {
        for statement in [
            "SET @a = 1",
            "GET DIAGNOSTICS n = NUMBER",
            "GET DIAGNOSTICS @a = NUMBER, n = ROW_COUNT",
            "GET DIAGNOSTICS @a = NUMBER @b = NUMBER",
            "GET DIAGNOSTICS",
            "",
        ] {
            assert_eq!(variables(statement), None, "{statement}");
        }
    }
}
