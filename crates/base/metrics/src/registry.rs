//! Every number that a program shows of itself: declared once, read on request.
//!
//! The crate that owns a number declares it as a [`Metric`] and tells the registry how to read it.
//! What shows numbers (`SHOW STATUS`, a page for a monitor) knows the registry alone. The registry
//! is filled while the program starts, and does not change after that. Counting never touches it:
//! dynamic dispatch and the sum over the workers are paid by the reader.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::{Counter, HistogramSnapshot};

/// The declaration of a number. Constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// As `SHOW STATUS` has it; MariaDB's name where MariaDB counts the same.
    pub name: &'static str,
    pub kind: MetricKind,
    pub unit: Unit,
    /// What it says, as a sentence.
    pub help: &'static str,
}

/// How a number behaves over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// It never falls.
    Counter,
    /// It rises and falls.
    Gauge,
    /// How often which magnitude occurred.
    Histogram,
}

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Things that the name says.
    Count,
    Bytes,
    Pages,
    Seconds,
    Milliseconds,
    Microseconds,
}

impl Metric {
    pub const fn counter(name: &'static str, unit: Unit, help: &'static str) -> Metric {
        Metric::new(MetricKind::Counter, name, unit, help)
    }

    pub const fn gauge(name: &'static str, unit: Unit, help: &'static str) -> Metric {
        Metric::new(MetricKind::Gauge, name, unit, help)
    }

    pub const fn histogram(name: &'static str, unit: Unit, help: &'static str) -> Metric {
        Metric::new(MetricKind::Histogram, name, unit, help)
    }

    const fn new(kind: MetricKind, name: &'static str, unit: Unit, help: &'static str) -> Metric {
        Metric {
            name,
            kind,
            unit,
            help,
        }
    }
}

/// Reads a counter as the sum over its owners, one a worker.
pub fn sum_of<O, T, P>(owners: &Arc<[O]>, pick: P) -> impl Fn() -> u64 + Send + Sync + use<O, T, P>
where
    O: Deref<Target = T> + Send + Sync,
    P: Fn(&T) -> &Counter + Send + Sync,
{
    let owners = Arc::clone(owners);
    move || owners.iter().map(|it| pick(it).value()).sum()
}

/// A counter or a gauge, and how it is read off what has it.
pub type Number<T> = (Metric, fn(&T) -> u64);

/// What a number is at the moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// Of a counter or a gauge.
    Number(u64),
    /// Of a histogram, all workers together.
    Histogram(HistogramSnapshot),
}

/// Which of several things of a kind a number belongs to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Label {
    pub(crate) name: &'static str,
    pub(crate) value: Box<str>,
}

impl Label {
    /// Of the kind `name`, the thing that is called `value`.
    pub fn new(name: &'static str, value: &str) -> Label {
        Label {
            name,
            value: value.into(),
        }
    }
}

/// All numbers of a program.
#[derive(Debug, Default)]
pub struct Registry {
    /// By name, and then by label.
    entries: Vec<Entry>,
}

struct Entry {
    /// Constant.
    metric: Metric,
    /// Constant.
    label: Option<Label>,
    read: Box<dyn Fn() -> Reading + Send + Sync>,
}

/// What of a histogram stands in a list of numbers: a suffix, and how it is read.
type Part = (&'static str, fn(&HistogramSnapshot) -> u64);

const HISTOGRAM_PARTS: [Part; 5] = [
    ("_count", HistogramSnapshot::count),
    ("_sum", HistogramSnapshot::sum),
    ("_p50", |values| values.quantile(500)),
    ("_p99", |values| values.quantile(990)),
    ("_max", HistogramSnapshot::max),
];

impl Registry {
    /// Without numbers.
    pub fn new() -> Registry {
        Registry::default()
    }

    /// Adds a counter or a gauge, and how it is read.
    ///
    /// # Panics
    /// If there is a number of this name, or the metric is a histogram.
    pub fn add(&mut self, metric: Metric, read: impl Fn() -> u64 + Send + Sync + 'static) {
        assert_ne!(metric.kind, MetricKind::Histogram, "{}", metric.name);
        self.insert(metric, None, Box::new(move || Reading::Number(read())));
    }

    /// Adds a counter or a gauge of one of several things, and how it is read.
    ///
    /// # Panics
    /// As [`Registry::add`], of the name with this label.
    pub fn add_labelled(
        &mut self,
        metric: Metric,
        label: Label,
        read: impl Fn() -> u64 + Send + Sync + 'static,
    ) {
        assert_ne!(metric.kind, MetricKind::Histogram, "{}", metric.name);
        let read = Box::new(move || Reading::Number(read()));
        self.insert(metric, Some(label), read);
    }

    /// Adds counters and gauges that one thing has.
    ///
    /// # Panics
    /// As [`Registry::add`].
    pub fn add_each<T: Send + Sync + 'static>(&mut self, owner: &Arc<T>, numbers: &[Number<T>]) {
        for (metric, read) in numbers.iter().copied() {
            let owner = Arc::clone(owner);
            self.add(metric, move || read(&owner));
        }
    }

    /// Adds a histogram, and how the snapshot of all workers is read.
    ///
    /// # Panics
    /// If there is a number of this name, or the metric is no histogram.
    pub fn add_histogram(
        &mut self,
        metric: Metric,
        read: impl Fn() -> HistogramSnapshot + Send + Sync + 'static,
    ) {
        assert_eq!(metric.kind, MetricKind::Histogram, "{}", metric.name);
        self.insert(metric, None, Box::new(move || Reading::Histogram(read())));
    }

    /// All numbers, by name and label.
    pub fn read(&self) -> impl Iterator<Item = (&Metric, Option<&Label>, Reading)> {
        self.entries
            .iter()
            .map(|entry| (&entry.metric, entry.label.as_ref(), (entry.read)()))
    }

    /// All as plain numbers, for `SHOW STATUS`. A histogram is five: its name with `_count`,
    /// `_sum`, `_p50`, `_p99` and `_max`. One of several things has its label's value behind.
    pub fn numbers(&self) -> Vec<(Cow<'static, str>, u64)> {
        let mut numbers = Vec::with_capacity(self.entries.len());
        for (metric, label, reading) in self.read() {
            match reading {
                Reading::Number(number) => {
                    let name = match label {
                        None => metric.name.into(),
                        Some(label) => format!("{}_{}", metric.name, label.value).into(),
                    };
                    numbers.push((name, number));
                }
                Reading::Histogram(values) => {
                    for (suffix, part) in HISTOGRAM_PARTS {
                        let name = format!("{}{suffix}", metric.name);
                        numbers.push((name.into(), part(&values)));
                    }
                }
            }
        }
        numbers
    }

    fn insert(
        &mut self,
        metric: Metric,
        label: Option<Label>,
        read: Box<dyn Fn() -> Reading + Send + Sync>,
    ) {
        assert!(metric.help.ends_with('.'), "{} has a sentence", metric.name);
        let wanted = (metric.name, label.as_ref());
        let place = self
            .entries
            .binary_search_by(|it| (it.metric.name, it.label.as_ref()).cmp(&wanted));
        let place = place.expect_err("each number is declared once");
        let entry = Entry {
            metric,
            label,
            read,
        };
        self.entries.insert(place, entry);
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.metric.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Histogram;

    const SECOND: Metric = Metric::counter("Second", Unit::Count, "The second of them.");
    const FIRST: Metric = Metric::gauge("First", Unit::Pages, "The first of them.");
    const TIMES: Metric = Metric::histogram("Times_us", Unit::Microseconds, "How long it took.");

    #[test]
    fn numbers_are_read_on_request_and_ordered_by_name() {
        let counters: Arc<[Counter]> = Arc::from([Counter::new(), Counter::new()]);
        let histogram = Arc::new(Histogram::new());
        let mut registry = Registry::new();
        let (read, values) = (Arc::clone(&counters), Arc::clone(&histogram));
        registry.add(SECOND, move || read.iter().map(Counter::value).sum());
        registry.add_each(&Arc::new(7_u64), &[(FIRST, |number| *number)]);
        registry.add_histogram(TIMES, move || values.snapshot());
        for counter in counters.iter() {
            counter.add(20);
        }
        (1..=100).for_each(|value| histogram.record(value));
        let expected = [
            ("First", 7),
            ("Second", 40),
            ("Times_us_count", 100),
            ("Times_us_sum", 5050),
            ("Times_us_p50", 50),
            ("Times_us_p99", 99),
            ("Times_us_max", 100),
        ];
        assert_eq!(
            registry.numbers(),
            expected.map(|(name, number)| (Cow::from(name), number))
        );
        let metrics: Vec<_> = registry.read().map(|(metric, _, _)| *metric).collect();
        assert_eq!(metrics, [FIRST, SECOND, TIMES]);
    }

    #[test]
    #[should_panic(expected = "each number is declared once")]
    fn a_name_is_declared_once() {
        let mut registry = Registry::new();
        registry.add(FIRST, || 1);
        registry.add(FIRST, || 2);
    }

    #[test]
    #[should_panic(expected = "Times_us")]
    fn a_histogram_is_no_number() {
        Registry::new().add(TIMES, || 1);
    }
}
