//! The real world: the machine's clock, its entropy, and files by blocking calls.

mod clock;
mod disk;
mod file;

pub use clock::{SystemClock, fill_secret};
pub use disk::BlockingDisk;
pub use file::{LinuxFile, disk_error};
