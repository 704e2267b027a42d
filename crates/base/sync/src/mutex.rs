//! A mutex that is never poisoned.
//!
//! The program aborts on panic, so only tests can meet a poisoned lock; returning an error to each
//! caller would gain nothing. It is held for a few instructions and never across an `await`. The
//! guard is `!Send`, and clippy's `await_holding_lock` recognises guards by this type's inner one.

use std::fmt;
use std::ops::{Deref, DerefMut};

#[cfg(loom)]
use loom::sync as lower;
#[cfg(shuttle)]
use shuttle::sync as lower;
#[cfg(not(any(loom, shuttle)))]
use std::sync as lower;

/// A mutual exclusion around `T`.
pub struct Mutex<T> {
    lower: lower::Mutex<T>,
}

/// Exclusive access to the value of a [`Mutex`]; unlocks when dropped.
pub struct MutexGuard<'a, T> {
    lower: lower::MutexGuard<'a, T>,
}

impl<T> Mutex<T> {
    /// Wraps `value`.
    #[cfg(not(loom))]
    pub const fn new(value: T) -> Self {
        Self {
            lower: lower::Mutex::new(value),
        }
    }

    /// Wraps `value`.
    #[cfg(loom)]
    pub fn new(value: T) -> Self {
        Self {
            lower: lower::Mutex::new(value),
        }
    }

    /// Takes the lock, blocking the thread until it is free.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        match self.lower.lock() {
            Ok(lower) => MutexGuard { lower },
            Err(poisoned) => MutexGuard {
                lower: poisoned.into_inner(),
            },
        }
    }

    /// Takes the lock if it is free.
    #[cfg(not(loom))]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.lower.try_lock() {
            Ok(lower) => Some(MutexGuard { lower }),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(MutexGuard {
                lower: poisoned.into_inner(),
            }),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }

    /// Takes the lock if it is free.
    #[cfg(loom)]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.lower.try_lock().ok().map(|lower| MutexGuard { lower })
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mutex")
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.lower
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.lower
    }
}

impl<T> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MutexGuard")
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn excludes_and_survives_a_panic() {
        let mutex = Mutex::new(1);
        let held = mutex.lock();
        assert!(mutex.try_lock().is_none());
        drop(held);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let mut guard = mutex.lock();
            *guard = 2;
            panic!("a test's panic");
        }));
        assert!(outcome.is_err());
        assert_eq!(*mutex.lock(), 2);
    }
}
