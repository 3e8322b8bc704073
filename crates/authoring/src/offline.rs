//! Facts about modules without an operator: charts are rendered with the values of files, and hooks are asked for their
//! configuration. Never talks to a cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::time::Duration;

use addon_core::failure::Failure;
use addon_core::hook::config::HookKind;
use addon_core::values::merge::merge;
use child::Spawner;
use disk::{Chart, Found, FoundModule, HookFile};
use helm::{Helm, HelmError, Verbosity};
use helm_yaml::yaml;
use names::{HookId, Owner};
use serde_json::{Map, Value, json};
use settings::Environment;
use tokio_util::sync::CancellationToken;

use hooks::config::{Asker, Said};

/// The deadline of a hook that is asked for its configuration.
pub(super) const HOOK_DEADLINE: Duration = Duration::from_secs(30);
/// The Kubernetes version for rendering, because no cluster is asked.
const KUBE_VERSION: &str = "1.33.0";
/// The part of helm's errors about a valid template that fails with the given values.
const OF_VALUES: &str = "executing \"";

/// The error of a hook that does not find the shell framework. The image has the framework where hooks look for it;
/// other machines have to set its path.
const LACKS_FRAMEWORK: &str = "shell_lib.sh: No such file";
const FRAMEWORK: &str = "FRAMEWORK_DIR has to name the directory of the shell framework: frameworks/shell in the repository of the operator";

/// The same failure, with a hint if the framework was not found.
pub(super) fn with_framework(mut failure: Failure) -> Failure {
    if failure.report.contains(LACKS_FRAMEWORK) {
        failure.report = format!("{}\n{FRAMEWORK}", failure.report.trim_end());
    }
    failure
}

/// Whether the chart may render with other values.
pub(super) fn is_about_values(message: &str) -> bool {
    message.contains(OF_VALUES)
}

/// The settings of a rendering.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rendering<'a> {
    /// The namespace of the release.
    pub(super) namespace: &'a str,
    /// The modules that the chart sees as enabled; none if it sees only its own module.
    pub(super) enabled: Option<&'a [&'a str]>,
    /// Values that take precedence over the values of the files.
    pub(super) values: &'a Value,
    pub(super) verbosity: Verbosity,
}

/// The tools for checking modules without a cluster.
pub struct Offline<'a> {
    pub found: &'a Found,
    pub environment: &'a Environment,
    pub spawner: Spawner,
    pub tmp: &'a Path,
}

impl std::fmt::Debug for Offline<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Offline").finish_non_exhaustive()
    }
}

impl Offline<'_> {
    /// Runs a hook file to get its configuration.
    pub(super) async fn ask(&self, owner: &Owner, module: Option<&Path>, file: &HookFile) -> Result<Said, Failure> {
        let environment = self.environment.inherited();
        let asker = Asker {
            spawner: &self.spawner,
            environment: &environment,
            cwd: None,
            kind: HookKind::from(owner),
            deadline: HOOK_DEADLINE,
            module,
        };
        let id = HookId {
            owner: owner.clone(),
            name: file.name.clone(),
        };
        let said = asker.ask(&id, &file.path, &CancellationToken::new()).await;
        said.map_err(with_framework)
    }

    /// Renders the chart of a module with the values of its files.
    pub(super) async fn render(
        &self,
        module: &FoundModule,
        chart: Chart,
        rendering: Rendering<'_>,
    ) -> io::Result<Result<String, HelmError>> {
        let values = self.values(module, rendering);
        let Rendering {
            namespace, verbosity, ..
        } = rendering;
        self.render_with(module, chart, &values, namespace, verbosity).await
    }

    /// Renders the chart of a module with exactly these values.
    pub(super) async fn render_with(
        &self,
        module: &FoundModule,
        chart: Chart,
        values: &Value,
        namespace: &str,
        verbosity: Verbosity,
    ) -> io::Result<Result<String, HelmError>> {
        let name = module.name.as_str();
        let made = match chart {
            Chart::Whole => None,
            Chart::Made => Some(helm::chart::make(
                name,
                &module.path,
                |dir| chart.leaves_out(dir),
                self.tmp,
            )?),
        };
        let values_file = self.tmp.join(format!("{name}.values.yaml"));
        fs_err::write(&values_file, yaml::to_string(values))?;
        let chart = helm::Chart {
            release: name,
            dir: made.as_ref().map_or(module.path.as_path(), |made| made.path()),
            values: &values_file,
            labels: &BTreeMap::new(),
            kubeconfig: None,
            kept: &BTreeSet::new(),
            withheld: &BTreeSet::new(),
            claims: None,
            env: &[],
        };
        let cancel = CancellationToken::new();
        let rendered = self
            .helm(namespace)
            .template(chart, KUBE_VERSION, [], verbosity, &cancel)
            .await;
        Ok(rendered)
    }

    /// The values of the module's files, in the form for the chart.
    fn values(&self, module: &FoundModule, rendering: Rendering<'_>) -> Value {
        let mut global = match &self.found.global_values {
            Value::Object(global) => global.clone(),
            _ => Map::new(),
        };
        let own = [module.name.as_str()];
        global.insert("enabledModules".to_owned(), json!(rendering.enabled.unwrap_or(&own)));
        let key = module.name.values_key();
        let values = json!({ "global": global, &key: module.values });
        let over: Map<String, Value> = ["global", &key]
            .into_iter()
            .filter_map(|key| Some((key.to_owned(), rendering.values.get(key)?.clone())))
            .collect();
        // Merging fails only for values that are nested too deep, which no chart could read either.
        merge(values.clone(), &Value::Object(over)).unwrap_or(values)
    }

    fn helm(&self, namespace: &str) -> Helm {
        let environment = self.environment;
        let options = helm::Options::for_rendering(
            environment.get("HELM_BIN"),
            environment.get("PATH"),
            self.tmp,
            namespace,
        );
        Helm::new(options, self.spawner.clone())
    }
}
