//! A client's connection: login, commands in and replies out, over a [`link`]. Nothing of SQL.
//!
//! [`Shared`] is made once a worker; [`Client::accept`] takes a stream of the runtime through
//! greeting, TLS and authentication; then the session reads commands from the [`Client`] and
//! writes packets of [`wire`] to [`Client::out`].
//!
//! A proxy in front may send a header of the PROXY protocol before the login, behind the greeting.
//! From the networks that may ([`ProxyNetworks`]), the client is the one that the header names.
//!
//! The login (`login.rs`) is a pure state machine; `drive.rs` carries out its steps.
//!
//! What a hostile client can cost is bounded: a login has a time limit, a number of packets and a
//! size for each; a command is limited by `max_allowed_packet` and takes memory as its bytes
//! arrive, of which all connections have a bounded amount ([`PacketMemory`]); a client that does
//! not read its reply holds [`FLUSH_BYTES`] and one row. A longer row consists of pieces, whose
//! memory its session counts ([`Client::long_packet_bytes`]).

#![forbid(unsafe_code)]

mod failure;
mod proxy_networks;
mod shared;

mod accounts;
mod drive;
mod login;

mod certificate;
mod client;

pub use accounts::{Account, AccountSource, Credential};
pub use auth::Peer;
pub use certificate::{CertificateError, CertificatePair};
pub use client::{Client, FLUSH_BYTES};
pub use failure::{FailedLogin, LoginFailure};
pub use link::{
    ChannelError, Disconnect, PacketBytes, PacketMemory, Resources, Traffic, UNCOUNTED_BYTES,
};
pub use login::ClientInfo;
pub use proxy_networks::{NotANetwork, ProxyNetworks};
pub use runtime::{PeerState, PeerWatch};
pub use shared::{
    Counters, Greeting, LoginRules, Options, ProvenPasswords, RandomSource, SecretUse, Shared,
    system_random,
};
