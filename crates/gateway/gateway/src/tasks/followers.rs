//! Follows the binary logs of the primaries, as a replica does, so that caches of results learn of
//! changes past the gateway.
//!
//! ```text
//! primary found -> Source::open -> read() -> the log is lost -> a second later, again
//!                                  read():    event -> Pending::begin      (the dump's connection)
//!                                  confirm(): seen by all -> Pending::end  (another connection)
//!                                  watch():   another primary, another configuration
//! ```
//!
//! What holds is in [`crate::gateway::following`]. Each way out of `read`, `confirm` and `watch`
//! ends all three: then all results are void, and none is kept until the log is followed again,
//! from its end. So nothing depends on what stood in a part of a log that was not read.
//!
//! Refused: to go on where the last connection ended. The log may be another one, and a dump that
//! is late by minutes tells of changes whose results were read long after.

mod pending;
mod source;

use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use backend::{Product, Server};
use binary_log::{Gtid, LogReader, Place, Statement, Told};
use clients::wait::{Either, first_of};
use monitor::gtid::GtidPosition;
use result_cache::{Changes, Tables};
use router::changes_of;
use settings::SqlMode;
use sync::Notify;

use crate::connection::position_of;
use crate::gateway::following::{Following, Point};
use crate::guest::is_read_alike;
use crate::options::MonitorId;
use crate::worker::Worker;

use super::cluster::{Cluster, Primary};
use pending::{Pending, Progress};
use source::{Source, Start};

/// After a log was lost, or could not be read.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// How often it is looked whether there is another primary or another configuration.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// So many events are taken before others of the worker run.
const EVENTS_PER_TURN: u32 = 64;

/// Changes of a transaction that are remembered, so that they are not noted again.
const NOTED_MAX: usize = 64;

/// A longer statement in the log is not read. It may change anything.
const STATEMENT_BYTES_MAX: usize = 1 << 20;

/// Follows the logs of all clusters for as long as the configuration has a cache that asks for it.
/// One worker does it, and calls this each time that it has adopted a configuration.
pub fn keep_followers(worker: &Worker) {
    if !worker.generation.follows_logs() {
        return;
    }
    for watch in worker.generation.watches() {
        if watch.following.begin_task() {
            runtime::spawn_background(keep(Arc::clone(&watch.following)));
        }
    }
}

async fn keep(following: Arc<Following>) {
    let mut told = None;
    // Of the present configuration, and only as long as it takes.
    while let Some((worker, cluster)) = present(&following) {
        let Some(primary) = cluster.primary() else {
            // Of a missing primary the monitor tells.
            drop((worker, cluster));
            runtime::sleep(RETRY_PAUSE).await;
            continue;
        };
        let server = Arc::clone(&cluster.server(primary.server).options.name);
        let tables = Arc::clone(&worker.gateway.tables);
        let opened = Source::open(&worker, &cluster, primary.server).await;
        drop((worker, cluster));
        let follower = Follower {
            following: &following,
            tables: &tables,
            server: &server,
            pending: RefCell::default(),
            has_pending: Notify::default(),
            place: RefCell::default(),
        };
        let reason = match opened {
            Ok(source) => follower.follow(source, primary).await,
            Err(reason) => reason,
        };
        let was_followed = follower.lose();
        // The same reasons each second would hide all other lines.
        if was_followed || told.as_ref() != Some(&reason) {
            let server = &*server;
            tracing::warn!(server, %reason, "a binary log is not followed: nothing is kept");
            told = Some(reason);
        }
        runtime::sleep(RETRY_PAUSE).await;
    }
    following.end_task();
}

/// The cluster of this log in the configuration that this worker has adopted, if a cache follows.
fn present(following: &Arc<Following>) -> Option<(Rc<Worker>, Cluster)> {
    let worker: Rc<Worker> = runtime::local()?;
    let mut watches = worker.generation.watches();
    let found = watches.position(|it| Arc::ptr_eq(&it.following, following));
    drop(watches);
    let monitor = MonitorId(found.filter(|_| worker.generation.follows_logs())?);
    let cluster = Cluster::new(&worker.generation, monitor);
    Some((worker, cluster))
}

/// What follows one log over one pair of connections.
struct Follower<'a> {
    following: &'a Arc<Following>,
    tables: &'a Arc<Tables>,
    server: &'a Arc<str>,
    /// Changes that not all can see yet.
    pending: RefCell<Pending>,
    /// Asks the server about them.
    has_pending: Notify,
    /// How far the log was read.
    place: RefCell<Place>,
}

impl Follower<'_> {
    /// Follows until that ends. Returns why.
    async fn follow(&self, source: Source, primary: Primary) -> String {
        let Source {
            dump,
            mut witness,
            resets,
            start,
        } = source;
        let read = pin!(self.read(dump, start));
        let confirm = pin!(self.confirm(&mut witness, resets));
        let watch = pin!(self.watch(primary));
        let asked = pin!(first_of(confirm, watch));
        match first_of(read, asked).await {
            Either::Left(reason) | Either::Right(Either::Left(reason) | Either::Right(reason)) => {
                reason
            }
        }
    }

    /// The log is lost. Returns whether it was followed before.
    fn lose(&self) -> bool {
        let was_followed = self.following.is_current();
        if was_followed {
            self.following.lose();
            self.tables.note_change(Changes::AnyTable);
        }
        self.pending.borrow_mut().give_up();
        self.following.reach(None);
        was_followed
    }

    /// Ready once there is another primary, or another configuration.
    async fn watch(&self, primary: Primary) -> String {
        loop {
            runtime::sleep(LOOK_EVERY).await;
            let Some((_, cluster)) = present(self.following) else {
                return "the configuration has changed".to_owned();
            };
            let now = cluster.primary().map(|it| it.identity);
            if now != Some(primary.identity) {
                return "it is not the primary any more".to_owned();
            }
        }
    }

    /// Takes what the server sends of its log.
    async fn read(&self, mut dump: Server, start: Start) -> String {
        let mut reader = LogReader::new(start.place, start.checksum);
        let mut position = Some(start.position);
        // Of the present transaction, so that each is noted once.
        let mut noted: Vec<Changes> = Vec::new();
        let mut count = 0;
        loop {
            let packet = match source::next_packet(&mut dump).await {
                Ok(packet) => packet,
                Err(reason) => return reason,
            };
            let told = match reader.take(packet.bytes()) {
                Ok(told) => told,
                Err(error) => return error.to_string(),
            };
            self.following.events.increment();
            let changes = match told {
                Told::Nothing => Changes::Nothing,
                Told::Begun => {
                    if let Some(position) = position.take() {
                        self.begin(position, reader.place());
                    }
                    Changes::Nothing
                }
                Told::Transaction(gtid) => {
                    noted.clear();
                    self.following.written.follow(position_behind(gtid));
                    Changes::Nothing
                }
                Told::Rows(name) => Changes::of_tables([name]),
                Told::UnknownRows => Changes::AnyTable,
                Told::Statement(statement) => changes_by(&statement),
                Told::Unknown => Changes::Anything,
            };
            if changes != Changes::Nothing && !noted.contains(&changes) {
                if noted.len() == NOTED_MAX {
                    noted.clear();
                }
                noted.push(changes);
                self.note(changes, reader.place());
            }
            self.place.borrow_mut().clone_from(reader.place());
            self.following.reach(Some(Point {
                server: Arc::clone(self.server),
                place: reader.place().clone(),
            }));
            count += 1;
            if count % EVENTS_PER_TURN == 0 {
                runtime::yield_now().await;
            }
        }
    }

    /// Replies and definitions that were read before may be old. From now on, the log has all
    /// changes.
    fn begin(&self, position: Option<GtidPosition>, place: &Place) {
        self.following.written.restart(position);
        self.note(Changes::AnyTable, place);
        self.tables.doubt();
        self.following.begin();
        let server = &**self.server;
        tracing::info!(server, "a binary log is followed");
    }

    /// The log tells of a change.
    fn note(&self, changes: Changes, place: &Place) {
        let changing = self.tables.begin_change(changes);
        let mut pending = self.pending.borrow_mut();
        pending.begin(changing, place.clone(), runtime::now());
        if pending.is_full() {
            // One for all of them takes their place.
            let changing = self.tables.begin_change(Changes::AnyTable);
            pending.replace(changing, place.clone(), runtime::now());
        }
        self.has_pending.notify();
    }

    /// Ends changes once all can see them (B2). Also looks whether the log is sent as it should be.
    async fn confirm(&self, witness: &mut Server, resets: String) -> String {
        let mut progress = Progress::default();
        let mut looked_at = runtime::now();
        loop {
            let notified = pin!(self.has_pending.notified());
            let late = pin!(runtime::sleep(source::WITNESS_PAUSE_MAX));
            first_of(notified, late).await;
            if source::WITNESS_PAUSE_MAX <= runtime::now().since(looked_at) {
                // A log that begins again may be as long as the one before.
                match source::resets(witness).await {
                    Ok(now) if now == resets => looked_at = runtime::now(),
                    Ok(_) => return "its binary log was reset".to_owned(),
                    Err(reason) => return reason,
                }
            }
            let mut pause = source::WITNESS_PAUSE;
            loop {
                let seen = match source::seen_by_all(witness).await {
                    Ok(seen) => seen,
                    Err(reason) => return reason,
                };
                self.pending.borrow_mut().end(&seen);
                let is_sent = progress.check(&self.place.borrow(), &seen, runtime::now());
                if let Err(reason) = is_sent {
                    return reason.to_owned();
                }
                if self.pending.borrow().is_empty() {
                    break;
                }
                runtime::sleep(pause).await;
                pause = source::WITNESS_PAUSE_MAX.min(2 * pause);
            }
        }
    }
}

/// What a statement in the log has changed.
fn changes_by(statement: &Statement<'_>) -> Changes {
    let Statement {
        text,
        sql_mode,
        collation,
    } = *statement;
    // Its bytes may be of characters that are not known here.
    let is_clear = text.is_ascii() || collation.is_some_and(|it| is_read_alike(text, it));
    if STATEMENT_BYTES_MAX < text.len() || !is_clear {
        return Changes::Anything;
    }
    changes_of(text, SqlMode::of_bits(sql_mode.unwrap_or_default()))
}

/// `None` if it is not known where a replica has it.
fn position_behind(gtid: Gtid) -> Option<GtidPosition> {
    let product = match gtid {
        Gtid::MariaDb { .. } => Product::MariaDb,
        Gtid::MySql { .. } => Product::MySql,
        Gtid::Unread => return None,
    };
    position_of(product, &gtid.to_string())
}

/// The `server_id` of a follower: what the settings say, or one that is drawn.
fn number_of(worker: &Worker, cluster: &Cluster) -> u32 {
    /// Numbers that people give are below it.
    const DRAWN: u32 = 1 << 31;
    let drawn = || {
        let mut bytes = [0; 4];
        (worker.random())(&mut bytes);
        u32::from_le_bytes(bytes) | DRAWN
    };
    cluster.options().follower_number.unwrap_or_else(drawn)
}
