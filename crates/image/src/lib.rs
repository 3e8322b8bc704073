//! Assembles a container image from a file that lists what goes in, without a container engine, and pushes it.
//!
//! The same inputs give the same digest: nothing in here reads a clock, keeps the order or the owners of a disk, or
//! writes a path of the machine into a layer. It must never reach the network but through apt, Go's modules and the
//! registry that somebody named. In reading order: where things stand, what stands there, which of it is wanted, where
//! packages come from, how all that becomes blobs, and how they are signed and sent.

pub mod place;

pub mod tree;

pub mod definition;

pub mod debian;

pub mod layer;

pub mod layout;

mod manifest;
pub mod papers;

pub mod crates;

pub mod assembly;

pub mod signing;

pub mod push;
