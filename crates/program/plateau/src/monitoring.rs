//! `/metrics` and `/health` over HTTP, for monitors (`metrics_listen`).

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use page::{Page, Pages, Status};
use runtime::{Address, Listener, Runtime};
use settings::Settings;

use crate::listen;

/// Binds the address of a configuration, if it has one.
pub(crate) fn bind(settings: &Settings) -> Result<Option<Listener>> {
    let text = settings.text("metrics_listen");
    if text.is_empty() {
        return Ok(None);
    }
    let address: SocketAddr = text.parse().context("an address that was not checked")?;
    let bound = Listener::bind(&Address::Tcp(address)).map_err(listen::explain)?;
    Ok(Some(bound))
}

/// Serves both pages. `ailing` says what the server cannot serve, if there is anything.
pub(crate) fn serve(
    runtime: &Runtime,
    listener: Option<Listener>,
    numbers: impl Fn() -> String + Send + Sync + 'static,
    ailing: impl Fn() -> Option<String> + Send + Sync + 'static,
) -> Result<()> {
    let Some(listener) = listener else {
        return Ok(());
    };
    let address = listener.address().to_string();
    let pages = Arc::new(Pages::new(move |path| match path {
        "/metrics" => Some(Page::new(Status::Ok, metrics::CONTENT_TYPE, numbers())),
        "/health" => Some(match ailing() {
            None => Page::text(Status::Ok, "ok\n"),
            Some(what) => Page::text(Status::Unavailable, what + "\n"),
        }),
        _ => None,
    }));
    let serve = move |stream| Arc::clone(&pages).serve(stream);
    runtime.serve(listener, serve).map_err(listen::explain)?;
    tracing::info!("numbers at http://{address}/metrics and /health");
    Ok(())
}
