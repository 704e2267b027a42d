//! [`Recall`]: what later statements of a session may read of earlier ones.
//!
//! A connection remembers what its last statement did. When it goes to another session, that is
//! lost to its own one, and must not be seen by the other. Most of it the reply has told, and the
//! session keeps the numbers. What only the connection knows is [`Residue`]: it is asked for before
//! the connection is given away.

use builtin::Reach;
use syntax::class::Facts;

use crate::plan::Plan;

/// What a reply has told of its last result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Told {
    /// How many rows it had; `None` if it is no result set.
    pub row_count: Option<u64>,
    /// Rows that were changed; `None` if that was not told.
    pub affected_rows: Option<u64>,
    /// The first automatic value that was generated, or what was put in its place; or 0.
    pub last_insert_id: u64,
    /// Warnings that the server keeps of it.
    pub warnings: u16,
    /// It leaves ROW_COUNT() and FOUND_ROWS() as they were.
    pub leaves_numbers: bool,
}

/// See the module's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recall {
    /// ROW_COUNT().
    row_count: i64,
    /// FOUND_ROWS().
    found_rows: u64,
    /// LAST_INSERT_ID().
    insert_id: u64,
    /// The connection that knew FOUND_ROWS() is gone.
    has_lost_found_rows: bool,
    /// The connection that had the warnings is gone.
    has_lost_warnings: bool,
    residue: Residue,
}

/// What only the connection of the last statement knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Residue {
    /// Warnings, or an error.
    pub has_warnings: bool,
    /// FOUND_ROWS(), which is not the number of the rows that were sent.
    pub has_found_rows: bool,
    /// LAST_INSERT_ID(), which may have changed.
    pub has_insert_id: bool,
    /// Temporary tables that no text shows. MariaDB does not report those of CREATE .. SELECT.
    pub may_have_tables: bool,
}

impl Residue {
    /// Whether there is nothing.
    pub fn is_empty(self) -> bool {
        self == Residue::default()
    }
}

/// What may generate a value unseen.
const UNSEEN: Facts = Facts::SETS_LAST_INSERT_ID
    .with(Facts::EXECUTES)
    .with(Facts::RETURNS_ROWS)
    .with(Facts::NOT_UNDERSTOOD);

impl Recall {
    /// What is left after COM_RESET_CONNECTION or COM_CHANGE_USER.
    pub(crate) fn reset(self) -> Recall {
        Recall {
            found_rows: self.found_rows,
            ..Recall::default()
        }
    }

    /// What only the connection of the last statement knows.
    pub fn residue(&self) -> Residue {
        self.residue
    }

    /// LAST_INSERT_ID().
    pub fn insert_id(&self) -> u64 {
        self.insert_id
    }

    /// What a statement reads that only a connection knew which is gone: which connection that was.
    pub fn lost(&self, plan: &Plan) -> Option<&'static str> {
        let reads = |facts| plan.facts.has(facts);
        if self.has_lost_found_rows && reads(Facts::READS_FOUND_ROWS) {
            return Some("that knows FOUND_ROWS()");
        }
        let are_lost = self.has_lost_warnings && reads(Facts::READS_WARNINGS);
        are_lost.then_some("that has the warnings")
    }

    /// What a call tells, as it is written in a text. It has the type of the call.
    pub fn value(&self, reach: Reach) -> Option<String> {
        match reach {
            Reach::RowCount => Some(format!("COALESCE({}, ROW_COUNT())", self.row_count)),
            Reach::FoundRows => Some(format!("COALESCE({}, FOUND_ROWS())", self.found_rows)),
            _ => None,
        }
    }

    /// The gateway has answered with rows.
    pub fn has_told_rows(&mut self) {
        self.row_count = -1;
    }

    /// A query was told a reply that was kept, with so many rows and no warnings.
    pub fn told_kept(&mut self, rows: u64) {
        self.row_count = -1;
        self.found(rows);
        self.drop_warnings();
    }

    /// The connection has told FOUND_ROWS().
    pub fn found(&mut self, rows: u64) {
        self.found_rows = rows;
        self.has_lost_found_rows = false;
        self.residue.has_found_rows = false;
    }

    /// The connection has told LAST_INSERT_ID().
    pub fn inserted(&mut self, id: u64) {
        self.insert_id = id;
        self.residue.has_insert_id = false;
    }

    /// LAST_INSERT_ID() of the connection may have changed.
    pub fn may_have_inserted(&mut self) {
        self.residue.has_insert_id = true;
    }

    /// The connection has told that LAST_INSERT_ID() was left as it was.
    pub fn kept_insert_id(&mut self) {
        self.residue.has_insert_id = false;
    }

    /// The connection has told whether it has temporary tables.
    pub fn asked_tables(&mut self) {
        self.residue.may_have_tables = false;
    }

    /// The warnings were read, or nobody can read them any more.
    pub fn drop_warnings(&mut self) {
        self.residue.has_warnings = false;
        self.has_lost_warnings = false;
    }

    /// The connection is lost, and with it what only that knew.
    pub fn forget(&mut self) {
        self.has_lost_found_rows |= self.residue.has_found_rows;
        self.has_lost_warnings |= self.residue.has_warnings;
        self.residue = Residue::default();
    }

    /// The connection has warnings of the last statement.
    fn left_warnings(&mut self) {
        self.residue.has_warnings = true;
        self.has_lost_warnings = false;
    }

    /// A statement has failed.
    pub(crate) fn failed(&mut self) {
        self.row_count = -1;
        self.left_warnings();
    }

    /// A statement has succeeded.
    pub(crate) fn answered(&mut self, plan: &Plan, told: &Told) {
        match told.row_count {
            _ if told.leaves_numbers => {}
            Some(count) => {
                self.row_count = -1;
                self.found(count);
                self.residue.has_found_rows = !plan.counts_rows;
            }
            None => {
                let count = |rows| i64::try_from(rows).unwrap_or(i64::MAX);
                self.row_count = told.affected_rows.map_or(-1, count);
            }
        }
        let is_new = told.last_insert_id != 0 && told.last_insert_id != self.insert_id;
        if is_new || plan.is_several || plan.is_call || plan.facts.has_any(UNSEEN) {
            self.residue.has_insert_id = true;
        }
        self.residue.may_have_tables |= plan.may_change_unseen();
        // Of several statements the last that has any may be another one than the last.
        if told.warnings != 0 || plan.is_several {
            self.left_warnings();
        } else if plan.clears_warnings {
            self.drop_warnings();
        }
    }
}

#[cfg(test)]
mod tests {
    use settings::SqlMode;

    use super::*;
    use crate::judge::Judge;
    use crate::session::Session;

    const NOTHING: Residue = Residue {
        has_warnings: false,
        has_found_rows: false,
        has_insert_id: false,
        may_have_tables: false,
    };

    #[derive(Default)]
    struct Scene {
        recall: Recall,
        judge: Judge,
    }

    impl Scene {
        fn plan(&mut self, text: &str) -> Plan {
            let mode = SqlMode::default();
            let judged = self.judge.judge(text.as_bytes(), mode);
            Session::default().plan(text.as_bytes(), mode, &judged)
        }

        fn lost(&mut self, text: &str) -> Option<&'static str> {
            let plan = self.plan(text);
            self.recall.lost(&plan)
        }

        fn step(&mut self, text: &str, told: Told) -> Recall {
            let plan = self.plan(text);
            self.recall.answered(&plan, &told);
            self.recall
        }
    }

    fn rows(count: u64) -> Told {
        Told {
            row_count: Some(count),
            ..Told::default()
        }
    }

    fn changed(affected_rows: u64, last_insert_id: u64) -> Told {
        Told {
            affected_rows: Some(affected_rows),
            last_insert_id,
            ..Told::default()
        }
    }

    #[test]
    fn replies_tell_numbers() {
        let mut scene = Scene::default();
        let after = scene.step("SELECT a FROM t", rows(3));
        assert_eq!((after.row_count, after.found_rows), (-1, 3));
        let after = scene.step("UPDATE t SET a = 1", changed(2, 0));
        assert_eq!((after.row_count, after.found_rows), (2, 3));
        assert_eq!(after.residue(), NOTHING);
        let silent = scene.step("UPDATE t SET a = 1", Told::default());
        assert_eq!((silent.row_count, silent.found_rows), (-1, 3));
        let prepared = Told {
            leaves_numbers: true,
            ..changed(0, 0)
        };
        let left = scene.step("SELECT a FROM t", prepared);
        assert_eq!((left.row_count, left.found_rows), (-1, 3));
        let value = |reach| after.value(reach).unwrap();
        assert_eq!(value(Reach::RowCount), "COALESCE(2, ROW_COUNT())");
        assert_eq!(value(Reach::FoundRows), "COALESCE(3, FOUND_ROWS())");
        assert_eq!(after.value(Reach::ConnectionId), None);
    }

    #[test]
    fn what_the_reply_does_not_tell_is_left_on_the_connection() {
        let mut scene = Scene::default();
        for text in [
            "SELECT SQL_CALC_FOUND_ROWS a FROM t LIMIT 1",
            "SHOW TABLES",
            "EXPLAIN SELECT 1",
            "CALL p()",
            "SELECT 1; SELECT 2",
        ] {
            let mut scene = Scene::default();
            assert!(scene.step(text, rows(1)).residue().has_found_rows, "{text}");
        }
        scene.step("SELECT SQL_CALC_FOUND_ROWS a FROM t", rows(1));
        scene.recall.found(50);
        assert_eq!(scene.recall.residue(), NOTHING);
        scene.recall.forget();
        let found_rows = "SELECT FOUND_ROWS()";
        assert_eq!(scene.lost(found_rows), None, "it was asked for");
        scene.step("SELECT SQL_CALC_FOUND_ROWS a FROM t", rows(1));
        scene.recall.forget();
        scene.step("UPDATE t SET a = 1", changed(1, 0));
        assert_eq!(scene.lost(found_rows), Some("that knows FOUND_ROWS()"));
        assert_eq!(scene.lost("SHOW WARNINGS"), None, "there were none");
        scene.step("SELECT a FROM t", rows(2));
        assert_eq!(scene.lost(found_rows), None);

        let insert = "INSERT INTO t VALUES (1)";
        assert!(scene.step(insert, changed(1, 7)).residue().has_insert_id);
        scene.recall.inserted(7);
        let same = scene.step(insert, changed(1, 7));
        assert!(!same.residue().has_insert_id, "known already");
        let mut scene = Scene::default();
        let returning = scene.step("INSERT INTO t VALUES (1) RETURNING a", rows(1));
        assert!(returning.residue().has_insert_id);
        for unseen in [
            "CALL p()",
            "EXECUTE s",
            "SELECT LAST_INSERT_ID(5)",
            "DO 1; DO 2",
        ] {
            let mut scene = Scene::default();
            let after = scene.step(unseen, changed(0, 0));
            assert!(after.residue().has_insert_id, "{unseen}");
            let is_asked = unseen != "SELECT LAST_INSERT_ID(5)";
            assert_eq!(after.residue().may_have_tables, is_asked, "{unseen}");
        }
    }

    #[test]
    fn warnings_stay_until_a_statement_uses_tables() {
        let warned = Told {
            warnings: 1,
            ..Told::default()
        };
        let mut scene = Scene::default();
        let several = "SELECT CAST('a' AS INT); SHOW WARNINGS";
        assert!(scene.step(several, rows(1)).residue().has_warnings);
        let mut scene = Scene::default();
        assert!(scene.step("DO 1/0", warned).residue().has_warnings);
        for text in ["SET @a = 1", "BEGIN", "SHOW WARNINGS", "USE a"] {
            let after = scene.step(text, Told::default());
            assert!(after.residue().has_warnings, "{text}");
        }
        for text in ["SELECT a FROM t", "SELECT LASTVAL(s)", "SELECT f()"] {
            let mut scene = Scene::default();
            assert!(scene.step("DO 1/0", warned).residue().has_warnings);
            assert!(!scene.step(text, rows(0)).residue().has_warnings, "{text}");
        }
        scene.step("SELECT a FROM t", rows(0));
        scene.recall.failed();
        assert!(scene.recall.residue().has_warnings);
        assert_eq!(scene.recall.row_count, -1);
        scene.recall.drop_warnings();
        assert_eq!(scene.recall.residue(), NOTHING);
    }

    #[test]
    fn lost_warnings_are_told_until_there_are_others() {
        let mut scene = Scene::default();
        let warned = Told {
            warnings: 1,
            ..Told::default()
        };
        for next in ["SELECT a FROM t", "DO 1/0"] {
            scene.step("DO 1/0", warned);
            assert_eq!(scene.lost("SHOW WARNINGS"), None);
            scene.recall.forget();
            scene.step("SET @a = 1", Told::default());
            for text in ["SHOW WARNINGS", "GET DIAGNOSTICS @n = NUMBER"] {
                assert_eq!(scene.lost(text), Some("that has the warnings"), "{text}");
            }
            assert_eq!(scene.lost("SELECT FOUND_ROWS()"), None);
            let told = if next == "DO 1/0" { warned } else { rows(1) };
            scene.step(next, told);
            assert_eq!(scene.lost("SHOW WARNINGS"), None, "{next}");
        }
    }
}
