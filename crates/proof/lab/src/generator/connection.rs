//! A client's connection before the clock starts: connects, logs in, prepares statements.
//!
//! All this blocks. Prepare requests are sent together and their replies read together, since each
//! connection of the longest mix has 38.

use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use rustix::io::{ioctl_fionbio, read, write};
use wire::{
    AuthMoreData, AuthSwitch, Capabilities, Command, CommandByte, Deframer, ErrorPacket, Framed,
    Handshake, Login, PacketWriter, PrepareOk,
};

use super::Work;
use super::mix::{Statement, Step};

/// The server's address.
#[derive(Clone, Debug)]
pub(crate) enum Address {
    /// A port of loopback.
    Tcp(u16),
    /// A unix socket.
    Unix(PathBuf),
}

/// Whether statements go by id or as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Prepared,
    Text,
}

/// A logged-in connection without a running command.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) socket: OwnedFd,
    /// What both sides can do.
    pub(super) capabilities: Capabilities,
    /// The id of each statement on each table, or of each of TPC-C's; [`AS_TEXT`] for none.
    statement_ids: Box<[u32]>,
    table_count: usize,
}

/// Instead of a statement's id: it is sent as text.
const AS_TEXT: u32 = u32::MAX;

/// ER_UNSUPPORTED_PS: MySQL prepares no BEGIN.
const UNSUPPORTED_PS: u16 = 1295;

/// The capabilities of MariaDB's own connector. With them the columns of a prepared statement are
/// described only when they change, not with each result. A server that lacks this says so.
const WANTED: Capabilities = Capabilities(
    Capabilities::LONG_FLAG.0
        | Capabilities::CONNECT_WITH_DB.0
        | Capabilities::PROTOCOL_41.0
        | Capabilities::TRANSACTIONS.0
        | Capabilities::SECURE_CONNECTION.0
        | Capabilities::MULTI_RESULTS.0
        | Capabilities::PS_MULTI_RESULTS.0
        | Capabilities::PLUGIN_AUTH.0
        | Capabilities::MARIADB_CACHE_METADATA.0,
);

/// The largest expected packet: a hundred rows are 20 times smaller.
pub(super) const PACKET_BYTES_MAX: usize = 1 << 20;

const NATIVE: &[u8] = b"mysql_native_password";

/// Reads packets of a blocking connection.
struct Reader {
    socket: OwnedFd,
    deframer: Deframer,
    received: Vec<u8>,
}

impl Connection {
    /// Connects and logs in without password.
    pub(super) fn open(
        address: &Address,
        user: &str,
        database: Option<&str>,
    ) -> Result<Connection> {
        let socket: OwnedFd = match address {
            Address::Tcp(port) => {
                let stream = TcpStream::connect(("127.0.0.1", *port))?;
                stream.set_nodelay(true)?;
                stream.into()
            }
            Address::Unix(path) => UnixStream::connect(path)?.into(),
        };
        let mut reader = Reader::new(socket);
        let capabilities = reader.log_in(user.as_bytes(), database.map(str::as_bytes))?;
        reader.finish(capabilities)
    }

    /// Runs commands that set something.
    pub(super) fn set(&mut self, commands: &[&str]) -> Result<()> {
        let mut reader = Reader::new(self.socket.try_clone()?);
        for command in commands {
            let mut out = PacketWriter::new();
            Command::encode(&mut out, CommandByte::QUERY, command.as_bytes());
            reader.send(out.as_bytes())?;
            reader.deframer.set_sequence(1);
            let reply = reader.packet()?;
            if reply.first() == Some(&ErrorPacket::HEADER) {
                bail!("{command}: {:?}", ErrorPacket::decode(&reply)?);
            }
        }
        Ok(())
    }

    /// Prepares what `work` needs, on `table_count` tables, and leaves the socket non-blocking.
    pub(super) fn prepare(
        &mut self,
        work: &Work,
        table_count: u32,
        protocol: Protocol,
    ) -> Result<()> {
        self.table_count = stdx::to_usize(table_count);
        let (count, texts) = match work {
            Work::Steps(steps) => {
                let texts = self.texts(steps, table_count);
                (Statement::COUNT * self.table_count, texts)
            }
            Work::Tpcc(texts) => (texts.len(), texts.iter().cloned().enumerate().collect()),
        };
        self.statement_ids = vec![AS_TEXT; count].into();
        if protocol == Protocol::Prepared {
            self.prepare_all(&texts)?;
        }
        ioctl_fionbio(&self.socket, true)?;
        Ok(())
    }

    /// The texts of all that `steps` may send, with their places in `statement_ids`.
    fn texts(&self, steps: &[Step], table_count: u32) -> Vec<(usize, String)> {
        let mut wanted = Vec::new();
        for statement in steps.iter().flat_map(Step::statements) {
            let tables = if statement.names_no_table() {
                1
            } else {
                table_count
            };
            wanted.extend((1..=tables).map(|table| (statement, table)));
        }
        wanted.sort_by_key(|(statement, table)| (statement.index(), *table));
        wanted.dedup();
        let place = |(statement, table): (Statement, u32)| {
            (self.place(statement, table), statement.text(table))
        };
        wanted.into_iter().map(place).collect()
    }

    fn prepare_all(&mut self, texts: &[(usize, String)]) -> Result<()> {
        let mut out = PacketWriter::new();
        for (_, text) in texts {
            out.set_sequence(0);
            Command::encode(&mut out, CommandByte::STMT_PREPARE, text.as_bytes());
        }
        let mut reader = Reader::new(self.socket.try_clone()?);
        reader.send(out.as_bytes())?;
        for (place, text) in texts {
            let number = reader.read_prepared().with_context(|| text.clone())?;
            if let Some(number) = number {
                let id = self.statement_ids.get_mut(*place);
                *id.context("a statement of the mix")? = number;
            }
        }
        ensure!(reader.received.is_empty(), "bytes after the last reply");
        Ok(())
    }

    /// The id of the statement at that place, if it is sent by id.
    pub(super) fn statement_id(&self, place: usize) -> Option<u32> {
        let number = *self.statement_ids.get(place)?;
        (number != AS_TEXT).then_some(number)
    }

    /// The place of a statement on a table.
    pub(super) fn place(&self, statement: Statement, table: u32) -> usize {
        let table = if statement.names_no_table() {
            0
        } else {
            stdx::to_usize(table - 1)
        };
        statement.index() * self.table_count + table
    }
}

impl Reader {
    fn new(socket: OwnedFd) -> Reader {
        Reader {
            socket,
            deframer: Deframer::new(PACKET_BYTES_MAX),
            received: Vec::new(),
        }
    }

    fn finish(self, capabilities: Capabilities) -> Result<Connection> {
        ensure!(self.received.is_empty(), "bytes after the login");
        Ok(Connection {
            socket: self.socket,
            capabilities,
            statement_ids: Box::default(),
            table_count: 0,
        })
    }

    fn send(&self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let count = write(&self.socket, bytes)?;
            bytes = bytes.get(count..).unwrap_or_default();
        }
        Ok(())
    }

    /// The next packet; an error packet is returned as an error.
    fn packet(&mut self) -> Result<Vec<u8>> {
        let mut chunk = [0; 4096];
        loop {
            if let Framed::Packet { payload, used } = self.deframer.next(&self.received)? {
                let payload = payload.to_vec();
                self.received.drain(..used);
                return Ok(payload);
            }
            let count = read(&self.socket, &mut chunk)?;
            ensure!(count > 0, "the server closed the connection");
            self.received
                .extend_from_slice(chunk.get(..count).unwrap_or_default());
        }
    }

    fn log_in(&mut self, user: &[u8], database: Option<&[u8]>) -> Result<Capabilities> {
        let greeting = self.packet()?;
        if greeting.first() == Some(&ErrorPacket::HEADER) {
            bail!("refused: {:?}", ErrorPacket::decode(&greeting)?);
        }
        let mut wanted = WANTED;
        if database.is_none() {
            wanted = wanted & !Capabilities::CONNECT_WITH_DB;
        }
        let capabilities = wanted & Handshake::decode(&greeting)?.capabilities;
        let login = Login {
            user,
            database,
            auth_plugin: NATIVE,
            ..Login::with(capabilities)
        };
        let mut out = PacketWriter::new();
        out.set_sequence(1);
        login.encode(&mut out);
        self.send(out.as_bytes())?;
        self.deframer.set_sequence(out.sequence());
        loop {
            let packet = self.packet()?;
            match packet.first().copied() {
                Some(0) => return Ok(capabilities),
                Some(ErrorPacket::HEADER) => bail!("refused: {:?}", ErrorPacket::decode(&packet)?),
                // Without a password every method expects an empty response.
                Some(AuthSwitch::HEADER) => {
                    let mut out = PacketWriter::new();
                    out.set_sequence(self.deframer.sequence());
                    out.packet(b"");
                    self.send(out.as_bytes())?;
                    self.deframer.set_sequence(out.sequence());
                }
                Some(AuthMoreData::HEADER) => {}
                other => bail!("login reply begins with {other:?}"),
            }
        }
    }

    /// The id of the prepared statement; `None` if it must be sent as text.
    fn read_prepared(&mut self) -> Result<Option<u32>> {
        self.deframer.set_sequence(1);
        let head = self.packet()?;
        if head.first() == Some(&ErrorPacket::HEADER) {
            let error = ErrorPacket::decode(&head)?;
            ensure!(error.code.number() == UNSUPPORTED_PS, "{error:?}");
            return Ok(None);
        }
        let prepared = PrepareOk::decode(&head)?;
        // Each list that is not empty ends with EOF.
        for count in [prepared.parameter_count, prepared.column_count] {
            let packets = if count == 0 { 0 } else { u32::from(count) + 1 };
            for _ in 0..packets {
                self.packet()?;
            }
        }
        Ok(Some(prepared.statement_id))
    }
}
