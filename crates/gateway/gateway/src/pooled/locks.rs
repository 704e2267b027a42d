//! User locks of a session: they keep it on its connection until it has none any more.
//!
//! No reply tells which locks a connection has. So behind each statement that takes or frees one,
//! the server is asked about the names that the session has asked for.

use monitor::ServerId as Place;
use router::{Pin, Plan};
use syntax::SqlMode;
use syntax::class::{Facts, lock_names};

use crate::connection::{Connection, NotReady};
use crate::end::End;
use crate::guest::Request;

use super::answer::Job;
use super::{Pooled, recall};

/// Most bytes of the names of a session's locks. With more, the session stays until
/// RELEASE_ALL_LOCKS().
const LOCK_BYTES_MAX: usize = 4096;

/// What takes or frees locks.
pub(super) const OF_LOCKS: Facts = Facts::TAKES_USER_LOCK
    .with(Facts::FREES_USER_LOCK)
    .with(Facts::FREES_USER_LOCKS);

/// The locks that a session may have.
#[derive(Debug)]
pub(super) enum Locks {
    /// Those of these names, as written.
    Named(Vec<Box<[u8]>>),
    /// Those, and others.
    Unknown,
}

impl Locks {
    /// The session has asked for locks.
    fn add(&mut self, text: &[u8], mode: SqlMode) {
        let Locks::Named(known) = self else {
            return;
        };
        let Some(names) = lock_names(text, mode) else {
            *self = Locks::Unknown;
            return;
        };
        for name in names {
            if !known.iter().any(|it| **it == *name) {
                known.push(name.into());
            }
        }
        let bytes: usize = known.iter().map(|it| it.len()).sum();
        if LOCK_BYTES_MAX < bytes {
            *self = Locks::Unknown;
        }
    }

    /// A query that says whether the connection has one of them. `None` if no query can.
    fn question(&self) -> Option<Vec<u8>> {
        let Locks::Named(names) = self else {
            return None;
        };
        let mut text = b"SELECT 0".to_vec();
        for name in names {
            text.extend_from_slice(b" OR (IS_USED_LOCK(");
            text.extend_from_slice(name);
            text.extend_from_slice(b") <=> CONNECTION_ID())");
        }
        text.extend_from_slice(b" LIMIT 1");
        Some(text)
    }
}

impl Pooled {
    /// A text that takes or frees locks.
    pub(super) async fn locking_query(&mut self, plan: Plan, mode: SqlMode) -> Result<(), End> {
        let text: Box<[u8]> = self.guest.client.link().peeked_body().0.into();
        let facts = plan.facts;
        if self.multiplexes && recall::is_asked(&plan) {
            self.recalling_query(plan, mode).await?;
        } else if plan.is_kept {
            self.kept_query(plan, mode).await?;
        } else {
            self.answer(&plan, Job::Plain, Request::Peeked, None)
                .await?;
        }
        self.look_at_locks(facts, &text, mode).await
    }

    /// A statement with this text may have taken or freed locks. A session that has none any more
    /// may leave its connection.
    pub(super) async fn look_at_locks(
        &mut self,
        facts: Facts,
        text: &[u8],
        mode: SqlMode,
    ) -> Result<(), End> {
        let has_locks = self.multiplexes && self.session.pins().has(Pin::UserLock);
        let Some(place) = self.session.held_at().filter(|_| has_locks) else {
            self.locks = None;
            return Ok(());
        };
        let none = || Box::new(Locks::Named(Vec::new()));
        let locks = self.locks.get_or_insert_with(none);
        if facts.has(Facts::TAKES_USER_LOCK) {
            locks.add(text, mode);
        }
        let Some(question) = locks.question() else {
            return Ok(());
        };
        match self.ask_for_locks(place, &question).await {
            Ok(true) | Err(NotReady::Refused(_)) => {}
            Ok(false) => {
                self.locks = None;
                self.session.unpin(Pin::UserLock);
            }
            Err(NotReady::Lost(_)) => self.survive(place)?,
        }
        Ok(())
    }

    async fn ask_for_locks(&mut self, place: Place, question: &[u8]) -> Result<bool, NotReady> {
        if self.has_residue(place) {
            // The question takes the place of what only the connection knows.
            self.collect(place).await?;
        }
        match self.lane(place).is_some() {
            true => {
                let asking = async |it: &mut Connection| it.holds_lock(question).await;
                self.ask_server(place, asking).await
            }
            false => Ok(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(texts: &[&str]) -> Locks {
        let mut locks = Locks::Named(Vec::new());
        for text in texts {
            locks.add(text.as_bytes(), SqlMode::default());
        }
        locks
    }

    #[test]
    fn all_names_are_asked_for_once() {
        let locks = added(&[
            "SELECT GET_LOCK('a', 1)",
            "SELECT GET_LOCK('b', 1), GET_LOCK('a', 1)",
        ]);
        let expected = "SELECT 0 OR (IS_USED_LOCK('a') <=> CONNECTION_ID()) \
                        OR (IS_USED_LOCK('b') <=> CONNECTION_ID()) LIMIT 1";
        assert_eq!(locks.question().as_deref(), Some(expected.as_bytes()));
        let locks = added(&["SELECT GET_LOCK('a', 1)", "SELECT GET_LOCK(@b, 1)"]);
        assert_eq!(locks.question(), None);
    }

    #[test]
    fn names_are_bounded() {
        let of = |bytes: usize| {
            let name = "x".repeat(bytes - 2);
            added(&[&format!("SELECT GET_LOCK('{name}', 1)")])
        };
        for bytes in [LOCK_BYTES_MAX - 1, LOCK_BYTES_MAX] {
            assert!(of(bytes).question().is_some());
        }
        assert!(of(LOCK_BYTES_MAX + 1).question().is_none());
    }
}
