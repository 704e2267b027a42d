//! What is known of a session's transaction: a fold over the effects of its statements.
//!
//! The server's status flags correct it after each reply ([`State::observe`]). The guess is needed
//! where no reply has come yet, and for what no flag tells: whether the next transaction may write,
//! what `completion_type` does, whether tables are held.
//!
//! (I1) A flag that is not [`Guess::Unknown`] is what the server would report. `tests/effects`
//! holds that against a server.
//! (I2) [`State::failed`] covers all that a failing statement may have left: nothing was done, or
//! all, or the open transaction was ended first. Two errors leave other things: a syntax error
//! (1064) changes nothing, and a deadlock (1213) ends the transaction. For the latter call
//! [`State::rolled_back`].

use super::effect::{Access, Completion, Effect, Guess, SetCompletion, SetEffect, Switch, Tail};

/// What the status flags of a reply say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flags {
    /// `SERVER_STATUS_AUTOCOMMIT`.
    pub autocommit: bool,
    /// `SERVER_STATUS_IN_TRANS`.
    pub in_transaction: bool,
    /// `SERVER_STATUS_IN_TRANS_READONLY`.
    pub is_read_only: bool,
}

impl Flags {
    /// As what is known of autocommit, of the open transaction, and whether that may not write.
    fn told(self) -> [Guess; 3] {
        [self.autocommit, self.in_transaction, self.is_read_only].map(|flag| match flag {
            true => Guess::Yes,
            false => Guess::No,
        })
    }
}

/// What is known of a session's transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct State {
    /// Each statement commits by itself.
    pub autocommit: Guess,
    /// A transaction is open.
    pub in_transaction: Guess,
    /// The open transaction may not write. No if none is open.
    pub is_read_only: Guess,
    /// Later transactions may not write: `tx_read_only` of the session.
    pub session_read_only: Guess,
    /// The next transaction alone may not write, or may; `None`: as the session says.
    pub next_read_only: Option<Guess>,
    /// The characteristics of the next transaction alone are set. A pool must not give the
    /// connection away.
    pub has_next: Guess,
    /// COMMIT means `COMMIT AND CHAIN`.
    pub chains: Guess,
    /// COMMIT means `COMMIT RELEASE`.
    pub releases: Guess,
    /// `LOCK TABLES` holds tables.
    pub holds_tables: Guess,
    /// The server has closed the connection after `RELEASE`.
    pub is_closed: Guess,
}

impl Default for State {
    fn default() -> State {
        State::new()
    }
}

impl State {
    /// A session after its login to a server with default settings.
    #[must_use]
    pub const fn new() -> State {
        State {
            autocommit: Guess::Yes,
            in_transaction: Guess::No,
            is_read_only: Guess::No,
            session_read_only: Guess::No,
            next_read_only: None,
            has_next: Guess::No,
            chains: Guess::No,
            releases: Guess::No,
            holds_tables: Guess::No,
            is_closed: Guess::No,
        }
    }

    /// The state after a statement has succeeded.
    #[must_use]
    pub fn done(self, effect: Effect) -> State {
        let mut next = self;
        match effect {
            Effect::None => {}
            Effect::Uses => next.uses(),
            Effect::Begin(access) => next.begin(access),
            Effect::Commit(completion) | Effect::Rollback(completion) => next.finish(completion),
            Effect::ImplicitCommit => next.end(),
            Effect::Lock => {
                next.end();
                next.holds_tables = Guess::Yes;
                next.uses();
            }
            Effect::FlushLock => {
                next.end();
                next.holds_tables = Guess::Yes;
            }
            Effect::Unlock => {
                let mut ended = next;
                ended.end();
                ended.holds_tables = Guess::No;
                next.choose(next.holds_tables, ended);
                next.holds_tables = Guess::No;
            }
            Effect::XaStart => next.begin(Access::Default),
            Effect::XaFinish => next.end(),
            Effect::Set(set) => next.set(set),
            Effect::Unknown => next = State::unknown(),
        }
        next
    }

    /// The state after a statement has failed (I2).
    #[must_use]
    pub fn failed(self, effect: Effect) -> State {
        let mut ended = self;
        match effect {
            Effect::None => return self,
            Effect::Uses | Effect::Set(_) => {}
            _ => ended.end(),
        }
        self.or_else(self.done(effect)).or_else(ended)
    }

    /// The server has rolled the transaction back: a deadlock.
    #[must_use]
    pub fn rolled_back(self) -> State {
        let mut next = self;
        next.end();
        next
    }

    /// Takes the flags of a reply.
    #[must_use]
    pub fn observe(self, flags: Flags) -> State {
        let [autocommit, in_transaction, is_read_only] = flags.told();
        State {
            autocommit,
            in_transaction,
            is_read_only,
            is_closed: Guess::No,
            ..self
        }
    }

    /// Whether the flags of a reply fit. If not, a statement did what its text does not show.
    #[must_use]
    pub fn allows(&self, flags: Flags) -> bool {
        let known = [self.autocommit, self.in_transaction, self.is_read_only];
        let mut pairs = known.into_iter().zip(flags.told());
        pairs.all(|(known, told)| known.allows(told))
    }

    /// Nothing is known.
    #[must_use]
    pub const fn unknown() -> State {
        State {
            autocommit: Guess::Unknown,
            in_transaction: Guess::Unknown,
            is_read_only: Guess::Unknown,
            session_read_only: Guess::Unknown,
            next_read_only: Some(Guess::Unknown),
            has_next: Guess::Unknown,
            chains: Guess::Unknown,
            releases: Guess::Unknown,
            holds_tables: Guess::Unknown,
            is_closed: Guess::Unknown,
        }
    }

    /// What is known if one of both holds.
    #[must_use]
    pub fn or_else(self, other: State) -> State {
        let next_read_only = if self.next_read_only == other.next_read_only {
            self.next_read_only
        } else {
            let read_only = |state: State| state.next_read_only.unwrap_or(state.session_read_only);
            Some(read_only(self).or_else(read_only(other)))
        };
        State {
            autocommit: self.autocommit.or_else(other.autocommit),
            in_transaction: self.in_transaction.or_else(other.in_transaction),
            is_read_only: self.is_read_only.or_else(other.is_read_only),
            session_read_only: self.session_read_only.or_else(other.session_read_only),
            next_read_only,
            has_next: self.has_next.or_else(other.has_next),
            chains: self.chains.or_else(other.chains),
            releases: self.releases.or_else(other.releases),
            holds_tables: self.holds_tables.or_else(other.holds_tables),
            is_closed: self.is_closed.or_else(other.is_closed),
        }
    }

    /// Becomes `other` if the condition holds.
    fn choose(&mut self, condition: Guess, other: State) {
        match condition {
            Guess::No => {}
            Guess::Yes => *self = other,
            Guess::Unknown => *self = self.or_else(other),
        }
    }

    /// The open transaction ends; so do the characteristics of the next one.
    fn end(&mut self) {
        self.in_transaction = Guess::No;
        self.is_read_only = Guess::No;
        self.next_read_only = None;
        self.has_next = Guess::No;
    }

    /// A transaction opens, with the characteristics that are due.
    fn open(&mut self) {
        self.in_transaction = Guess::Yes;
        self.is_read_only = self.next_read_only.unwrap_or(self.session_read_only);
        self.next_read_only = None;
        self.has_next = Guess::No;
    }

    /// A statement that may use tables. With autocommit it is a transaction of its own, which the
    /// characteristics of the next one are for. Without, it may open one.
    fn uses(&mut self) {
        let mut alone = *self;
        alone.next_read_only = None;
        alone.has_next = Guess::No;
        let mut opened = *self;
        opened.open();
        let mut idle = *self;
        idle.choose(self.autocommit, self.or_else(alone));
        if self.autocommit != Guess::Yes {
            idle = idle.or_else(opened);
        }
        match self.in_transaction {
            Guess::Yes => {}
            Guess::No => *self = idle,
            Guess::Unknown => *self = self.or_else(idle),
        }
    }

    fn begin(&mut self, access: Access) {
        let mut ended = *self;
        ended.end();
        self.choose(self.in_transaction, ended);
        self.open();
        match access {
            Access::Default => {}
            Access::ReadOnly => self.is_read_only = Guess::Yes,
            Access::ReadWrite => self.is_read_only = Guess::No,
        }
        self.holds_tables = Guess::No;
    }

    /// COMMIT or ROLLBACK. A chained transaction has the characteristics of the last one.
    fn finish(&mut self, completion: Completion) {
        let decide = |tail: Tail, default: Guess| match tail {
            Tail::Default => default,
            Tail::No => Guess::No,
            Tail::Yes => Guess::Yes,
        };
        let chains = decide(completion.chain, self.chains);
        let releases = decide(completion.release, self.releases);
        let mut fresh = *self;
        fresh.open();
        let mut chained = *self;
        match self.in_transaction {
            Guess::Yes => {}
            Guess::No => chained = fresh,
            Guess::Unknown => {
                chained.in_transaction = Guess::Yes;
                chained.next_read_only = None;
                chained.has_next = Guess::No;
                // The flag is No if none is open, so it says nothing of a chained one.
                chained.is_read_only = Guess::Unknown;
            }
        }
        self.end();
        self.choose(chains, chained);
        self.is_closed = releases;
    }

    fn set(&mut self, set: SetEffect) {
        if set.has_expression {
            self.uses();
        }
        if let Some(switch) = set.autocommit {
            self.set_autocommit(switch);
        }
        if let Some(switch) = set.session_read_only {
            self.session_read_only = switch.into();
            self.next_read_only = None;
        }
        if let Some(switch) = set.next_read_only {
            self.next_read_only = Some(switch.into());
            self.has_next = Guess::Yes;
        }
        if set.sets_next_isolation {
            self.has_next = Guess::Yes;
        }
        if let Some(completion) = set.completion {
            let is = |wanted| match completion {
                SetCompletion::Unknown => Guess::Unknown,
                known if known == wanted => Guess::Yes,
                _ => Guess::No,
            };
            self.chains = is(SetCompletion::Chain);
            self.releases = is(SetCompletion::Release);
        }
        // The order of the assignments is not known here.
        if set.has_expression {
            self.uses();
        }
    }

    /// Switching it on commits, if it was off.
    fn set_autocommit(&mut self, switch: Switch) {
        let mut off = *self;
        off.autocommit = Guess::No;
        let mut on = *self;
        let mut ended = *self;
        ended.end();
        let mut committed = *self;
        committed.choose(self.in_transaction, ended);
        match self.autocommit {
            Guess::Yes => {}
            Guess::No => on = committed,
            Guess::Unknown => on = on.or_else(committed),
        }
        on.autocommit = Guess::Yes;
        *self = match switch {
            Switch::On => on,
            Switch::Off => off,
            Switch::Unknown => on.or_else(off),
        };
    }
}

#[cfg(test)]
mod tests;
