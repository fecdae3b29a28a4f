//! The temporary folders of beds.

use std::fs::{self, DirBuilder};
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{Error, Result};

const PREFIX: &str = "multikueue-bed-";

/// A new folder that only this user can enter: it holds keys. Removes folders that killed processes left behind first.
pub(crate) fn create() -> Result<PathBuf> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let base = std::env::temp_dir();
    sweep(&base);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = base.join(format!("{PREFIX}{}-{number}", std::process::id()));
    DirBuilder::new()
        .mode(0o700)
        .create(&folder)
        .map_err(Error::io("create", &folder))?;
    Ok(folder)
}

/// Removes a bed's folder, unless somebody will want to read it.
pub(crate) fn remove(folder: &Path) {
    // Best effort in destructors: there is nobody to tell but the reader of standard error.
    if std::thread::panicking() || std::env::var_os("BED_KEEP").is_some() {
        let _ = writeln!(
            std::io::stderr(),
            "bed: logs and data are in {} until the next bed starts",
            folder.display()
        );
    } else if let Err(error) = fs::remove_dir_all(folder) {
        let _ = writeln!(std::io::stderr(), "bed: cannot remove {}: {error}", folder.display());
    }
}

/// Removes the folders of processes that are gone. What cannot be read or removed belongs to somebody else or is being
/// removed by another bed that starts now; either way it is not this bed's business.
fn sweep(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX))
            .and_then(|rest| rest.split('-').next());
        if let Some(owner) = owner.and_then(|owner| owner.parse::<u32>().ok())
            && !Path::new("/proc").join(owner.to_string()).exists()
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
