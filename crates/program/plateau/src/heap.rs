//! The allocator, and its memory counters.

use session::Heap;
use tikv_jemalloc_ctl::thread::{self, ThreadLocal};

/// It bounds fragmentation over months and has heap statistics. A thread of its own returns freed
/// memory to the system within seconds, as `.cargo/config.toml` sets.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The allocator's counters of a thread.
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

/// The allocator's counters for sessions.
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

/// Resident memory of this process by the kernel's count; 0 if there is none.
fn resident_bytes() -> u64 {
    let counts = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = counts.split_ascii_whitespace().nth(1);
    let pages: u64 = pages.and_then(|it| it.parse().ok()).unwrap_or(0);
    pages.saturating_mul(PAGE_BYTES)
}

/// On all kernels that the server runs on.
const PAGE_BYTES: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_thread_allocates_is_told() {
        let before = thread_bytes();
        let kept = vec![1_u8; 3 << 20];
        let after = thread_bytes();
        // A thread may free what another has allocated, so only differences mean something.
        assert!(3 << 20 <= after.wrapping_sub(before));
        drop(kept);
        assert!(3 << 20 <= after.wrapping_sub(thread_bytes()));
        assert!(1 << 20 < resident_bytes());
    }
}
