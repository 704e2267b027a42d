//! A server's replies as `backend` reads them: any bytes are a reply or an error, and how much of a
//! packet is there does not change what it is.
//!
//! The reader is followed to the values: rows in either form by the types that their columns
//! announced, changes of the session, texts of errors. Packets are also cut at any byte.

use backend::{Message, RowForm};
use link::{Part, Reply};
use wire::{
    BinaryRowReader, Capabilities, ColumnType, Deframer, FRAME_BYTES_MAX, Framed, ParameterType,
    SessionChanges,
};

use crate::choices::Choices;

/// Packets of an input: more than its bytes can hold is a loop.
const PACKETS_MAX: usize = 1 << 20;

/// Longest part of a packet that is also read cut at each place.
const CUT_BYTES_MAX: usize = 64;

pub(crate) fn run(input: &[u8]) {
    let mut choices = Choices::new(input);
    let command = choices.u8();
    let flavour = choices.u8();
    let mut reader = Reader::new(command, capabilities(flavour));
    let mut stream = choices.rest();
    let mut deframer = Deframer::new(1 << 24);
    for _ in 0..PACKETS_MAX {
        let Ok(Framed::Packet { payload, used }) = deframer.next(stream) else {
            return;
        };
        if !reader.take(payload) {
            return;
        }
        stream = stream.get(used..).expect("taken from what is there");
    }
    panic!("a packet has four bytes at least");
}

fn capabilities(flavour: u8) -> Capabilities {
    let mut capabilities = Capabilities::SERVER;
    for (bit, capability) in [
        (1, Capabilities::DEPRECATE_EOF),
        (2, Capabilities::SESSION_TRACK),
        (4, Capabilities::MARIADB_EXTENDED_METADATA),
    ] {
        if flavour & bit != 0 {
            capabilities = capabilities & !capability;
        }
    }
    capabilities
}

/// Reads the packets of one reply.
struct Reader {
    reply: Reply,
    capabilities: Capabilities,
    row_form: RowForm,
    /// Types of the present result's columns. Of a cursor's rows they were told before, so some
    /// stand in for them.
    types: Vec<ParameterType>,
}

impl Reader {
    fn new(command: u8, capabilities: Capabilities) -> Reader {
        let types = [ColumnType::Long, ColumnType::VarString, ColumnType::Time];
        Reader {
            reply: Reply::new(command, capabilities),
            capabilities,
            row_form: RowForm::of_command(command),
            types: types.map(ParameterType::new).to_vec(),
        }
    }

    /// Reads one packet; whether the reply goes on.
    fn take(&mut self, payload: &[u8]) -> bool {
        let was_over = self.reply.is_over();
        let length = payload.len().min(FRAME_BYTES_MAX);
        let before = self.reply.clone();
        let Ok(taken) = self.reply.take(length, payload) else {
            return false;
        };
        let part = taken.expect("the packet is whole");
        assert!(!was_over, "nothing follows the end");
        for count in 0..payload.len().min(CUT_BYTES_MAX) {
            let cut = payload.get(..count).unwrap_or_default();
            let early = before.clone().take(length, cut);
            assert!(
                early == Ok(None) || early == Ok(Some(part)),
                "{early:?} {part:?}"
            );
            // An error or other values, but an end.
            self.read(part, cut);
        }
        self.read(part, payload);
        self.note_types(part, payload);
        !matches!(part, Part::Error(_))
    }

    /// Reads all values of a packet.
    fn read(&self, part: Part, payload: &[u8]) {
        let Ok(message) = Message::decode(part, payload, self.capabilities, self.row_form) else {
            return;
        };
        match message {
            Message::TextRow(mut row) => {
                let mut left = payload.len();
                while !row.is_done() && row.next_value().is_ok() {
                    left = left.checked_sub(1).expect("a value has a byte at least");
                }
            }
            Message::BinaryRow(payload) => self.read_binary(payload),
            Message::Error(error) => {
                let error = error.to_client_error();
                assert!(error.message.len() <= errcode::MESSAGE_BYTES_MAX);
            }
            Message::Ok(ok) | Message::RowsEnd(ok) => {
                let changes = SessionChanges::decode(ok.session_changes).count();
                assert!(changes <= ok.session_changes.len());
            }
            _ => {}
        }
    }

    fn read_binary(&self, payload: &[u8]) {
        let Ok(mut row) = BinaryRowReader::new(payload, &self.types) else {
            return;
        };
        let mut count = 0;
        while let Ok(Some(_)) = row.next_value() {
            count += 1;
        }
        assert!(count <= self.types.len());
    }

    fn note_types(&mut self, part: Part, payload: &[u8]) {
        match Message::decode(part, payload, self.capabilities, self.row_form) {
            Ok(Message::Head(_)) => self.types.clear(),
            Ok(Message::Column(column)) => self.types.push(ParameterType {
                column_type: column.column_type,
                is_unsigned: column.flags.contains(wire::ColumnFlags::UNSIGNED),
            }),
            _ => {}
        }
    }
}
