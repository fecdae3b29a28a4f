//! What can be wrong with a template.

/// Why a template cannot be dispatched. Nothing but another template mends it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The operator does not know the kind.
    #[error("spec.template is a {found}; right would be {known}")]
    UnknownKind {
        /// `apiVersion/kind` as found.
        found: String,
        /// The kinds that are known.
        known: &'static str,
    },
    /// A field is not what it must be.
    #[error("{path} is {found}; right would be {right}")]
    Invalid {
        /// Path of the field, from the `MultiKueueJob` on.
        path: String,
        /// What stands there, cut short.
        found: String,
        /// What would be accepted.
        right: String,
    },
}
