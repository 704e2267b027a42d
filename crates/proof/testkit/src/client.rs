//! A small blocking client of the MySQL protocol.
//!
//! Deliberately written without crate `wire`: an error shared by both sides of a codec would not
//! show. It supports login with `mysql_native_password` or without password, COM_QUERY with one or
//! several text results, packets over 16 MiB, and prepared statements with text parameters.
//! Anything else is an error, never a guess.

use std::io::ErrorKind::{TimedOut, WouldBlock};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use sha1::{Digest, Sha1};

/// The account and address of a login.
#[derive(Clone, Debug)]
pub struct Login {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: String,
    /// Empty: none.
    pub database: String,
}

/// One logged-in connection.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    /// Of the next packet.
    sequence: u8,
    pub server_version: String,
    pub connection_id: u32,
}

/// The server's reply to one statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done(Done),
    Rows(ResultSet),
    Error(ServerError),
}

/// An OK packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    pub affected_rows: u64,
    pub last_insert_id: u64,
    pub status: u16,
    pub warning_count: u16,
    /// The session changes that the server reports: `autocommit=OFF`, `schema=test`, `state`,
    /// `transaction=T_______`, or the number of another kind.
    pub session_changes: Vec<String>,
}

/// A result set. Values are the bytes of the text protocol; `None` is NULL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResultSet {
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Option<Vec<u8>>>>,
    pub warning_count: u16,
    pub status: u16,
}

/// The server's description of a column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub table: String,
    pub collation: u16,
    pub length: u32,
    pub kind: u8,
    pub flags: u16,
    pub decimals: u8,
}

/// An ERR packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerError {
    pub number: u16,
    pub state: String,
    pub message: String,
}

impl std::fmt::Display for ServerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "ERROR {} ({}): {}",
            self.number, self.state, self.message
        )
    }
}

impl std::error::Error for ServerError {}

/// LONG_PASSWORD, LONG_FLAG, PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION, MULTI_STATEMENTS,
/// MULTI_RESULTS, PLUGIN_AUTH, SESSION_TRACK.
pub const CAPABILITIES: u32 =
    0x1 | 0x4 | 0x200 | 0x2000 | 0x8000 | 0x1_0000 | 0x2_0000 | 0x8_0000 | 0x80_0000;
const CONNECT_WITH_DB: u32 = 0x8;

/// What a client of MariaDB has not, so that the server looks for MariaDB's own capabilities.
const LONG_PASSWORD: u32 = 0x1;

/// MariaDB's own capability of COM_STMT_BULK_EXECUTE.
const BULK_OPERATIONS: u32 = 0x4;

/// utf8mb4_general_ci.
const COLLATION: u8 = 45;

/// The longest part of a packet.
const PART_BYTES_MAX: usize = 0xff_ffff;

/// Bytes of a packet that are copied behind its header, so that a short one is one write.
const COPIED_BYTES_MAX: usize = 64 << 10;

const MORE_RESULTS: u16 = 0x8;
const STATE_CHANGED: u16 = 0x4000;

const COM_QUIT: u8 = 1;
const COM_QUERY: u8 = 3;
const COM_PING: u8 = 14;
const COM_STMT_BULK_EXECUTE: u8 = 0xfa;

/// A server that sends nothing for this long hangs.
const READ_LIMIT: Duration = Duration::from_secs(120);

impl Login {
    /// root without password on loopback.
    pub fn root(port: u16) -> Login {
        Login {
            host: "127.0.0.1".to_owned(),
            port,
            user: "root".to_owned(),
            password: String::new(),
            database: String::new(),
        }
    }
}

impl Client {
    /// Connects and logs in. A refusal is a [`ServerError`] inside the error.
    pub fn connect(login: &Login) -> Result<Client> {
        Client::connect_with(b"", login, (CAPABILITIES, 0))
    }

    /// As [`Client::connect`], behind a proxy that sends this header before the login.
    pub fn connect_behind(header: &[u8], login: &Login) -> Result<Client> {
        Client::connect_with(header, login, (CAPABILITIES, 0))
    }

    /// As [`Client::connect`], with other capabilities than those of this client. Who takes more
    /// than these reads replies by [`Client::next_packet`].
    pub fn connect_able(login: &Login, capabilities: u32) -> Result<Client> {
        Client::connect_with(b"", login, (capabilities, 0))
    }

    /// As [`Client::connect`], as a client of MariaDB that sends bulks ([`Client::send_bulk`]).
    pub fn connect_for_bulks(login: &Login) -> Result<Client> {
        Client::connect_with(b"", login, (CAPABILITIES & !LONG_PASSWORD, BULK_OPERATIONS))
    }

    /// The second of the capabilities are MariaDB's own.
    fn connect_with(header: &[u8], login: &Login, capabilities: (u32, u32)) -> Result<Client> {
        let stream = TcpStream::connect((login.host.as_str(), login.port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(READ_LIMIT))?;
        let mut client = Client {
            stream,
            sequence: 0,
            server_version: String::new(),
            connection_id: 0,
        };
        let greeting = client.read_packet()?;
        if greeting.first() == Some(&0xff) {
            return Err(parse_error(&greeting)?.into());
        }
        let salt = client.take_greeting(&greeting)?;
        client.stream.write_all(header)?;
        client.write_packet(&login_packet(login, capabilities, &salt))?;
        client.finish_login(login)?;
        Ok(client)
    }

    /// Sends one statement and reads its first result; further results are an error.
    pub fn query(&mut self, statement: &str) -> Result<Outcome> {
        let mut outcomes = self.query_all(statement.as_bytes())?;
        ensure!(
            outcomes.len() == 1,
            "{} results for one statement",
            outcomes.len()
        );
        Ok(outcomes.remove(0))
    }

    /// Sends one text, possibly with several statements, and reads all results.
    pub fn query_all(&mut self, text: &[u8]) -> Result<Vec<Outcome>> {
        self.send_query(text)?;
        self.read_outcomes()
    }

    /// Sends one text and reads nothing, so that the caller may disconnect or wait elsewhere.
    pub fn send_query(&mut self, text: &[u8]) -> Result<()> {
        self.sequence = 0;
        self.write_payload(&[COM_QUERY], text)
    }

    /// As [`Client::send_query`], in two pieces: `pause` is called between them. The first has so
    /// many bytes of the text.
    pub fn send_query_in_two(
        &mut self,
        text: &[u8],
        first_bytes: usize,
        pause: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let length = text.len() + 1;
        ensure!(length < PART_BYTES_MAX, "it has several parts");
        let length = u32::try_from(length)?.to_le_bytes();
        let (first, rest) = text.split_at(first_bytes);
        let head = [length[0], length[1], length[2], 0, COM_QUERY];
        self.stream.write_all(&[&head, first].concat())?;
        pause()?;
        Ok(self.stream.write_all(rest)?)
    }

    /// Reads the results of the next text that `send_query` sent.
    pub fn read_outcomes(&mut self) -> Result<Vec<Outcome>> {
        self.sequence = 1;
        let mut outcomes = Vec::new();
        loop {
            let outcome = self.read_outcome()?;
            let has_more = match &outcome {
                Outcome::Done(done) => done.status & MORE_RESULTS != 0,
                Outcome::Rows(rows) => rows.status & MORE_RESULTS != 0,
                Outcome::Error(_) => false,
            };
            outcomes.push(outcome);
            if !has_more {
                return Ok(outcomes);
            }
        }
    }

    /// Whether the reply to `send_query` has begun to arrive within `patience`.
    pub fn has_answer(&mut self, patience: Duration) -> Result<bool> {
        self.stream.set_read_timeout(Some(patience))?;
        let peeked = self.stream.peek(&mut [0]);
        self.stream.set_read_timeout(Some(READ_LIMIT))?;
        match peeked {
            // The end of the stream counts as a reply, too: reading it fails.
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind(), WouldBlock | TimedOut) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// A statement that must succeed.
    pub fn run(&mut self, statement: &str) -> Result<Done> {
        match self.query(statement)? {
            Outcome::Done(done) => Ok(done),
            Outcome::Rows(_) => Ok(Done::default()),
            Outcome::Error(error) => Err(error).with_context(|| shorten(statement)),
        }
    }

    /// The rows of a statement that must return a result set.
    pub fn rows(&mut self, statement: &str) -> Result<Vec<Vec<Option<Vec<u8>>>>> {
        match self.query(statement)? {
            Outcome::Rows(result) => Ok(result.rows),
            Outcome::Done(_) => bail!("no result set: {}", shorten(statement)),
            Outcome::Error(error) => Err(error).with_context(|| shorten(statement)),
        }
    }

    /// The only value of a statement, as text; `None` is NULL.
    pub fn value(&mut self, statement: &str) -> Result<Option<String>> {
        let rows = self.rows(statement)?;
        let value = rows
            .into_iter()
            .next()
            .and_then(|row| row.into_iter().next());
        let value = value.with_context(|| format!("no row: {}", shorten(statement)))?;
        Ok(value.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// A counter of SHOW GLOBAL STATUS.
    pub fn status(&mut self, name: &str) -> Result<u64> {
        let shown = self.rows(&format!("SHOW GLOBAL STATUS LIKE '{name}'"))?;
        let value = shown.into_iter().flatten().flatten().next_back();
        let value = value.ok_or_else(|| anyhow!("there is no status {name}"))?;
        Ok(std::str::from_utf8(&value)?.parse()?)
    }

    /// The error number of a statement, 0 if it succeeds.
    pub fn error_number(&mut self, statement: &str) -> Result<u16> {
        Ok(match self.query(statement)? {
            Outcome::Error(error) => error.number,
            Outcome::Done(_) | Outcome::Rows(_) => 0,
        })
    }

    /// Sends any command; the caller reads its reply by [`Client::next_packet`].
    pub fn send_command(&mut self, byte: u8, body: &[u8]) -> Result<()> {
        self.sequence = 0;
        self.write_packet(&[&[byte], body].concat())
    }

    /// Sends COM_STMT_BULK_EXECUTE for a statement: the types of its parameters, two bytes each, if
    /// the server is told them, and the rows, where each value has its indicator before it.
    pub fn send_bulk(&mut self, id: [u8; 4], types: Option<&[u8]>, rows: &[u8]) -> Result<()> {
        let flags: u16 = if types.is_some() { 128 } else { 0 };
        let types = types.unwrap_or_default();
        let body = [&id[..], &flags.to_le_bytes(), types, rows].concat();
        self.send_command(COM_STMT_BULK_EXECUTE, &body)
    }

    /// Sends a packet that answers the server's last one.
    pub fn send_packet(&mut self, packet: &[u8]) -> Result<()> {
        self.write_packet(packet)
    }

    /// The next packet of a reply.
    pub fn next_packet(&mut self) -> Result<Vec<u8>> {
        self.read_packet()
    }

    pub fn ping(&mut self) -> Result<()> {
        self.status_flags().map(drop)
    }

    /// The status flags of the session, which COM_PING tells without a change of any.
    pub fn status_flags(&mut self) -> Result<u16> {
        self.sequence = 0;
        self.write_packet(&[COM_PING])?;
        match self.read_outcome()? {
            Outcome::Done(done) => Ok(done.status),
            other => bail!("ping gave {other:?}"),
        }
    }

    /// Sends COM_QUIT; dropping the client only closes its socket.
    pub fn quit(mut self) -> Result<()> {
        self.sequence = 0;
        self.write_packet(&[COM_QUIT])
    }

    /// The socket, for tests that misbehave.
    pub fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Keeps version and id of the greeting. Returns its salt.
    fn take_greeting(&mut self, packet: &[u8]) -> Result<Vec<u8>> {
        let mut cursor = Cursor(packet);
        ensure!(cursor.u8()? == 10, "greeting of another protocol version");
        self.server_version = cursor.text_to_zero()?;
        self.connection_id = cursor.u32()?;
        let mut salt = cursor.bytes(8)?.to_vec();
        cursor.bytes(1 + 2 + 1 + 2 + 2)?;
        let salt_length = usize::from(cursor.u8()?);
        cursor.bytes(10)?;
        let rest = salt_length.saturating_sub(8).max(13);
        salt.extend_from_slice(cursor.bytes(rest)?);
        salt.truncate(20);
        Ok(salt)
    }

    fn finish_login(&mut self, login: &Login) -> Result<()> {
        loop {
            let packet = self.read_packet()?;
            match packet.first() {
                Some(0x00) => return Ok(()),
                Some(0xff) => return Err(parse_error(&packet)?.into()),
                Some(0xfe) => {
                    let mut cursor = Cursor(packet.get(1..).unwrap_or_default());
                    let method = cursor.text_to_zero()?;
                    ensure!(method == "mysql_native_password", "server wants {method}");
                    let salt = cursor.0.get(..20).context("salt of 20 bytes")?;
                    self.write_packet(&native_response(&login.password, salt))?;
                }
                // caching_sha2_password: 3 says that the fast path succeeded, OK follows.
                Some(0x01) if packet.get(1) == Some(&3) => {}
                other => bail!("login reply begins with {other:?}"),
            }
        }
    }

    fn read_outcome(&mut self) -> Result<Outcome> {
        let packet = self.read_packet()?;
        match packet.first() {
            Some(0x00) => Ok(Outcome::Done(parse_done(&packet)?)),
            Some(0xff) => Ok(Outcome::Error(parse_error(&packet)?)),
            Some(0xfb) => bail!("server asks for a local file"),
            _ => self.read_result_set(&packet),
        }
    }

    fn read_result_set(&mut self, head: &[u8]) -> Result<Outcome> {
        let count = Cursor(head).length()?;
        let mut result = ResultSet::default();
        for _ in 0..count {
            result.columns.push(parse_column(&self.read_packet()?)?);
        }
        ensure!(is_eof(&self.read_packet()?), "columns end with EOF");
        loop {
            let packet = self.read_packet()?;
            if packet.first() == Some(&0xff) {
                return Ok(Outcome::Error(parse_error(&packet)?));
            }
            if is_eof(&packet) {
                let mut cursor = Cursor(packet.get(1..).unwrap_or_default());
                result.warning_count = cursor.u16()?;
                result.status = cursor.u16()?;
                return Ok(Outcome::Rows(result));
            }
            let mut cursor = Cursor(&packet);
            let mut row = Vec::with_capacity(result.columns.len());
            for _ in 0..count {
                row.push(cursor.value()?.map(<[u8]>::to_vec));
            }
            ensure!(cursor.0.is_empty(), "row has bytes left over");
            result.rows.push(row);
        }
    }

    fn read_packet(&mut self) -> Result<Vec<u8>> {
        let mut packet = Vec::new();
        loop {
            let mut head = [0_u8; 4];
            self.stream
                .read_exact(&mut head)
                .context("connection closed by the server")?;
            let length =
                usize::from(head[0]) | usize::from(head[1]) << 8 | usize::from(head[2]) << 16;
            ensure!(
                head[3] == self.sequence,
                "packet {} came for {}",
                head[3],
                self.sequence
            );
            self.sequence = self.sequence.wrapping_add(1);
            let start = packet.len();
            packet.resize(start + length, 0);
            self.stream.read_exact(&mut packet[start..])?;
            if length < PART_BYTES_MAX {
                return Ok(packet);
            }
        }
    }

    fn write_packet(&mut self, packet: &[u8]) -> Result<()> {
        self.write_payload(&[], packet)
    }

    /// Writes `head` and `body` as one packet. It copies no more than the beginning of a long body:
    /// hundreds of clients may send packets of many MiB at a time.
    fn write_payload(&mut self, mut head: &[u8], body: &[u8]) -> Result<()> {
        let mut rest = body;
        loop {
            let (part, after) = rest.split_at(rest.len().min(PART_BYTES_MAX - head.len()));
            let part_bytes = head.len() + part.len();
            let length = u32::try_from(part_bytes)?.to_le_bytes();
            let mut bytes = vec![length[0], length[1], length[2], self.sequence];
            bytes.extend_from_slice(head);
            let (copied, direct) = part.split_at(part.len().min(COPIED_BYTES_MAX));
            bytes.extend_from_slice(copied);
            self.stream.write_all(&bytes)?;
            self.stream.write_all(direct)?;
            self.sequence = self.sequence.wrapping_add(1);
            (head, rest) = (&[], after);
            if part_bytes < PART_BYTES_MAX {
                return Ok(());
            }
        }
    }
}

fn shorten(statement: &str) -> String {
    statement.chars().take(200).collect()
}

fn login_packet(login: &Login, (common, of_mariadb): (u32, u32), salt: &[u8]) -> Vec<u8> {
    let has_database = !login.database.is_empty();
    let capabilities = common | if has_database { CONNECT_WITH_DB } else { 0 };
    let mut packet = capabilities.to_le_bytes().to_vec();
    packet.extend_from_slice(&(1_u32 << 30).to_le_bytes());
    packet.push(COLLATION);
    packet.extend_from_slice(&[0; 19]);
    packet.extend_from_slice(&of_mariadb.to_le_bytes());
    packet.extend_from_slice(login.user.as_bytes());
    packet.push(0);
    let response = native_response(&login.password, salt);
    packet.push(u8::try_from(response.len()).expect("a response has 0 or 20 bytes"));
    packet.extend_from_slice(&response);
    if has_database {
        packet.extend_from_slice(login.database.as_bytes());
        packet.push(0);
    }
    packet.extend_from_slice(b"mysql_native_password\0");
    packet
}

/// SHA1(password) XOR SHA1(salt, SHA1(SHA1(password))); empty without a password.
fn native_response(password: &str, salt: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = Sha1::digest(password.as_bytes());
    let mut hash = Sha1::new();
    hash.update(salt);
    hash.update(Sha1::digest(once));
    once.iter()
        .zip(hash.finalize())
        .map(|(left, right)| left ^ right)
        .collect()
}

fn is_eof(packet: &[u8]) -> bool {
    packet.first() == Some(&0xfe) && packet.len() < 9
}

fn parse_done(packet: &[u8]) -> Result<Done> {
    let mut cursor = Cursor(packet.get(1..).unwrap_or_default());
    let mut done = Done {
        affected_rows: cursor.length()?,
        last_insert_id: cursor.length()?,
        status: cursor.u16()?,
        warning_count: cursor.u16()?,
        session_changes: Vec::new(),
    };
    if done.status & STATE_CHANGED != 0 {
        cursor.value()?.context("text of an OK packet")?;
        let mut changes = Cursor(cursor.value()?.context("session changes")?);
        while let Some((&kind, rest)) = changes.0.split_first() {
            changes = Cursor(rest);
            let mut data = Cursor(changes.value()?.context("session change")?);
            let mut text = || -> Result<String> {
                let text = data.value()?.context("text of a session change")?;
                Ok(String::from_utf8_lossy(text).into_owned())
            };
            done.session_changes.push(match kind {
                0 => format!("{}={}", text()?, text()?),
                1 => format!("schema={}", text()?),
                2 => "state".to_owned(),
                5 => format!("transaction={}", text()?),
                other => format!("kind {other}"),
            });
        }
    }
    Ok(done)
}

fn parse_error(packet: &[u8]) -> Result<ServerError> {
    let mut cursor = Cursor(packet.get(1..).unwrap_or_default());
    let number = cursor.u16()?;
    let mut state = String::from("HY000");
    if cursor.0.first() == Some(&b'#') {
        state = String::from_utf8_lossy(cursor.bytes(6)?.get(1..).unwrap_or_default()).into_owned();
    }
    let message = String::from_utf8_lossy(cursor.0).into_owned();
    Ok(ServerError {
        number,
        state,
        message,
    })
}

fn parse_column(packet: &[u8]) -> Result<Column> {
    let mut cursor = Cursor(packet);
    cursor.value()?;
    cursor.value()?;
    let table = cursor.text()?;
    cursor.value()?;
    let name = cursor.text()?;
    cursor.value()?;
    ensure!(
        cursor.length()? == 12,
        "fixed part of a column has 12 bytes"
    );
    Ok(Column {
        name,
        table,
        collation: cursor.u16()?,
        length: cursor.u32()?,
        kind: cursor.u8()?,
        flags: cursor.u16()?,
        decimals: cursor.u8()?,
    })
}

/// Reads from the front of a packet; missing bytes are an error.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .context("packet is too short")?;
        self.0 = rest;
        Ok(taken)
    }

    fn u8(&mut self) -> Result<u8> {
        Ok(self.bytes(1)?[0])
    }

    fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.bytes(2)?.try_into()?))
    }

    fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.bytes(4)?.try_into()?))
    }

    fn text_to_zero(&mut self) -> Result<String> {
        let end = self
            .0
            .iter()
            .position(|byte| *byte == 0)
            .context("text ends with 0")?;
        let text = String::from_utf8_lossy(self.bytes(end)?).into_owned();
        self.bytes(1)?;
        Ok(text)
    }

    /// A length-encoded number.
    fn length(&mut self) -> Result<u64> {
        let bytes = match self.u8()? {
            small @ 0..=0xfa => return Ok(u64::from(small)),
            0xfc => self.bytes(2)?,
            0xfd => self.bytes(3)?,
            0xfe => self.bytes(8)?,
            other => bail!("no length begins with {other:#x}"),
        };
        Ok(bytes
            .iter()
            .rev()
            .fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// A length-encoded value; 0xfb is NULL.
    fn value(&mut self) -> Result<Option<&'a [u8]>> {
        if self.0.first() == Some(&0xfb) {
            self.bytes(1)?;
            return Ok(None);
        }
        let length = usize::try_from(self.length()?)?;
        self.bytes(length).map(Some)
    }

    fn text(&mut self) -> Result<String> {
        Ok(String::from_utf8_lossy(self.value()?.unwrap_or_default()).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths() {
        assert_eq!(Cursor(&[5]).length().unwrap(), 5);
        assert_eq!(Cursor(&[0xfc, 1, 2]).length().unwrap(), 0x201);
        assert_eq!(Cursor(&[0xfd, 1, 2, 3]).length().unwrap(), 0x3_0201);
        assert_eq!(Cursor(&[0xfe, 1, 0, 0, 0, 0, 0, 0, 0]).length().unwrap(), 1);
        assert!(Cursor(&[0xfc, 1]).length().is_err());
        assert_eq!(Cursor(&[0xfb]).value().unwrap(), None);
    }

    #[test]
    fn errors_with_and_without_state() {
        let error = parse_error(b"\xff\x1e\x04#42S22no such column").unwrap();
        assert_eq!(error.to_string(), "ERROR 1054 (42S22): no such column");
        let error = parse_error(b"\xff\x10\x04Too many connections").unwrap();
        assert_eq!((error.number, error.state.as_str()), (1040, "HY000"));
    }
}
