//! [`Line`]: a statement that has ended, as an object of JSON.

use std::time::Duration;

use crate::escape::{append_digest, append_number, append_string, head};
use crate::filter::Why;
use crate::route::Route;

/// Most bytes of a text that a line may be set to.
pub const TEXT_BYTES_MAX: usize = 64 << 10;

/// What all lines of a session have.
#[derive(Debug, Clone, Copy)]
pub struct Session<'a> {
    /// The number that the client was told, for KILL.
    pub id: u32,
    /// The user, without the host.
    pub user: &'a str,
    /// Where the client is.
    pub client: &'a str,
    /// The name of its service.
    pub service: &'a str,
}

/// See the module's head.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// What [`Session::render`] has made.
    pub session: &'a [u8],
    /// The default database.
    pub schema: Option<&'a str>,
    /// The server that has answered.
    pub server: Option<&'a str>,
    /// The digest of the text; `None` if that was not read.
    pub digest: Option<u64>,
    /// What is shown of the text, and how many bytes the whole has.
    pub text: Option<(&'a [u8], usize)>,
    /// The client had prepared it.
    pub is_prepared: bool,
    /// How long it has taken.
    pub time: Duration,
    /// Rows that the client was sent.
    pub rows_sent: u64,
    /// Rows that were changed.
    pub rows_affected: u64,
    /// The number of its error and its SQLSTATE.
    pub error: Option<(u16, &'a str)>,
    /// A transaction is open behind it.
    pub is_in_transaction: bool,
    /// Why it has gone to that server.
    pub route: Route,
    /// Why it is logged.
    pub why: Why,
}

impl Session<'_> {
    /// Its part of a line.
    pub fn render(&self) -> Box<[u8]> {
        let mut out = Vec::new();
        out.extend_from_slice(b",\"id\":");
        append_number(self.id.into(), &mut out);
        for (name, text) in [
            (&b",\"user\":"[..], self.user),
            (b",\"client\":", self.client),
            (b",\"service\":", self.service),
        ] {
            out.extend_from_slice(name);
            append_string(text.as_bytes(), &mut out);
        }
        out.into()
    }
}

impl Line<'_> {
    /// Appends the line with its end. `stamp` appends when the statement has ended; a text has at
    /// most `text_bytes_max` bytes.
    pub fn append(
        &self,
        stamp: impl FnOnce(&mut Vec<u8>),
        text_bytes_max: usize,
        out: &mut Vec<u8>,
    ) {
        out.extend_from_slice(b"{\"time\":\"");
        stamp(out);
        out.push(b'"');
        out.extend_from_slice(self.session);
        for (name, text) in [
            (&b",\"schema\":"[..], self.schema),
            (b",\"server\":", self.server),
        ] {
            out.extend_from_slice(name);
            append_maybe(text.map(str::as_bytes), out);
        }
        out.extend_from_slice(b",\"digest\":");
        match self.digest {
            Some(number) => {
                out.push(b'"');
                append_digest(number, out);
                out.push(b'"');
            }
            None => append_maybe(None, out),
        }
        out.extend_from_slice(b",\"text\":");
        let shown = self.text.map(|(text, _)| head(text, text_bytes_max));
        append_maybe(shown, out);
        if let (Some((_, whole)), Some(shown)) = (self.text, shown)
            && shown.len() < whole
        {
            out.extend_from_slice(b",\"text_bytes\":");
            append_number(stdx::to_u64(whole), out);
        }
        out.extend_from_slice(match self.is_prepared {
            true => b",\"prepared\":true",
            false => b",\"prepared\":false",
        });
        let micros = u64::try_from(self.time.as_micros()).unwrap_or(u64::MAX);
        for (name, number) in [
            (&b",\"duration_us\":"[..], micros),
            (b",\"rows\":", self.rows_sent),
            (b",\"affected_rows\":", self.rows_affected),
        ] {
            out.extend_from_slice(name);
            append_number(number, out);
        }
        if let Some((number, state)) = self.error {
            out.extend_from_slice(b",\"error\":");
            append_number(number.into(), out);
            out.extend_from_slice(b",\"sqlstate\":");
            append_string(state.as_bytes(), out);
        }
        out.extend_from_slice(match self.is_in_transaction {
            true => b",\"in_transaction\":true",
            false => b",\"in_transaction\":false",
        });
        out.extend_from_slice(b",\"route\":\"");
        out.extend_from_slice(self.route.name().as_bytes());
        out.extend_from_slice(b"\",\"why\":\"");
        out.extend_from_slice(self.why.name().as_bytes());
        out.extend_from_slice(b"\"}\n");
    }
}

fn append_maybe(text: Option<&[u8]>, out: &mut Vec<u8>) {
    match text {
        Some(text) => append_string(text, out),
        None => out.extend_from_slice(b"null"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn plain<'a>(session: &'a [u8], text: Option<(&'a [u8], usize)>) -> Line<'a> {
        Line {
            session,
            schema: None,
            server: None,
            digest: None,
            text,
            is_prepared: false,
            time: Duration::from_nanos(1_999),
            rows_sent: 0,
            rows_affected: 0,
            error: None,
            is_in_transaction: false,
            route: Route::default(),
            why: Why::All,
        }
    }

    fn appended(line: &Line<'_>, text_bytes_max: usize) -> String {
        let mut out = Vec::new();
        line.append(|out| out.extend_from_slice(b"T"), text_bytes_max, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_has_its_fields_in_their_order() {
        let session = Session {
            id: 7,
            user: "a\"b",
            client: "10.0.0.1:5",
            service: "shop",
        };
        let session = session.render();
        let line = Line {
            schema: Some("db"),
            server: Some("db0"),
            digest: Some(0x0012_3456_789a_bcde),
            is_prepared: true,
            rows_sent: 3,
            rows_affected: 4,
            error: Some((1062, "23000")),
            is_in_transaction: true,
            route: Route::LastStatement,
            why: Why::Error,
            ..plain(&session, Some((b"INSERT", 6)))
        };
        assert_eq!(
            appended(&line, 6),
            "{\"time\":\"T\",\"id\":7,\"user\":\"a\\\"b\",\"client\":\"10.0.0.1:5\",\
             \"service\":\"shop\",\"schema\":\"db\",\"server\":\"db0\",\
             \"digest\":\"00123456789abcde\",\"text\":\"INSERT\",\"prepared\":true,\
             \"duration_us\":1,\"rows\":3,\"affected_rows\":4,\"error\":1062,\
             \"sqlstate\":\"23000\",\"in_transaction\":true,\"route\":\"last statement\",\
             \"why\":\"error\"}\n"
        );
        let line = plain(&session, None);
        assert_eq!(
            appended(&line, 6),
            "{\"time\":\"T\",\"id\":7,\"user\":\"a\\\"b\",\"client\":\"10.0.0.1:5\",\
             \"service\":\"shop\",\"schema\":null,\"server\":null,\"digest\":null,\"text\":null,\
             \"prepared\":false,\"duration_us\":1,\"rows\":0,\"affected_rows\":0,\
             \"in_transaction\":false,\"route\":\"nowhere\",\"why\":\"all\"}\n"
        );
    }

    #[test]
    fn a_text_that_is_cut_tells_its_length() {
        for (bytes_max, expected) in [(5, "SELEC"), (6, "SELECT"), (7, "SELECT")] {
            let line = appended(&plain(b"", Some((b"SELECT", 6))), bytes_max);
            let read: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(read["text"], expected);
            let told = (bytes_max < 6).then_some(6);
            assert_eq!(read.get("text_bytes").and_then(Value::as_u64), told);
        }
        // The caller has kept the beginning alone.
        let line = appended(&plain(b"", Some((b"SEL", 6))), 6);
        assert!(line.contains("\"text\":\"SEL\",\"text_bytes\":6"), "{line}");
    }

    proptest! {
        #[test]
        fn each_line_is_one_object(
            text in prop::collection::vec(any::<u8>(), 0..100),
            (user, schema, server) in (".{0,9}", prop::option::of(".{0,9}"), ".{0,9}"),
            (number, rows, bytes_max) in (any::<u64>(), any::<u64>(), 0..100_usize),
        ) {
            let session = Session { id: 1, user: &user, client: "c", service: "s" };
            let session = session.render();
            let line = Line {
                schema: schema.as_deref(),
                server: Some(&server),
                digest: Some(number),
                rows_sent: rows,
                ..plain(&session, Some((&text, text.len())))
            };
            let line = appended(&line, bytes_max);
            prop_assert_eq!(line.matches('\n').count(), 1);
            let read: Value = serde_json::from_str(&line).unwrap();
            prop_assert_eq!(read["user"].as_str(), Some(&*user));
            prop_assert_eq!(read["schema"].as_str(), schema.as_deref());
            prop_assert_eq!(read["server"].as_str(), Some(&*server));
            prop_assert_eq!(read["rows"].as_u64(), Some(rows));
            let digest = format!("{number:016x}");
            prop_assert_eq!(read["digest"].as_str(), Some(&*digest));
        }
    }
}
