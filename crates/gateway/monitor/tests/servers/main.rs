//! The monitor against real MariaDB servers, started on free ports of loopback.
//!
//! * [`replication`]: a primary with replicas;
//! * [`galera`]: a cluster of three;
//! * [`single`]: accounts, reports of sessions, servers that end or freeze.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    reason = "the helpers of these tests fail as the tests do"
)]

mod support;

mod galera;
mod replication;
mod single;
