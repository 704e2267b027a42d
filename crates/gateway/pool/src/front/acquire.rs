//! How a session gets a connection: from its worker's stacks, under the server's mutex, or by
//! waiting.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use env::Instant;

use super::own::Kept;
use super::{Acquired, Ask, Front, Held, Holds, own_stacks};
use crate::counts::CloseReason;
use crate::error::AcquireError;
use crate::holding::{Holder, Judgement};
use crate::idle::Idle;
use crate::keys::{Fit, Login, ServerId};
use crate::options::Recycling;
use crate::pool::HoldingWait;
use crate::queue::{Newcomer, Sequence, Standing};
use crate::server::{Change, Server, quiet};
use crate::slot::{Slot, Ticket};
use crate::state::{Asked, Found, Grant, Question, SlotKind};
use crate::waiter::{Place, Verdict, Waiter};

/// The answer to a session at once.
#[derive(Debug)]
pub enum Answer<'f, L, C> {
    /// It has a slot.
    Granted(Acquired<L, C>),
    /// It waits.
    Waits(Wait<'f, L, C>),
}

/// A session that waits for a connection. Dropped at any point, it leaves nothing behind: what it
/// was granted goes to the next one.
#[derive(Debug)]
#[must_use = "a dropped wait is given up"]
pub struct Wait<'f, L, C> {
    front: &'f Front<L, C>,
    server: Arc<Server<C>>,
    waiter: Arc<Waiter<C>>,
    sequence: Sequence,
    login: Login,
    /// When the session asked.
    since: Instant,
    standing: Standing,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Waits,
    Over,
}

/// What was decided under the server's mutex.
enum Outcome<L, C> {
    Granted(Acquired<L, C>),
    Waits(Sequence, Arc<Waiter<C>>),
    Failed(AcquireError),
    /// A session that holds a connection found none.
    Full,
}

impl<L, C> Front<L, C> {
    /// Gets a connection, or the right to open one. The future may be dropped at any point.
    ///
    /// `time_out` is called if the session has to wait; it makes a future that is ready when the
    /// wait has lasted long enough.
    pub async fn acquire<T: Future<Output = ()>>(
        &self,
        server: ServerId,
        ask: Ask<'_, C>,
        time_out: impl FnOnce() -> T,
    ) -> Result<Acquired<L, C>, AcquireError> {
        match self.ask(server, ask)? {
            Answer::Granted(acquired) => Ok(acquired),
            Answer::Waits(wait) => wait.or(time_out()).await,
        }
    }

    /// Gets a connection if that is possible at once, and begins to wait otherwise.
    pub fn ask(&self, id: ServerId, ask: Ask<'_, C>) -> Result<Answer<'_, L, C>, AcquireError> {
        if let Some(acquired) = self.take_own(id, &ask) {
            return Ok(Answer::Granted(acquired));
        }
        let server = self.known_server(id).ok_or(AcquireError::UnknownServer)?;
        let mut outcome = server.change(|it| match self.ask_under(it, &server, &ask) {
            Outcome::Full if ask.holds.standing() == Standing::HoldsNone => {
                self.join(it, &server, &ask)
            }
            outcome => outcome,
        });
        if matches!(outcome, Outcome::Full) {
            outcome = self.ask_holding(&server, &ask);
        }
        match outcome {
            Outcome::Granted(acquired) => Ok(Answer::Granted(acquired)),
            Outcome::Failed(error) => {
                self.forget(&server);
                Err(error)
            }
            Outcome::Full => unreachable!("who holds a connection waits or is the victim"),
            Outcome::Waits(sequence, waiter) => Ok(Answer::Waits(Wait {
                front: self,
                server,
                waiter,
                sequence,
                login: ask.login,
                since: ask.now,
                standing: ask.holds.standing(),
                stage: Stage::Waits,
            })),
        }
    }

    /// The common case: the last used connection of the own stacks. It takes no mutex, and writes
    /// to nothing that workers share. It is refused while somebody waits (P1).
    fn take_own(&self, id: ServerId, ask: &Ask<'_, C>) -> Option<Acquired<L, C>> {
        let mut servers = self.servers.borrow_mut();
        let kept = servers.get_mut(&id)?.take_quiet(ask.login, self.worker)?;
        drop(servers);
        let Idle { since, value, .. } = kept;
        let Kept {
            mut slot,
            connection,
        } = value;
        let held = Held::Own(connection);
        let recycling = slot.server().recycling();
        let found = if let Some(reason) = expired(&slot, since, ask.now, &recycling) {
            slot.closed(reason);
            Found::Open(Some(held))
        } else {
            slot.server().count_taken_own(self.worker);
            Found::Idle(held)
        };
        Some(Acquired { slot, found })
    }

    /// Asks the server's state, and offers it what this worker keeps.
    fn ask_under(
        &self,
        it: &mut Change<'_, C>,
        server: &Arc<Server<C>>,
        ask: &Ask<'_, C>,
    ) -> Outcome<L, C> {
        let mut servers = self.servers.borrow_mut();
        let own = own_stacks(&mut servers, server);
        let version = it.state.version();
        let recycling = server.recycling();
        let is_usable = |kept: &Kept<L, C>| kept.slot.version() == version;
        if !it.state.has_demand() && own.newest(ask.login).is_some_and(is_usable) {
            let kept = own.take_newest(ask.login, self.worker);
            let kept = kept.expect("it was seen just now");
            return Outcome::Granted(self.use_own(it, kept, ask, &recycling));
        }
        let question = Question {
            login: ask.login,
            standing: ask.holds.standing(),
            worker: self.worker,
            own_oldest: own
                .oldest()
                .filter(|it| is_usable(&it.value))
                .map(|it| it.since),
            now: ask.now,
            recycling,
        };
        match it.state.ask(&question) {
            Asked::Granted(grant) => Outcome::Granted(Acquired {
                slot: Slot::of_grant(server, self.worker, ask.login, &grant),
                found: grant.found.map(Held::Moved),
            }),
            Asked::OwnOldest => {
                let kept = own.take_oldest(self.worker).expect("it was seen just now");
                Outcome::Granted(self.use_own(it, kept, ask, &recycling))
            }
            Asked::Full => Outcome::Full,
            Asked::Removed => Outcome::Failed(AcquireError::Removed {
                server: Arc::clone(&server.name),
            }),
        }
    }

    /// Uses a connection of the own stacks, or its slot.
    fn use_own(
        &self,
        it: &mut Change<'_, C>,
        kept: Idle<Kept<L, C>>,
        ask: &Ask<'_, C>,
        recycling: &Recycling,
    ) -> Acquired<L, C> {
        let Kept {
            mut slot,
            connection,
        } = kept.value;
        let held = Held::Own(connection);
        let fit = slot.login().fit(ask.login);
        let replaced = (fit == Fit::Replace).then_some(CloseReason::Replaced);
        let found = match expired(&slot, kept.since, ask.now, recycling).or(replaced) {
            Some(reason) => {
                it.state.numbers.count_closed(reason);
                slot.emptied();
                Found::Open(Some(held))
            }
            None => {
                slot.server().count_taken_own(self.worker);
                match fit {
                    Fit::Same => Found::Idle(held),
                    Fit::Turn | Fit::Replace => Found::Turn(held),
                }
            }
        };
        slot.use_for(ask.login);
        Acquired { slot, found }
    }

    /// A session that holds a connection found none: it waits, or is the victim.
    fn ask_holding(&self, server: &Arc<Server<C>>, ask: &Ask<'_, C>) -> Outcome<L, C> {
        let Holds::Slots { age, slots } = ask.holds else {
            unreachable!("only one that holds a connection comes here");
        };
        let holder = Holder {
            age,
            held: slots.iter().map(|slot| slot.server_id()).collect(),
            wanted: server.id,
        };
        let mut holders = self.pool.holders.lock();
        let judgement = holders.judge(&holder, |it| it.waiter.is_waiting());
        let (outcome, aftermath) = server.change_quietly(|it| {
            // Something may have come back meanwhile.
            match self.ask_under(it, server, ask) {
                Outcome::Full if matches!(judgement, Judgement::Victim) => {
                    it.state.numbers.victims += 1;
                    let server = Arc::clone(&server.name);
                    Outcome::Failed(AcquireError::Victim { server })
                }
                Outcome::Full => self.join(it, server, ask),
                outcome => outcome,
            }
        });
        let mut sacrifices = Vec::new();
        if let Outcome::Waits(sequence, waiter) = &outcome {
            let wait = HoldingWait {
                server: Arc::clone(server),
                sequence: *sequence,
                waiter: Arc::clone(waiter),
            };
            holders.register(holder, wait);
            if let Judgement::Waits(victims) = judgement {
                let sacrifice = |victim: HoldingWait<C>| (victim.sacrifice(), victim.server);
                sacrifices.extend(victims.into_iter().map(sacrifice));
            }
        }
        drop(holders);
        aftermath.carry_out(server);
        for (aftermath, server) in sacrifices {
            aftermath.carry_out(&server);
        }
        outcome
    }

    /// The session joins the queue.
    fn join(
        &self,
        it: &mut Change<'_, C>,
        server: &Arc<Server<C>>,
        ask: &Ask<'_, C>,
    ) -> Outcome<L, C> {
        let ticket = self.next_ticket.get();
        self.next_ticket.set(ticket + 1);
        let waiter = Arc::new(Waiter::new(self.worker, ticket));
        let place = Arc::clone(&waiter);
        let newcomer = Newcomer {
            login: ask.login,
            standing: ask.holds.standing(),
            worker: self.worker,
            since: ask.now,
        };
        match it.state.wait(newcomer, place) {
            Ok(sequence) => Outcome::Waits(sequence, waiter),
            Err(_) => Outcome::Failed(AcquireError::QueueFull {
                server: Arc::clone(&server.name),
                limit: it.state.limit(),
                waiting: it.state.waiting_count(),
            }),
        }
    }

    /// As [`Front::release`], where there is no caller who could carry out an order.
    fn put_back_own(&self, kept: Kept<L, C>, since: Instant) {
        if kept.slot.kind() == SlotKind::Above {
            // If there is an order, its slot goes on, and the connection is closed.
            drop(self.settle(kept, since, since));
            return;
        }
        let server = Arc::clone(kept.slot.server());
        let expected = quiet(kept.slot.version());
        let mut servers = self.servers.borrow_mut();
        let own = own_stacks(&mut servers, &server);
        own.push(since, kept);
        let is_wanted = own.publish_kept(self.worker) != expected;
        drop(servers);
        if is_wanted {
            // This worker's own task hands it over.
            server.ask(self.worker);
        }
    }
}

/// Why an idle connection may not be used again, however well it suits.
fn expired<C>(
    slot: &Slot<C>,
    since: Instant,
    now: Instant,
    recycling: &Recycling,
) -> Option<CloseReason> {
    if slot.is_aged(now) {
        return Some(CloseReason::Age);
    }
    recycling.is_idled(since, now).then_some(CloseReason::Idle)
}

impl<L, C> Wait<'_, L, C> {
    /// Waits until `time_out` is ready.
    pub async fn or(
        mut self,
        time_out: impl Future<Output = ()>,
    ) -> Result<Acquired<L, C>, AcquireError> {
        let mut time_out = pin!(time_out);
        poll_fn(|context| {
            if let Poll::Ready(result) = Pin::new(&mut self).poll(context) {
                return Poll::Ready(result);
            }
            time_out.as_mut().poll(context).map(|()| self.time_out())
        })
        .await
    }

    /// The session's time is over. If it was granted a connection just now, it has that.
    pub fn time_out(&mut self) -> Result<Acquired<L, C>, AcquireError> {
        let (verdict, _waker, error) = self.server.change(|it| {
            let (verdict, waker) = leave(it, self.sequence, &self.waiter);
            it.state.numbers.timed_out += u64::from(verdict.is_none());
            let error = AcquireError::TimedOut {
                server: Arc::clone(&self.server.name),
                limit: it.state.limit(),
                waiting: it.state.waiting_count(),
            };
            (verdict, waker, error)
        });
        match verdict {
            Some(verdict) => self.finish(verdict),
            None => {
                self.end();
                Err(error)
            }
        }
    }

    fn finish(&mut self, verdict: Verdict<C>) -> Result<Acquired<L, C>, AcquireError> {
        self.end();
        let server = || Arc::clone(&self.server.name);
        match verdict {
            Verdict::Granted(grant) => Ok(self.take_granted(grant)),
            Verdict::Victim => Err(AcquireError::Victim { server: server() }),
            Verdict::Removed => Err(AcquireError::Removed { server: server() }),
        }
    }

    /// What was granted before the version was raised is replaced: the session may read it late.
    fn take_granted(&self, grant: Grant<Place<C>>) -> Acquired<L, C> {
        let mut slot = Slot::of_grant(&self.server, self.front.worker, self.login, &grant);
        let found = grant.found.map(|place| match place {
            Place::Moved(connection) => Held::Moved(connection),
            Place::Own => {
                let connection = self.front.handed.borrow_mut().remove(&self.waiter.ticket);
                Held::Own(connection.expect("it was handed to this ticket"))
            }
        });
        if slot.version() == self.server.version() {
            return Acquired { slot, found };
        }
        let found = match found {
            Found::Idle(void) | Found::Turn(void) => {
                slot.closed(CloseReason::Version);
                Found::Open(Some(void))
            }
            Found::Open(displaced) => {
                slot.renew();
                Found::Open(displaced)
            }
        };
        Acquired { slot, found }
    }

    /// Gives back what the session was granted after it had given up.
    fn put_back(&self, grant: Grant<Place<C>>) {
        let login = grant.past.map_or(self.login, |past| past.login);
        let slot = Slot::of_grant(&self.server, self.front.worker, login, &grant);
        let place = match grant.found {
            Found::Idle(place) | Found::Turn(place) | Found::Open(Some(place)) => place,
            // A right to open: the slot is dropped, and goes to the next one.
            Found::Open(None) => return,
        };
        match place {
            // Goes to the next waiter or to the shared stacks, or is dropped, which closes it.
            Place::Moved(connection) => {
                drop(Ticket::to_all(slot, self.since).deliver(connection, self.since));
            }
            Place::Own => {
                let connection = self.front.handed.borrow_mut().remove(&self.waiter.ticket);
                let connection = connection.expect("it was handed to this ticket");
                self.front
                    .put_back_own(Kept { slot, connection }, self.since);
            }
        }
    }

    fn end(&mut self) {
        assert!(self.stage == Stage::Waits, "a wait ends once");
        self.stage = Stage::Over;
        if self.standing == Standing::HoldsOne {
            self.front.pool.deregister(&self.waiter);
        }
    }
}

#[cfg(test)]
impl<L, C> Wait<'_, L, C> {
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiter.is_waiting()
    }
}

/// The session leaves the queue, or takes the verdict that has come.
fn leave<C>(
    it: &mut Change<'_, C>,
    sequence: Sequence,
    waiter: &Waiter<C>,
) -> (Option<Verdict<C>>, Option<Waker>) {
    drop(it.state.leave(sequence));
    waiter.give_up()
}

impl<L, C> Future for Wait<'_, L, C> {
    type Output = Result<Acquired<L, C>, AcquireError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let wait = self.get_mut();
        assert!(wait.stage == Stage::Waits, "a wait ends once");
        match wait.waiter.poll(context.waker()) {
            Some(verdict) => Poll::Ready(wait.finish(verdict)),
            None => Poll::Pending,
        }
    }
}

impl<L, C> Drop for Wait<'_, L, C> {
    fn drop(&mut self) {
        if self.stage == Stage::Over {
            return;
        }
        let (verdict, _waker) = self.server.change(|it| {
            let (verdict, waker) = leave(it, self.sequence, &self.waiter);
            it.state.numbers.given_up += u64::from(verdict.is_none());
            (verdict, waker)
        });
        self.end();
        if let Some(Verdict::Granted(grant)) = verdict {
            self.put_back(grant);
        }
    }
}
