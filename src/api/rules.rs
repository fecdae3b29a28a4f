//! CEL rules of our CRDs: what cannot work is refused at apply, with words that say what would.
//!
//! A rule made later must not block the operator on objects that are there already, whose status and finalizers it writes. The API
//! server excuses what an update leaves as it is only below the root, and only where every field is declared (it looks no
//! further than the first that is not). So each rule of the root and of the template begins with a way out of its own.

use kube::core::cel::{Message, Reason, Rule};

/// A rule of the root, for creates and for changes of the spec only.
fn on_spec(rule: &str) -> Rule {
    Rule::new(format!(
        "oldSelf.hasValue() && self.spec == oldSelf.value().spec || ({rule})"
    ))
    .optional_old_self(true)
}

/// A rule of a field with undeclared fields below, for creates and for changes of the field only.
fn on_field(rule: &str) -> Rule {
    Rule::new(format!("oldSelf.hasValue() && self == oldSelf.value() || ({rule})")).optional_old_self(true)
}

/// Names are fixed at create, so only a create is judged.
pub(super) fn name_is_a_dns_label() -> Rule {
    Rule::new(
        "oldSelf.hasValue() || (self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'))",
    )
    .optional_old_self(true)
    .message("metadata.name must be a DNS label of at most 63 characters (a-z, 0-9 and '-', no dots): labels and pods on the worker carry it")
}

/// The host name of an Indexed Job's pod is its name, a dash and its index; the API server of the worker refuses a Job whose highest
/// index makes that longer than a DNS label.
pub(super) fn name_leaves_room_for_the_index() -> Rule {
    on_spec(
        "!has(self.spec.template.spec.completionMode) || self.spec.template.spec.completionMode != 'Indexed' || \
         !has(self.spec.template.spec.completions) || self.spec.template.spec.completions < 1 || \
         self.metadata.name.size() + 1 + string(self.spec.template.spec.completions - 1).size() <= 63",
    )
    .message("metadata.name, a '-' and the highest index (completions - 1) must have at most 63 characters together: they are a pod's host name")
}

/// What runs is what was written when it was placed; what ran stays readable until another run is asked for.
pub(super) fn template_changes_only_between_attempts() -> Rule {
    Rule::new(
        "self.spec == oldSelf.spec || self.spec.template == oldSelf.spec.template || !has(oldSelf.status) || \
         (has(oldSelf.status.phase) && oldSelf.status.phase in ['Succeeded', 'Failed'] \
         ? has(oldSelf.status.run) && self.spec.run > oldSelf.status.run \
         : !has(oldSelf.status.assignment))",
    )
    .message(
        "spec.template may change only while no worker is assigned, or after the end together with a higher spec.run; set spec.suspend to take the job off its worker first",
    )
    .reason(Reason::FieldValueForbidden)
    .field_path(".spec.template")
}

/// A lower number would name a run that has been, and its result.
pub(super) fn run_only_grows() -> Rule {
    Rule::new("self >= oldSelf")
        .message("spec.run may only grow: raise it by one to run a finished job again")
        .reason(Reason::FieldValueForbidden)
}

/// The kinds that `workload` knows.
pub(super) fn template_kind_is_known() -> Rule {
    on_field("self.apiVersion == 'batch/v1' && self.kind == 'Job'").message(Message::Expression(
        "'the template must be one of these kinds: batch/v1 Job; it is ' + self.apiVersion + ' ' + self.kind".into(),
    ))
}

/// A Job of no pods at once would hold a place in the queue and never start.
pub(super) fn parallelism_is_positive() -> Rule {
    on_field("!has(self.spec.parallelism) || self.spec.parallelism >= 1")
        .message("parallelism must be at least 1, or the job could never start; spec.suspend of the MultiKueueJob holds a job back")
        .field_path(".spec.parallelism")
}

/// As the worker's API server would say, but before the job waits for a worker.
pub(super) fn indexed_has_completions() -> Rule {
    on_field("!has(self.spec.completionMode) || self.spec.completionMode != 'Indexed' || has(self.spec.completions)")
        .message("completionMode Indexed needs completions, the number of indexes")
        .field_path(".spec.completionMode")
        .reason(Reason::FieldValueRequired)
}

/// As for a toleration of a node's taint.
pub(super) fn toleration_is_complete() -> Rule {
    Rule::new("self.operator == 'Exists' ? !has(self.value) || self.value == '' : has(self.key) && self.key != ''")
        .message(
            "operator Exists takes no value; operator Equal needs a key (Exists without a key tolerates every taint)",
        )
}

/// Namespaces of the control plane are never used, so allowing one could not work.
pub(super) fn namespaces_are_not_kube() -> Rule {
    Rule::new("self.all(name, !name.startsWith('kube-'))")
        .message("namespaces of the control plane (kube-*) are never used for jobs; leave them out")
}
