//! The tables of the server itself, as a session reads and writes them: [`accounts`] and
//! [`routines`], both in `rows` of the store; and [`time_zone_tables`].

pub mod accounts;
pub mod routines;
pub mod time_zone_tables;

pub(crate) mod rows;
