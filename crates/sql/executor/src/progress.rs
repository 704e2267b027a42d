//! [`Progress`]: how far a statement has come, and what it did.

/// The outcome of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// The statement is done.
    Done(Summary),
    /// The sink took a row and asked for a pause; step again.
    Paused,
}

/// What a statement did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Rows inserted, deleted or really changed, counted as in MySQL (`REPLACE` also counts the
    /// rows it removed, `ON DUPLICATE KEY UPDATE` counts two).
    pub affected_rows: u64,
    /// The same for clients with CLIENT_FOUND_ROWS: rows that matched, changed or not.
    pub matched_rows: u64,
    /// The first number that AUTO_INCREMENT assigned; 0 if none.
    pub last_insert_id: u64,
    /// The number of the last row written, from any source. Clients see it if the counter assigned
    /// none.
    pub last_number: u64,
    /// Rows of the result.
    pub returned_rows: u64,
    /// The number of rows without LIMIT, if `SQL_CALC_FOUND_ROWS` was given.
    pub found_rows: Option<u64>,
    /// Rows offered to an INSERT, if the reply reports them (more than one, or SELECT).
    pub records: Option<u64>,
    /// Rows that conflicted with an INSERT.
    pub duplicates: u64,
    /// It was an INSERT.
    pub is_insert: bool,
    /// It was an UPDATE: the reply reports matched and changed rows.
    pub is_update: bool,
}

impl Summary {
    /// The text of the OK packet; empty if there is none.
    pub fn info(&self, warning_count: u64) -> String {
        if self.is_update {
            let (matched, changed) = (self.matched_rows, self.affected_rows);
            return format!(
                "Rows matched: {matched}  Changed: {changed}  Warnings: {warning_count}"
            );
        }
        match self.records {
            Some(records) => {
                let duplicates = self.duplicates;
                format!("Records: {records}  Duplicates: {duplicates}  Warnings: {warning_count}")
            }
            None => String::new(),
        }
    }
}
