//! Servers of a test and what they say: rounds in, lines of events out.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use backend::ServerVersion;
use env::Instant;
use runtime::Address;

use crate::event::Event;
use crate::facts::{
    Access, Facts, Failure, GALERA_SYNCED, GaleraFacts, Observation, SourceAddress, Stream,
    Streams, Thread,
};
use crate::judge::{Verdict, judge, order};
use crate::map::ServerMap;
use crate::notice::Notice;
use crate::rules::Rules;
use crate::state::{Condition, DownReason, Order, Rank, ServerEntry, ServerId, Serves};

/// From round to round.
const INTERVAL: Duration = Duration::from_secs(2);

/// The servers a, b, c and so on, on the ports 1, 2, 3, with these numbers as `server_id`.
pub(crate) struct Scene {
    pub(crate) map: ServerMap,
    pub(crate) rules: Rules,
    /// What each server says in the next round.
    pub(crate) facts: Vec<Facts>,
    /// Why it says nothing.
    down: Vec<Option<DownReason>>,
    now: Instant,
    /// Uptimes grow with the time, unless a test sets them.
    pub(crate) uptimes: Uptimes,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Uptimes {
    Grow,
    ByHand,
}

pub(crate) fn entry(index: u16) -> ServerEntry {
    let name = char::from(b'a' + u8::try_from(index).unwrap());
    ServerEntry {
        name: Arc::from(name.to_string()),
        address: Address::Tcp(([127, 0, 0, 1], index + 1).into()),
        rank: Rank(0),
    }
}

/// A stream that works, from the server of an index.
pub(crate) fn stream(source: u16) -> Stream {
    Stream {
        source: SourceAddress {
            host: "127.0.0.1".to_owned(),
            port: source + 1,
        },
        source_number: u32::from(source) + 1,
        receiver: Thread::Running,
        applier: Thread::Running,
        lag_s: Some(0),
        error: String::new(),
    }
}

impl Scene {
    /// Writable servers that know nothing of each other.
    pub(crate) fn alone(count: u16) -> Scene {
        let facts = |index: u16| Facts {
            read_at: Instant::default(),
            version: ServerVersion::parse(b"10.11.6-MariaDB"),
            uptime_s: Some(100),
            number: u32::from(index) + 1,
            uid: None,
            access: Access::Writable,
            position: None,
            replicated: None,
            streams: Streams::Known(Vec::new()),
            galera: None,
        };
        Scene {
            map: ServerMap::new((0..count).map(entry).collect(), &[]),
            rules: Rules::default(),
            facts: (0..count).map(facts).collect(),
            down: vec![None; usize::from(count)],
            now: Instant::default() + Duration::from_secs(1000),
            uptimes: Uptimes::Grow,
        }
    }

    /// a is the primary of the others.
    pub(crate) fn replicated(count: u16) -> Scene {
        let mut scene = Scene::alone(count);
        for facts in &mut scene.facts[1..] {
            facts.access = Access::ReadOnly;
            facts.streams = Streams::Known(vec![stream(0)]);
        }
        scene
    }

    /// A Galera cluster.
    pub(crate) fn galera(count: u16) -> Scene {
        let mut scene = Scene::alone(count);
        for (index, facts) in (0..).zip(&mut scene.facts) {
            facts.galera = Some(GaleraFacts {
                is_ready: true,
                is_in_primary_component: true,
                local_state: GALERA_SYNCED,
                rejects_queries: false,
                index,
                cluster: "u".to_owned(),
                size: u32::from(count),
                configuration: 3,
                paused_ns: 0,
            });
        }
        scene
    }

    pub(crate) fn galera_of(&mut self, index: usize) -> &mut GaleraFacts {
        self.facts[index].galera.as_mut().unwrap()
    }

    /// The only stream of a server.
    pub(crate) fn stream_of(&mut self, index: usize) -> &mut Stream {
        let Streams::Known(streams) = &mut self.facts[index].streams else {
            panic!("its streams are known")
        };
        &mut streams[0]
    }

    /// From the next round on the server fails, or answers again.
    pub(crate) fn set_down(&mut self, index: usize, down: Option<DownReason>) {
        self.down[index] = down;
    }

    /// A primary is gone: its replicas try to reach it.
    pub(crate) fn crash(&mut self, index: usize) {
        self.down[index] = Some(DownReason::Unreachable);
        let number = self.facts[index].number;
        for facts in &mut self.facts {
            let Streams::Known(streams) = &mut facts.streams else {
                continue;
            };
            for stream in streams.iter_mut().filter(|it| it.source_number == number) {
                stream.receiver = Thread::Connecting;
                stream.lag_s = None;
            }
        }
    }

    /// The events of the next round.
    pub(crate) fn round(&mut self) -> Vec<String> {
        self.round_after(INTERVAL)
    }

    pub(crate) fn round_after(&mut self, passed: Duration) -> Vec<String> {
        self.now = self.now + passed;
        let observations = self.facts.iter_mut().zip(&self.down);
        let observations = observations.map(|(facts, down)| {
            facts.read_at = self.now;
            if self.uptimes == Uptimes::Grow {
                facts.uptime_s = facts.uptime_s.map(|it| it + passed.as_secs());
            }
            match down {
                Some(reason) => Observation::Failed(Failure {
                    reason: *reason,
                    error: "gone".to_owned(),
                }),
                None => Observation::Read(Box::new(facts.clone())),
            }
        });
        let verdict = judge(&self.map, observations.collect(), &self.rules, self.now);
        self.take(verdict)
    }

    /// What an operator asks for.
    pub(crate) fn order(&mut self, index: u16, asked: Order) -> Vec<String> {
        let orders = [(ServerId(index), asked)];
        let verdict = order(&self.map, &orders, &self.rules, self.now);
        self.take(verdict)
    }

    fn take(&mut self, verdict: Verdict) -> Vec<String> {
        assert_eq!(
            verdict.map.looks_like(&self.map),
            verdict.events.is_empty() && self.map.servers().eq(verdict.map.servers()),
            "a difference has its event"
        );
        self.map = verdict.map;
        verdict.events.iter().map(line).collect()
    }

    /// What each server serves: `a:rw b:r c:-`.
    pub(crate) fn serving(&self) -> String {
        let of = |server: &crate::ServerState| {
            let what = match server.serves {
                _ if server.condition != Condition::Up => "-",
                Serves::ReadsAndWrites => "rw",
                Serves::Reads => "r",
                Serves::Nothing(_) => "-",
            };
            format!("{}:{what}", server.entry.name)
        };
        let all: Vec<String> = self.map.servers().map(of).collect();
        all.join(" ")
    }

    /// Lag of each server in seconds.
    pub(crate) fn lags(&self) -> Vec<Option<u64>> {
        let lag = |it: &crate::ServerState| it.lag.map(|lag| lag.as_secs());
        self.map.servers().map(lag).collect()
    }

    pub(crate) fn notices(&self) -> BTreeSet<Notice> {
        self.map.notices().copied().collect()
    }
}

fn name(id: ServerId) -> char {
    char::from(b'a' + u8::try_from(id.0).unwrap())
}

fn line(event: &Event) -> String {
    match event {
        Event::Condition {
            server, from, to, ..
        } => format!("{}: {from} -> {to}", name(*server)),
        Event::Role { server, from, to } => format!("{}: {from} -> {to}", name(*server)),
        Event::Serves {
            server, to, error, ..
        } => {
            let error = error.as_deref().map(|it| format!(" ({it})"));
            format!("{} serves {to}{}", name(*server), error.unwrap_or_default())
        }
        Event::Epoch { server, epoch } => format!("{}: epoch {}", name(*server), epoch.0),
        Event::Primary { from, to } => {
            let from = from.map_or('-', name);
            format!("primary {from} -> {}", name(*to))
        }
        Event::Begun(notice) => format!("begun {notice:?}"),
        Event::Ended(notice) => format!("ended {notice:?}"),
    }
}
