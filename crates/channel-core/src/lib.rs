//! Which version of the operator is wanted, and why it is not installed yet.
//!
//! This module has names of images, ranges of versions, the settings of people, and the choice that follows from all of
//! them. Must never ask a registry or a clock, and never choose a version because something is absent.

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
