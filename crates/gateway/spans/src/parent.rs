//! [`Parent`]: the span of the application that a statement belongs to, as its text tells.
//!
//! Applications add a comment by the rules of sqlcommenter. One of its keys has the value of W3C's
//! header `traceparent`:
//!
//! ```text
//! SELECT 1 /*action='buy',traceparent='00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'*/
//! ```
//!
//! The comment stands behind the statement, or before it. Comments in its middle are not looked at:
//! to tell them from literals would take a lexer. A text that begins or ends as a comment does has
//! a comment there, or is not a statement.

use std::fmt;

use crate::span::{SpanId, TraceId};

/// Bytes that are looked at, at either end of a text. A comment of sqlcommenter has some hundred.
pub const COMMENT_BYTES_MAX: usize = 1 << 10;

/// See the module's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parent {
    /// The trace that it is a part of.
    pub trace: TraceId,
    /// The span of the application.
    pub span: SpanId,
    /// The application records its span.
    pub is_sampled: bool,
}

/// How much of a text is at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    Whole,
    /// Its beginning. It may end in a literal.
    Beginning,
}

const KEY: &[u8] = b"traceparent";

/// Bytes of a value: a version, the two ids and the flags.
const VALUE_BYTES: usize = 2 + 1 + 32 + 1 + 16 + 1 + 2;

/// W3C's flag of a span that is recorded.
const SAMPLED: u8 = 1;

impl Parent {
    /// The parent that a text tells of.
    pub fn find(text: &[u8], extent: Extent) -> Option<Parent> {
        before(text).or_else(|| match extent {
            Extent::Whole => behind(text),
            Extent::Beginning => None,
        })
    }

    /// Reads the value of `traceparent`.
    pub fn parse(value: &[u8]) -> Option<Parent> {
        let (known, more) = value.split_at_checked(VALUE_BYTES)?;
        let mut parts = known.split(|byte| *byte == b'-');
        let [version] = read_hex(parts.next()?)?;
        let trace = read_hex(parts.next()?)?;
        let span = read_hex(parts.next()?)?;
        let [flags] = read_hex(parts.next()?)?;
        // Later versions may append what is not known here. The last one is not allowed.
        let is_known = match version {
            0 => more.is_empty(),
            u8::MAX => false,
            _ => more.first().is_none_or(|byte| *byte == b'-'),
        };
        let has_ids = trace != [0; 16] && span != [0; 8];
        (is_known && has_ids && parts.next().is_none()).then_some(Parent {
            trace: TraceId(trace),
            span: SpanId(span),
            is_sampled: flags & SAMPLED != 0,
        })
    }
}

impl fmt::Display for Parent {
    /// As the value of `traceparent`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parent { trace, span, .. } = self;
        write!(f, "00-{trace}-{span}-{:02x}", u8::from(self.is_sampled))
    }
}

/// Of the comments before the statement.
fn before(text: &[u8]) -> Option<Parent> {
    let mut rest = text.get(..COMMENT_BYTES_MAX).unwrap_or(text);
    loop {
        let inside = rest.trim_ascii_start().strip_prefix(b"/*")?;
        let end = inside.windows(2).position(|it| it == b"*/")?;
        let (comment, more) = inside.split_at_checked(end)?;
        if let Some(parent) = in_comment(comment) {
            return Some(parent);
        }
        rest = more.get(2..)?;
    }
}

/// Of the comments behind it.
fn behind(text: &[u8]) -> Option<Parent> {
    let from = text.len().saturating_sub(COMMENT_BYTES_MAX);
    let mut rest = text.get(from..)?;
    loop {
        while let [more @ .., b';' | b' ' | b'\t' | b'\r' | b'\n'] = rest {
            rest = more;
        }
        let inside = rest.strip_suffix(b"*/")?;
        let begin = inside.windows(2).rposition(|it| it == b"/*")?;
        let (more, comment) = inside.split_at_checked(begin)?;
        if let Some(parent) = comment.get(2..).and_then(in_comment) {
            return Some(parent);
        }
        rest = more;
    }
}

fn in_comment(comment: &[u8]) -> Option<Parent> {
    // Such a comment is a part of the statement.
    if comment.starts_with(b"!") || comment.starts_with(b"M!") {
        return None;
    }
    let places = comment.windows(KEY.len()).enumerate();
    let places = places.filter(|(_, it)| *it == KEY).map(|(at, _)| at);
    places
        .filter_map(|at| comment.split_at_checked(at))
        .find_map(|(before, found)| {
            let last = before.last();
            let is_key = last.is_none_or(|byte| *byte == b',' || byte.is_ascii_whitespace());
            let value = value(found.get(KEY.len()..)?).filter(|_| is_key)?;
            Parent::parse(value)
        })
}

/// The value behind a key. Some programs leave out its quotes.
fn value(behind_key: &[u8]) -> Option<&[u8]> {
    let value = behind_key.trim_ascii_start().strip_prefix(b"=")?;
    let value = value.trim_ascii_start();
    let value = match value {
        [b'\'' | b'"', value @ ..] => value,
        _ => value,
    };
    let is_end =
        |byte: &u8| matches!(byte, b'\'' | b'"' | b',' | b'\\') || byte.is_ascii_whitespace();
    value.split(is_end).next()
}

/// Digits of lower case, as W3C wants them.
fn read_hex<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    let (pairs, rest) = text.as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn parent() -> Parent {
        Parent::parse(VALUE.as_bytes()).expect("a value of W3C's examples")
    }

    #[test]
    fn a_value_is_read_and_shown() {
        assert!(parent().is_sampled);
        assert_eq!(parent().to_string(), VALUE);
        let unsampled = VALUE.replace("-01", "-00");
        let read = Parent::parse(unsampled.as_bytes()).unwrap();
        assert!(!read.is_sampled);
        assert_eq!(read.to_string(), unsampled);
        // Other flags say nothing of it.
        let flags = |flags: &str| Parent::parse(VALUE.replace("-01", flags).as_bytes());
        assert!(flags("-03").unwrap().is_sampled);
        assert!(!flags("-fe").unwrap().is_sampled);
        // A later version.
        assert_eq!(
            Parent::parse(VALUE.replace("00-", "cc-").as_bytes()),
            Some(parent())
        );
        let longer = VALUE.replace("00-", "cc-") + "-what-comes";
        assert_eq!(Parent::parse(longer.as_bytes()), Some(parent()));
    }

    #[test]
    fn what_is_no_value_has_no_parent() {
        for value in [
            "",
            "00",
            &VALUE[..54],
            &format!("{VALUE}0"),
            &format!("{VALUE}-"),
            &VALUE.replace("00-", "ff-"),
            &VALUE.replace("00-", "0G-"),
            &VALUE.replace("00-", "00_"),
            &VALUE.replace("af", "AF"),
            &VALUE.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            &VALUE.replace("b7ad6b7169203331", &"0".repeat(16)),
            &VALUE.replace(
                "0af7651916cd43dd8448eb211c80319c-",
                "0af7651916cd43dd-8448eb211c80319c",
            ),
            &(VALUE.replace("00-", "cc-") + "what"),
        ] {
            assert_eq!(Parent::parse(value.as_bytes()), None, "{value}");
        }
    }

    #[test]
    fn comments_at_both_ends_are_looked_at() {
        for text in [
            "SELECT 1 /*traceparent='{}'*/",
            "SELECT 1 /*action='%2Fbuy',traceparent='{}',tracestate='a%3Db'*/",
            "SELECT 1 /* action='buy', traceparent = '{}' */ ; \n",
            "SELECT 1 /*traceparent={}*/",
            "SELECT 1 /*traceparent=\"{}\"*/",
            "SELECT 1 /*traceparent='{}'*/ /*app='shop'*/",
            "/*traceparent='{}'*/SELECT 1",
            " /* plateau: route=replica */ /*traceparent='{}'*/ SELECT 1",
            "SELECT '/*' /*traceparent='{}'*/",
            "SELECT 1 /*traceparent='wrong',traceparent='{}'*/",
        ] {
            let found = Parent::find(text.replace("{}", VALUE).as_bytes(), Extent::Whole);
            assert_eq!(found, Some(parent()), "{text}");
        }
        for text in [
            "SELECT '/*traceparent={}*/'",
            "SELECT 1 /*traceparent='{}'*/ FROM DUAL",
            "SELECT 1 /*notraceparent='{}'*/",
            "SELECT 1 /*traceparenttraceparent='{}'*/",
            "SELECT 1 /*traceparent '{}'*/",
            "SELECT 1 -- traceparent='{}'",
            "/*!SELECT 'traceparent={}' */",
            "/*M!SELECT 'traceparent={}' */",
            "/*traceparent='{}'",
            "*/",
            "/**/",
            "/*/",
            "/*traceparent",
            "/*traceparent=*/",
        ] {
            let found = Parent::find(text.replace("{}", VALUE).as_bytes(), Extent::Whole);
            assert_eq!(found, None, "{text}");
        }
    }

    #[test]
    fn a_text_that_goes_on_may_end_in_a_literal() {
        let comment = format!("/*traceparent='{VALUE}'*/");
        let end = format!("INSERT INTO t VALUES ('{comment}");
        assert!(Parent::find(end.as_bytes(), Extent::Whole).is_some());
        assert_eq!(Parent::find(end.as_bytes(), Extent::Beginning), None);
        let begin = format!("{comment} INSERT INTO t VALUES ('a");
        assert_eq!(
            Parent::find(begin.as_bytes(), Extent::Beginning),
            Some(parent())
        );
    }

    #[test]
    fn no_more_is_looked_at_than_a_comment_has() {
        let comment = format!("/*traceparent='{VALUE}'*/");
        for (space, found) in [(0, true), (1, false)] {
            let room = COMMENT_BYTES_MAX - comment.len() + space;
            let text = format!("{}{comment}SELECT 1", " ".repeat(room));
            assert_eq!(
                Parent::find(text.as_bytes(), Extent::Whole).is_some(),
                found
            );
            let text = format!("SELECT 1{comment}{}", " ".repeat(room));
            assert_eq!(
                Parent::find(text.as_bytes(), Extent::Whole).is_some(),
                found
            );
        }
    }
}
