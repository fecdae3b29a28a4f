//! The program as a child process.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bed::{NotYet, eventually};

/// The program with these arguments, and nothing of the environment that it could take for its own.
pub fn program(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_multikueue"));
    command.args(args);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("MULTIKUEUE_")) {
        command.env_remove(name);
    }
    command
}

/// A running operator; killed when it is dropped.
pub struct Operator {
    child: Child,
    log: Arc<Mutex<Vec<String>>>,
    address: SocketAddr,
}

impl Operator {
    /// `multikueue run` with this kubeconfig and short leases, and with `HTTPS_PROXY` naming a port where nobody is.
    pub async fn start(kubeconfig: &Path, identity: &str, more: &[&str]) -> Self {
        let mut command = program(&[
            "run",
            "--namespace=multikueue-system",
            "--lease-duration=3s",
            "--lease-renew=600ms",
        ]);
        command
            .args(["--metrics-bind-address=127.0.0.1:0", "--log-format=json"])
            .args(more)
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .env("MULTIKUEUE_IDENTITY", identity)
            .env("HTTPS_PROXY", "http://127.0.0.1:9")
            .env("https_proxy", "http://127.0.0.1:9")
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let log = Arc::new(Mutex::new(Vec::new()));
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let sink = log.clone();
        std::thread::spawn(move || {
            lines
                .map_while(Result::ok)
                .for_each(|line| sink.lock().unwrap().push(line));
        });
        let reader = log.clone();
        let address = eventually(Duration::from_secs(20), "the address in the log", async || {
            let log = reader.lock().unwrap().clone();
            let found = log.iter().find_map(|line| {
                let line: serde_json::Value = serde_json::from_str(line).ok()?;
                line.get("address")?.as_str()?.parse().ok()
            });
            found.ok_or_else(|| NotYet::from(log.join("\n")))
        })
        .await
        .unwrap();
        Self { child, log, address }
    }

    /// What it logged so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().join("\n")
    }

    /// Status and body of a GET.
    pub fn get(&self, path: &str) -> std::io::Result<(u16, String)> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
        )?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let wrong = || std::io::Error::other(text.clone());
        let status = text
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .ok_or_else(wrong)?;
        let (_, body) = text.split_once("\r\n\r\n").ok_or_else(wrong)?;
        Ok((status, body.to_owned()))
    }

    /// Waits until `path` answers with this status and a body with this part.
    pub async fn answers(&self, path: &str, status: u16, part: &str) {
        let look = async || match self.get(path)? {
            (found, body) if found == status && body.contains(part) => Ok(()),
            other => Err(NotYet::from(format!("{other:?}"))),
        };
        let done = eventually(Duration::from_secs(20), path, look).await;
        done.unwrap_or_else(|error| panic!("{error}\n{}", self.log()));
    }

    /// Waits until it leads, or does not.
    pub async fn leads(&self, leads: bool) {
        self.answers("/metrics", 200, &format!("multikueue_leader {}\n", u8::from(leads)))
            .await;
    }

    /// Sends it a signal by name.
    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-s", name, &pid])
                .status()
                .unwrap()
                .success()
        );
    }

    /// Waits for its end.
    pub async fn ended(&mut self) -> ExitStatus {
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < end, "still running\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        // It is gone already where a test ended it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
