//! Files through the worker's own ring, without a helper thread.

use std::future::Future;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use env::linux::LinuxFile;
use env::{DiskError, File, IoBuffer, IoFuture, IoResult, WriteDurability};
use io_uring::{opcode, squeue, types};
use rustix::io::{Errno, ReadWriteFlags};

use super::super::files::Transfers;
use super::UringDriver;
use super::token::{Kind, token};

/// A short read that is no multiple of this has reached the end of the file: devices transfer
/// sectors.
const SECTOR_BYTES: usize = 512;

/// A read, write or sync under way. It lives until its last completion, even if its future is gone
/// (U1).
pub(super) struct FileOperation {
    /// Keeps the descriptor open.
    file: File,
    what: What,
    /// Offset of the buffer's first byte in the file.
    offset: u64,
    /// Empty for a sync.
    buffer: Option<IoBuffer>,
    /// Bytes of the buffer that are transferred.
    transferred: usize,
    /// Set by the last completion.
    result: Option<Result<usize, Errno>>,
    /// The task that waits.
    waker: Option<Waker>,
    /// No task waits any more: the last completion frees the slot.
    is_abandoned: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Read,
    Write(WriteDurability),
    Sync,
}

impl FileOperation {
    pub(super) fn is_done(&self) -> bool {
        self.result.is_some()
    }

    /// Returns the operation for what is left.
    fn entry(&mut self, index: usize) -> squeue::Entry {
        let fd = types::Fd(LinuxFile::of(&self.file).as_fd().as_raw_fd());
        let at = self.offset + stdx::to_u64(self.transferred);
        let rest = match &mut self.buffer {
            Some(buffer) => &mut buffer[self.transferred..],
            None => &mut [],
        };
        let (start, length) = (rest.as_mut_ptr(), stdx::to_u32(rest.len()));
        let entry = match self.what {
            What::Read => opcode::Read::new(fd, start, length).offset(at).build(),
            What::Write(durability) => {
                let flags = match durability {
                    WriteDurability::Volatile => ReadWriteFlags::empty(),
                    WriteDurability::Sync => ReadWriteFlags::DSYNC,
                };
                let write = opcode::Write::new(fd, start, length).offset(at);
                write.rw_flags(flags.bits().cast_signed()).build()
            }
            What::Sync => opcode::Fsync::new(fd)
                .flags(types::FsyncFlags::DATASYNC)
                .build(),
        };
        entry.user_data(token(Kind::File, index))
    }

    /// Handles a completion. Returns `true` if there is something left to do.
    fn complete(&mut self, outcome: Result<usize, Errno>) -> bool {
        let count = match outcome {
            Ok(count) => count,
            Err(Errno::INTR | Errno::AGAIN) => return true,
            Err(error) => {
                self.result = Some(Err(error));
                return false;
            }
        };
        self.transferred += count;
        let length = self.buffer.as_ref().map_or(0, |buffer| buffer.len());
        assert!(
            self.transferred <= length,
            "the kernel stays within the buffer"
        );
        let is_over = match self.what {
            What::Sync => true,
            What::Read => {
                self.transferred == length || count == 0 || !count.is_multiple_of(SECTOR_BYTES)
            }
            What::Write(_) => self.transferred == length,
        };
        if is_over {
            self.result = Some(Ok(self.transferred));
        } else if count == 0 {
            self.result = Some(Err(Errno::IO));
        }
        self.result.is_none()
    }
}

impl UringDriver {
    fn start_file(
        self: &Rc<Self>,
        file: &File,
        what: What,
        offset: u64,
        buffer: Option<IoBuffer>,
    ) -> FileFuture {
        let mut files = self.files.borrow_mut();
        let index = files.insert(FileOperation {
            file: file.clone(),
            what,
            offset,
            buffer,
            transferred: 0,
            result: None,
            waker: None,
            is_abandoned: false,
        });
        let entry = files.get_mut(index).expect("just inserted").entry(index);
        drop(files);
        self.push(&entry);
        FileFuture {
            driver: self.clone(),
            index,
            is_taken: false,
        }
    }

    /// Handles a completion of a file operation.
    pub(super) fn complete_file(&self, index: usize, result: i32) {
        let outcome = usize::try_from(result).map_err(|_| Errno::from_raw_os_error(-result));
        let mut files = self.files.borrow_mut();
        let operation = files
            .get_mut(index)
            .expect("a slot lives until its last completion");
        if operation.complete(outcome) {
            let entry = operation.entry(index);
            self.push(&entry);
            return;
        }
        if operation.is_abandoned {
            files.remove(index);
            return;
        }
        let waker = operation.waker.take();
        drop(files);
        waker.into_iter().for_each(Waker::wake);
    }
}

/// Waits for a file operation; returns its buffer and result.
struct FileFuture {
    driver: Rc<UringDriver>,
    index: usize,
    /// The result was returned; the slot is free.
    is_taken: bool,
}

impl Future for FileFuture {
    type Output = (File, Option<IoBuffer>, Result<usize, Errno>);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        assert!(!self.is_taken, "a file operation gives its result once");
        let mut files = self.driver.files.borrow_mut();
        let operation = files
            .get_mut(self.index)
            .expect("a slot lives until its future is done");
        if !operation.is_done() {
            operation.waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        let operation = files.remove(self.index).expect("just seen");
        drop(files);
        self.is_taken = true;
        let result = operation.result.expect("just seen");
        Poll::Ready((operation.file, operation.buffer, result))
    }
}

impl Drop for FileFuture {
    fn drop(&mut self) {
        if self.is_taken {
            return;
        }
        let mut files = self.driver.files.borrow_mut();
        let Some(operation) = files.get_mut(self.index) else {
            return;
        };
        if operation.is_done() {
            files.remove(self.index);
        } else {
            operation.is_abandoned = true;
            operation.waker = None;
        }
    }
}

/// Transfers over the worker's ring.
pub(super) struct RingTransfers {
    driver: Rc<UringDriver>,
}

impl RingTransfers {
    pub(super) fn new(driver: Rc<UringDriver>) -> Self {
        Self { driver }
    }

    fn transfer(
        &self,
        file: &File,
        what: What,
        offset: u64,
        buffer: IoBuffer,
    ) -> IoFuture<IoResult> {
        let operation = match what {
            What::Read => "read",
            What::Write(_) => "write",
            What::Sync => "sync",
        };
        let future = self.driver.start_file(file, what, offset, Some(buffer));
        Box::pin(async move {
            let (file, buffer, result) = future.await;
            let buffer = buffer.expect("a transfer keeps its buffer");
            (
                buffer,
                result.map_err(|error| LinuxFile::of(&file).error(operation, error)),
            )
        })
    }
}

impl Transfers for RingTransfers {
    fn read(&self, file: &File, offset: u64, buffer: IoBuffer) -> IoFuture<IoResult> {
        self.transfer(file, What::Read, offset, buffer)
    }

    fn write(
        &self,
        file: &File,
        offset: u64,
        buffer: IoBuffer,
        durability: WriteDurability,
    ) -> IoFuture<IoResult> {
        self.transfer(file, What::Write(durability), offset, buffer)
    }

    fn sync(&self, file: &File) -> IoFuture<Result<(), DiskError>> {
        let future = self.driver.start_file(file, What::Sync, 0, None);
        Box::pin(async move {
            let (file, _, result) = future.await;
            result
                .map(|_| ())
                .map_err(|error| LinuxFile::of(&file).error("sync", error))
        })
    }
}
