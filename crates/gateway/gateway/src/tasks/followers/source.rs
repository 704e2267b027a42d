//! [`Source`]: the two connections to a primary whose log is followed: one is sent the log, the
//! other is asked which of its transactions can be seen.
//!
//! MariaDB tells in its status the end of the last transaction that each new snapshot has, read
//! under the lock that orders commits. The log is followed from there. MySQL has nothing of that
//! kind, so its changes count as under way for [`SETTLE_TIME`].

use std::time::Duration;

use backend::{Outcome, Product, QueryLimits, Received, Rows, Server};
use binary_log::{Checksum, Place, dump_request};
use env::Instant;
use errcode::{ER_ACCESS_DENIED_ERROR, ER_SPECIFIC_ACCESS_DENIED_ERROR};
use link::{Limit, Part};
use monitor::gtid::GtidPosition;

use crate::connection::position_of;
use crate::options::ServerId;
use crate::worker::Worker;

use super::super::cluster::Cluster;
use super::number_of;
use super::pending::Seen;

/// See the module's head.
#[derive(Debug)]
pub(super) struct Source {
    /// It is sent the log.
    pub(super) dump: Server,
    /// It is asked what can be seen.
    pub(super) witness: Server,
    /// What [`resets`] has said before the place was asked for.
    pub(super) resets: String,
    pub(super) start: Start,
}

/// From where a log is read.
#[derive(Debug)]
pub(super) struct Start {
    /// All before it can be seen.
    pub(super) place: Place,
    pub(super) checksum: Checksum,
    /// Replicas that are here have all before the place, and perhaps more. `None` if the server
    /// names no transactions.
    pub(super) position: Option<GtidPosition>,
}

/// On MySQL, a change may become visible for so long after the log has told of it. Mostly that is
/// less than a millisecond; a server that waits for its replicas (semi-synchronous) takes longer.
const SETTLE_TIME: Duration = Duration::from_secs(1);

/// Between two questions about changes that cannot be seen yet.
pub(super) const WITNESS_PAUSE: Duration = Duration::from_millis(5);

/// Without such changes the question is asked all the same, to see that the log is sent.
pub(super) const WITNESS_PAUSE_MAX: Duration = Duration::from_secs(1);

/// How often the server says that it is there if it has nothing else to say.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// A server that says nothing for so long is lost.
const SILENCE_MAX: Duration = Duration::from_secs(3);

/// A question has to be answered in this time.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(3);

/// Most bytes of an answer. A GTID set of MySQL has the room of some ten thousand intervals.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Longer events are not taken, and the log is lost. A row that is changed stands in one twice.
const EVENT_BYTES_MAX: usize = 64 << 20;

/// Commands of replicas.
const BINLOG_DUMP: u8 = 18;

/// MySQL has the statement without the word MASTER from this version on.
const BINARY_LOG_WORD_SINCE: (u16, u16, u16) = (8, 4, 0);

const SEEN_BY_ALL: &str = "SHOW STATUS LIKE 'binlog_snapshot_%'";

const RESETS: &str = "SHOW GLOBAL STATUS LIKE 'Com_reset'";

const VARIABLES: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('log_bin', \
    'binlog_checksum', 'gtid_binlog_pos', 'gtid_executed', 'wsrep_on', 'log_slave_updates')";

impl Source {
    /// Connects to a server, and has it send its log.
    ///
    /// # Errors
    /// It does not; for people.
    pub(super) async fn open(
        worker: &Worker,
        cluster: &Cluster,
        server: ServerId,
    ) -> Result<Source, String> {
        let number = number_of(worker, cluster);
        let mut witness = cluster.connect(worker, server).await?;
        let resets = resets(&mut witness).await?;
        let start = start(&mut witness).await?;
        let mut dump = cluster.connect(worker, server).await?;
        dump.link().set_packet_bytes_max(EVENT_BYTES_MAX);
        let set = set_up(dump.info().version.product, start.checksum);
        answer(&mut dump, &set).await?;
        let request = dump_request(&start.place, number);
        let request = request.ok_or("its binary log is longer than 4 GiB")?;
        let sent = dump.send(BINLOG_DUMP, &request).await;
        sent.map_err(|error| error.to_string())?;
        Ok(Source {
            dump,
            witness,
            resets,
            start,
        })
    }
}

/// What a replica says of itself before it asks for a log. A server reads the names that it knows.
fn set_up(product: Product, checksum: Checksum) -> String {
    let checksum = match checksum {
        Checksum::Off => "NONE",
        Checksum::Crc32 => "CRC32",
    };
    let heartbeat = HEARTBEAT.as_nanos();
    let common = format!(
        "SET @master_binlog_checksum = '{checksum}', @master_heartbeat_period = {heartbeat}"
    );
    match product {
        // It knows GTIDs of MariaDB.
        Product::MariaDb => format!("{common}, @mariadb_slave_capability = 4"),
        Product::MySql => format!(
            "{common}, @source_binlog_checksum = '{checksum}', \
             @source_heartbeat_period = {heartbeat}"
        ),
    }
}

/// The next packet of a dump.
///
/// # Errors
/// There is none any more; for people.
pub(super) async fn next_packet(dump: &mut Server) -> Result<Received, String> {
    let received = dump.receive(Limit::after(SILENCE_MAX)).await;
    let received = received.map_err(|error| error.to_string())?;
    let received = received.ok_or("its binary log has ended")?;
    match received.part() {
        Part::Row => Ok(received),
        Part::Error(code) => {
            let error = match received.message() {
                Ok(backend::Message::Error(error)) => error.to_client_error().to_string(),
                _ => code.0.to_string(),
            };
            let is_denied =
                [ER_ACCESS_DENIED_ERROR, ER_SPECIFIC_ACCESS_DENIED_ERROR].contains(&code);
            Err(match is_denied {
                true => format!(
                    "{error}; the gateway's account needs GRANT REPLICATION SLAVE ON *.* there"
                ),
                false => error,
            })
        }
        _ => Err("its binary log has ended".to_owned()),
    }
}

/// Which changes can be seen by each query from now on.
///
/// # Errors
/// The server does not say; for people.
pub(super) async fn seen_by_all(witness: &mut Server) -> Result<Seen, String> {
    let now = runtime::now();
    match witness.info().version.product {
        Product::MariaDb => snapshot(witness).await.map(Seen::UpTo),
        Product::MySql => {
            let limit = Limit::after(ANSWER_TIME_MAX);
            witness.ping(limit).await.map_err(|it| it.to_string())?;
            let settled = now.since(Instant::default()).saturating_sub(SETTLE_TIME);
            Ok(Seen::Before(Instant::default() + settled))
        }
    }
}

/// How often the server was told to RESET something, since its start.
///
/// # Errors
/// It does not say; for people.
pub(super) async fn resets(witness: &mut Server) -> Result<String, String> {
    let told = Pairs(answer(witness, RESETS).await?);
    Ok(told.get("Com_reset"))
}

async fn start(witness: &mut Server) -> Result<Start, String> {
    let version = witness.info().version.clone();
    let place = match version.product {
        Product::MariaDb => snapshot(witness).await,
        Product::MySql => end_of_log(witness, version.numbers).await,
    };
    // What it has beyond the place does no harm.
    let told = Pairs(answer(witness, VARIABLES).await?);
    if told.get("log_bin") != "ON" {
        return Err("its binary log is off: start it with log_bin".to_owned());
    }
    if told.get("wsrep_on") == "ON" && told.get("log_slave_updates") != "ON" {
        let told = "it logs no changes of other members: start it with log_slave_updates";
        return Err(told.to_owned());
    }
    let position = told.get(match version.product {
        Product::MariaDb => "gtid_binlog_pos",
        Product::MySql => "gtid_executed",
    });
    Ok(Start {
        place: place?,
        checksum: match told.get("binlog_checksum").as_str() {
            "CRC32" => Checksum::Crc32,
            _ => Checksum::Off,
        },
        position: position_of(version.product, &position),
    })
}

/// Of MariaDB: where the last transaction ends that each new snapshot has.
async fn snapshot(witness: &mut Server) -> Result<Place, String> {
    let told = Pairs(answer(witness, SEEN_BY_ALL).await?);
    let (file, offset) = (
        told.get("binlog_snapshot_file"),
        told.get("binlog_snapshot_position"),
    );
    place(&file, &offset)
}

/// Of MySQL: where the log ends.
async fn end_of_log(witness: &mut Server, numbers: (u16, u16, u16)) -> Result<Place, String> {
    let statement = match BINARY_LOG_WORD_SINCE <= numbers {
        true => "SHOW BINARY LOG STATUS",
        false => "SHOW MASTER STATUS",
    };
    let rows = answer(witness, statement).await.map_err(|error| {
        format!("{error}; the gateway's account needs GRANT REPLICATION CLIENT ON *.* there")
    })?;
    let value = |name: &str| {
        let column = rows.columns.iter().position(|it| it == name);
        let row = rows.rows.first();
        let value = column.and_then(|it| row?.get(it)?.as_deref());
        String::from_utf8_lossy(value.unwrap_or_default()).into_owned()
    };
    place(&value("File"), &value("Position"))
}

fn place(file: &str, offset: &str) -> Result<Place, String> {
    let offset = offset.parse().ok().filter(|_| !file.is_empty());
    let offset = offset.ok_or("it does not say where its binary log ends")?;
    Ok(Place::new(file.as_bytes(), offset))
}

/// Names and values, as SHOW VARIABLES and SHOW STATUS answer.
struct Pairs(Rows);

impl Pairs {
    /// A value; empty if there is none.
    fn get(&self, name: &str) -> String {
        let mut rows = self.0.rows.iter();
        let is_it = |row: &&Vec<Option<Vec<u8>>>| {
            let own = row.first().and_then(Option::as_deref);
            own.is_some_and(|own| own.eq_ignore_ascii_case(name.as_bytes()))
        };
        let value = rows.find(is_it).and_then(|row| row.get(1)?.as_deref());
        String::from_utf8_lossy(value.unwrap_or_default()).into_owned()
    }
}

/// The rows of a statement; none if it has none.
async fn answer(server: &mut Server, text: &str) -> Result<Rows, String> {
    let limits = QueryLimits {
        until: Limit::after(ANSWER_TIME_MAX),
        bytes_max: ANSWER_BYTES_MAX,
    };
    let outcomes = server.query(text.as_bytes(), limits).await;
    let outcomes = outcomes.map_err(|error| error.to_string())?;
    match outcomes.into_iter().next() {
        Some(Outcome::Rows(rows)) => Ok(rows),
        Some(Outcome::Failed(error)) => Err(error.to_string()),
        Some(Outcome::Done { .. }) | None => Ok(Rows::default()),
    }
}
