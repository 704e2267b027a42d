//! [`LeafStamp`]: whether a leaf that was read without a latch has changed since.

use format::page_bytes::PageBytes;
use format::slotted::TreePage;
use format::{Lsn, PageNo};

use crate::Tree;
use crate::pages::Pages;

/// A leaf, and the LSN of its last change when it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeafStamp {
    number: PageNo,
    lsn: Lsn,
}

impl LeafStamp {
    /// The stamp of a page that is being read; `None` if it is no page.
    pub(crate) fn of<P: PageBytes + ?Sized>(leaf: TreePage<'_, P>) -> Option<Self> {
        Some(Self {
            number: leaf.number()?,
            lsn: leaf.lsn()?,
        })
    }

    /// The leaf's page.
    pub fn page(self) -> PageNo {
        self.number
    }
}

impl Tree {
    /// True if none of these leaves has changed since it was read. Also false if one is not in
    /// memory any more, or is latched exclusively.
    pub fn are_current(&self, pages: &Pages, leaves: &[LeafStamp]) -> bool {
        leaves.iter().all(|&stamp| self.is_unchanged(pages, stamp))
    }

    /// As [`are_current`](Self::are_current), for one leaf.
    pub(crate) fn is_unchanged(&self, pages: &Pages, stamp: LeafStamp) -> bool {
        let Some(page) = pages.peek(self.page_id(stamp.number)) else {
            return false;
        };
        let is_same = TreePage::new(&page).is_some_and(|leaf| leaf.lsn() == Some(stamp.lsn));
        is_same && page.is_valid()
    }
}
