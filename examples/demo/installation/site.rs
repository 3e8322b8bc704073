//! The place of the installation: a namespace, and a folder like a checkout of the repository, in which commands are
//! run.

use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::bail;
use serde_json::Value;
use tempfile::TempDir;
use testbed::namespace::Namespace;
use testbed::plane::ControlPlane;
use testbed::reader::Only;

use crate::cluster::{self, Releases};
use crate::shell::Shell;

const REPOSITORY: &str = env!("CARGO_MANIFEST_DIR");

/// Folders of the repository that the commands refer to by relative path.
const CHECKOUT: [&str; 4] = ["charts", "examples", "frameworks", "global-hooks"];

/// The name of the chart's release, and so of its Deployment and its service account.
pub(super) const NAME: &str = "addon-operator";

const LEASE: &str = "addon-operator-leader-election";

/// The number of replicas in the chart's values.
const REPLICAS: usize = 2;

/// The pod that leads, and since when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Leader {
    pub(super) pod: String,
    since: String,
}

impl Leader {
    /// Whether the leader runs a version on trial.
    pub(super) fn is_on_trial(&self) -> bool {
        self.pod.starts_with(&format!("{NAME}-trial-"))
    }
}

pub(super) struct Site<'a> {
    namespace: Namespace<'a>,
    shell: Shell,
    _folder: TempDir,
}

impl<'a> Site<'a> {
    /// Builds the site. `program` becomes the command `addon-operator` of the site.
    pub(super) fn build(plane: &'a ControlPlane, program: &Path) -> anyhow::Result<Self> {
        let namespace = plane.namespace("demo")?;
        let folder = tempfile::Builder::new().prefix("site-").tempdir_in(plane.folder())?;
        for name in CHECKOUT {
            symlink(Path::new(REPOSITORY).join(name), folder.path().join(name))?;
        }
        let mut shell = Shell::open(folder.path(), &namespace, program)?;
        shell.set("FRAMEWORK_DIR", folder.path().join("frameworks/shell"));
        Ok(Self {
            namespace,
            shell,
            _folder: folder,
        })
    }

    pub(super) fn namespace(&self) -> &Namespace<'a> {
        &self.namespace
    }

    pub(super) fn plane(&self) -> &'a ControlPlane {
        self.namespace.plane()
    }

    pub(super) fn shell(&self) -> &Shell {
        &self.shell
    }

    /// Sets an environment variable for all commands.
    pub(super) fn set(&mut self, name: &'static str, value: &str) {
        self.shell.set(name, value);
    }

    /// The pods of the operator. An error if one of them is not ready.
    pub(super) fn pods(&self) -> anyhow::Result<Vec<Value>> {
        let label = format!("app.kubernetes.io/instance={NAME}");
        let pods = self.namespace.objects("pods", Only::Labels(&label))?;
        let is_ready = |pod: &Value| {
            let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
            let ready = conditions
                .filter(|one| one["type"] == "Ready")
                .any(|one| one["status"] == "True");
            ready && pod["metadata"]["deletionTimestamp"].is_null()
        };
        let ready = pods.iter().filter(|pod| is_ready(pod)).count();
        if ready == REPLICAS && pods.len() == REPLICAS {
            Ok(pods)
        } else {
            bail!("{} pods, {ready} of them ready", pods.len())
        }
    }

    /// The pod that leads. An error if the lease and the Services' endpoints do not name the same pod.
    pub(super) fn leader(&self) -> anyhow::Result<Leader> {
        let lease = self.namespace.object("lease", LEASE)?.unwrap_or_default();
        let text = |key: &str| lease["spec"][key].as_str().unwrap_or_default().to_owned();
        let (holder, since) = (text("holderIdentity"), text("acquireTime"));
        let of_service = "kubernetes.io/service-name=addon-operator-validating-svc";
        let slices = self.namespace.objects("endpointslices", Only::Labels(of_service))?;
        let ends = slices
            .iter()
            .filter_map(|slice| slice["endpoints"].as_array())
            .flatten();
        let led_to: Vec<&str> = ends.filter_map(|end| end["targetRef"]["name"].as_str()).collect();
        match led_to[..] {
            [pod] if holder.split('.').next() == Some(pod) => Ok(Leader {
                pod: pod.to_owned(),
                since,
            }),
            _ => bail!("the lease is held by '{holder}', and the Service leads to {led_to:?}"),
        }
    }

    /// The releases of modules in this namespace.
    pub(super) fn releases(&self) -> anyhow::Result<Releases> {
        let mut releases = cluster::releases(&self.namespace)?;
        releases.retain(|_, release| release.ours);
        Ok(releases)
    }

    /// The state of the namespace, for the report of a failure.
    pub(super) fn evidence(&self) -> String {
        let logs = format!("kubectl describe pods | tail -n 40; kubectl logs deployment/{NAME} --all-pods --tail=40");
        let logs = self
            .shell
            .run(&logs)
            .map_or_else(|error| format!("{error:#}"), |said| said.text);
        format!("{}\n{logs}", self.namespace.evidence())
    }
}
