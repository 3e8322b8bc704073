//! Renders written modules by helm, as the operator would, to compare their objects with those of releases.
//!
//! Never talks to a cluster: the facts about it are given.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

use child::Spawner;
use helm::{Chart, Helm, HelmError, Options, Verbosity};
use helm_yaml::yaml::{self, YamlError};
use kube_access::apis::Apis;
use masking::secret::known::Known;
use names::ModuleName;
use serde_json::{Value, json};
use settings::Environment;
use tempfile::TempDir;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::manifest::Rendering;
use crate::values::{ValuePath, lay_over, named_secret, texts_at};

/// Why a module is not rendered.
#[derive(Debug, Error)]
pub enum RenderError {
    #[error(transparent)]
    Helm(#[from] HelmError),
    #[error("helm has rendered no YAML")]
    Yaml(#[from] YamlError),
    #[error("cannot prepare the values for helm")]
    Prepare(#[from] io::Error),
}

/// Helm with the facts about a cluster.
#[derive(Debug)]
pub struct Renderer {
    helm: Helm,
    tmp: TempDir,
    spawner: Spawner,
}

impl Renderer {
    /// A renderer for releases in this namespace.
    pub fn new(environment: &Environment, namespace: &str, spawner: Spawner) -> io::Result<Self> {
        let tmp = tempfile::tempdir()?;
        let options = Options::for_rendering(
            environment.get("HELM_BIN"),
            environment.get("PATH"),
            tmp.path(),
            namespace,
        );
        Ok(Self {
            helm: Helm::new(options, spawner.clone()),
            tmp,
            spawner,
        })
    }

    /// Renders the module in the directory with these values of its own, and the operator's global ones.
    pub async fn render(
        &self,
        dir: &Path,
        module: &ModuleName,
        values: &Value,
        global: &Value,
        secret: &BTreeSet<ValuePath>,
        apis: &Apis,
    ) -> Result<Rendering, RenderError> {
        // Errors of helm may quote values.
        let mut texts = texts_at(values, secret);
        texts.extend(texts_at(global, &named_secret(global)));
        let known: Known = texts.iter().map(String::as_str).collect();
        self.spawner.secrets().learn(Arc::new(known));
        let mut global = global.clone();
        lay_over(&mut global, json!({"enabledModules": [module.as_str()]}));
        let all = json!({"global": global, module.values_key(): values});
        let file = self.tmp.path().join("values.yaml");
        fs_err::write(&file, yaml::to_string(&all))?;
        let chart = Chart {
            release: module.as_str(),
            dir,
            values: &file,
            labels: &BTreeMap::new(),
            kubeconfig: None,
            kept: &BTreeSet::new(),
            withheld: &BTreeSet::new(),
            claims: None,
            env: &[],
        };
        let (names, cancel) = (apis.names.iter().map(String::as_str), CancellationToken::new());
        let manifest = self
            .helm
            .template(chart, &apis.version, names, Verbosity::Whole, &cancel)
            .await?;
        Ok(Rendering::read(&manifest)?)
    }
}
