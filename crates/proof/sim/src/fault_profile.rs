//! The disk's behaviour in a round of the torture, determined by its seed.

use std::time::Duration;

use env::Random;
use env::sim::{Faults, SimDisk};

/// The disk's behaviour in one round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultProfile {
    /// Only the crash disturbs it.
    Fair,
    /// Operations occasionally fail with EIO.
    Failing(Faults),
    /// Only this many bytes of free space, and unlimited space after a while.
    Full {
        /// The free space.
        bytes: u64,
        /// The time until then.
        until: Duration,
    },
}

impl FaultProfile {
    /// Half of the rounds are fair.
    pub fn draw(random: &mut Random) -> Self {
        let permille = |random: &mut Random| u32::try_from(1 + random.below(5)).unwrap_or(1);
        match random.below(8) {
            0 => Self::Failing(Faults {
                read_permille: permille(random) * 4,
                ..Faults::default()
            }),
            1 => Self::Failing(Faults {
                write_permille: permille(random),
                ..Faults::default()
            }),
            2 => Self::Failing(Faults {
                sync_permille: permille(random) * 4,
                ..Faults::default()
            }),
            3 => Self::Full {
                bytes: random.below(1 << 19),
                until: Duration::from_millis(1 + random.below(300)),
            },
            _ => Self::Fair,
        }
    }

    /// Starts the behaviour.
    pub fn begin(self, disk: &SimDisk) {
        match self {
            Self::Fair => {}
            Self::Failing(faults) => disk.set_faults(faults),
            Self::Full { bytes, .. } => disk.set_capacity(disk.used_bytes() + bytes),
        }
    }

    /// Ends it.
    pub fn end(disk: &SimDisk) {
        disk.set_faults(Faults::default());
        disk.set_capacity(u64::MAX);
    }
}
