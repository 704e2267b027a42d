//! Connects a session to a server of its service.

use std::error::Error as _;

use backend::{ConnectError, Login, Server};
use errcode::{ClientError, Retry, WORDS_FOREIGN_PLUGIN, WORDS_NO_SERVER};
use front::ClientInfo;
use link::Agreed;
use wire::Capabilities;

use crate::gateway::ServerPlace;
use crate::options::ServiceId;
use crate::worker::Worker;

/// A session's connection to a server.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) server: Server,
    pub(crate) agreed: Agreed,
    pub(crate) place: ServerPlace,
}

/// Beyond what a client can do, the gateway wants to see how replies end, and what they change.
const OWN: Capabilities =
    Capabilities(Capabilities::DEPRECATE_EOF.0 | Capabilities::SESSION_TRACK.0);

/// What is between a client and the gateway alone.
const OF_THE_CONNECTION: Capabilities =
    Capabilities(Capabilities::SSL.0 | Capabilities::COMPRESS.0 | Capabilities::ZSTD_COMPRESSION.0);

/// Connects to the first server of a service that can be reached. An error is what its client is
/// told.
pub(crate) async fn connect(
    worker: &Worker,
    service: ServiceId,
    info: &ClientInfo,
) -> Result<Held, ClientError> {
    let login = login_as(info)?;
    let mut reason = "it has none".to_owned();
    for id in worker.gateway.candidates(service) {
        let place = worker.gateway.take_place(id);
        let options = &place.server().options;
        let error = match worker.connect(&options.target, &login).await {
            Ok(server) => match server.agreed_with(info.capabilities) {
                Ok(agreed) => {
                    return Ok(Held {
                        server,
                        agreed,
                        place,
                    });
                }
                Err(unlike) => unlike.to_string(),
            },
            Err(ConnectError::Refused(error)) if error.retry == Retry::Never => return Err(error),
            Err(error) => with_causes(&error),
        };
        let server = &*options.name;
        tracing::warn!(server, %error, "a client could not be connected to a server");
        reason = format!("{server}: {error}");
    }
    let name = &worker.gateway.service(service).options.name;
    Err(ClientError::worded(WORDS_NO_SERVER, &[name, &reason]))
}

/// An error with what has caused it, in one line.
pub(crate) fn with_causes(error: &ConnectError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// What logs in to servers as a client.
pub(crate) fn login_as(info: &ClientInfo) -> Result<Login, ClientError> {
    let Some(secret) = &info.secret else {
        // The only method here whose proof says nothing about the password.
        let plugin = "ed25519";
        return Err(ClientError::worded(
            WORDS_FOREIGN_PLUGIN,
            &[&info.user, &plugin],
        ));
    };
    Ok(Login {
        database: info.database.clone(),
        capabilities: info.capabilities & !OF_THE_CONNECTION | OWN,
        collation: u8::try_from(info.collation & 0xff).expect("masked to eight bits"),
        // Not the client's limit on packets: many say 0, and mean that they take any.
        attributes: info.encoded_attributes().to_vec(),
        ..Login::new(info.user.clone(), (**secret).clone())
    })
}
