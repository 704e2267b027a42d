//! Giving way in the middle of a call.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use env::Clock as _;
use env::linux::SystemClock;

use super::{on_each_driver, start};
use crate::*;

/// Computes until `is_over`, and gives way as it should. Returns `Ending` if it was asked to end.
fn compute(mut is_over: impl FnMut() -> bool) -> WayGiven {
    while !is_over() {
        if give_way() == WayGiven::Ending {
            return WayGiven::Ending;
        }
    }
    WayGiven::Yes
}

#[test]
fn a_call_that_takes_long_keeps_nobody_waiting() {
    on_each_driver(|io| {
        let runtime = start(io, 1);
        runtime.block_on_worker(0, || async {
            let ticks = Rc::new(Cell::new(0));
            let seen = Rc::clone(&ticks);
            // It does not end before the others have run, timers and messages among them.
            let hog = spawn(async move { compute(|| 10 <= seen.get()) });
            for _ in 0..10 {
                sleep(Duration::from_micros(100)).await;
                ticks.set(ticks.get() + 1);
            }
            assert_eq!(hog.await, WayGiven::Yes);
        });
    });
}

#[test]
fn a_short_call_is_not_left() {
    on_each_driver(|io| {
        let runtime = start(io, 1);
        runtime.block_on_worker(0, || async {
            let has_run = Rc::new(Cell::new(false));
            let other = Rc::clone(&has_run);
            spawn_background(async move { other.set(true) });
            // The first call only notes the time.
            assert_eq!(give_way(), WayGiven::Yes);
            assert!(!has_run.get());
            compute(|| has_run.get());
            assert!(has_run.get());
        });
    });
}

#[test]
fn a_slice_is_of_one_poll() {
    on_each_driver(|io| {
        let runtime = start(io, 1);
        runtime.block_on_worker(0, || async {
            for _ in 0..2 {
                assert!(!is_slice_over(), "asked for the first time in this poll");
                let began = SystemClock.now();
                while !is_slice_over() {}
                assert!(Duration::from_micros(100) <= SystemClock.now().since(began));
                yield_now().await;
            }
        });
    });
}

#[test]
fn a_wake_up_during_a_long_call_is_not_lost() {
    on_each_driver(|io| {
        let runtime = start(io, 1);
        runtime.block_on_worker(0, || async {
            let is_ready = Rc::new(Cell::new(false));
            let waiting: Rc<RefCell<Option<Waker>>> = Rc::default();
            let (ready, waker) = (Rc::clone(&is_ready), Rc::clone(&waiting));
            let task = spawn(std::future::poll_fn(move |context| {
                if ready.get() {
                    return Poll::Ready(());
                }
                *waker.borrow_mut() = Some(context.waker().clone());
                // The event comes during the poll, which does not look at it again.
                compute(|| waker.borrow().is_none());
                Poll::Pending
            }));
            spawn(async move {
                while waiting.borrow().is_none() {
                    yield_now().await;
                }
                is_ready.set(true);
                let waker = waiting.borrow_mut().take();
                waker.unwrap().wake();
            });
            task.await;
        });
    });
}

#[test]
fn a_task_that_is_dropped_in_a_call_is_told() {
    on_each_driver(|io| {
        let runtime = start(io, 1);
        runtime.block_on_worker(0, || async {
            let (told, has_begun) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
            let (seen, begun) = (Rc::clone(&told), Rc::clone(&has_begun));
            let hog = spawn(async move {
                begun.set(true);
                compute(|| false);
                assert_eq!(give_way(), WayGiven::Ending);
                seen.set(1);
                yield_now().await;
                seen.set(2);
            });
            while !has_begun.get() {
                yield_now().await;
            }
            hog.cancel();
            while told.get() == 0 {
                yield_now().await;
            }
            yield_now().await;
            assert_eq!(told.get(), 1);
        });
    });
}

#[test]
fn the_end_does_not_wait_for_a_call_in_its_middle() {
    on_each_driver(|io| {
        let runtime = start(io, 1);
        runtime.block_on_worker(0, || async {
            spawn(async { assert_eq!(compute(|| false), WayGiven::Ending) });
            yield_now().await;
        });
        runtime.handle().shutdown(Duration::from_millis(5));
        assert_eq!(runtime.wait().unwrap().cut_count, 1);
    });
}

#[test]
fn a_thread_that_is_no_worker_has_nobody_to_give_way_to() {
    assert_eq!(give_way(), WayGiven::Yes);
    assert!(is_slice_over());
}
