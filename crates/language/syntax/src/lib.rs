//! MySQL text: tokens, canonical form with lifted literals, statement class, tree with spans.
//!
//! Four stages, each usable alone and each doing only what was asked:
//!
//! * [`token`]: bytes to tokens, the versioned comments resolved;
//! * [`canonical`]: one pass that lifts literals out, the key of the plan cache;
//! * [`mod@class`]: what a statement does to data and to the transaction, from its first tokens;
//! * [`parse()`]: the whole tree ([`ast`]), with MariaDB's precedence.
//!
//! [`print()`] turns a tree back into text with full parentheses.
//!
//! The text is UTF-8, or anything that has ASCII where ASCII is meant; names must be UTF-8,
//! strings are bytes. A session whose client speaks another character set converts first.
//! Nothing here does I/O, reads a clock or panics on any input; nesting and size are bounded
//! ([`parse::DEPTH_MAX`]).
#![forbid(unsafe_code)]

pub mod ast;
pub mod canonical;
pub mod class;
pub mod keyword;
pub mod parse;
pub mod print;
pub mod token;

pub use parse::{SyntaxError, parse, parse_expr, parse_one};
pub use print::print;
pub use token::{Mode, Span};
