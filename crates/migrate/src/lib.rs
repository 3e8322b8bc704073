//! The way from helm, Flux and Argo CD to the operator: reads their releases, and writes modules, a ConfigMap and the
//! commands that hand each release over, as a plan for a person.
//!
//! ```text
//!   read ──▶ outline (flux, argocd) ──▶ plan ──▶ contents (chart, values) ──▶ module ──▶ render, manifest
//!   the cluster   one line a release    names,    one release at a time        its files     the same objects?
//!                                       numbers                                     └──▶ folder: modules, ConfigMap, steps
//! ```
//!
//! Must never write to a cluster, and never hand over a release whose objects its module would render otherwise, unless
//! the person accepts it.
//!
//! Begin with [`outline`], then [`plan`].
#![expect(
    clippy::doc_markdown,
    reason = "the doc comments of flags are the text of --help, and kinds of objects have capitals"
)]

pub mod argocd;
pub mod chart;
pub mod command;
pub mod contents;
pub mod flux;
pub mod folder;
pub mod kinds;
pub mod live;
pub mod manifest;
pub mod module;
pub mod namespace;
pub mod outline;
pub mod plan;
pub mod read;
pub mod remarks;
pub mod render;
pub mod shown;
pub mod steps;
pub mod taking;
pub mod values;
