//! The health of installed objects, and the reason why a workload is not well.
//!
//! Objects of Kubernetes come in as JSON, and findings go out: a state and a sentence for people. The crate does no I/O
//! and keeps nothing. Must never panic, whatever an object contains, and never give out a text of the cluster without
//! bounding it and making it harmless.
//!
//! ```text
//!   an object, the time                      a workload, and the pods and events around it
//!        |                                        |
//!        v                                        v
//!   rule (CEL), or judge (built-in kinds,        why: one sentence with the name of the pod at fault
//!   conditions of all others)
//!        |
//!        v
//!   Finding: a state and a sentence
//! ```
//!
//! The rules for built-in kinds are those of [kstatus], as of version 0.37.2 of `sigs.k8s.io/cli-utils`. The record of
//! its answers in `tests/oracles` is a test. The differences:
//!
//! | object | kstatus | here | reason |
//! |---|---|---|---|
//! | a field of the wrong type where its type decides | an error | unknown | an answer is needed in every case |
//! | a Service of type LoadBalancer with a cluster IP and no address | current | in progress | nobody outside can reach it |
//! | a Job that has started and is not complete | current | in progress | its work is not done, and others may need it |
//! | an APIService that is not available | current | in progress | calls for its group fail; its condition `Ready` is not read |
//! | a claim for a volume that waits for its first consumer | in progress | current, by [`waits_for_consumer`] | nothing is to be done before a pod uses it |
//! | a webhook configuration whose Service has no ready endpoint | current | in progress, by [`without_endpoints`] | calls that match it fail |
//!
//! [kstatus]: https://github.com/kubernetes-sigs/cli-utils/tree/master/pkg/kstatus

#![warn(missing_docs)]

mod field;
mod finding;
mod judge;
pub mod rule;
mod text;
pub mod why;

pub use finding::{Finding, State};
pub use judge::judge;
pub use judge::outside::{ServiceName, waits_for_consumer, webhook_services, without_endpoints};
