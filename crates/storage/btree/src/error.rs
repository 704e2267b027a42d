//! Damage of a tree as the store's error.

use format::PageId;
use format::slotted::ChangeError;
use store::{Interrupt, StoreError};

/// Damage of a page to which its parent leads for keys that it does not cover.
pub(crate) const KEYS_ARE_OTHERS: &str = "it does not have the keys that its parent says";

/// A page that contradicts itself or its neighbours.
pub fn damaged(page: PageId, what: &str) -> Interrupt {
    StoreError::damaged_page(page, format!("page {page}: {what}")).into()
}

/// A change that could not be made although there was room for it.
pub(crate) fn change_failed(page: PageId, error: ChangeError) -> Interrupt {
    StoreError::damaged_page(page, format!("page {page}: {error}")).into()
}
