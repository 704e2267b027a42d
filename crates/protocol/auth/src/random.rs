//! [`Random`]: the caller's source of random bytes, in the form that the RSA library takes.

use std::fmt;

use rsa::rand_core::{CryptoRng, Error, RngCore};

/// A source of unpredictable random bytes. The function must fill its whole argument.
pub struct Random<'a>(pub &'a mut dyn FnMut(&mut [u8]));

impl fmt::Debug for Random<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Random")
    }
}

impl Random<'_> {
    /// `N` random bytes.
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        (self.0)(&mut bytes);
        bytes
    }
}

impl RngCore for Random<'_> {
    fn next_u32(&mut self) -> u32 {
        u32::from_le_bytes(self.bytes())
    }

    fn next_u64(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes())
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        (self.0)(bytes);
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        (self.0)(bytes);
        Ok(())
    }
}

impl CryptoRng for Random<'_> {}

#[cfg(test)]
pub(crate) mod tests {
    /// A source for tests: the same bytes in every run.
    pub(crate) fn test_random() -> impl FnMut(&mut [u8]) {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        move |bytes| {
            for byte in bytes {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                *byte = state.to_le_bytes()[3];
            }
        }
    }
}
