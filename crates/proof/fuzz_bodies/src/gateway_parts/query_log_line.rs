//! Lines of the query log, of any bytes: each is one object that a strict reader of JSON takes, and
//! says what it was made of.

use std::time::Duration;

use query_log::{Line, Route, Session, TEXT_BYTES_MAX, Why};
use serde_json::Value;

use crate::choices::Choices;

pub(crate) fn run(input: &[u8]) {
    let mut choices = Choices::new(input);
    let user = String::from_utf8_lossy(choices.short()).into_owned();
    let schema = String::from_utf8_lossy(choices.short()).into_owned();
    let text_bytes_max = choices.below(64);
    let number = choices.u64();
    let text = choices.rest();
    let session = Session {
        id: choices.u32(),
        user: &user,
        client: &schema,
        service: &user,
    };
    let session = session.render();
    let line = Line {
        session: &session,
        schema: Some(&schema),
        server: None,
        digest: Some(number),
        text: Some((text, text.len())),
        is_prepared: number.is_multiple_of(2),
        time: Duration::from_nanos(number),
        rows_sent: number,
        rows_affected: 0,
        error: None,
        is_in_transaction: false,
        route: Route::default(),
        why: Why::Slow,
    };
    for bytes_max in [text_bytes_max, TEXT_BYTES_MAX] {
        let mut out = Vec::new();
        line.append(|out| out.push(b'0'), bytes_max, &mut out);
        let (last, before) = out.split_last().expect("it has an end");
        assert!(*last == b'\n' && before.iter().all(|byte| b' ' <= *byte));
        let read: Value = serde_json::from_slice(before).expect("an object");
        assert_eq!(read["user"], *user);
        assert_eq!(read["schema"], *schema);
        assert_eq!(read["rows"], number);
        let shown = read["text"].as_str().expect("a text");
        let told = read.get("text_bytes").and_then(Value::as_u64);
        match std::str::from_utf8(text) {
            // A text of characters stays as it was, or is cut between two of them.
            Ok(text) => {
                assert!(text.starts_with(shown) && shown.len() <= bytes_max);
                assert_eq!(told.is_some(), shown.len() < text.len());
                assert!(shown.len() == text.len() || bytes_max < shown.len() + 4);
            }
            // A byte that is none takes four.
            Err(_) => assert!(shown.len() <= 4 * bytes_max),
        }
    }
}
