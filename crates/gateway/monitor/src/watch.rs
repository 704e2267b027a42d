//! [`Monitor`]: the task that asks the servers again and again and publishes what it finds.
//!
//! The task runs on one worker and keeps a connection to each server. All servers are asked at
//! once, each by a task of its own, so a slow one takes no time from the others; the round is
//! judged when the last has answered or its limit is over. A round starts an interval after the
//! start of the one before, or earlier if a session reports a server that the map calls up.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use backend::{Login, Target};
use env::Instant;
use link::Resources;
use metrics::{Label, Registry};
use sync::{Mutex, Notify, OneshotSender, oneshot};

use crate::counters::{Counters, NUMBERS};
use crate::event;
use crate::judge::{self, Verdict};
use crate::map::ServerMap;
use crate::options::{Options, RandomSource};
use crate::probe::{Checked, Probe};
use crate::publication::{MapReader, Publication, Published};
use crate::rules::Rules;
use crate::state::{Order, ServerId};

/// Least time from the start of a round to that of the next, whatever sessions report: a server
/// that answers the checks and fails the sessions would be asked without a pause.
pub const ROUND_GAP_MIN: Duration = Duration::from_millis(100);

/// The watch over the servers of a service, for all threads. Dropping it does not end it.
#[derive(Debug, Clone)]
pub struct Monitor {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    publication: Publication,
    /// What the task has to do beside its rounds.
    inbox: Mutex<Inbox>,
    /// Wakes the task for the inbox.
    notify: Notify,
    counters: Arc<Counters>,
}

#[derive(Debug, Default)]
struct Inbox {
    orders: Vec<(ServerId, Order)>,
    /// Those who wait until these are carried out.
    waiting: Vec<OneshotSender<()>>,
    has_report: bool,
    is_stopped: bool,
}

/// What the task owns.
struct Watch {
    shared: Arc<Shared>,
    probes: Vec<Probe>,
    resources: Rc<Resources>,
    random: RandomSource,
    rules: Rules,
    interval: Duration,
    /// The newest map; what it remembers is newer than in the published one.
    map: ServerMap,
}

impl Monitor {
    /// Starts the task on this worker. `before` are the maps of an older configuration.
    pub fn start(options: Options, resources: Rc<Resources>, before: &[&ServerMap]) -> Monitor {
        let entries = options.servers.iter().map(|(entry, ..)| entry.clone());
        let map = ServerMap::new(entries.collect(), before);
        let login = Rc::new(Login::new(options.user, options.secret));
        let probes = options
            .servers
            .into_iter()
            .map(|(entry, tls, proxy_header)| {
                let target = Target {
                    address: entry.address,
                    tls,
                    proxy_header,
                    connect_timeout: options.connect_timeout,
                    io_timeout: options.reply_timeout,
                };
                Probe::new(target, Rc::clone(&login))
            });
        let shared = Arc::new(Shared {
            publication: Publication::new(map.clone()),
            inbox: Mutex::new(Inbox::default()),
            notify: Notify::default(),
            counters: Arc::default(),
        });
        let watch = Watch {
            shared: Arc::clone(&shared),
            probes: probes.collect(),
            resources,
            random: options.random,
            rules: options.rules,
            interval: options.interval,
            map,
        };
        runtime::spawn_background(watch.run());
        Monitor { shared }
    }

    /// Reads the map; one a worker.
    pub fn reader(&self) -> MapReader {
        self.shared.publication.reader()
    }

    /// The present map, for those who ask seldom.
    pub fn present(&self) -> Arc<Published> {
        self.shared.publication.present()
    }

    /// Ready once the present map is another than that of `version`.
    pub async fn changed(&self, version: u64) {
        self.shared.publication.changed(version).await;
    }

    /// A session has found a server dead: the next round comes at once, unless the map says so
    /// already.
    pub fn report_failure(&self, id: ServerId) {
        let present = self.present();
        if present.map.server(id).is_some_and(|it| it.is_reachable()) {
            self.shared.inbox.lock().has_report = true;
            self.shared.notify.notify();
        }
    }

    /// An operator's order, which is carried out in any case. Ready once the present map
    /// has it. That takes as long as the round that is under way.
    pub fn order(&self, id: ServerId, order: Order) -> impl Future<Output = ()> + use<> {
        let (done, awaited) = oneshot();
        {
            let mut inbox = self.shared.inbox.lock();
            inbox.orders.push((id, order));
            inbox.waiting.push(done);
        }
        self.shared.notify.notify();
        awaited.receive()
    }

    /// Ends the task and closes its connections. The last map stays.
    pub fn stop(&self) {
        self.shared.inbox.lock().is_stopped = true;
        self.shared.notify.notify();
    }

    /// Shows the monitor's numbers, with a label that tells it from others.
    pub fn register_metrics(&self, registry: &mut Registry, label: &Label) {
        for (metric, read) in NUMBERS {
            let counters = Arc::clone(&self.shared.counters);
            registry.add_labelled(metric, label.clone(), move || read(&counters));
        }
    }

    /// The monitor's numbers.
    pub fn counters(&self) -> &Counters {
        &self.shared.counters
    }
}

impl Watch {
    async fn run(mut self) {
        loop {
            let begun = runtime::now();
            self.round().await;
            if self.pause(begun).await == Next::Stop {
                return;
            }
        }
    }

    /// Asks all servers and judges their answers.
    async fn round(&mut self) {
        let probes = std::mem::take(&mut self.probes);
        let checks: Vec<_> = probes
            .into_iter()
            .map(|probe| {
                let (resources, random) = (Rc::clone(&self.resources), Arc::clone(&self.random));
                runtime::spawn_background(check(probe, resources, random))
            })
            .collect();
        let counters = Arc::clone(&self.shared.counters);
        let mut observations = Vec::with_capacity(checks.len());
        for check in checks {
            let (probe, checked) = check.await;
            self.probes.push(probe);
            counters.logins.add(checked.login_count);
            if matches!(checked.observation, crate::Observation::Failed(_)) {
                counters.failures.increment();
            }
            observations.push(checked.observation);
        }
        counters.rounds.increment();
        let verdict = judge::judge(&self.map, observations, &self.rules, runtime::now());
        self.take(verdict);
    }

    /// Waits for the next round, and carries out what comes meanwhile.
    async fn pause(&mut self, begun: Instant) -> Next {
        let mut round_at = begun + self.interval;
        loop {
            let work = std::mem::take(&mut *self.shared.inbox.lock());
            if work.is_stopped {
                // Whoever waits for an order learns from the map that nothing has come of it.
                work.waiting.into_iter().for_each(|it| it.deliver(()));
                return Next::Stop;
            }
            if !work.orders.is_empty() {
                let now = runtime::now();
                let verdict = judge::order(&self.map, &work.orders, &self.rules, now);
                self.take(verdict);
            }
            work.waiting.into_iter().for_each(|it| it.deliver(()));
            let early_at = begun + ROUND_GAP_MIN;
            if work.has_report && early_at < round_at {
                self.shared.counters.reports.increment();
                round_at = early_at;
            }
            let left = round_at - runtime::now();
            let notified = self.shared.notify.notified();
            if left.is_zero() || runtime::timeout(left, notified).await.is_err() {
                return Next::Round;
            }
        }
    }

    /// Publishes a map, if others see a difference.
    fn take(&mut self, verdict: Verdict) {
        let Verdict { map, events } = verdict;
        if !map.looks_like(&self.map) {
            self.shared.counters.maps.increment();
            self.shared.publication.publish(map.clone());
        }
        for event in &events {
            event::log(event, &map);
        }
        self.map = map;
    }
}

/// What follows a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Round,
    Stop,
}

async fn check(
    mut probe: Probe,
    resources: Rc<Resources>,
    random: RandomSource,
) -> (Probe, Checked) {
    let checked = probe.check(&resources, &random).await;
    (probe, checked)
}
