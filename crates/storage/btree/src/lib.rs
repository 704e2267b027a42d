//! B+trees over the buffer pool, and the tablespaces that their pages come from.
//!
//! Start with [`Tree`]. Reading: `descend` (optimistic lock coupling), [`scan`] (a leaf at a time),
//! `ahead` (which leaves come next).
//! Changing: [`change`] (latch the leaf), `split` and [`merge`] (structure, each step its own
//! mini-transaction), [`space`] (page allocation), [`lob`] (values too large for a leaf).
//! [`check`] verifies a whole tree; [`mod@mend`] makes lost leaves again; [`mod@measure`] estimates
//! parts of one. Everything goes through [`pages`], the way to the pool.
//!
//! (I1) Latches are taken from parent to child and from left to right, then the space's header and
//! maps, then new pages. A change that had to wait would give up instead, so the order is for
//! progress, not against deadlock.
//! (I2) A mini-transaction takes every latch before it changes the first byte. So an operation that
//! suspends has changed nothing in the present step, and the committed steps leave a whole tree.
//! (I3) The fences of a child are the keys around its slot in the parent. A page is found by fences
//! alone; there are no sibling pointers.
//! (I4) A tree's root never moves. If the root is another tree's page, this tree was dropped.

#![forbid(unsafe_code)]

pub mod change;
pub mod check;
pub mod lob;
pub mod measure;
pub mod mend;
pub mod merge;
pub mod pages;
pub mod scan;
pub mod space;
pub mod split;

mod ahead;
mod descend;
mod error;
mod stamp;
mod successor;

use format::page_op::PageOp;
use format::slotted::TreePageShape;
use format::{IndexId, PageId, PageNo, PageType, SpaceId};
use store::{Outcome, Suspend};

pub use change::Spot;
pub use error::damaged;
pub use measure::Measure;
pub use pages::{Change, Latched, Pages, ReadAhead};
pub use scan::{From, Place, Run};
pub use split::Wanted;
pub use stamp::LeafStamp;
pub use successor::Successor;

use crate::pages::apply;
use crate::space::Reservation;

/// A tree: where its root is. Cheap to copy; holds no contents of its pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tree {
    /// The tablespace of all its pages.
    pub space: SpaceId,
    /// The root, which never moves.
    pub root: PageNo,
    /// The index id in each of its pages.
    pub index: IndexId,
}

/// The longest key of a tree with pages of this size. Two fences and an entry with the largest
/// payload fit into a leaf, and three separators into an inner page.
pub fn key_bytes_max(page_bytes: usize) -> usize {
    assert!(page_bytes.is_power_of_two());
    page_bytes / 5 - 76
}

/// The longest payload in a leaf; a longer value is stored apart (see [`lob`]).
pub fn payload_bytes_max(page_bytes: usize) -> usize {
    page_bytes / 4
}

/// Takes steps until one returns false: it was the last. After `step_count_max` steps it suspends
/// to give way, and goes on when it is called again.
pub(crate) fn take_steps(
    step_count_max: usize,
    mut step: impl FnMut() -> Outcome<bool>,
) -> Outcome<()> {
    assert!(0 < step_count_max, "each call comes further");
    for _ in 0..step_count_max {
        if !step()? {
            return Ok(());
        }
    }
    Err(Suspend::turn().into())
}

impl Tree {
    /// Creates an empty tree in a space: only a root leaf.
    pub fn create(pages: &Pages, space: SpaceId, index: IndexId) -> Outcome<Self> {
        loop {
            let mut change = pages.change()?;
            let Some(taken) = Reservation::make(&mut change, space, &[PageType::BtreeLeaf])? else {
                drop(change);
                space::grow(pages, space)?;
                continue;
            };
            let (root, page) = taken.page(0);
            assert!(root != PageNo(0), "page 0 is the header");
            taken.take(&mut change)?;
            let shape = TreePageShape {
                level: 0,
                index_id: index.0,
                lower: &[],
                upper: None,
            };
            apply(&mut change, page, &PageOp::TreeInit(shape))?;
            change.commit();
            return Ok(Self { space, root, index });
        }
    }

    pub(crate) fn root_id(&self) -> PageId {
        self.page_id(self.root)
    }

    pub(crate) fn page_id(&self, page: PageNo) -> PageId {
        PageId::new(self.space, page)
    }
}
