//! [`PeerWatch`]: whether a stream's peer is still there, for callers that do not read the stream.
//!
//! It is one call to the kernel, which takes nothing off the stream and asks neither driver. Unread
//! bytes are no end, wherever they are. A peer that closes a TCP connection and one that only ends
//! its sending side look the same until something is sent to them. Only the first answers by a
//! reset. Over a unix socket they differ at once.

use std::fmt;
use std::os::fd::OwnedFd;
use std::rc::Weak;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// What is known of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerState {
    /// It may send more.
    There,
    /// It sends no more. Whether it still reads is not known.
    Ended,
    /// It neither sends nor reads.
    Gone,
}

/// See the module's head. It does not keep the stream open.
pub struct PeerWatch {
    descriptor: Weak<OwnedFd>,
    /// Over a unix socket.
    is_local: bool,
}

impl PeerWatch {
    pub(crate) fn new(descriptor: Weak<OwnedFd>, is_local: bool) -> Self {
        Self {
            descriptor,
            is_local,
        }
    }

    /// The state of the peer now. A peer whose state cannot be read counts as there.
    pub fn look(&self) -> PeerState {
        let Some(descriptor) = self.descriptor.upgrade() else {
            return PeerState::Gone;
        };
        let mut asked = [PollFd::new(&*descriptor, PollFlags::RDHUP)];
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        if poll(&mut asked, Some(&at_once)).is_err() {
            return PeerState::There;
        }
        let [answer] = asked;
        let events = answer.revents();
        if events.contains(PollFlags::HUP) {
            PeerState::Gone
        } else if events.contains(PollFlags::RDHUP) && !self.is_local {
            PeerState::Ended
        } else {
            PeerState::There
        }
    }
}

impl fmt::Debug for PeerWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerWatch").finish_non_exhaustive()
    }
}
