//! The helm binary as typed calls: its version, a rendering, an upgrade, a removal.
//!
//! A child gets an environment built from nothing with our one kubeconfig, so that it cannot come to another cluster or
//! read a person's helm settings. It dies with us. Never decides whether a call is needed, and never runs two at once on
//! one release: the caller holds the release.

pub mod chart;
pub mod claims;
mod environment;
mod error;
pub mod labels;
mod outcry;
mod plugin;
mod shape;
mod version;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use addon_core::release::ApplyMethod;
use plugin::Labelling;
use serde::Deserialize;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::process::{Finished, Output, Spawn, Spawner};

pub use error::HelmError;
pub use version::Version;

use claims::{Claims, Object};
use error::failed;

/// The oldest helm that knows everything we ask for; the youngest of it is `--take-ownership`.
const OLDEST: Version = Version {
    major: 3,
    minor: 17,
    patch: 0,
};
/// The newest major whose flags and output we know.
const NEWEST_MAJOR: u32 = 4;
const VERSION_DEADLINE: Duration = Duration::from_secs(20);
/// A rendering needs no cluster; one that takes longer is a template without end.
const TEMPLATE_DEADLINE: Duration = Duration::from_mins(2);
/// Manifests beyond this fit into no release Secret by far.
const STDOUT_LIMIT: usize = 64 << 20;
const STDERR_LIMIT: usize = 64 << 10;
/// One argument may hold 128 KiB on Linux.
const ARGUMENT_LIMIT: usize = 100 << 10;

/// How helm is called, the same for every release.
#[derive(Debug, Clone)]
pub struct Options {
    /// The binary.
    pub binary: PathBuf,
    /// A private directory for its caches and for our files for it.
    pub dir: PathBuf,
    /// The one kubeconfig.
    pub kubeconfig: PathBuf,
    /// Where all releases are.
    pub namespace: String,
    /// `PATH` for credential plugins, and `HOME` if there is one.
    pub search_path: OsString,
    /// The home directory of a credential plugin, `None` to keep it out of everybody's home.
    pub home: Option<PathBuf>,
    /// The program that adds labels: ourselves.
    pub post_renderer: PathBuf,
    /// Labels for every object of every release; empty for none.
    pub labels: BTreeMap<String, String>,
    /// `--history-max`.
    pub history_max: u32,
    /// `--timeout`.
    pub timeout: Duration,
}

/// A helm that can be called.
#[derive(Debug)]
pub struct Helm {
    options: Options,
    claims: Claims,
    spawner: Spawner,
    version: OnceCell<Version>,
    plugin: OnceCell<()>,
}

/// One rendering or upgrade.
#[derive(Debug, Clone, Copy)]
pub struct Chart<'a> {
    /// The release's name.
    pub release: &'a str,
    /// The directory with its `Chart.yaml`.
    pub dir: &'a Path,
    /// The file with its values.
    pub values: &'a Path,
    /// Labels for every object; empty for none.
    pub labels: &'a BTreeMap<String, String>,
    /// The kubeconfig of another account than the operator's.
    pub kubeconfig: Option<&'a Path>,
    /// The objects of it that stay when the release goes, because another maker made them.
    pub kept: &'a BTreeSet<Object>,
    /// The file of claims of its objects; none for a call that only shows them.
    pub claims: Option<&'a Claims>,
}

/// The amount of output of a rendering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verbosity {
    /// The objects of the release, or the reason of the failure.
    Plain,
    /// Also the helm hooks, which helm installs beside the release.
    Whole,
    /// Also the output of templates that is not YAML.
    Debug,
}

/// A release as a successful upgrade printed it.
#[derive(Debug, Clone, Deserialize)]
pub struct Upgraded {
    /// The new revision.
    #[serde(rename = "version")]
    pub revision: u32,
    /// The applied manifest, without helm hooks.
    #[serde(default)]
    pub manifest: String,
}

impl Helm {
    /// A helm that was not asked anything yet.
    pub fn new(options: Options, spawner: Spawner) -> Self {
        Self {
            claims: Claims::at(options.dir.join("claims.json")),
            options,
            spawner,
            version: OnceCell::new(),
            plugin: OnceCell::new(),
        }
    }

    /// The settings it was made with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// To which release objects belong.
    pub fn claims(&self) -> &Claims {
        &self.claims
    }

    /// The rendered chart for an upgrade, without asking the cluster, and mostly without helm hooks. For debugging also
    /// output that is not YAML, followed by the reason.
    pub async fn template(
        &self,
        chart: Chart<'_>,
        kube_version: &str,
        api_versions: impl IntoIterator<Item = &str>,
        verbosity: Verbosity,
        cancel: &CancellationToken,
    ) -> Result<String, HelmError> {
        let labelling = self.labelling(chart).await?;
        let mut args = self.args("template", chart, &labelling);
        for flag in ["--is-upgrade", "--skip-crds", "--kube-version", kube_version] {
            args.push(flag.into());
        }
        if verbosity != Verbosity::Whole {
            args.push("--no-hooks".into());
        }
        for part in joined(api_versions) {
            args.push("--api-versions".into());
            args.push(part.into());
        }
        if verbosity == Verbosity::Debug {
            args.push("--debug".into());
        }
        let finished = self.run(args, chart.kubeconfig, TEMPLATE_DEADLINE, cancel).await?;
        if !finished.exit.is_success() {
            let secrets = self.spawner.secrets();
            let error = failed(
                "render",
                chart.release,
                &finished,
                secrets,
                &labelling.complaint(secrets),
            );
            let rendered = finished.stdout.text();
            return match verbosity {
                Verbosity::Debug if !rendered.trim().is_empty() => {
                    let error = error.to_string();
                    // The rest names the place in helm's code.
                    let reason = error.split("\nhelm.go:").next().unwrap_or_default();
                    Ok(format!("{rendered}\n{reason}\n"))
                }
                Verbosity::Debug | Verbosity::Whole | Verbosity::Plain => Err(error),
            };
        }
        Ok(finished.stdout.text())
    }

    /// Installs or upgrades.
    ///
    /// Without `--disable-openapi-validation` helm spends most of its processor time on reading the cluster's `OpenAPI`
    /// document, and with it helm refuses nothing less: a wrong type is refused by the API server, and a field that
    /// the API server does not know is dropped by it with a warning in both cases. We pass these warnings on.
    pub async fn upgrade(
        &self,
        chart: Chart<'_>,
        labels: &BTreeMap<String, String>,
        method: ApplyMethod,
        cancel: &CancellationToken,
    ) -> Result<Upgraded, HelmError> {
        let labelling = self.labelling(chart).await?;
        let mut args = self.args("upgrade", chart, &labelling);
        args.extend(self.version().await?.applying(method).iter().map(OsString::from));
        let labels: Vec<_> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let timeout = format!("{}s", self.options.timeout.as_secs().max(1));
        let history_max = self.options.history_max.to_string();
        for flag in [
            "--install",
            "--skip-crds",
            "--take-ownership",
            "--disable-openapi-validation",
            "--timeout",
            &timeout,
            "--history-max",
            &history_max,
            "--labels",
            &labels.join(","),
            "--output",
            "json",
        ] {
            args.push(flag.into());
        }
        let finished = self.run(args, chart.kubeconfig, self.deadline(), cancel).await?;
        if !finished.exit.is_success() {
            let secrets = self.spawner.secrets();
            return Err(failed(
                "upgrade",
                chart.release,
                &finished,
                secrets,
                &labelling.complaint(secrets),
            ));
        }
        for warning in outcry::warnings(&finished.stderr.text()) {
            tracing::warn!(
                release = chart.release,
                warning,
                "the API server has a warning about the release"
            );
        }
        serde_json::from_slice(&finished.stdout.bytes).map_err(|source| HelmError::Output {
            release: chart.release.to_owned(),
            source,
        })
    }

    /// Removes the release with its history; its helm hooks run. One that is absent is a failure, so that the caller
    /// looks first: told to ignore that, helm takes any error of reading the history for a release that is absent.
    pub async fn uninstall(
        &self,
        release: &str,
        kubeconfig: Option<&Path>,
        cancel: &CancellationToken,
    ) -> Result<(), HelmError> {
        self.version().await?;
        let timeout = format!("{}s", self.options.timeout.as_secs().max(1));
        let args = [
            "uninstall",
            release,
            "--namespace",
            &self.options.namespace,
            "--timeout",
            &timeout,
            // Otherwise helm does not print the reason why an object could not be deleted.
            "--debug",
        ];
        let finished = self
            .run(args.map(OsString::from).into(), kubeconfig, self.deadline(), cancel)
            .await?;
        if finished.exit.is_success() {
            if let Some(objects) = outcry::left_behind(&finished.stdout.text()) {
                tracing::warn!(
                    release,
                    objects,
                    "the release is uninstalled, but objects of it were left behind"
                );
            }
            Ok(())
        } else {
            Err(failed("uninstall", release, &finished, self.spawner.secrets(), ""))
        }
    }

    /// `--timeout` limits each step; this limits all of them together.
    pub fn deadline(&self) -> Duration {
        self.options.timeout * 2 + VERSION_DEADLINE
    }

    fn args(&self, command: &str, chart: Chart<'_>, labelling: &Labelling) -> Vec<OsString> {
        let mut args: Vec<OsString> = vec![command.into(), chart.release.into(), chart.dir.into()];
        args.extend(["--namespace".into(), self.options.namespace.clone().into()]);
        args.extend(["--values".into(), chart.values.into()]);
        args.extend_from_slice(labelling.args());
        args
    }

    async fn run(
        &self,
        args: Vec<OsString>,
        kubeconfig: Option<&Path>,
        deadline: Duration,
        cancel: &CancellationToken,
    ) -> Result<Finished, HelmError> {
        let spawn = Spawn {
            args,
            env: self.environment(kubeconfig),
            stdout: Output::captured(STDOUT_LIMIT),
            stderr: Output::captured(STDERR_LIMIT),
            ..Spawn::new(&self.options.binary, deadline)
        };
        self.spawner.run(spawn, cancel).await.map_err(HelmError::Process)
    }
}

/// Joins with commas, in parts that fit into one argument.
fn joined<'a>(items: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for item in items {
        match parts.last_mut() {
            Some(part) if part.len() + item.len() < ARGUMENT_LIMIT => {
                part.push(',');
                part.push_str(item);
            }
            _ => parts.push(item.to_owned()),
        }
    }
    parts
}

#[cfg(test)]
mod tests;
