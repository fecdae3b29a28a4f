//! Waiting for what others do.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use crate::error::{Error, Result};
use crate::process::Process;

/// Why something is not so yet: an error on the way, or a sentence on what was seen.
pub type NotYet = Box<dyn std::error::Error + Send + Sync>;

const PAUSE: Duration = Duration::from_millis(50);

/// Polls `check` until it answers `Ok`, at most for `timeout`. Its last `Err` is the failure's explanation, so let it say
/// what was seen: `Err(format!("phase is {phase}").into())`. A check that hangs is cut off at the deadline.
pub async fn eventually<T, F, Fut>(timeout: Duration, what: &str, mut check: F) -> Result<T>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, NotYet>>,
{
    let deadline = Instant::now() + timeout;
    let mut last = String::from("the first look did not end");
    loop {
        match tokio::time::timeout_at(deadline, check()).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(reason)) => last = chain(reason.as_ref()),
            Err(_) => {
                return Err(Error::Timeout {
                    what: what.to_owned(),
                    after: timeout,
                    last,
                });
            }
        }
        if Instant::now() + PAUSE >= deadline {
            return Err(Error::Timeout {
                what: what.to_owned(),
                after: timeout,
                last,
            });
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Checks for the whole of `period` that something stays as it is. The first `Err` is the failure.
pub async fn steadily<F, Fut>(period: Duration, what: &str, mut check: F) -> Result<()>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<(), NotYet>>,
{
    let start = Instant::now();
    loop {
        if let Err(reason) = check().await {
            return Err(Error::Timeout {
                what: format!("{what} to last"),
                after: start.elapsed(),
                last: chain(reason.as_ref()),
            });
        }
        if start.elapsed() >= period {
            return Ok(());
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Polls until a program of the bed is ready; an early end of the program is found at once.
pub(crate) async fn until_ready<F, Fut>(process: &Process, timeout: Duration, mut probe: F) -> Result<()>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<(), NotYet>>,
{
    let probed = eventually(timeout, process.name(), || {
        let probe = probe();
        async {
            if process.is_running() {
                probe.await.map(Ok)
            } else {
                Ok(Err(process.exited()))
            }
        }
    });
    match probed.await {
        Ok(outcome) => outcome,
        Err(Error::Timeout { after, last, .. }) => Err(Error::NotReady {
            program: process.name().to_owned(),
            after,
            last,
            path: process.log_path().to_owned(),
            log: process.log_tail(),
        }),
        Err(other) => Err(other),
    }
}

/// An error with its causes.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    std::iter::successors(Some(error), |error| error.source())
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_failure_says_what_was_seen_last() {
        let mut looks = 0;
        let failed = eventually::<(), _, _>(Duration::from_millis(300), "a miracle", || {
            looks += 1;
            async move { Err(format!("look {}", looks.min(3)).into()) }
        });
        assert_eq!(
            failed.await.unwrap_err().to_string(),
            "waited 300ms for a miracle, in vain; at last: look 3"
        );
    }

    #[tokio::test]
    async fn a_look_that_hangs_is_cut_off() {
        let failed = eventually::<(), _, _>(Duration::from_millis(300), "a miracle", std::future::pending);
        assert!(
            failed
                .await
                .unwrap_err()
                .to_string()
                .contains("the first look did not end")
        );
    }
}
