//! The last chapters of the tour: the chart is installed from a pushed image, on a real node.
//!
//! Each command is shown exactly as it is run. Every claim is checked at the API server and in its audit log.

mod channel;
mod image;
mod plugin;
mod site;

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use testbed::plane::{ControlPlane, Options, Pods};
use testbed::process;
use testbed::reader::Only;

use crate::cluster::{self, Releases, shown};
use crate::life::Program;
use crate::narrator::{Narrator, Stop, check, seconds};
use crate::shell::Said;
use channel::{TAG, Versions};
use image::Image;
use site::{Leader, NAME, Site};

/// The modules of docs/guides/modules.md. The repository and the image both contain them.
const MODULES: [&str; 2] = ["guestbook", "storage"];

/// The kind of the object that tells the state of a module.
const KIND: &str = "modules.addon-operator.io";

/// An edit that the schema of the module refuses.
const BAD_EDIT: &str =
    r#"kubectl patch configmap addon-operator --type merge --patch '{"data": {"guestbook": "entriesPerPage: 500"}}'"#;

/// The field that the refusal must name.
const WRONG: &str = "guestbook.entriesPerPage";

pub(crate) struct Installation<'a> {
    narrator: &'a Narrator,
    site: Site<'a>,
}

/// Starts a control plane with a node and shows all chapters of the installation.
/// `tool` is the program that assembles and pushes images.
pub(crate) fn show(narrator: &Narrator, program: &Program, tool: &Path) -> anyhow::Result<()> {
    narrator.chapter("17  Install it with helm");
    narrator
        .say("A new control plane, and a real node: containerd, kubelet and kube-proxy. The image has the modules of");
    narrator.say(
        "docs/guides/modules.md on top: storage, and guestbook with a schema, a CRD and a hook. These chapters began",
    );
    narrator.say("beside chapter 1; their lines were kept until now.");
    let started = Instant::now();
    let plane = ControlPlane::start(&Options {
        pods: Pods::Running,
        ..Options::default()
    })?;
    let after = seconds(started.elapsed());
    narrator.ok(format_args!(
        "the control plane, a registry and the node are ready after {after}"
    ));
    let assembled = Instant::now();
    let image = Image::assemble(plane.folder(), tool, &program.path)?;
    let after = seconds(assembled.elapsed());
    narrator.ok(format_args!(
        "the image is assembled in {after}, without a container engine"
    ));
    let site = Site::build(&plane, &program.path)?;
    Installation { narrator, site }.run(&image)
}

impl Installation<'_> {
    fn run(mut self, image: &Image) -> anyhow::Result<()> {
        let outcome = self.chapters(image);
        if let Err(error) = &outcome
            && !matches!(error.downcast_ref(), Some(Stop::Interrupted))
        {
            self.narrator.chapter("What there is to see");
            self.narrator.say(self.site.evidence());
        }
        outcome
    }

    fn chapters(&mut self, image: &Image) -> anyhow::Result<()> {
        let versions = self.push(image)?;
        self.install()?;
        self.edit_badly()?;
        self.change_leaders()?;
        self.follow(&versions)?;
        self.narrator.wait_for_turn()?;
        self.narrator.all_is_well();
        if self.narrator.has_audience() {
            self.show_around();
            self.narrator.interruption().wait();
        }
        Ok(())
    }

    /// Waits until a claim is true. The check's error describes the state while it is not.
    fn wait<T>(&self, claim: &str, check: impl FnMut() -> anyhow::Result<T>) -> Result<T, Stop> {
        self.narrator.wait(claim, || false, check)
    }

    /// Runs a command, shows it, and fails if the command fails.
    fn type_in(&self, line: &str) -> anyhow::Result<String> {
        self.site.shell().type_in(self.narrator, line)
    }

    fn push(&mut self, image: &Image) -> anyhow::Result<Versions> {
        let plane = self.site.plane();
        let registry = plane.registry().context("the control plane has a registry")?;
        let of_pods = plane.registry_of_pods().context("the node finds the registry")?;
        let began = Instant::now();
        let name = image.push(&format!("{registry}/{NAME}:{TAG}"))?;
        let (_, digest) = name.trim().split_once('@').context("a pushed image has a digest")?;
        let after = seconds(began.elapsed());
        self.narrator.ok(format_args!(
            "the image is pushed under the tag {TAG} in {after}: {digest}"
        ));
        let repository = format!("{of_pods}/{NAME}");
        self.site.set("registry", &of_pods);
        self.site.set("repository", &repository);
        self.site.set("digest", digest);
        Versions::of(registry, repository, digest)
    }

    fn install(&self) -> anyhow::Result<()> {
        let narrator = self.narrator;
        self.type_in("addon-operator rbac generate examples/modules > rights.yaml")?;
        let typed = Instant::now();
        self.type_in(
            "helm install addon-operator charts/addon-operator --values rights.yaml --set modules.dirs={/guestbook} \\\n    \
             --set image.repository=$repository,image.tag=stable,image.digest=$digest \\\n    \
             --set channel.enabled=true,channel.plainHttp={$registry}",
        )?;
        self.wait("two pods are ready", || self.site.pods())?;
        let after = seconds(typed.elapsed());
        let leader = self.wait("one of them leads", || self.site.leader())?;
        narrator.ok(format_args!(
            "both replicas are ready after {after}; {} leads",
            leader.pod
        ));
        narrator.say(self.type_in("kubectl get pods")?);
        let releases = self.wait("the releases of both modules are deployed", || {
            let releases = self.site.releases()?;
            let all = releases.keys().map(String::as_str).eq(MODULES);
            if all && releases.values().all(cluster::Release::is_deployed) {
                Ok(releases)
            } else {
                bail!(shown(&releases))
            }
        })?;
        narrator.ok(format_args!("the modules are released: {}", shown(&releases)));
        self.show_modules()?;
        let asked = self.check_rights()?;
        let rights = "with no rights but those of the chart and of rights.yaml";
        narrator.ok(format_args!("{rights}: {asked} requests, none forbidden"));
        Ok(())
    }

    /// Waits for the modules as people and programs do that have no shell in a pod.
    fn show_modules(&self) -> anyhow::Result<()> {
        self.wait("each module has an object", || {
            let modules = self.site.namespace().objects("module", Only::All)?;
            ensure!(modules.len() == MODULES.len(), "{} objects", modules.len());
            Ok(())
        })?;
        self.type_in(&format!("kubectl wait --for=condition=Ready {KIND} --all --timeout=1m"))?;
        self.narrator.say(self.type_in(&format!("kubectl get {KIND}"))?);
        self.narrator
            .ok("kubectl knows that the modules are ready: each has an object with conditions");
        Ok(())
    }

    /// Checks that no request of the operator, its hooks or its helm was forbidden. Returns the number of their
    /// requests.
    fn check_rights(&self) -> anyhow::Result<usize> {
        let account = format!("system:serviceaccount:{}:{NAME}", self.site.namespace().name());
        let audit = self.site.plane().audit();
        let asked = audit.since(audit.beginning())?.that(|record| record.user == account);
        let forbidden = asked.clone().that(|record| record.code == 403);
        let seen = || format!("the audit log says:\n{forbidden}");
        check("nothing is forbidden to its account", forbidden.is_empty(), seen)?;
        check("its account asks for something", !asked.is_empty(), String::new)?;
        Ok(asked.len())
    }

    fn edit_badly(&self) -> anyhow::Result<()> {
        let narrator = self.narrator;
        narrator.chapter("18  A bad edit");
        self.wait_until_refused()?;
        narrator.typed(BAD_EDIT);
        let Said { is_success, text } = self.site.shell().run(BAD_EDIT)?;
        narrator.say(&text);
        check("the edit is refused", !is_success && is_refusal(&text), || text.clone())?;
        let config = self
            .site
            .namespace()
            .object("configmap", cluster::CONFIG)?
            .unwrap_or_default();
        let seen = || config["data"].to_string();
        check(
            "the ConfigMap is as before",
            config["data"]["guestbook"].is_null(),
            seen,
        )?;
        narrator
            .ok("refused by the leader, which the API server asked through its Service: the ConfigMap is as before");
        self.edit_well("Visitors")?;
        self.look_with_kubectl()
    }

    /// Waits until the API server refuses a bad edit because the operator's webhook says no. Before that moment such
    /// edits pass.
    fn wait_until_refused(&self) -> Result<(), Stop> {
        let trial = format!("{BAD_EDIT} --dry-run=server");
        self.wait("a bad edit is refused", || match self.site.shell().run(&trial)? {
            said if is_refusal(&said.text) => Ok(()),
            said => bail!(said.text),
        })
    }

    fn edit_well(&self, title: &str) -> anyhow::Result<()> {
        let before = self.site.releases()?;
        let edited = Instant::now();
        self.type_in(&format!(
            r#"kubectl patch configmap addon-operator --type merge --patch '{{"data": {{"guestbook": "title: {title}"}}}}'"#
        ))?;
        let revision = self.wait("guestbook is deployed at a later revision", || {
            self.later_revision(&before)
        })?;
        let after = seconds(edited.elapsed());
        let page = self
            .site
            .namespace()
            .object("configmap", "guestbook")?
            .unwrap_or_default();
        let seen = || page["data"].to_string();
        check("guestbook has its new title", page["data"]["title"] == title, seen)?;
        self.narrator.ok(format_args!(
            "guestbook is at revision {revision}, {after} after the edit"
        ));
        Ok(())
    }

    fn later_revision(&self, before: &Releases) -> anyhow::Result<u32> {
        let now = self.site.releases()?;
        match (before.get("guestbook"), now.get("guestbook")) {
            (Some(old), Some(new)) if new.is_deployed() && new.revision > old.revision => Ok(new.revision),
            _ => bail!(shown(&now)),
        }
    }

    fn change_leaders(&self) -> anyhow::Result<()> {
        let narrator = self.narrator;
        narrator.chapter("19  The leader goes");
        narrator.say(
            "Asked to end, it hands its lease over. After kill -9 it comes back under its name, to which that belongs.",
        );
        let (first, before) = (self.site.leader()?, self.site.releases()?);
        let began = Instant::now();
        self.type_in(&format!("kubectl delete pod {} --wait=false", first.pod))?;
        let next = self.wait_for_leader_after(&first)?;
        let after = seconds(began.elapsed());
        check("another pod leads", next.pod != first.pod, || next.pod.clone())?;
        let (led, leads) = (&first.pod, &next.pod);
        narrator.ok(format_args!("{led} led, {leads} leads {after} after the command"));
        self.wait_until_refused()?;
        narrator.ok("the Service leads to that one: the bad edit is refused again");

        let process = self.process_of(&next)?;
        let began = Instant::now();
        process::signal(process, libc::SIGKILL);
        let again = self.wait_for_leader_after(&next)?;
        let after = seconds(began.elapsed());
        let now = self.site.releases()?;
        check("no release is touched", now == before, || shown(&now))?;
        let killed = format!("kill -9 of process {process}, which was {leads}");
        narrator.ok(format_args!("{killed}: {} leads {after} later", again.pod));
        narrator.ok("no release was touched by any of that");
        self.edit_well("Friends")?;
        self.wait("two pods are ready", || self.site.pods())?;
        narrator.say(self.type_in("kubectl get pods")?);
        Ok(())
    }

    fn process_of(&self, leader: &Leader) -> anyhow::Result<u32> {
        let pod = self.site.namespace().object("pod", &leader.pod)?.unwrap_or_default();
        let id = pod["status"]["containerStatuses"][0]["containerID"].as_str();
        let process = id.and_then(|id| self.site.plane().process_of(id));
        process.with_context(|| format!("{} has no process", leader.pod))
    }

    /// Waits for a leader whose pod or term differs from before, and returns it.
    fn wait_for_leader_after(&self, before: &Leader) -> Result<Leader, Stop> {
        self.wait("a leader of a new term", || match self.site.leader()? {
            leader if leader != *before => Ok(leader),
            leader => bail!("{} leads as before", leader.pod),
        })
    }

    fn show_around(&self) {
        let (narrator, site) = (self.narrator, &self.site);
        let kubeconfig = site.namespace().kubeconfig(testbed::plane::User::Admin);
        let programs = site.shell().programs();
        narrator.chapter("Look around from another shell");
        narrator.say(format_args!("export KUBECONFIG={}", kubeconfig.display()));
        narrator.say(format_args!(
            "export PATH={}:{}:$PATH",
            programs.display(),
            site.plane().programs().display()
        ));
        narrator.say("kubectl edit configmap addon-operator");
        narrator.say("kubectl logs deployment/addon-operator --all-pods");
        let namespace = format!("--namespace {}", site.namespace().name());
        for command in [
            "module list -o wide",
            "why guestbook",
            "module values guestbook",
            "channel status",
        ] {
            narrator.say(format_args!("addon-operator {command} {namespace}"));
        }
        narrator.say("# Killed without a word, the leader is waited for as long as its lease lasts, 35 s at most:");
        narrator.say(
            "leader=$(kubectl get lease addon-operator-leader-election --output jsonpath='{.spec.holderIdentity}')",
        );
        narrator.say("kubectl delete pod ${leader%%.*} --force --grace-period=0");
        narrator.say("\nCtrl-C ends it and leaves nothing behind.");
    }
}

fn is_refusal(text: &str) -> bool {
    text.contains("denied the request") && text.contains(WRONG)
}
