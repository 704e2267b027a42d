//! Statements that are prepared on a connection, for whichever session uses it.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use backend::{Message, Server};
use connection_state::{CommandList, Origin};
use foldhash::fast::RandomState;
use link::Limit;
use router::{Detour, LoginReading};
use value::CollationId;
use wire::CommandByte;

use super::common::StatementText;
use super::{Connection, NotReady, OWN_TIME_MAX};

/// Statements that are prepared on all connections to a server: less than its
/// `max_prepared_stmt_count`, which is 16,382, so that others have some. Those that have a cursor
/// or long data stay beyond that.
const SERVER_PREPARED_MAX: usize = 12_800;

/// Those of them that are prepared on one connection: an application has some dozens.
const PREPARED_MAX: usize = 128;

/// How many of them are prepared on each of so many connections to a server.
pub(super) fn prepared_max(connections_max: u32) -> usize {
    let connections = usize::try_from(connections_max.max(1)).unwrap_or(usize::MAX);
    (SERVER_PREPARED_MAX / connections).clamp(1, PREPARED_MAX)
}

/// What tells a statement from others. Sessions with equal keys use one statement of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StatementKey {
    pub(crate) text: Arc<StatementText>,
    /// The commands by which its text is read: those that its session had run when it prepared
    /// the statement.
    pub(crate) reading: CommandList,
    /// Tells statements of one session apart that have one text: each has its own cursor.
    pub(crate) copy: u32,
}

impl Hash for StatementKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // The others differ rarely.
        self.text.hash(state);
    }
}

/// A statement on a connection.
#[derive(Debug)]
struct Prepared {
    /// The server's number.
    id: u32,
    /// The types of parameters that the server got last.
    types: Box<[u8]>,
    /// Which use it was that used it last.
    used: u64,
    /// It has an open cursor, or long data.
    is_held: bool,
}

/// All statements on a connection.
#[derive(Debug)]
pub(super) struct Shelf {
    by_key: HashMap<StatementKey, Prepared, RandomState>,
    /// How many there may be, but for those that are held.
    max: usize,
    /// Counts uses.
    uses: u64,
}

impl Shelf {
    pub(super) fn new(max: usize) -> Shelf {
        Shelf {
            by_key: HashMap::default(),
            max,
            uses: 0,
        }
    }

    pub(super) fn clear(&mut self) {
        self.by_key.clear();
    }

    fn add(&mut self, key: StatementKey, id: u32) {
        self.uses += 1;
        let prepared = Prepared {
            id,
            types: Box::default(),
            used: self.uses,
            is_held: false,
        };
        self.by_key.insert(key, prepared);
    }

    /// The statement that makes room, if there is none: the one that was used least recently.
    fn oldest(&self) -> Option<StatementKey> {
        if self.by_key.len() < self.max {
            return None;
        }
        let free = self.by_key.iter().filter(|(_, it)| !it.is_held);
        let oldest = free.min_by_key(|(_, it)| it.used);
        oldest.map(|(key, _)| key.clone())
    }
}

impl Connection {
    /// The server's number of a statement that is prepared here, and the types of parameters that
    /// it got last. The caller sends it others.
    pub(crate) fn prepared(&mut self, key: &StatementKey) -> Option<(u32, &mut Box<[u8]>)> {
        let Shelf { by_key, uses, .. } = &mut self.known.shelf;
        let found = by_key.get_mut(key)?;
        *uses += 1;
        found.used = *uses;
        Some((found.id, &mut found.types))
    }

    /// Prepares a statement here. `now` has the commands by which the connection reads texts.
    pub(crate) async fn prepare(
        &mut self,
        key: &StatementKey,
        now: &CommandList,
    ) -> Result<(), NotReady> {
        let text = key.text.bytes();
        let id = match self.detour(key, now) {
            None => prepare_on(&mut self.server, text).await?,
            Some(detour) => self.prepare_on_detour(&detour, text).await?,
        };
        self.note_prepared(key, id).await;
        Ok(())
    }

    /// How the connection comes to read texts as the statement's was read.
    fn detour(&self, key: &StatementKey, now: &CommandList) -> Option<Detour> {
        let origin = self.known.session.origin()?;
        let names = set_names(origin);
        let login = LoginReading {
            database: origin.database.as_deref(),
            names: &names,
        };
        Detour::plan(&key.reading, now, login)
    }

    async fn prepare_on_detour(&mut self, detour: &Detour, text: &[u8]) -> Result<u32, NotReady> {
        let limit = Limit::after(OWN_TIME_MAX);
        let there = self.server.send_all(&borrowed(&detour.there), limit).await;
        let prepared = match there {
            Ok(()) => prepare_on(&mut self.server, text).await,
            Err(error) => Err(error.into()),
        };
        if let Err(NotReady::Lost(_)) = prepared {
            return prepared;
        }
        let back = self.server.send_all(&borrowed(&detour.back), limit).await;
        back.map_err(|error| NotReady::Lost(error.to_string()))?;
        prepared
    }

    /// The server has prepared a statement.
    pub(crate) async fn note_prepared(&mut self, key: &StatementKey, id: u32) {
        self.close_statement(key).await;
        // Those that were held may have been more than there is room for.
        while let Some(oldest) = self.known.shelf.oldest() {
            self.close_statement(&oldest).await;
        }
        self.known.shelf.add(key.clone(), id);
    }

    /// A statement has a cursor or long data now, and so is not closed to make room.
    pub(crate) fn hold_statement(&mut self, key: &StatementKey) {
        if let Some(prepared) = self.known.shelf.by_key.get_mut(key) {
            prepared.is_held = true;
        }
    }

    /// It has neither any more.
    pub(crate) fn release_statement(&mut self, key: &StatementKey) {
        if let Some(prepared) = self.known.shelf.by_key.get_mut(key) {
            prepared.is_held = false;
        }
    }

    /// Closes a statement, if it is prepared here.
    pub(crate) async fn close_statement(&mut self, key: &StatementKey) {
        if let Some(prepared) = self.known.shelf.by_key.remove(key) {
            let id = prepared.id.to_le_bytes();
            // Who is lost has closed it; the next use of the connection finds out.
            let _ = self.server.send(CommandByte::STMT_CLOSE, &id).await;
        }
    }
}

fn borrowed(commands: &[(u8, Vec<u8>)]) -> Vec<(u8, &[u8])> {
    let commands = commands.iter();
    commands.map(|(byte, body)| (*byte, &**body)).collect()
}

/// What gives a connection the character set of its login.
fn set_names(origin: &Origin) -> String {
    match CollationId::from_id(u16::from(origin.collation)) {
        Some(collation) => {
            let charset = collation.charset().name();
            let name = collation.name();
            format!("SET NAMES {charset} COLLATE {name}")
        }
        // Of a collation that only the server knows.
        None => "SET NAMES DEFAULT".to_owned(),
    }
}

/// Prepares a statement, and returns the server's number of it.
async fn prepare_on(server: &mut Server, text: &[u8]) -> Result<u32, NotReady> {
    server.send(CommandByte::STMT_PREPARE, text).await?;
    let mut outcome = Err(NotReady::Lost("it did not answer".to_owned()));
    while let Some(received) = server.receive(Limit::after(OWN_TIME_MAX)).await? {
        match received.message() {
            Ok(Message::Prepared(prepared)) => outcome = Ok(prepared.statement_id),
            Ok(Message::Error(error)) => {
                outcome = Err(NotReady::Refused(error.to_client_error()));
            }
            Ok(_) => {}
            Err(error) => return Err(NotReady::Lost(error.to_string())),
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str, copy: u32) -> StatementKey {
        let text = StatementText::new(text.as_bytes(), &RandomState::default());
        StatementKey {
            text: Arc::new(text),
            reading: CommandList::default(),
            copy,
        }
    }

    #[test]
    fn what_was_used_least_recently_makes_room_unless_it_is_held() {
        let mut shelf = Shelf::new(PREPARED_MAX);
        let keys: Vec<_> = (0..=2).map(|copy| key("SELECT 1", copy)).collect();
        let rest = (keys.len()..PREPARED_MAX).map(|it| key(&format!("SELECT {it}"), 0));
        let all: Vec<_> = keys.iter().cloned().chain(rest).collect();
        for (id, key) in (0..).zip(&all) {
            assert_eq!(shelf.oldest(), None, "there is room for {id}");
            shelf.add(key.clone(), id);
        }
        assert_eq!(shelf.oldest().as_ref(), Some(&keys[0]));
        shelf.by_key.get_mut(&keys[0]).unwrap().is_held = true;
        assert_eq!(shelf.oldest().as_ref(), Some(&keys[1]));
        shelf.by_key.remove(&keys[1]);
        assert_eq!(shelf.oldest(), None);
        shelf.add(key("SELECT 0", 0), 500);
        assert_eq!(shelf.oldest().as_ref(), Some(&keys[2]));
        let held = shelf.by_key.values_mut();
        held.for_each(|it| it.is_held = true);
        assert_eq!(shelf.oldest(), None, "those that are held stay");
    }

    #[test]
    fn all_connections_to_a_server_share_its_room_for_statements() {
        let most = u32::try_from(SERVER_PREPARED_MAX).unwrap();
        for (connections, expected) in [
            (0, PREPARED_MAX),
            (1, PREPARED_MAX),
            (100, PREPARED_MAX),
            (101, 126),
            (1_000, 12),
            (most, 1),
            (most + 1, 1),
            (u32::MAX, 1),
        ] {
            assert_eq!(prepared_max(connections), expected, "{connections}");
        }
    }

    #[test]
    fn the_character_set_of_a_login_has_a_name() {
        let of = |collation| {
            set_names(&Origin {
                database: None,
                collation,
            })
        };
        assert_eq!(of(8), "SET NAMES latin1 COLLATE latin1_swedish_ci");
        assert_eq!(of(255), "SET NAMES utf8mb4 COLLATE utf8mb4_0900_ai_ci");
        assert_eq!(of(0), "SET NAMES DEFAULT");
    }
}
