//! [`PacketBytes`]: a received packet in the buffer that it came in.

use std::ops::{Deref, Range};
use std::rc::Rc;

use crate::packet_memory::PacketShare;
use crate::resources::Resources;

/// The payload of a received packet. Dropped, its buffer goes back to the worker's pool.
pub struct PacketBytes {
    pub(crate) resources: Rc<Resources>,
    pub(crate) buffer: Vec<u8>,
    pub(crate) payload: Range<usize>,
    /// Memory that the packet holds, if it is large.
    pub(crate) _share: Option<PacketShare>,
}

impl Deref for PacketBytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.buffer.get(self.payload.clone()).unwrap_or_default()
    }
}

impl std::fmt::Debug for PacketBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PacketBytes")
            .field("payload", &self.payload)
            .finish_non_exhaustive()
    }
}

impl Drop for PacketBytes {
    fn drop(&mut self) {
        self.resources.give_buffer(std::mem::take(&mut self.buffer));
    }
}
