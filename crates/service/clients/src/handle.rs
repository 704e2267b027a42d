//! [`SessionHandle`]: one session as others see it, and the orders to kill it.
//!
//! A session owns its handle; the registry holds the other reference. Only the session writes its
//! process line, under a small mutex. KILL sets the order and wakes the session, which checks it
//! wherever it may suspend. An idle session hangs up, and only then is the killer answered. So a
//! client that then uses its killed connection sees the end of it, as with MariaDB, which closes
//! the socket itself.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use sync::Mutex;
use sync::atomic::{AtomicU32, Ordering};

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
    /// Of a gateway's session: what keeps it at a server, by the gateway's numbers of reasons, and
    /// the statement that has begun that.
    pub kept_by: Vec<(u8, Arc<str>)>,
}

/// The command of a session that waits for one.
pub const IDLE: &str = "Sleep";

/// The command of a session whose client is gone and whose transaction is rolled back.
pub const LEAVING: &str = "Quit";

/// What a session does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activity {
    /// It waits for a command.
    Idle,
    /// It executes one.
    Statement,
    /// It rolls back what its client has left.
    Rollback,
}

impl ProcessLine {
    /// The line of a session that waits for its first command since `since_us`.
    pub fn idle(id: u64, user: String, host: String, since_us: u64) -> Self {
        Self {
            id,
            user,
            host,
            database: None,
            command: IDLE,
            since_us,
            state: "",
            statement: String::new(),
            kept_by: Vec::new(),
        }
    }
}

/// One session, as others see it.
#[derive(Debug)]
pub struct SessionHandle {
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

impl SessionHandle {
    /// A session that has no order yet.
    pub(crate) fn new(line: ProcessLine) -> Self {
        Self {
            id: line.id,
            line: Mutex::new(line),
            order: Mutex::new(Order {
                order: KillOrder::None,
                waker: None,
                has_hung_up: false,
                killers: Vec::new(),
            }),
            order_flag: AtomicU32::new(0),
        }
    }

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

    /// The running statement's text, at most `bytes_max` of it; empty if none runs.
    pub fn statement(&self, bytes_max: usize) -> String {
        let line = self.line.lock();
        let end = line.statement.floor_char_boundary(bytes_max);
        line.statement[..end].to_owned()
    }

    /// What the session does.
    pub(crate) fn activity(&self) -> Activity {
        match self.line.lock().command {
            IDLE => Activity::Idle,
            LEAVING => Activity::Rollback,
            _ => Activity::Statement,
        }
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

    pub(crate) fn poll_ordered(&self, at_least: KillOrder, context: &mut Context<'_>) -> Poll<()> {
        let mut current = self.order.lock();
        if at_least <= current.order {
            return Poll::Ready(());
        }
        // Mostly it is the same one, which costs nothing to keep.
        match &mut current.waker {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        Poll::Pending
    }

    /// Wakes the session, so that it checks again what it waits for.
    pub(crate) fn wake(&self) {
        let waker = self.order.lock().waker.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    #[test]
    fn an_order_wakes_and_only_grows_until_the_next_statement() {
        let handle = SessionHandle::new(ProcessLine::idle(1, String::new(), String::new(), 0));
        let mut killed = pin!(handle.ordered(KillOrder::Query));
        let mut context = Context::from_waker(Waker::noop());
        assert!(killed.as_mut().poll(&mut context).is_pending());
        handle.give_order(KillOrder::Query);
        assert!(killed.as_mut().poll(&mut context).is_ready());
        handle.clear_query_order();
        assert_eq!(handle.order(), KillOrder::None);
        handle.give_order(KillOrder::Connection);
        handle.give_order(KillOrder::Query);
        handle.clear_query_order();
        assert_eq!(handle.order(), KillOrder::Connection);
    }
}
