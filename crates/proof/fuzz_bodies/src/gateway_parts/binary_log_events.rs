//! Packets of a binary log: whole events of any kind, and bytes as they are.

use binary_log::{Checksum, LogReader, Place, Told};

use crate::choices::Choices;

/// An event without a frame.
const RAW: u8 = 0xff;

/// Longest input that is looked at: a few hundred events.
const EVENTS_MAX: usize = 256;

pub(crate) fn run(input: &[u8]) {
    let mut choices = Choices::new(input);
    let mut reader = LogReader::new(Place::new(b"log.000001", 4), Checksum::Off);
    let mut names: Vec<Vec<u8>> = Vec::new();
    for _ in 0..EVENTS_MAX {
        if choices.is_empty() {
            return;
        }
        let (kind, flags, end) = (choices.u8(), choices.u8(), choices.u16());
        let body = choices.long();
        let packet = match kind {
            RAW => body.to_vec(),
            kind => framed(kind, flags, u32::from(end) << (flags % 17), body),
        };
        names.push(packet.clone());
        let before = reader.place().clone();
        match reader.take(&packet) {
            Ok(Told::Rows(name)) => {
                let is_in = |it: &Vec<u8>| {
                    name.is_empty() || it.windows(name.len()).any(|part| part == name)
                };
                assert!(names.iter().any(is_in), "a name comes from an event");
            }
            Ok(Told::Statement(statement)) => assert!(statement.text.len() <= packet.len()),
            Ok(_) => {}
            // What follows cannot be read.
            Err(_) => return,
        }
        let after = reader.place();
        assert!(before.file != after.file || kind == ROTATE || before.offset <= after.offset);
    }
}

const ROTATE: u8 = 4;

/// An event with a right frame.
fn framed(kind: u8, flags: u8, end: u32, body: &[u8]) -> Vec<u8> {
    let mut packet = vec![0, 0, 0, 0, 0, kind, 1, 0, 0, 0];
    let length = u32::try_from(19 + body.len()).expect("a short body");
    packet.extend(length.to_le_bytes());
    packet.extend(end.to_le_bytes());
    packet.extend(u16::from(flags).to_le_bytes());
    packet.extend(body);
    packet
}
