//! A replication provider in memory: one order of all write sets, certification, and delivery when
//! the simulation says so.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use store::replication::{Certified, GroupId, Position, Provider, Ticket, WriteSet};
use store::{Outcome, Suspend, WaitReason};
use sync::Mutex;

use super::Mistake;

/// As Galera's `wsrep_max_ws_size`.
const WRITE_SET_BYTES_MAX: u64 = i32::MAX as u64;

/// The nodes of a group, and what they have sent each other.
#[derive(Debug)]
pub(crate) struct Group {
    id: GroupId,
    mistake: Option<Mistake>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// What has its place, from seqno 1 on.
    events: Vec<Arc<Event>>,
    /// The last place at which a key was changed.
    changed: HashMap<KeyName, u64>,
    /// Write sets on their way to the order.
    sent: Vec<Sent>,
    members: Vec<Member>,
}

/// A key as a name that all nodes share.
type KeyName = (String, usize, Box<[u8]>);

/// A write set that has its place.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) position: Position,
    pub(crate) writes: Arc<WriteSet>,
    /// It conflicts with one before it.
    pub(crate) is_refused: bool,
    /// The node that sent it, and its life then.
    origin: (usize, u64),
    ticket: Ticket,
    /// The last place before it that has changed the same.
    depends: u64,
}

#[derive(Debug)]
struct Sent {
    origin: (usize, u64),
    ticket: Ticket,
    /// The last place that its node had passed when it was sent.
    seen: u64,
    writes: Arc<WriteSet>,
}

/// A node, as the group sees it.
#[derive(Debug, Default)]
struct Member {
    /// Counts its starts.
    life: u64,
    /// Places that it was told of.
    delivered: u64,
    /// Places that were given to its appliers, or that its own transactions have.
    handed: u64,
    /// Places that it has passed.
    left: u64,
    tickets: HashMap<Ticket, Option<Certified>>,
    /// All that wait for something of this node.
    wakers: Vec<Waker>,
}

impl Member {
    fn wake(&mut self) {
        self.wakers.drain(..).for_each(Waker::wake);
    }
}

impl Group {
    pub(crate) fn new(id: u8, node_count: usize, mistake: Option<Mistake>) -> Arc<Self> {
        let members = (0..node_count).map(|_| Member::default()).collect();
        Arc::new(Self {
            id: GroupId([id; 16]),
            mistake,
            state: Mutex::new(State {
                members,
                ..State::default()
            }),
        })
    }

    /// A node that has the order up to `position` joins. Whoever waited in its former life waits
    /// no more.
    pub(crate) fn join(self: &Arc<Self>, node: usize, position: Option<Position>) -> Node {
        let mut state = self.state.lock();
        let member = &mut state.members[node];
        member.life += 1;
        let passed = position.map_or(0, |position| position.seqno);
        assert!(
            passed <= member.delivered,
            "nobody passes what he was not told"
        );
        (member.left, member.handed) = (passed, passed);
        member.tickets.clear();
        member.wake();
        Node {
            group: Arc::clone(self),
            number: node,
            life: member.life,
        }
    }

    /// Gives a place to one of the write sets that were sent; `drawn` chooses it.
    pub(crate) fn order(&self, drawn: usize) {
        let mut state = self.state.lock();
        if state.sent.is_empty() {
            return;
        }
        let drawn = drawn % state.sent.len();
        let sent = state.sent.remove(drawn);
        let seqno = stdx::to_u64(state.events.len()) + 1;
        let names = self.names(&sent.writes);
        let depends = names.iter().filter_map(|name| state.changed.get(name));
        let depends = depends.copied().max().unwrap_or(0);
        let is_refused = sent.seen < depends;
        if !is_refused {
            state
                .changed
                .extend(names.into_iter().map(|name| (name, seqno)));
        }
        state.events.push(Arc::new(Event {
            position: Position {
                group: self.id,
                seqno,
            },
            writes: sent.writes,
            is_refused,
            origin: sent.origin,
            ticket: sent.ticket,
            depends,
        }));
    }

    fn names(&self, writes: &WriteSet) -> Vec<KeyName> {
        let name = |key: &store::replication::CertificationKey| {
            (key.table.name.to_string(), key.index, key.key.clone())
        };
        let is_seen = |name: &KeyName| name.1 == 0 || self.mistake != Some(Mistake::ForgetsKeys);
        writes.keys.iter().map(name).filter(is_seen).collect()
    }

    /// Loses the write sets of a node's former lives that have no place yet.
    pub(crate) fn lose(&self, node: usize) {
        let mut state = self.state.lock();
        let life = state.members[node].life;
        state
            .sent
            .retain(|sent| sent.origin.0 != node || sent.origin.1 == life);
    }

    /// Tells a node of the next place. Returns false if there is none.
    pub(crate) fn deliver(&self, node: usize) -> bool {
        let mut state = self.state.lock();
        let next = state.members[node].delivered;
        let Some(event) = state.events.get(stdx::to_usize(next)).map(Arc::clone) else {
            return false;
        };
        let member = &mut state.members[node];
        member.delivered += 1;
        if event.origin == (node, member.life)
            && let Some(ticket) = member.tickets.get_mut(&event.ticket)
        {
            *ticket = Some(match event.is_refused {
                true => Certified::Refused,
                false => Certified::At(event.position),
            });
        }
        member.wake();
        true
    }

    /// The places that there are.
    pub(crate) fn events(&self) -> Vec<Arc<Event>> {
        self.state.lock().events.clone()
    }

    /// Whether nothing is on its way, and each node has passed each place.
    pub(crate) fn is_still(&self) -> bool {
        let state = self.state.lock();
        let count = stdx::to_u64(state.events.len());
        state.sent.is_empty() && state.members.iter().all(|it| it.left == count)
    }

    /// What a stuck simulation shows.
    pub(crate) fn picture(&self) -> String {
        let state = self.state.lock();
        let member = |it: &Member| (it.delivered, it.handed, it.left, it.tickets.clone());
        let members: Vec<_> = state.members.iter().map(member).collect();
        let (sent, events) = (state.sent.len(), state.events.len());
        format!("{events} places, {sent} sent; delivered, handed, left, tickets: {members:?}")
    }
}

/// A node's side of the group, in one of its lives.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    group: Arc<Group>,
    number: usize,
    life: u64,
}

impl Node {
    /// Waits until `ready` of this node's member has an answer. Never ends for a former life.
    async fn until<T>(&self, ready: impl Fn(&mut State) -> Option<T>) -> T {
        poll_fn(|context| {
            let mut state = self.group.state.lock();
            if state.members[self.number].life != self.life {
                return Poll::Pending;
            }
            match ready(&mut state) {
                Some(answer) => Poll::Ready(answer),
                None => {
                    let waker = context.waker().clone();
                    state.members[self.number].wakers.push(waker);
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// The next place for an applier. Places of the node's own transactions are left out, unless
    /// they were refused. It waits for those that have changed the same.
    pub(crate) async fn next(&self) -> Arc<Event> {
        let event = self.until(|state| self.hand(state)).await;
        let depends = event.depends;
        self.until(|state| (depends <= state.members[self.number].left).then_some(()))
            .await;
        event
    }

    fn hand(&self, state: &mut State) -> Option<Arc<Event>> {
        loop {
            let member = &state.members[self.number];
            if member.delivered <= member.handed {
                return None;
            }
            let event = Arc::clone(&state.events[stdx::to_usize(member.handed)]);
            let is_own = event.origin == (self.number, self.life);
            state.members[self.number].handed += 1;
            if !is_own || event.is_refused {
                return Some(event);
            }
        }
    }

    fn suspend(&self, ready: impl Fn(&mut State) -> Option<()> + 'static) -> Suspend {
        let node = self.clone();
        Suspend::new(WaitReason::Order, async move { node.until(ready).await })
    }
}

impl Provider for Node {
    fn write_set_bytes_max(&self) -> u64 {
        WRITE_SET_BYTES_MAX
    }

    fn certify(&self, ticket: Ticket, writes: &Arc<WriteSet>) -> Outcome<Certified> {
        let number = self.number;
        let mut state = self.group.state.lock();
        let State { members, sent, .. } = &mut *state;
        let member = &mut members[number];
        match member.tickets.get(&ticket) {
            Some(Some(Certified::Refused)) => {
                member.tickets.remove(&ticket);
                return Ok(Certified::Refused);
            }
            Some(Some(placed)) => return Ok(*placed),
            Some(None) => {}
            None => {
                member.tickets.insert(ticket, None);
                sent.push(Sent {
                    origin: (number, self.life),
                    ticket,
                    seen: member.left,
                    writes: Arc::clone(writes),
                });
            }
        }
        drop(state);
        let is_known = move |state: &mut State| {
            let known = state.members[number].tickets.get(&ticket).copied();
            known.flatten().map(|_| ())
        };
        Err(self.suspend(is_known).into())
    }

    fn enter(&self, position: Position) -> Outcome<()> {
        let number = self.number;
        let is_next = move |state: &mut State| {
            let left = state.members[number].left;
            assert!(left < position.seqno, "a place is passed once");
            (left + 1 == position.seqno).then_some(())
        };
        let is_turn = is_next(&mut self.group.state.lock()).is_some();
        if is_turn || self.group.mistake == Some(Mistake::EntersEarly) {
            return Ok(());
        }
        Err(self.suspend(is_next).into())
    }

    fn leave(&self, position: Position) {
        let mut state = self.group.state.lock();
        let member = &mut state.members[self.number];
        if self.group.mistake != Some(Mistake::EntersEarly) {
            assert_eq!(
                member.left + 1,
                position.seqno,
                "places come in their order"
            );
        }
        member.left = position.seqno;
        let is_over = |certified: &Option<Certified>| *certified == Some(Certified::At(position));
        member.tickets.retain(|_, certified| !is_over(certified));
        member.wake();
    }
}
