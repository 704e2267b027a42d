//! Text to tree: recursive descent, and precedence climbing for expressions.
//!
//! The grammar is MariaDB 10.11's; where its manual is silent, a running server was asked. Time is
//! linear in the text, except that finding a matching parenthesis costs the depth. [`DEPTH_MAX`]
//! bounds the recursion, [`HEIGHT_MAX`] the height of the tree. So parsing, walking and dropping a
//! tree never overflow a stack. Rules that few expressions need are `inline(never)`: inlined, their
//! locals would make each level of parentheses cost 10 KiB of stack.
//!
//! A statement that MariaDB accepts and Plateau will only ever refuse by name becomes
//! [`crate::ast::Refused`]: its text is skipped, not checked.

mod admin;
mod constants;
mod cursor;
mod definition;
mod dml;
mod error;
mod expr;
mod query;
mod routine;
mod scope;
mod statement;

pub use constants::{CONSTANTS_MIN, ConstantReader, read_constants};
pub use cursor::{DEPTH_MAX, HEIGHT_MAX, LIST_LEN_MAX, TOKENS_PER_LOOK};
pub use error::{RoutineError, SyntaxError, SyntaxErrorKind, quoted};
pub use routine::check_in_function;
pub use statement::is_explain_route;

use settings::SqlMode;

#[cfg(doc)]
use crate::ast;
use crate::ast::{Expr, Statement};
use crate::token::Kind;
use cursor::Cursor;

/// Returns the first statement of `text` and the offset after it and its `;`.
///
/// A text of many statements is run one by one: parse the rest after the first has run. Spans count
/// from the start of `text`.
///
/// # Errors
///
/// [`SyntaxErrorKind::Empty`] if there are only blanks.
pub fn parse_one(text: &[u8], mode: SqlMode) -> Result<(Statement, usize), SyntaxError> {
    parse_one_while(text, mode, &|| true)
}

/// As [`parse_one`], for a text that may be long: every [`TOKENS_PER_LOOK`] tokens, some 100 us, it
/// asks whether it may continue. Long lists of constants stay in the text ([`ast::Constants`]).
///
/// # Errors
///
/// [`SyntaxErrorKind::Stopped`] if it may not.
pub fn parse_one_while(
    text: &[u8],
    mode: SqlMode,
    may_go_on: &dyn Fn() -> bool,
) -> Result<(Statement, usize), SyntaxError> {
    let mut cursor = Cursor::while_allowed(text, mode, may_go_on);
    cursor.leaves_constants = true;
    let parsed = statement::whole(&mut cursor);
    let end = cursor.peek().span.end as usize;
    let parsed = cursor.unless_stopped(parsed);
    parsed
        .map(|statement| (statement, end))
        .map_err(|fail| SyntaxError::new(text, fail))
}

/// The only statement of `text`; one `;` may follow it.
///
/// # Errors
///
/// As [`parse_one`]; a second statement is an error at its first token.
pub fn parse(text: &[u8], mode: SqlMode) -> Result<Statement, SyntaxError> {
    only(&mut Cursor::new(text, mode), text)
}

/// As [`parse`]; asks and leaves constants in the text as [`parse_one_while`] does.
///
/// # Errors
///
/// [`SyntaxErrorKind::Stopped`] if it may not continue.
pub fn parse_while(
    text: &[u8],
    mode: SqlMode,
    may_go_on: &dyn Fn() -> bool,
) -> Result<Statement, SyntaxError> {
    let mut cursor = Cursor::while_allowed(text, mode, may_go_on);
    cursor.leaves_constants = true;
    only(&mut cursor, text)
}

fn only(cursor: &mut Cursor<'_>, text: &[u8]) -> Result<Statement, SyntaxError> {
    let parsed = statement::whole(cursor).and_then(|statement| {
        cursor.eat_kind(Kind::Semicolon);
        if cursor.peek().kind == Kind::End {
            Ok(statement)
        } else {
            Err(cursor.fail())
        }
    });
    cursor
        .unless_stopped(parsed)
        .map_err(|fail| SyntaxError::new(text, fail))
}

/// A single expression, as in stored defaults and checks.
///
/// # Errors
///
/// As [`parse_one`].
pub fn parse_expr(text: &[u8], mode: SqlMode) -> Result<Expr, SyntaxError> {
    let mut cursor = Cursor::new(text, mode);
    let parsed = cursor.expr().and_then(|expr| {
        if cursor.peek().kind == Kind::End {
            Ok(expr)
        } else {
            Err(cursor.fail())
        }
    });
    parsed.map_err(|fail| SyntaxError::new(text, fail))
}
