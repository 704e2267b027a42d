//! A server's replies as `backend` reads them: any bytes are a reply or an error, and how much of a
//! packet is there does not change what it is.

use backend::{Message, RowForm};
use link::{Part, Reply};
use wire::{Capabilities, Deframer, FRAME_BYTES_MAX, Framed};

use crate::choices::Choices;

/// Packets of an input: more than its bytes can hold is a loop.
const PACKETS_MAX: usize = 1 << 20;

pub(crate) fn run(input: &[u8]) {
    let mut choices = Choices::new(input);
    let command = choices.u8();
    let flavour = choices.u8();
    let mut capabilities = Capabilities::SERVER;
    if flavour & 1 != 0 {
        capabilities = capabilities & !Capabilities::DEPRECATE_EOF;
    }
    if flavour & 2 != 0 {
        capabilities = capabilities & !Capabilities::SESSION_TRACK;
    }
    let mut reply = Reply::new(command, capabilities);
    let row_form = RowForm::of_command(command);
    let mut stream = choices.rest();
    let mut deframer = Deframer::new(1 << 24);
    for _ in 0..PACKETS_MAX {
        let Ok(Framed::Packet { payload, used }) = deframer.next(stream) else {
            return;
        };
        if !read(&mut reply, payload, capabilities, row_form) {
            return;
        }
        stream = stream.get(used..).expect("taken from what is there");
    }
    panic!("a packet has four bytes at least");
}

/// Reads one packet; whether the reply goes on.
fn read(reply: &mut Reply, payload: &[u8], capabilities: Capabilities, row_form: RowForm) -> bool {
    let was_over = reply.is_over();
    let length = payload.len().min(FRAME_BYTES_MAX);
    let before = reply.clone();
    let Ok(taken) = reply.take(length, payload) else {
        return false;
    };
    let part = taken.expect("the packet is whole");
    assert!(!was_over, "nothing follows the end");
    for count in 0..payload.len().min(32) {
        let early = before
            .clone()
            .take(length, payload.get(..count).unwrap_or_default());
        assert!(
            early == Ok(None) || early == Ok(Some(part)),
            "{early:?} {part:?}"
        );
    }
    if let Ok(message) = Message::decode(part, payload, capabilities, row_form) {
        match message {
            Message::TextRow(mut row) => while row.next_value().is_ok() && !row.is_done() {},
            Message::Error(error) => drop(error.to_client_error()),
            _ => {}
        }
    }
    part != Part::Error
}
