//! [`DeferredDropVec`]: a list of things, each of which takes long to free.
//!
//! A gigabyte in pieces of 256 KiB takes a tenth of a second to free. On a thread that has called
//! [`free_later`], a dropped list leaves its things in a list. The thread takes them from there
//! ([`take_waiting`]) and frees a few at a time when it has time. On other threads they are dropped
//! at once.

use std::any::Any;
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

/// Fewer things are dropped at once; later, this many are dropped at a time: some 100 us.
const PIECE_LEN: usize = 4;

thread_local! {
    /// Things that wait to be freed; `None` on threads that free at once.
    static WAITING: RefCell<Option<Vec<Box<dyn Any>>>> = const { RefCell::new(None) };
}

/// From now on, things dropped on this thread wait for [`take_waiting`].
pub fn free_later() {
    WAITING.with_borrow_mut(|waiting| {
        waiting.get_or_insert_default();
    });
}

/// Takes all that waits; `None` if nothing does. Freeing it may leave more behind, because things
/// may hold piles of their own.
pub fn take_waiting() -> Option<Waiting> {
    WAITING.with_borrow_mut(|waiting| {
        let waiting = waiting.as_mut().filter(|waiting| !waiting.is_empty())?;
        Some(Waiting(std::mem::take(waiting)))
    })
}

/// Things that wait to be freed. If this is dropped, they are freed at once.
#[derive(Debug)]
pub struct Waiting(Vec<Box<dyn Any>>);

impl Waiting {
    /// Frees some of them. Returns true if there are more.
    pub fn free_some(&mut self) -> bool {
        let left = self.0.len().saturating_sub(PIECE_LEN);
        self.0.truncate(left);
        left != 0
    }
}

/// A list of large things.
#[derive(Debug, Clone)]
pub struct DeferredDropVec<T: 'static> {
    things: Vec<T>,
}

impl<T: 'static> Default for DeferredDropVec<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: 'static> DeferredDropVec<T> {
    /// An empty list; allocates nothing.
    pub const fn new() -> Self {
        Self { things: Vec::new() }
    }

    /// Adds a thing at the end.
    pub fn push(&mut self, thing: T) {
        self.things.push(thing);
    }

    /// Takes the last thing.
    pub fn pop(&mut self) -> Option<T> {
        self.things.pop()
    }

    /// Keeps the first `len` things at most.
    pub fn truncate(&mut self, len: usize) {
        if self.things.len() <= len + PIECE_LEN {
            self.things.truncate(len);
            return;
        }
        let rest = self.things.drain(len..);
        // At the thread's end the list is gone: then they are dropped here.
        let _ = WAITING.try_with(|waiting| {
            if let Ok(mut waiting) = waiting.try_borrow_mut()
                && let Some(waiting) = waiting.as_mut()
            {
                waiting.extend(rest.map(|thing| -> Box<dyn Any> { Box::new(thing) }));
            }
        });
    }

    /// Removes all things.
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Bytes of the list alone.
    pub fn memory_bytes(&self) -> usize {
        self.things.capacity() * size_of::<T>()
    }
}

impl<T: 'static> Deref for DeferredDropVec<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.things
    }
}

impl<T: 'static> DerefMut for DeferredDropVec<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.things
    }
}

impl<T: 'static> Drop for DeferredDropVec<T> {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    fn list_of(thing: &Rc<()>, count: usize) -> DeferredDropVec<Rc<()>> {
        let mut list = DeferredDropVec::new();
        for _ in 0..count {
            list.push(Rc::clone(thing));
        }
        list
    }

    #[test]
    fn large_piles_wait_where_the_thread_frees_later() {
        let thing = Rc::new(());
        drop(list_of(&thing, 100));
        assert_eq!(Rc::strong_count(&thing), 1, "at once");
        free_later();
        drop(list_of(&thing, PIECE_LEN));
        assert_eq!(Rc::strong_count(&thing), 1, "few");
        let mut list = list_of(&thing, 100);
        list.truncate(10);
        assert_eq!(list.len(), 10);
        assert_eq!(Rc::strong_count(&thing), 101, "all wait");
        drop(list);
        let mut waiting = take_waiting().unwrap();
        assert!(take_waiting().is_none(), "they are somebody's");
        let mut rounds = 1;
        while waiting.free_some() {
            assert_eq!(Rc::strong_count(&thing), 101 - rounds * PIECE_LEN);
            rounds += 1;
        }
        assert_eq!((rounds, Rc::strong_count(&thing)), (25, 1));
        drop(list_of(&thing, 100));
        drop(take_waiting());
        assert_eq!(Rc::strong_count(&thing), 1, "at once");
    }
}
