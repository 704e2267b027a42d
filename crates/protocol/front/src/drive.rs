//! Carries out the steps of a login on a link.

use std::sync::Arc;

use auth::Random;
use env::Clock as _;
use env::linux::SystemClock;
use link::{Limit, Link, TlsEnd};
use wire::{ProxyBytes, ProxyHeader};

use crate::accounts::AccountSource;
use crate::failure::LoginFailure;
use crate::login::{ClientInfo, LoginMachine, LoginStep};
use crate::shared::Shared;

/// Sends the greeting, and takes the header of the PROXY protocol that may come before the login.
/// As in a login, the time until `limit` stands still while something is sent.
pub(crate) async fn proxy_header(
    link: &mut Link,
    limit: &mut Limit,
) -> Result<Option<ProxyHeader>, LoginFailure> {
    let began = SystemClock.now();
    link.flush().await?;
    limit.put_off(SystemClock.now().since(began));
    loop {
        let taken = link.take_proxy_header();
        match taken.map_err(LoginFailure::MalformedHeader)? {
            ProxyBytes::Other => return Ok(None),
            ProxyBytes::Whole { header, .. } => return Ok(Some(header)),
            ProxyBytes::Incomplete => link.receive_bytes(*limit).await?,
        }
    }
}

/// Carries out the steps of a login until it is over. The time until `limit` is the client's:
/// it stands still while something is sent. Over io_uring that leaves with the end of the turn,
/// and where a turn takes long (a disk that holds the worker up) the client would have had none
/// of its time, or little.
pub(crate) async fn drive(
    link: &mut Link,
    shared: &Shared,
    machine: &mut LoginMachine,
    accounts: &dyn AccountSource,
    mut step: LoginStep,
    mut limit: Limit,
) -> Result<Box<ClientInfo>, LoginFailure> {
    loop {
        step = match step {
            LoginStep::Read => {
                link.follow_sequence();
                let began = SystemClock.now();
                link.flush().await?;
                limit.put_off(SystemClock.now().since(began));
                let packet = link.receive_packet(limit).await?;
                if accounts.can_renew() && machine.names_unknown(&packet, accounts) {
                    accounts.renew().await;
                }
                machine.packet(&packet, accounts, link.out())
            }
            LoginStep::StartTls(config) => {
                link.start_tls(TlsEnd::Server(config), &mut limit).await?;
                LoginStep::Read
            }
            LoginStep::Work(work) => {
                let source = Arc::clone(&shared.options().random);
                let run = move || work.run(&mut Random(&mut |bytes: &mut [u8]| source(bytes)));
                let worked = runtime::blocking(run).await;
                machine.worked(worked, link.out())
            }
            LoginStep::Established(info) => return Ok(info),
            LoginStep::Failed(failure) => {
                link.flush().await?;
                return Err(failure);
            }
        };
    }
}
