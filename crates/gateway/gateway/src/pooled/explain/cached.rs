//! What a statement has to do with caches of results, found by what statements go by
//! (`caching.rs`). Nothing is counted, and nothing is kept.

use std::sync::Arc;

use result_cache::{Glimpse, Tables};
use router::{Decision, Judged};
use syntax::SqlMode;

use crate::explain::{Cached, Has, Then, Unasked};
use crate::options::{ServiceId, Trust};
use crate::worker::Worker;

use super::super::caching::{Asked, append_text, asked, asked_unread, is_select, vouched};
use super::super::guide::{Guided, Guides};
use super::super::locks::OF_LOCKS;
use super::super::{Pooled, recall};
use super::Newcomer;

/// What is said about a statement beside its way, as `guide` would find it.
fn guided(guides: &Guides<'_>, text: &[u8], decisions: &[Decision]) -> Guided {
    let ruling = Decision::sum(decisions);
    let hint = guides.guidance(text, Some(&ruling)).hint;
    Guided {
        time_max: None,
        is_hinted: hint.is_some(),
        cache: ruling.cache,
    }
}

/// Of the first statement of a session that begins: whether the cache has its result, the session
/// decides.
pub(super) fn of_newcomer(
    (worker, newcomer): (&Worker, &Newcomer<'_>),
    guides: &Guides<'_>,
    (text, judged, decisions): (&[u8], &Judged, &[Decision]),
) -> Cached {
    let known = worker.generation.service(newcomer.service);
    if !known.options.multiplexes {
        return Cached::No(Unasked::OwnConnection);
    }
    let here: (&Worker, ServiceId) = (worker, newcomer.service);
    let guided = guided(guides, text, decisions);
    let read = (judged, SqlMode::default());
    let ruled = newcomer.ruled;
    let asked = asked(here, read, &guided, |cache, key| {
        append_text(ruled, text, cache.options.trust, key)
    });
    match asked {
        Err(why) => Cached::No(why),
        Ok(asked) => Cached::Asked {
            name: Arc::clone(&asked.cache.options.name),
            has: Has::Unknown,
            then: match tables_of(worker, &asked) {
                None => Then::Kept,
                Some(tables) => match tables.begin_query(&asked.names, runtime::now()) {
                    Ok(_) => Then::Kept,
                    Err(why) => Then::Not(why),
                },
            },
        },
    }
}

/// The tables whose changes make what a cache has void.
fn tables_of<'a>(worker: &'a Worker, asked: &Asked) -> Option<&'a Tables> {
    let is_verified = asked.cache.options.trust == Trust::Verified;
    is_verified.then_some(&*worker.gateway.tables)
}

impl Pooled {
    /// Of the session's next statement.
    pub(super) fn cached(
        &mut self,
        (text, mode): (&[u8], SqlMode),
        judged: &Judged,
        decisions: &[Decision],
    ) -> Cached {
        let asked = match self.asked_of(text, mode, judged, decisions) {
            Ok(asked) => asked,
            Err(why) => return Cached::No(why),
        };
        let scope = match self.admitted() {
            Ok(scope) => scope,
            Err(why) => return Cached::No(why),
        };
        let worker = &self.guest.worker;
        if !self.follows_enough(&asked.cache.options) {
            return Cached::No(Unasked::LogUnread);
        }
        let tables = tables_of(worker, &asked);
        if tables.is_some()
            && let Err(why) = self.check_snapshot(&asked.names)
        {
            return Cached::No(why);
        }
        let has_snapshot = self.caching.as_ref().is_some_and(|it| it.has_snapshot);
        let now = runtime::now();
        let has = match tables.is_some() && self.is_inside() && !has_snapshot {
            true => Has::First,
            false => {
                let part = asked.cache.part(worker.index);
                let key = worker.key_room.borrow();
                match part.glimpse(&part.query(&scope, &key), tables, now) {
                    Glimpse::Reply => Has::Result,
                    Glimpse::Old => Has::Old,
                    Glimpse::Nothing => Has::Nothing,
                }
            }
        };
        let facts = judged.verdict.facts;
        let is_of_last = self.multiplexes && facts.has_any(recall::BY_WORDS);
        let then = match tables {
            None if is_of_last => Then::Never("it reads of the statement before it"),
            None if facts.has_any(OF_LOCKS) => Then::Never("it takes or frees user locks"),
            None if judged.verdict.is_several => Then::Never("it is several statements"),
            None => Then::Kept,
            Some(tables) => match tables.begin_query(&asked.names, now) {
                Ok(_) => Then::From(self.current_places(&asked.cache.options)),
                Err(why) => Then::Not(why),
            },
        };
        Cached::Asked {
            name: Arc::clone(&asked.cache.options.name),
            has,
            then,
        }
    }

    /// What a cache is asked for the statement.
    fn asked_of(
        &self,
        text: &[u8],
        mode: SqlMode,
        judged: &Judged,
        decisions: &[Decision],
    ) -> Result<Asked, Unasked> {
        let guest = &self.guest;
        if self.caching.is_some()
            && is_select(text)
            && let Some(cache) = vouched(guest)
        {
            let here = (&*guest.worker, &guest.ruled);
            return Ok(asked_unread(here, cache, (text, mode)));
        }
        let guides = Guides::of(&self.session, guest);
        let guided = guided(&guides, text, decisions);
        let here = (&*guest.worker, guest.service);
        asked(here, (judged, mode), &guided, |cache, key| {
            append_text(&guest.ruled, text, cache.options.trust, key)
        })
    }
}
