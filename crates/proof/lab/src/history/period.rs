//! A period: sessions that play, kills between them, and the last read.

use std::os::unix::process::ExitStatusExt as _;
use std::sync::mpsc::channel;

use anyhow::{Context, Result, bail, ensure};
use history::{History, Level, Transaction};
use sync::atomic::Ordering;
use testkit::{Server, Signal};

use super::Plan;
use super::draw::{Groups, Kind};
use super::session::{Player, Signals, connect, now};
use super::tables::{read_last, remove_before};
use crate::random::Random;

/// What a period is to be.
pub(super) struct Period<'p> {
    pub(super) number: u64,
    pub(super) plan: Plan,
    pub(super) kinds: &'p [Kind],
    pub(super) session_count: u32,
    /// Transactions that end in it, about.
    pub(super) transaction_count: u64,
    pub(super) kills_max: u64,
    pub(super) first_group: u64,
}

/// A period that was played.
pub(super) struct Played {
    pub(super) number: u64,
    pub(super) plan: Plan,
    pub(super) history: History,
    /// What is wrong without any history: indexes that disagree, rows that come twice.
    pub(super) contradictions: Vec<String>,
    pub(super) kills: u64,
    pub(super) next_group: u64,
}

/// How a leg of a period ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LegEnd {
    Kill,
    Orderly,
}

impl Period<'_> {
    pub(super) fn play(&self, server: &mut Server, random: &mut Random) -> Result<Played> {
        let groups = Groups::new(self.first_group, self.kinds);
        let mut played = Played {
            number: self.number,
            plan: self.plan,
            history: History::default(),
            contradictions: Vec::new(),
            kills: match self.kills_max {
                0 => 0,
                most => 1 + random.below(most),
            },
            next_group: 0,
        };
        let mut left = self.transaction_count;
        for _ in 0..played.kills {
            let count = random.below(left.max(1));
            left -= count;
            self.leg(server, random, &groups, (count, LegEnd::Kill), &mut played)?;
            played.history.restarts.push(now());
            server.start_again().context("start after the kill")?;
        }
        self.leg(
            server,
            random,
            &groups,
            (left, LegEnd::Orderly),
            &mut played,
        )?;
        played.next_group = groups.end();
        let mut client = connect(server.port())?;
        let (last, contradictions) = read_last(&mut client, (self.first_group, played.next_group))?;
        played.history.last = last;
        played.contradictions.extend(contradictions);
        remove_before(&mut client, played.next_group)?;
        Ok(played)
    }

    fn level(&self, session: u32) -> Level {
        let mixed = Level::ALL[stdx::to_usize(session) % Level::ALL.len()];
        self.plan.level().unwrap_or(mixed)
    }

    /// Lets all sessions play until so many transactions have ended.
    fn leg(
        &self,
        server: &mut Server,
        random: &mut Random,
        groups: &Groups,
        (count, end): (u64, LegEnd),
        played: &mut Played,
    ) -> Result<()> {
        let signals = Signals::default();
        let port = server.port();
        let (sender, receiver) = channel();
        std::thread::scope(|scope| {
            let sessions: Vec<_> = (0..self.session_count)
                .map(|session| {
                    let mut player = Player {
                        session,
                        level: self.level(session),
                        random: Random::new(random.next()),
                        groups,
                        signals: &signals,
                        contradictions: Vec::new(),
                    };
                    let sender = sender.clone();
                    scope.spawn(move || {
                        // Behind the leg's end nobody counts.
                        let tell = || {
                            sender.send(()).ok();
                        };
                        let records = player.play(port, tell);
                        (records, player.contradictions)
                    })
                })
                .collect();
            drop(sender);
            // If all sessions ended early, their results say why.
            let ended = receiver.iter().take(stdx::to_usize(count)).count();
            let killed = match end {
                LegEnd::Kill => {
                    signals.is_killed.store(true, Ordering::SeqCst);
                    kill(server)
                }
                LegEnd::Orderly => Ok(()),
            };
            // Relaxed: the threads are joined.
            signals.is_over.store(true, Ordering::Relaxed);
            let mut sessions = sessions.into_iter().map(|it| it.join());
            sessions.try_for_each(|session| {
                let Ok((records, contradictions)) = session else {
                    bail!("a session panicked")
                };
                played.contradictions.extend(contradictions);
                played.history.transactions.extend(own(records?));
                Ok(())
            })?;
            killed?;
            ensure!(stdx::to_u64(ended) == count, "all sessions ended early");
            Ok(())
        })
    }
}

/// Those that wrote or read anything that is to be judged.
fn own(records: Vec<Transaction>) -> impl Iterator<Item = Transaction> {
    records.into_iter().filter(|record| {
        let has_acts = record.statements.iter().any(|it| !it.acts.is_empty());
        has_acts || !record.undone.is_empty()
    })
}

/// Kills the server, which must still be running: one that ended by itself (by a failed assertion)
/// would recover like a killed one.
fn kill(server: &mut Server) -> Result<()> {
    let status = server.process().kill()?;
    ensure!(
        status.signal() == Some(Signal::KILL.as_raw()),
        "the server had ended before it was killed, with {status}:\n{}",
        server.log()
    );
    Ok(())
}
