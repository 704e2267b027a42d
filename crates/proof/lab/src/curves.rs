//! Measured curves, whatever they are of: kept as lines of a CSV file, and drawn from them.
//!
//! * `table`: reads the lines of a CSV file by the names of its columns.
//! * `chart`: panels with a curve for each contender, by the number of clients.
//! * `svg`: the picture's file.

mod chart;
mod svg;
mod table;

pub(crate) use self::chart::{Chart, Curve, Look, Panel, Scale};
pub(crate) use self::svg::Mark;
pub(crate) use self::table::{Row, read};
