//! What std should have had. Knows nothing of databases.

#![forbid(unsafe_code)]

pub mod convert;

pub use convert::{align_up, low_u8, low_u16, low_u32, to_u32, to_u64, to_usize};
