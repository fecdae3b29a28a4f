//! Logs: text for people, JSON for machines, to stderr.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt;

use super::args::{LogArgs, LogFormat};
use super::error::Error;

/// Starts the logs of this process. Once per process: a second call is an error.
pub fn init(args: &LogArgs) -> Result<(), Error> {
    let LogArgs { log_format, log_level } = args;
    let filter = EnvFilter::try_new(log_level).map_err(|error| Error::Telemetry(error.into()))?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    match log_format {
        LogFormat::Text => builder.with_ansi(std::io::stderr().is_terminal()).finish().try_init(),
        // Fields at the top level, where log stores look for them.
        LogFormat::Json => builder
            .json()
            .flatten_event(true)
            .with_current_span(true)
            .with_span_list(false)
            .finish()
            .try_init(),
    }
    .map_err(|error| Error::Telemetry(error.into()))
}
