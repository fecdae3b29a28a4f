//! When the process is told to end.

use std::future::Future;

use tokio::signal::unix::{SignalKind, signal};

use super::error::Error;

/// Listens for SIGTERM and SIGINT from now on; the future is done at the first of them.
pub fn signals() -> Result<impl Future<Output = ()>, Error> {
    let mut terminate = signal(SignalKind::terminate()).map_err(Error::Process)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Error::Process)?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => tracing::info!("SIGTERM"),
            _ = interrupt.recv() => tracing::info!("SIGINT"),
        }
    })
}
