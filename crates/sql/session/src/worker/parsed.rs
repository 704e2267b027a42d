//! [`Parsed`]: a statement's tree with its text. Sessions of a worker may share it.

use expression::Share;
use syntax::ast::{Statement, StatementKind};

use crate::worker::source::Source;

/// A statement and the text that it was parsed from.
#[derive(Debug)]
pub(crate) struct Parsed {
    /// The tree.
    pub(crate) statement: Statement,
    /// Spans of the tree count from its start.
    pub(crate) text: Source,
    /// The memory of both, if it is large.
    memory: Share,
}

impl Parsed {
    /// A statement of this text, without memory accounting.
    pub(crate) fn new(statement: Statement, text: Source) -> Self {
        Self::counted(statement, text, Share::default())
    }

    /// A statement whose memory is counted.
    pub(crate) fn counted(statement: Statement, text: Source, memory: Share) -> Self {
        Self {
            statement,
            text,
            memory,
        }
    }

    /// Bytes that the tree and the text take, if they are many; else 0.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory.bytes()
    }

    /// True if the statement runs as a plan over tables.
    pub(crate) fn is_planned(&self) -> bool {
        matches!(
            self.statement.kind,
            StatementKind::Query(_)
                | StatementKind::Insert(_)
                | StatementKind::Update(_)
                | StatementKind::Delete(_)
                | StatementKind::Do(_)
        )
    }

    /// The text of a part of the statement.
    pub(crate) fn source(&self, span: syntax::Span) -> &[u8] {
        let place = |offset: u32| usize::try_from(offset).unwrap_or(usize::MAX);
        self.text
            .get(place(span.start)..place(span.end))
            .unwrap_or_default()
    }
}
