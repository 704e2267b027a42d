//! Bytes that one writer changes while optimistic readers may be loading them.
//!
//! An optimistic reader of a [`HybridLatch`](crate::HybridLatch) loads words and validates the
//! version afterwards. The latch keeps other writers out, but not such readers. So the writer's
//! stores must be atomic as well as the reader's loads. A plain store beside an atomic load is a
//! data race, which Rust does not define, even if what was loaded is dropped.
//!
//! (O1) Readers load aligned words of 8 bytes, relaxed ([`load_word`], [`copy_out`]), and nothing
//! else.
//! (O2) The writer changes bytes only through [`ObservedBytes`]. It has no `&mut` slice of them,
//! because that promises that nothing else reads them.
//! (O3) A shared slice exists only while nothing is written: under the shared latch, or as a borrow
//! of the writer. Loads beside it are no race.
//! (O4) In Rust's terms each change is a relaxed store of a whole word, whose other bytes stay what
//! they are. No other writer can change them in between.
//!
//! On x86-64 the copies are inline assembly, which Rust takes for whatever it does in these terms.
//! A store of another width than 8 bytes is a run of the stores of (O4), one for each byte that it
//! changes. A load of another width is a run of the loads of (O1), one for each byte. The cache
//! gives all cores the same sequence of values of an aligned word, so no reader can tell the
//! difference. Elsewhere, and under Miri, the copies are those of (O1) and (O4) themselves:
//! `cargo xtask miri` checks them against a reader. They cost 80 ns for each move of a page's
//! slots, and 2,000 instructions for each row that is copied out. So assembly does it where it can.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;
// Those of std: a model checker has no atomics in memory that is given to it.
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of one load.
pub const WORD_BYTES: usize = 8;

/// Loads word `index` of observed bytes. What was loaded may be torn until the latch is validated.
///
/// # Safety
/// `start` is aligned to 8, and the word's 8 bytes are valid. They are written only through
/// [`ObservedBytes`] meanwhile.
#[inline]
pub unsafe fn load_word(start: NonNull<u8>, index: usize) -> u64 {
    #[cfg(shuttle)]
    shuttle::thread::yield_now();
    // SAFETY: the caller promises that the word is inside.
    let address = unsafe { start.as_ptr().add(index * WORD_BYTES) };
    // SAFETY: aligned and valid by the caller's promise; all stores are atomic (O2).
    let word = unsafe { AtomicU64::from_ptr(address.cast()) };
    // Relaxed: the latch's fences order it (rule R2 there).
    u64::from_le(word.load(Ordering::Relaxed))
}

/// Copies the bytes from `offset` on to `out`. What was copied may be torn until the latch is
/// validated.
///
/// # Safety
/// `start` is aligned to 8. All words in which the bytes lie are valid, and `out` is elsewhere.
/// They are written only through [`ObservedBytes`] meanwhile.
#[inline]
pub unsafe fn copy_out(start: NonNull<u8>, offset: usize, out: &mut [u8]) {
    #[cfg(shuttle)]
    shuttle::thread::yield_now();
    // SAFETY: by the caller's promise.
    unsafe { copies::copy_out(start, offset, out) }
}

/// Observed bytes, for their only writer.
pub struct ObservedBytes<'a> {
    /// Aligned to 8. Constant.
    start: NonNull<u8>,
    /// A multiple of 8. Constant.
    length: usize,
    life: PhantomData<&'a mut [u8]>,
}

impl ObservedBytes<'_> {
    /// The writer of `length` bytes from `start` on.
    ///
    /// # Safety
    /// The bytes are initialised and valid for `'a`. Meanwhile they are written only through this,
    /// and read only through this, by [`load_word`] and by [`copy_out`].
    pub unsafe fn new(start: NonNull<u8>, length: usize) -> Self {
        assert!(
            start.addr().get().is_multiple_of(WORD_BYTES),
            "words are aligned (O1)"
        );
        assert!(length.is_multiple_of(WORD_BYTES), "the last word is whole");
        Self {
            start,
            length,
            life: PhantomData,
        }
    }

    /// All bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: initialised, valid, and not written while this is borrowed, by the promise of
        // `new` (O3).
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }

    /// Writes `bytes` at `offset`. Returns `None`, and writes nothing, if they do not fit.
    #[inline]
    pub fn put(&mut self, offset: usize, bytes: &[u8]) -> Option<()> {
        let to = self.address(offset, bytes.len())?;
        // SAFETY: `to` has that many bytes here; `bytes` are others, because this is borrowed
        // exclusively.
        unsafe { copies::copy(to, bytes.as_ptr(), bytes.len()) };
        Some(())
    }

    /// Sets `length` bytes from `offset` on to zero. Returns `None`, and writes nothing, if there
    /// are not so many.
    pub fn clear(&mut self, offset: usize, length: usize) -> Option<()> {
        let to = self.address(offset, length)?;
        // SAFETY: `to` has that many bytes here.
        unsafe { copies::clear(to, length) };
        Some(())
    }

    /// Copies a range to `offset`, which may be inside. Returns `None`, and writes nothing, if
    /// source or target are not.
    pub fn copy_within(&mut self, from: Range<usize>, offset: usize) -> Option<()> {
        let length = from.end.checked_sub(from.start)?;
        let source = self.address(from.start, length)?.cast_const();
        let to = self.address(offset, length)?;
        if offset <= from.start {
            // SAFETY: both have that many bytes here, and the target does not begin behind the
            // source.
            unsafe { copies::copy_up(to, source, length) };
        } else {
            // SAFETY: both have that many bytes here, and the target begins behind the source.
            unsafe { copies::copy_down(to, source, length) };
        }
        Some(())
    }

    /// The address of `offset`, if there are `length` bytes from it on.
    #[inline]
    fn address(&self, offset: usize, length: usize) -> Option<*mut u8> {
        if self.length < offset.checked_add(length)? {
            return None;
        }
        // SAFETY: inside, or one behind the end.
        Some(unsafe { self.start.as_ptr().add(offset) })
    }
}

impl fmt::Debug for ObservedBytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObservedBytes")
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

/// Copies by assembly.
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod copies {
    use std::arch::asm;
    use std::ptr::NonNull;

    /// Bytes of one turn of the long loops: four registers.
    const TURN_BYTES: usize = 64;
    /// Bytes of one register.
    const REGISTER_BYTES: usize = 16;
    /// From this length on, the processor's own loop is faster than ours. It needs some 30 cycles
    /// to start.
    const STRING_BYTES_MIN: usize = 1024;

    /// Copies observed bytes to memory of the reader.
    ///
    /// # Safety
    /// See [`copy_out`](super::copy_out).
    #[inline]
    pub(super) unsafe fn copy_out(start: NonNull<u8>, offset: usize, out: &mut [u8]) {
        let from = start.as_ptr().wrapping_add(offset);
        // SAFETY: both have as many bytes, and do not overlap.
        unsafe { copy(out.as_mut_ptr(), from, out.len()) };
    }

    /// Copies bytes that do not overlap.
    ///
    /// # Safety
    /// Both have `length` bytes.
    #[inline]
    pub(super) unsafe fn copy(to: *mut u8, from: *const u8, length: usize) {
        if length <= REGISTER_BYTES {
            // SAFETY: as above.
            unsafe { copy_short(to, from, length) };
        } else if length < STRING_BYTES_MIN {
            // SAFETY: as above.
            unsafe { copy_up(to, from, length) };
        } else {
            // SAFETY: as above; the direction flag is clear, as always between functions.
            unsafe {
                asm!(
                    "rep movsb",
                    inout("rcx") length => _,
                    inout("rdi") to => _,
                    inout("rsi") from => _,
                    options(nostack, preserves_flags)
                );
            }
        }
    }

    /// Sets bytes to zero.
    ///
    /// # Safety
    /// There are `length` of them.
    pub(super) unsafe fn clear(to: *mut u8, length: usize) {
        // SAFETY: as above; the direction flag is clear, as always between functions.
        unsafe {
            asm!(
                "rep stosb",
                inout("rcx") length => _,
                inout("rdi") to => _,
                in("al") 0_u8,
                options(nostack, preserves_flags)
            );
        }
    }

    /// Copies upwards, each part after those below it.
    ///
    /// # Safety
    /// Both have `length` bytes, and `to` is not inside of `from` behind its start.
    pub(super) unsafe fn copy_up(to: *mut u8, from: *const u8, length: usize) {
        let mut done = 0;
        while TURN_BYTES <= length - done {
            // SAFETY: so many bytes are left.
            unsafe { copy_turn(to.wrapping_add(done), from.wrapping_add(done)) };
            done += TURN_BYTES;
        }
        while REGISTER_BYTES <= length - done {
            // SAFETY: so many bytes are left.
            unsafe { copy_register(to.wrapping_add(done), from.wrapping_add(done)) };
            done += REGISTER_BYTES;
        }
        // SAFETY: these are left.
        unsafe {
            copy_short(
                to.wrapping_add(done),
                from.wrapping_add(done),
                length - done,
            )
        };
    }

    /// Copies downwards, each part after those above it.
    ///
    /// # Safety
    /// Both have `length` bytes, and `from` is not inside of `to` behind its start.
    pub(super) unsafe fn copy_down(to: *mut u8, from: *const u8, length: usize) {
        let mut left = length;
        while TURN_BYTES <= left {
            left -= TURN_BYTES;
            // SAFETY: so many bytes were left.
            unsafe { copy_turn(to.wrapping_add(left), from.wrapping_add(left)) };
        }
        while REGISTER_BYTES <= left {
            left -= REGISTER_BYTES;
            // SAFETY: so many bytes were left.
            unsafe { copy_register(to.wrapping_add(left), from.wrapping_add(left)) };
        }
        // SAFETY: these are left.
        unsafe { copy_short(to, from, left) };
    }

    /// Copies 64 bytes; all are loaded before the first is stored.
    #[inline]
    unsafe fn copy_turn(to: *mut u8, from: *const u8) {
        // SAFETY: the caller has as many bytes in both.
        unsafe {
            asm!(
                "movups {a}, [{from}]",
                "movups {b}, [{from} + 16]",
                "movups {c}, [{from} + 32]",
                "movups {d}, [{from} + 48]",
                "movups [{to}], {a}",
                "movups [{to} + 16], {b}",
                "movups [{to} + 32], {c}",
                "movups [{to} + 48], {d}",
                to = in(reg) to,
                from = in(reg) from,
                a = out(xmm_reg) _,
                b = out(xmm_reg) _,
                c = out(xmm_reg) _,
                d = out(xmm_reg) _,
                options(nostack, preserves_flags)
            );
        }
    }

    /// Copies 16 bytes; all are loaded before the first is stored.
    #[inline]
    unsafe fn copy_register(to: *mut u8, from: *const u8) {
        // SAFETY: the caller has as many bytes in both.
        unsafe {
            asm!(
                "movups {a}, [{from}]",
                "movups [{to}], {a}",
                to = in(reg) to,
                from = in(reg) from,
                a = out(xmm_reg) _,
                options(nostack, preserves_flags)
            );
        }
    }

    /// Copies up to 16 bytes; all are loaded before the first is stored.
    #[inline]
    unsafe fn copy_short(to: *mut u8, from: *const u8, length: usize) {
        match length {
            0 => {}
            // SAFETY: there is one.
            1 => unsafe { copy_1(to, from) },
            // SAFETY: there are two.
            2 => unsafe { copy_2(to, from, 0) },
            // SAFETY: there are three; the two pairs share one.
            3 => unsafe { copy_2(to, from, 1) },
            // SAFETY: there are so many, and the two parts overlap.
            4..8 => unsafe { copy_4(to, from, length - 4) },
            // SAFETY: there are so many, and the two parts overlap.
            _ => unsafe { copy_8(to, from, length - 8) },
        }
    }

    #[inline]
    unsafe fn copy_1(to: *mut u8, from: *const u8) {
        // SAFETY: the caller has as many bytes in both.
        unsafe {
            asm!(
                "mov {a}, [{from}]",
                "mov [{to}], {a}",
                to = in(reg) to,
                from = in(reg) from,
                a = out(reg_byte) _,
                options(nostack, preserves_flags)
            );
        }
    }

    /// Copies 2 bytes, and 2 more `second` bytes behind the start.
    #[inline]
    unsafe fn copy_2(to: *mut u8, from: *const u8, second: usize) {
        // SAFETY: the caller has as many bytes in both.
        unsafe {
            asm!(
                "mov {a:x}, [{from}]",
                "mov {b:x}, [{from} + {second}]",
                "mov [{to}], {a:x}",
                "mov [{to} + {second}], {b:x}",
                to = in(reg) to,
                from = in(reg) from,
                second = in(reg) second,
                a = out(reg) _,
                b = out(reg) _,
                options(nostack, preserves_flags)
            );
        }
    }

    /// Copies 4 bytes, and 4 more `second` bytes behind the start.
    #[inline]
    unsafe fn copy_4(to: *mut u8, from: *const u8, second: usize) {
        // SAFETY: the caller has as many bytes in both.
        unsafe {
            asm!(
                "mov {a:e}, [{from}]",
                "mov {b:e}, [{from} + {second}]",
                "mov [{to}], {a:e}",
                "mov [{to} + {second}], {b:e}",
                to = in(reg) to,
                from = in(reg) from,
                second = in(reg) second,
                a = out(reg) _,
                b = out(reg) _,
                options(nostack, preserves_flags)
            );
        }
    }

    /// Copies 8 bytes, and 8 more `second` bytes behind the start.
    #[inline]
    unsafe fn copy_8(to: *mut u8, from: *const u8, second: usize) {
        // SAFETY: the caller has as many bytes in both.
        unsafe {
            asm!(
                "mov {a}, [{from}]",
                "mov {b}, [{from} + {second}]",
                "mov [{to}], {a}",
                "mov [{to} + {second}], {b}",
                to = in(reg) to,
                from = in(reg) from,
                second = in(reg) second,
                a = out(reg) _,
                b = out(reg) _,
                options(nostack, preserves_flags)
            );
        }
    }
}

/// Loads and stores of whole words (O1, O4).
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod copies {
    use std::ptr::NonNull;

    use super::{WORD_BYTES, load_word};
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Copies observed bytes to memory of the reader.
    ///
    /// # Safety
    /// See [`copy_out`](super::copy_out).
    pub(super) unsafe fn copy_out(start: NonNull<u8>, offset: usize, out: &mut [u8]) {
        for (at, byte) in (offset..).zip(out) {
            // SAFETY: the byte's word is valid.
            let word = unsafe { load_word(start, at / WORD_BYTES) };
            *byte = word.to_le_bytes()[at % WORD_BYTES];
        }
    }

    /// Copies bytes that do not overlap.
    ///
    /// # Safety
    /// Both have `length` bytes.
    pub(super) unsafe fn copy(to: *mut u8, from: *const u8, length: usize) {
        // SAFETY: as above.
        unsafe { copy_up(to, from, length) };
    }

    /// Sets bytes to zero.
    ///
    /// # Safety
    /// There are `length` of them.
    pub(super) unsafe fn clear(to: *mut u8, length: usize) {
        let zeroes = vec![0; length];
        // SAFETY: as above.
        unsafe { copy_up(to, zeroes.as_ptr(), length) };
    }

    /// Copies upwards, each word after those below it.
    ///
    /// # Safety
    /// Both have `length` bytes, and `to` is not inside of `from` behind its start.
    pub(super) unsafe fn copy_up(to: *mut u8, from: *const u8, length: usize) {
        let mut done = 0;
        while done < length {
            let (to, from) = (to.wrapping_add(done), from.wrapping_add(done));
            let skip = to.addr() % WORD_BYTES;
            let count = (WORD_BYTES - skip).min(length - done);
            // SAFETY: observed bytes begin and end with whole words.
            let address = unsafe { to.sub(skip) };
            // SAFETY: aligned and valid; all other accesses at the same time are such loads (O1).
            let word = unsafe { AtomicU64::from_ptr(address.cast()) };
            // Relaxed: the latch's fences order it.
            let mut bytes = word.load(Ordering::Relaxed).to_ne_bytes();
            for (at, byte) in bytes.iter_mut().skip(skip).take(count).enumerate() {
                // SAFETY: `count` bytes are left, and no other thread writes them.
                *byte = unsafe { *from.add(at) };
            }
            word.store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
            done += count;
        }
    }

    /// Copies bytes of which the target may begin inside of the source.
    ///
    /// # Safety
    /// Both have `length` bytes.
    pub(super) unsafe fn copy_down(to: *mut u8, from: *const u8, length: usize) {
        // SAFETY: so many bytes are there, and no other thread writes them.
        let source = unsafe { std::slice::from_raw_parts(from, length) }.to_vec();
        // SAFETY: the copy overlaps nothing.
        unsafe { copy_up(to, source.as_ptr(), length) };
    }
}

#[cfg(test)]
mod tests {
    use std::cell::UnsafeCell;
    use std::thread;

    use super::*;
    use crate::HybridLatch;

    /// Enough for all ways of storing; Miri has one way, and is slow.
    const WORDS: usize = if cfg!(miri) { 40 } else { 300 };
    const LENGTH: usize = WORDS * WORD_BYTES;

    /// Memory of words and its latch.
    struct Guarded {
        latch: HybridLatch,
        words: UnsafeCell<[u64; WORDS]>,
    }

    // SAFETY: the latch guards the words, and optimistic readers load them atomically.
    unsafe impl Sync for Guarded {}

    impl Guarded {
        fn new() -> Self {
            Self {
                latch: HybridLatch::new(),
                words: UnsafeCell::new([0; WORDS]),
            }
        }

        fn start(&self) -> NonNull<u8> {
            NonNull::new(self.words.get()).expect("a reference").cast()
        }

        /// Changes the bytes under the latch.
        fn write(&self, act: impl FnOnce(&mut ObservedBytes<'_>)) {
            assert!(self.latch.try_exclusive(), "there is one writer");
            // SAFETY: initialised and aligned words, for the holder of the exclusive latch.
            let mut bytes = unsafe { ObservedBytes::new(self.start(), LENGTH) };
            act(&mut bytes);
            self.latch.unlock_exclusive();
        }

        /// The bytes, read optimistically; `None` if they have changed meanwhile.
        fn read(&self) -> Option<Vec<u8>> {
            let version = self.latch.optimistic()?;
            let mut read = Vec::new();
            for index in 0..WORDS {
                // SAFETY: the word is one of the aligned words, which are written as observed ones.
                let word = unsafe { load_word(self.start(), index) };
                read.extend_from_slice(&word.to_le_bytes());
            }
            let mut copied = vec![0; LENGTH - 1];
            // SAFETY: as above, for all words.
            unsafe { copy_out(self.start(), 1, &mut copied) };
            let is_valid = self.latch.validate(version);
            assert!(!is_valid || read[1..] == copied, "both ways read the same");
            is_valid.then_some(read)
        }
    }

    /// All bytes are the same wherever the latch is free. The writer changes them by all kinds of
    /// stores, of all alignments.
    fn turn(bytes: &mut ObservedBytes<'_>, round: u8) {
        let half = LENGTH / 2;
        let odd = usize::from(round % 13);
        bytes.clear(odd, LENGTH - odd).unwrap();
        bytes.put(0, &vec![round; half + odd]).unwrap();
        bytes.copy_within(0..half - 1, odd + 1).unwrap();
        bytes.copy_within(odd..odd + half, 0).unwrap();
        bytes.copy_within(0..half, half).unwrap();
        bytes.put(LENGTH - 3, &[round; 3]).unwrap();
    }

    #[test]
    fn an_optimistic_reader_sees_no_half_change() {
        let rounds: u8 = if cfg!(miri) { 8 } else { 250 };
        let guarded = Guarded::new();
        thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..=rounds {
                    guarded.write(|bytes| turn(bytes, round));
                    thread::yield_now();
                }
            });
            let mut last = 0;
            while last < rounds {
                let Some(read) = guarded.read() else {
                    thread::yield_now();
                    continue;
                };
                assert!(read.iter().all(|byte| *byte == read[0]), "{read:?}");
                assert!(last <= read[0], "changes come in their order");
                last = read[0];
            }
        });
    }

    /// The naive twin is a slice.
    #[test]
    fn stores_do_what_a_slice_does() {
        let lengths = [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 63, 64, 65, 150, 1300];
        let guarded = Guarded::new();
        let mut twin: Vec<u8> = (0..=250).cycle().take(LENGTH).collect();
        guarded.write(|bytes| {
            bytes.put(0, &twin).unwrap();
            for length in lengths.into_iter().filter(|length| length + 170 <= LENGTH) {
                for from in [0, 1, 6, 90] {
                    for to in [0, 1, 5, 6, 7, 64, 91, 170] {
                        bytes.copy_within(from..from + length, to).unwrap();
                        twin.copy_within(from..from + length, to);
                        assert_eq!(bytes.bytes(), twin, "{length} from {from} to {to}");
                        let new: Vec<u8> = twin.iter().rev().take(length).copied().collect();
                        bytes.put(to, &new).unwrap();
                        twin[to..to + length].copy_from_slice(&new);
                        assert_eq!(bytes.bytes(), twin, "{length} at {to}");
                    }
                }
                bytes.clear(length, 11).unwrap();
                twin[length..length + 11].fill(0);
                assert_eq!(bytes.bytes(), twin, "cleared at {length}");
            }
            assert_eq!(bytes.put(LENGTH - 1, &[1, 2]), None);
            assert_eq!(bytes.put(usize::MAX, &[1]), None);
            assert_eq!(bytes.clear(1, LENGTH), None);
            assert_eq!(bytes.copy_within(1..LENGTH + 1, 0), None);
            assert_eq!(bytes.copy_within(0..LENGTH, 1), None);
            assert_eq!(bytes.bytes(), twin, "what does not fit writes nothing");
        });
    }
}
