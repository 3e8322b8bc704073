//! Versions of images: the one that is wanted, its trial, and the replica that leads.
//!
//! The operator follows a channel of its own image, and a channel of each module's package. This crate has the names of
//! images, ranges of versions, the settings of people, and all decisions that follow from them. Must never ask a
//! registry or a clock, and never choose a version because something is absent.
//!
//! ```text
//!   settings, policy, window (people)      answers of the registry
//!            |                                     |
//!            v                                     v
//!          choice  <---- candidate, version ---- following
//!            |
//!            v  begin this version
//!          trial  <---- sight of the cluster, reports of the version on trial
//!            |                                   leadership: one lease, one leader,
//!            v  passed, failed, unclear          entitled by the trial
//!          news, view (what people are told)
//! ```
//!
//! Begin with `choice` for the question which version comes next, and with `trial` for the way back.

pub mod candidate;
pub mod channel;
pub mod choice;
pub mod following;
pub mod footing;
pub mod leadership;
pub mod news;
pub mod platform;
pub mod policy;
pub mod range;
pub mod reference;
pub mod selection;
pub mod settings;
pub mod source;
pub mod trial;
pub mod version;
pub mod view;
pub mod window;
