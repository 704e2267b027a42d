//! `type=monitor`: who watches the servers.

use crate::known::{Known, known, left_out, same};
use crate::note::{Kind, Note};
use crate::output::{Block, Output, seconds};

use super::ini::Section;
use super::{Configuration, Draft, Renamed, unit};

/// The account that is written where the file names none.
const USER: &str = "plateau";

/// The servers that a monitor watches.
#[derive(Debug)]
pub(super) struct Watch {
    /// The name of its section in MaxScale's file.
    pub(super) section: String,
    /// The account.
    pub(super) user: String,
    /// The names of its servers in the settings file.
    pub(super) servers: Vec<String>,
}

/// Writes the monitors.
pub(super) fn translate(
    configuration: &Configuration<'_>,
    servers: &Renamed,
    output: &mut Output,
    notes: &mut Vec<Note>,
) -> Vec<Watch> {
    let mut watches: Vec<Watch> = Vec::new();
    for section in configuration.all("monitor") {
        let mut draft = configuration.draft(section);
        let mut block = Block::default();
        let mut named = named(&mut draft, servers);
        let is_watched = |it: &String| watches.iter().any(|watch| watch.servers.contains(it));
        if named.iter().any(is_watched) {
            let text = "a server has one monitor: those that another one watches are left out";
            draft.note_all(Kind::Differs, text);
            named.retain(|it| !is_watched(it));
        }
        if named.is_empty() {
            notes.extend(draft.leave_out(Kind::LeftOut, "it watches no servers of its own"));
            continue;
        }
        if named.len() < servers.0.len() {
            block.set("servers", crate::output::texts(named.clone()));
        }
        let user = fields(&mut draft, &mut block);
        notes.extend(draft.finish(&[KNOWN], &mut block));
        output.add("monitor", block);
        watches.push(Watch {
            section: section.name.clone(),
            user,
            servers: named,
        });
    }
    if watches.is_empty() {
        watches.push(stand_in(configuration, servers, output, notes));
    }
    watches
}

/// The servers that a section names, as the settings file has them.
pub(super) fn named(draft: &mut Draft<'_>, servers: &Renamed) -> Vec<String> {
    let Some(entry) = draft.take(&["servers"]) else {
        return Vec::new();
    };
    let mut named: Vec<String> = Vec::new();
    for name in unit::list(&entry.value) {
        match servers.get(name) {
            Some(new) if !named.iter().any(|it| it == new) => named.push(new.to_owned()),
            Some(_) => {}
            None => {
                let text = format!("there is no server `{name}`");
                draft.note(entry, Kind::Unknown, text);
            }
        }
    }
    named
}

/// Writes what a monitor does, and returns its account.
fn fields(draft: &mut Draft<'_>, block: &mut Block) -> String {
    let user = match draft.text(&["user"]) {
        Some(user) => user,
        None => {
            let text = "it has no `user`: write the account that watches the servers";
            draft.note_all(Kind::ToDo, text);
            USER
        }
    };
    block.set("user", user);
    let password = draft.password(&["password", "passwd"]);
    block.set("password", password);
    if let Some(entry) = draft.take(&["module"]) {
        match entry.value.as_str() {
            "mariadbmon" | "mysqlmon" => {}
            "galeramon" => block.set("kind", "galera"),
            _ => {
                let text = "there is no monitor for such servers: it sees what is writable, what \
                            replicates from what, and Galera";
                draft.note(entry, Kind::Differs, text);
            }
        }
    }
    // It had milliseconds before there were units, and still has without one.
    if let Some(interval) = draft.duration(&["monitor_interval"], unit::Bare::Milliseconds) {
        block.set("interval", seconds(interval));
    }
    let timeouts = [
        draft.milliseconds(&["backend_connect_timeout"]),
        draft.milliseconds(&["backend_read_timeout"]),
    ];
    if let Some(timeout) = timeouts.into_iter().flatten().max() {
        block.set("timeout", seconds(timeout));
    }
    if let Some(attempts @ 2..) = draft.number(&["backend_connect_attempts"]) {
        block.set("failures", i64::try_from(attempts.min(1000)).unwrap_or(1));
    }
    promotion(draft);
    user.to_owned()
}

/// Says who promotes a replica.
fn promotion(draft: &mut Draft<'_>) {
    for name in [
        "auto_failover",
        "auto_rejoin",
        "switchover_on_low_disk_space",
    ] {
        let Some(entry) = draft.take(&[name]) else {
            continue;
        };
        if crate::known::boolean(&entry.value) != Some(false) {
            let text = "the gateway promotes no replica and repairs no replication. Let a tool do \
                        that, or do it: it sets `read_only`, and writes follow";
            draft.note(entry, Kind::ToDo, text);
        }
    }
}

/// A monitor for files without one, with the account of a service.
fn stand_in(
    configuration: &Configuration<'_>,
    servers: &Renamed,
    output: &mut Output,
    notes: &mut Vec<Note>,
) -> Watch {
    let is_with_user = |it: &&Section| it.value("user").is_some();
    let mut block = Block::default();
    block.comment("MaxScale had no monitor. Without one, nothing is known of servers.");
    let mut user = USER.to_owned();
    match configuration.all("service").find(is_with_user) {
        Some(section) => {
            let mut draft = configuration.draft(section);
            user = draft.text(&["user"]).unwrap_or(USER).to_owned();
            block.set("user", user.clone());
            block.set("password", draft.password(&["password", "passwd"]));
            let text = format!(
                "there is no monitor: one is made with this account. GRANT SLAVE MONITOR ON *.* \
                 TO {user}@.."
            );
            draft.note_all(Kind::ToDo, text);
            notes.extend(draft.notes);
        }
        None => {
            block.set("user", USER);
            block.set("password", "change-me");
        }
    }
    output.add("monitor", block);
    Watch {
        section: String::new(),
        user,
        servers: servers.0.iter().map(|(_, new)| new.clone()).collect(),
    }
}

/// What only makes sense where replicas are promoted.
const PROMOTES: &str = "the gateway promotes no replica";

const KNOWN: &[Known] = &[
    same("backend_write_timeout"),
    same("journal_max_age"),
    same("detect_stale_master"),
    same("detect_stale_slave"),
    same("detect_replication_lag"),
    same("detect_standalone_master"),
    same("allow_cluster_recovery"),
    same("ignore_external_masters"),
    same("multimaster"),
    same("allow_external_slaves"),
    same("use_priority"),
    same("root_node_as_master"),
    same("set_donor_nodes"),
    known(
        "assume_unique_hostnames",
        &["true"],
        Kind::Differs,
        "host names do not matter",
    ),
    known(
        "available_when_donor",
        &["false"],
        Kind::LeftOut,
        "a donor serves nothing until it is synced again",
    ),
    known(
        "disable_master_failback",
        &["true"],
        Kind::Differs,
        "the member that takes writes keeps them as long as it is up",
    ),
    known(
        "disable_master_role_setting",
        &["false"],
        Kind::LeftOut,
        "one member takes writes",
    ),
    known(
        "master_conditions",
        &["primary_monitor_master", ""],
        Kind::Differs,
        "a primary is writable and follows no listed server; of several the one that replicas \
         follow, and that stays so as long as it is up",
    ),
    known(
        "slave_conditions",
        &["", "none", "linked_master"],
        Kind::Differs,
        "a replica serves reads as long as both threads of its replication run",
    ),
    left_out(
        "script_max_replication_lag",
        "no scripts are run; `lag_max` of a monitor keeps replicas out that are behind",
    ),
    left_out(
        "script*",
        "no scripts are run; the log has a line for each change",
    ),
    left_out(
        "events",
        "no scripts are run; the log has a line for each change",
    ),
    left_out("disk_space_*", "the gateway does not look at disks"),
    left_out(
        "cooperative_monitoring_locks",
        "several gateways do not agree with each other: each looks by itself, and changes nothing",
    ),
    left_out("backup_storage_*", "the gateway makes no backups"),
    left_out("rebuild_port", "the gateway makes no backups"),
    left_out("mariabackup_*", "the gateway makes no backups"),
    left_out("ssh_*", "the gateway makes no backups"),
    left_out("cs_admin_*", "ColumnStore is not known"),
    same("failcount"),
    left_out("failover_timeout", PROMOTES),
    left_out("switchover_timeout", PROMOTES),
    left_out("replication_*", PROMOTES),
    left_out("promotion_sql_file", PROMOTES),
    left_out("demotion_sql_file", PROMOTES),
    left_out("handle_events", PROMOTES),
    known(
        "enforce_simple_topology",
        &["false"],
        Kind::LeftOut,
        PROMOTES,
    ),
    known(
        "enforce_read_only_slaves",
        &["false"],
        Kind::LeftOut,
        "the gateway sets no `read_only`",
    ),
    known(
        "enforce_read_only_servers",
        &["false"],
        Kind::LeftOut,
        PROMOTES,
    ),
    known(
        "enforce_writable_master",
        &["false"],
        Kind::LeftOut,
        PROMOTES,
    ),
    same("maintenance_on_low_disk_space"),
    left_out("servers_no_promotion", PROMOTES),
    same("verify_master_failure"),
    same("master_failure_timeout"),
    left_out("write_test_*", "the monitor writes nothing"),
];
