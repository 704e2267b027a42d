//! [`Resources`]: what the links of a worker have in common: codecs, buffers, counters.
//!
//! One value a worker, behind an `Rc`. An idle link holds no buffer: it takes one from the pool
//! here when bytes come and gives it back when its packets are sent, so that the same few warm
//! buffers serve all links.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use metrics::{Counter, Metric, Unit};
use wire::{Compressor, Decompressor};

use crate::packet_memory::PacketMemory;

/// Most buffers that wait in the pool; more are freed.
const POOLED_BUFFERS_MAX: usize = 256;

/// Largest buffer that goes into the pool; larger ones are freed.
const POOLED_BYTES_MAX: usize = 256 << 10;

/// What the links of a worker have in common.
pub struct Resources {
    packet_memory: PacketMemory,
    compressor: RefCell<Compressor>,
    decompressor: RefCell<Decompressor>,
    buffers: RefCell<Vec<Vec<u8>>>,
    traffic: Arc<Traffic>,
}

impl std::fmt::Debug for Resources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resources").finish_non_exhaustive()
    }
}

/// Who is at the other end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerRole {
    /// A client that asked for the connection.
    Client,
    /// A server that the connection was made to.
    Server,
}

/// What a worker's links moved since its start. The worker writes, any thread reads.
#[derive(Debug, Default)]
pub struct Traffic {
    /// With clients.
    pub clients: Moved,
    /// With servers.
    pub servers: Moved,
}

/// Bytes that links moved, as they went over the network.
#[derive(Debug, Default)]
pub struct Moved {
    /// Bytes received.
    pub received_bytes: Counter,
    /// Bytes sent.
    pub sent_bytes: Counter,
}

/// A number of [`Traffic`], and where it is.
pub type TrafficNumber = (Metric, fn(&Traffic) -> &Counter);

impl Traffic {
    /// The numbers of clients; their owner adds those of all workers.
    pub const CLIENT_NUMBERS: [TrafficNumber; 2] = [
        (
            bytes("Bytes_received", "Bytes received from clients."),
            |it| &it.clients.received_bytes,
        ),
        (bytes("Bytes_sent", "Bytes sent to clients."), |it| {
            &it.clients.sent_bytes
        }),
    ];

    /// What was moved with peers of a role.
    pub fn with(&self, role: PeerRole) -> &Moved {
        match role {
            PeerRole::Client => &self.clients,
            PeerRole::Server => &self.servers,
        }
    }
}

const fn bytes(name: &'static str, help: &'static str) -> Metric {
    Metric::counter(name, Unit::Bytes, help)
}

impl Resources {
    /// What the links of a worker share.
    pub fn new(packet_memory: PacketMemory, traffic: Arc<Traffic>) -> Rc<Resources> {
        Rc::new(Resources {
            packet_memory,
            compressor: RefCell::new(Compressor::new()),
            decompressor: RefCell::new(Decompressor::new()),
            buffers: RefCell::new(Vec::new()),
            traffic,
        })
    }

    pub(crate) fn packet_memory(&self) -> &PacketMemory {
        &self.packet_memory
    }

    /// What the links moved so far.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    pub(crate) fn compressor(&self) -> &RefCell<Compressor> {
        &self.compressor
    }

    pub(crate) fn decompressor(&self) -> &RefCell<Decompressor> {
        &self.decompressor
    }

    /// An empty buffer, warm if there is one.
    #[inline]
    pub(crate) fn take_buffer(&self) -> Vec<u8> {
        let pooled = self.buffers.borrow_mut().pop();
        pooled.or_else(runtime::spent_buffer).unwrap_or_default()
    }

    /// Takes a buffer back.
    pub(crate) fn give_buffer(&self, mut buffer: Vec<u8>) {
        let mut buffers = self.buffers.borrow_mut();
        let is_fit = (1..=POOLED_BYTES_MAX).contains(&buffer.capacity());
        if is_fit && buffers.len() < POOLED_BUFFERS_MAX {
            buffer.clear();
            buffers.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_empty_and_huge_ones_do_not() {
        let resources = Resources::new(PacketMemory::new(1 << 20), Arc::default());
        resources.give_buffer(vec![1; 100]);
        let buffer = resources.take_buffer();
        assert!(buffer.is_empty() && buffer.capacity() >= 100);
        resources.give_buffer(vec![1; POOLED_BYTES_MAX + 1]);
        resources.give_buffer(Vec::new());
        assert_eq!(resources.take_buffer().capacity(), 0);
    }
}
