//! The simulated disk as the storage crates see it.

use std::fmt;
use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::task::Poll;

use sync::Mutex;

use super::clock::SimClock;
use super::late::LateWork;
use super::names::Inode;
use super::world::{Action, DiskOptions, FaultCounts, Faults, Outbox, World, failed};
use crate::IoBuffer;
use crate::clock::{Clock as _, Instant};
use crate::disk::{
    Disk, DiskError, DiskErrorKind, DiskWork, File, FileId, IoFuture, IoResult, OpenOptions,
    WriteDurability,
};

/// One incarnation of a disk that misbehaves within the [fault model](super). Clones are handles on
/// the same disk, one for each simulated worker.
#[derive(Clone)]
pub struct SimDisk {
    world: Arc<Mutex<World>>,
    clock: SimClock,
}

/// The contents of a [`File`] of this disk.
struct SimFile {
    /// The incarnation that opened it.
    world: Weak<Mutex<World>>,
    inode: Inode,
    path: PathBuf,
    /// Alive while this open file has the lock.
    lock: Mutex<Option<Arc<()>>>,
}

impl FileId for SimFile {
    fn as_any(&self) -> &(dyn std::any::Any + Send + Sync) {
        self
    }
}

impl SimDisk {
    /// An empty disk. `clock` decides when slow operations complete; if the options have a delay,
    /// an executor must move it.
    pub fn new(options: DiskOptions, clock: SimClock) -> Self {
        Self {
            world: Arc::new(Mutex::new(World::new(options))),
            clock,
        }
    }

    /// An empty disk without faults or delays, all of whose futures are ready at once.
    pub fn with_seed(seed: u64) -> Self {
        Self::new(
            DiskOptions {
                seed,
                ..DiskOptions::default()
            },
            SimClock::new(),
        )
    }

    /// The power fails. Returns the disk as the next incarnation finds it. From now on each
    /// operation on the old one fails.
    pub fn crash(&self) -> Self {
        let survivor = self.world.lock().crash(self.clock.now());
        Self {
            world: Arc::new(Mutex::new(survivor)),
            clock: self.clock.clone(),
        }
    }

    /// The process dies and the machine lives on: completed writes and names stay, durable or not.
    pub fn kill(&self) -> Self {
        let survivor = self.world.lock().kill(self.clock.now());
        Self {
            world: Arc::new(Mutex::new(survivor)),
            clock: self.clock.clone(),
        }
    }

    /// A separate disk with the same files, for experiments. No operation may be under way.
    #[must_use]
    pub fn copy(&self, seed: u64, clock: SimClock) -> Self {
        let copy = self.world.lock().copy(seed);
        Self {
            world: Arc::new(Mutex::new(copy)),
            clock,
        }
    }

    /// Changes the chances of EIO from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.world.lock().options.faults = faults;
    }

    /// From now on so many of a thousand flushes are confirmed and not done (F7), for tests of what
    /// finds that.
    pub fn lose_flushes(&self, permille: u32) {
        self.world.lock().options.lost_flush_permille = permille;
    }

    /// How often it has misbehaved, in this incarnation and those before.
    pub fn fault_counts(&self) -> FaultCounts {
        self.world.lock().counts
    }

    /// Changes the capacity from now on; existing files stay.
    pub fn set_capacity(&self, capacity_bytes: u64) {
        self.world.lock().options.capacity_bytes = capacity_bytes;
    }

    /// Sum of the lengths of all files, which the capacity bounds.
    pub fn used_bytes(&self) -> u64 {
        self.world.lock().used_bytes()
    }

    /// Flips one bit on the medium (F6), for tests of checksums.
    ///
    /// # Panics
    /// If there is no such file.
    pub fn damage(&self, path: &Path, offset: u64, bit: u32) {
        self.world.lock().damage(path, offset, bit);
    }

    /// From now on the process has no descriptor for one more file: files cannot be opened or made,
    /// nor directories read or synced.
    pub fn take_descriptors(&self) {
        self.world.lock().lacks_descriptors = true;
    }

    /// Ends that.
    pub fn give_descriptors(&self) {
        self.world.lock().lacks_descriptors = false;
    }

    /// From now on [`Disk::later`] only queues its work, as if all helper threads were busy.
    pub fn hold_late_work(&self) {
        self.world.lock().held.get_or_insert_default();
    }

    /// Ends that. Returns the work that was queued meanwhile.
    pub fn release_late_work(&self) -> Vec<LateWork> {
        self.world.lock().held.take().unwrap_or_default()
    }

    /// Runs `act` on the living world, or returns the error of a dead one.
    fn alive<T>(
        &self,
        operation: &'static str,
        act: impl FnOnce(&mut World) -> Result<T, DiskError>,
    ) -> Result<T, DiskError> {
        let mut world = self.world.lock();
        if !world.is_alive {
            return Err(failed(operation));
        }
        world.settle(self.clock.now());
        act(&mut world)
    }

    /// The inode of a file that this incarnation opened.
    fn inode(&self, file: &File, operation: &'static str) -> Result<Inode, DiskError> {
        let sim: &SimFile = file
            .downcast()
            .expect("a file is used with the disk that opened it");
        let is_ours = std::ptr::eq(sim.world.as_ptr(), Arc::as_ptr(&self.world));
        if is_ours {
            Ok(sim.inode)
        } else {
            Err(failed(operation))
        }
    }

    /// A future of the result that the operation leaves in `outbox` at `due`.
    fn completion<T: 'static>(&self, due: Instant, outbox: Outbox<T>) -> IoFuture<T> {
        let disk = self.clone();
        let mut is_registered = false;
        Box::pin(poll_fn(move |context| {
            // A dead world completes nothing more; its tasks are dropped with it.
            let _ = disk.alive("complete", |_| Ok(()));
            if let Some(result) = outbox.lock().take() {
                return Poll::Ready(result);
            }
            if !is_registered {
                is_registered = true;
                disk.clock.wake_at(due, context.waker().clone());
            }
            Poll::Pending
        }))
    }

    fn transfer(
        &self,
        file: &File,
        operation: &'static str,
        buffer: IoBuffer,
        action: impl FnOnce(IoBuffer, Outbox<IoResult>) -> Action,
    ) -> IoFuture<IoResult> {
        let inode = match self.inode(file, operation) {
            Ok(inode) if self.world.lock().is_alive => inode,
            Ok(_) => return Box::pin(std::future::ready((buffer, Err(failed(operation))))),
            Err(error) => return Box::pin(std::future::ready((buffer, Err(error)))),
        };
        let outbox = Outbox::default();
        let action = action(buffer, outbox.clone());
        let due = self.world.lock().start(self.clock.now(), inode, action);
        self.completion(due, outbox)
    }
}

impl Disk for SimDisk {
    fn open(&self, path: &Path, options: OpenOptions) -> Result<File, DiskError> {
        let inode = self.alive("open", |world| {
            world.take_descriptor("open", path)?;
            let error = |kind| DiskError {
                kind,
                operation: "open",
                path: Some(path.to_path_buf()),
                os_error: 0,
            };
            match world.names.find(path) {
                Some(_) if options.exclusive => Err(error(DiskErrorKind::Exists)),
                Some(inode) => Ok(inode),
                None if !options.create || !has_parent(world, path) => {
                    Err(error(DiskErrorKind::NotFound))
                }
                None => {
                    let inode = world.next_number();
                    world.files.insert(inode, super::world::Inodal::default());
                    world.names.create(path, inode);
                    Ok(inode)
                }
            }
        })?;
        let (world, path) = (Arc::downgrade(&self.world), path.to_path_buf());
        Ok(File::new(Arc::new(SimFile {
            world,
            inode,
            path,
            lock: Mutex::new(None),
        })))
    }

    fn read(&self, file: &File, offset: u64, buffer: IoBuffer) -> IoFuture<IoResult> {
        self.transfer(file, "read", buffer, |buffer, outbox| Action::Read {
            offset,
            buffer,
            outbox,
        })
    }

    fn write(
        &self,
        file: &File,
        offset: u64,
        buffer: IoBuffer,
        durability: WriteDurability,
    ) -> IoFuture<IoResult> {
        self.transfer(file, "write", buffer, |buffer, outbox| Action::Write {
            offset,
            buffer,
            durability,
            outbox,
        })
    }

    fn write_now(&self, file: &File, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        let inode = self.inode(file, "write")?;
        self.alive("write", |world| {
            let written = world.complete_write(inode, offset, bytes, WriteDurability::Volatile);
            written.map(drop)
        })
    }

    fn sync(&self, file: &File) -> IoFuture<Result<(), DiskError>> {
        let started = self.inode(file, "sync").and_then(|inode| {
            self.alive("sync", |world| {
                let outbox = Outbox::default();
                let before = world.next_number();
                let action = Action::Sync {
                    before,
                    outbox: outbox.clone(),
                };
                Ok((world.start(self.clock.now(), inode, action), outbox))
            })
        });
        match started {
            Ok((due, outbox)) => self.completion(due, outbox),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn allocate(&self, file: &File, length: u64) -> Result<(), DiskError> {
        let inode = self.inode(file, "allocate")?;
        self.alive("allocate", |world| {
            let length = length.max(world.file(inode).seen.length());
            world.set_length(inode, length)
        })
    }

    fn set_length(&self, file: &File, length: u64) -> Result<(), DiskError> {
        let inode = self.inode(file, "set the length of")?;
        self.alive("set the length of", |world| world.set_length(inode, length))
    }

    fn length(&self, file: &File) -> Result<u64, DiskError> {
        let inode = self.inode(file, "read the length of")?;
        self.alive("read the length of", |world| {
            Ok(world.file(inode).seen.length())
        })
    }

    fn remove(&self, path: &Path) -> Result<(), DiskError> {
        self.alive("remove", |world| {
            found("remove", path, world.names.remove(path))
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.alive("rename", |world| {
            found("rename", to, has_parent(world, to))?;
            found("rename", from, world.names.rename(from, to))
        })
    }

    fn create_directory(&self, path: &Path) -> Result<(), DiskError> {
        self.alive("create directory", |world| {
            world.names.create_directory(path);
            Ok(())
        })
    }

    fn list(&self, path: &Path) -> Result<Vec<PathBuf>, DiskError> {
        self.alive("list", |world| {
            world.take_descriptor("list", path)?;
            found("list", path, world.names.has_directory(path))?;
            Ok(world.names.list(path))
        })
    }

    fn sync_directory(&self, path: &Path) -> Result<(), DiskError> {
        self.alive("sync directory", |world| {
            world.take_descriptor("sync directory", path)?;
            found("sync directory", path, world.names.has_directory(path))?;
            world.names.sync_directory(path);
            Ok(())
        })
    }

    fn later(&self, work: DiskWork) -> IoFuture<Result<(), DiskError>> {
        let mut world = self.world.lock();
        let Some(held) = &mut world.held else {
            drop(world);
            return Box::pin(std::future::ready(work(self)));
        };
        let (late, answer) = LateWork::new(self.clone(), work);
        held.push(late);
        answer
    }

    fn lock(&self, file: &File) -> Result<(), DiskError> {
        let inode = self.inode(file, "lock")?;
        let sim: &SimFile = file.downcast().expect("`inode` checked the kind of file");
        self.alive("lock", |world| {
            let mut ours = sim.lock.lock();
            let holder = world.file(inode).lock.upgrade();
            if holder.is_some() && ours.is_none() {
                let (kind, path) = (DiskErrorKind::Busy, Some(sim.path.clone()));
                return Err(DiskError {
                    kind,
                    operation: "lock",
                    path,
                    os_error: 0,
                });
            }
            let held = ours.get_or_insert_default();
            world.file(inode).lock = Arc::downgrade(held);
            Ok(())
        })
    }
}

fn has_parent(world: &World, path: &Path) -> bool {
    path.parent()
        .is_none_or(|parent| world.names.has_directory(parent))
}

fn found(operation: &'static str, path: &Path, is_there: bool) -> Result<(), DiskError> {
    if is_there {
        return Ok(());
    }
    let (kind, path) = (DiskErrorKind::NotFound, Some(path.to_path_buf()));
    Err(DiskError {
        kind,
        operation,
        path,
        os_error: 0,
    })
}

impl fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SimDisk")
    }
}
