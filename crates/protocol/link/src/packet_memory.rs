//! [`PacketMemory`]: memory for packets that are being received, or wait for their statement.
//!
//! A client announces a packet's length and may then take its time to send it. So a packet of more
//! than [`UNCOUNTED_BYTES`] asks for its whole length here before the rest of it is read. What has
//! no room waits, and the kernel holds its sender back; those that came before go on.
//!
//! Those that wait for room in all are served in the order in which they came. A packet of several
//! frames is the exception: it holds its first 16 MiB when it asks for more, so it waits for no
//! turn. Two such packets may wait for each other until one fails with
//! [`Disconnect::NoMemory`](crate::Disconnect::NoMemory).
//!
//! (I1) `used` is the sum of all shares, and of each account the sum of its shares.
//! (I2) An account has half of the memory at the most, unless its only packet is larger: there is
//!      room for others, whatever one account sends.
//! (I3) `used` is above the limit only while a single packet is.
//!
//! The mutex is taken for packets above [`UNCOUNTED_BYTES`] alone.

use std::collections::{BTreeMap, HashMap};
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
    /// The packets that wait, by ticket: the first has waited longest.
    waiting: BTreeMap<u64, Waiter>,
    /// Packets that had to wait for room since the start. Also the last ticket.
    wait_count: u64,
}

#[derive(Debug)]
struct Waiter {
    /// `None` once it has been woken.
    waker: Option<Waker>,
    /// Its account has room: it waits for others.
    waits_for_all: bool,
}

impl State {
    /// Lets those that wait look again.
    fn wake_all(&mut self) {
        let wakers = self.waiting.values_mut().filter_map(|it| it.waker.take());
        wakers.for_each(Waker::wake);
    }

    /// Whether nobody who waits for room in all came before the holder of `ticket`.
    fn is_in_turn(&self, ticket: Option<u64>) -> bool {
        let mut before = self.waiting.range(..ticket.unwrap_or(u64::MAX));
        before.all(|(_, waiter)| !waiter.waits_for_all)
    }
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
        state.wake_all();
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

/// A packet's place among those that wait; given up on drop.
#[derive(Debug)]
pub(crate) struct WaitPlace {
    memory: PacketMemory,
    /// `None` while it does not wait.
    ticket: Option<u64>,
}

impl Drop for WaitPlace {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            let mut state = self.memory.0.state.lock();
            state.waiting.remove(&ticket);
            state.wake_all();
        }
    }
}

impl PacketShare {
    /// The packets that come from now on are an account's.
    pub(crate) fn set_account(&mut self, account: &str) {
        self.clear();
        self.account = Arc::from(account);
    }

    /// A place for [`PacketShare::poll_hold`].
    pub(crate) fn wait_place(&self) -> WaitPlace {
        WaitPlace {
            memory: self.memory.clone(),
            ticket: None,
        }
    }

    /// Has room for `bytes` in all once it is ready. One wait has one `place`.
    pub(crate) fn poll_hold(
        &mut self,
        bytes: usize,
        place: &mut WaitPlace,
        context: &Context<'_>,
    ) -> Poll<()> {
        if bytes <= UNCOUNTED_BYTES.max(self.bytes)
            || self.hold_or_wait(bytes, place, context.waker())
        {
            return Poll::Ready(());
        }
        Poll::Pending
    }

    /// Takes what is missing of `bytes`, or leaves the waker.
    fn hold_or_wait(&mut self, bytes: usize, place: &mut WaitPlace, waker: &Waker) -> bool {
        let limit = self.memory.0.limit;
        let (more, own) = (bytes - self.bytes, self.bytes);
        let mut state = self.memory.0.state.lock();
        let of_account = state.by_account.get(&self.account).copied().unwrap_or(0);
        let fits_account = of_account + more <= limit / 2 || of_account == own;
        let fits = state.used + more <= limit || state.used == own;
        let is_in_turn = own != 0 || state.is_in_turn(place.ticket);
        if fits_account && fits && is_in_turn {
            let account = Arc::clone(&self.account);
            *state.by_account.entry(account).or_default() += more;
            state.used += more;
            self.bytes = bytes;
            if let Some(ticket) = place.ticket.take() {
                state.waiting.remove(&ticket);
                state.wake_all();
            }
            return true;
        }
        let last = &mut state.wait_count;
        let ticket = *place.ticket.get_or_insert_with(|| {
            *last += 1;
            *last
        });
        let waiter = Waiter {
            waker: Some(waker.clone()),
            waits_for_all: fits_account,
        };
        state.waiting.insert(ticket, waiter);
        false
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

    /// A connection that keeps its place from one try to the next.
    struct Peer {
        share: PacketShare,
        place: WaitPlace,
    }

    impl Peer {
        fn poll(&mut self, bytes: usize, waker: &Waker) -> Poll<()> {
            let context = Context::from_waker(waker);
            self.share.poll_hold(bytes, &mut self.place, &context)
        }

        fn holds(&mut self, bytes: usize) -> bool {
            self.poll(bytes, Waker::noop()).is_ready()
        }
    }

    fn peer(memory: &PacketMemory, account: &str) -> Peer {
        let mut share = memory.share();
        share.set_account(account);
        let place = share.wait_place();
        Peer { share, place }
    }

    #[test]
    fn what_is_small_is_not_counted() {
        let memory = PacketMemory::new(LIMIT);
        let mut a = peer(&memory, "a");
        assert!(a.holds(UNCOUNTED_BYTES));
        assert_eq!(memory.used(), 0);
        assert!(a.holds(UNCOUNTED_BYTES + 1));
        assert_eq!(memory.used(), UNCOUNTED_BYTES + 1);
    }

    #[test]
    fn an_account_has_half_and_all_have_the_whole() {
        let memory = PacketMemory::new(LIMIT);
        let (mut a, mut also_a) = (peer(&memory, "a"), peer(&memory, "a"));
        assert!(a.holds(LIMIT / 2 - (1 << 20)));
        assert!(also_a.holds(1 << 20), "at half");
        assert!(!also_a.holds((1 << 20) + 1), "above it");
        let (mut b, mut c) = (peer(&memory, "b"), peer(&memory, "c"));
        assert!(b.holds(LIMIT / 2), "at the whole");
        assert!(!c.holds(UNCOUNTED_BYTES + 1), "above it");
        assert_eq!(memory.wait_count(), 2);
        drop(a);
        assert!(c.holds(UNCOUNTED_BYTES + 1), "what went is free");
        drop((also_a, b, c));
        assert_eq!(memory.used(), 0);
        assert!(memory.0.state.lock().by_account.is_empty());
    }

    #[test]
    fn a_packet_that_is_alone_may_be_larger() {
        let memory = PacketMemory::new(LIMIT);
        let (mut a, mut b) = (peer(&memory, "a"), peer(&memory, "b"));
        assert!(a.holds(LIMIT * 2));
        assert!(a.holds(LIMIT * 3), "and grow");
        assert!(!b.holds(UNCOUNTED_BYTES + 1));
        let whole = a.share.split();
        assert!(!b.holds(UNCOUNTED_BYTES + 1), "until it is done with");
        drop(whole);
        assert!(b.holds(LIMIT * 2));
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
        let (mut a, mut b) = (peer(&memory, "a"), peer(&memory, "b"));
        assert!(a.holds(LIMIT));
        let flag = Arc::new(Flag(sync::atomic::AtomicBool::new(false)));
        let waker = Waker::from(Arc::clone(&flag));
        assert!(b.poll(LIMIT, &waker).is_pending());
        for _ in 0..2 {
            assert!(b.poll(LIMIT, &waker).is_pending());
        }
        assert_eq!(memory.wait_count(), 1, "it waits once");
        a.share.clear();
        assert!(flag.0.load(sync::atomic::Ordering::SeqCst));
        assert!(b.poll(LIMIT, &waker).is_ready());
    }

    #[test]
    fn who_came_first_is_served_first() {
        let memory = PacketMemory::new(LIMIT);
        let mut peers = ["a", "b", "c", "d"].map(|account| peer(&memory, account));
        let [a, b, c, d] = &mut peers;
        assert!(a.holds(LIMIT / 2) && b.holds(LIMIT / 4));
        assert!(!c.holds(LIMIT / 2), "too large");
        assert!(!d.holds(LIMIT / 8), "it has room, and c came before it");
        b.share.clear();
        assert!(c.holds(LIMIT / 2), "its turn");
        assert!(!d.holds(LIMIT / 8));
        c.share.clear();
        assert!(d.holds(LIMIT / 8));
        assert!(!b.holds(LIMIT / 2) && !c.holds(LIMIT / 8));
        assert!(d.holds(LIMIT / 4), "who holds some goes on");
        b.place = b.share.wait_place();
        assert!(c.holds(LIMIT / 8), "b has given up");
        assert!(memory.0.state.lock().waiting.is_empty());
    }

    #[test]
    fn who_waits_for_an_account_keeps_no_other_out() {
        let memory = PacketMemory::new(LIMIT);
        let (mut a, mut also_a) = (peer(&memory, "a"), peer(&memory, "a"));
        assert!(a.holds(LIMIT / 2) && !also_a.holds(LIMIT / 4));
        assert!(peer(&memory, "b").holds(LIMIT / 4));
        a.share.clear();
        assert!(also_a.holds(LIMIT / 4));
    }
}
