//! Finds a program, or builds it into the cache under a lock.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use super::{Module, Program};
use crate::error::{Error, Result};
use crate::process;

pub(super) fn locate(program: Program) -> Result<PathBuf> {
    // An empty variable is an unset one, as everywhere.
    let assets = std::env::var_os("KUBEBUILDER_ASSETS")
        .filter(|value| !value.is_empty())
        .map(PathBuf::from);
    if let Some(asset) = assets.as_ref().map(|folder| folder.join(program.name()))
        && asset.is_file()
    {
        return Ok(asset);
    }
    let module = program.module();
    let folder = cache()?.join(module.hash());
    let binary = folder.join(program.name());
    if binary.is_file() {
        return Ok(binary);
    }
    if Command::new("go").arg("version").output().is_err() {
        let program = program.name();
        return Err(match assets {
            Some(assets) => Error::NotInAssets { program, assets },
            None => Error::NoGo { program },
        });
    }
    fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
    let _lock = lock(&folder.join("lock"), program)?;
    // Another process may have built it while this one waited.
    if !binary.is_file() {
        build(program, module, &folder, &binary)?;
    }
    Ok(binary)
}

fn cache() -> Result<PathBuf> {
    let base = match std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from) {
        Some(path) if path.is_absolute() => path,
        _ => std::env::home_dir()
            .ok_or_else(|| std::io::Error::other("neither XDG_CACHE_HOME nor a home directory is known"))
            .map_err(Error::io("find the cache folder", "~/.cache"))?
            .join(".cache"),
    };
    Ok(base.join("multikueue-bed"))
}

fn lock(path: &Path, program: Program) -> Result<File> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(Error::io("open", path))?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => {
            say(&format!(
                "waiting for another process that builds {} or its like",
                program.name()
            ));
        }
        Err(TryLockError::Error(source)) => return Err(Error::io("lock", path)(source)),
    }
    file.lock().map_err(Error::io("lock", path))?;
    Ok(file)
}

fn build(program: Program, module: &Module, folder: &Path, binary: &Path) -> Result<()> {
    for (name, text) in [("go.mod", module.go_mod), ("go.sum", module.go_sum)] {
        let path = folder.join(name);
        fs::write(&path, text).map_err(Error::io("write", &path))?;
    }
    say(&format!(
        "building {} (once; about {} on two cores if nothing is cached)",
        program.name(),
        program.usual_build()
    ));
    let started = Instant::now();
    let log = folder.join(format!("{}.build.log", program.name()));
    let output = File::create(&log).map_err(Error::io("create", &log))?;
    let errors = output.try_clone().map_err(Error::io("create", &log))?;
    let unfinished = folder.join(format!(".{}.unfinished", program.name()));
    // Builds yield to whatever else the machine does.
    let mut child = process::spawn(Path::new("nice"), |command| {
        command
            .args([
                "go",
                "build",
                "-mod=readonly",
                "-trimpath",
                "-ldflags",
                module.ldflags,
                "-o",
            ])
            .arg(&unfinished)
            .arg(program.package())
            .current_dir(folder)
            .env("CGO_ENABLED", "0")
            .env("GOWORK", "off")
            .stdout(output)
            .stderr(errors);
    })
    .map_err(|source| Error::Spawn {
        program: format!("go build of {}", program.name()),
        source,
    })?;
    let status = child
        .wait()
        .map_err(Error::io("wait for the build that writes", &unfinished))?;
    if !status.success() {
        return Err(Error::Build {
            program: program.name(),
            status,
            log: process::tail(&log),
        });
    }
    fs::rename(&unfinished, binary).map_err(Error::io("move into the cache", binary))?;
    say(&format!(
        "built {} of module {} in {} s",
        program.name(),
        module.name,
        started.elapsed().as_secs()
    ));
    Ok(())
}

/// Tells a person who waits. Writes past the capture of test output, which only takes what the print macros say.
fn say(message: &str) {
    // Nobody reads it if standard error is closed; the build goes on.
    let _ = writeln!(std::io::stderr(), "bed: {message}");
}
