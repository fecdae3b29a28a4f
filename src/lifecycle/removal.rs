//! The one way to remove a mirror (design 5.3).

use super::nonce::Wrote;
use super::view::MirrorView;

/// The next step of a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// DELETE with preconditions uid and resourceVersion, background propagation.
    Delete,
    /// Merge patch `suspend: true` with uid, resourceVersion and a new nonce.
    Suspend,
    /// Nothing to send; a change of the mirror brings the next step.
    Wait(Awaited),
}

/// What a removal waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    /// The object is being deleted already.
    Deletion,
    /// Its controller has not acknowledged the release yet. A stop now would overtake the start, and pods appear after the object is gone.
    StartAcknowledged,
    /// Its pods are still there.
    Pods,
}

/// The next step to remove `mirror`.
///
/// Never awake, or finished with no live pod: delete. Awake: wait until its controller acknowledged the release, suspend, wait for suspended with no pod left,
/// delete. Foreground deletion is refused as an alternative: the pods that it deletes count as failures of the Job, which then shows a result that is none.
pub fn removal(mirror: &MirrorView) -> Removal {
    let state = &mirror.state;
    let no_pods = state.active == 0 && state.terminating == 0;
    if mirror.deleting {
        Removal::Wait(Awaited::Deletion)
    } else if state.terminal.is_some() {
        if no_pods {
            Removal::Delete
        } else {
            Removal::Wait(Awaited::Pods)
        }
    } else if !state.asleep {
        if state.start_acknowledged {
            Removal::Suspend
        } else {
            Removal::Wait(Awaited::StartAcknowledged)
        }
    } else if no_pods && (never_awake(mirror) || state.suspend_acknowledged) {
        Removal::Delete
    } else {
        Removal::Wait(Awaited::Pods)
    }
}

/// True when nothing has ever run under this object: asleep since its creation, as its nonce says.
pub fn never_awake(mirror: &MirrorView) -> bool {
    mirror.state.asleep && mirror.state.start_time.is_none() && Wrote::of(&mirror.nonce) == Some(Wrote::Creation)
}
