//! Base64 of exactly 32 bytes without padding: how MariaDB stores `ed25519` public keys.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Characters for 32 bytes.
const TEXT_BYTES: usize = 43;

/// The 43 characters of 32 bytes.
pub(crate) fn encode(bytes: &[u8; 32]) -> String {
    let mut text = String::with_capacity(TEXT_BYTES);
    for chunk in bytes.chunks(3) {
        let word = chunk
            .iter()
            .fold(0_u32, |word, byte| word << 8 | u32::from(*byte));
        let bits = chunk.len() * 8;
        let characters = bits.div_ceil(6);
        let word = word << (characters * 6 - bits);
        for index in (0..characters).rev() {
            let sextet = (word >> (index * 6)) & 0x3F;
            text.push(char::from(
                ALPHABET.get(sextet as usize).copied().unwrap_or(b'A'),
            ));
        }
    }
    text
}

/// The 32 bytes of 43 characters; `None` for any other text.
pub(crate) fn decode(text: &[u8]) -> Option<[u8; 32]> {
    if text.len() != TEXT_BYTES {
        return None;
    }
    let mut bytes = [0; 32];
    for (chunk, place) in text.chunks(4).zip(bytes.chunks_mut(3)) {
        let mut word = 0_u32;
        for character in chunk {
            let sextet = ALPHABET.iter().position(|known| known == character)?;
            word = word << 6 | u32::try_from(sextet).ok()?;
        }
        let spare_bits = chunk.len() * 6 - place.len() * 8;
        if word & ((1 << spare_bits) - 1) != 0 {
            return None;
        }
        let word = (word >> spare_bits).to_be_bytes();
        place.copy_from_slice(word.get(word.len() - place.len()..)?);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn round_trip(bytes: [u8; 32]) {
            prop_assert_eq!(decode(encode(&bytes).as_bytes()), Some(bytes));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        assert_eq!(encode(&[0; 32]), "A".repeat(43));
        assert_eq!(decode("A".repeat(42).as_bytes()), None);
        assert_eq!(decode("=".repeat(43).as_bytes()), None);
        assert_eq!(decode(format!("{}B", "A".repeat(42)).as_bytes()), None);
    }
}
