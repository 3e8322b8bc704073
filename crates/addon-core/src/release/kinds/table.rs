//! The kinds that Kubernetes has taken away since 1.16 or has deprecated, from the lifecycles in `k8s.io/api` 0.19 to
//! 0.37. Alpha versions that were dropped without an announcement are listed if one release had them and the next did
//! not. Must never list a kind that Kubernetes does not define.

/// Kinds of one API version with the same lifetime. Versions of Kubernetes are the numbers after `1.`.
pub(super) struct Row {
    pub(super) api_version: &'static str,
    /// The kinds, separated by spaces.
    pub(super) kinds: &'static str,
    pub(super) deprecated: u16,
    /// The first version without the kinds; `None` if Kubernetes has announced none.
    pub(super) gone: Option<u16>,
    /// The API version that has the kinds instead. If the kind has another name there, a space and that name follow.
    /// Empty if there is no such version.
    pub(super) replacement: &'static str,
}

const fn row(
    api_version: &'static str,
    kinds: &'static str,
    deprecated: u16,
    gone: u16,
    replacement: &'static str,
) -> Row {
    Row {
        api_version,
        kinds,
        deprecated,
        gone: Some(gone),
        replacement,
    }
}

const fn endless(api_version: &'static str, kinds: &'static str, deprecated: u16, replacement: &'static str) -> Row {
    Row {
        api_version,
        kinds,
        deprecated,
        gone: None,
        replacement,
    }
}

/// The groups of Kubernetes with a dot in their names.
pub(super) const OWN: [&str; 21] = [
    "admission.k8s.io",
    "admissionregistration.k8s.io",
    "apidiscovery.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "lifecycle.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

const ADMISSION: &str = "admissionregistration.k8s.io/v1";
const FLOW: &str = "flowcontrol.apiserver.k8s.io/v1";
const FLOWS: &str = "FlowSchema PriorityLevelConfiguration";
const MUTATING: &str = "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding";
const VALIDATING: &str = "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding";
const CLAIMS: &str = "DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice";

#[rustfmt::skip]
pub(super) const TABLE: &[Row] = &[
    endless("v1", "ComponentStatus", 19, ""),
    endless("v1", "Endpoints", 33, "discovery.k8s.io/v1 EndpointSlice"),
    row("admission.k8s.io/v1beta1", "AdmissionReview", 19, 22, "admission.k8s.io/v1"),
    row("admissionregistration.k8s.io/v1alpha1", MUTATING, 35, 38, ADMISSION),
    row("admissionregistration.k8s.io/v1alpha1", VALIDATING, 29, 32, ADMISSION),
    row("admissionregistration.k8s.io/v1beta1", MUTATING, 37, 40, ADMISSION),
    row("admissionregistration.k8s.io/v1beta1", VALIDATING, 31, 34, ADMISSION),
    row("admissionregistration.k8s.io/v1beta1", "MutatingWebhookConfiguration ValidatingWebhookConfiguration", 16, 22, ADMISSION),
    row("apidiscovery.k8s.io/v2beta1", "APIGroupDiscovery", 32, 35, "apidiscovery.k8s.io/v2"),
    row("apiextensions.k8s.io/v1beta1", "ConversionReview", 19, 22, "apiextensions.k8s.io/v1"),
    row("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", 16, 22, "apiextensions.k8s.io/v1"),
    row("apiregistration.k8s.io/v1beta1", "APIService", 19, 22, "apiregistration.k8s.io/v1"),
    row("apps/v1beta1", "ControllerRevision Deployment DeploymentRollback StatefulSet", 8, 16, "apps/v1"),
    row("apps/v1beta1", "Scale", 8, 16, "autoscaling/v1"),
    row("apps/v1beta2", "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet", 9, 16, "apps/v1"),
    row("apps/v1beta2", "Scale", 9, 16, "autoscaling/v1"),
    row("authentication.k8s.io/v1alpha1", "SelfSubjectReview", 29, 32, "authentication.k8s.io/v1"),
    row("authentication.k8s.io/v1beta1", "SelfSubjectReview", 30, 33, "authentication.k8s.io/v1"),
    row("authentication.k8s.io/v1beta1", "TokenReview", 19, 22, "authentication.k8s.io/v1"),
    row("authorization.k8s.io/v1beta1", "LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview", 19, 22, "authorization.k8s.io/v1"),
    row("autoscaling/v2beta1", "HorizontalPodAutoscaler", 22, 25, "autoscaling/v2"),
    row("autoscaling/v2beta2", "HorizontalPodAutoscaler", 23, 26, "autoscaling/v2"),
    row("batch/v1beta1", "CronJob", 21, 25, "batch/v1"),
    row("batch/v1beta1", "JobTemplate", 22, 25, ""),
    row("certificates.k8s.io/v1alpha1", "ClusterTrustBundle", 34, 37, "certificates.k8s.io/v1"),
    row("certificates.k8s.io/v1alpha1", "PodCertificateRequest", 35, 35, "certificates.k8s.io/v1"),
    row("certificates.k8s.io/v1beta1", "CertificateSigningRequest", 19, 22, "certificates.k8s.io/v1"),
    row("certificates.k8s.io/v1beta1", "ClusterTrustBundle PodCertificateRequest", 37, 40, "certificates.k8s.io/v1"),
    row("coordination.k8s.io/v1alpha1", "LeaseCandidate", 32, 32, "coordination.k8s.io/v1beta1"),
    row("coordination.k8s.io/v1alpha2", "LeaseCandidate", 35, 38, "coordination.k8s.io/v1beta1"),
    row("coordination.k8s.io/v1beta1", "Lease", 19, 22, "coordination.k8s.io/v1"),
    row("coordination.k8s.io/v1beta1", "LeaseCandidate", 36, 39, ""),
    row("discovery.k8s.io/v1beta1", "EndpointSlice", 21, 25, "discovery.k8s.io/v1"),
    row("events.k8s.io/v1beta1", "Event", 22, 25, "events.k8s.io/v1"),
    row("extensions/v1beta1", "DaemonSet Deployment ReplicaSet", 8, 16, "apps/v1"),
    row("extensions/v1beta1", "DeploymentRollback", 8, 16, ""),
    row("extensions/v1beta1", "Ingress", 14, 22, "networking.k8s.io/v1"),
    row("extensions/v1beta1", "NetworkPolicy", 9, 16, "networking.k8s.io/v1"),
    row("extensions/v1beta1", "PodSecurityPolicy", 11, 16, "policy/v1beta1"),
    row("extensions/v1beta1", "Scale", 2, 16, ""),
    row("flowcontrol.apiserver.k8s.io/v1alpha1", FLOWS, 20, 21, FLOW),
    row("flowcontrol.apiserver.k8s.io/v1beta1", FLOWS, 23, 26, FLOW),
    row("flowcontrol.apiserver.k8s.io/v1beta2", FLOWS, 26, 29, FLOW),
    row("flowcontrol.apiserver.k8s.io/v1beta3", FLOWS, 29, 32, FLOW),
    row("lifecycle.k8s.io/v1alpha1", "Eviction EvictionRequest", 40, 43, ""),
    row("networking.k8s.io/v1alpha1", "ClusterCIDR", 28, 29, ""),
    row("networking.k8s.io/v1alpha1", "IPAddress ServiceCIDR", 30, 34, "networking.k8s.io/v1"),
    row("networking.k8s.io/v1beta1", "IPAddress ServiceCIDR", 34, 37, "networking.k8s.io/v1"),
    row("networking.k8s.io/v1beta1", "Ingress IngressClass", 19, 22, "networking.k8s.io/v1"),
    row("node.k8s.io/v1beta1", "RuntimeClass", 22, 25, "node.k8s.io/v1"),
    row("policy/v1beta1", "Eviction", 22, 25, "policy/v1"),
    row("policy/v1beta1", "PodDisruptionBudget", 21, 25, "policy/v1"),
    row("policy/v1beta1", "PodSecurityPolicy", 21, 25, ""),
    row("rbac.authorization.k8s.io/v1beta1", "ClusterRole ClusterRoleBinding Role RoleBinding", 17, 22, "rbac.authorization.k8s.io/v1"),
    row("resource.k8s.io/v1alpha3", CLAIMS, 34, 34, "resource.k8s.io/v1"),
    row("resource.k8s.io/v1alpha3", "DeviceTaintRule", 36, 39, "resource.k8s.io/v1"),
    row("resource.k8s.io/v1alpha3", "ResourcePoolStatusRequest", 39, 42, ""),
    row("resource.k8s.io/v1beta1", CLAIMS, 35, 38, "resource.k8s.io/v1"),
    row("resource.k8s.io/v1beta2", CLAIMS, 36, 39, "resource.k8s.io/v1"),
    row("resource.k8s.io/v1beta2", "DeviceTaintRule", 39, 42, "resource.k8s.io/v1"),
    row("scheduling.k8s.io/v1beta1", "PodGroup Workload", 40, 43, ""),
    row("scheduling.k8s.io/v1beta1", "PriorityClass", 14, 22, "scheduling.k8s.io/v1"),
    row("storage.k8s.io/v1alpha1", "CSIStorageCapacity VolumeAttachment", 21, 24, "storage.k8s.io/v1"),
    row("storage.k8s.io/v1alpha1", "VolumeAttributesClass", 32, 35, "storage.k8s.io/v1"),
    row("storage.k8s.io/v1beta1", "CSIDriver StorageClass VolumeAttachment", 19, 22, "storage.k8s.io/v1"),
    row("storage.k8s.io/v1beta1", "CSINode", 17, 22, "storage.k8s.io/v1"),
    row("storage.k8s.io/v1beta1", "CSIStorageCapacity", 24, 27, "storage.k8s.io/v1"),
    row("storage.k8s.io/v1beta1", "VolumeAttributesClass", 34, 37, "storage.k8s.io/v1"),
    row("storagemigration.k8s.io/v1alpha1", "StorageVersionMigration", 33, 35, "storagemigration.k8s.io/v1"),
    row("storagemigration.k8s.io/v1beta1", "StorageVersionMigration", 37, 40, "storagemigration.k8s.io/v1"),
];
