//! Privileges of accounts, and the settings of their logins.

#![forbid(unsafe_code)]

mod granted_elsewhere;
mod login_settings;
mod many_accounts;
mod privileges;
