//! The rules of a gateway, from their sections.

use std::sync::Arc;

use anyhow::{Context, Result};
use router::{CacheUse, Route, Rule, Rules, RulesError, Ruling, TableName, What, Who};
use settings::{Configuration, Entry, Value};

use super::mistakes::Mistakes;
use super::{caches, limit};

/// The rules that a configuration has, as far as they have no mistakes; `None` if they cannot be
/// used together.
pub(super) fn read(configuration: &Configuration, mistakes: &mut Mistakes) -> Option<Rules> {
    let entries: Vec<&Entry> = configuration.sections.all("rule").collect();
    let mut rules = Vec::new();
    let has_log = configuration.sections.one("query_log").is_some();
    for entry in &entries {
        let rule = rule(entry, configuration, mistakes);
        if rule.ruling.logs.is_some() && !has_log {
            let name = &rule.name;
            mistakes.add(
                entry,
                format!("rule `{name}`: `query_log` needs a section [query_log]"),
            );
        }
        mistakes.find_foreign_server(entry, &rule, configuration);
        rules.push(rule);
    }
    let errors = match Rules::new(rules) {
        Ok(rules) => return Some(rules),
        Err(errors) => errors,
    };
    for error in errors {
        let name = match &error {
            RulesError::Pattern { name, .. } => Some(&**name),
            RulesError::TooMany | RulesError::PatternsTooLarge(_) => None,
        };
        let named = entries.iter().find(|it| it.name() == name);
        if let Some(entry) = named.or(entries.first()) {
            mistakes.add(entry, error.to_string());
        }
    }
    None
}

/// The rule of a section, without what is wrong with it.
fn rule(entry: &Entry, configuration: &Configuration, mistakes: &mut Mistakes) -> Rule {
    let name = entry.name().unwrap_or_default();
    let mut wrong = Vec::new();
    let cache = caches::of_rule(entry, configuration, &mut wrong);
    let ruling = ruling(entry, cache, &mut wrong);
    let texts = |field| entry.values(field).iter().map(ToString::to_string);
    // The reader has told of those that are none.
    let networks = texts("addresses").filter_map(|it| it.parse().ok());
    let mut digests = Vec::new();
    for text in texts("digests") {
        match digest(&text) {
            Ok(digest) => digests.push(digest),
            Err(error) => wrong.push(format!(": {error}")),
        }
    }
    let mut tables = Vec::new();
    for text in texts("tables") {
        match text.parse::<TableName>() {
            Ok(table) => tables.push(table),
            Err(error) => wrong.push(format!(": {error}")),
        }
    }
    let rule = Rule {
        name: name.into(),
        who: Who {
            services: texts("services").map(|it| Arc::from(&*it)).collect(),
            users: texts("users").collect(),
            schemas: texts("schemas").collect(),
            networks: networks.collect(),
        },
        what: What {
            digests,
            tables,
            pattern: entry.text("pattern").map(str::to_owned),
        },
        ruling,
    };
    for told in wrong {
        mistakes.add(entry, format!("rule `{name}`{told}"));
    }
    rule
}

/// What a rule says, and what is wrong with that.
fn ruling(entry: &Entry, cache: Option<CacheUse>, wrong: &mut Vec<String>) -> Ruling {
    let server = entry.text("server");
    let route = match entry.text("route") {
        Some("primary") => Some(Route::Primary),
        Some(_) => Some(Route::Replica),
        None => None,
    };
    if server.is_some() && route.is_some() {
        wrong.push(" has a `route` and a `server`: it may have one of them".to_owned());
    }
    let ruling = Ruling {
        route: route.or_else(|| Some(Route::Server(server?.into()))),
        lag_max: super::seconds(entry, "lag_max"),
        time_max: limit(entry, "max_statement_time"),
        multiplexes: match entry.value("multiplex") {
            Some(Value::Bool(multiplexes)) => Some(*multiplexes),
            _ => None,
        },
        refusal: entry.text("refuse").map(Arc::from),
        cache,
        logs: match entry.value("query_log") {
            Some(Value::Bool(logs)) => Some(*logs),
            _ => None,
        },
    };
    if ruling == Ruling::default() && entry.text("cache").is_none() {
        wrong.push(
            " says nothing: it needs one of `route`, `server`, `lag_max`, `max_statement_time`, \
             `multiplex`, `query_log`, `refuse`, `cache`"
                .to_owned(),
        );
    }
    ruling
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

    use super::super::mistakes::read_text;
    use super::*;

    fn rules(text: &str) -> Result<Rules, String> {
        let (rules, wrong) = read_text(text, read);
        let rules = rules.filter(|_| wrong.is_empty());
        rules.ok_or_else(|| wrong.join("\n"))
    }

    fn mistake(text: &str) -> String {
        rules(text).unwrap_err()
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let said = mistake("[[rule]]\nname = \"r\"\nusers = [\"a\"]\n");
        assert!(said.starts_with("1: rule `r` says nothing"), "{said}");
        let head = "[[server]]\nname = \"a\"\naddress = \"127.0.0.1:1\"\n\
                    [[rule]]\nname = \"r\"\n";
        let said = mistake(&format!("{head}route = \"primary\"\nserver = \"a\"\n"));
        assert_eq!(
            said,
            "4: rule `r` has a `route` and a `server`: it may have one of them"
        );
        for digest in ["12", "0123456789abcdeg", "00123456789abcdef"] {
            let said = mistake(&format!(
                "{head}refuse = \"no\"\ndigests = [\"{digest}\"]\n"
            ));
            assert!(said.contains("is no digest"), "{said}");
        }
        let said = mistake(&format!("{head}refuse = \"no\"\ntables = [\"a.b.c\"]\n"));
        let no_table = "4: rule `r`: `a.b.c` is no name of a table: expected `table` or";
        assert!(said.starts_with(no_table), "{said}");
        let said = mistake(&format!("{head}refuse = \"no\"\npattern = \"(\"\n"));
        assert_eq!(
            said,
            "4: rule `r`: `pattern` cannot be used: unclosed group"
        );
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
