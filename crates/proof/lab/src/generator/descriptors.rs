//! How many connections this process may have at the same time.
//!
//! Each is a descriptor, and the kernel limits those of a process (`ulimit -n`). There are enough
//! for thousands of clients of one server, but perhaps not of twenty.

use anyhow::{Result, ensure};
use rustix::process::{Resource, getrlimit};

/// Descriptors for other uses than connections of the load: a pipe, a log and a few more for each
/// of some twenty servers, and short-lived ones of threads. A server has the same limit, so it has
/// as many for its files.
const RESERVE: u64 = 256;

/// How many connections are possible besides all else.
pub(crate) fn connections_max() -> u64 {
    fitting(descriptors_max())
}

fn descriptors_max() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

fn fitting(descriptors_max: u64) -> u64 {
    descriptors_max.saturating_sub(RESERVE)
}

/// Fails, with advice, if this many clients cannot be connected.
pub(super) fn ensure_fit(client_count: u32) -> Result<()> {
    ensure_fit_into(client_count, descriptors_max())
}

fn ensure_fit_into(client_count: u32, descriptors_max: u64) -> Result<()> {
    let client_count = u64::from(client_count);
    let fitting = fitting(descriptors_max);
    ensure!(
        client_count <= fitting,
        "{client_count} clients need as many descriptors, and of {descriptors_max} that a process \
         may have {fitting} are for connections: run `ulimit -n {}` first (as root, if the hard \
         limit is lower), or ask for fewer clients",
        client_count + RESERVE
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_fit_up_to_the_limit() {
        let fits = |client_count| ensure_fit_into(client_count, 20_000);
        assert!(fits(0).is_ok());
        assert!(fits(19_744).is_ok());
        let error = fits(19_745).unwrap_err().to_string();
        assert!(error.contains("run `ulimit -n 20001` first"), "{error}");
        assert!(ensure_fit_into(1, 10).is_err());
        assert_eq!(fitting(u64::MAX), u64::MAX - RESERVE);
    }

    #[test]
    fn the_limit_is_the_kernels() {
        assert!(connections_max() < descriptors_max());
    }
}
