//! Privileges: what an account may do, globally, in a database, on a table.
//!
//! The names and levels are MariaDB 10.11's. A privilege set is a bit mask; its bits are part of
//! the format. `SHOW GRANTS` writes the names in another order.

use std::fmt;
use std::ops::{BitAnd, BitOr, BitOrAssign, Not};

/// One thing that an account may be allowed to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Privilege {
    /// Read rows.
    Select,
    /// Add rows.
    Insert,
    /// Change rows.
    Update,
    /// Remove rows.
    Delete,
    /// Create databases and tables.
    Create,
    /// Drop databases and tables.
    Drop,
    /// FLUSH.
    Reload,
    /// Stop the server.
    Shutdown,
    /// See and end other accounts' sessions.
    Process,
    /// Read and write files of the server.
    File,
    /// Create foreign keys to a table.
    References,
    /// Create and drop indexes.
    Index,
    /// ALTER TABLE.
    Alter,
    /// See all databases.
    ShowDatabases,
    /// Everything of an administrator that has no privilege of its own.
    Super,
    /// CREATE TEMPORARY TABLE.
    CreateTemporaryTables,
    /// LOCK TABLES.
    LockTables,
    /// Read the state of replication.
    BinlogMonitor,
    /// Read the binary log as a replica does.
    ReplicationSlave,
    /// CREATE VIEW.
    CreateView,
    /// SHOW CREATE VIEW.
    ShowView,
    /// Create stored programs.
    CreateRoutine,
    /// Alter and drop stored programs.
    AlterRoutine,
    /// Run stored programs.
    Execute,
    /// CREATE USER and the like.
    CreateUser,
    /// Create events.
    Event,
    /// Create triggers.
    Trigger,
    /// CREATE and DROP TABLESPACE.
    CreateTablespace,
    /// Remove old versions of rows.
    DeleteHistory,
    /// SET USER.
    SetUser,
    /// Administer replication from the replica's side.
    ReplicationSlaveAdmin,
    /// Administer replication from the primary's side.
    ReplicationMasterAdmin,
    /// Replay binary log events.
    BinlogReplay,
    /// End other accounts' sessions and lift their limits.
    ConnectionAdmin,
    /// Write while the server is read-only.
    ReadOnlyAdmin,
    /// Administer federated servers.
    FederatedAdmin,
    /// Administer the binary log.
    BinlogAdmin,
    /// Read the state of a replica.
    SlaveMonitor,
}

/// Names in the order of the bits.
const NAMES: [&str; 38] = [
    "SELECT",
    "INSERT",
    "UPDATE",
    "DELETE",
    "CREATE",
    "DROP",
    "RELOAD",
    "SHUTDOWN",
    "PROCESS",
    "FILE",
    "REFERENCES",
    "INDEX",
    "ALTER",
    "SHOW DATABASES",
    "SUPER",
    "CREATE TEMPORARY TABLES",
    "LOCK TABLES",
    "BINLOG MONITOR",
    "REPLICATION SLAVE",
    "CREATE VIEW",
    "SHOW VIEW",
    "CREATE ROUTINE",
    "ALTER ROUTINE",
    "EXECUTE",
    "CREATE USER",
    "EVENT",
    "TRIGGER",
    "CREATE TABLESPACE",
    "DELETE HISTORY",
    "SET USER",
    "REPLICATION SLAVE ADMIN",
    "REPLICATION MASTER ADMIN",
    "BINLOG REPLAY",
    "CONNECTION ADMIN",
    "READ_ONLY ADMIN",
    "FEDERATED ADMIN",
    "BINLOG ADMIN",
    "SLAVE MONITOR",
];

/// Other names that the grammar accepts.
const ALIASES: [(&str, Privilege); 3] = [
    ("REPLICATION CLIENT", Privilege::BinlogMonitor),
    ("REPLICATION REPLICA", Privilege::ReplicationSlave),
    ("REPLICA MONITOR", Privilege::SlaveMonitor),
];

const ALL: [Privilege; 38] = {
    use Privilege::*;
    [
        Select,
        Insert,
        Update,
        Delete,
        Create,
        Drop,
        Reload,
        Shutdown,
        Process,
        File,
        References,
        Index,
        Alter,
        ShowDatabases,
        Super,
        CreateTemporaryTables,
        LockTables,
        BinlogMonitor,
        ReplicationSlave,
        CreateView,
        ShowView,
        CreateRoutine,
        AlterRoutine,
        Execute,
        CreateUser,
        Event,
        Trigger,
        CreateTablespace,
        DeleteHistory,
        SetUser,
        ReplicationSlaveAdmin,
        ReplicationMasterAdmin,
        BinlogReplay,
        ConnectionAdmin,
        ReadOnlyAdmin,
        FederatedAdmin,
        BinlogAdmin,
        SlaveMonitor,
    ]
};

/// The order of `SHOW GRANTS`: that of MariaDB's bits.
const SHOWN: [Privilege; 38] = {
    use Privilege::*;
    [
        Select,
        Insert,
        Update,
        Delete,
        Create,
        Drop,
        Reload,
        Shutdown,
        Process,
        File,
        References,
        Index,
        Alter,
        ShowDatabases,
        Super,
        CreateTemporaryTables,
        LockTables,
        Execute,
        ReplicationSlave,
        BinlogMonitor,
        CreateView,
        ShowView,
        CreateRoutine,
        AlterRoutine,
        CreateUser,
        Event,
        Trigger,
        CreateTablespace,
        DeleteHistory,
        SetUser,
        FederatedAdmin,
        ConnectionAdmin,
        ReadOnlyAdmin,
        ReplicationSlaveAdmin,
        ReplicationMasterAdmin,
        BinlogAdmin,
        BinlogReplay,
        SlaveMonitor,
    ]
};

impl Privilege {
    /// Its name in SQL.
    pub fn name(self) -> &'static str {
        NAMES[usize::from(self as u8)]
    }

    /// The privilege of that name, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        let by_name = ALL
            .into_iter()
            .find(|privilege| privilege.name().eq_ignore_ascii_case(name));
        by_name.or_else(|| {
            let alias = ALIASES
                .iter()
                .find(|(alias, _)| alias.eq_ignore_ascii_case(name));
            alias.map(|&(_, privilege)| privilege)
        })
    }
}

/// A set of privileges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct PrivilegeSet(u64);

impl PrivilegeSet {
    /// No privileges (`USAGE`).
    pub const NONE: Self = Self(0);

    /// What `GRANT ALL` grants on `*.*`.
    pub const ALL_GLOBAL: Self = Self((1 << ALL.len()) - 1);

    /// What `GRANT ALL` grants on a database.
    pub const ALL_DATABASE: Self = Self::of(&[
        Privilege::Select,
        Privilege::Insert,
        Privilege::Update,
        Privilege::Delete,
        Privilege::Create,
        Privilege::Drop,
        Privilege::References,
        Privilege::Index,
        Privilege::Alter,
        Privilege::CreateTemporaryTables,
        Privilege::LockTables,
        Privilege::CreateView,
        Privilege::ShowView,
        Privilege::CreateRoutine,
        Privilege::AlterRoutine,
        Privilege::Execute,
        Privilege::Event,
        Privilege::Trigger,
        Privilege::DeleteHistory,
    ]);

    /// All privileges about stored programs.
    pub const ROUTINE: Self = Self::of(&[
        Privilege::CreateRoutine,
        Privilege::AlterRoutine,
        Privilege::Execute,
    ]);

    /// What `GRANT ALL` grants on a stored program.
    pub const ALL_ROUTINE: Self = Self::of(&[Privilege::AlterRoutine, Privilege::Execute]);

    /// What `GRANT ALL` grants on a table.
    pub const ALL_TABLE: Self = Self::of(&[
        Privilege::Select,
        Privilege::Insert,
        Privilege::Update,
        Privilege::Delete,
        Privilege::Create,
        Privilege::Drop,
        Privilege::References,
        Privilege::Index,
        Privilege::Alter,
        Privilege::CreateView,
        Privilege::ShowView,
        Privilege::Trigger,
        Privilege::DeleteHistory,
    ]);

    /// The set of these privileges.
    pub const fn of(privileges: &[Privilege]) -> Self {
        let mut bits = 0;
        let mut index = 0;
        while index < privileges.len() {
            bits |= 1 << privileges[index] as u8;
            index += 1;
        }
        Self(bits)
    }

    /// The set as a number for storage; the order of the bits is part of the format.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// The bit of the right to give on in MariaDB's numbers.
    pub const REFERENCE_GRANT_BIT: usize = 10;

    /// The set as a number with MariaDB's bits: the order of `SHOW GRANTS`, without the bit of the
    /// right to give on.
    pub fn reference_bits(self) -> u64 {
        let bit = |place: usize| place + usize::from(Self::REFERENCE_GRANT_BIT <= place);
        let places = SHOWN.iter().enumerate();
        let own = places.filter(|(_, privilege)| self.has(**privilege));
        own.fold(0, |sum, (place, _)| sum | 1 << bit(place))
    }

    /// The set of a stored number; unknown bits are dropped.
    pub fn from_bits(bits: u64) -> Self {
        Self(bits & Self::ALL_GLOBAL.0)
    }

    /// True if the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// True if each of `wanted` is in the set.
    pub fn includes(self, wanted: Self) -> bool {
        wanted.0 & !self.0 == 0
    }

    /// True if the privilege is in the set.
    pub fn has(self, privilege: Privilege) -> bool {
        self.includes(Self::of(&[privilege]))
    }

    /// The privileges of the set, in the order of `SHOW GRANTS`.
    pub fn iter(self) -> impl Iterator<Item = Privilege> {
        SHOWN
            .into_iter()
            .filter(move |&privilege| self.has(privilege))
    }

    /// The text of `SHOW GRANTS`; `all` is what `ALL PRIVILEGES` means at the level.
    pub fn text(self, all: Self) -> String {
        if self.includes(all) {
            return "ALL PRIVILEGES".to_owned();
        }
        self.names()
    }

    /// The names as `SHOW GRANTS` writes them, without `ALL PRIVILEGES`.
    pub fn names(self) -> String {
        if self.is_empty() {
            return "USAGE".to_owned();
        }
        self.iter()
            .map(Privilege::name)
            .collect::<Vec<_>>()
            .join(", ")
    }
}

impl BitOr for PrivilegeSet {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for PrivilegeSet {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl BitAnd for PrivilegeSet {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl Not for PrivilegeSet {
    type Output = Self;

    fn not(self) -> Self {
        Self(!self.0 & Self::ALL_GLOBAL.0)
    }
}

impl fmt::Display for Privilege {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_privilege_is_found_by_its_name_and_has_its_bit() {
        for (bit, privilege) in ALL.into_iter().enumerate() {
            assert_eq!(usize::from(privilege as u8), bit);
            assert_eq!(
                Privilege::from_name(&privilege.name().to_lowercase()),
                Some(privilege)
            );
            assert!(PrivilegeSet::of(&[privilege]).iter().eq([privilege]));
        }
        assert_eq!(
            Privilege::from_name("replication client"),
            Some(Privilege::BinlogMonitor)
        );
        assert_eq!(Privilege::from_name("ALL"), None);
    }

    #[test]
    fn sets_are_written_as_show_grants_does() {
        let some = PrivilegeSet::of(&[Privilege::Update, Privilege::Select]);
        assert_eq!(some.text(PrivilegeSet::ALL_DATABASE), "SELECT, UPDATE");
        let ordered = "CREATE, LOCK TABLES, EXECUTE, CREATE VIEW, ALTER ROUTINE";
        let named = ordered.split(", ").filter_map(Privilege::from_name);
        let set = PrivilegeSet::of(&named.collect::<Vec<_>>());
        assert_eq!(set.names(), ordered);
        assert_eq!(PrivilegeSet::NONE.text(PrivilegeSet::ALL_TABLE), "USAGE");
        assert_eq!(
            PrivilegeSet::ALL_TABLE.text(PrivilegeSet::ALL_TABLE),
            "ALL PRIVILEGES"
        );
        assert!(PrivilegeSet::ALL_GLOBAL.includes(PrivilegeSet::ALL_DATABASE));
        assert_eq!(
            (some & !PrivilegeSet::of(&[Privilege::Select])).text(some),
            "UPDATE"
        );
    }

    /// As `mysql.global_priv` of MariaDB 10.11 has them.
    #[test]
    fn the_numbers_of_the_reference_are_known() {
        for (name, bit) in [
            ("SELECT", 0),
            ("FILE", 9),
            ("REFERENCES", 11),
            ("EXECUTE", 18),
            ("BINLOG MONITOR", 20),
            ("DELETE HISTORY", 29),
            ("FEDERATED ADMIN", 31),
            ("BINLOG REPLAY", 37),
            ("SLAVE MONITOR", 38),
        ] {
            let privilege = Privilege::from_name(name).unwrap();
            let bits = PrivilegeSet::of(&[privilege]).reference_bits();
            assert_eq!(bits, 1 << bit, "{name}");
        }
        let all = PrivilegeSet::ALL_GLOBAL.reference_bits();
        assert_eq!(
            all,
            (1 << 39) - 1 - (1 << PrivilegeSet::REFERENCE_GRANT_BIT)
        );
    }

    #[test]
    fn a_stored_set_loses_bits_that_no_privilege_has() {
        assert_eq!(PrivilegeSet::from_bits(u64::MAX), PrivilegeSet::ALL_GLOBAL);
        assert_eq!(PrivilegeSet::from_bits(5).bits(), 5);
    }
}
