//! Functions of texts and bytes: parts of them, patterns, encodings, digests.

pub(crate) mod digest;
pub(crate) mod encode;
pub(crate) mod pattern;
pub(crate) mod position;
pub(crate) mod sets;
pub(crate) mod strings;
pub(crate) mod substring;
