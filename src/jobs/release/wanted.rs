//! A release as the core wants it. Must never say how it is reached.

use addon_core::release::ConfigTrace;
use addon_core::values::HookDocument;
use addon_core::values::section::Maintenance;

/// The release as it is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The effective values, for helm.
    pub values: &'a HookDocument,
    /// The part of `values` that the ConfigMap holds.
    pub asked: &'a HookDocument,
    /// Whether people or the operator maintain the release's objects.
    pub maintenance: Maintenance,
    /// The state of the ConfigMap from which the values were computed.
    pub config: ConfigTrace,
}
