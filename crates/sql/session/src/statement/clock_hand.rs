//! Which entry of a full list goes: the clock algorithm (Corbato, 1968).

/// The hand of a clock over a list that does not shrink while the hand is kept.
#[derive(Debug, Default)]
pub(crate) struct ClockHand {
    /// Which entry is looked at next when one must go.
    at: usize,
}

impl ClockHand {
    /// The index of the entry that goes: the first that was not used for a round. `is_used` of each
    /// that is passed is cleared.
    ///
    /// # Panics
    /// If there is no entry.
    pub(crate) fn victim<E>(
        &mut self,
        entries: &mut [E],
        is_used: impl Fn(&mut E) -> &mut bool,
    ) -> usize {
        loop {
            let index = self.at;
            self.at = (index + 1) % entries.len();
            if !std::mem::take(is_used(&mut entries[index])) {
                return index;
            }
        }
    }
}
