//! The rules of a gateway, from their sections.

use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use router::{Route, Rule, Rules, Ruling, What, Who};
use settings::{Configuration, Entry, Value};

use super::limit;

/// The rules that a configuration has.
pub(super) fn read(configuration: &Configuration) -> Result<Rules> {
    let entries = configuration.sections.all("rule");
    let mut rules = Vec::new();
    for entry in entries {
        let read = rule(entry);
        rules.push(read.with_context(|| format!("line {}", entry.line()))?);
    }
    Ok(Rules::new(rules)?)
}

fn rule(entry: &Entry) -> Result<Rule> {
    let ruling = ruling(entry)?;
    if ruling == Ruling::default() {
        bail!(
            "the rule says nothing: it needs one of `route`, `server`, `lag_max`, \
             `max_statement_time`, `multiplex`, `refuse`"
        );
    }
    let texts = |field| entry.values(field).iter().map(ToString::to_string);
    let networks = texts("addresses").map(|it| it.parse());
    let digests = texts("digests").map(|it| digest(&it));
    Ok(Rule {
        name: entry.name().unwrap_or_default().into(),
        who: Who {
            services: texts("services").map(|it| Arc::from(&*it)).collect(),
            users: texts("users").collect(),
            schemas: texts("schemas").collect(),
            networks: networks.collect::<Result<_, _>>()?,
        },
        what: What {
            digests: digests.collect::<Result<_>>()?,
            pattern: entry.text("pattern").map(str::to_owned),
        },
        ruling,
    })
}

fn ruling(entry: &Entry) -> Result<Ruling> {
    let server = entry.text("server");
    let route = match entry.text("route") {
        Some("primary") => Some(Route::Primary),
        Some(_) => Some(Route::Replica),
        None => None,
    };
    ensure!(
        server.is_none() || route.is_none(),
        "a rule has a `route` or a `server`, and not both"
    );
    Ok(Ruling {
        route: route.or_else(|| Some(Route::Server(server?.into()))),
        lag_max: super::seconds(entry, "lag_max"),
        time_max: limit(entry, "max_statement_time"),
        multiplexes: match entry.value("multiplex") {
            Some(Value::Bool(multiplexes)) => Some(*multiplexes),
            _ => None,
        },
        refusal: entry.text("refuse").map(Arc::from),
    })
}

/// Reads a digest as it is shown.
fn digest(text: &str) -> Result<u64> {
    let number = Some(text).filter(|it| it.len() == DIGEST_DIGITS);
    let number = number.and_then(|it| u64::from_str_radix(it, 16).ok());
    number.with_context(|| {
        format!("`{text}` is no digest: expected {DIGEST_DIGITS} hexadecimal digits")
    })
}

/// A digest has 64 bits.
const DIGEST_DIGITS: usize = 16;

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use router::SessionFacts;

    use super::*;

    fn rules(text: &str) -> Result<Rules> {
        let mut configuration = Configuration::default();
        let mistakes = configuration.read_file(text);
        assert!(mistakes.is_empty(), "{mistakes:?}");
        read(&configuration)
    }

    fn mistake(text: &str) -> String {
        format!("{:#}", rules(text).unwrap_err())
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let said = mistake("[[rule]]\nname = \"r\"\nusers = [\"a\"]\n");
        assert!(said.starts_with("line 1: the rule says nothing"), "{said}");
        let head = "[[server]]\nname = \"a\"\naddress = \"127.0.0.1:1\"\n\
                    [[rule]]\nname = \"r\"\n";
        let said = mistake(&format!("{head}route = \"primary\"\nserver = \"a\"\n"));
        assert_eq!(
            said,
            "line 4: a rule has a `route` or a `server`, and not both"
        );
        for digest in ["12", "0123456789abcdeg", "00123456789abcdef"] {
            let said = mistake(&format!(
                "{head}refuse = \"no\"\ndigests = [\"{digest}\"]\n"
            ));
            assert!(said.contains("is no digest"), "{said}");
        }
        let said = mistake(&format!("{head}refuse = \"no\"\npattern = \"(\"\n"));
        assert_eq!(said, "rule `r`: `pattern` cannot be used: unclosed group");
    }

    #[test]
    fn conditions_are_read() {
        let text = "[[rule]]\nname = \"r\"\nusers = [\"app\"]\nschemas = [\"shop\"]\n\
                    addresses = [\"10.0.0.0/8\"]\nmax_statement_time = 1.5\n";
        let rules = rules(text).unwrap();
        let meets = |schema: &'static [u8], address: [u8; 4]| {
            let facts = SessionFacts {
                service: "any",
                user: "app",
                schema: Some(schema),
                address: IpAddr::from(address),
            };
            !rules.of_session(&facts).is_empty()
        };
        assert!(meets(b"shop", [10, 1, 1, 1]));
        assert!(!meets(b"other", [10, 1, 1, 1]) && !meets(b"shop", [11, 1, 1, 1]));
    }
}
