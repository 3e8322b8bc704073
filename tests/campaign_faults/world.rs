//! One operator and its helm behind a proxy: the state that people want, the faults, and the checks afterwards.

mod deeds;
mod files;
mod look;
mod seen;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use fs_err as fs;
use testbed::audit::Mark;
use testbed::kubectl::Kubectl;
use testbed::part::Part;
use testbed::plane::outage::Backup;
use testbed::plane::{ControlPlane, User};
use testbed::process;
use testbed::proxy::Proxy;
use testbed::shared;
use testbed::wait::wait_until;
use testbed::watched_helm::WatchedHelm;

use crate::cluster;
use crate::life::{self, Life, Program};
use crate::plan::{Deed, Outage, Plan, Stroke};
use crate::stage::Stage;
use crate::tally::Healed;
use deeds::Wanted;
use seen::Told;

/// Long enough for every step without faults.
const PATIENCE: Duration = Duration::from_mins(2);

pub(crate) struct World<'a> {
    /// Declared before the stage, so that the operator ends before its stage is deleted.
    life: Option<Life>,
    proxy: Proxy,
    stage: Stage<'a>,
    notes: PathBuf,
    helm: WatchedHelm,
    wanted: Wanted,
    /// The releases as they were without faults, for each state of the vault that people may want.
    peace: BTreeMap<Option<usize>, BTreeMap<String, Told>>,
    /// The position in the audit log up to which requests have been checked.
    checked: Mark,
    /// The UIDs of objects that hold data, by kind and name.
    kept: BTreeMap<(String, String), String>,
    /// How often a release was damaged since the operator's start.
    damages: u32,
    /// How many operator processes have ended because their lease had run out.
    overdue: u32,
    /// The time until which dead connections may be trusted.
    silent_until: Instant,
    /// The number of failed lease requests at the start of the previous round and of this one. The last successful
    /// renewal may have been in the previous round.
    vain: [u64; 2],
}

/// The event of one moment of a plan.
#[derive(Clone, Copy, Debug)]
enum Turn {
    Faults,
    Deed(Deed),
    Outage(Outage),
}

impl<'a> World<'a> {
    /// Builds a world at rest. Each state that people may want of the vault has been reached once without faults, so
    /// that its releases are known.
    pub(crate) fn build(plane: &'a ControlPlane, helm: Part) -> anyhow::Result<Self> {
        let stage = Stage::build(plane, "campaign-faults", &[])?;
        let proxy = Proxy::start(plane, User::Operator)?;
        let folder = stage.folder().to_owned();
        let notes = folder.join("notes");
        let helm = WatchedHelm::new(shared::program(helm), &notes)?;
        let script = folder.join("watched-helm");
        helm.write(&script, "operator")?;
        files::write(&folder, stage.namespace().name(), &notes)?;
        let kubeconfig = folder.join("through-the-proxy");
        fs::write(
            &kubeconfig,
            proxy.kubeconfig(plane, User::Operator, stage.namespace().name()),
        )?;
        let stage = stage
            .with("HELM_BIN", script)
            .with("KUBECONFIG", kubeconfig)
            .with("ADDON_OPERATOR_MODULES_DIR", folder.join("modules"))
            .with("ADDON_OPERATOR_GLOBAL_HOOKS_DIR", folder.join("no-hooks"))
            .with("ADDON_OPERATOR_DRIFT", "changed")
            // Over a silent connection helm waits until its timeout.
            .with("HELM_TIMEOUT", "30s");
        stage.namespace().kubectl(["create", "configmap", cluster::CONFIG])?;
        let mut world = Self {
            life: None,
            proxy,
            checked: plane.audit().mark()?,
            stage,
            notes,
            helm,
            wanted: Wanted::default(),
            peace: BTreeMap::new(),
            kept: BTreeMap::new(),
            damages: 0,
            overdue: 0,
            silent_until: Instant::now(),
            vain: [0; 2],
        };
        for note in 0..crate::plan::NOTES {
            world.act(Deed::Note(note))?;
        }
        world.start()?;
        world.learn()?;
        for deed in [Deed::Switch, Deed::Edit] {
            world.act(deed)?;
            world.learn()?;
        }
        Ok(world)
    }

    /// Waits until the current wish is fulfilled without faults, and remembers the releases.
    fn learn(&mut self) -> anyhow::Result<()> {
        self.wait(&Plan::default(), PATIENCE, "all to be as people want it, in peace")?;
        let told = self.seen()?.releases()?;
        self.peace.insert(self.wanted.vault(), told);
        self.kept = self.seen()?.kept();
        Ok(())
    }

    /// Plays a plan, waits until the state is as it should be, and checks the requests of the round.
    pub(crate) fn play(&mut self, plan: Plan, bound: Duration) -> anyhow::Result<Healed> {
        let was_on = self.wanted.vault().is_some();
        let before = std::mem::take(&mut self.kept);
        let (_, hits) = self.proxy.seen();
        let (lost, overdue) = (self.said(HANDED_OVER)?, self.overdue);
        self.vain = [self.vain[1], self.proxy.leases_in_vain()];
        let backup = if plan.restores() {
            Some((self.stage.plane().backup()?, self.wanted.clone()))
        } else {
            None
        };
        self.go_through(&plan, backup.as_ref())?;
        self.proxy.heal();
        let begun = Instant::now();
        let ticks = self.ticks();
        // A dead connection may come from an earlier round.
        self.silent_until = self.silent_until.max(begun + plan.silence());
        let bound = bound + self.silent_until.saturating_duration_since(begun);
        self.wait(&plan, bound, "the same end as without faults")?;
        let tick = || Ok::<_, String>((self.ticks() > ticks).then_some(()));
        wait_until(bound, "the hook that runs every other second", tick)?;
        let took = begun.elapsed();
        self.check(&plan)?;
        self.kept = self.seen()?.kept();
        let vault_stays = was_on && !plan.switches();
        for (object, id) in before {
            let stays = object.1 == files::CELLAR || vault_stays;
            ensure!(
                !stays || self.kept.get(&object) == Some(&id),
                "{object:?} is another: {id}, now {:?}",
                self.kept.get(&object)
            );
        }
        let deposed = self.said(HANDED_OVER)? != lost || self.overdue != overdue;
        ensure!(
            !deposed || self.may_lose_the_lease(&plan),
            "the lease was lost without a reason"
        );
        if self.damages >= DAMAGES {
            self.begin_anew()?;
        }
        Ok(Healed {
            plan,
            hits: self.proxy.seen().1 - hits,
            took,
            deposed,
        })
    }

    fn go_through(&mut self, plan: &Plan, backup: Option<&(Backup, Wanted)>) -> anyhow::Result<()> {
        let mut turns: Vec<(Duration, Turn)> = Vec::new();
        for stroke in &plan.strokes {
            turns.extend([(stroke.from, Turn::Faults), (stroke.until, Turn::Faults)]);
        }
        turns.extend(plan.deeds.iter().map(|(at, deed)| (*at, Turn::Deed(*deed))));
        turns.extend(plan.outage.map(|(at, outage)| (at, Turn::Outage(outage))));
        turns.sort_by_key(|(at, _)| *at);
        let begun = Instant::now();
        for (at, turn) in turns {
            let due = || Ok::<_, String>((begun.elapsed() >= at).then_some(()));
            wait_until(at + PATIENCE, "a moment", due)?;
            match turn {
                Turn::Faults => {
                    let is_on = |from: Duration, until: Duration| from <= at && at < until;
                    let strokes = plan.strokes.iter().filter(|stroke| is_on(stroke.from, stroke.until));
                    self.proxy.aim(strokes.map(Stroke::aimed).collect());
                }
                Turn::Deed(deed) => self.act(deed)?,
                Turn::Outage(Outage::ServerRestarts) => self.stage.plane().restart(Part::KubeApiserver)?,
                Turn::Outage(Outage::StoreRestarts) => self.stage.plane().restart(Part::Etcd)?,
                Turn::Outage(Outage::OlderBackup) => {
                    let (backup, wanted) = backup.context("a backup was made before the round")?;
                    self.stage.plane().restore(backup)?;
                    self.wanted = wanted.clone();
                }
            }
            self.supervise(plan)?;
        }
        Ok(())
    }

    /// Starts the operator again if it ended itself and the plan gives a reason for that.
    fn supervise(&mut self, plan: &Plan) -> anyhow::Result<()> {
        let Some(life) = self.life.take_if(|life| life.has_ended()) else {
            return Ok(());
        };
        let (code, last) = (process::code_of(life.id()), life::tail(life.log(), 60));
        drop(life);
        ensure!(
            code == Some(OVERDUE) && self.may_lose_the_lease(plan),
            "the operator has ended with {code:?}: {last}"
        );
        self.overdue += 1;
        self.start()
    }

    /// Whether the plan or the proxy gives a reason for a lost lease. The operator's own report does not count, because
    /// it may be wrong.
    fn may_lose_the_lease(&self, plan: &Plan) -> bool {
        plan.may_cost_the_lease() || self.proxy.leases_in_vain() >= self.vain[0] + IN_VAIN
    }

    /// Restarts the operator. It repairs a release that is damaged repeatedly only after growing pauses, and a new
    /// process begins without a pause.
    fn begin_anew(&mut self) -> anyhow::Result<()> {
        let life = self.life.take().context("a round ends alive")?;
        life.stop(PATIENCE)?;
        self.start()?;
        self.wait(&Plan::default(), PATIENCE, "all to be as people want it, in a new life")
    }

    fn start(&mut self) -> anyhow::Result<()> {
        self.damages = 0;
        let program = Program::new(env!("CARGO_BIN_EXE_addon-operator"), ["start"]);
        self.life = Some(self.stage.start(&program)?);
        Ok(())
    }

    /// Waits until the state is as people want it after the plan.
    fn wait(&mut self, plan: &Plan, patience: Duration, what: &str) -> anyhow::Result<()> {
        wait_until(patience, what, || {
            if let Err(ended) = self.supervise(plan) {
                return Ok(Some(Err(ended)));
            }
            let seen = self.look().map_err(|error| format!("{error:#}"));
            seen.map(|()| Some(Ok(())))
        })?
    }

    /// How often these words are in the logs of all operator processes.
    fn said(&self, words: &str) -> anyhow::Result<usize> {
        let mut count = 0;
        for entry in fs::read_dir(self.stage.folder())? {
            let path = entry?.path();
            if path.extension().is_some_and(|end| end == "log") {
                let text = fs::read(&path)?;
                let text = String::from_utf8_lossy(&text);
                count += text.matches(words).count();
            }
        }
        Ok(count)
    }

    fn ticks(&self) -> usize {
        let ticks = fs::read_to_string(self.notes.join("ticks")).unwrap_or_default();
        ticks.lines().count()
    }

    fn kubectl(&self) -> Kubectl {
        self.stage.namespace().kubectl_as(User::Admin)
    }

    /// The end of the last log, for the report of a failure.
    pub(crate) fn evidence(&self) -> String {
        let log = self.life.as_ref().map(|life| fs::read(life.log()).unwrap_or_default());
        let log = String::from_utf8_lossy(&log.unwrap_or_default()).into_owned();
        let lines: Vec<&str> = log.lines().filter(|line| !line.contains("queue=ticks")).collect();
        let last = &lines[lines.len().saturating_sub(150)..];
        format!("{}\n{}", last.join("\n"), self.stage.namespace().evidence())
    }

    /// Stops the last operator, which has to leave no process behind.
    pub(crate) fn end(mut self) -> anyhow::Result<()> {
        let life = self.life.take().context("a world ends alive")?;
        life.stop(PATIENCE)?;
        let left = self.stage.children();
        ensure!(left.is_empty(), "what it started runs still: {left:?}");
        Ok(())
    }
}

/// After this many damages a repair waits for 20 s, which is still within the bound.
const DAMAGES: u32 = 3;

/// The least number of requests that must fail before the lease is lost.
const IN_VAIN: u64 = 2;

/// The log message of a leader that lost the lease and goes on in the same process.
const HANDED_OVER: &str = "Restarting because the leadership was handed over";
/// The exit code of a process that ended itself because another replica may lead.
const OVERDUE: i32 = 75;
