//! [`Capabilities`]: what a client and a server can do, one bit each.
//!
//! The lower 32 bits are MySQL's. The upper 32 are MariaDB's own; they are sent only between two
//! sides that both leave bit 0 (`MYSQL`) clear.

use std::ops::{BitAnd, BitOr, Not};

/// A set of capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Capabilities(pub u64);

impl Capabilities {
    /// Set by MySQL; clear if MariaDB's upper 32 bits are used. Historically: new passwords.
    pub const MYSQL: Capabilities = Capabilities(1);
    /// Affected rows of an UPDATE are the matched rows, not the changed ones.
    pub const FOUND_ROWS: Capabilities = Capabilities(1 << 1);
    /// All column flags in two bytes.
    pub const LONG_FLAG: Capabilities = Capabilities(1 << 2);
    /// The login names a database.
    pub const CONNECT_WITH_DB: Capabilities = Capabilities(1 << 3);
    /// `database.table.column` is refused.
    pub const NO_SCHEMA: Capabilities = Capabilities(1 << 4);
    /// Compression by zlib.
    pub const COMPRESS: Capabilities = Capabilities(1 << 5);
    /// The client is ODBC.
    pub const ODBC: Capabilities = Capabilities(1 << 6);
    /// `LOAD DATA LOCAL`.
    pub const LOCAL_FILES: Capabilities = Capabilities(1 << 7);
    /// Blanks are allowed between a function's name and its parenthesis.
    pub const IGNORE_SPACE: Capabilities = Capabilities(1 << 8);
    /// The protocol of MySQL 4.1, the only one that is supported here.
    pub const PROTOCOL_41: Capabilities = Capabilities(1 << 9);
    /// The client is interactive: `interactive_timeout` instead of `wait_timeout`.
    pub const INTERACTIVE: Capabilities = Capabilities(1 << 10);
    /// TLS after the handshake.
    pub const SSL: Capabilities = Capabilities(1 << 11);
    /// The client ignores SIGPIPE; means nothing to a server.
    pub const IGNORE_SIGPIPE: Capabilities = Capabilities(1 << 12);
    /// Status flags with transaction state.
    pub const TRANSACTIONS: Capabilities = Capabilities(1 << 13);
    /// Historical twin of [`Capabilities::PROTOCOL_41`].
    pub const RESERVED: Capabilities = Capabilities(1 << 14);
    /// Authentication data of 20 bytes.
    pub const SECURE_CONNECTION: Capabilities = Capabilities(1 << 15);
    /// Several statements in one COM_QUERY.
    pub const MULTI_STATEMENTS: Capabilities = Capabilities(1 << 16);
    /// Several results to one COM_QUERY.
    pub const MULTI_RESULTS: Capabilities = Capabilities(1 << 17);
    /// Several results to one COM_STMT_EXECUTE.
    pub const PS_MULTI_RESULTS: Capabilities = Capabilities(1 << 18);
    /// Authentication plugins by name.
    pub const PLUGIN_AUTH: Capabilities = Capabilities(1 << 19);
    /// The login carries attributes of the client program.
    pub const CONNECT_ATTRS: Capabilities = Capabilities(1 << 20);
    /// The length of the authentication data is length-encoded.
    pub const PLUGIN_AUTH_LENENC: Capabilities = Capabilities(1 << 21);
    /// The client can change an expired password.
    pub const EXPIRED_PASSWORDS: Capabilities = Capabilities(1 << 22);
    /// OK packets report changes of the session's state.
    pub const SESSION_TRACK: Capabilities = Capabilities(1 << 23);
    /// OK packets in place of EOF packets.
    pub const DEPRECATE_EOF: Capabilities = Capabilities(1 << 24);
    /// Result sets without column definitions (MySQL 8).
    pub const OPTIONAL_METADATA: Capabilities = Capabilities(1 << 25);
    /// Compression by zstd (MySQL 8).
    pub const ZSTD_COMPRESSION: Capabilities = Capabilities(1 << 26);
    /// Named parameters of statements (MySQL 8).
    pub const QUERY_ATTRIBUTES: Capabilities = Capabilities(1 << 27);
    /// The server's TLS certificate is checked by the client.
    pub const SSL_VERIFY_SERVER_CERT: Capabilities = Capabilities(1 << 30);
    /// Options survive a reconnect; means nothing to a server.
    pub const REMEMBER_OPTIONS: Capabilities = Capabilities(1 << 31);
    /// MariaDB: progress reports of long statements.
    pub const MARIADB_PROGRESS: Capabilities = Capabilities(1 << 32);
    /// MariaDB: COM_STMT_BULK_EXECUTE.
    pub const MARIADB_BULK_OPERATIONS: Capabilities = Capabilities(1 << 34);
    /// MariaDB: names of extended types and formats in column definitions.
    pub const MARIADB_EXTENDED_METADATA: Capabilities = Capabilities(1 << 35);
    /// MariaDB: column definitions of a prepared statement may be left out when unchanged.
    pub const MARIADB_CACHE_METADATA: Capabilities = Capabilities(1 << 36);

    /// What Plateau's server side always supports. Settings add TLS, compression and local files.
    pub const SERVER: Capabilities = Capabilities(
        Self::FOUND_ROWS.0
            | Self::LONG_FLAG.0
            | Self::CONNECT_WITH_DB.0
            | Self::NO_SCHEMA.0
            | Self::ODBC.0
            | Self::IGNORE_SPACE.0
            | Self::PROTOCOL_41.0
            | Self::INTERACTIVE.0
            | Self::IGNORE_SIGPIPE.0
            | Self::TRANSACTIONS.0
            | Self::RESERVED.0
            | Self::SECURE_CONNECTION.0
            | Self::MULTI_STATEMENTS.0
            | Self::MULTI_RESULTS.0
            | Self::PS_MULTI_RESULTS.0
            | Self::PLUGIN_AUTH.0
            | Self::CONNECT_ATTRS.0
            | Self::PLUGIN_AUTH_LENENC.0
            | Self::EXPIRED_PASSWORDS.0
            | Self::SESSION_TRACK.0
            | Self::DEPRECATE_EOF.0
            | Self::REMEMBER_OPTIONS.0
            | Self::MARIADB_BULK_OPERATIONS.0
            | Self::MARIADB_EXTENDED_METADATA.0,
    );

    /// What a client asks for so that it understands every reply, while its session stays as the
    /// server's settings have it. So these are not in it: FOUND_ROWS, IGNORE_SPACE, INTERACTIVE,
    /// EXPIRED_PASSWORDS and MULTI_STATEMENTS. Nothing but a new login can take them back.
    pub const CLIENT: Capabilities = Capabilities(
        Self::LONG_FLAG.0
            | Self::CONNECT_WITH_DB.0
            | Self::PROTOCOL_41.0
            | Self::TRANSACTIONS.0
            | Self::RESERVED.0
            | Self::SECURE_CONNECTION.0
            | Self::MULTI_RESULTS.0
            | Self::PS_MULTI_RESULTS.0
            | Self::PLUGIN_AUTH.0
            | Self::CONNECT_ATTRS.0
            | Self::PLUGIN_AUTH_LENENC.0
            | Self::SESSION_TRACK.0
            | Self::DEPRECATE_EOF.0
            | Self::MARIADB_BULK_OPERATIONS.0
            | Self::MARIADB_EXTENDED_METADATA.0,
    );

    /// Whether all of `other` are in this set.
    #[inline]
    pub fn contains(self, other: Capabilities) -> bool {
        self.0 & other.0 == other.0
    }

    /// MySQL's 32 bits.
    pub fn mysql_bits(self) -> u32 {
        let [a, b, c, d, ..] = self.0.to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    }

    /// MariaDB's 32 bits.
    pub fn mariadb_bits(self) -> u32 {
        let [.., e, f, g, h] = self.0.to_le_bytes();
        u32::from_le_bytes([e, f, g, h])
    }

    /// The set of both halves.
    pub fn from_bits(mysql: u32, mariadb: u32) -> Capabilities {
        Capabilities(u64::from(mysql) | u64::from(mariadb) << 32)
    }
}

impl BitOr for Capabilities {
    type Output = Capabilities;
    fn bitor(self, other: Capabilities) -> Capabilities {
        Capabilities(self.0 | other.0)
    }
}

impl BitAnd for Capabilities {
    type Output = Capabilities;
    fn bitand(self, other: Capabilities) -> Capabilities {
        Capabilities(self.0 & other.0)
    }
}

impl Not for Capabilities {
    type Output = Capabilities;
    fn not(self) -> Capabilities {
        Capabilities(!self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_make_the_whole() {
        let set = Capabilities::SERVER | Capabilities::ZSTD_COMPRESSION;
        assert_eq!(
            Capabilities::from_bits(set.mysql_bits(), set.mariadb_bits()),
            set
        );
        assert!(!Capabilities::SERVER.contains(Capabilities::MYSQL));
        assert!(Capabilities::SERVER.contains(Capabilities::CLIENT));
        assert_eq!(set & !Capabilities::SERVER, Capabilities::ZSTD_COMPRESSION);
    }
}
