//! Three replicas in one namespace under load: the changes of the leader, and the conditions that must be met
//! afterwards.

mod load;
mod look;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use fs_err as fs;
use serde_json::json;
use tempfile::TempDir;
use testbed::audit::Mark;
use testbed::draw::Draw;
use testbed::namespace::Namespace;
use testbed::part::Part;
use testbed::proxy::{Fault, On};
use testbed::shared;
use testbed::wait::wait_until;

use crate::clock;

use crate::plan::{Blow, Moment, Way};
use crate::replica::{Ground, REPLICAS, Replica};
use crate::tally::Outcome;
use load::Load;
use look::Tenure;

/// The longest allowed durations of a change of the leader.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// The time until the next term of a leader has begun.
    pub(crate) leads: Duration,
    /// The time from the begin of that term until the cluster has the state that people want.
    pub(crate) settles: Duration,
}

/// The holder of the lease. Two different values are two terms.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Lease {
    holder: String,
    acquired: String,
    transitions: i64,
}

pub(crate) struct World {
    /// Declared before the folder, so that the replicas end before it is deleted.
    replicas: [Replica; REPLICAS],
    namespace: Namespace<'static>,
    folder: TempDir,
    bounds: Bounds,
    load: Load,
    /// The position in the audit log up to which requests have been checked.
    checked: Mark,
    tenure: Tenure,
    claims: BTreeMap<String, String>,
}

impl World {
    /// Builds a world with all modules installed and three replicas, one of which leads.
    pub(crate) fn build(helm: Part, bounds: Bounds, draw: Draw) -> anyhow::Result<Self> {
        let plane = shared::plane();
        // In the folder of the control plane, which the next start removes even after a kill.
        let folder = tempfile::Builder::new().prefix("leaders-").tempdir_in(plane.folder())?;
        let namespace = plane.namespace("campaign-leaders")?;
        let group = format!("--group=system:serviceaccounts:{}", namespace.name());
        namespace.kubectl([
            "create",
            "clusterrolebinding",
            namespace.name(),
            "--clusterrole=cluster-admin",
            &group,
        ])?;
        fs::create_dir(folder.path().join("notes"))?;
        let load = Load::furnish(&namespace, folder.path(), draw)?;
        let clock = clock::compile(folder.path())?;
        let ground = Ground {
            namespace: &namespace,
            folder: folder.path(),
            helm: &shared::program(helm),
            clock: &clock,
            port: namespace.port()?,
        };
        let replicas = [
            Replica::prepare(0, &ground)?,
            Replica::prepare(1, &ground)?,
            Replica::prepare(2, &ground)?,
        ];
        let mut world = Self {
            replicas,
            checked: plane.audit().mark()?,
            namespace,
            folder,
            bounds,
            load,
            tenure: Tenure::default(),
            claims: BTreeMap::new(),
        };
        world.start_the_ended()?;
        world.settle(Duration::from_mins(2)).with_context(|| world.evidence())?;
        world.claims = world.claims_now()?;
        world.check()?;
        world.ensure_clocks_are_wrong()?;
        Ok(world)
    }

    /// Does the change to the leader, keeps editing until another replica leads, waits until the state is as it should
    /// be, and checks the requests on the way.
    pub(crate) fn strike(&mut self, blow: Blow) -> anyhow::Result<Outcome> {
        let edits = self.load.edits();
        self.load.begin_round();
        for (replica, ahead) in self.replicas.iter_mut().zip(blow.ahead) {
            replica.forget();
            replica.clock.set(ahead)?;
        }
        let last_good = self.revisions()?;
        self.wait_for_moment(blow.moment)?;
        let before = self.lease()?.context("there is a lease between two rounds")?;
        let leader = self
            .place_of(&before.holder)
            .context("one of them leads between two rounds")?;
        let begun = Instant::now();
        self.hit(leader, blow)?;
        let changed = self.wait_for_change(&before, leader, blow.way)?;
        let led = changed.then(|| begun.elapsed());
        self.undo(leader, blow.way)?;
        self.start_the_ended()?;
        self.settle(self.bounds.settles)?;
        let settled = begun.elapsed();
        let led = match self.lease()? {
            // The leader may have lost its lease later, after it had seemed to lead on.
            Some(now) if led.is_none() && now != before => Some(settled),
            _ => led,
        };
        self.check()?;
        self.check_revisions(&last_good)?;
        Ok(Outcome {
            led,
            settled,
            edits: self.load.edits() - edits,
        })
    }

    /// Makes an edit, and waits for the moment of the change.
    fn wait_for_moment(&mut self, moment: Moment) -> anyhow::Result<()> {
        let begun = self.begun_helms()?;
        for _ in 0..2 {
            self.load.edit(&self.namespace)?;
        }
        let edited = Instant::now();
        let (patience, what) = match moment {
            Moment::After(delay) => (delay + Duration::from_secs(5), "a moment"),
            Moment::Helm => (Duration::from_secs(5), "a helm that begins"),
        };
        let has_come = || -> anyhow::Result<Option<()>> {
            let come = match moment {
                Moment::After(delay) => edited.elapsed() >= delay,
                Moment::Helm => self.begun_helms()? > begun,
            };
            Ok(come.then_some(()))
        };
        // Some edits do not need helm. Then the change happens without one.
        let _ = wait_until(patience, what, has_come);
        Ok(())
    }

    fn hit(&mut self, leader: usize, Blow { way, blink, .. }: Blow) -> anyhow::Result<()> {
        let replica = &mut self.replicas[leader];
        match way {
            Way::Kill { .. } => replica.signal(libc::SIGKILL),
            Way::Stop { .. } => replica.signal(libc::SIGTERM),
            Way::Freeze { children, .. } => replica.freeze(children)?,
            Way::Blink => {
                replica.freeze(true)?;
                let frozen = Instant::now();
                let over = || Ok::<_, String>((frozen.elapsed() >= blink).then_some(()));
                wait_until(blink * 2, "the end of a short freeze", over)?;
                replica.thaw();
            }
            Way::Delete => drop(self.namespace.kubectl(["delete", "lease", look::LEASE_NAME])?),
            Way::Seize { ahead } => self.seize(ahead)?,
            Way::Cut { .. } => {
                let what = way.fault().context("a cut is a fault")?;
                let on = On::Everything;
                replica.proxy.impose(vec![Fault { on, what }]);
            }
        }
        Ok(())
    }

    /// Writes the lease like a holder with a wrong clock who then never renews.
    fn seize(&self, ahead: i64) -> anyhow::Result<()> {
        let time = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(ahead);
        let time = format!("{time:.6}");
        let spec = json!({"holderIdentity": "by-hand", "leaseDurationSeconds": crate::LEASE, "acquireTime": time, "renewTime": time});
        let patch = json!({ "spec": spec }).to_string();
        self.namespace
            .kubectl(["patch", "lease", look::LEASE_NAME, "--type=merge", "--patch", &patch])?;
        Ok(())
    }

    /// Keeps editing until another term begins, or until it is clear that the leader leads on. Returns whether another
    /// term began.
    fn wait_for_change(&mut self, before: &Lease, leader: usize, way: Way) -> anyhow::Result<bool> {
        wait_until(
            self.bounds.leads,
            "another leader",
            || -> anyhow::Result<Option<bool>> {
                let mut changed = None;
                match self.lease()? {
                    Some(now) if now != *before && self.place_of(&now.holder).is_some() => changed = Some(true),
                    Some(now) if now == *before && way.may_stand() => changed = Some(false),
                    other => drop(other),
                }
                if changed.is_none() {
                    if way.again() && self.replicas[leader].has_ended()? {
                        self.replicas[leader].start()?;
                    }
                    self.load.edit_now_and_then(&self.namespace)?;
                }
                Ok(changed)
            },
        )
        .map_err(Into::into)
    }

    /// Ends the harm to the replica.
    fn undo(&mut self, leader: usize, way: Way) -> anyhow::Result<()> {
        match way {
            Way::Freeze { late, .. } => {
                if late {
                    let patience = self.bounds.settles;
                    wait_until(patience, "all work to be done by another", || self.in_force().map(Some))?;
                }
                self.thaw(leader)
            }
            Way::Cut { .. } => {
                self.replicas[leader].proxy.heal();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Lets the replica's main process go on. It has to end its own children, which are still stopped, and itself.
    fn thaw(&mut self, leader: usize) -> anyhow::Result<()> {
        let replica = &mut self.replicas[leader];
        replica.signal(libc::SIGCONT);
        wait_until(
            Duration::from_mins(1),
            "the end of what was frozen for too long",
            || {
                let ended = replica.has_ended()?;
                let left = replica.processes();
                ensure!(!ended || left.is_empty(), "it left behind {left:?}");
                Ok(ended.then_some(()))
            },
        )?;
        Ok(())
    }

    /// Starts replicas that have ended, as kubelets do.
    fn start_the_ended(&mut self) -> anyhow::Result<()> {
        for replica in &mut self.replicas {
            if replica.has_ended()? {
                replica.start()?;
            }
        }
        Ok(())
    }

    fn settle(&mut self, patience: Duration) -> anyhow::Result<()> {
        let look = || {
            self.start_the_ended()?;
            self.one_leads()?;
            self.in_force().map(Some)
        };
        Ok(wait_until(patience, "all to be as it should be", look)?)
    }

    /// The end of all logs, for the report of a failure.
    pub(crate) fn evidence(&self) -> String {
        self.namespace.evidence()
    }

    /// Stops all replicas. They have to release the lease and leave no process behind.
    pub(crate) fn end(mut self) -> anyhow::Result<()> {
        for replica in &mut self.replicas {
            replica.signal(libc::SIGTERM);
            let ended = || replica.has_ended().map(|ended| ended.then_some(()));
            wait_until(Duration::from_mins(1), "the end of a replica after SIGTERM", ended)?;
            let left = replica.processes();
            ensure!(left.is_empty(), "what it started runs still: {left:?}");
        }
        let holder = self.lease()?.map(|lease| lease.holder);
        ensure!(holder.as_deref() == Some(""), "the lease was not released: {holder:?}");
        self.namespace
            .kubectl(["delete", "clusterrolebinding", self.namespace.name()])?;
        Ok(())
    }

    fn lease(&self) -> anyhow::Result<Option<Lease>> {
        let lease = self.namespace.object("lease", look::LEASE_NAME)?;
        Ok(lease.map(|lease| {
            let spec = &lease["spec"];
            let text = |field: &str| spec[field].as_str().unwrap_or_default().to_owned();
            Lease {
                holder: text("holderIdentity"),
                acquired: text("acquireTime"),
                transitions: spec["leaseTransitions"].as_i64().unwrap_or_default(),
            }
        }))
    }

    fn place_of(&self, holder: &str) -> Option<usize> {
        self.replicas.iter().position(|replica| replica.identity == holder)
    }
}
