//! `/healthz`, `/readyz` and `/metrics`.

use std::future::Future;
use std::net::SocketAddr;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;

use super::args::BindAddress;
use super::error::Error;
use super::health::Health;
use super::metrics::Metrics;

/// The content type of `OpenMetrics` text.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The administrative endpoints.
pub fn router(health: Health, metrics: Metrics) -> Router {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .with_state(health)
        .merge(Router::new().route("/metrics", get(scrape)).with_state(metrics))
}

/// Listens on the first of the addresses that this machine has; none when the endpoints are switched off.
pub async fn bind(address: &BindAddress) -> Result<Option<TcpListener>, Error> {
    let mut failure = None;
    for address in address.candidates() {
        match TcpListener::bind(address).await {
            Ok(listener) => return Ok(Some(listener)),
            Err(source) => failure = Some(Error::Bind { address, source }),
        }
    }
    failure.map_or(Ok(None), Err)
}

/// Serves until `stop`.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let address: Option<SocketAddr> = listener.local_addr().ok();
    tracing::info!(
        address = address.map(tracing::field::display),
        "serving /healthz, /readyz and /metrics"
    );
    axum::serve(listener, router).with_graceful_shutdown(stop).await
}

async fn healthz(State(health): State<Health>) -> (StatusCode, String) {
    match health.stuck() {
        None => (StatusCode::OK, "ok\n".into()),
        Some(silence) => {
            let body = format!(
                "the loop of the dispatcher has not answered for {} s\n",
                silence.as_secs()
            );
            (StatusCode::INTERNAL_SERVER_ERROR, body)
        }
    }
}

async fn readyz(State(health): State<Health>) -> (StatusCode, String) {
    let unready = health.unready();
    if unready.is_empty() {
        return (StatusCode::OK, "ok\n".into());
    }
    (StatusCode::SERVICE_UNAVAILABLE, unready.join("\n") + "\n")
}

async fn scrape(State(metrics): State<Metrics>) -> impl IntoResponse {
    match metrics.encode() {
        Ok(text) => ([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(error) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("cannot encode the metrics: {error}\n"),
        )
            .into_response(),
    }
}

#[cfg(test)]
mod tests;
