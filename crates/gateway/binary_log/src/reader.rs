//! [`LogReader`]: event by event, what a log tells of changes, and how far it was read.

use std::collections::HashMap;

use crate::error::LogError;
use crate::event::{Checksum, Event, Framed, Gtid, Statement};
use crate::place::Place;

/// Most tables of one transaction that are distinguished. Rows of others are of any table.
pub const TABLES_MAX: usize = 1024;

/// The number in an event that ends a statement and has no rows.
const NO_TABLE: u64 = 0x00ff_ffff;

/// See the module's head.
#[derive(Debug)]
pub struct LogReader {
    /// Of the events to come.
    checksum: Checksum,
    /// Behind the last event.
    place: Place,
    /// The names of tables, by the numbers that the present transaction gives them.
    tables: HashMap<u64, Box<[u8]>>,
}

/// What an event tells of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told<'a> {
    /// Nothing.
    Nothing,
    /// The log can be read: all that stands behind the place that was asked for will come.
    Begun,
    /// A transaction begins.
    Transaction(Gtid),
    /// Rows of the table of this name have changed.
    Rows(&'a [u8]),
    /// Rows of a table have changed whose name is not known.
    UnknownRows,
    /// A statement was carried out.
    Statement(Statement<'a>),
    /// Anything may have changed.
    Unknown,
}

impl LogReader {
    /// Of the log behind a place, as the server sends it to who has asked for these checksums.
    pub fn new(place: Place, checksum: Checksum) -> LogReader {
        LogReader {
            checksum,
            place,
            tables: HashMap::new(),
        }
    }

    /// Behind the last event.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Takes the next packet.
    ///
    /// # Errors
    /// It cannot be read. What follows cannot be, either.
    pub fn take<'a>(&'a mut self, packet: &'a [u8]) -> Result<Told<'a>, LogError> {
        let Framed { event, end } = Framed::decode(packet, self.checksum)?;
        self.advance(end);
        Ok(match event {
            Event::Format(checksum) => {
                self.checksum = checksum;
                Told::Begun
            }
            Event::Rotate { offset, file } => {
                self.place = Place::new(file, offset);
                self.tables.clear();
                Told::Nothing
            }
            Event::Transaction(gtid) => {
                self.tables.clear();
                Told::Transaction(gtid)
            }
            Event::Table { id, name } => {
                if self.tables.len() < TABLES_MAX || self.tables.contains_key(&id) {
                    self.tables.insert(id, name.into());
                }
                Told::Nothing
            }
            Event::Rows { id } => match self.tables.get(&id) {
                Some(name) => Told::Rows(name),
                None if id == NO_TABLE => Told::Nothing,
                None => Told::UnknownRows,
            },
            Event::HiddenRows => Told::UnknownRows,
            Event::Statement(statement) => Told::Statement(statement),
            Event::Harmless => Told::Nothing,
            Event::Unknown => Told::Unknown,
        })
    }

    /// Notes the lower half of the place behind an event. A file may be longer than that has room
    /// for: one transaction stands in one file.
    fn advance(&mut self, end: u32) {
        const HALF: u64 = 1 << 31;
        if end == 0 {
            return;
        }
        let before = self.place.offset;
        let mut after = before & !u64::from(u32::MAX) | u64::from(end);
        if after.saturating_add(HALF) < before {
            after = after.saturating_add(1 << 32);
        }
        self.place.offset = before.max(after);
    }
}

#[cfg(test)]
mod tests;
