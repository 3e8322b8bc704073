//! All environment variables that configure the testbed. No other file may read one.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The folder of a running control plane. `testbed run` sets it for its command.
pub(crate) const PLANE: &str = "TESTBED_DIR";

/// The mark of all processes that a command of `testbed run` starts: the folder of the run's control plane.
pub(crate) const RUN: &str = "TESTBED_RUN";

/// A folder with binaries. The name is that of Kubernetes' own test tools.
pub(crate) const ASSETS: &str = "KUBEBUILDER_ASSETS";

/// The folder of the programs that the testbed has built.
pub(crate) const CACHE: &str = "TESTBED_CACHE";

/// The value of a variable; `None` if it is unset or empty.
fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// The value of a variable by which a person configures a campaign.
pub(crate) fn campaign(name: &str) -> Option<String> {
    variable(name).map(|text| text.to_string_lossy().into_owned())
}

/// Whether this is a build server. Build servers set this variable, and people do not.
pub(crate) fn is_build_server() -> bool {
    variable("CI").is_some()
}

pub(crate) fn plane() -> Option<PathBuf> {
    variable(PLANE).map(PathBuf::from)
}

pub(crate) fn assets() -> Option<PathBuf> {
    variable(ASSETS).map(PathBuf::from)
}

pub(crate) fn path() -> OsString {
    variable("PATH").unwrap_or_default()
}

/// `$TESTBED_CACHE`, or our folder in the cache directory of the XDG rules.
pub(crate) fn cache() -> Option<PathBuf> {
    const NAME: &str = "addon-operator-testbed";
    variable(CACHE)
        .map(PathBuf::from)
        .or_else(|| variable("XDG_CACHE_HOME").map(|folder| Path::new(&folder).join(NAME)))
        .or_else(|| env::home_dir().map(|home| home.join(".cache").join(NAME)))
}

/// `PATH` with `first` in front.
pub(crate) fn path_behind(first: &Path) -> OsString {
    let rest = path();
    let mut joined = first.as_os_str().to_owned();
    if !rest.is_empty() {
        joined.push(":");
        joined.push(rest);
    }
    joined
}
