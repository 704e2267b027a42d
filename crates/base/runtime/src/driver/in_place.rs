//! When a worker waits for a durable write itself.
//!
//! A write over the ring, or by a helper thread, lets the worker run other tasks meanwhile. One
//! client that commits alone has no other tasks, and pays for it: threads of the kernel complete
//! the write, and then wake the worker. `docs/bench/single.md` has what that costs.
//!
//! (P1) A worker waits itself only if one client alone has been polled [`ALONE_POLLS`] times. The
//!      first request of another client ends that, so it is delayed by one write at the most.
//! (P2) Between two such writes its client is polled. So a flusher that goes on for the clients of
//!      other workers does not keep this one's client waiting.
//! (P3) The write is expected to take no longer than a task may compute at once.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use env::linux::{LinuxFile, SystemClock};
use env::{Clock as _, DiskError, File, IoBuffer, IoFuture, IoResult, WriteDurability};
use metrics::Counter;

use super::files::Transfers;

/// Polls of one client, and of no other one between them, after which it counts as alone.
const ALONE_POLLS: u32 = 32;

/// The longest time that a worker is expected to wait: a slice of a task that computes.
const EXPECTED_MAX: Duration = Duration::from_micros(200);

/// The most bytes of a write that a worker waits for: the log of a small transaction.
const BYTES_MAX: usize = 64 << 10;

/// See the module's head.
#[derive(Debug, Default)]
pub(crate) struct InPlace {
    /// The slot of the client that was polled last.
    last: Cell<usize>,
    /// Its polls since another one's.
    polls: Cell<u32>,
    /// It was polled since the last write in place.
    is_due: Cell<bool>,
    /// What a durable write takes: the last one if that was slower than those before it, and an
    /// average otherwise. So a slow write counts at once, and is forgotten slowly.
    expected: Cell<Duration>,
    /// Writes in place.
    count: Arc<Counter>,
}

impl InPlace {
    /// The state of a worker without clients, which counts its writes in `count`.
    pub(crate) fn new(count: Arc<Counter>) -> Self {
        Self {
            count,
            ..Self::default()
        }
    }

    /// Notes that a client's task is polled.
    pub(crate) fn note_client(&self, slot: usize) {
        let is_same = self.last.replace(slot) == slot;
        let polls = if is_same { self.polls.get() } else { 0 };
        self.polls.set(polls.saturating_add(1));
        self.is_due.set(true);
    }

    /// Whether the worker waits for the durable write that is next. If it does, the one after that
    /// is not before the client's next poll.
    fn begin(&self) -> bool {
        let is_alone = ALONE_POLLS <= self.polls.get();
        let is_quick = self.expected.get() <= EXPECTED_MAX;
        let begins = is_alone && is_quick && self.is_due.replace(false);
        if begins {
            self.count.increment();
        }
        begins
    }

    /// Notes what a durable write of at most [`BYTES_MAX`] has taken, wherever it was waited for.
    fn note_write(&self, took: Duration) {
        let average = (self.expected.get() * 7 + took) / 8;
        self.expected.set(average.max(took));
    }
}

/// The transfers of a driver, but for the writes that the worker waits for.
pub(super) struct InPlaceTransfers<T> {
    transfers: T,
    in_place: Rc<InPlace>,
}

impl<T> InPlaceTransfers<T> {
    pub(super) fn new(transfers: T, in_place: &Rc<InPlace>) -> Self {
        let in_place = Rc::clone(in_place);
        Self {
            transfers,
            in_place,
        }
    }
}

impl<T: Transfers> Transfers for InPlaceTransfers<T> {
    fn read(&self, file: &File, offset: u64, buffer: IoBuffer) -> IoFuture<IoResult> {
        self.transfers.read(file, offset, buffer)
    }

    fn write(
        &self,
        file: &File,
        offset: u64,
        buffer: IoBuffer,
        durability: WriteDurability,
    ) -> IoFuture<IoResult> {
        if durability == WriteDurability::Volatile || BYTES_MAX < buffer.len() {
            return self.transfers.write(file, offset, buffer, durability);
        }
        let begun_at = SystemClock.now();
        let in_place = Rc::clone(&self.in_place);
        if in_place.begin() {
            let outcome = LinuxFile::of(file).write(offset, &buffer, durability);
            in_place.note_write(SystemClock.now().since(begun_at));
            return Box::pin(std::future::ready((buffer, outcome)));
        }
        let write = self.transfers.write(file, offset, buffer, durability);
        Box::pin(async move {
            let written = write.await;
            in_place.note_write(SystemClock.now().since(begun_at));
            written
        })
    }

    fn sync(&self, file: &File) -> IoFuture<Result<(), DiskError>> {
        self.transfers.sync(file)
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::io;
    use std::task::{Context, Poll, Waker};

    use env::linux::BlockingDisk;
    use env::{Disk as _, FileAccess, OpenOptions};

    use super::*;

    const QUICK: Duration = Duration::from_micros(80);

    fn alone() -> InPlace {
        let in_place = InPlace::default();
        (0..ALONE_POLLS).for_each(|_| in_place.note_client(7));
        in_place.note_write(QUICK);
        in_place
    }

    #[test]
    fn one_client_is_alone_behind_its_polls() {
        let in_place = InPlace::default();
        for _ in 1..ALONE_POLLS {
            in_place.note_client(7);
            assert!(!in_place.begin());
        }
        in_place.note_client(7);
        assert!(in_place.begin());
    }

    #[test]
    fn another_client_ends_it() {
        let in_place = alone();
        in_place.note_client(8);
        assert!(!in_place.begin());
        in_place.note_client(7);
        assert!(!in_place.begin());
    }

    #[test]
    fn clients_that_take_turns_are_never_alone() {
        let in_place = InPlace::default();
        for poll in 0..ALONE_POLLS * 4 {
            in_place.note_client(if poll.is_multiple_of(2) { 7 } else { 8 });
            assert!(!in_place.begin());
        }
    }

    #[test]
    fn a_poll_of_the_client_is_good_for_one_write() {
        let in_place = alone();
        assert!(in_place.begin());
        assert!(!in_place.begin());
        in_place.note_client(7);
        assert!(in_place.begin());
    }

    #[test]
    fn a_slow_write_is_remembered() {
        let in_place = alone();
        in_place.note_write(EXPECTED_MAX);
        assert!(in_place.begin());
        in_place.note_client(7);
        in_place.note_write(EXPECTED_MAX + Duration::from_micros(1));
        assert!(!in_place.begin());
        in_place.note_write(Duration::from_millis(100));
        let mut quick_writes = 0;
        while !in_place.begin() {
            in_place.note_write(QUICK);
            quick_writes += 1;
        }
        assert!((40..80).contains(&quick_writes), "{quick_writes}");
    }

    /// Counts what would go to the kernel or to a helper thread.
    #[derive(Default)]
    struct Counting(Cell<u32>);

    impl Transfers for Counting {
        fn read(&self, _: &File, _: u64, buffer: IoBuffer) -> IoFuture<IoResult> {
            let length = buffer.len();
            Box::pin(ready((buffer, Ok(length))))
        }

        fn write(
            &self,
            _: &File,
            _: u64,
            buffer: IoBuffer,
            _: WriteDurability,
        ) -> IoFuture<IoResult> {
            self.0.set(self.0.get() + 1);
            let length = buffer.len();
            Box::pin(ready((buffer, Ok(length))))
        }

        fn sync(&self, _: &File) -> IoFuture<Result<(), DiskError>> {
            Box::pin(ready(Ok(())))
        }
    }

    /// What is larger, what need not be durable, and a second write behind one poll of the client,
    /// are left to the driver.
    #[test]
    fn a_short_durable_write_of_a_lone_client_is_made_at_once() -> io::Result<()> {
        let path = std::env::temp_dir().join(format!("in-place-{}", std::process::id()));
        let options = OpenOptions {
            write: true,
            create: true,
            exclusive: true,
            access: FileAccess::Buffered,
        };
        let file = BlockingDisk
            .open(&path, options)
            .map_err(io::Error::other)?;
        std::fs::remove_file(&path)?;
        let in_place = Rc::new(InPlace::default());
        let disk = InPlaceTransfers::new(Counting::default(), &in_place);
        (0..ALONE_POLLS).for_each(|_| in_place.note_client(1));
        for (bytes, durability, left) in [
            (4096, WriteDurability::Volatile, 1),
            (BYTES_MAX + 1, WriteDurability::Sync, 2),
            (BYTES_MAX, WriteDurability::Sync, 2),
            (BYTES_MAX, WriteDurability::Sync, 3),
        ] {
            let mut write = disk.write(&file, 0, IoBuffer::zeroed(bytes), durability);
            let polled = write.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            let Poll::Ready((buffer, Ok(written))) = polled else {
                panic!("it is done at once: {polled:?}");
            };
            assert_eq!((buffer.len(), written), (bytes, bytes));
            assert_eq!(disk.transfers.0.get(), left);
        }
        let length = LinuxFile::of(&file).length().map_err(io::Error::other)?;
        assert_eq!(length, stdx::to_u64(BYTES_MAX));
        assert_eq!(in_place.count.value(), 1);
        Ok(())
    }
}
