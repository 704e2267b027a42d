//! Workers on threads of their own: the protocol between them, as it runs.

use std::future::{Future, pending};
use std::pin::Pin;
use std::thread::{self, Thread};

use sync::atomic::AtomicU64;

use super::{Arc, Bell, Context, Login, Wake, Waker, at, limits, login};
use crate::{AcquireError, Acquired, Ask, Found, Front, Holds, Order, Pool, Recycling, ServerId};

const WORKER_COUNT: usize = 3;
const SESSION_COUNT: usize = 4;
const ROUND_COUNT: usize = 400;
const LIMIT: u64 = 2;

type Task<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Wakes a task and its thread.
struct Alarm {
    bell: Bell,
    thread: Thread,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.bell.0.store(true, sync::atomic::Ordering::Release);
        self.thread.unpark();
    }
}

/// What all threads share.
struct Shared {
    pool: Arc<Pool<u64>>,
    servers: [ServerId; 2],
    /// Sessions that have not ended.
    left: AtomicU64,
    /// Connections that are in use, by server.
    in_use: [AtomicU64; 2],
}

use sync::atomic::Ordering::{AcqRel, Acquire};

#[test]
#[allow(clippy::disallowed_methods, reason = "a test of real threads")]
fn workers_on_threads_share_few_connections() {
    let pool = Pool::new(WORKER_COUNT);
    let limit = u32::try_from(LIMIT).unwrap();
    let servers = ["db1", "db2"].map(|it| {
        let limits = limits(limit, 0);
        pool.add_server(it, limits, Recycling::default())
    });
    let sessions = stdx::to_u64(WORKER_COUNT * SESSION_COUNT);
    let shared = Shared {
        pool,
        servers,
        left: AtomicU64::new(sessions),
        in_use: Default::default(),
    };
    thread::scope(|scope| {
        let (sender, receiver) = std::sync::mpsc::channel();
        let mut threads = Vec::new();
        for worker in 0..WORKER_COUNT {
            let shared = &shared;
            let (start, others) = std::sync::mpsc::channel();
            let sender = sender.clone();
            scope.spawn(move || {
                sender.send((thread::current(), start)).unwrap();
                let others: Vec<Thread> = others.recv().unwrap();
                run_worker(shared, worker, &others);
            });
            threads.push(receiver.recv().unwrap());
        }
        let all: Vec<Thread> = threads.iter().map(|it| it.0.clone()).collect();
        for (_, start) in threads {
            start.send(all.clone()).unwrap();
        }
    });
    for server in servers {
        let numbers = shared.pool.numbers(server).unwrap();
        assert_eq!((numbers.open, numbers.waiting), (0, 0));
        assert!(0 < numbers.waited && 0 < numbers.taken_waiting);
        assert_eq!(numbers.opened, numbers.closed_count());
    }
}

/// Runs the sessions of a worker, and the task that answers other workers, until all sessions of
/// all workers have ended.
fn run_worker(shared: &Shared, worker: usize, threads: &[Thread]) {
    let front = Front::new(Arc::clone(&shared.pool), worker);
    let mut tasks: Vec<Task<'_>> = vec![Box::pin(answer_others(&front))];
    for number in 0..SESSION_COUNT {
        let seed = stdx::to_u64(worker * SESSION_COUNT + number);
        let front = &front;
        tasks.push(Box::pin(async move {
            run_session(shared, front, seed).await;
            if shared.left.fetch_sub(1, AcqRel) == 1 {
                threads.iter().for_each(Thread::unpark);
            }
        }));
    }
    let alarm = || {
        Arc::new(Alarm {
            bell: Bell(true.into()),
            thread: thread::current(),
        })
    };
    let mut tasks: Vec<_> = tasks.into_iter().map(|it| (alarm(), Some(it))).collect();
    while 0 < shared.left.load(Acquire) {
        let mut is_idle = true;
        for (alarm, slot) in &mut tasks {
            if let Some(task) = slot
                && alarm.bell.take()
            {
                is_idle = false;
                let waker = Waker::from(Arc::clone(alarm));
                if task
                    .as_mut()
                    .poll(&mut Context::from_waker(&waker))
                    .is_ready()
                {
                    *slot = None;
                }
            }
        }
        if is_idle {
            thread::park();
        }
    }
}

async fn answer_others(front: &Front<u64, u64>) {
    loop {
        front.asked().await;
        front.answer(at(0)).into_iter().for_each(carry_out);
    }
}

fn carry_out(order: Order<u64, u64>) {
    if let Order::HandOver(connection, ticket) = order {
        // It is closed if it became void on its way.
        let _ = ticket.deliver(connection, at(0));
    }
}

/// One connection after the other; each third time one to the other server besides.
async fn run_session(shared: &Shared, front: &Front<u64, u64>, seed: u64) {
    let age = crate::Age {
        began_at: at(0),
        session: seed,
    };
    for round in 0..ROUND_COUNT {
        let place = (stdx::to_usize(seed) + round) % 2;
        let account = u32::try_from(round % 3).unwrap();
        let wanted = login(account / 2, 0);
        let first = acquire(shared, front, place, wanted, Holds::Nothing).await;
        let first = first.expect("who holds nothing waits");
        yield_once().await;
        if seed == 0 && round % 50 == 0 {
            drop(shared.pool.raise_version(shared.servers[place]).unwrap());
        }
        if round % 3 == 0 {
            let slots = &[&first.0];
            let holds = Holds::Slots { age, slots };
            match acquire(shared, front, 1 - place, wanted, holds).await {
                Ok(second) => release(shared, front, 1 - place, second),
                Err(error) => assert!(matches!(error, AcquireError::Victim { .. })),
            }
        }
        release(shared, front, place, first);
    }
}

type InUse = (crate::Slot<u64>, u64);

async fn acquire(
    shared: &Shared,
    front: &Front<u64, u64>,
    place: usize,
    login: Login,
    holds: Holds<'_, u64>,
) -> Result<InUse, AcquireError> {
    let request = Ask {
        login,
        holds,
        now: at(0),
    };
    let acquired = front
        .acquire(shared.servers[place], request, pending)
        .await?;
    let Acquired { mut slot, found } = acquired;
    let connection = match found {
        Found::Idle(crate::Held::Own(it) | crate::Held::Moved(it)) => it,
        Found::Turn(crate::Held::Own(it) | crate::Held::Moved(it)) => {
            slot.turned();
            it
        }
        Found::Open(_) => {
            slot.opened(at(0));
            0
        }
    };
    let others = shared.in_use[place].fetch_add(1, AcqRel);
    assert!(others < LIMIT, "the limit is exceeded");
    Ok((slot, connection))
}

fn release(shared: &Shared, front: &Front<u64, u64>, place: usize, in_use: InUse) {
    shared.in_use[place].fetch_sub(1, AcqRel);
    let (slot, connection) = in_use;
    front
        .release(slot, connection, at(0))
        .into_iter()
        .for_each(carry_out);
}

async fn yield_once() {
    let mut is_first = true;
    std::future::poll_fn(move |context| {
        if std::mem::take(&mut is_first) {
            context.waker().wake_by_ref();
            return std::task::Poll::Pending;
        }
        std::task::Poll::Ready(())
    })
    .await;
}
