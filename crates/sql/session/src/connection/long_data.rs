//! Parameters that come in pieces (COM_STMT_SEND_LONG_DATA).
//!
//! A piece has no reply, so its errors are reported at the execution. A parameter has at most the
//! length of a packet, as in MariaDB; all parameters of a statement together have
//! [`ALL_BYTES_MAX`].

use std::collections::HashMap;

use errcode::{ClientError, WORDS_LONG_DATA};
use expression::Share;
use foldhash::fast::FixedState;

/// The largest `max_allowed_packet`: the most that one command could send.
const ALL_BYTES_MAX: usize = 1 << 30;

/// What a parameter takes in addition to its bytes.
const PART_BYTES: usize = 64;

/// The received pieces of a statement's parameters.
#[derive(Debug, Default)]
pub(crate) struct LongData {
    /// By position.
    parts: HashMap<u16, Vec<u8>, FixedState>,
    /// Bytes of all parameters.
    bytes: usize,
    share: Share,
    /// Why nothing is kept until the next [`LongData::clear`].
    failure: Option<ClientError>,
}

impl LongData {
    /// Adds a piece to a parameter that may have up to `bytes_max` bytes; `keep` counts what is
    /// kept.
    pub(crate) fn append(
        &mut self,
        parameter: u16,
        data: &[u8],
        bytes_max: usize,
        keep: impl FnOnce(&mut Share, usize) -> Result<(), ClientError>,
    ) {
        if self.failure.is_some() {
            return;
        }
        if let Err(failure) = self.take(parameter, data, bytes_max, keep) {
            self.clear();
            self.failure = Some(failure);
        }
    }

    fn take(
        &mut self,
        parameter: u16,
        data: &[u8],
        bytes_max: usize,
        keep: impl FnOnce(&mut Share, usize) -> Result<(), ClientError>,
    ) -> Result<(), ClientError> {
        let bytes = self.bytes + data.len();
        keep(&mut self.share, bytes + (self.parts.len() + 1) * PART_BYTES)?;
        let part = self.parts.entry(parameter).or_default();
        if bytes_max < part.len() + data.len() || ALL_BYTES_MAX < bytes {
            return Err(ClientError::worded(WORDS_LONG_DATA, &[]));
        }
        part.extend_from_slice(data);
        self.bytes = bytes;
        Ok(())
    }

    /// The received bytes of a parameter, or `None`.
    pub(crate) fn get(&self, parameter: usize) -> Option<&[u8]> {
        let parameter = u16::try_from(parameter).ok()?;
        self.parts.get(&parameter).map(Vec::as_slice)
    }

    /// Error 1105 if one parameter was too long, 1290 or 1041 if all together were.
    pub(crate) fn check(&self) -> Result<(), ClientError> {
        self.failure.clone().map_or(Ok(()), Err)
    }

    /// Drops everything.
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
        let free = |_: &mut Share, _| Ok(());
        long.append(1, b"ab", 4, free);
        long.append(0, b"x", 4, free);
        long.append(1, b"cd", 4, free);
        assert_eq!(long.get(1), Some(&b"abcd"[..]));
        assert_eq!((long.get(2), long.get(70_000)), (None, None));
        assert!(long.check().is_ok());
        long.append(1, b"e", 4, free);
        long.append(0, b"y", 4, free);
        assert_eq!(long.check().unwrap_err().code, WORDS_LONG_DATA.code);
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
        long.append(7, b"a", usize::MAX, |_, _| Ok(()));
        assert!(long.check().is_err());
    }
}
