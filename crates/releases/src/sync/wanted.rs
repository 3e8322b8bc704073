//! A release as the core wants it. Must never say how it is reached.

use addon_core::failure::{Class, Failure};
use addon_core::release::ConfigTrace;
use addon_core::release::returned::Unhealthy;
use addon_core::values::HookDocument;
use addon_core::values::section::Maintenance;
use addon_core::values::vetted::Vetting;

/// The release as it is wanted.
#[derive(Debug, Clone)]
pub struct Wanted<'a> {
    /// The effective values, for helm.
    pub values: &'a HookDocument,
    /// The part of `values` that the ConfigMap holds.
    pub asked: &'a HookDocument,
    /// Whether people or the operator maintain the release's objects.
    pub maintenance: Maintenance,
    /// The state of the ConfigMap from which the values were computed.
    pub config: ConfigTrace,
    /// The revision whose objects do not do their work, if the module returns from it.
    pub unhealthy: Option<Unhealthy>,
}

/// Validates the values for helm: values that violate their schema must never reach helm.
pub(super) async fn vet_for_helm(vetting: Option<Box<Vetting>>) -> Result<(), Failure> {
    let Some(vetting) = vetting else { return Ok(()) };
    let vetted = blocking::run(move || vetting.for_helm()).await;
    vetted.map_err(|unfit| Failure::of(Class::Invalid, &unfit))
}
