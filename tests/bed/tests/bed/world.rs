//! What the tests share.

use std::sync::Arc;
use std::time::Duration;

use bed::{BedOptions, ControlPlane, ControlPlaneOptions, Shared};

pub(crate) static BED: Shared = Shared::new(|| {
    let manager = ControlPlaneOptions::manager().audit(true);
    BedOptions::new().control_plane("manager", manager).worker("eu")
});

/// Far more than anything here takes on a busy machine.
pub(crate) const SOON: Duration = Duration::from_mins(1);

pub(crate) async fn control_plane(name: &str) -> Arc<ControlPlane> {
    BED.get().await.unwrap().control_plane(name).unwrap()
}
