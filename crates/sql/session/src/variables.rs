//! Variables: a session's system variables and its user variables.

pub(crate) mod describe;
pub mod start_settings;
pub mod system;
pub(crate) mod user_variables;
pub mod value;
