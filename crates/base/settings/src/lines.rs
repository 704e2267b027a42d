//! The line of a byte in a text.

/// Where the lines of a text begin.
#[derive(Debug)]
pub(crate) struct Lines {
    /// Offsets of the bytes after each line feed, ascending.
    starts: Vec<usize>,
}

impl Lines {
    pub(crate) fn of(text: &str) -> Lines {
        let feeds = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Lines {
            starts: feeds.map(|(offset, _)| offset + 1).collect(),
        }
    }

    /// The line of a byte, counted from 1.
    pub(crate) fn at(&self, offset: usize) -> usize {
        1 + self.starts.partition_point(|start| *start <= offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_behind_its_feed() {
        let lines = Lines::of("a\n\nbc");
        let found: Vec<usize> = (0..6).map(|offset| lines.at(offset)).collect();
        assert_eq!(found, [1, 1, 2, 3, 3, 3]);
        assert_eq!(Lines::of("").at(0), 1);
    }
}
