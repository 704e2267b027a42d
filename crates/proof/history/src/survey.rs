//! The textbook's cycles of dependencies: which of them are there, and whether the level of all
//! transactions allows them.
//!
//! A long history has millions of cycles. So G0 and G1c are looked for by components, cycles of two
//! transactions with a read that was written over all, and longer ones from a sample of such reads.
//! What is met of what a level allows proves that the load makes it. That nothing else is there is
//! for `moments` to say.

use std::collections::{HashMap, HashSet};

use crate::anomaly::Level;
use crate::graph::Graph;
use crate::model::{Act, Element, Ending, History, Key, Mode};
use crate::moments::{Dependency, Kind, name};
use crate::{Anomaly, Verdict};

/// Reads from which a cycle is looked for.
const READS_MAX: usize = 400;

/// Transactions that such a search visits.
const VISITED_MAX: usize = 400;

type Label = (Kind, Key);

/// Counts what is met; a class that the level does not allow is a finding.
pub(crate) fn check(
    history: &History,
    dependencies: &[Dependency],
    level: Option<Level>,
    verdict: &mut Verdict,
) {
    let mut graph = Graph::new(history.transactions.len());
    let mut known: HashMap<(usize, usize, Kind), Key> = HashMap::new();
    let mut reads = Vec::new();
    for &Dependency {
        from,
        to,
        kind,
        key,
    } in dependencies
    {
        if known.insert((from, to, kind), key).is_none() {
            graph.add(from, to, (kind, key));
            if kind == Kind::ReadWrite {
                reads.push((from, to, key));
            }
        }
    }
    let mut met: HashMap<Anomaly, (u64, String)> = HashMap::new();
    let mut add = |kinds: &[Label], members: Vec<usize>| {
        let (count, example) = met.entry(name(kinds)).or_default();
        *count += 1;
        if example.is_empty() {
            let texts = members
                .iter()
                .map(|it| format!("T{it}: {}", history.transactions[*it]));
            *example = texts.collect::<Vec<_>>().join("\n    ");
        }
    };
    let informed = |label: Label| label.0 != Kind::ReadWrite;
    for wanted in [Kind::WriteWrite, Kind::WriteRead] {
        let is_wanted = |label: Label| label.0 <= wanted;
        for component in graph.components(is_wanted) {
            if let Some(cycle) = graph.short_cycle(&component, is_wanted, |_| 1) {
                let kinds: Vec<Label> = cycle.iter().map(|step| step.1).collect();
                add(&kinds, cycle.iter().map(|step| step.0).collect());
            }
        }
    }
    for &(from, to, key) in &reads {
        for kind in [Kind::WriteWrite, Kind::WriteRead, Kind::ReadWrite] {
            if let Some(back) = known.get(&(to, from, kind)) {
                add(&[(Kind::ReadWrite, key), (kind, *back)], vec![from, to]);
            }
        }
    }
    let stride = reads.len().div_ceil(READS_MAX).max(1);
    for &(from, to, key) in reads.iter().step_by(stride) {
        let single = graph.path((to, from), |_, label| informed(label), |_| 1, VISITED_MAX);
        let any = || graph.path((to, from), |_, _| true, |_| 1, VISITED_MAX);
        if let Some(path) = single.or_else(any) {
            let first = (from, (Kind::ReadWrite, key), to);
            let cycle: Vec<_> = [first].into_iter().chain(path).collect();
            let kinds: Vec<Label> = cycle.iter().map(|step| step.1).collect();
            // Those of two were counted.
            if 2 < kinds.len() {
                add(&kinds, cycle.iter().map(|step| step.0).collect());
            }
        }
    }
    met.extend(dirty_reads(history));
    for (anomaly, (count, example)) in met {
        *verdict.met.entry(anomaly).or_default() += count;
        if level.is_some_and(|it| !it.allows(anomaly)) {
            verdict.add(anomaly, || {
                format!("met {count} times in dependencies, for example\n    {example}")
            });
        }
    }
}

/// G1a by reads that see what is not committed: allowed, and worth knowing that it comes.
fn dirty_reads(history: &History) -> Option<(Anomaly, (u64, String))> {
    let aborted = history.transactions.iter();
    let aborted = aborted.filter(|it| it.ending == Ending::Aborted);
    let rolled_back: HashSet<Element> = aborted
        .flat_map(|it| it.writes().map(|write| write.2))
        .collect();
    let statements = history.transactions.iter().flat_map(|it| &it.statements);
    let reads = statements.flat_map(|it| &it.acts).filter(|act| match act {
        Act::Read(_, seen, Mode::Dirty) => {
            seen.elements().iter().any(|it| rolled_back.contains(it))
        }
        Act::Read(..) | Act::Write(..) => false,
    });
    let count = stdx::to_u64(reads.count());
    (0 < count).then(|| (Anomaly::AbortedRead, (count, String::from("dirty reads"))))
}
