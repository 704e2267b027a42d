//! Row locks: each client has eight of a million rows locked, and exchanges them in its turn.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use env::Random;
use format::{IndexId, TxnId};
use lock::{Ask, LockKind, LockName, LockTable, OwnerLocks, Term};
use store::ClientId;

use super::Stands;
use super::crowd::{self, Latch, Measured, Player, behind};

/// Rows that there are.
const ROW_COUNT: u64 = 1 << 20;

/// Locks of a transaction.
const LOCKS_EACH: u32 = 8;

/// Numbers of transactions that a thread may use.
const IDS_EACH: u64 = 1 << 40;

struct Locker<'a> {
    table: &'a Arc<LockTable>,
    latch: Option<&'a Latch>,
    random: Random,
    next_id: u64,
    /// What each client has locked.
    held: Vec<Option<OwnerLocks>>,
}

impl Player for Locker<'_> {
    fn turn(&mut self, client: usize) {
        if let Some(mut held) = self.held[client].take() {
            behind(self.latch, || held.release_all());
        }
        self.next_id += 1;
        let id = TxnId::new(self.next_id).expect("numbers of transactions are small");
        let mut locks = OwnerLocks::new(Arc::clone(self.table), id, ClientId::NONE);
        for _ in 0..LOCKS_EACH {
            let row = self.random.below(ROW_COUNT);
            let name = LockName::key(IndexId(1), &row.to_be_bytes());
            let ask = Ask {
                name: &name,
                kind: LockKind::EXCLUSIVE_RECORD,
                term: Term::Transaction,
                patience: Duration::ZERO,
                work: 0,
            };
            // A row that another has is left out.
            let _ = behind(self.latch, || locks.acquire(ask, 0));
        }
        self.held[client] = Some(locks);
    }
}

pub(super) fn measure(clients: u32, stands: Stands, duration: Duration) -> Result<Measured> {
    let table = Arc::new(LockTable::new(1 << 32));
    let latch = (stands == Stands::Yes).then(Latch::default);
    let measured = crowd::play(clients, duration, |thread, own| Locker {
        table: &table,
        latch: latch.as_ref(),
        random: Random::new(stdx::to_u64(thread)),
        next_id: stdx::to_u64(thread) * IDS_EACH,
        held: (0..own).map(|_| None).collect(),
    });
    let contended = latch.as_ref().map_or(0.0, Latch::contended);
    Ok(Measured {
        contended,
        ..measured
    })
}
