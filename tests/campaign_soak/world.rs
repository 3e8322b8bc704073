//! Many modules and one operator: the edits of people, random failures, and the checks at the end.

mod look;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::json;
use testbed::draw::Draw;
use testbed::files;
use testbed::part::Part;
use testbed::plane::ControlPlane;
use testbed::wait::wait_until;

use crate::cluster;
use crate::figures::Usage;
use crate::life::{Life, Program};
use crate::stage::Stage;

const PAGE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: @NAME@, labels: {soak: page}}\n\
    data: {word: {{ .Values.@KEY@.word | quote }}}\n---\n\
    apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: @NAME@}\n";
/// A hook that fails one time in ten.
const HOOK: &str = r#"#!/bin/bash
if [[ ${1-} == --config ]]; then
  echo '{"configVersion": "v1", "beforeHelm": 1}'
  exit 0
fi
((RANDOM % 10)) || { echo "failed by chance" >&2; exit 1; }
"#;
/// The hook of `HOOK`, which also watches the objects of its module.
const WATCHING_HOOK: &str = r#"#!/bin/bash
if [[ ${1-} == --config ]]; then
  cat <<END
configVersion: v1
beforeHelm: 1
kubernetes:
- name: own
  kind: ConfigMap
  queue: @NAME@
  nameSelector: {matchNames: [@NAME@]}
  namespace: {nameSelector: {matchNames: [$ADDON_OPERATOR_NAMESPACE]}}
  jqFilter: .data.word
END
  exit 0
fi
((RANDOM % 10)) || { echo "failed by chance" >&2; exit 1; }
echo '{"name": "soak_runs_total", "action": "add", "value": 1, "labels": {"part": "@NAME@"}}' >"$METRICS_PATH"
"#;
/// A global hook that runs every two seconds.
const CLOCK_HOOK: &str = r#"#!/bin/bash
if [[ ${1-} == --config ]]; then
  echo '{"configVersion": "v1", "schedule": [{"name": "beat", "crontab": "*/2 * * * * *", "queue": "beat", "allowFailure": true}]}'
  exit 0
fi
((RANDOM % 10)) || { echo "failed by chance" >&2; exit 1; }
"#;
/// The number of modules of which one has a hook that watches objects.
const WATCHES_EVERY: usize = 5;

/// The size of a world.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    modules: usize,
    /// The time for which the counts must stay the same until the operator counts as quiet.
    rest: Duration,
}

impl Size {
    pub(crate) const LARGE: Self = Self {
        modules: 50,
        rest: Duration::from_secs(30),
    };
    pub(crate) const SMALL: Self = Self {
        modules: 6,
        rest: Duration::from_secs(3),
    };
}

/// One module and its release.
#[derive(Clone, Debug)]
struct Module {
    name: String,
    /// The key of the module's values.
    key: String,
}

pub(crate) struct World<'a> {
    /// Declared before the stage, so that the operator ends before its stage is deleted.
    life: Life,
    stage: Stage<'a>,
    size: Size,
    modules: Vec<Module>,
    /// The wanted text on the page of each module.
    words: BTreeMap<String, String>,
    edits: usize,
    deletions: usize,
}

impl<'a> World<'a> {
    pub(crate) fn build(plane: &'a ControlPlane, size: Size, operator: PathBuf) -> anyhow::Result<Self> {
        let stage = Stage::build(plane, "soak", &[])?;
        let folder = stage.folder().to_owned();
        let modules = furnish(&folder, size)?;
        let stage = stage
            .with("ADDON_OPERATOR_MODULES_DIR", folder.join("modules"))
            .with("ADDON_OPERATOR_GLOBAL_HOOKS_DIR", folder.join("global-hooks"))
            .with("ADDON_OPERATOR_DRIFT", "absent");
        stage.namespace().kubectl(["create", "configmap", cluster::CONFIG])?;
        let life = stage.start(&Program::new(operator, ["start"]))?;
        let words = modules.iter().map(|module| (module.name.clone(), "none".to_owned()));
        let world = Self {
            words: words.collect(),
            life,
            stage,
            size,
            modules,
            edits: 0,
            deletions: 0,
        };
        world
            .settle(Duration::from_mins(10))
            .with_context(|| world.evidence())?;
        Ok(world)
    }

    /// Changes one section to another value.
    pub(crate) fn edit(&mut self, draw: &mut Draw) -> anyhow::Result<()> {
        self.edits += 1;
        let Module { name, key } = &self.modules[draw.below(self.modules.len())];
        let word = format!("word {}", self.edits);
        cluster::edit(
            self.stage.namespace(),
            &json!({ key: json!({ "word": word }).to_string() }),
        )?;
        self.words.insert(name.clone(), word);
        Ok(())
    }

    /// Deletes an object of a release.
    pub(crate) fn delete(&mut self, draw: &mut Draw) -> anyhow::Result<()> {
        self.deletions += 1;
        let module = &self.modules[draw.below(self.modules.len())];
        let kind = draw.pick(&["configmap", "serviceaccount"]);
        let name = module.name.as_str();
        self.stage
            .namespace()
            .kubectl(["delete", kind, name, "--ignore-not-found"])?;
        Ok(())
    }

    pub(crate) fn restart_api_server(&self) -> anyhow::Result<()> {
        Ok(self.stage.plane().restart(Part::KubeApiserver)?)
    }

    /// Waits until the state is as people want it.
    pub(crate) fn settle(&self, patience: Duration) -> anyhow::Result<()> {
        let look = || {
            ensure!(!self.life.has_ended(), "the operator has ended");
            self.in_force()?;
            self.is_at_rest().map(Some)
        };
        Ok(wait_until(patience, "all to be as it should be", look)?)
    }

    /// The operator's use of the machine while nothing happens; waits until it does not change.
    pub(crate) fn quiet(&self) -> anyhow::Result<Usage> {
        let mut last = (Usage::default(), std::time::Instant::now());
        Ok(wait_until(Duration::from_mins(5), "quiet", || -> anyhow::Result<_> {
            let now = Usage {
                memory: 0,
                ..self.usage()?
            };
            if now != last.0 || now.children > 0 {
                last = (now, std::time::Instant::now());
            }
            (last.1.elapsed() > self.size.rest).then(|| self.usage()).transpose()
        })?)
    }

    /// Waits until the operator uses no more of anything than in the earlier measurement `then`.
    pub(crate) fn quiet_as(&self, then: &Usage) -> anyhow::Result<Usage> {
        Ok(wait_until(Duration::from_mins(5), "nothing to be left", || {
            let now = self.usage()?;
            match now.more_than(*then) {
                Some(more) => anyhow::bail!("there are more {more}: {now}; before: {then}"),
                None => Ok(Some(now)),
            }
        })?)
    }

    pub(crate) fn line(&self) -> String {
        let Self {
            modules,
            edits,
            deletions,
            ..
        } = self;
        format!(
            "{} modules, {edits} edits, {deletions} deleted objects, one kill of the API server",
            modules.len()
        )
    }

    pub(crate) fn evidence(&self) -> String {
        self.stage.namespace().evidence()
    }

    /// Stops the operator, which has to leave no process behind.
    pub(crate) fn end(self) -> anyhow::Result<()> {
        self.life.stop(Duration::from_mins(1))?;
        let left = self.stage.children();
        ensure!(left.is_empty(), "what it started runs still: {left:?}");
        Ok(())
    }
}

/// Writes the modules and hooks.
fn furnish(folder: &Path, size: Size) -> anyhow::Result<Vec<Module>> {
    let write = |path: String, text: &str| files::put(folder, path, text);
    let mut flags = String::new();
    let mut modules = Vec::new();
    let letters: Vec<char> = ('a'..='z').collect();
    for number in 0..size.modules {
        let (first, second) = (letters[number / letters.len()], letters[number % letters.len()]);
        let module = Module {
            name: format!("part-{first}{second}"),
            key: format!("part{}{second}", first.to_ascii_uppercase()),
        };
        let Module { name, key } = &module;
        let filled = |text: &str| text.replace("@NAME@", name).replace("@KEY@", key);
        let at = format!("modules/100-{name}");
        write(
            format!("{at}/Chart.yaml"),
            &filled("apiVersion: v2\nname: @NAME@\nversion: 0.1.0\n"),
        )?;
        write(format!("{at}/values.yaml"), &filled("@KEY@: {word: none}\n"))?;
        write(format!("{at}/templates/page.yaml"), &filled(PAGE))?;
        let hook = if number % WATCHES_EVERY == 0 {
            WATCHING_HOOK
        } else {
            HOOK
        };
        write(format!("{at}/hooks/chance.sh"), &filled(hook))?;
        flags.push_str(&filled("@KEY@Enabled: true\n"));
        modules.push(module);
    }
    write("modules/values.yaml".to_owned(), &flags)?;
    write("global-hooks/clock.sh".to_owned(), CLOCK_HOOK)?;
    let names: BTreeSet<&String> = modules.iter().map(|module| &module.name).collect();
    ensure!(names.len() == size.modules, "each module has a name of its own");
    Ok(modules)
}
