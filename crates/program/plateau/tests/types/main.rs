//! What clients are told of types, names and character sets.

#![forbid(unsafe_code)]

mod charsets;
mod system_variables;
mod user_variables;
