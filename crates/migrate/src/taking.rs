//! Takes one planned release: reads its contents, writes its module, and compares the module's objects with those of the
//! release.
//!
//! Never leaves the files of a module that is not taken.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use addon_core::failure::Failure;
use kube_access::error::RequestError;
use names::ModuleName;
use report::Chain;
use serde::Serialize;
use serde_json::{Value, json};

use crate::contents::{self, Contents, OPERATOR_CHART};
use crate::folder::{self, FolderError};
use crate::live;
use crate::manifest::{self, ARGO_HOOK, Rendering};
use crate::module::{self, Draft, OldNames};
use crate::namespace;
use crate::outline::{Facts, HelmRelease, Outline, Place, Record};
use crate::plan::{Planned, Way};
use crate::read::Reader;
use crate::remarks;
use crate::render::Renderer;
use crate::values::{ValuePath, lay_over, named_secret, without};

/// The choices of the person.
#[derive(Debug, Clone)]
pub struct Choices {
    /// The directory with charts that are not in the cluster.
    pub charts: Option<PathBuf>,
    pub accepts_differences: bool,
    /// Whether secret values are written into the ConfigMap.
    pub with_secrets: bool,
}

/// A release that is taken over, as far as the plan tells it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Taken {
    pub module: ModuleName,
    pub order: u32,
    /// The directory of the module, below `modules`.
    pub directory: String,
    /// The object that named the release until now.
    pub from: Place,
    pub release: String,
    pub namespace: String,
    /// Whether the release stays as it is; otherwise a new one takes over its objects.
    pub keeps_release: bool,
    pub chart: String,
    pub version: String,
    /// The number of values that people have set.
    pub values: usize,
    /// Helm hooks that run at the hand-over.
    pub hooks: Vec<String>,
    /// The differences that the person accepts.
    pub differences: Vec<String>,
    /// Values that the person has to supply, because they are secret.
    pub secrets: Vec<String>,
    /// Facts about the hand-over, in words.
    pub remarks: Vec<String>,
    /// The record, for the commands; none for Argo CD.
    #[serde(skip)]
    pub record: Option<(Place, Record)>,
    /// The section of the ConfigMap.
    #[serde(skip)]
    pub section: Value,
}

/// Why a release is not taken.
#[derive(Debug)]
pub enum NotTaken {
    /// For a reason of its own.
    Left(String),
    /// Because nothing has to be done about it.
    Needless(String),
    /// For a reason that stops all others, too.
    Failed(Failure),
    Folder(FolderError),
}

impl From<String> for NotTaken {
    fn from(reason: String) -> Self {
        Self::Left(reason)
    }
}

impl From<RequestError> for NotTaken {
    fn from(error: RequestError) -> Self {
        if error.is_unreachable() {
            Self::Failed(error.into())
        } else {
            Self::Left(Chain(&error).to_string())
        }
    }
}

/// The tools for all releases.
#[derive(Debug)]
pub struct Taking<'a> {
    pub reader: &'a Reader,
    pub renderer: &'a Renderer,
    pub choices: &'a Choices,
    /// The operator's namespace.
    pub operator: &'a str,
    /// The global values in the operator's ConfigMap.
    pub global: &'a Value,
    /// The directory of modules.
    pub modules: &'a Path,
}

impl Taking<'_> {
    /// Takes a release. `done` has the modules that were taken before, by the objects that named them.
    pub async fn take(&self, planned: Planned, done: &BTreeMap<Place, ModuleName>) -> Result<Taken, NotTaken> {
        let mut contents = self.contents(&planned.outline).await?;
        if contents.chart.name == OPERATOR_CHART {
            return Err(NotTaken::Needless("it is the release of an operator itself".to_owned()));
        }
        let dir = self.modules.join(planned.dir());
        let taken = self.written(planned, &mut contents, &dir, done).await;
        if taken.is_err() {
            // Only a leftover of this call can be there.
            drop(fs_err::remove_dir_all(&dir));
        }
        taken
    }

    async fn contents(&self, outline: &Outline) -> Result<Contents, NotTaken> {
        let charts = self.choices.charts.as_deref();
        let Some((stored, record)) = &outline.record else {
            let Facts::Argocd(application) = &outline.facts else {
                return Err(NotTaken::Left("it has no record".to_owned()));
            };
            return Ok(contents::of_application(application, charts)?);
        };
        let fields = self.reader.record(&stored.namespace, &record.secret).await?;
        let mut contents = contents::of_record(&fields, charts)?;
        match &outline.facts {
            Facts::Flux(facts) if facts.sources.iter().any(|source| source.is_secret) => {
                contents.secret = contents::not_public(&contents.values, &self.public(facts).await?);
            }
            Facts::Helm => {
                if let Some(owner) = contents.release.as_ref().and_then(contents::flux_owner) {
                    return Err(NotTaken::Left(format!(
                        "the HelmRelease '{owner}' looks after it: `addon-operator migrate from flux` takes it over"
                    )));
                }
            }
            Facts::Flux(_) | Facts::Argocd(_) => {}
        }
        Ok(contents)
    }

    /// The values of a HelmRelease that do not come from Secrets.
    async fn public(&self, facts: &HelmRelease) -> Result<Value, NotTaken> {
        let mut public = json!({});
        for source in facts.sources.iter().filter(|source| !source.is_secret) {
            if let Some(text) = self.reader.values(source).await? {
                contents::add_public(&mut public, source, &text)?;
            }
        }
        if facts.values.is_object() {
            lay_over(&mut public, facts.values.clone());
        }
        Ok(public)
    }

    async fn written(
        &self,
        planned: Planned,
        contents: &mut Contents,
        dir: &Path,
        done: &BTreeMap<Place, ModuleName>,
    ) -> Result<Taken, NotTaken> {
        let secret: BTreeSet<ValuePath> = named_secret(&contents.values)
            .union(&contents.secret)
            .cloned()
            .collect();
        let withheld = if self.choices.with_secrets {
            BTreeSet::new()
        } else {
            secret.clone()
        };
        let (needs, mut remarks) = remarks::needs(&planned.outline, done);
        remarks.extend(planned.outline.remarks.iter().cloned());
        let rendering = self
            .rendering(&planned, contents, dir, &needs, &withheld, &secret)
            .await?;
        let hooks = rendering.hooks_at(planned.way.events());
        let again = match contents.release {
            Some(_) => None,
            None => Some(
                self.rendering(&planned, contents, dir, &needs, &withheld, &secret)
                    .await?,
            ),
        };
        let live = self.live(&planned.outline, &rendering).await?;
        let differences = self.changes(&planned, contents, &rendering, again.as_ref(), &hooks, live)?;
        remarks.extend(remarks::of_chart(&contents.chart));
        let directory = planned.dir();
        let Planned {
            module,
            order,
            way,
            outline,
        } = planned;
        Ok(Taken {
            directory,
            module,
            order,
            from: outline.place,
            release: outline.release,
            namespace: outline.namespace,
            keeps_release: way == Way::Mark,
            chart: contents.chart.name.clone(),
            version: contents.chart.version.clone(),
            values: crate::values::leaves(&contents.values).len(),
            hooks,
            differences,
            secrets: withheld.iter().map(ToString::to_string).collect(),
            remarks,
            record: outline.record,
            section: without(&contents.values, &withheld),
        })
    }

    /// Writes the module, and renders it. Templates that leave the namespace to helm get a line for it.
    async fn rendering(
        &self,
        planned: &Planned,
        contents: &mut Contents,
        dir: &Path,
        needs: &[ModuleName],
        withheld: &BTreeSet<ValuePath>,
        secret: &BTreeSet<ValuePath>,
    ) -> Result<Rendering, NotTaken> {
        let corrects_drift = matches!(&planned.outline.facts, Facts::Flux(facts) if facts.corrects_drift);
        let mut has_settled = planned.outline.namespace == self.operator;
        loop {
            let draft = Draft {
                module: &planned.module,
                chart: &contents.chart,
                old: OldNames {
                    release: &planned.outline.release,
                    namespace: &planned.outline.namespace,
                },
                installs: planned.way == Way::Install,
                operator: self.operator,
                needs,
                corrects_drift,
                required: withheld,
            };
            let rendering = self.rendered(planned, &draft, &contents.values, secret, dir).await?;
            let is_argo_hook = |object: &Value| !object["metadata"]["annotations"][ARGO_HOOK].is_null();
            if let Some(hook) = rendering.objects.iter().find(|rendered| is_argo_hook(&rendered.object)) {
                let template = &hook.template;
                return Err(NotTaken::Left(format!(
                    "its chart has a hook of Argo CD, which helm does not know: {template}"
                )));
            }
            let homeless: BTreeSet<String> = rendering
                .homeless(&self.reader.kinds)
                .into_iter()
                .map(str::to_owned)
                .collect();
            if has_settled || homeless.is_empty() {
                return match homeless.first().filter(|_| planned.outline.namespace != self.operator) {
                    None => Ok(rendering),
                    Some(template) => Err(NotTaken::Left(format!(
                        "{template} renders an object without a namespace, and the operator's helm would put it into '{}'",
                        self.operator
                    ))),
                };
            }
            self.settle(planned, contents, &homeless);
            has_settled = true;
        }
    }

    /// Writes the module, and renders it as the hand-over will.
    async fn rendered(
        &self,
        planned: &Planned,
        draft: &Draft<'_>,
        values: &Value,
        secret: &BTreeSet<ValuePath>,
        dir: &Path,
    ) -> Result<Rendering, NotTaken> {
        let files = draft.files();
        folder::write(dir, &files).map_err(NotTaken::Folder)?;
        let record = planned.outline.record.as_ref().filter(|_| planned.way == Way::Mark);
        if let Some((_, record)) = record {
            let coming = module::revision(record.revision.saturating_add(1));
            folder::write(dir, &[coming].into()).map_err(NotTaken::Folder)?;
        }
        let apis = &self.reader.apis;
        let rendered = self
            .renderer
            .render(dir, &planned.module, values, self.global, secret, apis)
            .await;
        let rendering =
            rendered.map_err(|error| NotTaken::Left(format!("its chart cannot be rendered: {}", Chain(&error))))?;
        if record.is_some() {
            drop(fs_err::remove_dir_all(dir));
            folder::write(dir, &files).map_err(NotTaken::Folder)?;
        }
        Ok(rendering)
    }

    /// Writes the namespace into the templates.
    fn settle(&self, planned: &Planned, contents: &mut Contents, homeless: &BTreeSet<String>) {
        let module = planned.module.as_str();
        for template in homeless {
            // Helm names a chart by its alias.
            let inner = [planned.module.values_key(), contents.chart.name.clone()];
            let path = inner
                .iter()
                .find_map(|chart| template.strip_prefix(&format!("{module}/charts/{chart}/")));
            let Some(bytes) = path.and_then(|path| contents.chart.files.get_mut(path)) else {
                continue;
            };
            let text = String::from_utf8_lossy(bytes).into_owned();
            if let Some(settled) = namespace::settle(&text, &self.reader.kinds) {
                *bytes = settled.into_bytes();
            }
        }
    }

    /// The differences to the objects in the cluster, if there is no record of them.
    async fn live(&self, outline: &Outline, rendering: &Rendering) -> Result<Vec<String>, NotTaken> {
        match &outline.facts {
            Facts::Argocd(application) => {
                Ok(live::differences(self.reader, &application.objects, rendering, &outline.namespace).await?)
            }
            Facts::Helm | Facts::Flux(_) => Ok(Vec::new()),
        }
    }

    /// All that changes, in words, if the person accepts it. `again` is a second rendering for charts without a record.
    fn changes(
        &self,
        planned: &Planned,
        contents: &Contents,
        rendering: &Rendering,
        again: Option<&Rendering>,
        hooks: &[String],
        live: Vec<String>,
    ) -> Result<Vec<String>, NotTaken> {
        let mut changes = self.differences(planned, contents, rendering)?;
        changes.extend(live);
        if let Some(again) = again {
            let drawn = manifest::differences(rendering, again, &planned.outline.namespace, &self.reader.kinds);
            changes.extend(drawn.iter().map(|drawn| format!("{drawn} each time")));
        }
        changes.extend(manifest::remade(hooks));
        changes.extend(manifest::by_heritage(rendering));
        if !changes.is_empty() && !self.choices.accepts_differences {
            return Err(NotTaken::Left(format!(
                "its module would change objects: {}; --accept-differences takes it over nevertheless",
                changes.join("; ")
            )));
        }
        Ok(changes)
    }

    /// The differences to the objects of now, in words.
    fn differences(
        &self,
        planned: &Planned,
        contents: &Contents,
        rendering: &Rendering,
    ) -> Result<Vec<String>, NotTaken> {
        let (outline, kinds) = (&planned.outline, &self.reader.kinds);
        let Some(release) = &contents.release else {
            let Facts::Argocd(application) = &outline.facts else {
                return Ok(Vec::new());
            };
            return Ok(manifest::other_names(
                &application.objects,
                rendering,
                &outline.namespace,
                kinds,
            ));
        };
        if planned.way == Way::Mark {
            let lost = manifest::lost(release, rendering, &outline.namespace, kinds);
            if !lost.is_empty() {
                return Err(NotTaken::Left(format!(
                    "its module does not render {}, and helm would delete that: first upgrade the release with the annotation \
                     helm.sh/resource-policy: keep on it",
                    lost.join(", ")
                )));
            }
        }
        Ok(manifest::differences(release, rendering, &outline.namespace, kinds))
    }
}
