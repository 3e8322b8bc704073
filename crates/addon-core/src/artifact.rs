//! Which version of ourselves is wanted, and why it is not taken yet.
//!
//! Names of images, ranges of versions, the settings that people make, and the choice that follows from all of it. Must never
//! ask a registry or a clock, and never choose anything because something is absent.

pub mod candidate;
pub mod channel;
pub mod choice;
pub mod following;
pub mod news;
pub mod platform;
pub mod policy;
pub mod range;
pub mod reference;
pub mod settings;
pub mod trial;
pub mod version;
pub mod view;
pub mod window;
