//! Command line tools that people use, run against a control plane.

use std::io::Write as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use crate::error::{Error, Result};
use crate::process;
use crate::programs::Program;

/// What a tool said and how it ended.
#[derive(Clone, Debug)]
pub struct Output {
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

/// Runs a tool with the admin kubeconfig of a control plane's folder. Its home is that folder too: what the user of this
/// machine has configured must not matter.
pub(crate) async fn run(program: Program, folder: &Path, args: &[&str], input: &str) -> Result<Output> {
    let folder = folder.to_owned();
    let args: Vec<String> = args.iter().map(ToString::to_string).collect();
    let input = input.to_owned();
    tokio::task::spawn_blocking(move || {
        let path = program.locate()?;
        let failed = |source| Error::Spawn {
            program: program.name().to_owned(),
            source,
        };
        let mut child = process::spawn(&path, |command| {
            command
                .args(args)
                .env("HOME", &folder)
                .env("KUBECONFIG", folder.join("admin.kubeconfig"))
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
        })
        .map_err(failed)?;
        // From a thread of its own: the tool may write much before it reads.
        let stdin = child.stdin.take();
        let writer = std::thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(input.as_bytes())));
        let output = child.wait_with_output().map_err(failed)?;
        // A tool that does not read its input closes the pipe; what it says about it is in its output.
        drop(writer.join());
        Ok(Output {
            status: output.status,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    })
    .await?
}
