//! One operator with one module: a round brings its release into a state, lets an event follow, and checks the end.

mod chart;
mod damage;
mod help;
mod look;
mod original;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use fs_err as fs;
use serde_json::json;
use testbed::audit::Mark;
use testbed::kubectl::Kubectl;
use testbed::part::Part;
use testbed::plane::User;
use testbed::shared;
use testbed::wait::wait_until;

use crate::cluster;
use crate::life::{self, Life, Program};
use crate::plan::{Follow, Kind, Plan, State};
use crate::stage::Stage;
use crate::tally::{Help, Left};
use chart::Section;
use help::Way;

/// The module, its release, and most of its objects.
const NAME: &str = "wedge";

/// The release as people want it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Wanted {
    On(Section),
    Off,
}

/// The state in which records must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Records {
    /// The newest one is deployed and well labelled, and the only deployed one.
    Good,
    /// The same, but it may lack the operator's own labels, which the next upgrade makes again.
    Labelled,
}

/// The state before the damage.
struct Before {
    ids: BTreeMap<Kind, String>,
    mark: Mark,
    /// The lengths of the logs, by their number.
    logs: Vec<usize>,
}

pub(crate) struct World {
    /// Declared before the stage, so that the operator ends before its stage is deleted.
    life: Option<Life>,
    stage: Stage<'static>,
    helm: Part,
    bound: Duration,
    wanted: Wanted,
    records: Records,
    /// The output of the last command that a person ran in the round.
    said: String,
    round: usize,
    lives: usize,
}

impl World {
    pub(crate) fn build(helm: Part, bound: Duration) -> anyhow::Result<Self> {
        let plane = shared::plane();
        let stage = Stage::build(plane, "campaign-wedge", &[])?;
        let folder = stage.folder().to_owned();
        fs::create_dir(folder.join("no-hooks"))?;
        chart::write(&folder.join("modules"), &group(stage.namespace().name()))?;
        let stage = stage
            .with("HELM_BIN", shared::program(helm))
            .with("ADDON_OPERATOR_MODULES_DIR", folder.join("modules"))
            .with("ADDON_OPERATOR_GLOBAL_HOOKS_DIR", folder.join("no-hooks"))
            // The unfinished work of another helm is waited for during this time.
            .with("HELM_TIMEOUT", "15s");
        stage.namespace().kubectl(["create", "configmap", cluster::CONFIG])?;
        let mut world = Self {
            life: None,
            stage,
            helm,
            bound,
            wanted: Wanted::Off,
            records: Records::Good,
            said: String::new(),
            round: 0,
            lives: 0,
        };
        world.serve(&["v1beta1", "v1"])?;
        world.start()?;
        world.wait(Duration::from_mins(2), "the first converge")?;
        Ok(world)
    }

    /// The end of the last log, for the report of a failure.
    pub(crate) fn evidence(&self) -> String {
        let log = self.life.as_ref();
        let log = log.map_or_else(String::new, |life| life::tail(life.log(), 80));
        let why = self
            .why()
            .map_or_else(|error| format!("{error:#}"), |why| why.to_string());
        format!("{log}\n{why}\n{}", self.stage.namespace().evidence())
    }

    /// Plays one round.
    pub(crate) fn play(&mut self, plan: &Plan) -> anyhow::Result<Left> {
        self.round += 1;
        self.said.clear();
        self.install(plan)?;
        let before = Before {
            ids: self.ids()?,
            mark: self.stage.plane().audit().mark()?,
            logs: self.logs()?.iter().map(String::len).collect(),
        };
        let begun = self.strike(plan, &before)?;
        let is_restart = plan.follow == Follow::Restart && matches!(plan.state, State::Record(_));
        self.records = if is_restart { Records::Labelled } else { Records::Good };
        let mut left = self.free(plan, begun)?;
        self.records = Records::Good;
        if is_restart {
            self.ask_for(self.next(plan)?)?;
            self.wait(self.bound, "an upgrade after the restart")?;
        }
        match plan.follow {
            Follow::Upgrade | Follow::Restart => {}
            Follow::Removal => left.behind = self.tidy(plan, &before)?,
            Follow::Original => self.come_back()?,
        }
        self.check(plan, &before, left.help)?;
        if plan.follow != Follow::Removal {
            // The release must also go as any other.
            self.switch_off()?;
            let removed = Instant::now();
            let way = self.end_or_way(plan, "a removal at the end of the round")?;
            if let Some(way) = way {
                self.go(&way)?;
                self.wait(self.bound, "a removal after the command")?;
                left.help = left.help.max(way.help());
            }
            left.alone = left.alone.max(removed.elapsed());
            left.behind = self.tidy(plan, &before)?;
        }
        self.restore(plan)?;
        Ok(left)
    }

    /// Installs the revisions of before the damage.
    fn install(&mut self, plan: &Plan) -> anyhow::Result<()> {
        for revision in 1..=plan.revisions {
            let is_last = revision == plan.revisions;
            let kinds = if is_last { &plan.kinds } else { &plan.first };
            let version = if plan.state == State::VersionGone {
                "v1beta1"
            } else {
                "v1"
            };
            let section = Section::new(&self.word(revision), kinds, version);
            self.ask_for(section)?;
            self.wait(self.bound, "a release without damage")?;
        }
        Ok(())
    }

    /// The word of a revision before the damage.
    fn word(&self, revision: u32) -> String {
        format!("r{}-{revision}", self.round)
    }

    /// Damages the release, and lets the event follow.
    fn strike(&mut self, plan: &Plan, before: &Before) -> anyhow::Result<Instant> {
        if let State::Fixed(kind) = plan.state {
            let section = Section {
                changed: Some(kind),
                ..self.next(plan)?
            };
            self.ask_for(section)?;
            let begun = Instant::now();
            if self.end_or_way(plan, "an upgrade of a fixed field")?.is_none() && plan.follow.is_upgrade() {
                return Ok(begun);
            }
        } else {
            if plan.follow == Follow::Restart {
                self.life.take().context("a round begins alive")?.kill()?;
                self.wait_for_no_child()?;
            }
            self.damage(plan.state, plan.revisions, before)?;
        }
        match plan.follow {
            Follow::Removal => self.switch_off()?,
            Follow::Upgrade | Follow::Original => {
                if !matches!(plan.state, State::Fixed(_)) {
                    self.ask_for(self.next(plan)?)?;
                }
            }
            Follow::Restart => {
                if matches!(plan.state, State::KindGone | State::VersionGone | State::Refused) {
                    self.ask_for(self.next(plan)?)?;
                }
                if let Some(life) = self.life.take() {
                    life.kill()?;
                    self.wait_for_no_child()?;
                }
                self.start()?;
            }
        }
        Ok(Instant::now())
    }

    /// The section of the upgrade that follows.
    fn next(&self, plan: &Plan) -> anyhow::Result<Section> {
        let Wanted::On(section) = &self.wanted else {
            anyhow::bail!("the module is on before the damage");
        };
        let is_left_out = |kind: Kind| plan.state == State::KindGone && kind == Kind::Widget;
        let kinds: Vec<Kind> = section
            .kinds
            .iter()
            .copied()
            .filter(|kind| !is_left_out(*kind))
            .collect();
        Ok(Section::new(&format!("r{}-next", self.round), &kinds, "v1"))
    }

    /// Waits until the release has left its state, and does what the operator names meanwhile.
    fn free(&mut self, plan: &Plan, begun: Instant) -> anyhow::Result<Left> {
        let way = self.end_or_way(plan, "the release to come free")?;
        let alone = begun.elapsed();
        let mut helped = None;
        if let Some(way) = &way {
            self.go(way)?;
            let begun = Instant::now();
            self.wait(self.bound, &format!("the release to come free after {way:?}"))?;
            helped = Some(begun.elapsed());
        }
        Ok(Left {
            state: plan.state,
            follow: plan.follow,
            help: way.map_or(Help::Nothing, |way| way.help()),
            alone,
            helped,
            behind: 0,
        })
    }

    fn ask_for(&mut self, section: Section) -> anyhow::Result<()> {
        let data = json!({ "wedgeEnabled": "true", NAME: section.to_value().to_string() });
        self.wanted = Wanted::On(section);
        cluster::edit(self.stage.namespace(), &data)
    }

    fn switch_off(&mut self) -> anyhow::Result<()> {
        self.wanted = Wanted::Off;
        cluster::edit(self.stage.namespace(), &json!({ "wedgeEnabled": "false" }))
    }

    fn start(&mut self) -> anyhow::Result<()> {
        let program = Program::new(env!("CARGO_BIN_EXE_addon-operator"), ["start"]);
        self.life = Some(self.stage.start(&program)?);
        self.lives += 1;
        Ok(())
    }

    fn wait_for_no_child(&self) -> anyhow::Result<()> {
        let gone = || {
            let left = self.stage.children();
            left.is_empty().then_some(Some(())).ok_or(format!("{left:?}"))
        };
        wait_until(Duration::from_secs(10), "the end of the operator's children", gone)?;
        Ok(())
    }

    fn wait(&self, patience: Duration, what: &str) -> anyhow::Result<()> {
        wait_until(patience, what, || match self.look() {
            Ok(()) => Ok(Some(Ok(()))),
            Err(error) if self.life.as_ref().is_none_or(Life::has_ended) => {
                Ok(Some(Err(error.context("the operator has ended"))))
            }
            Err(error) => Err(format!("{error:#}")),
        })?
    }

    /// Waits until the release is as people want it, or until the operator names a way out.
    fn end_or_way(&self, plan: &Plan, what: &str) -> anyhow::Result<Option<Way>> {
        Ok(wait_until(self.bound, what, || match self.look() {
            Ok(()) => Ok(Some(None)),
            Err(error) => match self.way_out(plan) {
                Ok(Some(way)) => Ok(Some(Some(way))),
                Ok(None) => Err(format!("{error:#}")),
                Err(unknown) => Err(format!("{error:#}; {unknown:#}")),
            },
        })?)
    }

    fn kubectl(&self) -> Kubectl {
        self.stage.namespace().kubectl_as(User::Admin)
    }

    /// The logs of all lives.
    fn logs(&self) -> anyhow::Result<Vec<String>> {
        let log = |number| {
            let bytes = fs::read(self.stage.folder().join(format!("operator-{number}.log")))?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        (1..=self.lives).map(log).collect()
    }

    /// Stops the last operator, which has to leave no process behind.
    pub(crate) fn end(mut self) -> anyhow::Result<()> {
        let life = self.life.take().context("a world ends alive")?;
        life.stop(self.bound)?;
        let left = self.stage.children();
        ensure!(left.is_empty(), "what it started runs still: {left:?}");
        self.kubectl().run(["delete", "crd", &self.crd()])?;
        Ok(())
    }
}

/// The API group of the custom resource.
fn group(namespace: &str) -> String {
    format!("{namespace}.example.com")
}
