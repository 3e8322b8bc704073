//! The environment of a helm child. Must never pass on a variable of the operator's own, because it could lead helm to
//! another cluster.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::{Helm, Options, plugin};

/// A language in which helm has few texts. When helm begins, it unpacks all texts of kubectl in the language of its
/// environment, or in English. The English texts take a third of the processor time until helm's first request. In this
/// language there are seven texts: summaries of kubectl's own commands, which helm does not have. Helm's errors are in
/// English in all languages.
const LANGUAGE: &str = "fr_FR.UTF-8";

impl Helm {
    /// The whole environment of a helm child: variables of the module's source, and the operator's, which take
    /// precedence.
    pub(super) fn environment(
        &self,
        kubeconfig: Option<&Path>,
        of_source: &[(OsString, OsString)],
    ) -> Vec<(OsString, OsString)> {
        let Options {
            dir,
            kubeconfig: of_all,
            search_path,
            home,
            ..
        } = &self.options;
        let own = |name: &str| dir.join(name).into_os_string();
        // A credential plugin may speak this language, or complain that the machine lacks it.
        let language = home.is_none().then(|| ("LC_MESSAGES".into(), LANGUAGE.into()));
        let home = home
            .as_ref()
            .map_or_else(|| own("home"), |home| home.clone().into_os_string());
        let of_source = of_source.iter().filter(|(name, _)| !steers(name)).cloned();
        let ours = [
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
            // A call lasts a tenth of a second, and garbage collection would use a fifth of its processor time. Only
            // near the memory limit, which a huge chart may reach, Go collects garbage again.
            ("GOGC", "off".into()),
            ("GOMEMLIMIT", "256MiB".into()),
        ]
        .map(|(name, value)| (name.into(), value));
        of_source.chain(ours).chain(language).collect()
    }
}

/// Whether a variable may lead helm to another cluster or to other rights.
fn steers(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(b"HELM_") || name.starts_with(b"KUBE")
}
