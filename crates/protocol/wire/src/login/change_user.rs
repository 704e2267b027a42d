//! [`ChangeUser`]: COM_CHANGE_USER, a login on a connection that is already logged in.
//!
//! | bytes | content |
//! |---|---|
//! | n, 0 | user |
//! | 1, n | authentication data after its length |
//! | n, 0 | database, empty for none |
//! | 2 | collation; this and what follows may be left out |
//! | n, 0 | authentication plugin, if PLUGIN_AUTH |
//! | n | attributes after their length, if CONNECT_ATTRS |

use crate::capability::Capabilities;
use crate::command_byte::CommandByte;
use crate::cursor::{Cursor, Malformed};
use crate::login::ConnectAttributes;
use crate::packet_writer::PacketWriter;

/// The client's new identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeUser<'a> {
    /// User name.
    pub user: &'a [u8],
    /// The plugin's result from the password and the scramble of the greeting.
    pub auth_data: &'a [u8],
    /// Database to start in, if the client names one.
    pub database: Option<&'a [u8]>,
    /// Collation, if the client names one.
    pub collation: Option<u16>,
    /// Plugin that made `auth_data`; empty if the client does not say.
    pub auth_plugin: &'a [u8],
    /// Facts about the client program.
    pub attributes: ConnectAttributes<'a>,
}

impl<'a> ChangeUser<'a> {
    /// Reads the command's body, after its first byte.
    pub fn decode(body: &'a [u8], capabilities: Capabilities) -> Result<ChangeUser<'a>, Malformed> {
        let mut cursor = Cursor::new(body);
        let user = cursor.nul_bytes("user")?;
        let auth_data = if capabilities.contains(Capabilities::SECURE_CONNECTION) {
            let count = cursor.u8("authentication data")?;
            cursor.bytes(usize::from(count), "authentication data")?
        } else {
            cursor.nul_bytes("authentication data")?
        };
        let database = Some(cursor.nul_bytes_or_rest()).filter(|name| !name.is_empty());
        let collation = if cursor.is_empty() {
            None
        } else {
            Some(cursor.u16("collation")?)
        };
        let auth_plugin = if capabilities.contains(Capabilities::PLUGIN_AUTH) {
            cursor.nul_bytes_or_rest()
        } else {
            b""
        };
        let has_attributes =
            capabilities.contains(Capabilities::CONNECT_ATTRS) && !cursor.is_empty();
        let attributes = if has_attributes {
            ConnectAttributes {
                encoded: cursor.lenenc_bytes("connection attributes")?,
            }
        } else {
            ConnectAttributes::default()
        };
        Ok(ChangeUser {
            user,
            auth_data,
            database,
            collation,
            auth_plugin,
            attributes,
        })
    }

    /// Appends the whole command.
    pub fn encode(&self, out: &mut PacketWriter, capabilities: Capabilities) {
        let mut packet = out.begin();
        packet.u8(CommandByte::CHANGE_USER);
        packet.nul_bytes(self.user);
        if capabilities.contains(Capabilities::SECURE_CONNECTION) {
            let count = u8::try_from(self.auth_data.len()).unwrap_or(u8::MAX);
            packet.u8(count);
            packet.bytes(self.auth_data.get(..usize::from(count)).unwrap_or_default());
        } else {
            packet.nul_bytes(self.auth_data);
        }
        packet.nul_bytes(self.database.unwrap_or_default());
        if let Some(collation) = self.collation {
            packet.u16(collation);
            if capabilities.contains(Capabilities::PLUGIN_AUTH) {
                packet.nul_bytes(self.auth_plugin);
            }
            if capabilities.contains(Capabilities::CONNECT_ATTRS) {
                packet.lenenc_bytes(self.attributes.encoded);
            }
        }
        packet.finish();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tail_may_be_left_out() {
        let found = ChangeUser::decode(b"u\0\x02abdb", Capabilities::SERVER).unwrap();
        assert_eq!((found.user, found.auth_data), (&b"u"[..], &b"ab"[..]));
        assert_eq!((found.database, found.collation), (Some(&b"db"[..]), None));
    }

    proptest! {
        #[test]
        fn round_trip(
            user in "[a-z]{0,20}",
            auth_data in prop::collection::vec(any::<u8>(), 0..60),
            database in prop::option::of("[a-z]{1,20}"),
            collation: u16,
            plugin in "[a-z]{0,30}",
        ) {
            let command = ChangeUser {
                user: user.as_bytes(),
                auth_data: &auth_data,
                database: database.as_deref().map(str::as_bytes),
                collation: Some(collation),
                auth_plugin: plugin.as_bytes(),
                attributes: ConnectAttributes::default(),
            };
            let mut out = PacketWriter::new();
            command.encode(&mut out, Capabilities::SERVER);
            let body = &out.as_bytes()[5..];
            prop_assert_eq!(ChangeUser::decode(body, Capabilities::SERVER), Ok(command));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>, bits: u64) {
            let _ = ChangeUser::decode(&bytes, Capabilities(bits));
        }
    }
}
