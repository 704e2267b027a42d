//! [`KeptReply`]: the bytes of a reply, and where they differ from one session to the next.

use link::{Part, Reply};
use wire::{Capabilities, FRAME_BYTES_MAX, HEADER_BYTES, StatusFlags};

use crate::budget::{COUNTS_BYTES, Claim};

/// A reply with one result set, as its packets were sent to a client. Their ids begin at 1.
#[derive(Debug)]
pub struct KeptReply {
    bytes: Box<[u8]>,
    /// Where the status of the packet behind the columns is, if there is one, and that of the last
    /// packet.
    status_at: [Option<usize>; 2],
    /// The flags of the last packet.
    status: StatusFlags,
    row_count: u64,
    /// The id of the packet behind it.
    next_sequence: u8,
    /// Its memory.
    claim: Claim,
}

/// Memory of a reply beside its bytes.
pub(crate) const REPLY_BYTES: usize = size_of::<KeptReply>() + COUNTS_BYTES;

/// What of a reply that a session may get must not be kept.
const OF_ONE_TIME: StatusFlags = StatusFlags(
    StatusFlags::MORE_RESULTS.0
        | StatusFlags::CURSOR_EXISTS.0
        | StatusFlags::LAST_ROW_SENT.0
        | StatusFlags::OUT_PARAMETERS.0
        | StatusFlags::SESSION_STATE_CHANGED.0
        | StatusFlags::DATABASE_DROPPED.0,
);

/// Where an EOF packet has the number of warnings, and its status behind that.
const EOF_WARNINGS_AT: usize = 1;
const EOF_STATUS_AT: usize = 3;

/// Where an OK packet has the first number that may take more bytes than one.
const OK_NUMBERS_AT: usize = 1;

impl KeptReply {
    /// The reply of these bytes to a client with these capabilities. `None` if it is not one result
    /// set that is good for all: with warnings, a cursor, changes of the session, or an error.
    pub(crate) fn new(
        (command, capabilities): (u8, Capabilities),
        bytes: Box<[u8]>,
        claim: Claim,
    ) -> Option<KeptReply> {
        let found = Found::of(command, capabilities, &bytes)?;
        Some(KeptReply {
            status_at: found.status_at,
            status: found.status,
            row_count: found.row_count,
            next_sequence: found.next_sequence,
            bytes,
            claim,
        })
    }

    /// Memory that it takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.claim.bytes()
    }

    /// Its packets.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where the flags of its status are.
    pub fn status_places(&self) -> impl Iterator<Item = usize> {
        self.status_at.into_iter().flatten()
    }

    /// The flags that it ended with.
    pub fn status(&self) -> StatusFlags {
        self.status
    }

    /// How many rows it has.
    pub fn row_count(&self) -> u64 {
        self.row_count
    }

    /// The sequence id behind its last packet.
    pub fn next_sequence(&self) -> u8 {
        self.next_sequence
    }
}

/// What a walk over the packets has found.
#[derive(Debug, Default)]
struct Found {
    status_at: [Option<usize>; 2],
    status: StatusFlags,
    row_count: u64,
    next_sequence: u8,
}

impl Found {
    /// `None` if the bytes are no reply that can be kept.
    fn of(command: u8, capabilities: Capabilities, bytes: &[u8]) -> Option<Found> {
        let mut found = Found::default();
        let mut reply = Reply::new(command, capabilities);
        let (mut at, mut sequence) = (0, 1_u8);
        while !reply.is_over() {
            let (length, id) = header(bytes, at)?;
            let begin = at + HEADER_BYTES;
            let payload = bytes.get(begin..begin.checked_add(length)?)?;
            (id == sequence).then_some(())?;
            let part = reply.take(length, payload).ok()??;
            match part {
                Part::Head if at != 0 => return None,
                Part::Head | Part::Column => {}
                Part::Row => found.row_count += 1,
                Part::ColumnsEnd(_) => {
                    found.status_at[0] = Some(begin + EOF_STATUS_AT);
                }
                Part::RowsEnd(status) => {
                    let is_ok = capabilities.contains(Capabilities::DEPRECATE_EOF);
                    let (status_at, warnings_at) = if is_ok {
                        let at = ok_status_at(payload)?;
                        (at, at + 2)
                    } else {
                        (EOF_STATUS_AT, EOF_WARNINGS_AT)
                    };
                    // A session that gets it again could not ask for them.
                    (payload.get(warnings_at..)?.first_chunk() == Some(&[0, 0])).then_some(())?;
                    found.status_at[1] = Some(begin + status_at);
                    found.status = status;
                }
                _ => return None,
            }
            // The frames behind the first one of a long row have no header of their own packet.
            let mut frame = length;
            at = begin + length;
            sequence = sequence.wrapping_add(1);
            while frame == FRAME_BYTES_MAX {
                let (length, id) = header(bytes, at)?;
                (id == sequence).then_some(())?;
                at = at + HEADER_BYTES + length;
                sequence = sequence.wrapping_add(1);
                frame = length;
            }
        }
        let is_of_all = found.status.0 & OF_ONE_TIME.0 == 0;
        found.next_sequence = sequence;
        (at == bytes.len() && is_of_all).then_some(found)
    }
}

/// The length and the id in the header of a frame.
fn header(bytes: &[u8], at: usize) -> Option<(usize, u8)> {
    let header: &[u8; HEADER_BYTES] = bytes.get(at..)?.first_chunk()?;
    let [a, b, c, id] = *header;
    let length = usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16;
    Some((length, id))
}

/// Where the OK packet that ends rows has its status: behind two numbers.
fn ok_status_at(payload: &[u8]) -> Option<usize> {
    let mut at = OK_NUMBERS_AT;
    for _ in 0..2 {
        at += match payload.get(at)? {
            0xFC => 3,
            0xFD => 4,
            0xFE => 9,
            _ => 1,
        };
    }
    (at + 2 <= payload.len()).then_some(at)
}
