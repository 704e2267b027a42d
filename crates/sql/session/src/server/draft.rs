//! [`Draft`]: the memory of a statement's text, tree and plan while they are built.
//!
//! They consist of thousands of small allocations of many types, so these are not added up. Instead
//! the allocator reports what this thread has allocated. Other tasks run on the thread only where
//! the builder yields. So all that was allocated between two such places is the builder's own.
//!
//! ```text
//! nothing --begin--> counting --pause--> paused --resume--> counting --end--> nothing
//! ```
//!
//! A draft within another is a part of it: a plan parses the texts of defaults.

use expression::Share;

/// Access to the allocator's counters. Without them nothing is counted.
#[derive(Debug, Clone, Copy)]
pub struct Heap {
    /// Bytes that the calling thread has allocated, less those that it has freed; wraps.
    pub thread_bytes: fn() -> u64,
    /// Bytes that the process has in memory.
    pub resident_bytes: fn() -> u64,
}

impl Default for Heap {
    fn default() -> Self {
        Self {
            thread_bytes: || 0,
            resident_bytes: || 0,
        }
    }
}

/// This much of a tree or a plan is not counted. So a session at its limit can still free
/// something, and a short statement costs no accounting.
const UNCOUNTED_BYTES: usize = 64 << 10;

/// Something that is being built.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    /// How deep drafts are nested; 0: nothing is being built.
    depth: u32,
    /// What the thread had allocated when counting began or resumed.
    mark: u64,
    /// What was allocated up to the mark, less what was freed.
    bytes: i64,
    /// The share of the session's memory.
    share: Share,
}

impl Draft {
    /// Begins a draft; `now` is what the thread has allocated.
    pub(crate) fn begin(&mut self, now: u64) {
        if self.depth == 0 {
            (self.mark, self.bytes) = (now, 0);
        }
        self.depth += 1;
    }

    /// The bytes to count so far, and the share to count them in. `None` if nothing is being built,
    /// or the count has not changed.
    pub(crate) fn pause(&mut self, now: u64) -> Option<(usize, &mut Share)> {
        if self.depth == 0 {
            return None;
        }
        self.bytes += now.wrapping_sub(self.mark).cast_signed();
        self.mark = now;
        // Older memory may have been freed meanwhile, so the sum may be negative.
        let bytes = usize::try_from(self.bytes).unwrap_or(0);
        let counted = bytes.saturating_sub(UNCOUNTED_BYTES);
        (counted != self.share.bytes()).then_some((counted, &mut self.share))
    }

    /// Resumes counting after other tasks have run.
    pub(crate) fn resume(&mut self, now: u64) {
        self.mark = now;
    }

    /// Ends a draft. Returns the share of the result; it is empty if the draft is part of another.
    pub(crate) fn end(&mut self) -> Share {
        assert!(0 < self.depth, "what ends has begun");
        self.depth -= 1;
        match self.depth {
            0 => std::mem::take(&mut self.share),
            _ => Share::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(draft: &mut Draft, now: u64) -> usize {
        draft.pause(now);
        usize::try_from(draft.bytes).unwrap_or(0)
    }

    #[test]
    fn what_others_allocate_is_not_counted() {
        let mut draft = Draft::default();
        draft.begin(100);
        assert_eq!(bytes(&mut draft, 130), 30);
        draft.resume(1130);
        assert_eq!(bytes(&mut draft, 1135), 35);
        draft.begin(1140);
        assert_eq!(bytes(&mut draft, 1150), 50, "a part of it");
        draft.end();
        assert_eq!(bytes(&mut draft, 1140), 40);
        draft.end();
        assert!(draft.pause(2000).is_none());
    }

    #[test]
    fn the_count_of_a_thread_may_wrap_and_fall() {
        let mut draft = Draft::default();
        draft.begin(u64::MAX - 9);
        assert_eq!(bytes(&mut draft, 10), 20);
        assert_eq!(bytes(&mut draft, u64::MAX - 99), 0);
        assert_eq!(bytes(&mut draft, 20), 30);
    }

    #[test]
    fn what_is_small_is_not_counted() {
        let uncounted = stdx::to_u64(UNCOUNTED_BYTES);
        let mut draft = Draft::default();
        draft.begin(0);
        assert!(draft.pause(uncounted - 1).is_none());
        assert!(draft.pause(uncounted).is_none());
        let counted = draft.pause(uncounted + 1);
        assert_eq!(counted.map(|(bytes, _)| bytes), Some(1));
    }
}
