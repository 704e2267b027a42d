//! LIKE: `%` is any run of characters, `_` any one character, and an escape makes the next
//! character literal. Characters are compared by the collation; nothing is padded.
//!
//! After `%`, most characters of a text do not equal the literal that follows. If that is a
//! printable ASCII character, a scan of bytes passes over them. It stops at both cases of the
//! literal and at each byte beyond ASCII, and there weights are compared. So it relies on two facts
//! only, which the tests hold for each collation. An ASCII byte that begins a character is that
//! character, and of the ASCII characters at most the two cases equal the literal.

use super::levels;
use super::weight::{fold_ascii, general, latin1_swedish, next_char};
use super::{BYTES_PER_SPEND, CollationId, Rule, free};

impl CollationId {
    /// True if the text matches the pattern. `escape` is a code point (usually `\`), or `None` for
    /// patterns without escape.
    ///
    /// Time is at most text times pattern; nothing is allocated.
    pub fn like(self, text: &[u8], pattern: &[u8], escape: Option<u32>) -> bool {
        let Ok(is_like) = self.like_metered(text, pattern, escape, &mut free);
        is_like
    }

    /// The same. `spend` is called with the work about every [`BYTES_PER_SPEND`], and may end it.
    ///
    /// # Errors
    /// The error of `spend`.
    pub fn like_metered<E>(
        self,
        text: &[u8],
        pattern: &[u8],
        escape: Option<u32>,
        spend: &mut impl FnMut(usize) -> Result<(), E>,
    ) -> Result<bool, E> {
        let mut text = text;
        let mut steps = 0;
        let mut pattern = pattern;
        let mut retry: Option<Retry<'_>> = None;
        loop {
            steps += 1;
            if BYTES_PER_SPEND <= steps {
                spend(steps)?;
                steps = 0;
            }
            let mut after = pattern;
            let step = self.pattern_step(&mut after, escape);
            if let Step::Any = step {
                if after.is_empty() {
                    return Ok(true);
                }
                let mut again = Retry {
                    pattern: after,
                    text,
                    first: self.first_of(after, escape),
                };
                steps += again.pass_others();
                (text, pattern) = (again.text, after);
                retry = Some(again);
                continue;
            }
            if text.is_empty() {
                // Every other retry has even less text.
                return Ok(matches!(step, Step::End));
            }
            let mut rest = text;
            let found = next_char(self.charset(), &mut rest);
            let matches = match step {
                Step::One => true,
                Step::Literal(wanted) => self.same_char(found, wanted),
                Step::Any | Step::End => false,
            };
            if matches {
                (text, pattern) = (rest, after);
                continue;
            }
            let Some(again) = &mut retry else {
                return Ok(false);
            };
            if again.text.is_empty() {
                return Ok(false);
            }
            // The last `%` matches one character more, and those that cannot follow it.
            let _ = next_char(self.charset(), &mut again.text);
            steps += again.pass_others();
            (text, pattern) = (again.text, again.pattern);
        }
    }

    /// The ASCII characters that equal the first character of a pattern, if that is a literal of
    /// which this is known.
    fn first_of(self, mut pattern: &[u8], escape: Option<u32>) -> Option<[u8; 2]> {
        match self.pattern_step(&mut pattern, escape) {
            Step::Literal(Ok(code)) => self.ascii_equals(u8::try_from(code).ok()?),
            Step::Literal(Err(_)) | Step::Any | Step::One | Step::End => None,
        }
    }

    /// The ASCII characters that equal this one: itself twice, or both cases of a letter. `None`
    /// for bytes that are no printable ASCII character (control characters may have no weight, and
    /// so be equal), and in the order of a language that may change the weights of ASCII.
    fn ascii_equals(self, byte: u8) -> Option<[u8; 2]> {
        if !matches!(byte, b' '..=b'~') {
            return None;
        }
        match self.rule() {
            Rule::Binary | Rule::CodePoint | Rule::PaddedBytes | Rule::Levels(LEVELS_OF_CASE..) => {
                Some([byte; 2])
            }
            Rule::Unicode(language) if language.changes_ascii() => None,
            Rule::General
            | Rule::Unicode(_)
            | Rule::Levels(_)
            | Rule::Latin1Swedish
            | Rule::AsciiFold => Some([byte.to_ascii_lowercase(), byte.to_ascii_uppercase()]),
        }
    }

    fn pattern_step(self, pattern: &mut &[u8], escape: Option<u32>) -> Step {
        if pattern.is_empty() {
            return Step::End;
        }
        let first = next_char(self.charset(), pattern);
        match first {
            Ok(code) if Some(code) == escape && !pattern.is_empty() => {
                Step::Literal(next_char(self.charset(), pattern))
            }
            Ok(code) if code == u32::from(b'%') => Step::Any,
            Ok(code) if code == u32::from(b'_') => Step::One,
            _ => Step::Literal(first),
        }
    }

    /// True if two characters (or ill-formed bytes) have the same weights.
    fn same_char(self, left: Result<u32, u8>, right: Result<u32, u8>) -> bool {
        let (Ok(left), Ok(right)) = (left, right) else {
            return left == right;
        };
        if left == right {
            return true;
        }
        if let (Ok(left), Ok(right @ ..0x80)) = (u8::try_from(left), u8::try_from(right))
            && let Some(equals) = self.ascii_equals(left)
        {
            return equals.contains(&right);
        }
        self.same_weights(left, right)
    }

    /// True if two different characters have the same weights.
    fn same_weights(self, left: u32, right: u32) -> bool {
        match self.rule() {
            Rule::Binary | Rule::CodePoint | Rule::PaddedBytes => false,
            Rule::General => general(left) == general(right),
            Rule::Unicode(language) => {
                language.weights(left).as_slice() == language.weights(right).as_slice()
            }
            Rule::Levels(levels) => levels::same_char(levels, left, right),
            Rule::AsciiFold | Rule::Latin1Swedish => {
                let weight = |code| {
                    let mut byte = Vec::with_capacity(1);
                    self.charset().encode(code, &mut byte);
                    let byte = byte.first().copied().unwrap_or(0);
                    if matches!(self.rule(), Rule::AsciiFold) {
                        fold_ascii(byte)
                    } else {
                        latin1_swedish(byte)
                    }
                };
                weight(left) == weight(right)
            }
        }
    }
}

/// From so many levels on, letter case counts.
const LEVELS_OF_CASE: usize = 3;

/// Where to resume after the last `%`.
struct Retry<'a> {
    /// The pattern after it.
    pattern: &'a [u8],
    /// The text that the pattern may still match.
    text: &'a [u8],
    /// The ASCII characters with which such text may begin; `None`: any.
    first: Option<[u8; 2]>,
}

impl Retry<'_> {
    /// Removes ASCII characters that the pattern does not begin with from the text, but at most
    /// [`BYTES_PER_SPEND`]. Returns their number.
    fn pass_others(&mut self) -> usize {
        let Some(first) = self.first else {
            return 0;
        };
        let (near, _) = self.text.split_at(BYTES_PER_SPEND.min(self.text.len()));
        let count = others(near, first);
        self.text = &self.text[count..];
        count
    }
}

/// The number of ASCII bytes before the first of these two, or before the first other byte.
fn others(bytes: &[u8], [lower, upper]: [u8; 2]) -> usize {
    let stops = |byte: u8| byte == lower || byte == upper || 0x80 <= byte;
    // A block is tested as a whole, without branches, so that the compiler makes vectors of it.
    let any = |block: &[u8; BLOCK]| block.iter().fold(false, |any, byte| any | stops(*byte));
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    let passed = blocks.iter().take_while(|block| !any(block)).count() * BLOCK;
    let near = bytes[passed..].iter().position(|byte| stops(*byte));
    near.map_or(bytes.len(), |near| passed + near)
}

/// The width of a vector of SSE2, which each processor of 64 bits has.
const BLOCK: usize = 16;

/// One step of a pattern.
enum Step {
    /// `%`
    Any,
    /// `_`
    One,
    /// This character, or this ill-formed byte.
    Literal(Result<u32, u8>),
    /// The end of the pattern.
    End,
}

#[cfg(test)]
mod tests;
