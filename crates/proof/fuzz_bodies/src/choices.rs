//! [`Choices`]: decisions of a target, taken from the front of its input.

use syntax::SqlMode;
use syntax::token::MODE_WORDS;

/// The input, read from its front. Missing bytes read as zero, so that every input is complete.
#[derive(Debug)]
pub(crate) struct Choices<'a> {
    rest: &'a [u8],
}

impl<'a> Choices<'a> {
    pub(crate) fn new(input: &'a [u8]) -> Choices<'a> {
        Choices { rest: input }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn u8(&mut self) -> u8 {
        let [byte] = self.array();
        byte
    }

    /// The modes that change how a text is read, a bit each.
    pub(crate) fn sql_mode(&mut self) -> SqlMode {
        let bits = self.u8();
        let words = MODE_WORDS.iter().enumerate();
        words
            .filter(|(place, _)| bits >> place & 1 == 1)
            .fold(SqlMode::default(), |mode, (_, word)| mode.with(*word))
    }

    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    /// A number below `end`, which is at most 256 and not 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::from(self.u8()) % end
    }

    /// As many bytes as the next byte says.
    pub(crate) fn short(&mut self) -> &'a [u8] {
        let length = usize::from(self.u8());
        self.bytes(length)
    }

    /// As many bytes as the next two bytes say.
    pub(crate) fn long(&mut self) -> &'a [u8] {
        let length = usize::from(self.u16());
        self.bytes(length)
    }

    /// The rest.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    fn bytes(&mut self, length: usize) -> &'a [u8] {
        let (front, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.rest = rest;
        front
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        let taken = self.bytes(N);
        for (to, from) in array.iter_mut().zip(taken) {
            *to = *from;
        }
        array
    }
}
