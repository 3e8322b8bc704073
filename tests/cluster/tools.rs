//! The tools of all jobs, made of real parts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use addon_core::module::description::Restoring;
use addon_operator::dispatch::Tools;
use certificates::tls::Tls;
use helm::{Helm, Options};
use jobs::Ground;
use kube_access::Cluster;
use releases::drift::Restored;
use releases::drift::lookout::{self, Lookout};
use releases::interception;
use releases::sync::holds::Holds;
use report::secrets::Secrets;
use settings::TmpFiles;
use tokio::sync::{mpsc, watch};
use webhooks::configurations::ensure::{Side, Source, Webhooks};

use super::hook_tools;

/// The folders and settings of the tools, which differ between tests.
pub(crate) struct Place<'a> {
    /// The folder with `modules` and `global-hooks`. Temporary files of child processes go to `tmp`.
    pub(crate) dir: &'a Path,
    pub(crate) namespace: &'a str,
    pub(crate) kubeconfig: PathBuf,
    pub(crate) helm: PathBuf,
    pub(crate) helm_timeout: Duration,
    pub(crate) post_renderer: PathBuf,
}

/// New tools, which remember nothing of earlier ones, and whose lookout reverts nothing.
pub(crate) async fn tools(place: &Place<'_>) -> Arc<Tools> {
    let hooks = hook_tools::tools(hook_tools::Place {
        dir: place.dir,
        tmp_files: TmpFiles::Kept,
        namespace: place.namespace,
        kubeconfig: place.kubeconfig.clone(),
        environment: &[],
        remedies: interception::remedies,
    })
    .await;
    let ground = Arc::clone(&hooks.ground);
    let looking = lookout::Settings {
        labels: BTreeMap::new(),
        helm_timeout: place.helm_timeout,
        catalogue: ground.catalogue.subscribe(),
        secrets: Secrets::default(),
        restored: Restored {
            all: Restoring::Off,
            of_modules: BTreeMap::new(),
        },
    };
    let releases = releases::Tools {
        helm: Arc::new(Helm::new(options(place, &ground), ground.spawner.clone())),
        lookout: Lookout::new(&hooks.monitors, &ground.cluster, looking, mpsc::channel(1).0),
        holds: Holds::default(),
        ground: Arc::clone(&ground),
    };
    Arc::new(Tools {
        webhooks: Arc::new(webhooks(&ground.cluster)),
        ground,
        hooks,
        releases: Some(releases),
        directories: None,
        warner: None,
        config_map: "addon-operator".to_owned(),
    })
}

fn options(place: &Place<'_>, ground: &Ground) -> Options {
    Options {
        binary: place.helm.clone(),
        dir: ground.tmp.sub_dir("helm").unwrap(),
        kubeconfig: ground.cluster.kubeconfig().unwrap().to_owned(),
        namespace: place.namespace.to_owned(),
        search_path: "/usr/bin:/bin".into(),
        home: None,
        post_renderer: place.post_renderer.clone(),
        labels: [("heritage".to_owned(), "addon-operator".to_owned())].into(),
        history_max: 10,
        timeout: place.helm_timeout,
    }
}

/// Webhooks without a listener, so that nothing can be published.
fn webhooks(cluster: &Cluster) -> Webhooks {
    let side = || Side::new("nobody", Source::Own, Vec::new(), Tls::new().unwrap());
    Webhooks {
        cluster: cluster.clone(),
        configuration: "none".to_owned(),
        edits: None,
        owner: None,
        secret: "none".to_owned(),
        routes: watch::Sender::default(),
        published: watch::Sender::default(),
        admission: side(),
        conversion: side(),
    }
}
