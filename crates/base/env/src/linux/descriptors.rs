//! How many files the process may have open.

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open files as far as the system allows without further rights: the soft
/// limit to the hard one. Each table and each client takes a file, and the usual soft limit of
/// 1,024 is there for programs that use `select`.
///
/// # Errors
/// The system's; the limit stays as it was.
pub fn raise_descriptor_limit() -> Result<(), Errno> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return Ok(());
    }
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    setrlimit(Resource::Nofile, raised)
}
