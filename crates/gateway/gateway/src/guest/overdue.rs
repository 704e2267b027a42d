//! [`Overdue`]: ends a statement on its server once it has run for too long.
//!
//! The server is asked over another connection (KILL QUERY), so session and transaction go on. A
//! KILL that comes late must not hit the session's next statement. So the statement counts as under
//! way until the server has carried the KILL out ([`Overdue::finish`]).

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use env::Instant;
use front::ClientInfo;
use runtime::Alarm;

use crate::connect::login_as;
use crate::kill;
use crate::running::Running;
use crate::worker::Worker;

/// See the module's head.
pub(crate) struct Overdue {
    until: Instant,
    /// Who asks, and for what.
    worker: Rc<Worker>,
    running: Arc<Running>,
    stage: Stage,
}

enum Stage {
    /// The statement still has time.
    Waits(Alarm),
    /// The server is asked to end it.
    Ends(Pin<Box<dyn Future<Output = ()>>>),
    /// The server has answered, or cannot be asked.
    Over,
}

impl fmt::Debug for Overdue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overdue")
            .field("until", &self.until)
            .finish_non_exhaustive()
    }
}

impl Overdue {
    /// Of a statement that begins, and may run for so long.
    pub(crate) fn new(
        (worker, running): (&Rc<Worker>, &Arc<Running>),
        time_max: Duration,
    ) -> Overdue {
        Overdue {
            until: runtime::now() + time_max,
            worker: Rc::clone(worker),
            running: Arc::clone(running),
            stage: Stage::Waits(Alarm::default()),
        }
    }

    /// Looks at the time, and does what is due as this client.
    pub(crate) fn poll(&mut self, client: &ClientInfo, context: &mut Context<'_>) {
        if let Stage::Waits(alarm) = &mut self.stage
            && alarm.poll_until(self.until, context).is_ready()
        {
            self.stage = self.begin(client);
        }
        if let Stage::Ends(kill) = &mut self.stage
            && kill.as_mut().poll(context).is_ready()
        {
            self.stage = Stage::Over;
        }
    }

    /// The time is over.
    fn begin(&self, client: &ClientInfo) -> Stage {
        let aim = self.running.aim();
        let (Some(_), Ok(login)) = (aim.at, login_as(client)) else {
            return Stage::Over;
        };
        self.worker.counters.overdue.increment();
        let worker = Rc::clone(&self.worker);
        Stage::Ends(Box::pin(async move {
            kill::end_statement(&worker, aim, &login).await;
        }))
    }

    /// The statement has ended. Waits for the end of what it has begun.
    pub(crate) async fn finish(self) {
        if let Stage::Ends(kill) = self.stage {
            kill.await;
        }
    }
}
