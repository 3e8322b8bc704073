//! The chart and the values of a sync, in the form that helm reads. Never starts helm.

use std::path::Path;
use std::sync::Arc;

use addon_core::failure::{Class, Failure};
use disk::Chart;
use disk::record::{SECRET_LIMIT, packed};
use helm::HelmError;
use helm_yaml::yaml;
use kube_access::apis::Apis;
use serde_json::Value;
use tempfile::TempDir;

use super::inputs::ASKING;
use crate::Tools;
use jobs::tmp::TmpFile;

/// Values below this size fit in any case.
const SURELY_FITS: usize = 700 << 10;

/// The files for helm. They are made when they are first needed, and removed when this is dropped.
pub(super) struct Source<'a> {
    pub(super) kind: Chart,
    pub(super) dir: &'a Path,
    pub(super) values: &'a Value,
    ready: Option<(Option<TempDir>, TmpFile)>,
    guarded: Option<TempDir>,
}

impl<'a> Source<'a> {
    pub(super) fn new(kind: Chart, dir: &'a Path, values: &'a Value) -> Self {
        Self {
            kind,
            dir,
            values,
            ready: None,
            guarded: None,
        }
    }

    pub(super) async fn ready(&mut self, tools: &Tools, release: &str) -> Result<(&Path, &Path), Failure> {
        if self.ready.is_none() {
            let values = self.write_values(tools, release).await?;
            let made = match self.kind {
                Chart::Whole => None,
                Chart::Made => Some(self.make(tools, release).await?),
            };
            self.ready = Some((made, values));
        }
        let (made, values) = self.ready.as_ref().expect("it was made above if it was not there");
        Ok((made.as_ref().map_or(self.dir, TempDir::path), values.path()))
    }

    /// The files for an upgrade. Helm itself asks the API server for its APIs, and takes a part of the list for the
    /// whole; so a chart that asks for them is not rendered if helm lacks one that it names.
    pub(super) async fn ready_for_upgrade(
        &mut self,
        tools: &Tools,
        release: &str,
        apis: &Apis,
    ) -> Result<(&Path, &Path), Failure> {
        self.ready(tools, release).await?;
        if self.guarded.is_none() && self.mentions(ASKING).await {
            let (made, _) = self.ready.as_ref().expect("it was made above");
            let chart = made.as_ref().map_or(self.dir, TempDir::path).to_owned();
            let versions: Vec<String> = apis.versions().map(str::to_owned).collect();
            let tmp = tools.ground.tmp.dir().to_owned();
            let (kind, dir, values) = (self.kind, self.dir.to_owned(), self.values.to_string());
            let guard = move || {
                let is_named = |version: &&str| names_group(version, &values, &dir, kind);
                let named: Vec<&str> = versions.iter().map(String::as_str).filter(is_named).collect();
                helm::chart::guard(&chart, named, &tmp)
            };
            self.guarded = Some(blocking::run(guard).await.map_err(HelmError::Prepare)?);
        }
        let (made, values) = self.ready.as_ref().expect("it was made above");
        let chart = self.guarded.as_ref().or(made.as_ref());
        Ok((chart.map_or(self.dir, TempDir::path), values.path()))
    }

    /// Large values take a while to be written and packed.
    async fn write_values(&self, tools: &Tools, release: &str) -> Result<TmpFile, Failure> {
        let (values, tmp, release) = (self.values.clone(), Arc::clone(&tools.ground.tmp), release.to_owned());
        let write = move || {
            let text = yaml::to_string(&values);
            refuse_oversized(&release, &text)?;
            let file = tmp.file(&format!("{release}.module-values.yaml-"), "", text.as_bytes());
            file.map_err(|error| Failure::from(HelmError::Prepare(error)))
        };
        blocking::run(write).await
    }

    /// Whether the chart contains one of these words.
    pub(super) async fn mentions(&self, words: &'static [&'static str]) -> bool {
        let (kind, dir) = (self.kind, self.dir.to_owned());
        blocking::run(move || disk::chart_mentions(&dir, kind, words)).await
    }

    async fn make(&self, tools: &Tools, release: &str) -> Result<TempDir, Failure> {
        let (kind, dir, tmp) = (self.kind, self.dir.to_owned(), tools.ground.tmp.dir().to_owned());
        let release = release.to_owned();
        blocking::run(move || helm::chart::make(&release, &dir, |name| kind.leaves_out(name), &tmp))
            .await
            .map_err(|error| HelmError::Prepare(error).into())
    }
}

/// Whether the chart or the values name the group of an API version. Other groups come and go without any effect on the
/// rendering.
fn names_group(version: &str, values: &str, dir: &Path, kind: Chart) -> bool {
    let Some((group, _)) = version.split_once('/') else {
        return true;
    };
    values.contains(group) || disk::chart_mentions(dir, kind, &[group])
}

fn refuse_oversized(release: &str, values: &str) -> Result<(), Failure> {
    if values.len() < SURELY_FITS {
        return Ok(());
    }
    let size = packed([values.as_bytes()]).map_err(HelmError::Prepare)?;
    if size < SECRET_LIMIT {
        return Ok(());
    }
    Err(Failure::new(
        Class::Invalid,
        format!(
            "the values of release '{release}' take {size} bytes packed, and a release Secret holds {SECRET_LIMIT}"
        ),
    )
    .hint("keep large data in a ConfigMap or Secret of its own and only its name in the values"))
}

#[cfg(test)]
mod tests {
    use addon_core::digest::Digest;

    use super::*;

    #[test]
    fn values_beyond_a_secret_are_refused_before_helm_is_started() {
        // Digests of digests hardly compress, and are the same in every run.
        let mut text = String::new();
        let mut digest = Digest::of_bytes(b"seed");
        while text.len() < 3 << 20 {
            digest = Digest::of_bytes(digest.to_string().as_bytes());
            text.push_str(&digest.to_string());
        }
        let failure = refuse_oversized("one", &text).unwrap_err();
        assert_eq!(failure.class, Class::Invalid);
        assert!(
            failure.report.contains("'one'") && failure.report.contains("1048576"),
            "{failure}"
        );
        assert_eq!(refuse_oversized("one", &"a: b\n".repeat(1 << 20)), Ok(()));
    }
}
