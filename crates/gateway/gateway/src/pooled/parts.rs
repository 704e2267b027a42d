//! A transaction over several servers: its parts begin and end together.
//!
//! A hint in an open transaction sends a statement to another server, where a part is begun first.
//! COMMIT ends the parts one after the other, and then the transaction where it was begun. No
//! server knows of the others, so this is not atomic if a server fails between two commits; the
//! client gets an error then. A session that waits for a connection while it holds others may be
//! chosen to break a deadlock: its whole transaction is rolled back, with the error of a deadlock
//! (1213).

use errcode::{ClientError, ER_LOCK_DEADLOCK, ER_NOT_SUPPORTED_YET, WORDS_PARTLY_COMMITTED};
use monitor::ServerId as Place;
use router::Step;
use wire::StatusFlags;

use crate::connection::NotReady;

use super::Pooled;

impl Pooled {
    /// Does to the parts of the transaction what a statement asks before it runs.
    pub(super) async fn step_parts(&mut self, step: Step) -> Result<(), ClientError> {
        match step {
            Step::Stays | Step::MayJoin | Step::Joins => Ok(()),
            Step::Commits => self.commit_parts().await,
            Step::RollsBack => {
                self.roll_back_parts().await;
                Ok(())
            }
            Step::Refused => {
                let what = "this statement in a transaction over several servers";
                Err(ClientError::new(ER_NOT_SUPPORTED_YET, &[&what]))
            }
        }
    }

    /// Begins a part of the transaction on a server whose lane is ready.
    pub(super) async fn begin_part(&mut self, place: Place) -> Result<(), NotReady> {
        let text = self.session.begin_part();
        self.tell(place, text).await?;
        self.session.part_begun(place);
        Ok(())
    }

    /// Commits all parts. If one cannot be, the rest is rolled back, and so is the transaction
    /// where it was begun.
    async fn commit_parts(&mut self) -> Result<(), ClientError> {
        let mut committed = Vec::new();
        for place in self.session.parts().to_vec() {
            let Err(failed) = self.tell(place, "COMMIT").await else {
                committed.push(place);
                continue;
            };
            let reason = match failed {
                NotReady::Refused(error) if committed.is_empty() => {
                    self.roll_back_transaction().await;
                    return Err(error);
                }
                NotReady::Refused(error) => error.to_string(),
                NotReady::Lost(text) => text,
            };
            let failed = self.server_name(place);
            let names: Vec<_> = committed.iter().map(|it| self.server_name(*it)).collect();
            let names = match names.is_empty() {
                true => "no server".to_owned(),
                false => names.join(", "),
            };
            self.roll_back_transaction().await;
            let arguments: [&dyn std::fmt::Display; 3] = [&names, &failed, &reason];
            return Err(ClientError::worded(WORDS_PARTLY_COMMITTED, &arguments));
        }
        self.session.parts_ended();
        Ok(())
    }

    async fn roll_back_parts(&mut self) {
        for place in self.session.parts().to_vec() {
            self.roll_back(place).await;
        }
        self.session.parts_ended();
    }

    /// Rolls the whole transaction back.
    pub(super) async fn roll_back_transaction(&mut self) {
        let first = self.session.open_at();
        let places: Vec<_> = first
            .into_iter()
            .chain(self.session.parts().to_vec())
            .collect();
        for place in places {
            self.roll_back(place).await;
        }
        self.session.rolled_back();
        self.status = StatusFlags(self.status.0 & !StatusFlags::IN_TRANSACTION.0);
    }

    /// A connection that does not roll back is closed, which does.
    async fn roll_back(&mut self, place: Place) {
        if self.tell(place, "ROLLBACK").await.is_err() {
            self.drop_lane(place, pool::CloseReason::Failed);
            self.statements.lose(place);
        }
    }

    /// The session holds a connection that an older one waits for. It gives up all that it holds.
    pub(super) async fn be_victim(&mut self) -> ClientError {
        self.guest.worker.counters.victims.increment();
        self.roll_back_transaction().await;
        self.settle().await;
        ClientError::new(ER_LOCK_DEADLOCK, &[])
    }

    /// Runs a statement of the gateway's own on a lane.
    async fn tell(&mut self, place: Place, text: &str) -> Result<(), NotReady> {
        self.ask_server(place, async |it| it.run(text).await).await
    }
}
