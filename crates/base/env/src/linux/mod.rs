//! The real world: the machine's clock, its entropy, and files by blocking calls.

mod clock;
mod descriptors;
mod disk;
mod file;

pub use clock::{SystemClock, fill_secret};
pub use descriptors::raise_descriptor_limit;
pub use disk::BlockingDisk;
pub use file::{LinuxFile, disk_error};
