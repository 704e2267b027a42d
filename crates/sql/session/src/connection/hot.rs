//! Which memory of a session the next statement reads: the worker prefetches it
//! (`runtime::note_hot`).
//!
//! What is allocated once is noted when the session begins, the rest where it is used. A place that
//! is not noted again after its value moved costs only a useless prefetch.

use crate::connection::session::Session;
use crate::connection::state::State;

/// The parts of a session that lie in separate allocations.
#[derive(Debug, Clone, Copy)]
#[repr(usize)]
pub(crate) enum HotPlace {
    Session,
    State,
    Handle,
    LocksTables,
    Diagnostics,
    Prepared,
    ParameterTypes,
    PlannedTypes,
}

impl HotPlace {
    /// Notes that the next statement is likely to read `value`.
    pub(crate) fn note<T: ?Sized>(self, value: &T) {
        runtime::note_hot(self as usize, value);
    }
}

/// Notes what a session keeps from its beginning to its end.
pub(crate) fn note_session(session: &Session) {
    let state: &State = &session.state;
    HotPlace::Session.note(session);
    HotPlace::State.note(state);
    HotPlace::Handle.note(&*state.handle);
    HotPlace::LocksTables.note(&*state.locks_tables);
    note_diagnostics(state);
}

/// Notes a session's list of warnings.
pub(crate) fn note_diagnostics(state: &State) {
    HotPlace::Diagnostics.note(&**state.diagnostics.borrow());
}
