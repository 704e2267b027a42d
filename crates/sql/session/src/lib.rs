//! One logged-in client of the database: statements in, results out.
//!
//! Start reading at [`session`] (a client from login to end), then `dispatch` (from text to the
//! function that answers) and `run` (the one loop that awaits the store). Each family of
//! statements has a module named after it. What all sessions share is in [`server`], what those of
//! a worker share in [`worker`], what one remembers in [`state`].

#![forbid(unsafe_code)]

pub mod accounts;
mod clock_hand;
pub mod logins;
pub mod metadata;
pub mod named_locks;
pub mod plan_cache;
pub mod registry;
pub mod routine;
pub mod row_encoder;
pub mod server;
pub mod session;
pub mod sink;
pub mod start_settings;
pub mod state;
pub mod transaction;
pub mod variables;
pub mod virtual_store;
pub mod worker;

mod account_statement;
mod admin_statement;
mod alter_statement;
mod altered;
mod bulk;
mod cached_query;
mod checksum;
mod column_default;
mod create_select;
mod cursor;
mod define;
mod definition_statement;
mod dispatch;
mod draft;
mod drop_statement;
mod field_reader;
mod hot;
mod key_length;
mod limit_parameters;
mod load_statement;
mod locked_tables;
mod long_data;
mod peer_look;
mod prepared;
mod prepared_text;
mod published;
mod rename_statement;
mod reply;
mod rights;
mod run;
mod set_statement;
mod show_statement;
mod source;
mod splice;
mod system_rows;
mod tracker;
mod transaction_statement;
mod user_variables;
mod wait;

pub use draft::Heap;
pub use server::Server;
pub use session::serve;
pub use worker::Worker;
