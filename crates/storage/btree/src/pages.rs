//! The way to the buffer pool: the names of it that trees use.

pub use buffer::{Change, Latched, Optimistic, Pages, ReadAhead, Shared};
