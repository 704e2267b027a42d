//! SHOW PRIVILEGES: what there is to be granted.
//!
//! Names and contexts are MariaDB 10.11's, which tools read; the comments are our own.

use crate::connection::reply::{Reply, Stop};
use crate::connection::session::Session;
use crate::connection::sink::text_column;
use crate::show::text_value;
use crate::statement::statement_run::StatementRun;

/// Name, context and comment of each.
const PRIVILEGES: &[[&str; 3]] = &[
    ["Alter", "Tables", "Change how a table is defined"],
    [
        "Alter routine",
        "Functions,Procedures",
        "Change and drop stored programs",
    ],
    [
        "Create",
        "Databases,Tables,Indexes",
        "Make databases and tables",
    ],
    ["Create routine", "Databases", "Make stored programs"],
    [
        "Create temporary tables",
        "Databases",
        "Make temporary tables",
    ],
    ["Create view", "Tables", "Make views"],
    [
        "Create user",
        "Server Admin",
        "Make, change and drop accounts",
    ],
    ["Delete", "Tables", "Remove rows"],
    ["Delete history", "Tables", "Remove old versions of rows"],
    [
        "Drop",
        "Databases,Tables",
        "Drop databases, tables and views",
    ],
    ["Event", "Server Admin", "Make, change and drop events"],
    ["Execute", "Functions,Procedures", "Run stored programs"],
    [
        "File",
        "File access on server",
        "Read and write files of the server",
    ],
    [
        "Grant option",
        "Databases,Tables,Functions,Procedures",
        "Give own privileges to others",
    ],
    ["Index", "Tables", "Make and drop indexes"],
    ["Insert", "Tables", "Add rows"],
    [
        "Lock tables",
        "Databases",
        "Lock tables, together with SELECT",
    ],
    [
        "Process",
        "Server Admin",
        "See the statements of other sessions",
    ],
    ["Proxy", "Server Admin", "Let an account act as another"],
    [
        "References",
        "Databases,Tables",
        "Refer to a table by foreign keys",
    ],
    [
        "Reload",
        "Server Admin",
        "Reload tables, logs and privileges",
    ],
    ["Binlog admin", "Server", "Remove binary logs"],
    [
        "Binlog monitor",
        "Server",
        "See where the binary log stands",
    ],
    ["Binlog replay", "Server", "Run events of a binary log"],
    [
        "Replication master admin",
        "Server",
        "See connected replicas",
    ],
    [
        "Replication slave admin",
        "Server",
        "Start and stop replication",
    ],
    ["Slave monitor", "Server", "See where replication stands"],
    [
        "Replication slave",
        "Server Admin",
        "Read the binary log as a replica",
    ],
    ["Select", "Tables", "Read rows"],
    ["Show databases", "Server Admin", "See all databases"],
    ["Show view", "Tables", "See how views are defined"],
    ["Shutdown", "Server Admin", "Shut the server down"],
    [
        "Super",
        "Server Admin",
        "End sessions, set global variables, and the like",
    ],
    ["Trigger", "Tables", "Make, change and drop triggers"],
    [
        "Create tablespace",
        "Server Admin",
        "Make, change and drop tablespaces",
    ],
    ["Update", "Tables", "Change rows"],
    [
        "Set user",
        "Server",
        "Make programs and views of other definers",
    ],
    [
        "Federated admin",
        "Server",
        "Make, change and drop remote servers",
    ],
    [
        "Connection admin",
        "Server",
        "End sessions and connect beyond limits",
    ],
    [
        "Read_only admin",
        "Server",
        "Write while the server is read-only",
    ],
    ["Usage", "Server Admin", "Nothing but to connect"],
];

impl Session {
    /// Answers SHOW PRIVILEGES.
    pub(crate) fn show_privileges(&mut self, run: &mut StatementRun) -> Result<Reply, Stop> {
        let columns = [
            text_column("Privilege", 10),
            text_column("Context", 15),
            text_column("Comment", 64),
        ];
        let rows = PRIVILEGES.iter().map(|row| row.map(text_value).to_vec());
        self.write_rows(&columns, rows.collect(), run)
    }
}
