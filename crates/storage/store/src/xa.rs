//! Transactions that survive a crash and wait for a decision: the first phase of XA.
//!
//! The terms are those of the X/Open specification "Distributed Transaction Processing: The XA
//! Specification" (C193).

use std::fmt;

/// Bytes that `gtrid` and `bqual` may have each.
pub const XID_PART_BYTES_MAX: usize = 64;

/// The identifier of an XA transaction: a branch of a global transaction.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Xid {
    format_id: u32,
    global: Box<[u8]>,
    branch: Box<[u8]>,
}

impl Xid {
    /// An identifier, or `None` if `global` is empty or a part is too long.
    pub fn new(format_id: u32, global: &[u8], branch: &[u8]) -> Option<Self> {
        let is_short = |part: &[u8]| part.len() <= XID_PART_BYTES_MAX;
        (!global.is_empty() && is_short(global) && is_short(branch)).then(|| Self {
            format_id,
            global: global.into(),
            branch: branch.into(),
        })
    }

    /// `formatID`.
    pub fn format_id(&self) -> u32 {
        self.format_id
    }

    /// `gtrid`: which global transaction.
    pub fn global(&self) -> &[u8] {
        &self.global
    }

    /// `bqual`: which branch of it.
    pub fn branch(&self) -> &[u8] {
        &self.branch
    }
}

/// As XA statements write it.
impl fmt::Display for Xid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |f: &mut fmt::Formatter<'_>, bytes: &[u8]| {
            f.write_str("X'")?;
            for byte in bytes {
                write!(f, "{byte:02x}")?;
            }
            f.write_str("'")
        };
        part(f, &self.global)?;
        f.write_str(",")?;
        part(f, &self.branch)?;
        write!(f, ",{}", self.format_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_xid_has_a_global_part_and_parts_of_at_most_64_bytes() {
        let long = [b'a'; XID_PART_BYTES_MAX + 1];
        let longest = &long[1..];
        assert_eq!(Xid::new(1, b"", b"b"), None);
        assert_eq!(Xid::new(1, &long, b""), None);
        assert_eq!(Xid::new(1, b"a", &long), None);
        let xid = Xid::new(9, longest, longest).expect("both parts are as long as allowed");
        assert_eq!(
            (xid.global(), xid.branch(), xid.format_id()),
            (longest, longest, 9)
        );
        let xid = Xid::new(7, b"a\n", b"").expect("it is short");
        assert_eq!(xid.to_string(), "X'610a',X'',7");
    }
}
