//! Answers of MariaDB and MySQL, and what is none.

use errcode::ClientError;

use super::*;
use crate::facts::GALERA_DONOR;

fn rows(columns: &[&str], rows: &[&[Option<&str>]]) -> Outcome {
    let value = |value: &Option<&str>| value.map(|text| text.as_bytes().to_vec());
    Outcome::Rows(Rows {
        columns: columns.iter().map(|&name| name.to_owned()).collect(),
        rows: rows
            .iter()
            .map(|row| row.iter().map(value).collect())
            .collect(),
    })
}

fn pairs(pairs: &[(&str, &str)]) -> Pairs {
    let all: Vec<[Option<&str>; 2]> = pairs
        .iter()
        .map(|(name, value)| [Some(*name), Some(*value)])
        .collect();
    let all: Vec<&[Option<&str>]> = all.iter().map(|row| &row[..]).collect();
    Pairs::read(&[rows(&["Variable_name", "Value"], &all)])
}

fn read(version: &[u8], variables: &[(&str, &str)], status: &[(&str, &str)]) -> Facts {
    let streams = Streams::Known(Vec::new());
    let version = ServerVersion::parse(version);
    facts(
        version,
        &pairs(variables),
        &pairs(status),
        streams,
        Instant::default(),
    )
}

#[test]
fn a_mariadb_tells_its_variables() {
    let variables = [
        ("server_id", "7"),
        ("server_uid", "x="),
        ("READ_ONLY", "ON"),
        ("gtid_binlog_pos", "0-7-5"),
        ("gtid_slave_pos", "0-1-4,1-1-1"),
        ("wsrep_on", "OFF"),
    ];
    let read = read(b"10.11.6-MariaDB", &variables, &[("Uptime", "12")]);
    assert_eq!((read.number, read.uptime_s), (7, Some(12)));
    assert_eq!(read.uid.as_deref(), Some("x="));
    assert_eq!(read.access, Access::ReadOnly);
    assert_eq!(read.position.unwrap().to_string(), "0-7-5,1-1-1");
    assert_eq!(read.replicated.unwrap().to_string(), "0-1-4,1-1-1");
    assert!(read.galera.is_none());
}

#[test]
fn a_mysql_tells_its_variables() {
    let uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
    let executed = format!("{uuid}:1-5");
    let variables = [
        ("server_uuid", uuid),
        ("super_read_only", "1"),
        ("gtid_executed", &executed),
    ];
    let read = read(b"8.0.36", &variables, &[]);
    assert_eq!(read.uid.as_deref(), Some(uuid));
    assert_eq!(read.access, Access::ReadOnly);
    assert_eq!(read.position.unwrap().to_string(), executed);
    assert_eq!(read.replicated, None);
    assert_eq!(read.uptime_s, None);
}

#[test]
fn what_cannot_be_read_counts_as_not_told() {
    let variables = [
        ("server_id", "many"),
        ("gtid_binlog_pos", "zero"),
        ("gtid_slave_pos", ""),
    ];
    let read = read(b"10.11.6-MariaDB", &variables, &[("Uptime", "-1")]);
    assert_eq!((read.number, read.uptime_s, read.position), (0, None, None));
    assert_eq!(read.access, Access::Writable);
    assert!(Pairs::read(&[]).is_empty());
    let short = rows(&["Variable_name"], &[&[Some("server_id")], &[None], &[]]);
    assert!(Pairs::read(&[short]).is_empty());
}

#[test]
fn a_galera_member_tells_its_state() {
    let status = [
        ("wsrep_ready", "ON"),
        ("wsrep_cluster_status", "Primary"),
        ("wsrep_local_state", "2"),
        ("wsrep_local_index", "1"),
        ("wsrep_cluster_state_uuid", "u"),
        ("wsrep_cluster_size", "3"),
        ("wsrep_cluster_conf_id", "18446744073709551615"),
        ("wsrep_flow_control_paused_ns", "5"),
    ];
    for (rejects, is_rejecting) in [("NONE", false), ("ALL", true)] {
        let variables = [("wsrep_on", "ON"), ("wsrep_reject_queries", rejects)];
        let read = read(b"10.11.6-MariaDB", &variables, &status);
        let expected = GaleraFacts {
            is_ready: true,
            is_in_primary_component: true,
            local_state: GALERA_DONOR,
            rejects_queries: is_rejecting,
            index: 1,
            cluster: "u".to_owned(),
            size: 3,
            configuration: u64::MAX,
            paused_ns: 5,
        };
        assert_eq!(read.galera, Some(expected));
    }
    let donor = [
        ("wsrep_on", "ON"),
        ("wsrep_sst_donor_rejects_queries", "ON"),
    ];
    let read = read(b"10.11.6-MariaDB", &donor, &status);
    assert!(read.galera.unwrap().rejects_queries);
}

#[test]
fn streams_of_both_products() {
    let mariadb = [
        "Master_Host",
        "Master_Port",
        "Master_Server_Id",
        "Slave_IO_Running",
        "Slave_SQL_Running",
        "Seconds_Behind_Master",
        "Last_IO_Error",
        "Last_SQL_Error",
    ];
    let mysql = mariadb.map(|name| name.replace("Master", "Source").replace("Slave", "Replica"));
    let mysql: Vec<&str> = mysql.iter().map(String::as_str).collect();
    for columns in [&mariadb[..], &mysql] {
        let row = ["db1", "3306", "4", "Connecting", "Yes", "12", "lost", ""].map(Some);
        let Streams::Known(streams) = streams(&[rows(columns, &[&row])]) else {
            panic!("rows are known")
        };
        let expected = Stream {
            source: SourceAddress {
                host: "db1".to_owned(),
                port: 3306,
            },
            source_number: 4,
            receiver: Thread::Connecting,
            applier: Thread::Running,
            lag_s: Some(12),
            error: "lost".to_owned(),
        };
        assert_eq!(streams, [expected]);
    }
    let strange = rows(&["Master_Port"], &[&[Some("99999")], &[None], &[]]);
    let Streams::Known(streams) = streams(&[strange]) else {
        panic!("rows are known")
    };
    assert_eq!(
        streams,
        [Stream::default(), Stream::default(), Stream::default()]
    );
}

#[test]
fn errors_of_the_third_question() {
    let failed = |error: ClientError| streams(&[Outcome::Failed(error)]);
    for error in [
        ClientError::new(ER_PARSE_ERROR, &[&"", &"", &1]),
        ClientError::new(ER_SYNTAX_ERROR, &[]),
        ClientError::new(ER_NOT_SUPPORTED_YET, &[&""]),
    ] {
        assert_eq!(failed(error), Streams::Known(Vec::new()));
    }
    let denied = ClientError::new(ER_SPECIFIC_ACCESS_DENIED_ERROR, &[&""]);
    assert_eq!(failed(denied), Streams::Denied);
    let other = ClientError::new(errcode::ER_CON_COUNT_ERROR, &[]);
    assert_eq!(failed(other), Streams::Unanswered);
    assert_eq!(streams(&[]), Streams::Unanswered);
}

#[test]
fn the_question_has_the_word_of_the_version() {
    for (version, question) in [
        ("10.11.6-MariaDB", "SHOW ALL SLAVES STATUS"),
        ("8.0.21", "SHOW SLAVE STATUS"),
        ("8.0.22", "SHOW REPLICA STATUS"),
        ("8.4.0", "SHOW REPLICA STATUS"),
    ] {
        let version = ServerVersion::parse(version.as_bytes());
        assert_eq!(replication_question(&version), question);
    }
}
