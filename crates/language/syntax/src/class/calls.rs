//! [`replace_calls`]: a text with values in the place of calls that ask for them.
//!
//! `SELECT ROW_COUNT()` asks the connection about the statement before. Who has that statement's
//! answer, and not its connection, writes the answer into the text.

use builtin::Reach;
use settings::SqlMode;

use crate::keyword::Keyword as K;
use crate::token::{Kind, Lexer, Token};

/// A copy of `text`, with what `value` says for the reach of a call in the place of each such call
/// without arguments. Columns of a query's first list keep their names.
///
/// Behind a semicolon, the statement before is one of the text, so only the number of the
/// connection is replaced there. Nothing is in a definition, which is kept for others.
pub fn replace_calls(
    text: &[u8],
    mode: SqlMode,
    value: impl Fn(Reach) -> Option<String>,
) -> Vec<u8> {
    let mut replaced = Vec::with_capacity(text.len() + VALUE_BYTES);
    let mut copied = 0;
    let mut lexer = Lexer::new(text, mode);
    let mut list = List::default();
    let mut is_behind_dot = false;
    let mut is_first = true;
    let mut definition = Definition::default();
    loop {
        let token = lexer.next_keyword();
        let start = index(token.span.start);
        if let Some(name) = list.end_column(&token) {
            replaced.extend_from_slice(text.get(copied..name.end).unwrap_or_default());
            replaced.extend_from_slice(&name.alias(text));
            copied = name.end;
        }
        if token.kind == Kind::End || token.kind == Kind::Invalid {
            break;
        }
        is_first &= token.kind != Kind::Semicolon;
        let is_defined = definition.take(&token);
        let is_ours = |(reach, _): &(Reach, _)| {
            !is_behind_dot && !is_defined && (is_first || *reach == Reach::ConnectionId)
        };
        let found = call_behind(&lexer, token, text).filter(is_ours);
        is_behind_dot = token.kind == Kind::Dot;
        if let Some((reach, behind)) = found
            && let Some(value) = value(reach)
        {
            replaced.extend_from_slice(text.get(copied..start).unwrap_or_default());
            replaced.extend_from_slice(value.as_bytes());
            copied = behind.offset();
            if text.get(copied).is_some_and(|next| continues_word(*next)) {
                replaced.push(b' ');
            }
            lexer = behind;
            list.replace(start, copied);
            continue;
        }
        list.take(&token);
    }
    replaced.extend_from_slice(text.get(copied..).unwrap_or_default());
    replaced
}

/// Whether a byte behind a number would make both one word: `ROW_COUNT()AND a`.
fn continues_word(next: u8) -> bool {
    next.is_ascii_alphanumeric() || matches!(next, b'_' | b'$' | 0x80..)
}

/// Whether what is read is part of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Definition {
    /// Nothing was read.
    #[default]
    Before,
    /// Behind CREATE.
    Create,
    /// Of a table: from SELECT on, rows are made and no definition.
    Table,
    /// Of anything else.
    Other,
    /// It is none.
    No,
}

impl Definition {
    fn take(&mut self, token: &Token) -> bool {
        *self = match (*self, token.keyword) {
            (Definition::Before, Some(K::Create)) => Definition::Create,
            (Definition::Before, Some(K::Alter)) => Definition::Other,
            (Definition::Before, _) => Definition::No,
            (Definition::Create, Some(K::Or | K::Replace | K::Temporary)) => Definition::Create,
            (Definition::Create, Some(K::Table)) => Definition::Table,
            (Definition::Create, _) => Definition::Other,
            (Definition::Table, Some(K::Select)) => Definition::No,
            (Definition::Table, _) if token.kind == Kind::Semicolon => Definition::Before,
            (Definition::No, _) if token.kind == Kind::Semicolon => Definition::Before,
            (known, _) => known,
        };
        !matches!(self, Definition::No | Definition::Before)
    }
}

/// Room for a value and a name.
const VALUE_BYTES: usize = 64;

/// Longer names are cut by servers, or refused.
const NAME_BYTES_MAX: usize = 64;

/// The first list of columns of a query, as far as it was read.
#[derive(Debug, Default)]
struct List {
    stage: Stage,
    depth: u32,
    /// The column that is being read.
    column: Option<Column>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Stage {
    #[default]
    Before,
    Columns,
    /// It is over, or the text is no query.
    Behind,
}

/// A column, up to the last token that was read.
#[derive(Debug, Clone, Copy)]
struct Column {
    start: usize,
    end: usize,
    /// A call in it was replaced.
    is_replaced: bool,
    /// It has a name of its own, or might.
    is_named: bool,
}

impl Column {
    /// The name that it has without the replacement.
    fn alias(&self, text: &[u8]) -> Vec<u8> {
        let name = text.get(self.start..self.end).unwrap_or_default();
        let mut alias = b" AS `".to_vec();
        for byte in name {
            alias.push(*byte);
            if *byte == b'`' {
                alias.push(*byte);
            }
        }
        alias.push(b'`');
        alias
    }
}

impl List {
    /// Ends a column before a token that is none of it. Returns the column if it needs a name.
    fn end_column(&mut self, token: &Token) -> Option<Column> {
        let is_end = matches!(token.kind, Kind::Comma | Kind::End | Kind::Semicolon)
            || matches!(token.keyword, Some(K::From | K::Into | K::Union | K::Limit));
        if self.stage != Stage::Columns || self.depth != 0 || !is_end {
            return None;
        }
        if token.kind != Kind::Comma {
            self.stage = Stage::Behind;
        }
        let column = self.column.take()?;
        let fits = column.end - column.start <= NAME_BYTES_MAX;
        (column.is_replaced && !column.is_named && fits).then_some(column)
    }

    /// Reads a token.
    fn take(&mut self, token: &Token) {
        match self.stage {
            Stage::Before => {
                self.stage = match token.keyword {
                    Some(K::Select) => Stage::Columns,
                    _ => Stage::Behind,
                };
                return;
            }
            Stage::Columns => {}
            Stage::Behind => return,
        }
        match token.kind {
            Kind::LeftParen => self.depth = self.depth.saturating_add(1),
            Kind::RightParen => self.depth = self.depth.saturating_sub(1),
            Kind::Comma if self.depth == 0 => return,
            _ => {}
        }
        let is_word = matches!(
            token.kind,
            Kind::Word | Kind::Name | Kind::Quoted | Kind::String
        );
        self.extend(index(token.span.start), index(token.span.end));
        if let Some(column) = &mut self.column {
            column.is_named = is_word;
        }
    }

    /// Reads a call that was replaced.
    fn replace(&mut self, start: usize, end: usize) {
        if self.stage == Stage::Columns {
            self.extend(start, end);
            if let Some(column) = &mut self.column {
                column.is_replaced = true;
                column.is_named = false;
            }
        }
    }

    fn extend(&mut self, start: usize, end: usize) {
        let column = self.column.get_or_insert(Column {
            start,
            end,
            is_replaced: false,
            is_named: false,
        });
        column.end = end;
    }
}

/// The reach of a call without arguments whose name is `token`, and the place behind it.
fn call_behind<'a>(lexer: &Lexer<'a>, token: Token, text: &[u8]) -> Option<(Reach, Lexer<'a>)> {
    if token.kind != Kind::Word {
        return None;
    }
    let mut behind = lexer.clone();
    let is_empty_call =
        behind.next_token().kind == Kind::LeftParen && behind.next_token().kind == Kind::RightParen;
    let reach = builtin::reach(token.span.of(text)).filter(|_| is_empty_call)?;
    Some((reach, behind))
}

fn index(place: u32) -> usize {
    usize::try_from(place).expect("a text fits into memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(text: &str) -> String {
        let value = |reach| match reach {
            Reach::RowCount => Some("5".to_owned()),
            Reach::FoundRows => Some("7".to_owned()),
            _ => None,
        };
        let bytes = replace_calls(text.as_bytes(), SqlMode::default(), value);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn calls_become_values_and_columns_keep_their_names() {
        for (text, expected) in [
            ("SELECT ROW_COUNT()", "SELECT 5 AS `ROW_COUNT()`"),
            (
                "select found_rows( ) , row_count() FROM t",
                "select 7 AS `found_rows( )` , 5 AS `row_count()` FROM t",
            ),
            ("SELECT ROW_COUNT() AS a", "SELECT 5 AS a"),
            ("SELECT ROW_COUNT() a", "SELECT 5 a"),
            ("SELECT ROW_COUNT()a", "SELECT 5 a"),
            (
                "DELETE FROM t WHERE a = ROW_COUNT()AND b",
                "DELETE FROM t WHERE a = 5 AND b",
            ),
            ("DO ROW_COUNT()_x", "DO 5 _x"),
            ("DO ROW_COUNT()$", "DO 5 $"),
            ("DO ROW_COUNT()\u{e4}", "DO 5 \u{e4}"),
            ("DO ROW_COUNT(),1", "DO 5,1"),
            (
                "SELECT ROW_COUNT() + 1",
                "SELECT 5 + 1 AS `ROW_COUNT() + 1`",
            ),
            (
                "SELECT IF(ROW_COUNT(), 1, `b`) , 2 LIMIT 1",
                "SELECT IF(5, 1, `b`) AS `IF(ROW_COUNT(), 1, ``b``)` , 2 LIMIT 1",
            ),
            (
                "SELECT 1 + ROW_COUNT(), a",
                "SELECT 1 + 5 AS `1 + ROW_COUNT()`, a",
            ),
            (
                "INSERT INTO t VALUES (1, ROW_COUNT())",
                "INSERT INTO t VALUES (1, 5)",
            ),
            ("SET @a = ROW_COUNT(), @b = 1", "SET @a = 5, @b = 1"),
            ("DO 1, FOUND_ROWS()", "DO 1, 7"),
            (
                "SELECT (SELECT FOUND_ROWS())",
                "SELECT (SELECT 7) AS `(SELECT FOUND_ROWS())`",
            ),
            (
                "SELECT 'ROW_COUNT()', a.row_count()",
                "SELECT 'ROW_COUNT()', a.row_count()",
            ),
            (
                "SELECT CONNECTION_ID(), NOW()",
                "SELECT CONNECTION_ID(), NOW()",
            ),
            ("SELECT ROW_COUNT(", "SELECT ROW_COUNT("),
            (
                "SELECT ROW_COUNT(); SELECT ROW_COUNT()",
                "SELECT 5 AS `ROW_COUNT()`; SELECT ROW_COUNT()",
            ),
            (
                "CREATE OR REPLACE PROCEDURE p() SELECT ROW_COUNT()",
                "CREATE OR REPLACE PROCEDURE p() SELECT ROW_COUNT()",
            ),
            (
                "CREATE VIEW v AS SELECT FOUND_ROWS()",
                "CREATE VIEW v AS SELECT FOUND_ROWS()",
            ),
            (
                "CREATE TEMPORARY TABLE t (a INT DEFAULT (ROW_COUNT())) SELECT ROW_COUNT()",
                "CREATE TEMPORARY TABLE t (a INT DEFAULT (ROW_COUNT())) SELECT 5",
            ),
            ("", ""),
        ] {
            assert_eq!(replaced(text), expected, "{text}");
        }
    }
}
