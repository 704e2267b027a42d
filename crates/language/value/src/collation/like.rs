//! LIKE: `%` is any run of characters, `_` any one character, and an escape makes the next
//! character literal. Characters are compared by the collation; nothing is padded.

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
        // Where to resume after the last `%`: the pattern after it, and the text that it may still
        // match.
        let mut retry: Option<(&[u8], &[u8])> = None;
        loop {
            steps += 1;
            if steps == BYTES_PER_SPEND {
                spend(BYTES_PER_SPEND)?;
                steps = 0;
            }
            let mut after = pattern;
            let step = self.pattern_step(&mut after, escape);
            if let Step::Any = step {
                retry = Some((after, text));
                pattern = after;
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
            let Some((again, swallowed)) = &mut retry else {
                return Ok(false);
            };
            if swallowed.is_empty() {
                return Ok(false);
            }
            // The last `%` matches one character more.
            let _ = next_char(self.charset(), swallowed);
            (text, pattern) = (swallowed, again);
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
