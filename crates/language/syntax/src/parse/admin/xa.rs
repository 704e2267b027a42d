//! XA transactions.

use crate::ast::{Association, Literal, Phases, Xa, Xid};
use crate::keyword::Keyword as K;
use crate::parse::cursor::{Cursor, Parsed};
use crate::token::Kind;

/// Bytes of a `gtrid` or `bqual`.
const PART_BYTES_MAX: usize = 64;
/// The largest `formatID` that MariaDB reads.
const FORMAT_ID_MAX: u64 = 0x7fff_ffff;
/// The `formatID` of an identifier without one.
const FORMAT_ID_DEFAULT: u32 = 1;

impl Cursor<'_> {
    /// What follows `XA`.
    pub(crate) fn xa(&mut self) -> Parsed<Xa> {
        let verb = self.eat_any(&[
            K::Start,
            K::Begin,
            K::End,
            K::Prepare,
            K::Commit,
            K::Rollback,
            K::Recover,
        ]);
        Ok(match verb {
            Some(K::Start | K::Begin) => {
                let xid = self.xid()?;
                let association = match self.eat_any(&[K::Join, K::Resume]) {
                    Some(K::Join) => Some(Association::Join),
                    Some(_) => Some(Association::Resume),
                    None => None,
                };
                Xa::Start { xid, association }
            }
            Some(K::End) => {
                let xid = self.xid()?;
                let suspend = self.eat(K::Suspend);
                if suspend && self.eat(K::For) {
                    self.expect(K::Migrate)?;
                }
                Xa::End { xid, suspend }
            }
            Some(K::Prepare) => Xa::Prepare(self.xid()?),
            Some(K::Commit) => {
                let xid = self.xid()?;
                let phases = if self.eat(K::One) {
                    self.expect(K::Phase)?;
                    Phases::One
                } else {
                    Phases::Two
                };
                Xa::Commit { xid, phases }
            }
            Some(K::Rollback) => Xa::Rollback(self.xid()?),
            Some(_) => {
                let format = if self.eat(K::Format) {
                    self.expect_kind(Kind::Equal)?;
                    Some(self.string()?)
                } else {
                    None
                };
                Xa::Recover { format }
            }
            None => return Err(self.fail()),
        })
    }

    /// `gtrid [, bqual [, formatID]]`.
    fn xid(&mut self) -> Parsed<Xid> {
        let global = self.xid_part()?;
        let mut branch = Vec::new();
        let mut format_id = FORMAT_ID_DEFAULT;
        if self.eat_kind(Kind::Comma) {
            branch = self.xid_part()?;
            if self.eat_kind(Kind::Comma) {
                format_id = self.format_id()?;
            }
        }
        Ok(Xid {
            global,
            branch,
            format_id,
        })
    }

    /// A string, or bytes in hexadecimal or binary digits.
    fn xid_part(&mut self) -> Parsed<Vec<u8>> {
        let bytes = match self.kind() {
            Kind::String => self.string()?,
            Kind::HexString | Kind::HexNumber | Kind::BitString | Kind::BitNumber => {
                match self.literal()? {
                    Some(Literal::Hex { value, .. } | Literal::Bit { value, .. }) => value,
                    _ => return Err(self.fail()),
                }
            }
            _ => return Err(self.fail()),
        };
        if PART_BYTES_MAX < bytes.len() {
            return Err(self.fail());
        }
        Ok(bytes)
    }

    fn format_id(&mut self) -> Parsed<u32> {
        let fail = self.fail();
        let number = match self.literal()? {
            Some(Literal::Integer(number)) => Some(number),
            Some(Literal::Hex { value, .. }) if value.len() <= 8 => {
                let digits = value.iter().map(|byte| u64::from(*byte));
                Some(digits.fold(0, |number, byte| number << 8 | byte))
            }
            _ => None,
        };
        let number = number.filter(|number| *number <= FORMAT_ID_MAX);
        number
            .and_then(|number| u32::try_from(number).ok())
            .ok_or(fail)
    }
}
