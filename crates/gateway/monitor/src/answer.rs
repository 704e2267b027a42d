//! Reads what a server answers to the questions of a check.
//!
//! The questions are SHOW statements, because a Galera member that is not ready answers no other.
//! Answers are outside data: what is missing or cannot be read counts as not told.

use backend::{Outcome, Product, Rows, ServerVersion};
use env::Instant;
use errcode::{
    ER_NOT_SUPPORTED_YET, ER_PARSE_ERROR, ER_SPECIFIC_ACCESS_DENIED_ERROR, ER_SYNTAX_ERROR,
};

use crate::facts::{Access, Facts, GaleraFacts, SourceAddress, Stream, Streams, Thread};
use crate::gtid::GtidPosition;
use crate::gtid::mariadb::MariaDbPosition;
use crate::gtid::mysql::MySqlSet;

/// The first question of a check.
pub(crate) const VARIABLES: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('server_id', \
     'server_uid', 'server_uuid', 'read_only', 'super_read_only', 'innodb_read_only', \
     'gtid_binlog_pos', 'gtid_slave_pos', 'gtid_executed', 'wsrep_on', 'wsrep_reject_queries', \
     'wsrep_sst_donor_rejects_queries')";

/// The second question.
pub(crate) const STATUS: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Uptime', \
     'wsrep_ready', 'wsrep_cluster_status', 'wsrep_local_state', 'wsrep_local_index', \
     'wsrep_cluster_state_uuid', 'wsrep_cluster_size', 'wsrep_cluster_conf_id', \
     'wsrep_flow_control_paused_ns')";

/// MySQL has the statement without the word SLAVE from this version on.
const REPLICA_WORD_SINCE: (u16, u16, u16) = (8, 0, 22);

/// The third question: how replication does.
pub(crate) fn replication_question(version: &ServerVersion) -> &'static str {
    match version.product {
        Product::MariaDb => "SHOW ALL SLAVES STATUS",
        Product::MySql if REPLICA_WORD_SINCE <= version.numbers => "SHOW REPLICA STATUS",
        Product::MySql => "SHOW SLAVE STATUS",
    }
}

/// Names and values, as SHOW VARIABLES and SHOW STATUS answer.
#[derive(Debug, Default)]
pub(crate) struct Pairs(Vec<(String, String)>);

impl Pairs {
    /// Reads rows of a name and a value. Another answer has no pairs.
    pub(crate) fn read(outcomes: &[Outcome]) -> Pairs {
        let Some(Outcome::Rows(rows)) = outcomes.first() else {
            return Pairs::default();
        };
        let pair = |row: &Vec<Option<Vec<u8>>>| {
            let name = row.first()?.as_deref()?;
            let value = row.get(1)?.as_deref()?;
            Some((text(name).to_ascii_lowercase(), text(value)))
        };
        Pairs(rows.rows.iter().filter_map(pair).collect())
    }

    /// Whether the server has told nothing at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn text(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(own, _)| own == name);
        found.map_or("", |(_, value)| value.as_str())
    }

    fn number<T: std::str::FromStr + Default>(&self, name: &str) -> T {
        self.text(name).parse().unwrap_or_default()
    }

    fn is_on(&self, name: &str) -> bool {
        ["ON", "1"]
            .iter()
            .any(|on| self.text(name).eq_ignore_ascii_case(on))
    }

    fn is_set_to_other_than(&self, name: &str, none: &str) -> bool {
        let value = self.text(name);
        !value.is_empty() && !value.eq_ignore_ascii_case(none)
    }
}

/// What the answers to the three questions say together.
pub(crate) fn facts(
    version: ServerVersion,
    variables: &Pairs,
    status: &Pairs,
    streams: Streams,
    read_at: Instant,
) -> Facts {
    let read_only = ["read_only", "super_read_only", "innodb_read_only"];
    let uid = ["server_uid", "server_uuid"].map(|name| variables.text(name));
    let (position, replicated) = positions(version.product, variables);
    Facts {
        read_at,
        uptime_s: status.text("uptime").parse().ok(),
        number: variables.number("server_id"),
        uid: uid.into_iter().find(|it| !it.is_empty()).map(Into::into),
        access: match read_only.iter().any(|name| variables.is_on(name)) {
            true => Access::ReadOnly,
            false => Access::Writable,
        },
        position,
        replicated,
        streams,
        galera: variables
            .is_on("wsrep_on")
            .then(|| galera(variables, status)),
        version,
    }
}

fn galera(variables: &Pairs, status: &Pairs) -> GaleraFacts {
    let local_state = status.number("wsrep_local_state");
    let is_donor = local_state == crate::facts::GALERA_DONOR;
    GaleraFacts {
        is_ready: status.is_on("wsrep_ready"),
        is_in_primary_component: status
            .text("wsrep_cluster_status")
            .eq_ignore_ascii_case("primary"),
        local_state,
        rejects_queries: variables.is_set_to_other_than("wsrep_reject_queries", "NONE")
            || (is_donor && variables.is_on("wsrep_sst_donor_rejects_queries")),
        index: status.number("wsrep_local_index"),
        cluster: status.text("wsrep_cluster_state_uuid").to_owned(),
        size: status.number("wsrep_cluster_size"),
        configuration: status.number("wsrep_cluster_conf_id"),
        paused_ns: status.number("wsrep_flow_control_paused_ns"),
    }
}

/// All that the server has applied, and what of that it has from others. MySQL names the server of
/// each transaction, so one set tells both.
fn positions(product: Product, variables: &Pairs) -> (Option<GtidPosition>, Option<GtidPosition>) {
    match product {
        Product::MariaDb => {
            let read = |name| MariaDbPosition::parse(variables.text(name)).ok();
            let (binlog, slave) = (read("gtid_binlog_pos"), read("gtid_slave_pos"));
            let all = binlog.zip(slave.as_ref());
            let all = all.map(|(binlog, slave)| binlog.merged(slave));
            let position = all.map(GtidPosition::MariaDb);
            (position, slave.map(GtidPosition::MariaDb))
        }
        Product::MySql => {
            let set = MySqlSet::parse(variables.text("gtid_executed")).ok();
            (set.map(GtidPosition::MySql), None)
        }
    }
}

/// How replication does. A server that does not know the statement replicates from nowhere. After
/// another error nothing is known.
pub(crate) fn streams(outcomes: &[Outcome]) -> Streams {
    const UNKNOWN_STATEMENT: [errcode::ErrorCode; 3] =
        [ER_PARSE_ERROR, ER_SYNTAX_ERROR, ER_NOT_SUPPORTED_YET];
    match outcomes.first() {
        Some(Outcome::Rows(rows)) => {
            Streams::Known((0..rows.rows.len()).map(|it| stream(rows, it)).collect())
        }
        Some(Outcome::Failed(error)) if UNKNOWN_STATEMENT.contains(&error.code) => {
            Streams::Known(Vec::new())
        }
        Some(Outcome::Failed(error)) if error.code == ER_SPECIFIC_ACCESS_DENIED_ERROR => {
            Streams::Denied
        }
        _ => Streams::Unanswered,
    }
}

fn stream(rows: &Rows, row: usize) -> Stream {
    // MySQL has renamed the columns.
    let value = |names: [&str; 2]| {
        let is_named = |column: &String| names.iter().any(|it| column.eq_ignore_ascii_case(it));
        let place = rows.columns.iter().position(is_named)?;
        Some(text(rows.rows.get(row)?.get(place)?.as_deref()?))
    };
    let thread = |names| match value(names).unwrap_or_default().as_str() {
        "Yes" => Thread::Running,
        "Connecting" | "Preparing" => Thread::Connecting,
        _ => Thread::Stopped,
    };
    fn number<T: std::str::FromStr>(value: Option<String>) -> Option<T> {
        value?.parse().ok()
    }
    let error = |name| value([name; 2]).filter(|it| !it.is_empty());
    Stream {
        source: SourceAddress {
            host: value(["Master_Host", "Source_Host"]).unwrap_or_default(),
            port: number(value(["Master_Port", "Source_Port"])).unwrap_or_default(),
        },
        source_number: number(value(["Master_Server_Id", "Source_Server_Id"])).unwrap_or_default(),
        receiver: thread(["Slave_IO_Running", "Replica_IO_Running"]),
        applier: thread(["Slave_SQL_Running", "Replica_SQL_Running"]),
        lag_s: number(value(["Seconds_Behind_Master", "Seconds_Behind_Source"])),
        error: error("Last_SQL_Error")
            .or(error("Last_IO_Error"))
            .unwrap_or_default(),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests;
