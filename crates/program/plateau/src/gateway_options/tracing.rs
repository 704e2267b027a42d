//! Tracing by a gateway, from its section.

use std::sync::Arc;

use gateway::TracingOptions;
use settings::{Configuration, Entry, Value};
use spans::{Endpoint, Sampling, Target};

use super::mistakes::Mistakes;

/// What a configuration says of tracing; `None` if it has no such section.
pub(super) fn read(
    configuration: &Configuration,
    mistakes: &mut Mistakes,
) -> Option<TracingOptions> {
    let entry = configuration.sections.one("tracing")?;
    let text = entry.text("endpoint")?;
    let endpoint: Endpoint = match text.parse() {
        Ok(endpoint) => endpoint,
        Err(error) => {
            let told = format!(
                "section `tracing`: the endpoint `{text}` is not like \
                 http://127.0.0.1:4318/v1/traces: {error}"
            );
            mistakes.add(entry, told);
            return None;
        }
    };
    Some(TracingOptions {
        sampling: Sampling {
            millionths: millionths(entry),
            services: services(entry, configuration),
        },
        target: Target {
            endpoint,
            service_name: entry.text("service_name").unwrap_or_default().to_owned(),
        },
    })
}

fn millionths(entry: &Entry) -> u64 {
    match entry.value("sample") {
        Some(Value::Micros(millionths)) => *millionths,
        _ => 0,
    }
}

/// The services that are named, as their own sections write them.
fn services(entry: &Entry, configuration: &Configuration) -> Vec<Arc<str>> {
    let declared = configuration.sections.all("service");
    let mut declared = declared.filter_map(Entry::name);
    let named = entry.values("services").iter().map(Value::to_string);
    let named: Vec<String> = named.collect();
    let is_named = |name: &&str| named.iter().any(|it| it.eq_ignore_ascii_case(name));
    let mut found = Vec::new();
    while let Some(name) = declared.find(is_named) {
        found.push(name.into());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::mistakes::read_text;
    use super::*;

    fn read_file(text: &str) -> (Option<TracingOptions>, Vec<String>) {
        read_text(text, read)
    }

    #[test]
    fn a_section_says_what_is_traced_and_where_it_goes() {
        assert_eq!(read_file(""), (None, Vec::new()));
        let (options, wrong) = read_file("[tracing]\nendpoint = \"http://c:4318\"\n");
        assert_eq!(wrong, [""; 0]);
        let expected = TracingOptions {
            sampling: Sampling {
                millionths: 0,
                services: Vec::new(),
            },
            target: Target {
                endpoint: "http://c:4318/v1/traces".parse().unwrap(),
                service_name: "plateau".to_owned(),
            },
        };
        assert_eq!(options, Some(expected.clone()));
        let text = "[tracing]\nendpoint = \"http://c:4318/\"\nsample = 0.25\n\
                    service_name = \"gate\"\nservices = [\"SHOP\"]\n\
                    [[service]]\nname = \"shop\"\n[[service]]\nname = \"other\"\n";
        let (options, wrong) = read_file(text);
        assert_eq!(wrong, [""; 0]);
        let expected = TracingOptions {
            sampling: Sampling {
                millionths: 250_000,
                services: vec!["shop".into()],
            },
            target: Target {
                service_name: "gate".to_owned(),
                ..expected.target
            },
        };
        assert_eq!(options, Some(expected));
    }

    #[test]
    fn an_endpoint_that_cannot_be_is_a_mistake() {
        for (endpoint, expected) in [
            ("https://c:4318/v1/traces", "must begin with http://"),
            ("http://c/v1/traces", "has no port"),
            ("http://a b:1/", "malformed"),
        ] {
            let (options, wrong) = read_file(&format!("[tracing]\nendpoint = \"{endpoint}\"\n"));
            assert_eq!(options, None);
            let [told] = &*wrong else {
                panic!("{wrong:?}");
            };
            assert!(
                told.starts_with("1: section `tracing`: the endpoint `"),
                "{told}"
            );
            assert!(told.contains(expected), "{told}");
        }
    }
}
