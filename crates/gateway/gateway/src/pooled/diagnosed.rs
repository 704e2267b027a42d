//! User variables that GET DIAGNOSTICS has set.
//!
//! Only the connection with the warnings can run it, which may be one to a replica. The session is
//! pinned there while it reads on of that statement. Before any other statement the values are
//! asked for. From then on they are kept as a SET, as any other connection takes it.

use std::borrow::Cow;

use errcode::ER_UNKNOWN_ERROR;
use monitor::ServerId as Place;
use router::{Command, Judged, OF_LAST_STATEMENT, Pin, Plan, Session};
use syntax::SqlMode;
use syntax::class::{DiagnosticItem, Kind, diagnosed_variables};

use crate::connection::{Connection, NotReady};
use crate::end::End;
use crate::guest::Request;

use super::answer::Job;
use super::{Pooled, recall};

/// Variables whose values only one connection has, each once.
#[derive(Debug, Default)]
pub(super) struct Diagnosed(Vec<(Box<[u8]>, DiagnosticItem)>);

/// Most of them. With more, the session stays at its connection.
const VARIABLES_MAX: usize = 64;

impl Diagnosed {
    /// Adds the variables of a GET DIAGNOSTICS. Returns `false` if they cannot be told, or are too
    /// many.
    fn add(&mut self, text: &[u8], mode: SqlMode) -> bool {
        let Some(variables) = diagnosed_variables(text, mode) else {
            return false;
        };
        for variable in variables {
            let is_it = |it: &(Box<[u8]>, _)| *it.0 == *variable.name;
            match self.0.iter_mut().find(|it| is_it(it)) {
                Some(known) => known.1 = variable.item,
                None => self.0.push((variable.name.into(), variable.item)),
            }
        }
        self.0.len() <= VARIABLES_MAX
    }

    /// A query of the values, in ASCII.
    fn question(&self) -> Vec<u8> {
        let mut text = b"SELECT ".to_vec();
        for (index, (name, item)) in self.0.iter().enumerate() {
            let (before, behind): (&[u8], &[u8]) = match item {
                DiagnosticItem::Number => (b"", b""),
                DiagnosticItem::Text => (b"HEX(CONVERT(", b" USING utf8mb4))"),
            };
            let comma: &[u8] = if index == 0 { b"" } else { b", " };
            for part in [comma, before, name, behind] {
                text.extend_from_slice(part);
            }
        }
        text.extend_from_slice(b" LIMIT 1");
        text
    }

    /// The SET that gives the variables these values. `None` if the answer is another one.
    fn assignment(&self, values: &[Option<Vec<u8>>]) -> Option<Vec<u8>> {
        if values.len() != self.0.len() {
            return None;
        }
        let mut text = b"SET ".to_vec();
        for (index, ((name, item), value)) in self.0.iter().zip(values).enumerate() {
            let comma: &[u8] = if index == 0 { b"" } else { b", " };
            let (before, value, behind): (&[u8], &[u8], &[u8]) = match (item, value) {
                (_, None) => (b"", b"NULL", b""),
                (DiagnosticItem::Number, Some(value)) => (b"", value, b""),
                (DiagnosticItem::Text, Some(value)) => (b"_utf8mb4 X'", value, b"'"),
            };
            if value != b"NULL" && !value.iter().all(u8::is_ascii_hexdigit) {
                return None;
            }
            for part in [comma, name, b" = ", before, value, behind] {
                text.extend_from_slice(part);
            }
        }
        Some(text)
    }
}

/// Whether a statement reads on of the one before it. A write goes elsewhere, whatever it reads.
fn reads_on(judged: &Judged) -> bool {
    let verdict = &judged.verdict;
    verdict.kind != Kind::Write && verdict.facts.has_any(OF_LAST_STATEMENT)
}

impl Pooled {
    /// Whether GET DIAGNOSTICS pins the session.
    pub(super) fn is_diagnosed(&self) -> bool {
        let ties = self.ties.as_ref();
        ties.is_some_and(|it| it.diagnosed.is_some())
    }

    /// GET DIAGNOSTICS into user variables.
    pub(super) async fn diagnosing_query(&mut self, plan: Plan, mode: SqlMode) -> Result<(), End> {
        let text: Box<[u8]> = self.guest.client.link().peeked_body().0.into();
        let was_free = self.session.pins().is_empty();
        if self.multiplexes && recall::is_asked(&plan) {
            self.recalling_query(plan, mode).await?;
        } else {
            self.answer(&plan, Job::Plain, Request::Peeked, None)
                .await?;
        }
        // What else pins the session has variables of its own there.
        let is_alone = self.session.pins().is_only(Pin::UserVariable);
        if is_alone && (was_free || self.is_diagnosed()) {
            let ties = self.ties.get_or_insert_default();
            let known = ties.diagnosed.get_or_insert_default();
            if !known.add(&text, mode) {
                ties.diagnosed = None;
            }
        }
        Ok(())
    }

    /// Before a statement: frees the session from the connection with its variables, unless the
    /// statement reads on of the one before it.
    pub(super) async fn free_diagnosed(
        &mut self,
        judged: &Judged,
        mode: SqlMode,
    ) -> Result<(), End> {
        if reads_on(judged) {
            return Ok(());
        }
        let ties = self.ties.as_mut();
        let Some(diagnosed) = ties.and_then(|it| it.diagnosed.take()) else {
            return Ok(());
        };
        let is_alone = self.session.pins().is_only(Pin::UserVariable);
        let Some(place) = self.session.held_at().filter(|_| is_alone) else {
            return Ok(());
        };
        match self.ask_for_variables(place, &diagnosed).await {
            Ok(text) => {
                self.keep_command(Command::Query(text.into()), place, mode);
                self.session.unpin(Pin::UserVariable);
                Ok(())
            }
            Err(NotReady::Refused(_)) => Ok(()),
            Err(NotReady::Lost(_)) => self.survive(place),
        }
    }

    /// The session as a statement finds it.
    pub(super) fn session_before(&self, judged: &Judged) -> Cow<'_, Session> {
        let mut session = Cow::Borrowed(&self.session);
        let is_alone = session.pins().is_only(Pin::UserVariable);
        if self.is_diagnosed() && is_alone && !reads_on(judged) {
            session.to_mut().unpin(Pin::UserVariable);
        }
        session
    }

    /// The SET that gives another connection the values of these variables.
    async fn ask_for_variables(
        &mut self,
        place: Place,
        diagnosed: &Diagnosed,
    ) -> Result<Vec<u8>, NotReady> {
        if self.has_residue(place) {
            // The question takes the place of what only the connection knows.
            self.collect(place).await?;
        }
        let question = diagnosed.question();
        let asking = async |it: &mut Connection| it.ask(&question).await;
        let values = self.ask_server(place, asking).await?;
        let unknown = || NotReady::Refused(errcode::ClientError::new(ER_UNKNOWN_ERROR, &[]));
        diagnosed.assignment(&values).ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnosed(texts: &[&str]) -> Diagnosed {
        let mut diagnosed = Diagnosed::default();
        for text in texts {
            assert!(diagnosed.add(text.as_bytes(), SqlMode::default()));
        }
        diagnosed
    }

    #[test]
    fn values_become_a_set() {
        let diagnosed = diagnosed(&[
            "GET DIAGNOSTICS @n = NUMBER",
            "GET DIAGNOSTICS CONDITION 1 @t = MESSAGE_TEXT, @n = MYSQL_ERRNO, @o = CLASS_ORIGIN",
        ]);
        let question = String::from_utf8(diagnosed.question()).unwrap();
        let expected = "SELECT @n, HEX(CONVERT(@t USING utf8mb4)), \
                        HEX(CONVERT(@o USING utf8mb4)) LIMIT 1";
        assert_eq!(question, expected);
        let values = [Some(b"1054".to_vec()), Some(b"C3A4".to_vec()), None];
        let text = diagnosed.assignment(&values).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text, "SET @n = 1054, @t = _utf8mb4 X'C3A4', @o = NULL");
        assert_eq!(diagnosed.assignment(&values[1..]), None);
        let odd = [Some(b"1; DROP".to_vec()), None, None];
        assert_eq!(diagnosed.assignment(&odd), None);
    }

    #[test]
    fn what_sets_more_is_not_known() {
        let mut diagnosed = Diagnosed::default();
        assert!(!diagnosed.add(b"GET DIAGNOSTICS n = NUMBER", SqlMode::default()));
        for index in 0..=VARIABLES_MAX {
            let text = format!("GET DIAGNOSTICS @a{index} = NUMBER");
            let has_room = diagnosed.add(text.as_bytes(), SqlMode::default());
            assert_eq!(has_room, index < VARIABLES_MAX);
        }
    }
}
