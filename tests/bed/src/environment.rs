//! The bed: one etcd, any number of control planes, one proxy for links between them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OnceCell;

use crate::control_plane::{ControlPlane, ControlPlaneOptions};
use crate::error::{Error, Result};
use crate::etcd::Etcd;
use crate::folder;
use crate::link::{Link, Toxiproxy};
use crate::process::Process;

/// Which control planes a bed starts with.
#[derive(Clone, Debug, Default)]
pub struct BedOptions {
    control_planes: Vec<(String, ControlPlaneOptions)>,
}

impl BedOptions {
    /// No control plane yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more control plane. Names are DNS labels.
    #[must_use]
    pub fn control_plane(mut self, name: impl Into<String>, options: ControlPlaneOptions) -> Self {
        self.control_planes.push((name.into(), options));
        self
    }

    /// One more with [`ControlPlaneOptions::manager`].
    #[must_use]
    pub fn manager(self, name: impl Into<String>) -> Self {
        self.control_plane(name, ControlPlaneOptions::manager())
    }

    /// One more with [`ControlPlaneOptions::worker`].
    #[must_use]
    pub fn worker(self, name: impl Into<String>) -> Self {
        self.control_plane(name, ControlPlaneOptions::worker())
    }
}

/// Real control planes on this machine. Dropping it ends all their programs and removes its folder (which stays if the
/// thread panics or `BED_KEEP` is set, and is then named on standard error). It has no ties to a runtime.
#[derive(Debug)]
pub struct Bed {
    etcd: Etcd,
    control_planes: Mutex<BTreeMap<String, Arc<ControlPlane>>>,
    proxy: OnceCell<Arc<Toxiproxy>>,
    links: AtomicU32,
    folder: PathBuf,
}

impl Bed {
    /// Starts etcd, then all control planes at once, and waits until they are ready: some 5 seconds, and minutes when their
    /// programs have to be built first (it says so).
    pub async fn start(options: BedOptions) -> Result<Self> {
        let folder = folder::create()?;
        let etcd = match Etcd::start(&folder).await {
            Ok(etcd) => etcd,
            Err(error) => {
                folder::remove(&folder);
                return Err(error);
            }
        };
        let bed = Self {
            etcd,
            control_planes: Mutex::default(),
            proxy: OnceCell::new(),
            links: AtomicU32::new(0),
            folder,
        };
        let starts = options
            .control_planes
            .into_iter()
            .map(|(name, options)| bed.add_control_plane(name, options));
        futures::future::try_join_all(starts).await?;
        Ok(bed)
    }

    /// Starts one more control plane and waits until it is ready.
    pub async fn add_control_plane(
        &self,
        name: impl Into<String>,
        options: ControlPlaneOptions,
    ) -> Result<Arc<ControlPlane>> {
        let name = name.into();
        let label = name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        if name.is_empty() || !label {
            return Err(Error::BadName {
                name,
                problem: "is not made of lower case letters, digits and '-'",
            });
        }
        let folder = self.folder.join(format!("cluster-{name}"));
        if folder.exists() {
            return Err(Error::BadName {
                name,
                problem: "is taken",
            });
        }
        let plane = Arc::new(ControlPlane::start(&name, folder, &self.etcd.url(), options).await?);
        self.planes().insert(name, Arc::clone(&plane));
        Ok(plane)
    }

    /// The control plane of this name.
    pub fn control_plane(&self, name: &str) -> Result<Arc<ControlPlane>> {
        let planes = self.planes();
        planes.get(name).cloned().ok_or_else(|| Error::UnknownControlPlane {
            name: name.to_owned(),
            known: planes.keys().cloned().collect(),
        })
    }

    /// A new link to the API server of a control plane, without fault.
    pub async fn link(&self, to: &ControlPlane) -> Result<Link> {
        let proxy = self
            .proxy
            .get_or_try_init(async || Toxiproxy::start(&self.folder).await.map(Arc::new))
            .await?;
        let number = self.links.fetch_add(1, Ordering::Relaxed);
        Link::new(Arc::clone(proxy), format!("{}-{number}", to.name()), to.port()).await
    }

    /// The folder of this bed: data, logs, kubeconfigs.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The etcd that keeps the objects of all control planes.
    pub fn etcd(&self) -> &Process {
        self.etcd.process()
    }

    fn planes(&self) -> MutexGuard<'_, BTreeMap<String, Arc<ControlPlane>>> {
        // Insertions are all that happens to it: it is whole even if a holder panicked.
        self.control_planes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        // Tests may still hold control planes: end their programs here, before their store goes.
        self.planes()
            .values()
            .flat_map(|plane| plane.processes())
            .for_each(Process::stop);
        if let Some(proxy) = self.proxy.get() {
            proxy.process().stop();
        }
        self.etcd.process().stop();
        folder::remove(&self.folder);
    }
}

/// A bed that all tests of a test binary share, started by the first that needs it. Its programs end with the process.
///
/// ```no_run
/// static BED: bed::Shared = bed::Shared::new(|| bed::BedOptions::new().manager("manager").worker("eu"));
///
/// # async fn test() -> Result<(), bed::Error> {
/// let manager = BED.get().await?.control_plane("manager")?;
/// let client = manager.client().await?; // a client of this test's own runtime
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Shared {
    options: fn() -> BedOptions,
    bed: OnceCell<Bed>,
}

impl Shared {
    /// A bed that is not started yet.
    pub const fn new(options: fn() -> BedOptions) -> Self {
        Self {
            options,
            bed: OnceCell::const_new(),
        }
    }

    /// The bed; the first call starts it, others wait for that.
    pub async fn get(&self) -> Result<&Bed> {
        self.bed.get_or_try_init(|| Bed::start((self.options)())).await
    }
}
