//! Who is shown replies as they pass.

use std::fmt::Debug;

use super::Channel;

/// Who is shown replies as they are passed on to a peer.
pub trait Onlooker: Debug {
    /// These bytes of a reply were passed on, as the peer gets them.
    fn passed(&mut self, bytes: &[u8]);
}

impl Channel {
    /// Shows the replies that are passed on to the peer to this onlooker, or to none.
    pub(crate) fn set_onlooker(&mut self, onlooker: Option<Box<dyn Onlooker>>) {
        self.onlooker = onlooker;
    }

    /// How much was written last and waits to be sent, without long packets.
    #[inline]
    pub(crate) fn written_bytes(&self) -> usize {
        self.out.pending_bytes()
    }

    /// Shows what of a reply was written since there were `before` bytes.
    #[inline]
    pub(crate) fn show_written(&mut self, before: usize) {
        if let Some(onlooker) = &mut self.onlooker {
            onlooker.passed(self.out.as_bytes().get(before..).unwrap_or_default());
        }
    }
}
