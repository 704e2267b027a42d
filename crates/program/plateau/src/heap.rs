//! The allocator, its memory counters, and the memory that there is.

use std::path::Path;

use session::Heap;
use settings::Settings;
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

/// Where version 2 of the control groups is mounted.
const GROUPS: &str = "/sys/fs/cgroup";

/// Says in the log if the settings allow more memory than there is.
pub(crate) fn tell_excess(settings: &Settings) {
    let Some(memory_bytes) = usable_bytes() else {
        return;
    };
    let excess = excess(settings, memory_bytes);
    if let Some((setting, bytes)) = excess.setting {
        tracing::warn!(
            setting,
            bytes,
            memory_bytes,
            "a setting allows more memory than there is, and the kernel may kill the server: \
             lower it"
        );
    }
    if let Some(bytes) = excess.sum {
        tracing::info!(
            bytes,
            memory_bytes,
            "the limits of memory add up to more than there is: lower buffer_pool_size, \
             statement_memory_size, packet_memory_size and lock_table_size, or set \
             server_memory_limit"
        );
    }
}

/// What is larger than the memory.
#[derive(Debug, PartialEq, Eq)]
struct Excess {
    /// A setting that is so alone.
    setting: Option<(&'static str, u64)>,
    /// The sum of the limits, if no single setting is and no `server_memory_limit` bounds them.
    sum: Option<u64>,
}

/// What of the settings is larger than `memory_bytes`. The limit of the process is looked at after
/// the pages, which it does not bound.
fn excess(settings: &Settings, memory_bytes: u64) -> Excess {
    let limit = "server_memory_limit";
    let setting = ["buffer_pool_size", limit]
        .map(|name| (name, settings.unsigned(name)))
        .into_iter()
        .find(|(_, bytes)| memory_bytes < *bytes);
    let parts = [
        "buffer_pool_size",
        "statement_memory_size",
        "packet_memory_size",
        "lock_table_size",
    ];
    let sum = parts.map(|name| settings.unsigned(name)).iter().sum();
    let is_bounded = setting.is_some() || settings.unsigned(limit) != 0;
    Excess {
        setting,
        sum: Some(sum).filter(|sum| memory_bytes < *sum && !is_bounded),
    }
}

/// The memory of the machine, or of a control group that the process is in, if that has less.
fn usable_bytes() -> Option<u64> {
    let machine = machine_bytes(&std::fs::read_to_string("/proc/meminfo").ok()?)?;
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = group(&groups).ancestors().filter_map(|it| {
        let limit = Path::new(GROUPS).join(it).join("memory.max");
        // `max`: it has no limit.
        std::fs::read_to_string(limit).ok()?.trim().parse().ok()
    });
    limits.chain([machine]).min()
}

/// The machine's memory, by `/proc/meminfo`.
fn machine_bytes(told: &str) -> Option<u64> {
    let line = told.lines().find_map(|it| it.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// The control group of version 2, by `/proc/self/cgroup`, relative to the root of all groups.
fn group(told: &str) -> &Path {
    let path = told.lines().find_map(|it| it.strip_prefix("0::/"));
    Path::new(path.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_beyond_the_memory_are_found_and_those_at_its_rim_are_not() {
        let mut settings = Settings::default();
        settings.set("buffer_pool_size", "8G").unwrap();
        let sum = 8 << 30 | 2 << 30 | 256 << 20;
        let sum = sum + (4 << 30);
        let none = Excess {
            setting: None,
            sum: None,
        };
        assert_eq!(excess(&settings, sum), none);
        let of_sum = Excess {
            sum: Some(sum),
            ..none
        };
        assert_eq!(excess(&settings, sum - 1), of_sum);
        assert_eq!(excess(&settings, 8 << 30), of_sum);
        let pool = excess(&settings, (8 << 30) - 1);
        assert_eq!(pool.setting, Some(("buffer_pool_size", 8 << 30)));
        assert_eq!(pool.sum, None, "one line says enough");
        settings.set("server_memory_limit", "9G").unwrap();
        assert_eq!(excess(&settings, 9 << 30).sum, None, "it is bounded");
        let limit = excess(&settings, (9 << 30) - 1).setting;
        assert_eq!(limit, Some(("server_memory_limit", 9 << 30)));
    }

    #[test]
    fn the_memory_is_read_as_the_kernel_tells_it() {
        let told = "MemTotal:       24684312 kB\nMemFree: 1 kB\n";
        assert_eq!(machine_bytes(told), Some(24_684_312 * 1024));
        for wrong in [
            "",
            "MemTotal:",
            "MemTotal: x kB",
            "MemFree: 1 kB",
            "MemTotal: 1 MB",
        ] {
            assert_eq!(machine_bytes(wrong), None, "{wrong}");
        }
        let told = "1:name=systemd:/x\n0::/system.slice/plateau.service\n";
        assert_eq!(group(told), Path::new("system.slice/plateau.service"));
        assert_eq!(group("0::/\n"), Path::new(""));
        assert_eq!(group(""), Path::new(""));
        let usable = usable_bytes();
        assert!(usable.is_some_and(|it| 1 << 20 < it), "{usable:?}");
    }

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
