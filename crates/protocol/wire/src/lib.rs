//! MySQL packets as bytes, in both directions. No I/O, no clock, no session.
//!
//! Reading order: [`Capabilities`] and [`StatusFlags`] are the words that both sides agree on;
//! [`Cursor`] takes values out of a packet and never reads past its end; [`PacketWriter`] appends
//! whole packets to one buffer; [`Deframer`] finds packets in received bytes. Then one file a
//! message, each with `encode` for who sends it and `decode` for who receives it: a server uses
//! one half, the gateway and the tests use the other.
//!
//! What comes from outside is never trusted: decoders take `&[u8]`, borrow from it, and answer
//! [`Malformed`] where it ends early or contradicts itself. Nothing is allocated by a length that
//! a packet merely claims.
//!
//! Cost: encoding appends to a buffer that is reused; a row costs no allocation.

#![forbid(unsafe_code)]

mod capability;
mod column_type;
mod cursor;
mod deframer;
mod packet_writer;
mod status;

mod compression;

mod auth_exchange;
mod handshake;
mod login;

mod bulk_execute;
mod change_user;
mod command;
mod execute;
mod parameter;

mod binary_row;
mod column;
mod end_of_rows;
mod error_packet;
mod field_list;
mod local_infile;
mod ok;
mod prepare_ok;
mod result_head;
mod session_changes;
mod temporal;
mod text_row;

pub use auth_exchange::{AuthMoreData, AuthSwitch};
pub use binary_row::{BinaryRow, BinaryRowReader};
pub use bulk_execute::{BulkExecute, BulkRows, BulkValue};
pub use capability::Capabilities;
pub use change_user::ChangeUser;
pub use column::{ColumnDefinition, ColumnFlags, ExtendedType};
pub use column_type::ColumnType;
pub use command::{Command, CommandByte};
pub use compression::{
    COMPRESSED_HEADER_BYTES, CompressionError, CompressionMethod, Compressor, DecompressStep,
    Decompressor,
};
pub use cursor::{Cursor, Malformed};
pub use deframer::{Deframer, FrameError, Framed, Located};
pub use end_of_rows::{EofPacket, end_columns, end_rows};
pub use error_packet::ErrorPacket;
pub use execute::{CursorKind, Execute, Parameters};
pub use field_list::FieldList;
pub use handshake::{Handshake, SCRAMBLE_BYTES};
pub use local_infile::LocalInfile;
pub use login::{ConnectAttributes, Login, LoginPacket};
pub use ok::{OkKind, OkPacket};
pub use packet_writer::{FRAME_BYTES_MAX, HEADER_BYTES, Packet, PacketWriter};
pub use parameter::{BinaryValue, ParameterType};
pub use prepare_ok::PrepareOk;
pub use result_head::ResultHead;
pub use session_changes::{SessionChange, SessionChanges, TransactionKind, TransactionState};
pub use status::StatusFlags;
pub use temporal::{DateTime, Time};
pub use text_row::{TextRow, TextRowReader};
