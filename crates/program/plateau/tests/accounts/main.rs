//! What accounts may do, and what their logins are asked.

#![forbid(unsafe_code)]

mod granted_elsewhere;
mod login_settings;
mod many_accounts;
mod rights;
