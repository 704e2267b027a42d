//! [`Mistakes`]: what is wrong with the sections of a gateway, all of it in one go.
//!
//! Also the checks that compare sections with each other. Such a mistake would start, and do
//! something else than the file says.

use std::collections::HashMap;

use gateway::{ListenerOptions, Router, ServerOptions, ServiceId};
use router::{Route, Rule};
use settings::{Configuration, Entry, FieldKind, Presence, SECTIONS};

use crate::configuration::Wrong;

/// Mistakes, as they are found.
#[derive(Debug, Default)]
pub(super) struct Mistakes(Vec<Wrong>);

impl Mistakes {
    /// Notes a mistake of a section.
    pub(super) fn add(&mut self, entry: &Entry, told: impl Into<String>) {
        let (line, told) = (Some(entry.line()), told.into());
        self.0.push(Wrong { line, told });
    }

    /// The value; of an error, only its words are kept.
    pub(super) fn keep<T>(&mut self, entry: &Entry, made: anyhow::Result<T>) -> Option<T> {
        made.map_err(|error| self.add(entry, format!("{error:#}")))
            .ok()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn into_wrong(self) -> Vec<Wrong> {
        self.0
    }

    /// Two servers with one address are one server: it would be asked twice, and counted twice.
    pub(super) fn find_shared_addresses(&mut self, servers: &[(&Entry, ServerOptions)]) {
        let mut seen: HashMap<String, &str> = HashMap::new();
        for (entry, server) in servers {
            let address = server.target.address.to_string();
            let name = entry.name().unwrap_or_default();
            if let Some(other) = seen.get(&address) {
                let told =
                    format!("the servers `{other}` and `{name}` have one address, {address}");
                self.add(entry, told);
            } else {
                seen.insert(address, name);
            }
        }
    }

    /// No client comes to such a service.
    pub(super) fn find_unreachable(&mut self, services: &[&Entry], listeners: &[ListenerOptions]) {
        for (place, entry) in services.iter().enumerate() {
            if !listeners.iter().any(|it| it.service == ServiceId(place)) {
                let name = entry.name().unwrap_or_default();
                let told = format!(
                    "no listener leads to the service `{name}`: add a section `listener` with \
                     service = \"{name}\""
                );
                self.add(entry, told);
            }
        }
    }

    /// Fields of a service that its router does not read.
    pub(super) fn find_idle_fields(&mut self, entry: &Entry, router: Router) {
        let (name, router, idle) = match router {
            Router::ReadConnection(_) => ("read-write-split", "read-connection", &OF_SPLIT[..]),
            Router::ReadWriteSplit(_) => {
                ("read-connection", "read-write-split", &OF_CONNECTION[..])
            }
        };
        for field in idle.iter().filter(|it| is_given(entry, it)) {
            let service = entry.name().unwrap_or_default();
            let told = format!(
                "service `{service}`: `{field}` is for router = \"{name}\" alone, and this one has \
                 \"{router}\""
            );
            self.add(entry, told);
        }
    }

    /// A rule is passed over where its server is not one of the service.
    pub(super) fn find_foreign_server(
        &mut self,
        entry: &Entry,
        rule: &Rule,
        configuration: &Configuration,
    ) {
        let Some(Route::Server(server)) = &rule.ruling.route else {
            return;
        };
        let all: Vec<&Entry> = configuration.sections.all("service").collect();
        let is_named = |service: &Entry| {
            let name = service.name().unwrap_or_default();
            let named = &rule.who.services;
            named.iter().any(|it| it.eq_ignore_ascii_case(name))
        };
        let lacks = |service: &Entry| {
            let servers = service.values("servers");
            let mut names = servers.iter().map(ToString::to_string);
            !servers.is_empty() && !names.any(|it| it.eq_ignore_ascii_case(server))
        };
        if rule.who.services.is_empty() {
            if !all.is_empty() && all.iter().all(|it| lacks(it)) {
                let told = format!("rule `{}`: no service has its server `{server}`", rule.name);
                self.add(entry, told);
            }
            return;
        }
        for service in all.into_iter().filter(|it| is_named(it) && lacks(it)) {
            let service = service.name().unwrap_or_default();
            let told = format!(
                "rule `{}`: its server `{server}` is not one of the service `{service}`",
                rule.name
            );
            self.add(entry, told);
        }
    }
}

/// Fields of a service that `read-write-split` alone reads.
const OF_SPLIT: [&str; 4] = ["lag_max", "balance", "causal_reads", "causal_reads_timeout"];

/// Those that `read-connection` alone reads.
const OF_CONNECTION: [&str; 1] = ["role"];

/// Whether a field has another value than it would have without being given.
fn is_given(entry: &Entry, field: &str) -> bool {
    let section = SECTIONS.iter().find(|it| it.name == "service");
    let declared = section.and_then(|it| it.fields.iter().find(|it| it.name == field));
    let usual = declared.and_then(|it| match (it.presence, it.kind) {
        (Presence::Default(text), FieldKind::One(kind)) => kind.parse(text).ok(),
        _ => None,
    });
    let value = entry.value(field);
    value.is_some() && value != usual.as_ref()
}

/// What a reader of sections makes of a text, and the mistakes that it finds, with their lines.
#[cfg(test)]
pub(super) fn read_text<T>(
    text: &str,
    read: impl FnOnce(&Configuration, &mut Mistakes) -> T,
) -> (T, Vec<String>) {
    let mut configuration = Configuration::default();
    let wrong = configuration.read_file(text);
    assert!(wrong.is_empty(), "{wrong:?}");
    let mut mistakes = Mistakes::default();
    let made = read(&configuration, &mut mistakes);
    let shown = |it: &Wrong| format!("{}: {}", it.line.unwrap_or(0), it.told);
    (made, mistakes.0.iter().map(shown).collect())
}
