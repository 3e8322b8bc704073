//! The jq of the image, for hooks of tests: they run with the jq that they have in a cluster. The jq of an older Debian takes eight times as
//! long to start, and the hooks of one suite start it ten thousand times.
//!
//! `image jq` puts it into the cache. Must never install anything on the machine.

use std::path::PathBuf;

use crate::environment;

/// The path of the programs that hooks call.
const USUAL: &str = "/usr/bin:/bin";

/// The folder for the image's jq; none without a cache.
pub fn folder() -> Option<PathBuf> {
    Some(environment::cache()?.join("jq"))
}

/// The search path for hooks: with the image's jq, if it is there.
pub fn search_path() -> String {
    match folder() {
        Some(folder) if folder.join("jq").is_file() => format!("{}:{USUAL}", folder.display()),
        _ => USUAL.to_owned(),
    }
}
