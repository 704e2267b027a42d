//! The pool as its callers see it: connections that count themselves, and several workers on one
//! thread, or on several.

mod cases;
mod deadlock;
mod lines;
mod simulation;
mod threads;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use env::Instant;
use sync::atomic::{AtomicBool, Ordering};

use crate::keys::{AccountId, ClassId};
use crate::{
    Acquired, Answer, Ask, Closing, Found, Front, Held, Holds, Limits, Login, Order, Pool,
    Recycling, ServerId, Slot, Version,
};

/// All connections that are open, by their numbers.
type Live = Rc<RefCell<BTreeMap<u64, ServerId>>>;

/// A connection; it counts as open until it is dropped.
#[derive(Debug)]
struct Connection {
    number: u64,
    version: Version,
    login: Login,
    live: Live,
}

impl Drop for Connection {
    fn drop(&mut self) {
        let was_open = self.live.borrow_mut().remove(&self.number);
        assert!(was_open.is_some(), "a connection is closed once");
    }
}

/// A connection of one worker.
#[derive(Debug)]
struct Own {
    worker: usize,
    connection: Connection,
}

/// A connection at rest.
#[derive(Debug)]
struct AtRest(Connection);

type TestedFront = Front<Own, AtRest>;
type TestedPool = Pool<AtRest>;

/// A connection in use.
#[derive(Debug)]
struct InUse {
    slot: Slot<AtRest>,
    own: Own,
}

/// Opens connections, and makes usable what a session was given.
#[derive(Debug, Default)]
struct World {
    live: Live,
    opened: u64,
}

impl World {
    fn open(&mut self, worker: usize, slot: &mut Slot<AtRest>, now: Instant) -> Own {
        slot.opened(now);
        self.opened += 1;
        let key = slot.key();
        self.live.borrow_mut().insert(self.opened, key.server);
        Own {
            worker,
            connection: Connection {
                number: self.opened,
                version: key.version,
                login: key.login,
                live: Rc::clone(&self.live),
            },
        }
    }

    /// Does what a session does with its slot before the first statement.
    fn prepare(&mut self, worker: usize, acquired: Acquired<Own, AtRest>, now: Instant) -> InUse {
        let Acquired { mut slot, found } = acquired;
        let key = slot.key();
        assert_eq!(
            key.version,
            slot.server().version(),
            "void ones are not given"
        );
        let own = match found {
            Found::Idle(held) => {
                let own = attach(worker, held);
                assert_eq!(own.connection.login, key.login);
                own
            }
            Found::Turn(held) => {
                let mut own = attach(worker, held);
                assert_ne!(own.connection.login, key.login);
                assert_eq!(own.connection.login.class, key.login.class);
                assert_eq!(own.connection.login.client, key.login.client);
                own.connection.login = key.login;
                slot.turned();
                own
            }
            Found::Open(displaced) => {
                drop(displaced);
                self.open(worker, &mut slot, now)
            }
        };
        assert_eq!(own.connection.version, key.version);
        InUse { slot, own }
    }

    fn live_count(&self, server: ServerId) -> u64 {
        let live = self.live.borrow();
        stdx::to_u64(live.values().filter(|it| **it == server).count())
    }
}

fn attach(worker: usize, held: Held<Own, AtRest>) -> Own {
    match held {
        Held::Own(own) => {
            assert_eq!(own.worker, worker, "it stays on its worker");
            own
        }
        Held::Moved(AtRest(connection)) => Own { worker, connection },
    }
}

/// Carries out an order at once.
fn carry_out(order: Order<Own, AtRest>, now: Instant) {
    match order {
        Order::HandOver(own, ticket) => drop(ticket.deliver(AtRest(own.connection), now)),
        Order::Close(Closing { connection, .. }) => drop(connection),
    }
}

/// Whether a task was woken.
#[derive(Debug, Default)]
struct Bell(AtomicBool);

impl Bell {
    fn take(&self) -> bool {
        self.0.swap(false, Ordering::AcqRel)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

fn login(account: u32, class: u32) -> Login {
    Login {
        account: AccountId(account),
        class: ClassId(class),
        client: None,
    }
}

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

fn limits(limit: u32, overflow: u32) -> Limits {
    Limits {
        limit,
        overflow,
        waiting_max: 1_000,
    }
}

/// Whether others want connections of this worker.
fn is_asked(front: &TestedFront) -> bool {
    let asked = std::pin::pin!(front.asked());
    asked
        .poll(&mut Context::from_waker(Waker::noop()))
        .is_ready()
}

/// Answers all questions to a worker, and carries out the orders.
fn answer(front: &TestedFront) {
    if is_asked(front) {
        for order in front.answer(at(0)) {
            carry_out(order, at(0));
        }
    }
}

/// Asks for a connection as `login(0, 0)`, holding nothing.
fn ask(front: &TestedFront, server: ServerId) -> Answer<'_, Own, AtRest> {
    front.ask(server, request()).unwrap()
}

/// So much later than [`ask`] that a connection moves to the session which asked first.
const LATE: Instant = Instant::from_nanos(2_000_000);

fn ask_at(front: &TestedFront, server: ServerId, now: Instant) -> Answer<'_, Own, AtRest> {
    let request = Ask { now, ..request() };
    front.ask(server, request).unwrap()
}

fn request() -> Ask<'static, AtRest> {
    Ask {
        login: login(0, 0),
        holds: Holds::Nothing,
        now: at(0),
    }
}

fn granted(answer: Answer<'_, Own, AtRest>) -> Acquired<Own, AtRest> {
    match answer {
        Answer::Granted(acquired) => acquired,
        Answer::Waits(_) => panic!("it waits"),
    }
}

fn waits<'f>(answer: Answer<'f, Own, AtRest>) -> crate::Wait<'f, Own, AtRest> {
    match answer {
        Answer::Waits(wait) => wait,
        Answer::Granted(_) => panic!("it was granted"),
    }
}

/// A pool of one server, with the parts of its workers.
fn pool_of(worker_count: usize, limits: Limits) -> (Vec<TestedFront>, ServerId) {
    let pool = TestedPool::new(worker_count);
    let server = pool.add_server("db1", limits, Recycling::default());
    let front = |worker| Front::new(Arc::clone(&pool), worker);
    ((0..worker_count).map(front).collect(), server)
}
