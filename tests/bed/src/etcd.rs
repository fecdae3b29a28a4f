//! The one etcd of a bed: its API servers keep apart by `--etcd-prefix`.

use std::path::Path;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::process::Process;
use crate::programs::Program;
use crate::{http1, ports, wait};

#[derive(Debug)]
pub(crate) struct Etcd {
    process: Process,
    port: u16,
}

impl Etcd {
    pub(crate) async fn start(folder: &Path) -> Result<Self> {
        let program = Program::Etcd.path().await?;
        let mut tries = 0;
        loop {
            let data = folder.join(format!("etcd-{tries}"));
            let (port, peers) = (ports::free()?, ports::free()?);
            let (client_url, peer_url) = (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{peers}"));
            let args = vec![
                format!("--data-dir={}", data.display()),
                format!("--listen-client-urls={client_url}"),
                format!("--advertise-client-urls={client_url}"),
                format!("--listen-peer-urls={peer_url}"),
                format!("--initial-advertise-peer-urls={peer_url}"),
                format!("--initial-cluster=default={peer_url}"),
                // The data lives as long as the test: waiting for a disk proves nothing.
                "--unsafe-no-fsync".to_owned(),
                "--quota-backend-bytes=8589934592".to_owned(),
                "--log-level=warn".to_owned(),
            ];
            let process = Process::new("etcd", program.clone(), args, folder.join("etcd.log"));
            process.start()?;
            let ready = wait::until_ready(&process, Duration::from_secs(30), || async move {
                let health = http1::request(port, "GET", "/health".to_owned(), String::new()).await?;
                if health.status == 200 {
                    Ok(())
                } else {
                    Err(health.body.into())
                }
            });
            match ready.await {
                Ok(()) => return Ok(Self { process, port }),
                // Somebody else took one of the ports in between.
                Err(Error::Exited { log, .. }) if tries < 3 && log.contains("address already in use") => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn process(&self) -> &Process {
        &self.process
    }
}
