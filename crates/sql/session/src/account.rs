//! Accounts: what they may do, and the statements that change them.

mod privileges;
mod statement;
