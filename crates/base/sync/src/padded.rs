//! A value alone on its cache lines, so that writes to it do not slow its neighbours.

use std::ops::{Deref, DerefMut};

/// `T`, aligned and padded to 128 bytes: two lines, because x86 fetches lines in pairs and some
/// ARM cores have lines of 128 bytes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
#[repr(align(128))]
pub struct CachePadded<T> {
    value: T,
}

impl<T> CachePadded<T> {
    /// Pads `value`.
    pub const fn new(value: T) -> Self {
        Self { value }
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.value
    }
}

impl<T> Deref for CachePadded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for CachePadded<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_no_line() {
        let pair = [CachePadded::new(1u8), CachePadded::new(2u8)];
        let distance = (&raw const pair[1]).addr() - (&raw const pair[0]).addr();
        assert_eq!(distance, 128);
        assert_eq!(*pair[0] + *pair[1], 3);
    }
}
