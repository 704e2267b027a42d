//! [`Finding`]: how UPDATE and DELETE go through rows.

/// How the rows come that an UPDATE or DELETE changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// Each once, as it is found.
    OneByOne,
    /// All are found before the first change, as one could hide or repeat a row: it changes what
    /// the scan reads by, a subquery reads the same table, or there is more than one table. Their
    /// keys are kept, and they are read again.
    AllFirst,
    /// As they are found, and perhaps several times: a join with rows of queries, which could not
    /// be read again. Each is changed for the first time only, once all are found.
    Repeated,
}
