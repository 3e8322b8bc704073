//! Packages: modules as a registry has them. Our own artifact, images without an operating system, and charts of Helm.
//!
//! A package is content from elsewhere: nothing in it may write outside of the directory that it is unpacked to, and
//! nothing of it may be larger than the limits. Must never run anything of a package.
//!
//! ```text
//!   command --> transfer --> pushing --> pack      a directory becomes an artifact
//!                        --> pulling --> layers --> unpack     an artifact, an image or a chart becomes a directory
//!           --> image   --> layers --> unpack     some directories of an image, such as those with its modules
//!           --> choice       which version packages should have, one question for each repository
//! ```
//!
//! Begin with `transfer`.

pub mod choice;
pub mod command;
pub mod image;
pub mod layers;
pub mod pack;
pub mod pulling;
pub mod pushing;
pub mod signatures;
pub mod transfer;
pub mod unpack;

use hyper::body::Bytes;
use registry::place::digest_of;
use serde_json::{Value, json};

/// The media type of a module's artifact, and of the artifact's configuration.
pub const MODULE: &str = "application/vnd.addon-operator.module.v1+json";
/// The media type of the artifact's layer: a directory's files, compressed.
pub const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// The size limit of a blob, in bytes.
pub const BLOB: usize = 64 << 20;
/// The size limit of all unpacked files together with their names, and of all blobs together, in bytes.
pub const UNPACKED: u64 = 256 << 20;
/// The size limit of all layers of an image without compression, in bytes.
pub const IMAGE: u64 = 4 << 30;
/// The largest number of entries in all layers together.
pub const ENTRIES: usize = 10_000;

/// The descriptor of a blob or a manifest: its type, digest and size in bytes.
fn described(kind: &str, bytes: &Bytes) -> Value {
    json!({ "mediaType": kind, "digest": digest_of(bytes).as_str(), "size": bytes.len() })
}
