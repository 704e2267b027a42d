//! Types, names and character sets in the replies to clients.

#![forbid(unsafe_code)]

mod charsets;
mod client_charsets;
mod column_definitions;
mod system_variables;
mod user_variables;
mod wire;
