//! Functions of dates and times: parts, sums and differences, formats.

pub(crate) mod interval;
pub(crate) mod temporal;
pub(crate) mod time_format;
pub(crate) mod time_parse;
