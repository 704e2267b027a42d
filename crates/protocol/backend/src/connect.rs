//! Connects and logs in.

use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;

use auth::Random;
use link::{InnerIds, Limit, Link, PeerRole, Resources};
use runtime::{Address, Stream};
use wire::{ProxyHeader, ProxyVersion};

use crate::error::ConnectError;
use crate::login::{AHEAD_VERDICT_ID, Login, LoginMachine, LoginStep, Protection, ServerInfo};
use crate::server::{Server, write_all};
use crate::target::{Target, TlsMode};

/// Largest packet of a login: challenges, keys and error texts are far smaller.
const LOGIN_PACKET_BYTES_MAX: usize = 64 << 10;

impl Server {
    /// Connects to a server and logs in.
    pub async fn connect(
        target: &Target,
        login: &Login,
        resources: &Rc<Resources>,
        random: &mut Random<'_>,
    ) -> Result<Server, ConnectError> {
        // Boxed: the state of a login is large, and is not to be carried along afterwards.
        let connected = Box::pin(connect(target, login, resources, random)).await;
        connected.map_err(|error| match error {
            ConnectError::Link(end) if target.proxy_header.is_some() && end.is_peer_closing() => {
                ConnectError::HeaderUnanswered(end)
            }
            other => other,
        })
    }

    /// Logs in as another user on the same connection, whose session becomes as new. Runs commands
    /// before that, and others behind it, of which each says only whether it went well. All is sent
    /// as early as it can be: where the account has a native password, that takes two round trips,
    /// and one if a server has shown before that it does not change its challenge (MariaDB).
    /// After an error the connection can only be closed. If the login is refused, those behind may
    /// have run as the old user.
    pub async fn change_user(
        &mut self,
        login: &Login,
        around: Around<'_>,
        limit: Limit,
        random: &mut Random<'_>,
    ) -> Result<(), ConnectError> {
        if !self.is_at_rest() {
            return Err(ConnectError::Link(link::Disconnect::Engaged));
        }
        let protection = match (self.info.has_tls, self.link.stream().is_local()) {
            (true, _) => Protection::Tls,
            (false, true) => Protection::UnixSocket,
            (false, false) => Protection::Plain,
        };
        write_all(&mut self.link, around.before)?;
        self.link.begin_command().map_err(link::Disconnect::from)?;
        let mut machine =
            LoginMachine::change_user(login, protection, &self.info, self.link.out())?;
        let are_sent = machine.is_answered_ahead();
        if are_sent {
            write_all(&mut self.link, around.behind)?;
        }
        if !around.before.is_empty() {
            self.link.flush().await?;
            self.receive_verdicts(around.before, limit).await?;
        }
        self.link.expect_sequence(1);
        // Until the server has let the user in, the reply to the command is not over.
        self.reply = link::Reply::new(wire::CommandByte::CHANGE_USER, self.info.capabilities);
        let mut behind = Behind {
            commands: around.behind,
            are_sent,
        };
        let off = (&TlsMode::Off, limit);
        let drive = drive(&mut self.link, &mut machine, off, &mut behind, random);
        let info = Box::pin(drive).await?;
        self.set_status(info.status);
        self.info = info;
        self.reply = link::Reply::new(wire::CommandByte::QUIT, self.info.capabilities);
        match behind.are_sent {
            true => self.receive_verdicts(around.behind, limit).await?,
            false => self.send_all(around.behind, limit).await?,
        }
        Ok(())
    }
}

/// Commands around a change of the user, each a byte and a body.
#[derive(Debug, Clone, Copy, Default)]
pub struct Around<'a> {
    /// They run as the old user.
    pub before: &'a [(u8, &'a [u8])],
    /// They run as the new one.
    pub behind: &'a [(u8, &'a [u8])],
}

/// Commands that follow a login.
struct Behind<'a> {
    commands: &'a [(u8, &'a [u8])],
    /// They were sent with the login's last packet.
    are_sent: bool,
}

async fn connect(
    target: &Target,
    login: &Login,
    resources: &Rc<Resources>,
    random: &mut Random<'_>,
) -> Result<Server, ConnectError> {
    let limit = Limit::precisely_after(target.connect_timeout);
    let connecting = runtime::timeout(target.connect_timeout, Stream::connect(&target.address));
    let stream = connecting
        .await
        .map_err(|_| ConnectError::Timeout)?
        .map_err(ConnectError::Unreachable)?;
    let protection = match (&target.tls, &target.address) {
        (TlsMode::Required(_), _) => Protection::Tls,
        (TlsMode::Off, Address::Unix(_)) => Protection::UnixSocket,
        (TlsMode::Off, Address::Tcp(_)) => Protection::Plain,
    };
    let mut link = Link::new(
        stream,
        PeerRole::Server,
        resources,
        LOGIN_PACKET_BYTES_MAX,
        target.io_timeout,
    );
    // Memory for packets is shared out by account. A server's must not be that of logins.
    link.set_account(&format!("server {}", target.address));
    if let Some(version) = target.proxy_header {
        link.send(proxy_header(version, login, &target.address))
            .await?;
    }
    let mut machine = LoginMachine::new(login, protection);
    let tls = (&target.tls, limit);
    let mut behind = Behind {
        commands: &[],
        are_sent: false,
    };
    let info = drive(&mut link, &mut machine, tls, &mut behind, random).await?;
    let packet_bytes_max = usize::try_from(login.packet_bytes_max).unwrap_or(usize::MAX);
    link.set_packet_bytes_max(packet_bytes_max);
    if let Some(method) = info.compression {
        link.start_compression(method, InnerIds::Followed);
    }
    let status = info.status;
    Ok(Server::new(link, info, status))
}

/// What tells a server whom the connection speaks for. It goes to the server in clear, also before
/// TLS. Where the client has connected to is of no use to a server: its own address stands there.
fn proxy_header(version: ProxyVersion, login: &Login, server: &Address) -> Vec<u8> {
    let header = login.client.map_or(ProxyHeader::Local, |source| {
        let destination = match server {
            Address::Tcp(address) => *address,
            Address::Unix(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        };
        ProxyHeader::Tcp {
            source,
            destination,
        }
    });
    let mut bytes = Vec::new();
    header.encode(version, &mut bytes);
    bytes
}

/// Carries out the steps of a login until the client is in.
async fn drive(
    link: &mut Link,
    machine: &mut LoginMachine<'_>,
    (tls, mut limit): (&TlsMode, Limit),
    behind: &mut Behind<'_>,
    random: &mut Random<'_>,
) -> Result<Box<ServerInfo>, ConnectError> {
    let mut step = LoginStep::Read;
    loop {
        step = match step {
            LoginStep::Read | LoginStep::ReadVerdict | LoginStep::ReadVerdictAhead => {
                if let LoginStep::ReadVerdict = step
                    && !behind.are_sent
                {
                    write_all(link, behind.commands)?;
                    behind.are_sent = true;
                }
                link.flush().await?;
                let packet = link.receive_packet(limit).await?;
                let step = machine.packet(&packet, link.out(), random)?;
                match step {
                    LoginStep::ReadVerdictAhead => link.expect_sequence(AHEAD_VERDICT_ID),
                    _ => link.follow_sequence(),
                }
                step
            }
            LoginStep::StartTls => {
                link.flush().await?;
                let TlsMode::Required(client) = tls else {
                    return Err(ConnectError::NoTls);
                };
                link.start_tls(client.end(), &mut limit).await?;
                let step = machine.tls_started(link.out())?;
                link.follow_sequence();
                step
            }
            LoginStep::Established(info) => return Ok(info),
        };
    }
}
