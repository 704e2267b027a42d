//! Why a configuration cannot be translated.

use crate::TEXT_BYTES_MAX;

/// A file that is not what its format wants.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {what}")]
pub struct ParseError {
    /// The name of the file.
    pub file: String,
    /// Its line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub what: What,
}

/// What is wrong at a place of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum What {
    /// A line of MaxScale that is none of these.
    #[error("expected `[section]`, `name=value` or a comment")]
    Line,
    /// A header without its end.
    #[error("the section's header has no `]`")]
    Header,
    /// A value in front of the first section.
    #[error("a value stands in front of the first section")]
    NoSection,
    /// Something else than the name of a setting.
    #[error("expected the name of a setting")]
    Name,
    /// A name that no value follows.
    #[error("expected `=` or `:` behind the name of a setting")]
    Assignment,
    /// Something else than a value.
    #[error("expected a value")]
    Value,
    /// A group, list or array without its end.
    #[error("this bracket is not closed")]
    Bracket,
    /// A text without its end.
    #[error("the text has no end")]
    Text,
    /// A comment without its end.
    #[error("the comment has no end")]
    Comment,
    /// More brackets in each other than anybody needs.
    #[error("more than {0} brackets are in each other")]
    Depth(usize),
    /// More settings than anybody needs.
    #[error("there are more than {0} settings")]
    Entries(usize),
    /// A setting that its group has already.
    #[error("the group has this setting twice")]
    Twice,
    /// It names another file.
    #[error("files that are included are not read: put all into one file")]
    Include,
}

/// Why nothing came of a configuration.
#[derive(Debug, thiserror::Error)]
pub enum TranslateError {
    /// A file is not what its format wants.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// It is longer than any configuration.
    #[error("the files have {bytes} bytes, and the limit is {TEXT_BYTES_MAX}")]
    TooLong {
        /// Of all files together.
        bytes: usize,
    },
    /// It names nothing that a gateway could be made of.
    #[error("there is nothing to translate: {lacks}")]
    Empty {
        /// What is missing.
        lacks: &'static str,
    },
}
