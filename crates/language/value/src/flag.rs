//! Column flags of the protocol.

/// The column is NOT NULL.
pub const NOT_NULL: u16 = 1;
/// Part of the primary key.
pub const PRIMARY_KEY: u16 = 2;
/// Part of a unique key.
pub const UNIQUE_KEY: u16 = 4;
/// First column of a key that is not unique.
pub const MULTIPLE_KEY: u16 = 8;
/// A TEXT or BLOB.
pub const BLOB: u16 = 16;
/// Unsigned.
pub const UNSIGNED: u16 = 32;
/// Shown with leading zeros.
pub const ZEROFILL: u16 = 64;
/// Binary string, temporal, or number of an expression.
pub const BINARY: u16 = 128;
/// An ENUM.
pub const ENUM: u16 = 256;
/// AUTO_INCREMENT.
pub const AUTO_INCREMENT: u16 = 512;
/// A TIMESTAMP set by the server.
pub const TIMESTAMP: u16 = 1024;
/// A SET.
pub const SET: u16 = 2048;
/// NOT NULL and without a default.
pub const NO_DEFAULT: u16 = 4096;
/// Set to now by an update.
pub const ON_UPDATE_NOW: u16 = 8192;
/// Part of any key.
pub const PART_KEY: u16 = 16_384;
