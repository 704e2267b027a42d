//! The connected clients: what `SHOW PROCESSLIST` shows and `KILL` finds.
//!
//! A session owns a [`Seat`]; the registry holds the other reference. Only the session writes its
//! process line, under a small mutex of the seat. KILL sets the seat's order and wakes the session,
//! which checks it wherever it may suspend. An idle session hangs up, and only then is the killer
//! answered. So a client that then uses its killed connection sees the end of it, as with MariaDB,
//! which closes the socket itself. Sessions are found by id in a map that only connect, KILL and
//! listings touch.
//!
//! When the server shuts down, sessions finish their current command and accept no other.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use sync::Mutex;
use sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The order that a session is under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum KillOrder {
    /// Nothing.
    None,
    /// End the running statement (`KILL QUERY`).
    Query,
    /// End the session (`KILL`).
    Connection,
}

/// A line of the process list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessLine {
    /// The connection's id.
    pub id: u64,
    /// The user.
    pub user: String,
    /// The client's host, with the port.
    pub host: String,
    /// The current database.
    pub database: Option<String>,
    /// What kind of command runs: `Sleep`, `Query`, `Execute`, ...
    pub command: &'static str,
    /// Since when, on the server's steady clock, in microseconds.
    pub since_us: u64,
    /// What a running statement waits for.
    pub state: &'static str,
    /// The running statement's text; empty if none runs. Its memory is used again.
    pub statement: String,
}

/// The command of a session that waits for one.
pub const IDLE: &str = "Sleep";

/// A session's entry.
#[derive(Debug)]
pub struct Seat {
    /// The connection's id. Constant.
    id: u64,
    /// Written by the session, read by listings.
    line: Mutex<ProcessLine>,
    /// The order, and the wakers it concerns.
    order: Mutex<Order>,
    /// A cheap copy of `order`, which the running statement checks once a step.
    order_flag: AtomicU32,
}

#[derive(Debug)]
struct Order {
    order: KillOrder,
    /// The session's waker.
    waker: Option<Waker>,
    /// It accepts no command any more, and its client can see that.
    has_hung_up: bool,
    /// The sessions that wait for `has_hung_up`.
    killers: Vec<Waker>,
}

impl Seat {
    /// The connection's id.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Changes what others see of the session. Called by the session alone.
    pub fn update(&self, change: impl FnOnce(&mut ProcessLine)) {
        change(&mut self.line.lock());
    }

    /// What others see of the session now.
    pub fn line(&self) -> ProcessLine {
        self.line.lock().clone()
    }

    /// The current order.
    #[inline]
    pub fn order(&self) -> KillOrder {
        // Relaxed: an order that is seen a step later is obeyed a step later.
        match self.order_flag.load(Ordering::Relaxed) {
            0 => KillOrder::None,
            1 => KillOrder::Query,
            _ => KillOrder::Connection,
        }
    }

    /// Gives an order; one that is weaker than the current one changes nothing.
    pub fn give_order(&self, order: KillOrder) {
        let waker = {
            let mut current = self.order.lock();
            current.order = current.order.max(order);
            self.order_flag
                .store(current.order as u32, Ordering::Relaxed);
            current.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Called by the session when it accepts no command any more and its client can see that.
    pub fn hang_up(&self) {
        let killers = {
            let mut current = self.order.lock();
            current.has_hung_up = true;
            std::mem::take(&mut current.killers)
        };
        killers.into_iter().for_each(Waker::wake);
    }

    /// Ready once the session has hung up.
    pub async fn hung_up(&self) {
        poll_fn(|context| {
            let mut current = self.order.lock();
            if current.has_hung_up {
                return Poll::Ready(());
            }
            let killers = &mut current.killers;
            if !killers.iter().any(|it| it.will_wake(context.waker())) {
                killers.push(context.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }

    /// A new statement begins: an order against the last one is dropped.
    pub fn clear_query_order(&self) {
        if self.order() == KillOrder::Query {
            let mut current = self.order.lock();
            if current.order == KillOrder::Query {
                current.order = KillOrder::None;
                self.order_flag.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Ready once there is an order of at least this weight.
    pub async fn ordered(&self, at_least: KillOrder) {
        poll_fn(|context| self.poll_ordered(at_least, context)).await;
    }

    fn poll_ordered(&self, at_least: KillOrder, context: &mut Context<'_>) -> Poll<()> {
        let mut current = self.order.lock();
        if at_least <= current.order {
            return Poll::Ready(());
        }
        current.waker = Some(context.waker().clone());
        Poll::Pending
    }

    /// Wakes the session, so that it checks again what it waits for.
    fn wake(&self) {
        let waker = self.order.lock().waker.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// All sessions.
#[derive(Debug)]
pub struct Registry {
    /// The id of the next connection.
    next_id: AtomicU64,
    /// Sessions by id.
    seats: Mutex<BTreeMap<u64, Arc<Seat>>>,
    /// The server is shutting down.
    is_ending: AtomicBool,
}

impl Default for Registry {
    fn default() -> Self {
        Self {
            next_id: AtomicU64::new(1),
            seats: Mutex::default(),
            is_ending: AtomicBool::new(false),
        }
    }
}

impl Registry {
    /// Returns an id for a connection that has not logged in yet.
    pub fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Enters a session; `None` if there are `limit` already.
    pub fn enter(&self, line: ProcessLine, limit: usize) -> Option<Arc<Seat>> {
        let seat = Arc::new(Seat {
            id: line.id,
            line: Mutex::new(line),
            order: Mutex::new(Order {
                order: KillOrder::None,
                waker: None,
                has_hung_up: false,
                killers: Vec::new(),
            }),
            order_flag: AtomicU32::new(0),
        });
        let mut seats = self.seats.lock();
        if limit <= seats.len() {
            return None;
        }
        let before = seats.insert(seat.id, Arc::clone(&seat));
        assert!(before.is_none(), "connection ids are given out once");
        Some(seat)
    }

    /// Removes a session.
    pub fn leave(&self, seat: &Seat) {
        seat.hang_up();
        let removed = self.seats.lock().remove(&seat.id);
        assert!(removed.is_some(), "a session leaves once");
    }

    /// From now on no session takes a command.
    pub fn end(&self) {
        self.is_ending.store(true, Ordering::Release);
        for seat in self.all() {
            seat.wake();
        }
    }

    /// Whether the server is shutting down.
    pub fn is_ending(&self) -> bool {
        // Acquire: pairs with the Release of `end`. A session that stored its waker after `end` had
        // passed its seat locked that seat later, and so sees this.
        self.is_ending.load(Ordering::Acquire)
    }

    /// Ready once the session has to stop accepting commands.
    pub async fn dismissed(&self, seat: &Seat) {
        poll_fn(|context| {
            let ordered = seat.poll_ordered(KillOrder::Connection, context);
            if self.is_ending() {
                return Poll::Ready(());
            }
            ordered
        })
        .await;
    }

    /// The session with this id.
    pub fn find(&self, id: u64) -> Option<Arc<Seat>> {
        self.seats.lock().get(&id).cloned()
    }

    /// How many sessions there are.
    pub fn count(&self) -> usize {
        self.seats.lock().len()
    }

    /// How many sessions are not idle.
    pub fn running_count(&self) -> usize {
        let seats = self.all();
        let is_running = |seat: &&Arc<Seat>| seat.line.lock().command != IDLE;
        seats.iter().filter(is_running).count()
    }

    /// All sessions, by id.
    pub fn all(&self) -> Vec<Arc<Seat>> {
        self.seats.lock().values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;

    use super::*;

    fn line(id: u64) -> ProcessLine {
        ProcessLine {
            id,
            user: "root".to_owned(),
            host: "localhost".to_owned(),
            database: None,
            command: "Sleep",
            since_us: 0,
            state: "",
            statement: String::new(),
        }
    }

    #[test]
    fn sessions_are_found_listed_and_gone() {
        let registry = Registry::default();
        let (a, b) = (registry.next_id(), registry.next_id());
        let seat = registry.enter(line(b), 2).unwrap();
        assert!(registry.enter(line(a), 1).is_none(), "all seats are taken");
        registry.enter(line(a), 2).unwrap();
        seat.update(|line| line.command = "Query");
        let ids: Vec<_> = registry.all().iter().map(|seat| seat.id()).collect();
        assert_eq!(ids, [a, b]);
        assert_eq!(registry.find(b).unwrap().line().command, "Query");
        assert_eq!((registry.count(), registry.running_count()), (2, 1));
        registry.leave(&seat);
        assert!(registry.find(b).is_none());
        assert_eq!(registry.count(), 1);
    }

    #[test]
    fn who_kills_learns_that_the_session_has_hung_up() {
        let registry = Registry::default();
        let seat = registry.enter(line(1), 1).unwrap();
        let mut context = Context::from_waker(Waker::noop());
        let mut told = pin!(seat.hung_up());
        assert!(told.as_mut().poll(&mut context).is_pending());
        registry.leave(&seat);
        assert!(told.as_mut().poll(&mut context).is_ready());
    }

    #[test]
    fn the_end_dismisses_all_and_stops_no_statement() {
        let registry = Registry::default();
        let seat = registry.enter(line(1), 1).unwrap();
        let mut context = Context::from_waker(Waker::noop());
        let mut dismissed = pin!(registry.dismissed(&seat));
        assert!(dismissed.as_mut().poll(&mut context).is_pending());
        registry.end();
        assert!(seat.order.lock().waker.is_none(), "it was woken");
        assert!(dismissed.as_mut().poll(&mut context).is_ready());
        assert_eq!(seat.order(), KillOrder::None);
        assert!(
            pin!(registry.dismissed(&seat))
                .poll(&mut context)
                .is_ready()
        );
    }

    #[test]
    fn an_order_wakes_and_only_grows_until_the_next_statement() {
        let registry = Registry::default();
        let seat = registry.enter(line(1), 1).unwrap();
        let mut killed = pin!(seat.ordered(KillOrder::Query));
        let mut context = Context::from_waker(Waker::noop());
        assert!(killed.as_mut().poll(&mut context).is_pending());
        seat.give_order(KillOrder::Query);
        assert!(killed.as_mut().poll(&mut context).is_ready());
        seat.clear_query_order();
        assert_eq!(seat.order(), KillOrder::None);
        seat.give_order(KillOrder::Connection);
        seat.give_order(KillOrder::Query);
        seat.clear_query_order();
        assert_eq!(seat.order(), KillOrder::Connection);
    }
}
