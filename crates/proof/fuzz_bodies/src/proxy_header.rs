//! Headers of the PROXY protocol, whole and as they come byte by byte.

use wire::{PROXY_V2_BYTES_MAX, ProxyBytes, ProxyHeader, ProxyVersion};

use crate::choices::Choices;

/// Beginnings that are too long to be found by chance.
const BEGINS: [&[u8]; 4] = [
    b"",
    b"PROXY TCP4 ",
    b"PROXY TCP6 ",
    b"\r\n\r\n\0\r\nQUIT\n\x21",
];

pub(crate) fn run(input: &[u8]) {
    let mut choices = Choices::new(input);
    let begin = BEGINS[choices.below(BEGINS.len())];
    let bytes = [begin, choices.rest()].concat();
    let found = ProxyHeader::decode(&bytes);
    let mut pieces = (0..=bytes.len()).map(|end| bytes.get(..end).expect("it is inside"));
    let decided = pieces
        .by_ref()
        .map(ProxyHeader::decode)
        .find(|it| *it != Ok(ProxyBytes::Incomplete));
    assert_eq!(decided.unwrap_or(Ok(ProxyBytes::Incomplete)), found);
    let ProxyBytes::Whole { header, used } = found.unwrap_or(ProxyBytes::Other) else {
        return;
    };
    assert!(used <= bytes.len().min(PROXY_V2_BYTES_MAX));
    for version in [ProxyVersion::V1, ProxyVersion::V2] {
        let mut out = Vec::new();
        header.encode(version, &mut out);
        let header = match (header, version) {
            (ProxyHeader::Unix, ProxyVersion::V1) => ProxyHeader::Local,
            (header, _) => header,
        };
        let used = out.len();
        let again = ProxyBytes::Whole { header, used };
        assert_eq!(ProxyHeader::decode(&out), Ok(again));
    }
}
