//! [`Input`]: received bytes of a channel that wait to be understood.

use crate::resources::Resources;

/// Bytes that wait to be understood.
#[derive(Debug, Default)]
pub(crate) struct Input {
    pub(crate) bytes: Vec<u8>,
    /// What has been taken from the front.
    pub(crate) used: usize,
}

impl Input {
    pub(crate) fn rest(&self) -> &[u8] {
        self.bytes.get(self.used..).unwrap_or_default()
    }

    pub(crate) fn rest_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.used..).unwrap_or_default()
    }

    pub(crate) fn consume(&mut self, count: usize) {
        self.used += count;
        assert!(
            self.used <= self.bytes.len(),
            "no more is taken than there is"
        );
        if self.used == self.bytes.len() {
            self.bytes.clear();
            self.used = 0;
        }
    }

    /// The buffer to append to, with what was taken cut off if that is the larger part.
    pub(crate) fn appendable(&mut self, resources: &Resources) -> &mut Vec<u8> {
        if self.bytes.capacity() == 0 {
            self.bytes = resources.take_buffer();
        }
        if self.used > self.bytes.len() / 2 {
            self.bytes.drain(..self.used);
            self.used = 0;
        }
        &mut self.bytes
    }

    /// Gives the buffer back if nothing is in it.
    pub(crate) fn rest_if_empty(&mut self, resources: &Resources) {
        if self.bytes.is_empty() && self.bytes.capacity() > 0 {
            resources.give_buffer(std::mem::take(&mut self.bytes));
        }
    }
}
