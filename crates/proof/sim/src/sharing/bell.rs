//! [`Bell`]: the waker of a simulated session. It rings when a wait is decided.

use std::sync::Arc;
use std::task::Wake;

use sync::atomic::{AtomicBool, Ordering};

/// See the module's head. All is of one thread; wakers are shared all the same.
#[derive(Debug, Default)]
pub(super) struct Bell {
    has_rung: AtomicBool,
    /// It loses what it is told: a planted mistake.
    is_deaf: bool,
}

impl Bell {
    pub(super) fn deaf() -> Bell {
        Bell {
            has_rung: AtomicBool::default(),
            is_deaf: true,
        }
    }

    pub(super) fn has_rung(&self) -> bool {
        self.has_rung.load(Ordering::Acquire)
    }

    /// Whether it has rung since it was asked last.
    pub(super) fn take(&self) -> bool {
        self.has_rung.swap(false, Ordering::AcqRel)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        if !self.is_deaf {
            self.has_rung.store(true, Ordering::Release);
        }
    }
}
