//! Integer conversions whose names say what may be lost.
//!
//! The program runs on 64-bit machines alone, so `usize` and `u64` convert freely; the assertion
//! below refuses any other build.

const _: () = assert!(
    usize::BITS == 64,
    "offsets in files and memory are both 64 bits wide"
);

/// A length or index as `usize`; loses nothing. Takes `u8` to `u64`.
#[inline]
#[allow(
    clippy::cast_possible_truncation,
    reason = "usize has 64 bits, asserted above"
)]
pub fn to_usize(value: impl Into<u64>) -> usize {
    value.into() as usize
}

/// A length or index as `u64`; loses nothing.
#[inline]
pub const fn to_u64(value: usize) -> u64 {
    value as u64
}

/// A length or count that the caller knows to be below 2^32.
///
/// # Panics
/// If it is not: a bug of the caller. Outside input goes through `u32::try_from`.
#[inline]
pub fn to_u32(value: usize) -> u32 {
    u32::try_from(value).expect("the caller keeps this count below 2^32")
}

/// The lowest 8 bits; the others are dropped on purpose.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the name says it")]
pub const fn low_u8(value: u64) -> u8 {
    value as u8
}

/// The lowest 16 bits; the others are dropped on purpose.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the name says it")]
pub const fn low_u16(value: u64) -> u16 {
    value as u16
}

/// The lowest 32 bits; the others are dropped on purpose.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the name says it")]
pub const fn low_u32(value: u64) -> u32 {
    value as u32
}

/// The smallest multiple of `alignment` that is not below `value`.
///
/// # Panics
/// If `alignment` is not a power of two, or the result does not fit.
#[inline]
pub const fn align_up(value: u64, alignment: u64) -> u64 {
    assert!(alignment.is_power_of_two(), "alignments are powers of two");
    match value.checked_add(alignment - 1) {
        Some(sum) => sum & !(alignment - 1),
        None => panic!("the aligned value fits into 64 bits"),
    }
}

/// The nearest integer towards zero, clamped to the range; NaN is 0.
#[inline]
#[allow(
    clippy::cast_possible_truncation,
    reason = "saturating by the language's definition"
)]
pub const fn f64_to_i64(value: f64) -> i64 {
    value as i64
}

/// The nearest integer towards zero, clamped to the range; NaN is 0.
#[inline]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturating by the language's definition"
)]
pub const fn f64_to_u64(value: f64) -> u64 {
    value as u64
}

/// The nearest single precision number; infinite if out of range.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "rounding is the purpose")]
pub const fn f64_to_f32(value: f64) -> f32 {
    value as f32
}

/// The nearest double precision number.
#[inline]
pub const fn i64_to_f64(value: i64) -> f64 {
    value as f64
}

/// The nearest double precision number.
#[inline]
pub const fn u64_to_f64(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widening_keeps_and_low_drops() {
        assert_eq!(to_usize(u32::MAX), 0xFFFF_FFFF);
        assert_eq!(to_usize(7u8), 7);
        assert_eq!(to_u64(usize::MAX), u64::MAX);
        assert_eq!(to_u32(5), 5);
        let wide = 0x0123_4567_89AB_CDEF;
        assert_eq!((low_u8(wide), low_u16(wide)), (0xEF, 0xCDEF));
        assert_eq!(low_u32(wide), 0x89AB_CDEF);
    }

    #[test]
    #[should_panic(expected = "below 2^32")]
    fn a_count_beyond_its_bound_is_a_bug() {
        to_u32(1 << 32);
    }

    #[test]
    fn aligns_to_the_next_multiple() {
        assert_eq!(align_up(0, 4096), 0);
        assert_eq!(align_up(1, 4096), 4096);
        assert_eq!(align_up(4096, 4096), 4096);
        assert_eq!(align_up(4097, 512), 4608);
    }

    #[test]
    fn floating_point_saturates() {
        assert_eq!(f64_to_i64(-1.9), -1);
        assert_eq!(f64_to_i64(1e30), i64::MAX);
        assert_eq!(f64_to_u64(-1.0), 0);
        assert_eq!(f64_to_u64(f64::NAN), 0);
        assert_eq!(f64_to_f32(1e300), f32::INFINITY);
        assert_eq!(i64_to_f64(-3), -3.0);
        assert_eq!(u64_to_f64(1 << 60), 1_152_921_504_606_846_976.0);
    }
}
