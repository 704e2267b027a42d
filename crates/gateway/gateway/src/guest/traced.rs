//! The span of a statement that has ended.

use digests::Finished;
use env::linux::SystemClock;
use env::{Clock as _, Instant};
use front::Peer;
use runtime::Address;
use spans::{Begun, Failure, Span, System};
use wire::StatusFlags;

use crate::end::End;

use super::current::end_error;
use super::{Guest, mode_of};

impl Guest {
    /// Hands over the span of a statement that is traced and has ended at this moment.
    pub(super) fn trace_statement(
        &self,
        begun: Begun,
        finished: &Finished,
        (now, status): (Instant, StatusFlags),
        went: Result<(), End>,
    ) {
        let current = &*self.current;
        let reply = &current.reply;
        let error = reply.error.or_else(|| end_error(went, self.lost.as_ref()));
        let info = self.client.info();
        let server = reply
            .server
            .map(|id| &self.worker.generation.server(id).options);
        let digest = current.digest.as_ref();
        self.worker.tracer().end(Span {
            begun,
            ended_at: wall_nanos(now),
            time: finished.time,
            who: self.who.clone(),
            session: info.connection_id,
            client: match info.peer {
                Peer::Unix => None,
                Peer::Tcp(address) => Some((address, info.port)),
            },
            digest: digest.map(|it| (it.number(), it.share_text())),
            mode: mode_of(status),
            system: self.system(),
            server: server.map(|it| match &it.target.address {
                Address::Tcp(place) => (it.name.clone(), Some(*place)),
                Address::Unix(_) => (it.name.clone(), None),
            }),
            rows_sent: finished.rows_sent,
            rows_affected: finished.rows_affected,
            is_kept: finished.is_kept,
            failure: match error {
                Some(code) => Some(Failure::Error(code.number())),
                None => finished.is_failed.then_some(Failure::Unanswered),
            },
        });
    }

    /// What the servers of its service are, as they greet clients.
    fn system(&self) -> System {
        let service = self.worker.generation.service(self.service);
        let known = service.readings.known();
        match known.is_some_and(|it| it.greeting.server_version.contains("MariaDB")) {
            true => System::MariaDb,
            false => System::MySql,
        }
    }
}

/// A moment by the wall clock, in nanoseconds since 1970.
fn wall_nanos(at: Instant) -> u64 {
    let ago = SystemClock.now().since(at).as_nanos();
    let wall = u128::from(SystemClock.wall_micros()) * 1000;
    u64::try_from(wall.saturating_sub(ago)).unwrap_or(u64::MAX)
}
