//! An installation that follows a tag of its own, and the versions that a test pushes there.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::path::Path;
use std::time::Duration;

use image::layout::{CONFIG, MANIFEST};
use serde_json::{Value, json};
use signing::{PAYLOAD, SIGNATURE, Signer, payload};
use testbed::part::Part;
use testbed::plane::ControlPlane;
use testbed::reader::Only;
use testbed::registry::guard::Guard;
use testbed::registry::push::{Repository, layer};
use testbed::wait::wait_evenly;
use tokio::runtime::Runtime;

use crate::installed::stage::{DEPLOYMENT, Image, LEASE, Stage, chart};

/// Longer than all limits of a trial, on a busy machine.
const PATIENCE: Duration = Duration::from_mins(12);

/// The pauses between looks at a trial, which takes minutes: many are watched at a time, and a look starts a program in a pod.
const CALM: Duration = Duration::from_secs(2);

/// The pauses between looks at a step of a trial, which may last for a second.
const CLOSE: Duration = Duration::from_millis(300);

/// How long a leader may take to answer, and to be followed by another one.
const ANSWER: Duration = Duration::from_secs(30);

/// Chart values for one replica, which ends before its successor begins.
pub(super) const ALONE: &[&str] = &["replicas=1", "strategy.type=Recreate", "strategy.rollingUpdate=null"];

/// An installation, and the tag that it follows.
pub(super) struct Followed<'a> {
    pub(super) stage: Stage<'a>,
    /// The tag, which no other installation follows.
    pub(super) tag: String,
    pub(super) image_repository: String,
    /// The digest of the version that was installed.
    pub(super) first: String,
    /// The guard between this installation and the registry, if there is one.
    pub(super) guard: Option<Guard>,
    values: Vec<String>,
    repository: Repository,
    runtime: Runtime,
    base: String,
}

/// A version to be pushed: its differences from the first one.
#[derive(Default)]
pub(super) struct Change<'a> {
    /// The program with its arguments.
    pub(super) entrypoint: Option<&'a [&'a str]>,
    /// Files in an additional layer.
    pub(super) files: &'a [(&'a str, &'a [u8])],
    /// Whether an invalid layer is added.
    pub(super) is_garbage: bool,
}

/// The connection of the installation to the registry.
pub(super) enum Way {
    Straight,
    /// Pods and their node use a guard with plain HTTP.
    Guarded(Guard),
    /// The operator uses a mirror with TLS, and logs in with this password.
    Mirrored(Guard, &'static str),
}

/// Creates a Secret with a login for the mirror, and a ConfigMap with the certificate authority of the mirror. Returns
/// the chart values that name both objects.
fn mirrored(stage: &Stage<'_>, registry: &str, guard: &Guard, password: &str) -> [String; 3] {
    write_login(stage, guard, password);
    let authority = format!("--from-literal=ca.crt={}", guard.authority());
    let made = stage
        .namespace
        .kubectl(["create", "configmap", "authority", &authority]);
    made.unwrap();
    // In `--set` a dot would separate keys.
    let of = registry.replace('.', "\\.");
    [
        format!("channel.mirrors.{of}={{{}}}", guard.address()),
        "channel.authority=authority".to_owned(),
        format!("image.pullSecrets[0].name={LOGIN}"),
    ]
}

/// The name of the Secret with the login for a mirror.
const LOGIN: &str = "login";

/// Writes the login, in place of an earlier one.
pub(super) fn write_login(stage: &Stage<'_>, guard: &Guard, password: &str) {
    let server = format!("--docker-server={}", guard.address());
    let password = format!("--docker-password={password}");
    let words = ["create", "secret", "docker-registry", LOGIN, "--docker-username=user"];
    let made =
        stage.namespace.kubectl(
            words
                .into_iter()
                .chain([&*server, &password, "--dry-run=client", "--output=yaml"]),
        );
    stage.apply(&made.unwrap());
}

impl<'a> Followed<'a> {
    /// Installs the first version with these chart values. Waits until the Deployment names its digest and the operator
    /// has nothing to do.
    pub(super) fn begin(plane: &'a ControlPlane, image: &Image, more: &[&str]) -> Self {
        Self::begin_by(plane, image, Way::Straight, more)
    }

    /// Like `begin`, with another connection to the registry.
    pub(super) fn begin_by(plane: &'a ControlPlane, image: &Image, way: Way, more: &[&str]) -> Self {
        let stage = Stage::build(plane, image.clone());
        let mut values = vec!["channel.enabled=true".to_owned()];
        let mut registry = plane.registry_of_pods().unwrap();
        let guard = match way {
            Way::Straight => None,
            Way::Guarded(guard) => {
                registry = guard.address().to_string();
                Some(guard)
            }
            Way::Mirrored(guard, password) => {
                values.extend(mirrored(&stage, &registry, &guard, password));
                Some(guard)
            }
        };
        if guard.as_ref().is_none_or(|guard| guard.authority().is_empty()) {
            values.push(format!("channel.plainHttp={{{registry}}}"));
        }
        values.extend(more.iter().map(|&value| value.to_owned()));
        let mut followed = Self {
            tag: stage.namespace.name().to_owned(),
            image_repository: format!("{registry}/addon-operator"),
            first: String::new(),
            guard,
            values,
            repository: Repository::at(plane.registry().unwrap(), "addon-operator"),
            runtime: Runtime::new().unwrap(),
            base: image.digest.clone(),
            stage,
        };
        followed.first = followed.push("0.1.0", &Change::default());
        followed.upgrade(Part::Helm3, &[]);
        // The operator first pins the Deployment to the running digest: otherwise a restarted pod would pull an untried
        // version.
        followed.wait_until_at_rest_with(&followed.first.clone());
        followed
    }

    /// Runs `helm upgrade` with the previous values and these additional ones.
    pub(super) fn upgrade(&self, helm: Part, more: &[&str]) {
        let image = [("repository", self.image_repository.as_str()), ("tag", &self.tag)];
        let values: Vec<&str> = self
            .values
            .iter()
            .map(String::as_str)
            .chain(more.iter().copied())
            .collect();
        self.stage.install_image(helm, &image, &values);
    }

    /// The Deployment of the chart, rendered without access to the cluster.
    pub(super) fn rendered(&self) -> String {
        let (repository, tag) = (&self.image_repository, &self.tag);
        let image = [format!("image.repository={repository}"), format!("image.tag={tag}")];
        let (chart, modules) = (chart(), self.stage.image.modules_value());
        let mut words = vec!["template", "ao", chart.to_str().unwrap(), "--set", &modules];
        words.extend(["--show-only", "templates/deployment.yaml"]);
        words.extend(image.iter().chain(&self.values).flat_map(|value| ["--set", value]));
        self.stage.helm(Part::Helm3, &words)
    }

    /// Moves the followed tag to another version, and returns its digest.
    pub(super) fn push(&self, version: &str, change: &Change<'_>) -> String {
        self.push_as(&self.tag, version, change)
    }

    /// Moves any tag to a version, and returns its digest.
    pub(super) fn push_as(&self, tag: &str, version: &str, change: &Change<'_>) -> String {
        let layers = match change {
            Change { is_garbage: true, .. } => vec![b"this is no layer at all".repeat(100)],
            Change { files: [], .. } => Vec::new(),
            Change { files, .. } => vec![layer(files)],
        };
        let alter = |config: &mut Value, notes: &mut Value| {
            notes["org.opencontainers.image.version"] = json!(version);
            let name = self.stage.namespace.name();
            let variables = config["Env"].as_array_mut();
            variables
                .unwrap()
                .push(json!(format!("OF_VERSION={version} of {name}")));
            if let Some(entrypoint) = change.entrypoint {
                config["Entrypoint"] = json!(entrypoint);
            }
        };
        let pushed = self.repository.derive(&self.base, tag, &layers, alter);
        self.runtime.block_on(pushed)
    }

    /// Puts any document into the registry under this tag.
    pub(super) fn put(&self, tag: &str, kind: &str, document: &Value) -> String {
        self.runtime.block_on(self.repository.put(tag, kind, document))
    }

    /// The size in bytes of the manifest with this digest.
    pub(super) fn size(&self, digest: &str) -> usize {
        self.runtime.block_on(self.repository.manifest(digest)).len()
    }

    /// Signs a digest as cosign does, under the tag made from it. Earlier signatures are replaced.
    pub(super) fn sign(&self, digest: &str, key: &Path) {
        let payload = payload(&self.image_repository, digest);
        let signature = Signer::read(key).unwrap().sign(&payload).unwrap();
        let signed = async {
            let layer = json!({
                "mediaType": PAYLOAD, "digest": self.repository.upload(&payload).await, "size": payload.len(),
                "annotations": { SIGNATURE: signature },
            });
            let config = json!({
                "mediaType": CONFIG, "digest": self.repository.upload(b"{}").await, "size": 2,
            });
            let manifest = json!({ "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer] });
            let tag = format!("{}.sig", digest.replace(':', "-"));
            self.repository.put(&tag, MANIFEST, &manifest).await
        };
        self.runtime.block_on(signed);
    }

    /// Sets a key of the ConfigMap.
    pub(super) fn edit(&self, key: &str, value: &str) {
        let patch = json!({ "data": { key: value } }).to_string();
        let patch = format!("--patch={patch}");
        let words = ["patch", "configmap", "addon-operator", "--type=merge", &patch];
        self.stage.namespace.kubectl(words).unwrap();
    }

    fn in_leader(&self, command: &[&str]) -> Option<String> {
        let leader = self.leader()?;
        let mut words = vec!["exec", &leader, "--", "addon-operator"];
        words.extend(command);
        self.stage.namespace.kubectl(words).ok()
    }

    /// The pod that holds the lease.
    pub(super) fn leader(&self) -> Option<String> {
        let lease = self.stage.namespace.object("lease", LEASE).ok()??;
        let (pod, _) = lease["spec"]["holderIdentity"].as_str()?.split_once('.')?;
        Some(pod.to_owned())
    }

    /// Makes the leader ask the registry now. If no leader answers, that happens only a minute later.
    pub(super) fn check(&self) {
        self.has_checked();
    }

    /// Makes the leader ask the registry now; false if it did not.
    pub(super) fn has_checked(&self) -> bool {
        self.in_leader(&["channel", "check"]).is_some()
    }

    /// The status as JSON; null if no pod has answered for half a minute. A pod that is being replaced does not answer.
    pub(super) fn status(&self) -> Value {
        let look = || {
            let said = self.in_leader(&["channel", "status", "-o", "json"]);
            let status = said.and_then(|said| serde_json::from_str(&said).ok());
            status.map(Some).ok_or("no answer")
        };
        wait_evenly(CALM, ANSWER, "an answer of the leader", look).unwrap_or_default()
    }

    /// Whether the last requests to the registry failed for a reason that contains these words.
    pub(super) fn has_trouble(&self, words: &str) -> bool {
        let status = self.status();
        let trouble = &status["check"]["trouble"];
        trouble.as_str().is_some_and(|trouble| trouble.contains(words))
    }

    pub(super) fn state(&self) -> String {
        self.status()["state"].as_str().unwrap_or_default().to_owned()
    }

    /// The metrics page of the leading pod.
    pub(super) fn metrics(&self) -> String {
        let pod = self.leader().unwrap_or_default();
        let page = format!(
            "/api/v1/namespaces/{}/pods/{pod}:9650/proxy/metrics",
            self.stage.namespace.name()
        );
        self.stage
            .namespace
            .kubectl(["get", "--raw", &page])
            .unwrap_or_default()
    }

    /// The image that the Deployment names.
    pub(super) fn image(&self) -> String {
        let deployment = self.stage.namespace.object("deployment", DEPLOYMENT).unwrap().unwrap();
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        container["image"].as_str().unwrap().to_owned()
    }

    /// The image reference pinned to this digest.
    pub(super) fn of(&self, digest: &str) -> String {
        format!("{}:{}@{digest}", self.image_repository, self.tag)
    }

    /// Whether the Deployment names this version.
    pub(super) fn names(&self, digest: &str) -> bool {
        self.image().ends_with(&format!("@{digest}"))
    }

    /// All Events with this reason.
    pub(super) fn events(&self, reason: &str) -> String {
        self.stage.kubectl(&format!(
            "get events --field-selector=reason={reason} --output=jsonpath={{.items[*].message}}"
        ))
    }

    pub(super) fn wait_for(&self, what: &str, is_so: impl Fn() -> bool) {
        self.look_every(CALM, what, is_so);
    }

    /// Like `wait_for`, for a state that passes soon.
    pub(super) fn wait_closely_for(&self, what: &str, is_so: impl FnMut() -> bool) {
        self.look_every(CLOSE, what, is_so);
    }

    fn look_every(&self, pause: Duration, what: &str, mut is_so: impl FnMut() -> bool) {
        let look = || is_so().then_some(Some(())).ok_or("not so");
        let waited = wait_evenly(pause, PATIENCE, what, look);
        let told = || format!("{}\n{}", self.evidence(), self.stage.logs());
        assert!(waited.is_ok(), "{}\n{}", waited.unwrap_err(), told());
    }

    fn evidence(&self) -> String {
        let namespace = &self.stage.namespace;
        let said = [
            namespace.kubectl(["get", "pods,replicasets,deployments", "--output=wide"]),
            namespace.kubectl(["get", "lease", LEASE, "--output=yaml"]),
            namespace.kubectl([
                "get",
                "events",
                "--sort-by=.lastTimestamp",
                "--field-selector=type=Warning",
            ]),
        ];
        let said = said.map(|said| said.unwrap_or_else(|error| error.to_string()));
        format!("{}\n{}\n{:#}", self.image(), said.join("\n"), self.status())
    }

    /// The namespace's state with all Events, and with the logs of ended containers.
    pub(super) fn evidence_in_full(&self) -> String {
        let namespace = &self.stage.namespace;
        let events = namespace.kubectl(["get", "events", "--sort-by=.lastTimestamp"]);
        let before = self.stage.pods().into_iter().filter_map(|pod| {
            let log = namespace.kubectl(["logs", "--previous", &pod]).ok()?;
            Some(format!("--- {pod}, before its container was started again\n{log}"))
        });
        let before = before.collect::<String>();
        let events = events.unwrap_or_else(|error| error.to_string());
        format!("{}\n{events}\n{before}\n---\n{}", self.evidence(), self.stage.logs())
    }

    /// Whether the Deployment ever had pods of this version.
    pub(super) fn has_rolled_out(&self, digest: &str) -> bool {
        let sets = self.stage.namespace.objects("replicasets", Only::All).unwrap();
        sets.iter().any(|set| {
            let name = set["metadata"]["name"].as_str().unwrap_or_default();
            !name.ends_with("-trial") && set["spec"]["template"].to_string().contains(digest)
        })
    }

    pub(super) fn wait_for_a_trial(&self) {
        self.wait_for("a trial", || self.trial_pod().is_some());
    }

    /// Waits until the pod on trial leads.
    pub(super) fn wait_until_the_new_one_leads(&self) {
        self.wait_for("the version on trial to lead", || {
            self.leader().is_some_and(|leader| leader.contains("-trial-"))
        });
    }

    /// Whether the trial has left nothing behind and a pod of the Deployment leads.
    pub(super) fn is_at_rest(&self) -> bool {
        let namespace = &self.stage.namespace;
        let sets = namespace.metadata("replicasets", Only::All).unwrap();
        let mut names = sets.iter().filter_map(|set| set["metadata"]["name"].as_str());
        let is_tried = names.any(|name| name.contains("-trial"));
        let lease = namespace.object("lease", LEASE).unwrap().unwrap_or_default();
        let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
        let is_free = lease["metadata"]["annotations"]["addon-operator/entitled"].is_null();
        !is_tried && is_free && !holder.is_empty() && !holder.contains("-trial-")
    }

    /// Waits until the Deployment names this version, all its pods run it, and the trial has left nothing behind.
    pub(super) fn wait_until_at_rest_with(&self, digest: &str) {
        self.wait_for("the version in the Deployment", || self.names(digest));
        self.wait_for("the end of the trial", || self.is_at_rest());
        self.stage.roll_out();
        self.wait_for("peace", || {
            let status = self.status();
            status["state"] != "unknown" && status["trial"].is_null() && status["running"]["digests"] == json!([digest])
        });
    }

    /// Waits until this version was rejected, for a failed trial or another reason, and the old version leads
    /// undisturbed.
    pub(super) fn wait_until_sent_away(&self, bad: &str, old: &str) -> String {
        let reason = || self.status()["failed"][bad].as_str().map(str::to_owned);
        self.wait_for("a verdict on the bad version", || reason().is_some());
        self.wait_for("the end of the trial", || self.is_at_rest());
        assert!(self.names(old), "{} instead of {old}", self.image());
        self.wait_for("the bad version to wait", || self.state() == "waits");
        reason().unwrap()
    }

    /// Waits until a trial of this version had an unclear result, and returns the reason.
    pub(super) fn wait_until_unclear(&self, digest: &str, old: &str) -> String {
        self.wait_for("a trial that finds out nothing", || {
            self.status()["unclear"]["digest"] == digest
        });
        self.wait_for("the end of the trial", || self.is_at_rest());
        assert!(self.names(old), "{} instead of {old}", self.image());
        self.status()["unclear"]["why"].as_str().unwrap_or_default().to_owned()
    }

    /// The names of the conditions that a version waits for.
    pub(super) fn waits(&self) -> Vec<String> {
        let status = self.status();
        let waits = status["waits"].as_array().cloned().unwrap_or_default();
        waits
            .iter()
            .filter_map(|wait| wait["reason"].as_str().map(str::to_owned))
            .collect()
    }

    /// The value of a key of a ConfigMap; empty if there is none.
    pub(super) fn in_map(&self, map: &str, key: &str) -> String {
        let found = self
            .stage
            .namespace
            .object("configmap", map)
            .ok()
            .flatten()
            .unwrap_or_default();
        found["data"][key].as_str().unwrap_or_default().to_owned()
    }

    /// Checks that no module was changed: the revisions of all releases are these.
    pub(super) fn assert_untouched(&self, revisions: &str) {
        assert_eq!(self.stage.revisions(), revisions, "something has changed for a module");
    }

    /// The newest revision of a release.
    pub(super) fn revision(&self, release: &str) -> u64 {
        let selector = format!("owner=helm,name={release}");
        let secrets = self
            .stage
            .namespace
            .metadata("secrets", Only::Labels(&selector))
            .unwrap();
        let versions = secrets
            .iter()
            .filter_map(|secret| secret["metadata"]["labels"]["version"].as_str());
        versions
            .filter_map(|version| version.parse().ok())
            .max()
            .unwrap_or_default()
    }
}
