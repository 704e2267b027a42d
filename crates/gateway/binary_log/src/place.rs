//! [`Place`]: how far a log was read, and the command that asks for what follows.

use std::fmt;
use std::sync::Arc;

/// A position in a server's binary log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// The file's name.
    pub file: Arc<str>,
    /// Bytes from its beginning.
    pub offset: u64,
}

/// Longest name of a file: that of a path. A longer one is cut off.
const FILE_BYTES_MAX: usize = 512;

impl Place {
    /// A place in a file of this name.
    pub fn new(file: &[u8], offset: u64) -> Place {
        let name = file.get(..FILE_BYTES_MAX).unwrap_or(file);
        Place {
            file: String::from_utf8_lossy(name).into(),
            offset,
        }
    }

    /// Whether it is here or before `other`. Files are in the order of the numbers that their names
    /// end with. `false` if one has none.
    pub fn is_reached_by(&self, other: &Place) -> bool {
        if self.file == other.file {
            return self.offset <= other.offset;
        }
        matches!((self.number(), other.number()), (Some(own), Some(its)) if own < its)
    }

    /// The number behind the last dot of the file's name.
    fn number(&self) -> Option<u64> {
        let (_, number) = self.file.rsplit_once('.')?;
        number.parse().ok()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.offset)
    }
}

/// The body of COM_BINLOG_DUMP: the server sends all events behind a place, and waits for more.
/// `number` is the `server_id` of who asks; a server ends an older dump of the same number. `None`
/// if the place is behind what the command has room for, 4 GiB.
pub fn dump_request(place: &Place, number: u32) -> Option<Vec<u8>> {
    let offset = u32::try_from(place.offset).ok()?;
    let mut body = offset.to_le_bytes().to_vec();
    // No flags: the server waits at the end, and sends no texts beside rows.
    body.extend_from_slice(&0_u16.to_le_bytes());
    body.extend_from_slice(&number.to_le_bytes());
    body.extend_from_slice(place.file.as_bytes());
    Some(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(file: &str, offset: u64) -> Place {
        Place::new(file.as_bytes(), offset)
    }

    #[test]
    fn places_are_ordered_by_the_number_of_the_file() {
        let own = place("log.000009", 500);
        for (other, is_reached) in [
            (place("log.000009", 499), false),
            (place("log.000009", 500), true),
            (place("log.000009", 501), true),
            (place("log.000010", 4), true),
            (place("log.1000000", 4), true),
            (place("log.000008", 900), false),
            (place("log", 900), false),
            (place("log.x", 900), false),
        ] {
            assert_eq!(own.is_reached_by(&other), is_reached, "{other}");
        }
    }

    #[test]
    fn a_request_has_the_place_and_the_number() {
        let request = dump_request(&place("log.000001", 0x0102), 0x0a0b).unwrap();
        assert_eq!(request, b"\x02\x01\0\0\0\0\x0b\x0a\0\0log.000001");
        for (offset, is_asked) in [(u64::from(u32::MAX), true), (1 << 32, false)] {
            let request = dump_request(&place("log.000001", offset), 1);
            assert_eq!(request.is_some(), is_asked, "{offset}");
        }
    }

    #[test]
    fn a_name_has_a_limit() {
        for (length, kept) in [(511, 511), (512, 512), (513, 512)] {
            let name = vec![b'a'; length];
            assert_eq!(Place::new(&name, 4).file.len(), kept);
        }
    }
}
