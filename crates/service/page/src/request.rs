//! The head of a request.

use httparse::Error;

use crate::{HEAD_BYTES_MAX, Status};

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'h> {
    /// How.
    pub method: Method,
    /// Without what follows a question mark.
    pub path: &'h str,
}

/// How it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// With the body.
    Get,
    /// Without the body.
    Head,
}

/// Headers of a request. Browsers send some 15.
const HEADERS_MAX: usize = 64;

/// The request that a head is; `None` if more of it has to come. What follows the first
/// [`HEAD_BYTES_MAX`] bytes is not looked at, so it does not matter how much has come at once.
pub fn request(head: &[u8]) -> Option<Result<Request<'_>, Status>> {
    let head = head.get(..HEAD_BYTES_MAX).unwrap_or(head);
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(head) {
        Ok(status) if status.is_partial() && head.len() < HEAD_BYTES_MAX => return None,
        Ok(status) if status.is_partial() => return Some(Err(Status::HeadTooLarge)),
        Ok(_) => {}
        Err(Error::TooManyHeaders) => return Some(Err(Status::HeadTooLarge)),
        Err(_) => return Some(Err(Status::BadRequest)),
    }
    let method = match parsed.method {
        Some("GET") => Method::Get,
        Some("HEAD") => Method::Head,
        _ => return Some(Err(Status::MethodNotAllowed)),
    };
    let target = parsed.path.unwrap_or_default();
    let path = target.split_once('?').map_or(target, |(path, _)| path);
    Some(Ok(Request { method, path }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(head: &str) -> Option<Result<Request<'_>, Status>> {
        request(head.as_bytes())
    }

    #[test]
    fn a_request_is_a_method_and_a_path() {
        let get = |path| {
            Some(Ok(Request {
                method: Method::Get,
                path,
            }))
        };
        assert_eq!(
            of("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"),
            get("/metrics")
        );
        assert_eq!(of("GET /metrics?a=b HTTP/1.0\r\n\r\n"), get("/metrics"));
        let head = Some(Ok(Request {
            method: Method::Head,
            path: "/",
        }));
        assert_eq!(of("HEAD / HTTP/1.1\r\n\r\n"), head);
        for part in [
            "",
            "GET",
            "GET / HTTP/1.1\r\n",
            "GET / HTTP/1.1\r\nA: b\r\n",
        ] {
            assert_eq!(of(part), None, "{part:?}");
        }
        let post = of("POST / HTTP/1.1\r\n\r\n");
        assert_eq!(post, Some(Err(Status::MethodNotAllowed)));
        for wrong in ["\u{1}\u{2}", "GET / FTP/1.1\r\n\r\n", "a\r\n\r\n"] {
            assert_eq!(of(wrong), Some(Err(Status::BadRequest)), "{wrong:?}");
        }
    }

    #[test]
    fn a_head_has_its_limits() {
        let with = |count| format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(count));
        assert!(of(&with(HEADERS_MAX)).unwrap().is_ok());
        let refused = Some(Err(Status::HeadTooLarge));
        assert_eq!(of(&with(HEADERS_MAX + 1)), refused);
        let part = |count| format!("GET /{}", "a".repeat(count - "GET /".len()));
        assert_eq!(of(&part(HEAD_BYTES_MAX - 1)), None);
        assert_eq!(of(&part(HEAD_BYTES_MAX)), refused);
    }

    /// Of a long head as much may come at once as the kernel has.
    #[test]
    fn a_head_that_comes_at_once_has_the_same_limit() {
        let whole = |count| {
            let end = " HTTP/1.1\r\n\r\n";
            format!(
                "GET /{}{end}",
                "a".repeat(count - "GET /".len() - end.len())
            )
        };
        assert!(of(&whole(HEAD_BYTES_MAX)).unwrap().is_ok());
        let refused = Some(Err(Status::HeadTooLarge));
        assert_eq!(of(&whole(HEAD_BYTES_MAX + 1)), refused);
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_bad(head in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = request(&head);
        }
    }
}
