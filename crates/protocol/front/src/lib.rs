//! A client's connection: TLS, login, compression, packets in and replies out. Nothing of SQL.
//!
//! [`Shared`] is made once a worker; [`Client::accept`] takes a stream of the runtime through
//! greeting, TLS and authentication; then the session reads commands from the [`Client`] and
//! writes packets of [`wire`] to [`Client::out`].
//!
//! The login (`login.rs`) and the layers under the packets (`channel.rs`, `tls.rs`) are pure state
//! machines; `connection.rs` alone waits for the network.
//!
//! What a hostile client can cost is bounded: a login has a time limit, a number of packets and a
//! size for each; a command is limited by `max_allowed_packet` and takes memory as its bytes
//! arrive, of which all connections have a bounded amount ([`PacketMemory`]); a client that does
//! not read its reply holds [`FLUSH_BYTES`] and one row.

#![forbid(unsafe_code)]

mod failure;
mod packet_memory;
mod shared;

mod accounts;
mod login;

mod certificate;
mod channel;
mod client;
mod connection;
mod tls;

pub use accounts::{Account, AccountSource, Credential, Peer};
pub use certificate::{CertificateError, CertificatePair};
pub use channel::{ChannelError, PacketBytes};
pub use client::{Client, FLUSH_BYTES};
pub use failure::{Disconnect, LoginFailure};
pub use login::ClientInfo;
pub use packet_memory::{PacketMemory, UNCOUNTED_BYTES};
pub use runtime::{PeerState, PeerWatch};
pub use shared::{
    Counters, LoginRules, Options, ProvenPasswords, RandomSource, Shared, system_random,
};
