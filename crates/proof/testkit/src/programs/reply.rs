//! Where the reply to a command ends, as a client without DEPRECATE_EOF sees it.

use anyhow::{Context, Result, bail};

use super::action;

const MORE_RESULTS: u16 = 0x8;
const CURSOR_EXISTS: u16 = 0x40;
const LAST_ROW: u16 = 0x80;
const OK: u8 = 0;
const LOCAL_FILE: u8 = 0xfb;
const EOF: u8 = 0xfe;
const ERR: u8 = 0xff;

/// What a reply waits for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Nothing: this is its end.
    End,
    /// The server waits for a packet of the client: a file, or the answer to a challenge.
    Client,
}

/// Reads a reply to a command up to its end, or to where the server waits for the client.
pub(crate) fn read_reply(
    command: u8,
    packets: &mut Vec<Vec<u8>>,
    next: &mut dyn FnMut() -> Result<Vec<u8>>,
) -> Result<Stop> {
    let mut take = || {
        packets.push(next()?);
        Ok(packets.last().cloned().unwrap_or_default())
    };
    match command {
        action::STMT_CLOSE | action::STMT_SEND_LONG_DATA => {}
        action::QUERY | action::STMT_EXECUTE => return read_results(&mut take),
        action::STMT_PREPARE => read_prepared(&mut take)?,
        action::STMT_FETCH | action::FIELD_LIST => while !is_end(&take()?) {},
        action::CHANGE_USER => {
            if take()?.first() == Some(&EOF) {
                return Ok(Stop::Client);
            }
        }
        _ => drop(take()?),
    }
    Ok(Stop::End)
}

fn read_results(take: &mut impl FnMut() -> Result<Vec<u8>>) -> Result<Stop> {
    loop {
        let head = take()?;
        let status = match head.first() {
            Some(&ERR) => 0,
            Some(&OK) => status_of_ok(&head)?,
            Some(&LOCAL_FILE) => return Ok(Stop::Client),
            Some(_) => {
                let mut columns = take()?;
                while !is_end(&columns) {
                    columns = take()?;
                }
                let mut end = columns;
                // With a cursor there are no rows yet.
                if status_of_end(&end)? & CURSOR_EXISTS == 0 {
                    end = take()?;
                    while !is_end(&end) {
                        end = take()?;
                    }
                }
                status_of_end(&end)?
            }
            None => bail!("an empty packet"),
        };
        if status & MORE_RESULTS == 0 {
            return Ok(Stop::End);
        }
    }
}

fn read_prepared(take: &mut impl FnMut() -> Result<Vec<u8>>) -> Result<()> {
    let head = take()?;
    if head.first() == Some(&ERR) {
        return Ok(());
    }
    let counts = head
        .get(5..9)
        .context("an OK of PREPARE has twelve bytes")?;
    for count in counts.chunks(2) {
        if count != [0, 0] {
            while !is_end(&take()?) {}
        }
    }
    Ok(())
}

fn is_end(packet: &[u8]) -> bool {
    packet.first() == Some(&ERR) || packet.first() == Some(&EOF) && packet.len() < 9
}

/// Whether a reply ends with an open cursor.
pub(super) fn opens_cursor(packet: &[u8]) -> bool {
    is_end(packet) && status_of_end(packet).is_ok_and(|it| it & CURSOR_EXISTS != 0)
}

/// Whether no row of a cursor is left, or it has failed.
pub(super) fn ends_rows(packet: &[u8]) -> bool {
    packet.first() == Some(&ERR) || status_of_end(packet).is_ok_and(|it| it & LAST_ROW != 0)
}

/// Of the packet that ends rows; an error has none.
fn status_of_end(packet: &[u8]) -> Result<u16> {
    match packet {
        [EOF, _, _, low, high] => Ok(u16::from_le_bytes([*low, *high])),
        [ERR, ..] => Ok(0),
        _ => bail!("rows end with {packet:?}"),
    }
}

/// The status in an OK packet.
pub(super) fn status_of_ok(packet: &[u8]) -> Result<u16> {
    let mut at = 1;
    for _ in 0..2 {
        at += match packet.get(at).context("an OK packet has two numbers")? {
            0xfc => 3,
            0xfd => 4,
            0xfe => 9,
            _ => 1,
        };
    }
    let status = packet
        .get(at..at + 2)
        .context("an OK packet has a status")?;
    Ok(u16::from_le_bytes([status[0], status[1]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(command: u8, all: &[&[u8]]) -> (Stop, usize) {
        let mut source = all.iter().map(|it| it.to_vec());
        let mut packets = Vec::new();
        let mut next = || source.next().context("no packet is left");
        let stop = read_reply(command, &mut packets, &mut next).unwrap();
        (stop, packets.len())
    }

    #[test]
    fn replies_end_where_they_do() {
        let ok: &[u8] = &[0, 0, 0, 2, 0, 0, 0];
        let more: &[u8] = &[0, 0xfc, 1, 1, 0, 8, 0, 0, 0];
        let error: &[u8] = &[0xff, 1, 4];
        let eof: &[u8] = &[0xfe, 0, 0, 2, 0];
        let cursor: &[u8] = &[0xfe, 0, 0, 0x40, 0];
        let row: &[u8] = &[1, b'x'];
        let end = |count| (Stop::End, count);
        assert_eq!(read(action::QUERY, &[ok, ok]), end(1));
        assert_eq!(
            read(action::QUERY, &[more, &[1], row, eof, row, eof, ok]),
            end(6)
        );
        assert_eq!(
            read(action::QUERY, &[&[1], row, eof, row, error, ok]),
            end(5)
        );
        assert_eq!(
            read(action::QUERY, &[&[LOCAL_FILE, b'f']]),
            (Stop::Client, 1)
        );
        assert_eq!(read(action::STMT_EXECUTE, &[&[1], row, cursor, ok]), end(3));
        let prepared: &[u8] = &[0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0];
        assert_eq!(
            read(action::STMT_PREPARE, &[prepared, row, eof, row, eof, ok]),
            end(5)
        );
        assert_eq!(read(action::STMT_CLOSE, &[ok]), end(0));
        assert_eq!(read(action::RESET_CONNECTION, &[ok, ok]), end(1));
    }
}
