//! MySQL text: tokens, canonical form without literals, statement class, tree with spans.
//!
//! Four stages. Each can be used alone, and none does more than asked:
//!
//! * [`token`]: bytes to tokens, with versioned comments resolved;
//! * [`canonical`]: one pass that replaces literals, for the key of the plan cache;
//! * [`mod@class`]: what a statement does to data and to the transaction, from its first tokens;
//! * [`parse()`]: the whole tree ([`ast`]), with MariaDB's precedence.
//!
//! [`print()`] turns a tree into text again, with full parentheses.
//!
//! The text is UTF-8, or any encoding that agrees with ASCII for ASCII characters. Names must be
//! UTF-8, strings are bytes. A session whose client uses another character set converts first.
//! Nothing here does I/O, reads a clock or panics on any input; nesting and size are bounded
//! ([`parse::DEPTH_MAX`]).
#![forbid(unsafe_code)]

pub mod ast;
pub mod canonical;
pub mod class;
pub mod keyword;
mod kill;
pub mod parse;
pub mod print;
pub mod token;

pub use kill::{KillStatement, KillTarget};
pub use parse::{SyntaxError, is_explain_route, parse, parse_expr, parse_one};
pub use print::print;
pub use settings::SqlMode;
pub use token::Span;
