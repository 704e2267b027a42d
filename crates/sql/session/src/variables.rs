//! Variables: a session's system variables and its user variables.

pub(crate) mod describe;
pub(crate) mod idle_times;
pub mod start_settings;
pub mod system;
pub(crate) mod user_variables;
pub mod value;
