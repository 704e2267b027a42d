//! Ports of servers and listeners.

use std::num::NonZeroU16;

/// The port of a text, as a settings file may have it.
pub(crate) fn port(text: &str) -> Option<NonZeroU16> {
    let has_digits = text.bytes().all(|it| it.is_ascii_digit());
    text.parse().ok().filter(|_| has_digits)
}

/// The note about a value that is none.
pub(crate) fn no_port(text: &str, instead: impl std::fmt::Display) -> String {
    format!("`{text}` is no port from 1 to 65535: write it where the file says {instead}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_has_sixteen_bits_and_is_not_zero() {
        for (text, expected) in [
            ("1", Some(1)),
            ("3306", Some(3306)),
            ("65535", Some(65535)),
            ("65536", None),
            ("0", None),
            ("-1", None),
            ("+1", None),
            ("mysql", None),
            ("", None),
        ] {
            assert_eq!(port(text).map(NonZeroU16::get), expected, "{text}");
        }
    }
}
