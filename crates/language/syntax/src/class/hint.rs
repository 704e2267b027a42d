//! [`Hint`]: what a comment asks of the gateway.
//!
//! ```text
//! /* plateau: server=db1 */ SELECT 1        SELECT /* plateau: route=primary */ 1
//! -- plateau: route=replica, max_lag=500    # plateau: pin
//! ```
//!
//! Only the first comment is looked at, and only if it begins within [`PLACE_MAX`] bytes: other
//! statements cost a search in these. What cannot be understood is told, and fails no statement.

use thiserror::Error;

/// Where the comment begins at the latest: behind the first words.
pub const PLACE_MAX: usize = 64;

/// Longest comment that is read.
pub const COMMENT_BYTES_MAX: usize = 256;

/// How a hint begins.
const MARK: &[u8] = b"plateau:";

/// See the module's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hint<'a> {
    /// `server=NAME`: where the statement goes, whatever it is.
    pub server: Option<&'a str>,
    /// `route=primary` or `route=replica`.
    pub route: Option<HintRoute>,
    /// `max_lag=MS`: how far a replica may be behind.
    pub max_lag_ms: Option<u64>,
    /// `pin`: the session stays at this statement's server.
    pub pins: bool,
}

/// Where a hint sends a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HintRoute {
    /// To the primary.
    Primary,
    /// To a replica, if it is known to be a read.
    Replica,
}

/// Why a comment is no hint, though it begins as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HintError {
    /// It is too long, or does not end, or has other than UTF-8.
    #[error("the hint does not end, or is too long")]
    Unreadable,
    /// A part is none of the known ones.
    #[error("part {place} of the hint is not known")]
    UnknownPart {
        /// From 1.
        place: usize,
    },
}

/// The hint of a text. `None` if it has none.
#[must_use]
pub fn find_hint(text: &[u8]) -> Option<Result<Hint<'_>, HintError>> {
    let comment = first_comment(text)?;
    let inner = comment.trim_ascii_start();
    let mark = inner.get(..MARK.len())?;
    if !mark.eq_ignore_ascii_case(MARK) {
        return None;
    }
    Some(read(inner.get(MARK.len()..).unwrap_or_default()))
}

/// What stands behind the sign of the first comment.
fn first_comment(text: &[u8]) -> Option<&[u8]> {
    let text = text.trim_ascii_start();
    let line = text
        .strip_prefix(b"-- ")
        .or_else(|| text.strip_prefix(b"#"));
    if let Some(line) = line {
        let end = line.iter().position(|byte| *byte == b'\n');
        return line.get(..end.unwrap_or(line.len()));
    }
    let head = text.get(..PLACE_MAX + 2).unwrap_or(text);
    let at = head.windows(2).position(|pair| pair == b"/*")?;
    let behind = text.get(at + 2..).unwrap_or_default();
    let window = behind.get(..COMMENT_BYTES_MAX + 2).unwrap_or(behind);
    let end = window.windows(2).position(|pair| pair == b"*/");
    // Without an end in reach, more than may be read is left to be refused.
    behind.get(..end.unwrap_or(window.len()))
}

fn read(parts: &[u8]) -> Result<Hint<'_>, HintError> {
    if COMMENT_BYTES_MAX < parts.len() + MARK.len() {
        return Err(HintError::Unreadable);
    }
    let parts = std::str::from_utf8(parts).map_err(|_| HintError::Unreadable)?;
    let mut hint = Hint::default();
    for (place, part) in (1..).zip(parts.split(',')) {
        let part = part.trim();
        let unknown = HintError::UnknownPart { place };
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let (name, value) = (name.trim(), value.trim());
        let is = |word: &str| name.eq_ignore_ascii_case(word);
        if is("server") && !value.is_empty() {
            hint.server = Some(value);
        } else if is("route") && value.eq_ignore_ascii_case("primary") {
            hint.route = Some(HintRoute::Primary);
        } else if is("route") && value.eq_ignore_ascii_case("replica") {
            hint.route = Some(HintRoute::Replica);
        } else if is("max_lag") {
            hint.max_lag_ms = Some(value.parse().map_err(|_| unknown)?);
        } else if is("pin") && value.is_empty() {
            hint.pins = true;
        } else {
            return Err(unknown);
        }
    }
    Ok(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<Result<Hint<'_>, HintError>> {
        find_hint(text.as_bytes())
    }

    #[test]
    fn a_hint_is_the_first_comment() {
        let server = Hint {
            server: Some("db1"),
            ..Hint::default()
        };
        for text in [
            "/* plateau: server=db1 */ SELECT 1",
            " SELECT /*PLATEAU: Server = db1*/ 1",
            "-- plateau: server=db1\nSELECT 1",
            "# plateau: server=db1\nSELECT 1",
        ] {
            assert_eq!(found(text), Some(Ok(server)), "{text}");
        }
        let all = Hint {
            server: None,
            route: Some(HintRoute::Replica),
            max_lag_ms: Some(500),
            pins: true,
        };
        let text = "/* plateau: route=replica, max_lag=500, pin */ SELECT 1";
        assert_eq!(found(text), Some(Ok(all)));
        let primary = "SELECT 1 -- /* plateau: route=primary */";
        assert_eq!(
            found(primary).unwrap().unwrap().route,
            Some(HintRoute::Primary)
        );
        for text in [
            "",
            "SELECT 1",
            "/* a */ SELECT /* plateau: pin */ 1",
            "/* plateau */",
            "/*",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_understood_is_told() {
        let unknown = |place| Some(Err(HintError::UnknownPart { place }));
        assert_eq!(found("/* plateau: sever=db1 */"), unknown(1));
        assert_eq!(found("/* plateau: pin, route=left */"), unknown(2));
        assert_eq!(found("/* plateau: max_lag=-1 */"), unknown(1));
        assert_eq!(found("/* plateau: max_lag */"), unknown(1));
        assert_eq!(found("/* plateau: server= */"), unknown(1));
        assert_eq!(found("/* plateau: */"), unknown(1));
        assert_eq!(
            find_hint(b"/* plateau: server=\xff */"),
            Some(Err(HintError::Unreadable))
        );
    }

    #[test]
    fn place_and_length_are_bounded() {
        let at = |place: usize| format!("{}/* plateau: pin */", "x".repeat(place));
        for place in [PLACE_MAX - 1, PLACE_MAX] {
            assert!(found(&at(place)).is_some(), "{place}");
        }
        assert_eq!(found(&at(PLACE_MAX + 1)), None);
        let frame = "plateau:server=".len();
        let of_bytes = |bytes: usize| format!("/*plateau:server={}*/", "x".repeat(bytes - frame));
        for bytes in [COMMENT_BYTES_MAX - 1, COMMENT_BYTES_MAX] {
            assert!(found(&of_bytes(bytes)).unwrap().is_ok(), "{bytes}");
        }
        let long = of_bytes(COMMENT_BYTES_MAX + 1);
        assert_eq!(found(&long), Some(Err(HintError::Unreadable)));
    }
}
