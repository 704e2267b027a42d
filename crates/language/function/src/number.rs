//! Functions of numbers: arithmetic, bits, rounding and the like, random numbers.

pub(crate) mod arithmetic;
pub(crate) mod bits;
pub(crate) mod numeric;
pub(crate) mod random;
