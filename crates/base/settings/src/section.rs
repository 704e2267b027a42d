//! Sections of the settings file: the kinds of sections, and the fields of each.
//!
//! A section is declared once, as data, like a flat setting. From [`SECTIONS`] come the reader of
//! the file (`reader`), its errors and the reference page. A consumer asks [`crate::Sections`] for
//! the values.

use crate::kind::Kind;

/// One kind of section. All fields are constant.
#[derive(Debug)]
pub struct Section {
    /// Lower case, words joined by `_`.
    pub name: &'static str,
    pub repetition: Repetition,
    /// In the order of the reference page.
    pub fields: &'static [Field],
    /// Exactly one of these fields must be given; empty if there is no such rule.
    pub one_of: &'static [&'static str],
    /// What a section of this kind does.
    pub text: &'static str,
}

/// How often a section may stand in the file. It may always be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repetition {
    /// Once, as `[name]`.
    Once,
    /// As `[[name]]`, each in its place in a list.
    List { count_max: usize },
}

/// A field of a section. All fields are constant.
#[derive(Debug)]
pub struct Field {
    /// Lower case, words joined by `_`.
    pub name: &'static str,
    pub kind: FieldKind,
    pub presence: Presence,
    /// What it does, and its unit.
    pub text: &'static str,
}

/// The possible values of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FieldKind {
    /// The section's own name, by which others refer to it. Two sections of a kind never share one.
    Name,
    /// A value.
    One(Kind),
    /// A list of values.
    Many(Kind),
    /// The name of a section of this kind.
    Reference(&'static str),
    /// The names of sections of this kind, each once.
    References(&'static str),
}

/// Whether a field must be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    Required,
    /// Without it the field has no value.
    Optional,
    /// Without it the field has this value, written as in the file.
    Default(&'static str),
}

/// Most values in one field: more than any list that a person writes, few enough to be fast.
pub(crate) const VALUE_COUNT_MAX: usize = 1024;

/// Most connections to a server.
const CONNECTIONS_MAX: u64 = 100_000;

/// Bytes of a section's name: as many as MySQL's identifiers have.
pub(crate) const NAME_BYTES_MAX: usize = 64;

/// Addresses beside `listen` and `socket`; each takes a descriptor on every worker.
const LISTENER_COUNT_MAX: usize = 64;

/// Servers of a gateway. Each is watched, and has its place in each worker.
const SERVER_COUNT_MAX: usize = 256;

/// Services of a gateway: as many as there may be listeners, and one for `listen`.
const SERVICE_COUNT_MAX: usize = LISTENER_COUNT_MAX + 1;

/// Rules of a gateway: as many as `router::RULES_MAX`.
const RULE_COUNT_MAX: usize = 256;

/// Monitors of a gateway: no more than there are servers.
const MONITOR_COUNT_MAX: usize = SERVER_COUNT_MAX;

/// Most preference of a server, and most failed checks of one that is still up.
const COUNT_MAX: u64 = 1000;

/// Longer than a replica is behind, a statement runs or a client is silent.
const UP_TO_A_YEAR: Kind = Kind::Seconds {
    max: 365 * 24 * 3600,
};

/// A day: longer than any client waits.
const WAIT_SECONDS_MAX: u64 = 24 * 3600;

/// Bytes of a text in the query log: as many as `query_log::TEXT_BYTES_MAX`.
const LOGGED_TEXT_MAX: u64 = 64 << 10;

/// Accounts of operators: more than a team has people and programs.
const ADMIN_COUNT_MAX: usize = 64;

/// Largest `server_id` of a replica.
const SERVER_NUMBER_MAX: u64 = (1 << 32) - 1;

/// Most caches of results.
const CACHE_COUNT_MAX: usize = 16;

/// More memory than machines have.
const CACHE_BYTES_MAX: u64 = 1 << 44;

/// An hour: a server that may take longer to answer is not watched.
const MONITOR_SECONDS_MAX: u64 = 3600;

const fn list(count_max: usize) -> Repetition {
    Repetition::List { count_max }
}

const fn optional(name: &'static str, kind: FieldKind, text: &'static str) -> Field {
    Field {
        name,
        kind,
        presence: Presence::Optional,
        text,
    }
}

const fn required(name: &'static str, kind: FieldKind, text: &'static str) -> Field {
    Field {
        name,
        kind,
        presence: Presence::Required,
        text,
    }
}

const fn defaulted(
    name: &'static str,
    kind: Kind,
    value: &'static str,
    text: &'static str,
) -> Field {
    Field {
        name,
        kind: FieldKind::One(kind),
        presence: Presence::Default(value),
        text,
    }
}

/// Every section.
pub const SECTIONS: &[Section] = &[
    Section {
        name: "listener",
        repetition: list(LISTENER_COUNT_MAX),
        fields: &[
            optional(
                "address",
                FieldKind::One(Kind::Address),
                "Address and port for clients.",
            ),
            optional(
                "socket",
                FieldKind::One(Kind::Path),
                "Path of a unix socket, relative to the data directory.",
            ),
            optional(
                "service",
                FieldKind::Reference("service"),
                "What clients get here. Without it: the first service, or the database if there \
                 are no servers.",
            ),
        ],
        one_of: &["address", "socket"],
        text: "Another place where clients connect, in addition to `listen` and `socket`.",
    },
    Section {
        name: "server",
        repetition: list(SERVER_COUNT_MAX),
        fields: &[
            required(
                "name",
                FieldKind::Name,
                "By which services and messages name it.",
            ),
            optional(
                "address",
                FieldKind::One(Kind::HostAndPort),
                "Where it listens. A name is looked up when the gateway starts.",
            ),
            optional(
                "socket",
                FieldKind::One(Kind::Path),
                "Path of its unix socket.",
            ),
            defaulted(
                "tls",
                Kind::Choice(&["off", "required", "verified"]),
                "off",
                "Whether connections to it are encrypted, and whether its certificate is checked.",
            ),
            optional(
                "tls_authorities",
                FieldKind::One(Kind::Path),
                "PEM file of the authorities that may have signed its certificate (`verified`).",
            ),
            defaulted(
                "proxy_protocol",
                Kind::Choice(&["off", "v1", "v2"]),
                "off",
                "Whether it gets the address of each client, in a header of the PROXY \
                 protocol. It has to expect that (MariaDB: `proxy_protocol_networks`).",
            ),
            defaulted(
                "rank",
                Kind::Unsigned {
                    min: 0,
                    max: COUNT_MAX,
                },
                "0",
                "Servers of a higher rank are used if none of a lower one can be.",
            ),
            defaulted(
                "max_connections",
                Kind::Unsigned {
                    min: 1,
                    max: CONNECTIONS_MAX,
                },
                "100",
                "Most connections of its pool, for all services and workers together. It has to be \
                 less than the server's own limit. Those of `read-connection` with \
                 `multiplex = false` do not count.",
            ),
            optional(
                "overflow",
                FieldKind::One(Kind::Unsigned {
                    min: 0,
                    max: CONNECTIONS_MAX,
                }),
                "By how many connections the limit may be exceeded by sessions that hold others. \
                 Without it: as many as the limit again.",
            ),
            defaulted(
                "adaptive",
                Kind::Bool,
                "OFF",
                "Whether the limit is searched that gives the most transactions, up to \
                 `max_connections`.",
            ),
        ],
        one_of: &["address", "socket"],
        text: "A MariaDB or MySQL server behind the gateway. With at least one, `listen` and \
               `socket` lead to the gateway, and no database is opened.",
    },
    Section {
        name: "monitor",
        repetition: list(MONITOR_COUNT_MAX),
        fields: &[
            optional(
                "servers",
                FieldKind::References("server"),
                "Whom it watches. Without it: all servers.",
            ),
            required(
                "user",
                FieldKind::One(Kind::Text),
                "Account that it logs in with. It also reads the accounts of the servers.",
            ),
            defaulted("password", Kind::Text, "", "Password of that account."),
            defaulted(
                "interval",
                Kind::Seconds {
                    max: MONITOR_SECONDS_MAX,
                },
                "2",
                "Seconds between two looks at a server.",
            ),
            defaulted(
                "timeout",
                Kind::Seconds {
                    max: MONITOR_SECONDS_MAX,
                },
                "1",
                "Seconds in which a server has to let the monitor in, and to answer it.",
            ),
            defaulted(
                "failures",
                Kind::Unsigned {
                    min: 1,
                    max: COUNT_MAX,
                },
                "1",
                "Failed checks in succession after which a server is down. One that refuses a \
                 connection is down at once.",
            ),
            defaulted(
                "kind",
                Kind::Choice(&["auto", "replication", "galera"]),
                "auto",
                "How the servers belong together. `auto`: Galera if one of them has `wsrep_on`.",
            ),
            optional(
                "lag_max",
                FieldKind::One(UP_TO_A_YEAR),
                "Seconds that a replica may be behind; it serves nothing while it is behind by \
                 more, until it is at half of that.",
            ),
            optional(
                "server_id",
                FieldKind::One(Kind::Unsigned {
                    min: 1,
                    max: SERVER_NUMBER_MAX,
                }),
                "The `server_id` by which the primary knows the gateway while a cache follows its \
                 binary log. No replica and no other gateway may have it. Without it: a number \
                 above 2^31 that is drawn each time.",
            ),
        ],
        one_of: &[],
        text: "Watches servers: which of them are up, which is the primary, how far replicas are.",
    },
    Section {
        name: "service",
        repetition: list(SERVICE_COUNT_MAX),
        fields: &[
            required("name", FieldKind::Name, "By which listeners name it."),
            optional(
                "servers",
                FieldKind::References("server"),
                "Its servers. Without it: all of them.",
            ),
            defaulted(
                "router",
                Kind::Choice(&["read-connection", "read-write-split"]),
                "read-connection",
                "How statements find their server. `read-connection`: all of a client go to one \
                 server, of those with the fewest clients. `read-write-split`: writes go to the \
                 primary, reads to replicas.",
            ),
            defaulted(
                "role",
                Kind::Choice(&["any", "primary", "replica"]),
                "any",
                "Which servers `read-connection` takes: each that is up, the primary, or those \
                 that serve reads (the primary if there is no other).",
            ),
            optional(
                "lag_max",
                FieldKind::One(UP_TO_A_YEAR),
                "Seconds that a replica may be behind to which `read-write-split` sends reads.",
            ),
            defaulted(
                "balance",
                Kind::Choice(&["operations", "response-time"]),
                "operations",
                "Which replica `read-write-split` sends a read to: the one with the fewest \
                 statements under way, or the one that should answer first by what it has taken.",
            ),
            defaulted(
                "causal_reads",
                Kind::Choice(&["off", "session", "service"]),
                "session",
                "Which writes a read on a replica is sure to see: none, those of its session, or \
                 those of all sessions of the service.",
            ),
            defaulted(
                "causal_reads_timeout",
                Kind::Seconds {
                    max: WAIT_SECONDS_MAX,
                },
                "0",
                "Seconds that a read waits on a replica for the writes that it has to see. Then, \
                 or with 0 at once, the primary answers it.",
            ),
            defaulted(
                "wait",
                Kind::Seconds {
                    max: WAIT_SECONDS_MAX,
                },
                "10",
                "Seconds that a statement waits for a server that may take it, as for a new \
                 primary, and for a connection to it.",
            ),
            defaulted(
                "multiplex",
                Kind::Bool,
                "ON",
                "Whether sessions give their connections back between transactions, for other \
                 sessions to use. Without it, `read-connection` passes on what it does not read.",
            ),
            optional(
                "max_statement_time",
                FieldKind::One(UP_TO_A_YEAR),
                "Seconds that a statement may run. It is then ended as by KILL QUERY.",
            ),
            optional(
                "idle_transaction_timeout",
                FieldKind::One(UP_TO_A_YEAR),
                "Seconds that a client may be silent in a transaction. It is then disconnected.",
            ),
            optional(
                "cache",
                FieldKind::Reference("cache"),
                "The cache that results of its queries are kept in. Rules may say another one. \
                 Needs `multiplex`, and so does each other service of `read-connection` then, \
                 unless the cache has `assume_cacheable`.",
            ),
        ],
        one_of: &[],
        text: "What the clients of a listener get. Without any, there is one over all servers.",
    },
    Section {
        name: "rule",
        repetition: list(RULE_COUNT_MAX),
        fields: &[
            required("name", FieldKind::Name, "By which messages name it."),
            optional(
                "services",
                FieldKind::References("service"),
                "Services whose sessions it is about. Without it: all.",
            ),
            optional(
                "users",
                FieldKind::Many(Kind::Text),
                "Users that it is about, without their hosts.",
            ),
            optional(
                "schemas",
                FieldKind::Many(Kind::Text),
                "Default databases of the sessions that it is about.",
            ),
            optional(
                "addresses",
                FieldKind::Many(Kind::Network),
                "Where the clients come from that it is about. A unix socket counts as 127.0.0.1.",
            ),
            optional(
                "digests",
                FieldKind::Many(Kind::Text),
                "Digests of the statements that it is about, as `plateau digest` shows them.",
            ),
            optional(
                "tables",
                FieldKind::Many(Kind::Text),
                "Tables that the statements name which it is about, each as `table`, in whichever \
                 database, or as `database.table`, if both are written so.",
            ),
            optional(
                "pattern",
                FieldKind::One(Kind::Text),
                "A regular expression for the statements that it is about. It sees `?` in place of \
                 literals; upper and lower case are alike.",
            ),
            optional(
                "route",
                FieldKind::One(Kind::Choice(&["primary", "replica"])),
                "Where the statement goes. What is not known to be a read goes to no replica.",
            ),
            optional(
                "server",
                FieldKind::Reference("server"),
                "The server that the statement goes to, whatever the statement is.",
            ),
            optional(
                "lag_max",
                FieldKind::One(UP_TO_A_YEAR),
                "Seconds that a replica may be behind that the statement goes to.",
            ),
            optional(
                "max_statement_time",
                FieldKind::One(UP_TO_A_YEAR),
                "Seconds that the statement may run. It is then ended as by KILL QUERY.",
            ),
            optional(
                "multiplex",
                FieldKind::One(Kind::Bool),
                "`false`: the session keeps its connection from this statement on.",
            ),
            optional(
                "query_log",
                FieldKind::One(Kind::Bool),
                "Whether the statement goes to the query log, whatever `[query_log]` says.",
            ),
            optional(
                "refuse",
                FieldKind::One(Kind::Text),
                "The statement is not carried out: its client gets error 1148 with this text.",
            ),
            optional(
                "cache",
                FieldKind::One(Kind::Text),
                "The cache that its result is kept in, if it can be kept, or `off`.",
            ),
        ],
        one_of: &[],
        text: "Something to be done with statements that meet all of its conditions. Of several \
               such rules, the first that says a thing decides it.",
    },
    Section {
        name: "cache",
        repetition: list(CACHE_COUNT_MAX),
        fields: &[
            required(
                "name",
                FieldKind::Name,
                "By which services and rules name it.",
            ),
            defaulted(
                "size",
                Kind::Bytes {
                    min: 64 << 10,
                    max: CACHE_BYTES_MAX,
                },
                "64M",
                "Its memory, of all workers together. Results that were not asked for longest go \
                 for new ones.",
            ),
            defaulted(
                "max_reply_size",
                Kind::Bytes {
                    min: 1 << 10,
                    max: CACHE_BYTES_MAX,
                },
                "1M",
                "Longer replies are not kept. At most an eighth of `size`. With `sharing = \
                 \"worker\"`, replies that exceed an eighth of a worker's part of `size` are not \
                 kept, either.",
            ),
            optional(
                "ttl",
                FieldKind::One(UP_TO_A_YEAR),
                "Seconds after which a result is not used any more. Without it: as long as no \
                 table of its query is changed through the gateway.",
            ),
            optional(
                "soft_ttl",
                FieldKind::One(UP_TO_A_YEAR),
                "Seconds after which one query is sent for a newer result. Others get the old one \
                 meanwhile. Less than `ttl`.",
            ),
            defaulted(
                "sharing",
                Kind::Choice(&["all", "worker"]),
                "all",
                "Who finds a result: all sessions, or those of the same worker, which share no \
                 lock then. Each worker has an equal part of `size`.",
            ),
            defaulted(
                "assume_cacheable",
                Kind::Bool,
                "OFF",
                "Results of all queries are kept for `ttl`, whatever they are and whichever table \
                 is changed. Queries are not read then. Needs `ttl`, and no `follow`.",
            ),
            defaulted(
                "follow",
                Kind::Choice(&["none", "binary-log"]),
                "none",
                "From where the cache learns of changes past the gateway. `binary-log`: from that \
                 of the primary, which the monitor's account reads as a replica does \
                 (REPLICATION SLAVE; on MySQL REPLICATION CLIENT, too). The primary needs \
                 `log_bin`. While its log is not followed, nothing is kept.",
            ),
        ],
        one_of: &[],
        text: "Keeps results of queries in memory, and sends them again. They are never older than \
               what was changed through the gateway. The monitor's account needs SELECT and \
               TRIGGER on `*.*`, to read definitions.",
    },
    Section {
        name: "query_log",
        repetition: Repetition::Once,
        fields: &[
            required(
                "path",
                FieldKind::One(Kind::Path),
                "The file, which no other program writes.",
            ),
            defaulted("all", Kind::Bool, "OFF", "Logs each statement."),
            defaulted(
                "errors",
                Kind::Bool,
                "OFF",
                "Logs each statement that fails.",
            ),
            optional(
                "slow",
                FieldKind::One(UP_TO_A_YEAR),
                "Logs each statement that takes so many seconds.",
            ),
            defaulted(
                "text",
                Kind::Choice(&["canonical", "literal"]),
                "canonical",
                "What is shown of a text: its canonical form, with `?` for literals, or the text \
                 as it was sent.",
            ),
            defaulted(
                "text_max",
                Kind::Bytes {
                    min: 0,
                    max: LOGGED_TEXT_MAX,
                },
                "1K",
                "Most bytes of a text. The rest is cut off.",
            ),
            defaulted(
                "size",
                Kind::Bytes {
                    min: 64 << 10,
                    max: 1 << 40,
                },
                "100M",
                "Size of the file. Then the next one takes its place.",
            ),
            defaulted(
                "files",
                Kind::Unsigned {
                    min: 0,
                    max: COUNT_MAX,
                },
                "5",
                "How many full files are kept beside it, as `path.1` and so on.",
            ),
        ],
        one_of: &[],
        text: "Statements of a gateway as lines of JSON. Sessions of `read-connection` with \
               `multiplex = false` are not read, and not logged.",
    },
    Section {
        name: "tracing",
        repetition: Repetition::Once,
        fields: &[
            required(
                "endpoint",
                FieldKind::One(Kind::Text),
                "Where a collector takes OTLP over HTTP, as in `http://127.0.0.1:4318/v1/traces`.",
            ),
            defaulted(
                "sample",
                Kind::Ratio,
                "0",
                "The part of statements without a `traceparent` that are traced. Those with one go \
                 by its flag.",
            ),
            defaulted(
                "service_name",
                Kind::Text,
                "plateau",
                "By which the collector names the gateway.",
            ),
            optional(
                "services",
                FieldKind::References("service"),
                "Services whose statements are traced. Without it: all.",
            ),
        ],
        one_of: &[],
        text: "Sends spans of a gateway's statements to a collector of OpenTelemetry. Sessions of \
               `read-connection` with `multiplex = false` are not read, and not traced.",
    },
    Section {
        name: "admin",
        repetition: list(ADMIN_COUNT_MAX),
        fields: &[
            required("user", FieldKind::Name, "By which it logs in."),
            defaulted("password", Kind::Text, "", "Its password."),
            defaulted(
                "may",
                Kind::Choice(&["read", "change"]),
                "read",
                "Whether it only reads the gateway's tables, or also takes servers out and ends \
                 clients.",
            ),
        ],
        one_of: &[],
        text: "An account that looks inside of a gateway, at `admin_socket` and `admin_listen`. \
               Without any, neither is open.",
    },
];

impl Section {
    /// Its header, as written in the file.
    pub fn header(&self) -> String {
        match self.repetition {
            Repetition::Once => format!("[{}]", self.name),
            Repetition::List { .. } => format!("[[{}]]", self.name),
        }
    }

    /// The field that holds the section's own name, if it has one.
    pub(crate) fn name_field(&self) -> Option<usize> {
        let is_name = |field: &Field| field.kind == FieldKind::Name;
        self.fields.iter().position(is_name)
    }

    pub(crate) fn field(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }
}

impl FieldKind {
    /// The kind in words, for the reference page.
    pub fn describe(&self) -> String {
        match self {
            FieldKind::Name => format!("a name of 1 to {NAME_BYTES_MAX} {NAME_LETTERS}"),
            FieldKind::One(kind) => kind.describe(),
            FieldKind::Many(kind) => format!("a list, each {}", kind.describe()),
            FieldKind::Reference(section) => format!("the name of a `{section}`"),
            FieldKind::References(section) => format!("a list of names of a `{section}`"),
        }
    }

    pub(crate) fn takes_list(&self) -> bool {
        match self {
            FieldKind::Many(_) | FieldKind::References(_) => true,
            FieldKind::Name | FieldKind::One(_) | FieldKind::Reference(_) => false,
        }
    }

    /// The kind of section that it refers to.
    pub(crate) fn target(&self) -> Option<&'static str> {
        match self {
            FieldKind::Reference(section) | FieldKind::References(section) => Some(section),
            FieldKind::Name | FieldKind::One(_) | FieldKind::Many(_) => None,
        }
    }
}

/// The allowed characters of names, in words.
pub(crate) const NAME_LETTERS: &str = "letters, digits, `_`, `-` and `.`";

/// Whether a text can be the name of a section.
pub(crate) fn is_name(text: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.chars().all(is_letter)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn declarations_are_consistent() {
        check_declarations(SECTIONS);
        check_declarations(crate::configuration::tests::DECLARED);
    }

    fn check_declarations(sections: &[Section]) {
        let mut names = BTreeSet::new();
        for section in sections {
            assert!(names.insert(section.name), "{} stands twice", section.name);
            assert!(crate::find(section.name).is_none(), "{}", section.name);
            assert!(section.text.ends_with('.') && !section.text.contains('|'));
            let mut fields = BTreeSet::new();
            for field in section.fields {
                let at = format!("{}.{}", section.name, field.name);
                assert!(fields.insert(field.name), "{at} stands twice");
                assert!(field.text.ends_with('.') && !field.text.contains('|'));
                check_default(field, &at);
            }
            let is_field = |name: &&str| section.field(name).is_some();
            assert!(section.one_of.iter().all(is_field), "{}", section.name);
        }
    }

    fn check_default(field: &Field, at: &str) {
        let Presence::Default(text) = field.presence else {
            return;
        };
        match field.kind {
            FieldKind::One(kind) => assert!(kind.parse(text).is_ok(), "{at}"),
            FieldKind::Name
            | FieldKind::Many(_)
            | FieldKind::Reference(_)
            | FieldKind::References(_) => panic!("{at} cannot have a default"),
        }
    }

    #[test]
    fn names_have_a_length_and_an_alphabet() {
        let of_length = |length| "n".repeat(length);
        assert!(is_name("replica-1.eu_West"));
        assert!(is_name(&of_length(NAME_BYTES_MAX - 1)));
        assert!(is_name(&of_length(NAME_BYTES_MAX)));
        assert!(!is_name(&of_length(NAME_BYTES_MAX + 1)));
        for text in ["", "a b", "a/b", "\u{e9}"] {
            assert!(!is_name(text), "{text}");
        }
    }
}
