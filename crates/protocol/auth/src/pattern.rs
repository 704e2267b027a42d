//! Patterns of accounts, for hosts and databases: SQL's LIKE with `%`, `_` and `\`.

/// How specific a pattern is: the bytes before its first wildcard. A pattern without one is the
/// most specific, whatever its length.
pub fn fixed_length(pattern: &str) -> usize {
    let mut bytes = pattern.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'%' | b'_' => return at,
            b'\\' => drop(bytes.next()),
            _ => (),
        }
    }
    usize::MAX
}

/// SQL's LIKE on bytes, with `\` as escape. It backtracks only to the last `%`, which suffices.
pub fn is_like(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    let mut resume: Option<(usize, usize)> = None;
    while let Some(here) = text.get(t) {
        let matched = match pattern.get(p) {
            Some(b'%') => {
                resume = Some((p + 1, t));
                p += 1;
                continue;
            }
            Some(b'_') => Some(p + 1),
            Some(b'\\') if pattern.get(p + 1) == Some(here) => Some(p + 2),
            Some(byte) if byte == here => Some(p + 1),
            _ => None,
        };
        match (matched, resume) {
            (Some(next), _) => (p, t) = (next, t + 1),
            (None, Some((after_percent, from))) => {
                resume = Some((after_percent, from + 1));
                (p, t) = (after_percent, from + 1);
            }
            (None, None) => return false,
        }
    }
    pattern.iter().skip(p).all(|&byte| byte == b'%')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_like_does() {
        for (pattern, text, expected) in [
            ("%", "", true),
            ("a%c", "abbbc", true),
            ("a%c", "abbbd", false),
            ("a_c", "abc", true),
            ("a_c", "ac", false),
            (r"a\_c", "abc", false),
            (r"a\_c", "a_c", true),
            ("10.%.1", "10.2.3.1", true),
            ("%a%b%", "xxaxxbxx", true),
            ("", "a", false),
        ] {
            assert_eq!(is_like(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn escaped_wildcards_are_none() {
        for (pattern, expected) in [("10.%", 3), (r"10.0\_%", 6), ("::1", usize::MAX), ("%", 0)] {
            assert_eq!(fixed_length(pattern), expected, "{pattern}");
        }
    }
}
