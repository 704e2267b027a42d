//! Connections to servers, shared by the sessions of all workers, with a limit a server.
//!
//! It knows nothing of SQL and does no I/O: connections are values of the caller's types. It says
//! which session has which connection, which is to be opened, moved or closed, and who waits.
//!
//! # Use
//!
//! ```text
//! let pool = Pool::new(worker_count);
//! let server = pool.add_server("db1", Limits::new(100), Recycling::default());
//! let front = Rc::new(Front::new(pool, worker));      // one a worker
//!
//! // A session:
//! let ask = Ask { login, holds: Holds::Nothing, now };
//! let Acquired { mut slot, found } = front.acquire(server, ask, || sleep(limit)).await?;
//! let connection = match found {
//!     Found::Idle(held) => attach(held),              // check that it is not stale
//!     Found::Turn(held) => change_user(held).await,   // then slot.turned()
//!     Found::Open(displaced) => connect().await,      // then slot.opened(now); close the other
//! };
//! ...                                                 // it failed: slot.close(reason)
//! if let Some(order) = front.release(slot, connection, now) { carry_out(order).await }
//!
//! // A task of each worker:
//! loop {
//!     front.asked().await;
//!     for order in front.answer(now) { carry_out(order).await }
//! }
//!
//! // To carry out an order:
//! match order {
//!     Order::HandOver(own, ticket) => ticket.deliver(own.detach().await, now),
//!     Order::Close(closing) => closing.connection.close(),
//! }
//! ```
//!
//! Each worker calls [`Front::sweep`] now and then, and one thread [`Pool::sweep`].
//!
//! # Parts
//!
//! The state of a server is a pure structure (`state`), behind one mutex a server (`server`).
//! Workers keep idle connections in stacks of their own (`front`), which they use without that
//! mutex. The limit of a server counts slots (`slot`); every connection has one, wherever it is.
//! Sessions that hold a connection and want another are in `holding`, with the proof that they do
//! not block each other for ever.
//!
//! # Protocol
//!
//! A session takes the last used connection of its worker's stack if the server's *demand word*
//! is quiet: no session waits, nothing is above a lowered limit, and the version is that of the
//! connection. The word is `sync::LocalStock`'s; it changes under the server's mutex.
//!
//! (P1) A session that holds nothing takes no connection past a waiter. In its worker's stack it
//! reads the word before it takes; if the word is quiet, no waiter has come before it. Under the
//! mutex it takes nothing while the queue is not empty.
//!
//! (P2) A worker that keeps a connection publishes its count, then reads the word. If the word is
//! not quiet, it takes the connection out again and decides under the mutex.
//!
//! (P3) Who makes a demand publishes the word before releasing the mutex, then reads the counts,
//! and asks each worker that keeps something. Between the two steps of P2, and of P3, stands a
//! fence; so a connection kept at that moment is found by one of the two sides. While the demand
//! lasts, further waiters need not ask: what was kept before is asked for, and what is kept later
//! meets P2.
//!
//! (P4) An asked worker first clears the question, then offers its connections under the mutex,
//! one by one, until it has none or there is no demand. So a question that comes meanwhile is
//! either answered by the same loop or posted again.
//!
//! (P5) Under the mutex, a connection that comes back within the limit goes to the first waiter
//! of all, or to one of its worker that has waited about as long (`queue`). If the waiter is on
//! another worker, the connection is promised to it: the waiter leaves
//! the queue, and a [`Ticket`] carries the slot. If the waiter gives up before it arrives, the
//! connection goes to the next one. If the connection is lost, or the version
//! rises before the waiter takes it, the waiter may open another one in the slot.
//!
//! (P6) Each slot has one owner: a session, a worker's stack, a ticket, a verdict that its waiter
//! has not taken, or the shared stacks. All but the last free it when dropped.
//!
//! **No wake-up is lost.** Let a session wait, and no connection be on its way to it. Then the
//! queue is not empty, so there is a demand. All slots within the limit are taken, and none is in
//! the shared stacks (C2 in `state`). Each is in one of these places:
//!
//! * in use: it comes back by `release`, which meets P2, or by the mutex;
//! * in a worker's stack: kept before the demand, it was asked for (P3, P4); kept later, it was
//!   taken out again (P2);
//! * on its way to another waiter, or in a verdict: it is used, or it comes back under the mutex.
//!
//! In each case the decision is made under the mutex, by P5. So the waiter moves up each time.
//!
//! Order of locks: the sessions that hold and wait (`Pool::holders`), one server's state, one
//! waiter's stage. No waker and no caller is called under any of them.
//!
//! # Cost
//!
//! In the common case a session takes and returns a connection by two look-ups in maps of its
//! worker, two stores to a line of its worker, one fence, and loads of a line that changes only
//! with the demand. While sessions wait, each of them and each connection that comes back take the
//! mutex once.

#![forbid(unsafe_code)]

mod counts;
mod error;
mod front;
mod holding;
mod idle;
mod keys;
mod mailbox;
mod options;
mod pool;
mod queue;
mod server;
mod slot;
mod state;
mod waiter;

pub use counts::{CloseReason, Numbers};
pub use error::AcquireError;
pub use front::{Acquired, Answer, Ask, Front, Held, Holds, Order, Wait};
pub use holding::Age;
pub use keys::{AccountId, ClassId, Interner, Key, Login, ServerId, Version};
pub use options::{Limits, Recycling};
pub use pool::{Pool, UnknownServer};
pub use slot::{Slot, Ticket};
pub use state::{Closing, Found};

#[cfg(test)]
mod tests;
