//! The tools of jobs that run hooks, made of real parts. The unit tests of the crate `hooks` also use them, with an address
//! on which nothing listens.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use child::Spawner;
use disk::Layout;
use hooks::Tools;
use hooks::past::LastRuns;
use hooks::records::Recorder;
use hooks::relay::Style;
use jobs::Ground;
use jobs::catalogue::Catalogue;
use jobs::tmp::TmpDir;
use kube_access::Cluster;
use kube_access::kinds::Kinds;
use kube_access::kubeconfig::Address;
use objects::Patcher;
use report::secrets::Secrets;
use settings::{MissingValues, TmpFiles};
use telling::meters::Meters;
use tokio::sync::{mpsc, watch};
use watches::{Monitors, Settings};

/// The folders and settings of the tools, which differ between tests.
pub(crate) struct Place<'a> {
    /// The folder with `modules` and `global-hooks`. Temporary files of child processes go to `tmp`.
    pub(crate) dir: &'a Path,
    pub(crate) tmp_files: TmpFiles,
    pub(crate) namespace: &'a str,
    pub(crate) kubeconfig: PathBuf,
    /// The environment variables of hooks and scripts.
    pub(crate) environment: &'a [(&'a str, &'a str)],
    pub(crate) remedies: jobs::Remedies,
}

/// Metrics that no test reads.
pub(crate) fn meters() -> Arc<Meters> {
    Arc::new(Meters::new("addon_operator_"))
}

/// New tools, which remember nothing of earlier ones.
pub(crate) async fn tools(place: Place<'_>) -> Arc<Tools> {
    let tmp = TmpDir::prepare(&place.dir.join("tmp"), place.tmp_files).unwrap();
    let address = Address {
        kube_config: vec![place.kubeconfig],
        ..Address::default()
    };
    let cluster = Cluster::connect(&address, place.namespace, Some(tmp.dir()), meters());
    let cluster = cluster.await.unwrap();
    let environment = place.environment.iter();
    Arc::new(Tools {
        monitors: monitors(&cluster),
        patcher: Patcher::new(cluster.clone(), Kinds::new(cluster.clone()), hooks::filters::jq),
        meters: meters(),
        hooks_dir: None,
        script_deadline: Duration::from_mins(1),
        relay: Style::default(),
        past: LastRuns::default(),
        recorder: Recorder::new(place.dir.join("records"), Secrets::default()),
        ground: Arc::new(Ground {
            cluster,
            spawner: Spawner::new().unwrap(),
            catalogue: catalogue(place.dir),
            tmp: Arc::new(tmp),
            environment: environment.map(|(name, value)| (name.into(), value.into())).collect(),
            remedies: place.remedies,
        }),
    })
}

/// Monitors whose reports are dropped.
fn monitors(cluster: &Cluster) -> Monitors {
    let watching = Settings {
        bound: Settings::BOUND,
        patience: Settings::PATIENCE,
        compile: |_| Err("no filters here".to_owned()),
    };
    let kinds = Kinds::new(cluster.clone());
    Monitors::new(cluster, &kinds, mpsc::channel(1).0, watching, Arc::new(|_| {}))
}

fn catalogue(dir: &Path) -> watch::Sender<Arc<Catalogue>> {
    let layout = Layout {
        modules_dirs: vec![dir.join("modules")],
        global_hooks_dir: dir.join("global-hooks"),
        unnumbered_order: 1,
        missing_values: MissingValues::NoValues,
        crd_filters: Vec::new(),
    };
    watch::Sender::new(Arc::new(Catalogue::of(&disk::read(&layout))))
}
