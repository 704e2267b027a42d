//! The world as traits: what the rest of Plateau may ask of clock, disk and randomness.
//!
//! Production code reaches the kernel through these traits alone, so that a simulated run owns
//! time, decides the fate of each write and can be replayed from a seed.

pub mod disk;

mod buffer;

pub use buffer::IoBuffer;
pub use disk::{
    Disk, DiskError, DiskErrorKind, File, FileAccess, FileId, IoFuture, IoResult, OpenOptions,
    WriteDurability,
};
