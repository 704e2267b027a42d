//! [`ChangeBuffers`]: what a mini-transaction holds, kept for the worker's next one.

use format::PageId;

use crate::frames::FrameNo;

/// What must be done to a page if the change is given up.
#[derive(Debug)]
pub(crate) enum Undo {
    /// Nothing has changed.
    Nothing,
    /// The page was not in memory: its frame becomes free.
    Forget,
    /// The page was in memory with these bytes.
    Restore(Box<[u8]>),
}

/// A page that a mini-transaction has latched.
#[derive(Debug)]
pub(crate) struct HeldPage {
    pub(crate) no: FrameNo,
    pub(crate) id: PageId,
    /// Whether an operation has been applied to it.
    pub(crate) is_changed: bool,
    pub(crate) undo: Undo,
}

/// The buffers of a mini-transaction; the worker's next one reuses them.
#[derive(Debug, Default)]
pub(crate) struct ChangeBuffers {
    pub(crate) held: Vec<HeldPage>,
    pub(crate) body: Vec<u8>,
    pub(crate) payload: Vec<u8>,
}
