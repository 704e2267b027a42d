//! What holds after each step, whenever nothing is under way, and at the end.

use super::world::{Phase, World};
use super::{SERVER_COUNT, SESSION_COUNT};

/// Rounds in which all that is under way arrives: each connection moves a few times at the most.
const ARRIVAL_ROUNDS: usize = 200;

impl World<'_> {
    /// S1 and S2.
    pub(super) fn observe(&mut self) {
        let most = u64::from(self.options.limit) + u64::from(self.options.overflow);
        for place in 0..SERVER_COUNT {
            let count = self.cluster.borrow().count(place);
            if most < count {
                self.fault(format!("{count} connections to a server (S1)"));
            }
            self.observe_line(place);
            let is_there = |it: &&(usize, _)| it.0 == place;
            self.flights[place] = self.orders.iter().filter(is_there).count();
        }
    }

    /// Who was woken was the first of its worker, or the first of those that hold a connection.
    fn observe_line(&mut self, place: usize) {
        let mut ahead: Vec<(usize, bool)> = Vec::new();
        let mut remaining = Vec::new();
        for number in std::mem::take(&mut self.lines[place]) {
            let player = &mut self.players[number];
            let worker = player.worker;
            let Phase::Waits(waiting) = &mut player.phase else {
                continue;
            };
            if !player.bell.has_rung() {
                ahead.push((worker, waiting.holds));
                remaining.push(number);
                continue;
            }
            let is_before = |it: &&(usize, bool)| it.0 == worker && (it.1 || !waiting.holds);
            let overtaken = ahead.iter().filter(is_before).count();
            waiting.has_overtaken = self.flights[place] < overtaken;
        }
        self.lines[place] = remaining;
    }

    /// All that is under way arrives; then nobody waits for what is there (S5).
    pub(super) fn arrive(&mut self) {
        for _ in 0..ARRIVAL_ROUNDS {
            let mut is_still = self.orders.is_empty();
            while !self.orders.is_empty() {
                self.carry_out_one();
                self.observe();
            }
            for worker in 0..self.options.worker_count {
                is_still &= !self.answer_questions(worker);
                self.observe();
            }
            for number in 0..SESSION_COUNT {
                if self.players[number].bell.has_rung() {
                    is_still = false;
                    self.poll(number);
                    self.observe();
                }
            }
            if is_still && self.orders.is_empty() {
                self.tally.still += 1;
                return self.observe_still();
            }
        }
        self.fault("connections move without an end (S5)");
    }

    fn observe_still(&mut self) {
        for place in 0..SERVER_COUNT {
            let mut waiting = 0;
            let mut holding = 0;
            for player in &self.players {
                if let Phase::Waits(it) = &player.phase
                    && it.place == place
                {
                    waiting += 1;
                    holding += u64::from(it.holds);
                }
            }
            if waiting == 0 {
                continue;
            }
            let pool = self.fronts[0].pool();
            let numbers = pool.numbers(self.ids[place]).expect("it is of the pool");
            let within = numbers.open - numbers.open_above;
            if numbers.waiting != waiting {
                self.fault("a wake-up is lost (S5)");
            } else if 0 < numbers.idle || within < u64::from(self.options.limit) {
                self.fault("a session waits for what is there (S5)");
            } else if 0 < holding && numbers.open_above < u64::from(self.options.overflow) {
                self.fault("a session that holds one waits below the overflow (S5)");
            }
        }
    }

    /// S7.
    pub(super) fn observe_end(&mut self) {
        for place in 0..SERVER_COUNT {
            let pool = self.fronts[0].pool();
            let numbers = pool.numbers(self.ids[place]).expect("it is of the pool");
            let count = self.cluster.borrow().count(place);
            if numbers.open != numbers.idle || numbers.waiting != 0 {
                self.fault(format!("a slot is lost (S7): {numbers:?}"));
            }
            if count != numbers.open {
                self.fault(format!("{count} connections, {} slots (S7)", numbers.open));
            }
        }
        if self.cluster.borrow().open_count() != 0 {
            self.fault("a transaction is open in the end (S7)");
        }
    }
}
