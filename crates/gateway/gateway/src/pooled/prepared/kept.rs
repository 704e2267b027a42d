//! Executions whose results are kept.

use router::Plan;

use crate::end::End;
use crate::guest::Request;
use crate::options::ServiceId;
use crate::worker::Worker;

use super::super::Pooled;
use super::super::answer::Job;
use super::super::caching::{self, Asked, Kept, Wanted};
use super::super::guide::Guided;
use super::{CURSOR_FLAGS_AT, EXECUTE_HEAD_BYTES, Kind, Statement, Types};

impl Statement {
    /// What to ask a cache about an execution of it that has this body.
    fn asked(
        &mut self,
        (worker, service): (&Worker, ServiceId),
        body: &[u8],
        guided: &Guided,
    ) -> Option<Asked> {
        let is_simple = self.data_at.is_none() && !self.has_lost_data && self.cursor_at.is_none();
        let has_cursor = body.get(CURSOR_FLAGS_AT).is_none_or(|flags| *flags != 0);
        if !is_simple || has_cursor {
            return None;
        }
        let types = self.note_types(Kind::Execute, body);
        let nulls = EXECUTE_HEAD_BYTES..EXECUTE_HEAD_BYTES + self.parameter_count.div_ceil(8);
        let values_at = match types {
            Types::Told => nulls.end + 1 + 2 * self.parameter_count,
            Types::Untold(_) => nulls.end + 1,
            Types::None if self.parameter_count == 0 => body.len(),
            Types::None => return None,
        };
        let nulls = match self.parameter_count {
            0 => &[],
            _ => body.get(nulls)?,
        };
        let values = body.get(values_at..)?;
        let read = (&self.judged, self.mode);
        let asked = caching::asked((worker, service), read, guided, |_, key| {
            let text = self.key.text.bytes();
            caching::append_execution(text, (nulls, &self.types, values), key);
            true
        });
        asked.ok()
    }
}

impl Pooled {
    /// What a cache has for an execution with this body.
    pub(super) fn kept_execution(
        &mut self,
        number: u32,
        body: &[u8],
        (guided, is_whole): (&Guided, bool),
    ) -> Kept {
        if self.caching.is_none() || !is_whole {
            return Kept::Nothing;
        }
        let here = (&*self.guest.worker, self.guest.service);
        let statement = self.statements.by_number.get_mut(&number);
        let asked = statement.and_then(|it| it.asked(here, body, guided));
        asked.map_or(Kept::Nothing, |asked| self.look_up(asked))
    }

    /// Has a server execute a statement without long data and without a cursor, and keeps its
    /// reply.
    pub(super) async fn wanted_execution(
        &mut self,
        plan: Plan,
        (number, request, repeat): (u32, Request<'_>, Option<(u8, &[u8])>),
        wanted: Box<Wanted>,
    ) -> Result<(), End> {
        self.show_to(&wanted);
        let job = Job::Execute(number);
        let answered = self.answer(&plan, job, request, repeat).await?;
        self.keep_reply(*wanted, answered);
        Ok(())
    }
}
