//! The memory that statements keep: rows that are sorted, grouped, joined or wait to be fetched.
//!
//! Each part of a statement has a [`Share`] with the bytes it keeps. The shares of a statement add
//! up in its [`Memory`], which has a limit (`max_session_mem_used`). Above [`UNCOUNTED_BYTES`] a
//! statement reserves memory from the server's [`MemoryPool`] (`statement_memory_size`), in grains.
//! So small statements touch nothing shared. What sessions keep between statements may be half of
//! the pool at most: otherwise idle sessions could take it all, and others run no statement.
//!
//! (I1) `used` of a memory is the sum of its shares; dropping a share releases its bytes.
//! (I2) `used` <= `reserved` + [`UNCOUNTED_BYTES`], and the pool's `used` is the sum of `reserved`.

use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use std::sync::Arc;

use errcode::{ClientError, ER_OPTION_PREVENTS_STATEMENT, ER_OUT_OF_RESOURCES};
use sync::atomic::{AtomicU64, Ordering};

use crate::Failure;

/// What a statement may keep without the pool: an idle execution keeps as much.
const UNCOUNTED_BYTES: usize = 64 << 10;

/// What is reserved from the pool at a time: about an eighth of what is used, and so much at least
/// and at most. Ten thousand sessions with little more than [`UNCOUNTED_BYTES`] each must fit into
/// the pool, and a large sort should not ask for each row.
const GRAIN_BYTES_MIN: usize = 16 << 10;
const GRAIN_BYTES_MAX: usize = 1 << 20;

/// The grain of a memory with so many bytes.
fn grain(used: usize) -> usize {
    (used / 8)
        .clamp(GRAIN_BYTES_MIN, GRAIN_BYTES_MAX)
        .next_power_of_two()
}

/// A limit on the memory of the whole process (`server_memory_limit`).
#[derive(Debug, Clone, Copy)]
pub struct ProcessLimit {
    /// Bytes.
    pub limit: u64,
    /// Returns the current memory of the process.
    pub resident_bytes: fn() -> u64,
}

/// Memory for what the statements of all sessions keep.
#[derive(Debug)]
pub struct MemoryPool {
    limit: u64,
    /// Checked with each grain.
    process: Option<ProcessLimit>,
    /// Relaxed, as `kept`: only the number matters; no other memory depends on it.
    used: AtomicU64,
    /// The part of it that sessions keep between statements.
    kept: AtomicU64,
}

/// How long something is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Lifetime {
    /// To the end of a statement.
    #[default]
    Statement,
    /// Between statements, as long as the session likes.
    Session,
}

impl MemoryPool {
    /// A pool of this many bytes.
    pub fn new(limit: u64) -> Self {
        Self {
            limit,
            process: None,
            used: AtomicU64::new(0),
            kept: AtomicU64::new(0),
        }
    }

    /// A pool of this many bytes that grants none while the process is above its own limit.
    pub fn within(limit: u64, process: ProcessLimit) -> Self {
        Self {
            process: Some(process),
            ..Self::new(limit)
        }
    }

    /// Bytes that are reserved.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: usize, lifetime: Lifetime) -> bool {
        let bytes = stdx::to_u64(bytes);
        let is_kept = lifetime == Lifetime::Session;
        if is_kept && !add_within(&self.kept, bytes, self.limit / 2) {
            return false;
        }
        if !add_within(&self.used, bytes, self.limit) {
            if is_kept {
                subtract(&self.kept, bytes);
            }
            return false;
        }
        let has_room = self.process_has_room(bytes);
        if !has_room {
            self.give_back(bytes, lifetime);
        }
        has_room
    }

    fn process_has_room(&self, bytes: u64) -> bool {
        self.process
            .is_none_or(|it| (it.resident_bytes)().saturating_add(bytes) <= it.limit)
    }

    fn give_back(&self, bytes: u64, lifetime: Lifetime) {
        if lifetime == Lifetime::Session {
            subtract(&self.kept, bytes);
        }
        subtract(&self.used, bytes);
    }
}

/// Adds to a count, unless it would be above a limit.
fn add_within(count: &AtomicU64, bytes: u64, limit: u64) -> bool {
    let before = count.fetch_add(bytes, Ordering::Relaxed);
    let fits = before.saturating_add(bytes) <= limit;
    if !fits {
        subtract(count, bytes);
    }
    fits
}

fn subtract(count: &AtomicU64, bytes: u64) {
    let before = count.fetch_sub(bytes, Ordering::Relaxed);
    assert!(bytes <= before, "what is given back was taken");
}

/// The memory account of one statement, or of a session. Belongs to its worker.
#[derive(Debug, Default)]
pub struct Memory {
    lifetime: Lifetime,
    /// What the memories of a session use together, if it is one of those.
    together: Option<Rc<Cell<usize>>>,
    used: Cell<usize>,
    /// The most that was used so far.
    peak: Cell<usize>,
    /// Reserved from the pool.
    reserved: Cell<usize>,
    pool: OnceCell<Arc<MemoryPool>>,
}

impl Memory {
    /// The accounts of a session: of what it keeps between statements, and of what its statements
    /// take. They have one limit together.
    pub fn of_session() -> (Self, Self) {
        let together = Rc::new(Cell::new(0));
        let of = |lifetime| {
            let mut memory = Self::default();
            memory.lifetime = lifetime;
            memory.together = Some(Rc::clone(&together));
            memory
        };
        (of(Lifetime::Session), of(Lifetime::Statement))
    }

    /// What the session's other memory uses.
    fn beside(&self) -> usize {
        let together = self.together.as_ref();
        together.map_or(0, |together| together.get() - self.used.get())
    }

    fn set_used(&self, used: usize) {
        if let Some(together) = &self.together {
            together.set(together.get() - self.used.get() + used);
        }
        self.used.set(used);
    }

    /// The most bytes that were used.
    pub fn peak(&self) -> usize {
        self.peak.get()
    }

    fn resize(
        &self,
        old: usize,
        new: usize,
        limit: usize,
        pool: impl FnOnce() -> Arc<MemoryPool>,
    ) -> Result<(), Failure> {
        let used = self.used.get() - old + new;
        if old < new {
            if limit < used + self.beside() {
                return Err(too_much(limit));
            }
            let missing = used.saturating_sub(self.reserved.get() + UNCOUNTED_BYTES);
            if missing != 0 {
                let bytes = missing.next_multiple_of(grain(used));
                if !self.pool.get_or_init(pool).take(bytes, self.lifetime) {
                    return Err(Box::new(ClientError::new(ER_OUT_OF_RESOURCES, &[])));
                }
                self.reserved.set(self.reserved.get() + bytes);
            }
        }
        self.set_used(used);
        self.peak.set(self.peak.get().max(used));
        self.trim();
        Ok(())
    }

    /// Releases what is no longer used, except one grain.
    fn trim(&self) {
        let needed = self.used.get().saturating_sub(UNCOUNTED_BYTES);
        let spare = self.reserved.get() - needed.min(self.reserved.get());
        let given = if needed == 0 {
            spare
        } else {
            spare.saturating_sub(grain(self.used.get()))
        };
        if given != 0
            && let Some(pool) = self.pool.get()
        {
            pool.give_back(stdx::to_u64(given), self.lifetime);
            self.reserved.set(self.reserved.get() - given);
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.get() {
            pool.give_back(stdx::to_u64(self.reserved.get()), self.lifetime);
        }
    }
}

/// Error 1290.
pub(crate) fn too_much(limit: usize) -> Failure {
    let option = format!("--max-session-mem-used={limit}");
    Box::new(ClientError::new(ER_OPTION_PREVENTS_STATEMENT, &[&option]))
}

/// The bytes that a part of a statement keeps.
#[derive(Debug, Default)]
pub struct Share {
    memory: Option<Rc<Memory>>,
    bytes: usize,
}

impl Share {
    /// Sets the bytes that the part keeps, within a memory of `limit`; the pool is asked for if it
    /// is needed.
    ///
    /// # Errors
    /// 1290 beyond the limit, 1041 beyond the pool; the share then keeps its former bytes of this
    /// memory.
    pub fn set(
        &mut self,
        bytes: usize,
        memory: &Rc<Memory>,
        limit: usize,
        pool: impl FnOnce() -> Arc<MemoryPool>,
    ) -> Result<(), Failure> {
        if self
            .memory
            .as_ref()
            .is_none_or(|of| !Rc::ptr_eq(of, memory))
        {
            self.clear();
            self.memory = Some(Rc::clone(memory));
        }
        memory.resize(self.bytes, bytes, limit, pool)?;
        self.bytes = bytes;
        Ok(())
    }

    /// The bytes that the part keeps.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Sets the bytes to 0.
    pub fn clear(&mut self) {
        if let Some(memory) = &self.memory {
            memory.set_used(memory.used.get() - self.bytes);
            memory.trim();
        }
        self.bytes = 0;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 8 << 20;

    fn set(share: &mut Share, bytes: usize, memory: &Rc<Memory>, pool: &Arc<MemoryPool>) -> u16 {
        let set = share.set(bytes, memory, LIMIT, || Arc::clone(pool));
        set.map_or_else(|failure| failure.code.0, |()| 0)
    }

    #[test]
    fn a_statement_has_its_limit_and_all_have_the_pools() {
        let pool = Arc::new(MemoryPool::new(10 << 20));
        let memory = Rc::new(Memory::default());
        let (mut a, mut b) = (Share::default(), Share::default());
        assert_eq!(set(&mut a, UNCOUNTED_BYTES, &memory, &pool), 0);
        assert_eq!(pool.used(), 0, "what is small is not counted");
        assert_eq!(set(&mut a, LIMIT - 1, &memory, &pool), 0);
        assert_eq!(set(&mut b, 1, &memory, &pool), 0, "at the limit");
        assert_eq!(set(&mut b, 2, &memory, &pool), 1290, "above it, together");
        assert_eq!(memory.peak(), LIMIT);
        let other = Rc::new(Memory::default());
        let mut c = Share::default();
        assert_eq!(set(&mut c, 2 << 20, &other, &pool), 0, "at the pool's");
        assert_eq!(set(&mut c, 3 << 20, &other, &pool), 1041, "above it");
        drop(a);
        assert_eq!(set(&mut c, 3 << 20, &other, &pool), 0, "what went is free");
        drop((b, c));
        assert_eq!(pool.used(), 0);
    }

    #[test]
    fn sessions_keep_half_of_the_pool_at_most() {
        let pool = Arc::new(MemoryPool::new(10 << 20));
        let session = || (Rc::new(Memory::of_session().0), Share::default());
        let ((one, mut a), (two, mut b)) = (session(), session());
        assert_eq!(set(&mut a, 3 << 20, &one, &pool), 0);
        let rest = (2 << 20) + UNCOUNTED_BYTES;
        assert_eq!(set(&mut b, rest, &two, &pool), 0, "at the half");
        assert_eq!(
            set(&mut b, rest + GRAIN_BYTES_MAX, &two, &pool),
            1041,
            "above it"
        );
        let memory = Rc::new(Memory::default());
        let mut statement = Share::default();
        assert_eq!(
            set(&mut statement, 5 << 20, &memory, &pool),
            0,
            "the others'"
        );
        assert_eq!(
            set(&mut statement, 6 << 20, &memory, &pool),
            1041,
            "all of it"
        );
        drop(a);
        assert_eq!(set(&mut b, rest + GRAIN_BYTES_MAX, &two, &pool), 0);
        drop((b, statement));
        assert_eq!((pool.used(), pool.kept.load(Ordering::Relaxed)), (0, 0));
    }

    #[test]
    fn what_a_session_keeps_and_what_its_statements_take_have_one_limit() {
        let pool = Arc::new(MemoryPool::new(u64::MAX));
        let (kept, passing) = Memory::of_session();
        let (kept, passing) = (Rc::new(kept), Rc::new(passing));
        let (mut a, mut b) = (Share::default(), Share::default());
        assert_eq!(set(&mut a, LIMIT - 1, &kept, &pool), 0);
        assert_eq!(set(&mut b, 1, &passing, &pool), 0, "at the limit");
        assert_eq!(set(&mut b, 2, &passing, &pool), 1290, "above it");
        assert_eq!(set(&mut a, LIMIT, &kept, &pool), 1290, "above it");
        a.clear();
        assert_eq!(set(&mut b, LIMIT, &passing, &pool), 0);
        drop(b);
        assert_eq!(set(&mut a, LIMIT, &kept, &pool), 0);
    }

    /// Each session reserves what it uses, and not a large grain.
    #[test]
    fn ten_thousand_small_sessions_fit() {
        let pool = Arc::new(MemoryPool::new(512 << 20));
        let session = |_| (Rc::new(Memory::default()), Share::default());
        let mut sessions: Vec<_> = (0..10_000).map(session).collect();
        for (memory, share) in &mut sessions {
            assert_eq!(set(share, 100 << 10, memory, &pool), 0);
        }
        assert_eq!(pool.used(), 10_000 * (48 << 10));
        drop(sessions);
        assert_eq!(pool.used(), 0);
    }

    #[test]
    fn the_process_has_a_limit_of_its_own() {
        let process = ProcessLimit {
            limit: 5 << 20,
            resident_bytes: || 3 << 20,
        };
        let pool = Arc::new(MemoryPool::within(10 << 20, process));
        let memory = Rc::new(Memory::default());
        let mut share = Share::default();
        let most = (2 << 20) + UNCOUNTED_BYTES;
        assert_eq!(set(&mut share, most, &memory, &pool), 0, "at the limit");
        let mut other = Share::default();
        let rest = Rc::new(Memory::default());
        assert_eq!(set(&mut other, most + 1, &rest, &pool), 1041, "above it");
        assert_eq!(pool.used(), 2 << 20);
    }

    #[test]
    fn whatever_happens_the_pool_is_given_back() {
        let pool = Arc::new(MemoryPool::new(64 << 20));
        let memory = Rc::new(Memory::default());
        let mut shares: Vec<Share> = (0..8).map(|_| Share::default()).collect();
        let mut state = 1_usize;
        for _ in 0..10_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let (index, bytes) = (state >> 60 & 7, state >> 40 & ((1 << 21) - 1));
            if state >> 63 == 0 {
                set(&mut shares[index], bytes, &memory, &pool);
            } else {
                shares[index].clear();
            }
            let used: usize = shares.iter().map(|share| share.bytes).sum();
            assert_eq!(memory.used.get(), used);
            assert!(used <= memory.reserved.get() + UNCOUNTED_BYTES);
            assert_eq!(pool.used(), stdx::to_u64(memory.reserved.get()));
        }
        drop(shares);
        assert_eq!(pool.used(), 0);
    }
}
