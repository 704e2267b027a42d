//! Names, accounts and privileges: what a session checks before it touches a table.
//!
//! Everything here is a value that was read from the store once and is shared until the next
//! change. Nothing here reads the store or uses a socket.

#![forbid(unsafe_code)]

pub mod account;
pub mod account_record;
pub mod information_schema;
pub mod names;
pub mod privilege;
pub mod routine;
mod routine_key;
pub mod session_privileges;
mod stored_table;
pub mod system_tables;
pub mod table_options;
pub mod time_zone_tables;
pub mod virtual_table;

use store::TableId;

pub use account::{Account, Accounts, Credential, Grant, Grants};
pub use auth::AccountName;
pub use names::NameSpace;
pub use privilege::{Privilege, PrivilegeSet};
pub use routine::{Routine, Routines};
pub use routine_key::RoutineKey;
pub use session_privileges::{ComesFrom, SessionPrivileges};
pub use stored_table::SYSTEM_DATABASE;
pub use virtual_table::{RowSource, VirtualTable};

/// True for a table whose rows are made when it is read: no store of rows gives out an id so high.
/// No execution of a plan over such a table may serve again, since it keeps its tables open.
pub fn is_virtual(id: TableId) -> bool {
    VIRTUAL_TABLE_ID_MIN <= id.0
}

/// The lowest id of a virtual table.
pub const VIRTUAL_TABLE_ID_MIN: u64 = 1 << 63;
