//! [`PoolOptions`]: the size of a pool.

use format::PageSize;

/// The size of a pool.
#[derive(Debug, Clone, Copy)]
pub struct PoolOptions {
    /// Bytes of one page; the same for all tablespaces.
    pub page_size: PageSize,
    /// Pages in memory.
    pub frame_count: u32,
    /// Pages that are written to their files in one go.
    pub clean_batch_pages: u32,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self {
            page_size: PageSize::KiB16,
            frame_count: 8192,
            clean_batch_pages: 64,
        }
    }
}
