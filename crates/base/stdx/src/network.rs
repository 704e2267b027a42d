//! [`Network`]: addresses that share their first bits, as in `10.0.0.0/8`.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Addresses that share their first bits. IPv4 addresses within IPv6 count as IPv4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Network {
    /// The bits behind the shared ones are zero.
    first: IpAddr,
    /// How many bits are shared.
    shared_bits: u8,
}

/// A text is no address, and no address with a number of bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoNetwork;

impl fmt::Display for NoNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected an address, or one with a number of bits, as in 10.0.0.0/8")
    }
}

impl std::error::Error for NoNetwork {}

impl Network {
    /// Whether an address is one of these.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let is_same_kind = address.is_ipv4() == self.first.is_ipv4();
        is_same_kind && masked(address, self.shared_bits) == self.first
    }
}

/// Bits of an IPv6 address before the IPv4 address that it stands for.
const MAPPED_BITS: u8 = 96;

/// Bits of an address of this kind.
fn bits_of(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

/// The address with zeros behind its first bits.
fn masked(address: IpAddr, shared_bits: u8) -> IpAddr {
    let rest = u32::from(bits_of(address).saturating_sub(shared_bits));
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(rest).unwrap_or(0);
            IpAddr::V4((address.to_bits() & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(rest).unwrap_or(0);
            IpAddr::V6((address.to_bits() & mask).into())
        }
    }
}

impl FromStr for Network {
    type Err = NoNetwork;

    fn from_str(text: &str) -> Result<Self, NoNetwork> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| NoNetwork)?;
        let shared_bits = match bits {
            Some(bits) if bits.bytes().all(|byte| byte.is_ascii_digit()) => {
                bits.parse().map_err(|_| NoNetwork)?
            }
            Some(_) => return Err(NoNetwork),
            None => bits_of(address),
        };
        let canonical = address.to_canonical();
        let shared_bits = match canonical == address {
            true => shared_bits,
            false => shared_bits.checked_sub(MAPPED_BITS).ok_or(NoNetwork)?,
        };
        if bits_of(canonical) < shared_bits {
            return Err(NoNetwork);
        }
        Ok(Network {
            first: masked(canonical, shared_bits),
            shared_bits,
        })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.shared_bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(network: &str, address: &str) -> bool {
        let network: Network = network.parse().unwrap();
        network.contains(address.parse().unwrap())
    }

    #[test]
    fn addresses_share_their_first_bits() {
        assert!(contains("10.0.0.0/8", "10.255.0.1"));
        assert!(!contains("10.0.0.0/8", "11.0.0.1"));
        assert!(contains("10.1.2.3", "10.1.2.3") && !contains("10.1.2.3", "10.1.2.2"));
        assert!(contains("10.1.2.3/31", "10.1.2.2"));
        assert!(contains("0.0.0.0/0", "255.255.255.255"));
        assert!(contains("fd00::/8", "fdff::1") && !contains("fd00::/8", "fe80::1"));
        assert!(contains("::/0", "::1") && !contains("::/0", "10.0.0.1"));
        assert!(contains("10.0.0.0/8", "::ffff:10.0.0.1"));
        assert!(contains("::ffff:172.16.0.0/108", "172.31.255.255"));
        assert!(!contains("::ffff:172.16.0.0/108", "172.32.0.0"));
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for text in [
            "",
            "/",
            "10.0.0.0/",
            "10.0.0/8",
            "10.0.0.0/33",
            "::/129",
            "a/8",
            "1.2.3.4/-1",
            "10.0.0.0/+8",
            "10.0.0.0/255.0.0.0",
            "::ffff:10.0.0.0/95",
        ] {
            assert_eq!(text.parse::<Network>(), Err(NoNetwork), "{text}");
        }
        for (text, shown) in [
            ("10.9.9.9/8", "10.0.0.0/8"),
            ("::1/128", "::1/128"),
            ("1.2.3.4/32", "1.2.3.4/32"),
        ] {
            assert_eq!(text.parse::<Network>().unwrap().to_string(), shown);
        }
    }
}
