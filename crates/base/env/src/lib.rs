//! The world as traits: what the rest of Plateau may ask of clock, disk and randomness.
//!
//! Production code reaches the kernel only through these traits. So a simulated run controls time,
//! decides the fate of each write and can be replayed from a seed. [`linux`] has the real
//! implementations, [`sim`] the simulated ones.

pub mod clock;
pub mod disk;
pub mod linux;
pub mod random;
pub mod sim;

mod buffer;

pub use buffer::{DIRECT_ALIGNMENT_BYTES, IoBuffer};
pub use clock::{Clock, Instant};
pub use disk::{
    Disk, DiskError, DiskErrorKind, DiskWork, File, FileAccess, FileId, IoFuture, IoResult,
    OpenOptions, WriteDurability,
};
pub use random::Random;
