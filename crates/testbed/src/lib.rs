//! A real control plane on loopback, for tests, demo and bench.
//!
//! [`plane::ControlPlane::start`] starts a control plane of your own, [`shared::plane`] gives the one that all tests of
//! this run share, and [`plane::ControlPlane::namespace`] creates a namespace for one test. Nothing is imitated: the
//! programs are etcd, Kubernetes, helm and a registry, found on the machine or built from pinned Go modules. On request
//! pods are real processes on a [`node`]. The crate knows nothing of the operator under test. It leaves no process
//! behind, however its owner ends, and listens on no address of the machine except 127.0.0.1.
//!
//! ```no_run
//! use testbed::plane::User;
//!
//! let plane = testbed::shared::plane();
//! let namespace = plane.namespace("example")?;
//! let mark = plane.audit().mark()?;
//! // Here the program under test would run, with `namespace.kubeconfig(User::Operator)`.
//! namespace.kubectl_as(User::Operator).run(["create", "configmap", "made-by-the-operator"])?;
//! let writes = plane.audit().since(mark)?.of(User::Operator).within(namespace.name()).mutating();
//! assert_eq!(writes.len(), 1, "{writes}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod shared;

pub mod plane;

pub mod namespace;

pub mod audit;

pub mod wait;

pub mod port;

pub mod proxy;

pub mod registry;

pub mod campaign;

pub mod draw;

pub mod files;

pub mod watched_helm;

pub mod jq;
pub mod kubectl;

pub mod reader;

pub mod find;

pub mod part;

mod build;

mod progress;

pub mod node;

mod space;

mod forward;

mod folder;

mod certificate;

mod environment;

pub mod process;

pub mod kin;

pub mod report;
