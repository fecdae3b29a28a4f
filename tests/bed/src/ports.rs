//! Free ports on 127.0.0.1.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{Error, Result};

/// Below the range from which Linux takes the local ports of outgoing connections (32768 and up), so that a port stays
/// free while its server is stopped. Asking the kernel for port 0 was refused for that reason.
const FROM: u16 = 20_000;
const TO: u16 = 32_000;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A port that nobody listens on now. It may be taken before it is used: callers try again then.
pub(crate) fn free() -> Result<u16> {
    let span = u32::from(TO - FROM);
    // Test binaries run side by side: each begins elsewhere.
    let start = std::process::id().wrapping_mul(97) % span;
    for _ in 0..span {
        let offset = (start + NEXT.fetch_add(1, Ordering::Relaxed)) % span;
        let Ok(offset) = u16::try_from(offset) else { continue };
        let port = FROM + offset;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    Err(Error::NoPort { from: FROM, to: TO })
}
