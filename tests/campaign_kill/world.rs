//! One operator behind a proxy that counts helm's writes: the kills, and the checks afterwards.

mod ambush;
mod look;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use fs_err as fs;
use serde_json::json;
use testbed::audit::Mark;
use testbed::part::Part;
use testbed::plane::User;
use testbed::proxy::Proxy;
use testbed::reader::{Objects, ReadError};
use testbed::shared;
use testbed::wait::wait_until;
use testbed::watched_helm::WatchedHelm;

use crate::cluster;
use crate::life::{self, Life, Program};
use crate::plan::{Blow, Phase, Writes};
use crate::stage::{File, Stage};
use crate::tally::Healed;
use look::revisions;

/// The module that is installed, changed and removed.
const VAULT: &str = "vault";
/// The number of pages in the module `vault`. An upgrade changes all of them.
const PAGES: usize = 6;
/// The module that is never changed.
const CELLAR: &str = "cellar";
/// The kinds of objects that must keep their UIDs.
const KEPT: [&str; 2] = ["persistentvolumeclaim", "secret"];

const FILES: [File; 8] = [
    File {
        path: "values.yaml",
        text: "cellarEnabled: true\nvaultEnabled: false\n",
    },
    File {
        path: "100-cellar/Chart.yaml",
        text: "apiVersion: v2\nname: cellar\nversion: 0.1.0\n",
    },
    File {
        path: "100-cellar/templates/claim.yaml",
        text: "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: cellar}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}\n",
    },
    File {
        path: "200-vault/Chart.yaml",
        text: "apiVersion: v2\nname: vault\nversion: 0.1.0\n",
    },
    File {
        path: "200-vault/values.yaml",
        text: "vault: {word: none}\n",
    },
    File {
        path: "200-vault/templates/claim.yaml",
        text: "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: vault}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}\n",
    },
    File {
        path: "200-vault/templates/secret.yaml",
        text: "apiVersion: v1\nkind: Secret\nmetadata: {name: vault}\nstringData: {combination: \"1234\"}\n",
    },
    File {
        path: "200-vault/templates/pages.yaml",
        text: "{{- range until 6 }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: vault-{{ . }}}\ndata: {word: {{ $.Values.vault.word | quote }}}\n{{- end }}\n",
    },
];

pub(crate) struct World {
    /// Declared before the stage, so that the operator ends before its stage is deleted.
    life: Option<Life>,
    proxy: Proxy,
    stage: Stage<'static>,
    helm: WatchedHelm,
    patience: Duration,
    /// The value on the pages; `None` while the vault is off.
    word: Option<String>,
    writes: Writes,
    /// The position in the audit log up to which requests have been checked.
    checked: Mark,
    round: usize,
    cellar: String,
}

impl World {
    /// Builds a world in which the vault was installed, changed and removed once without a kill, to count helm's writes
    /// in each phase.
    pub(crate) fn build(helm: Part, patience: Duration) -> anyhow::Result<Self> {
        let plane = shared::plane();
        let stage = Stage::build(plane, "campaign-kill", &FILES)?;
        let proxy = Proxy::start(plane, User::Operator)?;
        let folder = stage.folder().to_owned();
        fs::create_dir(folder.join("no-hooks"))?;
        let kubeconfig = folder.join("through-the-proxy");
        fs::write(
            &kubeconfig,
            proxy.kubeconfig(plane, User::Operator, stage.namespace().name()),
        )?;
        let helm = WatchedHelm::new(shared::program(helm), folder.join("notes"))?;
        let script = folder.join("watched-helm");
        helm.write(&script, "operator")?;
        let stage = stage
            .with("HELM_BIN", script)
            .with("KUBECONFIG", kubeconfig)
            .with("ADDON_OPERATOR_MODULES_DIR", folder.join("modules"))
            .with("ADDON_OPERATOR_GLOBAL_HOOKS_DIR", folder.join("no-hooks"));
        stage.namespace().kubectl(["create", "configmap", cluster::CONFIG])?;
        let mut world = Self {
            life: None,
            proxy,
            checked: plane.audit().mark()?,
            stage,
            helm,
            patience,
            word: None,
            writes: Writes::new(),
            round: 0,
            cellar: String::new(),
        };
        world.start()?;
        world.wait("the first converge")?;
        world.cellar = world
            .id("persistentvolumeclaim", CELLAR)?
            .context("the cellar has a claim")?;
        for phase in Phase::ALL {
            world.proxy.count("Helm/");
            world.ask_for(phase)?;
            world.wait("a phase in peace")?;
            world.check(phase)?;
            let writes = world.proxy.writes();
            ensure!(writes.len() > PAGES, "helm made few writes for {phase:?}: {writes:?}");
            world.writes.insert(phase, writes.len());
        }
        Ok(world)
    }

    pub(crate) fn is_installed(&self) -> bool {
        self.word.is_some()
    }

    pub(crate) fn writes(&self) -> &Writes {
        &self.writes
    }

    /// The end of the last log, for the report of a failure.
    pub(crate) fn evidence(&self) -> String {
        let log = self
            .life
            .as_ref()
            .map_or_else(String::new, |life| life::tail(life.log(), 60));
        format!("{log}\n{}", self.stage.namespace().evidence())
    }

    /// Asks for a change, kills at the moment, waits until the state is as it should be, and checks the requests on the
    /// way.
    pub(crate) fn strike(&mut self, blow: Blow) -> anyhow::Result<Healed> {
        self.round += 1;
        let before = self.kept()?;
        let last = self.newest()?;
        let scene = self.set(&blow)?.meet(self, blow)?;
        let at_the_blow = if blow.victim.ends_the_life() {
            self.kept()?
        } else {
            BTreeMap::new()
        };
        if self.life.is_none() {
            self.start()?;
        }
        let begun = Instant::now();
        self.wait("all to be as it should be")?;
        let took = begun.elapsed();
        self.check(blow.phase)?;
        if blow.phase != Phase::Uninstall {
            let now = self.kept()?;
            for (kind, id) in before.iter().chain(&at_the_blow) {
                ensure!(
                    now.get(kind) == Some(id),
                    "the {kind} is another: {id}, now {:?}",
                    now.get(kind)
                );
            }
        }
        if blow.phase == Phase::Upgrade {
            let revisions = revisions(&self.objects()?)?;
            ensure!(
                revisions.contains_key(&last),
                "revision {last} was good and is gone: {revisions:?}"
            );
        }
        Ok(Healed {
            phase: blow.phase,
            victim: blow.victim,
            left: scene.left(),
            missed: scene.missed,
            took,
        })
    }

    /// Edits the ConfigMap, as a person would.
    fn ask_for(&mut self, phase: Phase) -> anyhow::Result<()> {
        let word = format!("word {} of {phase:?}", self.round);
        let section = json!({ "word": word }).to_string();
        let data = match phase {
            Phase::Install => json!({ "vaultEnabled": "true", "vault": section }),
            Phase::Upgrade => json!({ "vault": section }),
            Phase::Uninstall => json!({ "vaultEnabled": "false" }),
        };
        self.word = (phase != Phase::Uninstall).then_some(word);
        cluster::edit(self.stage.namespace(), &data)
    }

    fn start(&mut self) -> anyhow::Result<()> {
        let program = Program::new(env!("CARGO_BIN_EXE_addon-operator"), ["start"]);
        self.life = Some(self.stage.start(&program)?);
        Ok(())
    }

    fn wait(&self, what: &str) -> anyhow::Result<()> {
        wait_until(self.patience, what, || match self.look() {
            Ok(()) => Ok(Some(Ok(()))),
            Err(error) if self.life.as_ref().is_none_or(Life::has_ended) => {
                Ok(Some(Err(error.context("the operator has ended"))))
            }
            Err(error) => Err(format!("{error:#}")),
        })?
    }

    fn objects(&self) -> Result<Objects, ReadError> {
        self.stage.namespace().reader()
    }

    /// Stops the last operator, which has to leave no process behind.
    pub(crate) fn end(mut self) -> anyhow::Result<()> {
        let life = self.life.take().context("a world ends alive")?;
        life.stop(self.patience)?;
        let left = self.stage.children();
        ensure!(left.is_empty(), "what it started runs still: {left:?}");
        Ok(())
    }
}
