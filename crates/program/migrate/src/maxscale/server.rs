//! `type=server`: the servers.

use crate::known::{Known, boolean, differs, known, left_out, same};
use crate::note::{Kind, Note};
use crate::output::{Block, Names, Output};

use super::ini::{Entry, Section};
use super::{Configuration, Draft, Renamed, is_off, unit};

/// The port of servers that name none.
const PORT: &str = "3306";

/// Most connections that a settings file takes.
const CONNECTIONS_MAX: u64 = 100_000;

/// Writes the servers, and returns their names.
pub(super) fn translate(
    configuration: &Configuration<'_>,
    output: &mut Output,
    notes: &mut Vec<Note>,
) -> Renamed {
    let mut sections: Vec<&Section> = configuration.all("server").collect();
    let is_by_priority = |it: &Section| !is_off(it, "use_priority");
    let goes_by_priority = configuration.all("monitor").any(is_by_priority);
    if goes_by_priority {
        sections.sort_by_key(|it| priority(it));
    }
    let mut names = Names::default();
    let mut renamed = Renamed::default();
    for section in sections {
        let name = names.make(&section.name);
        renamed.0.push((section.name.clone(), name.clone()));
        let mut draft = configuration.draft(section);
        let mut block = Block::default();
        block.set("name", name.clone());
        if name != section.name {
            let text = format!("names have fewer signs here: it is `{name}`");
            draft.note_all(Kind::Differs, text);
        }
        if let Some(entry) = draft.take(&["priority"])
            && goes_by_priority
        {
            let text = "of the servers, the first in the file that is up takes writes: they are \
                        in the order of their priorities. A negative one would be the last";
            draft.note(entry, Kind::Differs, text);
        }
        place(&mut draft, &mut block);
        options(&mut draft, &mut block);
        notes.extend(draft.finish(&[KNOWN], &mut block));
        output.add("server", block);
    }
    renamed
}

/// The order of servers by their priority: those without one come last but for negative ones.
fn priority(section: &Section) -> (u8, i64) {
    let priority = section.value("priority").and_then(|it| it.parse().ok());
    match priority.unwrap_or(0) {
        positive @ 1.. => (0, positive),
        0 => (1, 0),
        negative => (2, negative),
    }
}

fn place(draft: &mut Draft<'_>, block: &mut Block) {
    let address = draft.take(&["address"]);
    let is_path = |it: &&Entry| it.value.starts_with('/');
    if let Some(entry) = draft.take(&["socket"]).or(address.filter(is_path)) {
        let _ = draft.take(&["port"]);
        block.set("socket", entry.value.clone());
        return;
    }
    let port = draft.port(PORT);
    match address {
        Some(entry) => block.set("address", unit::host_and_port(&entry.value, port)),
        None => {
            draft.note_all(Kind::ToDo, "it has no address: write it");
            block.set("address", unit::host_and_port("127.0.0.1", port));
        }
    }
}

fn options(draft: &mut Draft<'_>, block: &mut Block) {
    if let Some(entry) = draft.take(&["rank"]) {
        match entry.value.as_str() {
            "primary" => {}
            "secondary" => block.set("rank", 1),
            _ => draft.note(entry, Kind::Unknown, "a rank is `primary` or `secondary`"),
        }
    }
    if let Some(entry) = draft.take(&["max_routing_connections"]) {
        match entry.value.parse::<u64>() {
            Ok(count @ 1..) => {
                let count = count.min(CONNECTIONS_MAX);
                block.set("max_connections", i64::try_from(count).unwrap_or_default());
            }
            _ => {
                let text = "there is always a limit (`max_connections`, 100): sessions share \
                            connections, and wait for one at the limit";
                draft.note(entry, Kind::Differs, text);
            }
        }
    }
    if let Some(entry) = draft.take(&["proxy_protocol"])
        && boolean(&entry.value) == Some(true)
    {
        block.set("proxy_protocol", "v1");
        let text = "sessions share connections with clients of the same host alone";
        draft.note(entry, Kind::Differs, text);
    }
    tls(draft, block);
}

fn tls(draft: &mut Draft<'_>, block: &mut Block) {
    let is_encrypted = draft.take(&["ssl"]);
    let is_encrypted = is_encrypted.is_some_and(|it| {
        boolean(&it.value) == Some(true) || it.value.eq_ignore_ascii_case("required")
    });
    let authorities = draft.text(&["ssl_ca", "ssl_ca_cert"]);
    let verifies = draft.is_on("ssl_verify_peer_certificate");
    let verifies_host = draft.is_on("ssl_verify_peer_host");
    if !is_encrypted {
        return;
    }
    match authorities.filter(|_| verifies || verifies_host) {
        Some(path) => {
            block.set("tls", "verified");
            block.set("tls_authorities", path);
            if !verifies_host {
                let text = "`tls = \"verified\"` also checks that the certificate is one of the \
                            host in `address`";
                draft.note_all(Kind::Differs, text);
            }
        }
        None => block.set("tls", "required"),
    }
}

const KNOWN: &[Known] = &[
    same("protocol"),
    same("authenticator"),
    known(
        "persistpoolmax",
        &["0"],
        Kind::Differs,
        "sessions share connections in any case: `max_connections` says how many",
    ),
    differs(
        "persistmaxtime",
        "how long an idle connection is kept cannot be set",
    ),
    left_out("extra_port", "the monitor uses the port of the clients"),
    left_out(
        "monitoruser",
        "one account of the monitor is used for all its servers",
    ),
    left_out(
        "monitorpw",
        "one account of the monitor is used for all its servers",
    ),
    left_out("private_address", "the gateway changes no replication"),
    left_out(
        "replication_custom_options",
        "the gateway changes no replication",
    ),
    left_out("disk_space_threshold", "the gateway does not look at disks"),
    left_out(
        "ssl_cert",
        "the gateway shows servers no certificate of its own",
    ),
    left_out(
        "ssl_key",
        "the gateway shows servers no certificate of its own",
    ),
    known(
        "ssl_version",
        &["max", "tlsv12", "tlsv13"],
        Kind::Differs,
        "TLS is 1.2 or 1.3",
    ),
    left_out("ssl_cipher", "ciphers cannot be chosen"),
    same("ssl_cert_verify_depth"),
    left_out("labels", "servers have no labels"),
];
