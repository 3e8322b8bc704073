//! Assembles a container image from a file that lists its contents, without a container engine, and pushes it.
//!
//! The same inputs give the same digest: no code here reads a clock, keeps the order or the owners of files on the
//! disk, or writes a path of the machine into a layer. It must never reach the network except through apt, Go's modules
//! and the registry that the caller names. The modules below are in reading order.

pub mod place;

pub mod tree;

pub mod definition;

pub mod debian;

pub mod layer;

pub mod layout;

mod manifest;
pub mod papers;

pub mod crates;

pub mod glibc;

pub mod jq;

pub mod assembly;

pub mod push;
