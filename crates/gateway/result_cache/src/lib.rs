//! The replies to queries, kept for as long as the tables that they were read from do not change.
//!
//! ```text
//! query -> Tables::begin_query: a moment -> server -> Filling, as packets pass -> kept
//! change -> Tables::begin_change -> server -> Changing::end -> the reply to the client
//! query -> Cache::find: is any table of its names changed since? -> the same packets again
//! ```
//!
//! [`Tables`] knows when each table was changed last, for all workers. It has a slot for each
//! hash of a name. A query depends on all names in its text, columns too, so no grammar decides
//! what it reads from ([`TableSlot`]). A changed table voids replies when they are found, so a
//! change costs the same however many there are.
//!
//! [`Cache`] finds replies by [`Scope`] and key. Both are compared as a whole: no hash stands for
//! them. It counts its memory as the allocator gives it out ([`Budget`]).
//!
//! No I/O, no clock: who calls tells the time. The gateway decides what may be kept and what a
//! statement changes.
//!
//! The modules, from the bottom up: `names`, `budget`, `pieces`, `scope`, `doorkeeper`,
//! `flushes`; `tables`, `reply`;
//! `shelf`; `cache`; `filling`.

#![forbid(unsafe_code)]

mod budget;
mod doorkeeper;
mod flushes;
mod names;
mod pieces;
mod scope;

mod reply;
mod tables;

mod shelf;

mod cache;

mod filling;

pub use budget::Budget;
pub use cache::{Cache, CacheOptions, REPLY_PART};
pub use filling::Filling;
pub use names::{CHANGED_TABLES_MAX, ChangedTables, Changes, SLOT_COUNT, TableSlot};
pub use reply::KeptReply;
pub use scope::Scope;
pub use shelf::{Counts, Glimpse, Lifetime, Lookup, Miss, Query};
pub use sync::ChangeTime;
pub use tables::{Changing, Hindrance, LOST_TIME, Tables, Trait};
