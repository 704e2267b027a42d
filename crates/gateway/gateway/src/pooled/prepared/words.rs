//! Executions of statements that read of the one before them, on a connection that has not run
//! that.
//!
//! A text is given other words then (`recall.rs`). What was prepared cannot be, so another
//! statement is prepared in its place, for this execution alone. It is rare: a session is pinned to
//! the connection that has prepared such a statement, so the next execution finds what it reads.

use std::sync::Arc;

use errcode::{ClientError, ER_NOT_SUPPORTED_YET};
use router::{OF_LAST_STATEMENT, Plan};
use syntax::class::Facts;
use wire::CommandByte;

use crate::end::End;
use crate::guest::{Answer, Request};

use super::super::Pooled;
use super::super::answer::Job;
use super::super::recall::OTHER_WARNINGS;
use super::{CURSOR_FLAGS_AT, Kind, Place, byte_of};

/// What is written into the text that is prepared instead.
const NUMBERS: Facts = Facts::READS_ROW_COUNT.with(Facts::READS_FOUND_ROWS);

impl Pooled {
    /// Whether an execution reads of the statement before what its connection does not have.
    pub(super) fn is_out_of_reach(&mut self, plan: &Plan, request: Request<'_>) -> bool {
        let is_plain = byte_of(request) == CommandByte::STMT_EXECUTE;
        let reads = self.multiplexes && is_plain && plan.facts.has_any(OF_LAST_STATEMENT);
        reads && (self.reads_lost_warnings(plan) || self.reads_numbers_elsewhere(plan))
    }

    fn reads_lost_warnings(&self, plan: &Plan) -> bool {
        plan.facts.has(Facts::READS_WARNINGS) && self.warnings.is_some()
    }

    fn reads_numbers_elsewhere(&mut self, plan: &Plan) -> bool {
        plan.facts.has_any(NUMBERS) && !self.finds_own(plan)
    }

    /// Answers such an execution.
    pub(super) async fn execute_apart(
        &mut self,
        plan: &Plan,
        number: u32,
        (request, body): (Request<'_>, &[u8]),
    ) -> Result<Option<(Place, Answer)>, End> {
        // Warnings have no other words.
        if self.reads_lost_warnings(plan) {
            let error = ClientError::new(ER_NOT_SUPPORTED_YET, &[&OTHER_WARNINGS]);
            return self.refuse(Job::Statement(number), request, &error).await;
        }
        self.execute_in_other_words(plan, number, (request, body))
            .await
    }

    /// Executes a statement in other words.
    async fn execute_in_other_words(
        &mut self,
        plan: &Plan,
        number: u32,
        (request, body): (Request<'_>, &[u8]),
    ) -> Result<Option<(Place, Answer)>, End> {
        let mut body = body.to_vec();
        if let Request::Peeked = request {
            let packet = self.guest.take_command().await?;
            body = packet.get(1..).unwrap_or_default().to_vec();
        }
        // A cursor would be one of a statement that the client does not know. All rows may be sent
        // at once.
        if let Some(flags) = body.get_mut(CURSOR_FLAGS_AT) {
            *flags = 0;
        }
        let request = Request::Taken(CommandByte::STMT_EXECUTE, &body);
        let Some(statement) = self.statements.by_number.get_mut(&number) else {
            return Ok(None);
        };
        statement.note_types(Kind::Execute, &body);
        let (types, count) = (statement.types.clone(), statement.parameter_count);
        let (text, judged) = (Arc::clone(&statement.key.text), statement.judged.clone());
        let (reading, mode) = (statement.key.reading.clone(), statement.mode);
        self.collect_found_rows(plan).await;
        let words = self.in_other_words(plan, text.bytes(), mode);
        let shared = self.guest.worker.share_text(&words);
        let last = self.statements.last;
        let other = self.statements.add(shared, (&reading, mode), judged);
        if let Some(statement) = self.statements.by_number.get_mut(&other) {
            (statement.types, statement.parameter_count) = (types, count);
        }
        let answered = self.answer(plan, Job::Execute(other), request, None).await;
        self.statements.last = last;
        if let Some(statement) = self.statements.remove(other) {
            for lane in self.lanes.iter_mut().flatten() {
                lane.connection.close_statement(&statement.key).await;
            }
        }
        answered
    }
}
