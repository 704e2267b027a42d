//! Finds a server for a command, and has it answer.

use std::rc::Rc;
use std::time::Duration;

use clients::KillOrder;
use connection_state::{Needs, Reads, Role};
use env::Instant;
use errcode::{
    ClientError, ER_BAD_DB_ERROR, ER_LOCK_DEADLOCK, ER_QUERY_INTERRUPTED, ER_SERVER_SHUTDOWN, Retry,
};
use link::{Ending, ForwardError};
use monitor::{Published, ServerId as Place, ServerMap, ServerState};
use pool::{Acquired, Answer as PoolAnswer, CloseReason, Found, Held};
use router::{Balance, Choice, Cost, Goal, Loss, Plan, Step, Written};
use wire::CommandByte;

use crate::connect::without;
use crate::connection::{Connection, NotReady, Resting, role_of};
use crate::end::End;
use crate::guest::{Answer, Failed, Request};
use crate::hot::HotPlace;
use crate::options::{self, CausalReads, ServerId, ServiceId, SplitOptions};
use crate::worker::Worker;

use super::lane::Lane;
use super::prepared::Kind;
use super::wait::Waiter;
use super::way::Way;
use super::{Pooled, login_of};

/// What a command is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Job {
    /// Nothing that the gateway has numbers for.
    Plain,
    /// COM_STMT_PREPARE of the statement that gets this number.
    Prepare(u32),
    /// COM_STMT_EXECUTE of the statement of this number.
    Execute(u32),
    /// COM_STMT_BULK_EXECUTE of it.
    Bulk(u32),
    /// Another command for it.
    Statement(u32),
    /// COM_STMT_SEND_LONG_DATA for it, which has no answer.
    Data(u32),
}

/// Why a server does not answer.
#[derive(Debug)]
pub(super) enum Unready {
    /// The session is over.
    Session(End),
    /// The client gets this error.
    Refused(ClientError),
    /// Another server may do.
    Failed(String),
    /// The server does not have the session's database.
    NoDatabase(ClientError),
    /// An older session waits for what this one holds.
    Victim,
}

impl Unready {
    /// A server refuses what the session needs, as any other would, but for its database.
    pub(super) fn of_refusal(error: ClientError) -> Unready {
        match error.code == ER_BAD_DB_ERROR {
            true => Unready::NoDatabase(error),
            false => Unready::Refused(error),
        }
    }

    /// What the client gets for its statement, unless its session is over.
    fn told(self) -> Result<ClientError, End> {
        match self {
            Unready::Session(end) => Err(end),
            Unready::Refused(error) | Unready::NoDatabase(error) => Ok(error),
            Unready::Failed(_) | Unready::Victim => unreachable!("it was seen to"),
        }
    }

    /// What a client gets whose session cannot begin.
    pub(super) fn of_login(self) -> ClientError {
        match self {
            Unready::Refused(error) | Unready::NoDatabase(error) => error,
            Unready::Session(_) | Unready::Victim | Unready::Failed(_) => {
                ClientError::new(ER_SERVER_SHUTDOWN, &[])
            }
        }
    }
}

/// Most servers that a command is sent to.
const TRIES_MAX: u32 = 2;

/// What a choice among the servers of a service goes by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chooser<'a> {
    pub(super) worker: &'a Worker,
    pub(super) service: ServiceId,
    pub(super) options: &'a SplitOptions,
    /// What reads have to see.
    pub(super) written: &'a Written,
    /// A server that has just failed.
    pub(super) failed: Option<Place>,
}

impl Chooser<'_> {
    /// The server for a goal, out of this map.
    pub(super) fn choose(&self, published: &Published, goal: Goal) -> Option<Place> {
        let (map, written) = (&published.map, self.written_in(&published.map));
        let cost = self.cost();
        router::choose(goal, map, written, self.options.lag_max, self.failed, cost)
    }

    /// The same, with why it is no other one.
    pub(super) fn explain(&self, published: &Published, goal: Goal) -> Choice {
        let (map, written) = (&published.map, self.written_in(&published.map));
        router::explain_choice(goal, map, written, self.options.lag_max, self.cost())
    }

    /// The replica for a read, out of this map. `None` if the primary is to answer.
    pub(super) fn choose_replica(&self, published: &Published) -> Option<Place> {
        let place = self.choose(published, Goal::Replica)?;
        let primary = published.map.primary();
        Some(place).filter(|place| primary.is_none_or(|it| it.id != *place))
    }

    /// What a replica has to have.
    fn written_in(&self, map: &ServerMap) -> &Written {
        // A Galera member waits for what others have written (`connection.rs`).
        let is_galera = map.primary().is_some_and(|it| it.galera.is_some());
        match self.options.causal_reads {
            CausalReads::Session | CausalReads::Service if !is_galera => self.written,
            _ => &Written::Nothing,
        }
    }

    /// What each server is taken for now.
    fn cost(&self) -> impl Fn(Place) -> Option<Cost> {
        let balance = self.options.balance;
        let now = match balance {
            Balance::Operations => Instant::default(),
            Balance::ResponseTime => runtime::now(),
        };
        move |place| {
            let load = self.worker.load_of(self.service, place)?;
            Some(load.cost(balance, now))
        }
    }
}

impl Pooled {
    /// Has a server answer a command. Returns `None` if none did: the client has got the error.
    /// `repeat` is the body of the command, to be sent again if a read fails.
    pub(super) async fn answer(
        &mut self,
        plan: &Plan,
        job: Job,
        request: Request<'_>,
        repeat: Option<(u8, &[u8])>,
    ) -> Result<Option<(Place, Answer)>, End> {
        let mut request = request;
        let mut failed = None;
        let mut tries = 0;
        // What is awaited in the arms of a match keeps the matched value in the client's task, so
        // all errors are sent at one place, behind the loop.
        let mut is_over = false;
        let mut goal = plan.goal;
        self.begin_change(plan);
        let mut going = self.set_out(plan).await.map(|it| goal = it);
        let error = loop {
            if let Err(unready) = going {
                break Box::pin(self.told(unready, request)).await?;
            }
            let place = match self.choose((goal, plan.lag_max), failed).0 {
                Some(place) => place,
                None => match Box::pin(self.find((goal, plan.lag_max), failed)).await {
                    Ok(place) => place,
                    Err(unready) => {
                        is_over = self.loses_state(plan.goal);
                        break unready.told()?;
                    }
                },
            };
            if let Err(unready) = self.arrive(plan, place).await {
                let away = self.turn_away(plan, (goal, place, failed), unready);
                going = away.map(|elsewhere| (goal, failed) = elsewhere);
                continue;
            }
            tries += 1;
            let retry = match self.attempt(place, job, request).await {
                Ok(answer) => {
                    self.note(plan, place, &answer);
                    let is_deadlock = answer.ending == Ending::Error(ER_LOCK_DEADLOCK);
                    if is_deadlock && !self.session.parts().is_empty() {
                        // Its server has rolled its part back.
                        Box::pin(self.roll_back_transaction()).await;
                    }
                    return Ok(Some((place, answer)));
                }
                Err(Failed::Session(end)) => return Err(self.lose_client(plan, place, end)),
                Err(Failed::Refused(error)) => break error,
                Err(Failed::Server(retry)) => retry,
            };
            let error = self.lost_error(place);
            self.note_lost(plan, place, retry);
            if let Err(end) = self.survive(place) {
                return Err(Box::pin(self.end_behind(request, retry, end)).await);
            }
            if !self.guest.client.link().is_usable() {
                return Err(End::Server);
            }
            match (retry, repeat) {
                (Retry::Now, _) if tries < TRIES_MAX => {}
                (Retry::IfRead, Some((byte, body))) if plan.may_repeat && tries < TRIES_MAX => {
                    request = Request::Taken(byte, body);
                    (failed, goal) = (Some(place), plan.goal);
                }
                (Retry::Now, _) => break error,
                _ => {
                    request = Request::Taken(0, &[]);
                    break error;
                }
            }
        };
        self.end_change();
        if is_over {
            Box::pin(self.take_untaken(request)).await?;
            self.guest.lost = Some(error);
            return Err(End::Server);
        }
        Box::pin(self.refuse(job, request, &error)).await
    }

    /// What the client gets for a statement that no server was sent, unless its session is over.
    async fn told(&mut self, unready: Unready, request: Request<'_>) -> Result<ClientError, End> {
        if let Unready::Session(End::Server) = unready {
            self.take_untaken(request).await?;
        }
        unready.told()
    }

    /// Ends the session behind a command, which was not sent if it may be sent again.
    async fn end_behind(&mut self, request: Request<'_>, retry: Retry, end: End) -> End {
        let taken = match retry {
            Retry::Now => self.take_untaken(request).await,
            _ => Ok(()),
        };
        taken.err().unwrap_or(end)
    }

    /// Takes a command that was not sent, so that the error behind it has the number of a reply.
    async fn take_untaken(&mut self, request: Request<'_>) -> Result<(), End> {
        if let Request::Peeked = request {
            self.guest.take_command().await?;
        }
        Ok(())
    }

    /// Notes that the session ends before a statement is answered, which may have run.
    fn lose_client(&mut self, plan: &Plan, place: Place, end: End) -> End {
        self.note_lost(plan, place, Retry::Never);
        end
    }

    /// Notes a statement whose server or client was lost, and which may have run.
    fn note_lost(&mut self, plan: &Plan, place: Place, retry: Retry) {
        if retry != Retry::Now {
            self.lose_change();
        }
        if plan.may_write && retry != Retry::Now {
            self.session.lost_write();
            self.share_writes(place);
        }
    }

    /// Where a statement goes whose server does not stand ready, and which one has failed. An error
    /// is what becomes of it if it goes nowhere.
    fn turn_away(
        &mut self,
        plan: &Plan,
        (goal, place, failed): (Goal, Place, Option<Place>),
        unready: Unready,
    ) -> Result<(Goal, Option<Place>), Unready> {
        match unready {
            Unready::Failed(_) if failed.is_none() => Ok((plan.goal, Some(place))),
            Unready::Failed(_) => Err(Unready::Refused(self.lost_error(place))),
            // It may not have come to that replica yet.
            Unready::NoDatabase(_) if matches!(goal, Goal::Replica | Goal::PrimaryFirst) => {
                Ok((Goal::Primary, failed))
            }
            Unready::NoDatabase(error) => match self.leave_database() {
                true => Ok((goal, failed)),
                false => Err(Unready::Refused(error)),
            },
            unready => Err(unready),
        }
    }

    /// Does what a statement needs before it has a server. Returns where it goes.
    async fn set_out(&mut self, plan: &Plan) -> Result<Goal, Unready> {
        if let Step::Commits | Step::RollsBack | Step::Refused = plan.step {
            let stepped = Box::pin(self.step_parts(plan.step)).await;
            if stepped.is_err() && plan.step == Step::Commits {
                self.lose_change();
            }
            stepped.map_err(Unready::Refused)?;
        }
        if plan.goal != Goal::Replica || self.way.split().is_none() {
            return Ok(plan.goal);
        }
        self.learn_writes().await.map_err(Unready::Session)?;
        if self.way.split().is_some_and(|it| it.causal_wait.is_some()) {
            let waited = Box::pin(self.wait_for_writes(plan.lag_max)).await;
            if let Some(place) = waited.map_err(Unready::Session)? {
                return Ok(Goal::Held(place));
            }
        }
        Ok(plan.goal)
    }

    /// Has a server stand ready for a statement.
    async fn arrive(&mut self, plan: &Plan, place: Place) -> Result<(), Unready> {
        self.stay_at(place).await;
        if let Err(error) = self.learn_insert_id(plan, place).await {
            self.survive(place).map_err(Unready::Session)?;
            return Err(match error {
                NotReady::Lost(text) => Unready::Failed(text),
                NotReady::Refused(error) => Unready::Refused(error),
            });
        }
        let reads = self.reads(plan);
        match self.make_ready(place, reads).await {
            Err(Unready::Victim) => {
                let error = Box::pin(self.be_victim()).await;
                return Err(Unready::Refused(error));
            }
            made => made?,
        }
        if self.guest.handle.order() == KillOrder::Query {
            let error = ClientError::new(ER_QUERY_INTERRUPTED, &[]);
            return Err(Unready::Refused(error));
        }
        if plan.step != Step::Joins {
            return Ok(());
        }
        match Box::pin(self.begin_part(place)).await {
            Ok(()) => Ok(()),
            Err(NotReady::Refused(error)) => Err(Unready::Refused(error)),
            Err(NotReady::Lost(_)) => {
                let error = self.lost_error(place);
                self.lose(place);
                Err(Unready::Refused(error))
            }
        }
    }

    /// Whether what the session holds is lost, if no statement can go where this one has to.
    fn loses_state(&self, goal: Goal) -> bool {
        match goal {
            Goal::Held(place) => self.session.loss(place) != Loss::Nothing,
            Goal::Primary | Goal::PrimaryFirst | Goal::Replica => false,
        }
    }

    /// Answers with an error, if the command has an answer.
    pub(super) async fn refuse(
        &mut self,
        job: Job,
        request: Request<'_>,
        error: &ClientError,
    ) -> Result<Option<(Place, Answer)>, End> {
        if let Request::Peeked = request {
            self.guest.take_command().await?;
        }
        match job {
            Job::Data(_) => {}
            Job::Plain | Job::Prepare(_) | Job::Execute(_) | Job::Bulk(_) | Job::Statement(_) => {
                self.guest.write_error(error);
            }
        }
        Ok(None)
    }

    /// Gives the connection to a lost server up.
    ///
    /// # Errors
    /// The session has lost with it what another connection cannot give, and ends.
    pub(super) fn survive(&mut self, place: Place) -> Result<(), End> {
        let error = self.lost_error(place);
        if self.lose(place) == Loss::Nothing {
            return Ok(());
        }
        self.guest.lost = Some(error);
        Err(End::Server)
    }

    /// Gives the connection to a server up.
    fn lose(&mut self, place: Place) -> Loss {
        let loss = self.session.loss(place);
        if self.session.last() == Some(place) {
            self.session.recall_mut().forget();
        }
        self.lingers_at = self.lingers_at.filter(|kept| *kept != place);
        self.drop_lane(place, CloseReason::Failed);
        self.statements.lose(place);
        self.session.forget(place);
        loss
    }

    /// The server for a goal. Waits for one, for as long as the service lets it.
    async fn find(
        &mut self,
        (goal, lag_max): (Goal, Option<Duration>),
        failed: Option<Place>,
    ) -> Result<Place, Unready> {
        let mut failed = failed;
        let mut until = None;
        loop {
            let (chosen, version) = self.choose((goal, lag_max), failed);
            if let Some(place) = chosen {
                return Ok(place);
            }
            if let Goal::Held(place) = goal {
                return Err(Unready::Refused(self.lost_error(place)));
            }
            let until = *until.get_or_insert_with(|| runtime::now() + self.wait());
            let reason = match &self.way {
                Way::Home(home) => home.without(),
                Way::Split(_) => without(options::Role::Primary),
            };
            let until = (until, reason);
            self.wait_for_server(version, until, failed.take()).await?;
        }
    }

    /// The server for a goal now, and the version of the map that it was looked for in.
    pub(super) fn choose(
        &mut self,
        (goal, lag_max): (Goal, Option<Duration>),
        failed: Option<Place>,
    ) -> (Option<Place>, u64) {
        let (worker, service) = (&self.guest.worker, self.guest.service);
        let options = match &mut self.way {
            Way::Home(home) => {
                let version = worker.with_map(service, |it| it.version);
                let chosen = match goal {
                    Goal::Held(place) => {
                        let id = worker.generation.server_at(service, place);
                        let is_reachable = worker.with_state(id, ServerState::is_reachable);
                        (is_reachable && Some(place) != failed).then_some(place)
                    }
                    Goal::Primary | Goal::PrimaryFirst | Goal::Replica => {
                        home.find(worker, service, failed)
                    }
                };
                return (chosen, version);
            }
            Way::Split(options) => SplitOptions {
                lag_max: lag_max.or(options.lag_max),
                ..*options
            },
        };
        let chooser = Chooser {
            worker,
            service,
            options: &options,
            written: self.session.written(),
            failed,
        };
        worker.with_map(service, |it| (chooser.choose(it, goal), it.version))
    }

    /// What a server is for the session. At its home a member of a Galera cluster does not wait for
    /// what others have written.
    fn role_of(&self, state: &ServerState) -> Role {
        match self.way {
            Way::Home(_) => Role::Other,
            Way::Split(_) => role_of(state),
        }
    }

    /// Makes the lane to a server usable for a statement that reads this.
    pub(super) async fn make_ready(&mut self, place: Place, reads: Reads) -> Result<(), Unready> {
        let (worker, service) = (&self.guest.worker, self.guest.service);
        let id = worker.generation.server_at(service, place);
        let (epoch, role) = worker.with_state(id, |it| (it.epoch, self.role_of(it)));
        let needs = Needs {
            origin: &self.origin,
            commands: self.history.list(),
            role,
            reads,
        };
        let slot = self.lanes.get_mut(usize::from(place.0));
        let Some(lane) = slot.and_then(Option::as_mut) else {
            return self.take_ready(place, id, reads).await;
        };
        let suits = lane.connection.suits(&needs);
        let is_old = suits && lane.connection.is_older(epoch);
        if !(is_old || lane.connection.is_stale()) {
            return match suits {
                true => Ok(()),
                false => Box::pin(self.put_right(place, reads)).await,
            };
        }
        self.survive(place).map_err(Unready::Session)?;
        self.take_ready(place, id, reads).await
    }

    /// Takes a connection out of the pool and puts it right. Most need nothing.
    async fn take_ready(
        &mut self,
        place: Place,
        id: ServerId,
        reads: Reads,
    ) -> Result<(), Unready> {
        let worker = Rc::clone(&self.guest.worker);
        let acquired = match self.ask(&worker, id)? {
            PoolAnswer::Granted(acquired) => acquired,
            PoolAnswer::Waits(wait) => {
                let turn = Box::pin(self.wait_turn(wait, id));
                HotPlace::Wait.note(&*turn);
                let acquired = turn.await;
                // Its memory is somebody else's now.
                HotPlace::Wait.note(&[0_u8; 0]);
                acquired?
            }
        };
        let is_simple = self.is_simple(&acquired, id, reads);
        match acquired {
            Acquired {
                slot,
                found: Found::Idle(Held::Own(connection)),
            } if is_simple => {
                let agreed = connection
                    .server
                    .agreed_with(self.guest.client.info().capabilities);
                let agreed = agreed.map_err(|unlike| Unready::Failed(unlike.to_string()))?;
                self.put_lane(place, Lane::new(slot, connection, agreed, id));
                Ok(())
            }
            acquired => Box::pin(self.take_other(place, acquired, reads)).await,
        }
    }

    /// Whether a connection can be used as it is.
    fn is_simple(
        &self,
        acquired: &Acquired<Box<Connection>, Resting>,
        id: ServerId,
        reads: Reads,
    ) -> bool {
        let Found::Idle(Held::Own(connection)) = &acquired.found else {
            return false;
        };
        if !self.multiplexes {
            return false;
        }
        let worker = &self.guest.worker;
        let (epoch, role) = worker.with_state(id, |it| (it.epoch, self.role_of(it)));
        let needs = Needs {
            origin: &self.origin,
            commands: self.history.list(),
            role,
            reads,
        };
        connection.suits(&needs) && !connection.is_older(epoch) && !connection.is_long_idle()
    }

    async fn take_other(
        &mut self,
        place: Place,
        acquired: Acquired<Box<Connection>, Resting>,
        reads: Reads,
    ) -> Result<(), Unready> {
        self.take_lane(place, acquired).await?;
        if !self.multiplexes {
            let lane = self.lane(place).expect("it was taken");
            let (id, number) = (lane.id, lane.connection.server.info().connection_id);
            let guest = &self.guest;
            if guest.worker.with_state(id, ServerState::serves_writes) {
                let pool_id = guest.generation().server(id).known.pool_id;
                guest.running.name(pool_id, number);
            }
        }
        self.put_right(place, reads).await
    }

    async fn put_right(&mut self, place: Place, reads: Reads) -> Result<(), Unready> {
        let worker = &self.guest.worker;
        let id = worker.generation.server_at(self.guest.service, place);
        let state = worker.with_state(id, ServerState::clone);
        let needs = Needs {
            origin: &self.origin,
            commands: self.history.list(),
            role: self.role_of(&state),
            reads,
        };
        let slot = self.lanes.get_mut(usize::from(place.0));
        let lane = slot.and_then(Option::as_mut).expect("it was taken");
        if lane.connection.suits(&needs) {
            return Ok(());
        }
        let login = login_of(&self.guest, &self.origin).map_err(Unready::Refused)?;
        let waiter = Waiter {
            worker,
            handle: &self.guest.handle,
        };
        let Err(error) = lane.put_right(waiter, &login, needs, &state).await else {
            return Ok(());
        };
        let lost = self.lost_error(place);
        let loss = self.lose(place);
        let text = match error {
            NotReady::Refused(error) if error.code == ER_BAD_DB_ERROR && loss == Loss::Nothing => {
                return Err(Unready::of_refusal(error));
            }
            NotReady::Refused(error) => error.to_string(),
            NotReady::Lost(text) => text,
        };
        let server = &*state.entry.name;
        tracing::warn!(
            server,
            error = text,
            "a connection cannot be given the state of its session"
        );
        if loss != Loss::Nothing {
            self.guest.lost = Some(lost);
            return Err(Unready::Session(End::Server));
        }
        Err(Unready::Failed(text))
    }

    /// Sends a command to a server whose lane is ready, and passes its reply on.
    async fn attempt(
        &mut self,
        place: Place,
        job: Job,
        request: Request<'_>,
    ) -> Result<Answer, Failed> {
        let slot = self.lanes.get_mut(usize::from(place.0));
        let lane = slot.and_then(Option::as_mut).expect("it is ready");
        let id = lane.id;
        let connection_id = lane.connection.server.info().connection_id;
        let pool_id = self.guest.generation().server(id).known.pool_id;
        self.guest.running.set(pool_id, connection_id);
        let told = match job {
            Job::Prepare(number) => Some(number),
            Job::Plain | Job::Execute(_) | Job::Bulk(_) | Job::Statement(_) | Job::Data(_) => None,
        };
        let body;
        let request = match addressed(job) {
            None => request,
            Some((number, kind)) => {
                let sent = match request {
                    Request::Peeked => self.guest.client.link().peeked_body().0,
                    Request::Taken(_, sent) => sent,
                };
                let statements = &mut self.statements;
                let now = self.history.reading();
                let waiter = Waiter {
                    worker: &self.guest.worker,
                    handle: &self.guest.handle,
                };
                let address = statements
                    .address(number, (lane, now, waiter), (kind, sent))
                    .await?;
                match request {
                    Request::Peeked if address.only_renumbers() => {
                        let link = self.guest.client.link();
                        link.overwrite_peeked(0, &address.number());
                        request
                    }
                    Request::Peeked if lane.connection.server.link().has_begun_packet() => {
                        // Before the command is taken: it may be sent again as it lies there.
                        return Err(self.guest.lost(id, &ForwardError::Unasked));
                    }
                    Request::Peeked => {
                        let taken = self.guest.take_command().await;
                        let packet = taken.map_err(Failed::Session)?;
                        body = address.body(packet.get(1..).unwrap_or_default());
                        Request::Taken(CommandByte::STMT_EXECUTE, &body)
                    }
                    Request::Taken(byte, sent) => {
                        body = address.body(sent);
                        Request::Taken(byte, &body)
                    }
                }
            }
        };
        self.guest.worker.begin_operation(id);
        let by_time = |it: &SplitOptions| it.balance == Balance::ResponseTime;
        let is_timed = self.way.split().is_some_and(by_time);
        let begun = is_timed.then(runtime::now);
        let server = &mut lane.connection.server;
        let passed = self
            .guest
            .pass(server, (id, lane.agreed), request, told)
            .await;
        self.guest.worker.end_operation(id, begun);
        if let Job::Data(_) = job {
            // The next command may go to another server. A failure is found then.
            let _ = server.link().post().await;
        }
        lane.connection.is_used();
        passed
    }
}

/// The statement that a command has to be addressed to.
fn addressed(job: Job) -> Option<(u32, Kind)> {
    match job {
        Job::Plain | Job::Prepare(_) => None,
        Job::Execute(number) => Some((number, Kind::Execute)),
        Job::Bulk(number) => Some((number, Kind::Bulk)),
        Job::Data(number) => Some((number, Kind::Data)),
        Job::Statement(number) => Some((number, Kind::Other)),
    }
}
