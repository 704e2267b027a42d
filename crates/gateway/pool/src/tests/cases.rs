//! Single events, each with what has to follow.

use std::future::{Future, pending, ready};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use super::*;
use crate::{AcquireError, CloseReason, UnknownServer};

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// What a wait has come to.
fn served<F>(wait: &mut F) -> Acquired<Own, AtRest>
where
    F: Future<Output = Result<Acquired<Own, AtRest>, AcquireError>> + Unpin,
{
    match poll(wait) {
        Poll::Ready(result) => result.unwrap(),
        Poll::Pending => panic!("it waits"),
    }
}

/// A connection in use by worker `worker`.
fn in_use(world: &mut World, fronts: &[TestedFront], worker: usize, server: ServerId) -> InUse {
    let acquired = granted(ask(&fronts[worker], server));
    world.prepare(worker, acquired, at(0))
}

#[test]
fn the_common_case_takes_no_mutex() {
    let mut world = World::default();
    let (fronts, server) = pool_of(2, limits(4, 0));
    let first = in_use(&mut world, &fronts, 0, server);
    assert!(fronts[0].release(first.slot, first.own, at(0)).is_none());
    let shared = fronts[0].pool().server(server).unwrap();
    let before = shared.lock_count();
    let references = Arc::strong_count(&shared);
    for _ in 0..1_000 {
        let acquired = granted(ask(&fronts[0], server));
        assert!(matches!(acquired.found, Found::Idle(Held::Own(_))));
        let InUse { slot, own } = world.prepare(0, acquired, at(0));
        assert!(fronts[0].release(slot, own, at(0)).is_none());
    }
    assert_eq!(shared.lock_count(), before);
    assert_eq!(Arc::strong_count(&shared), references);
    let numbers = fronts[0].pool().numbers(server).unwrap();
    assert_eq!((numbers.taken_own, numbers.opened), (1_000, 1));
    assert_eq!((numbers.open, numbers.idle), (1, 1));
}

#[test]
fn a_connection_goes_to_a_waiter_of_its_worker_as_it_is() {
    let mut world = World::default();
    let (fronts, server) = pool_of(1, limits(1, 0));
    let first = in_use(&mut world, &fronts, 0, server);
    let mut wait = waits(ask(&fronts[0], server));
    assert!(poll(&mut wait).is_pending());
    assert!(fronts[0].release(first.slot, first.own, at(0)).is_none());
    let acquired = served(&mut wait);
    assert!(matches!(acquired.found, Found::Idle(Held::Own(_))));
    assert_eq!(world.live_count(server), 1);
}

#[test]
fn a_connection_goes_to_the_first_waiter_on_whichever_worker() {
    let mut world = World::default();
    let (fronts, server) = pool_of(2, limits(1, 0));
    let first = in_use(&mut world, &fronts, 0, server);
    let mut other = waits(ask(&fronts[1], server));
    let mut own = waits(ask_at(&fronts[0], server, LATE));
    let order = fronts[0].release(first.slot, first.own, LATE);
    carry_out(order.expect("it has to be moved"), LATE);
    assert!(poll(&mut own).is_pending());
    let acquired = served(&mut other);
    assert!(matches!(acquired.found, Found::Idle(Held::Moved(_))));
    let second = world.prepare(1, acquired, LATE);
    let order = fronts[1].release(second.slot, second.own, LATE);
    carry_out(order.expect("it has to be moved"), LATE);
    served(&mut own);
}

#[test]
fn a_connection_stays_on_its_worker_if_a_session_there_has_waited_about_as_long() {
    let mut world = World::default();
    let (fronts, server) = pool_of(2, limits(1, 0));
    let first = in_use(&mut world, &fronts, 0, server);
    let mut other = waits(ask(&fronts[1], server));
    let mut own = waits(ask(&fronts[0], server));
    assert!(fronts[0].release(first.slot, first.own, at(0)).is_none());
    assert!(poll(&mut other).is_pending());
    let acquired = served(&mut own);
    assert!(matches!(acquired.found, Found::Idle(Held::Own(_))));
    let second = world.prepare(0, acquired, at(0));
    let order = fronts[0].release(second.slot, second.own, at(0));
    carry_out(order.expect("it has to be moved"), at(0));
    served(&mut other);
}

#[test]
fn connections_move_one_by_one() {
    let mut world = World::default();
    let (fronts, server) = pool_of(2, limits(3, 0));
    let in_use = [0; 3].map(|worker| in_use(&mut world, &fronts, worker, server));
    let mut others = [0; 2].map(|_| waits(ask(&fronts[1], server)));
    let mut own = waits(ask_at(&fronts[0], server, LATE));
    let [first, second, third] = in_use.map(|it| fronts[0].release(it.slot, it.own, LATE));
    assert!(
        second.is_none(),
        "it stays while the first one is on its way"
    );
    served(&mut own);
    for order in [first, third] {
        carry_out(order.expect("it has to be moved"), LATE);
    }
    for other in &mut others {
        served(other);
    }
}

#[test]
fn what_idles_on_another_worker_is_asked_for() {
    let mut world = World::default();
    let (fronts, server) = pool_of(2, limits(1, 0));
    let first = in_use(&mut world, &fronts, 0, server);
    assert!(fronts[0].release(first.slot, first.own, at(0)).is_none());
    let mut wait = waits(ask(&fronts[1], server));
    assert!(is_asked(&fronts[0]) && !is_asked(&fronts[1]));
    // A session of the worker that has it does not overtake.
    let mut late = waits(ask_at(&fronts[0], server, LATE));
    for order in fronts[0].answer(LATE) {
        carry_out(order, LATE);
    }
    served(&mut wait);
    served(&mut late);
}

#[test]
fn idle_connections_that_are_offered_fit_their_waiters() {
    let mut world = World::default();
    let (fronts, server) = pool_of(2, limits(2, 0));
    let first = in_use(&mut world, &fronts, 0, server);
    let other = || Ask {
        login: login(1, 0),
        ..request()
    };
    let acquired = granted(fronts[0].ask(server, other()).unwrap());
    let second = world.prepare(0, acquired, at(0));
    for it in [first, second] {
        assert!(fronts[0].release(it.slot, it.own, at(0)).is_none());
    }
    // The first waiter is of the other worker, the second of that which has both.
    let mut waits_there = waits(ask(&fronts[1], server));
    let mut waits_here = waits(fronts[0].ask(server, other()).unwrap());
    answer(&fronts[0]);
    let here = served(&mut waits_here);
    assert!(matches!(here.found, Found::Idle(Held::Own(_))));
    let there = served(&mut waits_there);
    assert!(matches!(there.found, Found::Idle(Held::Moved(_))));
}

#[test]
fn an_idle_connection_of_another_key_is_turned_or_replaced() {
    let mut world = World::default();
    let (fronts, server) = pool_of(2, limits(1, 0));
    let first = in_use(&mut world, &fronts, 0, server);
    assert!(fronts[0].release(first.slot, first.own, at(0)).is_none());
    let mut turning = request();
    turning.login = login(1, 0);
    let acquired = granted(fronts[0].ask(server, turning).unwrap());
    assert!(matches!(acquired.found, Found::Turn(Held::Own(_))));
    let second = world.prepare(0, acquired, at(0));
    assert!(fronts[0].release(second.slot, second.own, at(0)).is_none());
    let mut replacing = request();
    replacing.login = login(1, 1);
    let mut wait = waits(fronts[1].ask(server, replacing).unwrap());
    answer(&fronts[0]);
    let acquired = served(&mut wait);
    assert!(matches!(acquired.found, Found::Open(None)));
    let third = world.prepare(1, acquired, at(0));
    assert_eq!(world.live_count(server), 1);
    drop(third);
    let numbers = fronts[0].pool().numbers(server).unwrap();
    assert_eq!((numbers.turned, numbers.opened), (1, 2));
    assert_eq!(numbers.closed(CloseReason::Replaced), 1);
    assert_eq!(numbers.closed(CloseReason::Dropped), 1);
}

#[test]
fn a_promised_connection_goes_on_if_its_waiter_gives_up() {
    for is_granted in [false, true] {
        let mut world = World::default();
        let (fronts, server) = pool_of(3, limits(1, 0));
        let first = in_use(&mut world, &fronts, 0, server);
        let gone = waits(ask(&fronts[1], server));
        let mut next = waits(ask(&fronts[2], server));
        let order = fronts[0].release(first.slot, first.own, at(0)).unwrap();
        if is_granted {
            carry_out(order, at(0));
            drop(gone);
        } else {
            drop(gone);
            carry_out(order, at(0));
        }
        served(&mut next);
    }
}

#[test]
fn a_connection_that_its_own_worker_was_given_goes_on_if_the_waiter_gives_up() {
    let mut world = World::default();
    let (fronts, server) = pool_of(2, limits(1, 0));
    let first = in_use(&mut world, &fronts, 0, server);
    let gone = waits(ask(&fronts[0], server));
    let mut next = waits(ask(&fronts[1], server));
    assert!(fronts[0].release(first.slot, first.own, at(0)).is_none());
    drop(gone);
    answer(&fronts[0]);
    served(&mut next);
    assert!(fronts[0].handed_is_empty());
}

#[test]
fn a_connection_that_cannot_be_moved_lets_its_waiter_open_one() {
    for is_dropped in [false, true] {
        let mut world = World::default();
        let (fronts, server) = pool_of(2, limits(1, 0));
        let first = in_use(&mut world, &fronts, 0, server);
        let mut wait = waits(ask(&fronts[1], server));
        let order = fronts[0].release(first.slot, first.own, at(0)).unwrap();
        let Order::HandOver(own, ticket) = order else {
            panic!("somebody waits for it");
        };
        drop(own);
        if is_dropped {
            drop(ticket);
        } else {
            ticket.failed();
        }
        assert!(matches!(served(&mut wait).found, Found::Open(None)));
        let numbers = fronts[0].pool().numbers(server).unwrap();
        assert_eq!(numbers.closed(CloseReason::Unmoved), 1);
    }
}

#[test]
fn a_stale_connection_is_replaced_in_its_slot() {
    let mut world = World::default();
    let (fronts, server) = pool_of(1, limits(1, 0));
    let InUse { mut slot, own } = in_use(&mut world, &fronts, 0, server);
    drop(own);
    slot.closed(CloseReason::Stale);
    let own = world.open(0, &mut slot, at(0));
    assert!(fronts[0].release(slot, own, at(0)).is_none());
    let numbers = fronts[0].pool().numbers(server).unwrap();
    assert_eq!((numbers.open, numbers.opened), (1, 2));
    assert_eq!(numbers.closed(CloseReason::Stale), 1);
}

#[test]
fn a_failed_connection_lets_the_next_waiter_open_one() {
    let mut world = World::default();
    let (fronts, server) = pool_of(1, limits(1, 0));
    let InUse { slot, own } = in_use(&mut world, &fronts, 0, server);
    let mut wait = waits(ask(&fronts[0], server));
    drop(own);
    slot.close(CloseReason::Failed);
    assert!(matches!(served(&mut wait).found, Found::Open(None)));
}

#[test]
fn the_time_out_names_server_limit_and_waiters() {
    let (fronts, server) = pool_of(1, limits(1, 0));
    let held = granted(ask(&fronts[0], server));
    let other = waits(ask(&fronts[0], server));
    let mut acquire = pin!(fronts[0].acquire(server, request(), || ready(())));
    let Poll::Ready(result) = acquire
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    else {
        panic!("its time is over");
    };
    let error = result.unwrap_err();
    assert_eq!(
        error,
        AcquireError::TimedOut {
            server: Arc::from("db1"),
            limit: 1,
            waiting: 1
        }
    );
    drop(other);
    drop(held);
    let numbers = fronts[0].pool().numbers(server).unwrap();
    assert_eq!(
        (numbers.waited, numbers.timed_out, numbers.given_up),
        (2, 1, 1)
    );
    assert_eq!((numbers.open, numbers.waiting), (0, 0));
}

#[test]
fn who_is_served_in_the_last_moment_is_not_timed_out() {
    let (fronts, server) = pool_of(1, limits(1, 0));
    let held = granted(ask(&fronts[0], server));
    let mut wait = waits(ask(&fronts[0], server));
    drop(held);
    assert!(wait.time_out().is_ok());
    let numbers = fronts[0].pool().numbers(server).unwrap();
    assert_eq!((numbers.timed_out, numbers.open), (0, 0));
}

#[test]
fn acquire_waits_for_its_turn() {
    let (fronts, server) = pool_of(1, limits(1, 0));
    let held = granted(ask(&fronts[0], server));
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(Arc::clone(&bell));
    let mut context = Context::from_waker(&waker);
    let mut acquire = pin!(fronts[0].acquire(server, request(), pending));
    assert!(acquire.as_mut().poll(&mut context).is_pending());
    assert!(!bell.take());
    drop(held);
    assert!(bell.take());
    assert!(acquire.as_mut().poll(&mut context).is_ready());
}

#[test]
fn too_many_waiters_are_refused() {
    let (fronts, server) = pool_of(
        1,
        Limits {
            limit: 0,
            overflow: 0,
            waiting_max: 1,
        },
    );
    let first = waits(ask(&fronts[0], server));
    let error = fronts[0].ask(server, request()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no connection to db1: its limit is 0, and 1 sessions wait already"
    );
    drop(first);
}

#[test]
fn a_new_version_closes_what_idles_on_workers() {
    let mut world = World::default();
    let (fronts, server) = pool_of(2, limits(2, 0));
    let first = in_use(&mut world, &fronts, 0, server);
    let second = in_use(&mut world, &fronts, 1, server);
    assert!(fronts[0].release(first.slot, first.own, at(0)).is_none());
    let pool = Arc::clone(fronts[0].pool());
    assert!(pool.raise_version(server).unwrap().is_empty());
    // Before the worker has answered, the void one is not given out; it still has its slot.
    let mut wait = waits(ask(&fronts[0], server));
    answer(&fronts[0]);
    let acquired = served(&mut wait);
    assert!(matches!(acquired.found, Found::Open(None)));
    let closed = pool.numbers(server).unwrap().closed(CloseReason::Version);
    assert_eq!(closed, 1);
    let order = fronts[1].release(second.slot, second.own, at(0));
    let Some(Order::Close(closing)) = order else {
        panic!("it is void");
    };
    assert_eq!(closing.reason, CloseReason::Version);
    drop(closing);
    assert_eq!(world.live_count(server), 0);
    assert_eq!(pool.numbers(server).unwrap().open, 1);
}

#[test]
fn a_connection_that_becomes_void_on_its_way_is_replaced() {
    for is_delivered in [false, true] {
        let mut world = World::default();
        let (fronts, server) = pool_of(2, limits(1, 0));
        let pool = Arc::clone(fronts[0].pool());
        let first = in_use(&mut world, &fronts, 0, server);
        let mut wait = waits(ask(&fronts[1], server));
        let order = fronts[0].release(first.slot, first.own, at(0)).unwrap();
        if is_delivered {
            carry_out(order, at(0));
            drop(pool.raise_version(server).unwrap());
        } else {
            drop(pool.raise_version(server).unwrap());
            carry_out(order, at(0));
        }
        let acquired = served(&mut wait);
        assert!(matches!(acquired.found, Found::Open(_)));
        world.prepare(1, acquired, at(0));
        let numbers = pool.numbers(server).unwrap();
        assert_eq!(numbers.closed(CloseReason::Version), 1);
    }
}

#[test]
fn a_right_to_open_is_of_the_version_when_it_is_taken() {
    let (fronts, server) = pool_of(1, limits(1, 0));
    let held = granted(ask(&fronts[0], server));
    let mut wait = waits(ask(&fronts[0], server));
    drop(held);
    let pool = fronts[0].pool();
    drop(pool.raise_version(server).unwrap());
    let acquired = served(&mut wait);
    let version = pool.server(server).unwrap().version();
    assert_eq!(acquired.slot.key().version, version);
}

#[test]
fn a_connection_on_its_way_is_closed_when_its_server_is_removed() {
    let mut world = World::default();
    let (fronts, server) = pool_of(2, limits(1, 0));
    let pool = Arc::clone(fronts[0].pool());
    let first = in_use(&mut world, &fronts, 0, server);
    let mut wait = waits(ask(&fronts[1], server));
    let order = fronts[0].release(first.slot, first.own, at(0)).unwrap();
    let shared = pool.server(server).unwrap();
    drop(pool.remove_server(server).unwrap());
    carry_out(order, at(0));
    let removed = matches!(
        poll(&mut wait),
        Poll::Ready(Err(AcquireError::Removed { .. }))
    );
    assert!(removed);
    let numbers = shared.numbers();
    assert_eq!((numbers.open, numbers.closed(CloseReason::Removed)), (0, 1));
}

#[test]
fn a_lower_limit_closes_what_idles_on_workers() {
    let mut world = World::default();
    let (fronts, server) = pool_of(2, limits(2, 0));
    for worker in 0..2 {
        let connection = in_use(&mut world, &fronts, worker, server);
        let order = fronts[worker].release(connection.slot, connection.own, at(0));
        assert!(order.is_none());
    }
    let pool = Arc::clone(fronts[0].pool());
    assert!(pool.set_limits(server, limits(1, 0)).unwrap().is_empty());
    answer(&fronts[0]);
    answer(&fronts[1]);
    assert_eq!(world.live_count(server), 1);
    assert_eq!(pool.numbers(server).unwrap().closed(CloseReason::Limit), 1);
}

#[test]
fn what_idles_for_long_is_offered_to_all_and_then_closed() {
    let mut world = World::default();
    let (fronts, server) = pool_of(2, limits(2, 0));
    let pool = Arc::clone(fronts[0].pool());
    let recycling = Recycling {
        age_max: Duration::from_nanos(1_000),
        idle_max: Duration::from_nanos(100),
        own_idle_max: Duration::from_nanos(10),
    };
    pool.set_recycling(server, recycling).unwrap();
    for _ in 0..2 {
        let InUse { slot, own } = in_use(&mut world, &fronts, 0, server);
        let kept = in_use(&mut world, &fronts, 0, server);
        assert!(fronts[0].release(kept.slot, kept.own, at(5)).is_none());
        assert!(fronts[0].release(slot, own, at(0)).is_none());
    }
    assert!(fronts[0].sweep(at(9)).is_empty());
    for order in fronts[0].sweep(at(10)) {
        assert!(matches!(order, Order::HandOver(..)));
        carry_out(order, at(10));
    }
    let acquired = granted(ask(&fronts[1], server));
    assert!(matches!(acquired.found, Found::Idle(Held::Moved(_))));
    let moved = world.prepare(1, acquired, at(10));
    assert!(pool.sweep(at(99)).is_empty());
    assert!(fronts[1].release(moved.slot, moved.own, at(10)).is_none());
    let closed: Vec<_> = [fronts[0].sweep(at(110)), fronts[1].sweep(at(110))]
        .into_iter()
        .flatten()
        .map(|order| match order {
            Order::Close(closing) => closing.reason,
            Order::HandOver(..) => panic!("it was idle for too long"),
        })
        .collect();
    assert_eq!(closed, [CloseReason::Idle, CloseReason::Idle]);
    assert_eq!(world.live_count(server), 0);
}

#[test]
fn an_old_connection_is_closed_when_it_is_wanted_or_comes_back() {
    let mut world = World::default();
    let (fronts, server) = pool_of(1, limits(2, 0));
    let day = Duration::from_secs(86_400);
    let later = at(u64::try_from(day.as_nanos()).unwrap());
    let kept = in_use(&mut world, &fronts, 0, server);
    let used = in_use(&mut world, &fronts, 0, server);
    assert!(fronts[0].release(kept.slot, kept.own, at(0)).is_none());
    let mut late = request();
    late.now = later;
    let acquired = granted(fronts[0].ask(server, late).unwrap());
    assert!(matches!(acquired.found, Found::Open(Some(Held::Own(_)))));
    let order = fronts[0].release(used.slot, used.own, later);
    let Some(Order::Close(closing)) = order else {
        panic!("it is too old");
    };
    assert_eq!(closing.reason, CloseReason::Age);
    let numbers = fronts[0].pool().numbers(server).unwrap();
    assert_eq!(numbers.closed(CloseReason::Age), 2);
}

#[test]
fn a_removed_server_fails_its_waiters_and_is_forgotten() {
    let mut world = World::default();
    let (fronts, server) = pool_of(1, limits(1, 0));
    let pool = Arc::clone(fronts[0].pool());
    let used = in_use(&mut world, &fronts, 0, server);
    let mut wait = waits(ask(&fronts[0], server));
    assert!(pool.remove_server(server).unwrap().is_empty());
    let removed = AcquireError::Removed {
        server: Arc::from("db1"),
    };
    assert_eq!(
        poll(&mut wait).map(|it| it.unwrap_err()),
        Poll::Ready(removed.clone())
    );
    // The worker knows the server until then.
    assert_eq!(fronts[0].ask(server, request()).unwrap_err(), removed);
    let unknown = fronts[0].ask(server, request()).unwrap_err();
    assert_eq!(unknown, AcquireError::UnknownServer);
    let order = fronts[0].release(used.slot, used.own, at(0));
    assert!(matches!(order, Some(Order::Close(_))));
    assert_eq!(pool.remove_server(server).unwrap_err(), UnknownServer);
    assert_eq!(
        pool.set_limits(server, limits(1, 1)).unwrap_err(),
        UnknownServer
    );
    assert_eq!(pool.raise_version(server).unwrap_err(), UnknownServer);
    assert_eq!(pool.numbers(server).unwrap_err(), UnknownServer);
    assert!(pool.servers().is_empty());
    let other = pool.add_server("db2", limits(1, 0), Recycling::default());
    assert_ne!(other, server);
    assert_eq!(pool.servers(), [(other, Arc::from("db2"))]);
}

#[test]
fn a_removed_server_takes_idle_connections_along() {
    let mut world = World::default();
    let (fronts, server) = pool_of(1, limits(1, 0));
    let used = in_use(&mut world, &fronts, 0, server);
    assert!(fronts[0].release(used.slot, used.own, at(0)).is_none());
    drop(fronts[0].pool().remove_server(server));
    answer(&fronts[0]);
    assert_eq!(world.live_count(server), 0);
    let unknown = fronts[0].ask(server, request()).unwrap_err();
    assert_eq!(unknown, AcquireError::UnknownServer);
}

#[test]
fn nothing_stays_open_when_all_is_dropped() {
    let mut world = World::default();
    let (fronts, server) = pool_of(2, limits(4, 0));
    let used: Vec<_> = (0..4)
        .map(|it| in_use(&mut world, &fronts, it % 2, server))
        .collect();
    for InUse { slot, own } in used {
        drop(fronts[own.worker].release(slot, own, at(0)));
    }
    for order in fronts[0].sweep(at(5_000_000_000)) {
        carry_out(order, at(5_000_000_000));
    }
    assert_eq!(world.live_count(server), 4);
    // Two are shared; the other two are the second worker's own.
    let pool = Arc::clone(fronts[0].pool());
    drop(fronts);
    let numbers = pool.numbers(server).unwrap();
    assert_eq!((numbers.open, numbers.idle), (2, 2));
    assert_eq!(world.live_count(server), 2);
    drop(pool);
    assert_eq!(world.live_count(server), 0);
}
