//! Data generated from MariaDB and from Unicode's tables; nothing here is edited by hand.

pub(super) mod case;
pub(super) mod general;
pub(super) mod languages;
pub(super) mod latin1;
pub(super) mod uca900;
pub(super) mod unicode;
pub(super) mod unicode520;
