//! Idle connections: a stack a login, and all of them by the time since when they are idle.
//!
//! Each entry is in two lists that are linked through a slab: the stack of its login and the list
//! of all. Both go from the longest idle to the last used. So the last used of a login and the
//! longest idle of all are found at once, and taking either costs a few stores.
//!
//! (S1) Both lists are sorted by `since`; equal times stand in the order of their insertion.
//! (S2) A login without entries has no stack, so logins that are gone leave nothing behind.

use std::collections::hash_map;

use env::Instant;
use stdx::Slab;

use crate::keys::{HashMap, Login};

/// See the module's head.
#[derive(Debug)]
pub(crate) struct IdleStacks<T> {
    nodes: Slab<Node<T>>,
    stacks: HashMap<Login, Ends>,
    all: Ends,
}

/// An entry that was taken out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Idle<T> {
    /// What the connection is logged in as.
    pub(crate) login: Login,
    /// Since when it is idle.
    pub(crate) since: Instant,
    /// The connection.
    pub(crate) value: T,
}

#[derive(Debug)]
struct Node<T> {
    idle: Idle<T>,
    in_stack: Links,
    in_all: Links,
}

/// The neighbours of a node in one list.
#[derive(Debug, Clone, Copy, Default)]
struct Links {
    older: Option<usize>,
    newer: Option<usize>,
}

/// The ends of one list.
#[derive(Debug, Clone, Copy, Default)]
struct Ends {
    oldest: Option<usize>,
    newest: Option<usize>,
}

/// One of the two lists of a node.
#[derive(Debug, Clone, Copy)]
enum List {
    Stack,
    All,
}

impl<T> Default for IdleStacks<T> {
    fn default() -> Self {
        Self {
            nodes: Slab::new(),
            stacks: HashMap::default(),
            all: Ends::default(),
        }
    }
}

impl<T> IdleStacks<T> {
    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no entry.
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Adds an entry. It is mostly the last used; an older one is sorted in from the newest end.
    pub(crate) fn push(&mut self, idle: Idle<T>) {
        let login = idle.login;
        let index = self.nodes.insert(Node {
            idle,
            in_stack: Links::default(),
            in_all: Links::default(),
        });
        let stack = self.stacks.entry(login).or_default();
        link(&mut self.nodes, List::Stack, stack, index);
        link(&mut self.nodes, List::All, &mut self.all, index);
    }

    /// The last used of `login`.
    pub(crate) fn newest(&self, login: Login) -> Option<&Idle<T>> {
        let index = self.stacks.get(&login)?.newest?;
        Some(&self.node(index).idle)
    }

    /// Takes the last used of `login`.
    pub(crate) fn take_newest(&mut self, login: Login) -> Option<Idle<T>> {
        self.take_newest_if(login, |_| true)
    }

    /// Takes the last used of `login` if that one is wanted.
    pub(crate) fn take_newest_if(
        &mut self,
        login: Login,
        is_wanted: impl FnOnce(&T) -> bool,
    ) -> Option<Idle<T>> {
        let hash_map::Entry::Occupied(stack) = self.stacks.entry(login) else {
            return None;
        };
        let index = stack.get().newest?;
        if !is_wanted(&node(&self.nodes, index).idle.value) {
            return None;
        }
        Some(remove(&mut self.nodes, &mut self.all, stack, index))
    }

    /// The longest idle of all.
    pub(crate) fn oldest(&self) -> Option<&Idle<T>> {
        Some(&self.node(self.all.oldest?).idle)
    }

    /// Since when the longest idle of all is idle.
    pub(crate) fn oldest_since(&self) -> Option<Instant> {
        Some(self.oldest()?.since)
    }

    /// Takes the longest idle of all.
    pub(crate) fn take_oldest(&mut self) -> Option<Idle<T>> {
        let index = self.all.oldest?;
        Some(self.remove(index))
    }

    /// Takes all entries that `is_wanted` names, the longest idle first.
    pub(crate) fn take_each(&mut self, is_wanted: impl Fn(&Idle<T>) -> bool) -> Vec<Idle<T>> {
        let mut taken = Vec::new();
        let mut next = self.all.oldest;
        while let Some(index) = next {
            let node = self.node(index);
            next = node.in_all.newer;
            if is_wanted(&node.idle) {
                taken.push(self.remove(index));
            }
        }
        taken
    }

    fn remove(&mut self, index: usize) -> Idle<T> {
        let login = self.node(index).idle.login;
        let hash_map::Entry::Occupied(stack) = self.stacks.entry(login) else {
            unreachable!("each entry is in a stack");
        };
        remove(&mut self.nodes, &mut self.all, stack, index)
    }

    fn node(&self, index: usize) -> &Node<T> {
        node(&self.nodes, index)
    }
}

fn remove<T>(
    nodes: &mut Slab<Node<T>>,
    all: &mut Ends,
    mut stack: hash_map::OccupiedEntry<'_, Login, Ends>,
    index: usize,
) -> Idle<T> {
    let node = nodes.remove(index).expect("lists name entries");
    unlink(nodes, List::All, all, node.in_all);
    unlink(nodes, List::Stack, stack.get_mut(), node.in_stack);
    if stack.get().oldest.is_none() {
        stack.remove();
    }
    node.idle
}

/// Puts the node behind the last one that is not idle for a shorter time (S1).
fn link<T>(nodes: &mut Slab<Node<T>>, list: List, ends: &mut Ends, index: usize) {
    let since = node(nodes, index).idle.since;
    let mut older = ends.newest;
    let mut newer = None;
    while let Some(other) = older.filter(|it| since < node(nodes, *it).idle.since) {
        newer = older;
        older = links(nodes, list, other).older;
    }
    *links(nodes, list, index) = Links { older, newer };
    match older {
        Some(other) => links(nodes, list, other).newer = Some(index),
        None => ends.oldest = Some(index),
    }
    match newer {
        Some(other) => links(nodes, list, other).older = Some(index),
        None => ends.newest = Some(index),
    }
}

/// Joins the neighbours of a node that was removed.
fn unlink<T>(nodes: &mut Slab<Node<T>>, list: List, ends: &mut Ends, gone: Links) {
    match gone.older {
        Some(other) => links(nodes, list, other).newer = gone.newer,
        None => ends.oldest = gone.newer,
    }
    match gone.newer {
        Some(other) => links(nodes, list, other).older = gone.older,
        None => ends.newest = gone.older,
    }
}

fn node<T>(nodes: &Slab<Node<T>>, index: usize) -> &Node<T> {
    nodes.get(index).expect("lists name entries")
}

fn links<T>(nodes: &mut Slab<Node<T>>, list: List, index: usize) -> &mut Links {
    let node = nodes.get_mut(index).expect("lists name entries");
    match list {
        List::Stack => &mut node.in_stack,
        List::All => &mut node.in_all,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::keys::{AccountId, ClassId};

    fn login(account: u32) -> Login {
        Login {
            account: AccountId(account),
            class: ClassId(0),
            client: None,
        }
    }

    /// The naive twin: a sorted vector.
    #[derive(Default)]
    struct Twin(Vec<(u64, u32, u32)>);

    impl Twin {
        fn push(&mut self, since: u64, account: u32, value: u32) {
            let place = self.0.partition_point(|it| it.0 <= since);
            self.0.insert(place, (since, account, value));
        }

        fn take_newest(&mut self, account: u32) -> Option<u32> {
            let place = self.0.iter().rposition(|it| it.1 == account)?;
            Some(self.0.remove(place).2)
        }

        fn take_oldest(&mut self) -> Option<u32> {
            (!self.0.is_empty()).then(|| self.0.remove(0).2)
        }

        fn take_each(&mut self, before: u64) -> Vec<u32> {
            let taken = self.0.iter().filter(|it| it.0 < before).map(|it| it.2);
            let taken = taken.collect();
            self.0.retain(|it| before <= it.0);
            taken
        }
    }

    proptest! {
        #[test]
        fn behaves_as_a_sorted_vector(
            steps in prop::collection::vec((0..5_u32, 0..4_u32, 0..20_u64), 0..200)
        ) {
            let mut stacks = IdleStacks::default();
            let mut twin = Twin::default();
            for (value, (what, account, time)) in (0..).zip(steps) {
                match what {
                    0 | 1 => {
                        let since = Instant::from_nanos(time);
                        stacks.push(Idle { login: login(account), since, value });
                        twin.push(time, account, value);
                    }
                    2 => prop_assert_eq!(
                        stacks.take_newest(login(account)).map(|it| it.value),
                        twin.take_newest(account)
                    ),
                    3 => prop_assert_eq!(
                        stacks.take_oldest().map(|it| it.value),
                        twin.take_oldest()
                    ),
                    _ => {
                        let bound = Instant::from_nanos(time / 4);
                        let taken = stacks.take_each(|it| it.since < bound);
                        let taken: Vec<_> = taken.into_iter().map(|it| it.value).collect();
                        prop_assert_eq!(taken, twin.take_each(time / 4));
                    }
                }
                prop_assert_eq!(stacks.len(), twin.0.len());
                prop_assert_eq!(stacks.is_empty(), twin.0.is_empty());
                let oldest = twin.0.first().map(|it| Instant::from_nanos(it.0));
                prop_assert_eq!(stacks.oldest_since(), oldest);
                for account in 0..4 {
                    let newest = twin.0.iter().rfind(|it| it.1 == account).map(|it| it.2);
                    prop_assert_eq!(stacks.newest(login(account)).map(|it| it.value), newest);
                }
            }
        }
    }
}
