//! [`Event`]: one event of the log, from its packet.
//!
//! ```text
//! packet: 0x00, event
//! event:  header of 19 bytes, body, checksum of 4 bytes if the log has them
//! header: time u32, kind u8, server u32, length of the event u32, place behind it u32, flags u16
//! ```
//!
//! The description of the format, which each file begins with, says whether events have checksums.
//! It has room for one itself in any case. Numbers are little-endian.

mod statement;

use std::fmt;

use wire::{Cursor, Malformed};

use crate::error::LogError;

pub use statement::Statement;

/// What stands behind each event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Checksum {
    /// Nothing.
    #[default]
    Off,
    /// The CRC-32 of all that is before it.
    Crc32,
}

/// Bytes of a checksum.
const CHECKSUM_BYTES: usize = 4;

impl Checksum {
    /// As the description of a log's format numbers it.
    fn of_number(number: u8) -> Result<Checksum, LogError> {
        match number {
            0 => Ok(Checksum::Off),
            1 => Ok(Checksum::Crc32),
            other => Err(LogError::UnknownChecksum(other)),
        }
    }

    /// What is before it, if it is right.
    fn strip(self, event: &[u8]) -> Result<&[u8], LogError> {
        if self == Checksum::Off {
            return Ok(event);
        }
        let (before, checksum) = event.split_last_chunk().ok_or(malformed("checksum"))?;
        match crc32fast::hash(before) == u32::from_le_bytes(*checksum) {
            true => Ok(before),
            false => Err(LogError::Checksum),
        }
    }
}

/// The name of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gtid {
    /// Of MariaDB.
    MariaDb {
        /// Transactions of one domain have one order on all servers.
        domain: u32,
        /// The `server_id` of who wrote it.
        server: u32,
        /// Its number in the domain.
        sequence: u64,
    },
    /// Of MySQL.
    MySql {
        /// The `server_uuid` of who wrote it.
        source: u128,
        /// Its number there.
        number: u64,
    },
    /// It has none, or one that is not read here: those with a tag, of MySQL 8.3 on.
    Unread,
}

impl fmt::Display for Gtid {
    /// As servers write it; nothing if it is not read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Gtid::MariaDb {
                domain,
                server,
                sequence,
            } => write!(f, "{domain}-{server}-{sequence}"),
            Gtid::MySql { source, number } => write!(f, "{source:032x}:{number}"),
            Gtid::Unread => Ok(()),
        }
    }
}

/// What an event says of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// The format of those that follow.
    Format(Checksum),
    /// The log goes on in another file.
    Rotate {
        /// Where in that file.
        offset: u64,
        /// Its name.
        file: &'a [u8],
    },
    /// A transaction begins.
    Transaction(Gtid),
    /// A statement, by its text.
    Statement(Statement<'a>),
    /// Rows that follow name a table by this number.
    Table {
        /// The number.
        id: u64,
        /// The table's name.
        name: &'a [u8],
    },
    /// Rows of the table of this number have changed.
    Rows {
        /// The number.
        id: u64,
    },
    /// Rows of tables have changed that are not named: they are compressed as a whole.
    HiddenRows,
    /// It changes nothing by itself: ends, values that statements use, comments, heartbeats.
    Harmless,
    /// It is not known what it changes.
    Unknown,
}

/// An event with what its header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Framed<'a> {
    /// The event.
    pub event: Event<'a>,
    /// The lower half of the place behind it; 0 if it stands in no file.
    pub end: u32,
}

/// The first byte of a packet with an event.
const PACKET_MARK: u8 = 0;

/// An event that is not in the file: the server has made it for whom it sends the log to.
const ARTIFICIAL: u16 = 0x20;

/// Who does not know the event may ignore it.
const IGNORABLE: u16 = 0x80;

/// Kinds of events.
mod kind {
    pub(super) const QUERY: u8 = 2;
    pub(super) const STOP: u8 = 3;
    pub(super) const ROTATE: u8 = 4;
    pub(super) const INTVAR: u8 = 5;
    pub(super) const APPEND_BLOCK: u8 = 9;
    pub(super) const DELETE_FILE: u8 = 11;
    pub(super) const RAND: u8 = 13;
    pub(super) const USER_VAR: u8 = 14;
    pub(super) const FORMAT_DESCRIPTION: u8 = 15;
    pub(super) const XID: u8 = 16;
    pub(super) const BEGIN_LOAD_QUERY: u8 = 17;
    pub(super) const EXECUTE_LOAD_QUERY: u8 = 18;
    pub(super) const TABLE_MAP: u8 = 19;
    /// WRITE_ROWS, UPDATE_ROWS and DELETE_ROWS of version 1.
    pub(super) const FIRST_ROWS_V1: u8 = 23;
    pub(super) const LAST_ROWS_V1: u8 = 25;
    pub(super) const HEARTBEAT: u8 = 27;
    pub(super) const IGNORABLE: u8 = 28;
    pub(super) const ROWS_QUERY: u8 = 29;
    /// The same of version 2.
    pub(super) const FIRST_ROWS_V2: u8 = 30;
    pub(super) const LAST_ROWS_V2: u8 = 32;
    pub(super) const GTID: u8 = 33;
    pub(super) const ANONYMOUS_GTID: u8 = 34;
    pub(super) const PREVIOUS_GTIDS: u8 = 35;
    pub(super) const TRANSACTION_CONTEXT: u8 = 36;
    pub(super) const VIEW_CHANGE: u8 = 37;
    pub(super) const XA_PREPARE: u8 = 38;
    pub(super) const PARTIAL_UPDATE_ROWS: u8 = 39;
    pub(super) const TRANSACTION_PAYLOAD: u8 = 40;
    pub(super) const HEARTBEAT_V2: u8 = 41;
    pub(super) const GTID_TAGGED: u8 = 42;
    pub(super) const MARIADB_ANNOTATE_ROWS: u8 = 160;
    pub(super) const MARIADB_CHECKPOINT: u8 = 161;
    pub(super) const MARIADB_GTID: u8 = 162;
    pub(super) const MARIADB_GTID_LIST: u8 = 163;
    pub(super) const MARIADB_START_ENCRYPTION: u8 = 164;
    /// WRITE_ROWS, UPDATE_ROWS and DELETE_ROWS of both versions, whose rows are compressed.
    pub(super) const FIRST_COMPRESSED_ROWS: u8 = 166;
    pub(super) const LAST_COMPRESSED_ROWS: u8 = 171;
}

impl<'a> Framed<'a> {
    /// Reads the event of a packet, of a log with these checksums.
    ///
    /// # Errors
    /// The event is none, or is damaged.
    pub fn decode(packet: &'a [u8], checksum: Checksum) -> Result<Framed<'a>, LogError> {
        let (&mark, event) = packet.split_first().ok_or(malformed("packet"))?;
        if mark != PACKET_MARK {
            return Err(malformed("mark of an event").into());
        }
        let mut header = Cursor::new(event);
        header.u32("time of an event")?;
        let kind = header.u8("kind of an event")?;
        let server = header.u32("server of an event")?;
        let length = header.u32("length of an event")?;
        let end = header.u32("place of an event")?;
        let flags = header.u16("flags of an event")?;
        if usize::try_from(length) != Ok(event.len()) {
            return Err(malformed("length of an event").into());
        }
        let body = match kind {
            // It says itself what follows, and its own checksum may be of another server's make.
            kind::FORMAT_DESCRIPTION => header.peek_rest(),
            _ => {
                let whole = checksum.strip(event)?;
                let body = whole.get(event.len() - header.peek_rest().len()..);
                body.ok_or(malformed("checksum"))?
            }
        };
        Ok(Framed {
            event: Event::decode(kind, flags, server, body)?,
            end: if flags & ARTIFICIAL == 0 { end } else { 0 },
        })
    }
}

impl<'a> Event<'a> {
    fn decode(kind: u8, flags: u16, server: u32, body: &'a [u8]) -> Result<Event<'a>, LogError> {
        let mut body = Cursor::new(body);
        Ok(match kind {
            kind::FORMAT_DESCRIPTION => Event::Format(format(body)?),
            kind::ROTATE => Event::Rotate {
                offset: body.u64("place of a rotation")?,
                file: body.rest(),
            },
            kind::MARIADB_GTID => Event::Transaction(Gtid::MariaDb {
                sequence: body.u64("number of a transaction")?,
                domain: body.u32("domain of a transaction")?,
                server,
            }),
            kind::GTID => {
                body.u8("flags of a transaction")?;
                let source = body.array("source of a transaction")?;
                Event::Transaction(Gtid::MySql {
                    // It is a UUID in the order in which it is written.
                    source: u128::from_be_bytes(source),
                    number: body.u64("number of a transaction")?,
                })
            }
            kind::ANONYMOUS_GTID | kind::GTID_TAGGED => Event::Transaction(Gtid::Unread),
            kind::QUERY => Event::Statement(Statement::decode(body)?),
            kind::EXECUTE_LOAD_QUERY => Event::Statement(Statement::decode_load(body)?),
            kind::TABLE_MAP => table(body)?,
            kind::FIRST_ROWS_V1..=kind::LAST_ROWS_V1
            | kind::FIRST_ROWS_V2..=kind::LAST_ROWS_V2
            | kind::FIRST_COMPRESSED_ROWS..=kind::LAST_COMPRESSED_ROWS
            | kind::PARTIAL_UPDATE_ROWS => Event::Rows {
                id: table_id(&mut body)?,
            },
            kind::TRANSACTION_PAYLOAD => Event::HiddenRows,
            kind::STOP
            | kind::INTVAR
            | kind::APPEND_BLOCK
            | kind::DELETE_FILE
            | kind::RAND
            | kind::USER_VAR
            | kind::XID
            | kind::BEGIN_LOAD_QUERY
            | kind::HEARTBEAT
            | kind::HEARTBEAT_V2
            | kind::IGNORABLE
            | kind::ROWS_QUERY
            | kind::PREVIOUS_GTIDS
            | kind::TRANSACTION_CONTEXT
            | kind::VIEW_CHANGE
            | kind::XA_PREPARE
            | kind::MARIADB_ANNOTATE_ROWS
            | kind::MARIADB_CHECKPOINT
            | kind::MARIADB_GTID_LIST
            | kind::MARIADB_START_ENCRYPTION => Event::Harmless,
            _ if flags & IGNORABLE != 0 => Event::Harmless,
            // Incidents among them: what the server knows it has not logged.
            _ => Event::Unknown,
        })
    }
}

/// Bytes of the server's version in the description of a format.
const VERSION_BYTES: usize = 50;

/// What every header has had since MySQL 5.0.
const HEADER_BYTES: u8 = 19;

fn format(mut body: Cursor<'_>) -> Result<Checksum, LogError> {
    body.u16("version of the format")?;
    body.bytes(VERSION_BYTES, "server of the format")?;
    body.u32("time of the format")?;
    if body.u8("length of headers")? != HEADER_BYTES {
        return Err(malformed("length of headers").into());
    }
    // The lengths of the fixed parts of each kind, the kind of checksums, and room for one.
    let rest = body.rest();
    let kind = rest.len().checked_sub(CHECKSUM_BYTES + 1);
    let kind = kind.and_then(|place| rest.get(place));
    Checksum::of_number(*kind.ok_or(malformed("checksum of the format"))?)
}

/// Six bytes. Four of them are flags in logs of servers before MySQL 5.1.4, which nobody has.
fn table_id(body: &mut Cursor<'_>) -> Result<u64, Malformed> {
    let low = body.u32("number of a table")?;
    let high = body.u16("number of a table")?;
    Ok(u64::from(high) << u32::BITS | u64::from(low))
}

fn table<'a>(mut body: Cursor<'a>) -> Result<Event<'a>, Malformed> {
    let id = table_id(&mut body)?;
    body.u16("flags of a table")?;
    let length = body.u8("name of a database")?;
    body.bytes(usize::from(length) + 1, "name of a database")?;
    let length = body.u8("name of a table")?;
    let name = body.bytes(usize::from(length), "name of a table")?;
    Ok(Event::Table { id, name })
}

const fn malformed(what: &'static str) -> Malformed {
    Malformed { what }
}
