//! Runs programs and keeps the replies.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use env::Random;

use crate::client::{CAPABILITIES, Client, Login};

use super::Program;
use super::action::{self, Action, Execution, Numbers, OWN_NUMBER};
use super::reply::{Stop, ends_rows, opens_cursor, read_reply};

/// What a client got for an action: its packets, with the client's own numbers made alike.
#[derive(Clone, PartialEq, Eq)]
pub struct Reply(pub Vec<Vec<u8>>);

/// A client that waits for a connection is left alone for so long while others have work.
const PATIENCE: Duration = Duration::from_millis(3);

/// If nobody is answered for so long, something hangs.
const HANG_LIMIT: Duration = Duration::from_secs(100);

/// SESSION_TRACK: the changes of the session that a server reports depend on what was asked of it.
const SESSION_TRACK: u32 = 0x80_0000;

/// LOCAL_FILES.
const LOCAL_FILES: u32 = 0x80;

/// What a client sends for LOAD DATA LOCAL: the rows of the file.
const FILE: &[u8] = b"1\tone\n2\ttwo\n";

/// The connection of a client, and what it calls its statements.
struct Player {
    login: Login,
    client: Client,
    numbers: Numbers,
    /// The statement whose cursor is open.
    cursor: Option<usize>,
}

impl Player {
    fn enter(login: &Login) -> Result<Player> {
        let capabilities = CAPABILITIES & !SESSION_TRACK | LOCAL_FILES;
        let client = Client::connect_able(login, capabilities)?;
        let numbers = Numbers {
            connection: client.connection_id,
            ..Numbers::default()
        };
        Ok(Player {
            login: login.clone(),
            client,
            numbers,
            cursor: None,
        })
    }

    fn act(&mut self, action: &Action) -> Result<Reply> {
        let Some((byte, body)) = action.encode(&self.numbers) else {
            let login = self.login.clone();
            // The server has seen the end once it closes, too.
            self.client.send_command(1, b"")?;
            let _ = self.client.next_packet();
            *self = Player::enter(&login)?;
            return Ok(Reply(Vec::new()));
        };
        if !self.is_possible(action) {
            return Ok(Reply(Vec::new()));
        }
        self.client.send_command(byte, &body)?;
        let mut packets = Vec::new();
        while read_reply(byte, &mut packets, &mut || self.client.next_packet())? == Stop::Client {
            let answer = match byte {
                action::QUERY => FILE,
                // The challenge is no part of what is compared.
                _ => {
                    packets.clear();
                    &[]
                }
            };
            self.client.send_packet(answer)?;
            if !answer.is_empty() {
                self.client.send_packet(&[])?;
            }
        }
        self.note(action, &mut packets);
        Ok(Reply(packets))
    }

    /// Whether the statement and the cursor are there that a command is for.
    fn is_possible(&self, action: &Action) -> bool {
        let has = |slot: &usize| self.numbers.slots.get(*slot).is_some_and(Option::is_some);
        match action {
            Action::Execute(slot, ..)
            | Action::LongData(slot, ..)
            | Action::ResetStatement(slot)
            | Action::Close(slot) => has(slot),
            Action::Fetch(slot, _) => has(slot) && self.cursor == Some(*slot),
            _ => true,
        }
    }

    /// Keeps the numbers that a reply tells, and makes them alike.
    fn note(&mut self, action: &Action, packets: &mut [Vec<u8>]) {
        let number = self.numbers.connection.to_string().into_bytes();
        // A session may have UCS-2 results.
        let wide: Vec<u8> = number.iter().flat_map(|digit| [0, *digit]).collect();
        for packet in packets.iter_mut() {
            for number in [&number, &wide] {
                if action.shows_number() {
                    // As a value it has its length before it.
                    let length = u8::try_from(number.len()).unwrap_or(0);
                    let value = [&[length], number.as_slice()].concat();
                    replace(packet, &value, OWN_NUMBER.as_bytes());
                }
                if action.names_number() && !action.kills() {
                    replace(packet, number, OWN_NUMBER.as_bytes());
                }
            }
            if action.kills() {
                forget_text(packet);
            }
            forget_tracking(packet);
            forget_catalog(packet);
            forget_mention(packet);
        }
        match action {
            Action::Execute(slot, _, Execution::Cursor) => {
                self.cursor = packets.last().filter(|it| opens_cursor(it)).map(|_| *slot);
            }
            Action::Fetch(slot, _) => {
                let is_open = packets.last().is_some_and(|it| !ends_rows(it));
                self.cursor = is_open.then_some(*slot);
            }
            _ if self.cursor.is_some() => self.cursor = None,
            _ => {}
        }
        match action {
            Action::Prepare(slot, _) => {
                let told = packets.first_mut().filter(|it| it.first() == Some(&0));
                let id = told.and_then(|it| it.get_mut(1..5)).map(|bytes| {
                    let id = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                    bytes.fill(0);
                    id
                });
                self.numbers.slots[*slot] = id;
            }
            Action::Close(slot) => self.numbers.slots[*slot] = None,
            Action::Reset | Action::ChangeUser(..) => self.numbers.slots = Default::default(),
            Action::Execute(slot, ..) | Action::Fetch(slot, _) | Action::ResetStatement(slot) => {
                let id = self.numbers.statement(*slot).to_string();
                for packet in packets.iter_mut().filter(|it| it.first() == Some(&0xff)) {
                    replace(packet, format!("({id})").as_bytes(), b"({statement})");
                }
            }
            _ => {}
        }
    }
}

/// MariaDB says also to clients without SESSION_TRACK, in some replies, that the session has
/// changed.
fn forget_tracking(packet: &mut [u8]) {
    const CHANGED: u8 = 0x40;
    match packet {
        [0xfe, _, _, _, high] => *high &= !CHANGED,
        // An OK packet: two short numbers, the status, a count of warnings.
        [0, _, _, _, high, _, _, ..] => *high &= !CHANGED,
        _ => {}
    }
}

/// The error is the gateway's own, whose text is ASCII, whatever character set results have.
fn forget_text(packet: &mut Vec<u8>) {
    /// 0xff, the number, `#` and the state.
    const HEAD_BYTES: usize = 9;
    if packet.first() == Some(&0xff) {
        packet.truncate(HEAD_BYTES);
    }
}

/// A session with UCS-2 results gets the catalog of columns in that. The gateway's answer to SHOW
/// WARNINGS has it in ASCII; it is the same word for all columns, and no client reads it.
fn forget_catalog(packet: &mut Vec<u8>) {
    const WIDE: &[u8] = b"\x06\0d\0e\0f";
    if packet.starts_with(WIDE) {
        packet.splice(..WIDE.len(), b"\x03def".iter().copied());
    }
}

/// A column of a user variable that was never set has the length 2^24. Once a write has named the
/// variable on a server with a binary log, the length is less by 1 on that connection. No command
/// can bring that about elsewhere, and the value is NULL all the same.
fn forget_mention(packet: &mut [u8]) {
    // The collation `binary`, the length, the type LONG_BLOB, flags, decimals, what is unused.
    const NAMED: &[u8] = b"\x0c\x3f\0\xff\xff\xff\0\xfb\x80\0\x27\0\0";
    const UNNAMED: &[u8] = b"\x0c\x3f\0\0\0\0\x01\xfb\x80\0\x27\0\0";
    if packet.ends_with(NAMED)
        && let Some(end) = packet.last_chunk_mut::<{ UNNAMED.len() }>()
    {
        end.copy_from_slice(UNNAMED);
    }
}

/// Replaces each occurrence of `old`, which is not empty.
fn replace(bytes: &mut Vec<u8>, old: &[u8], new: &[u8]) {
    let mut at = 0;
    while let Some(found) = bytes
        .get(at..)
        .and_then(|rest| rest.windows(old.len()).position(|it| it == old))
    {
        let begin = at + found;
        bytes.splice(begin..begin + old.len(), new.iter().copied());
        at = begin + new.len();
    }
}

/// Plays each client's part over a connection of its own, one after the other.
pub fn play_alone(program: &Program, port: u16) -> Result<Vec<Vec<Reply>>> {
    let parts = program.parts.iter().enumerate();
    parts
        .map(|(client, actions)| {
            let mut player = Player::enter(&program.login(client, port))?;
            let replies = actions.iter().map(|it| player.act(it));
            replies.collect()
        })
        .collect()
}

/// Plays all parts at once. Whose turn it is, the program's seed says, as far as the clients do not
/// wait for each other. A client whose connection is lost asks `lost` whether it goes on.
///
/// # Errors
/// If no client is answered.
pub fn play(
    program: &Program,
    port: u16,
    lost: &(dyn Fn(usize, &Action) -> ControlFlow<()> + Sync),
) -> Result<Vec<Vec<Reply>>> {
    std::thread::scope(|scope| {
        let (done, has_done) = channel();
        let mut turns = Vec::new();
        let mut clients = Vec::new();
        for (number, actions) in program.parts.iter().enumerate() {
            let (turn, my_turn) = channel();
            turns.push(turn);
            let done = done.clone();
            let login = program.login(number, port);
            clients.push(scope.spawn(move || {
                let part = Part {
                    number,
                    actions,
                    login,
                };
                part.play(&my_turn, &done, lost)
            }));
        }
        drop(done);
        let went = take_turns(program, &turns, &has_done);
        // Who waits for a turn ends.
        drop(turns);
        let replies = clients
            .into_iter()
            .map(|it| it.join().expect("a client does not panic"))
            .collect();
        went.map(|()| replies)
    })
}

struct Part<'p> {
    number: usize,
    actions: &'p [Action],
    login: Login,
}

impl Part<'_> {
    fn play(
        &self,
        my_turn: &Receiver<()>,
        done: &Sender<usize>,
        lost: &(dyn Fn(usize, &Action) -> ControlFlow<()> + Sync),
    ) -> Vec<Reply> {
        let mut replies = Vec::new();
        let mut player = None;
        for action in self.actions {
            if my_turn.recv().is_err() {
                break;
            }
            let acted = match &mut player {
                Some(player) => Player::act(player, action),
                none => Player::enter(&self.login).and_then(|it| none.insert(it).act(action)),
            };
            let is_over = match acted {
                Ok(reply) => {
                    replies.push(reply);
                    false
                }
                Err(error) => {
                    player = None;
                    replies.push(Reply(vec![format!("lost: {error:#}").into_bytes()]));
                    lost(self.number, action).is_break()
                }
            };
            if done.send(self.number).is_err() || is_over {
                break;
            }
        }
        if let Some(player) = player {
            // Its connection serves others once the gateway has seen the end.
            let _ = player.client.quit();
        }
        replies
    }
}

/// Gives each client its turns.
fn take_turns(program: &Program, turns: &[Sender<()>], done: &Receiver<usize>) -> Result<()> {
    let mut random = Random::new(program.seed ^ 0x7075_726e);
    let mut left: Vec<usize> = program.parts.iter().map(Vec::len).collect();
    let mut idle: Vec<usize> = (0..turns.len()).filter(|it| 0 < left[*it]).collect();
    let mut waiting = Vec::new();
    loop {
        if idle.is_empty() && waiting.is_empty() {
            return Ok(());
        }
        let mut is_sender = !idle.is_empty() && (waiting.is_empty() || random.chance(300));
        if !is_sender {
            let patience = if idle.is_empty() {
                HANG_LIMIT
            } else {
                PATIENCE
            };
            match done.recv_timeout(patience) {
                Ok(client) => {
                    waiting.retain(|it| *it != client);
                    if 0 < left[client] {
                        idle.push(client);
                    }
                }
                Err(RecvTimeoutError::Timeout) if !idle.is_empty() => is_sender = true,
                Err(_) => bail!("clients {waiting:?} are not answered"),
            }
        }
        if is_sender {
            let client = idle.swap_remove(random.index(idle.len()));
            left[client] -= 1;
            // A client that has ended early takes no more turns.
            match turns[client].send(()) {
                Ok(()) => waiting.push(client),
                Err(_) => left[client] = 0,
            }
        }
    }
}

impl fmt::Debug for Reply {
    /// A packet a line; what is no text is escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for packet in &self.0 {
            writeln!(f, "    {}", packet.escape_ascii())?;
        }
        Ok(())
    }
}

impl Program {
    /// As whom a client logs in.
    pub fn login(&self, client: usize, port: u16) -> Login {
        Login {
            user: super::ACCOUNTS[client % super::ACCOUNTS.len()].to_owned(),
            database: format!("{}db", super::mark(client)),
            ..Login::root(port)
        }
    }

    /// The first reply of a client that is another one than expected.
    pub(super) fn first_difference(
        &self,
        expected: &[Vec<Reply>],
        got: &[Vec<Reply>],
    ) -> Result<Option<(usize, usize)>> {
        for (client, actions) in self.parts.iter().enumerate() {
            let expected = expected.get(client).context("each client has replies")?;
            let got = got.get(client).context("each client has replies")?;
            let differs = (0..actions.len()).find(|it| expected.get(*it) != got.get(*it));
            if let Some(place) = differs {
                return Ok(Some((client, place)));
            }
        }
        Ok(None)
    }
}
