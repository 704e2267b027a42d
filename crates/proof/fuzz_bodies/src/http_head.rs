//! Heads of HTTP requests, whole and as they come in pieces, among long runs of one byte.

use page::{HEAD_BYTES_MAX, Request, Status, request};

use crate::choices::Choices;

/// Beginnings that are too long to be found by chance.
const BEGINS: [&[u8]; 4] = [
    b"",
    b"GET /",
    b"GET /metrics HTTP/1.1\r\n",
    b"HEAD / HTTP/1.0\r\nHost: ",
];

/// Longest run: two of them are longer than a head may be.
const RUN_BYTES_MAX: usize = HEAD_BYTES_MAX / 2 + 64;

pub(crate) fn run(input: &[u8]) {
    let mut choices = Choices::new(input);
    let mut head = BEGINS[choices.below(BEGINS.len())].to_vec();
    for _ in 0..choices.below(4) {
        let (unit, count) = (choices.short(), usize::from(choices.u16()));
        let length = unit.len().saturating_mul(count).min(RUN_BYTES_MAX);
        head.extend(unit.iter().cycle().take(length));
    }
    head.extend_from_slice(choices.rest());
    let whole = request(&head);
    if let Some(Ok(Request { path, .. })) = &whole {
        assert!(path.len() < head.len() && !path.contains('?'));
    }
    if HEAD_BYTES_MAX <= head.len() {
        assert!(whole.is_some(), "an end is in sight");
    }
    if whole == Some(Err(Status::HeadTooLarge)) {
        // The shortest of them has as many headers as are refused.
        assert!(64 * "a:\n".len() <= head.len());
    }
    // A little more each time, as a slow client sends it. Each byte alone would cost the square.
    let step = 1 + head.len() / 128;
    let mut ends = (0..head.len()).step_by(step).chain([head.len()]);
    let decided = ends.find_map(|end| request(head.get(..end)?));
    assert_eq!(decided, whole);
}
