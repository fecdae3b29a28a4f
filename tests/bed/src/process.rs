//! Child processes that cannot outlive the process that started them.
//!
//! The kernel ends them: each child is started through `setpriv --pdeathsig KILL` (util-linux), which asks for `SIGKILL`
//! at the death of its parent and then becomes the program, with the same process id. This holds for a panic, for
//! `exit`, for Ctrl-C and for `kill -9` alike. Refused alternatives: `pre_exec` with `prctl` is unsafe code; a helper
//! binary that watches a pipe is not at hand in the test binaries of other packages; `Drop` alone misses statics,
//! signals and `abort`. The kernel sends that signal at the death of the *thread* that forked, so one thread that lives
//! as long as the process starts all children. (A parent killed between the fork and `prctl`, a millisecond, would leave one behind.)

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use rustix::process::{Pid, Signal};

use crate::error::{Error, Result};

type Order = (Command, mpsc::Sender<std::io::Result<Child>>);

static SPAWNER: LazyLock<mpsc::Sender<Order>> = LazyLock::new(|| {
    let (orders, inbox) = mpsc::channel::<Order>();
    std::thread::spawn(move || {
        for (mut command, answer) in inbox {
            // The one who asked may be gone; the child then goes with it.
            if let Err(mpsc::SendError(Ok(mut child))) = answer.send(command.spawn()) {
                end(&mut child);
            }
        }
    });
    orders
});

/// Starts `program` with `args` such that it dies with this process. Its own process group keeps a terminal's Ctrl-C
/// from reaching it before its parent.
pub(crate) fn spawn(program: &Path, configure: impl FnOnce(&mut Command)) -> std::io::Result<Child> {
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", "KILL", "--"])
        .arg(program)
        .process_group(0)
        .stdin(Stdio::null());
    configure(&mut command);
    let (answer, inbox) = mpsc::channel();
    let gone = |_| std::io::Error::other("the thread that starts processes is gone");
    SPAWNER.send((command, answer)).map_err(|_| gone(mpsc::RecvError))?;
    inbox.recv().map_err(gone)?.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => std::io::Error::new(
            error.kind(),
            "`setpriv` of util-linux is needed, and is not on the PATH",
        ),
        _ => error,
    })
}

/// One program of the bed with its arguments; it can be stopped and started again.
#[derive(Debug)]
pub struct Process {
    name: String,
    program: PathBuf,
    args: Vec<String>,
    log: PathBuf,
    child: Mutex<Option<Child>>,
}

impl Process {
    /// A program that is not started yet, and the file for what it says. `name` is for messages.
    pub fn new(name: impl Into<String>, program: PathBuf, args: Vec<String>, log: PathBuf) -> Self {
        Self {
            name: name.into(),
            program,
            args,
            log,
            child: Mutex::new(None),
        }
    }

    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        // The value is whole even if a holder panicked: it is only ever replaced.
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts it; does nothing while it runs. Returns before it is ready.
    pub fn start(&self) -> Result<()> {
        let mut child = self.child();
        if let Some(running) = child.as_mut()
            && matches!(running.try_wait(), Ok(None))
        {
            return Ok(());
        }
        let log = OpenOptions::new().create(true).append(true).open(&self.log);
        let log = log.map_err(Error::io("open the log", &self.log))?;
        let errors = log.try_clone().map_err(Error::io("open the log", &self.log))?;
        let started = spawn(&self.program, |command| {
            command.args(&self.args).stdout(log).stderr(errors);
        });
        *child = Some(started.map_err(|source| Error::Spawn {
            program: self.name.clone(),
            source,
        })?);
        Ok(())
    }

    /// Ends it at once (`SIGKILL`): outages are crashes, and a graceful end would wait for open watches.
    pub fn stop(&self) {
        if let Some(mut child) = self.child().take() {
            end(&mut child);
        }
    }

    /// Freezes it (`SIGSTOP`): its connections stay open and nobody answers on them. Returns once all its threads have
    /// stopped, which on a busy machine is some time after the signal. Fails if it does not run.
    pub fn pause(&self) -> Result<()> {
        self.signal(Signal::STOP)?;
        while let Some(pid) = self.pid() {
            if is_stopped(pid) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Err(self.exited())
    }

    /// Lets a frozen process go on (`SIGCONT`). Fails if it does not run.
    pub fn resume(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    /// Asks it to end (`SIGTERM`); does not wait. Fails if it does not run.
    pub fn terminate(&self) -> Result<()> {
        self.signal(Signal::TERM)
    }

    /// How it ended, once it has ended by itself.
    pub fn exit_status(&self) -> Option<ExitStatus> {
        self.child().as_mut()?.try_wait().ok().flatten()
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let child = self.child();
        let pid = child
            .as_ref()
            .and_then(|child| i32::try_from(child.id()).ok())
            .and_then(Pid::from_raw);
        let sent = pid.map_or(Err(rustix::io::Errno::SRCH), |pid| {
            rustix::process::kill_process(pid, signal)
        });
        sent.map_err(|source| Error::Spawn {
            program: format!("signal {signal:?} to {}", self.name),
            source: source.into(),
        })
    }

    /// Its process id, while it runs.
    pub fn pid(&self) -> Option<u32> {
        let mut child = self.child();
        let running = child.as_mut()?;
        matches!(running.try_wait(), Ok(None)).then(|| running.id())
    }

    /// Whether it runs (a frozen one does).
    pub fn is_running(&self) -> bool {
        self.pid().is_some()
    }

    /// Its log file: standard output and error of all its starts.
    pub fn log_path(&self) -> &Path {
        &self.log
    }

    /// The last lines of its log.
    pub fn log_tail(&self) -> String {
        tail(&self.log)
    }

    /// The name for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The error that says it ended, with the end of its log.
    pub(crate) fn exited(&self) -> Error {
        Error::Exited {
            program: self.name.clone(),
            path: self.log.clone(),
            log: self.log_tail(),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Whether no thread of a process can run; not sure while one of them is ending.
fn is_stopped(pid: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return false;
    };
    threads.flatten().all(|thread| {
        fs::read_to_string(thread.path().join("status"))
            .is_ok_and(|status| status.lines().any(|line| line.starts_with("State:\tT")))
    })
}

/// Kills and reaps a child. Both fail only for a child that is gone already, which is what is wanted.
fn end(child: &mut Child) -> Option<ExitStatus> {
    let _ = child.kill();
    child.wait().ok()
}

/// The last 4 KiB of a text file from a line's beginning, or why it cannot be read.
pub(crate) fn tail(path: &Path) -> String {
    const SIZE: u64 = 4096;
    let read = || -> std::io::Result<String> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(SIZE)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Ok(match text.split_once('\n') {
            Some((_, rest)) if length > SIZE => rest.to_owned(),
            _ => text,
        })
    };
    read().unwrap_or_else(|error| format!("(cannot be read: {error})"))
}
