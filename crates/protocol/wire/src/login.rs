//! [`Login`]: the client's answer to the greeting, with or without a request for TLS before it.
//!
//! | bytes | content |
//! |---|---|
//! | 4 | MySQL's capabilities |
//! | 4 | largest packet that the client takes |
//! | 1 | collation |
//! | 19 | zeros |
//! | 4 | MariaDB's capabilities, if bit 0 of MySQL's is clear |
//! | | a request for TLS ends here |
//! | n, 0 | user |
//! | n | authentication data after its length, of one byte if not PLUGIN_AUTH_LENENC |
//! | n, 0 | database, if CONNECT_WITH_DB |
//! | n, 0 | authentication plugin, if PLUGIN_AUTH |
//! | n | attributes after their length, if CONNECT_ATTRS |
//! | 1 | zstd level, if ZSTD_COMPRESSION |

pub(crate) mod auth_exchange;
pub(crate) mod change_user;
pub(crate) mod handshake;

use crate::capability::Capabilities;
use crate::cursor::{Cursor, Malformed};
use crate::packet_writer::{Packet, PacketWriter};

/// The first packet of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginPacket<'a> {
    /// TLS starts now; the login follows inside it.
    TlsRequest(Capabilities),
    /// The login.
    Login(Login<'a>),
}

/// The client's identity and capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Login<'a> {
    /// What the client can do; the server may use what both can.
    pub capabilities: Capabilities,
    /// Largest packet that the client takes.
    pub packet_bytes_max: u32,
    /// The client's collation, lower byte; its character set is that of the statements.
    pub collation: u8,
    /// User name.
    pub user: &'a [u8],
    /// The plugin's result from password and scramble; empty for no password.
    pub auth_data: &'a [u8],
    /// Database to start in, if the client names one.
    pub database: Option<&'a [u8]>,
    /// Plugin that made `auth_data`; empty if the client knows none by name.
    pub auth_plugin: &'a [u8],
    /// Facts about the client program.
    pub attributes: ConnectAttributes<'a>,
    /// Level for zstd, if the client asks for that compression.
    pub zstd_level: u8,
}

const FILLER_BYTES: usize = 19;
const HEAD_BYTES: usize = 32;

impl<'a> LoginPacket<'a> {
    /// Reads a login or a request for TLS. Clients older than MySQL 4.1 are refused.
    pub fn decode(payload: &'a [u8]) -> Result<LoginPacket<'a>, Malformed> {
        let mut cursor = Cursor::new(payload);
        let mysql_bits = cursor.u32("capabilities")?;
        let is_mysql = mysql_bits & Capabilities::MYSQL.mysql_bits() != 0;
        if !Capabilities::from_bits(mysql_bits, 0).contains(Capabilities::PROTOCOL_41) {
            return Err(Malformed::new("login of a client older than 4.1"));
        }
        let packet_bytes_max = cursor.u32("largest packet")?;
        let collation = cursor.u8("collation")?;
        cursor.bytes(FILLER_BYTES, "reserved")?;
        let mariadb_bits = cursor.u32("extended capabilities")?;
        let capabilities =
            Capabilities::from_bits(mysql_bits, if is_mysql { 0 } else { mariadb_bits });
        if payload.len() == HEAD_BYTES {
            return Ok(LoginPacket::TlsRequest(capabilities));
        }
        let head = Login {
            packet_bytes_max,
            collation,
            ..Login::with(capabilities)
        };
        head.decode_body(cursor).map(LoginPacket::Login)
    }
}

impl<'a> Login<'a> {
    /// A login with capabilities only.
    pub fn with(capabilities: Capabilities) -> Login<'a> {
        Login {
            capabilities,
            packet_bytes_max: 1 << 30,
            collation: 45,
            user: b"",
            auth_data: b"",
            database: None,
            auth_plugin: b"",
            attributes: ConnectAttributes::default(),
            zstd_level: 0,
        }
    }

    fn decode_body(self, mut cursor: Cursor<'a>) -> Result<Login<'a>, Malformed> {
        let has = |bit| self.capabilities.contains(bit);
        let user = cursor.nul_bytes("user")?;
        let auth_data = if has(Capabilities::PLUGIN_AUTH_LENENC) {
            cursor.lenenc_bytes("authentication data")?
        } else if has(Capabilities::SECURE_CONNECTION) {
            let count = cursor.u8("authentication data")?;
            cursor.bytes(usize::from(count), "authentication data")?
        } else {
            cursor.nul_bytes_or_rest()
        };
        let database = (has(Capabilities::CONNECT_WITH_DB) && !cursor.is_empty())
            .then(|| cursor.nul_bytes_or_rest())
            .filter(|name| !name.is_empty());
        let auth_plugin = if has(Capabilities::PLUGIN_AUTH) {
            cursor.nul_bytes_or_rest()
        } else {
            b""
        };
        let attributes = if has(Capabilities::CONNECT_ATTRS) && !cursor.is_empty() {
            ConnectAttributes {
                encoded: cursor.lenenc_bytes("connection attributes")?,
            }
        } else {
            ConnectAttributes::default()
        };
        let zstd_level = if has(Capabilities::ZSTD_COMPRESSION) && !cursor.is_empty() {
            cursor.u8("zstd level")?
        } else {
            0
        };
        Ok(Login {
            user,
            auth_data,
            database,
            auth_plugin,
            attributes,
            zstd_level,
            ..self
        })
    }

    /// Appends the request for TLS that comes before this login.
    pub fn encode_tls_request(&self, out: &mut PacketWriter) {
        let mut packet = out.begin();
        self.encode_head(&mut packet);
        packet.finish();
    }

    /// Appends the login.
    pub fn encode(&self, out: &mut PacketWriter) {
        let has = |bit| self.capabilities.contains(bit);
        let mut packet = out.begin();
        self.encode_head(&mut packet);
        packet.nul_bytes(self.user);
        if has(Capabilities::PLUGIN_AUTH_LENENC) {
            packet.lenenc_bytes(self.auth_data);
        } else if has(Capabilities::SECURE_CONNECTION) {
            let count = u8::try_from(self.auth_data.len()).unwrap_or(u8::MAX);
            packet.u8(count);
            packet.bytes(self.auth_data.get(..usize::from(count)).unwrap_or_default());
        } else {
            packet.nul_bytes(self.auth_data);
        }
        if has(Capabilities::CONNECT_WITH_DB) {
            packet.nul_bytes(self.database.unwrap_or_default());
        }
        if has(Capabilities::PLUGIN_AUTH) {
            packet.nul_bytes(self.auth_plugin);
        }
        if has(Capabilities::CONNECT_ATTRS) {
            packet.lenenc_bytes(self.attributes.encoded);
        }
        if has(Capabilities::ZSTD_COMPRESSION) {
            packet.u8(self.zstd_level);
        }
        packet.finish();
    }

    fn encode_head(&self, packet: &mut Packet<'_>) {
        packet.u32(self.capabilities.mysql_bits());
        packet.u32(self.packet_bytes_max);
        packet.u8(self.collation);
        packet.zeros(FILLER_BYTES);
        packet.u32(self.capabilities.mariadb_bits());
    }
}

/// Facts about a client program, as name and value; lent from the login packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConnectAttributes<'a> {
    /// Length-encoded names and values in turn.
    pub(crate) encoded: &'a [u8],
}

impl<'a> ConnectAttributes<'a> {
    /// Attributes that were encoded with [`ConnectAttributes::append`].
    pub fn from_encoded(encoded: &'a [u8]) -> ConnectAttributes<'a> {
        ConnectAttributes { encoded }
    }

    /// The attributes as they are sent, for [`ConnectAttributes::from_encoded`].
    pub fn encoded(&self) -> &'a [u8] {
        self.encoded
    }

    /// Appends one attribute to encoded ones. Names and values above 250 bytes are left out.
    pub fn append(encoded: &mut Vec<u8>, name: &str, value: &str) {
        if let (Ok(name_bytes @ 0..=250), Ok(value_bytes @ 0..=250)) =
            (u8::try_from(name.len()), u8::try_from(value.len()))
        {
            encoded.push(name_bytes);
            encoded.extend_from_slice(name.as_bytes());
            encoded.push(value_bytes);
            encoded.extend_from_slice(value.as_bytes());
        }
    }

    /// Names and values, up to the first that is malformed.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let mut cursor = Cursor::new(self.encoded);
        std::iter::from_fn(move || {
            let name = cursor.lenenc_bytes("attribute name").ok()?;
            let value = cursor.lenenc_bytes("attribute value").ok()?;
            Some((name, value))
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(out: &PacketWriter) -> LoginPacket<'_> {
        LoginPacket::decode(&out.as_bytes()[4..]).expect("our own packet is well-formed")
    }

    #[test]
    fn tls_request_is_told_from_a_login() {
        let capabilities = Capabilities::SERVER | Capabilities::SSL;
        let login = Login {
            user: b"u",
            ..Login::with(capabilities)
        };
        let mut out = PacketWriter::new();
        login.encode_tls_request(&mut out);
        assert_eq!(decoded(&out), LoginPacket::TlsRequest(capabilities));
    }

    #[test]
    fn attributes_are_listed() {
        let mut encoded = Vec::new();
        ConnectAttributes::append(&mut encoded, "_os", "Linux");
        ConnectAttributes::append(&mut encoded, "_pid", "1");
        let attributes = ConnectAttributes::from_encoded(&encoded);
        let listed: Vec<_> = attributes.iter().collect();
        assert_eq!(listed, [(&b"_os"[..], &b"Linux"[..]), (b"_pid", b"1")]);
    }

    #[test]
    fn old_client_is_refused() {
        let mut payload = vec![0; 40];
        payload[0] = 4;
        assert_eq!(
            LoginPacket::decode(&payload),
            Err(Malformed::new("login of a client older than 4.1"))
        );
    }

    #[test]
    fn last_zero_bytes_may_be_missing() {
        let capabilities = Capabilities::SERVER & !Capabilities::CONNECT_ATTRS;
        let login = Login {
            user: b"u",
            database: Some(b"d"),
            auth_plugin: b"p",
            ..Login::with(capabilities)
        };
        let mut out = PacketWriter::new();
        login.encode(&mut out);
        let payload = out.as_bytes();
        let short = &payload[4..payload.len() - 1];
        assert_eq!(LoginPacket::decode(short), Ok(LoginPacket::Login(login)));
    }

    proptest! {
        #[test]
        fn round_trip(
            packet_bytes_max: u32,
            collation: u8,
            bits: u64,
            zstd_level: u8,
            user in "[a-z]{0,20}",
            auth_data in prop::collection::vec(1..=255_u8, 0..60),
            database in prop::option::of("[a-z]{1,20}"),
            plugin in "[a-z]{0,30}",
            attributes in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            let mut capabilities = Capabilities(bits) | Capabilities::PROTOCOL_41;
            if capabilities.contains(Capabilities::MYSQL) {
                capabilities = Capabilities::from_bits(capabilities.mysql_bits(), 0);
            }
            let has = |bit| capabilities.contains(bit);
            let login = Login {
                capabilities,
                packet_bytes_max,
                collation,
                user: user.as_bytes(),
                auth_data: &auth_data,
                database: database
                    .as_deref()
                    .map(str::as_bytes)
                    .filter(|_| has(Capabilities::CONNECT_WITH_DB)),
                auth_plugin: if has(Capabilities::PLUGIN_AUTH) { plugin.as_bytes() } else { b"" },
                attributes: ConnectAttributes {
                    encoded: if has(Capabilities::CONNECT_ATTRS) { &attributes } else { b"" },
                },
                zstd_level: if has(Capabilities::ZSTD_COMPRESSION) { zstd_level } else { 0 },
            };
            let mut out = PacketWriter::new();
            login.encode(&mut out);
            prop_assert_eq!(decoded(&out), LoginPacket::Login(login));
            let payload = &out.as_bytes()[4..];
            for end in 0..payload.len() {
                let _ = LoginPacket::decode(&payload[..end]);
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(mut bytes: Vec<u8>) {
            if let Some(byte) = bytes.get_mut(1) {
                *byte |= 2;
            }
            if let Ok(LoginPacket::Login(login)) = LoginPacket::decode(&bytes) {
                login.attributes.iter().count();
            }
        }
    }
}
