//! Files through the worker's own disk.

use std::rc::Rc;
use std::task::Poll;

use env::{Disk, DiskErrorKind, FileAccess, IoBuffer, OpenOptions, WriteDurability};

use super::{TestPath, on_each_driver, start};
use crate::*;

const NEW: OpenOptions = OpenOptions {
    write: true,
    create: true,
    exclusive: true,
    access: FileAccess::Direct,
};

#[test]
fn writes_read_back_and_ends_are_short() {
    on_each_driver(|io| {
        let runtime = start(io, 1);
        runtime.block_on_worker(0, || async {
            let path = TestPath::new("read-back");
            let disk = disk();
            let file = disk.open(&path.0, NEW).unwrap();
            disk.allocate(&file, 16 << 10).unwrap();
            for (offset, durability) in [
                (4096, WriteDurability::Sync),
                (8192, WriteDurability::Volatile),
            ] {
                let mut buffer = IoBuffer::zeroed(4096);
                buffer.fill(7);
                let (_, result) = disk.write(&file, offset, buffer, durability).await;
                assert_eq!(result, Ok(4096));
            }
            disk.sync(&file).await.unwrap();
            let (buffer, result) = disk.read(&file, 4096, IoBuffer::zeroed(16 << 10)).await;
            assert_eq!(result, Ok(12 << 10));
            assert!(buffer[..8192].iter().all(|&byte| byte == 7));
            assert!(buffer[8192..12288].iter().all(|&byte| byte == 0));
        });
    });
}

#[test]
fn what_may_block_for_long_gives_its_result() {
    on_each_driver(|io| {
        let runtime = start(io, 1);
        runtime.block_on_worker(0, || async {
            let (path, other) = (TestPath::new("later"), TestPath::new("later-other"));
            let disk = disk();
            let file = disk.open(&path.0, NEW).unwrap();
            let length = 1 << 20;
            let growing = file.clone();
            let allocate = Box::new(move |disk: &dyn Disk| disk.allocate(&growing, length));
            disk.later(allocate).await.unwrap();
            assert_eq!(disk.length(&file), Ok(length));
            let (from, to) = (path.0.clone(), other.0.clone());
            let rename = move |disk: &dyn Disk| disk.rename(&from, &to);
            disk.later(Box::new(rename.clone())).await.unwrap();
            let missing = disk
                .later(Box::new(rename))
                .await
                .map_err(|error| error.kind);
            assert_eq!(missing, Err(DiskErrorKind::NotFound));
            let path = other.0.clone();
            let remove = Box::new(move |disk: &dyn Disk| disk.remove(&path));
            disk.later(remove).await.unwrap();
            assert!(disk.open(&other.0, NEW).is_ok(), "the name is free");
        });
    });
}

/// For instance, hundreds of passwords that are hashed.
#[test]
fn long_calls_keep_no_file_from_growing() {
    on_each_driver(|io| {
        let runtime = start(io, 1);
        runtime.block_on_worker(0, || async {
            let (begin, begun) = std::sync::mpsc::channel();
            let (release, released) = std::sync::mpsc::channel::<()>();
            let long = spawn(blocking(move || {
                begin.send(()).unwrap();
                released.recv()
            }));
            while begun.try_recv().is_err() {
                yield_now().await;
            }
            let path = TestPath::new("beside-long-calls");
            let file = disk().open(&path.0, NEW).unwrap();
            let length = 1 << 20;
            let allocate = Box::new(move |disk: &dyn Disk| disk.allocate(&file, length));
            disk().later(allocate).await.unwrap();
            release.send(()).unwrap();
            assert_eq!(long.await, Ok(()));
        });
    });
}

#[test]
fn many_at_once_and_dropped_ones() {
    on_each_driver(|io| {
        let runtime = start(io, 1);
        runtime.block_on_worker(0, || async {
            let path = TestPath::new("many");
            let disk = disk();
            let file = Rc::new(disk.open(&path.0, NEW).unwrap());
            let tasks: Vec<_> = (0..200u8)
                .map(|number| {
                    let (disk, file) = (disk.clone(), file.clone());
                    spawn(async move {
                        let mut buffer = IoBuffer::zeroed(4096);
                        buffer.fill(number);
                        let offset = u64::from(number) * 4096;
                        let (_, result) = disk
                            .write(&file, offset, buffer, WriteDurability::Volatile)
                            .await;
                        assert_eq!(result, Ok(4096));
                        // Dropped before its end: the buffer must stay alive nevertheless.
                        let mut dropped = disk.read(&file, offset, IoBuffer::zeroed(4096));
                        let _ = std::future::poll_fn(|context| {
                            Poll::Ready(dropped.as_mut().poll(context).is_ready())
                        })
                        .await;
                        drop(dropped);
                        let (buffer, result) =
                            disk.read(&file, offset, IoBuffer::zeroed(4096)).await;
                        assert_eq!(result, Ok(4096));
                        assert!(buffer.iter().all(|&byte| byte == number));
                    })
                })
                .collect();
            for task in tasks {
                task.await;
            }
        });
    });
}

#[test]
fn errors_name_what_failed() {
    on_each_driver(|io| {
        let runtime = start(io, 1);
        runtime.block_on_worker(0, || async {
            let path = TestPath::new("read-only");
            let disk = disk();
            drop(disk.open(&path.0, NEW).unwrap());
            let read_only = OpenOptions {
                write: false,
                create: false,
                exclusive: false,
                ..NEW
            };
            let file = disk.open(&path.0, read_only).unwrap();
            let (buffer, result) = disk
                .write(&file, 0, IoBuffer::zeroed(4096), WriteDurability::Sync)
                .await;
            assert_eq!(buffer.len(), 4096);
            let error = result.unwrap_err();
            assert_eq!(
                (error.operation, error.path.as_deref()),
                ("write", Some(&*path.0))
            );
        });
    });
}
