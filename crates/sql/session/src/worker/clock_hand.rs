//! Which entry of a full list is evicted: the clock algorithm (Corbato, 1968).

/// The hand of a clock over a list that does not shrink while the hand is kept.
#[derive(Debug, Default)]
pub(crate) struct ClockHand {
    /// The entry that is looked at next for eviction.
    at: usize,
}

impl ClockHand {
    /// The index of the entry to evict: the first that was not used for a round. `is_used` of each
    /// entry that the hand passes is cleared.
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
