//! [`PreparedStatements`]: those of a session.

use std::collections::HashMap;
use std::rc::Rc;

use expression::Share;
use foldhash::fast::FixedState;
use wire::ParameterType;

use crate::connection::held_plan::HeldPlan;
use crate::connection::kept_rows::CursorRows;
use crate::connection::long_data::LongData;
use crate::server::PreparedPlace;
use crate::worker::parsed::Parsed;

/// A session's prepared statements.
#[derive(Debug, Default)]
pub(crate) struct PreparedStatements {
    /// The one of the protocol that was executed last, with its number: most clients execute it
    /// again, and it is found without a table.
    last: Option<(u32, Box<Prepared>)>,
    /// The protocol's others, by number.
    pub(crate) by_id: HashMap<u32, Box<Prepared>, FixedState>,
    /// SQL's, by name in lower case.
    pub(crate) by_name: HashMap<String, Named, FixedState>,
    /// The last number assigned.
    pub(crate) last_id: u32,
    /// The last command of COM_STMT_PREPARE failed, so [`LAST_PREPARED`] names nothing.
    pub(crate) has_failed: bool,
}

/// The number by which a client names the statement that it prepared last. So it may send the
/// execution before it knows the real number (MariaDB).
const LAST_PREPARED: u32 = u32::MAX;

/// A prepared statement of SQL.
#[derive(Debug)]
pub(crate) struct Named {
    /// Its tree and text. Constant.
    pub(crate) parsed: Rc<Parsed>,
    /// The current database when it was prepared. Constant.
    pub(crate) database: Option<Rc<str>>,
    /// Counts it, and what its text and tree take.
    _place: (PreparedPlace, Share),
}

/// A prepared statement of the protocol.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// Its tree and text. Constant.
    pub(crate) parsed: Rc<Parsed>,
    /// The current database when it was prepared. Constant.
    pub(crate) database: Option<Rc<str>>,
    /// Counts it, and what its text and tree take.
    _place: (PreparedPlace, Share),
    /// The types of the parameters at the last execution.
    pub(crate) types: Vec<ParameterType>,
    /// Parameters that come in pieces.
    pub(crate) long_data: LongData,
    /// The mode in which its text was read. Constant.
    pub(crate) mode: settings::SqlMode,
    /// The plan that it ran last.
    pub(crate) held: Option<HeldPlan>,
    /// Rows that wait for COM_STMT_FETCH.
    pub(crate) cursor: Option<CursorRows>,
}

impl Named {
    /// A statement that was prepared in that database.
    pub(crate) fn new(
        parsed: Rc<Parsed>,
        database: Option<Rc<str>>,
        place: (PreparedPlace, Share),
    ) -> Self {
        Self {
            parsed,
            database,
            _place: place,
        }
    }
}

impl Prepared {
    /// A statement that was prepared in that database and mode, and never executed.
    pub(crate) fn new(
        parsed: Rc<Parsed>,
        database: Option<Rc<str>>,
        place: (PreparedPlace, Share),
        mode: settings::SqlMode,
    ) -> Self {
        Self {
            parsed,
            database,
            _place: place,
            types: Vec::new(),
            long_data: LongData::default(),
            mode,
            held: None,
            cursor: None,
        }
    }
}

impl PreparedStatements {
    /// COM_STMT_SEND_LONG_DATA: a piece of a parameter. For an unknown statement it is dropped,
    /// since there is no reply.
    pub(crate) fn long_data_of(&mut self, statement_id: u32) -> Option<&mut LongData> {
        self.get_mut(statement_id)
            .map(|prepared| &mut prepared.long_data)
    }

    /// The statement with this number.
    pub(crate) fn get_mut(&mut self, statement_id: u32) -> Option<&mut Prepared> {
        let id = self.resolved(statement_id);
        match &mut self.last {
            Some((last_id, prepared)) if *last_id == id => Some(prepared),
            _ => self.by_id.get_mut(&id).map(|prepared| &mut **prepared),
        }
    }

    /// The statement that a number means.
    fn resolved(&self, statement_id: u32) -> u32 {
        match statement_id {
            LAST_PREPARED if self.has_failed => 0,
            LAST_PREPARED => self.last_id,
            id => id,
        }
    }

    /// Takes a statement out, to execute it.
    pub(crate) fn take(&mut self, statement_id: u32) -> Option<Box<Prepared>> {
        let id = self.resolved(statement_id);
        match self.last.take_if(|(last_id, _)| *last_id == id) {
            Some((_, prepared)) => Some(prepared),
            None => self.by_id.remove(&id),
        }
    }

    /// Puts back the statement that was taken by that number.
    pub(crate) fn put_back(&mut self, statement_id: u32, prepared: Box<Prepared>) {
        let id = self.resolved(statement_id);
        if let Some((before_id, before)) = self.last.replace((id, prepared)) {
            self.by_id.insert(before_id, before);
        }
    }

    /// The place of a statement's cursor.
    pub(crate) fn cursor_of(&mut self, statement_id: u32) -> Option<&mut Option<CursorRows>> {
        let prepared = self.get_mut(statement_id)?;
        Some(&mut prepared.cursor)
    }

    /// COM_STMT_CLOSE.
    pub(crate) fn close(&mut self, statement_id: u32) {
        self.take(statement_id);
    }
}
