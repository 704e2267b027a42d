//! Sessions that hold connections to one server and want one to another.

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

use super::*;
use crate::{AcquireError, Age, Wait};

fn age(number: u64) -> Age {
    Age {
        began_at: at(number),
        session: number,
    }
}

fn ask_holding<'f>(
    front: &'f TestedFront,
    server: ServerId,
    age: Age,
    held: &InUse,
) -> Result<Answer<'f, Own, AtRest>, AcquireError> {
    let slots = &[&held.slot];
    let mut request: Ask<'_, AtRest> = request();
    request.holds = Holds::Slots { age, slots };
    front.ask(server, request)
}

fn poll(wait: &mut Wait<'_, Own, AtRest>) -> Poll<Result<Acquired<Own, AtRest>, AcquireError>> {
    Pin::new(wait).poll(&mut Context::from_waker(Waker::noop()))
}

/// Two servers, and a session on each of two workers that holds a connection to one of them.
struct Crossed {
    world: World,
    fronts: Vec<TestedFront>,
    servers: [ServerId; 2],
    held: [InUse; 2],
}

impl Crossed {
    fn new(limits: Limits) -> Crossed {
        let mut world = World::default();
        let (fronts, first) = pool_of(2, limits);
        let second = fronts[0]
            .pool()
            .add_server("db2", limits, Recycling::default());
        let servers = [first, second];
        let held = [0, 1].map(|it| {
            let acquired = granted(ask(&fronts[it], servers[it]));
            world.prepare(it, acquired, at(0))
        });
        Crossed {
            world,
            fronts,
            servers,
            held,
        }
    }
}

#[test]
fn crossed_sessions_go_above_the_limit() {
    let crossed = Crossed::new(limits(1, 1));
    for it in 0..2 {
        let other = crossed.servers[1 - it];
        let answer = ask_holding(&crossed.fronts[it], other, age(0), &crossed.held[it]);
        let acquired = granted(answer.unwrap());
        assert!(acquired.slot.is_above_limit());
    }
    assert_eq!(crossed.world.opened, 2);
}

#[test]
fn of_crossed_sessions_the_younger_is_the_victim_when_it_comes_last() {
    let Crossed {
        fronts,
        servers,
        held: [older, younger],
        ..
    } = Crossed::new(limits(1, 0));
    let mut wait = waits(ask_holding(&fronts[0], servers[1], age(1), &older).unwrap());
    let error = ask_holding(&fronts[1], servers[0], age(2), &younger).unwrap_err();
    let server = Arc::from("db1");
    assert_eq!(error, AcquireError::Victim { server });
    // It rolls back and gives back what it holds.
    let order = fronts[1].release(younger.slot, younger.own, at(0));
    carry_out(order.expect("the older waits for it"), at(0));
    assert!(matches!(poll(&mut wait), Poll::Ready(Ok(_))));
    let numbers = fronts[0].pool().numbers(servers[0]).unwrap();
    assert_eq!(numbers.victims, 1);
    assert_eq!(fronts[0].pool().holders.lock().len(), 0);
}

#[test]
fn of_crossed_sessions_the_younger_is_the_victim_when_it_waits_already() {
    let Crossed {
        fronts,
        servers,
        held: [younger, older],
        ..
    } = Crossed::new(limits(1, 0));
    let mut sacrificed = waits(ask_holding(&fronts[0], servers[1], age(2), &younger).unwrap());
    assert!(poll(&mut sacrificed).is_pending());
    let mut wait = waits(ask_holding(&fronts[1], servers[0], age(1), &older).unwrap());
    let server = Arc::from("db2");
    let victim = AcquireError::Victim { server };
    assert_eq!(
        poll(&mut sacrificed).map(|it| it.unwrap_err()),
        Poll::Ready(victim)
    );
    assert!(poll(&mut wait).is_pending());
    let order = fronts[0].release(younger.slot, younger.own, at(0));
    carry_out(order.expect("the older waits for it"), at(0));
    assert!(matches!(poll(&mut wait), Poll::Ready(Ok(_))));
}

#[test]
fn a_session_waits_for_one_that_runs_whichever_is_older() {
    for waiting_age in [1, 3] {
        let Crossed {
            fronts,
            servers,
            held: [waiting, running],
            ..
        } = Crossed::new(limits(1, 0));
        let answer = ask_holding(&fronts[0], servers[1], age(waiting_age), &waiting);
        let mut wait = waits(answer.unwrap());
        let order = fronts[1].release(running.slot, running.own, at(0));
        carry_out(order.expect("the other waits for it"), at(0));
        assert!(matches!(poll(&mut wait), Poll::Ready(Ok(_))));
    }
}

#[test]
fn a_wait_that_was_given_up_makes_no_victims() {
    let Crossed {
        fronts,
        servers,
        held: [older, younger],
        ..
    } = Crossed::new(limits(1, 0));
    let wait = waits(ask_holding(&fronts[0], servers[1], age(1), &older).unwrap());
    drop(wait);
    let answer = ask_holding(&fronts[1], servers[0], age(2), &younger);
    drop(waits(answer.unwrap()));
    assert_eq!(fronts[0].pool().holders.lock().len(), 0);
}
