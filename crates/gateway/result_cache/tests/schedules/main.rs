//! Clients, servers and caches under one seed, and planted mistakes that have to be found.
//!
//! `verified`: changes of tables end what is kept. `vouched`: its operator's word does.

#![forbid(unsafe_code)]

#[path = "../shared/reply.rs"]
mod reply;
mod verified;
mod vouched;

/// xorshift64* (Vigna 2016).
struct Random(u64);

impl Random {
    fn of(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % limit
    }

    fn index(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit).expect("small");
        usize::try_from(self.below(limit)).expect("small")
    }
}
