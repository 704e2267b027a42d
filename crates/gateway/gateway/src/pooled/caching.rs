//! Results that are kept: which queries get one, which replies are kept, and what statements
//! change.
//!
//! (K1) A session gets a reply of another session only if both have the same [`Scope`]: account,
//! kind of client, database, and all that they have set. A session that is pinned has more than
//! that, and gets none.
//! (K2) A reply is kept only if it came from a server that had all writes of the gateway's sessions
//! when its query was sent: the primary, or a replica that has their position. With a cache that
//! follows binary logs, that server also has what the log has told of.
//! (K3) A transaction reads what its server would send. Its first query goes to its server, so that
//! there is a snapshot. Later ones get a kept reply only if none of its tables was changed since
//! the transaction began. Behind its first write all go to the server.
//! (K4) A statement that may change tables is bracketed ([`result_cache::Tables`]), and so is each
//! that may end a transaction which has changed some.
//!
//! Of a cache whose operator vouches for all queries, (K2) does not hold, and of (K3) only what it
//! says of writes.

use std::ops::Range;
use std::sync::Arc;

use connection_state::Origin;
use env::Instant;
use link::Ending;
use monitor::{ServerId as Place, ServerState};
use query_log::Route;
use result_cache::{
    Cache, ChangeTime, Changes, Changing, Filling, KeptReply, Lookup, Miss, Query, Scope, TableSlot,
};
use router::{CacheUse, History, Judged, Pin, Plan, Unkept};
use router::{may_speak_oracle, reads_in_its_own_way};
use smallvec::SmallVec;
use syntax::SqlMode;
use syntax::class::{Class, is_server_database};
use wire::{CommandByte, StatusFlags};

use crate::end::End;
use crate::explain::Unasked;
use crate::gateway::following::Following;
use crate::gateway::generation::{Generation, ResultCache};
use crate::guest::{Answer, Form, Guest, Reply, Request, Ruled, mode_of};
use crate::options::{ResultCacheOptions, Router, ServiceId, Trust};
use crate::service::Service;
use crate::service::written::SharedWritten;
use crate::worker::Worker;

use super::answer::Job;
use super::guide::Guided;
use super::locks::OF_LOCKS;
use super::{OF_SESSION, Pooled, SPARE_BYTES_MAX, Way};

/// What a session has to do with caches.
#[derive(Debug, Default)]
pub(super) struct Caching {
    scope: Option<KnownScope>,
    /// A moment before its transaction has read anything.
    since: ChangeTime,
    /// Its transaction has read from tables on its server.
    pub(super) has_snapshot: bool,
    /// Its transaction may have written.
    has_written: bool,
    /// Its transaction has characteristics that were set for it alone, which no scope shows.
    is_odd: bool,
    /// What the statement under way changes.
    changing: Option<Changing>,
}

/// The scope of a session that begins so and has set this.
#[derive(Debug)]
struct KnownScope {
    login: pool::Login,
    origin: Arc<Origin>,
    history: Arc<History>,
    /// Or why its replies are not kept.
    scope: Result<Scope, Unasked>,
}

/// A query that a cache may have the reply to. Its key is in the worker's room for that.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) cache: Arc<ResultCache>,
    /// Of the query; none if its operator vouches for it.
    pub(super) names: Arc<[TableSlot]>,
    /// A row of its reply is one of a table, or was made from one.
    pub(super) must_read_row: bool,
}

/// What a cache has for a query.
#[derive(Debug)]
pub(super) enum Kept {
    /// This reply.
    Reply(Arc<KeptReply>),
    /// None; the one that its server sends may be kept.
    Wanted(Box<Wanted>),
    /// None, and none is kept.
    Nothing,
}

/// A reply that may be kept.
#[derive(Debug)]
pub(super) struct Wanted {
    /// `None` if it only tells what a transaction has read.
    filling: Option<Filling>,
    trust: Trust,
    must_read_row: bool,
    /// Servers that have all that was written (K2).
    places: SmallVec<[Place; 4]>,
}

/// Kinds of keys, so that no two of them are alike.
const VERIFIED: u8 = b'Q';
const VOUCHED: u8 = b'V';
const PREPARED: u8 = b'P';

/// Longer replies are sent in parts.
const PART_BYTES: usize = 32 << 10;

impl Caching {
    /// Of a session that begins. `None` if there is no cache.
    pub(super) fn of(generation: &Generation) -> Option<Box<Caching>> {
        (!generation.caches().is_empty()).then(Box::default)
    }

    /// The session's transaction has ended, or will by what is sent next.
    pub(super) fn begin_transaction(&mut self, now: ChangeTime) {
        self.since = now;
        self.has_snapshot = false;
        self.has_written = false;
        self.is_odd = false;
    }
}

/// The cache of a session whose operator vouches for all of its queries, so that none is read.
pub(super) fn vouched(guest: &Guest) -> Option<Arc<ResultCache>> {
    let generation = guest.generation();
    let cache = generation.cache_for(guest.service, None)?;
    let is_unruled = !guest.ruled.is_ruled();
    let is_vouched = cache.options.trust == Trust::Vouched && is_unruled;
    is_vouched.then(|| Arc::clone(cache))
}

/// What to ask such a cache about a text, which is not read.
pub(super) fn asked_unread(
    (worker, ruled): (&Worker, &Ruled),
    cache: Arc<ResultCache>,
    (text, mode): (&[u8], SqlMode),
) -> Asked {
    let mut key = worker.key_room.borrow_mut();
    key.clear();
    key.extend_from_slice(&mode.bits().to_le_bytes());
    append_text(ruled, text, Trust::Vouched, &mut key);
    Asked {
        cache,
        names: Arc::new([]),
        must_read_row: false,
    }
}

/// Whether a text begins with SELECT.
pub(super) fn is_select(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    let word = text.get(..b"SELECT".len());
    word.is_some_and(|it| it.eq_ignore_ascii_case(b"SELECT"))
}

/// What to ask a cache about a statement that was judged, if its reply may be there. `append` adds
/// what the statement means to a key, and returns `false` if it has no such meaning.
///
/// # Errors
/// No reply to it is kept.
pub(super) fn asked(
    (worker, service): (&Worker, ServiceId),
    (judged, mode): (&Judged, SqlMode),
    guided: &Guided,
    append: impl FnOnce(&ResultCache, &mut Vec<u8>) -> bool,
) -> Result<Asked, Unasked> {
    let said: Option<&CacheUse> = guided.cache.as_ref();
    let cache = worker.generation.cache_for(service, said);
    let cache = cache.ok_or(Unasked::NoCache)?;
    if guided.is_hinted {
        return Err(Unasked::Hint);
    }
    if judged.verdict.facts.has_any(OF_LOCKS) {
        return Err(Unasked::Unkept(Unkept::Facts(judged.verdict.facts)));
    }
    let names = match (cache.options.trust, &judged.touched) {
        (Trust::Verified, Some(touched)) => match &touched.names {
            Ok(names) if judged.uses_tables => Arc::clone(names),
            Ok(_) => return Err(Unasked::NoTable),
            Err(why) => return Err(Unasked::Unkept(*why)),
        },
        (Trust::Vouched, _) if judged.class == Class::Query => Arc::new([]),
        (Trust::Verified | Trust::Vouched, _) => return Err(Unasked::Unkept(Unkept::NoQuery)),
    };
    let mut key = worker.key_room.borrow_mut();
    key.clear();
    key.extend_from_slice(&mode.bits().to_le_bytes());
    let has_meaning = append(cache, &mut key);
    has_meaning.then_some(()).ok_or(Unasked::NoMeaning)?;
    let touched = judged.touched.as_ref();
    Ok(Asked {
        cache: Arc::clone(cache),
        names,
        must_read_row: touched.is_some_and(|it| it.must_read_row),
    })
}

/// Adds the meaning of a text to a key.
pub(super) fn append_text(ruled: &Ruled, text: &[u8], trust: Trust, key: &mut Vec<u8>) -> bool {
    match trust {
        Trust::Verified => {
            key.push(VERIFIED);
            ruled.append_meaning(text, key)
        }
        Trust::Vouched => {
            key.push(VOUCHED);
            key.extend_from_slice(text);
            true
        }
    }
}

/// Adds the meaning of an execution to a key: its text, the types of its values, and the values.
pub(super) fn append_execution(
    text: &[u8],
    (nulls, types, values): (&[u8], &[u8], &[u8]),
    key: &mut Vec<u8>,
) {
    key.push(PREPARED);
    for part in [text, nulls, types] {
        key.extend_from_slice(&stdx::to_u64(part.len()).to_le_bytes());
        key.extend_from_slice(part);
    }
    key.extend_from_slice(values);
}

impl Pooled {
    /// What a cache has for a text that is not read, since its operator vouches for it.
    pub(super) fn kept_unread(&mut self, mode: SqlMode) -> Kept {
        if self.caching.is_none() {
            return Kept::Nothing;
        }
        let Some(cache) = vouched(&self.guest) else {
            return Kept::Nothing;
        };
        let (text, is_whole) = self.guest.client.link().peeked_body();
        if !is_whole || !is_select(text) {
            return Kept::Nothing;
        }
        self.guest.current.begin_unread(Form::Text, text);
        let asked = asked_unread((&self.guest.worker, &self.guest.ruled), cache, (text, mode));
        self.look_up(asked)
    }

    /// What a cache has for a text that was judged.
    pub(super) fn kept_text(&mut self, judged: &Judged, mode: SqlMode, guided: &Guided) -> Kept {
        if self.caching.is_none() {
            return Kept::Nothing;
        }
        let guest = &mut self.guest;
        let here = (&*guest.worker, guest.service);
        let (text, _) = guest.client.link().peeked_body();
        let ruled = &guest.ruled;
        let asked = asked(here, (judged, mode), guided, |cache, key| {
            append_text(ruled, text, cache.options.trust, key)
        });
        asked.map_or(Kept::Nothing, |asked| self.look_up(asked))
    }

    /// What sessions must have in common with this one (K1).
    fn scope(&mut self) -> Result<Scope, Unasked> {
        let caching = self.caching.as_mut().ok_or(Unasked::NoCache)?;
        let known = caching.scope.as_ref();
        let is_known = |it: &KnownScope| {
            it.login == self.pool_login
                && Arc::ptr_eq(&it.origin, &self.origin)
                && Arc::ptr_eq(&it.history, &self.history)
        };
        if let Some(known) = known.filter(|it| is_known(it)) {
            return known.scope.clone();
        }
        let mode = mode_of(self.status);
        let generation = self.guest.generation();
        let of_login = self
            .origin
            .database
            .as_ref()
            .map(|it| it.as_bytes().to_vec());
        let database = self.history.database(mode).or(of_login).unwrap_or_default();
        let is_told = |id| generation.server(id).options.target.proxy_header.is_some();
        let servers = &generation.service(self.guest.service).options.servers;
        let client = self
            .pool_login
            .client
            .filter(|_| servers.iter().any(|id| is_told(*id)));
        // Names in the pool are never given again, so another place is another server.
        let mut places = Vec::new();
        for id in servers {
            let name = generation.server(*id).known.pool_id.number();
            places.extend_from_slice(&name.to_le_bytes());
        }
        let commands = self.history.list();
        let scope = match () {
            () if is_server_database(&database) => Err(Unasked::ServerDatabase),
            () if reads_in_its_own_way(commands, mode) => Err(Unasked::Isolation),
            () if may_speak_oracle(commands, mode) => Err(Unasked::Oracle),
            () => Ok(Scope::of([
                &places[..],
                &self.pool_login.account.0.to_le_bytes(),
                &self.pool_login.class.0.to_le_bytes(),
                client
                    .map(|it| it.to_string())
                    .unwrap_or_default()
                    .as_bytes(),
                &[self.origin.collation],
                &database,
                commands.bytes(),
            ])),
        };
        caching.scope = Some(KnownScope {
            login: self.pool_login,
            origin: Arc::clone(&self.origin),
            history: Arc::clone(&self.history),
            scope: scope.clone(),
        });
        scope
    }

    /// Whether the session has nothing that a scope does not tell.
    fn check_plain(&self) -> Result<(), Unasked> {
        let is_odd = self.caching.as_ref().is_some_and(|it| it.is_odd);
        match () {
            () if !self.multiplexes => Err(Unasked::OwnConnection),
            () if !self.session.pins().is_empty() => Err(Unasked::Pinned),
            () if !self.session.parts().is_empty() => Err(Unasked::Parts),
            () if is_odd => Err(Unasked::OddTransaction),
            () if self.missing.is_some() || self.database.is_some() => Err(Unasked::Database),
            () => Ok(()),
        }
    }

    /// Whether what it reads belongs to one transaction with what it has read.
    pub(super) fn is_inside(&self) -> bool {
        self.session.open_at().is_some() || !self.session.has_autocommit()
    }

    /// The session's scope, if a cache may be asked for it as it is now.
    pub(super) fn admitted(&mut self) -> Result<Scope, Unasked> {
        self.check_plain()?;
        let scope = self.scope()?;
        let has_written = self.caching.as_ref().is_some_and(|it| it.has_written);
        match self.is_inside() && has_written {
            true => Err(Unasked::Written),
            false => Ok(scope),
        }
    }

    /// Whether the session's transaction may be told a reply with these names (K3).
    pub(super) fn check_snapshot(&self, names: &[TableSlot]) -> Result<(), Unasked> {
        let Some(caching) = self.caching.as_ref().filter(|_| self.is_inside()) else {
            return Ok(());
        };
        let worker = &self.guest.worker;
        let primary = worker.with_map(self.guest.service, |it| Some(it.map.primary()?.id));
        let open_at = self.session.open_at();
        match () {
            () if open_at.is_some_and(|at| Some(at) != primary) => Err(Unasked::NotAtPrimary),
            () if !worker.gateway.tables.are_unchanged(names, caching.since) => {
                Err(Unasked::ChangedSince)
            }
            () => Ok(()),
        }
    }

    /// Asks a cache.
    pub(super) fn look_up(&mut self, asked: Asked) -> Kept {
        let Ok(scope) = self.admitted() else {
            return Kept::Nothing;
        };
        let Some(caching) = &self.caching else {
            return Kept::Nothing;
        };
        let is_inside = self.is_inside();
        let Asked {
            cache,
            names,
            must_read_row,
        } = asked;
        let worker = &self.guest.worker;
        let part = cache.part(worker.index);
        let key = worker.key_room.borrow();
        let query = part.query(&scope, &key);
        let now = runtime::now();
        let trust = cache.options.trust;
        if !self.follows_enough(&cache.options) {
            return Kept::Nothing;
        }
        let tables = &worker.gateway.tables;
        let tables = (trust == Trust::Verified).then_some(&**tables);
        let Some(tables) = tables else {
            return look_up_vouched(part, &query, names, now);
        };
        if self.check_snapshot(&names).is_err() {
            return Kept::Nothing;
        }
        let mut miss = Miss::First;
        if !is_inside || caching.has_snapshot {
            match part.find(&query, Some(tables), now) {
                Lookup::Reply(reply) => return Kept::Reply(reply),
                Lookup::Miss(told) => miss = told,
            }
        }
        let moment = tables.begin_query(&names, now);
        // Asked for again behind the moment: what is lost from now on makes the reply void.
        let follows = self.follows_enough(&cache.options);
        let moment = moment.ok().filter(|_| follows);
        let Some(moment) = moment.map(|it| if is_inside { caching.since } else { it }) else {
            part.give_up_renewal(&query, miss);
            return Kept::Nothing;
        };
        let filling = part.fill(&query, (names, moment), miss);
        let tells = is_inside && !caching.has_snapshot && must_read_row;
        if filling.is_none() && !tells {
            return Kept::Nothing;
        }
        let places = self.current_places(&cache.options);
        Kept::Wanted(Box::new(Wanted {
            filling,
            trust,
            must_read_row,
            places,
        }))
    }

    /// Whether the binary log is read that a cache may have to know.
    pub(super) fn follows_enough(&self, cache: &ResultCacheOptions) -> bool {
        let following = followed((&self.guest.worker, self.guest.service), cache);
        following.is_none_or(Following::is_current)
    }

    /// The servers whose replies may be kept.
    pub(super) fn current_places(&self, cache: &ResultCacheOptions) -> SmallVec<[Place; 4]> {
        let (worker, service) = (&self.guest.worker, self.guest.service);
        let following = followed((worker, service), cache);
        let mut places = current_places((worker, service), &self.way, following);
        if self.is_inside() {
            let primary = worker.with_map(service, |it| Some(it.map.primary()?.id));
            places.retain(|it| Some(*it) == primary);
        }
        places
    }

    /// Answers a query with a reply that was kept. The command was peeked at or taken.
    pub(super) async fn tell_kept(
        &mut self,
        reply: Arc<KeptReply>,
        request: Request<'_>,
    ) -> Result<(), End> {
        if let Request::Peeked = request {
            self.guest.take_command().await?;
        }
        self.note_kept(&reply);
        let length = reply.bytes().len();
        if PART_BYTES < length {
            return Box::pin(self.tell_long(reply)).await;
        }
        self.write_part(&reply, 0..length);
        self.end_kept(&reply);
        Ok(())
    }

    /// The same, of a long one: the client takes it part by part.
    async fn tell_long(&mut self, reply: Arc<KeptReply>) -> Result<(), End> {
        let length = reply.bytes().len();
        let mut at = 0;
        while at < length {
            let end = length.min(at + PART_BYTES);
            self.write_part(&reply, at..end);
            at = end;
            if self.guest.client.should_flush() {
                self.guest.client.flush().await.map_err(|_| End::Client)?;
            }
        }
        self.end_kept(&reply);
        Ok(())
    }

    /// Writes bytes of a reply, with the status of this session.
    fn write_part(&mut self, reply: &KeptReply, part: Range<usize>) {
        let status = StatusFlags(reply.status().0 & !OF_SESSION.0 | self.status.0 & OF_SESSION.0);
        let status = status.0.to_le_bytes();
        let out = self.guest.client.out();
        let mut at = part.start;
        for place in reply.status_places() {
            for (place, byte) in (place..).zip(status) {
                if part.contains(&place) {
                    out.append_frames(reply.bytes().get(at..place).unwrap_or_default());
                    out.append_frames(&[byte]);
                    at = place + 1;
                }
            }
        }
        out.append_frames(reply.bytes().get(at..part.end).unwrap_or_default());
    }

    fn end_kept(&mut self, reply: &KeptReply) {
        self.guest.client.out().set_sequence(reply.next_sequence());
        self.guest.client.end_reply();
    }

    /// Later statements read of this one, and not of what a connection has done before.
    fn note_kept(&mut self, reply: &KeptReply) {
        self.guest.current.note(Reply {
            rows_sent: reply.row_count(),
            is_kept: true,
            route: Route::Cache,
            ..Reply::default()
        });
        self.session.recall_mut().told_kept(reply.row_count());
        self.warnings = None;
        for lane in self.lanes.iter_mut().flatten() {
            lane.is_own = false;
            if std::mem::take(&mut lane.has_own_warnings) {
                lane.connection.state_mut().has_warnings();
            }
        }
    }

    /// Has a server answer a text, and keeps its reply.
    pub(super) async fn wanted_query(
        &mut self,
        plan: Plan,
        wanted: Box<Wanted>,
    ) -> Result<(), End> {
        let mut spare = std::mem::take(&mut self.spare);
        spare.extend_from_slice(self.guest.client.link().peeked_body().0);
        let repeat = plan.may_repeat.then_some((CommandByte::QUERY, &*spare));
        self.show_to(&wanted);
        let answered = self
            .answer(&plan, Job::Plain, Request::Peeked, repeat)
            .await;
        spare.clear();
        spare.shrink_to(SPARE_BYTES_MAX);
        self.spare = spare;
        self.keep_reply(*wanted, answered?);
        Ok(())
    }

    /// Has the next reply shown to who may keep it.
    pub(super) fn show_to(&mut self, wanted: &Wanted) {
        let onlooker = wanted.filling.as_ref().map(Filling::onlooker);
        self.guest.client.link().set_onlooker(onlooker);
    }

    /// Keeps a reply that has passed, if it may be kept.
    pub(super) fn keep_reply(&mut self, wanted: Wanted, answered: Option<(Place, Answer)>) {
        self.guest.client.link().set_onlooker(None);
        let Some((place, answer)) = answered else {
            return;
        };
        let is_answered = matches!(answer.ending, Ending::Status(_));
        if let Some(caching) = &mut self.caching {
            // A query that finds no row may have opened no table, and one that does may, too.
            let has_rows = 0 < answer.exchange.tally().row_count;
            caching.has_snapshot |= is_answered && wanted.must_read_row && has_rows;
        }
        let is_current = wanted.trust == Trust::Vouched || wanted.places.contains(&place);
        if !is_current || !is_answered || self.check_plain().is_err() {
            return;
        }
        let tables = &self.guest.worker.gateway.tables;
        let tables = (wanted.trust == Trust::Verified).then_some(&**tables);
        let of = (
            answer.exchange.command_byte(),
            self.guest.client.capabilities(),
        );
        if let Some(filling) = wanted.filling {
            filling.keep(of, (tables, runtime::now()));
        }
    }

    /// A statement is about to be sent (K4).
    pub(super) fn begin_change(&mut self, plan: &Plan) {
        let Some(caching) = &mut self.caching else {
            return;
        };
        let tables = &self.guest.worker.gateway.tables;
        if plan.may_end_transaction() {
            caching.begin_transaction(tables.now());
            // What was set for the next transaction is what pins until that begins.
            caching.is_odd = self.session.pins().has(Pin::NextTransaction);
        }
        caching.has_written |= plan.may_write || plan.changes != Changes::Nothing;
        if plan.changes != Changes::Nothing {
            caching.changing = Some(tables.begin_change(plan.changes));
        }
    }

    /// A statement has failed. Its transaction may be gone, and with it what that has read.
    pub(super) fn forget_snapshot(&mut self) {
        if let Some(caching) = &mut self.caching {
            caching.has_snapshot = false;
        }
    }

    /// It was answered, or not sent.
    pub(super) fn end_change(&mut self) {
        let Some(caching) = &mut self.caching else {
            return;
        };
        if let Some(changing) = caching.changing.take() {
            changing.end();
        }
        self.guest
            .worker
            .gateway
            .tables
            .note_change(self.session.take_ended());
    }

    /// Whether it was carried out will not be known.
    pub(super) fn lose_change(&mut self) {
        if let Some(caching) = &mut self.caching {
            caching.changing = None;
        }
    }
}

/// Asks a cache that its time to live alone rules.
fn look_up_vouched(
    cache: &Arc<Cache>,
    query: &Query<'_>,
    names: Arc<[TableSlot]>,
    now: Instant,
) -> Kept {
    let miss = match cache.find(query, None, now) {
        Lookup::Reply(reply) => return Kept::Reply(reply),
        Lookup::Miss(miss) => miss,
    };
    let filling = cache.fill(query, (names, ChangeTime::default()), miss);
    filling.map_or(Kept::Nothing, |filling| {
        Kept::Wanted(Box::new(Wanted {
            filling: Some(filling),
            trust: Trust::Vouched,
            must_read_row: false,
            places: SmallVec::new(),
        }))
    })
}

/// What is known of the binary log of a service's primary, if a cache has to know it.
fn followed<'a>(
    (worker, service): (&'a Worker, ServiceId),
    cache: &ResultCacheOptions,
) -> Option<&'a Following> {
    let generation = &worker.generation;
    let monitor = generation.service(service).options.monitor;
    let watch = generation.watch(monitor);
    cache.follows.then_some(&*watch.following)
}

/// The servers of a service that are known to have all that the gateway's sessions have written,
/// and what the log has told of (K2).
fn current_places(
    (worker, service): (&Worker, ServiceId),
    way: &Way,
    following: Option<&Following>,
) -> SmallVec<[Place; 4]> {
    let generation = &worker.generation;
    let monitor = generation.service(service).options.monitor;
    let services = generation.services().iter();
    let others = services.filter(|it| it.options.monitor == monitor);
    worker.with_map(service, |it| {
        let map = &it.map;
        let primary = map.primary();
        // Members that are read from wait for what others have written (`connection.rs`). The
        // primary does not, and sessions with a home write anywhere.
        let is_galera = primary.is_some_and(|it| it.galera.is_some());
        let is_split = |it: &Service| matches!(it.options.router, Router::ReadWriteSplit(_));
        if is_galera && !others.clone().all(is_split) {
            return SmallVec::new();
        }
        let waits = is_galera && way.split().is_some();
        let written = |it: &ServerState| generation.written_at(service, it.id);
        let besides = map
            .servers()
            .filter(|it| primary.is_none_or(|at| at.id != it.id));
        // Through those, mostly nothing was written.
        let besides = besides.map(written).filter(|it| !it.is_nothing());
        let besides: SmallVec<[_; 4]> = besides.collect();
        let of_primary = primary.map(written).into_iter();
        let of_log = following.map(|it| &it.written);
        let of_all = of_primary.chain(of_log).chain(besides.iter().copied());
        let of_all: SmallVec<[_; 4]> = of_all.collect();
        let has =
            |id: Place, it: &SharedWritten| it.is_applied(|position| map.has_applied(id, position));
        let is_current = |id: &Place| match primary {
            None => false,
            // Sessions of another configuration may see another primary, earlier than this one.
            Some(primary) if primary.id == *id => {
                besides.iter().all(|it| !it.has_led() || has(*id, it))
            }
            Some(_) => waits || of_all.iter().all(|it| has(*id, it)),
        };
        let servers = map.servers().filter(|it| it.serves_reads());
        servers.map(|it| it.id).filter(is_current).collect()
    })
}
