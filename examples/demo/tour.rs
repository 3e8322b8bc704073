//! The steps of the tour in their order, and the claims that are checked after each.
//!
//! Claims are checked only at the API server and in the audit log. Other sources are only shown.

mod bundle;
mod config;
mod desk;
mod health;
mod hooks;
mod lives;
mod moving_in;
mod rule;
mod servers;
mod source;

use std::net::TcpListener;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use fs_err as fs;
use serde_json::{Value, json};
use testbed::audit::{Mark, Record, Records};
use testbed::plane::ControlPlane;

use crate::cluster::{self, Releases, shown};
use crate::life::{Life, Program};
use crate::metrics;
use crate::modules;
use crate::narrator::{Narrator, Stop, check, seconds};
use crate::shell::Shell;
use crate::stage::Stage;

/// The Service by which the API server reaches the operator.
const REVIEWS: &str = "addon-operator-reviews";

/// All modules of the first chapters.
const MODULES: [&str; 4] = ["crowd", "greeter", "sysctl-audit", "sysctl-tuner"];

pub(crate) struct Tour<'a> {
    narrator: &'a Narrator,
    program: Program,
    /// Declared before the stage, so that the operator ends before its stage is deleted.
    life: Option<Life>,
    shell: Shell,
    /// Whether the API server can ask the operator about changes.
    has_reviews: bool,
    stage: Stage<'a>,
}

impl<'a> Tour<'a> {
    pub(crate) fn begin(narrator: &'a Narrator, plane: &'a ControlPlane, program: Program) -> anyhow::Result<Self> {
        let mut stage = Stage::build(plane, "demo", &modules::FILES)?;
        let address = stage.namespace().service_to_us(REVIEWS)?;
        // The API server asks at port 443 only, on which not every user may listen.
        let has_reviews = TcpListener::bind(address).is_ok();
        if has_reviews {
            stage = stage
                .with("VALIDATING_WEBHOOK_SERVICE_NAME", REVIEWS)
                .with("VALIDATING_WEBHOOK_LISTEN_ADDRESS", address.ip().to_string())
                .with("VALIDATING_WEBHOOK_LISTEN_PORT", address.port().to_string());
        }
        let registry = plane.registry().context("the control plane has a registry")?;
        stage = stage
            .with("ADDON_OPERATOR_CHANNEL_PLAIN_HTTP", registry)
            // The module bundles calls the operator's program, which the image has on its PATH.
            .with("ADDON_OPERATOR_PROGRAM", fs::canonicalize(&program.path)?);
        let shell = desk::open(&stage, &program)?;
        Ok(Self {
            narrator,
            program,
            life: None,
            shell,
            has_reviews,
            stage,
        })
    }

    pub(crate) fn run(&mut self) -> anyhow::Result<()> {
        let outcome = self.chapters();
        if let Err(error) = &outcome
            && !matches!(error.downcast_ref(), Some(Stop::Interrupted))
        {
            self.show_evidence();
        }
        outcome
    }

    fn chapters(&mut self) -> anyhow::Result<()> {
        self.install()?;
        self.edit()?;
        self.copy_secrets()?;
        self.add_nodes()?;
        self.switch_off_and_on()?;
        self.break_and_mend()?;
        self.kill_in_the_middle_of_helm()?;
        self.restart_unchanged()?;
        self.follow_a_tag()?;
        self.start_no_pod()?;
        self.take_an_upgrade_back()?;
        self.follow_a_mask()?;
        self.copy_by_rule()?;
        self.run_servers()?;
        self.move_in()?;
        self.show_metrics();
        Ok(())
    }

    /// Keeps everything running for the person at the terminal, until Ctrl-C.
    pub(crate) fn stay(&self) {
        if self.narrator.has_audience() {
            self.show_around();
            self.narrator.interruption().wait();
        }
    }

    /// Stops the operator in the regular way.
    pub(crate) fn leave(mut self) -> anyhow::Result<()> {
        if let Some(life) = self.life.take() {
            life.stop(self.narrator.patience())?;
        }
        Ok(())
    }

    fn start(&mut self) -> anyhow::Result<()> {
        self.life = Some(self.stage.start(&self.program)?);
        Ok(())
    }

    /// Waits until a claim is true. The error of `check` describes the state while it is not.
    fn wait<T>(&self, claim: &str, check: impl FnMut() -> anyhow::Result<T>) -> Result<T, Stop> {
        let dead = || self.life.as_ref().is_some_and(Life::has_ended);
        self.narrator.wait(claim, dead, check)
    }

    /// Waits until a release has a later revision than `before`, deployed.
    fn wait_for_revision(&self, name: &str, before: &Releases) -> Result<u32, Stop> {
        let old = before.get(name).map_or(0, |release| release.revision);
        self.wait(&format!("{name} is deployed at a later revision than {old}"), || {
            let releases = cluster::releases(self.stage.namespace())?;
            match releases.get(name) {
                Some(release) if release.is_deployed() && release.revision > old => Ok(release.revision),
                Some(release) => bail!("{name} {release}"),
                None => bail!("no release {name}"),
            }
        })
    }

    /// Waits until the operator has not written for a while, and returns its writes since the mark.
    fn wait_for_quiet(&self, since: Mark) -> Result<Records, Stop> {
        const WHILE: Duration = Duration::from_secs(1);
        let mut last = (0, Instant::now());
        self.wait("the operator has nothing more to write", || {
            let writes = cluster::writes(self.stage.plane(), since)?;
            if writes.len() != last.0 {
                last = (writes.len(), Instant::now());
            }
            if last.1.elapsed() < WHILE {
                bail!("{} writes so far, the last one just now", writes.len());
            }
            Ok(writes)
        })
    }

    /// Checks that only the named releases differ from before, and that the operator wrote to no other module.
    fn check_untouched(&self, before: &Releases, but: &[&str], writes: &Records) -> anyhow::Result<()> {
        let mut wanted = before.clone();
        let mut found = cluster::releases(self.stage.namespace())?;
        for name in but {
            wanted.remove(*name);
            found.remove(*name);
        }
        let claim = format!("no release but {} is touched", but.join(" and "));
        check(&claim, wanted == found, || {
            format!("before: {}; now: {}", shown(&wanted), shown(&found))
        })?;
        // A refused request has changed nothing. A helm that was killed may leave cut-off requests, which changed
        // nothing either.
        let strange = writes
            .clone()
            .that(|record| record.succeeded() && !is_about(record, but));
        check(&claim, strange.is_empty(), || format!("the audit log says:\n{strange}"))
    }

    fn mark(&self) -> anyhow::Result<Mark> {
        Ok(self.stage.plane().audit().mark()?)
    }

    fn install(&mut self) -> anyhow::Result<()> {
        let narrator = self.narrator;
        narrator.chapter("1  Install");
        narrator.say("The operator starts on the modules of this repository, and on greeter and crowd, made for this");
        narrator.say(
            "tour. Its ConfigMap switches on the modules that we ship, which are off otherwise, and wants the profile",
        );
        narrator.say("\"database\" for sysctl-tuner.");
        let create = ["create", "configmap", cluster::CONFIG].map(ToOwned::to_owned);
        let flags = cluster::SHIPPED.map(|flag| format!("--from-literal={flag}=true"));
        let section = "--from-literal=sysctlTuner=profile: database".to_owned();
        let words = create.into_iter().chain(flags).chain([section]);
        self.stage.namespace().kubectl(words)?;
        self.start()?;
        let releases = self.wait(
            "all four releases are deployed and labelled as the operator's own",
            || {
                let releases = cluster::releases(self.stage.namespace())?;
                let done = |name: &&str| {
                    releases
                        .get(*name)
                        .is_some_and(|release| release.is_deployed() && release.ours)
                };
                if releases.len() == MODULES.len() && MODULES.iter().all(done) {
                    Ok(releases)
                } else {
                    bail!(shown(&releases))
                }
            },
        )?;
        let age = self.life.as_ref().map(Life::age).unwrap_or_default();
        narrator.ok(format_args!(
            "four releases, labelled as ours, {} after the start:",
            seconds(age)
        ));
        for (name, release) in &releases {
            narrator.say(format_args!("{name:<12} {release}"));
        }
        self.check_settings("database", "vm.swappiness = 1")?;
        self.check_facts()?;
        let audit = self.wait_for_pods("sysctl-audit")?;
        narrator.ok(format_args!(
            "the enabled script of sysctl-audit agreed, after the tuner that it needs was there: {audit}"
        ));
        Ok(())
    }

    /// Checks that the DaemonSet has the settings that only the module's hook can compute.
    fn check_settings(&self, profile: &str, setting: &str) -> anyhow::Result<()> {
        self.wait_for_setting(
            &format!("sysctl-tuner has the settings of the profile {profile}"),
            setting,
        )?;
        let pods = self.wait_for_pods("sysctl-tuner")?;
        self.narrator.ok(format_args!(
            "the hook completed the profile {profile} ({setting}, …): {pods}"
        ));
        Ok(())
    }

    /// Waits until the configuration that the pods of sysctl-tuner apply contains a line.
    fn wait_for_setting(&self, claim: &str, setting: &str) -> Result<(), Stop> {
        self.wait(claim, || {
            let config = self
                .stage
                .namespace()
                .object("configmap", "sysctl-tuner")?
                .unwrap_or_default();
            let text = config["data"]["sysctl.conf"].as_str().unwrap_or("no settings");
            if text.lines().any(|line| line == setting) {
                Ok(())
            } else {
                bail!(text.replace('\n', "; "))
            }
        })
    }

    /// Checks that the chart was rendered with the fact that the global hook discovered. The chart's own default is an
    /// older image.
    fn check_facts(&self) -> anyhow::Result<()> {
        let image = self.wait("the pause image follows from the cluster's version", || {
            let set = self
                .stage
                .namespace()
                .object("daemonset", "sysctl-tuner")?
                .unwrap_or_default();
            let image = set["spec"]["template"]["spec"]["containers"][0]["image"]
                .as_str()
                .unwrap_or("none")
                .to_owned();
            if image.ends_with("/pause:3.10.1") {
                Ok(image)
            } else {
                bail!("image {image}")
            }
        })?;
        let version = self.stage.namespace().kubectl(["version", "--output=json"])?;
        let version: Value = serde_json::from_str(&version)?;
        let version = version["serverVersion"]["gitVersion"].as_str().unwrap_or("?");
        self.narrator.ok(format_args!(
            "the global hook told the charts about Kubernetes {version}: {image}"
        ));
        Ok(())
    }

    fn wait_for_pods(&self, name: &str) -> Result<String, Stop> {
        self.wait(&format!("the DaemonSet {name} has its pods"), || self.pods(name))
    }

    /// The number of pods of a DaemonSet. An error if one of them is outdated or not ready.
    fn pods(&self, name: &str) -> anyhow::Result<String> {
        let set = self.stage.namespace().object("daemonset", name)?.unwrap_or_default();
        let status = &set["status"];
        let number = |key: &str| status[key].as_u64().unwrap_or(0);
        let (wanted, ready) = (number("desiredNumberScheduled"), number("numberReady"));
        let current =
            status["observedGeneration"] == set["metadata"]["generation"] && number("updatedNumberScheduled") == wanted;
        let text = format!("{ready} of {wanted} pods ready");
        if current && wanted > 0 && ready == wanted {
            Ok(text)
        } else {
            bail!(text)
        }
    }

    fn show_evidence(&self) {
        self.narrator.chapter("What there is to see");
        self.narrator.say(self.stage.namespace().evidence());
    }

    fn show_metrics(&self) {
        self.narrator.chapter("16  What the operator says of itself");
        self.narrator.say("Some of its metrics, shown and not believed.");
        match metrics::excerpt(self.stage.port()) {
            Ok(lines) => self.narrator.say(lines.join("\n")),
            Err(error) => self.narrator.say(format_args!("no metrics: {error:#}")),
        }
    }

    fn show_around(&self) {
        let (narrator, stage) = (self.narrator, &self.stage);
        narrator.chapter("Look around from another shell");
        let kubeconfig = stage.namespace().kubeconfig(testbed::plane::User::Admin);
        narrator.say(format_args!("export KUBECONFIG={}", kubeconfig.display()));
        let (ours, others) = (self.shell.programs(), stage.plane().programs());
        narrator.say(format_args!(
            "export PATH={}:{}:$PATH",
            ours.display(),
            others.display()
        ));
        narrator.say(format_args!("export DEBUG_UNIX_SOCKET={}", stage.socket().display()));
        narrator.say("kubectl edit configmap addon-operator     # for example sysctlAuditEnabled: \"false\"");
        narrator.say("kubectl get daemonsets,configmaps,secrets");
        narrator.say("kubectl get bundles,aerospikeclusters,copyrator --all-namespaces");
        for command in [
            "module list --output wide",
            "module values sysctl-tuner",
            "module source status",
            "global values",
            "queue list",
        ] {
            narrator.say(format_args!("addon-operator {command}"));
        }
        narrator.say(format_args!("curl http://127.0.0.1:{}/metrics", stage.port()));
        if let Some(life) = &self.life {
            narrator.say(format_args!("tail -f {}", life.log().display()));
        }
        narrator.say("\nCtrl-C ends it and leaves nothing behind.");
    }
}

/// Whether a request is about one of these modules or about the operator's own Secrets. All objects of a module have
/// names that begin with the module's name.
fn is_about(record: &Record, modules: &[&str]) -> bool {
    let name = record.name.strip_prefix("sh.helm.release.v1.").unwrap_or(&record.name);
    cluster::MEMORY.contains(&record.name.as_str()) || modules.iter().any(|module| name.starts_with(module))
}

/// The text of a section as the ConfigMap stores it.
fn section(value: &Value) -> Value {
    json!(value.to_string())
}
