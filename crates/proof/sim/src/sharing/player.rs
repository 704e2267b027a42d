//! What a session does, step by step, as one of the gateway does it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use connection_state::{Needs, Reads, Role};
use monitor::ServerId;
use pool::{
    AccountId, AcquireError, Acquired, Answer as PoolAnswer, Ask, ClassId, CloseReason, Found,
    Held, Holds, Login, Wait,
};
use router::{Balance, Command, Goal, Guidance, Load, Loss, Report, Step, Told, Written, choose};
use syntax::SqlMode;
use syntax::class::find_hint;
use wire::{SessionChanges, StatusFlags};

use super::Mistake;
use super::bell::Bell;
use super::cluster::{self, Answer, Connection, Deed};
use super::program::{self, Line, Scene};
use super::world::{AtRest, Lane, Own, Phase, Player, Statement, WAIT_TIME, Waiting, World};

impl<'f> World<'f> {
    /// A session does the next thing.
    pub(super) fn advance(&mut self, number: usize) {
        match self.players[number].phase {
            Phase::Idle => self.say(number),
            Phase::Finds { since, .. } if WAIT_TIME <= self.now.since(since) => {
                self.refused(number);
            }
            Phase::Finds { version, .. } => {
                if version != self.version {
                    if let Some(statement) = &mut self.players[number].statement {
                        statement.failed = None;
                    }
                    self.find(number);
                }
            }
            Phase::Waits(_) => self.poll(number),
            Phase::Runs { place } => self.answer(number, place),
            Phase::Done => {}
        }
    }

    /// The client says its next statement.
    fn say(&mut self, number: usize) {
        let scene = self.players[number].scene;
        if self.players[number].left == 0 {
            match scene {
                Scene::Outside => return self.leave(number),
                Scene::Inside(_) | Scene::Locked => {}
            }
        }
        let line = match (self.players[number].left, scene) {
            (0, Scene::Locked) => Line::new("DO RELEASE_ALL_LOCKS()", Deed::FreeLocks),
            (0, _) => Line::new("COMMIT", Deed::Commit),
            _ => program::next(&mut self.random, scene),
        };
        let player = &mut self.players[number];
        player.left = player.left.saturating_sub(1);
        let mode = SqlMode::default();
        let text = line.text.as_bytes();
        let judged = self.judges[player.worker].judge(text, mode);
        let mut plan = player.session.plan(text, mode, &judged);
        if let Some(Ok(hint)) = find_hint(text) {
            let named = |it: &&monitor::ServerState| Some(&*it.entry.name) == hint.server;
            let server = self.map.servers().find(named).map(|it| it.id);
            let guidance = Guidance {
                hint: Some((hint, server)),
                ..Guidance::default()
            };
            player.session.lead(&mut plan, &judged, &guidance);
        }
        let step = plan.step;
        player.statement = Some(Statement {
            line,
            plan,
            failed: None,
            primary: None,
        });
        match step {
            Step::Refused => return self.refused(number),
            Step::Commits | Step::RollsBack => {
                let deed = match step {
                    Step::Commits => Deed::Commit,
                    _ => Deed::RollBack,
                };
                if !self.end_parts(number, deed) {
                    return self.refused(number);
                }
            }
            Step::Stays | Step::MayJoin | Step::Joins => {}
        }
        self.find(number);
    }

    /// Ends the parts of a transaction. If one cannot be, all of it is rolled back.
    fn end_parts(&mut self, number: usize, deed: Deed) -> bool {
        for part in self.players[number].session.parts().to_vec() {
            let place = usize::from(part.0);
            if let Answer::Lost | Answer::Refused = self.tell(number, place, deed) {
                self.roll_back(number);
                return false;
            }
        }
        self.players[number].session.parts_ended();
        self.tally.spread += 1;
        true
    }

    /// Has a statement of the session's own carried out on its lane.
    fn tell(&mut self, number: usize, place: usize, deed: Deed) -> Answer {
        let Some(lane) = self.players[number].lanes.get(&place) else {
            return Answer::Lost;
        };
        let connection = lane.own.connection.number;
        let answer = self
            .cluster
            .borrow_mut()
            .carry_out(connection, number, deed);
        self.note_open(number, place);
        answer
    }

    /// Notes whether the session's transaction is open on a lane.
    fn note_open(&mut self, number: usize, place: usize) {
        let player = &mut self.players[number];
        let connection = player.lanes.get(&place).map(|it| it.own.connection.number);
        let open = connection.filter(|it| self.cluster.borrow().open_for(*it) == Some(number));
        match open {
            Some(connection) => player.begun.insert(place, connection),
            None => player.begun.remove(&place),
        };
    }

    fn roll_back(&mut self, number: usize) {
        let session = &self.players[number].session;
        let first = session.open_at();
        let all: Vec<_> = first.into_iter().chain(session.parts().to_vec()).collect();
        for server in all {
            let place = usize::from(server.0);
            if self.tell(number, place, Deed::RollBack) == Answer::Lost {
                self.drop_lane(number, place);
            }
        }
        self.players[number].session.rolled_back();
    }

    fn drop_lane(&mut self, number: usize, place: usize) {
        let player = &mut self.players[number];
        if let Some(Lane { slot, own }) = player.lanes.remove(&place) {
            drop(own);
            slot.close(CloseReason::Failed);
        }
        player.begun.remove(&place);
    }

    /// Looks for a server for the statement.
    fn find(&mut self, number: usize) {
        let player = &self.players[number];
        let statement = player.statement.as_ref().expect("it has one to carry out");
        let (mut goal, failed) = (statement.plan.goal, statement.failed);
        let mut written = player.session.written();
        let is_held = matches!(goal, Goal::Held(_));
        if is_held && self.options.mistake == Some(Mistake::LeavesItsServer) {
            goal = Goal::Replica;
        }
        if self.options.mistake == Some(Mistake::ReadsTooEarly) {
            written = &Written::Nothing;
        }
        let lag_max = statement.plan.lag_max;
        let runs_at = |id: ServerId| {
            let at = usize::from(id.0);
            let is_at = |it: &&Player<'_>| match it.phase {
                Phase::Runs { place } => place == at,
                _ => false,
            };
            u32::try_from(self.players.iter().filter(is_at).count()).unwrap_or(u32::MAX)
        };
        let cost = |id| {
            let load = Load {
                operations: runs_at(id),
                ..Load::default()
            };
            Some(load.cost(Balance::Operations, self.now))
        };
        match choose(goal, &self.map, written, lag_max, failed, cost) {
            Some(server) => {
                let primary = self.map.primary().map(|it| it.id);
                if let Some(statement) = &mut self.players[number].statement {
                    statement.primary = primary;
                }
                self.arrive_at(number, usize::from(server.0));
            }
            None if is_held => self.refused(number),
            None => {
                let since = match self.players[number].phase {
                    Phase::Finds { since, .. } => since,
                    _ => self.now,
                };
                let version = self.version;
                self.players[number].phase = Phase::Finds { since, version };
            }
        }
    }

    /// Gets a connection to the server of the statement.
    fn arrive_at(&mut self, number: usize, place: usize) {
        let player = &self.players[number];
        if player.lanes.contains_key(&place) {
            return self.begin(number, place);
        }
        let slots: Vec<_> = player.lanes.values().map(|it| &it.slot).collect();
        let ask = Ask {
            login: login(number),
            holds: match slots.is_empty() {
                true => Holds::Nothing,
                false => Holds::Slots {
                    age: player.age,
                    slots: &slots,
                },
            },
            now: self.now,
        };
        let holds = !slots.is_empty();
        match self.fronts[player.worker].ask(self.ids[place], ask) {
            Ok(PoolAnswer::Granted(acquired)) => {
                let worker = self.players[number].worker;
                let overtakes = |it: &usize| {
                    let is_of_it = self.players[*it].worker == worker;
                    is_of_it && !self.players[*it].bell.has_rung()
                };
                let ahead = self.lines[place].iter().filter(|it| overtakes(it)).count();
                if !holds && self.flights[place] < ahead {
                    self.fault("a newcomer has overtaken who waits (S2)");
                }
                self.granted(number, place, acquired);
            }
            Ok(PoolAnswer::Waits(wait)) => self.wait(number, place, wait),
            Err(error) => self.failed(number, &error),
        }
    }

    fn wait(&mut self, number: usize, place: usize, wait: Wait<'f, Own, AtRest>) {
        self.tally.waited += 1;
        let is_deaf = self.has(Mistake::LosesWakeUps, 100);
        let now = self.now;
        let player = &mut self.players[number];
        player.bell = match is_deaf {
            true => Arc::new(Bell::deaf()),
            false => Arc::default(),
        };
        let mut waiting = Waiting {
            wait,
            place,
            since: now,
            holds: !player.lanes.is_empty(),
            has_overtaken: false,
        };
        // A task is polled once before it sleeps.
        let waker = Waker::from(Arc::clone(&player.bell));
        let poll = Pin::new(&mut waiting.wait).poll(&mut Context::from_waker(&waker));
        match poll {
            Poll::Ready(result) => self.waited(number, place, result),
            Poll::Pending => {
                player.phase = Phase::Waits(waiting);
                self.lines[place].push(number);
                if self.options.mistake == Some(Mistake::Overtakes) {
                    self.swap_places(number, place);
                }
            }
        }
    }

    /// The session takes the place of one of its worker that came before (a planted mistake).
    fn swap_places(&mut self, number: usize, place: usize) {
        let holds = |player: &Player<'_>| matches!(&player.phase, Phase::Waits(it) if it.holds);
        let later = &self.players[number];
        let is_alike = |it: &usize| {
            let player = &self.players[*it];
            let is_like = player.worker == later.worker && login(*it) == login(number);
            is_like && !holds(player) && !holds(later) && !player.bell.has_rung() && *it != number
        };
        let Some(earlier) = self.lines[place].iter().copied().find(is_alike) else {
            return;
        };
        let [one, other] = self
            .players
            .get_disjoint_mut([earlier, number])
            .expect("two sessions");
        std::mem::swap(&mut one.phase, &mut other.phase);
        std::mem::swap(&mut one.bell, &mut other.bell);
    }

    /// Polls a session that waits, if it was woken.
    pub(super) fn poll(&mut self, number: usize) {
        let player = &mut self.players[number];
        let Phase::Waits(waiting) = &mut player.phase else {
            return;
        };
        let is_late = WAIT_TIME <= self.now.since(waiting.since);
        let (place, has_overtaken) = (waiting.place, waiting.has_overtaken);
        let result = if player.bell.take() {
            let waker = Waker::from(Arc::clone(&player.bell));
            Pin::new(&mut waiting.wait).poll(&mut Context::from_waker(&waker))
        } else if is_late {
            Poll::Ready(waiting.wait.time_out())
        } else {
            Poll::Pending
        };
        let Poll::Ready(result) = result else {
            return;
        };
        if has_overtaken && result.is_ok() {
            self.fault("a session was served before one that came earlier (S2)");
        }
        self.players[number].phase = Phase::Idle;
        self.lines[place].retain(|it| *it != number);
        self.waited(number, place, result);
    }

    fn waited(
        &mut self,
        number: usize,
        place: usize,
        result: Result<Acquired<Own, AtRest>, AcquireError>,
    ) {
        match result {
            Ok(acquired) => self.granted(number, place, acquired),
            Err(error) => self.failed(number, &error),
        }
    }

    /// The pool gives no connection.
    fn failed(&mut self, number: usize, error: &AcquireError) {
        match error {
            AcquireError::Victim { .. } => {
                self.tally.victims += 1;
                self.roll_back(number);
            }
            AcquireError::TimedOut { .. } => self.tally.timed_out += 1,
            other => self.fault(format!("{other}")),
        }
        self.refused(number);
    }

    /// A session has a slot: it attaches, turns or opens the connection.
    fn granted(&mut self, number: usize, place: usize, acquired: Acquired<Own, AtRest>) {
        let Acquired { mut slot, found } = acquired;
        let worker = self.players[number].worker;
        let login = login(number);
        self.tally.overflowed += u64::from(slot.is_above_limit());
        let (held, turns) = match found {
            Found::Idle(held) => (Some(held), false),
            Found::Turn(held) => (Some(held), true),
            Found::Open(displaced) => {
                drop(displaced);
                (None, false)
            }
        };
        let own = held.and_then(|held| {
            let mut own = match held {
                Held::Own(own) => own,
                Held::Moved(AtRest(connection)) => Own { worker, connection },
            };
            if own.worker != worker {
                self.fault("a connection is used on two workers");
            }
            if self.cluster.borrow().is_lost(own.connection.number) {
                drop(own);
                slot.closed(CloseReason::Stale);
                return None;
            }
            if turns {
                slot.turned();
                own.connection.state.is_of_another();
                own.connection.login = login;
            }
            if own.connection.login != login {
                self.fault("a connection is of another account");
            }
            Some(own)
        });
        let opened = own.or_else(|| {
            let connection = Connection::open(&self.cluster, place, (login, &self.origin))?;
            slot.opened(self.now);
            Some(Own { worker, connection })
        });
        let Some(own) = opened else {
            slot.close(CloseReason::Failed);
            return self.unready(number, place);
        };
        if !self.cluster.borrow().is_clean(own.connection.number) {
            self.fault("a session meets what another one has left (S3)");
        }
        if self.has(Mistake::OpensOneMore, 20) {
            let stray = Connection::open(&self.cluster, place, (login, &self.origin));
            self.strays.extend(stray);
        }
        self.players[number].lanes.insert(place, Lane { slot, own });
        self.begin(number, place);
    }

    /// A server does not take a connection: another one may do.
    fn unready(&mut self, number: usize, place: usize) {
        let player = &mut self.players[number];
        let statement = player.statement.as_mut().expect("it has one to carry out");
        if statement.failed.is_some() {
            return self.refused(number);
        }
        statement.failed = Some(server(place));
        player.phase = Phase::Idle;
        self.find(number);
    }

    /// The statement is sent, behind the beginning of a part if it begins one.
    fn begin(&mut self, number: usize, place: usize) {
        self.put_right(number, place);
        let statement = self.players[number].statement.as_ref();
        let step = statement.map(|it| it.plan.step);
        if step == Some(Step::Joins) {
            if self.tell(number, place, Deed::Begin) == Answer::Lost {
                self.lose(number, place);
                return self.refused(number);
            }
            self.players[number].session.part_begun(server(place));
        }
        self.players[number].phase = Phase::Runs { place };
    }

    /// The connection gets the state of the session.
    fn put_right(&mut self, number: usize, place: usize) {
        let is_forgotten = self.has(Mistake::PutsNothingRight, 100);
        let player = &mut self.players[number];
        let Some(lane) = player.lanes.get_mut(&place) else {
            return;
        };
        let needs = Needs {
            origin: &self.origin,
            commands: player.history.list(),
            role: Role::Other,
            reads: Reads::default(),
        };
        let connection = &mut lane.own.connection;
        let steps = connection.state.put_right(&needs);
        self.tally.put_right += u64::from(!steps.is_empty());
        if is_forgotten {
            return;
        }
        let mut cluster = self.cluster.borrow_mut();
        for step in &steps {
            cluster.put_right(connection.number, login(number), step);
        }
    }

    /// The connection to a server is lost, and what only that had.
    fn lose(&mut self, number: usize, place: usize) {
        let player = &mut self.players[number];
        let loss = player.session.loss(server(place));
        let had_more = player.begun.contains_key(&place);
        player.session.forget(server(place));
        self.drop_lane(number, place);
        match loss {
            Loss::Nothing if had_more => self.fault("a transaction was lost in silence (S3)"),
            Loss::Nothing => {}
            Loss::Transaction | Loss::State => {
                self.tally.lost += 1;
                self.restart(number);
            }
        }
    }

    /// The session ends, and another client comes in its place.
    fn restart(&mut self, number: usize) {
        let places: Vec<usize> = self.players[number].lanes.keys().copied().collect();
        for place in places {
            self.drop_lane(number, place);
        }
        let left = self.players[number].left;
        self.players[number] = self.player(number);
        self.players[number].left = left;
    }

    /// The statement is not carried out; the client is told why.
    fn refused(&mut self, number: usize) {
        let player = &mut self.players[number];
        player.phase = Phase::Idle;
        player.statement = None;
        self.settle(number);
    }

    /// The server answers.
    fn answer(&mut self, number: usize, place: usize) {
        let player = &self.players[number];
        let statement = player.statement.clone().expect("it runs");
        let Some(lane) = player.lanes.get(&place) else {
            return self.fault("a statement runs without a connection");
        };
        let connection = lane.own.connection.number;
        let joins = statement.plan.step == Step::Joins;
        let begun = player.begun.get(&place);
        if !player.begun.is_empty() && begun != Some(&connection) && !joins {
            self.fault("a transaction has changed its server (S3)");
        }
        let deed = statement.line.deed;
        let expected = (login(number), self.players[number].variable);
        let found = self.cluster.borrow().session_of(connection);
        if found.is_some_and(|it| it != expected) {
            self.fault("a statement runs with what another session has set (S8)");
        }
        let answer = self
            .cluster
            .borrow_mut()
            .carry_out(connection, number, deed);
        self.note_open(number, place);
        let (status, written) = match answer {
            Answer::Lost => return self.lost(number, place, &statement),
            Answer::Refused => (None, None),
            Answer::Done { written } => {
                let is_open = self.players[number].begun.contains_key(&place);
                let open = match is_open {
                    true => StatusFlags::AUTOCOMMIT | StatusFlags::IN_TRANSACTION,
                    false => StatusFlags::AUTOCOMMIT,
                };
                (Some(open), written)
            }
        };
        match deed {
            Deed::Read => self.note_read(number, place, statement.primary),
            Deed::Set(value) if status.is_some() => self.note_set(number, place, value),
            _ => {}
        }
        let mut changes = SessionChanges::new();
        if let Some(written) = written {
            changes.variable("last_gtid", cluster::gtid(written).as_bytes());
            self.players[number].wrote = written;
        }
        let report = Report {
            status,
            changes: Some(changes.as_bytes()),
            tells_writes: true,
            told: Told::default(),
        };
        let player = &mut self.players[number];
        player
            .session
            .answered(&statement.plan, server(place), report);
        player.phase = Phase::Idle;
        player.statement = None;
        player.scene = match player.scene {
            _ if player.begun.is_empty() && player.session.pins().is_empty() => Scene::Outside,
            _ if player.begun.is_empty() => Scene::Locked,
            Scene::Inside(lines) => Scene::Inside(lines + 1),
            _ => Scene::Inside(0),
        };
        self.tally.answered += 1;
        self.settle(number);
    }

    /// The session has set its variable, which each of its connections gets.
    fn note_set(&mut self, number: usize, place: usize, value: u64) {
        let player = &mut self.players[number];
        player.variable = Some(value);
        let command = Command::Query(cluster::set(value).into_bytes().into());
        let kept = player.history.keep(command, SqlMode::default());
        let commands = player.history.list().clone();
        if let Some(lane) = player.lanes.get_mut(&place) {
            lane.own.connection.state.has_run(&commands);
        }
        if kept.is_err() {
            self.fault("a history of one variable is full");
        }
    }

    /// A read on a replica has to see what its session wrote. One in a transaction sees what its
    /// begin saw. A primary may be one of yesterday until the next check.
    fn note_read(&mut self, number: usize, place: usize, primary: Option<ServerId>) {
        let player = &self.players[number];
        let is_at_rest = player.begun.is_empty() && player.session.pins().is_empty();
        if !is_at_rest || player.wrote == 0 || primary == Some(server(place)) {
            return;
        }
        if self.cluster.borrow().applied(place) < player.wrote {
            self.fault("a session does not see what it wrote (S4)");
        }
        self.tally.replica_reads += 1;
    }

    /// The connection is lost while a statement runs.
    fn lost(&mut self, number: usize, place: usize, statement: &Statement) {
        let loss = self.players[number].session.loss(server(place));
        self.lose(number, place);
        if loss == Loss::Nothing && statement.plan.may_repeat && statement.failed.is_none() {
            self.tally.repeated += 1;
            return self.unready(number, place);
        }
        self.refused(number);
    }

    /// Gives back what the session does not need.
    fn settle(&mut self, number: usize) {
        let is_early = self.has(Mistake::GivesBackEarly, 100);
        if !self.players[number].session.is_at_rest() && !is_early {
            return;
        }
        if self.has(Mistake::KeepsConnections, 100) {
            return;
        }
        if !self.players[number].begun.is_empty() {
            self.fault("a session with a transaction takes itself for one at rest (S3)");
        }
        self.players[number].scene = Scene::Outside;
        let lanes = std::mem::take(&mut self.players[number].lanes);
        for (place, Lane { slot, own }) in lanes {
            if !self.cluster.borrow().is_clean(own.connection.number) {
                self.fault("a connection is given back with what a session has left (S3)");
            }
            let worker = self.players[number].worker;
            let order = self.fronts[worker].release(slot, own, self.now);
            self.note_orders(order.into_iter().map(|it| (place, it)).collect());
        }
    }

    /// The client leaves for good.
    fn leave(&mut self, number: usize) {
        self.players[number].phase = Phase::Done;
    }

    /// A client leaves while it waits, and another one comes.
    pub(super) fn give_up(&mut self, number: usize) {
        if let Phase::Waits(waiting) = &self.players[number].phase {
            let place = waiting.place;
            self.lines[place].retain(|it| *it != number);
            self.tally.gone += 1;
            // The wait is dropped before what the session holds, or after.
            if self.random.coin() {
                self.players[number].phase = Phase::Idle;
            }
            self.restart(number);
        }
    }
}

/// Sessions are of two accounts.
fn login(number: usize) -> Login {
    Login {
        account: AccountId(u32::from(number.is_multiple_of(3))),
        class: ClassId(0),
        client: None,
    }
}

fn server(place: usize) -> ServerId {
    ServerId(cluster::index(place))
}
