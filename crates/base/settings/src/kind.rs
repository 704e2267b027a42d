//! Types of settings: how a text becomes a value, its range, and how it is shown.

use std::fmt;
use std::net::SocketAddr;

use stdx::Network;

/// What values a setting takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// `ON` or `OFF`; also 1, 0, true, false, yes, no.
    Bool,
    /// `ON` or `OFF` in other servers; here only this one exists.
    Only(bool),
    /// A count, or a time in the unit that the name or the text says.
    Unsigned { min: u64, max: u64 },
    /// A count from 1 on, or `auto`, or `off`.
    CountOrAuto { max: u64 },
    /// A size in bytes; takes `K`, `M`, `G` and `T` (powers of 1024) after the number.
    Bytes { min: u64, max: u64 },
    /// A time in seconds, to the microsecond, from zero to `max`.
    Seconds { max: u64 },
    /// A part of a whole, from 0 to 1, to the millionth.
    Ratio,
    /// Any text.
    Text,
    /// A path, not empty.
    Path,
    /// An address and a port.
    Address,
    /// The same, or an empty text.
    AddressOrNone,
    /// A name or an address of a machine, and a port.
    HostAndPort,
    /// An address, or one with a number of bits.
    Network,
    /// One of these words, ignoring case. If SQL passes a number, it is the index.
    Choice(&'static [&'static str]),
    /// Any number of these words, separated by commas, ignoring case. If SQL passes a number, its
    /// bits choose the words by their places. Words that are refused keep their places.
    Flags {
        words: &'static [&'static str],
        refused: &'static [&'static str],
    },
}

/// The value of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Bool(bool),
    Unsigned(u64),
    /// A time, in microseconds; or a ratio, in millionths.
    Micros(u64),
    Text(String),
}

/// Microseconds in a second.
const SECOND_US: u64 = 1_000_000;

/// Why a text is no value of a kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("expected {expected}")]
    Malformed { expected: String },
    #[error("`{word}` is not supported")]
    NotSupported { word: &'static str },
    #[error("must be between {min} and {max}")]
    OutOfRange { min: u64, max: u64 },
    #[error("must be between {} and {}", show_bytes(*.min), show_bytes(*.max))]
    SizeOutOfRange { min: u64, max: u64 },
}

impl Kind {
    /// Reads a value as a person writes it. Strict: a value out of range is an error.
    pub fn parse(&self, text: &str) -> Result<Value, Problem> {
        let text = text.trim();
        match *self {
            Kind::Bool => parse_bool(text)
                .map(Value::Bool)
                .ok_or_else(|| self.malformed()),
            Kind::Only(built) => match parse_bool(text) {
                Some(truth) if truth == built => Ok(Value::Bool(truth)),
                _ => Err(self.malformed()),
            },
            Kind::Unsigned { min, max } => {
                let number = text.parse().map_err(|_| self.malformed())?;
                in_range(number, min, max)
            }
            Kind::CountOrAuto { max } => parse_count_or_auto(text, max)
                .map(Value::Text)
                .ok_or_else(|| self.malformed()),
            Kind::Bytes { min, max } => {
                let bytes = parse_bytes(text).ok_or_else(|| self.malformed())?;
                in_range(bytes, min, max).map_err(|_| Problem::SizeOutOfRange { min, max })
            }
            Kind::Seconds { max } => {
                let micros = parse_seconds(text).ok_or_else(|| self.malformed())?;
                if max.saturating_mul(SECOND_US) < micros {
                    return Err(Problem::OutOfRange { min: 0, max });
                }
                Ok(Value::Micros(micros))
            }
            Kind::Ratio => {
                let millionths = parse_seconds(text).ok_or_else(|| self.malformed())?;
                if SECOND_US < millionths {
                    return Err(Problem::OutOfRange { min: 0, max: 1 });
                }
                Ok(Value::Micros(millionths))
            }
            Kind::Text => Ok(Value::Text(text.to_owned())),
            Kind::Path if text.is_empty() => Err(self.malformed()),
            Kind::AddressOrNone if text.is_empty() => Ok(Value::Text(String::new())),
            Kind::Address | Kind::AddressOrNone if text.parse::<SocketAddr>().is_err() => {
                Err(self.malformed())
            }
            Kind::HostAndPort if !is_host_and_port(text) => Err(self.malformed()),
            Kind::Network if text.parse::<Network>().is_err() => Err(self.malformed()),
            Kind::Path
            | Kind::Address
            | Kind::AddressOrNone
            | Kind::HostAndPort
            | Kind::Network => Ok(Value::Text(text.to_owned())),
            Kind::Choice(words) => {
                let word = find_word(words, text).ok_or_else(|| self.malformed())?;
                Ok(Value::Text(word.to_owned()))
            }
            Kind::Flags { words, refused } => {
                let given = text
                    .split(',')
                    .map(str::trim)
                    .filter(|word| !word.is_empty());
                let mut flags = Vec::new();
                for word in given {
                    let word = find_word(words, word).ok_or_else(|| self.malformed())?;
                    if refused.contains(&word) {
                        return Err(Problem::NotSupported { word });
                    }
                    flags.push(word);
                }
                // Shown once each, in the order of their bits.
                let words = words.iter().copied();
                let flags: Vec<&str> = words.filter(|word| flags.contains(word)).collect();
                Ok(Value::Text(flags.join(",")))
            }
        }
    }

    /// Clamps the number to the range, as `SET` does (with warning 1292), and returns whether it
    /// changed. For kinds without a range the number is returned unchanged.
    pub fn clamp(&self, number: u64) -> (u64, bool) {
        match *self {
            Kind::Unsigned { min, max } | Kind::Bytes { min, max } => {
                let inside = number.clamp(min, max);
                (inside, inside != number)
            }
            Kind::Seconds { max } => (number.min(max), max < number),
            Kind::Ratio => (number.min(1), 1 < number),
            Kind::Bool
            | Kind::Only(_)
            | Kind::CountOrAuto { .. }
            | Kind::Text
            | Kind::Path
            | Kind::Address
            | Kind::AddressOrNone
            | Kind::HostAndPort
            | Kind::Network
            | Kind::Choice(_)
            | Kind::Flags { .. } => (number, false),
        }
    }

    /// The kind in words, for the reference page and for error messages.
    pub fn describe(&self) -> String {
        match *self {
            Kind::Bool => "ON or OFF".to_owned(),
            Kind::Only(true) => "only ON".to_owned(),
            Kind::Only(false) => "only OFF".to_owned(),
            Kind::Unsigned { min, max } => format!("a number, {min} to {}", Limit(max)),
            Kind::CountOrAuto { max } => format!("auto, off, or a number, 1 to {max}"),
            Kind::Bytes { min, max } => {
                format!("a size, {} to {}", show_bytes(min), show_bytes(max))
            }
            Kind::Seconds { max } => format!("seconds, 0 to {max}, with a fraction"),
            Kind::Ratio => "a ratio, 0 to 1, as in 0.01".to_owned(),
            Kind::Text => "text".to_owned(),
            Kind::Path => "a path".to_owned(),
            Kind::Address => "an address and port, as in 127.0.0.1:4006".to_owned(),
            Kind::AddressOrNone => {
                "an address and port, as in 127.0.0.1:4006, or an empty text".to_owned()
            }
            Kind::HostAndPort => {
                "a host name or address and a port, as in db1.example.org:3306".to_owned()
            }
            Kind::Network => "an address or a network, as in 10.0.0.0/8".to_owned(),
            Kind::Choice(words) => format!("one of {}", words.join(", ")),
            Kind::Flags { words, refused } => {
                let words = words.iter().copied();
                let taken: Vec<&str> = words.filter(|word| !refused.contains(word)).collect();
                format!("any of {}, separated by commas", taken.join(", "))
            }
        }
    }

    fn malformed(&self) -> Problem {
        Problem::Malformed {
            expected: self.describe(),
        }
    }
}

impl fmt::Display for Value {
    /// As `SHOW VARIABLES` shows it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(true) => f.write_str("ON"),
            Value::Bool(false) => f.write_str("OFF"),
            Value::Unsigned(number) => number.fmt(f),
            Value::Micros(micros) => {
                write!(f, "{}.{:06}", micros / SECOND_US, micros % SECOND_US)
            }
            Value::Text(text) => f.write_str(text),
        }
    }
}

/// A number whose largest value means "no limit".
struct Limit(u64);

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == u64::MAX {
            f.write_str("2^64-1")
        } else {
            self.0.fmt(f)
        }
    }
}

/// A size with the largest unit that divides it.
fn show_bytes(bytes: u64) -> String {
    let units = [(40, "T"), (30, "G"), (20, "M"), (10, "K")];
    let fits =
        |&&(shift, _): &&(u32, &str)| bytes >= 1 << shift && bytes.is_multiple_of(1 << shift);
    match units.iter().find(fits) {
        Some((shift, unit)) => format!("{}{unit}", bytes >> shift),
        None => Limit(bytes).to_string(),
    }
}

/// `2`, `0.5`; digits below a microsecond are cut off.
fn parse_seconds(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let digits: String = fraction.chars().chain("000000".chars()).take(6).collect();
    let whole: u64 = whole.parse().ok()?;
    whole
        .checked_mul(SECOND_US)?
        .checked_add(digits.parse().ok()?)
}

/// A word in lower case, or a number without leading zeros.
fn parse_count_or_auto(text: &str, max: u64) -> Option<String> {
    for word in ["auto", "off"] {
        if text.eq_ignore_ascii_case(word) {
            return Some(word.to_owned());
        }
    }
    let count: u64 = text.parse().ok()?;
    (1..=max).contains(&count).then(|| count.to_string())
}

fn parse_bool(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "on" | "1" | "true" | "yes" => Some(true),
        "off" | "0" | "false" | "no" => Some(false),
        _ => None,
    }
}

/// Whether a text is an address and a port, or a name and a port above 0.
fn is_host_and_port(text: &str) -> bool {
    if text.parse::<SocketAddr>().is_ok() {
        return true;
    }
    let Some((host, port)) = text.rsplit_once(':') else {
        return false;
    };
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let is_name = (1..=HOST_NAME_BYTES_MAX).contains(&host.len()) && host.bytes().all(is_letter);
    is_name && port.parse::<u16>().is_ok_and(|port| port != 0)
}

/// Longest name of a host (RFC 1035).
const HOST_NAME_BYTES_MAX: usize = 253;

/// `4096`, `64K`, `128M`, `128MiB`, `1g`.
fn parse_bytes(text: &str) -> Option<u64> {
    let digits = text
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

fn in_range(number: u64, min: u64, max: u64) -> Result<Value, Problem> {
    if (min..=max).contains(&number) {
        Ok(Value::Unsigned(number))
    } else {
        Err(Problem::OutOfRange { min, max })
    }
}

fn find_word(words: &[&'static str], text: &str) -> Option<&'static str> {
    words
        .iter()
        .copied()
        .find(|word| word.eq_ignore_ascii_case(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_may_be_left_to_the_server() {
        let kind = Kind::CountOrAuto { max: 100 };
        for (text, shown) in [
            ("AUTO", "auto"),
            ("off", "off"),
            ("1", "1"),
            ("0100", "100"),
        ] {
            assert_eq!(
                kind.parse(text),
                Ok(Value::Text(shown.to_owned())),
                "{text}"
            );
        }
        for text in ["0", "101", "-1", "", "on"] {
            assert!(kind.parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_take_units() {
        let kind = Kind::Bytes {
            min: 1024,
            max: 1 << 40,
        };
        for (text, bytes) in [
            ("4096", 4096),
            ("64K", 65536),
            ("128 MiB", 128 << 20),
            ("1g", 1 << 30),
        ] {
            assert_eq!(kind.parse(text), Ok(Value::Unsigned(bytes)), "{text}");
        }
        assert!(matches!(kind.parse("12X"), Err(Problem::Malformed { .. })));
        assert!(matches!(
            kind.parse("99999999999T"),
            Err(Problem::Malformed { .. })
        ));
        assert_eq!(
            kind.parse("1"),
            Err(Problem::SizeOutOfRange {
                min: 1024,
                max: 1 << 40
            })
        );
        let problem = kind.parse("1").unwrap_err();
        assert_eq!(problem.to_string(), "must be between 1K and 1T");
        assert_eq!(kind.describe(), "a size, 1K to 1T");
    }

    #[test]
    fn seconds_take_a_fraction() {
        let kind = Kind::Seconds { max: 10 };
        for (text, micros) in [("2", 2_000_000), ("0.5", 500_000), ("1.0000019", 1_000_001)] {
            assert_eq!(kind.parse(text), Ok(Value::Micros(micros)), "{text}");
        }
        assert_eq!(Value::Micros(1_500_000).to_string(), "1.500000");
        for text in ["", ".", "-1", "1.", "1e3"] {
            assert!(matches!(kind.parse(text), Err(Problem::Malformed { .. })));
        }
        assert!(matches!(
            kind.parse("10.1"),
            Err(Problem::OutOfRange { .. })
        ));
        assert_eq!(kind.clamp(11), (10, true));
    }

    #[test]
    fn ratios_are_parts_of_a_whole() {
        for (text, millionths) in [
            ("0", 0),
            ("0.01", 10_000),
            ("1", 1_000_000),
            ("1.0", 1_000_000),
        ] {
            assert_eq!(
                Kind::Ratio.parse(text),
                Ok(Value::Micros(millionths)),
                "{text}"
            );
        }
        let problem = Kind::Ratio.parse("1.5").unwrap_err();
        assert_eq!(problem.to_string(), "must be between 0 and 1");
        let problem = Kind::Ratio.parse("1%").unwrap_err();
        assert_eq!(problem.to_string(), "expected a ratio, 0 to 1, as in 0.01");
        assert_eq!(Kind::Ratio.clamp(2), (1, true));
    }

    #[test]
    fn what_is_not_built_cannot_be_turned_on() {
        let kind = Kind::Only(false);
        assert_eq!(kind.parse("off"), Ok(Value::Bool(false)));
        assert!(kind.parse("ON").is_err() && kind.parse("maybe").is_err());
    }

    #[test]
    fn words_are_read_without_case_and_kept_as_declared() {
        assert_eq!(Kind::Bool.parse("Yes"), Ok(Value::Bool(true)));
        assert!(Kind::Bool.parse("2").is_err());
        let kind = Kind::Choice(&["auto", "uring", "epoll"]);
        assert_eq!(kind.parse("EPOLL"), Ok(Value::Text("epoll".to_owned())));
        let problem = kind.parse("poll").unwrap_err();
        assert_eq!(problem.to_string(), "expected one of auto, uring, epoll");
        let kind = Kind::Flags {
            words: &["A", "B", "C"],
            refused: &["C"],
        };
        assert_eq!(kind.parse("b, a,b,"), Ok(Value::Text("A,B".to_owned())));
        let problem = |text| kind.parse(text).unwrap_err().to_string();
        assert_eq!(problem("d"), "expected any of A, B, separated by commas");
        assert_eq!(problem("a,c"), "`C` is not supported");
    }

    #[test]
    fn addresses_have_a_port() {
        let kind = Kind::Address;
        for text in ["127.0.0.1:4006", "[::1]:0", " 0.0.0.0:3306 "] {
            let expected = Ok(Value::Text(text.trim().to_owned()));
            assert_eq!(kind.parse(text), expected);
            assert_eq!(Kind::AddressOrNone.parse(text), expected);
        }
        for text in [
            "",
            "localhost:4006",
            "127.0.0.1",
            "::1",
            ":4006",
            "1.2.3.4:65536",
        ] {
            assert!(kind.parse(text).is_err(), "{text}");
            let is_fine = Kind::AddressOrNone.parse(text).is_ok();
            assert_eq!(is_fine, text.is_empty(), "{text}");
        }
        assert_eq!(Kind::Path.parse("a b"), Ok(Value::Text("a b".to_owned())));
        assert!(Kind::Path.parse(" ").is_err());
    }

    #[test]
    fn hosts_have_a_name_and_a_port() {
        let of_length = |length| format!("{}:3306", "n".repeat(length));
        let (longest, longer) = (of_length(253), of_length(254));
        for text in [
            "db1:3306",
            "db-1.example.org:1",
            "10.0.0.1:3306",
            "[::1]:3306",
            &longest,
        ] {
            assert!(Kind::HostAndPort.parse(text).is_ok(), "{text}");
        }
        for text in [
            "",
            "db1",
            "db1:0",
            "db1:65536",
            ":3306",
            "a b:1",
            "::1:3306",
            &longer,
        ] {
            assert!(Kind::HostAndPort.parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_are_bent_only_on_request() {
        let kind = Kind::Unsigned { min: 1, max: 10 };
        assert_eq!(
            kind.parse("11"),
            Err(Problem::OutOfRange { min: 1, max: 10 })
        );
        assert_eq!(kind.clamp(11), (10, true));
        assert_eq!(kind.clamp(5), (5, false));
        assert!(kind.parse("-1").is_err());
    }
}
