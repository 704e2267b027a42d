//! Accounts: what they may do, and the statements that change them.

mod rights;
mod statement;
