//! [`Chunk`]: some lines on their way.

/// So many bytes go to the log at once: some hundred lines, so that the thread that writes, which
/// takes a processor from a worker, is seldom woken.
pub const CHUNK_BYTES: usize = 256 << 10;

/// See the module's head.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    /// Whole lines.
    pub(crate) bytes: Vec<u8>,
    /// How many these are.
    pub(crate) count: u64,
}
