//! Connections that break on demand: Toxiproxy between a client and an API server.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::process::Process;
use crate::programs::Program;
use crate::{http1, ports, wait};

/// The Toxiproxy of a bed.
#[derive(Debug)]
pub(crate) struct Toxiproxy {
    process: Process,
    port: u16,
}

impl Toxiproxy {
    pub(crate) async fn start(folder: &Path) -> Result<Self> {
        let program = Program::Toxiproxy.path().await?;
        let mut tries = 0;
        loop {
            let port = ports::free()?;
            let args = vec![
                "-host".to_owned(),
                "127.0.0.1".to_owned(),
                "-port".to_owned(),
                port.to_string(),
            ];
            let process = Process::new("toxiproxy", program.clone(), args, folder.join("toxiproxy.log"));
            process.start()?;
            let ready = wait::until_ready(&process, Duration::from_secs(10), || async move {
                http1::request(port, "GET", "/version".to_owned(), String::new()).await?;
                Ok(())
            });
            match ready.await {
                Ok(()) => return Ok(Self { process, port }),
                Err(Error::Exited { log, .. }) if tries < 3 && log.contains("address already in use") => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }

    pub(crate) fn process(&self) -> &Process {
        &self.process
    }

    async fn call(&self, method: &'static str, path: String, body: Value) -> Result<Value> {
        let request = format!("{method} {path} {body}");
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        match http1::request(self.port, method, path, body).await {
            Ok(answer) if (200..300).contains(&answer.status) => {
                Ok(serde_json::from_str(&answer.body).unwrap_or_default())
            }
            Ok(answer) => Err(Error::Proxy {
                request,
                status: answer.status,
                body: answer.body,
            }),
            Err(error) => Err(Error::Proxy {
                request,
                status: 0,
                body: error.to_string(),
            }),
        }
    }
}

/// A way to an API server that can be broken. Each fault replaces the one before; [`Link::heal`] ends it. Use it through
/// [`Kubeconfig::via`](crate::Kubeconfig::via).
#[derive(Clone, Debug)]
pub struct Link {
    proxy: Arc<Toxiproxy>,
    name: String,
    port: u16,
}

/// Which half of a connection a fault is in.
#[derive(Clone, Copy)]
enum Stream {
    /// Requests.
    Up,
    /// Answers.
    Down,
}

impl Link {
    pub(crate) async fn new(proxy: Arc<Toxiproxy>, name: String, to: u16) -> Result<Self> {
        let mut tries = 0;
        loop {
            let port = ports::free()?;
            let body = json!({
                "name": name, "listen": format!("127.0.0.1:{port}"), "upstream": format!("127.0.0.1:{to}"), "enabled": true,
            });
            match proxy.call("POST", "/proxies".to_owned(), body).await {
                Ok(_) => return Ok(Self { proxy, name, port }),
                Err(Error::Proxy { body, .. }) if tries < 3 && body.contains("address already in use") => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// URL of the API server through this link.
    pub fn server(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// Its port on 127.0.0.1.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Connections are closed and new ones refused, as by a host without the server.
    pub async fn refuse(&self) -> Result<()> {
        self.clear().await?;
        self.enable(false).await
    }

    /// Packets vanish both ways: connections stay open, new ones are accepted, nothing ever comes back.
    pub async fn black_hole(&self) -> Result<()> {
        let silence = json!({"timeout": 0});
        self.replace(&[
            ("timeout", Stream::Up, silence.clone()),
            ("timeout", Stream::Down, silence),
        ])
        .await
    }

    /// Requests on open connections arrive and are done, their answers vanish.
    pub async fn lose_answers(&self) -> Result<()> {
        self.replace(&[("timeout", Stream::Down, json!({"timeout": 0}))]).await
    }

    /// Every answer takes this much longer.
    pub async fn latency(&self, latency: Duration) -> Result<()> {
        self.replace(&[(
            "latency",
            Stream::Down,
            json!({"latency": millis(latency), "jitter": 0}),
        )])
        .await
    }

    /// Connections are reset (TCP RST) as soon as something is sent on them.
    pub async fn reset(&self) -> Result<()> {
        let at_once = json!({"timeout": 0});
        self.replace(&[
            ("reset_peer", Stream::Up, at_once.clone()),
            ("reset_peer", Stream::Down, at_once),
        ])
        .await
    }

    /// At most so many KiB a second each way, for each connection.
    pub async fn bandwidth(&self, kib_per_second: u32) -> Result<()> {
        let rate = json!({"rate": kib_per_second});
        self.replace(&[
            ("bandwidth", Stream::Up, rate.clone()),
            ("bandwidth", Stream::Down, rate),
        ])
        .await
    }

    /// A connection that the server closes stays open for the client so much longer.
    pub async fn slow_close(&self, delay: Duration) -> Result<()> {
        self.replace(&[("slow_close", Stream::Down, json!({"delay": millis(delay)}))])
            .await
    }

    /// Ends the fault. Connections that lost bytes to it are closed.
    pub async fn heal(&self) -> Result<()> {
        self.clear().await?;
        self.enable(true).await
    }

    async fn replace(&self, toxics: &[(&str, Stream, Value)]) -> Result<()> {
        self.heal().await?;
        for (kind, stream, attributes) in toxics {
            let stream = match stream {
                Stream::Up => "upstream",
                Stream::Down => "downstream",
            };
            let toxic =
                json!({"name": stream, "type": kind, "stream": stream, "toxicity": 1.0, "attributes": attributes});
            self.proxy
                .call("POST", format!("/proxies/{}/toxics", self.name), toxic)
                .await?;
        }
        Ok(())
    }

    async fn clear(&self) -> Result<()> {
        let toxics = self
            .proxy
            .call("GET", format!("/proxies/{}/toxics", self.name), Value::Null)
            .await?;
        for toxic in toxics.as_array().into_iter().flatten() {
            let Some(toxic) = toxic["name"].as_str() else { continue };
            self.proxy
                .call("DELETE", format!("/proxies/{}/toxics/{toxic}", self.name), Value::Null)
                .await?;
        }
        Ok(())
    }

    async fn enable(&self, enabled: bool) -> Result<()> {
        self.proxy
            .call("POST", format!("/proxies/{}", self.name), json!({"enabled": enabled}))
            .await?;
        Ok(())
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
