//! [`Memory`]: what a section `cache` says of its memory.

use crate::output::{Block, whole};

/// Most caches of a settings file.
pub(crate) const CACHES_MAX: usize = 16;

/// What `size` may be.
const BYTES_MIN: u64 = 64 << 10;
const BYTES_MAX: u64 = 1 << 44;

/// The least that `max_reply_size` may be. It may be at most one part in eight of `size`.
const REPLY_BYTES_MIN: u64 = 1 << 10;
const REPLY_PART: u64 = 8;

/// How much a cache keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Bytes of all results.
    bytes: u64,
    /// Bytes of one.
    reply_bytes: u64,
}

impl Memory {
    /// As much as was wanted, and as a cache may have. `None` is no limit of a reply.
    pub(crate) fn of(bytes: u64, reply_bytes: Option<u64>) -> Memory {
        let bytes = bytes.clamp(BYTES_MIN, BYTES_MAX);
        let most = bytes / REPLY_PART;
        Memory {
            bytes,
            reply_bytes: reply_bytes.map_or(most, |it| it.clamp(REPLY_BYTES_MIN, most)),
        }
    }

    pub(crate) fn write(self, block: &mut Block) {
        block.set("size", whole(self.bytes));
        block.set("max_reply_size", whole(self.reply_bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_that_a_cache_may_have() {
        let of = |bytes, reply_bytes| {
            let made = Memory::of(bytes, reply_bytes);
            (made.bytes, made.reply_bytes)
        };
        for bytes in [BYTES_MIN - 1, BYTES_MIN] {
            assert_eq!(of(bytes, None), (BYTES_MIN, BYTES_MIN / 8));
        }
        assert_eq!(of(BYTES_MIN + 8, None), (BYTES_MIN + 8, BYTES_MIN / 8 + 1));
        assert_eq!(of(BYTES_MAX - 8, None).0, BYTES_MAX - 8);
        for bytes in [BYTES_MAX, BYTES_MAX + 1] {
            assert_eq!(of(bytes, None), (BYTES_MAX, BYTES_MAX / 8));
        }
        let megabyte = 1 << 20;
        for (wanted, made) in [
            (REPLY_BYTES_MIN - 1, REPLY_BYTES_MIN),
            (REPLY_BYTES_MIN, REPLY_BYTES_MIN),
            (megabyte / 8 - 1, megabyte / 8 - 1),
            (megabyte / 8, megabyte / 8),
            (megabyte / 8 + 1, megabyte / 8),
        ] {
            assert_eq!(of(megabyte, Some(wanted)), (megabyte, made), "{wanted}");
        }
    }
}
