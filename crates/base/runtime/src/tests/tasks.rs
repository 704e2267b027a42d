//! Tasks, timers, messages, the end.

use std::cell::{Cell, RefCell};
use std::future::{pending, poll_fn};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use sync::{Mutex, oneshot};

use super::{on_each_driver, start};
use crate::*;

#[test]
fn runnable_tasks_go_first_come_first_served() {
    on_each_driver(|io| {
        let runtime = start(io, 1);
        let order = runtime.block_on_worker(0, || async {
            let order = Rc::new(RefCell::new(Vec::new()));
            let tasks: Vec<_> = (0..3)
                .map(|name| {
                    let order = order.clone();
                    spawn(async move {
                        for _ in 0..3 {
                            order.borrow_mut().push(name);
                            yield_now().await;
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await;
            }
            order.take()
        });
        assert_eq!(order, [0, 1, 2, 0, 1, 2, 0, 1, 2]);
    });
}

#[test]
fn busy_tasks_keep_neither_timers_nor_messages_waiting() {
    on_each_driver(|io| {
        let runtime = start(io, 2);
        let turns = runtime.block_on_worker(0, || async {
            let turns = Rc::new(Cell::new(0u64));
            for _ in 0..10 {
                let turns = turns.clone();
                spawn_background(async move {
                    loop {
                        turns.set(turns.get() + 1);
                        yield_now().await;
                    }
                });
            }
            sleep(Duration::from_millis(5)).await;
            assert_eq!(call_on(1, worker_index).await, 1);
            turns.get()
        });
        assert!(10 < turns);
    });
}

#[test]
fn a_handle_gives_the_value_and_cancels() {
    on_each_driver(|io| {
        let runtime = start(io, 1);
        runtime.block_on_worker(0, || async {
            assert_eq!(spawn(async { 7 }).await, 7);
            let dropped = Rc::new(Cell::new(false));
            struct Noting(Rc<Cell<bool>>);
            impl Drop for Noting {
                fn drop(&mut self) {
                    self.0.set(true);
                }
            }
            let noting = Noting(dropped.clone());
            let task = spawn(async move {
                let _noting = noting;
                pending::<()>().await;
            });
            yield_now().await;
            assert!(!task.is_finished());
            task.cancel();
            task.cancel();
            assert!(dropped.get());
            // A task may cancel itself: it ends at its next suspension.
            let own = Rc::new(RefCell::new(None::<JoinHandle<()>>));
            let inner = own.clone();
            let reached = Rc::new(Cell::new(0));
            let steps = reached.clone();
            let task = spawn(async move {
                steps.set(1);
                inner.borrow().as_ref().unwrap().cancel();
                yield_now().await;
                steps.set(2);
            });
            *own.borrow_mut() = Some(task);
            sleep(Duration::from_millis(1)).await;
            assert_eq!(reached.get(), 1);
        });
    });
}

#[test]
fn timers_fire_in_order_and_timeouts_cut() {
    on_each_driver(|io| {
        let runtime = start(io, 1);
        let order = runtime.block_on_worker(0, || async {
            let order = Rc::new(RefCell::new(Vec::new()));
            let mut tasks = Vec::new();
            for millis in [9, 3, 6, 1] {
                let order = order.clone();
                tasks.push(spawn(async move {
                    let before = now();
                    sleep(Duration::from_millis(millis)).await;
                    assert!(Duration::from_millis(millis) <= now() - before);
                    order.borrow_mut().push(millis);
                }));
            }
            for task in tasks {
                task.await;
            }
            let cut = timeout(Duration::from_millis(1), pending::<()>()).await;
            assert_eq!(cut, Err(Elapsed));
            assert_eq!(timeout(Duration::from_secs(60), async { 5 }).await, Ok(5));
            order.take()
        });
        assert_eq!(order, [1, 3, 6, 9]);
    });
}

#[test]
fn an_alarm_ends_each_wait_at_its_own_limit() {
    on_each_driver(|io| {
        let runtime = start(io, 1);
        runtime.block_on_worker(0, || async {
            let mut alarm = Alarm::default();
            let begun = now();
            // Later, sooner and later again than the deadline that is set.
            for millis in [3_600_000, 3, 7, 5, 9] {
                let deadline = begun + Duration::from_millis(millis);
                let mut is_due = false;
                let mut polls = 0;
                poll_fn(|context| {
                    polls += 1;
                    is_due = alarm.poll_until(deadline, context).is_ready();
                    // The first wait is given up at once, as when something else comes first.
                    if is_due || millis == 3_600_000 {
                        return Poll::Ready(());
                    }
                    Poll::Pending
                })
                .await;
                assert_eq!(is_due, millis != 3_600_000);
                assert!(!is_due || deadline <= now());
                assert!(polls <= 3, "{polls} polls");
            }
        });
        runtime.handle().shutdown(Duration::ZERO);
        runtime.wait().unwrap();
    });
}

#[test]
fn an_alarm_wakes_the_task_that_has_it_now() {
    on_each_driver(|io| {
        let runtime = start(io, 1);
        runtime.block_on_worker(0, || async {
            let mut alarm = Alarm::default();
            let deadline = now() + Duration::from_millis(3);
            let polled = poll_fn(|context| Poll::Ready(alarm.poll_until(deadline, context)));
            assert!(polled.await.is_pending());
            let other = spawn(async move {
                poll_fn(|context| alarm.poll_until(deadline, context)).await;
            });
            assert!(timeout(Duration::from_secs(10), other).await.is_ok());
        });
    });
}

#[test]
fn a_hundred_thousand_cancelled_timeouts_leave_nothing() {
    on_each_driver(|io| {
        let runtime = start(io, 1);
        runtime.block_on_worker(0, || async {
            for _ in 0..100_000 {
                let _ = timeout(Duration::from_secs(3600), async {}).await;
            }
            let worker = worker::current();
            assert_eq!(worker.timers.borrow().next_expiry(), None);
        });
    });
}

#[test]
fn locals_hooks_and_helpers() {
    on_each_driver(|io| {
        let runtime = start(io, 2);
        runtime.block_on_worker(1, || async {
            assert_eq!((worker_index(), worker_count()), (1, 2));
            assert!(local::<Cell<u32>>().is_none());
            set_local(Rc::new(Cell::new(1u32)));
            let turns = local::<Cell<u32>>().unwrap();
            on_tick_end(Box::new(move || turns.set(turns.get() + 1)));
            yield_now().await;
            sleep(Duration::from_millis(1)).await;
            assert!(1 < local::<Cell<u32>>().unwrap().get());
            let name = blocking(|| std::thread::current().name().map(str::to_owned)).await;
            assert_eq!(name.as_deref(), Some("helper-0"));
        });
    });
}

#[test]
fn what_a_hook_spawns_runs_in_the_same_turn() {
    on_each_driver(|io| {
        let runtime = start(io, 1);
        runtime.block_on_worker(0, || async {
            let turn = Rc::new(Cell::new(0u32));
            let ran = Rc::new(RefCell::new(Vec::new()));
            let (turn_of_hook, ran_of_hook) = (turn.clone(), ran.clone());
            on_tick_end(Box::new(move || {
                let number = turn_of_hook.get() + 1;
                turn_of_hook.set(number);
                let (turn, ran) = (turn_of_hook.clone(), ran_of_hook.clone());
                if number <= 3 {
                    spawn_background(async move { ran.borrow_mut().push((number, turn.get())) });
                }
            }));
            while turn.get() < 5 {
                sleep(Duration::from_millis(1)).await;
            }
            assert_eq!(*ran.borrow(), [(1, 1), (2, 2), (3, 3)]);
        });
    });
}

/// Two workers wake each other's tasks as fast as they can; no wake-up may be lost.
#[test]
fn a_storm_of_wakes_between_workers() {
    on_each_driver(|io| {
        const TASK_COUNT: usize = 20;
        const ROUND_COUNT: usize = 200;
        let runtime = start(io, 3);
        let sums: Vec<usize> = (0..3)
            .map(|own| {
                runtime.block_on_worker(own, move || async move {
                    let tasks: Vec<_> = (0..TASK_COUNT)
                        .map(|task| {
                            spawn(async move {
                                let mut sum = 0;
                                for round in 0..ROUND_COUNT {
                                    sum += call_on((own + task + round) % 3, || 1).await;
                                }
                                sum
                            })
                        })
                        .collect();
                    let mut sum = 0;
                    for task in tasks {
                        sum += task.await;
                    }
                    sum
                })
            })
            .collect();
        assert_eq!(sums, [TASK_COUNT * ROUND_COUNT; 3]);
    });
}

#[test]
fn foreign_threads_wake_tasks() {
    on_each_driver(|io| {
        let runtime = start(io, 1);
        let (reply, awaited) = oneshot();
        let thread = std::thread::Builder::new()
            .spawn(move || reply.deliver(9))
            .unwrap();
        assert_eq!(runtime.block_on_worker(0, || awaited.receive()), 9);
        thread.join().unwrap();
    });
}

#[test]
fn the_end_waits_for_tasks_and_tells_them() {
    on_each_driver(|io| {
        let runtime = start(io, 2);
        let log = Arc::new(Mutex::new(Vec::new()));
        for worker in 0..2 {
            let log = log.clone();
            let job = move || {
                spawn(async move {
                    shutdown().await;
                    assert!(shutdown_requested());
                    // Still served: timers, and the other worker.
                    sleep(Duration::from_millis(2)).await;
                    call_on(1 - worker, || ()).await;
                    log.lock().push(worker);
                });
                spawn_background(pending::<()>());
            };
            runtime.handle().send_to(worker, Box::new(job));
        }
        runtime.block_on_worker(0, || async {});
        runtime.block_on_worker(1, || async {});
        runtime.handle().shutdown(Duration::from_secs(60));
        assert_eq!(runtime.wait().unwrap(), Outcome { cut_count: 0 });
        let mut ended = std::mem::take(&mut *log.lock());
        ended.sort_unstable();
        assert_eq!(ended, [0, 1]);
    });
}

#[test]
fn the_end_cuts_what_outlasts_its_patience() {
    on_each_driver(|io| {
        let runtime = start(io, 2);
        runtime.block_on_worker(0, || async {
            spawn(pending::<()>());
        });
        runtime.handle().shutdown(Duration::from_millis(5));
        assert_eq!(runtime.wait().unwrap(), Outcome { cut_count: 1 });
    });
}

#[test]
fn dropping_the_runtime_ends_it() {
    on_each_driver(|io| {
        let alive = Arc::new(());
        let inner = alive.clone();
        let runtime = start(io, 2);
        runtime.block_on_worker(1, || async move {
            spawn(async move {
                let _inner = inner;
                pending::<()>().await;
            });
        });
        drop(runtime);
        assert_eq!(Arc::strong_count(&alive), 1);
    });
}

/// Ten thousand connections, each of which leaves some work behind.
#[test]
fn the_end_drops_many_tasks_and_what_they_spawn() {
    struct Leaving(Arc<()>);
    impl Drop for Leaving {
        fn drop(&mut self) {
            let alive = self.0.clone();
            spawn(async move {
                let _alive = alive;
                pending::<()>().await;
            });
        }
    }
    on_each_driver(|io| {
        let alive = Arc::new(());
        let inner = alive.clone();
        let runtime = start(io, 1);
        runtime.block_on_worker(0, || async move {
            for _ in 0..10_000 {
                let leaving = Leaving(inner.clone());
                spawn(async move {
                    let _leaving = leaving;
                    pending::<()>().await;
                });
            }
        });
        drop(runtime);
        assert_eq!(Arc::strong_count(&alive), 1);
    });
}

#[test]
fn a_worker_that_dies_ends_the_others() {
    on_each_driver(|io| {
        let runtime = start(io, 2);
        runtime
            .handle()
            .send_to(1, Box::new(|| panic!("a test's panic")));
        let waited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| runtime.wait()));
        assert!(waited.is_err(), "the panic is handed on");
    });
}
