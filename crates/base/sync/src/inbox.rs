//! Messages from many threads to one worker that may be asleep.
//!
//! The queue is a stack. Senders push with a compare-and-swap. The receiver takes all of it with
//! one swap and reverses it, so messages of one sender arrive in order. The head is the only shared
//! word and holds the whole state:
//!
//! | head | meaning |
//! |---|---|
//! | null | empty, receiver awake |
//! | `ASLEEP` | empty, receiver asleep or about to be |
//! | a node | messages, newest first |
//!
//! (I1) Only the receiver sets `ASLEEP`, and only by a compare-and-swap from null: it cannot fall
//!      asleep over a message.
//! (I2) The sender that replaces `ASLEEP` by a node, and no other, must poke the receiver. With one
//!      word there is no window between "is it asleep" and "is there a message". So no wake-up is
//!      lost, and at most one poke is made for each sleep.
//! (I3) A node belongs to its sender until the compare-and-swap succeeds, then to the receiver.
//!      Only the receiver reads through the head, after its swap; hence there is no ABA problem.

use std::fmt;
use std::marker::PhantomData;
use std::ptr;

use crate::atomic::{AtomicPtr, Ordering};

/// A queue of many senders and one receiver.
pub struct Inbox<T> {
    /// See the table above.
    head: AtomicPtr<Node<T>>,
    /// The inbox owns the messages in it.
    owns: PhantomData<T>,
}

/// What a sender must do after its push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a sleeping receiver must be poked"]
pub enum Pushed {
    /// Nothing: the receiver is awake and will look.
    Seen,
    /// Poke the receiver: it sleeps, and only this sender knows.
    MustPoke,
}

struct Node<T> {
    /// The message that was pushed before, or null. Written before the push, read after the take.
    next: *mut Node<T>,
    /// The message.
    message: T,
}

/// The address that stands for "asleep"; no node can have it, as nodes are aligned to 8 bytes.
const fn asleep<T>() -> *mut Node<T> {
    const { assert!(1 < align_of::<Node<T>>()) }
    ptr::without_provenance_mut(1)
}

impl<T> Inbox<T> {
    /// An empty inbox of a receiver that is awake.
    pub fn new() -> Self {
        Self {
            head: AtomicPtr::new(ptr::null_mut()),
            owns: PhantomData,
        }
    }

    /// Adds a message. Any thread; never blocks.
    pub fn push(&self, message: T) -> Pushed {
        let node = Box::into_raw(Box::new(Node {
            next: ptr::null_mut(),
            message,
        }));
        // Relaxed: the value is only compared and stored, never followed (I3).
        let mut seen = self.head.load(Ordering::Relaxed);
        loop {
            let next = if seen == asleep() {
                ptr::null_mut()
            } else {
                seen
            };
            // SAFETY: the node is still ours alone (I3).
            unsafe { (*node).next = next };
            // Release: pairs with the Acquire of `take`, which then reads the node. Acquire is
            // not needed: an earlier sender's node is not read here.
            match self
                .head
                .compare_exchange_weak(seen, node, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) if seen == asleep() => return Pushed::MustPoke,
                Ok(_) => return Pushed::Seen,
                Err(now) => seen = now,
            }
        }
    }

    /// Takes all messages into `into`, oldest first, and leaves the inbox empty and awake.
    /// For the receiver alone.
    pub fn take(&self, into: &mut Vec<T>) {
        // Acquire: pairs with the Release of each `push`; those form one release sequence, because
        // every change of the head by a sender is a read-modify-write.
        let mut node = self.head.swap(ptr::null_mut(), Ordering::Acquire);
        if node == asleep() {
            return;
        }
        let first = into.len();
        while !node.is_null() {
            // SAFETY: the swap made the whole chain ours (I3), and each node came from a Box.
            let owned = unsafe { Box::from_raw(node) };
            node = owned.next;
            into.push(owned.message);
        }
        into[first..].reverse();
    }

    /// Announces that the receiver is about to sleep. Returns `true` if it may, `false` if there
    /// are messages. After `true` the next sender gets [`Pushed::MustPoke`]. For the receiver
    /// alone.
    pub fn try_sleep(&self) -> bool {
        // Relaxed: nothing is read through the head, and the poke itself orders what follows.
        self.head
            .compare_exchange(
                ptr::null_mut(),
                asleep(),
                Ordering::Relaxed,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    /// Whether messages wait; a hint.
    pub fn is_empty(&self) -> bool {
        let head = self.head.load(Ordering::Relaxed);
        head.is_null() || head == asleep()
    }
}

impl<T> Default for Inbox<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for Inbox<T> {
    fn drop(&mut self) {
        let mut rest = Vec::new();
        self.take(&mut rest);
    }
}

impl<T> fmt::Debug for Inbox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Inbox")
    }
}

// SAFETY: messages move between threads, one owner at a time (I3), so `T: Send` is all it takes.
unsafe impl<T: Send> Send for Inbox<T> {}
// SAFETY: as above; no `&T` is ever shared.
unsafe impl<T: Send> Sync for Inbox<T> {}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn keeps_each_senders_order_and_drops_the_rest() {
        let inbox = Inbox::new();
        let payload = Arc::new(());
        assert_eq!(inbox.push((1, payload.clone())), Pushed::Seen);
        assert_eq!(inbox.push((2, payload.clone())), Pushed::Seen);
        let mut taken = Vec::new();
        inbox.take(&mut taken);
        assert_eq!(
            taken.iter().map(|message| message.0).collect::<Vec<_>>(),
            [1, 2]
        );
        assert_eq!(inbox.push((3, payload.clone())), Pushed::Seen);
        drop(inbox);
        drop(taken);
        assert_eq!(Arc::strong_count(&payload), 1);
    }

    #[test]
    fn one_poke_for_a_sleep() {
        let inbox = Inbox::new();
        assert!(inbox.try_sleep());
        assert!(inbox.is_empty());
        assert_eq!(inbox.push(1), Pushed::MustPoke);
        assert_eq!(inbox.push(2), Pushed::Seen);
        assert!(!inbox.try_sleep());
        let mut taken = Vec::new();
        inbox.take(&mut taken);
        assert_eq!(taken, [1, 2]);
        assert!(inbox.try_sleep());
        inbox.take(&mut taken);
        assert_eq!(inbox.push(3), Pushed::Seen);
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a test of real threads")]
    fn nothing_is_lost_between_threads() {
        const MESSAGE_COUNT: usize = 10_000;
        let inbox = Arc::new(Inbox::new());
        let senders: Vec<_> = (0..3)
            .map(|sender| {
                let inbox = inbox.clone();
                std::thread::spawn(move || {
                    for number in 0..MESSAGE_COUNT {
                        let _ = inbox.push((sender, number));
                    }
                })
            })
            .collect();
        let mut taken = Vec::new();
        while taken.len() < 3 * MESSAGE_COUNT {
            inbox.take(&mut taken);
        }
        for sender in senders {
            sender.join().unwrap();
        }
        for sender in 0..3 {
            let numbers = taken
                .iter()
                .filter(|message| message.0 == sender)
                .map(|it| it.1);
            assert!(numbers.eq(0..MESSAGE_COUNT));
        }
    }
}

#[cfg(all(test, loom))]
mod models {
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicU32, Ordering};
    use loom::thread;

    use super::*;

    #[test]
    fn a_sleeping_receiver_is_poked_once_and_nothing_is_lost() {
        loom::model(|| {
            let inbox = Arc::new(Inbox::new());
            let pokes = Arc::new(AtomicU32::new(0));
            let senders: Vec<_> = (0..2)
                .map(|sender| {
                    let (inbox, pokes) = (inbox.clone(), pokes.clone());
                    thread::spawn(move || {
                        if inbox.push(Box::new(sender)) == Pushed::MustPoke {
                            pokes.fetch_add(1, Ordering::Relaxed);
                        }
                    })
                })
                .collect();
            let mut taken = Vec::new();
            inbox.take(&mut taken);
            let slept = inbox.try_sleep();
            for sender in senders {
                sender.join().unwrap();
            }
            let pending = !inbox.is_empty();
            // Asleep with a message in the box: then, and only then, a sender has poked, once.
            assert_eq!(pokes.load(Ordering::Relaxed), u32::from(slept && pending));
            inbox.take(&mut taken);
            let mut numbers: Vec<i32> = taken.iter().map(|number| **number).collect();
            numbers.sort_unstable();
            assert_eq!(numbers, [0, 1]);
        });
    }

    #[test]
    fn one_senders_messages_arrive_in_order() {
        loom::model(|| {
            let inbox = Arc::new(Inbox::new());
            let sender = {
                let inbox = inbox.clone();
                thread::spawn(move || {
                    let _ = inbox.push(1);
                    let _ = inbox.push(2);
                })
            };
            let mut taken = Vec::new();
            inbox.take(&mut taken);
            inbox.take(&mut taken);
            sender.join().unwrap();
            inbox.take(&mut taken);
            assert_eq!(taken, [1, 2]);
        });
    }
}
