//! Which moment was before which, and cycles among them.
//!
//! A committed transaction has a moment for each statement and one for its commit. Time passes
//! from one to the next. A statement's moment is that of its snapshot if it makes one, and else the
//! end of its work. From InnoDB's promises follow, for a key that W writes after what R read:
//!
//! | R reads | a version of A: A's commit is before | W wrote the next: before W's commit is |
//! |---|---|---|
//! | a snapshot | the snapshot | the snapshot |
//! | rows locked | the statement of R | R's commit, if there was a row |
//! | ranges locked | the statement of R | R's commit |
//! | dirty | (nothing) | the statement of R |
//!
//! A write is a read with rows locked of the version before. A key that R itself has written is
//! locked. The client's clock adds: what was answered before another was sent was before it. The
//! clock is a chain of nodes, so it costs two nodes a statement and not a square of edges.
//!
//! A cycle contradicts a promise of a level of one of its transactions: there is no list of what is
//! allowed. Its name is that of the dependencies in it, whether the clock takes part or not.

use std::collections::HashSet;

use crate::graph::{Graph, Step};
use crate::model::{Act, History, Key, Mode, Moment, Seen, Transaction};
use crate::versions::{Version, Versions, Writer};
use crate::{Anomaly, Verdict};

/// A textbook dependency between two committed transactions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dependency {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) kind: Kind,
    pub(crate) key: Key,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    /// The second wrote over what the first wrote.
    WriteWrite,
    /// The second read what the first wrote.
    WriteRead,
    /// The second wrote over what the first read.
    ReadWrite,
}

/// Why a moment was before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Depends(Kind, Key),
    /// Both are of one transaction.
    Within,
    /// By the clock: from a transaction to the clock, along it, or from it.
    Clock,
}

/// Cycles that are looked for in one component each; the others only count.
const CYCLES_SHOWN_MAX: usize = 8;

struct Moments<'h> {
    history: &'h History,
    versions: &'h Versions,
    graph: Graph<Reason>,
    /// Of each transaction the node of its first statement; the others follow, and then the commit.
    first: Vec<usize>,
    /// The transaction of each node; none for those of the clock.
    owners: Vec<Option<usize>>,
    dependencies: Vec<Dependency>,
}

/// Finds all cycles of moments, and returns the dependencies.
pub(crate) fn check(
    history: &History,
    versions: &Versions,
    verdict: &mut Verdict,
) -> Vec<Dependency> {
    let mut moments = Moments::new(history, versions);
    moments.add_writes();
    for (index, transaction) in versions.committed(history) {
        moments.add_reads(index, transaction);
    }
    let by_time = |reason| reason != Reason::Clock;
    let is_bad = moments.report(by_time, verdict);
    if !is_bad {
        // What is a cycle without the clock is one with it, too, and hides others.
        moments.add_clock();
        moments.report(|_| true, verdict);
    }
    moments.dependencies
}

impl<'h> Moments<'h> {
    fn new(history: &'h History, versions: &'h Versions) -> Self {
        let mut moments = Self {
            history,
            versions,
            graph: Graph::new(0),
            first: Vec::new(),
            owners: Vec::new(),
            dependencies: Vec::new(),
        };
        for (index, transaction) in history.transactions.iter().enumerate() {
            moments.first.push(moments.graph.size());
            if !versions.is_committed(index) {
                continue;
            }
            for place in 0..=transaction.statements.len() {
                let node = moments.graph.add_node();
                moments.owners.push(Some(index));
                if 0 < place {
                    moments.graph.add(node - 1, node, Reason::Within);
                }
            }
        }
        moments
    }

    fn statement(&self, transaction: usize, statement: usize) -> usize {
        self.first[transaction] + statement
    }

    fn commit(&self, transaction: usize) -> usize {
        self.first[transaction] + self.history.transactions[transaction].statements.len()
    }

    /// The dependency, and that the one moment was before the other; none: only the dependency.
    fn add(&mut self, dependency: Dependency, moments: Option<(usize, usize)>) {
        if dependency.from == dependency.to {
            return;
        }
        self.dependencies.push(dependency);
        if let Some((before, after)) = moments {
            let reason = Reason::Depends(dependency.kind, dependency.key);
            self.graph.add(before, after, reason);
        }
    }

    fn add_writes(&mut self) {
        let versions = self.versions;
        for (key, order) in versions.orders() {
            for pair in order.windows(2) {
                let [before, after] = [pair[0].writer, pair[1].writer];
                let dependency = Dependency {
                    from: before.transaction,
                    to: after.transaction,
                    kind: Kind::WriteWrite,
                    key,
                };
                let write = self.statement(after.transaction, after.statement);
                let moments = (self.commit(before.transaction), write);
                self.add(dependency, Some(moments));
            }
        }
    }

    fn add_reads(&mut self, reader: usize, transaction: &Transaction) {
        let mut own = HashSet::new();
        for (statement, it) in transaction.statements.iter().enumerate() {
            for act in &it.acts {
                match act {
                    Act::Write(key, _) => {
                        own.insert(*key);
                    }
                    Act::Read(key, seen, mode) => {
                        let is_own = own.contains(key) && !matches!(key, Key::Set(_));
                        let mode = match (is_own, mode) {
                            (true, Mode::Dirty | Mode::View(_)) => Mode::LockedRows,
                            _ => *mode,
                        };
                        let read = Read {
                            reader,
                            statement,
                            key: *key,
                            mode,
                        };
                        match seen {
                            Seen::Set(_) => self.add_set_read(read, seen),
                            Seen::List(_) | Seen::Register { .. } => self.add_read(read, seen),
                        }
                    }
                }
            }
        }
    }

    /// A read of a list or a register.
    fn add_read(&mut self, read: Read, seen: &Seen) {
        let versions = self.versions;
        if read.mode == Mode::Dirty && !versions.is_beginning(read.key, seen) {
            return;
        }
        let order = versions.order(read.key);
        let count = order.partition_point(|version| version.number <= seen.number());
        let (seen_versions, later) = order.split_at(count);
        let is_other = |version: &&Version| version.writer.transaction != read.reader;
        if let Some(version) = seen_versions.iter().rev().find(is_other) {
            self.add_seen(read, version.writer);
        }
        let is_absent = seen.number() == 0 && read.mode == Mode::LockedRows;
        if let Some(version) = later.first().filter(|_| !is_absent) {
            self.add_unseen(read, version.writer);
        }
    }

    /// A read of a set: what it has not is written later.
    fn add_set_read(&mut self, read: Read, seen: &Seen) {
        let elements: HashSet<_> = seen.elements().into_iter().collect();
        let versions = self.versions;
        for (element, writer) in versions.set(read.key) {
            match elements.contains(element) {
                true => self.add_seen(read, *writer),
                // There was no row that could have been locked.
                false if read.mode == Mode::LockedRows => {}
                false => self.add_unseen(read, *writer),
            }
        }
    }

    fn add_seen(&mut self, read: Read, writer: Writer) {
        let before = self.commit(writer.transaction);
        let moments = match read.mode {
            Mode::Dirty => None,
            Mode::View(view) => Some((before, self.statement(read.reader, view))),
            Mode::LockedRows | Mode::LockedRanges => {
                Some((before, self.statement(read.reader, read.statement)))
            }
        };
        let dependency = Dependency {
            from: writer.transaction,
            to: read.reader,
            kind: Kind::WriteRead,
            key: read.key,
        };
        self.add(dependency, moments);
    }

    fn add_unseen(&mut self, read: Read, writer: Writer) {
        let after = self.commit(writer.transaction);
        let before = match read.mode {
            Mode::Dirty => self.statement(read.reader, read.statement),
            Mode::View(view) => self.statement(read.reader, view),
            Mode::LockedRows | Mode::LockedRanges => self.commit(read.reader),
        };
        let dependency = Dependency {
            from: read.reader,
            to: writer.transaction,
            kind: Kind::ReadWrite,
            key: read.key,
        };
        self.add(dependency, Some((before, after)));
    }

    /// The chain of the clock. At one moment the sent come before the answered: which was first is
    /// not known, and so no edge may say it.
    fn add_clock(&mut self) {
        const SENT: u8 = 0;
        const ANSWERED: u8 = 1;
        let mut spans = Vec::new();
        for (index, transaction) in self.versions.committed(self.history) {
            for (place, statement) in transaction.statements.iter().enumerate() {
                let node = self.statement(index, place);
                spans.push((statement.span, node));
            }
            spans.push((transaction.commit, self.commit(index)));
        }
        let mut ticks: Vec<(Moment, u8, usize)> = Vec::new();
        for (span, node) in spans {
            ticks.push((span.sent_at, SENT, node));
            ticks.extend(span.answered_at.map(|it| (it, ANSWERED, node)));
        }
        ticks.sort_unstable();
        let mut before = None;
        for (_, kind, node) in ticks {
            let tick = self.graph.add_node();
            self.owners.push(None);
            if let Some(before) = before {
                self.graph.add(before, tick, Reason::Clock);
            }
            match kind {
                SENT => self.graph.add(tick, node, Reason::Clock),
                _ => self.graph.add(node, tick, Reason::Clock),
            }
            before = Some(tick);
        }
    }

    /// Adds a finding for each component with a cycle; says whether there is any.
    fn report(&self, is_wanted: impl Fn(Reason) -> bool + Copy, verdict: &mut Verdict) -> bool {
        let components = self.graph.components(is_wanted);
        let cost = |reason| u32::from(matches!(reason, Reason::Depends(..)));
        for (place, component) in components.iter().enumerate() {
            if CYCLES_SHOWN_MAX <= place {
                verdict.finding_count += 1;
                continue;
            }
            let cycle = self.graph.short_cycle(component, is_wanted, cost);
            let cycle = cycle.expect("a component has a cycle");
            let kinds: Vec<(Kind, Key)> = cycle.iter().filter_map(depends).collect();
            verdict.add(name(&kinds), || self.explain(&cycle, component.len()));
        }
        !components.is_empty()
    }

    /// The dependencies of a cycle, and then its transactions.
    fn explain(&self, cycle: &[Step<Reason>], size: usize) -> String {
        let mut text = format!("a cycle, of {size} moments that have one:");
        let mut members: Vec<usize> = Vec::new();
        let mut from_clock = None;
        for (from, reason, to) in cycle {
            let owners = (self.owners[*from], self.owners[*to]);
            for owner in [owners.0, owners.1].into_iter().flatten() {
                if !members.contains(&owner) {
                    members.push(owner);
                }
            }
            match (reason, owners) {
                (Reason::Depends(kind, key), (Some(from), Some(to))) => {
                    let verb = match kind {
                        Kind::WriteWrite => "is written over by",
                        Kind::WriteRead => "is read by",
                        Kind::ReadWrite => "read what was then written by",
                    };
                    text += &format!("\n    T{from} {verb} T{to} in {key}");
                }
                (Reason::Clock, (Some(from), None)) => from_clock = Some(from),
                (Reason::Clock, (None, Some(to))) => match from_clock {
                    Some(from) => text += &format!("\n    T{from} had its answer before T{to}"),
                    None => text += &format!("\n    by the clock before T{to}"),
                },
                _ => {}
            }
        }
        for member in members {
            text += &format!("\n    T{member}: {}", self.history.transactions[member]);
        }
        text
    }
}

/// A read of a key, without what it saw.
#[derive(Clone, Copy)]
struct Read {
    reader: usize,
    statement: usize,
    key: Key,
    mode: Mode,
}

fn depends(step: &Step<Reason>) -> Option<(Kind, Key)> {
    match step.1 {
        Reason::Depends(kind, key) => Some((kind, key)),
        Reason::Within | Reason::Clock => None,
    }
}

/// The name of a cycle of dependencies, in their order.
pub(crate) fn name(kinds: &[(Kind, Key)]) -> Anomaly {
    let is_read = |place: usize| kinds[place % kinds.len()].0 == Kind::ReadWrite;
    let reads = (0..kinds.len()).filter(|place| is_read(*place)).count();
    let is_one_key = kinds.iter().all(|it| it.1 == kinds[0].1);
    let has = |kind| kinds.iter().any(|it| it.0 == kind);
    match reads {
        0 if has(Kind::WriteRead) => Anomaly::CircularInformation,
        0 => Anomaly::DirtyWrite,
        1 if is_one_key && has(Kind::WriteWrite) && !has(Kind::WriteRead) => Anomaly::LostUpdate,
        1 => Anomaly::Single,
        _ if (0..kinds.len()).any(|place| is_read(place) && is_read(place + 1)) => {
            Anomaly::ItemCycle
        }
        _ => Anomaly::Nonadjacent,
    }
}
