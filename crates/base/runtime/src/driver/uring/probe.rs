//! Whether this machine has the io_uring that the driver needs, and if not, what is missing.

use std::io;

use io_uring::{Builder, IoUring, Probe, cqueue, opcode, squeue};
use rustix::io::Errno;

use crate::received::ring::BufferRing;

/// Entries of the submission queue: enough for most turns; a longer turn submits in parts.
pub(super) const SUBMISSION_COUNT: u32 = 1024;

/// Entries of the completion queue: several for each client that is active at once.
const COMPLETION_COUNT: u32 = 8192;

/// A ring as every worker has it: one submitter, completions delivered on request.
pub(super) fn builder() -> Builder<squeue::Entry, cqueue::Entry> {
    let mut builder = IoUring::builder();
    builder
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_taskrun_flag()
        .setup_submit_all()
        .setup_clamp()
        .setup_cqsize(COMPLETION_COUNT);
    builder
}

/// `Err` says, for people, what is missing.
pub(crate) fn probe() -> Result<(), String> {
    let ring = builder().build(8).map_err(|error| setup_failure(&error))?;
    let features = [
        (
            ring.params().is_feature_nodrop(),
            "completions that survive an overflow",
        ),
        (ring.params().is_feature_ext_arg(), "waiting with a timeout"),
        (
            ring.params().is_feature_fast_poll(),
            "waiting for readiness without threads",
        ),
    ];
    if let Some((_, name)) = features.iter().find(|feature| !feature.0) {
        return Err(format!("the kernel's io_uring lacks {name}"));
    }
    let mut known = Probe::new();
    ring.submitter()
        .register_probe(&mut known)
        .map_err(|error| format!("the kernel does not tell its operations: {error}"))?;
    let operations = [
        (opcode::Accept::CODE, "accept"),
        (opcode::RecvMulti::CODE, "receive"),
        (opcode::Send::CODE, "send"),
        (opcode::Writev::CODE, "vectored write"),
        (opcode::PollAdd::CODE, "poll"),
        (opcode::AsyncCancel2::CODE, "cancel"),
        (opcode::Read::CODE, "read"),
        (opcode::Write::CODE, "write"),
        (opcode::Fsync::CODE, "fsync"),
    ];
    if let Some((_, name)) = operations.iter().find(|it| !known.is_supported(it.0)) {
        return Err(format!(
            "the kernel's io_uring lacks the operation \"{name}\""
        ));
    }
    BufferRing::new(&ring.submitter())
        .map(drop)
        .map_err(|error| format!("the kernel takes no ring of receive buffers: {error}"))
}

fn setup_failure(error: &io::Error) -> String {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOSYS) => String::from("the kernel has no io_uring"),
        Some(Errno::PERM | Errno::ACCESS) => String::from(
            "it is switched off here, by kernel.io_uring_disabled or a container's seccomp filter",
        ),
        Some(Errno::INVAL) => {
            String::from("the kernel's io_uring is too old; it takes Linux 6.1 or later")
        }
        Some(Errno::NOMEM) => {
            String::from("there is not enough memory, or locked memory, for a ring")
        }
        _ => format!("the kernel refuses a ring: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_has_its_words() {
        let words = |errno: Errno| setup_failure(&io::Error::from(errno));
        assert!(words(Errno::NOSYS).contains("no io_uring"));
        assert!(words(Errno::PERM).contains("switched off"));
        assert!(words(Errno::INVAL).contains("6.1"));
        assert!(words(Errno::NOMEM).contains("memory"));
        assert!(words(Errno::IO).contains("refuses"));
    }
}
