//! The allocator, and what it tells of memory.

use session::Heap;
use tikv_jemalloc_ctl::thread::{self, ThreadLocal};

/// Bounded fragmentation over months, and statistics of the heap. What is freed goes back to the
/// system within seconds, by a thread of its own: `.cargo/config.toml` says so.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Where the allocator counts for a thread.
struct Counters {
    allocated: ThreadLocal<u64>,
    freed: ThreadLocal<u64>,
}

thread_local! {
    /// Looked up once a thread.
    static COUNTERS: Option<Counters> = Counters::of_thread();
}

impl Counters {
    fn of_thread() -> Option<Self> {
        Some(Self {
            allocated: thread::allocatedp::read().ok()?,
            freed: thread::deallocatedp::read().ok()?,
        })
    }
}

/// What sessions ask of the allocator.
pub(crate) fn heap() -> Heap {
    Heap {
        thread_bytes,
        resident_bytes,
    }
}

fn thread_bytes() -> u64 {
    COUNTERS.with(|counters| match counters {
        Some(counters) => counters.allocated.get().wrapping_sub(counters.freed.get()),
        None => 0,
    })
}

/// Pages of this process that are in memory, by the kernel's count; 0 where it has none.
fn resident_bytes() -> u64 {
    let counts = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = counts.split_ascii_whitespace().nth(1);
    let pages: u64 = pages.and_then(|it| it.parse().ok()).unwrap_or(0);
    pages.saturating_mul(PAGE_BYTES)
}

/// Of the kernels that the server runs on.
const PAGE_BYTES: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_thread_allocates_is_told() {
        let before = thread_bytes();
        let kept = vec![1_u8; 3 << 20];
        let after = thread_bytes();
        // A thread may free what another has allocated, so only differences say something.
        assert!(3 << 20 <= after.wrapping_sub(before));
        drop(kept);
        assert!(3 << 20 <= after.wrapping_sub(thread_bytes()));
        assert!(1 << 20 < resident_bytes());
    }
}
