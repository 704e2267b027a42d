//! Headers as tables: each form, each limit from below and above, and what is refused.

use proptest::prelude::*;

use super::*;

fn tcp(source: &str, destination: &str) -> ProxyHeader {
    ProxyHeader::Tcp {
        source: source.parse().unwrap(),
        destination: destination.parse().unwrap(),
    }
}

fn encoded(header: ProxyHeader, version: ProxyVersion) -> Vec<u8> {
    let mut out = Vec::new();
    header.encode(version, &mut out);
    out
}

fn whole(bytes: &[u8], header: ProxyHeader) {
    let used = bytes.len();
    let found = ProxyBytes::Whole { header, used };
    assert_eq!(ProxyHeader::decode(bytes), Ok(found));
    // What follows is the client's; what is missing has to come.
    let longer = [bytes, b"PROXY "].concat();
    assert_eq!(ProxyHeader::decode(&longer), Ok(found));
    for end in 0..used {
        let begun = ProxyHeader::decode(&bytes[..end]);
        assert_eq!(begun, Ok(ProxyBytes::Incomplete), "{end}");
    }
}

/// A header of version 2 with this command, family and body.
fn v2(command: u8, family: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len()).unwrap().to_be_bytes();
    [&V2_SIGNATURE[..], &[command, family], &length, body].concat()
}

#[test]
fn texts_are_read() {
    for (text, header) in [
        (
            "PROXY TCP4 10.1.2.3 192.168.0.1 56324 3306\r\n",
            tcp("10.1.2.3:56324", "192.168.0.1:3306"),
        ),
        (
            "PROXY TCP4 255.255.255.255 0.0.0.0 65535 0\r\n",
            tcp("255.255.255.255:65535", "0.0.0.0:0"),
        ),
        (
            "PROXY TCP6 2001:db8::1 ::1 1 2\r\n",
            tcp("[2001:db8::1]:1", "[::1]:2"),
        ),
        (
            "PROXY TCP6 ::ffff:10.1.2.3 ::1 1 2\r\n",
            tcp("10.1.2.3:1", "[::1]:2"),
        ),
        ("PROXY UNKNOWN\r\n", ProxyHeader::Local),
        ("PROXY UNKNOWN ffff::1 what ever\r\n", ProxyHeader::Local),
    ] {
        whole(text.as_bytes(), header);
    }
}

#[test]
fn texts_that_say_nothing_are_refused() {
    for text in [
        "PROXY \r\n",
        "PROXY TCP4\r\n",
        "PROXY TCP5 10.1.2.3 10.1.2.4 1 2\r\n",
        "PROXY TCP4 10.1.2.3 10.1.2.4 1\r\n",
        "PROXY TCP4 10.1.2.3 10.1.2.4 1 2 3\r\n",
        "PROXY TCP4 10.1.2.3 10.1.2.4 1 65536\r\n",
        "PROXY TCP4 10.1.2.3 10.1.2.4 +1 2\r\n",
        "PROXY TCP4 10.1.2.3 10.1.2.4 -1 2\r\n",
        "PROXY TCP4 10.1.2.3  10.1.2.4 1 2\r\n",
        "PROXY TCP4 10.1.2.256 10.1.2.4 1 2\r\n",
        "PROXY TCP4 ::1 ::1 1 2\r\n",
        "PROXY TCP6 10.1.2.3 10.1.2.4 1 2\r\n",
        "PROXY tcp4 10.1.2.3 10.1.2.4 1 2\r\n",
        "PROXY TCP4 10.1.2.3 10.1.2.4 1 2\n\r\n",
        "PROXY TCP4 \u{e9} 10.1.2.4 1 2\r\n",
    ] {
        let found = ProxyHeader::decode(text.as_bytes());
        assert!(found.is_err(), "{text}: {found:?}");
    }
    let bytes = b"PROXY \xff\xfe\r\n";
    assert!(ProxyHeader::decode(bytes).is_err());
}

#[test]
fn a_text_has_a_length() {
    let of_length = |length: usize| {
        let begin = "PROXY UNKNOWN ";
        let rest = "x".repeat(length - begin.len() - 2);
        format!("{begin}{rest}\r\n").into_bytes()
    };
    whole(&of_length(PROXY_V1_BYTES_MAX - 1), ProxyHeader::Local);
    whole(&of_length(PROXY_V1_BYTES_MAX), ProxyHeader::Local);
    let longer = of_length(PROXY_V1_BYTES_MAX + 1);
    let begun = ProxyHeader::decode(&longer[..PROXY_V1_BYTES_MAX - 1]);
    assert_eq!(begun, Ok(ProxyBytes::Incomplete));
    for end in PROXY_V1_BYTES_MAX..=longer.len() {
        assert!(ProxyHeader::decode(&longer[..end]).is_err(), "{end}");
    }
}

#[test]
fn binary_headers_are_read() {
    let ipv4 = [10, 1, 2, 3, 192, 168, 0, 1, 0xdc, 0x04, 0x0c, 0xea];
    let header = tcp("10.1.2.3:56324", "192.168.0.1:3306");
    whole(&v2(V2_PROXY, TCP_IPV4, &ipv4), header);
    // What follows the addresses is skipped, whatever it is.
    let with_facts = [&ipv4[..], &[4, 0, 1]].concat();
    whole(&v2(V2_PROXY, TCP_IPV4, &with_facts), header);
    let mut ipv6 = [0; 36];
    ipv6[15] = 1;
    ipv6[31] = 2;
    ipv6[33] = 7;
    ipv6[35] = 8;
    whole(&v2(V2_PROXY, TCP_IPV6, &ipv6), tcp("[::1]:7", "[::2]:8"));
    whole(&v2(V2_PROXY, UNIX_STREAM, &[b'p'; 216]), ProxyHeader::Unix);
    whole(&v2(V2_PROXY, UNSPECIFIED, &[]), ProxyHeader::Local);
    for family in [UNSPECIFIED, TCP_IPV4, 0xff] {
        whole(&v2(V2_LOCAL, family, &[1, 2, 3]), ProxyHeader::Local);
    }
}

#[test]
fn binary_headers_that_contradict_themselves_are_refused() {
    for (command, family, bytes) in [
        (V2_PROXY, TCP_IPV4, 11),
        (V2_PROXY, TCP_IPV6, 35),
        (V2_PROXY, UNIX_STREAM, 215),
        (V2_PROXY, 0x12, 12),
        (V2_PROXY, 0x41, 100),
        (0x22, TCP_IPV4, 12),
        (0x11, TCP_IPV4, 12),
    ] {
        let found = ProxyHeader::decode(&v2(command, family, &vec![0; bytes]));
        assert!(found.is_err(), "{command:#x} {family:#x}: {found:?}");
    }
}

#[test]
fn a_binary_header_has_a_length() {
    let of_length = |length: usize| v2(V2_LOCAL, UNSPECIFIED, &vec![7; length - V2_HEAD_BYTES]);
    whole(&of_length(PROXY_V2_BYTES_MAX - 1), ProxyHeader::Local);
    whole(&of_length(PROXY_V2_BYTES_MAX), ProxyHeader::Local);
    let longer = of_length(PROXY_V2_BYTES_MAX + 1);
    let begun = ProxyHeader::decode(&longer[..V2_HEAD_BYTES - 1]);
    assert_eq!(begun, Ok(ProxyBytes::Incomplete));
    // It is refused as soon as the length is known.
    assert!(ProxyHeader::decode(&longer[..V2_HEAD_BYTES]).is_err());
}

#[test]
fn a_login_is_no_header() {
    // A header of a packet with these bytes at its front; the sequence id of a login is 1.
    for bytes in [
        &b"\x50\0\0\x01"[..],
        b"\x0d\0\0\x01",
        b"PROXYX",
        b"PROX\x01",
        b"\r\n\r\n\0\r\nQUIT\r",
        b"x",
    ] {
        assert_eq!(ProxyHeader::decode(bytes), Ok(ProxyBytes::Other));
    }
    assert_eq!(ProxyHeader::decode(b""), Ok(ProxyBytes::Incomplete));
}

#[test]
fn each_version_says_what_it_can() {
    use ProxyVersion::{V1, V2};

    let text = |header| String::from_utf8(encoded(header, V1)).unwrap();
    assert_eq!(
        text(tcp("10.1.2.3:56324", "127.0.0.1:3306")),
        "PROXY TCP4 10.1.2.3 127.0.0.1 56324 3306\r\n"
    );
    assert_eq!(
        text(tcp("10.1.2.3:1", "[::1]:2")),
        "PROXY TCP6 ::ffff:10.1.2.3 ::1 1 2\r\n"
    );
    assert_eq!(
        text(tcp("[::ffff:10.1.2.3]:1", "10.0.0.1:2")),
        "PROXY TCP4 10.1.2.3 10.0.0.1 1 2\r\n"
    );
    assert_eq!(text(ProxyHeader::Local), "PROXY UNKNOWN\r\n");
    assert_eq!(text(ProxyHeader::Unix), "PROXY UNKNOWN\r\n");
    whole(&encoded(ProxyHeader::Unix, V2), ProxyHeader::Unix);
    let longest = tcp(
        "[1111:2222:3333:4444:5555:6666:7777:8888]:65535",
        "[8888:7777:6666:5555:4444:3333:2222:1111]:65535",
    );
    assert!(encoded(longest, V1).len() <= PROXY_V1_BYTES_MAX);
}

fn address() -> impl Strategy<Value = SocketAddr> {
    let ip = prop_oneof![
        any::<[u8; 4]>().prop_map(IpAddr::from),
        any::<[u8; 16]>().prop_map(|it| IpAddr::from(it).to_canonical()),
    ];
    (ip, any::<u16>()).prop_map(|(ip, port)| SocketAddr::new(ip, port))
}

proptest! {
    #[test]
    fn round_trip(source in address(), destination in address()) {
        let tcp = ProxyHeader::Tcp { source, destination };
        for header in [tcp, ProxyHeader::Local] {
            for version in [ProxyVersion::V1, ProxyVersion::V2] {
                whole(&encoded(header, version), header);
            }
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>, begin in 0_u8..3) {
        let begin = [&b""[..], V1_BEGIN, V2_SIGNATURE][usize::from(begin)];
        let bytes = [begin, &bytes].concat();
        if let Ok(ProxyBytes::Whole { used, .. }) = ProxyHeader::decode(&bytes) {
            prop_assert!(used <= bytes.len());
        }
    }
}
