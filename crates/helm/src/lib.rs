//! Helm's binary as typed calls: its version, a rendering, an upgrade, a removal.
//!
//! A child gets an environment that inherits nothing and has only the operator's kubeconfig. So it cannot use another
//! cluster or a person's helm settings. It dies with the operator. Never decides whether a call is needed, and never
//! runs two at once on one release: the caller holds the release.

pub mod chart;
pub mod claims;
mod environment;
mod error;
pub mod immutable;
pub mod labels;
mod options;
mod outcry;
mod plugin;
pub mod post_renderer;
mod shape;
mod version;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use addon_core::release::ApplyMethod;
use child::{Finished, Output, Spawn, Spawner};
use serde::Deserialize;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use claims::{Claims, Object};
pub use error::HelmError;
use error::failed;
pub use options::Options;
use plugin::Labelling;
pub use version::Version;

/// The oldest helm with all flags that are used; the newest of these is `--take-ownership`.
const OLDEST: Version = Version {
    major: 3,
    minor: 17,
    patch: 0,
};
/// The newest major version whose flags and output are known.
const NEWEST_MAJOR: u32 = 4;
/// The timeout of the question for helm's version. On a starved disk a sound helm took more than 20 s to start.
const VERSION_DEADLINE: Duration = Duration::from_mins(1);
/// The part of a call's time limit that steps do not count: to start, and to end.
const ENDS: Duration = Duration::from_secs(20);
/// The timeout of a rendering. A rendering needs no cluster, so if it takes longer, a template is endless.
const TEMPLATE_DEADLINE: Duration = Duration::from_mins(2);
/// The limit of helm's output; larger manifests fit into no release Secret.
const STDOUT_LIMIT: usize = 64 << 20;
const STDERR_LIMIT: usize = 64 << 10;
/// The longest argument. Linux allows 128 KiB.
const ARGUMENT_LIMIT: usize = 100 << 10;

/// A helm binary and the settings of its calls.
#[derive(Debug)]
pub struct Helm {
    options: Options,
    claims: Claims,
    spawner: Spawner,
    version: OnceCell<Version>,
    plugin: OnceCell<()>,
}

/// The chart and the settings of one rendering or upgrade.
#[derive(Debug, Clone, Copy)]
pub struct Chart<'a> {
    /// The release's name.
    pub release: &'a str,
    /// The directory with `Chart.yaml`.
    pub dir: &'a Path,
    /// The values file.
    pub values: &'a Path,
    /// Labels for every object; empty for none.
    pub labels: &'a BTreeMap<String, String>,
    /// The kubeconfig of the account that helm acts as; none for the operator's own account.
    pub kubeconfig: Option<&'a Path>,
    /// The objects that stay when the release is removed, because they existed before it.
    pub kept: &'a BTreeSet<Object>,
    /// The objects that are left out.
    pub withheld: &'a BTreeSet<Object>,
    /// The file with the claims of objects; none for a call that only renders.
    pub claims: Option<&'a Claims>,
    /// Variables of the module's source. The variables that the operator sets take precedence.
    pub env: &'a [(OsString, OsString)],
}

/// The output of a rendering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verbosity {
    /// The objects of the release, or the error.
    Plain,
    /// The objects of the release and of helm hooks, or the error.
    Whole,
    /// The same, as for the first installation of the release.
    First,
    /// All objects and, if the output of templates is not YAML, that output before the error.
    Debug,
}

/// The result of a successful upgrade.
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
    /// A helm that was not called yet.
    pub fn new(options: Options, spawner: Spawner) -> Self {
        Self {
            claims: Claims::at(options.dir.join("claims.json")),
            options,
            spawner,
            version: OnceCell::new(),
            plugin: OnceCell::new(),
        }
    }

    /// The settings.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The claims of releases on objects.
    pub fn claims(&self) -> &Claims {
        &self.claims
    }

    /// Renders the chart, usually as for an upgrade, without a cluster and without helm hooks. For debugging the result
    /// may be invalid YAML, followed by the error.
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
        for flag in ["--skip-crds", "--kube-version", kube_version] {
            args.push(flag.into());
        }
        if verbosity != Verbosity::First {
            args.push("--is-upgrade".into());
        }
        if !matches!(verbosity, Verbosity::Whole | Verbosity::First) {
            args.push("--no-hooks".into());
        }
        for part in joined(api_versions) {
            args.push("--api-versions".into());
            args.push(part.into());
        }
        if verbosity == Verbosity::Debug {
            args.push("--debug".into());
        }
        let finished = self
            .run(args, chart.kubeconfig, chart.env, TEMPLATE_DEADLINE, cancel)
            .await?;
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
                    // The part after this marker is a position in helm's code.
                    let reason = error.split("\nhelm.go:").next().unwrap_or_default();
                    Ok(format!("{rendered}\n{reason}\n"))
                }
                Verbosity::Debug | Verbosity::Whole | Verbosity::First | Verbosity::Plain => Err(error),
            };
        }
        Ok(finished.stdout.text())
    }

    /// Installs or upgrades the release.
    ///
    /// Without `--disable-openapi-validation` helm spends most of its processor time on reading the cluster's `OpenAPI`
    /// document. The flag loses no check: the API server itself refuses a wrong type, and drops an unknown field with a
    /// warning, which is passed on.
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
        let finished = self
            .run(args, chart.kubeconfig, chart.env, self.deadline(), cancel)
            .await?;
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

    /// Rolls the release back to an earlier revision, as a new revision.
    pub async fn rollback(
        &self,
        release: &str,
        to: u32,
        kubeconfig: Option<&Path>,
        env: &[(OsString, OsString)],
        cancel: &CancellationToken,
    ) -> Result<(), HelmError> {
        self.version().await?;
        let timeout = format!("{}s", self.options.timeout.as_secs().max(1));
        let (to, history_max) = (to.to_string(), self.options.history_max.to_string());
        let args = [
            "rollback",
            release,
            &to,
            "--namespace",
            &self.options.namespace,
            "--timeout",
            &timeout,
            "--history-max",
            &history_max,
        ];
        let args = args.map(OsString::from).into();
        let finished = self.run(args, kubeconfig, env, self.deadline(), cancel).await?;
        if finished.exit.is_success() {
            Ok(())
        } else {
            Err(failed("roll back", release, &finished, self.spawner.secrets(), ""))
        }
    }

    /// Removes the release with its history; its helm hooks run. A missing release is a failure, so the caller checks
    /// first. With the flag that ignores a missing release, helm would take any error of reading the history for it.
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
            // Only with this flag helm prints why an object could not be deleted.
            "--debug",
        ];
        let finished = self
            .run(
                args.map(OsString::from).into(),
                kubeconfig,
                &[],
                self.deadline(),
                cancel,
            )
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

    /// The time limit of a whole call; `--timeout` limits only each step.
    pub fn deadline(&self) -> Duration {
        self.options.timeout * 2 + ENDS
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
        env: &[(OsString, OsString)],
        deadline: Duration,
        cancel: &CancellationToken,
    ) -> Result<Finished, HelmError> {
        let spawn = Spawn {
            args,
            env: self.environment(kubeconfig, env),
            stdout: Output::captured(STDOUT_LIMIT),
            stderr: Output::captured(STDERR_LIMIT),
            ..Spawn::new(&self.options.binary, deadline)
        };
        self.spawner.run(spawn, cancel).await.map_err(HelmError::Process)
    }
}

/// Joins the items with commas into arguments of limited length.
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
