//! A completion's user data: the kind of operation and the slot that it belongs to.
//!
//! A slot is freed only after the last completion of its operations. So no completion meets the
//! slot's next user, and no generation is needed.

/// Kinds of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// Of a socket.
    Receive,
    /// Of a socket.
    Send,
    /// Of a listening socket.
    Accept,
    /// Waits for the end of connecting.
    Connect,
    /// Waits for the peer to go.
    HangUp,
    /// Waits for other threads.
    Poke,
    /// A read, write or sync of a file.
    File,
    /// The answer to a cancellation. It is ignored.
    Cancel,
}

const KIND_SHIFT: u32 = 56;

/// All of them, in the order of their numbers.
pub(super) const KINDS: [Kind; 8] = [
    Kind::Receive,
    Kind::Send,
    Kind::Accept,
    Kind::Connect,
    Kind::HangUp,
    Kind::Poke,
    Kind::File,
    Kind::Cancel,
];

impl Kind {
    /// Its bit in a set of kinds.
    pub(super) fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// User data of an operation.
pub(super) fn token(kind: Kind, index: usize) -> u64 {
    let index = stdx::to_u64(index);
    assert!(index >> KIND_SHIFT == 0, "slots are far fewer than 2^56");
    (u64::from(kind as u8) << KIND_SHIFT) | index
}

/// What `token` packed.
pub(super) fn untoken(user_data: u64) -> (Kind, usize) {
    let kind = stdx::to_usize(user_data >> KIND_SHIFT);
    let kind = *KINDS
        .get(kind)
        .expect("the kernel gives user data back unchanged");
    (kind, stdx::to_usize(user_data & ((1 << KIND_SHIFT) - 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unpacks_what_it_packed() {
        for (number, kind) in KINDS.into_iter().enumerate() {
            assert_eq!(usize::from(kind as u8), number);
            assert_eq!(untoken(token(kind, 12345)), (kind, 12345));
        }
    }
}
