//! Base64 of exactly 32 bytes without padding: how MariaDB stores `ed25519` public keys.

/// Characters for 32 bytes.
const TEXT_BYTES: usize = 43;

/// The 43 characters of 32 bytes.
pub(crate) fn encode(bytes: &[u8; 32]) -> String {
    let digits = bytes.chunks(3).flat_map(stdx::base64::digits);
    digits.take(TEXT_BYTES).map(char::from).collect()
}

/// The 32 bytes of 43 characters; `None` for any other text.
pub(crate) fn decode(text: &[u8]) -> Option<[u8; 32]> {
    if text.len() != TEXT_BYTES {
        return None;
    }
    let mut bytes = [0; 32];
    for (chunk, place) in text.chunks(4).zip(bytes.chunks_mut(3)) {
        let group = stdx::base64::bytes(chunk)?;
        let (taken, spare) = group.split_at_checked(place.len())?;
        if spare.iter().any(|bits| *bits != 0) {
            return None;
        }
        place.copy_from_slice(taken);
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
