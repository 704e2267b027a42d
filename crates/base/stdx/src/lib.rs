//! What std should have had. Knows nothing of databases.

#![forbid(unsafe_code)]

pub mod convert;
pub mod slab;

pub use convert::{
    align_up, f64_to_f32, f64_to_i64, f64_to_u64, i64_to_f64, low_u8, low_u16, low_u32, to_u32,
    to_u64, to_usize, u64_to_f64,
};
pub use slab::Slab;
