//! The packets of an authentication that takes more than the login: [`AuthSwitch`] asks for another
//! plugin, [`AuthMoreData`] carries data of a plugin. A client's answers are bare packets without a
//! header byte.

use crate::cursor::{Cursor, Malformed};
use crate::packet_writer::PacketWriter;

/// The server asks the client to authenticate with another plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthSwitch<'a> {
    /// Name of the plugin.
    pub plugin: &'a [u8],
    /// The plugin's initial data, usually a scramble and a zero byte.
    pub data: &'a [u8],
}

impl<'a> AuthSwitch<'a> {
    /// First byte of the packet. A packet with nothing else asks for passwords from before 4.1,
    /// which are not supported here.
    pub const HEADER: u8 = 0xFE;

    /// Appends the packet.
    pub fn encode(&self, out: &mut PacketWriter) {
        let mut packet = out.begin();
        packet.u8(Self::HEADER);
        packet.nul_bytes(self.plugin);
        packet.bytes(self.data);
        packet.finish();
    }

    /// Reads the packet.
    pub fn decode(payload: &'a [u8]) -> Result<AuthSwitch<'a>, Malformed> {
        let mut cursor = Cursor::new(payload);
        if cursor.u8("auth switch")? != Self::HEADER {
            return Err(Malformed::new("auth switch"));
        }
        let plugin = cursor.nul_bytes("plugin name")?;
        Ok(AuthSwitch {
            plugin,
            data: cursor.rest(),
        })
    }
}

/// Data from a server's plugin to its counterpart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthMoreData<'a> {
    /// The plugin defines its meaning.
    pub data: &'a [u8],
}

impl<'a> AuthMoreData<'a> {
    /// First byte of the packet.
    pub const HEADER: u8 = 0x01;

    /// Appends the packet.
    pub fn encode(&self, out: &mut PacketWriter) {
        let mut packet = out.begin();
        packet.u8(Self::HEADER);
        packet.bytes(self.data);
        packet.finish();
    }

    /// Reads the packet.
    pub fn decode(payload: &'a [u8]) -> Result<AuthMoreData<'a>, Malformed> {
        let mut cursor = Cursor::new(payload);
        if cursor.u8("auth data")? != Self::HEADER {
            return Err(Malformed::new("auth data"));
        }
        Ok(AuthMoreData {
            data: cursor.rest(),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn round_trip(plugin in "[a-z_]{0,30}", data: Vec<u8>) {
            let mut out = PacketWriter::new();
            let switch = AuthSwitch { plugin: plugin.as_bytes(), data: &data };
            switch.encode(&mut out);
            prop_assert_eq!(AuthSwitch::decode(&out.as_bytes()[4..]), Ok(switch));
            out.clear();
            let more = AuthMoreData { data: &data };
            more.encode(&mut out);
            prop_assert_eq!(AuthMoreData::decode(&out.as_bytes()[4..]), Ok(more));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let _ = AuthSwitch::decode(&bytes);
            let _ = AuthMoreData::decode(&bytes);
        }
    }
}
