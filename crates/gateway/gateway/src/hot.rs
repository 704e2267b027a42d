//! Which memory of a session its next statement reads: the worker prefetches it
//! (`runtime::note_hot`). With thousands of clients that memory is cold otherwise.

use crate::guest::Guest;

/// The parts of a session that lie in separate allocations.
#[derive(Debug, Clone, Copy)]
#[repr(usize)]
pub(crate) enum HotPlace {
    Session,
    Handle,
    Running,
    Lanes,
    Statement,
    Run,
    Wait,
    Current,
}

impl HotPlace {
    /// Notes that the next statement is likely to read `value`.
    pub(crate) fn note<T: ?Sized>(self, value: &T) {
        runtime::note_hot(self as usize, value);
    }
}

/// Notes what a session keeps from its beginning to its end. `session` has the guest.
pub(crate) fn note_session<T>(session: &T, guest: &Guest) {
    HotPlace::Session.note(session);
    HotPlace::Handle.note(&*guest.handle);
    HotPlace::Running.note(&*guest.running);
    HotPlace::Current.note(&*guest.current);
}
