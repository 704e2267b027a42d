//! All numbers as a text for monitors: Prometheus' format 0.0.4
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>).

use std::fmt::Write;

use crate::registry::{Label, Metric, MetricKind, Reading, Registry};

/// What HTTP calls the format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The quantiles of a histogram, in thousandths, and how they are written.
const QUANTILES: [(u32, &str); 3] = [(500, "0.5"), (950, "0.95"), (990, "0.99")];

impl Registry {
    /// All numbers of the moment. Each name is in lower case and begins with `plateau_`; that of a
    /// counter ends with `_total`.
    pub fn exposition(&self) -> String {
        let mut page = String::new();
        let mut last = None;
        for (metric, label, reading) in self.read() {
            let name = name_of(metric);
            if last != Some(metric.name) {
                last = Some(metric.name);
                let kind = match metric.kind {
                    MetricKind::Counter => "counter",
                    MetricKind::Gauge => "gauge",
                    MetricKind::Histogram => "summary",
                };
                let help = metric.help;
                write!(page, "# HELP {name} {help}\n# TYPE {name} {kind}\n").expect(TAKES_ALL);
            }
            match reading {
                Reading::Number(number) => line(&mut page, &name, &[label], number),
                Reading::Histogram(values) => {
                    for (permille, quantile) in QUANTILES {
                        let quantile = Label::new("quantile", quantile);
                        let labels = [label, Some(&quantile)];
                        line(&mut page, &name, &labels, values.quantile(permille));
                    }
                    line(&mut page, &format!("{name}_sum"), &[label], values.sum());
                    let count = values.count();
                    line(&mut page, &format!("{name}_count"), &[label], count);
                }
            }
        }
        page
    }
}

const TAKES_ALL: &str = "a String takes all";

fn name_of(metric: &Metric) -> String {
    let name = metric.name.to_ascii_lowercase();
    match metric.kind {
        MetricKind::Counter => format!("plateau_{name}_total"),
        MetricKind::Gauge | MetricKind::Histogram => format!("plateau_{name}"),
    }
}

fn line(page: &mut String, name: &str, labels: &[Option<&Label>], number: u64) {
    page.push_str(name);
    let mut separator = '{';
    for label in labels.iter().flatten() {
        let value = label.value.replace('\\', "\\\\").replace('"', "\\\"");
        let value = value.replace('\n', "\\n");
        write!(page, "{separator}{}=\"{value}\"", label.name).expect(TAKES_ALL);
        separator = ',';
    }
    if separator == ',' {
        page.push('}');
    }
    writeln!(page, " {number}").expect(TAKES_ALL);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Histogram, Unit};

    #[test]
    fn numbers_have_help_type_and_labels() {
        let mut registry = Registry::new();
        let kills = Metric::counter("Kills", Unit::Count, "Statements ended.");
        registry.add(kills, || 7);
        let open = Metric::gauge("Pool_open", Unit::Count, "Connections.");
        for (server, number) in [("b\"\\\n", 2), ("a", 1)] {
            registry.add_labelled(open, Label::new("server", server), move || number);
        }
        let times = Metric::histogram("Times_us", Unit::Microseconds, "How long it took.");
        let histogram = Histogram::new();
        (1..=100).for_each(|value| histogram.record(value));
        registry.add_histogram(times, move || histogram.snapshot());
        let expected = "\
            # HELP plateau_kills_total Statements ended.\n\
            # TYPE plateau_kills_total counter\n\
            plateau_kills_total 7\n\
            # HELP plateau_pool_open Connections.\n\
            # TYPE plateau_pool_open gauge\n\
            plateau_pool_open{server=\"a\"} 1\n\
            plateau_pool_open{server=\"b\\\"\\\\\\n\"} 2\n\
            # HELP plateau_times_us How long it took.\n\
            # TYPE plateau_times_us summary\n\
            plateau_times_us{quantile=\"0.5\"} 50\n\
            plateau_times_us{quantile=\"0.95\"} 95\n\
            plateau_times_us{quantile=\"0.99\"} 99\n\
            plateau_times_us_sum 5050\n\
            plateau_times_us_count 100\n";
        assert_eq!(registry.exposition(), expected);
    }
}
