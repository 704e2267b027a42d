//! [`Planted`]: a proxy with one mistake, which the comparison must find.
//!
//! Each client has a connection of its own behind it, so without a mistake nothing differs. A
//! mistake is what a gateway does that shares connections and does not put them right: it sends a
//! command over another client's connection, leaves one out, or confuses two replies.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Weak};
use std::thread::Scope;

use anyhow::{Context, Result, bail, ensure};
use sync::Mutex;
use sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::action;
use super::reply::{Stop, read_reply};

/// A mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plant {
    /// None: nothing may differ.
    Nothing,
    /// Commands whose text contains the first and not the second go over another client's
    /// connection.
    Misdirected(&'static str, &'static str),
    /// COM_STMT_EXECUTE does.
    MisdirectedExecution,
    /// Texts that begin with this are answered and not run.
    Dropped(&'static str),
    /// COM_INIT_DB is.
    DroppedDatabase,
    /// COM_RESET_CONNECTION is.
    DroppedReset,
    /// A client gets the reply that another client has got before.
    StaleReply,
    /// The last packet of a result is missing one row.
    LostRow,
}

impl Plant {
    /// One of each kind of state.
    pub const ALL: &'static [(&'static str, Plant)] = &[
        ("user variable", Plant::Misdirected("SELECT @a", "into")),
        (
            "session variable",
            Plant::Misdirected("SELECT @@", "@@last"),
        ),
        ("set that is lost", Plant::Dropped("SET @")),
        ("mode that is lost", Plant::Dropped("SET sql_mode")),
        ("database", Plant::Misdirected("SELECT DATABASE()", ";")),
        ("use that is lost", Plant::Dropped("USE ")),
        ("command that is lost", Plant::DroppedDatabase),
        (
            "rows of another database",
            Plant::Misdirected("FROM t ", "{c}"),
        ),
        ("temporary table", Plant::Misdirected("FROM own", ";")),
        (
            "last insert id",
            Plant::Misdirected("LAST_INSERT_ID()", ";"),
        ),
        ("row count", Plant::Misdirected("SELECT ROW_COUNT()", ";")),
        ("warnings", Plant::Misdirected("SHOW WARNINGS", ";")),
        ("transaction that is left open", Plant::Dropped("COMMIT")),
        (
            "transaction of another",
            Plant::Misdirected("ROLLBACK", "TO"),
        ),
        ("lock", Plant::Misdirected("RELEASE_ALL_LOCKS", ";")),
        ("statement of a text", Plant::Misdirected("EXECUTE p1", ";")),
        ("prepared statement", Plant::MisdirectedExecution),
        ("sequence", Plant::Misdirected("LASTVAL", ";")),
        ("reset that is left out", Plant::DroppedReset),
        ("reply of another", Plant::StaleReply),
        ("row that is lost", Plant::LostRow),
    ];
}

/// A mistake is made each so many times that it could be.
const EVERY: usize = 2;

/// A connection to the server, in turn used by its client and, by mistake, by another one.
type Link = Mutex<TcpStream>;

/// The proxy. It serves until [`Planted::end`].
#[derive(Debug)]
pub struct Planted {
    listener: TcpListener,
    server_port: u16,
    plant: Plant,
    /// Those to the server, of clients that are there or were.
    links: Mutex<Vec<Weak<Link>>>,
    /// The last result set, and whose it was.
    last_reply: Mutex<Option<(usize, Vec<Vec<u8>>)>>,
    /// How often the mistake could have been made.
    chances: AtomicUsize,
    is_over: AtomicBool,
}

impl Planted {
    /// In front of a server.
    pub fn new(server_port: u16, plant: Plant) -> Result<Planted> {
        Ok(Planted {
            listener: TcpListener::bind(("127.0.0.1", 0))?,
            server_port,
            plant,
            links: Mutex::new(Vec::new()),
            last_reply: Mutex::new(None),
            chances: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
        })
    }

    /// Where clients connect.
    pub fn port(&self) -> Result<u16> {
        Ok(self.listener.local_addr()?.port())
    }

    /// Serves clients, each in a thread of the scope.
    pub fn serve<'s>(&'s self, scope: &'s Scope<'s, '_>) {
        scope.spawn(move || {
            for (number, stream) in self.listener.incoming().enumerate() {
                if self.is_over.load(Ordering::Relaxed) {
                    return;
                }
                if let Ok(stream) = stream {
                    // Either side ends its connection; the other sees it.
                    scope.spawn(move || drop(self.relay(number, stream)));
                }
            }
        });
    }

    /// Accepts no more clients.
    pub fn end(&self) -> Result<()> {
        self.is_over.store(true, Ordering::Relaxed);
        TcpStream::connect(("127.0.0.1", self.port()?))?;
        Ok(())
    }

    fn relay(&self, number: usize, mut client: TcpStream) -> Result<()> {
        let mut server = TcpStream::connect(("127.0.0.1", self.server_port))?;
        server.set_nodelay(true)?;
        client.set_nodelay(true)?;
        log_in(&mut client, &mut server)?;
        let own = Arc::new(Mutex::new(server));
        self.links.lock().push(Arc::downgrade(&own));
        let went = self.commands(number, &mut client, &own);
        own.lock().shutdown(Shutdown::Both)?;
        went
    }

    fn commands(&self, number: usize, client: &mut TcpStream, own: &Arc<Link>) -> Result<()> {
        loop {
            let (_, command) = read_packet(client)?;
            let byte = *command.first().context("a command has a first byte")?;
            if byte == 1 {
                return Ok(());
            }
            let text = String::from_utf8_lossy(command.get(1..).unwrap_or_default());
            let is_struck = self.strikes(byte, &text);
            if is_struck && self.is_dropped(byte) {
                write_packet(client, 1, &[0, 0, 0, 2, 0, 0, 0])?;
                continue;
            }
            let other = (is_struck && self.is_misdirected())
                .then(|| self.other(own))
                .flatten();
            let link = other.as_ref().unwrap_or(own);
            let mut packets = exchange(&mut link.lock(), client, byte, &command)?;
            match is_struck {
                true => self.spoil(number, &mut packets),
                false => self.keep(number, &packets),
            }
            let mut out = Vec::new();
            for (place, packet) in packets.iter().enumerate() {
                let sequence = u8::try_from(place % 256)?.wrapping_add(1);
                append_packet(&mut out, sequence, packet);
            }
            client.write_all(&out)?;
        }
    }

    /// Whether the mistake is made now.
    fn strikes(&self, byte: u8, text: &str) -> bool {
        let is_text = byte == action::QUERY;
        let is_chance = match self.plant {
            Plant::Nothing => false,
            Plant::Misdirected(has, lacks) => {
                is_text && text.contains(has) && !text.contains(lacks)
            }
            Plant::MisdirectedExecution => byte == action::STMT_EXECUTE,
            Plant::Dropped(begin) => is_text && text.starts_with(begin),
            Plant::DroppedDatabase => byte == action::INIT_DB,
            Plant::DroppedReset => byte == action::RESET_CONNECTION,
            Plant::StaleReply | Plant::LostRow => is_text && text.starts_with("SELECT"),
        };
        is_chance
            && self
                .chances
                .fetch_add(1, Ordering::Relaxed)
                .is_multiple_of(EVERY)
    }

    fn is_dropped(&self, byte: u8) -> bool {
        match self.plant {
            Plant::Dropped(_) => byte == action::QUERY,
            Plant::DroppedDatabase | Plant::DroppedReset => true,
            _ => false,
        }
    }

    fn is_misdirected(&self) -> bool {
        matches!(
            self.plant,
            Plant::Misdirected(..) | Plant::MisdirectedExecution
        )
    }

    /// The connection of another client that is there.
    fn other(&self, own: &Arc<Link>) -> Option<Arc<Link>> {
        let mut links = self.links.lock();
        links.retain(|it| 0 < it.strong_count());
        let all = links.iter().filter_map(Weak::upgrade);
        let mut others = all.filter(|it| !Arc::ptr_eq(it, own));
        others.next_back()
    }

    /// Spoils a reply, if it is a result set with a row.
    fn spoil(&self, number: usize, packets: &mut Vec<Vec<u8>>) {
        if packets.len() < PACKETS_WITH_ROWS {
            return;
        }
        if self.plant == Plant::LostRow {
            packets.remove(packets.len() - 2);
            return;
        }
        let last = self.last_reply.lock();
        match &*last {
            Some((whose, reply)) if self.plant == Plant::StaleReply && *whose != number => {
                packets.clone_from(reply);
            }
            _ => {
                drop(last);
                self.keep(number, packets);
            }
        }
    }

    /// Keeps a reply for another client.
    fn keep(&self, number: usize, packets: &[Vec<u8>]) {
        if self.plant == Plant::StaleReply && PACKETS_WITH_ROWS <= packets.len() {
            *self.last_reply.lock() = Some((number, packets.to_vec()));
        }
    }
}

/// Packets of a result set with a column and a row.
const PACKETS_WITH_ROWS: usize = 5;

/// Sends a command and reads its reply. If the server asks the client for something, the rest of
/// the reply is passed on here, and nothing is left.
fn exchange(
    server: &mut TcpStream,
    client: &mut TcpStream,
    byte: u8,
    command: &[u8],
) -> Result<Vec<Vec<u8>>> {
    write_packet(server, 0, command)?;
    let mut packets = Vec::new();
    let mut sequence = 0;
    let stop = read_reply(byte, &mut packets, &mut || {
        let packet;
        (sequence, packet) = read_packet(server)?;
        Ok(packet)
    })?;
    if stop == Stop::End {
        return Ok(packets);
    }
    ensure!(packets.len() == 1, "a file for one of several statements");
    write_packet(client, sequence, &packets[0])?;
    loop {
        let (sequence, packet) = read_packet(client)?;
        write_packet(server, sequence, &packet)?;
        // A file ends with an empty packet; an answer to a challenge is one packet.
        if packet.is_empty() || byte != action::QUERY {
            break;
        }
    }
    let (sequence, packet) = read_packet(server)?;
    write_packet(client, sequence, &packet)?;
    Ok(Vec::new())
}

/// Passes a login on, up to its end.
fn log_in(client: &mut TcpStream, server: &mut TcpStream) -> Result<()> {
    let (sequence, greeting) = read_packet(server)?;
    write_packet(client, sequence, &greeting)?;
    loop {
        let (sequence, packet) = read_packet(client)?;
        write_packet(server, sequence, &packet)?;
        let (sequence, packet) = read_packet(server)?;
        write_packet(client, sequence, &packet)?;
        match packet.first() {
            Some(0) => return Ok(()),
            Some(0xff) => bail!("the server refuses the client"),
            _ => {}
        }
    }
}

fn read_packet(stream: &mut TcpStream) -> Result<(u8, Vec<u8>)> {
    let mut head = [0; 4];
    stream.read_exact(&mut head)?;
    let [one, two, three, sequence] = head;
    let length = u32::from_le_bytes([one, two, three, 0]);
    let mut packet = vec![0; usize::try_from(length)?];
    stream.read_exact(&mut packet)?;
    Ok((sequence, packet))
}

fn write_packet(stream: &mut TcpStream, sequence: u8, packet: &[u8]) -> Result<()> {
    let mut out = Vec::new();
    append_packet(&mut out, sequence, packet);
    Ok(stream.write_all(&out)?)
}

fn append_packet(out: &mut Vec<u8>, sequence: u8, packet: &[u8]) {
    let length = u32::try_from(packet.len()).expect("packets of programs are short");
    out.extend_from_slice(&length.to_le_bytes()[..3]);
    out.push(sequence);
    out.extend_from_slice(packet);
}
