//! Where the programs come from: `$KUBEBUILDER_ASSETS`, then `PATH`, then the cache, then a build into the cache.
//!
//! It must never download a binary. A program that is not installed is built from pinned modules, or leads to an error
//! that says what to install.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::build::{BuildError, Cache, Go};
use crate::environment;
use crate::part::{Part, major_minor};
use crate::process;

/// The places where programs are looked for. The environment names the usual ones.
#[derive(Clone, Debug)]
pub struct Finder {
    /// A folder whose programs are taken in any version.
    pub assets: Option<PathBuf>,
    /// A search path like `PATH`. Go is looked for here too.
    pub path: OsString,
    /// The cache: programs built earlier are taken from it, and new ones are built into it.
    pub cache: Option<PathBuf>,
}

/// The programs of etcd and Kubernetes. If `$KUBEBUILDER_ASSETS` has all five, nothing of a control plane has to be
/// built.
const OF_ASSETS: [Part; 5] = [
    Part::Etcd,
    Part::KubeApiserver,
    Part::KubeControllerManager,
    Part::Kubectl,
    Part::KubeScheduler,
];

/// Where a program was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Assets,
    Path,
    Cache,
    Built,
}

impl std::fmt::Display for Source {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.pad(match self {
            Self::Assets => "assets",
            Self::Path => "path",
            Self::Cache => "cache",
            Self::Built => "built",
        })
    }
}

/// A program that can be started.
#[derive(Clone, Debug)]
pub struct Found {
    pub file: PathBuf,
    pub source: Source,
}

/// The programs that a caller asked for, all found.
pub type Tools = BTreeMap<Part, Found>;

#[derive(Debug, Error)]
pub enum FindError {
    #[error(
        "cannot provide {}: not in $KUBEBUILDER_ASSETS, not on PATH, not in the cache, and there is no Go to build from source",
        list(.0)
    )]
    Missing(Vec<Part>),
    #[error("cannot tell where to cache what is built: none of TESTBED_CACHE, XDG_CACHE_HOME and HOME is set")]
    NoCache,
    #[error("cannot provide {part}")]
    Build { part: Part, source: BuildError },
    #[error("cannot ask Go for its version")]
    Go(#[source] io::Error),
}

impl FindError {
    /// Steps by which a person can solve the problem.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::Missing(parts) => missing_hints(parts),
            Self::NoCache => vec!["set TESTBED_CACHE to a folder that may grow to 700 MB".to_owned()],
            Self::Build { source, .. } => source.hints(),
            Self::Go(_) => vec!["`go env GOVERSION` should print a version; check the Go on PATH".to_owned()],
        }
    }
}

fn list(parts: &[Part]) -> String {
    parts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn missing_hints(parts: &[Part]) -> Vec<String> {
    let go = parts
        .iter()
        .map(|part| part.module().go_version())
        .max()
        .unwrap_or_default();
    let mut hints = vec![format!(
        "install Go {go} or newer (https://go.dev/dl); what is missing is then built once, in about six minutes"
    )];
    if parts.iter().any(|part| OF_ASSETS.contains(part)) {
        hints.push(
            "or set KUBEBUILDER_ASSETS to a folder with etcd, kube-apiserver, kube-controller-manager, kubectl and, for pods, \
             kube-scheduler; envtest has three of them"
                .to_owned(),
        );
    }
    for helm in parts.iter().filter(|part| matches!(part, Part::Helm3 | Part::Helm4)) {
        let (major, _) = major_minor(helm.version());
        hints.push(format!(
            "helm must be version {major}; another one on PATH does not count"
        ));
    }
    hints
}

impl Finder {
    /// A finder for the places that the environment names.
    pub fn from_environment() -> Self {
        Self {
            assets: environment::assets(),
            path: environment::path(),
            cache: environment::cache(),
        }
    }

    /// Finds all of `parts` and builds the missing ones. No other program is looked for or built.
    pub fn find(&self, parts: &[Part]) -> Result<Tools, FindError> {
        let mut tools = Tools::new();
        let mut missing = Vec::new();
        for &part in parts {
            match self.installed(part) {
                Some(found) => drop(tools.insert(part, found)),
                None => missing.push(part),
            }
        }
        if !missing.is_empty() {
            tools.extend(self.pinned(&missing)?);
        }
        Ok(tools)
    }

    /// Finds all of `parts` in their pinned versions: built from the modules, now or earlier. Installed programs do not
    /// count.
    pub fn pinned(&self, parts: &[Part]) -> Result<Tools, FindError> {
        let mut tools = Tools::new();
        let mut missing = parts.to_vec();
        let cache = Cache::new(self.cache.clone().ok_or(FindError::NoCache)?);
        let go = self.go()?;
        missing.retain(|&part| {
            let cached = cache.get(part, go.as_ref());
            let hit = cached.is_some();
            tools.extend(cached.map(|file| {
                (
                    part,
                    Found {
                        file,
                        source: Source::Cache,
                    },
                )
            }));
            !hit
        });
        let Some(go) = go else {
            return if missing.is_empty() {
                Ok(tools)
            } else {
                Err(FindError::Missing(missing))
            };
        };
        for (index, &part) in missing.iter().enumerate() {
            let built = cache.build(part, &go, missing.len() - index - 1);
            let file = built.map_err(|source| FindError::Build { part, source })?;
            tools.insert(
                part,
                Found {
                    file,
                    source: Source::Built,
                },
            );
        }
        Ok(tools)
    }

    /// A program in `$KUBEBUILDER_ASSETS`, or an installed one of a suitable version.
    fn installed(&self, part: Part) -> Option<Found> {
        let assets = self.assets.iter().map(|folder| (folder.clone(), Source::Assets));
        let path = std::env::split_paths(&self.path).map(|folder| (folder, Source::Path));
        assets
            .chain(path)
            .flat_map(|(folder, source)| part.installed_as().iter().map(move |name| (folder.join(name), source)))
            .find(|(file, source)| is_executable(file) && will_do(part, file, *source))
            .map(|(file, source)| Found { file, source })
    }

    fn go(&self) -> Result<Option<Go>, FindError> {
        let go = std::env::split_paths(&self.path)
            .map(|folder| folder.join("go"))
            .find(|file| is_executable(file));
        go.map(|program| Go::ask(program, self.path.clone()))
            .transpose()
            .map_err(FindError::Go)
    }
}

pub(crate) fn is_executable(file: &Path) -> bool {
    file.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Whether an installed program has a suitable version. Helm 3 and helm 4 share a name, kubectl works only with API
/// servers of neighbouring versions, and the programs of Kubernetes belong together. So these programs are asked for
/// their versions. The other programs are seldom installed by accident.
fn will_do(part: Part, file: &Path, source: Source) -> bool {
    let (major, minor) = major_minor(part.version());
    match part {
        Part::Helm3 | Part::Helm4 => {
            reported(file, &["version", "--template", "{{.Version}}"]).is_some_and(|version| {
                let (found, _) = major_minor(&version);
                found == major
            })
        }
        Part::Kubectl if source == Source::Path => reported(file, &["version", "--client", "--output=json"])
            .and_then(|json| client_minor(&json))
            .is_some_and(|found| {
                minor
                    .parse::<u32>()
                    .is_ok_and(|pinned: u32| found.abs_diff(pinned) <= 1)
            }),
        // On a machine that belongs to a cluster, these programs may have the version of that cluster.
        Part::KubeApiserver | Part::KubeControllerManager | Part::KubeScheduler | Part::Kubelet | Part::KubeProxy
            if source == Source::Path =>
        {
            reported(file, &["--version"]).is_some_and(|said| {
                let version = said.trim_start_matches("Kubernetes ");
                major_minor(version) == (major, minor)
            })
        }
        Part::Kubectl
        | Part::Etcd
        | Part::KubeApiserver
        | Part::KubeControllerManager
        | Part::KubeScheduler
        | Part::Kubelet
        | Part::KubeProxy
        | Part::Kwok
        | Part::Registry
        | Part::Cosign => true,
    }
}

fn reported(file: &Path, arguments: &[&str]) -> Option<String> {
    let mut command = process::command(file);
    command.args(arguments);
    let output = process::run(command, None)
        .ok()
        .filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn client_minor(json: &str) -> Option<u32> {
    let version = serde_json::from_str::<serde_json::Value>(json).ok()?;
    let full = version.pointer("/clientVersion/gitVersion")?.as_str()?;
    major_minor(full).1.parse().ok()
}
