//! MySQL packets as bytes, in both directions. No I/O, no clock, no session.
//!
//! Reading order: [`Capabilities`] and [`StatusFlags`] are the words that both sides agree on.
//! [`Cursor`] takes values out of a packet and never reads past its end. [`PacketWriter`] appends
//! whole packets to one buffer. [`Deframer`] finds packets in received bytes. Then there is one
//! file a message, in the folders `login`, `command` and `reply`, each with `encode` for the sender
//! and `decode` for the receiver. A server uses one half, the gateway and the tests use the other.
//!
//! Outside data is never trusted: decoders take `&[u8]`, borrow from it, and return [`Malformed`]
//! if it ends early or contradicts itself. Nothing is allocated by a length that a packet merely
//! claims.
//!
//! Cost: encoding appends to a buffer that is reused; a row costs no allocation.

#![forbid(unsafe_code)]

mod capability;
mod column_type;
mod cursor;
mod deframer;
mod long_packet;
mod packet_writer;
mod proxy_header;
mod status;
mod temporal;

mod compression;

mod command;
mod command_byte;
mod login;
mod reply;

pub use capability::Capabilities;
pub use column_type::ColumnType;
pub use command::Command;
pub use command::bulk_execute::{BulkExecute, BulkRows, BulkValue};
pub use command::execute::{CursorKind, Execute, Parameters};
pub use command::field_list::FieldList;
pub use command::parameter::{BinaryValue, ParameterType};
pub use command_byte::CommandByte;
pub use compression::{
    COMPRESSED_HEADER_BYTES, CompressionError, CompressionMethod, Compressor, DecompressStep,
    Decompressor,
};
pub use cursor::{Cursor, Malformed};
pub use deframer::{Deframer, FrameError, Framed, Located};
pub use login::auth_exchange::{AuthMoreData, AuthSwitch};
pub use login::change_user::ChangeUser;
pub use login::handshake::{Handshake, SCRAMBLE_BYTES};
pub use login::{ConnectAttributes, Login, LoginPacket};
pub use long_packet::{LongPacket, LongPacketBytes, PIECE_BYTES};
pub use packet_writer::{FRAME_BYTES_MAX, HEADER_BYTES, Packet, PacketWriter};
pub use proxy_header::{
    PROXY_V1_BYTES_MAX, PROXY_V2_BYTES_MAX, ProxyBytes, ProxyHeader, ProxyVersion,
};
pub use reply::binary_row::{BinaryRow, BinaryRowReader};
pub use reply::column::{ColumnDefinition, ColumnFlags, ExtendedType};
pub use reply::end_of_rows::{EofPacket, end_columns, end_rows};
pub use reply::error_packet::ErrorPacket;
pub use reply::local_infile::LocalInfile;
pub use reply::ok::{OkKind, OkPacket};
pub use reply::prepare_ok::PrepareOk;
pub use reply::result_head::ResultHead;
pub use reply::session_changes::{
    SessionChange, SessionChanges, TransactionKind, TransactionState,
};
pub use reply::text_row::{TextRow, TextRowReader};
pub use status::StatusFlags;
pub use temporal::{DateTime, Time};
