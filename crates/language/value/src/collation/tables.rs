//! Data generated from MariaDB; nothing here is edited by hand.

pub(super) mod case;
pub(super) mod general;
pub(super) mod latin1;
pub(super) mod unicode;
