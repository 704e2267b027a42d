//! Stores into text, binary, ENUM and SET columns.

use std::borrow::Cow;

use errcode::ER_TRUNCATED_WRONG_VALUE_FOR_FIELD;

use super::Store;
use super::fitted::fitted;
use crate::number::{Integer, parse_integer};
use crate::{Charset, SqlCondition, TypeKind, Value, ValueRef};

impl Store<'_> {
    pub(super) fn text(&mut self, value: ValueRef<'_>) -> Result<Value, SqlCondition> {
        let text = value.to_text(self.from).unwrap_or_default();
        let is_text = matches!(value, ValueRef::Bytes(_));
        let from = if is_text {
            self.from.charset()
        } else {
            Charset::Ascii
        };
        let text = match (value, self.width()) {
            (ValueRef::Double(number), Some(width)) if width < text.len() => {
                let (text, is_lost) = fitted(number, width);
                if is_lost {
                    self.too_long()?;
                }
                Cow::Owned(text.into_bytes())
            }
            _ => text,
        };
        let text = self.converted(text, from)?;
        self.fitted(text)
    }

    /// The column's width in characters, if a number may be longer.
    fn width(&self) -> Option<usize> {
        let is_short = matches!(
            self.to.kind,
            TypeKind::Char | TypeKind::VarChar | TypeKind::Binary | TypeKind::VarBinary
        );
        is_short.then(|| stdx::to_usize(self.to.length))
    }

    /// The text in the column's character set. Ill-formed or missing characters are an error or
    /// warning and become `?`.
    fn converted<'t>(
        &mut self,
        text: Cow<'t, [u8]>,
        from: Charset,
    ) -> Result<Cow<'t, [u8]>, SqlCondition> {
        let to = self.to.charset();
        if to == Charset::Binary || text.is_ascii() || (from == to && to.is_valid(&text)) {
            return Ok(text);
        }
        // Text of the same set is checked for ill-formed bytes as binary text is.
        let source = if from == to { Charset::Binary } else { from };
        let mut out = Vec::with_capacity(text.len());
        let replaced = to.append_converted(source, &text, &mut out);
        if replaced > 0 {
            let from = if source == Charset::Binary {
                to
            } else {
                source
            };
            let bad = first_unconverted(to, from, &text);
            self.incorrect_string(text.get(bad..).unwrap_or(&[]))?;
        }
        Ok(Cow::Owned(out))
    }

    /// `Incorrect string value: '\xE6\x97\xA5' for column ...`
    fn incorrect_string(&mut self, rest: &[u8]) -> Result<(), SqlCondition> {
        let shown: Vec<u8> = rest
            .iter()
            .take(6)
            .flat_map(|byte| escaped(*byte))
            .collect();
        let mut shown = shown;
        if rest.len() > 6 {
            shown.extend_from_slice(b"...");
        }
        self.incorrect(ER_TRUNCATED_WRONG_VALUE_FOR_FIELD, "string", &shown)
    }

    fn fitted(&mut self, text: Cow<'_, [u8]>) -> Result<Value, SqlCondition> {
        let length = stdx::to_usize(self.to.length);
        let by_chars = matches!(self.to.kind, TypeKind::Char | TypeKind::VarChar);
        let charset = self.to.charset();
        let room = if by_chars {
            charset.prefix(&text, length).len()
        } else {
            length
        };
        let mut text = text.into_owned();
        if text.len() > room {
            let cut = if by_chars {
                room
            } else {
                whole_chars(charset, &text, room)
            };
            let blank = charset != Charset::Binary && text[cut..].iter().all(|byte| *byte == b' ');
            if !blank {
                self.too_long()?;
            } else if self.to.kind != TypeKind::Char {
                self.note_truncated();
            }
            text.truncate(cut);
        }
        match self.to.kind {
            // CHAR drops trailing blanks: readers do not see them.
            TypeKind::Char if !self.to.is_binary() => {
                let blanks = text.iter().rev().take_while(|byte| **byte == b' ').count();
                text.truncate(text.len() - blanks);
            }
            TypeKind::Binary => text.resize(length, 0),
            TypeKind::Char => text.resize(length, 0),
            _ => {}
        }
        Ok(Value::Bytes(text))
    }

    pub(super) fn member(&mut self, value: ValueRef<'_>) -> Result<Value, SqlCondition> {
        let count = self.to.members().len() as u64;
        let index = match value {
            ValueRef::Bytes(text) => self.member_of_text(text),
            _ if value.to_f64(&mut crate::Warnings::new(0)) == Some(0.0) => {
                self.data_truncated()?;
                return Ok(Value::UInt(0));
            }
            ValueRef::Date(_) | ValueRef::Time(_) | ValueRef::DateTime(_) => None,
            _ => truncated_integer(value).filter(|index| (1..=count).contains(index)),
        };
        match index {
            Some(index) => Ok(Value::UInt(index)),
            None => {
                self.data_truncated()?;
                Ok(Value::UInt(0))
            }
        }
    }

    fn member_of_text(&self, text: &[u8]) -> Option<u64> {
        let text = self.compared(text);
        let collation = self.to.collation;
        let found = self
            .to
            .members()
            .iter()
            .position(|name| collation.equal(name, &text));
        if let Some(position) = found {
            return Some(position as u64 + 1);
        }
        let parsed = parse_integer(&text);
        let count = self.to.members().len() as u64;
        match parsed.value {
            Integer::Unsigned(index) if parsed.whole && (1..=count).contains(&index) => Some(index),
            _ => None,
        }
    }

    /// A name in the column's character set, for comparison with its members.
    fn compared<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        let (from, to) = (self.from.charset(), self.to.charset());
        if from == to || from == Charset::Binary || text.is_ascii() {
            return Cow::Borrowed(text);
        }
        let mut out = Vec::with_capacity(text.len());
        to.append_converted(from, text, &mut out);
        Cow::Owned(out)
    }

    pub(super) fn members(&mut self, value: ValueRef<'_>) -> Result<Value, SqlCondition> {
        let count = self.to.members().len().clamp(1, 64);
        let all = u64::MAX >> (64 - count);
        let ValueRef::Bytes(text) = value else {
            let temporal = matches!(
                value,
                ValueRef::Date(_) | ValueRef::Time(_) | ValueRef::DateTime(_)
            );
            if temporal {
                self.data_truncated()?;
                return Ok(Value::UInt(0));
            }
            return self.masked(truncated_integer(value).unwrap_or(u64::MAX), all);
        };
        let text = self.compared(text);
        if text.is_empty() {
            return Ok(Value::UInt(0));
        }
        let collation = self.to.collation;
        let mut mask = 0;
        let mut unknown = false;
        for part in text.split(|byte| *byte == b',') {
            match self
                .to
                .members()
                .iter()
                .position(|name| collation.equal(name, part))
            {
                Some(bit) => mask |= 1u64 << bit.min(63),
                None => unknown = true,
            }
        }
        if unknown {
            let parsed = parse_integer(&text);
            if parsed.whole && !parsed.overflow {
                return self.masked(parsed.value.bits(), all);
            }
            self.data_truncated()?;
        }
        Ok(Value::UInt(mask))
    }

    fn masked(&mut self, number: u64, all: u64) -> Result<Value, SqlCondition> {
        if number > all {
            self.data_truncated()?;
        }
        Ok(Value::UInt(number & all))
    }
}

/// The integer part of a number, as ENUM and SET use it.
fn truncated_integer(value: ValueRef<'_>) -> Option<u64> {
    let number = value.to_decimal(&mut crate::Warnings::new(0))?;
    let whole = number.round(0, crate::decimal::Rounding::Truncate).ok()?;
    if whole.is_negative() {
        return whole.to_i64().ok().map(i64::cast_unsigned);
    }
    whole.to_u64().ok()
}

/// The most bytes up to `room` that end after a whole character.
fn whole_chars(charset: Charset, text: &[u8], room: usize) -> usize {
    let mut end = 0;
    for length in charset.char_lengths(text) {
        if end + length > room {
            break;
        }
        end += length;
    }
    end
}

/// The position of the first character that cannot be converted.
fn first_unconverted(to: Charset, from: Charset, text: &[u8]) -> usize {
    let mut at = 0;
    let mut scratch = Vec::with_capacity(4);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        scratch.clear();
        match from.decode(rest) {
            Some((code, length)) if to.encode(code, &mut scratch) => at += length,
            _ => return at,
        }
    }
    at
}

/// A byte as error messages show it.
fn escaped(byte: u8) -> Vec<u8> {
    if (0x20..0x7F).contains(&byte) {
        vec![byte]
    } else {
        format!("\\x{byte:02X}").into_bytes()
    }
}
