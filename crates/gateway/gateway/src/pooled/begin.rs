//! How a session begins, and begins anew.

use std::sync::Arc;

use backend::Login;
use connection_state::{Origin, Reads};
use errcode::ClientError;
use monitor::ServerId as Place;
use router::{Goal, History, Pin, Written};
use wire::StatusFlags;

use crate::connect::{login_as, no_server};
use crate::end::End;
use crate::guest::{ChangedUser, Guest};

use super::answer::{Chooser, Unready};
use super::prepared::Statements;
use super::{OF_LOGIN, Pooled, Way};

impl Pooled {
    /// Begins the session on its first server: at its home, or on the primary, or on a replica if
    /// there is none.
    pub(super) async fn begin(&mut self) -> Result<(), ClientError> {
        let until = runtime::now() + self.wait();
        let mut failed = None;
        let mut reason = "no server is up".to_owned();
        let place = loop {
            let version = self.map_version();
            if let Some(place) = self.first_place(failed) {
                match self.make_ready(place, Reads::default()).await {
                    Ok(()) => break place,
                    Err(Unready::Failed(text)) => reason = text,
                    Err(unready) => return Err(unready.of_login()),
                }
                // Each server is tried once before the map changes or time has passed.
                if failed.replace(place).is_none() {
                    continue;
                }
            }
            let until = (until, reason.as_str());
            let waited = self.wait_for_server(version, until, failed.take()).await;
            waited.map_err(Unready::of_login)?;
        };
        self.note_begin(place);
        Ok(())
    }

    /// Where the session may begin.
    pub(super) fn first_place(&mut self, failed: Option<Place>) -> Option<Place> {
        let (worker, service) = (&self.guest.worker, self.guest.service);
        let options = match &mut self.way {
            Way::Home(home) => {
                return match failed {
                    None => home.find(worker, service, None),
                    Some(_) => home.move_away(worker, service, failed),
                };
            }
            Way::Split(options) => options,
        };
        let chooser = Chooser {
            worker,
            service,
            options,
            written: &Written::Nothing,
            failed,
        };
        worker.with_map(service, |it| chooser.choose(it, Goal::PrimaryFirst))
    }

    /// The session is as its connection to a server says, which is as after a login.
    pub(super) fn note_begin(&mut self, place: Place) {
        let status = self.lane(place).map(|lane| lane.connection.server.status());
        self.status = StatusFlags(status.unwrap_or(self.status).0 & OF_LOGIN.0);
        self.session.reset(self.status);
        self.warnings = None;
        self.locks = None;
        self.lingers_at = None;
        let collation = self.guest.client.info().collation;
        self.guest.ruled.note_collation(collation);
    }

    /// COM_RESET_CONNECTION: the session is as after its login, but for the database that it is in.
    pub(super) async fn reset(&mut self) -> Result<(), End> {
        self.guest.take_command().await?;
        self.return_to_database();
        let told = self.database.take().map(Vec::from);
        if let Some(name) = told.or_else(|| self.history.database(self.mode())) {
            let is_in_one = !name.is_empty();
            self.origin = self.guest.worker.share_origin(Origin {
                database: is_in_one.then(|| String::from_utf8_lossy(&name).into_owned()),
                ..(*self.origin).clone()
            });
        }
        self.change_history(History::reset);
        self.statements = Statements::default();
        let may_have_role = self.session.pins().has(Pin::Unknown);
        self.session.reset(self.status);
        if let Some(caching) = &mut self.caching {
            caching.begin_transaction(self.guest.worker.gateway.tables.now());
        }
        // What the session holds ends at once, on each of its servers.
        for place in self.places() {
            if let Some(lane) = self.lane(place) {
                lane.connection.state_mut().forget();
                if may_have_role {
                    lane.connection.state_mut().may_have_role();
                }
                if let Err(Unready::Session(end)) = self.make_ready(place, Reads::default()).await {
                    return Err(end);
                }
            }
        }
        match self.begin().await {
            Ok(()) => self.guest.write_ok(self.status),
            Err(error) => self.guest.write_error(&error),
        }
        Ok(())
    }

    /// COM_CHANGE_USER: the client logs in anew, and so does its connection to the primary.
    pub(super) async fn change_user(&mut self) -> Result<(), End> {
        if self.guest.change_user().await? == ChangedUser::No {
            return Ok(());
        }
        self.part_with_all();
        let options = &self.guest.generation().service(self.guest.service).options;
        self.way = Way::of(options.router, &self.guest.ruled);
        self.missing = None;
        self.change_history(History::log_in_anew);
        self.database = None;
        self.statements = Statements::default();
        let begun = match identify(&self.guest) {
            Ok((origin, pool_login)) => {
                (self.origin, self.pool_login) = (origin, pool_login);
                self.begin().await
            }
            Err(error) => Err(error),
        };
        match begun {
            Ok(()) => {
                self.guest.write_ok(self.status);
                Ok(())
            }
            Err(error) => {
                self.guest.write_error(&error);
                Err(End::Refused)
            }
        }
    }

    pub(super) fn change_history(&mut self, change: fn(&mut History)) {
        let mut history = History::clone(&self.history);
        change(&mut history);
        self.history = self.guest.worker.share_history(history);
    }
}

/// The login of a client's session to servers. It leaves out the client's connection attributes,
/// because its connections may serve other clients later.
pub(super) fn login_of(guest: &Guest, origin: &Origin) -> Result<Login, ClientError> {
    Ok(Login {
        database: origin.database.clone(),
        attributes: Vec::new(),
        ..login_as(guest.client.info())?
    })
}

/// Where the session of a client begins, and as whom it logs in to servers.
pub(super) fn identify(guest: &Guest) -> Result<(Arc<Origin>, pool::Login), ClientError> {
    let login = login_as(guest.client.info())?;
    let pool_login = guest.gateway().pool_login(&login);
    let too_many = || {
        let reason = "too many accounts or kinds of clients are known";
        no_server(&guest.worker, guest.service, reason)
    };
    let origin = guest.worker.share_origin(Origin {
        database: login.database,
        collation: login.collation,
    });
    Ok((origin, pool_login.ok_or_else(too_many)?))
}
