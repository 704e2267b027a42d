//! What tracing takes from outside: comments of statements, and replies of collectors.

use spans::{COMMENT_BYTES_MAX, Connection, Extent, Parent, REPLY_BYTES_MAX, read_reply};

use crate::choices::Choices;

/// Beginnings of values that are too long to be found by chance.
const VALUES: [&[u8]; 4] = [
    b"",
    b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    b"cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00-",
    b"00-0af7651916cd43dd8448eb211c80319c-",
];

/// A value by itself, and in the comments of a statement: what is read is written again.
pub(crate) fn run_traceparent(input: &[u8]) {
    let mut choices = Choices::new(input);
    let value = [VALUES[choices.below(VALUES.len())], choices.short()].concat();
    let (before, rest) = (choices.short(), choices.rest());
    let read = Parent::parse(&value);
    if let Some(parent) = read {
        let shown = parent.to_string();
        assert_eq!(Parent::parse(shown.as_bytes()), Some(parent));
        assert!(
            value.get(2..53) == shown.as_bytes().get(2..53),
            "the same ids"
        );
        let comment = format!("/*traceparent='{shown}'*/");
        let text = [comment.as_bytes(), rest].concat();
        assert_eq!(Parent::find(&text, Extent::Beginning), Some(parent));
        let text = [b"SELECT ", rest, comment.as_bytes()].concat();
        assert_eq!(Parent::find(&text, Extent::Whole), Some(parent));
    }
    // Any text; the middle of a long one changes nothing.
    let ends = [before, &value, rest].concat();
    let room = vec![b'a'; 2 * COMMENT_BYTES_MAX];
    let found = Parent::find(&ends, Extent::Beginning);
    if ends.len() <= COMMENT_BYTES_MAX {
        assert_eq!(
            Parent::find(&[&*ends, &room].concat(), Extent::Whole),
            found
        );
    }
}

/// Beginnings of replies.
const REPLIES: [&[u8]; 4] = [
    b"",
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: ",
    b"HTTP/1.0 202 Accepted\r\n\r\n",
];

/// A reply as it comes in pieces: what was decided stays so.
pub(crate) fn run_reply(input: &[u8]) {
    let mut choices = Choices::new(input);
    let reply = [REPLIES[choices.below(REPLIES.len())], choices.rest()].concat();
    let reply = reply.get(..REPLY_BYTES_MAX).unwrap_or(&reply);
    let mut decided: Option<Result<Vec<u8>, String>> = None;
    // A little more each time. Each byte alone would cost the square.
    let step = 1 + reply.len() / 128;
    for end in (0..reply.len()).step_by(step).chain([reply.len()]) {
        let head = reply.get(..end).unwrap_or_default();
        let read = read_reply(head, Connection::Open).map_err(|it| it.to_string());
        if let Ok(Some(body)) = &read {
            assert!(body.len() < head.len());
        }
        let read = read.transpose();
        if decided.is_some() {
            assert_eq!(read, decided, "at {end}");
        }
        decided = read;
    }
    let over = read_reply(reply, Connection::Closed).map_err(|it| it.to_string());
    assert!(over != Ok(None), "there is no more to come");
    if let Some(decided) = decided {
        assert_eq!(over.transpose(), Some(decided));
    }
}
