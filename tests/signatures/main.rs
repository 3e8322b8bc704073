//! Signatures of images: those made by the real cosign, and those made by `image push`, in a real registry.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

mod pushed;
mod recorded;

use std::path::{Path, PathBuf};

use channel_core::reference::ImageDigest;
use fs_err as fs;
use registry::signatures::{KeyId, Keys};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/signatures")
}

/// The public keys of these names, in one text.
fn keys(names: &[&str]) -> Keys {
    let texts = names.iter().map(|name| {
        let file = folder().join("keys").join(format!("{name}.pub"));
        fs::read_to_string(file).unwrap()
    });
    Keys::parse(&texts.collect::<String>()).unwrap()
}

fn parsed(digest: &str) -> ImageDigest {
    ImageDigest::parse(digest).unwrap()
}

fn id(name: &str) -> KeyId {
    keys(&[name]).ids().next().unwrap().clone()
}
