//! [`Overdue`]: ends a statement on its server once it has run for too long.
//!
//! The server is asked over another connection (KILL QUERY), so session and transaction go on. A
//! KILL that comes late must not hit the session's next statement. So the statement counts as under
//! way until the server has carried the KILL out ([`Overdue::finish`]).

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
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
    alarm: Alarm,
    until: Instant,
    /// Who asks, and for what.
    worker: Rc<Worker>,
    running: Arc<Running>,
    /// Under way since the time is over.
    kill: Option<Pin<Box<dyn Future<Output = ()>>>>,
    /// The server has answered.
    is_over: bool,
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
            alarm: Alarm::default(),
            until: runtime::now() + time_max,
            worker: Rc::clone(worker),
            running: Arc::clone(running),
            kill: None,
            is_over: false,
        }
    }

    /// Looks at the time, and does what is due as this client.
    pub(crate) fn poll(&mut self, client: &ClientInfo, context: &mut Context<'_>) {
        if self.is_over {
            return;
        }
        if self.kill.is_none() {
            if self.alarm.poll_until(self.until, context).is_pending() {
                return;
            }
            let Ok(login) = login_as(client) else {
                self.is_over = true;
                return;
            };
            let (worker, aim) = (Rc::clone(&self.worker), self.running.aim());
            self.kill = Some(Box::pin(
                async move { kill::stop(&worker, aim, &login).await },
            ));
        }
        self.poll_kill(context);
    }

    fn poll_kill(&mut self, context: &mut Context<'_>) {
        if let Some(kill) = &mut self.kill
            && kill.as_mut().poll(context).is_ready()
        {
            self.is_over = true;
        }
    }

    /// The statement has ended. Waits for the end of what it has begun.
    pub(crate) async fn finish(mut self) {
        if self.kill.is_none() || self.is_over {
            return;
        }
        poll_fn(|context| {
            self.poll_kill(context);
            match self.is_over {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }
}
