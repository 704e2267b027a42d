//! The way to the buffer pool: the names of it that trees use, and how they change a page.

use format::page_op::PageOp;
use store::{Interrupt, Outcome};

pub use buffer::{Change, Latched, Optimistic, Pages, ReadAhead, Shared};

use crate::error::change_failed;

/// Applies an operation to a latched page. That it fails is damage of the page.
pub(crate) fn apply(change: &mut Change<'_>, page: Latched, op: &PageOp<'_>) -> Outcome<()> {
    let id = change.id(page);
    change
        .apply(page, op)
        .map_err(|error| -> Interrupt { change_failed(id, error) })
}

/// An offset or a count inside a page, as operations have it.
pub(crate) fn narrow(value: usize) -> u16 {
    u16::try_from(value).expect("offsets and counts inside a page are below 64 KiB")
}
