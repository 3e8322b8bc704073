//! The chapters in which the operator follows its own image: a tag moves to a good version, and then to a bad one.
//!
//! Whether a version leads, is adopted or is rejected is read from the API server. The operator's own status is only
//! shown, and must agree.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use testbed::reader::Only;
use testbed::registry::push::{Repository, layer_of};
use tokio::runtime::Runtime;

use super::Installation;
use super::site::{Leader, NAME};
use crate::cluster::{Releases, shown};
use crate::narrator::{Stop, check, seconds};

/// The tag of the image that is followed.
pub(super) const TAG: &str = "stable";

/// A new version must lead for this long before it is adopted and the pods are replaced.
const TRIAL: Duration = Duration::from_mins(2);

/// The folder in the image that holds the modules of docs/guides/modules.md.
const MODULES: &str = "/guestbook";

/// The mistake of the bad version: a hook reads a value by a wrong name.
const BREAK: &str = "cp --recursive examples/modules modules\n\
                     sed --in-place s/.entriesPerPage/.perPage/ modules/100-guestbook/hooks/pages.sh\n\
                     addon-operator module manifest modules > manifest && mv manifest modules/.addon-operator-manifest.json";

/// The versions of one image that are pushed.
#[derive(Debug)]
pub(super) struct Versions {
    repository: Repository,
    runtime: Runtime,
    /// The repository's name as pods use it.
    name: String,
    first: String,
}

impl Versions {
    /// The versions that follow an image with the digest `first`.
    pub(super) fn of(registry: &str, name: String, first: &str) -> anyhow::Result<Self> {
        Ok(Self {
            repository: Repository::at(registry, NAME),
            runtime: Runtime::new().context("cannot start a runtime")?,
            name,
            first: first.to_owned(),
        })
    }

    /// Pushes a version with these additional layers, moves the tag to it and returns its digest.
    fn push(&self, version: &str, layers: &[Vec<u8>]) -> String {
        let alter = |config: &mut Value, notes: &mut Value| {
            notes["org.opencontainers.image.version"] = json!(version);
            if let Some(variables) = config["Env"].as_array_mut() {
                variables.push(json!(format!("OF_VERSION={version}")));
            }
        };
        let pushed = self.repository.derive(&self.first, TAG, layers, alter);
        self.runtime.block_on(pushed)
    }

    /// The image reference of a digest, as the Deployment writes it.
    fn image(&self, digest: &str) -> String {
        format!("{}:{TAG}@{digest}", self.name)
    }
}

impl Installation<'_> {
    pub(super) fn follow(&self, versions: &Versions) -> anyhow::Result<()> {
        let good = self.take_good(versions)?;
        self.send_bad_away(versions, &good)?;
        let asked = self.check_rights()?;
        self.narrator
            .ok(format_args!("{asked} requests since the installation, none forbidden"));
        Ok(())
    }

    /// Shows how a good version is adopted. Returns the image that the Deployment names afterwards.
    fn take_good(&self, versions: &Versions) -> anyhow::Result<String> {
        let narrator = self.narrator;
        narrator.chapter("20  A tag moves");
        narrator.say(format_args!(
            "The operator follows the tag {TAG} of its own image: it asks the registry once a minute, or when told to."
        ));
        let (old, before) = (versions.image(&versions.first), self.site.releases()?);
        check("the Deployment names the first version", self.image()? == old, || {
            self.image().unwrap_or_default()
        })?;
        narrator
            .say("A new version runs beside the old ones, and leads once its pod was ready for 10 s. These judge it.");
        let digest = versions.push("0.2.0", &[]);
        narrator.ok(format_args!(
            "version 0.2.0, with one variable more, is pushed under that tag: {digest}"
        ));
        let began = Instant::now();
        let trial = self.try_it(&old)?;
        narrator.ok(format_args!(
            "{} leads {} after the push; the Deployment names the old version",
            trial.pod,
            seconds(began.elapsed())
        ));
        self.look(&trial, &["state:      on-trial", "without new failures"])?;
        narrator.say(
            "A trial takes a bit more than a minute, since the version has to lead for 60 s without new failures.",
        );
        let new = versions.image(&digest);
        let leader = self.wait_for_end("the new version is taken", &new)?;
        let now = self.site.releases()?;
        check("no release is touched", now == before, || shown(&now))?;
        narrator.ok(format_args!(
            "it has passed: {} after the push the Deployment names it, its pods are replaced, the trial is gone",
            seconds(began.elapsed())
        ));
        narrator.ok(format_args!("no release was touched: {}", shown(&now)));
        self.look(&leader, &["state:      up-to-date", "running:    0.2.0", &digest])?;
        Ok(new)
    }

    fn send_bad_away(&self, versions: &Versions, good: &str) -> anyhow::Result<()> {
        let narrator = self.narrator;
        narrator.chapter("21  A bad version of the operator is pushed, and the old one returns");
        narrator.say("Version 0.3.0 has a mistake in the hook of guestbook, which reads a value that is not there:");
        for line in BREAK.lines() {
            self.type_in(line)?;
        }
        let (before, generation) = (self.site.releases()?, self.generation()?);
        let bad = versions.push("0.3.0", &[self.broken_modules()]);
        narrator.ok(format_args!("it is pushed under the tag {TAG}: {bad}"));
        let began = Instant::now();
        let trial = self.try_it(good)?;
        let after = seconds(began.elapsed());
        narrator.ok(format_args!("{} leads {after} after the push", trial.pod));
        self.look(&trial, &["state:      on-trial", "guestbook"])?;
        narrator.say("At its third failure in a row the old version takes over, which has been standing by.");
        let returned = self.wait_for_return(good)?;
        let after = seconds(began.elapsed());
        narrator.ok(format_args!("{} leads again {after} after the push", returned.pod));
        let leader = self.wait_for_end("nothing is left of the trial", good)?;
        let now = self.generation()?;
        let seen = || format!("generation {now} after {generation}");
        check("the Deployment was never changed", now == generation, seen)?;
        narrator.ok("the Deployment has never named the bad version: it was not changed; the trial is gone");
        let failed = format!("failed:     {bad}: module guestbook failed 3 times in a row");
        self.look(&leader, &["state:      waits", "running:    0.2.0", &failed])?;
        self.check_modules(&before)
    }

    /// A layer with the modules as the shown commands have changed them.
    fn broken_modules(&self) -> Vec<u8> {
        let modules: &Path = &self.site.shell().folder().join("modules");
        layer_of(modules, MODULES)
    }

    /// Makes the operator ask the registry, and waits until the version found there leads.
    fn try_it(&self, old: &str) -> anyhow::Result<Leader> {
        self.type_in(&self.channel("check"))?;
        let leader = self.wait("a pod of a trial leads", || match self.site.leader()? {
            leader if leader.is_on_trial() => Ok(leader),
            leader => bail!("{} leads", leader.pod),
        })?;
        let named = self.image()?;
        check("the Deployment names the old version", named == old, || named.clone())?;
        Ok(leader)
    }

    fn wait_for_return(&self, old: &str) -> anyhow::Result<Leader> {
        let claim = "a pod of the old version leads again";
        let leader = self.wait_long(claim, || match self.site.leader()? {
            leader if !leader.is_on_trial() => Ok(leader),
            leader => bail!("{} leads", leader.pod),
        })?;
        let pod = self.site.namespace().object("pod", &leader.pod)?.unwrap_or_default();
        let named = pod["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
        check("it is of the old version", named == old, || named.to_owned())?;
        Ok(leader)
    }

    /// Waits until the Deployment names an image, its pods run it, one of them leads, and the trial has left nothing
    /// behind.
    fn wait_for_end(&self, claim: &str, image: &str) -> Result<Leader, Stop> {
        self.wait_long(claim, || {
            let named = self.image()?;
            ensure!(named == image, "the Deployment names {named}");
            let sets = self.site.namespace().metadata("replicasets", Only::All)?;
            let trial = format!("{NAME}-trial");
            ensure!(
                sets.iter().all(|set| set["metadata"]["name"] != trial.as_str()),
                "ReplicaSet {trial} is there"
            );
            for pod in self.site.pods()? {
                let runs = &pod["spec"]["containers"][0]["image"];
                ensure!(runs == image, "a pod of {runs}");
            }
            let leader = self.site.leader()?;
            ensure!(!leader.is_on_trial(), "{} leads", leader.pod);
            Ok(leader)
        })
    }

    fn wait_long<T>(&self, claim: &str, check: impl FnMut() -> anyhow::Result<T>) -> Result<T, Stop> {
        self.narrator.wait_beyond(TRIAL, claim, || false, check)
    }

    /// Checks that the same modules are released as before, at any revision.
    fn check_modules(&self, before: &Releases) -> anyhow::Result<()> {
        let now = self.wait("the releases are those of before", || {
            let now = self.site.releases()?;
            ensure!(now == *before, shown(&now));
            Ok(now)
        })?;
        self.narrator
            .ok(format_args!("no release was touched: {}", shown(&now)));
        Ok(())
    }

    /// Shows the pods and the leader, and then the operator's status as soon as it contains these words.
    fn look(&self, leader: &Leader, words: &[&str]) -> anyhow::Result<()> {
        let table = self.type_in("kubectl get pods,lease")?;
        self.narrator.say(&table);
        let is_holder = |line: &str| line.starts_with("lease") && line.contains(&format!(" {}.", leader.pod));
        let claim = "the table shows that it holds the lease";
        check(claim, table.lines().any(is_holder), || table.clone())?;
        let status = self.channel("status");
        self.narrator.typed(&status);
        let shown = self.wait("the status says so", || self.site.shell().hear(&status, words))?;
        self.narrator.say(shown);
        Ok(())
    }

    fn channel(&self, command: &str) -> String {
        format!(
            "addon-operator channel {command} --namespace {}",
            self.site.namespace().name()
        )
    }

    /// The image that the Deployment names.
    fn image(&self) -> anyhow::Result<String> {
        let deployment = self.deployment()?;
        let image = deployment["spec"]["template"]["spec"]["containers"][0]["image"].as_str();
        Ok(image.context("the Deployment names an image")?.to_owned())
    }

    /// The Deployment's generation, which grows with each change of its spec.
    fn generation(&self) -> anyhow::Result<u64> {
        let deployment = self.deployment()?;
        let generation = deployment["metadata"]["generation"].as_u64();
        generation.context("the Deployment has a generation")
    }

    fn deployment(&self) -> anyhow::Result<Value> {
        let deployment = self.site.namespace().object("deployment", NAME)?;
        deployment.context("the Deployment is there")
    }
}
