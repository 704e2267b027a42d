//! Who wrote which version of a key, and what is wrong without any cycle.
//!
//! (V1) An order has versions of committed transactions alone, each once, by ascending numbers.
//! (V2) Of a list all numbers are known. Of a register those are that somebody saw; a dependency on
//!      a version that nobody saw is one on the nearest known, which was later (or before).

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::model::{Act, Element, Ending, History, Key, Mode, Seen, Transaction};
use crate::{Anomaly, Verdict};

/// Who wrote an element.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writer {
    pub(crate) transaction: usize,
    /// Index of the statement.
    pub(crate) statement: usize,
    /// Neither rolled back nor written over by its own transaction.
    fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The last write of its transaction to the key.
    Final,
    /// One before the last.
    Intermediate,
    /// Rolled back inside of its transaction.
    Undone,
}

/// A version of a list or a register.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version {
    /// From 1.
    pub(crate) number: u64,
    pub(crate) writer: Writer,
}

/// The versions of all keys.
#[derive(Debug, Default)]
pub(crate) struct Versions {
    /// Whether a transaction is committed, acknowledged or not.
    is_committed: Vec<bool>,
    writers: HashMap<Element, Writer>,
    orders: HashMap<Key, Vec<Version>>,
    /// Elements of committed transactions.
    sets: HashMap<Key, Vec<(Element, Writer)>>,
}

impl Versions {
    /// Finds all versions; adds to the verdict what is wrong with them.
    pub(crate) fn of(history: &History, verdict: &mut Verdict) -> Self {
        let mut versions = Versions::default();
        versions.find_writers(history);
        versions.find_endings(history, verdict);
        for (key, seen) in &history.last {
            versions.check_last(*key, seen, verdict);
        }
        versions.count_writes(history, verdict);
        let mut known = Known::default();
        for (key, seen) in &history.last {
            known.take(&versions, (*key, seen), "the last contents", verdict);
        }
        for (index, transaction) in versions.committed(history) {
            versions.check_reads(history, index, verdict);
            check_own(transaction, verdict);
            for (key, seen) in clean_reads(transaction) {
                known.take(&versions, (key, seen), transaction, verdict);
            }
        }
        versions.keep(known, history);
        versions
    }

    pub(crate) fn is_committed(&self, transaction: usize) -> bool {
        self.is_committed[transaction]
    }

    pub(crate) fn committed<'h>(
        &self,
        history: &'h History,
    ) -> impl Iterator<Item = (usize, &'h Transaction)> + use<'h, '_> {
        let all = history.transactions.iter().enumerate();
        all.filter(|(index, _)| self.is_committed[*index])
    }

    pub(crate) fn writer(&self, element: Element) -> Option<Writer> {
        self.writers.get(&element).copied()
    }

    /// The versions of a list or register, by number.
    pub(crate) fn order(&self, key: Key) -> &[Version] {
        self.orders.get(&key).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn orders(&self) -> impl Iterator<Item = (Key, &[Version])> {
        self.orders
            .iter()
            .map(|(key, order)| (*key, order.as_slice()))
    }

    /// The elements of a set, and who added them.
    pub(crate) fn set(&self, key: Key) -> &[(Element, Writer)] {
        self.sets.get(&key).map_or(&[], Vec::as_slice)
    }

    /// Whether a list as it was read is a beginning of the list's versions.
    pub(crate) fn is_beginning(&self, key: Key, seen: &Seen) -> bool {
        let order = self.order(key);
        seen.versions().into_iter().all(|(number, element)| {
            let writer = self.writers.get(&element);
            let at = order.binary_search_by_key(&number, |it| it.number);
            match (writer, at) {
                (Some(writer), Ok(place)) => order[place].writer.transaction == writer.transaction,
                _ => false,
            }
        })
    }

    fn find_writers(&mut self, history: &History) {
        for (index, transaction) in history.transactions.iter().enumerate() {
            let mut last = HashMap::new();
            for (statement, key, element) in transaction.writes() {
                let writer = Writer {
                    transaction: index,
                    statement,
                    fate: Fate::Final,
                };
                let before = self.writers.insert(element, writer);
                assert!(before.is_none(), "element {element} is written once");
                if let Some(earlier) = last.insert(key, element)
                    && let Some(earlier) = self.writers.get_mut(&earlier)
                {
                    earlier.fate = Fate::Intermediate;
                }
            }
            for (_, element) in &transaction.undone {
                let writer = Writer {
                    transaction: index,
                    statement: 0,
                    fate: Fate::Undone,
                };
                let before = self.writers.insert(*element, writer);
                assert!(before.is_none(), "element {element} is written once");
            }
        }
    }

    /// Decides about the transactions without an answer: committed if any of their writes is there.
    fn find_endings(&mut self, history: &History, verdict: &mut Verdict) {
        let all = &history.transactions;
        let mut proven: HashSet<Element> = history.last.values().flat_map(Seen::elements).collect();
        self.is_committed = all
            .iter()
            .map(|it| it.ending == Ending::Committed)
            .collect();
        // What was read after a kill has survived it.
        let mut survived: HashMap<Element, usize> = HashMap::new();
        for reader in all.iter().filter(|it| it.ending == Ending::Committed) {
            for element in clean_reads(reader).flat_map(|it| it.1.elements()) {
                let life = survived.entry(element).or_default();
                *life = history.life(reader).max(*life);
            }
        }
        let mut unread: Vec<usize> = (0..all.len()).collect();
        loop {
            // What a committed transaction read before it wrote was in the log before.
            unread.retain(|index| {
                let is_proof = self.is_committed[*index] && !all[*index].is_read_only();
                if is_proof {
                    proven.extend(clean_reads(&all[*index]).flat_map(|it| it.1.elements()));
                }
                !is_proof
            });
            let is_found = |index: &usize| {
                let it = &all[*index];
                let is_proven = |element: Element| {
                    let survived = survived.get(&element);
                    let has_survived = survived.is_some_and(|life| history.life(it) < *life);
                    has_survived || proven.contains(&element)
                };
                it.ending == Ending::Unknown && is_there(it, &history.last, is_proven)
            };
            let found: Vec<usize> = unread.iter().copied().filter(is_found).collect();
            if found.is_empty() {
                break;
            }
            found.iter().for_each(|it| self.is_committed[*it] = true);
        }
        self.excuse_readers(history, verdict);
        for (transaction, is_committed) in all.iter().zip(&self.is_committed) {
            verdict.committed_count += u64::from(*is_committed);
            let is_inferred = *is_committed && transaction.ending == Ending::Unknown;
            verdict.inferred_count += u64::from(is_inferred);
            let is_missing = |write: &(usize, Key, Element)| !is_left(write.1, write.2, history);
            if let Some((_, key, element)) = transaction.writes().find(is_missing)
                && *is_committed
            {
                let anomaly = match transaction.ending {
                    Ending::Unknown => Anomaly::Torn,
                    _ => Anomaly::Lost,
                };
                verdict.add(anomaly, || {
                    format!("{element} is missing in {key}, written by {transaction}")
                });
            }
        }
    }

    /// Locks are released before the log is durable. So a transaction can read what a kill takes
    /// away. If it changed nothing, it was answered, which is allowed with `strict_reads` off. It
    /// is left out of all that follows.
    fn excuse_readers(&mut self, history: &History, verdict: &mut Verdict) {
        let all = &history.transactions;
        for (index, reader) in all.iter().enumerate() {
            if !self.is_committed[index] || !reader.is_read_only() {
                continue;
            }
            let mut elements = clean_reads(reader).flat_map(|it| it.1.elements());
            let was_lost = elements.any(|element| {
                self.writer(element).is_some_and(|writer| {
                    let other = &all[writer.transaction];
                    let may_be_lost = other.ending == Ending::Unknown
                        && !self.is_committed[writer.transaction]
                        && writer.fate == Fate::Final;
                    may_be_lost && history.life(other) == history.life(reader)
                })
            });
            if was_lost {
                self.is_committed[index] = false;
                verdict.lost_read_count += 1;
            }
        }
    }

    /// Whether an element must not be seen by others.
    fn is_rolled_back(&self, writer: Writer) -> bool {
        writer.fate == Fate::Undone || !self.is_committed[writer.transaction]
    }

    /// Checks what is left of a key.
    fn check_last(&self, key: Key, seen: &Seen, verdict: &mut Verdict) {
        self.check_elements(key, seen, &"the last contents", verdict);
        let elements = seen.elements();
        let is_ordered = !matches!(key, Key::Set(_));
        for (place, element) in elements.iter().enumerate() {
            let Some(writer) = self.writer(*element) else {
                continue;
            };
            if !self.is_rolled_back(writer) {
                continue;
            }
            let mut rest = elements[place + 1..].iter();
            let is_built_on = rest.any(|later| {
                let later = self.writer(*later);
                is_ordered && later.is_some_and(|it| !self.is_rolled_back(it))
            });
            let anomaly = match is_built_on {
                true => Anomaly::DirtyUpdate,
                false => Anomaly::AbortedRead,
            };
            verdict.add(anomaly, || {
                format!("{element} was rolled back and is in {key}, which is {seen}")
            });
        }
    }

    /// What is wrong with elements in any read: there twice, or never written.
    fn check_elements(
        &self,
        key: Key,
        seen: &Seen,
        who: &dyn std::fmt::Display,
        verdict: &mut Verdict,
    ) {
        let mut met = HashSet::new();
        for element in seen.elements() {
            if !met.insert(element) {
                verdict.add(Anomaly::Duplicate, || {
                    format!("{element} is twice in {key}, {seen}, read by {who}")
                });
            }
            if self.writer(element).is_none() {
                verdict.add(Anomaly::Garbage, || {
                    format!("nobody wrote {element} to {key}, {seen}, read by {who}")
                });
            }
        }
    }

    /// Each register has counted the writes of those that were committed.
    fn count_writes(&self, history: &History, verdict: &mut Verdict) {
        let mut counts: BTreeMap<Key, (u64, u64)> = BTreeMap::new();
        for transaction in &history.transactions {
            for (_, key, _) in transaction.writes() {
                if !matches!(key, Key::Register(_)) {
                    continue;
                }
                let (least, most) = counts.entry(key).or_default();
                *least += u64::from(transaction.ending == Ending::Committed);
                *most += u64::from(transaction.ending != Ending::Aborted);
            }
        }
        for (key, (least, most)) in counts {
            let number = history.last.get(&key).map_or(0, Seen::number);
            if !(least..=most).contains(&number) {
                verdict.add(Anomaly::WrongCount, || {
                    format!("{key} counts {number} writes, {least} to {most} were committed")
                });
            }
        }
    }

    /// Checks what a committed transaction saw of others.
    fn check_reads(&self, history: &History, index: usize, verdict: &mut Verdict) {
        let transaction = &history.transactions[index];
        let acts = transaction.statements.iter().flat_map(|it| &it.acts);
        for act in acts {
            let Act::Read(key, seen, mode) = act else {
                continue;
            };
            self.check_elements(*key, seen, transaction, verdict);
            if *mode == Mode::Dirty {
                continue;
            }
            let elements = seen.elements();
            for element in &elements {
                let writer = self.writer(*element);
                if let Some(writer) = writer.filter(|it| self.is_rolled_back(*it)) {
                    verdict.add(Anomaly::AbortedRead, || {
                        let writer = &history.transactions[writer.transaction];
                        format!(
                            "{element} was rolled back, and is read in {key} by
    \
                             {transaction}
    It was written by
    {writer}"
                        )
                    });
                }
            }
            let newest = match key {
                Key::Set(_) => None,
                Key::List(_) | Key::Register(_) => elements.last(),
            };
            let Some((newest, writer)) = newest.and_then(|it| Some((it, self.writer(*it)?))) else {
                continue;
            };
            if writer.transaction != index && writer.fate == Fate::Intermediate {
                verdict.add(Anomaly::IntermediateRead, || {
                    format!("{newest} was written over, and is read in {key} by {transaction}")
                });
            }
        }
    }

    /// Keeps of the known versions those of committed transactions.
    fn keep(&mut self, known: Known, history: &History) {
        for (key, numbers) in known.numbers {
            let versions = numbers.into_iter().filter_map(|(number, element)| {
                let writer = self.writer(element)?;
                (!self.is_rolled_back(writer)).then_some(Version { number, writer })
            });
            self.orders.insert(key, versions.collect());
        }
        for (index, transaction) in history.transactions.iter().enumerate() {
            if !self.is_committed[index] {
                continue;
            }
            for (_, key, element) in transaction.writes() {
                if let (Key::Set(_), Some(writer)) = (key, self.writer(element)) {
                    self.sets.entry(key).or_default().push((element, writer));
                }
            }
        }
    }
}

/// The versions by number, as they come to be known.
#[derive(Debug, Default)]
struct Known {
    numbers: HashMap<Key, BTreeMap<u64, Element>>,
    /// The number that each element has.
    places: HashMap<Element, u64>,
}

impl Known {
    /// Takes what a read tells; two reads must tell the same of a number and of an element. What
    /// was rolled back is an anomaly of its own.
    fn take(
        &mut self,
        versions: &Versions,
        (key, seen): (Key, &Seen),
        who: impl std::fmt::Display,
        verdict: &mut Verdict,
    ) {
        let numbers = self.numbers.entry(key).or_default();
        for (number, element) in seen.versions() {
            let writer = versions.writer(element);
            if writer.is_none_or(|it| versions.is_rolled_back(it)) {
                continue;
            }
            let other = *numbers.entry(number).or_insert(element);
            let place = *self.places.entry(element).or_insert(number);
            if other != element || place != number {
                verdict.add(Anomaly::IncompatibleOrder, || {
                    format!(
                        "version {number} of {key} is {other} and {element}, which is version \
                         {place}: read by {who}"
                    )
                });
                return;
            }
        }
    }
}

/// Whether a transaction that had no answer is committed: its writes are left, or were read by one
/// that is. Of a set or list they are left or not; a register may have been written over.
fn is_there(
    transaction: &Transaction,
    last: &BTreeMap<Key, Seen>,
    is_proven: impl Fn(Element) -> bool,
) -> bool {
    let is_lasting = |key: Key| !matches!(key, Key::Register(_));
    let mut lasting = transaction
        .writes()
        .filter(|it| is_lasting(it.1))
        .peekable();
    let is_left = |key: Key, element: Element| {
        last.get(&key)
            .is_some_and(|seen| seen.elements().contains(&element))
    };
    match lasting.peek() {
        Some(_) => transaction.writes().any(|it| is_left(it.1, it.2)),
        None => transaction.writes().any(|it| is_proven(it.2)),
    }
}

/// Whether a committed write is there. A register may have been written over.
fn is_left(key: Key, element: Element, history: &History) -> bool {
    let seen = history.last.get(&key);
    matches!(key, Key::Register(_)) || seen.is_some_and(|it| it.elements().contains(&element))
}

/// The reads of a transaction that see only what is committed.
fn clean_reads(transaction: &Transaction) -> impl Iterator<Item = (Key, &Seen)> {
    let acts = transaction.statements.iter().flat_map(|it| &it.acts);
    acts.filter_map(|act| match act {
        Act::Read(key, seen, mode) if *mode != Mode::Dirty => Some((*key, seen)),
        Act::Read(..) | Act::Write(..) => None,
    })
}

/// A transaction sees its own writes, after all that was before them.
fn check_own(transaction: &Transaction, verdict: &mut Verdict) {
    let mut own: HashMap<Key, Vec<Element>> = HashMap::new();
    let acts = transaction.statements.iter().flat_map(|it| &it.acts);
    for act in acts {
        match act {
            Act::Write(key, element) => own.entry(*key).or_default().push(*element),
            Act::Read(key, seen, _) => {
                let Some(own) = own.get(key) else {
                    continue;
                };
                let elements = seen.elements();
                let is_seen = match key {
                    Key::List(_) => elements.ends_with(own),
                    Key::Set(_) => own.iter().all(|it| elements.contains(it)),
                    Key::Register(_) => {
                        let newest = &own[own.len().saturating_sub(elements.len())..];
                        !elements.is_empty() && elements.ends_with(newest)
                    }
                };
                if !is_seen {
                    verdict.add(Anomaly::Internal, || {
                        format!("own writes to {key} are not in {seen}: {transaction}")
                    });
                }
            }
        }
    }
}
