//! Parameters that come in pieces (COM_STMT_SEND_LONG_DATA).
//!
//! There is no reply to a piece, so what is wrong with one is told at the execution. A parameter is
//! as long as a packet may be at the most, as in MariaDB; all of a statement's together have
//! [`ALL_BYTES_MAX`].

use std::collections::HashMap;

use errcode::{ClientError, ER_UNKNOWN_ERROR};
use foldhash::fast::FixedState;

/// The largest `max_allowed_packet`: what one command could bring at the most.
const ALL_BYTES_MAX: usize = 1 << 30;

/// What has come of a statement's parameters.
#[derive(Debug, Default)]
pub(crate) struct LongData {
    /// By position.
    parts: HashMap<u16, Vec<u8>, FixedState>,
    /// Bytes of all.
    bytes: usize,
    /// One was too long; nothing is kept until the next [`LongData::clear`].
    is_too_long: bool,
}

impl LongData {
    /// Adds a piece to a parameter that may have up to `bytes_max` bytes.
    pub(crate) fn append(&mut self, parameter: u16, data: &[u8], bytes_max: usize) {
        if self.is_too_long {
            return;
        }
        let part = self.parts.entry(parameter).or_default();
        let is_too_long =
            bytes_max < part.len() + data.len() || ALL_BYTES_MAX < self.bytes + data.len();
        if is_too_long {
            self.clear();
            self.is_too_long = true;
            return;
        }
        part.extend_from_slice(data);
        self.bytes += data.len();
    }

    /// What has come of a parameter, if anything has.
    pub(crate) fn get(&self, parameter: usize) -> Option<&[u8]> {
        let parameter = u16::try_from(parameter).ok()?;
        self.parts.get(&parameter).map(Vec::as_slice)
    }

    /// Error 1105 if a parameter was too long.
    pub(crate) fn check(&self) -> Result<(), ClientError> {
        if !self.is_too_long {
            return Ok(());
        }
        let text = "Parameter of prepared statement which is set through mysql_send_long_data() \
                    is longer than 'max_allowed_packet' bytes";
        Err(ClientError::with_message(ER_UNKNOWN_ERROR, text))
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_joined_up_to_the_limit() {
        let mut long = LongData::default();
        long.append(1, b"ab", 4);
        long.append(0, b"x", 4);
        long.append(1, b"cd", 4);
        assert_eq!(long.get(1), Some(&b"abcd"[..]));
        assert_eq!((long.get(2), long.get(70_000)), (None, None));
        assert!(long.check().is_ok());
        long.append(1, b"e", 4);
        long.append(0, b"y", 4);
        assert_eq!(long.check().unwrap_err().code, ER_UNKNOWN_ERROR);
        assert_eq!((long.get(0), long.bytes), (None, 0), "nothing is kept");
        long.clear();
        assert!(long.check().is_ok());
    }

    #[test]
    fn all_together_have_a_limit_too() {
        let mut long = LongData {
            bytes: ALL_BYTES_MAX,
            ..LongData::default()
        };
        long.append(7, b"a", usize::MAX);
        assert!(long.check().is_err());
    }
}
