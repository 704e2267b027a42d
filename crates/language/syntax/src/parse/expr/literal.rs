//! Constants.

use crate::ast::{Expr, ExprKind, Literal, TemporalKind};
use crate::parse::cursor::{Cursor, Parsed};
use crate::token::{self, Kind, Span, Token};

/// The character sets that may introduce a string, MariaDB's `SHOW CHARACTER SET`.
const CHARSETS: [&str; 42] = [
    "armscii8", "ascii", "big5", "binary", "cp1250", "cp1251", "cp1256", "cp1257", "cp850",
    "cp852", "cp866", "cp932", "dec8", "eucjpms", "euckr", "filename", "gb2312", "gbk", "geostd8",
    "greek", "hebrew", "hp8", "keybcs2", "koi8r", "koi8u", "latin1", "latin2", "latin5", "latin7",
    "macce", "macroman", "sjis", "swe7", "tis620", "ucs2", "ujis", "utf16", "utf16le", "utf32",
    "utf8", "utf8mb3", "utf8mb4",
];

impl Cursor<'_> {
    /// A constant, if the next token starts one.
    #[inline(never)]
    pub(crate) fn literal(&mut self) -> Parsed<Option<Literal>> {
        let token = self.peek();
        let literal = match token.kind {
            Kind::String => self.joined_string(None),
            Kind::NationalString => {
                self.bump();
                let quoted = self.text(token.span).get(1..).unwrap_or_default();
                let mut value = token::string_value(quoted, self.mode).into_owned();
                self.join_strings(&mut value);
                Literal::String {
                    value,
                    charset: Some("utf8".to_owned()),
                }
            }
            Kind::Integer | Kind::Decimal | Kind::Float => {
                self.bump();
                number(token.kind, &String::from_utf8_lossy(self.text(token.span)))
            }
            Kind::HexString | Kind::HexNumber | Kind::BitString | Kind::BitNumber => {
                self.bump();
                digits(token.kind, self.text(token.span), None)
            }
            Kind::Word => match self.introducer(token) {
                Some(charset) => {
                    self.bump();
                    self.introduced(charset)?
                }
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        Ok(Some(literal))
    }

    fn joined_string(&mut self, charset: Option<String>) -> Literal {
        let token = self.bump();
        let mut value = token::string_value(self.text(token.span), self.mode).into_owned();
        self.join_strings(&mut value);
        Literal::String { value, charset }
    }

    /// Adjacent strings are one.
    fn join_strings(&mut self, value: &mut Vec<u8>) {
        while self.kind() == Kind::String {
            let token = self.bump();
            value.extend_from_slice(&token::string_value(self.text(token.span), self.mode));
        }
    }

    /// The character set that `_name` before a string names.
    fn introducer(&mut self, token: Token) -> Option<String> {
        let name = self
            .text(token.span)
            .strip_prefix(b"_")?
            .to_ascii_lowercase();
        let name = String::from_utf8(name).ok()?;
        let is_before_string = matches!(
            self.kind_at(1),
            Kind::String | Kind::HexString | Kind::HexNumber | Kind::BitString | Kind::BitNumber
        );
        (is_before_string && CHARSETS.contains(&name.as_str())).then_some(name)
    }

    fn introduced(&mut self, charset: String) -> Parsed<Literal> {
        let token = self.peek();
        if token.kind == Kind::String {
            return Ok(self.joined_string(Some(charset)));
        }
        self.bump();
        Ok(digits(token.kind, self.text(token.span), Some(charset)))
    }

    /// `DATE '..'`; the word has been seen before a string.
    pub(crate) fn temporal(&mut self, kind: TemporalKind, start: Span) -> Parsed<Expr> {
        let text = String::from_utf8_lossy(&self.string()?).into_owned();
        let span = self.span_from(start);
        Ok(Expr {
            kind: ExprKind::Literal(Literal::Temporal { kind, text }),
            span,
        })
    }
}

fn number(kind: Kind, text: &str) -> Literal {
    match kind {
        Kind::Integer => match text.parse() {
            Ok(value) => Literal::Integer(value),
            Err(_) => Literal::Decimal(text.to_owned()),
        },
        Kind::Decimal => Literal::Decimal(text.to_owned()),
        _ => Literal::Float(text.to_owned()),
    }
}

/// The bytes of hexadecimal or binary digits, right-aligned.
fn digits(kind: Kind, text: &[u8], charset: Option<String>) -> Literal {
    let is_number = matches!(kind, Kind::HexNumber | Kind::BitNumber);
    let body = text.get(2..).unwrap_or_default();
    let body = if is_number {
        body
    } else {
        body.strip_suffix(b"'").unwrap_or(body)
    };
    if matches!(kind, Kind::HexString | Kind::HexNumber) {
        let value = pack(body, 4);
        return Literal::Hex {
            value,
            is_number,
            charset,
        };
    }
    Literal::Bit {
        value: pack(body, 1),
        charset,
    }
}

/// Packs digits of `bits` bits each into bytes, from the right.
fn pack(digits: &[u8], bits: u32) -> Vec<u8> {
    let per_byte = if bits == 4 { 2 } else { 8 };
    let bytes = digits.rchunks(per_byte).map(|chunk| {
        let values = chunk
            .iter()
            .map(|&digit| char::from(digit).to_digit(16).unwrap_or(0));
        let byte = values.fold(0_u32, |byte, value| (byte << bits) | value);
        u8::try_from(byte).unwrap_or(u8::MAX)
    });
    let mut bytes: Vec<u8> = bytes.collect();
    bytes.reverse();
    bytes
}
