//! [`Nonce`]: the random challenge that a password is proven against.

/// Bytes of a challenge: what `ed25519` takes. The other methods take the first 20.
pub const NONCE_BYTES: usize = 32;

/// Bytes of the challenge in a server's greeting.
pub const SCRAMBLE_BYTES: usize = 20;

/// A challenge, used for one login. Its bytes are 1 to 127 without `$`, because clients handle it
/// as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nonce([u8; NONCE_BYTES]);

impl Nonce {
    /// The challenge made of random bytes, close to seven bits of randomness each.
    pub fn from_random(random: [u8; NONCE_BYTES]) -> Nonce {
        Nonce(random.map(to_text_byte))
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8; NONCE_BYTES] {
        &self.0
    }

    /// The part that a greeting carries.
    pub fn scramble(&self) -> [u8; SCRAMBLE_BYTES] {
        let [scramble @ .., _, _, _, _, _, _, _, _, _, _, _, _] = self.0;
        scramble
    }
}

/// A byte that is neither zero nor `$` nor above 127.
pub(crate) fn to_text_byte(byte: u8) -> u8 {
    match byte & 0x7F {
        byte @ (0 | b'$') => byte + 1,
        byte => byte,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_fit_for_text() {
        for byte in 0..=255 {
            let nonce = Nonce::from_random([byte; NONCE_BYTES]);
            assert!(
                nonce
                    .scramble()
                    .iter()
                    .all(|byte| (1..128).contains(byte) && *byte != b'$')
            );
        }
    }
}
