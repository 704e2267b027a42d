//! Variables: a session's system variables, its user variables, and SET.

pub(crate) mod describe;
pub(crate) mod set;
pub mod start_settings;
pub mod system;
pub(crate) mod user_variables;
