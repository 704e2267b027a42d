//! Reading ahead: a scan that waits for a leaf also brings in those after it.
//!
//! The leaves are those that their parent names, so they need not be neighbours in the file. They
//! come by one read as far as they are, and by reads at the same time otherwise. Their number grows
//! with the leaves that the scan has read already. So short ranges read nothing in vain, and a long
//! scan waits once for many leaves. The wait ends when all are here. Other tasks may ask for one of
//! them, and only a task that waits for a read keeps it going.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use btree::{LeafStamp, Run};
use store::{Direction, Interrupt, Suspend, WaitReason};

use crate::row::cursor::EngineCursor;

/// Leaves that a scan has read before it reads ahead: most ranges end in two.
const LEAF_COUNT_MIN: u32 = 2;

/// Leaves that are read ahead at most: half a megabyte of 16 KiB pages.
const AHEAD_MAX: u32 = 32;

/// The part of the pool's frames that one scan fills at a time, at most.
const POOL_SHARE: u32 = 16;

/// The leaves that a scan has read in a row.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    last: Option<LeafStamp>,
    count: u32,
}

impl Ahead {
    /// Notes the leaf of a run.
    pub(super) fn note(&mut self, run: &Run) {
        let (last, leaf) = (self.last, run.leaf());
        if last.map(LeafStamp::page) != leaf.map(LeafStamp::page) {
            self.last = leaf;
            self.count = self.count.saturating_add(1);
        }
    }

    /// Leaves to read ahead now, with so many frames in the pool.
    fn wanted(&self, frame_count: u32) -> u32 {
        match self.count {
            ..LEAF_COUNT_MIN => 0,
            count => count.min(AHEAD_MAX).min(frame_count / POOL_SHARE),
        }
    }
}

impl EngineCursor {
    /// If the interrupt is a wait for a page, has the leaves after it come in as well. The wait
    /// then ends when all of them are here.
    pub(super) fn read_ahead(&self, interrupt: Interrupt) -> Interrupt {
        let pages = &self.worker.pages;
        let wanted = self.ahead.wanted(pages.pool().options().frame_count);
        let miss = match interrupt {
            Interrupt::Suspend(miss) if miss.reason() == WaitReason::PageMiss && 0 < wanted => miss,
            other => return other,
        };
        let end = match self.options.direction {
            Direction::Forward => self.interval.upper.as_deref(),
            Direction::Backward => Some(self.interval.lower.as_slice()),
        };
        let count = usize::try_from(wanted).unwrap_or(usize::MAX);
        let tree = self.tree();
        let leaves = tree.leaves_after(pages, &self.place, end, count);
        let ahead = pages.read_ahead(tree.space, &leaves);
        let both = async move {
            let (mut miss, mut ahead) = (pin!(miss), pin!(ahead));
            let (mut is_here, mut are_here) = (false, false);
            poll_fn(|context| {
                is_here = is_here || miss.as_mut().poll(context).is_ready();
                are_here = are_here || ahead.as_mut().poll(context).is_ready();
                if is_here && are_here {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            })
            .await;
        };
        Suspend::new(WaitReason::PageMiss, both).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_read_ahead_the_longer_a_scan_has_run() {
        let wanted = |count, frames| Ahead { last: None, count }.wanted(frames);
        assert_eq!((wanted(0, 8192), wanted(1, 8192)), (0, 0));
        assert_eq!((wanted(2, 8192), wanted(20, 8192)), (2, 20));
        assert_eq!(wanted(u32::MAX, 8192), AHEAD_MAX);
        assert_eq!((wanted(20, 64), wanted(20, 15)), (4, 0));
    }
}
