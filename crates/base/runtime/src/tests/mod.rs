//! Every behaviour of the runtime, on each driver that this machine has.

mod coroutines;
mod files;
mod sockets;
mod tasks;

use std::path::PathBuf;

use crate::{DriverKind, Io, Options, Preemption, Runtime};

/// Runs `test` on each driver.
fn on_each_driver(test: impl Fn(Io)) {
    test(Io::Epoll);
    match crate::driver::probe_uring() {
        Ok(()) => test(Io::Uring),
        // A container may refuse it; then only the loop over epoll is tested.
        Err(lacks) => println!("io_uring is not tested: {lacks}"),
    }
}

fn start(io: Io, worker_count: usize) -> Runtime {
    let options = Options {
        worker_count,
        io,
        pin: false,
        preemption: Preemption::Always,
        helper_count: 1,
    };
    let runtime = Runtime::start(options, || {}).unwrap();
    let is_uring = runtime.handle().driver().kind == DriverKind::Uring;
    assert_eq!(is_uring, io == Io::Uring);
    runtime
}

/// A path that no other test uses; removed when dropped.
struct TestPath(PathBuf);

impl TestPath {
    fn new(name: &str) -> Self {
        let name = format!("plateau-runtime-{}-{name}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for TestPath {
    fn drop(&mut self) {
        // A test may have removed it; the system cleans the rest.
        let _ = std::fs::remove_file(&self.0);
    }
}
