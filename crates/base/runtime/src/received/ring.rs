//! The ring of buffers for received bytes. The kernel takes one when bytes have come, so a
//! connection that waits holds none.
//!
//! (B1) A buffer is the kernel's while its id is in the ring, and ours from the completion that
//!      names it until `give_back`. So no code reads what the kernel may write.
//! (B2) Ids go round; there are as many ring entries as buffers, so the ring never overflows.
//! (B3) The entry is written before the tail that publishes it (Release; the kernel acquires).
//! (B4) The memory outlives the kernel's ring: the driver frees it only once nothing is under way.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::io;
use std::ops::Deref;
use std::ptr::NonNull;
use std::rc::Rc;

use io_uring::Submitter;
use io_uring::types::BufRingEntry;
use sync::atomic::{AtomicU16, Ordering};

/// Buffers, and entries of the ring: enough for what 512 clients send at once; 4 MiB a worker.
const BUFFER_COUNT: u16 = 512;

/// Bytes of a buffer: most statements fit into one.
const BUFFER_BYTES: usize = 8 << 10;

/// From one buffer to the next. Two cache lines more than the buffer: else the first lines of all
/// buffers would compete for the same few cache sets.
const STRIDE_BYTES: usize = BUFFER_BYTES + 128;

const PAGE_BYTES: usize = 4096;

/// The group's number; a ring has one group.
pub(crate) const BUFFER_GROUP: u16 = 0;

const _: () = assert!(BUFFER_COUNT.is_power_of_two(), "positions are masked");

/// See the module's head.
pub(crate) struct BufferRing {
    /// `BUFFER_COUNT` entries, page-aligned, read by the kernel.
    entries: NonNull<BufRingEntry>,
    /// `BUFFER_COUNT` buffers.
    buffers: NonNull<u8>,
    /// Entries published so far, modulo 2^16: the tail's own copy.
    tail: Cell<u16>,
    /// Buffers that are ours.
    lent_count: Cell<u16>,
}

/// The first bytes of a buffer that the kernel filled; goes back to the ring when dropped.
pub(crate) struct RingBytes {
    ring: Rc<BufferRing>,
    id: u16,
    length: usize,
}

impl BufferRing {
    /// Registers a ring full of buffers with the kernel.
    pub(crate) fn new(submitter: &Submitter<'_>) -> io::Result<Rc<Self>> {
        let ring = Rc::new(Self {
            entries: allocate(entries_layout()).cast(),
            buffers: allocate(buffers_layout()),
            tail: Cell::new(0),
            lent_count: Cell::new(BUFFER_COUNT),
        });
        for id in 0..BUFFER_COUNT {
            ring.give_back(id);
        }
        let address = u64::try_from(ring.entries.as_ptr().expose_provenance())
            .expect("addresses have 64 bits");
        // SAFETY: the entries are page-aligned, as many as said, and live on (B4).
        unsafe { submitter.register_buf_ring_with_flags(address, BUFFER_COUNT, BUFFER_GROUP, 0) }?;
        Ok(ring)
    }

    /// Returns what a completion brought in buffer `id`.
    pub(crate) fn bytes(self: &Rc<Self>, id: u16, length: usize) -> RingBytes {
        assert!(id < BUFFER_COUNT, "the kernel names our buffers");
        assert!(length <= BUFFER_BYTES, "the kernel stays within a buffer");
        self.lent_count.set(self.lent_count.get() + 1);
        RingBytes {
            ring: self.clone(),
            id,
            length,
        }
    }

    /// Whether sessions hold so many unread buffers that the kernel may soon find none.
    pub(crate) fn is_short(&self) -> bool {
        BUFFER_COUNT / 2 < self.lent_count.get()
    }

    fn address(&self, id: u16) -> NonNull<u8> {
        // SAFETY: ids are below the count, so the offset stays within the allocation.
        unsafe { self.buffers.add(usize::from(id) * STRIDE_BYTES) }
    }

    fn give_back(&self, id: u16) {
        self.lent_count.set(self.lent_count.get() - 1);
        let tail = self.tail.get();
        let address = self.address(id).as_ptr().expose_provenance();
        // SAFETY: the position is masked, so the entry lies within the allocation.
        let mut entry = unsafe { self.entries.add(usize::from(tail % BUFFER_COUNT)) };
        // SAFETY: the kernel does not read an entry at or beyond the tail (B2, B3), and this
        // thread alone writes; an all-zero entry is initialised.
        let entry = unsafe { entry.as_mut() };
        entry.set_addr(u64::try_from(address).expect("addresses have 64 bits"));
        entry.set_len(u32::try_from(BUFFER_BYTES).expect("a buffer is small"));
        entry.set_bid(id);
        let tail = tail.wrapping_add(1);
        self.tail.set(tail);
        // SAFETY: `entries` is the address of the first entry of an initialised ring.
        let shared_tail = unsafe { BufRingEntry::tail(self.entries.as_ptr()) };
        // SAFETY: the tail is an aligned u16 within the entries, and is accessed atomically by
        // us and the kernel alone while the ring lives; `set_*` above do not touch it.
        let shared_tail = unsafe { AtomicU16::from_ptr(shared_tail.cast_mut()) };
        // Release: (B3).
        shared_tail.store(tail, Ordering::Release);
    }
}

impl Deref for RingBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let start = self.ring.address(self.id);
        // SAFETY: the kernel has written `length` bytes there, and the buffer is ours while
        // `self` lives (B1).
        unsafe { std::slice::from_raw_parts(start.as_ptr(), self.length) }
    }
}

impl Drop for RingBytes {
    fn drop(&mut self) {
        self.ring.give_back(self.id);
    }
}

impl Drop for BufferRing {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout in `new`, freed once; the kernel is done (B4).
        unsafe { dealloc(self.entries.as_ptr().cast(), entries_layout()) }
        // SAFETY: as above.
        unsafe { dealloc(self.buffers.as_ptr(), buffers_layout()) }
    }
}

fn entries_layout() -> Layout {
    let bytes = usize::from(BUFFER_COUNT) * size_of::<BufRingEntry>();
    Layout::from_size_align(bytes, PAGE_BYTES).expect("a small size and a power of two")
}

fn buffers_layout() -> Layout {
    let bytes = usize::from(BUFFER_COUNT) * STRIDE_BYTES;
    Layout::from_size_align(bytes, PAGE_BYTES).expect("a small size and a power of two")
}

fn allocate(layout: Layout) -> NonNull<u8> {
    // SAFETY: both layouts have a size.
    let start = unsafe { alloc_zeroed(layout) };
    let Some(start) = NonNull::new(start) else {
        handle_alloc_error(layout)
    };
    start
}
