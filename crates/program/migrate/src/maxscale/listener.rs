//! `type=listener`: where clients connect.

use std::net::IpAddr;

use crate::known::{Known, boolean, known, left_out, same};
use crate::note::{Kind, Note};
use crate::output::{Block, Output};

use super::ini::Section;
use super::service::Service;
use super::{Configuration, Draft};

/// The address of listeners that name none.
const ADDRESS: &str = "::";

/// The port of listeners that name none.
const PORT: &str = "3306";

/// Whether clients of MariaDB can get to this service.
pub(super) fn has_any(configuration: &Configuration<'_>, service: &str) -> bool {
    let mut all = configuration.all("listener");
    all.any(|it| it.value("service") == Some(service) && is_for_clients(it))
}

fn is_for_clients(section: &Section) -> bool {
    let protocol = section.value("protocol").unwrap_or("mariadb");
    let names = [
        "mariadb",
        "mariadbprotocol",
        "mariadbclient",
        "mysqlclient",
        "mariadb_protocol",
    ];
    names.iter().any(|it| protocol.eq_ignore_ascii_case(it))
}

/// The service of the first listener, by its name in MaxScale's file.
pub(super) fn first_of(configuration: &Configuration<'_>, services: &[Service]) -> Option<String> {
    let mut used = configuration
        .all("listener")
        .filter(|it| is_for_clients(it));
    used.find_map(|it| {
        let service = service_of(it, services)?;
        Some(service.section.clone())
    })
}

fn service_of<'a>(section: &Section, services: &'a [Service]) -> Option<&'a Service> {
    let name = section.value("service")?;
    services.iter().find(|it| it.section == name)
}

/// Whether this is the listener that `listen` stands for: the first with an address, if it leads to
/// the first service.
fn is_first(configuration: &Configuration<'_>, section: &Section, services: &[Service]) -> bool {
    let leads = |it: &&Section| is_for_clients(it) && service_of(it, services).is_some();
    let has_address = |it: &&Section| it.value("socket").is_none();
    let first = configuration
        .all("listener")
        .filter(leads)
        .find(has_address);
    let service = service_of(section, services).map(|it| &it.section);
    let is_of_first_service = service == services.first().map(|it| &it.section);
    first.is_some_and(|it| it.name == section.name) && is_of_first_service
}

/// Writes `listen`.
pub(super) fn write_first(
    configuration: &Configuration<'_>,
    services: &[Service],
    output: &mut Output,
) {
    let mut all = configuration.all("listener");
    let first = all.find(|it| is_first(configuration, it, services));
    let place = first.map(|it| address(&mut configuration.draft(it)));
    output.head.set("listen", place.unwrap_or_default());
}

/// Writes the others, and says what is different about each.
pub(super) fn translate(
    configuration: &Configuration<'_>,
    services: &[Service],
    output: &mut Output,
    notes: &mut Vec<Note>,
) {
    for section in configuration.all("listener") {
        let mut draft = configuration.draft(section);
        let service = draft.text(&["service"]).unwrap_or_default();
        if !is_for_clients(section) {
            let text = "only clients of MariaDB and MySQL are served";
            notes.extend(draft.leave_out(Kind::LeftOut, text));
            continue;
        }
        let Some(found) = service_of(section, services) else {
            let text = format!("its service `{service}` is left out");
            notes.extend(draft.leave_out(Kind::LeftOut, text));
            continue;
        };
        let mut block = Block::default();
        match draft.text(&["socket"]) {
            Some(path) => block.set("socket", path),
            None => block.set("address", address(&mut draft)),
        }
        block.set("service", found.name.clone());
        authenticators(&mut draft);
        for name in OF_TLS {
            // The settings have them, for all listeners.
            let _ = draft.take(&[name]);
        }
        let made = match is_first(configuration, section, services) {
            true => draft.finish(&[KNOWN], &mut output.head),
            false => draft.finish(&[KNOWN], &mut block),
        };
        notes.extend(made);
        if !is_first(configuration, section, services) {
            output.add("listener", block);
        }
    }
}

/// Settings that a gateway has for all listeners.
const OF_TLS: [&str; 4] = ["ssl", "ssl_cert", "ssl_key", "proxy_protocol_networks"];

/// Address and port, and a note if the address is a name.
fn address(draft: &mut Draft<'_>) -> String {
    let port = draft.port(PORT);
    let entry = draft.take(&["address"]);
    let host = entry.map_or(ADDRESS, |it| it.value.as_str());
    let host = match (host, entry) {
        ("localhost", _) => "127.0.0.1",
        (_, Some(entry)) if host.trim_matches(['[', ']']).parse::<IpAddr>().is_err() => {
            let text = "listeners have addresses and no names: write the address";
            draft.note(entry, Kind::ToDo, text);
            "127.0.0.1"
        }
        _ => host,
    };
    super::unit::host_and_port(host, port)
}

fn authenticators(draft: &mut Draft<'_>) {
    let Some(entry) = draft.take(&["authenticator"]) else {
        return;
    };
    for name in super::unit::list(&entry.value.to_ascii_lowercase()) {
        if !matches!(name, "mariadbauth" | "mysqlauth") {
            let text = format!(
                "`{name}`: a login can be passed on by `mysql_native_password` and \
                 `caching_sha2_password` alone. Give these accounts one of them (error 1251)"
            );
            draft.note(entry, Kind::ToDo, text);
        }
    }
}

/// What the listeners of clients say of TLS.
pub(super) fn tls(
    configuration: &Configuration<'_>,
    services: &[Service],
    output: &mut Output,
    notes: &mut Vec<Note>,
) {
    let leads = |it: &&Section| is_for_clients(it) && service_of(it, services).is_some();
    let all: Vec<&Section> = configuration.all("listener").filter(leads).collect();
    let is_encrypted = |it: &&&Section| it.value("ssl").and_then(boolean) == Some(true);
    let encrypted: Vec<&Section> = all.iter().filter(is_encrypted).copied().collect();
    let Some(first) = encrypted.first() else {
        return;
    };
    if encrypted.len() == all.len() {
        output.head.set("require_secure_transport", "ON");
    } else {
        let mut draft = configuration.draft(first);
        let text = "clients of each listener may use TLS, and need not: \
                    `require_secure_transport` is for all listeners together";
        draft.note_all(Kind::Differs, text);
        notes.extend(draft.notes);
    }
    if let Some((certificate, key)) = first.value("ssl_cert").zip(first.value("ssl_key")) {
        output.head.set("tls_certificate", certificate);
        output.head.set("tls_key", key);
    }
    let certificate = first.value("ssl_cert");
    for other in encrypted
        .iter()
        .filter(|it| it.value("ssl_cert") != certificate)
    {
        let mut draft = configuration.draft(other);
        draft.note_all(
            Kind::Differs,
            "all listeners have the certificate of the first one",
        );
        notes.extend(draft.notes);
    }
}

/// Whose connections may begin with a header of the PROXY protocol, by all listeners.
pub(super) fn proxy_networks(configuration: &Configuration<'_>) -> Option<String> {
    let of_global = configuration.all("maxscale");
    let mut all = of_global.chain(configuration.all("listener"));
    let found = all.find_map(|it| it.value("proxy_protocol_networks"))?;
    Some(found.to_owned()).filter(|it| !it.is_empty())
}

const KNOWN: &[Known] = &[
    same("protocol"),
    known(
        "authenticator_options",
        &[""],
        Kind::LeftOut,
        "logins have no options: accounts are those of the servers",
    ),
    known(
        "ssl_version",
        &["max", "tlsv12", "tlsv13"],
        Kind::Differs,
        "TLS is 1.2 or 1.3",
    ),
    left_out("ssl_cipher", "ciphers cannot be chosen"),
    left_out("ssl_ca*", "certificates of clients are not asked for"),
    left_out("ssl_crl", "certificates of clients are not asked for"),
    known(
        "ssl_verify_peer_*",
        &["false"],
        Kind::LeftOut,
        "certificates of clients are not asked for",
    ),
    same("ssl_cert_verify_depth"),
    known(
        "sql_mode",
        &["default"],
        Kind::LeftOut,
        "statements are read as the session's `sql_mode` says",
    ),
    left_out(
        "connection_init_sql_file",
        "no statements are run when a session begins",
    ),
    left_out(
        "user_mapping_file",
        "accounts are those of the servers alone",
    ),
    left_out(
        "connection_metadata",
        "clients are told what the server tells",
    ),
    left_out("redirect_url", "clients are not sent elsewhere"),
    left_out(
        "nosqlprotocol*",
        "only clients of MariaDB and MySQL are served",
    ),
];
