//! What the gateway costs and gives, measured before real servers.

pub mod cost;
pub mod idle;
pub mod servers;
pub mod sharing;
