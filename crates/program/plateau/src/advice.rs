//! What the operator can do about a data directory that cannot be opened.

use buffer::RecoveryError;
use env::{DiskError, DiskErrorKind};
use format::SpaceId;
use format::version_file::VersionError;
use store::StoreError;
use wal::{OnLogLoss, WalError};

/// For damage of pages and files.
const NOT_RECOVERED: &str = "`plateau check` lists all damage; put the file back, or restore the \
     directory from a backup";

/// The tablespace of the dictionary. Nothing can be read without it.
const SYSTEM_SPACE: SpaceId = SpaceId(0);

/// The error, with advice appended if there is any. An operator who has accepted the loss is not
/// advised to accept it.
pub(crate) fn advised(error: anyhow::Error, on_loss: OnLogLoss) -> anyhow::Error {
    let Some(advice) = advice(&error) else {
        return error;
    };
    let lost = lost(&error).filter(|_| on_loss == OnLogLoss::Refuse);
    let Some(lost) = lost else {
        return anyhow::anyhow!("{error:#}; {advice}");
    };
    anyhow::anyhow!(
        "{error:#}; {advice}; to start without {lost}, see --accept-log-loss in `plateau --help`"
    )
}

/// What a start would lose that accepts it; `None` if that would not help.
fn lost(error: &anyhow::Error) -> Option<&'static str> {
    let by_damage = |error: &StoreError| match error {
        StoreError::Damaged {
            page: Some(page), ..
        } if page.space != SYSTEM_SPACE => Some("what is lost"),
        _ => None,
    };
    match error.downcast_ref() {
        Some(RecoveryError::Log(WalError::Damaged(_)) | RecoveryError::PageAhead { .. }) => {
            Some("the lost commits")
        }
        Some(RecoveryError::Op { .. }) => Some("what is lost"),
        Some(RecoveryError::Page(error)) => by_damage(error),
        Some(_) => None,
        None => by_damage(error.downcast_ref()?),
    }
}

/// The same for a program that only checks a directory.
pub(crate) fn advised_to_check(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref() {
        Some(RecoveryError::InUse(_)) => anyhow::anyhow!("{error:#}; stop its server first"),
        _ => error,
    }
}

/// Whether a directory that cannot be opened has this version and is damaged.
pub(crate) fn is_damage(error: &anyhow::Error) -> bool {
    match error.downcast_ref() {
        Some(RecoveryError::Disk(error)) => error.kind == DiskErrorKind::Failed,
        None => matches!(error.downcast_ref(), Some(StoreError::Disk { .. })) || is_wrong(error),
        Some(_) => is_wrong(error),
    }
}

/// Whether the data that was read is wrong.
fn is_wrong(error: &anyhow::Error) -> bool {
    match error.downcast_ref() {
        Some(
            RecoveryError::NoControl(_)
            | RecoveryError::Log(_)
            | RecoveryError::Page(_)
            | RecoveryError::Op { .. }
            | RecoveryError::Mtr(_)
            | RecoveryError::PageAhead { .. },
        ) => true,
        Some(_) => false,
        None => matches!(error.downcast_ref(), Some(StoreError::Damaged { .. })),
    }
}

fn advice(error: &anyhow::Error) -> Option<&'static str> {
    let disk = error.chain().find_map(|cause| cause.downcast_ref());
    let by_disk = disk.and_then(|error: &DiskError| of_disk(error.kind));
    let by_recovery = || of_recovery(error.downcast_ref()?);
    let by_damage = || is_wrong(error).then_some(NOT_RECOVERED);
    by_disk.or_else(by_recovery).or_else(by_damage)
}

fn of_recovery(error: &RecoveryError) -> Option<&'static str> {
    match error {
        RecoveryError::Version(VersionError::Foreign) | RecoveryError::Foreign(_) => {
            Some("choose an empty or a new directory with --set data=DIRECTORY")
        }
        RecoveryError::Version(VersionError::Newer { .. }) => {
            Some("use a build whose `plateau --version` names that format")
        }
        RecoveryError::Version(VersionError::Older { .. }) => Some(
            "dump it by a build whose `plateau --version` names that format (the build that \
                 created it), and load the dump here",
        ),
        RecoveryError::InUse(_) => {
            Some("stop the other server, or choose another directory with --set data=DIRECTORY")
        }
        RecoveryError::Disk(error) | RecoveryError::Log(WalError::Disk(error)) => {
            of_disk(error.kind)
        }
        RecoveryError::NoControl(_) => Some("put it back, or restore the directory from a backup"),
        RecoveryError::Log(WalError::Damaged(_)) | RecoveryError::PageAhead { .. } => {
            Some("put the lost log file back, or restore the directory from a backup")
        }
        RecoveryError::Log(_) => Some("restore the directory from a backup: its log is damaged"),
        _ => None,
    }
}

fn of_disk(kind: DiskErrorKind) -> Option<&'static str> {
    match kind {
        DiskErrorKind::Denied => Some("give the server's user write permission there"),
        DiskErrorKind::Full => Some("free some space on the disk, then start again"),
        DiskErrorKind::NoDescriptor => {
            Some("raise the limit of open files (ulimit -n), then start again")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(kind: DiskErrorKind) -> DiskError {
        DiskError {
            kind,
            operation: "write",
            path: None,
            os_error: 0,
        }
    }

    #[test]
    fn troubles_of_the_disk_are_advised_wherever_they_are_told() {
        let full = RecoveryError::Disk(disk(DiskErrorKind::Full));
        let told = advised(full.into(), OnLogLoss::Refuse).to_string();
        assert!(
            told.ends_with("; free some space on the disk, then start again"),
            "{told}"
        );
        let full = RecoveryError::Log(WalError::Disk(disk(DiskErrorKind::Full)));
        let told = advised(full.into(), OnLogLoss::Refuse).to_string();
        assert!(
            told.ends_with("; free some space on the disk, then start again"),
            "{told}"
        );
        let short = RecoveryError::Disk(disk(DiskErrorKind::NoDescriptor));
        let told = advised(short.into(), OnLogLoss::Refuse).to_string();
        assert!(told.contains("; raise the limit of open files"), "{told}");
        let denied = anyhow::Error::new(disk(DiskErrorKind::Denied)).context("at the start");
        let told = advised(denied, OnLogLoss::Refuse).to_string();
        assert!(told.ends_with("write permission there"), "{told}");
        let failed = advised(disk(DiskErrorKind::Failed).into(), OnLogLoss::Refuse).to_string();
        assert!(!failed.contains(';'), "{failed}");
    }

    const WORD: &str = "see --accept-log-loss in `plateau --help`";

    fn damaged(space: u32) -> StoreError {
        let page = format::PageId::new(SpaceId(space), format::PageNo(4));
        StoreError::damaged_page(page, "it is torn")
    }

    /// A damaged page of this tablespace, as a start reports it.
    type ErrorOf = fn(u32) -> anyhow::Error;

    /// It is advised where it would help, and not once it was given.
    #[test]
    fn a_loss_is_accepted_once_and_where_it_helps() {
        let redone = |space| RecoveryError::Page(damaged(space)).into();
        let met = |space| damaged(space).into();
        let cases: [(ErrorOf, u32, bool); 5] = [
            (redone, 1025, true),
            (redone, 1, true),
            (met, 1, true),
            (redone, 0, false),
            (met, 0, false),
        ];
        for (error, space, helps) in cases {
            let told = advised(error(space), OnLogLoss::Refuse).to_string();
            assert_eq!(told.ends_with(WORD), helps, "{told}");
            assert!(told.contains("restore the directory"), "{told}");
            let told = advised(error(space), OnLogLoss::Accept).to_string();
            assert!(!told.contains("--accept-log-loss"), "{told}");
            assert!(told.contains("restore the directory"), "{told}");
        }
    }
}
