//! Accounts: what a login needs of them, what they may do, and the statements that change them.

pub mod accounts;
mod rights;
mod statement;
