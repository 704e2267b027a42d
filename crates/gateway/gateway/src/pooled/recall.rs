//! Statements that read of the one before them, whose connection may be given away.

use builtin::Reach;
use connection_state::Reads;
use errcode::{ClientError, ER_NOT_SUPPORTED_YET, WORDS_SERVER_LOST};
use monitor::ServerId as Place;
use router::{Command, Goal, Plan};
use syntax::SqlMode;
use syntax::class::{Detail, Facts, classify, replace_calls};
use wire::{CommandByte, OkPacket, ResultHead, TextRow, end_columns, end_rows};

use crate::end::End;
use crate::guest::Request;
use crate::kill;

use super::Pooled;
use super::answer::Job;
use super::lane::Lane;

/// What a text may ask in other words.
pub(super) const BY_WORDS: Facts = Facts::READS_ROW_COUNT
    .with(Facts::READS_FOUND_ROWS)
    .with(Facts::READS_CONNECTION_ID)
    .with(Facts::READS_WARNINGS);

/// What may read LAST_INSERT_ID(), shown or unseen, and what may leave it or not: then the
/// connection has the session's value before.
const OF_INSERT_ID: Facts = Facts::READS_LAST_INSERT_ID
    .with(Facts::RETURNS_ROWS)
    .with(router::UNSEEN);

/// What has no answer once warnings were read from their connection.
pub(super) const OTHER_WARNINGS: &str =
    "reading warnings in another way than SHOW WARNINGS, long after their statement";

/// Whether a statement may read LAST_INSERT_ID().
pub(super) fn reads_insert_id(plan: &Plan) -> bool {
    plan.is_call || plan.is_several || plan.facts.has_any(OF_INSERT_ID)
}

/// Whether a statement reads of the one before it what a text may ask in other words, or what is
/// answered here.
pub(super) fn is_asked(plan: &Plan) -> bool {
    plan.facts.has_any(BY_WORDS)
}

impl Pooled {
    /// What a statement reads of earlier ones on its connection.
    pub(super) fn reads(&self, plan: &Plan) -> Reads {
        if !self.multiplexes {
            return Reads::default();
        }
        let recall = self.session.recall();
        let residue = recall.residue();
        let has_own = self.own_lane().is_some_and(|it| it.has_own_warnings);
        let reads_id = reads_insert_id(plan);
        // What several statements leave is asked for later, also if they leave what was there.
        let reads_warnings = plan.facts.has(Facts::READS_WARNINGS) || plan.is_several;
        Reads {
            warnings: reads_warnings && !residue.has_warnings && !has_own,
            insert_id: (reads_id && !residue.has_insert_id).then_some(recall.insert_id()),
        }
    }

    /// A text that reads of the statement before it, or the connection's number.
    pub(super) async fn recalling_query(&mut self, plan: Plan, mode: SqlMode) -> Result<(), End> {
        let packet = self.guest.take_command().await?;
        let text = packet.get(1..).unwrap_or_default();
        self.recalling_text(plan, text, mode).await
    }

    /// The same, of a command that was taken.
    pub(super) async fn recalling_text(
        &mut self,
        mut plan: Plan,
        text: &[u8],
        mode: SqlMode,
    ) -> Result<(), End> {
        // Of several statements, one reads what those before it have left.
        let is_alone = !plan.is_several;
        self.leave_last_server(&mut plan).await?;
        if is_alone && plan.facts.has(Facts::READS_WARNINGS) && self.warnings.is_some() {
            return self.tell_warnings(text);
        }
        if let Some(lost) = self.session.recall().lost(&plan).filter(|_| is_alone) {
            let error = ClientError::worded(WORDS_SERVER_LOST, &[&lost]);
            self.guest.write_error(&error);
            return Ok(());
        }
        if let Some(place) = self.session.last() {
            // If the connection is lost, the statement finds out.
            let _ = self.learn_insert_id(&plan, place).await;
        }
        self.collect_found_rows(&plan).await;
        let words = self.in_other_words(&plan, text, mode);
        if let Some(kill) = kill::find(&words) {
            self.guest.kill_by(kill, &words, self.status).await;
            return Ok(());
        }
        let request = Request::Taken(CommandByte::QUERY, &words);
        let answered = self.answer(&plan, Job::Plain, request, None).await?;
        if let Some((place, answer)) = answered
            && plan.is_kept
        {
            self.keep(Command::Query(words.into()), place, &answer, mode);
        }
        Ok(())
    }

    /// Has a statement go elsewhere that reads of the one before it, if the server of that
    /// cannot be asked any more. What only its connection knows is asked for before, since a
    /// server that an operator has taken out still answers. If it does not, the statement gets
    /// an error.
    async fn leave_last_server(&mut self, plan: &mut Plan) -> Result<(), End> {
        let Some(last) = self.session.last() else {
            return Ok(());
        };
        if self.is_lost(last) {
            // Else the statement would find a new connection, and read of that.
            self.survive(last)?;
        }
        let is_led = self.guest.current.said.get().led.is_some();
        if plan.goal != Goal::Held(last) || is_led || self.session.held_at().is_some() {
            return Ok(());
        }
        if self.choose((plan.goal, None), None).0.is_some() {
            return Ok(());
        }
        if self.has_residue(last)
            && (self.lane(last).is_none() || Box::pin(self.collect(last)).await.is_err())
        {
            return Ok(());
        }
        if self.session.held_at().is_none() {
            if let Some(lane) = self.lane(last) {
                lane.is_own = false;
            }
            plan.goal = Goal::PrimaryFirst;
        }
        Ok(())
    }

    /// Whether the connection to a server will be given up before its next use.
    fn is_lost(&mut self, place: Place) -> bool {
        let (worker, service) = (&self.guest.worker, self.guest.service);
        let id = worker.generation.server_at(service, place);
        let epoch = worker.with_state(id, |it| it.epoch);
        let lane = self.lane(place);
        lane.is_some_and(|it| it.connection.is_older(epoch) || it.connection.is_stale())
    }

    /// Asks for FOUND_ROWS() what is written into a text that will not find it. If the connection
    /// is lost, the statement finds out.
    pub(super) async fn collect_found_rows(&mut self, plan: &Plan) {
        let is_left = self.own_lane().is_some() && !self.finds_own(plan);
        if let Some(place) = self.session.last().filter(|_| is_left)
            && self.session.recall().residue().has_found_rows
        {
            let _ = Box::pin(self.collect(place)).await;
        }
    }

    /// A text with values in the place of what it asks of the connection.
    pub(super) fn in_other_words(&mut self, plan: &Plan, text: &[u8], mode: SqlMode) -> Vec<u8> {
        if let Detail::Kill(_) = classify(text, mode).detail {
            // KILL takes a bare number.
            return with_number(
                text,
                mode,
                &self.guest.client.info().connection_id.to_string(),
            );
        }
        let is_here = self.finds_own(plan);
        let recall = self.session.recall();
        replace_calls(text, mode, |reach| match reach {
            Reach::ConnectionId => Some(self.own_number()),
            // Statements without rows leave that of another session.
            Reach::FoundRows if !recall.residue().has_found_rows => recall.value(reach),
            _ if is_here => None,
            _ => recall.value(reach),
        })
    }

    /// Whether the last statement of a statement's connection will be the session's. To put the
    /// connection right would take its place.
    pub(super) fn finds_own(&mut self, plan: &Plan) -> bool {
        // One that writes goes to the primary, whichever server the one before was read from. And
        // a session may move to another home.
        let goes_on = self.choose((plan.goal, plan.lag_max), None).0 == self.session.last();
        let reads = self.reads(plan);
        let lane = self.own_lane();
        goes_on && lane.is_some_and(|it| !it.connection.state().is_read_wrongly(reads))
    }

    /// The connection whose last statement is the session's.
    fn own_lane(&self) -> Option<&Lane> {
        let place = self.session.last()?;
        let lane = self.lanes.get(usize::from(place.0))?.as_ref();
        lane.filter(|lane| lane.is_own)
    }

    /// A text with the client's number in the place of the connection's.
    pub(super) fn with_own_number(&self, text: &[u8], mode: SqlMode) -> Vec<u8> {
        with_number(text, mode, &self.own_number())
    }

    fn own_number(&self) -> String {
        let number = self.guest.client.info().connection_id;
        format!("CAST({number} AS UNSIGNED)")
    }

    /// Tells warnings that were asked for when their connection was given away.
    fn tell_warnings(&mut self, text: &[u8]) -> Result<(), End> {
        let mut words = text
            .split(u8::is_ascii_whitespace)
            .filter(|it| !it.is_empty());
        let is_word = |word: Option<&[u8]>, known: &[u8]| {
            word.is_some_and(|word| word.trim_ascii_end().eq_ignore_ascii_case(known))
        };
        let is_show = is_word(words.next(), b"SHOW");
        let last = words
            .next()
            .map(|word| word.strip_suffix(b";").unwrap_or(word));
        if !is_show || !is_word(last, b"WARNINGS") || words.next().is_some() {
            let error = ClientError::new(ER_NOT_SUPPORTED_YET, &[&OTHER_WARNINGS]);
            self.guest.write_error(&error);
            return Ok(());
        }
        let Some(warnings) = &self.warnings else {
            return Ok(());
        };
        let capabilities = self.guest.client.capabilities();
        let out = self.guest.client.out();
        let columns = warnings.columns();
        ResultHead::encode(out, capabilities, columns.len());
        columns.for_each(|it| it.encode(out, capabilities));
        end_columns(out, capabilities, self.status, 0);
        for row in &warnings.rows {
            let mut writer = TextRow::begin(out);
            for value in row {
                match value {
                    Some(value) => writer.bytes(value),
                    None => writer.null(),
                }
            }
            writer.finish();
        }
        let ok = OkPacket {
            status: self.status,
            ..OkPacket::default()
        };
        end_rows(out, capabilities, &ok);
        self.guest.client.end_reply();
        self.session.recall_mut().has_told_rows();
        Ok(())
    }
}

/// A text with `number` in the place of the connection's.
fn with_number(text: &[u8], mode: SqlMode, number: &str) -> Vec<u8> {
    let is_asked = |reach| reach == Reach::ConnectionId;
    replace_calls(text, mode, |reach| {
        is_asked(reach).then(|| number.to_owned())
    })
}
