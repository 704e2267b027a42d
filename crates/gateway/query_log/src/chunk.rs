//! [`Chunk`]: some lines on their way.

/// So many bytes go to the log at once: some hundred lines, so that a worker seldom takes its lock.
pub const CHUNK_BYTES: usize = 64 << 10;

/// See the module's head.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    /// Whole lines.
    pub(crate) bytes: Vec<u8>,
    /// How many these are.
    pub(crate) count: u64,
}
