//! Types of flag values, each with the error that tells what would be right.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use tracing_subscriber::EnvFilter;

/// Parses a duration as Kubernetes writes them: `15s`, `500ms`, `1h30m`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let parsed = kube::core::Duration::from_str(text)
        .map_err(|_| format!("{text:?} is no duration; right are 15s, 500ms or 1h30m"))?;
    if parsed.is_negative() {
        return Err(format!("{text:?} is negative"));
    }
    Ok(parsed.into())
}

/// Parses a DNS label of at most 53 characters, which is what Helm allows as the name of a release.
pub fn release(text: &str) -> Result<String, String> {
    dns_label(text, 53)
}

/// Parses the name of a namespace.
pub fn namespace(text: &str) -> Result<String, String> {
    dns_label(text, 63)
}

fn dns_label(text: &str, longest: usize) -> Result<String, String> {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let bounded = !text.starts_with('-') && !text.ends_with('-');
    if text.is_empty() || text.len() > longest || !text.chars().all(inner) || !bounded {
        return Err(format!(
            "{text:?} is no DNS label: 1 to {longest} of a-z, 0-9 and '-', which neither starts nor ends with '-'"
        ));
    }
    Ok(text.to_owned())
}

/// Parses a text that is written into annotations and compared exactly.
pub fn origin(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > 253 || !text.chars().all(|c| c.is_ascii_graphic()) {
        return Err(format!(
            "{text:?} is no origin: 1 to 253 printable ASCII characters without spaces"
        ));
    }
    Ok(text.to_owned())
}

/// Parses a filter of log lines.
pub fn log_filter(text: &str) -> Result<String, String> {
    match EnvFilter::try_new(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(format!(
            "{error}; right are info, debug or info,multikueue::clusters=debug"
        )),
    }
}

/// Where to listen: `:8080` (every address), `127.0.0.1:8080`, `[::1]:8080`, or `0` for nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BindAddress {
    /// Nowhere.
    Off,
    /// Every address of this machine, of both families where it has them.
    Any(u16),
    /// One address.
    One(SocketAddr),
}

impl BindAddress {
    /// What to try, in this order: a machine without IPv6 refuses the first of `Any`.
    pub fn candidates(&self) -> Vec<SocketAddr> {
        match *self {
            Self::Off => Vec::new(),
            Self::Any(port) => vec![
                SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port),
                SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port),
            ],
            Self::One(address) => vec![address],
        }
    }
}

impl FromStr for BindAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no address; right are :8080, 127.0.0.1:8080, [::1]:8080, or 0 for none");
        if text == "0" {
            return Ok(Self::Off);
        }
        if let Some(port) = text.strip_prefix(':') {
            return port.parse().map(Self::Any).map_err(|_| wrong());
        }
        text.parse().map(Self::One).map_err(|_| wrong())
    }
}

impl fmt::Display for BindAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("0"),
            Self::Any(port) => write!(f, ":{port}"),
            Self::One(address) => address.fmt(f),
        }
    }
}
