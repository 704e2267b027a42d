//! ProxySQL: its file, and what becomes of its tables.
//!
//! Hostgroups that belong together by `mysql_replication_hostgroups` are a cluster: a
//! monitor and a service. Query rules become rules in the order in which they decide, and a rule
//! for each default hostgroup comes last, because in ProxySQL a read goes to a replica by a rule
//! alone.

mod config;
mod row;

mod cache;
mod hostgroup;
mod interface;
mod query_log;
mod rule;
mod server;
mod user;
mod variable;

use crate::Source;
use crate::error::TranslateError;
use crate::known::{Known, differs, left_out, same};
use crate::note::{Kind, Note};
use crate::output::{Block, Output};

use config::{Setting, Value};
use row::Row;
use variable::Variables;

/// The file as it was read.
#[derive(Debug, Clone, Copy)]
struct File<'a> {
    name: &'a str,
    settings: &'a [Setting],
}

impl<'a> File<'a> {
    /// The rows of a table. What is no row is noted.
    fn rows(&self, table: &'static str, notes: &mut Vec<Note>) -> Vec<Row<'a>> {
        let mut rows = Vec::new();
        let Some(found) = self.settings.iter().find(|it| it.name == table) else {
            return rows;
        };
        let Value::Many(values) = &found.value else {
            notes.extend(unread(Row::new(self.name, table, found.line, &[])));
            return rows;
        };
        for (line, value) in values {
            match value {
                Value::Group(settings) => rows.push(Row::new(self.name, table, *line, settings)),
                Value::Many(_) | Value::Scalar(_) => {
                    notes.extend(unread(Row::new(self.name, table, *line, &[])));
                }
            }
        }
        rows
    }

    /// A group of variables; an empty one if there is none.
    fn group(&self, name: &'static str) -> Row<'a> {
        let found = self.settings.iter().find(|it| it.name == name);
        match found.map(|it| (it.line, &it.value)) {
            Some((line, Value::Group(settings))) => Row::new(self.name, name, line, settings),
            Some((line, _)) => Row::new(self.name, name, line, &[]),
            None => Row::new(self.name, name, 1, &[]),
        }
    }
}

fn unread(mut row: Row<'_>) -> Vec<Note> {
    row.note_all(Kind::Unknown, "rows of tables are groups in a list");
    row.notes
}

/// Translates a file.
pub(crate) fn translate(sources: &[Source]) -> Result<(Output, Vec<Note>), TranslateError> {
    let lacks = "mysql_servers has no rows";
    let Some(source) = sources.first() else {
        return Err(TranslateError::Empty { lacks });
    };
    let settings = config::parse(source)?;
    let file = File {
        name: &source.name,
        settings: &settings,
    };
    let mut notes = Vec::new();
    let mut output = Output::default();
    output.head.comment(
        "Translated from a configuration of ProxySQL. Comments tell what is different, left out \
         or to do; docs/from-proxysql.md tells of each setting.",
    );
    let servers = server::read(&file, &mut notes);
    if servers.is_empty() {
        return Err(TranslateError::Empty { lacks });
    }
    let users = user::read(&file, &mut notes);
    let clusters = hostgroup::read(&file, &servers, &users, &mut notes);
    let mut rows = rule::rows(&file, &mut notes);
    let mut variables = variable::read(&file);
    if !variables.events.is_there() {
        rule::log_nothing(&mut rows);
    }
    let ports = rule::ports(&rows);
    let places = interface::read(&mut variables, &ports, &clusters);
    let rules = rule::translate(rule::Question {
        file: file.name,
        rows,
        users: &users,
        clusters: &clusters,
        services: &places.services,
    });
    notes.extend(rules.notes);
    output.head.set("listen", places.listen.clone());
    let admins = variable::write(&file, &mut variables, &mut output, &mut notes);
    server::write(&servers, &mut output);
    hostgroup::write_monitors(&clusters, &servers, &variables, &mut output);
    rules.caches.write(variables.cache, &mut output);
    hostgroup::write_services(
        &clusters,
        &servers,
        &variables,
        &places.services,
        &mut output,
    );
    let Variables { mysql, events, .. } = &mut variables;
    events.write(rules.has_logging, mysql, &mut output);
    let mut of_variables = Block::default();
    notes.extend(variables.finish(&mut of_variables));
    output.head.append(of_variables);
    for block in places.listeners {
        output.add("listener", block);
    }
    notes.extend(places.notes);
    for block in rules.blocks {
        output.add("rule", block);
    }
    for block in admins {
        output.add("admin", block);
    }
    rest(&file, &mut notes);
    Ok((output, notes))
}

/// Notes tables and settings that are not translated.
fn rest(file: &File<'_>, notes: &mut Vec<Note>) {
    let mut all = Row::new(file.name, "", 1, file.settings);
    let is_empty = |it: &&Setting| matches!(&it.value, Value::Many(values) if values.is_empty());
    for empty in file.settings.iter().filter(is_empty) {
        all.pass_over(&empty.name);
    }
    all.judge_rest(TABLES);
    notes.extend(all.notes);
}

const TABLES: &[Known] = &[
    same("mysql_servers"),
    same("mysql_users"),
    same("mysql_query_rules"),
    same("mysql_query_rules_fast_routing"),
    same("mysql_replication_hostgroups"),
    same("mysql_galera_hostgroups"),
    same("mysql_group_replication_hostgroups"),
    same("mysql_aws_aurora_hostgroups"),
    same("mysql_variables"),
    same("admin_variables"),
    differs(
        "datadir",
        "`data` is the folder of keys and sockets; it keeps no settings",
    ),
    differs("errorlog", "the log is standard error"),
    same("restart_on_missing_heartbeats"),
    same("execute_on_exit_failure"),
    left_out("scheduler", "no scripts are run"),
    left_out("restapi_routes", "no scripts are run"),
    left_out("restapi", "no scripts are run"),
    left_out(
        "proxysql_servers",
        "gateways do not share their configuration: copy the file, and RELOAD CONFIGURATION",
    ),
    left_out(
        "mysql_servers_ssl_params",
        "`tls` of a server says whether it is encrypted",
    ),
    left_out(
        "mysql_hostgroup_attributes",
        "hostgroups have no attributes here",
    ),
    left_out(
        "mysql_firewall_whitelist_*",
        "there is no list of allowed statements: `refuse` of a rule names what is not",
    ),
    left_out("mysql_ldap_mapping", "accounts are those of the servers"),
    same("mysql_collations"),
    left_out("pgsql_*", "only clients of MariaDB and MySQL are served"),
    left_out(
        "clickhouse_*",
        "only servers of MariaDB and MySQL are known",
    ),
    left_out(
        "sqliteserver_*",
        "only servers of MariaDB and MySQL are known",
    ),
    left_out("ldap_variables", "accounts are those of the servers"),
];
