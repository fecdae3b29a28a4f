//! Flags and their environment twins. `--help` is the manual.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Parser, Subcommand, ValueEnum};

mod values;

pub use values::BindAddress;
use values::{duration, log_filter, namespace, origin, release};

/// Dispatches GPU jobs over many Kubernetes clusters by live free capacity.
#[derive(Debug, Clone, PartialEq, Parser)]
#[command(name = "multikueue", version, max_term_width = 120)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Subcommand)]
pub enum Command {
    /// Runs the operator until SIGTERM or SIGINT.
    Run(Box<RunArgs>),
    /// Prints the custom resource definitions as YAML.
    Crd,
}

/// Flags of `multikueue run`. Every flag can be given as an environment variable too; a flag on the command line wins.
///
/// Durations are written as Kubernetes writes them: 15s, 500ms, 1h30m.
#[derive(Debug, Clone, PartialEq, clap::Args)]
pub struct RunArgs {
    /// Kubeconfig of the manager cluster; its current context is used [default: the service account of the pod].
    #[arg(long, env = "MULTIKUEUE_KUBECONFIG", value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Namespace of the operator, with its leader lease and the Secrets of the workers [default: the namespace of the pod, or of the
    /// context of the kubeconfig].
    #[arg(long, env = "MULTIKUEUE_NAMESPACE", value_parser = namespace)]
    pub namespace: Option<String>,

    /// Name of this installation: the name of its leader lease and a part of its origin. Never change it while jobs exist.
    #[arg(long, env = "MULTIKUEUE_RELEASE", value_parser = release, default_value = "multikueue")]
    pub release: String,

    /// Marks what this manager creates on workers; never change it while jobs exist [default: the uid of the manager's kube-system
    /// namespace, a slash and --release].
    #[arg(long, env = "MULTIKUEUE_ORIGIN", value_parser = origin)]
    pub origin: Option<String>,

    /// Name of this process in the leader lease [default: $HOSTNAME, which is the name of the pod].
    #[arg(long, env = "MULTIKUEUE_IDENTITY", value_parser = origin)]
    pub identity: Option<String>,

    /// Lead only while holding the leader lease. Switch it off only where a second copy can never run.
    #[arg(
        long,
        env = "MULTIKUEUE_LEADER_ELECT",
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true"
    )]
    pub leader_elect: bool,

    /// How long the leader lease lasts without a renewal: a standby takes over this long after the leader died. Whole seconds.
    #[arg(long, env = "MULTIKUEUE_LEASE_DURATION", value_parser = duration, default_value = "15s")]
    pub lease_duration: Duration,

    /// How often the leader lease is renewed: at most half of its duration.
    #[arg(long, env = "MULTIKUEUE_LEASE_RENEW", value_parser = duration, default_value = "3s")]
    pub lease_renew: Duration,

    /// How long the lease on each worker lasts without a renewal. Whole seconds.
    #[arg(long, env = "MULTIKUEUE_WORKER_LEASE_DURATION", value_parser = duration, default_value = "60s")]
    pub worker_lease_duration: Duration,

    /// How often the lease on each worker is renewed: at most half of its duration.
    #[arg(long, env = "MULTIKUEUE_WORKER_LEASE_RENEW", value_parser = duration, default_value = "10s")]
    pub worker_lease_renew: Duration,

    /// How long an object on a worker is left running when its job on the manager is gone without a trace.
    #[arg(long, env = "MULTIKUEUE_ORPHAN_GRACE", value_parser = duration, default_value = "24h")]
    pub orphan_grace: Duration,

    /// How often every object of ours on every worker is looked at although nothing changed.
    #[arg(long, env = "MULTIKUEUE_SWEEP_INTERVAL", value_parser = duration, default_value = "10m")]
    pub sweep_interval: Duration,

    /// How long a waiting job may be passed over by smaller ones before it reserves a worker.
    #[arg(long, env = "MULTIKUEUE_BACKFILL_RESERVE_AFTER", value_parser = duration, default_value = "10m")]
    pub backfill_reserve_after: Duration,

    /// The longest time that one request to an API server may take.
    #[arg(long, env = "MULTIKUEUE_REQUEST_TIMEOUT", value_parser = duration, default_value = "10s")]
    pub request_timeout: Duration,

    /// Address of /healthz, /readyz and /metrics: :8080 for every address, 127.0.0.1:8080 for one, 0 for none.
    #[arg(
        long,
        env = "MULTIKUEUE_METRICS_BIND_ADDRESS",
        value_name = "ADDRESS",
        default_value = ":8080"
    )]
    pub metrics_bind_address: BindAddress,

    /// Logs.
    #[command(flatten)]
    pub log: LogArgs,
}

/// How to log.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct LogArgs {
    /// How a log line looks.
    #[arg(long, env = "MULTIKUEUE_LOG_FORMAT", value_enum, default_value = "text")]
    pub log_format: LogFormat,

    /// What is logged: error, warn, info, debug or trace, and by module as in `info,multikueue::clusters=debug`.
    #[arg(long, env = "MULTIKUEUE_LOG_LEVEL", value_parser = log_filter, default_value = "info")]
    pub log_level: String,
}

/// How a log line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Flags that are each right and do not go together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// `leaseDurationSeconds` of a Lease holds whole seconds.
    #[error("--{flag} is {found:?}; right are whole seconds from 1s to 1h")]
    LeaseDuration {
        /// The flag.
        flag: &'static str,
        /// What it says.
        found: Duration,
    },
    /// Too seldom to survive one failed renewal, or never.
    #[error("--{flag} is {found:?}; right is more than 0s and at most half of --{duration_flag}, {half:?}")]
    Renew {
        /// The flag.
        flag: &'static str,
        /// What it says.
        found: Duration,
        /// The flag with the duration.
        duration_flag: &'static str,
        /// Half of it.
        half: Duration,
    },
    /// Too short or too long.
    #[error("--{flag} is {found:?}; right is from {least:?} to {most:?}")]
    Range {
        /// The flag.
        flag: &'static str,
        /// What it says.
        found: Duration,
        /// The shortest.
        least: Duration,
        /// The longest.
        most: Duration,
    },
}

impl RunArgs {
    /// Checks what no single flag can know.
    pub fn validate(&self) -> Result<(), Invalid> {
        lease(
            ("lease-duration", self.lease_duration),
            ("lease-renew", self.lease_renew),
        )?;
        lease(
            ("worker-lease-duration", self.worker_lease_duration),
            ("worker-lease-renew", self.worker_lease_renew),
        )?;
        let year = Duration::from_hours(365 * 24);
        range("orphan-grace", self.orphan_grace, Duration::ZERO, year)?;
        range(
            "sweep-interval",
            self.sweep_interval,
            Duration::from_secs(1),
            Duration::from_hours(24),
        )?;
        range(
            "backfill-reserve-after",
            self.backfill_reserve_after,
            Duration::ZERO,
            year,
        )?;
        range(
            "request-timeout",
            self.request_timeout,
            Duration::from_millis(100),
            Duration::from_mins(5),
        )
    }
}

fn lease(duration: (&'static str, Duration), renew: (&'static str, Duration)) -> Result<(), Invalid> {
    let ((duration_flag, duration), (flag, found)) = (duration, renew);
    let whole = duration.subsec_nanos() == 0;
    if !whole || duration < Duration::from_secs(1) || duration > Duration::from_hours(1) {
        return Err(Invalid::LeaseDuration {
            flag: duration_flag,
            found: duration,
        });
    }
    let half = duration / 2;
    if found.is_zero() || found > half {
        return Err(Invalid::Renew {
            flag,
            found,
            duration_flag,
            half,
        });
    }
    Ok(())
}

fn range(flag: &'static str, found: Duration, least: Duration, most: Duration) -> Result<(), Invalid> {
    if (least..=most).contains(&found) {
        Ok(())
    } else {
        Err(Invalid::Range {
            flag,
            found,
            least,
            most,
        })
    }
}

#[cfg(test)]
mod tests;
