//! Mistakes that are planted, to prove that the simulation of crashes finds them.
//!
//! What the simulation does not find when it is planted, it would not find in the code. One mistake
//! is the disk's own: it confirms flushes that it has not done. The others are statements of the
//! storage crates that are left out (`stdx::planted`), in builds with the feature `planted` alone.

#[cfg(feature = "planted")]
use stdx::planted::Mistake;

use crate::torture::{self, Tally, TortureOptions};

/// Flushes that are lost, in a thousand: rare enough that a store seems to work.
const LOST_FLUSH_PERMILLE: u32 = 20;

/// What is planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planting {
    /// Its class, as the engine's promises name it.
    pub class: &'static str,
    /// Its name on the command line.
    pub name: &'static str,
    place: Place,
}

/// Where it is planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In the simulated disk.
    Disk,
    /// In a storage crate.
    #[cfg(feature = "planted")]
    Storage(Mistake),
}

impl Planting {
    /// All of them that this build can plant.
    pub const ALL: &'static [Self] = &[
        Self {
            class: "lost flush",
            name: "disk-loses-flushes",
            place: Place::Disk,
        },
        #[cfg(feature = "planted")]
        Self::new(
            "lost flush",
            "answers-before-flush",
            Mistake::AnswersBeforeFlush,
        ),
        #[cfg(feature = "planted")]
        Self::new("torn page", "accepts-torn-pages", Mistake::AcceptsTornPages),
        #[cfg(feature = "planted")]
        Self::new(
            "unlocked gap",
            "leaves-gaps-unlocked",
            Mistake::LeavesGapsUnlocked,
        ),
        #[cfg(feature = "planted")]
        Self::new("unlocked gap", "loses-split-gaps", Mistake::LosesSplitGaps),
        #[cfg(feature = "planted")]
        Self::new(
            "unlocked gap",
            "loses-joined-gaps",
            Mistake::LosesJoinedGaps,
        ),
        #[cfg(feature = "planted")]
        Self::new("unlocked gap", "looks-once", Mistake::LooksOnce),
        #[cfg(feature = "planted")]
        Self::new("lost update", "trusts-claims", Mistake::TrustsClaims),
        #[cfg(feature = "planted")]
        Self::new("premature purge", "purges-early", Mistake::PurgesEarly),
        #[cfg(feature = "planted")]
        Self::new(
            "lost wake-up",
            "forgets-lock-waiters",
            Mistake::ForgetsLockWaiters,
        ),
        #[cfg(feature = "planted")]
        Self::new(
            "lost wake-up",
            "forgets-log-waiters",
            Mistake::ForgetsLogWaiters,
        ),
        #[cfg(feature = "planted")]
        Self::new("log hole", "leaves-log-holes", Mistake::LeavesLogHoles),
        #[cfg(feature = "planted")]
        Self::new("log hole", "accepts-log-holes", Mistake::AcceptsLogHoles),
        #[cfg(feature = "planted")]
        Self::new(
            "lost prepared",
            "rolls-back-prepared",
            Mistake::RollsBackPrepared,
        ),
        #[cfg(feature = "planted")]
        Self::new(
            "lost prepared",
            "promises-before-flush",
            Mistake::PromisesBeforeFlush,
        ),
    ];

    #[cfg(feature = "planted")]
    const fn new(class: &'static str, name: &'static str, mistake: Mistake) -> Self {
        let place = Place::Storage(mistake);
        Self { class, name, place }
    }

    /// The one of that name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|it| it.name == name)
    }

    /// Runs a seed with it. The error describes how it shows. It may also end the process by a
    /// failed assertion.
    pub fn run(self, seed: u64) -> Result<Tally, String> {
        let mut options = TortureOptions::of_seed(seed);
        match self.place {
            Place::Disk => options.lost_flush_permille = LOST_FLUSH_PERMILLE,
            #[cfg(feature = "planted")]
            Place::Storage(mistake) => stdx::planted::plant(Some(mistake)),
        }
        torture::run(seed, options)
    }
}
