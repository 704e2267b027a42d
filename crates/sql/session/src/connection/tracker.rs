//! Session state changes that are reported to the client in addition to its results.
//!
//! Changes wait here for the next OK packet. A client that did not ask for them by its capabilities
//! gets none, and nothing is kept for it.

use wire::{Capabilities, SessionChanges, TransactionKind, TransactionState};

use crate::connection::session::Session;
use crate::variables::system;
use crate::variables::value::setting_text;

/// Changes that wait to be reported.
#[derive(Debug, Default)]
pub(crate) struct Tracker {
    /// Variables that changed, by the names of their settings, each once: a program may set one
    /// many times before the next report.
    variables: Vec<&'static str>,
    /// The current database changed.
    has_schema: bool,
    /// The transaction state that was reported last; `None` before the client wants it.
    told: Option<TransactionState>,
    /// Something changed.
    has_state: bool,
}

impl Session {
    fn tracks(&self) -> bool {
        self.client
            .capabilities()
            .contains(Capabilities::SESSION_TRACK)
    }

    /// A system variable was set, and perhaps one that follows it.
    pub(crate) fn track_variable(&mut self, name: &str) {
        if !self.tracks() {
            return;
        }
        let state = std::rc::Rc::clone(&self.state);
        let variables = state.variables.borrow();
        let tracked = &variables.active().tracked;
        let Ok(setting) = system::visible(name) else {
            self.track_state();
            return;
        };
        let partner = system::partner_of(setting.name);
        let partner = partner.and_then(|name| system::visible(name).ok());
        for setting in std::iter::once(setting).chain(partner) {
            let known = &mut self.tracker.variables;
            if tracked.has_variable(setting) && !known.contains(&setting.name) {
                known.push(setting.name);
            }
        }
        self.track_state();
    }

    /// The current database was set.
    pub(crate) fn track_schema(&mut self) {
        let is_wanted = self.state.variables.borrow().active().tracked.schema;
        self.tracker.has_schema |= self.tracks() && is_wanted;
        self.track_state();
    }

    /// Something of the session changed.
    pub(crate) fn track_state(&mut self) {
        let is_wanted = self.state.variables.borrow().active().tracked.state;
        self.tracker.has_state |= is_wanted && self.tracks();
    }

    /// Takes the changes that have to be reported now.
    pub(crate) fn take_changes(&mut self) -> SessionChanges {
        let mut changes = SessionChanges::default();
        for name in std::mem::take(&mut self.tracker.variables) {
            let variables = self.state.variables.borrow();
            let value = variables.settings().value(name);
            let text = value.map(|value| setting_text(name, value));
            changes.variable(name, text.unwrap_or_default().as_bytes());
        }
        if std::mem::take(&mut self.tracker.has_schema) {
            let database = self.state.database();
            changes.schema(database.as_deref().unwrap_or_default().as_bytes());
        }
        if std::mem::take(&mut self.tracker.has_state) {
            changes.state();
        }
        let is_wanted = self.state.variables.borrow().active().tracked.transaction;
        if is_wanted && self.tracks() {
            let seen = self.transaction.seen;
            let kind = if self.transaction.is_begun() {
                Some(TransactionKind::Explicit)
            } else if self.transaction.is_open() {
                Some(TransactionKind::Implicit)
            } else {
                None
            };
            let now = TransactionState {
                kind,
                has_reads: seen.reads,
                has_writes: seen.writes,
                has_results: seen.results,
                has_locked_tables: self.locked.are_on(),
                ..TransactionState::default()
            };
            if self.tracker.told != Some(now) {
                changes.transaction_state(now);
                self.tracker.told = Some(now);
            }
        } else {
            self.tracker.told = None;
        }
        changes
    }
}
