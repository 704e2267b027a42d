//! Collects the warnings of a statement.

use crate::SqlCondition;

/// The severity of a condition, as in `SHOW WARNINGS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Worth knowing.
    Note,
    /// A value was changed.
    Warning,
    /// The statement failed.
    Error,
}

/// The warnings of one statement: the first ones, up to a limit, and the count of all.
#[derive(Debug, Clone)]
pub struct Warnings {
    /// The kept conditions, in order.
    entries: Vec<(Level, SqlCondition)>,
    /// How many are kept at most (`max_error_count`).
    limit: usize,
    /// Notes are dropped (`sql_notes` is off).
    no_notes: bool,
    /// How many there were.
    count: u64,
}

impl Warnings {
    /// No warnings; at most `limit` will be kept.
    pub const fn new(limit: usize) -> Self {
        Self {
            entries: Vec::new(),
            limit,
            no_notes: false,
            count: 0,
        }
    }

    /// Sets how many are kept at most (`max_error_count`), and whether notes are (`sql_notes`).
    pub const fn set_limits(&mut self, limit: usize, with_notes: bool) {
        self.limit = limit;
        self.no_notes = !with_notes;
    }

    /// Adds a warning.
    pub fn warn(&mut self, condition: SqlCondition) {
        self.push(Level::Warning, condition);
    }

    /// Adds a note.
    pub fn note(&mut self, condition: SqlCondition) {
        self.push(Level::Note, condition);
    }

    /// Adds a condition.
    pub fn push(&mut self, level: Level, condition: SqlCondition) {
        if self.no_notes && level == Level::Note {
            return;
        }
        self.count += 1;
        if self.entries.len() < self.limit {
            self.entries.push((level, condition));
        }
    }

    /// The kept conditions, in order.
    pub fn entries(&self) -> &[(Level, SqlCondition)] {
        &self.entries
    }

    /// How many there were, kept or not.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Takes the first warning after the first `kept` conditions, and drops those after it: strict
    /// mode makes it the statement's error.
    pub fn take_first_behind(&mut self, kept: usize) -> Option<SqlCondition> {
        let behind = self.entries.iter().skip(kept);
        let place = behind
            .enumerate()
            .find_map(|(place, (level, _))| (*level == Level::Warning).then_some(kept + place))?;
        let (_, condition) = self.entries.drain(place..).next()?;
        self.count = u64::try_from(place).expect("a usize fits into u64");
        Some(condition)
    }

    /// Drops those behind the first `count`: what caused them is done again.
    pub fn return_to(&mut self, count: u64) {
        assert!(count <= self.count, "warnings are only added");
        self.count = count;
        let kept = usize::try_from(count).unwrap_or(usize::MAX);
        self.entries.truncate(kept);
    }

    /// Drops all, for the next statement.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.count = 0;
    }
}

impl Default for Warnings {
    /// MySQL's `max_error_count`.
    fn default() -> Self {
        Self::new(64)
    }
}
