//! A client's connection: login, commands in and replies out, over a [`link`]. Nothing of SQL.
//!
//! [`Shared`] is made once a worker; [`Client::accept`] takes a stream of the runtime through
//! greeting, TLS and authentication; then the session reads commands from the [`Client`] and
//! writes packets of [`wire`] to [`Client::out`].
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
mod shared;

mod accounts;
mod drive;
mod login;

mod certificate;
mod client;

pub use accounts::{Account, AccountSource, Credential, peer_of};
pub use auth::Peer;
pub use certificate::{CertificateError, CertificatePair};
pub use client::{Client, FLUSH_BYTES};
pub use failure::LoginFailure;
pub use link::{
    ChannelError, Disconnect, PacketBytes, PacketMemory, Resources, Traffic, UNCOUNTED_BYTES,
};
pub use login::ClientInfo;
pub use runtime::{PeerState, PeerWatch};
pub use shared::{
    Counters, Greeting, LoginRules, Options, ProvenPasswords, RandomSource, SecretUse, Shared,
    system_random,
};
