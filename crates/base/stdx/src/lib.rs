//! What std should have had. Knows nothing of databases.

#![forbid(unsafe_code)]

pub mod byte_store;
pub mod chunked_vec;
pub mod circle_check;
pub mod convert;
pub mod deferred_drop;
pub mod key_table;
pub mod merge_sort;
pub mod network;
pub mod planted;
pub mod slab;
pub mod stack;

pub use byte_store::{ByteStore, Span};
pub use chunked_vec::ChunkedVec;
pub use circle_check::CircleCheck;
pub use convert::{
    align_up, f64_to_f32, f64_to_i64, f64_to_u64, i64_to_f64, low_u8, low_u16, low_u32, to_u32,
    to_u64, to_usize, u64_to_f64,
};
pub use deferred_drop::DeferredDropVec;
pub use key_table::KeyTable;
pub use merge_sort::merge_sort;
pub use network::{Network, NoNetwork};
pub use slab::Slab;
pub use stack::stack_place;
