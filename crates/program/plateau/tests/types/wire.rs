//! A connection of which each byte is under control, for tests of character sets.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use testkit::{Launch, Server, ServerKind};

pub(crate) fn start() -> Server {
    let mut launch = Launch::asked_for(env!("CARGO_BIN_EXE_plateau"));
    if launch.kind == ServerKind::MariaDb {
        launch = launch.with("--local-infile=1");
    }
    launch.start().expect("a server")
}

/// LONG_FLAG, CONNECT_WITH_DB, LOCAL_FILES, PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION,
/// MULTI_STATEMENTS, MULTI_RESULTS, PS_MULTI_RESULTS, PLUGIN_AUTH.
pub(crate) const CAPABILITIES: u32 =
    0x4 | 0x8 | 0x80 | 0x200 | 0x2000 | 0x8000 | 0x1_0000 | 0x2_0000 | 0x4_0000 | 0x8_0000;
/// MariaDB's own: COM_STMT_BULK_EXECUTE.
pub(crate) const BULK: u32 = 4;

pub(crate) const QUERY: u8 = 3;
pub(crate) const PREPARE: u8 = 22;
pub(crate) const EXECUTE: u8 = 23;
pub(crate) const LONG_DATA: u8 = 24;
pub(crate) const BULK_EXECUTE: u8 = 0xfa;

pub(crate) const MORE_RESULTS: u8 = 8;

/// Types of parameters.
pub(crate) const VARCHAR: u8 = 253;
pub(crate) const BLOB: u8 = 252;

/// Collations that a login names.
pub(crate) const LATIN1: u8 = 8;
pub(crate) const UTF8MB4: u8 = 45;

/// A connection, byte by byte.
pub(crate) struct Wire {
    stream: TcpStream,
    sequence: u8,
    /// The file that the server last requested.
    pub(crate) asked_file: Vec<u8>,
}

/// A result, as the bytes that arrived.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Reply {
    /// The text of an error.
    pub(crate) error: Option<Vec<u8>>,
    pub(crate) names: Vec<Vec<u8>>,
    /// Values of a row, joined by bars.
    pub(crate) rows: Vec<Vec<u8>>,
}

impl Wire {
    pub(crate) fn login(server: &Server, collation: u8, database: &[u8]) -> Result<Wire, Reply> {
        let stream = TcpStream::connect(("127.0.0.1", server.port())).expect("it listens");
        let limit = Some(Duration::from_secs(60));
        stream.set_read_timeout(limit).expect("a time limit");
        let mut wire = Wire {
            stream,
            sequence: 0,
            asked_file: Vec::new(),
        };
        wire.packet();
        let mut login = CAPABILITIES.to_le_bytes().to_vec();
        login.extend_from_slice(&(1_u32 << 24).to_le_bytes());
        login.push(collation);
        login.extend_from_slice(&[0; 19]);
        login.extend_from_slice(&BULK.to_le_bytes());
        login.extend_from_slice(b"root\0\0");
        login.extend_from_slice(database);
        login.extend_from_slice(b"\0mysql_native_password\0");
        wire.send(&login);
        let reply = wire.reply(false, b"");
        match reply.error {
            None => Ok(wire),
            Some(_) => Err(reply),
        }
    }

    /// A login with a database of its own.
    pub(crate) fn with_database(server: &Server, collation: u8) -> Wire {
        let mut wire = Wire::login(server, collation, b"").expect("it lets root in");
        wire.run(b"CREATE DATABASE IF NOT EXISTS d CHARACTER SET utf8mb4");
        wire.run(b"USE d");
        wire
    }

    pub(crate) fn send(&mut self, payload: &[u8]) {
        let length = u32::try_from(payload.len()).expect("a short one");
        let [a, b, c, _] = length.to_le_bytes();
        let frame = [&[a, b, c, self.sequence], payload].concat();
        self.stream.write_all(&frame).expect("it reads");
        self.sequence = self.sequence.wrapping_add(1);
    }

    pub(crate) fn command(&mut self, payload: &[u8]) {
        self.sequence = 0;
        self.send(payload);
    }

    pub(crate) fn packet(&mut self) -> Vec<u8> {
        let mut header = [0; 4];
        self.stream.read_exact(&mut header).expect("a packet");
        let [a, b, c, sequence] = header;
        self.sequence = sequence.wrapping_add(1);
        let mut payload = vec![0; usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16];
        self.stream.read_exact(&mut payload).expect("a packet");
        payload
    }

    /// The first result of a command; `file` is sent if the server requests a file.
    pub(crate) fn reply(&mut self, is_binary: bool, file: &[u8]) -> Reply {
        let mut reply = Reply::default();
        let head = self.packet();
        match head[0] {
            0 | 0xfe => return reply,
            0xff => {
                reply.error = Some(head[9..].to_vec());
                return reply;
            }
            0xfb => {
                self.asked_file = head[1..].to_vec();
                self.send(file);
                self.send(b"");
                return self.reply(is_binary, file);
            }
            _ => {}
        }
        for _ in 0..head[0] {
            let column = self.packet();
            let mut rest = column.as_slice();
            let name = (0..5).map(|_| value(&mut rest)).last();
            reply.names.push(name.flatten().expect("a name"));
        }
        self.packet();
        let status = loop {
            let packet = self.packet();
            if packet[0] == 0xfe && packet.len() < 9 {
                break packet[3];
            }
            if packet[0] == 0xff {
                reply.error = Some(packet[9..].to_vec());
                return reply;
            }
            reply.rows.push(row(&packet, reply.names.len(), is_binary));
        };
        if status & MORE_RESULTS != 0 {
            let last = self.reply(is_binary, file);
            reply.error = last.error;
        }
        reply
    }

    pub(crate) fn query(&mut self, text: &[u8]) -> Reply {
        self.command(&[&[QUERY], text].concat());
        self.reply(false, b"")
    }

    /// A statement that does not fail.
    pub(crate) fn run(&mut self, text: &[u8]) {
        let reply = self.query(text);
        assert_eq!(reply.error, None, "{}", text.escape_ascii());
    }

    pub(crate) fn prepare(&mut self, text: &[u8]) -> u32 {
        self.command(&[&[PREPARE], text].concat());
        let head = self.packet();
        assert_eq!(head[0], 0, "{}", head.escape_ascii());
        let count = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
        for count in [count(7), count(5)] {
            for _ in 0..count {
                self.packet();
            }
            if count != 0 {
                self.packet();
            }
        }
        u32::from_le_bytes([head[1], head[2], head[3], head[4]])
    }

    pub(crate) fn execute(&mut self, id: u32, parameters: &[&[u8]], parameter_type: u8) -> Reply {
        let mut execute = vec![EXECUTE];
        execute.extend_from_slice(&id.to_le_bytes());
        execute.extend_from_slice(&[0, 1, 0, 0, 0]);
        if !parameters.is_empty() {
            execute.extend_from_slice(&[0, 1]);
            execute.extend(parameters.iter().flat_map(|_| [parameter_type, 0]));
            for parameter in parameters {
                append_value(&mut execute, parameter);
            }
        }
        self.command(&execute);
        self.reply(true, b"")
    }

    pub(crate) fn prepared(&mut self, text: &[u8], parameters: &[&[u8]]) -> Reply {
        let id = self.prepare(text);
        self.execute(id, parameters, VARCHAR)
    }

    /// The only row of a statement.
    pub(crate) fn row(&mut self, text: &[u8]) -> Vec<u8> {
        let mut reply = self.query(text);
        assert_eq!(reply.rows.len(), 1, "{}: {reply:?}", text.escape_ascii());
        reply.rows.remove(0)
    }
}

pub(crate) fn append_value(out: &mut Vec<u8>, value: &[u8]) {
    out.push(u8::try_from(value.len()).expect("a short one"));
    out.extend_from_slice(value);
}

/// The next short length-encoded value; `None` is NULL.
fn value(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let (&length, behind) = rest.split_first().expect("a value");
    *rest = behind;
    if length == 0xfb {
        return None;
    }
    let (taken, behind) = match length {
        0xfc => {
            let (length, behind) = behind.split_at(2);
            behind.split_at(usize::from(u16::from_le_bytes([length[0], length[1]])))
        }
        length => behind.split_at(usize::from(length)),
    };
    *rest = behind;
    Some(taken.to_vec())
}

/// A row's values, joined by bars; in the binary protocol they are texts.
fn row(packet: &[u8], count: usize, is_binary: bool) -> Vec<u8> {
    let mut rest = match is_binary {
        true => &packet[1 + (count + 9) / 8..],
        false => packet,
    };
    let is_null = |at: usize| is_binary && packet[1 + (at + 2) / 8] >> ((at + 2) % 8) & 1 != 0;
    let null = || b"NULL".to_vec();
    let values: Vec<Vec<u8>> = (0..count)
        .map(|at| match is_null(at) {
            true => null(),
            false => value(&mut rest).unwrap_or_else(null),
        })
        .collect();
    values.join(&b'|')
}
