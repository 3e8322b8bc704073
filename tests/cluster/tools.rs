//! The tools of jobs, made of real parts. The unit tests of the jobs also use them, with an address on which nothing
//! listens.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use addon_operator::cluster::patch::Patcher;
use addon_operator::cluster::webhooks::ensure::{Side, Source, Webhooks};
use addon_operator::helm::{Helm, Options};
use addon_operator::jobs::Tools;
use addon_operator::jobs::catalogue::Catalogue;
use addon_operator::jobs::hook::{self, relay::Style};
use addon_operator::jobs::release::holds::Holds;
use addon_operator::jobs::tmp::TmpDir;
use addon_operator::records::Recorder;
use certificates::tls::Tls;
use child::Spawner;
use disk::Layout;
use kube_access::Cluster;
use kube_access::kinds::Kinds;
use kube_access::kubeconfig::Address;
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
    pub(crate) helm: PathBuf,
    pub(crate) helm_timeout: Duration,
    pub(crate) post_renderer: PathBuf,
    /// The environment variables of hooks and scripts.
    pub(crate) environment: &'a [(&'a str, &'a str)],
}

/// Metrics that no test reads.
pub(crate) fn meters() -> Arc<Meters> {
    Arc::new(Meters::new("addon_operator_"))
}

/// New tools, which remember nothing of earlier ones.
pub(crate) async fn tools(place: &Place<'_>) -> Arc<Tools> {
    let tmp = TmpDir::prepare(&place.dir.join("tmp"), place.tmp_files).unwrap();
    let address = Address {
        kube_config: vec![place.kubeconfig.clone()],
        ..Address::default()
    };
    let cluster = Cluster::connect(&address, place.namespace, Some(tmp.dir()), meters());
    let cluster = cluster.await.unwrap();
    let spawner = Spawner::new().unwrap();
    let helm = helm(place, &cluster, &tmp);
    let environment = place.environment.iter();
    Arc::new(Tools {
        helm: Some(Helm::new(helm, spawner.clone())),
        webhooks: webhooks(&cluster),
        monitors: monitors(&cluster),
        lookout: None,
        patcher: Patcher::new(cluster.clone(), Kinds::new(cluster.clone()), hook::jq),
        cluster,
        meters: meters(),
        directories: None,
        hooks_dir: None,
        spawner,
        catalogue: catalogue(place.dir),
        tmp: Arc::new(tmp),
        environment: environment.map(|(name, value)| (name.into(), value.into())).collect(),
        config_map: "addon-operator".to_owned(),
        script_deadline: Duration::from_mins(1),
        relay: Style::default(),
        holds: Holds::default(),
        recorder: Recorder::new(place.dir.join("records"), Secrets::default()),
    })
}

fn helm(place: &Place<'_>, cluster: &Cluster, tmp: &TmpDir) -> Options {
    Options {
        binary: place.helm.clone(),
        dir: tmp.sub_dir("helm").unwrap(),
        kubeconfig: cluster.kubeconfig().unwrap().to_owned(),
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
