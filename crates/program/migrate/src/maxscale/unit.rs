//! Values of MaxScale's settings: durations, lists, passwords.

/// What a number without a unit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bare {
    Seconds,
    Milliseconds,
}

/// Milliseconds of a duration.
pub(super) fn milliseconds(text: &str, bare: Bare) -> Option<u64> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" if bare == Bare::Milliseconds => 1,
        "ms" => 1,
        "" | "s" => 1000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// Bytes of a size.
pub(super) fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" => 1,
        "k" => 1000,
        "m" => 1_000_000,
        "g" => 1_000_000_000,
        "t" => 1_000_000_000_000,
        "ki" => 1 << 10,
        "mi" => 1 << 20,
        "gi" => 1 << 30,
        "ti" => 1 << 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// The parts of a list, without blanks at their ends.
pub(super) fn list(text: &str) -> Vec<&str> {
    let parts = text.split([',', '|']).map(str::trim);
    parts.filter(|it| !it.is_empty()).collect()
}

/// Whether a password looks like one that `maxpasswd` has made.
pub(super) fn is_encrypted(password: &str) -> bool {
    /// Of one block of its cipher, in hexadecimal digits.
    const BLOCK_DIGITS: usize = 32;
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'A'..=b'F').contains(&byte);
    let (begin, end) = password.split_once(':').unwrap_or(("", password));
    let digits = end.len() + begin.len();
    BLOCK_DIGITS <= digits && end.bytes().chain(begin.bytes()).all(is_digit)
}

/// A host and a port, as a settings file has them.
pub(super) fn host_and_port(host: &str, port: &str) -> String {
    match host.contains(':') && !host.starts_with('[') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        for (text, expected) in [
            ("2000ms", Some(2000)),
            ("2s", Some(2000)),
            ("2", Some(2000)),
            ("1min", Some(60_000)),
            ("1M", Some(60_000)),
            (" 3 h ", Some(10_800_000)),
            ("", None),
            ("x", None),
            ("1y", None),
            ("99999999999999999999", None),
            ("9999999999999999999h", None),
        ] {
            assert_eq!(milliseconds(text, Bare::Seconds), expected, "{text}");
        }
        assert_eq!(milliseconds("2000", Bare::Milliseconds), Some(2000));
        assert_eq!(milliseconds("2s", Bare::Milliseconds), Some(2000));
    }

    #[test]
    fn sizes_have_units() {
        for (text, expected) in [
            ("100", Some(100)),
            ("2k", Some(2000)),
            ("64Mi", Some(64 << 20)),
            ("1 GI", Some(1 << 30)),
            ("3T", Some(3_000_000_000_000)),
            ("", None),
            ("-1", None),
            ("1Pi", None),
            ("99999999Ti", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }

    #[test]
    fn encrypted_passwords_are_seen() {
        assert!(is_encrypted("96F99AA1315BDC3604B006F427DD9484"));
        assert!(is_encrypted(&format!(
            "{}:{}",
            "0A".repeat(16),
            "9F".repeat(16)
        )));
        for plain in ["", "secret", "96f99aa1315bdc3604b006f427dd9484", "96F99A"] {
            assert!(!is_encrypted(plain), "{plain}");
        }
    }

    #[test]
    fn addresses_of_ipv6_get_brackets() {
        assert_eq!(host_and_port("::1", "3306"), "[::1]:3306");
        assert_eq!(host_and_port("[::1]", "3306"), "[::1]:3306");
        assert_eq!(host_and_port("db1", "3306"), "db1:3306");
    }
}
