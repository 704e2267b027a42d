//! One connection: packets through framing, TLS and compression, with time limits. No login here,
//! and nothing of SQL.
//!
//! [`Resources`] is made once a worker; a [`Link`] takes a stream of the runtime and gives packets
//! and a buffer to write packets to. The layers under the packets (`channel.rs`, `tls.rs`) are pure
//! state machines; `link.rs` alone waits for the network.
//!
//! What a hostile peer can cost is bounded: a packet is limited in size and takes memory as its
//! bytes arrive, of which all links have a bounded amount ([`PacketMemory`]).

#![forbid(unsafe_code)]

mod disconnect;
mod packet_memory;
mod resources;

mod link;

mod forward;
mod frame_walk;
mod reply;

mod channel;
mod input;
mod packet_bytes;
mod pieces;
mod tls;

pub use channel::{Channel, ChannelError, HIGH_WATER_BYTES, Onlooker};
pub use disconnect::Disconnect;
pub use forward::{
    Agreed, Ending, Exchange, ForwardError, Passed, Tally, Turn, UnlikeCapabilities,
};
pub use frame_walk::InnerIds;
pub use link::{DetachedLink, Limit, Link, give_way};
pub use packet_bytes::PacketBytes;
pub use packet_memory::{PacketMemory, UNCOUNTED_BYTES};
pub use reply::{LOGIN_PACKETS_MAX, Part, Reply};
pub use resources::{Moved, PeerRole, Resources, Traffic, TrafficNumber};
pub use tls::TlsEnd;
