//! [`Facts`]: what a statement has to do with the state of its session, and what its answer depends
//! on. A set of bits.

use std::fmt;

use builtin::Reach;

/// A set of facts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Facts(u64);

impl Facts {
    /// None.
    pub const NONE: Facts = Facts(0);

    // What the answer depends on.

    /// The answer depends on more than tables and text: on time, chance, account, server.
    pub const NOT_DETERMINISTIC: Facts = bit(0);
    /// Reads a system variable. Implies `NOT_DETERMINISTIC`.
    pub const READS_SYSTEM_VARIABLES: Facts = bit(1);
    /// `SQL_NO_CACHE`.
    pub const NO_CACHE: Facts = bit(2);
    /// Calls a routine, or a function that is not known to be built in. What it does to data and
    /// session is unknown.
    pub const CALLS_UNKNOWN: Facts = bit(3);
    /// Another version or product would read an executable comment in another way.
    pub const DEPENDS_ON_VERSION: Facts = bit(4);
    /// Some token is none, or the statement is not known.
    pub const NOT_UNDERSTOOD: Facts = bit(5);

    // What it writes outside of tables.

    /// `INTO OUTFILE`, `INTO DUMPFILE`.
    pub const WRITES_FILE: Facts = bit(6);
    /// Advances a sequence: `NEXTVAL`, `NEXT VALUE FOR`, `SETVAL`.
    pub const ADVANCES_SEQUENCE: Facts = bit(7);
    /// `SET GLOBAL`.
    pub const SETS_GLOBAL_VARIABLES: Facts = bit(8);

    // What it reads of an earlier statement of its session.

    /// `@a`.
    pub const READS_USER_VARIABLES: Facts = bit(9);
    /// `LAST_INSERT_ID()`, `@@last_insert_id`, `@@identity`.
    pub const READS_LAST_INSERT_ID: Facts = bit(10);
    /// `FOUND_ROWS()`.
    pub const READS_FOUND_ROWS: Facts = bit(11);
    /// `ROW_COUNT()`.
    pub const READS_ROW_COUNT: Facts = bit(12);
    /// `SHOW WARNINGS`, `SHOW ERRORS`, `GET DIAGNOSTICS`, `@@warning_count`, `@@error_count`.
    pub const READS_WARNINGS: Facts = bit(13);
    /// `CONNECTION_ID()`, `@@pseudo_thread_id`.
    pub const READS_CONNECTION_ID: Facts = bit(14);
    /// `LASTVAL`, `PREVIOUS VALUE FOR`: what the session took from a sequence.
    pub const READS_LAST_VALUE: Facts = bit(15);
    /// `SHOW STATUS`, `SHOW PROFILE`: counters of the session.
    pub const READS_SESSION_STATUS: Facts = bit(16);

    // What it leaves to later statements of its session.

    /// `SET @a`, `@a := ..`, `INTO @a`.
    pub const SETS_USER_VARIABLES: Facts = bit(17);
    /// `SET` of a session variable, `SET NAMES`; [`super::set::assignments`] says which.
    pub const SETS_SESSION_VARIABLES: Facts = bit(18);
    /// One of them to DEFAULT or to an expression, which another connection may see differently.
    pub const SETS_TO_EXPRESSION: Facts = bit(19);
    /// `SET TRANSACTION`, `SET @@tx_isolation`: of the next transaction alone.
    pub const SETS_NEXT_TRANSACTION: Facts = bit(20);
    /// `SET timestamp`.
    pub const SETS_TIMESTAMP: Facts = bit(21);
    /// `SET insert_id`: of the next INSERT; `gtid_seq_no`, `gtid_next`: of the next transaction.
    pub const SETS_INSERT_ID: Facts = bit(22);
    /// `SET last_insert_id`, `SET identity`, `LAST_INSERT_ID(e)`.
    pub const SETS_LAST_INSERT_ID: Facts = bit(23);
    /// `SET rand_seed1`, `SET rand_seed2`: of the next RAND().
    pub const SETS_RAND_SEED: Facts = bit(24);
    /// `SET ROLE`.
    pub const SETS_ROLE: Facts = bit(25);
    /// `SET PASSWORD`.
    pub const SETS_PASSWORD: Facts = bit(26);
    /// `SQL_CALC_FOUND_ROWS`.
    pub const CALCULATES_FOUND_ROWS: Facts = bit(27);
    /// `USE`.
    pub const CHANGES_DATABASE: Facts = bit(28);
    /// `GET_LOCK`.
    pub const TAKES_USER_LOCK: Facts = bit(29);
    /// `RELEASE_LOCK`.
    pub const FREES_USER_LOCK: Facts = bit(30);
    /// `RELEASE_ALL_LOCKS`.
    pub const FREES_USER_LOCKS: Facts = bit(31);
    /// `IS_FREE_LOCK`, `IS_USED_LOCK`: only the server with the lock knows.
    pub const READS_USER_LOCK: Facts = bit(32);
    /// `CREATE TEMPORARY`.
    pub const CREATES_TEMPORARY: Facts = bit(33);
    /// `DROP TEMPORARY`. A plain `DROP TABLE` drops a temporary table, too, if there is one.
    pub const DROPS_TEMPORARY: Facts = bit(34);
    /// `LOCK TABLES`, `FLUSH TABLES t WITH READ LOCK`.
    pub const LOCKS_TABLES: Facts = bit(35);
    /// `UNLOCK TABLES`; it ends a global read lock, too.
    pub const UNLOCKS_TABLES: Facts = bit(36);
    /// `FLUSH TABLES WITH READ LOCK`.
    pub const TAKES_GLOBAL_LOCK: Facts = bit(37);
    /// `HANDLER .. OPEN`.
    pub const OPENS_HANDLER: Facts = bit(38);
    /// `HANDLER .. CLOSE`.
    pub const CLOSES_HANDLER: Facts = bit(39);
    /// `HANDLER .. READ`.
    pub const READS_HANDLER: Facts = bit(40);
    /// `PREPARE`.
    pub const PREPARES: Facts = bit(41);
    /// `EXECUTE` of a name: what it does is known to who keeps the prepared texts.
    pub const EXECUTES: Facts = bit(42);
    /// `DEALLOCATE PREPARE`, `DROP PREPARE`.
    pub const DEALLOCATES: Facts = bit(43);
    /// `SET STATEMENT .. FOR`.
    pub const HAS_SET_STATEMENT: Facts = bit(44);
    /// `RETURNING`.
    pub const RETURNS_ROWS: Facts = bit(45);
    /// `SET sql_auto_is_null = 1`: `WHERE id IS NULL` reads LAST_INSERT_ID() from then on.
    pub const SETS_AUTO_IS_NULL: Facts = bit(46);

    /// What a call says by the reach of its function.
    pub(super) const fn of_call(reach: Reach) -> Facts {
        let special = match reach {
            Reach::Arguments => return Facts::NONE,
            Reach::Server => Facts::NONE,
            Reach::ConnectionId => Facts::READS_CONNECTION_ID,
            Reach::FoundRows => Facts::READS_FOUND_ROWS,
            Reach::RowCount => Facts::READS_ROW_COUNT,
            Reach::LastInsertId => Facts::READS_LAST_INSERT_ID,
            Reach::LastValue => Facts::READS_LAST_VALUE,
            Reach::Sequence => Facts::ADVANCES_SEQUENCE,
            Reach::TakesLock => Facts::TAKES_USER_LOCK,
            Reach::FreesLock => Facts::FREES_USER_LOCK,
            Reach::FreesLocks => Facts::FREES_USER_LOCKS,
            Reach::ReadsLock => Facts::READS_USER_LOCK,
        };
        Facts::NOT_DETERMINISTIC.with(special)
    }

    /// Both, and what either says of the other.
    #[must_use]
    pub const fn with(self, other: Facts) -> Facts {
        Facts(self.0 | other.0)
    }

    /// True if all of `other` are among them.
    #[must_use]
    pub const fn has(self, other: Facts) -> bool {
        self.0 & other.0 == other.0
    }

    /// True if any of `other` is among them.
    #[must_use]
    pub const fn has_any(self, other: Facts) -> bool {
        self.0 & other.0 != 0
    }

    /// Those that are not in `other`.
    #[must_use]
    pub const fn without(self, other: Facts) -> Facts {
        Facts(self.0 & !other.0)
    }

    /// True if there are none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn add(&mut self, other: Facts) {
        self.0 |= other.0;
    }
}

const fn bit(place: u32) -> Facts {
    Facts(1 << place)
}

/// The names, by their bits.
const NAMES: [&str; 47] = [
    "NOT_DETERMINISTIC",
    "READS_SYSTEM_VARIABLES",
    "NO_CACHE",
    "CALLS_UNKNOWN",
    "DEPENDS_ON_VERSION",
    "NOT_UNDERSTOOD",
    "WRITES_FILE",
    "ADVANCES_SEQUENCE",
    "SETS_GLOBAL_VARIABLES",
    "READS_USER_VARIABLES",
    "READS_LAST_INSERT_ID",
    "READS_FOUND_ROWS",
    "READS_ROW_COUNT",
    "READS_WARNINGS",
    "READS_CONNECTION_ID",
    "READS_LAST_VALUE",
    "READS_SESSION_STATUS",
    "SETS_USER_VARIABLES",
    "SETS_SESSION_VARIABLES",
    "SETS_TO_EXPRESSION",
    "SETS_NEXT_TRANSACTION",
    "SETS_TIMESTAMP",
    "SETS_INSERT_ID",
    "SETS_LAST_INSERT_ID",
    "SETS_RAND_SEED",
    "SETS_ROLE",
    "SETS_PASSWORD",
    "CALCULATES_FOUND_ROWS",
    "CHANGES_DATABASE",
    "TAKES_USER_LOCK",
    "FREES_USER_LOCK",
    "FREES_USER_LOCKS",
    "READS_USER_LOCK",
    "CREATES_TEMPORARY",
    "DROPS_TEMPORARY",
    "LOCKS_TABLES",
    "UNLOCKS_TABLES",
    "TAKES_GLOBAL_LOCK",
    "OPENS_HANDLER",
    "CLOSES_HANDLER",
    "READS_HANDLER",
    "PREPARES",
    "EXECUTES",
    "DEALLOCATES",
    "HAS_SET_STATEMENT",
    "RETURNS_ROWS",
    "SETS_AUTO_IS_NULL",
];

impl fmt::Debug for Facts {
    /// The names of those that hold: `READS_ROW_COUNT | PREPARES`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = NAMES
            .iter()
            .enumerate()
            .filter(|(place, _)| self.0 >> place & 1 == 1);
        for (index, (_, name)) in held.enumerate() {
            f.write_str(if index == 0 { "" } else { " | " })?;
            f.write_str(name)?;
        }
        if self.is_empty() {
            f.write_str("NONE")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_at_their_bits() {
        let last = Facts::SETS_AUTO_IS_NULL;
        assert_eq!(last.0, 1 << (NAMES.len() - 1));
        assert_eq!(format!("{last:?}"), "SETS_AUTO_IS_NULL");
        let two = Facts::READS_ROW_COUNT.with(Facts::PREPARES);
        assert_eq!(format!("{two:?}"), "READS_ROW_COUNT | PREPARES");
        assert_eq!(format!("{:?}", Facts::NONE), "NONE");
        assert_eq!(
            format!("{:?}", Facts::TAKES_USER_LOCK.with(Facts::READS_WARNINGS)),
            "READS_WARNINGS | TAKES_USER_LOCK"
        );
    }

    #[test]
    fn sets_are_joined_and_split() {
        let both = Facts::PREPARES.with(Facts::EXECUTES);
        assert!(both.has(Facts::PREPARES) && both.has(both));
        assert!(!Facts::PREPARES.has(both) && Facts::PREPARES.has_any(both));
        assert_eq!(both.without(Facts::PREPARES), Facts::EXECUTES);
        assert!(both.without(both).is_empty());
    }
}
