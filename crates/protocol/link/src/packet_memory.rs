//! [`PacketMemory`]: memory for packets that are being received, or wait for their statement.
//!
//! A client announces a packet's length and may then take its time to send it. So a packet of more
//! than [`UNCOUNTED_BYTES`] asks for its whole length here before the rest of it is read. What has
//! no room waits, and the kernel holds its sender back; those that came before go on. One that
//! waits holds [`UNCOUNTED_BYTES`] at the most, so no two wait for each other.
//!
//! (I1) `used` is the sum of all shares, and of each account the sum of its shares.
//! (I2) An account has half of the memory at the most, unless its only packet is larger: there is
//!      room for others, whatever one account sends.
//! (I3) `used` is above the limit only while a single packet is.
//!
//! The mutex is taken for packets above [`UNCOUNTED_BYTES`] alone.

use std::collections::HashMap;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use sync::Mutex;

/// A connection may hold as much without asking: more than statements usually have.
pub const UNCOUNTED_BYTES: usize = 64 << 10;

/// Memory for the packets of all connections. Clones share it.
#[derive(Debug, Clone)]
pub struct PacketMemory(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    /// `packet_memory_size`.
    limit: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    used: usize,
    /// What the packets of each account hold; none of those that hold nothing.
    by_account: HashMap<Arc<str>, usize>,
    /// Whom to wake when room comes free.
    waiting: Vec<Waker>,
    /// Packets that had to wait for room since the start.
    wait_count: u64,
}

impl PacketMemory {
    /// So many bytes.
    pub fn new(limit: usize) -> Self {
        Self(Arc::new(Pool {
            limit,
            state: Mutex::default(),
        }))
    }

    /// Bytes that packets hold.
    pub fn used(&self) -> usize {
        self.0.state.lock().used
    }

    /// Packets that had to wait for room since the start.
    pub fn wait_count(&self) -> u64 {
        self.0.state.lock().wait_count
    }

    /// A share that holds nothing, of a connection that is not logged in.
    pub(crate) fn share(&self) -> PacketShare {
        PacketShare {
            memory: self.clone(),
            account: Arc::from(""),
            bytes: 0,
        }
    }

    /// Takes `bytes` more for an account that holds `own` in the share that asks.
    fn take(&self, account: &Arc<str>, bytes: usize, own: usize) -> bool {
        let mut state = self.0.state.lock();
        let of_account = state.by_account.get(account).copied().unwrap_or(0);
        let fits_account = of_account + bytes <= self.0.limit / 2 || of_account == own;
        let fits = state.used + bytes <= self.0.limit || state.used == own;
        if fits_account && fits {
            state.used += bytes;
            *state.by_account.entry(Arc::clone(account)).or_default() += bytes;
        }
        fits_account && fits
    }

    fn give_back(&self, account: &Arc<str>, bytes: usize) {
        let mut state = self.0.state.lock();
        assert!(bytes <= state.used, "(I1)");
        state.used -= bytes;
        let left = match state.by_account.get_mut(account) {
            Some(held) => {
                assert!(bytes <= *held, "(I1)");
                *held -= bytes;
                *held
            }
            None => unreachable!("who gives back has taken"),
        };
        if left == 0 {
            state.by_account.remove(account);
        }
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }
}

/// What a connection's packets hold. Given back on drop.
#[derive(Debug)]
pub(crate) struct PacketShare {
    memory: PacketMemory,
    /// Whose packets they are; empty before the login.
    account: Arc<str>,
    bytes: usize,
}

impl PacketShare {
    /// The packets that come from now on are an account's.
    pub(crate) fn set_account(&mut self, account: &str) {
        self.clear();
        self.account = Arc::from(account);
    }

    /// Has room for `bytes` in all once it is ready.
    pub(crate) fn poll_hold(&mut self, bytes: usize, context: &Context<'_>) -> Poll<()> {
        if bytes <= UNCOUNTED_BYTES.max(self.bytes) || self.try_hold(bytes) {
            return Poll::Ready(());
        }
        let mut state = self.memory.0.state.lock();
        state.wait_count += 1;
        state.waiting.push(context.waker().clone());
        drop(state);
        // What was given back before the waker stood there has woken nobody.
        match self.try_hold(bytes) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    fn try_hold(&mut self, bytes: usize) -> bool {
        let taken = self
            .memory
            .take(&self.account, bytes - self.bytes, self.bytes);
        if taken {
            self.bytes = bytes;
        }
        taken
    }

    /// Hands what it holds over to a share of its own: the packet is whole.
    pub(crate) fn split(&mut self) -> Option<PacketShare> {
        (self.bytes != 0).then(|| PacketShare {
            memory: self.memory.clone(),
            account: Arc::clone(&self.account),
            bytes: std::mem::take(&mut self.bytes),
        })
    }

    /// Holds nothing any more.
    pub(crate) fn clear(&mut self) {
        if self.bytes != 0 {
            self.memory.give_back(&self.account, self.bytes);
            self.bytes = 0;
        }
    }
}

impl Drop for PacketShare {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 8 << 20;

    fn share(memory: &PacketMemory, account: &str) -> PacketShare {
        let mut share = memory.share();
        share.set_account(account);
        share
    }

    fn holds(share: &mut PacketShare, bytes: usize) -> bool {
        share
            .poll_hold(bytes, &Context::from_waker(Waker::noop()))
            .is_ready()
    }

    #[test]
    fn what_is_small_is_not_counted() {
        let memory = PacketMemory::new(LIMIT);
        let mut a = share(&memory, "a");
        assert!(holds(&mut a, UNCOUNTED_BYTES));
        assert_eq!(memory.used(), 0);
        assert!(holds(&mut a, UNCOUNTED_BYTES + 1));
        assert_eq!(memory.used(), UNCOUNTED_BYTES + 1);
    }

    #[test]
    fn an_account_has_half_and_all_have_the_whole() {
        let memory = PacketMemory::new(LIMIT);
        let (mut a, mut also_a) = (share(&memory, "a"), share(&memory, "a"));
        assert!(holds(&mut a, LIMIT / 2 - (1 << 20)));
        assert!(holds(&mut also_a, 1 << 20), "at half");
        assert!(!holds(&mut also_a, (1 << 20) + 1), "above it");
        let (mut b, mut c) = (share(&memory, "b"), share(&memory, "c"));
        assert!(holds(&mut b, LIMIT / 2), "at the whole");
        assert!(!holds(&mut c, UNCOUNTED_BYTES + 1), "above it");
        assert_eq!(memory.wait_count(), 2);
        drop(a);
        assert!(holds(&mut c, UNCOUNTED_BYTES + 1), "what went is free");
        drop((also_a, b, c));
        assert_eq!(memory.used(), 0);
        assert!(memory.0.state.lock().by_account.is_empty());
    }

    #[test]
    fn a_packet_that_is_alone_may_be_larger() {
        let memory = PacketMemory::new(LIMIT);
        let (mut a, mut b) = (share(&memory, "a"), share(&memory, "b"));
        assert!(holds(&mut a, LIMIT * 2));
        assert!(holds(&mut a, LIMIT * 3), "and grow");
        assert!(!holds(&mut b, UNCOUNTED_BYTES + 1));
        let whole = a.split();
        assert!(!holds(&mut b, UNCOUNTED_BYTES + 1), "until it is done with");
        drop(whole);
        assert!(holds(&mut b, LIMIT * 2));
    }

    #[test]
    fn who_waits_is_woken() {
        struct Flag(sync::atomic::AtomicBool);
        impl std::task::Wake for Flag {
            fn wake(self: Arc<Self>) {
                self.0.store(true, sync::atomic::Ordering::SeqCst);
            }
        }
        let memory = PacketMemory::new(LIMIT);
        let (mut a, mut b) = (share(&memory, "a"), share(&memory, "b"));
        assert!(holds(&mut a, LIMIT));
        let flag = Arc::new(Flag(sync::atomic::AtomicBool::new(false)));
        let waker = Waker::from(Arc::clone(&flag));
        assert!(
            b.poll_hold(LIMIT, &Context::from_waker(&waker))
                .is_pending()
        );
        a.clear();
        assert!(flag.0.load(sync::atomic::Ordering::SeqCst));
        assert!(b.poll_hold(LIMIT, &Context::from_waker(&waker)).is_ready());
    }
}
