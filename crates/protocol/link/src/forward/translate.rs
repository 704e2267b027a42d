//! [`Translator`]: what becomes of each packet of a reply. No I/O.
//!
//! The two sides may differ in DEPRECATE_EOF and SESSION_TRACK. Then the packets that end columns
//! and rows are left out, put in or encoded again, and the sequence ids behind them are shifted.
//! In all else that changes packets they agree ([`Agreed::LAYOUT`]).

use wire::{
    Capabilities, Cursor, EofPacket, FrameError, Malformed, OkKind, OkPacket, PrepareOk,
    StatusFlags,
};

use super::{Agreed, Ending, ForwardError};
use crate::channel::{Channel, ChannelError};
use crate::frame_walk::{FrameWalk, Verdict};
use crate::packet_memory::UNCOUNTED_BYTES;
use crate::reply::{Part, Reply, Step};

/// Longest packet that is read, or encoded again: an OK packet with the changes of a session.
pub(super) const REENCODED_BYTES_MAX: usize = UNCOUNTED_BYTES;

/// Most that is kept of the changes of a session, of all packets of a reply together.
pub(super) const CHANGES_BYTES_MAX: usize = UNCOUNTED_BYTES;

/// What the server waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Awaited {
    /// A file of the client.
    File,
    /// A packet of the client's login.
    Authentication,
}

/// The place in a reply, and what the client's side needs.
#[derive(Debug)]
pub(super) struct Translator {
    agreed: Agreed,
    /// The two sides differ, so packets have to be translated. Constant.
    differs: bool,
    pub(super) reply: Reply,
    /// Of the last packet that ends a reply, or one of its results.
    pub(super) ending: Ending,
    /// The server waits for packets of the client.
    pub(super) awaited: Option<Awaited>,
    /// The client has to get an EOF packet before the next.
    pub(super) owes_eof: bool,
    /// A packet of the reply has come.
    pub(super) is_answered: bool,
    /// Changes of the session that the reply has reported. `None` once a packet was too long to
    /// be read, or all were more than [`CHANGES_BYTES_MAX`].
    pub(super) changes: Option<Vec<u8>>,
    /// The last packet that ended something was an OK packet.
    pub(super) ends_in_ok: bool,
    /// The client is told this id of a prepared statement in place of the server's.
    pub(super) statement_id: Option<u32>,
    /// What the server has told of a prepared statement.
    pub(super) prepared: Option<PrepareOk>,
    /// What it has told of the last result.
    pub(super) tally: Tally,
}

/// What a reply tells of its last result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// It has rows, or would have had some.
    pub has_rows: bool,
    /// How many were sent.
    pub row_count: u64,
    /// Rows that were changed.
    pub affected_rows: u64,
    /// The first automatic value that was generated, or what was put in its place; or 0.
    pub last_insert_id: u64,
    /// Warnings that the server keeps of it.
    pub warnings: u16,
}

impl Tally {
    /// Notes a packet, of which the beginning is there.
    #[inline]
    fn note(&mut self, part: Part, payload: &[u8]) -> Result<(), Malformed> {
        match part {
            Part::Row => self.row_count += 1,
            Part::Head => {
                *self = Tally {
                    has_rows: true,
                    ..Tally::default()
                }
            }
            Part::Ok(_) => {
                let mut cursor = Cursor::new(payload);
                cursor.u8("OK header")?;
                *self = Tally {
                    affected_rows: cursor.lenenc("affected rows")?,
                    last_insert_id: cursor.lenenc("last insert id")?,
                    warnings: cursor.u16("status").and_then(|_| cursor.u16("warnings"))?,
                    ..Tally::default()
                };
            }
            Part::RowsEnd(_) => self.warnings = end_warnings(payload)?,
            _ => {}
        }
        Ok(())
    }
}

/// The warnings in the packet that ends rows, an EOF packet or an OK packet in its place.
fn end_warnings(payload: &[u8]) -> Result<u16, Malformed> {
    if payload.len() == EOF_BYTES {
        return EofPacket::decode(payload).map(|packet| packet.warnings);
    }
    let mut cursor = Cursor::new(payload);
    cursor.u8("header of the end")?;
    cursor.lenenc("affected rows")?;
    cursor.lenenc("last insert id")?;
    cursor.u16("status")?;
    cursor.u16("warnings")
}

/// Bytes of an EOF packet. An OK packet that ends rows has at least two more.
const EOF_BYTES: usize = 5;

/// How a packet that the client does not understand becomes one that it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Treatment {
    /// An EOF packet is put in before it.
    PutInEof,
    /// It is left out.
    LeaveOut,
    /// An EOF packet becomes the OK packet that ends rows.
    EofToOk,
    /// The other way round.
    OkToEof,
    /// The changes of the session are taken away.
    OkWithoutChanges(OkKind),
    /// The prepared statement gets another id.
    Renumber(u32),
}

/// Why packets cannot be passed on.
#[derive(Debug)]
pub(super) enum Fault {
    Channel(ChannelError),
    Forward(ForwardError),
}

impl From<FrameError> for Fault {
    fn from(error: FrameError) -> Fault {
        Fault::Channel(error.into())
    }
}

impl From<ChannelError> for Fault {
    fn from(error: ChannelError) -> Fault {
        Fault::Channel(error)
    }
}

impl From<Malformed> for Fault {
    fn from(error: Malformed) -> Fault {
        Fault::Forward(error.into())
    }
}

impl Fault {
    pub(super) fn of_server(self) -> ForwardError {
        match self {
            Fault::Channel(error) => ForwardError::Server(error.into()),
            Fault::Forward(error) => error,
        }
    }
}

impl Translator {
    /// Before the reply to a command.
    pub(super) fn new(command: u8, agreed: Agreed) -> Translator {
        Translator {
            agreed,
            differs: agreed.client != agreed.server,
            reply: Reply::new(command, agreed.server),
            ending: Ending::Silent,
            awaited: None,
            owes_eof: false,
            is_answered: false,
            changes: Some(Vec::new()),
            ends_in_ok: false,
            statement_id: None,
            prepared: None,
            tally: Tally::default(),
        }
    }

    /// Looks at the next packet. Goes behind it, unless it says [`Verdict::More`] or an EOF packet
    /// has to be put in before.
    pub(super) fn judge(
        &mut self,
        length: usize,
        payload: &[u8],
        treatment: &mut Option<Treatment>,
    ) -> Result<Verdict, Fault> {
        if self.awaited.is_some() || self.reply.is_over() {
            return Ok(Verdict::Stop);
        }
        let Some(step) = self.reply.step(length, payload)? else {
            return Ok(Verdict::More);
        };
        if matches!(step.part, Part::Head | Part::Row) && !self.owes_eof {
            // Most packets are rows, which are the same on both sides.
            self.is_answered = true;
            self.tally.note(step.part, payload)?;
            self.reply.go(step);
            return Ok(Verdict::Pass);
        }
        let reports = self.reports_changes(step.part);
        if reports && payload.len() < length && length <= REENCODED_BYTES_MAX {
            return Ok(Verdict::More);
        }
        if self.differs {
            if self.owes_eof && !is_cursor(step.part) {
                *treatment = Some(Treatment::PutInEof);
                return Ok(Verdict::Stop);
            }
            let needed = self.treatment(step.part);
            if needed.is_some() && REENCODED_BYTES_MAX < length {
                return Err(Fault::Forward(ForwardError::TooLong { length }));
            }
            if needed.is_some() && payload.len() < length {
                return Ok(Verdict::More);
            }
            self.owes_eof = self.ends_definitions(step);
            *treatment = needed;
        }
        if step.part == Part::Prepared {
            if payload.len() < length {
                return Ok(Verdict::More);
            }
            self.prepared = Some(PrepareOk::decode(
                payload.get(..length).unwrap_or_default(),
            )?);
            *treatment = self.statement_id.map(Treatment::Renumber);
        }
        if reports {
            self.note_changes(payload.get(..length))?;
        }
        self.reply.go(step);
        self.note(step.part);
        self.tally
            .note(step.part, payload.get(..length).unwrap_or(payload))?;
        Ok(treatment.map_or(Verdict::Pass, |_| Verdict::Stop))
    }

    fn note(&mut self, part: Part) {
        self.is_answered = true;
        match part {
            Part::Ok(status) => {
                self.ending = Ending::Status(status);
                self.ends_in_ok = true;
            }
            Part::RowsEnd(status) => {
                self.ending = Ending::Status(status);
                self.ends_in_ok = self.agreed.server.contains(Capabilities::DEPRECATE_EOF);
            }
            Part::Error(code) => self.ending = Ending::Error(code),
            Part::FileRequest => self.awaited = Some(Awaited::File),
            Part::Authentication => self.awaited = Some(Awaited::Authentication),
            Part::Head
            | Part::Column
            | Part::ColumnsEnd(_)
            | Part::Row
            | Part::Prepared
            | Part::Parameter
            | Part::Text
            | Part::Authenticated => {}
        }
    }

    fn treatment(&self, part: Part) -> Option<Treatment> {
        let Agreed { client, server } = self.agreed;
        let has_ok = |side: Capabilities| side.contains(Capabilities::DEPRECATE_EOF);
        match part {
            Part::ColumnsEnd(_) if has_ok(client) => Some(Treatment::LeaveOut),
            Part::RowsEnd(status) => match (has_ok(server), has_ok(client)) {
                (false, true) => Some(Treatment::EofToOk),
                (true, false) => Some(Treatment::OkToEof),
                (true, true) if self.loses_changes(status) => {
                    Some(Treatment::OkWithoutChanges(OkKind::EndOfRows))
                }
                (_, _) => None,
            },
            Part::Ok(status) if self.loses_changes(status) => {
                Some(Treatment::OkWithoutChanges(OkKind::Ok))
            }
            _ => None,
        }
    }

    /// Whether a packet reports changes of the session.
    fn reports_changes(&self, part: Part) -> bool {
        let has = |status: StatusFlags| status.contains(StatusFlags::SESSION_STATE_CHANGED);
        let server = self.agreed.server;
        match part {
            Part::Ok(status) => has(status) && server.contains(Capabilities::SESSION_TRACK),
            Part::RowsEnd(status) => {
                has(status)
                    && server.contains(Capabilities::SESSION_TRACK | Capabilities::DEPRECATE_EOF)
            }
            _ => false,
        }
    }

    /// Keeps the changes of a packet, or gives them up if it is not there as a whole.
    fn note_changes(&mut self, payload: Option<&[u8]>) -> Result<(), Malformed> {
        let Some(payload) = payload else {
            self.changes = None;
            return Ok(());
        };
        let added = OkPacket::decode(payload, self.agreed.server)?.session_changes;
        let fits = |changes: &Vec<u8>| changes.len() + added.len() <= CHANGES_BYTES_MAX;
        self.changes = self.changes.take().filter(fits);
        if let Some(changes) = &mut self.changes {
            changes.extend_from_slice(added);
        }
        Ok(())
    }

    /// Whether the client cannot read the changes of the session that an OK packet has.
    fn loses_changes(&self, status: StatusFlags) -> bool {
        let tracks = |side: Capabilities| side.contains(Capabilities::SESSION_TRACK);
        status.contains(StatusFlags::SESSION_STATE_CHANGED)
            && tracks(self.agreed.server)
            && !tracks(self.agreed.client)
    }

    /// Whether the client waits for an EOF packet behind this one that the server does not send.
    fn ends_definitions(&self, step: Step) -> bool {
        let is_definition = matches!(step.part, Part::Column | Part::Parameter);
        let is_old = |side: Capabilities| !side.contains(Capabilities::DEPRECATE_EOF);
        is_definition
            && is_old(self.agreed.client)
            && !is_old(self.agreed.server)
            && self.reply.leaves_list(step)
    }

    /// Deals with the packet that is next in `from`.
    pub(super) fn treat(
        &mut self,
        treatment: Treatment,
        walk: &mut FrameWalk,
        from: &mut Channel,
        to: &mut Channel,
    ) -> Result<(), Fault> {
        if treatment == Treatment::PutInEof {
            self.put_in_eof(walk, to);
            return Ok(());
        }
        let client = self.agreed.client;
        let payload = from.front_payload();
        let out = to.out();
        out.set_sequence(walk.outgoing());
        match treatment {
            Treatment::LeaveOut | Treatment::PutInEof => {
                walk.shift = walk.shift.wrapping_sub(1);
            }
            Treatment::EofToOk => {
                let eof = EofPacket::decode(payload)?;
                let ok = OkPacket {
                    status: eof.status,
                    warnings: eof.warnings,
                    ..OkPacket::default()
                };
                ok.encode(out, client, OkKind::EndOfRows);
            }
            Treatment::OkToEof => {
                let ok = OkPacket::decode(payload, self.agreed.server)?;
                wire::end_rows(out, client, &ok);
            }
            Treatment::OkWithoutChanges(kind) => {
                let ok = OkPacket::decode(payload, self.agreed.server)?;
                ok.encode(out, client, kind);
            }
            Treatment::Renumber(statement_id) => {
                let prepared = PrepareOk::decode(payload)?;
                let numbered = PrepareOk {
                    statement_id,
                    ..prepared
                };
                numbered.encode(out);
            }
        }
        from.skip_front_packet();
        walk.skipped_packet();
        Ok(())
    }

    /// Gives the client the EOF packet that ends definitions.
    pub(super) fn put_in_eof(&mut self, walk: &mut FrameWalk, to: &mut Channel) {
        let out = to.out();
        out.set_sequence(walk.outgoing());
        let status = match self.ending {
            Ending::Status(status) => status,
            Ending::Error(_) | Ending::Silent => StatusFlags::AUTOCOMMIT,
        };
        // Those that tell of a reply's course are of the reply before.
        let passing = StatusFlags::SESSION_STATE_CHANGED.0
            | StatusFlags::MORE_RESULTS.0
            | StatusFlags::CURSOR_EXISTS.0
            | StatusFlags::LAST_ROW_SENT.0
            | StatusFlags::OUT_PARAMETERS.0;
        let status = StatusFlags(status.0 & !passing);
        let warnings = 0;
        EofPacket { warnings, status }.encode(out);
        walk.shift = walk.shift.wrapping_add(1);
        self.owes_eof = false;
    }
}

/// Whether a packet says that its rows wait in a cursor. Such a packet also ends the columns.
fn is_cursor(part: Part) -> bool {
    let exists = |status: StatusFlags| status.contains(StatusFlags::CURSOR_EXISTS);
    matches!(part, Part::RowsEnd(status) if exists(status))
}
