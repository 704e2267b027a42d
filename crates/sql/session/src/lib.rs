//! One logged-in client of the database: statements in, results out.

#![forbid(unsafe_code)]

pub mod registry;
pub mod row_encoder;
pub mod variables;
