//! The world of a helm child. Must never let in a variable of ours: one of them could lead it to another cluster.

use std::ffi::OsString;
use std::path::Path;

use super::{Helm, Options, plugin};

impl Helm {
    /// Everything that a helm child knows of the machine.
    pub(super) fn environment(&self, kubeconfig: Option<&Path>) -> Vec<(OsString, OsString)> {
        let Options {
            dir,
            kubeconfig: of_all,
            search_path,
            home,
            ..
        } = &self.options;
        let own = |name: &str| dir.join(name).into_os_string();
        let home = home
            .as_ref()
            .map_or_else(|| own("home"), |home| home.clone().into_os_string());
        [
            ("PATH", search_path.clone()),
            ("HOME", home),
            ("TMPDIR", dir.clone().into_os_string()),
            ("KUBECONFIG", kubeconfig.unwrap_or(of_all).into()),
            ("HELM_DRIVER", "secret".into()),
            ("HELM_CACHE_HOME", own("cache")),
            ("HELM_CONFIG_HOME", own("config")),
            ("HELM_DATA_HOME", own("data")),
            ("HELM_PLUGINS", own(plugin::DIR)),
            ("HELM_BURST_LIMIT", "300".into()),
            // A call lives for a tenth of a second: collecting garbage costs it a fifth of its processor time. The
            // limit keeps a huge chart from taking all memory; only near it does Go collect again.
            ("GOGC", "off".into()),
            ("GOMEMLIMIT", "256MiB".into()),
        ]
        .map(|(name, value)| (name.into(), value))
        .into()
    }
}
