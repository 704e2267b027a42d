//! One thread's clients: their transactions one after the other, driven by one epoll.
//!
//! A client is always in one of three states; each arrow except the first is one reply:
//!
//! ```text
//! Idle --begin--> Running --last statement--> Running, next transaction
//!                 Running --1213, 1205--> RollingBack --> Running, again
//!                 Running --failure of the shape--> Running, again
//! ```
//!
//! In an open loop ([`Arrivals`]) a client that has ended a transaction begins the next one in its
//! queue, or becomes idle. A transaction that arrives for a busy client waits in its queue. Its
//! time is counted from its arrival.
//!
//! A run has a length and stops in the middle; outstanding replies are taken by the next run.
//! Meanwhile the loop's clock is stopped, and so are the clients, if the server is paused.
//! Unanswered transactions at the end of a run are counted by their age, so that a client that is
//! never served shows.
//!
//! The first transaction of a client continues after BEGIN at a random step, so that the clients
//! are not in step with each other; it is not counted as a transaction. Those of TPC-C differ by
//! themselves, and begin at their beginning.
//!
//! The cost of a statement: a receive, a send and a share of a wait, whatever the number of
//! clients. Nothing iterates over all clients while the clock runs. In an open loop each statement
//! also costs a look at the clock.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use env::Instant;
use metrics::{Histogram, HistogramSnapshot};
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::thread::set_current_timer_slack;
use smallvec::SmallVec;
use wire::{
    BinaryValue, ColumnType, Command, CommandByte, CursorKind, Deframer, Execute, Framed,
    PacketWriter, ParameterType,
};

use super::arrivals::{Arrival, Arrivals, Plan};
use super::clock::StoppingClock;
use super::connection::{Connection, PACKET_BYTES_MAX};
use super::draw::Draw;
use super::mix::{Step, Value, with_literals};
use super::reply::{Ending, Reply};
use super::tpcc::{self, Call};
use super::{COLD_COUNT, Shape, Tally, Work};

/// Events taken at a time: enough that a wait costs little per event, and few enough that a batch
/// ends within a millisecond, since the clock is read between batches.
const EVENTS_MAX: usize = 256;

/// Holds any reply of the mixes: a hundred rows of 130 bytes.
const BUFFER_BYTES: usize = 64 << 10;

/// A server that sends nothing for this long hangs; a lock wait ends after 50 s.
const SILENCE_MAX: Duration = Duration::from_secs(120);

/// The most arrivals in the queues of a thread's clients: some ten seconds of work of a fast
/// server. A longer queue would grow without end.
const BACKLOG_MAX: usize = 1 << 20;

/// Deadlock and lock wait timeout: errors that a correct server may return under load.
const RESTARTS: [u16; 2] = [1213, 1205];

/// See the module's head.
#[derive(Debug)]
pub(super) struct EventLoop {
    epoll: OwnedFd,
    clients: Vec<Client>,
    work: Work,
    table_count: u32,
    /// As in [`Shape`].
    failures: &'static [u16],
    draw: Draw,
    buffer: Vec<u8>,
    out: PacketWriter,
    values: Vec<Value>,
    clock: StoppingClock,
    /// When the last reply arrived.
    heard_at: Instant,
    /// Clients that are not warm yet.
    cold_count: usize,
    /// The open loop's schedule; `None` in a closed loop.
    arrivals: Option<Arrivals>,
    /// Arrivals in the clients' queues.
    backlog_count: usize,
    /// Clients that are not idle.
    busy_count: usize,
}

#[derive(Debug)]
struct Client {
    connection: Connection,
    deframer: Deframer,
    /// Bytes of an incomplete packet.
    rest: Vec<u8>,
    reply: Reply,
    state: State,
    /// For the running statement.
    step: usize,
    table: u32,
    row: u64,
    /// The statements of its transaction, if that was drawn.
    calls: Vec<Call>,
    /// Counted statements of its transaction, since it was begun or restarted.
    counted: u64,
    /// Transactions until it is warm; [`COLD_COUNT`] during the very first one, which is
    /// incomplete.
    cold_left: u32,
    /// When its transaction began, restarts included; in an open loop, when it arrived.
    begun_at: Instant,
    /// Arrivals that wait for it, the oldest first.
    queue: VecDeque<Instant>,
    /// Transactions that it finished in counted runs.
    transaction_count: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Running,
    RollingBack,
}

/// The counts of one run.
struct Run {
    /// Statements and transactions are counted.
    is_counting: bool,
    tally: Tally,
    latency_us: Histogram,
    /// The delay between a transaction's arrival and its sending or queueing.
    lateness_us: Histogram,
}

impl EventLoop {
    pub(super) fn new(
        connections: Vec<Connection>,
        work: &Work,
        shape: &Shape,
        draw: Draw,
    ) -> Result<EventLoop> {
        ensure!(
            shape.failures.is_empty() || matches!(work, Work::Steps(steps) if steps.len() == 1),
            "a failure would leave a transaction open"
        );
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        for (index, connection) in connections.iter().enumerate() {
            let data = EventData::new_u64(stdx::to_u64(index));
            epoll::add(&epoll, &connection.socket, data, EventFlags::IN)?;
        }
        Ok(EventLoop {
            epoll,
            cold_count: connections.len(),
            clients: connections.into_iter().map(Client::new).collect(),
            work: work.clone(),
            table_count: shape.table_count,
            failures: shape.failures,
            draw,
            buffer: vec![0; BUFFER_BYTES],
            out: PacketWriter::new(),
            values: Vec::new(),
            clock: StoppingClock::default(),
            heard_at: Instant::default(),
            arrivals: None,
            backlog_count: 0,
            busy_count: 0,
        })
    }

    pub(super) fn client_count(&self) -> usize {
        self.clients.len()
    }

    /// From now on transactions begin as they arrive, `per_second` of them. Waiting arrivals of an
    /// earlier rate are dropped.
    pub(super) fn open(&mut self, seed: u64, per_second: f64) {
        let plan = Plan {
            seed,
            per_second,
            client_count: self.clients.len(),
        };
        self.arrivals = Some(Arrivals::new(plan, self.clock.now()));
        for client in &mut self.clients {
            client.queue.clear();
        }
        self.backlog_count = 0;
    }

    /// Each client has finished [`COLD_COUNT`] transactions.
    pub(super) fn is_warm(&self) -> bool {
        self.cold_count == 0
    }

    /// The transactions that each client has finished in counted runs.
    pub(super) fn transaction_counts(&self) -> impl Iterator<Item = u64> {
        self.clients.iter().map(|client| client.transaction_count)
    }

    /// Runs the clients for this long.
    pub(super) fn run(&mut self, length: Duration, is_counting: bool) -> Result<Tally> {
        let mut run = Run {
            is_counting,
            tally: Tally::default(),
            latency_us: Histogram::new(),
            lateness_us: Histogram::new(),
        };
        if self.arrivals.is_some() {
            // The kernel may wake a thread 50 us late, to save wake-ups; arrivals need to be on
            // time.
            set_current_timer_slack(NonZeroU64::new(1))?;
        }
        self.clock.start();
        let began = self.clock.now();
        if self.arrivals.is_none() {
            for index in 0..self.clients.len() {
                if self.client(index)?.state == State::Idle {
                    self.begin(index, began)?;
                }
            }
        }
        self.serve(&mut run, began + length)?;
        self.clock.stop();
        run.tally.seconds = self.clock.now().since(began).as_secs_f64();
        run.tally.latency_us = run.latency_us.snapshot();
        run.tally.lateness_us = run.lateness_us.snapshot();
        run.tally.unanswered_us = self.unanswered_us();
        let answered_us = run.tally.latency_us.max();
        run.tally.longest_us = answered_us.max(run.tally.unanswered_us.max());
        Ok(run.tally)
    }

    /// Handles replies and arrivals until `end`.
    fn serve(&mut self, run: &mut Run, end: Instant) -> Result<()> {
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS_MAX);
        let mut now = self.clock.now();
        while now < end {
            events.clear();
            let due = self.arrivals.as_ref().map_or(end, Arrivals::next_at);
            let timeout = timespec(end.min(due).since(now));
            let spare = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.epoll, spare, Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            now = self.clock.now();
            if !events.is_empty() || self.busy_count == 0 {
                self.heard_at = now;
            }
            let silence = now.since(self.heard_at);
            ensure!(silence < SILENCE_MAX, "no reply for {SILENCE_MAX:?}");
            for event in &events {
                self.receive(run, stdx::to_usize(event.data.u64()))?;
                self.admit_due(run)?;
            }
            self.admit_due(run)?;
        }
        Ok(())
    }

    /// Begins the due transactions, or queues them for busy clients.
    fn admit_due(&mut self, run: &mut Run) -> Result<()> {
        if self.arrivals.is_none() {
            return Ok(());
        }
        let now = self.clock.now();
        while let Some(arrival) = self.arrivals.as_mut().and_then(|it| it.take(now)) {
            if run.is_counting {
                run.lateness_us.record(micros(now.since(arrival.at)));
            }
            self.admit(arrival)?;
        }
        Ok(())
    }

    fn admit(&mut self, arrival: Arrival) -> Result<()> {
        let client = self.client(arrival.client)?;
        if client.state == State::Idle {
            return self.begin(arrival.client, arrival.at);
        }
        client.queue.push_back(arrival.at);
        self.backlog_count += 1;
        ensure!(
            self.backlog_count <= BACKLOG_MAX,
            "{BACKLOG_MAX} transactions wait for their clients: the server cannot keep up with the \
             rate; ask for a lower one"
        );
        Ok(())
    }

    /// The ages of unanswered transactions, including queued ones. The clock is stopped.
    fn unanswered_us(&self) -> HistogramSnapshot {
        let ages_us = Histogram::new();
        let now = self.clock.now();
        for client in self.clients.iter().filter(|it| it.state != State::Idle) {
            ages_us.record(micros(now.since(client.begun_at)));
            for &arrived_at in &client.queue {
                ages_us.record(micros(now.since(arrived_at)));
            }
        }
        ages_us.snapshot()
    }

    fn client(&mut self, index: usize) -> Result<&mut Client> {
        self.clients.get_mut(index).context("a client's number")
    }

    /// Receives data for a client, and sends its next statement once a reply is complete.
    fn receive(&mut self, run: &mut Run, index: usize) -> Result<()> {
        let client = self.clients.get_mut(index).context("a client's number")?;
        let count = match recv(
            &client.connection.socket,
            &mut self.buffer[..],
            RecvFlags::DONTWAIT,
        ) {
            Ok((_, count)) => count,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        ensure!(count > 0, "the server closed a connection");
        let bytes = self.buffer.get(..count).unwrap_or_default();
        match client.take(bytes)? {
            Some(ending) => self.go_on(run, index, ending),
            None => Ok(()),
        }
    }

    fn go_on(&mut self, run: &mut Run, index: usize, ending: Ending) -> Result<()> {
        let client = self.clients.get_mut(index).context("a client's number")?;
        if let Ending::Failed(number, _) = &ending
            && self.failures.contains(number)
        {
            run.tally.failure_count += u64::from(run.is_counting);
            let begun_at = client.begun_at;
            return self.begin(index, begun_at);
        }
        if client.state == State::Running && ending == Ending::Done {
            run.tally.statement_count += u64::from(run.is_counting);
            client.counted += u64::from(run.is_counting);
        }
        match (client.state, ending) {
            (State::Idle, _) => bail!("a reply that nobody asked for"),
            (State::RollingBack, Ending::Done) => {
                let begun_at = client.begun_at;
                self.begin(index, begun_at)
            }
            (State::Running, Ending::Done) if client.step + 1 < client.step_count(&self.work) => {
                client.step += 1;
                if let Work::Steps(steps) = &self.work
                    && client.cold_left == COLD_COUNT
                    && client.step == 1
                {
                    client.step = scatter(steps, &mut self.draw);
                }
                self.send_step(index)
            }
            (State::Running, Ending::Done) => {
                client.calls.clear();
                client.counted = 0;
                let now = self.clock.now();
                self.cold_count -= usize::from(run.finish(client, now));
                self.begin_next(index, now)
            }
            (State::Running, Ending::Failed(number, _)) if RESTARTS.contains(&number) => {
                run.tally.restart_count += u64::from(run.is_counting);
                // Some may have been counted in an earlier run.
                let lost = std::mem::take(&mut client.counted).min(run.tally.statement_count);
                run.tally.statement_count -= lost;
                client.state = State::RollingBack;
                self.send_text(index, "ROLLBACK")
            }
            (_, Ending::Failed(number, message)) => bail!("error {number}: {message}"),
        }
    }

    /// Continues a client after the end of a transaction.
    fn begin_next(&mut self, index: usize, now: Instant) -> Result<()> {
        if self.arrivals.is_none() {
            return self.begin(index, now);
        }
        let client = self.client(index)?;
        if let Some(arrived_at) = client.queue.pop_front() {
            self.backlog_count -= 1;
            return self.begin(index, arrived_at);
        }
        client.state = State::Idle;
        self.busy_count -= 1;
        Ok(())
    }

    /// Begins a transaction of a client.
    fn begin(&mut self, index: usize, begun_at: Instant) -> Result<()> {
        let client = self.clients.get_mut(index).context("a client's number")?;
        let was_idle = client.state == State::Idle;
        client.state = State::Running;
        client.begun_at = begun_at;
        client.step = 0;
        // Behind a restart it is the same transaction again.
        if matches!(self.work, Work::Tpcc(_)) && client.calls.is_empty() {
            client.calls = tpcc::transaction(&mut self.draw, self.table_count.into());
        }
        self.busy_count += usize::from(was_idle);
        self.send_step(index)
    }

    fn send_step(&mut self, index: usize) -> Result<()> {
        let client = self.clients.get_mut(index).context("a client's number")?;
        let steps = match &self.work {
            Work::Steps(steps) => steps,
            Work::Tpcc(_) => return self.send_call(index),
        };
        let step = *steps.get(client.step).context("a step of the mix")?;
        if step.new_table {
            client.table = self.draw.table(self.table_count);
        }
        if step.new_row {
            client.row = self.draw.row();
        }
        let statement = match step.other {
            Some(other) if self.draw.below(2) == 0 => other,
            _ => step.statement,
        };
        statement.parameters(client.row, &mut self.draw, &mut self.values);
        let table = client.table;
        let place = client.connection.place(statement, table);
        match client.connection.statement_id(place) {
            Some(id) => {
                encode(&mut self.out, id, &self.values);
                self.send(index)
            }
            None => {
                let text = with_literals(&statement.text(table), &self.values);
                self.send_text(index, &text)
            }
        }
    }

    /// Sends the next statement of a drawn transaction.
    fn send_call(&mut self, index: usize) -> Result<()> {
        let client = self.clients.get_mut(index).context("a client's number")?;
        let call = client.calls.get(client.step);
        let call = call.context("a statement of the transaction")?;
        match client.connection.statement_id(call.statement) {
            Some(id) => {
                encode(&mut self.out, id, &call.values);
                self.send(index)
            }
            None => {
                let text = match &self.work {
                    Work::Steps(_) => None,
                    Work::Tpcc(texts) => texts.get(call.statement),
                };
                let text = text.context("a statement of the workload")?;
                let text = with_literals(text, &call.values);
                self.send_text(index, &text)
            }
        }
    }

    fn send_text(&mut self, index: usize, text: &str) -> Result<()> {
        self.out.clear();
        self.out.set_sequence(0);
        Command::encode(&mut self.out, CommandByte::QUERY, text.as_bytes());
        self.send(index)
    }

    /// Sends the contents of `out`. It fits: a client sends only after all earlier replies.
    fn send(&mut self, index: usize) -> Result<()> {
        let client = self.clients.get_mut(index).context("a client's number")?;
        client.reply = Reply::Head;
        client.deframer.set_sequence(1);
        let bytes = self.out.as_bytes();
        let count = send(&client.connection.socket, bytes, SendFlags::NOSIGNAL)?;
        ensure!(count == bytes.len(), "a socket took a part of a request");
        Ok(())
    }
}

impl Drop for EventLoop {
    /// Sends COM_QUIT; the server may be gone already.
    fn drop(&mut self) {
        let mut out = PacketWriter::new();
        Command::encode(&mut out, CommandByte::QUIT, b"");
        for client in &self.clients {
            send(
                &client.connection.socket,
                out.as_bytes(),
                SendFlags::NOSIGNAL,
            )
            .ok();
        }
    }
}

impl Client {
    fn new(connection: Connection) -> Client {
        Client {
            connection,
            deframer: Deframer::new(PACKET_BYTES_MAX),
            rest: Vec::new(),
            reply: Reply::Head,
            state: State::Idle,
            step: 0,
            table: 1,
            row: 1,
            calls: Vec::new(),
            counted: 0,
            cold_left: COLD_COUNT,
            begun_at: Instant::default(),
            queue: VecDeque::new(),
            transaction_count: 0,
        }
    }

    /// Statements of its transaction.
    fn step_count(&self, work: &Work) -> usize {
        match work {
            Work::Steps(steps) => steps.len(),
            Work::Tpcc(_) => self.calls.len(),
        }
    }

    /// Takes received bytes. Returns how the statement ended, if its reply is complete.
    fn take(&mut self, bytes: &[u8]) -> Result<Option<Ending>> {
        let joined;
        let mut input = bytes;
        if !self.rest.is_empty() {
            self.rest.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.rest);
            input = &joined;
        }
        let mut ending = None;
        loop {
            match self.deframer.next(input)? {
                Framed::Incomplete { used, .. } => {
                    input = input.get(used..).unwrap_or_default();
                    break;
                }
                Framed::Packet { payload, used } => {
                    ensure!(ending.is_none(), "packets behind the end of a reply");
                    ending = self.reply.take(payload, self.connection.capabilities)?;
                    input = input.get(used..).unwrap_or_default();
                }
            }
        }
        if !input.is_empty() {
            self.rest = input.to_vec();
        }
        Ok(ending)
    }
}

impl Run {
    /// Records a finished transaction. Returns true if the client just became warm.
    fn finish(&mut self, client: &mut Client, now: Instant) -> bool {
        let cold_left = client.cold_left;
        client.cold_left = cold_left.saturating_sub(1);
        if self.is_counting && cold_left != COLD_COUNT {
            self.latency_us.record(micros(now.since(client.begun_at)));
            client.transaction_count += 1;
        }
        cold_left == 1
    }
}

/// A random step at which a client continues its first transaction after BEGIN. Otherwise thousands
/// of clients would send the same step at the same time, for longer than a run lasts. Only the cost
/// of the first steps would be counted.
fn scatter(steps: &[Step], draw: &mut Draw) -> usize {
    let chosen = draw.below(stdx::to_u64(steps.len() - 1)) + 1;
    let mut chosen = stdx::to_usize(chosen);
    // An INSERT needs the DELETE before it.
    while steps.get(chosen).is_some_and(|step| step.needs_previous()) {
        chosen -= 1;
    }
    chosen
}

/// Replaces what is in `out` by the execution of a prepared statement.
fn encode(out: &mut PacketWriter, id: u32, values: &[Value]) {
    let bind = |value| match value {
        &Value::Number(number) => (
            ParameterType::new(ColumnType::LongLong),
            BinaryValue::Unsigned(number),
        ),
        Value::Text(text) => (
            ParameterType::new(ColumnType::VarString),
            BinaryValue::Bytes(text),
        ),
    };
    out.clear();
    out.set_sequence(0);
    let bound: SmallVec<[_; FEW_PARAMETERS]> = values.iter().map(bind).collect();
    Execute::encode(out, id, CursorKind::None, &bound);
}

/// No statement of sysbench has more.
const FEW_PARAMETERS: usize = 4;

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::draw::Distribution;
    use crate::generator::mix::{Statement, transaction};

    #[test]
    fn clients_are_scattered_over_all_steps_but_inserts() {
        let steps = transaction("write_only").unwrap();
        let mut draw = Draw::new(1, 10, Distribution::Uniform);
        let mut seen = vec![false; steps.len()];
        for _ in 0..1000 {
            seen[scatter(&steps, &mut draw)] = true;
        }
        for (step, was_seen) in steps.iter().zip(seen) {
            let is_left_out = [Statement::Begin, Statement::Insert].contains(&step.statement);
            assert_eq!(was_seen, !is_left_out, "{step:?}");
        }
    }
}
